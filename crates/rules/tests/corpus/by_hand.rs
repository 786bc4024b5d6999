//! Every rule by itself: what it has to find, and the near miss in which it must not.
//!
//! `by_hand/ID/` has recordings made by hand, as the tools print them, and printed tables:
//!
//! ```text
//! # What the recording shows.
//! #= says 300 of them
//! #* 300 times, every 500 us
//!        CPU 0/KVM-1010  [001]    10.000000: kvm_exit:  reason IO_INSTRUCTION rip 0xffffffff81a17a0b info1 6080003
//! #*
//! ```
//!
//! `positive*.txt` has to lead to the rule's finding, `negative*.txt` to its being looked for and not found,
//! `unknown*.txt` to its saying what has to be recorded. `NAME.facts.json` (or `.facts.log`) and `NAME.domain.xml`
//! beside one are given with it. Lines between `#*` are repeated, each time later by the step, and all lines are then
//! put in the order of their times; `{page}` in one of them is another page each time.
//! With a line `#! perf.data` the text is made into the recording of which it is the text
//! (`fixtures/src/perf_data.rs`). Lines `#=` are what has to be true of the finding:
//!
//! - `says TEXT`: its title or its evidence says so (of a rule that cannot decide: what it needs),
//! - `severity high`, `first`, `confidence 0.5`: how it is ranked, and how sure it is,
//! - `remedy TEXT`: what is to be done first says so, and `other TEXT`: one of the others,
//! - `note TEXT`: what is particular to the first remedy here,
//! - `patch TEXT`: a line that the patch adds,
//! - `cost TIME`: what it costs, in nanoseconds, exactly.
//!
//! Near misses are the same situation in health, not an empty file.

use std::fs;
use std::path::Path;

use fixtures::Failures;
use fixtures::handmade::{self, fixtures, folder};
use rules::{Diagnosis, Finding};

use crate::{CaseFiles, DiagnosedFiles, diagnosed};

/// Returns all ids.
fn ids() -> Vec<&'static str> {
    rules::all().iter().map(|rule| rule.id).collect()
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

/// Diagnoses a fixture, with what stands beside it.
fn diagnose(fixture: &Path) -> (Vec<Demand>, Result<DiagnosedFiles, session::Error>) {
    let text = fs::read_to_string(fixture).unwrap();
    let place = tempfile::tempdir().unwrap();
    let recording = place.path().join(fixture.file_name().unwrap());
    let written = handmade::recording(&text);
    fs::write(&recording, written.bytes).unwrap();
    let symbols = (!written.guest_symbols.is_empty()).then(|| {
        let symbols = place.path().join("guest-kallsyms");
        fs::write(&symbols, written.guest_symbols).unwrap();
        symbols
    });
    let beside = |ending: &str| Some(fixture.with_extension(ending)).filter(|file| file.exists());
    let beside = CaseFiles {
        facts: beside("facts.json").or_else(|| beside("facts.log")),
        domain: beside("domain.xml"),
        guest_kallsyms: symbols,
        ..CaseFiles::default()
    };
    (demands(&text), diagnosed(&[recording], beside))
}

/// Checks what the contract promises of a finding.
fn contract(what: &str, finding: &Finding, failures: &mut Failures) {
    for (field, text) in [
        ("id", finding.rule.id),
        ("title", &finding.title),
        ("cause", &finding.cause),
    ] {
        failures.check(!text.is_empty(), || format!("{what}: {field} is empty"));
    }
    let confidence = finding.confidence;
    failures.check(confidence > 0.0 && confidence <= 1.0, || {
        format!("{what}: confidence {confidence}")
    });
    let share = finding.cost.map_or(0.0, |cost| cost.share);
    failures.check((0.0..=1.0).contains(&share), || {
        format!("{what}: a share of {share}")
    });
    let evidence: Vec<&str> = finding
        .evidence
        .iter()
        .map(|one| one.text.as_str())
        .collect();
    failures.check(!evidence.is_empty(), || format!("{what}: no evidence"));
    for text in &evidence {
        failures.check(text.ends_with('.'), || {
            format!("{what}: evidence is no sentence: {text}")
        });
    }
    let has_number = |text: &&str| text.contains(|c: char| c.is_ascii_digit());
    failures.check(evidence.iter().any(has_number), || {
        format!("{what}: evidence without a number")
    });
    failures.check(!finding.remedies.is_empty(), || {
        format!("{what}: no remedy")
    });
    for advice in &finding.remedies {
        let remedy = &advice.remedy;
        for (field, text) in [
            ("do", remedy.what),
            ("price", remedy.price),
            ("check", remedy.check),
        ] {
            failures.check(!text.is_empty(), || {
                format!("{what}: remedy without {field}")
            });
        }
    }
}

fn finding<'d>(diagnosis: &'d Diagnosis, id: &str) -> Option<(usize, &'d Finding)> {
    let mut findings = diagnosis.findings.iter().enumerate();
    findings.find(|(_, finding)| finding.rule.id == id)
}

/// Checks what a fixture demands of a finding.
fn meets(
    what: &str,
    (at, finding): (usize, &Finding),
    demand: &Demand,
    patch: &str,
) -> Option<String> {
    let text = demand.text.as_str();
    let mut said: Vec<&str> = finding
        .evidence
        .iter()
        .map(|one| one.text.as_str())
        .collect();
    said.push(&finding.title);
    let remedies: Vec<&str> = finding.remedies.iter().map(|one| one.remedy.what).collect();
    let (severity, cost) = (finding.severity().name(), finding.cost.map(|cost| cost.ns));
    let met = match demand.what.as_str() {
        "says" => said.iter().any(|line| line.contains(text)),
        "severity" => severity == text,
        "confidence" => text.parse() == Ok(finding.confidence),
        "first" => at == 0,
        "remedy" => remedies.first().is_some_and(|one| one.contains(text)),
        "other" => remedies.iter().skip(1).any(|one| one.contains(text)),
        "note" => {
            let note = finding.remedies.first().and_then(|one| one.note.as_ref());
            note.is_some_and(|note| note.contains(text))
        }
        "cost" => cost.is_some() && cost == text.parse().ok(),
        "patch" => patch.lines().any(|line| {
            line.strip_prefix('+')
                .is_some_and(|line| line.trim() == text)
        }),
        other => panic!("{what}: {other} is no demand"),
    };
    (!met).then(|| {
        format!(
            "{what}: not so: {} {text}\n    number {at}, {severity}, {cost:?}\n    {}\n    {}",
            demand.what,
            said.join("\n    "),
            remedies.join("\n    "),
        )
    })
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
        assert!(ids.contains(&name.as_str()), "{name} is no rule");
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
        for fixture in fixtures(id, "positive") {
            let what = name(&fixture);
            let (demands, found) = diagnose(&fixture);
            let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
            let diagnosis = &found.diagnosis;
            let Some(finding) = finding(diagnosis, id) else {
                let others = (&diagnosis.findings, &diagnosis.unchecked);
                failures.check(false, || format!("{what}: not found, but {others:#?}"));
                continue;
            };
            failures.check(!demands.is_empty(), || format!("{what} demands nothing"));
            for demand in &demands {
                let missed = meets(&what, finding, demand, &found.patch);
                failures.check(missed.is_none(), || missed.unwrap_or_default());
            }
            for finding in &diagnosis.findings {
                contract(&what, finding, &mut failures);
            }
            // As text, all of it is there too.
            let table = render::diagnose::text(diagnosis, render::diagnose::CauseList::Named, 80);
            failures.check(table.contains(id), || format!("{what}: as text: {table}"));
        }
    }
    failures.finish(ids().len() * 10);
}

#[test]
fn near_misses_are_none() {
    let mut failures = Failures::default();
    for id in ids() {
        for fixture in fixtures(id, "negative") {
            let what = name(&fixture);
            let (_, found) = diagnose(&fixture);
            let DiagnosedFiles { diagnosis, .. } =
                found.unwrap_or_else(|error| panic!("{what}: {error}"));
            let clear = diagnosis.clear.iter().any(|rule| rule.id == id);
            failures.check(clear, || {
                let found = finding(&diagnosis, id).map(|(_, finding)| &finding.evidence);
                format!("{what}: {found:#?}, and unknown {:#?}", diagnosis.unchecked)
            });
        }
    }
    failures.finish(ids().len());
}

#[test]
fn what_cannot_be_decided_is_said() {
    let mut failures = Failures::default();
    for id in ids() {
        for fixture in fixtures(id, "unknown") {
            let what = name(&fixture);
            let (demands, found) = diagnose(&fixture);
            let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
            needs(&what, &found.diagnosis, id, &demands, &mut failures);
        }
    }
    // A recording of something else: all but those that need nothing say what they need.
    let nothing = "cpus=2\n  bash-450 [001] 10.000000: sys_enter_read: fd: 3, buf: 0, count: 1\n  \
                   bash-450 [001] 10.100000: sys_enter_read: fd: 3, buf: 0, count: 1\n";
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("nothing.txt");
    fs::write(&file, nothing).unwrap();
    let diagnosis = diagnosed(&[file], CaseFiles::default()).unwrap().diagnosis;
    assert!(diagnosis.findings.is_empty());
    for id in ids() {
        if ["lossy-recording", "tracing-disturbs"].contains(&id) {
            continue;
        }
        needs("nothing", &diagnosis, id, &[], &mut failures);
    }
    failures.finish(ids().len() - 2);
}

fn needs(what: &str, diagnosis: &Diagnosis, id: &str, demands: &[Demand], failures: &mut Failures) {
    let Some(one) = diagnosis.unchecked.iter().find(|one| one.rule.id == id) else {
        failures.check(false, || {
            let found = finding(diagnosis, id).map(|(_, finding)| &finding.evidence);
            format!("{what}: {id} does not say what it needs; it found {found:#?}")
        });
        return;
    };
    let needs = one.what.as_str();
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
