//! `trapline compare`: what belongs to one side, definitions, facts, symbols and results of benchmarks.

use std::path::{Path, PathBuf};

use fixtures::made_folder::MadeFolder;
use serde_json::Value;

use crate::common::{Run, file, list, run, text};

fn compare(a: &Path, b: &Path, more: &[&str]) -> Run {
    let mut args = vec!["compare".to_owned()];
    args.extend([a, b].map(|path| path.display().to_string()));
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    run(args)
}

fn document(a: &Path, b: &Path, more: &[&str]) -> Value {
    let mut all = vec!["--format=json"];
    all.extend_from_slice(more);
    let output = compare(a, b, &all);
    output.json().unwrap_or_else(|error| panic!("{error}"))
}

fn clocks() -> [PathBuf; 2] {
    ["kvm-clock", "hpet"]
        .map(|name| file(&format!("seed-text/case2-{name}.perf-kvm-stat-vmexit.txt")))
}

/// What a folder holds under a name, as an argument.
fn written(folder: &MadeFolder, name: &str, content: &str) -> String {
    folder.write(name, content).display().to_string()
}

#[test]
fn scores_stand_first_with_the_side_that_is_worse() {
    let [a, b] = clocks();
    let numbers = document(&a, &b, &["--a-score=287.60", "--b-score=280.83"]);
    let first = &list(&numbers["changes"])[0];
    assert_eq!(
        (text(&first["what"]).as_str(), text(&first["unit"]).as_str()),
        ("score score", "number")
    );
    assert_eq!(
        (first["a"].as_f64(), first["worse"].as_str()),
        (Some(287.6), Some("b"))
    );
    assert!(first["confidence"].is_null(), "{first}");
    let folder = MadeFolder::new();
    let run = |rate: &str| format!("CPU speed:\n    events per second:   {rate}\n");
    let (of_a, of_b) = (
        written(&folder, "a", &run("287.60")),
        written(&folder, "b", &run("280.83")),
    );
    let files = document(&a, &b, &["--a-score", &of_a, "--b-score", &of_b]);
    let first = &list(&files["changes"])[0];
    assert_eq!(text(&first["what"]), "score sysbench events per second");
    assert_eq!(
        (text(&first["unit"]).as_str(), first["worse"].as_str()),
        ("per_second", Some("b"))
    );
    let sentence = text(&first["text"]);
    assert!(sentence.contains("287.60 to 280.83 (-2 %)"), "{sentence}");
    // Without a result on the other side there is nothing to compare it with.
    let alone = document(&a, &b, &["--a-score", &of_a]);
    let notes: Vec<String> = list(&alone["notes"]).iter().map(text).collect();
    assert!(notes.concat().contains("B has no score"), "{notes:?}");
}

#[test]
fn work_of_a_benchmark_is_a_unit_of_recordings() {
    let folder = MadeFolder::new();
    let (a, b) = (
        folder.record("a", |_| {}),
        folder.record("b", |process| process.msr_rate *= 3.0),
    );
    let (of_a, of_b) = (
        written(&folder, "sa", "events per second: 100\n"),
        written(&folder, "sb", "events per second: 300\n"),
    );
    let found = document(&a, &b, &["--a-score", &of_a, "--b-score", &of_b]);
    let all = ["changes", "likely", "noise"];
    let all = all.iter().flat_map(|name| list(&found[*name]));
    let units = all.flat_map(|change| list(&change["per_work"]));
    let units: Vec<String> = units.map(|work| text(&work["of"])).collect();
    assert!(
        units.contains(&"request of sysbench".to_owned()),
        "{units:?}"
    );
}

#[test]
fn definitions_of_both_sides_are_compared() {
    let [a, b] = clocks();
    let folder = MadeFolder::new();
    let with = |timer: &str| {
        format!(
            "<domain type='kvm'><name>{timer}</name><vcpu>2</vcpu>\
             <clock offset='utc'><timer name='hpet' present='{timer}'/></clock></domain>"
        )
    };
    let (of_a, of_b) = (
        written(&folder, "a.xml", &with("no")),
        written(&folder, "b.xml", &with("yes")),
    );
    let apart = document(&a, &b, &["--a-domain", &of_a, "--b-domain", &of_b]);
    let differs: Vec<String> = list(&apart["differs"])
        .iter()
        .filter(|one| one["what"] == "definition")
        .map(|one| text(&one["text"]))
        .collect();
    assert_eq!(
        differs,
        ["The guests' definitions differ: timer hpet (off and on)."]
    );
    let same = document(&a, &b, &["--domain", &of_a]);
    let named = list(&same["differs"])
        .iter()
        .any(|one| one["what"] == "definition");
    assert!(!named, "{}", same["differs"]);
    let both = compare(&a, &b, &["--domain", &of_a, "--a-domain", &of_b]);
    assert_eq!(both.status, 2, "{}", both.stderr);
}

#[test]
fn files_of_one_side_are_read_for_that_side() {
    let folder = MadeFolder::new();
    let (a, b) = (folder.record("a", |_| {}), folder.record("b", |_| {}));
    let symbols = written(
        &folder,
        "kallsyms",
        "ffffffff81000000 T startup_64\nffffffff81000100 t x\n",
    );
    let plain = document(&a, &b, &[]);
    let apart = document(
        &a,
        &b,
        &["--a-kallsyms", &symbols, "--b-kallsyms", &symbols],
    );
    assert_eq!(plain["changes"], apart["changes"]);
    assert_eq!(plain["inputs"], apart["inputs"]);
    for option in [
        "--a-kallsyms",
        "--b-kallsyms",
        "--a-facts",
        "--b-facts",
        "--a-domain",
        "--b-score",
    ] {
        let output = compare(&a, &b, &[option, "/nowhere/file"]);
        assert_eq!(output.status, 1, "{option}: {}", output.stderr);
        assert!(
            output.stderr.contains("/nowhere/file"),
            "{option}: {}",
            output.stderr
        );
        assert!(output.stdout.is_empty(), "{option}");
    }
    // Whose is the third?
    let three = run([
        "compare".to_owned(),
        a.display().to_string(),
        b.display().to_string(),
        b.display().to_string(),
        "--a-kallsyms".to_owned(),
        symbols,
    ]);
    assert_eq!(three.status, 2, "{}", three.stderr);
    assert!(three.stderr.contains("--with"), "{}", three.stderr);
}

#[test]
fn two_tables_of_one_text_have_sides_too() {
    let folder = MadeFolder::new();
    let block = |switches: &str| {
        format!(
            " Performance counter stats for 'system wide':\n\n     {switches}      context-switches\n\n       10.0 \
             seconds time elapsed\n\n"
        )
    };
    let both = folder.write("both", format!("{}{}", block("795,370"), block("31,310")));
    let output = run([
        "compare".to_owned(),
        both.display().to_string(),
        "--a-score=3.26".to_owned(),
        "--b-score=12.9".to_owned(),
        "--format=json".to_owned(),
    ]);
    let document = output.json().unwrap_or_else(|error| panic!("{error}"));
    let what: Vec<String> = list(&document["changes"])
        .iter()
        .map(|change| text(&change["what"]))
        .collect();
    assert_eq!(what, ["score score", "counter context-switches"]);
}
