//! `trapline diagnose` with input that is wrong, damaged or meant to do harm: one clear line on standard error and an
//! exit status, or a warning beside what can be said; never a crash, and nothing read that was not named.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Failures, Run, file, run, run_with};
use serde_json::Value;

/// A table that all of these runs could be used on.
fn table() -> String {
    path(&file(
        "seed-text/case2-windows-before.perf-kvm-stat-vmexit.txt",
    ))
}

fn ports() -> String {
    path(&file(
        "seed-text/case2-windows-before.perf-kvm-stat-ioport.txt",
    ))
}

fn recording() -> String {
    path(&file("x86/clocksource-acpi_pm/loop/perf.data.guest.zst"))
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn diagnose(args: &[&str]) -> Run {
    run(["diagnose"].iter().chain(args))
}

fn json(args: &[&str]) -> Value {
    let run = diagnose(&[&["--format", "json"], args].concat());
    run.json()
        .unwrap_or_else(|error| panic!("{args:?}: {error}"))
}

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let file: PathBuf = folder.join(name);
    fs::write(&file, bytes).unwrap();
    path(&file)
}

/// Checks that a run failed in one line that says all of some words.
fn refused(failures: &mut Failures, what: &str, run: &Run, words: &[&str]) {
    failures.equal(&format!("{what}: exit status"), &run.status, &1);
    failures.check(run.stdout.is_empty(), || {
        format!("{what}: prints {}", run.text())
    });
    failures.check(
        run.stderr.lines().count() == 1 && run.stderr.starts_with("trapline: "),
        || format!("{what}: {}", run.stderr),
    );
    for word in words {
        failures.check(run.stderr.contains(word), || {
            format!("{what}: does not say {word:?}: {}", run.stderr)
        });
    }
}

const SECRET: &str = "what-nobody-named";

#[test]
fn definitions_that_are_none_are_refused_and_entities_are_never_read() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let secret = write(dir, "secret.txt", SECRET);
    let declared = |what: &str, body: &str| {
        format!(
            "<?xml version='1.0'?>\n<!DOCTYPE domain [{what}]>\n<domain type='kvm'><name>{body}</name></domain>\n"
        )
    };
    let mut bombs = String::from("<!ENTITY a0 'ha'>");
    for n in 1..12 {
        let before = format!("&a{};", n - 1).repeat(10);
        bombs.push_str(&format!("<!ENTITY a{n} '{before}'>"));
    }
    let deep = "<a>".repeat(200_000);
    let inputs: &[(&str, Vec<u8>, &[&str])] = &[
        (
            "an external entity",
            declared(&format!("<!ENTITY x SYSTEM 'file://{secret}'>"), "&x;").into(),
            &["line 2", "document type declaration"],
        ),
        (
            "a parameter entity",
            declared(&format!("<!ENTITY % x SYSTEM 'file://{secret}'> %x;"), "a").into(),
            &["document type declaration"],
        ),
        (
            "an external subset",
            format!("<!DOCTYPE domain SYSTEM 'file://{secret}'><domain/>").into(),
            &["document type declaration"],
        ),
        ("entities in entities", declared(&bombs, "&a11;").into(), &["document type declaration"]),
        (
            "an entity that nobody declares",
            b"<domain type='kvm'><name>&x;</name></domain>".into(),
            &["line 1", "'&x;'"],
        ),
        (
            "an include",
            format!(
                "<domain xmlns:xi='http://www.w3.org/2001/XInclude'><name><xi:include href='{secret}' \
                 parse='text'/></name></domain"
            )
            .into(),
            &["line 1"],
        ),
        ("a wrong end", b"<domain>\n<name>a</nam></domain>".into(), &["line 2", "</name>"]),
        ("a broken end", b"<domain type='kvm'>\n<vcpu>2".into(), &["line 2", "cut off"]),
        ("a network", b"<network><name>a</name></network>".into(), &["<network>", "<domain>"]),
        ("an empty file", b"".into(), &["expected <domain>"]),
        ("blanks", b"\n\n   \n".into(), &["expected <domain>"]),
        ("a program", b"\x7fELF\x02\x01\x01\0\0\0\xff\xfe".into(), &["expected"]),
        ("UTF-16", b"\xff\xfe<\0d\0o\0m\0a\0i\0n\0/\0>\0".into(), &["expected"]),
        ("JSON", b"{\"domain\": 1}".into(), &["expected <domain>"]),
        ("a deep document", deep.into(), &["nested deeper"]),
        ("a long one", vec![b' '; 5 << 20], &["bytes", "expected"]),
    ];
    let mut failures = Failures::default();
    let (table, ports) = (table(), ports());
    for (what, bytes, words) in inputs {
        let domain = write(dir, "guest.xml", bytes);
        for more in [&["--patch"][..], &["--format", "json"]] {
            let args = [&["--domain", &domain, &table, &ports][..], more].concat();
            let run = diagnose(&args);
            let words = [&["--domain", "guest.xml"], *words].concat();
            refused(&mut failures, what, &run, &words);
            failures.check(!run.stderr.contains(SECRET), || {
                format!("{what}: {}", run.stderr)
            });
        }
    }
    let nowhere = path(&dir.join("nowhere.xml"));
    for (what, domain, word) in [
        ("a missing one", nowhere.as_str(), "no such file"),
        ("a directory", &path(dir), "is a directory"),
        ("a recording", &recording(), "expected"),
    ] {
        let run = diagnose(&["--domain", domain, &table]);
        refused(&mut failures, what, &run, &["--domain", word, "expected"]);
    }
    failures.finish(150);
}

#[test]
fn odd_definitions_are_read_as_far_as_they_go() {
    let folder = tempfile::tempdir().unwrap();
    let mut failures = Failures::default();
    for (what, text) in [
        ("no vCPU", "<domain type='kvm'><vcpu>0</vcpu></domain>"),
        (
            "more than there can be",
            "<domain type='kvm'><vcpu>99999999999999999999</vcpu></domain>",
        ),
        (
            "fewer than none",
            "<domain type='kvm'><vcpu>-1</vcpu></domain>",
        ),
        ("nothing", "<domain/>"),
        (
            "pins of vCPUs that are not there",
            "<domain type='kvm'><vcpu>1</vcpu><cputune><vcpupin vcpu='7' cpuset='1-0,x'/></cputune></domain>",
        ),
        (
            "everything twice",
            "<domain><clock/><clock/><features/><features/><os/><os/></domain>",
        ),
    ] {
        let domain = write(folder.path(), "guest.xml", text);
        let (table, ports) = (table(), ports());
        let facts = write(
            folder.path(),
            "facts.json",
            r#"{"facts_version": 1, "host": {"online": "0-3", "nodes": [{"node": 0, "cpus": "0-3"}]}}"#,
        );
        let document = json(&["--domain", &domain, "--facts", &facts, &table, &ports]);
        failures.equal(
            what,
            &document["findings"][0]["id"].as_str(),
            &Some("timer-port-exits"),
        );
        let patch = diagnose(&["--patch", "--domain", &domain, &table, &ports]);
        failures.check(
            patch.status == 0 || patch.stderr.lines().count() == 1,
            || format!("{what}: {} {}", patch.status, patch.stderr),
        );
    }
    failures.finish(12);
}

fn warnings(document: &Value) -> String {
    document["quality"]["warnings"].to_string()
}

#[test]
fn facts_of_another_version_and_damaged_ones() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let later = write(
        dir,
        "later.json",
        r#"{"facts_version": 99, "host": {"isolated": "0-1", "tomorrow": {"a": [1]}}, "more": true}"#,
    );
    let mut failures = Failures::default();
    let inputs = [recording(), table()];
    for input in &inputs {
        let document = json(&["--facts", &later, input]);
        let said = warnings(&document);
        failures.check(
            said.contains("later version") && said.contains("99"),
            || format!("{input}: {said}"),
        );
    }
    // What is known of it counts: its isolated CPUs are enough to ask for more than facts.
    let document = json(&[
        "--facts",
        &later,
        &table(),
        "--rule",
        "host-tick-on-isolated-cpu",
    ]);
    let needs = document["unknown"][0]["needs"].as_str().unwrap_or_default();
    failures.check(needs.starts_with("Record"), || needs.to_owned());
    for (what, text, words) in [
        (
            "cut off",
            &br#"{"facts_version": 1, "host": {"cpufreq": [{"governor": "onde"#[..],
            &["JSON that cannot be read", "line 1"][..],
        ),
        (
            "of another shape",
            br#"{"facts_version": "one", "host": 7, "vms": {"a": 1}}"#,
            &["facts_version", "expected a whole number"],
        ),
        ("empty", b"", &["says nothing"]),
        ("an array", b"[1, 2, 3]", &["says nothing"]),
        ("a program", b"\x7fELF\0\0\0\xff", &["says nothing"]),
        ("XML", b"<domain/>", &["says nothing"]),
    ] {
        let facts = write(dir, "facts.json", text);
        let run = diagnose(&["--facts", &facts, &table()]);
        refused(&mut failures, what, &run, words);
    }
    // Numbers beyond all bounds, and members of the wrong kind, are noted and passed over.
    let odd = write(
        dir,
        "odd.json",
        r#"{"facts_version": 1, "host": {"online": "0-999999999", "hz": -1, "isolated": "1", "cpus": [7, {"cpu": 1e99}],
            "cpufreq": [{"governor": 3}], "kvm_debug": {"halt_poll_fail_ns": "much"}, "modules": {"kvm": 1}}}"#,
    );
    let document = json(&["--facts", &odd, &recording()]);
    failures.check(warnings(&document).contains("odd.json"), || {
        warnings(&document)
    });
    let folder = path(dir);
    let run = diagnose(&["--facts", &folder, &table()]);
    refused(&mut failures, "a directory", &run, &["is a directory"]);
    failures.finish(20);
}

#[test]
fn inputs_that_are_neither_recordings_nor_tables() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut failures = Failures::default();
    for (what, input, words) in [
        ("empty", write(dir, "empty.txt", b""), &["is empty"][..]),
        ("a directory", path(dir), &["is a directory"]),
        ("missing", path(&dir.join("nowhere")), &["no such file"]),
        (
            "a program",
            write(dir, "ls", b"\x7fELF\x02\x01\x01\0\0\0"),
            &["ELF"],
        ),
        (
            "a letter",
            write(dir, "letter.txt", b"Dear all,\n\nit is slow.\n"),
            &["expected"],
        ),
    ] {
        refused(&mut failures, what, &diagnose(&[&input]), words);
        // Among others that can be read, too: there is no answer for half of what was asked.
        refused(&mut failures, what, &diagnose(&[&table(), &input]), words);
    }
    failures.finish(40);
}

#[test]
fn options_that_cannot_be() {
    let mut failures = Failures::default();
    let (table, recording) = (table(), recording());
    let no_rule = diagnose(&["--rule", "nosuch", &table]);
    failures.check(
        no_rule.status == 2
            && no_rule.stderr.contains("nosuch")
            && no_rule.stderr.contains("trapline rules"),
        || format!("--rule: {} {}", no_rule.status, no_rule.stderr),
    );
    let filtered = diagnose(&["--cpu", "1", &table]);
    refused(
        &mut failures,
        "--cpu of a table",
        &filtered,
        &["cannot be filtered"],
    );
    let nobody = diagnose(&["--vm", "nosuch", &recording]);
    refused(&mut failures, "--vm", &nobody, &["nosuch", "trapline info"]);
    for (what, args) in [
        ("a recording and a definition", &["-", "--domain", "-"][..]),
        ("two recordings", &["-", "-"]),
        ("a recording and facts", &["-", "--facts", "-"]),
    ] {
        let run = run_with(
            ["diagnose"].iter().chain(args),
            fs::read(&table).unwrap().as_slice(),
        );
        let said = ["standard input", "once"]
            .iter()
            .all(|word| run.stderr.contains(word));
        failures.check(run.status == 2 && run.stdout.is_empty() && said, || {
            format!("{what}: {} {}", run.status, run.stderr)
        });
    }
    for args in [&["--rule"][..], &["--format", "xml", table.as_str()]] {
        let run = diagnose(args);
        failures.check(
            run.status == 2 && run.stdout.is_empty() && run.stderr.starts_with("error: "),
            || format!("{args:?}: {} {}", run.status, run.stderr),
        );
    }
    failures.finish(15);
}

#[test]
fn a_patch_that_nothing_asks_for_is_empty_and_says_so() {
    let domain = path(&file("seed-text/case2-win10.domain.xml"));
    let good = path(&file("seed-text/case5-good-host.perf-sched-latency.txt"));
    let run = diagnose(&["--patch", "--domain", &domain, &good]);
    assert_eq!((run.status, run.text().as_str()), (0, ""));
    assert!(
        run.stderr.contains("no finding asks for a change"),
        "{}",
        run.stderr
    );
}

#[test]
fn recordings_and_tables_together_say_which_of_them_shows_it() {
    let (recording, ports) = (recording(), ports());
    let document = json(&[&recording, &ports]);
    let findings = document["findings"].as_array().unwrap();
    // What recording takes is bounded beside it, which is no more than low.
    let reported = findings.iter().filter(|one| one["severity"] != "low");
    assert_eq!(reported.count(), 1, "{findings:#?}");
    assert_eq!(findings[0]["id"], "timer-port-exits");
    // The recording shows how much of the time it is, so it says so; the table shows it as well.
    let inputs: Vec<&str> = findings[0]["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(inputs, [recording.as_str(), ports.as_str()]);
    assert_eq!(findings[0]["severity"], "high");
    assert_eq!(findings[0]["cost_of"], "vcpu_time");
}

#[test]
fn the_same_table_twice_is_reported_once_and_not_added_up() {
    let (table, ports) = (table(), ports());
    let once = json(&[&table, &ports]);
    let twice = json(&[&table, &table, &ports, &ports]);
    let of = |document: &Value| {
        let findings = document["findings"].as_array().unwrap();
        assert_eq!(findings.len(), 1, "{findings:#?}");
        let one = &findings[0];
        (
            one["id"].clone(),
            one["evidence"].clone(),
            one["cost_ns"].clone(),
        )
    };
    assert_eq!(of(&once), of(&twice));
}

#[test]
fn a_clock_of_ticks_has_no_seconds() {
    let ticks = path(&file("x86/format-variants/x86-tsc.dat.zst"));
    let document = json(&[&ticks]);
    assert!(
        warnings(&document).contains("ticks"),
        "{}",
        warnings(&document)
    );
    // Shares of the vCPUs' time are known, whatever a tick is; rates and times cannot.
    assert_eq!(document["findings"][0]["id"], "timer-port-exits");
    let unknown = document["unknown"].as_array().unwrap();
    for id in ["vcpu-migrates", "stalled-vcpu", "cpufreq-governor-kworker"] {
        let one = unknown.iter().find(|one| one["id"] == id);
        let needs = one
            .and_then(|one| one["needs"].as_str())
            .unwrap_or_default();
        assert!(
            needs.contains("counts ticks") && needs.contains("'trapline record'"),
            "{id}: {needs}"
        );
    }
}

#[test]
fn one_rule_alone_says_what_it_says_among_all() {
    let all = json(&[&recording()]);
    let one = json(&[&recording(), "--rule", "timer-port-exits"]);
    assert_eq!(one["findings"][0], all["findings"][0]);
    assert_eq!(one["findings"].as_array().unwrap().len(), 1);
    assert!(one["unknown"].as_array().unwrap().is_empty());
    let reported = |document: &Value| {
        let count = |name: &str| document[name].as_array().unwrap().len();
        ["findings", "unknown", "not_found", "not_of_machine"]
            .map(count)
            .iter()
            .sum::<usize>()
    };
    let rules = run(["rules", "--format", "json"]).json().unwrap();
    let rules = rules["rules"].as_array().unwrap().len();
    assert_eq!((reported(&one), reported(&all)), (1, rules));
}

/// Beside tables a definition is that of their guest, with or without the option.
#[test]
fn a_definition_among_the_inputs_is_used() {
    let domain = path(&file("seed-text/case2-win10.domain.xml"));
    let (table, ports) = (table(), ports());
    let patch = |args: &[&str]| diagnose(args).text();
    let with_option = patch(&["--patch", "--domain", &domain, &table, &ports]);
    assert!(with_option.contains("+"), "{with_option}");
    assert_eq!(patch(&["--patch", &table, &ports, &domain]), with_option);
    // Alone it is checked by itself, and nothing is changed where there is none.
    let alone = diagnose(&[&domain]);
    assert!(
        alone.text().contains("nothing was measured"),
        "{}",
        alone.text()
    );
    let none = diagnose(&["--patch", &table]);
    assert_eq!((none.status, none.text().as_str()), (2, ""));
    assert!(none.stderr.contains("--domain"), "{}", none.stderr);
}
