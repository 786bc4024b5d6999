use event::sched::{SchedMigrateTask, SchedSwitch, SchedWakeup, TaskComm};
use event::{Body, Decoder, EventType};

use super::*;

/// Feeds events to task states, with thread ids as slots.
struct Feed {
    states: TaskStates,
    /// What came out.
    tasks: Vec<TaskSpan>,
    cpus: Vec<CpuSpan>,
}

impl Feed {
    fn new() -> Feed {
        let mut states = TaskStates::default();
        states.follow();
        Feed {
            states,
            tasks: Vec::new(),
            cpus: Vec::new(),
        }
    }

    fn take(&mut self, kind: Kind, (time, cpu, tid): (u64, i32, i32), data: Data, tasks: Tasks) {
        let ty = EventType {
            index: 0,
            machine: 0,
            system: "sched",
            name: "",
            label: "",
            kind,
            format: None,
            decoder: Decoder::default(),
            recorded: true,
        };
        let event = Event::bare(&ty, (time, cpu, tid), Body::None);
        let rule = self.states.wake_rule(kind);
        let waker = rule.wakes.then_some(tid.cast_unsigned());
        self.states.take(&event, &data, tasks, rule, waker);
        self.tasks.extend(&self.states.changes().tasks);
        self.cpus.extend(self.states.changes().cpu);
    }

    fn switch(&mut self, time: u64, cpu: i32, prev: i32, state: u64, next: i32) {
        let switch = SchedSwitch {
            prev_comm: TaskComm::default(),
            prev_tid: prev,
            prev_state: TaskState(state),
            next_comm: TaskComm::default(),
            next_tid: next,
        };
        let tasks = Tasks {
            prev: prev.cast_unsigned(),
            task: next.cast_unsigned(),
        };
        self.take(
            Kind::SchedSwitch,
            (time, cpu, prev),
            Data::SchedSwitch(switch),
            tasks,
        );
    }

    fn wake(&mut self, kind: Kind, at: (u64, i32, i32), tid: i32, target: i32) {
        let wakeup = SchedWakeup {
            comm: TaskComm::default(),
            tid,
            target_cpu: Some(target),
        };
        let data = match kind {
            Kind::SchedWaking => Data::SchedWaking(wakeup),
            _ => Data::SchedWakeup(wakeup),
        };
        let slot = tid.cast_unsigned();
        let tasks = Tasks {
            prev: slot,
            task: slot,
        };
        self.take(kind, at, data, tasks);
    }

    fn moves(&mut self, time: u64, tid: i32, dest_cpu: i32) {
        let slot = tid.cast_unsigned();
        let tasks = Tasks {
            prev: slot,
            task: slot,
        };
        let data = Data::SchedMigrateTask(SchedMigrateTask {
            tid,
            orig_cpu: NONE,
            dest_cpu,
        });
        self.take(Kind::SchedMigrateTask, (time, 0, 0), data, tasks);
    }

    /// Returns state, beginning, end, what ended it and behind whom, of a task's spans.
    fn of(&self, tid: u32) -> Vec<(RunState, u64, u64, SpanEnd, Option<u32>)> {
        let own = self.tasks.iter().filter(|span| span.thread == tid);
        own.map(|span| (span.state, span.start, span.end, span.ended_by, span.behind))
            .collect()
    }
}

#[test]
fn a_task_sleeps_is_woken_waits_and_runs() {
    let mut feed = Feed::new();
    feed.states.recorded(Kind::SchedWakeup);
    feed.states.recorded(Kind::SchedWaking);
    feed.switch(100, 1, 0, 0, 7);
    feed.switch(150, 1, 7, 1, 0);
    feed.wake(Kind::SchedWaking, (190, 2, 9), 7, 1);
    feed.wake(Kind::SchedWakeup, (200, 1, 0), 7, 1);
    feed.switch(230, 1, 0, 0, 7);
    assert_eq!(
        feed.of(7),
        [
            (RunState::Running, 100, 150, SpanEnd::LeftCpu, None),
            (RunState::Asleep, 150, 200, SpanEnd::Woken, None),
            (RunState::Woken, 200, 230, SpanEnd::Behind, Some(0)),
            (RunState::Woken, 230, 230, SpanEnd::GotCpu, Some(0)),
        ]
    );
    let last = feed.tasks.last().unwrap();
    assert_eq!((last.whole_ns(), last.waker), (30, Some(9)));
    assert_eq!((last.left, last.left_as), (Some((150, 1)), TaskState(1)));
    let cpus: Vec<_> = feed
        .cpus
        .iter()
        .map(|cpu| (cpu.thread, cpu.idle, cpu.ns()))
        .collect();
    assert_eq!(cpus, [(Some(7), false, 50), (Some(0), true, 80)]);
}

/// Its run on a CPU that was not recorded yet is missing.
#[test]
fn a_task_that_is_woken_again_has_run_meanwhile() {
    let mut feed = Feed::new();
    feed.wake(Kind::SchedWaking, (190, 2, 9), 7, 1);
    feed.wake(Kind::SchedWaking, (400, 2, 9), 7, 1);
    feed.switch(430, 1, 0, 0, 7);
    let last = feed.tasks.last().unwrap();
    assert_eq!((last.state, last.whole_ns()), (RunState::Woken, 30));
}

#[test]
fn the_first_wakeup_corrects_the_waking_that_stood_in_for_it() {
    let mut feed = Feed::new();
    feed.switch(100, 1, 7, 1, 0);
    feed.wake(Kind::SchedWaking, (190, 2, 9), 7, 1);
    feed.wake(Kind::SchedWakeup, (200, 1, 0), 7, 1);
    // From now on only sched_wakeup says that a task is on a run queue.
    feed.switch(230, 1, 0, 0, 7);
    feed.switch(240, 1, 7, 2, 0);
    feed.wake(Kind::SchedWaking, (250, 2, 9), 7, 1);
    feed.switch(260, 1, 0, 0, 7);
    let ends: Vec<_> = feed
        .tasks
        .iter()
        .filter(|one| one.ended_by == SpanEnd::GotCpu)
        .collect();
    assert_eq!((ends[0].state, ends[0].whole_ns()), (RunState::Woken, 30));
    assert_eq!((ends[1].state, ends[1].whole_ns()), (RunState::Asleep, 20));
    assert_eq!(ends[1].waker, Some(9));
}

#[test]
fn a_preempted_task_waits_behind_each_that_runs_meanwhile() {
    let mut feed = Feed::new();
    feed.switch(100, 0, 7, 0x100, 8);
    feed.switch(130, 0, 8, 1, 9);
    feed.moves(160, 7, 3);
    feed.switch(170, 3, 5, 1, 7);
    assert_eq!(
        feed.of(7),
        [
            (RunState::Preempted, 100, 130, SpanEnd::Behind, Some(8)),
            (RunState::Preempted, 130, 160, SpanEnd::Moved, Some(9)),
            (RunState::Preempted, 160, 170, SpanEnd::Behind, Some(5)),
            (RunState::Preempted, 170, 170, SpanEnd::GotCpu, Some(5)),
        ]
    );
    let last = feed.tasks.last().unwrap();
    assert_eq!((last.whole_ns(), last.taken_by), (70, Some(8)));
}

#[test]
fn what_does_not_follow_from_what_was_seen_is_missed() {
    let mut feed = Feed::new();
    feed.switch(100, 0, 0, 0, 7);
    // It leaves another CPU; and its own goes away from a third task.
    feed.switch(150, 1, 7, 4, 0);
    feed.states.lost(1);
    feed.switch(180, 0, 9, 1, 7);
    feed.switch(190, 1, 8, 1, 7);
    feed.switch(200, 1, 7, 0x20, 0);
    assert_eq!(
        feed.of(7),
        [
            (RunState::Running, 100, 150, SpanEnd::Missed, None),
            (RunState::Stopped, 150, 180, SpanEnd::GotCpu, None),
            (RunState::Running, 180, 190, SpanEnd::Missed, None),
            (RunState::Running, 190, 200, SpanEnd::LeftCpu, None),
        ]
    );
    assert_eq!(feed.states.open(7, 300), None, "it has ended");
    let cpus: Vec<_> = feed
        .cpus
        .iter()
        .map(|cpu| (cpu.cpu, cpu.thread, cpu.lost))
        .collect();
    assert_eq!(
        cpus,
        [(0, None, false), (1, None, true), (1, Some(7), false)]
    );
    let open: Vec<_> = feed
        .states
        .running(300)
        .map(|cpu| (cpu.cpu, cpu.thread, cpu.ns()))
        .collect();
    assert_eq!(open, [(0, Some(7), 120), (1, Some(0), 100)]);
}
