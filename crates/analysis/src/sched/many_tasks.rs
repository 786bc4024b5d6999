//! More tasks than have rows: state stays small, and sums stay what they are.

use event::sched::{SchedSwitch, SchedWakeup, TaskComm, TaskState};
use event::{Decoder, EventType};
use model::{StateLimits, ThreadHandles};
use symbols::KernelFunctions;

use super::*;
use crate::Merge;

const TASKS: i32 = 5000;
const SLEEPS: u64 = 1;
const DEAD: u64 = 0x20;

/// Lets tasks be woken, run twice for 30 ns after having waited 10 ns and 20 ns, and end, one after the other, where so
/// many are kept apart. The one in the middle runs for longer.
fn run(sched: &mut SchedLatencies, dies: bool, most: usize) -> Machine {
    let mut machine = Machine::new();
    machine.limit(StateLimits {
        threads: most,
        ..StateLimits::default()
    });
    let handles = ThreadHandles::default();
    machine.task_states_mut().follow();
    let ty = EventType {
        index: 0,
        machine: 0,
        system: "sched",
        name: "sched_switch",
        label: "sched_switch",
        kind: Kind::SchedSwitch,
        format: None,
        decoder: Decoder::default(),
        recorded: true,
    };
    let mut take = |time: u64, tid: i32, data: Data| {
        let event = Event::bare(&ty, (time, 0, tid), Body::None);
        machine.learn(&event, &data);
        sched.changed(machine.task_states().changes(), &Window::default());
        sched.take(&event, &data, &mut machine);
        if machine.is_full() {
            let retired = machine.choose_retired(&handles, time);
            sched.fold(&retired);
            machine.retire(&retired);
        }
    };
    let wakes = |tid: i32| {
        Data::SchedWakeup(SchedWakeup {
            tid,
            comm: TaskComm::new(b"sh"),
            target_cpu: Some(0),
        })
    };
    let switch = |prev_tid: i32, state: u64, next_tid: i32| {
        Data::SchedSwitch(SchedSwitch {
            prev_tid,
            prev_comm: TaskComm::new(b"sh"),
            prev_state: TaskState(state),
            next_tid,
            next_comm: TaskComm::new(b"sh"),
        })
    };
    let mut time = 1000;
    for tid in 1..=TASKS {
        for (waits, state) in [(10, SLEEPS), (20, if dies { DEAD } else { SLEEPS })] {
            take(time, 7, wakes(tid));
            take(time + waits, 0, switch(0, 0, tid));
            let runs = if tid == TASKS / 2 { 900 } else { 30 };
            take(time + waits + runs, tid, switch(tid, state, 0));
            time += 1000;
        }
    }
    machine
}

fn report(sched: SchedLatencies, machine: &Machine) -> SchedReport {
    sched.report(
        machine.threads(),
        Merge::No,
        &|_, _| true,
        KernelFunctions::default(),
    )
}

#[test]
fn tasks_beyond_the_most_rows_are_counted_as_others() {
    for dies in [true, false] {
        let mut all_tasks = SchedLatencies::new();
        let machine_all = run(&mut all_tasks, dies, usize::MAX);
        let all = report(all_tasks, &machine_all);
        assert_eq!(all.rows.len(), TASKS as usize);
        let mut few_tasks = SchedLatencies::new();
        let machine_few = run(&mut few_tasks, dies, 100);
        assert!(few_tasks.tasks.len() <= 100, "tasks that are kept apart");
        let few = report(few_tasks, &machine_few);
        let others = few.rows.iter().find(|row| row.is_others()).unwrap();
        assert_eq!(few.rows.len() as u64 + others.threads, 1 + TASKS as u64);
        let shape = |report: &SchedReport| {
            let delays = &report.delays;
            (
                delays.count(),
                delays.total(),
                delays.percentile(0.3),
                delays.percentile(0.9),
            )
        };
        assert_eq!(shape(&few), shape(&all));
        let sums = |report: &SchedReport| {
            let rows = || report.rows.iter();
            (
                rows().map(|row| row.delays.count()).sum::<u64>(),
                rows().map(|row| row.delays.total()).sum::<u64>(),
                rows().map(|row| row.on_cpu_ns).sum::<u64>(),
                rows().map(|row| row.woken_waits.total()).sum::<u64>(),
                rows().map(|row| row.threads).sum::<u64>(),
            )
        };
        assert_eq!(sums(&few), sums(&all));
        assert_eq!(sums(&few).0, 2 * TASKS as u64);
        assert_eq!(machine_all.retired().threads, 0);
        assert!(machine_few.retired().threads > TASKS as u64 - 100);
        // The last ones are there, and of those before them the one that ran for long.
        for kept in [TASKS, TASKS / 2] {
            let own = few.rows.iter().find(|row| row.tid == kept).unwrap();
            let same = all.rows.iter().find(|row| row.tid == kept).unwrap();
            assert_eq!(own, same);
        }
    }
}

#[test]
fn what_slices_count_adds_up() {
    let mut sched = SchedLatencies::new();
    let machine = run(&mut sched, true, 100);
    let comm_of = |slot: u32| SchedLatencies::comm_of(slot, machine.threads());
    let mut counted = 0;
    let mut others = None;
    sched.sums(
        machine.task_states(),
        &Window::default(),
        &mut |part, slot, amount| {
            // The idle task is in the events too, and has no name.
            if part == DELAYS && comm_of(slot).is_some() {
                counted += amount.count;
                others = Some(slot).filter(|slot| *slot == OTHERS_SLOT).or(others);
            }
        },
    );
    assert_eq!(counted, 2 * TASKS as u64);
    assert_eq!(others.and_then(comm_of).as_deref(), Some(OTHERS));
}
