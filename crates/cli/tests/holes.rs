//! Stacks of recordings in which events are missing though nobody lost any say so. What other questions answer then is
//! in
//! `crates/analysis/tests/corpus/holes.rs`.

use std::fs;
use std::path::Path;

use crate::common::{Failures, case, cases, json, run};
use serde_json::Value;

/// How the warning begins.
const WARNING: &str = "Events are missing all through the recording";

/// Returns the lines of a recording.
fn lines(name: &str) -> Vec<String> {
    let path = case(name).path;
    let run = run(["events".as_ref(), "--ns".as_ref(), path.as_os_str()]);
    assert_eq!(run.status, 0, "{name}: {}", run.stderr);
    run.text().lines().map(str::to_owned).collect()
}

fn warned(document: &Value) -> bool {
    let warnings = document["quality"]["warnings"].as_array();
    let mut texts = warnings.into_iter().flatten().filter_map(Value::as_str);
    texts.any(|text| text.starts_with(WARNING))
}

/// Checks what is said of a text with holes.
fn check(failures: &mut Failures, what: &str, path: &Path) {
    // Without a switch there is nothing for it.
    if let Ok(document) = json(&["flame", "--off-cpu"], path) {
        failures.check(warned(&document), || format!("{what}: it is silent"));
    }
}

#[test]
fn thinned_recordings_are_noticed() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("thinned.txt");
    for name in [
        "x86/console-healthy/perf.data.zst",
        "arm64/vhost-mmio/boot1/trace.dat.zst",
        "vmx/linux-boot/perf.data.kvmstat.zst",
    ] {
        let all = lines(name);
        for n in [2, 3, 10] {
            let kept = all.iter().zip(1..).filter(|(_, at)| at % n != 0);
            let text: Vec<&str> = kept.map(|(line, _)| line.as_str()).collect();
            fs::write(&path, text.join("\n")).expect("a written file");
            check(&mut failures, &format!("{name}: every {n}th gone"), &path);
        }
        for class in ["kvm_entry:", "kvm_exit:"] {
            let kept = all.iter().filter(|line| !line.contains(class));
            let text: Vec<&str> = kept.map(String::as_str).collect();
            fs::write(&path, text.join("\n")).expect("a written file");
            check(&mut failures, &format!("{name}: no {class}"), &path);
        }
    }
    failures.finish(10);
}

#[test]
fn recordings_that_lost_nothing_have_no_holes() {
    let mut failures = Failures::default();
    for case in cases() {
        // Some have no switches.
        let Ok(document) = json(&["flame", "--off-cpu"], &case.path) else {
            continue;
        };
        let lost = document["quality"]["lost_events"].as_u64();
        failures.check(!warned(&document) || lost > Some(0), || {
            format!("{}: {}", case.name, document["quality"])
        });
    }
    failures.finish(15);
}
