//! Folded stacks as an input of `flame`. What is read of them is in `crates/session/tests`.

use std::io::Write;
use std::path::Path;

use serde_json::Value;

use crate::common::{file, read_text, run, run_with, write_text};

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

#[test]
fn what_is_not_certain_is_said() {
    let warnings = |text| json(text, &[])["quality"]["warnings"].to_string();
    assert!(warnings(OFFCPU).contains("3 stack traces lost"));
    assert!(warnings("a;b 20.25\nc;d 1\n").contains("decimals"));
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.folded");
    let more = ["-o", out.to_str().unwrap()];
    assert_eq!(
        run(args(folder.path(), "a;b 2\n\na;b 3\n", &more)).status,
        0
    );
    assert_eq!(read_text(&out), "a;b 5\n");
}

#[test]
fn lines_that_are_no_stacks_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "a;b 3\na;c\na;d 1\na;e 1\na;f 1\nend\n";
    let done = run(args(folder.path(), lines, &[]));
    assert_eq!(done.status, 0);
    let text = done.text();
    assert!(
        text.contains("4 lines of stacks and 2 of something else"),
        "{text}"
    );
    let said = run(args(folder.path(), lines, &["--format", "json"])).text();
    assert!(said.contains("line 2, 'a;c'; line 6, 'end'"), "{said}");
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
