//! Facts given beside a recording with `--facts`.

use std::fs;
use std::path::Path;

use crate::common::{Failures, case, cases, file, json, run, run_with, write_text};
use serde_json::{Value, json};

/// Processes, names and threads of vCPUs of the VMs that `info` finds.
fn vms(recording: &Path, facts: &[&Path]) -> Value {
    let mut args = vec!["info".to_owned()];
    for path in facts {
        args.extend(["--facts".to_owned(), path.display().to_string()]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let document = json(&args, recording).expect("info succeeds");
    document["vms"].clone()
}

fn vm(pid: Option<i32>, name: Option<&str>, tids: &[i32]) -> Value {
    let vcpus: Vec<Value> = tids
        .iter()
        .enumerate()
        .map(|(id, tid)| json!({"id": id, "tid": tid}))
        .collect();
    json!({"pid": pid, "name": name, "vcpus": vcpus})
}

/// trace.dat records no process ids: `ps` tells them, and QEMU's command line the VM's name.
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
    // What info prints is facts again.
    let folder = tempfile::tempdir().expect("a folder");
    let told = folder.path().join("info.json");
    let recording_text = recording.display().to_string();
    let ps_text = ps.display().to_string();
    let printed = run([
        "info",
        &recording_text,
        "--facts",
        &ps_text,
        "--format",
        "json",
    ]);
    fs::write(&told, &printed.stdout).expect("a written file");
    failures.equal("info's own JSON", &vms(&recording, &[&told]), &named);
    // The filters know the VM by all its names.
    let total = |args: &[&str]| {
        let mut all = vec!["exits", "--facts", &ps_text];
        all.extend_from_slice(args);
        json(&all, &recording).map(|document| document["total_count"].clone())
    };
    let all = total(&[]).expect("exits succeed");
    failures.check(all.as_u64() > Some(100), || format!("{all} exits"));
    for filter in [
        ["--vm", "a"],
        ["--vm", "qemu-system-x86"],
        ["--vm", "3736"],
        ["--pid", "3736"],
    ] {
        failures.equal(&filter.join(" "), &total(&filter), &Ok(all.clone()));
    }
    let text = fs::read(&ps).expect("a text");
    let piped = run_with(
        ["info", &recording_text, "--facts", "-", "--format", "json"],
        &text,
    );
    failures.equal("ps on a pipe", &piped.stdout, &printed.stdout);
    failures.check(total(&["--vm", "b"]).is_err(), || "--vm b".to_owned());
    let without = run(["exits", &recording_text, "--vm", "a"]);
    failures.equal("--vm a without facts", &without.status, &1);
    let report = run([
        "report",
        "--full",
        &recording_text,
        "--facts",
        &ps_text,
        "--vm",
        "a",
    ])
    .text();
    failures.check(report.contains("a, process 3736 (qemu-system-x86)"), || {
        report.clone()
    });
    failures.finish(12);
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
    let ps = ps.display().to_string();
    let exits = |vm: &str| {
        let document = json(&["exits", "--facts", &ps, "--vm", vm], &recording);
        document.map(|document| document["rows"].clone())
    };
    failures.equal("vm2 is 856", &exits("vm2"), &exits("856"));
    failures.check(exits("vm1") != exits("vm2"), || "two VMs".to_owned());
    failures.finish(3);
}

/// Two VMs whose threads were made in turn, which thread ids alone cannot tell apart.
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
fn monitors_tell_vms_apart_that_thread_ids_do_not() {
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
        "thread ids tell".to_owned()
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
        r#"{"trapline": "1", "vms": [{"pid": 400, "name": "web", "vcpus": [{"id": 5, "tid": 501}, {"id": 6, "tid": 599}]}]}"#,
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
        path.display().to_string()
    };
    let (first, second) = (map("first-timer"), map("second-timer"));
    for (args, expected) in [
        (vec!["--facts", first.as_str()], "first-timer"),
        (vec!["--facts", &first, "--facts", &second], "first-timer"),
        (vec!["--facts", &first, "--mtree", &second], "second-timer"),
    ] {
        let all: Vec<&str> = ["exits", "--event", "ioport"]
            .into_iter()
            .chain(args)
            .collect();
        let document = json(&all, &recording).expect("exits succeed");
        let rows = document["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["key"] == "0x608:PIN");
        failures.equal(
            &format!("{all:?}"),
            &row.expect("a row")["name"],
            &json!(expected),
        );
        let warnings = document["quality"]["warnings"].to_string();
        let twice = all.iter().filter(|arg| **arg == "--facts").count() == 2;
        failures.equal(&warnings, &warnings.contains("second text"), &twice);
    }
    failures.finish(6);
}

/// Events as objects have what facts say; as lines they are the tools', to the byte.
#[test]
fn events_are_told_of_their_processes() {
    let mut failures = Failures::default();
    let recording = case("x86/format-variants/v7.dat.zst").path;
    let recording = recording.display().to_string();
    let ps = file("x86/format-variants/l1-ps.txt").display().to_string();
    let lines = |args: &[&str]| run(["events", &recording].iter().chain(args)).text();
    let table = ["--event", "kvm_entry"];
    let with = ["--event", "kvm_entry", "--facts", &ps];
    failures.equal("lines", &lines(&with), &lines(&table));
    let csv = lines(&[&with[..], &["--format", "csv"]].concat());
    let told = csv.lines().skip(1).all(|line| line.contains(",3736,374"));
    failures.check(told && csv.lines().count() > 100, || csv[..200].to_owned());
    failures.finish(2);
}

/// What was not understood is listed with its file and line, in every command.
#[test]
fn what_is_not_understood_is_noted() {
    let mut failures = Failures::default();
    let recording = case("x86/format-variants/v7.dat.zst").path;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mail.txt");
    let ps = fs::read_to_string(file("x86/format-variants/l1-ps.txt")).expect("a text");
    fs::write(
        &path,
        format!("Hello,\nhere is what you asked for:\n\n{ps}"),
    )
    .expect("a written file");
    let path = path.display().to_string();
    for command in ["info", "exits", "report", "events"] {
        let document = json(&[command, "--facts", &path], &recording).expect("it succeeds");
        let warnings = document["quality"]["warnings"].to_string();
        failures.check(warnings.contains("mail.txt: lines 1 to 2"), || {
            format!("{command}: {warnings}")
        });
    }
    failures.finish(4);
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
        let told = vms(&case.path, &[ps]);
        for vm in list(&told) {
            let name = vm["name"].as_str().unwrap_or_default();
            let named = vm["pid"].is_u64() && !name.is_empty() && !name.starts_with("qemu");
            failures.check(named, || format!("{}: {vm}", case.name));
        }
        // Nobody becomes a vCPU by hearsay, and none is lost.
        let alone = threads(&vms(&case.path, &[]));
        failures.equal(&case.name, &threads(&told), &alone);
    }
    failures.finish(20);
}
