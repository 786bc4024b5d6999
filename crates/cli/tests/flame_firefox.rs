//! Stacks as a profile for the Firefox Profiler: its tables, resolved as the profiler does, have the stacks that folded
//! text has.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::common::{all_cases, run};

/// Weights by stack, outermost frame first.
type WeightedPaths = BTreeMap<String, u64>;

/// Returns a row's number in a column.
fn number(column: &Value, row: u64) -> u64 {
    let value = column[row as usize].as_u64();
    value.unwrap_or_else(|| panic!("row {row} of {column} is no number"))
}

/// Checks that each column of a table has as many rows as the table says.
fn check_columns(table: &Value) {
    let length = table["length"].as_u64().expect("a length") as usize;
    for (name, column) in table.as_object().expect("a table") {
        if let Some(rows) = column.as_array() {
            assert_eq!(rows.len(), length, "{name} of {table}");
        }
    }
}

/// Returns the frames of a stack with semicolons between, as folded text has them.
fn path(shared: &Value, stack: u64) -> String {
    let [stacks, frames, funcs] =
        ["stackTable", "frameTable", "funcTable"].map(|name| &shared[name]);
    let mut names = Vec::new();
    let mut next = Some(stack);
    while let Some(stack) = next {
        let func = number(&frames["func"], number(&stacks["frame"], stack));
        let text = number(&funcs["name"], func);
        let text = shared["stringArray"][text as usize].as_str();
        names.push(text.expect("a text").replace(';', ":"));
        let prefix = &stacks["prefix"][stack as usize];
        assert!(
            prefix.is_null() || prefix.as_u64() < Some(stack),
            "callers come first"
        );
        next = prefix.as_u64();
    }
    names.reverse();
    names.join(";")
}

/// Reads a profile back.
fn of_profile(profile: &Value) -> WeightedPaths {
    let shared = &profile["shared"];
    for table in [
        "stackTable",
        "frameTable",
        "funcTable",
        "resourceTable",
        "nativeSymbols",
        "sources",
    ] {
        check_columns(&shared[table]);
    }
    let mut all = WeightedPaths::new();
    for thread in profile["threads"].as_array().expect("threads") {
        let samples = &thread["samples"];
        check_columns(samples);
        check_columns(&thread["markers"]);
        let times = samples["time"].as_array().expect("a column");
        assert!(
            times.is_sorted_by_key(|time| time.as_f64().expect("a time")),
            "{times:?}"
        );
        for row in 0..samples["length"].as_u64().expect("a length") {
            let path = path(shared, number(&samples["stack"], row));
            let thread = thread["name"].as_str().expect("a name").replace(';', ":");
            assert!(
                path == thread || path.starts_with(&format!("{thread};")),
                "{path}"
            );
            let weight = &samples["weight"][row as usize];
            let weight = match samples["weightType"].as_str().expect("a text") {
                "tracing-ms" => (weight.as_f64().expect("a time") * 1e6).round() as u64,
                "samples" => weight.as_u64().expect("a count"),
                other => panic!("{other} is no unit of weights"),
            };
            *all.entry(path).or_default() += weight;
        }
    }
    all
}

fn of_folded(text: &str) -> WeightedPaths {
    let mut all = WeightedPaths::new();
    for line in text.lines() {
        let (stack, weight) = line.rsplit_once(' ').expect("a weight");
        *all.entry(stack.to_owned()).or_default() += weight.parse::<u64>().expect("a number");
    }
    all
}

/// What loaders refuse a profile without.
fn check_meta(profile: &Value) {
    let meta = &profile["meta"];
    // Loaders upgrade older versions step by step, and refuse newer ones.
    assert_eq!(meta["preprocessedProfileVersion"], 60);
    for name in [
        "interval",
        "startTime",
        "processType",
        "stackwalk",
        "version",
    ] {
        assert!(meta[name].is_u64(), "{name} of {meta}");
    }
    assert!(meta["interval"].as_u64() > Some(0));
    assert!(meta["product"].is_string());
    assert!(meta["markerSchema"].is_array());
    let categories = meta["categories"].as_array().expect("categories");
    // The default category is the first grey one.
    assert!(categories.iter().any(|one| one["color"] == "grey"));
    assert!(
        categories
            .iter()
            .all(|one| one["subcategories"][0] == "Other")
    );
    let used = profile["shared"]["frameTable"]["category"].as_array();
    for category in used.expect("a column") {
        assert!(
            category.as_u64() < Some(categories.len() as u64),
            "{category}"
        );
    }
    let resources = profile["shared"]["resourceTable"]["length"].as_i64();
    for resource in profile["shared"]["funcTable"]["resource"]
        .as_array()
        .expect("a column")
    {
        assert!(
            resource.as_i64() >= Some(-1) && resource.as_i64() < resources,
            "{resource}"
        );
    }
    assert_eq!(profile["libs"], serde_json::json!([]));
}

#[test]
fn the_firefox_profiler_gets_the_stacks_that_folded_text_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let mut read = 0;
    for case in all_cases() {
        let path = case.path.to_str().expect("a plain name");
        for how in [&[][..], &["--off-cpu"]] {
            let ask = |more: &[&str], to: &str| {
                let words = [&["flame", path], how, more, &["-o", to]].concat();
                run(words)
            };
            if ask(&["--as", "firefox"], &at("x.json")).status != 0 {
                continue;
            }
            assert_eq!(ask(&[], &at("x.folded")).status, 0);
            let profile = fs::read_to_string(at("x.json")).expect("it is written");
            let profile: Value = serde_json::from_str(&profile).expect("JSON");
            check_meta(&profile);
            let folded = fs::read_to_string(at("x.folded")).expect("it is written");
            let stacks = of_profile(&profile);
            assert!(!stacks.is_empty() || folded.is_empty());
            assert_eq!(stacks, of_folded(&folded), "{} {how:?}", case.name);
            read += 1;
        }
        if read >= 12 {
            break;
        }
    }
    assert!(read > 0, "no recording has samples");
}

#[test]
fn a_form_that_is_named_is_written_whatever_the_file_is_called() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let text = at("a.folded");
    fs::write(&text, "a;b 3\n").expect("a file");
    let write = |form: &str, to: &str| {
        let done = run(["flame", &text, "--as", form, "-o", to]);
        assert_eq!(done.status, 0, "{}", done.stderr);
        fs::read(to).expect("it is written")
    };
    let plain = write("firefox", &at("x.json"));
    let packed = write("firefox", &at("x.json.gz"));
    let mut unpacked = Vec::new();
    GzDecoder::new(&packed[..])
        .read_to_end(&mut unpacked)
        .expect("gzip");
    assert_eq!(plain, unpacked);
    let profile: Value = serde_json::from_slice(&plain).expect("JSON");
    assert_eq!(
        of_profile(&profile),
        WeightedPaths::from([("a;b".to_owned(), 3)])
    );
    assert_eq!(profile["threads"][0]["samples"]["weightType"], "samples");
    assert!(write("folded", &at("y.json")) == b"a;b 3\n");
    assert!(write("speedscope", &at("y")).starts_with(b"{\"$schema\""));
    assert!(write("svg", &at("y.bin")).starts_with(b"<"));
    assert!(write("pprof", &at("y.svg")).starts_with(b"\x1f\x8b"));
    // Without a file there is nothing to write it to, and a difference is no profile.
    let alone = run(["flame", &text, "--as", "firefox"]);
    assert_eq!(alone.status, 2, "{}", alone.stderr);
    let cases = all_cases();
    let mut paths = cases
        .iter()
        .map(|case| case.path.to_str().expect("a plain name"));
    let out = at("z.json");
    let sampled = paths.find(|path| run(["flame", path, "-o", &out]).status == 0);
    let sampled = sampled.expect("a recording with samples");
    let refused = run([
        "flame", sampled, "--diff", sampled, "--as", "firefox", "-o", &out,
    ]);
    assert_eq!(refused.status, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("no differences"),
        "{}",
        refused.stderr
    );
}
