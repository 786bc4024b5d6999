//! `report --cost` has a row for each analysis that a report is made of. How long each takes is asserted nowhere.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::{file, run};

const RECORDING: &str = "x86/flame-iperf3/l1.perf.data.zst";

/// Analyses that every report is made of, by the names of their types.
const SOME: [&str; 22] = [
    "recording contents",
    "exits",
    "vcpus",
    "sched latencies",
    "sleeps",
    "signs",
    "faults",
    "timers",
    "handling",
    "moves",
    "progress",
    "unmaps",
    "nested exits",
    "vmm sleeps",
    "main loops",
    "stalls",
    "recorder",
    "ipis",
    "irqs",
    "paths",
    "continuity",
    "sampled time",
];

/// Returns the names of a document's rows, in their order.
fn names(rows: &Value) -> Vec<String> {
    let rows = rows.as_array().into_iter().flatten();
    let names = rows.map(|row| row["name"].as_str().unwrap_or_default().to_owned());
    names.collect()
}

#[test]
fn each_analysis_has_a_row_in_text_json_and_csv() {
    let path = file(RECORDING);
    let path = path.to_str().expect("a plain name");
    let document = run(["report", "--cost", "--pairs", "2", "--format", "json", path]);
    let document = document.json().expect("a document");
    let costs = &document["costs"][0];
    assert_eq!(costs["input"], path);
    assert_eq!(costs["pairs"], 2);
    assert_eq!(costs["events"], 2354);
    let rows = names(&costs["rows"]);
    assert_eq!(rows.first().map(String::as_str), Some("reading and order"));
    assert_eq!(rows.last().map(String::as_str), Some("all"));
    let all: BTreeSet<&str> = rows.iter().map(String::as_str).collect();
    assert_eq!(all.len(), rows.len(), "{rows:?}");
    let missing: Vec<_> = SOME.iter().filter(|name| !all.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?} of {rows:?}");
    for row in costs["rows"].as_array().into_iter().flatten() {
        let ns = |name: &str| {
            row[name]
                .as_i64()
                .unwrap_or_else(|| panic!("{name}: {row}"))
        };
        let (low, middle, high) = (ns("low_ns"), ns("cost_ns"), ns("high_ns"));
        assert!(low <= middle && middle <= high, "{row}");
        let per_event = row["per_event"].as_f64().expect("there are events");
        assert!((per_event * 2354.0 - middle as f64).abs() < 1.0, "{row}");
    }
    // Text and CSV are of other walks, and have the same rows; the order of analyses is that of what they cost.
    let text = run(["report", "--cost", "--pairs", "1", path]).text();
    // Behind the line with the file's name.
    let mut lines = text.lines().skip(1);
    assert!(lines.all(|line| line.chars().count() <= 80), "{text}");
    let table: BTreeSet<&str> = (text.lines().skip(3))
        .filter_map(|line| line.get(..24).map(str::trim))
        .collect();
    assert_eq!(table, all, "{text}");
    assert!(!text.contains("vCPUs"), "nothing else is printed: {text}");
    let csv = run(["report", "--cost", "--pairs", "1", "--format", "csv", path]).text();
    let cells = csv
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next());
    assert_eq!(cells.collect::<BTreeSet<&str>>(), all, "{csv}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let path = file(RECORDING);
    let path = path.to_str().expect("a plain name");
    let folder = tempfile::tempdir().expect("a folder");
    let table = folder.path().join("vmexit.txt");
    let text = "\n   VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time         Avg time \n\n\
                    \x20      hlt          2   100.00%   100.00%      1.00us      2.00us      1.50us ( +-   0.00% )\n\n\
                Total Samples:2, Total events handled time:3.00us.\n";
    std::fs::write(&table, text).expect("a written file");
    let table = table.to_str().expect("a plain name");
    let refused = run(["report", "--cost", table]);
    assert_ne!(refused.status, 0);
    assert!(refused.stderr.contains("no events"), "{}", refused.stderr);
    for args in [
        &["report", "--cost", "--full", path][..],
        &["report", "--cost", "--brief", path],
        &["report", "--cost", "-o", "x.html", path],
        &["report", "--pairs", "3", path],
        &["report", "--cost", "--pairs", "0", path],
        &["report", "--cost", "--guest", path, path],
    ] {
        assert_eq!(run(args).status, 2, "{args:?}");
    }
}
