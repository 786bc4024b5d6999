//! Folded stacks as an input of `flame`: what `stackcollapse-perf.pl`, inferno, bcc's tools and trapline itself write.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use crate::common::{file, run, run_with, write_text};

/// What `offcputime -df` of bcc 0.29 prints, with the messages that it has on standard error and without `-f`.
const OFFCPU: &str = "\
Tracing off-CPU time (us) of all threads by user + kernel stack... Hit Ctrl-C to end.

qemu;main;ppoll;-;do_syscall_64;schedule 300
CPU 0/KVM;kvm_vcpu_ioctl;-;kvm_vcpu_block;schedule 1500
swapper/0;cpu_startup_entry;do_idle;schedule_idle 8200
vhost-1700;vhost_worker 20.25
WARNING: 3 stack traces lost and could not be displayed.
";

fn args(folder: &Path, text: &str, more: &[&str]) -> Vec<String> {
    let file = write_text(folder, "in.folded", text);
    let mut args = vec!["flame".to_owned(), file.display().to_string()];
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    args
}

fn json(text: &str, more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let mut more = more.to_vec();
    more.extend(["--format", "json"]);
    run(args(folder.path(), text, &more)).json().unwrap()
}

/// Writes a text as folded stacks again.
fn again(text: &str, more: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.folded");
    let mut args = args(folder.path(), text, more);
    args.extend(["-o".to_owned(), out.display().to_string()]);
    let done = run(args);
    assert_eq!(done.status, 0, "{}", done.stderr);
    fs::read_to_string(out).unwrap()
}

#[test]
fn rows_are_what_stands_below_stacks() {
    let shown = json(
        "qemu;main;ioctl_[k] 3\nqemu;main 1\nswapper;do_idle_[k] 9\ndd-7/8;x 2\n",
        &[],
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
    let all = json("qemu;a 3\nswapper;b 9\n", &["--idle"]);
    assert_eq!(all["rows"][0]["comm"], "swapper");
}

#[test]
fn whose_code_it_is_stays_unknown_where_nothing_says_so() {
    let shown = json("qemu;main;ioctl 3\n", &[]);
    for part in ["guest", "kernel", "user"] {
        assert_eq!(shown["rows"][0][part], Value::Null);
    }
    assert_eq!(shown["functions"][0]["part"], "unknown");
    assert_eq!(shown["unresolved_samples"], Value::Null);
}

#[test]
fn times_are_times_where_somebody_says_so() {
    let by_banner = json(OFFCPU, &[]);
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
    let warnings = by_banner["quality"]["warnings"].to_string();
    assert!(warnings.contains("3 stack traces lost"), "{warnings}");
    assert_eq!(json(OFFCPU, &["--unit", "ns"])["total"], 1820);
    // The same lines alone say nothing.
    let lines: String = OFFCPU
        .lines()
        .filter(|line| line.contains(';'))
        .map(|line| format!("{line}\n"))
        .collect();
    let plain = json(&lines, &[]);
    assert_eq!(
        (&plain["unit"], &plain["samples"]),
        (&"count".into(), &10_020.into())
    );
    assert!(
        plain["quality"]["warnings"]
            .to_string()
            .contains("decimals")
    );
    assert_eq!(json(&lines, &["--unit", "us"])["rows"], by_banner["rows"]);
    assert_eq!(json(&lines, &["--unit", "samples"])["unit"], "samples");
}

#[test]
fn lines_that_are_no_stacks_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "a;b 3\na;c\na;d 1\na;e 1\na;f 1\nend\n";
    let done = run(args(folder.path(), lines, &[]));
    assert_eq!(done.status, 0);
    let text = done.text();
    assert!(
        text.contains("4 lines of stacks and 2 of something else"),
        "{text}"
    );
    let told = run(args(folder.path(), lines, &["--format", "json"])).text();
    assert!(told.contains("line 2, 'a;c'; line 6, 'end'"), "{told}");
    let csv = run(args(folder.path(), "a;b 3\nc;d 1\n", &["--format", "csv"])).text();
    let lines: Vec<&str> = csv.lines().collect();
    assert!(
        lines[0].starts_with("vm_pid,comm,tid,samples,share"),
        "{csv}"
    );
    assert!(lines[1].starts_with(",a,,3,0.75,"), "{csv}");
}

#[test]
fn packed_text_and_standard_input_are_read() {
    let text = "a;b 3\na;c 4\n";
    let expected = json(text, &[])["rows"].clone();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    for bytes in [text.as_bytes().to_vec(), packed.finish().unwrap()] {
        let done = run_with(["flame", "-", "--format", "json"], &bytes);
        assert_eq!(done.json().unwrap()["rows"], expected);
    }
    // Not a byte of it is UTF-8, and it begins as an image of QEMU's.
    let done = run_with(["flame", "-", "--format", "json"], b"QEMU\xff;\xfe\xfd 3\n");
    assert_eq!(done.json().unwrap()["rows"][0]["samples"], 3);
}

#[test]
fn what_is_written_is_read_as_the_same() {
    let recording = file("x86/flame-iperf3/l2/perf.data.zst")
        .display()
        .to_string();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.folded");
    for idle in [&["--idle"][..], &[]] {
        let mut args = vec!["flame", &recording, "-o", out.to_str().unwrap()];
        args.extend(idle);
        assert_eq!(run(args).status, 0);
        let text = fs::read_to_string(&out).unwrap();
        assert!(text.lines().count() > 20);
        assert_eq!(again(&text, idle), text);
        let sum = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
        let sum: u64 = text.lines().map(sum).sum();
        assert_eq!(json(&text, idle)["samples"], sum);
        // Idle stacks are known by their text as they were by their thread.
        assert_eq!(json(&text, &[])["idle_samples"] == 0, idle.is_empty());
    }
}

#[test]
fn every_form_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.json");
    let more = ["-o", out.to_str().unwrap(), "--unit", "us"];
    assert_eq!(run(args(folder.path(), "a;b 3\na;c 4\n", &more)).status, 0);
    let text = fs::read_to_string(&out).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let profile = &document["profiles"][0];
    assert_eq!(
        (&profile["unit"], &profile["endValue"]),
        (&"nanoseconds".into(), &7000.into())
    );
    assert_eq!(
        again("a;b;c 1\na;b 2\n\na;b;c 3\n", &[]),
        "a;b 2\na;b;c 4\n"
    );
}

#[test]
fn what_cannot_be_asked_of_folded_stacks_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (text, more, word) in [
        ("a;b 1\n", &["--by", "cpu"][..], "--by is for recordings"),
        (
            "a;b 1\n",
            &["--event", "cycles"],
            "--event is for recordings",
        ),
        ("a;b 1\n", &["--pid", "3"], "cannot be filtered"),
        ("a;b 1 2\na;c 0 4\n", &[], "two counts in every line"),
        ("a;b\na;c\n", &[], "expected a recording with samples"),
    ] {
        let done = run(args(folder.path(), text, more));
        assert_eq!(done.status, 1, "{text}");
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
        assert!(done.stderr.contains(word), "{}", done.stderr);
    }
    let recording = file("arm64/vhost-mmio/boot2-vsock/perf.data.l2");
    let done = run(["flame", "--unit", "us", &recording.display().to_string()]);
    assert_eq!(done.status, 1);
    assert!(done.stderr.contains("--unit"), "{}", done.stderr);
}

#[test]
fn deep_stacks_are_read_and_written() {
    let deep = vec!["frame"; 10_000].join(";");
    let text = format!("{deep} 1\n{deep};leaf 2\n");
    let shown = json(&text, &[]);
    assert_eq!(shown["samples"], 3);
    assert_eq!(shown["functions"][0]["total_samples"], 3);
    assert_eq!(again(&text, &[]).lines().count(), 2);
}
