//! Recordings that were cut off: their containers hold events CPU by CPU, so that what is left ends at another time
//! for each CPU. Nothing is invented of what is missing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fixtures::json::number;
use fixtures::{Failures, FixtureQuestion, case, read};
use serde_json::Value;
use session::Error;

/// States of which something is known.
const KNOWN: [&str; 8] = [
    "guest_ns",
    "kernel_ns",
    "kernel_blocked_ns",
    "user_ns",
    "user_blocked_ns",
    "poll_ns",
    "halted_ns",
    "runnable_ns",
];

/// The rows of vCPUs by their threads.
fn vcpus(path: &Path, asked: &FixtureQuestion) -> Result<BTreeMap<u64, Value>, Error> {
    let document = asked.vcpus_document(path)?;
    let rows = document["rows"].as_array().cloned().unwrap_or_default();
    let rows = rows.into_iter().map(|row| (number(&row, "tid"), row));
    Ok(rows.collect())
}

/// Writes the first part of a recording beside it.
fn cut(whole: &[u8], percent: usize, path: &Path) {
    fs::write(path, &whole[..whole.len() * percent / 100]).expect("a written file");
}

#[test]
fn behind_a_cut_nothing_is_known_that_the_whole_file_does_not_say() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    for name in [
        "x86/format-variants/v6.dat.zst",
        "x86/preempted-sick/perf.data.zst",
        "x86/format-variants/plain.perf.data.zst",
    ] {
        let bytes = read(&case(name).path);
        let (whole, part) = (folder.path().join("whole"), folder.path().join("part"));
        fs::write(&whole, &bytes).expect("a written file");
        let all = vcpus(&whole, &FixtureQuestion::new()).expect("vCPUs");
        let asked = FixtureQuestion::new().formats(&whole);
        for percent in [30, 60, 90] {
            cut(&bytes, percent, &part);
            let Ok(left) = vcpus(&part, &asked) else {
                continue;
            };
            for (tid, row) in &left {
                let Some(full) = all.get(tid) else {
                    failures.check(false, || format!("{name}: {tid} is no vCPU"));
                    continue;
                };
                let observed = number(row, "observed_ns");
                for state in KNOWN {
                    // What decides between two states may come with an event that is gone.
                    let (ours, most) = (number(row, state), number(full, state));
                    failures.check(ours <= most + observed / 100, || {
                        format!("{name}, {percent} %: {tid}: {state} {ours} of {most}")
                    });
                }
            }
        }
    }
    failures.finish(60);
}

/// The first 60 % of a trace.dat whose events are nearly all of one CPU, and of a perf.data.
#[test]
fn what_rests_on_a_cut_recording_is_at_most_possible() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    for (name, found) in [
        ("x86/format-variants/v6.dat.zst", Some("timer-port-exits")),
        ("x86/preempted-sick/perf.data.zst", None),
    ] {
        let bytes = read(&case(name).path);
        let (whole, part) = (folder.path().join("whole"), folder.path().join("part"));
        fs::write(&whole, &bytes).expect("a written file");
        cut(&bytes, 60, &part);
        let asked = FixtureQuestion::new().formats(&whole);
        let document = asked.diagnosis_document(&part).expect("a diagnosis");
        let findings = document["findings"].as_array().expect("findings");
        for id in found.into_iter().chain(["lossy-recording"]) {
            failures.check(findings.iter().any(|one| one["id"] == id), || {
                format!("{name}: {id} in {document}")
            });
        }
        for one in findings {
            let text = one.to_string();
            if one["id"] == "lossy-recording" {
                failures.check(
                    !text.contains("The part before the cut is complete"),
                    || text,
                );
                continue;
            }
            let sure = one["confidence"].as_f64();
            let said = text.contains("because the recording is cut off");
            failures.check(sure.is_some_and(|sure| sure <= 0.5) && said, || text);
        }
        let rows = vcpus(&part, &asked).expect("vCPUs");
        let unknown = rows.values().map(|row| {
            let (unknown, all) = (number(row, "unknown_ns"), number(row, "observed_ns"));
            unknown as f64 / all as f64
        });
        failures.check(unknown.fold(0.0, f64::max) > 0.3, || {
            format!("{name}: {rows:?}")
        });
    }
    failures.finish(8);
}
