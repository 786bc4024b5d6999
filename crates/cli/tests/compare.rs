//! `trapline compare`: its forms, files that are the same, and what the command line refuses. What changed, and what is
//! noise, is in `crates/compare/tests`.

use fixtures::made_folder::MadeFolder;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Run, file, read, read_text, run, run_with};
use crate::common::{list, text};
use serde_json::Value;

/// Runs the command with more arguments.
fn compare(paths: &[&Path], more: &[&str]) -> Run {
    let mut args = vec!["compare".to_owned()];
    args.extend(paths.iter().map(|path| path.display().to_string()));
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    run(args)
}

fn document(paths: &[&Path], more: &[&str]) -> Value {
    let mut all = vec!["--format=json"];
    all.extend_from_slice(more);
    let output = compare(paths, &all);
    output
        .json()
        .unwrap_or_else(|error| panic!("{paths:?}: {error}"))
}

/// The sentences of what changed, in order.
fn said(document: &Value) -> Vec<String> {
    let changes = list(&document["changes"]).iter();
    changes.map(|change| text(&change["text"])).collect()
}

/// A document's printed table or fragment.
fn seed(name: &str) -> PathBuf {
    file(&format!("seed-text/{name}.txt"))
}

/// Fails with one line of error that has these words, and nothing else.
fn refuses(output: &Run, words: &[&str]) {
    assert_ne!(output.status, 0, "{}", output.text());
    assert!(output.stdout.is_empty(), "{}", output.text());
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    for word in words {
        assert!(output.stderr.contains(word), "{word}: {}", output.stderr);
    }
}

#[test]
fn all_forms_say_the_same() {
    let [a, b] = [
        seed("case2-windows-before.perf-kvm-stat-vmexit"),
        seed("case2-windows-after.perf-kvm-stat-vmexit"),
    ];
    let document = document(&[&a, &b], &[]);
    assert_eq!(document["command"], "compare");
    assert_eq!(list(&document["inputs"]).len(), 2);
    let csv = compare(&[&a, &b], &["--format=csv"]).text();
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("what,unit,a,b,delta,ratio,confidence,effect_ns,text")
    );
    assert_eq!(lines.count(), list(&document["changes"]).len());
    // What is absent is empty.
    assert!(
        csv.contains("\nvmexit IO_INSTRUCTION,count,256738,,-256738,0,1,-"),
        "{csv}"
    );
    // The largest have sentences, all have a row; with --all each has its sentence.
    let table = compare(&[&a, &b], &[]).text();
    for change in list(&document["changes"]) {
        let what = change["what"].as_str().expect("what changed");
        let row = table.lines().find(|line| line.starts_with(what));
        let row = row.unwrap_or_else(|| panic!("{what}\n{table}"));
        if let Some(worse) = change["worse"].as_str() {
            assert!(
                row.ends_with(&format!(" {}", worse.to_uppercase())),
                "{row}"
            );
        }
    }
    // Which side is worse is said there by the names of the files.
    let said = |document: &Value| -> Vec<String> {
        let bare = |text: String| {
            let verdicts = [" A is worse.", " B is worse."];
            let found = verdicts
                .iter()
                .find_map(|verdict| text.strip_suffix(verdict));
            found.map(str::to_owned).unwrap_or(text)
        };
        said(document).into_iter().map(bare).collect()
    };
    let first = said(&document).remove(0);
    assert!(crate::common::fold(&table).contains(&crate::common::fold(&first)));
    let all = compare(&[&a, &b], &["--all"]).text();
    let folded = crate::common::fold(&all);
    for sentence in said(&document) {
        assert!(
            folded.contains(&crate::common::fold(&sentence)),
            "{sentence}\n{all}"
        );
    }
    assert!(all.contains("what may be noise, or is small:"), "{all}");
    let one = compare(&[&a, &b], &["--limit=1"]).text();
    assert!(
        one.contains("more changes are not shown (--limit)"),
        "{one}"
    );
}

#[test]
fn the_same_twice_has_not_changed() {
    let folder = MadeFolder::new();
    let recording = folder.record("a", |_| {});
    for path in [
        recording,
        seed("case2-windows-before.perf-kvm-stat-vmexit"),
        seed("case5-slow-host.perf-sched-latency"),
        seed("case4-virtio.trace-cmd"),
    ] {
        let document = document(&[&path, &path], &[]);
        assert!(said(&document).is_empty(), "{:?}", said(&document));
        let table = compare(&[&path, &path], &[]).text();
        assert!(table.contains("No change is larger than noise."), "{table}");
        // Neither as the same file nor as a copy of it, also where everything is listed.
        let copy = folder.write("copy", read(&path));
        for other in [&path, &copy] {
            let all = compare(&[&path, other], &["--all"]).text();
            let same = "A and B are the same file: nothing can differ.";
            assert!(all.contains(same), "{all}");
            assert!(
                all.contains("the same on both sides, and not listed"),
                "{all}"
            );
            for change in ["\n- ", "may be noise, or", " fell", " rose"] {
                assert!(!all.contains(change), "{change}: {all}");
            }
        }
    }
}

#[test]
fn a_file_that_is_on_both_sides_is_said_to_be() {
    let folder = MadeFolder::new();
    let [a, b] = ["a", "b"].map(|name| folder.record(name, |_| {}));
    fs::write(&b, [read(&a), b"\n".to_vec()].concat()).expect("a written file");
    let with = ["--with", a.to_str().expect("a path")];
    let table = compare(&[&a, &b], &with).text();
    assert!(
        table.replace('\n', " ").contains("a is on both sides."),
        "{table}"
    );
    let table = compare(&[&a, &b], &[]).text();
    assert!(!table.contains("the same file"), "{table}");
}

#[test]
fn one_recording_is_no_comparison() {
    let one = seed("case4-virtio.trace-cmd");
    refuses(
        &compare(&[&one], &[]),
        &["the one to compare it with is missing"],
    );
    refuses(&compare(&[], &[]), &["<REC>"]);
    refuses(&compare(&[&one], &["--with"]), &["--with"]);
    refuses(
        &compare(&[&one, &one, &one], &[]),
        &["3 recordings", "--with"],
    );
    refuses(&compare(&[&one, Path::new("/nowhere")], &[]), &["/nowhere"]);
    for wrong in ["2", "-1", "much", "NaN"] {
        let confidence = format!("--confidence={wrong}");
        refuses(&compare(&[&one, &one], &[&confidence]), &["from 0 to 1"]);
    }
}

#[test]
fn standard_input_is_read_once() {
    let output = run_with(["compare", "-", "-"], b"whatever");
    assert_ne!(output.status, 0);
    assert!(
        output.stderr.contains("standard input (-) is named twice"),
        "{}",
        output.stderr
    );
    let output = run_with(["compare", "-", "x", "--with", "-"], b"whatever");
    assert!(output.stderr.contains("named twice"), "{}", output.stderr);
    // Once is fine.
    let table = file("seed-text/case2-hpet.perf-kvm-stat-vmexit.txt");
    let table = table.display().to_string();
    let output = run_with(
        ["compare", "-", &table],
        read_text(Path::new(&table)).as_bytes(),
    );
    assert_eq!(output.status, 0, "{}", output.stderr);
}
