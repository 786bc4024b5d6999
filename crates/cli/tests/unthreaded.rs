//! Texts that do not say which thread made an event: vCPUs are identified where that is sound, else the text is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Failures, case, json, number, read_text, run};
use serde_json::Value;

/// What stands in the columns of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Columns {
    /// `perf script -F cpu,time,event,trace`.
    Nothing,
    /// `perf script -F comm,pid,cpu,time,event,trace`.
    Processes,
    /// perf-prof: date and time, name, thread, flags, CPU.
    PerfProf,
}

/// Writes the text of a recording of one VM with other columns. `process` has the process of each vCPU's thread.
fn rewritten(
    name: &str,
    columns: Columns,
    process: &BTreeMap<&str, &str>,
    keep: &dyn Fn(&str) -> bool,
) -> String {
    let text = read_text(case(name).references.get("script").expect("a text"));
    let mut out = String::new();
    for line in text.lines() {
        let Some((head, rest)) = line.split_once(" [").filter(|_| keep(line)) else {
            continue;
        };
        let (comm, tid) = head.rsplit_once(' ').expect("a thread");
        let comm = comm.trim_end();
        match columns {
            Columns::Nothing => out.push_str(&format!("[{rest}\n")),
            Columns::Processes => {
                let pid = process.get(tid).unwrap_or(&tid);
                out.push_str(&format!("{comm} {pid:>5} [{rest}\n"));
            }
            Columns::PerfProf => {
                let comm = comm.trim_start();
                out.push_str(&format!(
                    "2024-05-06 07:08:09.101112 {comm:>16} {tid:>6} d... [{rest}\n"
                ));
            }
        }
    }
    out
}

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("a written file");
    path
}

/// Count and total of exits by reason.
fn table(path: &Path, args: &[&str]) -> BTreeMap<String, (u64, u64)> {
    let args: Vec<&str> = ["exits"].into_iter().chain(args.iter().copied()).collect();
    let document = json(&args, path).expect("exits");
    let rows = document["rows"].as_array().expect("rows").clone();
    let row = |row: &Value| {
        let key = row["key"].as_str().expect("a key").to_owned();
        (key, (number(row, "count"), number(row, "total_ns")))
    };
    rows.iter().map(row).collect()
}

fn warnings(path: &Path) -> String {
    let document = json(&["exits"], path).expect("exits");
    document["quality"]["warnings"].to_string()
}

const PLAIN: &str = "x86/format-variants/plain.perf.data.zst";

#[test]
fn exits_of_texts_without_threads_are_those_of_each_vcpu() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let process = BTreeMap::from([("3742", "3736"), ("3743", "3736")]);
    let everything = |_: &str| true;
    let without_switches = |line: &str| !line.contains("sched:sched_switch:");
    let whole = case(PLAIN)
        .references
        .get("script")
        .expect("a text")
        .clone();
    let expected = table(&whole, &[]);
    let ports = table(&whole, &["--event", "ioport"]);
    let by_vcpu = |vcpu: &str, path: &Path| table(path, &["--vcpu", vcpu]);
    for (columns, keep, word) in [
        (
            Columns::Nothing,
            &everything as &dyn Fn(&str) -> bool,
            "sched_switch says",
        ),
        (Columns::Nothing, &without_switches, "numbers KVM prints"),
        (Columns::Processes, &everything, "process ids"),
        (Columns::Processes, &without_switches, "process ids"),
        (Columns::PerfProf, &everything, ""),
    ] {
        let what = format!("{columns:?} {word}");
        let text = rewritten(PLAIN, columns, &process, keep);
        let path = written(folder.path(), "text.txt", &text);
        failures.equal(&what, &table(&path, &[]), &expected);
        failures.equal(&what, &table(&path, &["--event", "ioport"]), &ports);
        for vcpu in ["0", "1"] {
            failures.equal(&what, &by_vcpu(vcpu, &path), &by_vcpu(vcpu, &whole));
        }
        let told = warnings(&path);
        let warned = told.contains("perf script -F comm,tid");
        failures.check(
            warned == (columns != Columns::PerfProf) && told.contains(word),
            || format!("{what}: {told}"),
        );
    }
    failures.finish(25);
}

/// Two VMs have a vCPU 0 each, and it is not known whose an exit is.
#[test]
fn vcpus_of_two_vms_are_not_paired() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let mut text = String::new();
    for n in 0..200 {
        let (a, b) = (n * 20, n * 20 + 3);
        for (cpu, at) in [(0, a), (1, b)] {
            text.push_str(&format!(
                "[00{cpu}]    10.{at:06}:  kvm:kvm_entry: vcpu 0, rip 0x1000\n"
            ));
        }
        for (cpu, at) in [(0, a + 8), (1, b + 8)] {
            text.push_str(&format!(
                "[00{cpu}]    10.{at:06}:  kvm:kvm_exit: vcpu 0 reason hlt rip 0x1000 info1 0x0 info2 0x0\n"
            ));
        }
    }
    let path = written(folder.path(), "two.txt", &text);
    let refused = run(["exits", &path.display().to_string()]);
    failures.equal("status", &refused.status, &1);
    failures.check(
        refused.stderr.contains("has no thread ids") && refused.stderr.contains("-F comm,tid"),
        || refused.stderr.clone(),
    );
    let info = json(&["info"], &path).expect("info");
    failures.equal("VMs", &info["vms"].as_array().map(Vec::len), &Some(0));
    let told = info["quality"]["warnings"].to_string();
    failures.check(told.contains("several VMs have the same ones"), || {
        told.clone()
    });
    let total: u64 = info["events"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| number(one, "count"))
        .sum();
    failures.equal("events are counted all the same", &total, &800);
    failures.finish(5);
}
