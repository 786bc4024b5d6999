//! Stacks of recordings made by hand: what was waited for, who ended it, and whose time it was.

use std::collections::BTreeMap;
use std::path::Path;

use analysis::{ProfileOf, ProfileOptions};
use fixtures::answers::FoldedStacks;
use fixtures::json::number;
use fixtures::{FixtureQuestion, file, listed_events, write_text};
use serde_json::Value;
use session::Filters;

use super::{folded, with_idle};

/// Asks for a kind of time.
fn of(of: ProfileOf) -> ProfileOptions {
    ProfileOptions {
        of,
        ..ProfileOptions::default()
    }
}

fn document(path: &Path, options: ProfileOptions) -> Value {
    FixtureQuestion::new()
        .stacks_document(path, options)
        .expect("stacks")
}

/// The lines of a stack, as perf script prints them.
fn stack_lines(stack: &[&str]) -> String {
    let line = |function: &&str| format!("\tffffffff81000000 {function}+0x1 ([kernel.kallsyms])\n");
    stack.iter().map(line).collect::<String>() + "\n"
}

/// A thread's line of `sched_switch`, with the stack with which it leaves.
fn switch(time: u64, prev: (&str, i32), state: &str, next: (&str, i32), stack: &[&str]) -> String {
    let (prev_comm, prev) = prev;
    let (next_comm, next) = next;
    let text = format!(
        "{prev_comm} {prev}/{prev} [001] {}.{:09}: sched:sched_switch: prev_comm={prev_comm} prev_pid={prev} \
         prev_prio=120 prev_state={state} ==> next_comm={next_comm} next_pid={next} next_prio=120\n",
        time / 1_000_000_000,
        time % 1_000_000_000
    );
    text + &stack_lines(stack)
}

/// A recording made by hand: what was waited for, who ended it, and how long.
#[test]
fn waits_have_their_states_and_wakers() {
    let reader = ("reader", 101);
    let writer = ("writer", 102);
    let idle = ("swapper/1", 0);
    let waking = |time: u64| {
        format!(
            "writer 102/102 [000] {}.{:09}: sched:sched_waking: comm=reader pid=101 prio=120 target_cpu=001\n\
             \tffffffff81000000 try_to_wake_up+0x1 ([kernel.kallsyms])\n\
             \tffffffff81000000 pipe_write+0x1 ([kernel.kallsyms])\n\n",
            time / 1_000_000_000,
            time % 1_000_000_000
        )
    };
    let text = [
        switch(
            1_000_000_000,
            reader,
            "S",
            idle,
            &["schedule", "pipe_read", "vfs_read"],
        ),
        waking(1_000_000_700),
        switch(1_000_001_000, idle, "R", reader, &[]),
        switch(
            1_000_002_000,
            reader,
            "R+",
            writer,
            &["schedule", "exit_to_user_mode"],
        ),
        switch(
            1_000_002_400,
            writer,
            "D",
            reader,
            &["io_schedule", "folio_wait"],
        ),
        switch(
            1_000_003_000,
            reader,
            "S",
            idle,
            &["schedule", "kvm_vcpu_block", "kvm_vcpu_ioctl"],
        ),
        switch(1_000_004_000, idle, "R", reader, &[]),
    ]
    .concat();
    let folder = tempfile::tempdir().unwrap();
    let path = write_text(folder.path(), "switches.txt", &text);
    let expected = |lines: &[(&str, u64)]| -> FoldedStacks {
        lines
            .iter()
            .map(|(stack, ns)| ((*stack).to_owned(), *ns))
            .collect()
    };
    assert_eq!(
        folded(
            &path,
            ProfileOptions {
                wakers: true,
                ..of(ProfileOf::OffCpu)
            }
        ),
        expected(&[
            (
                "reader;sleeping (S);vfs_read;pipe_read;schedule;--;try_to_wake_up;pipe_write;writer",
                700
            ),
            ("reader;runnable (woken);vfs_read;pipe_read;schedule", 300),
            (
                "reader;runnable (preempted);exit_to_user_mode;schedule",
                400
            ),
            // It goes on when the recording ends.
            (
                "writer;uninterruptible (D);folio_wait;io_schedule;--;[waker unknown]",
                1600
            ),
        ])
    );
    // A guest that has halted waits too, and is left out unless that is asked for.
    let all = folded(
        &path,
        ProfileOptions {
            of: ProfileOf::OffCpu,
            ..with_idle()
        },
    );
    assert_eq!(
        all["reader;sleeping (S);kvm_vcpu_ioctl;kvm_vcpu_block;schedule"],
        1000
    );
    assert_eq!(all["reader;sleeping (S);vfs_read;pipe_read;schedule"], 700);
    let document = document(&path, of(ProfileOf::OffCpu));
    assert_eq!(number(&document, "idle"), 1000);
    assert_eq!(number(&document, "total"), 700 + 300 + 400 + 1600);
}

/// A sample of perf's text.
fn sample(time: u64, (comm, tid): (&str, i32), stack: &[&str]) -> String {
    let text = format!(
        "{comm} {tid}/{tid} [001] {}.{:09}: 250000 cpu-clock: \n",
        time / 1_000_000_000,
        time % 1_000_000_000
    );
    text + &stack_lines(stack)
}

/// Time on and off CPUs adds up to the time that each thread was watched, whatever the periods of samples.
#[test]
fn samples_share_the_time_that_switches_show() {
    let (reader, writer, idle) = (("reader", 101), ("writer", 102), ("swapper/1", 0));
    let begin = 1_000_000_000;
    let text = [
        switch(begin, idle, "R", reader, &[]),
        sample(begin + 100, reader, &["copy", "vfs_read"]),
        sample(begin + 300, reader, &["copy", "vfs_read"]),
        sample(begin + 500, reader, &["vfs_read"]),
        sample(begin + 700, idle, &["default_idle"]),
        switch(
            begin + 1001,
            reader,
            "S",
            writer,
            &["schedule", "pipe_read"],
        ),
        switch(begin + 1401, writer, "D", reader, &["io_schedule"]),
        switch(begin + 2001, reader, "S", idle, &["schedule", "pipe_read"]),
    ]
    .concat();
    let folder = tempfile::tempdir().unwrap();
    let path = write_text(folder.path(), "both.txt", &text);
    let found = folded(&path, of(ProfileOf::Both));
    let expected = [
        // 1001 + 600 ns on CPU, of which two of three samples were in copy: what rounding leaves goes to the last.
        ("reader;on CPU;vfs_read", 533),
        ("reader;on CPU;vfs_read;copy", 1068),
        ("reader;sleeping (S);pipe_read;schedule", 400),
        ("writer;on CPU;[not sampled]", 400),
        ("writer;uninterruptible (D);io_schedule", 600),
    ];
    let expected: FoldedStacks = expected
        .iter()
        .map(|(stack, ns)| ((*stack).to_owned(), *ns))
        .collect();
    assert_eq!(found, expected);
    let document = document(&path, of(ProfileOf::Both));
    let row = &document["rows"][0];
    assert_eq!(number(row, "on_cpu_ns"), 1601);
    assert_eq!(number(row, "off_cpu_ns"), 400);
    assert_eq!(document["unit"], "nanoseconds");
}

/// A thread without any switch has the CPU on which it is sampled: from its first sample to its last, or to the switch
/// away.
#[test]
fn a_thread_that_never_switches_has_its_time() {
    let sample = |time: u64, comm: &str, tid: i32, function: &str| {
        format!(
            "{comm} {tid}/{tid} [000] 1.{time:09}: 1000000 cpu-clock: \n\
             \tffffffff81000000 {function}+0x1 ([kernel.kallsyms])\n\n"
        )
    };
    let text = [
        sample(1_000, "poller", 100, "spin"),
        sample(1_500, "early", 103, "work"),
        sample(2_000, "poller", 100, "spin"),
        switch(
            1_000_002_500,
            ("early", 103),
            "S",
            ("swapper/1", 0),
            &["schedule"],
        ),
        sample(4_000, "poller", 100, "spin"),
    ]
    .concat();
    let folder = tempfile::tempdir().unwrap();
    let path = write_text(folder.path(), "both.txt", &text);
    let expected = [
        ("poller;on CPU;spin", 3_000),
        ("early;on CPU;work", 1_000),
        // It goes on when the recording ends.
        ("early;sleeping (S);schedule", 1_500),
    ];
    let expected = expected.map(|(stack, ns)| (stack.to_owned(), ns));
    assert_eq!(folded(&path, of(ProfileOf::Both)), expected.into());
    // What is not shown is no row of functions.
    let document = FixtureQuestion::new()
        .pid(100)
        .stacks_document(&path, of(ProfileOf::Both));
    let document = document.expect("stacks");
    let functions = document["functions"].as_array().unwrap();
    let names: Vec<_> = functions.iter().map(|row| &row["function"]).collect();
    assert_eq!(names, ["spin"]);
}

/// Time is shown, whatever was sampled first.
#[test]
fn events_of_time_come_first() {
    let fault = "reader 101/101 [001] 1.000000001: 1 page-faults: \n\
                 \tffffffff81000000 fault+0x1 ([kernel.kallsyms])\n\n";
    let reader = ("reader", 101);
    let text = [
        fault.to_owned(),
        fault.to_owned(),
        fault.to_owned(),
        sample(1_000_000_100, reader, &["copy"]),
    ]
    .concat();
    let folder = tempfile::tempdir().unwrap();
    let path = write_text(folder.path(), "events.txt", &text);
    assert_eq!(
        folded(&path, ProfileOptions::default()),
        [("reader;copy".to_owned(), 250_000)].into()
    );
    let document = document(&path, ProfileOptions::default());
    assert_eq!(document["event"], "cpu-clock");
    assert_eq!(number(&document, "samples"), 1);
    assert!(
        document["quality"]
            .to_string()
            .contains("3 samples of other events")
    );
    assert_eq!(
        folded(
            &path,
            ProfileOptions {
                event: Some("page-faults".to_owned()),
                ..ProfileOptions::default()
            }
        ),
        [("reader;fault".to_owned(), 3)].into()
    );
}

/// Every exit is one, below the reason that `exits` counts it by.
#[test]
fn guests_exits_are_those_of_exits() {
    for name in [
        "vmx/tiny-irqchip/perf.data.zst",
        "x86/format-variants/v7.dat.zst",
    ] {
        let recording = file(name);
        let mut ours: BTreeMap<String, u64> = BTreeMap::new();
        for (stack, weight) in folded(
            &recording,
            ProfileOptions {
                of: ProfileOf::Exits,
                ..with_idle()
            },
        ) {
            let reason = stack.split(';').nth(2).unwrap();
            *ours.entry(reason.to_owned()).or_default() += weight;
        }
        // What guests had not left when the recording began is no exit there.
        let events = listed_events(&recording, Filters::default()).expect("events");
        let lines = events.iter().filter(|event| event.is("kvm_exit")).count() as u64;
        assert_eq!(ours.values().sum::<u64>(), lines, "{name}");
        let exits = FixtureQuestion::new()
            .exits_document(&recording)
            .expect("exits");
        for row in exits["rows"].as_array().unwrap() {
            let (key, count) = (row["key"].as_str().unwrap(), number(row, "count"));
            let counted = ours.get(key).copied().unwrap_or_default();
            // perf's table has those that were seen to end.
            assert!(
                (count..=count + 4).contains(&counted),
                "{name}: {key} {counted}, {count}"
            );
        }
    }
}
