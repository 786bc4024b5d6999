//! `trapline paths` as its users meet it: its forms, any pair of events, what is refused and how. What is found is in
//! `crates/paths/tests`.

use std::fs;
use std::path::Path;

use crate::common::{Failures, case, cases, file, json, number, run, write_text};

#[test]
fn tables_fit_80_columns() {
    let mut failures = Failures::default();
    for case in cases() {
        let run = run(["paths".as_ref(), case.path.as_os_str()]);
        if run.status != 0 {
            continue;
        }
        for line in run.text().lines() {
            // Names of devices and events may be long; the numbers behind them stay in their columns. A path is not
            // broken.
            let one_word = line.split_whitespace().nth(2).is_none();
            let long = line.chars().count() > 80 && !line.starts_with("  ") && !one_word;
            failures.check(!long, || format!("{}: {line}", case.name));
        }
    }
    failures.finish(500);
}

/// Returns what the first device's interrupt had.
fn first_features(path: &Path) -> String {
    let each = json(&["paths", "--path", "device-irq", "--each"], path).expect("instances");
    each["instances"][0]["features"].to_string()
}

/// What the vCPU did is what the interrupt met, where a back end in a process of its own sends it and whose it is shows
/// later.
#[test]
fn what_an_interrupt_met_does_not_depend_on_when_its_vcpu_is_known() {
    let paths = Path::new(env!("CARGO_MANIFEST_DIR")).join("../paths/tests/by_hand");
    let text = fs::read_to_string(paths.join("irqfd_target_in_user_space.txt")).expect("a text");
    let folder = tempfile::tempdir().expect("a folder");
    for sender in ["vhost-1000-1005", "rte-worker-1-905"] {
        let text = text.replace("vhost-1000-1005", sender);
        let path = write_text(folder.path(), "sent.txt", &text);
        let features = first_features(&path);
        for one in [
            "vCPU was in user space",
            "vCPU was busy with port 0x3f8 write",
        ] {
            assert!(features.contains(one), "{sender}: {features}");
        }
    }
}

/// So are the exits that it met until then, whatever else is followed: a vCPU that prints with its interrupts off.
#[test]
fn exits_before_an_interrupts_vcpu_is_known_are_counted() {
    let exit = "vcpu 0 reason io rip 0x10 info1 0x3f80010 info2 0x0 intr_info 0x0 error_code 0x0";
    let mut text = String::new();
    let mut at_us = 0;
    let mut event = |task: &str, what: &str| {
        at_us += 10;
        text.push_str(&format!("  {task}  [001] 100.{at_us:06}: {what}\n"));
    };
    // Two VMs have a vCPU of that number, so that the injection alone says whose it is.
    for vcpu in ["CPU 0/KVM-2010", "CPU 0/KVM-1010"] {
        event(vcpu, "kvm_entry: vcpu 0, rip 0x10");
    }
    event(
        "worker-905",
        "kvm_msi_set_irq: dst 0 vec 37 (Fixed|physical|edge)",
    );
    event(
        "worker-905",
        "kvm_apic_accept_irq: apicid 0 vec 37 (Fixed|edge)",
    );
    for _ in 0..3 {
        event("CPU 0/KVM-1010", &format!("kvm_exit: {exit}"));
        event(
            "CPU 0/KVM-1010",
            "kvm_pio: pio_write at 0x3f8 size 1 count 1 val 0x41",
        );
        event(
            "CPU 0/KVM-1010",
            "kvm_userspace_exit: reason KVM_EXIT_IO (2)",
        );
        event("CPU 0/KVM-1010", "kvm_entry: vcpu 0, rip 0x10");
    }
    event(
        "CPU 0/KVM-1010",
        "kvm_exit: vcpu 0 reason vintr rip 0x10 info1 0x0 info2 0x0",
    );
    event("CPU 0/KVM-1010", "kvm_inj_virq: IRQ 0x25");
    event("CPU 0/KVM-1010", "kvm_entry: vcpu 0, rip 0x10");
    let folder = tempfile::tempdir().expect("a folder");
    let path = write_text(folder.path(), "late.txt", &text);
    let features = first_features(&path);
    for one in [
        "vCPU was in its guest",
        "vCPU exits to the VMM on port 0x3f8 write",
    ] {
        assert!(features.contains(one), "{features}");
    }
    assert!(features.contains("COM1 THR): at least 2"), "{features}");
}

/// Rows of `--each` are the instances of the report, in JSON and CSV alike.
#[test]
fn each_instance_is_printed_once() {
    let mut failures = Failures::default();
    let path = case("arm64/vhost-mmio/boot1/trace.dat.zst").path;
    let report = json(&["paths"], &path).unwrap();
    let each = json(&["paths", "--each"], &path).unwrap();
    let instances = each["instances"].as_array().unwrap();
    let csv = run([
        "paths".as_ref(),
        "--each".as_ref(),
        "--format".as_ref(),
        "csv".as_ref(),
        path.as_os_str(),
    ]);
    let lines = run(["paths".as_ref(), "--each".as_ref(), path.as_os_str()]);
    failures.equal("CSV", &csv.text().lines().count(), &(instances.len() + 1));
    failures.equal("lines", &lines.text().lines().count(), &instances.len());
    for one in report["paths"].as_array().unwrap() {
        let of_path = || instances.iter().filter(|i| i["path"] == one["path"]);
        let what = one["path"].to_string();
        failures.equal(&what, &(of_path().count() as u64), &number(one, "count"));
        let total: u64 = of_path().map(|i| number(i, "total_ns")).sum();
        failures.equal(&what, &total, &number(&one["total"], "total_ns"));
        for (instance, at) in of_path().zip(1u64..) {
            failures.equal(&what, &number(instance, "instance"), &at);
            let steps = instance["steps"].as_array().unwrap();
            let times: Vec<u64> = steps.iter().map(|step| number(step, "time_ns")).collect();
            failures.check(times.is_sorted() && times.len() > 1, || {
                format!("{what}: {times:?}")
            });
            let (first, last) = (times[0], times[times.len() - 1]);
            failures.equal(&what, &number(instance, "start_ns"), &first);
            failures.equal(&what, &number(instance, "total_ns"), &(last - first));
        }
    }
    failures.finish(2000);
}

#[test]
fn one_instance_is_shown_with_its_events() {
    let mut failures = Failures::default();
    let path = file("seed-text/case4-vhost.trace-cmd.txt");
    let path = path.to_str().unwrap();
    let text = run(["paths", "--path", "kick", "--instance", "1", path]).text();
    for words in [
        "kick, instance 1: 187.0us",
        "back end woken",
        "vhost-1781:1793",
        "\n*  qemu-system-aar-1781",
        "kp_tun_get_user",
        "\nquality: ",
    ] {
        failures.check(text.contains(words), || format!("{words}: {text}"));
    }
    let mermaid = [
        "paths",
        "--path",
        "kick",
        "--instance",
        "1",
        "--diagram",
        "mermaid",
    ];
    let text = run(mermaid.into_iter().chain([path])).text();
    failures.check(
        text.contains("\nsequenceDiagram\n    participant p0 as "),
        || text.clone(),
    );
    let arrows = text.lines().filter(|line| line.contains("->>")).count();
    failures.check(arrows >= 3, || text.clone());
    let whole = json(
        &["paths", "--path", "kick", "--instance", "1"],
        path.as_ref(),
    )
    .unwrap();
    let events = whole["instance"]["events"].as_array().map_or(0, Vec::len);
    failures.check(events >= 8, || whole.to_string());
    failures.finish(8);
}

#[test]
fn what_is_wrong_is_said() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().unwrap();
    let recording = file("seed-text/case4-vhost.trace-cmd.txt");
    let recording = recording.to_str().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let step = "[[step]]\nname = \"a\"\nevent = \"kvm_exit\"\nbind = \"v = thread\"\n";
    let garbage = write("garbage.toml", &"\u{1}[[[".repeat(100_000));
    let unknown_key = write("key.toml", &format!("name = \"x\"\ncolour = 1\n{step}"));
    let one_step = write("one.toml", &format!("name = \"x\"\n{step}"));
    let no_join = write(
        "join.toml",
        &format!("name = \"x\"\n{step}[[step]]\nname = \"b\"\nevent = \"kvm_entry\"\n"),
    );
    let no_role = write(
        "role.toml",
        &format!(
            "name = \"x\"\n{step}[[step]]\nname = \"b\"\nevent = \"kvm_entry\"\njoin = \"thread = w\"\n"
        ),
    );
    let condition = write(
        "condition.toml",
        &format!("name = \"x\"\n{step}where = \"task is purple\"\n{step}").replacen(
            "\"a\"\nevent = \"kvm_exit\"\nbind = \"v = thread\"\n[[",
            "\"a\"\n[[",
            0,
        ),
    );
    for (args, status, words) in [
        (
            vec!["--path", "hlat-wake"],
            2,
            vec!["hlat-wake", "halt-wake", "irqfd"],
        ),
        (
            vec!["--path", folder.path().to_str().unwrap()],
            1,
            vec!["--path"],
        ),
        (vec!["--path", &garbage], 1, vec!["garbage.toml", "line 1"]),
        (vec!["--path", &unknown_key], 1, vec!["key.toml", "colour"]),
        (vec!["--path", &one_step], 1, vec!["one.toml", "1 steps"]),
        (
            vec!["--path", &no_join],
            1,
            vec!["join.toml", "step \"b\"", "join"],
        ),
        (
            vec!["--path", &no_role],
            1,
            vec!["role.toml", "\"w\"", "bound are: v"],
        ),
        (
            vec!["--path", &condition],
            1,
            vec!["step \"a\"", "purple", "kworker"],
        ),
        (vec!["--from", "kvm_exit"], 2, vec!["--to"]),
        (vec!["--to", "kvm_exit"], 2, vec!["--from"]),
        (
            vec!["--from", "kvm_exit[", "--to", "kvm_entry"],
            1,
            vec!["--from kvm_exit[", "]"],
        ),
        (
            vec!["--from", "kvm_exit", "--to", "kvm_entry[x <]"],
            1,
            vec!["--to", "nothing stands behind"],
        ),
        (
            vec!["--from", "a", "--to", "b", "--join", "x y"],
            1,
            vec!["--join x y"],
        ),
        (vec!["--slow", "5 parsecs"], 2, vec!["5 parsecs", "ms"]),
        (vec!["--slow", "1.5"], 2, vec!["1.5"]),
        (vec!["--instance", "1"], 2, vec!["--path", "7"]),
        (
            vec!["--path", "kick", "--instance", "2"],
            1,
            vec!["no instance 2", "1 completed"],
        ),
        (
            vec!["--path", "kick", "--instance", "0"],
            1,
            vec!["no instance 0"],
        ),
        (
            vec!["--path", "kick", "--instance", "1", "--format", "csv"],
            2,
            vec!["--each"],
        ),
        (
            vec!["--path", "kick", "--instance", "1", "--each"],
            2,
            vec!["--each"],
        ),
    ] {
        let what = format!("{args:?}");
        let run = run(["paths"].into_iter().chain(args).chain([recording]));
        failures.equal(&what, &run.status, &status);
        failures.check(run.stdout.is_empty(), || {
            format!("{what} prints {}", run.text())
        });
        for word in words {
            failures.check(run.stderr.contains(word), || {
                format!("{what}: {} does not say {word:?}", run.stderr)
            });
        }
    }
    failures.finish(60);
}

/// A recording without any of the events is refused with that, and with what to record.
#[test]
fn nothing_found_is_said_plainly() {
    let path = case("host/sender-flows/perf.data.zst");
    let run = run(["paths".as_ref(), path.path.as_os_str()]);
    let text = run.text();
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(text.contains("not found in this recording"), "{text}");
    assert!(text.contains("'trapline record --for paths'"), "{text}");
}

/// The help's own example: HLT is `hlt` on AMD, and a reason is meant in either case.
#[test]
fn reasons_are_compared_whatever_their_case() {
    let path = file("x86/console-healthy/perf.data.zst");
    let count = |reason: &str| {
        let from = format!("kvm_exit[reason=={reason}]");
        let args = [
            "paths",
            "--from",
            &from,
            "--to",
            "kvm_entry",
            "--join",
            "vcpu",
        ];
        let document = json(&args, &path).unwrap();
        number(&document["paths"][0], "count")
    };
    assert!(count("hlt") > 100);
    assert_eq!(count("HLT"), count("hlt"));
    assert_eq!(count("vmcall"), 0);
}
