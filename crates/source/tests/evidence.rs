//! Evidence is data: of every finding in the shipped corpus and in the recordings made by hand for rules, what stands
//! in its sentences stands in its numbers too, and times and threads are the recording's.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use analysis::{FunctionNamer, Picture, Study};
use paths::Paths;
use rules::{Case, Evidence, Finding};
use source::{ReaderOptions, RecordingBytes};
use symbols::KernelFunctions;

/// What a sentence may have of numbers that are none of the recording's: limits, addresses, names of things.
const CONSTANTS: [&str; 16] = [
    "x86",
    "arm64",
    "5 ms",
    "17 ms",
    "vector 236",
    "1000 a second",
    "100 us",
    "0xfee00000",
    "0xfed000f0",
    "p50",
    "p90",
    "p99",
    "1st percentile",
    "x2APIC",
    "4 KiB",
    "HV_X64_MSR_SINTx",
];

/// What is known of a recording.
struct Known {
    picture: Picture,
    threads: BTreeSet<i32>,
}

/// Walks a recording as `trapline diagnose` does.
fn look(bytes: Vec<u8>) -> Option<Known> {
    let recording = RecordingBytes::from_bytes("input", bytes).ok()?;
    let options = ReaderOptions {
        symbols: true,
        threads: 2,
        ..ReaderOptions::default()
    };
    let reader = recording.reader(options).ok()?;
    let builtin = rules::PATHS.iter().filter_map(|name| paths::builtin(name));
    let follower = Paths::new(builtin.collect());
    let mut study = Study::default();
    let (handles, sampled) = crate::support::pictures::ask(&mut study, follower);
    let outcome = reader.walk(&mut study);
    let mut answers = study.finish();
    let threads = study.walked().machine.threads().iter();
    let threads = threads.map(|(tid, _)| tid).collect();
    let mut picture =
        crate::support::pictures::picture(handles, &mut answers, &study, outcome.quality);
    let own = reader.formats().map(|formats| &formats.kallsyms);
    let functions = KernelFunctions::new(own, None);
    let namer = FunctionNamer {
        host: functions,
        ..FunctionNamer::default()
    };
    let sampled = answers.take(sampled);
    picture.profile = sampled.report(&study.walked(), namer, &|_| true);
    Some(Known { picture, threads })
}

/// Returns the digits of a sentence that its data do not have.
fn unexplained(evidence: &Evidence) -> String {
    let mut text = evidence.text.clone();
    let mut parts: Vec<&str> = evidence.names.iter().map(String::as_str).collect();
    parts.extend(evidence.numbers.iter().map(|number| number.text.as_str()));
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
        text = text.replacen(part, "·", 1);
    }
    for constant in CONSTANTS {
        text = text.replace(constant, "·");
    }
    match text.contains(|c: char| c.is_ascii_digit()) {
        true => text,
        false => String::new(),
    }
}

fn check(name: &str, known: &Known, finding: &Finding, failures: &mut Vec<String>) {
    let mut fail = |what: String| failures.push(format!("{name}, {}: {what}", finding.rule.id));
    let has_numbers = finding.evidence.iter().any(|one| !one.numbers.is_empty());
    // A file that is cut off has none.
    if !has_numbers && finding.rule.id != "lossy-recording" {
        fail("there is no number in its evidence".to_owned());
    }
    let (start, end) = (known.picture.info.start, known.picture.info.end);
    for evidence in &finding.evidence {
        let rest = unexplained(evidence);
        if !rest.is_empty() {
            fail(format!("numbers that are no data: {rest}"));
        }
        for window in &evidence.windows {
            let inside = Some(window.start_ns) >= start && Some(window.end_ns) <= end;
            if !inside || window.start_ns > window.end_ns {
                fail(format!("{window:?} is not within {start:?} to {end:?}"));
            }
        }
        for instance in &evidence.instances {
            let last = instance.begin_ns.checked_add(instance.total_ns);
            if Some(instance.begin_ns) < start
                || last > end
                || paths::builtin(&instance.path).is_none()
            {
                fail(format!("{instance:?} is not in the recording"));
            }
        }
        for tid in &evidence.threads {
            if !known.threads.contains(tid) {
                fail(format!(
                    "thread {tid} is not in the recording: {}",
                    evidence.text
                ));
            }
        }
        for row in &evidence.rows {
            let mut tables = known.picture.exits.iter();
            let table = tables.find(|report| report.table.name() == row.table);
            if !table.is_some_and(|report| report.rows.iter().any(|one| one.key == row.key)) {
                fail(format!("{row:?} is no row"));
            }
        }
    }
}

/// Checks all findings of a recording, and returns whose they are, how many windows they have, and instances.
fn findings(
    name: &str,
    bytes: Vec<u8>,
    failures: &mut Vec<String>,
) -> Vec<(&'static str, usize, usize)> {
    let Some(known) = look(bytes) else {
        return Vec::new();
    };
    let case = Case {
        picture: &known.picture,
        facts: None,
        domain: None,
    };
    let mut found = Vec::new();
    for finding in &rules::diagnose(&[case]).findings {
        check(name, &known, finding, failures);
        let evidence = || finding.evidence.iter();
        let windows = evidence().map(|one| one.windows.len()).sum();
        let instances = evidence().map(|one| one.instances.len()).sum();
        found.push((finding.rule.id, windows, instances));
    }
    found
}

#[test]
fn evidence_of_recordings_made_by_hand_is_data() {
    let mut failures = Vec::new();
    let mut rules = BTreeSet::new();
    let (mut windows, mut instances) = (0, 0);
    for rule in rules::all() {
        for file in fixtures::handmade::fixtures(rule.id, "positive") {
            let text = fs::read_to_string(&file).unwrap();
            let name = file.to_string_lossy().into_owned();
            for (id, of_windows, of_instances) in findings(
                &name,
                fixtures::handmade::recording(&text).bytes,
                &mut failures,
            ) {
                rules.insert(id);
                windows += of_windows;
                instances += of_instances;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // Some need the facts of a host, or a definition.
    assert!(rules.len() >= 15, "{rules:?}");
    assert!(
        windows > 5 && instances > 5,
        "{windows} windows, {instances} instances"
    );
}

#[test]
fn evidence_of_the_corpus_is_data() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let manifest = fs::read_to_string(corpus.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let mut failures = Vec::new();
    let mut found = 0;
    for case in manifest.as_array().unwrap() {
        let name = case["recording"].as_str().unwrap();
        let bytes = fs::read(corpus.join(name)).unwrap();
        // The larger ones say nothing else.
        if bytes.len() < 400_000 {
            found += findings(name, bytes, &mut failures).len();
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(found > 20, "{found}");
}
