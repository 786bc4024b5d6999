//! `trapline facts`: what it prints of a made-up host, and that the other commands take it.

use std::fs;
use std::path::Path;

use crate::common::{Failures, case, json, run, run_with};
use serde_json::json;

/// A host with one VM, whose vCPU threads are those of a recording.
fn host(root: &Path) {
    let put = |path: &str, text: &str| {
        let full = root.join(path);
        fs::create_dir_all(full.parent().expect("a parent")).expect("folders");
        fs::write(full, text).expect("a file");
    };
    put("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    put(
        "proc/cmdline",
        "isolcpus=2-3 nohz_full=2-3 rd.luks.key=hidden root=/dev/vda1 console=ttyS0,115200 quiet\n",
    );
    put("sys/devices/system/cpu/online", "0-3\n");
    put("sys/devices/system/cpu/isolated", "2-3\n");
    put("sys/module/kvm/parameters/halt_poll_ns", "200000\n");
    let policy = "sys/devices/system/cpu/cpufreq/policy0";
    put(&format!("{policy}/affected_cpus"), "0 1 2 3\n");
    put(&format!("{policy}/scaling_governor"), "ondemand\n");
    put(
        "proc/3736/cmdline",
        "qemu-system-x86_64\0-name\0web\x1b[31m,debug-threads=on\0-vnc\0:0,password=hidden\0",
    );
    put(
        "proc/3736/status",
        "Name:\tqemu-system-x86\nPPid:\t1\nCpus_allowed_list:\t0-3\n",
    );
    for (tid, name, cpus) in [
        (3736, "qemu-system-x86", "0-3"),
        (3742, "CPU 0/KVM", "2"),
        (3743, "CPU 1/KVM", "3"),
    ] {
        put(
            &format!("proc/3736/task/{tid}/status"),
            &format!("Name:\t{name}\nPPid:\t1\nCpus_allowed_list:\t{cpus}\n"),
        );
    }
}

#[test]
fn facts_of_a_host_are_printed_and_taken_by_other_commands() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    host(folder.path());
    let root = folder.path().display().to_string();
    let printed = run(["facts", "--root", &root, "--format", "json"]);
    let document = printed.json().expect("facts succeed");
    let members: Vec<&String> = document.as_object().expect("an object").keys().collect();
    failures.equal(
        "members",
        &format!("{members:?}"),
        &r#"["trapline", "schema", "command", "inputs", "quality", "facts_version", "host", "vms", "threads"]"#
            .to_owned(),
    );
    failures.equal("command", &document["command"], &json!("facts"));
    failures.equal("inputs", &document["inputs"], &json!([root]));
    failures.equal("isolated", &document["host"]["isolated"], &json!("2-3"));
    failures.equal("masked", &document["host"]["masked"], &json!(2));
    failures.equal(
        "vCPUs",
        &document["vms"][0]["vcpus"],
        &json!([{"id": 0, "tid": 3742, "affinity": "2"}, {"id": 1, "tid": 3743, "affinity": "3"}]),
    );
    let unreadable = document["host"]["unreadable"].to_string();
    failures.check(unreadable.contains("/proc/interrupts"), || {
        unreadable.clone()
    });

    let table = run(["facts", "--root", &root]).text();
    for line in [
        "CPUs       4 online (0-3)",
        "isolation  isolated 2-3, nohz_full 2-3, rcu_nocbs 2-3",
        "vCPU 0     thread 3742     CPUs 2",
        "unreadable /proc/interrupts: no such file",
    ] {
        failures.check(table.lines().any(|found| found == line), || {
            format!("{line}\n{table}")
        });
    }
    let csv = run(["facts", "--root", &root, "--format", "csv"]).text();
    failures.check(
        csv.contains("\nhost.cpufreq[0].governor,ondemand\n"),
        || csv.clone(),
    );
    for text in [&table, &csv, &printed.text()] {
        failures.check(!text.contains("hidden"), || format!("a secret\n{text}"));
    }
    failures.check(!table.contains('\x1b'), || {
        "the terminal is steered".to_owned()
    });
    let wide = table
        .lines()
        .filter(|line| line.chars().count() > 80)
        .count();
    failures.equal("lines wider than 80 columns", &wide, &0);

    // What was printed is taken by the other commands, and by itself.
    let path = folder.path().join("facts.json");
    fs::write(&path, &printed.stdout).expect("a written file");
    let path = path.display().to_string();
    let recording = case("x86/format-variants/v7.dat.zst").path;
    for command in ["info", "exits", "vcpus", "sched", "report", "paths"] {
        let document = json(&[command, "--facts", &path], &recording);
        let warnings = document.map(|document| document["quality"]["warnings"].to_string());
        failures.check(
            warnings
                .as_ref()
                .is_ok_and(|text| !text.contains("facts.json")),
            || format!("{command}: {warnings:?}"),
        );
    }
    let rows = json(&["vcpus", "--facts", &path], &recording).expect("vcpus succeed");
    failures.equal("process", &rows["rows"][0]["vm_pid"], &json!(3736));
    failures.equal("again", &run(["facts", &path]).text(), &table);
    let piped = run_with(["facts", "-", "--format", "json"], &printed.stdout);
    let again = piped.json().expect("facts succeed");
    failures.equal("host", &again["host"], &document["host"]);
    failures.equal("inputs", &again["inputs"], &json!(["-"]));
    failures.finish(25);
}

#[test]
fn what_is_not_understood_of_a_file_is_reported() {
    let mut failures = Failures::default();
    let text = br#"{"trapline": "9", "facts_version": 9, "host": {"hz": "many", "smt": "on"}}"#;
    let document = run_with(["facts", "-", "--format", "json"], text).json();
    let document = document.expect("facts succeed");
    let warnings = document["quality"]["warnings"].to_string();
    for part in [
        "standard input: line 1",
        "facts_version 9; this one knows 1",
        "host.hz: expected a whole number",
    ] {
        failures.check(warnings.contains(part), || format!("{part}: {warnings}"));
    }
    failures.equal("smt", &document["host"]["smt"], &json!("on"));
    let table = run_with(["facts", "-"], text).text();
    failures.check(table.contains("warning: standard input: line 1"), || {
        table.clone()
    });
    failures.finish(5);
}

#[test]
fn what_cannot_be_looked_at_is_refused() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a file");
    fs::write(&file, "Dear all,\n").expect("a file");
    let file = file.display().to_string();
    for (args, status, message) in [
        (
            vec!["facts", "--root", "/no/where"],
            1,
            "/no/where: no such file",
        ),
        (vec!["facts", "--root", &file], 1, "is no directory"),
        (vec!["facts", &file], 1, "says nothing about threads"),
        (vec!["facts", "/no/where"], 1, "no such file"),
        (
            vec!["facts", &file, "--root", "/"],
            2,
            "cannot be used with",
        ),
        (vec!["facts", "--vm", "web"], 2, "unexpected argument"),
    ] {
        let done = run(&args);
        failures.equal(&format!("{args:?}"), &done.status, &status);
        failures.check(done.stderr.contains(message), || {
            format!("{args:?}: {}", done.stderr)
        });
    }
    failures.finish(12);
}
