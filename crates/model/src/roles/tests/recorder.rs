//! Each way in which it is known who recorded, and processes that only have the recorder's name.

use event::sched::{SchedSwitch, SchedWakeup, TaskComm, TaskState};
use event::{Body, Data, Event, EventType, Kind, Side};

use crate::{RecorderClue, ThreadFacts, Threads};

fn made_by(comm: &str) -> Threads {
    let mut threads = Threads::default();
    let recorder = RecorderClue {
        pid: None,
        comm: Some(comm.into()),
        forks_readers: comm == "trace-cmd",
    };
    threads.add_facts(&ThreadFacts {
        recorder,
        ..ThreadFacts::default()
    });
    threads
}

/// A process in the recorder's own list, and who forked it.
fn lists(threads: &mut Threads, pid: i32, ppid: i32, comm: &str) {
    threads.side(&Side::Fork {
        time: 0,
        pid,
        tid: pid,
        ppid,
        ptid: ppid,
    });
    threads.side(&Side::Comm {
        time: 0,
        pid,
        tid: pid,
        comm,
        exec: false,
    });
}

/// An event of the scheduler that a thread makes.
fn takes(threads: &mut Threads, tid: i32, data: Data) {
    let name = match data {
        Data::SchedSwitch(_) => "sched_switch",
        _ => "sched_waking",
    };
    let ty = EventType {
        kind: Kind::of("sched", name),
        ..EventType::bare(0, name, true)
    };
    let event = Event::bare(&ty, (1, 0, tid), Body::Text { text: "", data });
    threads.shows_recorder(&event, &data);
    threads.sched(&data);
}

fn switches(
    threads: &mut Threads,
    (prev_tid, prev): (i32, &str),
    state: u64,
    (next_tid, next): (i32, &str),
) {
    let switch = SchedSwitch {
        prev_tid,
        prev_comm: TaskComm::new(prev.as_bytes()),
        prev_state: TaskState(state),
        next_tid,
        next_comm: TaskComm::new(next.as_bytes()),
    };
    takes(threads, prev_tid, Data::SchedSwitch(switch));
}

fn wakes(threads: &mut Threads, waker: i32, (tid, comm): (i32, &str)) {
    let wakeup = SchedWakeup {
        tid,
        comm: TaskComm::new(comm.as_bytes()),
        target_cpu: None,
    };
    takes(threads, waker, Data::SchedWaking(wakeup));
}

/// Returns the threads that recorded, by id.
fn recorders(threads: &Threads) -> Vec<i32> {
    let recorder = threads.recorder();
    let all = threads
        .iter()
        .filter(|(tid, thread)| recorder.has(*tid, thread));
    all.map(|(tid, _)| tid).collect()
}

#[test]
fn perf_is_who_forked_the_command_that_it_runs() {
    let mut threads = made_by("perf");
    lists(&mut threads, 1, 0, "init");
    // A busy process of the same name, before and after it in the list.
    lists(&mut threads, 300, 1, "perf");
    lists(&mut threads, 400, 1, "perf");
    // Its thread that adds maps of BPF programs has its name.
    let thread = |threads: &mut Threads, tid| {
        threads.side(&Side::Comm {
            time: 0,
            pid: 400,
            tid,
            comm: "perf",
            exec: false,
        });
    };
    thread(&mut threads, 403);
    lists(&mut threads, 401, 400, "perf-exec");
    lists(&mut threads, 500, 1, "perf");
    assert_eq!(recorders(&threads), [400, 403]);
    assert!(threads.may_record(403, None) && !threads.may_record(300, None));
}

#[test]
fn perf_without_a_command_is_the_only_one_of_its_name_in_a_list_of_the_whole_host() {
    let mut threads = made_by("perf_5.10");
    lists(&mut threads, 1, 0, "init");
    lists(&mut threads, 300, 1, "perf");
    lists(&mut threads, 400, 1, "perf_5.10");
    assert_eq!(recorders(&threads), [400]);
    // Of two nothing says which; nor where one alone was asked for, which may be called so too.
    lists(&mut threads, 500, 1, "perf_5.10");
    assert!(recorders(&threads).is_empty() && threads.recorder().is_unknown());
    threads.side(&Side::Exit {
        time: 9,
        pid: 500,
        tid: 500,
    });
    assert_eq!(
        recorders(&threads),
        [400],
        "who ends before the recording did not make it"
    );
    let mut of_one = made_by("perf");
    lists(&mut of_one, 300, 1, "perf");
    assert!(of_one.recorder().is_unknown());
}

#[test]
fn our_own_file_says_its_process() {
    let mut threads = Threads::default();
    threads.add_facts(&ThreadFacts {
        recorder: RecorderClue {
            pid: Some(400),
            comm: Some("trapline".into()),
            forks_readers: false,
        },
        ..ThreadFacts::default()
    });
    lists(&mut threads, 1, 0, "init");
    lists(&mut threads, 300, 1, "trapline");
    lists(&mut threads, 400, 1, "trapline");
    assert_eq!(recorders(&threads), [400]);
}

#[test]
fn in_a_text_perf_is_who_lets_the_command_go_and_had_its_cpu_before() {
    let mut threads = made_by("perf");
    wakes(&mut threads, 7, (900, "bash"));
    // Another perf gets a CPU and runs a command.
    switches(&mut threads, (0, "swapper/0"), 0, (300, "perf"));
    wakes(&mut threads, 300, (301, "perf-exec"));
    assert!(threads.recorder().is_unknown());
    let mut threads = made_by("perf");
    threads.called(400, "perf");
    wakes(&mut threads, 400, (401, "perf-exec"));
    switches(&mut threads, (0, "swapper/0"), 0, (300, "perf"));
    wakes(&mut threads, 300, (301, "perf-exec"));
    assert_eq!(recorders(&threads), [400]);
}

#[test]
fn trace_cmd_is_a_family_of_processes_that_sleep() {
    let idle = (0, "swapper/0");
    let mut threads = made_by("trace-cmd");
    threads.saved_names([(2605, "trace-cmd"), (2612, "trace-cmd"), (2640, "perf")]);
    for tid in [2606, 2611] {
        switches(&mut threads, (tid, "trace-cmd"), 1, idle);
    }
    // One that only loses its CPU, elsewhere: "trace-cmd report".
    switches(&mut threads, (9000, "trace-cmd"), 0, idle);
    let mut found = recorders(&threads);
    found.sort_unstable();
    assert_eq!(found, [2605, 2606, 2611, 2612]);
    // One process is none of "trace-cmd record".
    let mut threads = made_by("trace-cmd");
    switches(&mut threads, (9000, "trace-cmd"), 1, idle);
    wakes(&mut threads, 7, (9000, "trace-cmd"));
    assert!(threads.recorder().is_unknown());
    assert!(!threads.may_record(300, Some("perf")));
}
