//! Recordings that were cut off before their first event. What is known of others is in `crates/session/tests`.

use std::fs;
use std::path::Path;

use crate::common::{Failures, case, json, number, read, run};

/// Writes the first part of a recording.
fn cut(whole: &[u8], percent: usize, path: &Path) {
    fs::write(path, &whole[..whole.len() * percent / 100]).expect("a written file");
}

/// A trace.dat has its formats before its events: one that ends in them has none.
#[test]
fn of_a_trace_dat_that_ends_before_its_events_the_end_is_said() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let part = folder.path().join("part.dat");
    for (name, percent) in [
        ("x86/format-variants/v7.dat.zst", 60),
        ("x86/format-variants/v7.dat.zst", 5),
        ("x86/format-variants/v6.dat.zst", 2),
    ] {
        let bytes = read(&case(name).path);
        cut(&bytes, percent, &part);
        for command in ["events", "exits", "vcpus", "paths"] {
            let run = run([command.as_ref(), part.as_os_str()]);
            let at = format!("cut off at byte {:#x}", bytes.len() * percent / 100);
            let words = [at.as_str(), "before its first event", "copy the whole file"];
            let said = words.iter().all(|word| run.stderr.contains(word));
            failures.check(run.status == 1 && run.stdout.is_empty() && said, || {
                format!("{command}: {} {} {}", run.status, run.text(), run.stderr)
            });
        }
        // It is a cause by itself, with a remedy.
        for command in ["diagnose", "report"] {
            let document = json(&[command], &part).expect("a diagnosis");
            let text = document.to_string();
            failures.check(text.contains("is cut off before its first event"), || text);
        }
        let info = json(&["info"], &part).expect("what its header says");
        failures.check(info["quality"]["truncated"] == true, || info.to_string());
    }
    // As soon as there are any, they are used.
    let bytes = read(&case("x86/format-variants/v7.dat.zst").path);
    for percent in [93, 95, 99] {
        cut(&bytes, percent, &part);
        let info = json(&["info"], &part).expect("what is left");
        let events = info["events"].as_array().cloned().unwrap_or_default();
        let count: u64 = events.iter().map(|one| number(one, "count")).sum();
        failures.check(count > 100, || format!("{percent} %: {count}"));
    }
    failures.finish(24);
}
