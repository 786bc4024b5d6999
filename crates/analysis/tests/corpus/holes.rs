//! Recordings in which events are missing though nobody lost any: every n-th line gone, one kind of event gone. They
//! are distinguished from whole ones, and nothing that is found in them is sure.

use std::path::Path;

use analysis::{ProfileOf, ProfileOptions};
use fixtures::holes::{each_with_holes, warns_of_holes};
use fixtures::{Failures, FixtureQuestion, case, cases};

/// Asks for what threads waited for.
fn off_cpu() -> ProfileOptions {
    ProfileOptions {
        of: ProfileOf::OffCpu,
        ..ProfileOptions::default()
    }
}

/// Checks what is said of a text with holes.
fn check(failures: &mut Failures, what: &str, path: &Path) {
    let asked = FixtureQuestion::new();
    for (name, document) in [
        ("exits", asked.exits_document(path)),
        ("vcpus", asked.vcpus_document(path)),
        ("paths", asked.paths_document(path)),
        ("flame", asked.stacks_document(path, off_cpu())),
    ] {
        // Without an exit, an entry or a switch there is nothing for these.
        if let Ok(document) = document {
            failures.check(warns_of_holes(&document), || {
                format!("{what}: {name} is silent")
            });
        }
    }
    let document = asked.diagnosis_document(path);
    let document = document.unwrap_or_else(|error| panic!("{what}: {error}"));
    failures.check(warns_of_holes(&document), || {
        format!("{what}: diagnose is silent")
    });
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
    each_with_holes(|what, path| check(&mut failures, what, path));
    failures.finish(50);
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
            ("flame", asked.stacks_document(&case.path, off_cpu())),
        ] {
            // Some have no exits, some no switches.
            let Ok(document) = document else {
                continue;
            };
            let lost = document["quality"]["lost_events"].as_u64();
            failures.check(!warns_of_holes(&document) || lost > Some(0), || {
                format!("{}: {name}: {}", case.name, document["quality"])
            });
        }
    }
    failures.finish(75);
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
