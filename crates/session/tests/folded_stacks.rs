//! Folded stacks in the place of a recording: what `stackcollapse-perf.pl`, inferno, bcc's tools and trapline itself
//! write.

use analysis::ProfileOptions;
use fixtures::answers::read_folded_stacks;
use fixtures::{FixtureQuestion, file, write_text};
use render::ClockUnit;
use render::clock_unit::ClockedDocument;
use serde_json::Value;
use session::{Session, SessionOptions};
use stacks::{CountMeaning, FoldedText, ReadOptions};

/// What `offcputime -df` of bcc 0.29 prints, with the messages that it has on standard error and without `-f`.
const OFFCPU: &str = "\
Tracing off-CPU time (us) of all threads by user + kernel stack... Hit Ctrl-C to end.

qemu;main;ppoll;-;do_syscall_64;schedule 300
CPU 0/KVM;kvm_vcpu_ioctl;-;kvm_vcpu_block;schedule 1500
swapper/0;cpu_startup_entry;do_idle;schedule_idle 8200
vhost-1700;vhost_worker 20.25
WARNING: 3 stack traces lost and could not be displayed.
";

fn read_with(text: &str, counts: Option<CountMeaning>, idle: bool) -> FoldedText {
    let folder = tempfile::tempdir().unwrap();
    let file = write_text(folder.path(), "in.folded", text);
    let session = Session::open(SessionOptions::default()).unwrap();
    let input = session.input(&file).unwrap();
    let options = ReadOptions {
        counts,
        idle,
        most: 1 << 22,
    };
    input.folded(options).unwrap().expect("folded stacks").0
}

fn read(text: &str, counts: Option<CountMeaning>) -> FoldedText {
    read_with(text, counts, false)
}

fn document(found: &FoldedText) -> Value {
    let part = render::flame_folded::document(found);
    let clock = ClockUnit::Nanoseconds;
    serde_json::to_value(ClockedDocument { clock, part }).unwrap()
}

fn json(text: &str, counts: Option<CountMeaning>) -> Value {
    document(&read(text, counts))
}

fn with_idle(text: &str) -> Value {
    document(&read_with(text, None, true))
}

/// Writes stacks as folded text again.
fn again(found: &FoldedText) -> String {
    let mut text = String::new();
    stacks::folded(&found.stacks, 1 << 20, &mut |line: &str| {
        text.push_str(line);
        text.push('\n');
    });
    text
}

#[test]
fn rows_are_what_stands_below_stacks() {
    let shown = json(
        "qemu;main;ioctl_[k] 3\nqemu;main 1\nswapper;do_idle_[k] 9\ndd-7/8;x 2\n",
        None,
    );
    let rows = shown["rows"].as_array().unwrap();
    let row = |comm: &str| rows.iter().find(|row| row["comm"] == comm).unwrap();
    assert_eq!(rows.len(), 2);
    for (comm, tid, samples, share) in [
        ("qemu", Value::Null, 4, 4.0 / 6.0),
        ("dd", 8.into(), 2, 2.0 / 6.0),
    ] {
        let row = row(comm);
        assert_eq!(row["vm_pid"], Value::Null);
        assert_eq!((&row["tid"], &row["samples"]), (&tid, &samples.into()));
        assert_eq!(row["share"].as_f64(), Some(share));
    }
    assert_eq!(row("qemu")["kernel"].as_f64(), Some(0.5));
    assert_eq!(
        (&shown["samples"], &shown["idle_samples"]),
        (&15.into(), &9.into())
    );
    assert_eq!(
        (&shown["event"], &shown["unit"]),
        (&Value::Null, &"count".into())
    );
    let all = with_idle("qemu;a 3\nswapper;b 9\n");
    assert_eq!(all["rows"][0]["comm"], "swapper");
}

#[test]
fn whose_code_it_is_stays_unknown_where_nothing_says_so() {
    let shown = json("qemu;main;ioctl 3\n", None);
    for part in ["guest", "kernel", "user"] {
        assert_eq!(shown["rows"][0][part], Value::Null);
    }
    assert_eq!(shown["functions"][0]["part"], "unknown");
    assert_eq!(shown["unresolved_samples"], Value::Null);
}

#[test]
fn times_are_times_where_somebody_says_so() {
    let by_banner = json(OFFCPU, None);
    assert_eq!(
        (&by_banner["unit"], &by_banner["samples"]),
        (&"nanoseconds".into(), &Value::Null)
    );
    assert_eq!(by_banner["total"], 1_820_250);
    assert_eq!(by_banner["idle"], 8_200_000);
    let row = &by_banner["rows"][0];
    assert_eq!(
        (&row["comm"], &row["time_ns"]),
        (&"CPU 0/KVM".into(), &1_500_000.into())
    );
    assert_eq!(row["kernel"], row["share"]);
    assert_eq!(read(OFFCPU, None).messages.count, 2);
    assert_eq!(json(OFFCPU, Some(CountMeaning::Nanoseconds))["total"], 1820);
    // The same lines alone say nothing.
    let lines: String = OFFCPU
        .lines()
        .filter(|line| line.contains(';'))
        .map(|line| format!("{line}\n"))
        .collect();
    let plain = json(&lines, None);
    assert_eq!(
        (&plain["unit"], &plain["samples"]),
        (&"count".into(), &10_020.into())
    );
    assert_eq!(read(&lines, None).rounded, 1);
    assert_eq!(
        json(&lines, Some(CountMeaning::Microseconds))["rows"],
        by_banner["rows"]
    );
    assert_eq!(json(&lines, Some(CountMeaning::Samples))["unit"], "samples");
}

#[test]
fn what_is_written_is_read_as_the_same() {
    let recording = file("x86/flame-iperf3/l2/perf.data.zst");
    for idle in [true, false] {
        let options = ProfileOptions {
            idle,
            ..ProfileOptions::default()
        };
        let stacks = FixtureQuestion::new()
            .folded(&recording, options)
            .expect("stacks");
        assert!(stacks.len() > 20);
        let lines = stacks
            .iter()
            .map(|(stack, weight)| format!("{stack} {weight}\n"));
        let text: String = lines.collect();
        let found = read_with(&text, None, idle);
        assert_eq!(read_folded_stacks(&again(&found)), stacks);
        let sum: u64 = stacks.values().sum();
        assert_eq!(document(&found)["samples"], sum);
        // Idle stacks are known by their text as they were by their thread.
        assert_eq!(json(&text, None)["idle_samples"] == 0, !idle);
    }
}

#[test]
fn every_form_is_written() {
    let found = read("a;b 3\na;c 4\n", Some(CountMeaning::Microseconds));
    let text = render::flame_folded::speedscope(&found, "in.folded").unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let profile = &document["profiles"][0];
    assert_eq!(
        (&profile["unit"], &profile["endValue"]),
        (&"nanoseconds".into(), &7000.into())
    );
    assert_eq!(
        again(&read("a;b;c 1\na;b 2\n\na;b;c 3\n", None)),
        "a;b 2\na;b;c 4\n"
    );
}

#[test]
fn deep_stacks_are_read_and_written() {
    let deep = vec!["frame"; 10_000].join(";");
    let text = format!("{deep} 1\n{deep};leaf 2\n");
    let shown = json(&text, None);
    assert_eq!(shown["samples"], 3);
    assert_eq!(shown["functions"][0]["total_samples"], 3);
    assert_eq!(again(&read(&text, None)).lines().count(), 2);
}
