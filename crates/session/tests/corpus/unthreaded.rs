//! Texts that do not say which thread made an event: vCPUs are identified where that is sound, else the text is
//! refused.

use std::collections::BTreeMap;
use std::path::Path;

use analysis::ExitTable;
use fixtures::json::number;
use fixtures::{Failures, FixtureQuestion, case, read_text, write_text};
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
    /// The kernel's `trace` file, of which the task's column was cut away.
    TaskCut,
    /// `perf script -F comm,pid,tid,time,event,trace`, as perf prints recordings of one process without asking.
    CpuCut,
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
            Columns::TaskCut => {
                let (cpu, event) = rest.split_once("] ").expect("a CPU");
                let event = event.replacen(" kvm:", " ", 1).replacen(" sched:", " ", 1);
                out.push_str(&format!("[{cpu}] d..1. {event}\n"));
            }
            Columns::CpuCut => {
                let (_, event) = rest.split_once("] ").expect("a CPU");
                let pid = process.get(tid).unwrap_or(&tid);
                out.push_str(&format!("{comm} {pid:>5}/{tid:<5} {event}\n"));
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

/// Count and total of exits by reason.
fn table(path: &Path, asked: FixtureQuestion) -> BTreeMap<String, (u64, u64)> {
    let document = asked.exits_document(path).expect("exits");
    let rows = document["rows"].as_array().expect("rows").clone();
    let row = |row: &Value| {
        let key = row["key"].as_str().expect("a key").to_owned();
        (key, (number(row, "count"), number(row, "total_ns")))
    };
    rows.iter().map(row).collect()
}

fn warnings(path: &Path) -> String {
    let document = FixtureQuestion::new().exits_document(path).expect("exits");
    document["quality"]["warnings"].to_string()
}

/// Asks for the table of ports.
fn ports() -> FixtureQuestion {
    FixtureQuestion::new().table(ExitTable::Ioport)
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
    let expected = table(&whole, FixtureQuestion::new());
    let of_ports = table(&whole, ports());
    let by_vcpu = |vcpu: u32, path: &Path| table(path, FixtureQuestion::new().vcpu(vcpu));
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
        (Columns::TaskCut, &everything, "TASK-PID"),
        (Columns::TaskCut, &without_switches, "numbers KVM prints"),
        (Columns::CpuCut, &everything, "have no CPU"),
    ] {
        let what = format!("{columns:?} {word}");
        let text = rewritten(PLAIN, columns, &process, keep);
        let path = write_text(folder.path(), "text.txt", &text);
        failures.equal(&what, &table(&path, FixtureQuestion::new()), &expected);
        failures.equal(&what, &table(&path, ports()), &of_ports);
        for vcpu in [0, 1] {
            failures.equal(&what, &by_vcpu(vcpu, &path), &by_vcpu(vcpu, &whole));
        }
        let said = warnings(&path);
        let warned = said.contains("perf script -F comm,tid");
        failures.check(
            warned == matches!(columns, Columns::Nothing | Columns::Processes)
                && said.contains(word),
            || format!("{what}: {said}"),
        );
    }
    failures.finish(40);
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
    let path = write_text(folder.path(), "two.txt", &text);
    let refused = FixtureQuestion::new()
        .exits_document(&path)
        .expect_err("it is refused");
    let refused = refused.to_string();
    failures.check(
        refused.contains("has no thread ids") && refused.contains("-F comm,tid"),
        || refused.clone(),
    );
    let info = FixtureQuestion::new().info_document(&path).expect("info");
    failures.equal("VMs", &info["vms"].as_array().map(Vec::len), &Some(0));
    let said = info["quality"]["warnings"].to_string();
    failures.check(said.contains("several VMs have the same ones"), || {
        said.clone()
    });
    let total: u64 = info["events"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| number(one, "count"))
        .sum();
    failures.equal("events are counted all the same", &total, &800);
    failures.finish(4);
}
