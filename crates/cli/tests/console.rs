//! `trapline events --console`: its forms, and recordings in which nobody printed. What is read of serial lines is in
//! `crates/analysis/tests/corpus/console.rs`.

use crate::common::{case, json, run};

#[test]
fn lines_are_printed_in_every_form() {
    let path = case("x86/console-sick/perf.data.zst").path;
    let document = json(&["events", "--console"], &path).expect("a document");
    let all = document["console"].as_array().expect("lines");
    assert_eq!(document["lines"], all.len());
    let line = all.iter().find(|line| {
        line["text"]
            .as_str()
            .is_some_and(|text| text.starts_with("PRINT 0000.00 cpu1"))
    });
    let line = line.expect("the first line");
    assert_eq!(
        (&line["vcpu"], &line["device"]),
        (&1.into(), &"COM1".into())
    );
    assert_eq!(
        (&line["unknown_bytes"], &line["address"]),
        (&0.into(), &0x3f8.into())
    );
    let path = path.display().to_string();
    let table = run(["events", "--console", &path]).text();
    assert!(table.contains("COM1: PRINT 0000.00 cpu1"), "{table}");
    assert!(table.contains("console: "), "{table}");
    let rows = run(["events", "--console", "--format=csv", &path]).text();
    assert_eq!(rows.lines().count(), all.len() + 1);
}

#[test]
fn a_recording_in_which_nobody_printed_is_refused() {
    let path = case("x86/clocksource-hpet/perf.data.guest.zst").path;
    let run = run(["events".as_ref(), "--console".as_ref(), path.as_os_str()]);
    assert_eq!((run.status, run.stdout.len()), (1, 0));
    assert!(run.stderr.contains("kvm_pio"), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1);
    // It prints lines of its own, not events.
    for args in [["--event", "kvm_*"], ["--as", "perf"]] {
        let both = crate::common::run([&["events", "--console", "x"][..], &args].concat());
        assert_eq!(both.status, 2, "{}", both.stderr);
    }
}
