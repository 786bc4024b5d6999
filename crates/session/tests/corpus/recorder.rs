//! Who recorded: the process that made the recording, and none that only has its name.

use std::path::Path;

use serde_json::Value;

use fixtures::events::events_text_in_style;
use fixtures::{FixtureQuestion, file, read, write_text};

/// A host where a task keeps a vCPU's CPU, recorded by perf.
const PREEMPTED: &str = "x86/preempted-sick/perf.data.zst";
/// That task, with what the kernel has behind its name.
const BUSY: &[u8] = b"batchjob\0";

/// Returns the recording with another name for the task that keeps the CPU.
fn with_busy(name: &str) -> Vec<u8> {
    let mut bytes = read(&file(PREEMPTED));
    let found: Vec<usize> = memchr::memmem::find_iter(&bytes, BUSY).collect();
    assert!(found.len() > 100, "the task has {} names", found.len());
    for at in found {
        let place = &mut bytes[at..at + BUSY.len()];
        place.fill(0);
        place[..name.len()].copy_from_slice(name.as_bytes());
    }
    bytes
}

fn findings(path: &Path) -> Vec<Value> {
    let document = FixtureQuestion::new()
        .diagnosis_document(path)
        .expect("a diagnosis");
    document["findings"].as_array().expect("a list").clone()
}

/// Checks that a task which keeps a CPU is what vCPUs wait for, and not taken for the recorder.
fn is_not_the_recorder(path: &Path, name: &str) {
    let found = findings(path);
    let ids: Vec<&str> = found.iter().filter_map(|one| one["id"].as_str()).collect();
    assert!(!ids.contains(&"tracing-disturbs"), "{name}: {ids:?}");
    let mut waits = found.iter().filter(|one| one["id"] == "vcpu-preempted");
    let title = waits.next().and_then(|one| one["title"].as_str());
    let title = title.unwrap_or_default();
    let behind = format!("most behind {name}");
    assert!(title.ends_with(&behind), "{name}: {title:?} of {ids:?}");
}

#[test]
fn a_busy_process_that_is_called_as_a_recorder_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["perf", "trapline"] {
        let path = folder.path().join(format!("{name}.data"));
        std::fs::write(&path, with_busy(name)).expect("room");
        is_not_the_recorder(&path, name);
        // Its text has no list of processes.
        for form in ["perf", "trace-cmd"] {
            let text = events_text_in_style(&path, form == "perf").expect("events");
            let text = String::from_utf8_lossy(&text);
            let written = write_text(folder.path(), &format!("{name}-{form}.txt"), &text);
            is_not_the_recorder(&written, name);
        }
    }
}

#[test]
fn perf_is_known_by_the_command_that_it_forked() {
    let found = findings(&file(PREEMPTED));
    let evidence = found
        .iter()
        .flat_map(|one| one["evidence"].as_array().into_iter().flatten());
    let said = evidence.filter_map(Value::as_str);
    let mut of_recorder = said.filter(|said| said.contains("behind the recorder"));
    let said = of_recorder.next().expect("what is not counted");
    assert!(said.contains("(perf (thread 548))"), "{said}");
}
