//! `trapline redact`: the numbers are those of the recording, and the names are not.

use std::fs;

use serde_json::Value;

use crate::common::{Failures, case, json, read, run};
use crate::salvage::lines;

/// Takes names out: texts become empty, and lists are in the order of what is left.
fn numbers(value: &Value) -> Value {
    match value {
        Value::String(_) => Value::from(""),
        Value::Array(list) => {
            let mut list: Vec<Value> = list.iter().map(numbers).collect();
            list.sort_by_key(ToString::to_string);
            Value::from(list)
        }
        Value::Object(object) => {
            let object = object
                .iter()
                .filter(|(name, _)| !["inputs", "quality", "host"].contains(&name.as_str()));
            Value::from_iter(object.map(|(name, value)| (name.clone(), numbers(value))))
        }
        other => other.clone(),
    }
}

#[test]
fn every_commands_numbers_are_the_same() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let (whole, to) = (
        folder.path().join("whole.data"),
        folder.path().join("ticket.data"),
    );
    // Recordings, and what a tool printed of one: `RECORDING REFERENCE`.
    for name in [
        "x86/format-variants/plain.perf.data.zst script",
        "x86/format-variants/callgraph.perf.data.zst script",
        "x86/format-variants/v7.dat.zst report",
        "x86/format-variants/v7.dat.zst report-N",
        "x86/format-variants/ftrace-trace-latency-format-head3000.txt.gz",
        "x86/format-variants/plain.perf.data.zst",
        "x86/format-variants/compressed.perf.data.zst",
        "x86/format-variants/callgraph.perf.data.zst",
        "arm64/virtio-mmio/boot1/perf.data.guest.zst",
        "x86/format-variants/v6.dat.zst",
        "x86/format-variants/v7.dat.zst",
        "arm64/virtio-mmio/boot2-vsock/trace-guest1.dat.zst",
    ] {
        let bytes = match name.split_once(' ') {
            Some((name, tool)) => case(name).reference(tool).expect("a text").into_bytes(),
            None => read(&case(name).path),
        };
        fs::write(&whole, bytes).expect("a written file");
        let said = run([
            "redact".as_ref(),
            whole.as_os_str(),
            "-o".as_ref(),
            to.as_os_str(),
        ]);
        failures.check(
            said.status == 0
                && said.text().contains("names of threads")
                && said.text().contains(" events, as in the original")
                && said.text().contains(" names looked for, none"),
            || format!("{name}: {}{}", said.text(), said.stderr),
        );
        for command in ["info", "exits", "vcpus", "sched", "paths", "irqs", "report"] {
            let before = json(&[command], &whole).map(|document| numbers(&document));
            let after = json(&[command], &to).map(|document| numbers(&document));
            let same = match (&before, &after) {
                (Ok(before), Ok(after)) => before == after,
                (before, after) => before.is_err() && after.is_err(),
            };
            failures.check(same, || format!("{name}: {command}\n{before:?}\n{after:?}"));
        }
        if name.ends_with(".dat.zst") {
            let report = |file| lines("trace-cmd", &["report"], file);
            let (before, after) = (report(&whole), report(&to));
            failures.check(before == after && !matches!(after, Some(Err(_))), || {
                format!("{name}: trace-cmd prints {after:?} lines of {before:?}")
            });
        }
        let console = run(["events".as_ref(), "--console".as_ref(), to.as_os_str()]);
        let letters = console
            .text()
            .chars()
            .filter(char::is_ascii_alphabetic)
            .count();
        failures.check(console.status != 0 || letters < 200, || console.text());
    }
    failures.finish(110);
}

#[test]
fn a_text_without_events_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("script.txt");
    fs::write(&file, "no recording, but a text\n").expect("a written file");
    let said = run(["redact".as_ref(), file.as_os_str()]);
    assert!(
        said.status == 1 && said.stderr.contains("expected a perf.data"),
        "{}",
        said.stderr
    );
    assert!(!folder.path().join("script.txt.redacted").exists());
}
