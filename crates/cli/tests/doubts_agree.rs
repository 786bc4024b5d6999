//! Every command says the doubts that touch what it shows, and says the same in each of its formats.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::common::page::Page;
use crate::common::{Case, Failures, cases, run, sweeping};

/// Commands, and how each prints all of its text.
const COMMANDS: [(&str, &[&str]); 8] = [
    ("info", &[]),
    ("exits", &[]),
    ("vcpus", &[]),
    ("sched", &[]),
    ("paths", &[]),
    ("irqs", &[]),
    ("report", &["--full"]),
    ("diagnose", &[]),
];

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the warnings of lines that are broken at the width of a terminal: each has a label, and goes on behind
/// spaces.
fn warnings(text: &str) -> BTreeSet<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if let Some(first) = line.strip_prefix("warning: ") {
            found.push(first.to_owned());
            open = true;
        } else if open && line.starts_with("         ") {
            let last = found.last_mut().expect("one is open");
            last.push(' ');
            last.push_str(line.trim());
        } else {
            open = false;
        }
    }
    found.iter().map(|text| one_line(text)).collect()
}

/// Returns the texts of a document's doubts, by id and text.
fn said(document: &Value) -> BTreeSet<(String, String)> {
    let doubts = document["quality"]["doubts"]
        .as_array()
        .into_iter()
        .flatten();
    let of = |doubt: &Value, name: &str| one_line(doubt[name].as_str().unwrap_or_default());
    doubts
        .map(|doubt| (of(doubt, "id"), of(doubt, "text")))
        .collect()
}

/// Returns a text of a document with its members called as columns on a terminal are: `halted_ns` as 'halted'.
fn with_columns(text: &str) -> String {
    let word = |word: &str| {
        let name = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let behind = &word[name.len()..];
        match name.strip_suffix("_ns") {
            Some(column) if !column.is_empty() => format!("'{column}'{behind}"),
            _ => word.to_owned(),
        }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn printed(command: &str, more: &[&str], path: &Path) -> Option<crate::common::Run> {
    let path = path.to_str().expect("a plain path");
    let arguments = std::iter::once(command)
        .chain(more.iter().copied())
        .chain([path]);
    Some(run(arguments)).filter(|run| run.status == 0)
}

/// What is counted among the events that a command reads: one that reads no event of KVM has none of theirs that came
/// late.
const OF_EVENTS_READ: [&str; 1] = ["out-of-order"];

/// In every format a command says the same doubts. A doubt about everything is said by every command, and one about a
/// kind of numbers by all that show it.
///
/// A sweep looks at each command's text and at its CSV; in the short of it these take turns from recording to recording
/// and from command to command.
#[test]
fn every_command_says_the_same_in_every_format() {
    let mut failures = Failures::default();
    for (at, case) in cases().iter().enumerate() {
        let mut of_all: BTreeMap<&str, BTreeSet<(String, String)>> = BTreeMap::new();
        for (turn, (command, more)) in COMMANDS.into_iter().enumerate() {
            let Some(json) = printed(command, &["--format", "json"], &case.path) else {
                continue;
            };
            let document = json.json().expect("a document");
            of_all.insert(command, of_everything(&document));
            let texts = said(&document).into_iter().map(|(_, text)| text);
            let texts: BTreeSet<String> = texts.collect();
            let what = format!("{}: {command}", case.name);
            let [text, csv] = [0, 1].map(|parity| sweeping() || (at + turn) % 2 == parity);
            formats_agree(
                &mut failures,
                &what,
                case,
                (command, more),
                &texts,
                (text, csv),
            );
        }
        let together: BTreeSet<&(String, String)> = of_all.values().flatten().collect();
        for (command, says) in &of_all {
            let unsaid = together.iter().filter(|one| !says.contains(**one));
            let missing: Vec<_> = unsaid.collect();
            failures.check(missing.is_empty(), || {
                format!("{}: {command} does not say {missing:?}", case.name)
            });
        }
    }
    failures.finish(300);
}

/// Returns the doubts of a document that are about everything, by id and text.
fn of_everything(document: &Value) -> BTreeSet<(String, String)> {
    let doubts = document["quality"]["doubts"].as_array();
    let doubts = doubts.into_iter().flatten();
    let of_read = |doubt: &&Value| OF_EVENTS_READ.iter().any(|id| doubt["id"] == *id);
    // Where a file was cut every command says so; which of its parts are short, only one that reads these parts
    // can say: those with symbols are not read for a table of contents.
    let is_cut = doubts.clone().any(|doubt| doubt["id"] == "cut-off");
    let of_part = |doubt: &&Value| is_cut && doubt["id"] == "file-damaged";
    let all = doubts.filter(|doubt| doubt["concerns"][0] == "all");
    let all = all.filter(|doubt| !of_read(doubt) && !of_part(doubt));
    all.map(|doubt| (doubt["id"].to_string(), doubt["text"].to_string()))
        .collect()
}

/// Holds a command's text, its CSV and the page against the doubts of its JSON.
fn formats_agree(
    failures: &mut Failures,
    what: &str,
    case: &Case,
    (command, more): (&str, &[&str]),
    texts: &BTreeSet<String>,
    (text, csv): (bool, bool),
) {
    let shown: BTreeSet<String> = texts.iter().map(|text| with_columns(text)).collect();
    if let Some(text) = text.then(|| printed(command, more, &case.path)).flatten() {
        failures.equal(&format!("{what} as text"), &warnings(&text.text()), &shown);
    }
    let format = ["--format", "csv"];
    if let Some(csv) = csv.then(|| printed(command, &format, &case.path)).flatten() {
        failures.equal(&format!("{what} as CSV"), &warnings(&csv.stderr), &shown);
    }
    if command != "report" {
        return;
    }
    let (_, page) = Page::of(&[&case.path], &[]);
    let page = one_line(&page.expect("a page").xml);
    // A page calls columns as its tables do, in quotes.
    for text in texts.iter().filter(|text| !text.contains("_ns")) {
        let escaped = text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        let escaped = escaped.replace('"', "&quot;").replace('\'', "&#39;");
        failures.check(page.contains(&escaped), || {
            format!("{what}: the page has no '{text}'")
        });
    }
}

/// Commands that count no events say what the times of those that they look at show.
#[test]
fn a_clock_that_cannot_be_is_doubted_in_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.txt");
    let lines = [
        (1, "kvm_entry: vcpu 0, rip 0xffffffff81a17a0b"),
        (
            5,
            "kvm_exit: vcpu 0 reason HLT rip 0xffffffff81a17a0b info1 0 info2 0",
        ),
        (
            6,
            "sched_switch: prev_comm=CPU 0/KVM prev_pid=1010 prev_prio=120 prev_state=S ==> next_comm=swapper/1 \
             next_pid=0 next_prio=120",
        ),
        (
            9,
            "sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=CPU 0/KVM \
             next_pid=1010 next_prio=120",
        ),
        (12, "kvm_entry: vcpu 0, rip 0xffffffff81a17a0b"),
    ];
    for (seconds, doubted) in [(16_725_225_600_u64, true), (1_790_000_000, false)] {
        let line = |(us, event): (u32, &str)| {
            format!("  CPU 0/KVM-1010  [001] {seconds}.{us:06}: {event}\n")
        };
        let text: String = lines.into_iter().map(line).collect();
        std::fs::write(&file, text).expect("a file");
        for command in [
            "info", "exits", "vcpus", "sched", "paths", "report", "diagnose",
        ] {
            let ran = run([
                command.as_ref(),
                "--format".as_ref(),
                "json".as_ref(),
                file.as_os_str(),
            ]);
            let document: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
            let ids: BTreeSet<String> = said(&document).into_iter().map(|(id, _)| id).collect();
            assert_eq!(
                ids.contains("clock-implausible"),
                doubted,
                "{command}: {ids:?}"
            );
        }
    }
}
