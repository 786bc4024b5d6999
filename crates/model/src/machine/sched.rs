//! The scheduler's part: who has which CPU, who waits for one, and behind whom.

use event::sched::Leaves;
use event::{Data, Event, EventType, Kind};

use super::{CpuQueue, MAX_WAITING, Machine};
use crate::Tasks;
use crate::span::SpanSink;
use crate::tasks::{TaskStates, WakeRule};
use crate::track::{SchedState, TrackPlace};

impl Machine {
    /// Returns what all tasks do, and who has which CPU.
    #[inline]
    pub fn task_states(&self) -> &TaskStates {
        &self.task_states
    }

    /// Returns the same, to have tasks followed, or what changed taken out for a while.
    pub fn task_states_mut(&mut self) -> &mut TaskStates {
        &mut self.task_states
    }

    /// Takes note of a kind of events, where nobody asks for states.
    pub fn announced(&mut self, ty: &EventType<'_>) {
        if ty.recorded {
            self.task_states.recorded(ty.kind);
        }
    }

    /// Has tasks followed by an event of the scheduler that threads were learned of.
    #[inline]
    pub(super) fn follow_tasks(&mut self, event: &Event<'_>, data: &Data, rule: WakeRule) {
        let wakes = rule.wakes && self.task_states.follows();
        let waker = wakes.then(|| self.threads.slot(event.tid));
        let tasks = self.tasks;
        self.task_states.take(event, data, tasks, rule, waker);
    }

    /// Takes an event of the scheduler.
    pub(super) fn sched<S: SpanSink>(&mut self, event: &Event<'_>, data: &Data, spans: &mut S) {
        if !event.ty.kind.is_sched() {
            return;
        }
        self.learn_sched(event, data);
        if self.threads.presumes() {
            self.follow_presumed(event, data);
        }
        let rule = self.task_states.wake_rule(event.ty.kind);
        self.sched_vcpus(event, data, rule, spans);
        // Whoever waits for a CPU waited behind the task that it had until now.
        self.follow_tasks(event, data, rule);
    }

    /// What an event of the scheduler says of vCPUs.
    fn sched_vcpus<S: SpanSink>(
        &mut self,
        event: &Event<'_>,
        data: &Data,
        rule: WakeRule,
        spans: &mut S,
    ) {
        match data {
            Data::SchedSwitch(switch) => {
                self.seen.switches = true;
                let Tasks { prev, task: next } = self.tasks;
                self.ran(event, prev, spans);
                if let Some(vcpu) = self.vcpu_in(prev) {
                    self.switched_out(vcpu, event, switch.prev_state.leaves());
                    self.tracks[vcpu].relieve(vcpu, spans);
                }
                self.seen.returns |= switch.prev_tid == 0;
                if let Some(vcpu) = self.vcpu_in(next) {
                    self.seen.returns = true;
                    self.switched_in(vcpu, event, prev);
                }
            }
            Data::SchedWakeup(wakeup) | Data::SchedWaking(wakeup) => {
                self.seen.wakeups = true;
                if rule.corrects {
                    self.not_yet(wakeup.tid);
                }
                if rule.queues {
                    self.wakes(event, wakeup.tid, wakeup.target_cpu);
                    if event.ty.kind == Kind::SchedWaking
                        && let Some(&vcpu) = self.by_tid.get(wakeup.tid)
                    {
                        self.tracks[vcpu].waking = Some(event.time);
                    }
                }
            }
            Data::SchedMigrateTask(migrate) => {
                let Some(&vcpu) = self.by_tid.get(migrate.tid) else {
                    return;
                };
                // One that sleeps has an event again when it is woken.
                if self.tracks[vcpu].sched == SchedState::Runnable {
                    self.close_wait(vcpu, event.time);
                    self.leave_queue(vcpu);
                    self.enter_queue(vcpu, migrate.dest_cpu);
                    self.tracks[vcpu].relieve(vcpu, spans);
                }
            }
            Data::SchedProcessFork(task) => self.is_made(task.tid, event.time),
            // A thread makes it itself.
            Data::SchedProcessExit(task) => self.ends(task.tid, event.time),
            _ => {}
        }
    }

    /// Returns the vCPU that a thread is, by its slot; none if it has ended.
    #[inline]
    pub fn vcpu_in(&self, thread: u32) -> Option<u32> {
        let vcpu = self.vcpus.get(thread).copied();
        vcpu.filter(|&vcpu| self.tracks[vcpu].ended.is_none())
    }

    #[inline]
    pub(super) fn cpu(&mut self, cpu: i32) -> Option<&mut CpuQueue> {
        let index = event::cpu_index(cpu)?;
        if self.cpus.len() <= index {
            self.cpus.resize_with(index + 1, CpuQueue::default);
        }
        self.cpus.get_mut(index)
    }

    /// A task ran on a CPU until now: whoever waited there waited behind it.
    fn ran<S: SpanSink>(&mut self, event: &Event<'_>, task: u32, spans: &mut S) {
        let Some(cpu) = self.cpu(event.cpu) else {
            return;
        };
        if cpu.waiting.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut cpu.waiting);
        for &vcpu in &waiting {
            let track = &mut self.tracks[vcpu];
            // One that ran itself was not seen to get its CPU; nor may have been one of which events were lost.
            if track.thread != task && !track.lost {
                track.behind(event.time, Some(task));
                track.relieve(vcpu, spans);
            }
        }
        if let Some(cpu) = self.cpu(event.cpu) {
            cpu.waiting = waiting;
        }
    }

    fn switched_out(&mut self, vcpu: u32, event: &Event<'_>, leaves: Leaves) {
        self.runs(vcpu, event);
        let track = &mut self.tracks[vcpu];
        if track.place == TrackPlace::Guest && !self.leaves_guest {
            // A thread leaves its CPU from the kernel: the exit before was not seen.
            track.gap(event.time);
            track.place = TrackPlace::Lost;
            track.left_guest = leaves == Leaves::Runnable;
        } else {
            track.advance(event.time);
        }
        track.waking = None;
        track.loaded_from = None;
        match leaves {
            Leaves::Runnable => {
                track.sched = SchedState::Runnable;
                self.enter_queue(vcpu, event.cpu);
            }
            Leaves::Blocked => {
                track.sched = SchedState::Blocked;
                track.halt_over = false;
            }
            Leaves::Dead => {
                track.ended = Some(event.time);
                self.by_tid.remove(self.tracks[vcpu].tid);
            }
        }
    }

    fn switched_in(&mut self, vcpu: u32, event: &Event<'_>, prev: u32) {
        let leaves_guest = self.leaves_guest;
        let track = &mut self.tracks[vcpu];
        match track.sched {
            SchedState::Runnable => {
                self.close_wait(vcpu, event.time);
                self.leave_queue(vcpu);
            }
            SchedState::Blocked => {
                track.advance(event.time);
            }
            // It was not seen to leave.
            SchedState::Running => {
                if let Some((woken, cpu)) = track.early.take() {
                    track.gap(woken);
                    let ahead = (cpu == event.cpu).then_some(prev);
                    track.cpu = cpu;
                    track.behind(event.time, ahead);
                } else {
                    track.gap(event.time);
                }
                if track.place == TrackPlace::Guest && !leaves_guest {
                    track.place = TrackPlace::Lost;
                }
            }
        }
        let track = &mut self.tracks[vcpu];
        track.sched = SchedState::Running;
        track.cpu = event.cpu;
    }

    /// A thread that slept is on a run queue.
    fn wakes(&mut self, event: &Event<'_>, tid: i32, target: Option<i32>) {
        let Some(&vcpu) = self.by_tid.get(tid) else {
            return;
        };
        let track = &mut self.tracks[vcpu];
        // A thread that is about to sleep may be woken before it does: it then keeps its CPU.
        if track.sched != SchedState::Blocked {
            if track.sched == SchedState::Running {
                track.early = Some((event.time, target.unwrap_or(track.cpu)));
            }
            return;
        }
        track.advance(event.time);
        track.waking = None;
        track.sched = SchedState::Runnable;
        let cpu = target.unwrap_or(track.cpu);
        self.enter_queue(vcpu, cpu);
    }

    /// The first `sched_wakeup` says of a thread that a `sched_waking` was taken for one too early.
    fn not_yet(&mut self, tid: i32) {
        let Some(&vcpu) = self.by_tid.get(tid) else {
            return;
        };
        let track = &mut self.tracks[vcpu];
        if track.sched == SchedState::Runnable && track.waking == Some(track.at) {
            self.leave_queue(vcpu);
            self.tracks[vcpu].sched = SchedState::Blocked;
        }
    }

    fn enter_queue(&mut self, vcpu: u32, cpu: i32) {
        self.tracks[vcpu].cpu = cpu;
        if let Some(cpu) = self.cpu(cpu)
            && cpu.waiting.len() < MAX_WAITING
        {
            cpu.waiting.push(vcpu);
        }
    }

    pub(super) fn leave_queue(&mut self, vcpu: u32) {
        let cpu = self.tracks[vcpu].cpu;
        if let Some(cpu) = self.cpu(cpu) {
            cpu.waiting.retain(|&other| other != vcpu);
        }
    }

    /// Counts the wait of a vCPU up to now as behind the task its CPU runs.
    pub(super) fn close_wait(&mut self, vcpu: u32, time: u64) {
        let cpu = self.tracks[vcpu].cpu;
        let current = self.task_states.current(cpu);
        self.tracks[vcpu].behind(time, current.map(|(task, _)| task));
    }

    /// A thread ends, and makes the event itself. It may still make events on its way out; another that gets its id is
    /// another vCPU.
    pub(super) fn ends(&mut self, tid: i32, time: u64) {
        let Some(vcpu) = self.vcpu_of(tid) else {
            return;
        };
        self.leave_queue(vcpu);
        let track = &mut self.tracks[vcpu];
        // One that was thought to be off its CPU was not seen to get it.
        track.lost |= track.sched != SchedState::Running;
        track.sched = SchedState::Running;
        track.ended = Some(time);
        self.by_tid.remove(tid);
    }

    /// A thread is made. If it has a vCPU's id, that one ended before, which was not seen.
    pub(super) fn is_made(&mut self, tid: i32, time: u64) {
        if let Some(vcpu) = self.vcpu_of(tid) {
            self.tracks[vcpu].lost = true;
            self.ends(tid, time);
        }
    }
}
