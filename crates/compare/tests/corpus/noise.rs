//! Comparisons distinguish noise from news: recordings of a made-up VM that does the same again, or something else.

use fixtures::made_folder::MadeFolder;
use std::path::PathBuf;

use fixtures::json::{list, text};
use fixtures::made_vm::MadeVm;
use fixtures::{note, sweeping};
use serde_json::Value;

use crate::{find, groups};

/// Records a VM and compares it with another.
fn compared(folder: &MadeFolder, a: &MadeVm, b: &MadeVm) -> Value {
    let [a, b] = [("a", a), ("b", b)].map(|(name, vm)| folder.write(name, vm.record()));
    groups(&[a], &[b])
}

/// Compares the usual VM with a changed one, of which everything else is the same.
fn changed(change: impl FnOnce(&mut MadeVm)) -> Value {
    let mut vm = MadeVm::new(77);
    change(&mut vm);
    compared(&MadeFolder::new(), &MadeVm::new(76), &vm)["changes"].take()
}

fn sentences(changes: &[Value]) -> String {
    let all: Vec<String> = changes.iter().map(|one| text(&one["text"])).collect();
    all.join("\n")
}

fn ratio(change: &Value) -> f64 {
    change["ratio"].as_f64().expect("a ratio")
}

/// Of the changes with a confidence of 0.99 and more, one comparison in a hundred may have something that is noise: two
/// of ten are one case in two hundred.
#[test]
fn the_same_again_is_no_news() {
    let folder = MadeFolder::new();
    let (mut wrong, mut compared, mut said) = (0, 0, String::new());
    for pair in 0..10u64 {
        let [a, b] = [0, 1].map(|side| MadeVm::new(1000 + pair * 2 + side));
        let document = self::compared(&folder, &a, &b);
        let changes = list(&document["changes"]);
        compared += changes.len() + list(&document["noise"]).len();
        wrong += usize::from(!changes.is_empty());
        said.push_str(&sentences(changes));
    }
    note(&format!(
        "{wrong} of 10 pairs have news, among {compared} differences: {said}"
    ));
    assert!(
        compared >= 200,
        "only {compared} differences were looked at"
    );
    assert!(wrong <= 1, "{wrong} of 10 pairs have news:\n{said}");
}

/// Compares pairs of recordings of the same VM, sixty in a sweep. At 0.99 none has news; what is called likely is as
/// often wrong as the tier says, and docs/compare.md has the figure.
#[test]
fn many_pairs_of_the_same_are_no_news() {
    let pairs = if sweeping() { 60 } else { 6 };
    let (mut compared, mut news, mut likely, mut pairs_likely) = (0, 0, 0, 0);
    let mut said = String::new();
    let folder = MadeFolder::new();
    for pair in 0..pairs as u64 {
        let [a, b] = [0, 1].map(|side| MadeVm {
            seconds: 8.0,
            ..MadeVm::new(5000 + pair * 2 + side)
        });
        let document = self::compared(&folder, &a, &b);
        let (sure, less) = (list(&document["changes"]), list(&document["likely"]));
        compared += sure.len() + less.len() + list(&document["noise"]).len();
        news += usize::from(!sure.is_empty());
        likely += less.len();
        pairs_likely += usize::from(!less.is_empty());
        said.push_str(&sentences(sure));
        for one in less {
            let confidence = one["confidence"].as_f64().expect("a confidence");
            assert!((0.8..0.99).contains(&confidence), "{one}");
        }
    }
    note(&format!(
        "of {pairs} pairs of the same {news} have news, and {pairs_likely} something likely: {likely} of {compared} \
         differences"
    ));
    assert!(compared >= 20 * pairs, "only {compared} differences");
    assert_eq!(news, 0, "{said}");
    assert!(pairs_likely <= pairs / 5, "{pairs_likely} of {pairs} pairs");
}

/// A rule has a threshold, and a VM may be at it: that its finding comes and goes is no news while what it measures
/// stays what it is.
#[test]
fn a_finding_at_its_threshold_is_no_news() {
    let folder = MadeFolder::new();
    let mut crossed = 0;
    for step in 0..12u64 {
        let [a, b] = [0, 1].map(|side| MadeVm {
            seconds: 4.0,
            stolen: 0.5 + step as f64 * 0.4,
            ..MadeVm::new(7000 + step * 2 + side)
        });
        let document = compared(&folder, &a, &b);
        let finding = |change: &&Value| text(&change["what"]).starts_with("finding ");
        let news: Vec<&Value> = list(&document["changes"]).iter().filter(finding).collect();
        assert!(news.is_empty(), "{news:?}");
        crossed += list(&document["noise"]).iter().filter(finding).count();
    }
    note(&format!(
        "{crossed} findings came or went in 12 pairs, and none was reported"
    ));
}

#[test]
fn more_exits_of_a_reason_are_news() {
    let changes = changed(|vm| vm.msr_rate = 1.5);
    let msr = find(&changes, "vmexit MSR_WRITE");
    assert!((1.35..1.6).contains(&ratio(msr)), "{msr}");
    assert_eq!(msr["unit"], "per_second");
    // Nothing else became more frequent.
    for other in [
        "vmexit HLT",
        "vmexit IO_INSTRUCTION",
        "vmexit EXTERNAL_INTERRUPT",
    ] {
        assert!(
            list(&changes).iter().all(|c| c["what"] != other),
            "{}",
            sentences(list(&changes))
        );
    }
}

#[test]
fn longer_handling_is_news_though_as_frequent() {
    let changes = changed(|vm| vm.msr_time = 2.0);
    let msr = find(&changes, "vmexit MSR_WRITE time");
    assert!((1.6..2.4).contains(&ratio(msr)), "{msr}");
    assert_eq!(msr["unit"], "ns");
    let said = text(&msr["text"]);
    assert!(said.contains("as often as before"), "{said}");
    assert!(said.contains(" each ("), "{said}");
    assert!(msr["effect_ns"].as_i64() > Some(0), "{msr}");
}

#[test]
fn reasons_come_and_go() {
    let changes = changed(|vm| {
        vm.port_rate = 0.0;
        vm.cpuid_rate = 1.0;
    });
    let gone = find(&changes, "vmexit IO_INSTRUCTION");
    assert_eq!(
        (&gone["b"], gone["ratio"].as_f64()),
        (&Value::Null, Some(0.0))
    );
    assert!(
        text(&gone["text"]).contains("IO_INSTRUCTION gone: it was "),
        "{gone}"
    );
    assert!(gone["effect_ns"].as_i64() < Some(0));
    let new = find(&changes, "vmexit CPUID");
    assert_eq!((&new["a"], &new["ratio"]), (&Value::Null, &Value::Null));
    assert!(text(&new["text"]).contains("CPUID is new: it is "), "{new}");
    assert_eq!(new["delta"], new["b"]);
}

#[test]
fn waiting_for_a_cpu_is_news() {
    let changes = changed(|vm| vm.stolen = 4.0);
    let runnable = find(&changes, "vcpus runnable");
    assert!(ratio(runnable) > 2.5, "{runnable}");
    assert_eq!(runnable["unit"], "share");
    assert!(text(&runnable["text"]).starts_with("vCPUs were waiting for a CPU "));
}

#[test]
fn slower_wake_ups_are_news() {
    let changes = changed(|vm| vm.wake = 3.0);
    let path = find(&changes, "path halt-wake p50");
    assert!((1.5..3.5).contains(&ratio(path)), "{path}");
    assert!(path["a"].is_i64() && path["unit"] == "ns", "{path}");
}

#[test]
fn more_switches_of_a_task_are_news() {
    let changes = changed(|vm| vm.task_rate = 2.0);
    let task = find(&changes, "sched logger");
    assert!((1.7..2.3).contains(&ratio(task)), "{task}");
    assert!(
        text(&task["text"]).contains("switches in a second"),
        "{task}"
    );
}

/// Records a group of runs that go at these paces.
fn group(
    folder: &MadeFolder,
    name: &str,
    seed: u64,
    msr_rate: f64,
    paces: [f64; 3],
) -> Vec<PathBuf> {
    let runs = paces.iter().enumerate();
    runs.map(|(run, pace)| {
        let vm = MadeVm {
            pace: *pace,
            msr_rate,
            seconds: 8.0,
            ..MadeVm::new(seed + run as u64)
        };
        folder.write(&format!("{name}{run}"), vm.record())
    })
    .collect()
}

#[test]
fn runs_that_differ_more_than_groups_are_no_news() {
    let folder = MadeFolder::new();
    let a = group(&folder, "apart-a", 300, 1.0, [0.7, 1.0, 1.4]);
    let b = group(&folder, "apart-b", 310, 1.0, [1.3, 1.6, 0.9]);
    let document = groups(&a, &b);
    let changes = list(&document["changes"]);
    assert!(changes.is_empty(), "{}", sentences(changes));
    // One of each alone is not news, for nothing shows how much runs differ.
    let single = groups(&a[..1], &b[1..2]);
    let exits = find(&single["changes"], "exits");
    assert!(ratio(exits) > 1.5, "{exits}");
    assert!(
        text(&single["notes"][1]).contains("not what differs from run to run"),
        "{}",
        single["notes"]
    );
}

#[test]
fn groups_that_differ_more_than_runs_are_news() {
    let folder = MadeFolder::new();
    let a = group(&folder, "alike-a", 320, 1.0, [0.98, 1.0, 1.02]);
    let b = group(&folder, "alike-b", 330, 2.0, [1.01, 0.99, 1.0]);
    let document = groups(&a, &b);
    let msr = find(&document["changes"], "vmexit MSR_WRITE");
    assert!((1.7..2.2).contains(&ratio(msr)), "{msr}");
    assert_eq!(list(&document["a"]).len(), 3);
    // The rates are of all three.
    let single = groups(&a[..1], &b[..1]);
    let alone = find(&single["changes"], "vmexit MSR_WRITE");
    let (three, one) = (msr["a"].as_f64().unwrap(), alone["a"].as_f64().unwrap());
    assert!((three / one - 1.0).abs() < 0.15, "{three} {one}");
}
