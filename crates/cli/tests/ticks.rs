//! Recordings whose clock counts ticks of unknown rate: no field and no text calls them nanoseconds.

use crate::common::{Case, Failures, all_cases, file, raw_json, run};
use serde_json::Value;

/// Fields that are nanoseconds whatever the clock counts (`render::clock_unit`).
const ALWAYS_NANOSECONDS: [&str; 3] = ["runtime_ns", "event_ns", "recorder_ns"];

/// Returns the recordings of all corpora whose clock counts ticks.
fn in_ticks() -> Vec<Case> {
    let mut cases = all_cases();
    cases.retain(|case| {
        let info = raw_json(&["info"], &case.path);
        info.is_ok_and(|info| info["start_ticks"].is_u64())
    });
    assert!(!cases.is_empty(), "no recording of the corpus counts ticks");
    cases
}

const JSON: [&[&str]; 16] = [
    &["info"],
    &["events"],
    &["events", "--console"],
    &["exits", "--event", "vmexit,ioport,mmio,msr", "--by", "vcpu"],
    &["vcpus"],
    &["sched"],
    &["irqs"],
    &["paths"],
    &["paths", "--each"],
    &["paths", "--path", "user-exit", "--instance", "1"],
    &["flame"],
    &["flame", "--off-cpu"],
    &["flame", "--guest-exits"],
    &["diagnose"],
    &["report"],
    &["export", "--as", "json", "-o", "-"],
];

/// Calls a function for each field of a document: its place, its object, its name.
fn each(value: &Value, place: &str, then: &mut dyn FnMut(&str, &Value, &str)) {
    if let Some(object) = value.as_object() {
        for (name, inner) in object {
            then(place, value, name);
            each(inner, &format!("{place}.{name}"), then);
        }
    }
    for item in value.as_array().into_iter().flatten() {
        each(item, place, then);
    }
}

#[test]
fn documents_have_ticks_in_fields_of_their_own() {
    let mut failures = Failures::default();
    for case in in_ticks() {
        let mut ticks = 0;
        for args in JSON {
            // Some say that they have nothing to show.
            let Ok(document) = raw_json(args, &case.path) else {
                continue;
            };
            each(&document, "", &mut |place, object, name| {
                let what = || format!("{} {args:?}: {place}.{name}", case.name);
                let Some(stem) = name.strip_suffix("_ns") else {
                    ticks += usize::from(name.ends_with("_ticks") && object[name].is_u64());
                    return;
                };
                if ALWAYS_NANOSECONDS.contains(&name) {
                    return;
                }
                failures.check(object[name].is_null(), || {
                    format!("{} is {}", what(), object[name])
                });
                let twin = object.get(format!("{stem}_ticks"));
                failures.check(twin.is_some(), || format!("{} has no ticks", what()));
            });
        }
        failures.check(ticks > 100, || format!("{}: {ticks} fields", case.name));
    }
    failures.finish(1000);
}

#[test]
fn csv_has_ticks_in_columns_of_their_own() {
    let mut failures = Failures::default();
    let csv: [&[&str]; 12] = [
        &["exits"],
        &["vcpus"],
        &["sched"],
        &["sched", "--by", "cpu"],
        &["paths"],
        &["paths", "--each"],
        &["events"],
        &["flame", "--off-cpu"],
        &["diagnose"],
        &["report"],
        &["export", "--as", "csv", "-o", "-"],
        &["export", "--as", "csv", "--table", "exits", "-o", "-"],
    ];
    for case in in_ticks() {
        for args in csv {
            let path = case.path.display().to_string();
            let run = run(args
                .iter()
                .copied()
                .chain([path.as_str(), "--format", "csv"]));
            let text = run.text();
            let mut lines = text.lines();
            let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
            failures.check(run.status == 0 && !head.is_empty(), || {
                format!("{} {args:?}: {}", case.name, run.stderr)
            });
            let mut times = 0;
            for (at, name) in head.iter().enumerate() {
                let Some(stem) = name.strip_suffix("_ns") else {
                    continue;
                };
                if ALWAYS_NANOSECONDS.contains(name) {
                    continue;
                }
                times += 1;
                let next = head.get(at + 1).copied();
                failures.equal(name, &next, &Some(format!("{stem}_ticks").as_str()));
                // Names with commas are quoted, and stand behind these.
                for line in text.lines().skip(1).filter(|line| !line.contains('"')) {
                    let cell = line.split(',').nth(at);
                    failures.equal(name, &cell, &Some(""));
                }
            }
            failures.check(times > 0, || format!("{} {args:?}: no times", case.name));
        }
    }
    failures.finish(1000);
}

/// Returns durations in a text: a number with a unit right behind it.
fn durations(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| c.is_whitespace() || "(),;|`".contains(c));
    let words = words.map(|word| word.trim_end_matches(['.', ':']));
    let is_duration = |word: &&str| {
        let units = ["ns", "us", "ms", "s"];
        let mut numbers = units.iter().filter_map(|unit| word.strip_suffix(unit));
        numbers.any(|number| !number.is_empty() && number.parse::<f64>().is_ok())
    };
    words.filter(is_duration).collect()
}

#[test]
fn no_text_says_seconds() {
    let mut failures = Failures::default();
    let ns = file("x86/format-variants/v6.dat.zst").display().to_string();
    for case in in_ticks() {
        let path = case.path.display().to_string();
        let all: [&[&str]; 17] = [
            &["info"],
            &["exits"],
            &["vcpus"],
            &["vcpus", "--wide"],
            &["sched", "--histogram"],
            &["sched", "--by", "cpu"],
            &["paths"],
            &["paths", "--each", "--path", "halt-wake"],
            &["paths", "--path", "user-exit", "--instance", "1"],
            &["flame", "--off-cpu"],
            &["diagnose"],
            &["report"],
            &["report", "--full"],
            &["report", "--brief"],
            &["export", "--as", "md", "-o", "-"],
            &["compare", "--all", &path],
            &["compare", "--all", &ns],
        ];
        for args in all {
            let run = run(args.iter().copied().chain([path.as_str()]));
            let text = run.text();
            failures.equal(&format!("{args:?}: {}", run.stderr), &run.status, &0);
            let said = durations(&text);
            // The length of a recording whose clock counts nanoseconds.
            failures.check(said.is_empty(), || {
                format!("{} {args:?}: {said:?}", case.name)
            });
        }
    }
    failures.finish(20);
}

#[test]
fn nothing_in_ticks_is_compared_as_a_time() {
    let ns = file("x86/format-variants/v6.dat.zst");
    for case in in_ticks() {
        let path = case.path.display().to_string();
        for other in [path.as_str(), &ns.display().to_string()] {
            for each_side in [&["compare", "--all"][..], &["compare", "--each"]] {
                let args: Vec<&str> = each_side.iter().copied().chain([other]).collect();
                let Ok(document) = raw_json(&args, &case.path) else {
                    panic!("{args:?} fails");
                };
                each(&document, "", &mut |place, object, name| {
                    let value = &object[name];
                    assert!(name != "unit" || *value != "ns", "{place}: {object}");
                    let time = name.ends_with("_ns") || name.ends_with("_ticks");
                    assert!(!time || value.is_null(), "{place}.{name}: {value}");
                });
            }
        }
    }
}
