//! Which instances every built-in path has, to the step and the microsecond, pinned by small recordings made by hand.
//!
//! Each file of `by_hand/` is a recording as a text, with the truth in comments at its head:
//!
//! ```text
//! # What the recording shows.
//! #= irqfd 1  set 10.000004, accepted 10.000005, injected 10.000012, in guest 10.000013
//! #= halt-wake 1 by timer
//! #= irqfd dropped  coalesced 1
//! #= kick none
//! ```
//!
//! The Nth instance of a path, in the order in which they complete, with the time of every step it reached; the group
//! it belongs to; and those that did not complete, by reason: all that is not named is 0. Paths that no line names are
//! not looked at. The truth was derived from docs/paths.md and from what the kernel does, not from what the program
//! said.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use fixtures::FixtureQuestion;

/// What a file says of one path, or is found of it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Truth {
    /// Steps and their times in microseconds.
    instances: BTreeMap<u64, Vec<(String, u64)>>,
    by: BTreeMap<u64, String>,
    dropped: BTreeMap<String, u64>,
}

fn micros(text: &str) -> u64 {
    let (seconds, fraction) = text
        .split_once('.')
        .unwrap_or_else(|| panic!("no time: {text}"));
    assert_eq!(fraction.len(), 6, "{text}");
    seconds.parse::<u64>().unwrap() * 1_000_000 + fraction.parse::<u64>().unwrap()
}

fn truth(text: &str) -> BTreeMap<String, Truth> {
    let mut out: BTreeMap<String, Truth> = BTreeMap::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("#= ") else {
            continue;
        };
        let (path, rest) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
        let truth = out.entry(path.to_owned()).or_default();
        let rest = rest.trim();
        if rest == "none" {
            continue;
        }
        let (what, rest) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
        let items = rest.trim().split(", ").map(|item| {
            let (name, value) = item
                .trim()
                .rsplit_once(' ')
                .unwrap_or_else(|| panic!("{line}"));
            (name.trim().to_owned(), value.to_owned())
        });
        match what {
            "dropped" => {
                truth.dropped = items.map(|(name, n)| (name, n.parse().unwrap())).collect();
            }
            number => {
                let number: u64 = number.parse().unwrap_or_else(|_| panic!("{line}"));
                if let Some(by) = rest.trim().strip_prefix("by ") {
                    truth.by.insert(number, by.trim().to_owned());
                } else {
                    let steps = items.map(|(name, at)| (name, micros(&at))).collect();
                    truth.instances.insert(number, steps);
                }
            }
        }
    }
    out
}

/// What is found of a path.
fn found(file: &Path, path: &str) -> Truth {
    let mut out = Truth::default();
    let asked = FixtureQuestion::new().path(path);
    for one in asked.instances(file).unwrap() {
        let steps = one
            .steps
            .into_iter()
            .map(|step| (step.name.to_string(), step.time / 1000));
        out.instances.insert(one.number, steps.collect());
        out.by.extend(one.by.map(|by| (one.number, by.to_string())));
    }
    let (reports, _) = asked.paths(file).unwrap();
    let dropped = reports[0].dropped.iter();
    out.dropped = dropped
        .map(|(why, count)| (why.name().to_owned(), *count))
        .collect();
    assert_eq!(reports[0].count, out.instances.len() as u64);
    out
}

#[test]
fn instances_are_those_that_happened() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/by_hand");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 40, "{} recordings", files.len());
    let mut failures = String::new();
    let mut instances = 0;
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let wanted = truth(&text);
        assert!(!wanted.is_empty(), "{name} pins nothing");
        for (path, mut wanted) in wanted {
            let mut found = found(file, &path);
            instances += wanted.instances.len();
            // Groups are compared where the file names them.
            found.by.retain(|number, _| wanted.by.contains_key(number));
            if path == "user-exit" {
                wanted.by.clear();
                found.by.clear();
            }
            if found != wanted {
                let _ = writeln!(failures, "{name}, {path}:");
                differ(&mut failures, &wanted, &found);
            }
        }
    }
    assert!(instances >= 40, "{instances} instances are pinned");
    assert!(failures.is_empty(), "\n{failures}");
}

fn differ(out: &mut String, wanted: &Truth, found: &Truth) {
    let show = |steps: Option<&Vec<(String, u64)>>| match steps {
        None => "nothing".to_owned(),
        Some(steps) => {
            let parts: Vec<String> = steps
                .iter()
                .map(|(name, at)| format!("{name} {}.{:06}", at / 1_000_000, at % 1_000_000))
                .collect();
            parts.join(", ")
        }
    };
    let mut numbers: Vec<&u64> = wanted
        .instances
        .keys()
        .chain(found.instances.keys())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        let (a, b) = (wanted.instances.get(number), found.instances.get(number));
        if a != b {
            let _ = writeln!(
                out,
                "  {number} wanted {}\n  {number} found  {}",
                show(a),
                show(b)
            );
        }
        let (a, b) = (wanted.by.get(number), found.by.get(number));
        if a != b {
            let _ = writeln!(out, "  {number} wanted by {a:?}, found by {b:?}");
        }
    }
    if wanted.dropped != found.dropped {
        let _ = writeln!(
            out,
            "  dropped: wanted {:?}, found {:?}",
            wanted.dropped, found.dropped
        );
    }
}
