//! The five investigations' own documents, byte for byte, each as one argument: the right conclusion comes first, and
//! nothing is invented. They lie beside the large corpus.

use std::env;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::run;

/// Returns the path of a document; none where the large corpus is not there.
fn document(start: &str) -> Option<String> {
    let corpus = PathBuf::from(env::var_os("TRAPLINE_CORPUS")?);
    let mut files = fs::read_dir(corpus.parent()?.join("seeds")).ok()?.flatten();
    let file = files.find(|file| file.file_name().to_string_lossy().starts_with(start))?;
    Some(file.path().display().to_string())
}

fn json(command: &str, path: &str) -> Value {
    run([command, "--format", "json", path])
        .json()
        .unwrap_or_else(|error| panic!("{command} {path}: {error}"))
}

#[test]
fn the_first_finding_is_what_the_author_found() {
    for (start, id) in [
        ("000", "console-on-irq-vcpu"),
        ("001", "timer-port-exits"),
        ("004", "cpufreq-governor-kworker"),
    ] {
        let Some(path) = document(start) else { return };
        let diagnosis = json("diagnose", &path);
        assert_eq!(diagnosis["findings"][0]["id"], id, "{path}");
        // The screen says so behind what was read.
        let screen = run(["report", &path]).text();
        let second = screen.split("\n\n").nth(1).unwrap_or_default();
        assert!(second.contains(&format!(", {id}: ")), "{path}: {second}");
    }
    // What strace shows of the console stands beside what the trace shows of the interrupt.
    let path = document("000").unwrap();
    let first = &json("diagnose", &path)["findings"][0];
    assert_eq!(first["inputs"].as_array().map(Vec::len), Some(2), "{first}");
    let evidence: Vec<&str> = first["evidence"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        evidence
            .iter()
            .any(|text| text.contains("to answer") || text.contains("answer came")),
        "{evidence:?}"
    );
    assert!(
        evidence
            .iter()
            .any(|text| text.contains(":235: Thread 38613 wrote one byte")),
        "{evidence:?}"
    );
}

#[test]
fn the_second_ones_patch_is_of_its_windows_guest() {
    let Some(path) = document("001") else { return };
    let patch = run(["diagnose", "--patch", &path]).text();
    assert!(patch.contains("hypervclock"), "{patch}");
    let added = patch.lines().filter(|line| line.starts_with('+'));
    assert!(added.count() > 4, "{patch}");
}

/// What the third one measured are pictures and a table of its author's own.
#[test]
fn the_third_one_hears_what_to_paste() {
    let Some(path) = document("002") else { return };
    for command in ["report", "diagnose"] {
        let run = run([command, &path]);
        assert_eq!(run.status, 1);
        assert!(
            run.stderr.contains("'perf kvm stat report' in line 18"),
            "{}",
            run.stderr
        );
    }
}

/// Of the fourth one's traces less than half of the events can be read: there is no verdict of them, and no VM, task or
/// time that is not in the text.
#[test]
fn nothing_is_invented_of_what_a_machine_misread() {
    let Some(path) = document("003") else { return };
    let report = json("report", &path);
    let recordings = report["recordings"].as_array().expect("a list");
    for one in recordings {
        for finding in one["findings"].as_array().into_iter().flatten() {
            assert_ne!(finding["severity"], "high", "{finding}");
        }
        for vm in one["vms"].as_array().into_iter().flatten() {
            let name = vm["name"].as_str().unwrap_or_default();
            assert!(!name.contains("swapper"), "{vm}");
        }
    }
    let screen = run(["report", &path]).text();
    assert_eq!(screen.matches("No verdict:").count(), 2, "{screen}");
    assert!(!screen.contains("Nothing wrong"), "{screen}");
}

/// The good host has six times the misses of the bad one, and is not worse by that.
#[test]
fn the_fifth_ones_hosts_are_compared_by_their_work() {
    let Some(path) = document("004") else { return };
    let compared = run(["compare", &format!("{path}:6"), &format!("{path}:10")]).text();
    let first = compared
        .lines()
        .find(|line| line.starts_with("- "))
        .unwrap_or_default();
    assert!(
        first.contains("context-switches: 79162 to 3115 in a second"),
        "{compared}"
    );
    let misses = compared.split("- cache-misses").nth(1).unwrap_or_default();
    assert!(misses.contains("Neither is worse"), "{compared}");
}
