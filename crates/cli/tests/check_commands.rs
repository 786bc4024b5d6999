//! The commands that findings give, run on the recording that they were found in, print something: a user who follows
//! a check does not find an empty table.

use std::collections::BTreeSet;
use std::path::Path;

use fixtures::Failures;
use fixtures::expected::tables;
use serde_json::Value;

use crate::common::{json, run};

/// Commands that read a recording by itself.
const READERS: [&str; 5] = ["exits", "vcpus", "sched", "paths", "irqs"];

/// Returns the commands in a text, each as its arguments: `trapline exits --event msr`.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for behind in text.split("trapline ").skip(1) {
        let mut words = behind.split_whitespace();
        let Some(first) = words.next() else { continue };
        let plain = |word: &str| {
            word.trim_end_matches([':', ';', ',', '.', ')', '\'', '`'])
                .to_owned()
        };
        let name = plain(first);
        if !READERS.contains(&name.as_str()) {
            continue;
        }
        let mut arguments = vec![name];
        let mut ends = first.ends_with([':', ';', ',', '.', ')', '\'', '`']);
        for word in words {
            // Options and their values; the file is put there by the test.
            let is_value = arguments
                .last()
                .is_some_and(|last| last.starts_with("--") && last != "--each");
            if ends || !(word.starts_with("--") || is_value) {
                break;
            }
            ends = word.ends_with([':', ';', ',', '.', ')', '\'', '`']);
            arguments.push(plain(word));
        }
        found.push(arguments);
    }
    found
}

/// Returns how much a command prints: rows, instances, whatever its document lists.
fn rows(document: &Value) -> usize {
    let lists = [
        "rows",
        "paths",
        "tables",
        "irqs",
        "ipis",
        "vms",
        "tasks",
        "instances",
    ];
    let lists = lists.iter().filter_map(|name| document[*name].as_array());
    lists.map(Vec::len).sum()
}

fn texts(finding: &Value) -> BTreeSet<String> {
    let evidence = finding["evidence"].as_array().into_iter().flatten();
    let remedies = finding["remedy"].as_array().into_iter().flatten();
    let checks = remedies.flat_map(|one| [&one["check"], &one["do"]]);
    let unless = finding["remedy"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| &one["unless"]);
    let texts = evidence
        .chain(checks)
        .chain(unless)
        .chain([&finding["title"]]);
    texts
        .filter_map(|text| text.as_str().map(str::to_owned))
        .collect()
}

fn check(name: &str, file: &Path, failures: &mut Failures) -> usize {
    let Ok(diagnosis) = json(&["diagnose"], file) else {
        return 0;
    };
    let mut tried = 0;
    let mut seen = BTreeSet::new();
    for finding in diagnosis["findings"].as_array().into_iter().flatten() {
        for command in texts(finding).iter().flat_map(|text| commands(text)) {
            if !seen.insert(command.clone()) {
                continue;
            }
            // Values that stand for others: '--cpu LIST'.
            let is_example = |word: &String| word.chars().all(|c| c.is_ascii_uppercase());
            if command.iter().any(is_example) {
                continue;
            }
            tried += 1;
            let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
            let printed = json(&arguments, file);
            failures.check(
                printed.as_ref().is_ok_and(|document| rows(document) > 0),
                || {
                    let path = file.to_str().unwrap_or_default();
                    let text = run(arguments.iter().copied().chain([path])).text();
                    let id = &finding["id"];
                    format!(
                        "{name}: {id}: '{}' prints no row:\n{text}",
                        command.join(" ")
                    )
                },
            );
        }
    }
    tried
}

#[test]
fn commands_of_findings_print_rows_of_their_recording() {
    let mut failures = Failures::default();
    let mut tried = 0;
    let (_, causes) = tables()
        .into_iter()
        .nth(1)
        .expect("there are recordings with causes");
    for input in &causes {
        if let [file] = input.files.as_slice() {
            tried += check(&input.name, file, &mut failures);
        }
    }
    assert!(tried >= 20, "{tried}");
    failures.finish(20);
}

#[test]
fn commands_are_found_in_sentences() {
    let text = "trapline exits --event msr --by vcpu: writes of 0x6e0; see trapline vcpus, or trapline compare A B.";
    assert_eq!(
        commands(text),
        [
            vec!["exits", "--event", "msr", "--by", "vcpu"],
            vec!["vcpus"]
        ]
    );
}
