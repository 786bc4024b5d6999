//! Facts beside a recording: who the VMs are, and which devices they have.

use std::fs;
use std::path::Path;

use analysis::ExitTable;
use fixtures::{Failures, FixtureQuestion, case, cases, file, write_text};
use serde_json::{Value, json};

/// Processes, names and threads of vCPUs of the VMs that `info` finds.
fn vms(recording: &Path, facts: &[&Path]) -> Value {
    let document = with(facts).info_document(recording).expect("info");
    document["vms"].clone()
}

/// Asks with facts beside the recording.
fn with(facts: &[&Path]) -> FixtureQuestion {
    let facts = facts.iter().map(|path| (*path).to_owned()).collect();
    FixtureQuestion::new().beside(|beside| beside.facts = facts)
}

fn vm(pid: Option<i32>, name: Option<&str>, tids: &[i32]) -> Value {
    let vcpus: Vec<Value> = tids
        .iter()
        .enumerate()
        .map(|(id, tid)| json!({"id": id, "tid": tid}))
        .collect();
    json!({"pid": pid, "name": name, "vcpus": vcpus})
}

/// trace.dat records no process ids: `ps` has them, and QEMU's command line the VM's name.
#[test]
fn ps_names_the_vms_of_a_trace_dat() {
    let mut failures = Failures::default();
    let recording = case("x86/format-variants/v7.dat.zst").path;
    let ps = file("x86/format-variants/l1-ps.txt");
    let cpus = file("x86/format-variants/a-info-cpus.txt");
    let alone = json!([vm(None, None, &[3742, 3743])]);
    let named = json!([vm(Some(3736), Some("a"), &[3742, 3743])]);
    failures.equal("without facts", &vms(&recording, &[]), &alone);
    failures.equal("ps", &vms(&recording, &[&ps]), &named);
    failures.equal("info cpus", &vms(&recording, &[&cpus]), &alone);
    failures.equal("both", &vms(&recording, &[&cpus, &ps]), &named);
    // The filters know the VM by all its names.
    let total = |asked: FixtureQuestion| {
        let document = asked.exits_document(&recording).ok()?;
        document["total_count"].as_u64()
    };
    let all = total(with(&[&ps]));
    failures.check(all > Some(100), || format!("{all:?} exits"));
    for vm in ["a", "qemu-system-x86", "3736"] {
        failures.equal(vm, &total(with(&[&ps]).vm(vm)), &all);
    }
    failures.equal("--pid", &total(with(&[&ps]).pid(3736)), &all);
    failures.equal("--vm b", &total(with(&[&ps]).vm("b")), &None);
    failures.equal(
        "without facts",
        &total(FixtureQuestion::new().vm("a")),
        &None,
    );
    failures.finish(11);
}

#[test]
fn perf_data_knows_its_processes_and_takes_the_guests_names() {
    let mut failures = Failures::default();
    let recording = case("arm64/two-guests-mmio/perf.data.guest.zst").path;
    let ps = file("arm64/two-guests-mmio/ps-before.txt");
    let expected = json!([
        vm(Some(854), Some("vm1"), &[866, 867]),
        vm(Some(856), Some("vm2"), &[871, 872]),
    ]);
    failures.equal("ps", &vms(&recording, &[&ps]), &expected);
    let exits = |vm: &str| {
        let document = with(&[&ps]).vm(vm).exits_document(&recording);
        document.expect("exits")["rows"].clone()
    };
    failures.equal("vm2 is 856", &exits("vm2"), &exits("856"));
    failures.check(exits("vm1") != exits("vm2"), || "two VMs".to_owned());
    failures.finish(3);
}

/// Two VMs whose threads were made in turn, which thread ids alone cannot distinguish.
const INTERLEAVED: &str = "\
 qemu-kvm-501   [000]    10.000001: kvm_entry: vcpu 0, rip 0x1000
 qemu-kvm-501   [000]    10.000002: kvm_exit: reason HLT rip 0x1000 info 0 0
 qemu-kvm-502   [001]    10.000003: kvm_entry: vcpu 0, rip 0x1000
 qemu-kvm-502   [001]    10.000004: kvm_exit: reason HLT rip 0x1000 info 0 0
 qemu-kvm-503   [000]    10.000005: kvm_entry: vcpu 1, rip 0x1000
 qemu-kvm-503   [000]    10.000006: kvm_exit: reason HLT rip 0x1000 info 0 0
 qemu-kvm-504   [001]    10.000007: kvm_entry: vcpu 1, rip 0x1000
 qemu-kvm-504   [001]    10.000008: kvm_exit: reason HLT rip 0x1000 info 0 0
 qemu-kvm-501   [000]    10.000011: kvm_entry: vcpu 0, rip 0x1000
 qemu-kvm-502   [001]    10.000013: kvm_entry: vcpu 0, rip 0x1000
 qemu-kvm-503   [000]    10.000015: kvm_entry: vcpu 1, rip 0x1000
 qemu-kvm-504   [001]    10.000017: kvm_entry: vcpu 1, rip 0x1000
";

#[test]
fn monitors_distinguish_vms_that_thread_ids_do_not() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| write_text(folder.path(), name, text);
    let recording = write("two.txt", INTERLEAVED);
    let a = write(
        "a.txt",
        "(qemu) info cpus\r\n* CPU #0: thread_id=501\r\n  CPU #1: thread_id=503\r\n(qemu) \r\n",
    );
    let b = write(
        "b.txt",
        "* CPU #0: thread_id=502\n  CPU #1: thread_id=504\n",
    );
    let unnamed = json!([vm(None, None, &[501, 503]), vm(None, None, &[502, 504])]);
    failures.check(vms(&recording, &[]) != unnamed, || {
        "thread ids alone".to_owned()
    });
    failures.equal("info cpus", &vms(&recording, &[&a, &b]), &unnamed);
    let qmp = write(
        "qmp.json",
        "{\"return\": {\"name\": \"web\"}}\n{\"return\": [{\"cpu-index\": 0, \"thread-id\": 501}, \
         {\"cpu-index\": 1, \"thread-id\": 503}]}\n{\"return\": [{\"cpu-index\": 0, \"thread-id\": 502}, \
         {\"cpu-index\": 1, \"thread-id\": 504}]}\n{\"return\": {\"name\": \"db\"}}\n",
    );
    let named = json!([
        vm(None, Some("web"), &[501, 503]),
        vm(None, Some("db"), &[502, 504])
    ]);
    failures.equal("QMP", &vms(&recording, &[&qmp]), &named);
    let ps = write(
        "ps.txt",
        "UID          PID    PPID     LWP  C NLWP STIME TTY          TIME CMD\n\
         qemu         400       1     501  9    3 06:41 ?        00:00:07 /usr/libexec/qemu-kvm -name guest=web\n\
         qemu         400       1     503  9    3 06:41 ?        00:00:07 /usr/libexec/qemu-kvm -name guest=web\n\
         qemu         401       1     502  9    3 06:41 ?        00:00:07 /usr/libexec/qemu-kvm -name guest=db\n\
         qemu         401       1     504  9    3 06:41 ?        00:00:07 /usr/libexec/qemu-kvm -name guest=db\n",
    );
    let known = json!([
        vm(Some(400), Some("web"), &[501, 503]),
        vm(Some(401), Some("db"), &[502, 504]),
    ]);
    failures.equal("ps -eLf", &vms(&recording, &[&ps]), &known);
    // The recording's own word on numbers stands against facts, and no thread becomes a vCPU by facts alone.
    let wrong = write(
        "wrong.json",
        r#"{"trapline": "1", "vms": [{"pid": 400, "name": "web",
            "vcpus": [{"id": 5, "tid": 501}, {"id": 6, "tid": 599}]}]}"#,
    );
    failures.equal(
        "a recorded number",
        &vms(&recording, &[&wrong])[0],
        &vm(Some(400), Some("web"), &[501]),
    );
    failures.finish(5);
}

/// The map of devices may stand among the facts; one that is named with --mtree counts more.
#[test]
fn a_map_of_devices_may_be_among_the_facts() {
    let mut failures = Failures::default();
    let recording = case("x86/clocksource-acpi_pm/loop/perf.data.guest.zst").path;
    let folder = tempfile::tempdir().expect("a folder");
    let map = |name: &str| {
        let path = folder.path().join(name);
        let text = format!(
            "(qemu) info mtree\naddress-space: I/O\n  0000000000000000-000000000000ffff (prio 0, i/o): io\n    \
             0000000000000608-000000000000060b (prio 0, i/o): {name}\n(qemu) \n"
        );
        fs::write(&path, text).expect("a written file");
        path
    };
    let (first, second) = (map("first-timer"), map("second-timer"));
    let by_option = with(&[&first]).beside(|beside| beside.mtree = Some(second.clone()));
    for (asked, twice, expected) in [
        (with(&[&first]), false, "first-timer"),
        (with(&[&first, &second]), true, "first-timer"),
        (by_option, false, "second-timer"),
    ] {
        let document = asked.table(ExitTable::Ioport).exits_document(&recording);
        let document = document.expect("exits");
        let rows = document["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["key"] == "0x608:PIN");
        failures.equal(expected, &row.expect("a row")["name"], &json!(expected));
        let warnings = document["quality"]["warnings"].to_string();
        failures.equal(&warnings, &warnings.contains("second text"), &twice);
    }
    failures.finish(5);
}

/// Wherever a corpus has the text of `ps` beside a host's recording, all VMs get process and name by it.
#[test]
fn ps_beside_a_recording_names_its_vms() {
    let mut failures = Failures::default();
    for case in cases() {
        let folder = case.path.parent().expect("a folder");
        let texts = ["l1-ps.txt", "ps-before.txt"].map(|name| folder.join(name));
        let Some(ps) = texts.iter().find(|path| path.exists()) else {
            continue;
        };
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let threads = |vms: &Value| {
            let vcpus = list(vms).into_iter().flat_map(|vm| list(&vm["vcpus"]));
            let mut tids: Vec<u64> = vcpus.filter_map(|vcpu| vcpu["tid"].as_u64()).collect();
            tids.sort_unstable();
            tids
        };
        let known = vms(&case.path, &[ps]);
        for vm in list(&known) {
            let name = vm["name"].as_str().unwrap_or_default();
            let named = vm["pid"].is_u64() && !name.is_empty() && !name.starts_with("qemu");
            failures.check(named, || format!("{}: {vm}", case.name));
        }
        // Nobody becomes a vCPU by hearsay, and none is lost.
        let alone = threads(&vms(&case.path, &[]));
        failures.equal(&case.name, &threads(&known), &alone);
    }
    failures.finish(20);
}

/// perf.data has the machine's NUMA nodes, as `perf report -I --header-only` (6.1) prints them; facts have distances
/// too, and IPIs are parted by them.
#[test]
fn numa_nodes_are_those_of_the_recording_or_of_the_facts() {
    let mut failures = Failures::default();
    let recording = case("x86/preempted-sick/perf.data.zst").path;
    let session =
        session::Session::open(session::SessionOptions::default()).expect("no files beside");
    let input = session.input(&recording).expect("a file");
    let opened = input.recording().expect("a recording");
    let nodes: Vec<(u32, String, Option<u64>)> = opened
        .nodes()
        .iter()
        .map(|node| (node.node, node.cpus.to_string(), node.memory_bytes))
        .collect();
    let printed = [(0, "0-3".to_owned(), Some(6_066_880 * 1024))];
    failures.equal("perf.data", &nodes, &printed.to_vec());
    let ipis = |asked: FixtureQuestion| {
        let (reports, _) = asked.paths(&recording).expect("paths");
        reports
            .into_iter()
            .find(|one| one.name == "ipi")
            .expect("ipi")
    };
    let alone = ipis(FixtureQuestion::new());
    failures.equal("one node", &(alone.by, alone.groups.len()), &(None, 0));
    // The same machine, had it two nodes.
    let folder = tempfile::tempdir().expect("a folder");
    let numactl = write_text(
        folder.path(),
        "numactl.txt",
        "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 2962 MB\nnode 1 cpus: 2 3\nnode 1 size: 2962 MB\n\
         node distances:\nnode   0   1 \n  0:  10  21 \n  1:  21  10 \n",
    );
    let parted = ipis(with(&[&numactl]));
    failures.equal("two nodes", &parted.by, &Some("NUMA distance"));
    let counts = parted.groups.iter().map(|group| group.stats.count());
    failures.equal("their sum", &counts.sum(), &alone.count);
    let labels: Vec<&str> = parted
        .groups
        .iter()
        .map(|group| group.label.as_str())
        .collect();
    for label in labels {
        let known = ["same NUMA node", "another NUMA node, distance 21"];
        failures.check(known.contains(&label), || label.to_owned());
    }
    failures.finish(5);
}
