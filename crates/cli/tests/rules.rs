//! Every rule by itself: what it has to find, and the near miss in which it must not.
//!
//! `rules/ID/` has recordings made by hand, as the tools print them, and printed tables:
//!
//! ```text
//! # What the recording shows.
//! #= says 300 of them
//! #* 300 times, every 500 us
//!        CPU 0/KVM-1010  [001]    10.000000: kvm_exit:  reason IO_INSTRUCTION rip 0xffffffff81a17a0b info1 6080003 info2 0
//! #*
//! ```
//!
//! `positive*.txt` has to lead to the rule's finding, `negative*.txt` to its being looked for and not found, `unknown*.txt` to
//! its saying what has to be recorded. `NAME.facts.json` and `NAME.domain.xml` beside one are given with it. Lines between
//! `#*` are repeated, each time later by the step, and all lines are then put in the order of their times. With a line
//! `#! perf.data` the text is made into the recording of which it is the text (`common/perf_data.rs`). Lines `#=` are
//! what has to be true of the finding:
//!
//! - `says TEXT`: its title or its evidence says so (of a rule that cannot tell: what it lacks),
//! - `severity high`, `first`: how it is ranked,
//! - `remedy TEXT`: what is to be done first says so, and `other TEXT`: one of the others,
//! - `note TEXT`: what is particular to the first remedy here,
//! - `patch TEXT`: a line that the patch adds,
//! - `cost TIME`: what it costs, in nanoseconds, exactly.
//!
//! Near misses are the same situation in health, not an empty file.

use std::fs;
use std::path::Path;

use crate::common::fixtures::{self, fixtures, folder};
use crate::common::{self, Failures, run};
use serde_json::Value;

/// Returns all ids, as the program lists them.
fn ids() -> Vec<String> {
    let document = run(["rules", "--format", "json"]).json().unwrap();
    let rules = document["rules"].as_array().unwrap();
    let ids = rules
        .iter()
        .map(|rule| rule["id"].as_str().unwrap().to_owned());
    ids.collect()
}

/// What a fixture demands.
struct Demand {
    what: String,
    text: String,
}

fn demands(text: &str) -> Vec<Demand> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("#= "));
    lines
        .map(|line| {
            let (what, text) = line.split_once(' ').unwrap_or((line, ""));
            Demand {
                what: what.to_owned(),
                text: text.trim().to_owned(),
            }
        })
        .collect()
}

/// Runs the program on a fixture, with what stands beside it.
fn diagnose(fixture: &Path, more: &[&str]) -> (Vec<Demand>, common::Run) {
    let text = fs::read_to_string(fixture).unwrap();
    let place = tempfile::tempdir().unwrap();
    let recording = place.path().join(fixture.file_name().unwrap());
    let written = fixtures::recording(&text);
    fs::write(&recording, written.bytes).unwrap();
    let mut args = vec!["diagnose".to_owned()];
    if !written.guest_symbols.is_empty() {
        let symbols = place.path().join("guest-kallsyms");
        fs::write(&symbols, written.guest_symbols).unwrap();
        args.push("--guest-kallsyms".to_owned());
        args.push(symbols.to_string_lossy().into_owned());
    }
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    for (option, ending) in [("--facts", "facts.json"), ("--domain", "domain.xml")] {
        let beside = fixture.with_extension(ending);
        if beside.exists() {
            args.push(option.to_owned());
            args.push(beside.to_string_lossy().into_owned());
        }
    }
    args.push(recording.to_string_lossy().into_owned());
    (demands(&text), run(args))
}

fn strings(value: &Value) -> Vec<&str> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

/// Checks what the contract promises of a finding.
fn contract(what: &str, finding: &Value, failures: &mut Failures) {
    for field in ["id", "severity", "title", "cause"] {
        let text = finding[field].as_str().unwrap_or_default();
        failures.check(!text.is_empty(), || format!("{what}: {field} is empty"));
    }
    let severity = finding["severity"].as_str().unwrap_or_default();
    failures.check(["low", "medium", "high"].contains(&severity), || {
        format!("{what}: severity {severity}")
    });
    let confidence = finding["confidence"].as_f64().unwrap_or(-1.0);
    failures.check(confidence > 0.0 && confidence <= 1.0, || {
        format!("{what}: confidence {confidence}")
    });
    let share = finding["cost_share"].as_f64().unwrap_or(0.0);
    failures.check((0.0..=1.0).contains(&share), || {
        format!("{what}: a share of {share}")
    });
    let evidence = strings(&finding["evidence"]);
    failures.check(!evidence.is_empty(), || format!("{what}: no evidence"));
    for text in &evidence {
        failures.check(text.ends_with('.'), || {
            format!("{what}: evidence is no sentence: {text}")
        });
    }
    failures.check(
        evidence
            .iter()
            .any(|text| text.contains(|c: char| c.is_ascii_digit())),
        || format!("{what}: evidence without a number"),
    );
    let remedies = finding["remedy"].as_array().cloned().unwrap_or_default();
    failures.check(!remedies.is_empty(), || format!("{what}: no remedy"));
    for remedy in &remedies {
        for field in ["do", "price", "check"] {
            let text = remedy[field].as_str().unwrap_or_default();
            failures.check(!text.is_empty(), || {
                format!("{what}: remedy without {field}")
            });
        }
    }
}

fn finding<'v>(document: &'v Value, id: &str) -> Option<(usize, &'v Value)> {
    let findings = document["findings"].as_array()?.iter().enumerate();
    findings
        .into_iter()
        .find(|(_, finding)| finding["id"] == id)
}

/// Checks what a fixture demands of a finding.
fn meets(
    what: &str,
    (at, finding): (usize, &Value),
    demand: &Demand,
    patch: &str,
) -> Option<String> {
    let text = demand.text.as_str();
    let mut said = strings(&finding["evidence"]);
    said.extend(finding["title"].as_str());
    let remedies: Vec<&str> = finding["remedy"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|remedy| remedy["do"].as_str())
        .collect();
    let met = match demand.what.as_str() {
        "says" => said.iter().any(|line| line.contains(text)),
        "severity" => finding["severity"] == text,
        "first" => at == 0,
        "remedy" => remedies.first().is_some_and(|one| one.contains(text)),
        "other" => remedies.iter().skip(1).any(|one| one.contains(text)),
        "note" => finding["remedy"][0]["note"]
            .as_str()
            .is_some_and(|note| note.contains(text)),
        "cost" => finding["cost_ns"].as_u64() == text.parse().ok(),
        "patch" => patch.lines().any(|line| {
            line.strip_prefix('+')
                .is_some_and(|line| line.trim() == text)
        }),
        other => panic!("{what}: {other} is no demand"),
    };
    (!met).then(|| {
        let told = [&finding["severity"], &finding["cost_ns"]];
        format!(
            "{what}: not so: {} {text}\n    number {at}, {told:?}\n    {}\n    {}",
            demand.what,
            said.join("\n    "),
            remedies.join("\n    "),
        )
    })
}

/// The documents of a run, or why there is none.
fn document(what: &str, run: &common::Run, failures: &mut Failures) -> Option<Value> {
    match run.json() {
        Ok(document) => Some(document),
        Err(error) => {
            failures.check(false, || format!("{what}: {error}"));
            None
        }
    }
}

fn name(fixture: &Path) -> String {
    let shown = fixture.strip_prefix(folder()).unwrap_or(fixture);
    shown.display().to_string()
}

#[test]
fn every_rule_has_fixtures_and_every_fixture_a_rule() {
    let ids = ids();
    assert!(ids.len() >= 20, "{ids:?}");
    for id in &ids {
        for kind in ["positive", "negative"] {
            assert!(!fixtures(id, kind).is_empty(), "{id} has no {kind} fixture");
        }
    }
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(ids.contains(&name), "{name} is no rule");
        for file in fs::read_dir(folder().join(&name)).unwrap() {
            let file = file.unwrap().file_name().to_string_lossy().into_owned();
            let known = ["positive", "negative", "unknown"];
            assert!(
                known.iter().any(|kind| file.starts_with(kind)),
                "{name}/{file} is read by nobody"
            );
        }
    }
}

#[test]
fn what_is_there_is_found() {
    let mut failures = Failures::default();
    for id in ids() {
        for fixture in fixtures(&id, "positive") {
            let what = name(&fixture);
            let (demands, run) = diagnose(&fixture, &["--format", "json"]);
            let Some(document) = document(&what, &run, &mut failures) else {
                continue;
            };
            let Some(found) = finding(&document, &id) else {
                let others = (&document["findings"], &document["unknown"]);
                failures.check(false, || format!("{what}: not found, but {others:#?}"));
                continue;
            };
            contract(&what, found.1, &mut failures);
            let patch = document["patch"].as_str().unwrap_or_default();
            failures.check(!demands.is_empty(), || format!("{what} demands nothing"));
            for demand in &demands {
                let missed = meets(&what, found, demand, patch);
                failures.check(missed.is_none(), || missed.unwrap_or_default());
            }
            for finding in document["findings"].as_array().unwrap() {
                contract(&what, finding, &mut failures);
            }
            // As text, all of it is there too.
            let (_, table) = diagnose(&fixture, &[]);
            failures.check(table.status == 0 && table.text().contains(&id), || {
                format!("{what}: as text: {}{}", table.text(), table.stderr)
            });
        }
    }
    failures.finish(ids().len() * 10);
}

#[test]
fn near_misses_are_none() {
    let mut failures = Failures::default();
    for id in ids() {
        for fixture in fixtures(&id, "negative") {
            let what = name(&fixture);
            let (_, run) = diagnose(&fixture, &["--format", "json"]);
            let Some(document) = document(&what, &run, &mut failures) else {
                continue;
            };
            let clear = strings(&document["not_found"]).contains(&id.as_str());
            failures.check(clear, || {
                let found = finding(&document, &id).map(|(_, finding)| &finding["evidence"]);
                format!("{what}: {found:#?}, and unknown {:#}", document["unknown"])
            });
        }
    }
    failures.finish(ids().len());
}

#[test]
fn what_cannot_be_told_is_said() {
    let mut failures = Failures::default();
    for id in ids() {
        for fixture in fixtures(&id, "unknown") {
            let what = name(&fixture);
            let (demands, run) = diagnose(&fixture, &["--format", "json"]);
            if let Some(document) = document(&what, &run, &mut failures) {
                lacks(&what, &document, &id, &demands, &mut failures);
            }
        }
    }
    // A recording of something else: all but those that need nothing say what they need.
    let nothing = "cpus=2\n  bash-450 [001] 10.000000: sys_enter_read: fd: 3, buf: 0, count: 1\n  \
                   bash-450 [001] 10.100000: sys_enter_read: fd: 3, buf: 0, count: 1\n";
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("nothing.txt");
    fs::write(&file, nothing).unwrap();
    let document = common::json(&["diagnose"], &file).unwrap();
    assert!(document["findings"].as_array().unwrap().is_empty());
    for id in ids() {
        if ["lossy-recording", "tracing-disturbs"].contains(&id.as_str()) {
            continue;
        }
        lacks("nothing", &document, &id, &[], &mut failures);
    }
    failures.finish(ids().len() - 2);
}

fn lacks(what: &str, document: &Value, id: &str, demands: &[Demand], failures: &mut Failures) {
    let unknown = document["unknown"].as_array().cloned().unwrap_or_default();
    let Some(one) = unknown.iter().find(|one| one["id"] == id) else {
        failures.check(false, || {
            let found = finding(document, id).map(|(_, finding)| &finding["evidence"]);
            format!("{what}: {id} does not say what it needs; it found {found:#?}")
        });
        return;
    };
    let needs = one["needs"].as_str().unwrap_or_default();
    let lower = needs.to_lowercase();
    failures.check(
        ["record", "give", "add"]
            .iter()
            .any(|word| lower.contains(word))
            && needs.ends_with('.'),
        || format!("{what}: {id}: {needs}"),
    );
    for demand in demands {
        failures.check(
            demand.what == "says" && needs.contains(&demand.text),
            || format!("{what}: {id} does not say {}: {needs}", demand.text),
        );
    }
}
