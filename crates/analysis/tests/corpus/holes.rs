//! Recordings in which events are missing though nobody lost any: every n-th line gone, one kind of event gone. They
//! are distinguished from whole ones, and nothing that is found in them is sure.

use std::fs;
use std::path::Path;

use fixtures::{Failures, FixtureQuestion, case, cases, events_text};
use serde_json::Value;

/// How the warning begins.
const WARNING: &str = "Events are missing all through the recording";

/// Returns the lines of a recording.
fn lines(name: &str) -> Vec<String> {
    let text = events_text(&case(name).path).expect(name);
    let text = String::from_utf8_lossy(&text);
    text.lines().map(str::to_owned).collect()
}

fn warned(document: &Value) -> bool {
    let warnings = document["quality"]["warnings"].as_array();
    let mut texts = warnings.into_iter().flatten().filter_map(Value::as_str);
    texts.any(|text| text.starts_with(WARNING))
}

/// Checks what is said of a text with holes.
fn check(failures: &mut Failures, what: &str, path: &Path) {
    let asked = FixtureQuestion::new();
    for (name, document) in [
        ("exits", asked.exits_document(path)),
        ("vcpus", asked.vcpus_document(path)),
        ("paths", asked.paths_document(path)),
    ] {
        // Without an exit or an entry there is nothing for these.
        if let Ok(document) = document {
            failures.check(warned(&document), || format!("{what}: {name} is silent"));
        }
    }
    let document = asked.diagnosis_document(path);
    let document = document.unwrap_or_else(|error| panic!("{what}: {error}"));
    failures.check(warned(&document), || format!("{what}: diagnose is silent"));
    for finding in document["findings"].as_array().into_iter().flatten() {
        let confidence = finding["confidence"].as_f64().unwrap_or(1.0);
        let low = finding["severity"] == "low";
        let evidence = finding["evidence"].to_string();
        let said = evidence.contains("events are missing in the recording");
        failures.check(confidence <= 0.5 && low && said, || {
            format!(
                "{what}: {} {confidence}: {}",
                finding["id"], finding["title"]
            )
        });
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
    failures.finish(40);
}

#[test]
fn recordings_that_lost_nothing_have_no_holes() {
    let mut failures = Failures::default();
    for case in cases() {
        let asked = FixtureQuestion::new();
        for (name, document) in [
            ("exits", asked.exits_document(&case.path)),
            ("vcpus", asked.vcpus_document(&case.path)),
            ("sched", asked.sched_document(&case.path)),
        ] {
            // Some have no exits, some no switches.
            let Ok(document) = document else {
                continue;
            };
            let lost = document["quality"]["lost_events"].as_u64();
            failures.check(!warned(&document) || lost > Some(0), || {
                format!("{}: {name}: {}", case.name, document["quality"])
            });
        }
    }
    failures.finish(60);
}

/// A file that was cut off was not recorded too fast.
#[test]
fn a_cut_off_file_is_not_said_to_have_lost_events() {
    let path = case("x86/format-variants/truncated.dat.zst").path;
    let document = FixtureQuestion::new().diagnosis_document(&path);
    let document = document.expect("a diagnosis");
    let findings = document["findings"].as_array().expect("findings");
    let found = findings
        .iter()
        .find(|finding| finding["id"] == "lossy-recording")
        .expect("it is cut off");
    let text = found.to_string();
    assert!(!text.contains("faster"), "{text}");
    assert!(text.contains("copy"), "{text}");
    let lost = case("x86/format-variants/lost.perf.data.zst").path;
    let document = FixtureQuestion::new().diagnosis_document(&lost);
    let document = document.expect("a diagnosis");
    assert!(document.to_string().contains("faster than the recorder"));
}
