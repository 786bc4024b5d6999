//! `flame --guest`: what a guest recorded stands below the vCPUs that ran it, and weighs what the host says that they did.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{file, json, number, run, write_text};

/// Stacks with what they weigh.
type Folded = BTreeMap<String, u64>;

fn folded(recording: &Path, more: &[&str]) -> Folded {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.folded");
    let paths = [recording, &out].map(|path| path.display().to_string());
    let args = ["flame", &paths[0], "-o", &paths[1]];
    let done = run(args.iter().chain(more));
    assert_eq!(done.status, 0, "{}", done.stderr);
    let text = fs::read_to_string(out).unwrap();
    let lines = text.lines().map(|line| {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        (stack.to_owned(), weight.parse().unwrap())
    });
    lines.collect()
}

/// What stands below each thread: in its guest, and in the host.
fn by_thread(folded: &Folded) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (stack, weight) in folded {
        let (thread, rest) = stack.split_once(';').unwrap_or((stack, ""));
        let sum = sums.entry(thread.to_owned()).or_default();
        match rest.starts_with("[guest") {
            true => sum.0 += weight,
            false => sum.1 += weight,
        }
    }
    sums
}

#[test]
fn host_and_guest_add_up() {
    let host = file("x86/flame-iperf3/l1.perf.data.zst");
    let guest = file("x86/flame-iperf3/l2/perf.data.zst");
    let guest_path = guest.display().to_string();
    let plain = folded(&host, &["--by", "thread"]);
    let spliced = folded(&host, &["--by", "thread", "--guest", &guest_path]);
    // Nothing is lost and nothing is added, thread by thread.
    assert_eq!(by_thread(&plain), by_thread(&spliced));
    // Below each vCPU, every stack of its CPU has the share that it has in the guest.
    let own = folded(&guest, &["--by", "cpu"]);
    for (vcpu, thread) in [(0, "CPU 0/KVM/2996"), (1, "CPU 1/KVM/2997")] {
        let begin = format!("{thread};[guest];");
        let below = spliced.iter().filter_map(|(stack, weight)| {
            let (_, stack) = stack.strip_prefix(&begin)?.split_once(';')?;
            Some((stack.to_owned(), *weight))
        });
        let mut theirs = Folded::new();
        for (stack, weight) in below {
            *theirs.entry(stack).or_default() += weight;
        }
        let begin = format!("CPU {vcpu};");
        let ours = own
            .iter()
            .filter_map(|(stack, weight)| Some((stack.strip_prefix(&begin)?.to_owned(), *weight)));
        let ours: Folded = ours.collect();
        assert!(
            ours.len() > 10 && ours.keys().eq(theirs.keys()),
            "vCPU {vcpu}"
        );
        let (all, whole) = (ours.values().sum::<u64>(), theirs.values().sum::<u64>());
        assert_eq!(whole, by_thread(&plain)[thread].0);
        for (stack, weight) in &ours {
            let share = *weight as f64 / all as f64 * whole as f64;
            // Several threads of the guest may have a stack, each rounded for itself.
            assert!(
                (share - theirs[stack] as f64).abs() < 8.0,
                "{stack}: {share}"
            );
        }
    }
    let document = json(&["flame", "--guest", &guest_path], &host).unwrap();
    let rows = document["spliced"].as_array().unwrap();
    let told: Vec<(u64, u64)> = rows
        .iter()
        .map(|row| (number(row, "vcpu"), number(row, "guest_samples")))
        .collect();
    assert_eq!(told, [(0, 249), (1, 39)]);
    let error = rows[0]["error"].as_f64().unwrap();
    assert!((error - 0.98 / 249f64.sqrt()).abs() < 1e-6, "{error}");
    let quality = document["quality"].to_string();
    assert!(quality.contains("vCPUs by their names"), "{quality}");
}

/// A thread's line of `sched_switch`, with the stack with which it leaves.
fn switch(time: u64, prev: (&str, i32), state: &str, next: (&str, i32), stack: &[&str]) -> String {
    let (prev_comm, prev) = prev;
    let (next_comm, next) = next;
    let mut text = format!(
        "{prev_comm} {prev}/{prev} [001] {}.{:09}: sched:sched_switch: prev_comm={prev_comm} prev_pid={prev} prev_prio=120 \
         prev_state={state} ==> next_comm={next_comm} next_pid={next} next_prio=120\n",
        time / 1_000_000_000,
        time % 1_000_000_000
    );
    for function in stack {
        text.push_str(&format!(
            "\tffffffff81000000 {function}+0x1 ([kernel.kallsyms])\n"
        ));
    }
    text.push('\n');
    text
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
    let expected = |lines: &[(&str, u64)]| -> Folded {
        lines
            .iter()
            .map(|(stack, ns)| ((*stack).to_owned(), *ns))
            .collect()
    };
    assert_eq!(
        folded(&path, &["--off-cpu", "--wakeup"]),
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
    let all = folded(&path, &["--off-cpu", "--idle"]);
    assert_eq!(
        all["reader;sleeping (S);kvm_vcpu_ioctl;kvm_vcpu_block;schedule"],
        1000
    );
    assert_eq!(all["reader;sleeping (S);vfs_read;pipe_read;schedule"], 700);
    let document = json(&["flame", "--off-cpu"], &path).unwrap();
    assert_eq!(number(&document, "idle"), 1000);
    assert_eq!(number(&document, "total"), 700 + 300 + 400 + 1600);
}

/// A sample of perf's text.
fn sample(time: u64, (comm, tid): (&str, i32), stack: &[&str]) -> String {
    let mut text = format!(
        "{comm} {tid}/{tid} [001] {}.{:09}: 250000 cpu-clock: \n",
        time / 1_000_000_000,
        time % 1_000_000_000
    );
    for function in stack {
        text.push_str(&format!(
            "\tffffffff81000000 {function}+0x1 ([kernel.kallsyms])\n"
        ));
    }
    text.push('\n');
    text
}

/// Time on and off CPUs adds up to the time that each thread was watched, whatever the periods of samples.
#[test]
fn samples_share_the_time_that_switches_tell() {
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
    let found = folded(&path, &["--both"]);
    let expected = [
        // 1001 + 600 ns on CPU, of which two of three samples were in copy: what rounding leaves goes to the last.
        ("reader;on CPU;vfs_read", 533),
        ("reader;on CPU;vfs_read;copy", 1068),
        ("reader;sleeping (S);pipe_read;schedule", 400),
        ("writer;on CPU;[not sampled]", 400),
        ("writer;uninterruptible (D);io_schedule", 600),
    ];
    let expected: Folded = expected
        .iter()
        .map(|(stack, ns)| ((*stack).to_owned(), *ns))
        .collect();
    assert_eq!(found, expected);
    let document = json(&["flame", "--both"], &path).unwrap();
    let row = &document["rows"][0];
    assert_eq!(number(row, "on_cpu_ns"), 1601);
    assert_eq!(number(row, "off_cpu_ns"), 400);
    assert_eq!(document["unit"], "nanoseconds");
}

/// A thread without any switch has the CPU on which it is sampled: from its first sample to its last, or to the switch away.
#[test]
fn a_thread_that_never_switches_has_its_time() {
    let sample = |time: u64, comm: &str, tid: i32, function: &str| {
        format!(
            "{comm} {tid}/{tid} [000] 1.{time:09}: 1000000 cpu-clock: \n\tffffffff81000000 {function}+0x1 ([kernel.kallsyms])\n\n"
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
    assert_eq!(folded(&path, &["--both"]), expected.into());
    // What is not shown is no row of functions.
    let document = json(&["flame", "--both", "--pid", "100"], &path).unwrap();
    let functions = document["functions"].as_array().unwrap();
    let names: Vec<_> = functions.iter().map(|row| &row["function"]).collect();
    assert_eq!(names, ["spin"]);
    // A thread may be on a CPU that is left out.
    let document = json(&["flame", "--off-cpu", "--cpu", "1"], &path).unwrap();
    let quality = document["quality"].to_string();
    assert!(quality.contains("--cpu leaves out switches"), "{quality}");
}

/// Time is shown, whatever was sampled first.
#[test]
fn events_of_time_come_first() {
    let fault = "reader 101/101 [001] 1.000000001: 1 page-faults: \n\tffffffff81000000 fault+0x1 ([kernel.kallsyms])\n\n";
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
        folded(&path, &[]),
        [("reader;copy".to_owned(), 250_000)].into()
    );
    let document = json(&["flame"], &path).unwrap();
    assert_eq!(document["event"], "cpu-clock");
    assert_eq!(number(&document, "samples"), 1);
    assert!(
        document["quality"]
            .to_string()
            .contains("3 samples of other events")
    );
    assert_eq!(
        folded(&path, &["--event", "page-faults"]),
        [("reader;fault".to_owned(), 3)].into()
    );
    // A file that cannot be written whole is not written, and what was there stays.
    let out = folder.path().join("out.svg");
    fs::write(&out, "before").unwrap();
    let paths = [&path, &out].map(|path| path.display().to_string());
    assert_eq!(run(["flame", &paths[0], "-o", &paths[1]]).status, 0);
    assert!(fs::read_to_string(&out).unwrap().contains("<svg"));
    let nowhere = folder
        .path()
        .join("no-folder/out.svg")
        .display()
        .to_string();
    assert_eq!(run(["flame", &paths[0], "-o", &nowhere]).status, 1);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
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
        for (stack, weight) in folded(&recording, &["--guest-exits", "--idle"]) {
            let reason = stack.split(';').nth(2).unwrap();
            *ours.entry(reason.to_owned()).or_default() += weight;
        }
        // What guests had not left when the recording began is no exit there.
        let events = run([
            "events",
            &recording.display().to_string(),
            "--event",
            "kvm_exit",
        ]);
        let lines = String::from_utf8_lossy(&events.stdout).lines().count() as u64;
        assert_eq!(ours.values().sum::<u64>(), lines, "{name}");
        let exits = json(&["exits"], &recording).unwrap();
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

#[test]
fn what_cannot_be_put_together_is_refused() {
    let host = file("x86/flame-iperf3/l1.perf.data.zst")
        .display()
        .to_string();
    let guest = file("x86/flame-iperf3/l2/perf.data.zst")
        .display()
        .to_string();
    let refused = |args: &[&str], why: &str| {
        let done = run(["flame"].iter().chain(args));
        assert_ne!(done.status, 0, "{args:?}");
        assert!(done.stderr.contains(why), "{args:?}: {}", done.stderr);
    };
    refused(&[&host, "--guest", &format!("77={guest}")], "2989");
    refused(
        &[&host, "--guest", &format!("web={guest}")],
        "no VM that is called so",
    );
    // It may stand behind the host's as well, as other commands have it.
    let given = |args: &[&str]| run(["flame"].iter().chain(args)).text();
    let told = given(&[&host, "--guest", &format!("2989={guest}")]);
    assert_eq!(given(&[&host, &guest]), told);
    refused(&[&host, &guest, "--guest", &guest], "cannot be used with");
    // The guest has no vCPUs of its own.
    refused(&[&guest, "--guest", &host], "no thread");
    let switches = file("vmx/tiny-irqchip/perf.data.zst").display().to_string();
    refused(&[&host, "--guest", &switches], "holds no samples");
    // There is one guest's recording, and two of hosts; exits and waits are no time in a guest.
    for other in [&["--diff", &host][..], &["--off-cpu"], &["--guest-exits"]] {
        let args = [&[host.as_str(), "--guest", &guest], other].concat();
        refused(&args, "cannot be used with");
    }
    refused(&[&host, "--wakeup"], "--off-cpu or --both");
    refused(&[&host, "--off-cpu"], "sched_switch");
    refused(&[&switches, "--both"], "--off-cpu shows waits");
}
