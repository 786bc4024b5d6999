//! `trapline compare --each`: several sides in one table, with scores beside them.

use std::fs;
use std::path::PathBuf;

use crate::common::list;
use crate::common::{Run, file, run};
use serde_json::Value;

const CLOCKS: [&str; 4] = ["kvm-clock", "tsc", "acpi_pm", "hpet"];
const SCORES: [&str; 4] = ["287.60", "286.59", "282.44", "280.83"];

fn clocks() -> Vec<String> {
    let each = CLOCKS.iter();
    each.map(|name| {
        file(&format!("seed-text/case2-{name}.perf-kvm-stat-vmexit.txt"))
            .display()
            .to_string()
    })
    .collect()
}

fn each(more: &[&str]) -> Run {
    let mut args = vec!["compare".to_owned(), "--each".to_owned()];
    args.extend(clocks());
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    run(args)
}

fn document(more: &[&str]) -> Value {
    let mut all = vec!["--format=json"];
    all.extend_from_slice(more);
    each(&all).json().expect("a document")
}

#[test]
fn the_table_fits_a_terminal() {
    let score = format!("sysbench={}", SCORES.join(","));
    let table = each(&["--score", &score]).text();
    // A file's name is not broken, however long it is.
    for line in table.lines().filter(|line| !line.contains(".txt")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let line = |begins: &str| {
        let found = table.lines().find(|line| line.starts_with(begins));
        let words = found.unwrap_or_else(|| panic!("no {begins} in {table}"));
        words
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(line("sysbench")[1..], SCORES);
    assert_eq!(
        line("  against A")[2..],
        ["-0.4", "%", "-1.8", "%", "-2.4", "%"]
    );
    assert_eq!(
        line("vmexit EPT_MISCONFIG")[2..],
        ["8", "8", "17", "22691*"]
    );
    assert_eq!(
        line("vmexit IO_INSTRUCTION")[2..],
        ["-", "1", "24618*", "-"]
    );
    assert_eq!(
        line("exits  ")[1..],
        ["10421", "12863*", "37847*", "38804*"]
    );
    // Eight sides are more than a line holds: the base is in each block.
    let mut args = vec!["compare".to_owned(), "--each".to_owned()];
    args.extend(clocks());
    args.extend(clocks());
    let wide = run(args).text();
    for line in wide.lines().filter(|line| !line.contains(".txt")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let heads: Vec<&str> = wide
        .lines()
        .filter(|line| line.trim_start().starts_with("A ") && line.ends_with(['E', 'F', 'H']))
        .collect();
    assert!(heads.len() >= 2, "{wide}");
}

#[test]
fn lines_of_csv_are_the_rows() {
    let document = document(&[]);
    assert_eq!(document["command"], "compare");
    let csv = each(&["--format=csv"]).text();
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("what,unit,effect_ns,A,B,B confidence,C,C confidence,D,D confidence")
    );
    assert_eq!(lines.count(), list(&document["rows"]).len());
    assert!(csv.contains("\nvmexit EPT_MISCONFIG,count,"), "{csv}");
}

#[test]
fn scores_come_from_files_and_by_side() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compare-each");
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("scores.txt");
    fs::write(
        &path,
        "# events per second\nsysbench 287.60 286.59 282.44 280.83\nlatency_ms\t1, 2, 3, 4\n",
    )
    .expect("a file");
    let of_file = document(&["--score", &path.display().to_string()]);
    let scores = list(&of_file["scores"]);
    assert_eq!(scores.len(), 2);
    assert_eq!(scores[1]["name"], "latency_ms");
    assert_eq!(scores[0]["values"][1].as_f64(), Some(286.59));
    let by_side = document(&["--score", "hpet=280.83", "--score", "A=287.60"]);
    let values = &list(&by_side["scores"])[0]["values"];
    assert_eq!(values[0].as_f64(), Some(287.6));
    assert_eq!(values[3].as_f64(), Some(280.83));
    assert!(values[1].is_null() && values[2].is_null());
}

#[test]
fn what_does_not_fit_is_said() {
    for (more, words) in [
        (&["--score", "tps=1,2"][..], "2 values for 4 recordings"),
        (&["--score", "tps=1,2,x,4"], "'x' is no number"),
        (&["--score", "nowhere.txt"], "nowhere.txt"),
        (&["--score", "tps=5"], "no recording is called 'tps'"),
        (&["--with", "x"], "cannot be used with"),
    ] {
        let output = each(more);
        assert_ne!(output.status, 0, "{more:?}");
        assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
    }
    let one = clocks().remove(0);
    let output = run(["compare", "--each", &one]);
    assert!(
        output
            .stderr
            .contains("those to compare it with are missing"),
        "{}",
        output.stderr
    );
    let output = run(["compare", &one, &one, "--score", "a=1,2"]);
    assert!(output.stderr.contains("--each"), "{}", output.stderr);
}
