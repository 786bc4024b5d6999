//! `trapline bench explain`: slow iterations of a result, looked up in recordings.

use std::path::Path;

use fixtures::bench_results::bench_result;
use fixtures::json::STATE_FIELDS;
use serde_json::{Value, json};

use crate::common::list;
use crate::common::{file, number, run, write_text};

/// What the clock of recordings is ahead of `CLOCK_MONOTONIC` in the results here.
const AHEAD: u64 = 1_000_000;

/// Returns a result whose iterations began at these times on the clock of recordings, and took so long.
fn result(kernel: &str, cpus: u64, to: u64, slow: &[(u64, u64)]) -> String {
    let slow: Vec<Value> = slow
        .iter()
        .map(|(begin, ns)| json!({"begin_ns": begin - AHEAD, "ns": ns}))
        .collect();
    let mut result = bench_result("wake", &[("futex", 1)]);
    for clocks in ["started", "ended"] {
        result[clocks]["monotonic_ns"] = 7.into();
        result[clocks]["recording_ns"] = (7 + AHEAD).into();
    }
    result["machine"] = json!({"kernel": kernel, "cpus": cpus, "nodes": 1});
    result["rows"][0]["to"] = to.to_string().into();
    result["rows"][0]["slow"] = slow.into();
    result.to_string()
}

/// A vCPU on CPU 1 halts; it is woken at 1.2 ms, waits 500 us behind a task, and enters its guest 100 us later.
const HOST: &str = "cpus=2
       <idle>-0  [000] 99.900000: sched_switch: swapper/0:0 [120] R ==> bench-measures:77 [120]
   CPU 0/KVM-101 [001] 100.000000: kvm_entry: vcpu 0, rip 0x1
   CPU 0/KVM-101 [001] 100.000100: kvm_exit: vcpu 0 reason HLT rip 0x1 info1 0x0 info2 0x0 intr_info 0x0 error_code 0x0
   CPU 0/KVM-101 [001] 100.000110: sched_switch: CPU 0/KVM:101 [120] S ==> busy:55 [120]
bench-measures-77 [000] 100.001200: sched_waking: comm=CPU 0/KVM pid=101 prio=120 target_cpu=001
         busy-55 [001] 100.001700: sched_switch: busy:55 [120] R ==> CPU 0/KVM:101 [120]
   CPU 0/KVM-101 [001] 100.001800: kvm_entry: vcpu 0, rip 0x1
   CPU 0/KVM-101 [001] 100.002500: kvm_exit: vcpu 0 reason EXTERNAL_INTERRUPT rip 0x1 \
   info1 0x0 info2 0x0 intr_info 0x0 error_code 0x0
   CPU 0/KVM-101 [001] 100.002510: kvm_entry: vcpu 0, rip 0x1
";

fn explain(result: &Path, recordings: &[&Path], more: &[&str]) -> crate::common::Run {
    let paths = std::iter::once(result).chain(recordings.iter().copied());
    let paths = paths.map(|path| path.to_string_lossy().into_owned());
    let more = more.iter().map(|one| (*one).to_owned());
    let command = ["bench", "explain"].map(str::to_owned);
    run(command.into_iter().chain(paths).chain(more))
}

#[test]
fn an_iteration_has_the_path_that_lies_in_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = write_text(folder.path(), "host.txt", HOST);
    // One iteration has the wake-up in it, another begins in the middle of it, and of the third nothing was recorded.
    let us = |us: u64| 100_000_000_000 + us * 1000;
    let slow = [
        (us(1100), 1_000_000),
        (us(1250), 800_000),
        (us(9_000_000), 500_000),
    ];
    let result = write_text(folder.path(), "r.json", &result("6.1.0", 2, 1, &slow));
    let found = explain(&result, &[&host], &["--format", "json"])
        .json()
        .expect("JSON");
    assert_eq!(number(&found, "slow"), 3);
    let [first, second] = list(&found["iterations"]) else {
        panic!("{found:#}");
    };
    assert_eq!(
        (number(first, "begin_ns"), number(first, "total_ns")),
        (us(1100), 1_000_000)
    );
    let [path] = list(&first["paths"]) else {
        panic!("{first:#}");
    };
    assert_eq!(path["path"], "halt-wake");
    assert_eq!(
        (number(path, "total_ns"), path["share"].as_f64()),
        (600_000, Some(0.6))
    );
    assert_eq!(path["stage"], "woken → on CPU");
    assert_eq!(number(path, "stage_ns"), 500_000);
    let tasks: Vec<(u64, u64)> = list(&first["tasks"])
        .iter()
        .map(|task| (number(task, "tid"), number(task, "ns")))
        .collect();
    assert_eq!(tasks, [(55, 600_000), (101, 400_000)]);
    // It has the end of the same: 450 us of its wait for the CPU.
    let [path] = list(&second["paths"]) else {
        panic!("{second:#}");
    };
    let times = ["total_ns", "here_ns", "stage_ns"].map(|name| number(path, name));
    assert_eq!(times, [600_000, 550_000, 450_000]);
    assert_eq!(number(&list(&second["tasks"])[0], "ns"), 450_000);

    let text = explain(&result, &[&host], &[]).text();
    assert!(
        text.contains("2 of 3 slow iterations are in the recording"),
        "{text}"
    );
    assert!(
        text.contains("halt-wake: woken → on CPU: 2 iterations, 950.0us"),
        "{text}"
    );
    let csv = explain(&result, &[&host], &["--format", "csv"]).text();
    assert_eq!(csv.lines().count(), 3, "{csv}");
}

#[test]
fn a_guests_iterations_are_found_on_its_hosts_clock() {
    let host = file("arm64/virtio-mmio/boot2-vsock/trace.dat.zst");
    let guest = file("arm64/virtio-mmio/boot2-vsock/trace-guest1.dat.zst");
    let [host_name, guest_name] = [&host, &guest].map(|path| path.to_string_lossy().into_owned());
    let info = run(["info", "--format", "json", &host_name, &guest_name]);
    let info = info.json().expect("JSON");
    let offset = list(&info["guests"])[0]["offset_ns"]
        .as_u64()
        .expect("it is ahead");
    let begin = number(&info, "start_ns") + 200_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let text = result("6.1.0-50-arm64", 2, 1, &[(begin - offset, 100_000_000)]);
    let result_file = write_text(folder.path(), "r.json", &text);
    let found = explain(&result_file, &[&host, &guest], &["--format", "json"]);
    let found = found.json().expect("JSON");
    let one = &list(&found["iterations"])[0];
    assert_eq!(number(one, "begin_ns"), begin);
    assert_eq!(list(&one["vcpus"]).len(), 2, "{one:#}");
    let end = begin + 100_000_000;
    let stamp = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let window = format!("{},{}", stamp(begin), stamp(end));
    for (vcpu, role) in list(&one["vcpus"]).iter().zip(["from", "to"]) {
        assert_eq!(vcpu["role"], role);
        let id = number(vcpu, "vcpu").to_string();
        let alone = run([
            "vcpus", "--format", "json", "--time", &window, "--vcpu", &id, &host_name,
        ]);
        let alone = alone.json().expect("JSON");
        let row = &list(&alone["rows"])[0];
        let names = ["guest_ns", "user_ns", "halted_ns", "runnable_ns"];
        for name in names {
            assert_eq!(number(vcpu, name), number(row, name), "vCPU {id}: {name}");
        }
        let sum: u64 = STATE_FIELDS.iter().map(|name| number(vcpu, name)).sum();
        assert_eq!(sum, 100_000_000);
    }
    // The host's recording alone is of another machine.
    let refused = explain(&result_file, &[&host], &[]);
    assert_eq!(refused.status, 1);
    assert!(
        refused.stderr.contains("no thread of the benchmark"),
        "{}",
        refused.stderr
    );
    let other = result("6.6.1", 2, 1, &[(begin - offset, 100_000_000)]);
    let other = write_text(folder.path(), "other.json", &other);
    let refused = explain(&other, &[&host, &guest], &[]);
    assert_eq!(refused.status, 1);
    assert!(
        refused
            .stderr
            .contains("is of another machine than the result"),
        "{}",
        refused.stderr
    );
}

#[test]
fn what_says_nothing_of_the_iterations_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = write_text(folder.path(), "host.txt", HOST);
    let text = result("6.1.0", 2, 1, &[(500_000_000_000, 1000)]);
    let never = write_text(folder.path(), "r.json", &text);
    let run = explain(&never, &[&host], &[]);
    assert_eq!(run.status, 1);
    assert!(
        run.stderr.contains("no thread of the benchmark"),
        "{}",
        run.stderr
    );
    let run = explain(&host, &[&host], &[]);
    assert_eq!(run.status, 1);
    assert!(run.stderr.contains("host.txt"), "{}", run.stderr);
    let unknown = text.replace(
        &format!("\"recording_ns\":{}", 7 + AHEAD),
        "\"recording_ns\":null",
    );
    assert_ne!(unknown, text);
    let unknown = write_text(folder.path(), "unknown.json", &unknown);
    let run = explain(&unknown, &[&host], &[]);
    assert!(
        run.stderr.contains("does not have the clock of recordings"),
        "{}",
        run.stderr
    );
    let run = explain(&never, &[&host], &["--vcpu", "1"]);
    assert_eq!(run.status, 2);
}
