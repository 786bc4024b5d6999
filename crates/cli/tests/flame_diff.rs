//! `flame --diff` beside the two recordings by themselves.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::{file, run};

/// Two recordings of one boot of one host: a VM whose network is QEMU's, and one whose is vhost's.
fn pair() -> [PathBuf; 2] {
    [
        file("arm64/virtio-mmio/boot2-vsock/perf.data.l1.zst"),
        file("arm64/vhost-mmio/boot2-vsock/perf.data.kvm.zst"),
    ]
}

/// Runs `flame` with a file of folded stacks, and returns its lines: the stack, and the numbers behind it.
fn folded(more: &[&str]) -> Vec<(String, Vec<u64>)> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.folded");
    let out = out.display().to_string();
    let done = run(["flame", "-o", &out].iter().chain(more));
    assert_eq!(done.status, 0, "{}", done.stderr);
    let text = fs::read_to_string(&out).unwrap();
    let columns = if more.contains(&"--diff") { 2 } else { 1 };
    let lines = text.lines().map(|line| {
        let mut parts = line.rsplitn(columns + 1, ' ');
        let numbers = parts.by_ref().take(columns);
        let mut numbers: Vec<u64> = numbers.map(|number| number.parse().unwrap()).collect();
        numbers.reverse();
        (parts.next().unwrap().to_owned(), numbers)
    });
    lines.collect()
}

/// The names of threads of these recordings, without what differs from one recording to the next.
fn comparable(stack: &str) -> String {
    let (thread, rest) = stack.split_once(';').unwrap();
    let thread = match thread {
        _ if thread.starts_with("vhost-") => "vhost",
        _ if thread.starts_with("kworker/u") => "kworker (unbound)",
        _ if thread.starts_with("kworker/") => "kworker (of a CPU)",
        _ if thread.starts_with("ksoftirqd/") => "ksoftirqd",
        _ if thread.starts_with("migration/") => "migration",
        _ if thread.starts_with("rcuc/") => "rcuc",
        _ => thread,
    };
    format!("{thread};{rest}")
}

fn sums(file: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (stack, numbers) in folded(&[file]) {
        *sums.entry(comparable(&stack)).or_default() += numbers[0];
    }
    sums
}

#[test]
fn two_columns_are_the_two_recordings() {
    let pair = pair().map(|path| path.display().to_string());
    let [a, b] = [sums(&pair[0]), sums(&pair[1])];
    let [whole_a, whole_b] =
        [&a, &b].map(|side| side.values().map(|n| u128::from(*n)).sum::<u128>());
    let mut expected: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (stack, amount) in &a {
        let scaled = u128::from(*amount) * whole_b / whole_a;
        expected.insert(stack.clone(), vec![scaled as u64, 0]);
    }
    for (stack, amount) in &b {
        expected.entry(stack.clone()).or_insert_with(|| vec![0, 0])[1] = *amount;
    }
    assert!(a.keys().any(|stack| b.contains_key(stack)));
    let both = folded(&[&pair[0], "--diff", &pair[1]]);
    assert_eq!(both.len(), expected.len(), "a stack has one line");
    let both: BTreeMap<String, Vec<u64>> = both.into_iter().collect();
    assert_eq!(both, expected);
}

#[test]
fn shares_are_those_of_the_recordings_alone() {
    let [a, b] = pair().map(|path| path.display().to_string());
    let json = |args: &[&str]| -> Value {
        let done = run(["flame", "--format", "json"].iter().chain(args));
        assert_eq!(done.status, 0, "{}", done.stderr);
        done.json().unwrap()
    };
    let alone = [json(&[&a]), json(&[&b])];
    let both = json(&[&a, "--diff", &b]);
    let rows = both["functions"].as_array().unwrap();
    let mut checked = 0;
    for (side, letter) in alone.iter().zip(["a", "b"]) {
        for function in side["functions"].as_array().unwrap() {
            let is_same = |row: &&Value| {
                row["function"] == function["function"] && row["part"] == function["part"]
            };
            let row = rows.iter().find(is_same).expect("a function is on both");
            for name in ["self", "total", "self_samples", "total_samples"] {
                assert_eq!(row[format!("{name}_{letter}")], function[name]);
            }
            checked += 1;
        }
        assert_eq!(both[letter]["event"], side["event"]);
        assert_eq!(both[letter]["idle_samples"], side["idle_samples"]);
    }
    assert!(checked > 1000, "{checked}");
    let change =
        |row: &Value| (row["self_b"].as_f64().unwrap() - row["self_a"].as_f64().unwrap()).abs();
    assert!(
        rows.windows(2)
            .all(|two| change(&two[0]) >= change(&two[1]))
    );
}

#[test]
fn a_recording_did_not_change_from_itself() {
    let [a, _] = pair().map(|path| path.display().to_string());
    let done = run(["flame", &a, "--diff", &a, "--format", "json"]);
    let both = done.json().unwrap();
    assert_eq!(both["a"], both["b"]);
    assert_eq!(both["a"]["alone"], 0.0);
    for row in both["functions"].as_array().unwrap() {
        assert_eq!(row["self_change"], 0.0);
        assert_eq!(row["total_noise"], true);
    }
}

#[test]
fn what_cannot_be_written_is_said() {
    let [a, b] = pair().map(|path| path.display().to_string());
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.json").display().to_string();
    let done = run(["flame", &a, "--diff", &b, "-o", &out]);
    assert_ne!(done.status, 0);
    assert!(done.stderr.contains("no differences"), "{}", done.stderr);
    let done = run(["flame", &a, "-o", "x.png"]);
    assert_ne!(done.status, 0);
    assert!(done.stderr.contains(".svg, .html"), "{}", done.stderr);
}
