//! What changed from the stacks of one recording to those of another, beside the two by themselves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::{ProfileOptions, ProfileReport};
use fixtures::answers::folded_stacks;
use fixtures::{FixtureQuestion, file};
use serde_json::Value;
use stacks::Diff;

/// Two recordings of one boot of one host: a VM whose network is QEMU's, and one whose is vhost's.
fn pair() -> [PathBuf; 2] {
    [
        file("arm64/virtio-mmio/boot2-vsock/perf.data.l1.zst"),
        file("arm64/vhost-mmio/boot2-vsock/perf.data.kvm.zst"),
    ]
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

fn sampled(file: &Path) -> ProfileReport {
    FixtureQuestion::new()
        .stacks(file, ProfileOptions::default())
        .expect("stacks")
        .0
}

fn both(a: &ProfileReport, b: &ProfileReport) -> Diff {
    Diff::of(&a.stacks, &b.stacks, compare::comparable_frame)
}

fn document(diff: &Diff, reports: [&ProfileReport; 2]) -> Value {
    serde_json::to_value(render::flame_diff::document(diff, reports)).expect("a document")
}

/// Returns the lines of folded text: the stack, and the numbers behind it.
fn folded(diff: &Diff) -> Vec<(String, Vec<u64>)> {
    let mut lines = Vec::new();
    stacks::folded_pair(diff, 1 << 16, &mut |line: &str| {
        let mut parts = line.rsplitn(3, ' ');
        let numbers = parts.by_ref().take(2);
        let mut numbers: Vec<u64> = numbers.map(|number| number.parse().unwrap()).collect();
        numbers.reverse();
        lines.push((parts.next().unwrap().to_owned(), numbers));
    });
    lines
}

fn sums(report: &ProfileReport) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (stack, weight) in folded_stacks(report) {
        *sums.entry(comparable(&stack)).or_default() += weight;
    }
    sums
}

#[test]
fn two_columns_are_the_two_recordings() {
    let pair = pair().map(|path| sampled(&path));
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
    let both = folded(&both(&pair[0], &pair[1]));
    assert_eq!(both.len(), expected.len(), "a stack has one line");
    let both: BTreeMap<String, Vec<u64>> = both.into_iter().collect();
    assert_eq!(both, expected);
}

#[test]
fn shares_are_those_of_the_recordings_alone() {
    let reports = pair().map(|path| sampled(&path));
    let [a, b] = &reports;
    let alone = reports.each_ref().map(|report| {
        let document = render::flame::document(report, &Default::default());
        serde_json::to_value(document).expect("a document")
    });
    let both = document(&both(a, b), [a, b]);
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
    let a = sampled(&pair()[0]);
    let both = document(&both(&a, &a), [&a, &a]);
    assert_eq!(both["a"], both["b"]);
    assert_eq!(both["a"]["alone"], 0.0);
    for row in both["functions"].as_array().unwrap() {
        assert_eq!(row["self_change"], 0.0);
        assert_eq!(row["total_noise"], true);
    }
}

/// Where the work went when vhost took it from QEMU.
#[test]
fn work_that_moved_shows_as_a_difference() {
    let Some(corpus) = std::env::var_os("TRAPLINE_CORPUS").map(PathBuf::from) else {
        return;
    };
    let folder = |name: &str| corpus.join("arm64").join(name).join("boot2-vsock");
    let [a, b] = ["virtio-mmio", "vhost-mmio"].map(|name| {
        let plain = folder(name).join("perf.data.kvm");
        let packed = folder(name).join("perf.data.kvm.zst");
        sampled(if plain.exists() { &plain } else { &packed })
    });
    let mut groups: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let mut all = [0, 0];
    for (stack, weights) in folded(&both(&a, &b)) {
        let sum = groups
            .entry(stack.split(';').next().unwrap().to_owned())
            .or_default();
        for (side, weight) in weights.into_iter().enumerate() {
            sum[side] += weight;
            all[side] += weight;
        }
    }
    let percent = |name: &str| {
        let sum = groups.get(name).copied().unwrap_or_default();
        [0, 1].map(|side| sum[side] as f64 / all[side] as f64 * 100.0)
    };
    let [before, after] = percent("qemu-system-aar");
    assert!(before > 30.0 && after < 15.0, "QEMU: {before} to {after}");
    let [before, after] = percent("vhost");
    assert!(before == 0.0 && after > 20.0, "vhost: {before} to {after}");
    // Both are normalised to one whole.
    let ratio = all[0] as f64 / all[1] as f64;
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
}
