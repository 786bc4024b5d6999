//! What tools printed, where a recording is expected: tables are read as they are, other texts are answered with the
//! option that takes them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Failures, case, file, json, run, write_text};
use serde_json::Value;

fn seed(name: &str) -> PathBuf {
    file(&format!("seed-text/{name}"))
}

#[test]
fn a_table_of_a_document_is_shown_by_exits_and_by_report() {
    let acpi = seed("case2-acpi_pm.perf-kvm-stat-ioport.txt");
    // The only table of a file need not be named.
    let document = json(&["exits"], &acpi).unwrap();
    assert_eq!(document["event"], "ioport");
    let row = &document["rows"][0];
    assert_eq!(
        (&row["key"], &row["count"]),
        (&"0x608:PIN".into(), &24618.into())
    );
    assert_eq!(row["name"], "acpi-tmr");
    let path = acpi.to_string_lossy().into_owned();
    let table = run(["exits", "--wide", &path]).text();
    assert!(table.contains("ioport: 24618 port accesses"), "{table}");
    let as_perf = run(["exits", "--as", "perf", &path]).text();
    assert!(as_perf.contains("Total Samples:24618"), "{as_perf}");
    let csv = run(["exits", "--format", "csv", &path]).text();
    assert!(
        csv.lines()
            .any(|line| line.contains(",24618,1,") && line.contains(",,,")),
        "{csv}"
    );
    let vmexit = seed("case2-acpi_pm.perf-kvm-stat-vmexit.txt");
    let both = run([
        "report",
        "--format",
        "json",
        &path,
        &vmexit.to_string_lossy(),
    ]);
    let both = both.json().unwrap();
    let recordings = both["recordings"].as_array().unwrap();
    // Of one situation.
    assert_eq!(recordings.len(), 1);
    let exits = recordings[0]["exits"].as_array().unwrap();
    let events: Vec<_> = exits.iter().map(|table| &table["event"]).collect();
    assert_eq!(events, ["ioport", "vmexit"]);
    assert_eq!(recordings[0]["findings"][0]["id"], "timer-port-exits");
    let text = run(["report", &path]).text();
    assert!(
        text.contains("perf kvm stat report (ioport)") && text.contains("0x608:PIN"),
        "{text}"
    );
    assert!(!text.contains("There are no kvm_exit events"), "{text}");
    // Whose exits they are, and which of them, a sum does not say.
    for args in [&["--by", "vcpu"][..], &["--vcpu", "0"], &["--time", "1,2"]] {
        let refused = run([&["exits", path.as_str()], args].concat());
        assert_eq!((refused.status, refused.stdout.len()), (1, 0), "{args:?}");
        assert!(
            refused.stderr.contains("printed table"),
            "{}",
            refused.stderr
        );
    }
}

/// A text of the crate that reads these, `perftables/tests/tables`.
fn printed(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../perftables/tests/tables");
    folder.join(name).display().to_string()
}

/// A text without the ends of its lines.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn rows_of_timehist_are_delays_of_tasks() {
    let run_of = |name: &str| run(["sched", "--format", "json", &printed(name)]);
    let document = run_of("timehist-6.1-all-columns.txt").json().unwrap();
    let rows = document["rows"].as_array().unwrap();
    let vcpu = rows.iter().find(|row| row["pid"] == 171).expect("a vCPU");
    assert_eq!(vcpu["comm"], "CPU 0/KVM");
    let text = run(["report", &printed("timehist-6.1.txt")]).text();
    assert!(
        words(&text).contains("printed by perf sched timehist"),
        "{text}"
    );
    // Of run times alone nobody knows the waits.
    let diagnosis = run(["diagnose", "--full", &printed("timehist-6.1-summary.txt")]).text();
    let (_, unknown) = diagnosis.split_once("could not check").expect("causes");
    assert!(unknown.contains("helper-waits-for-cpu"), "{diagnosis}");
}

#[test]
fn system_calls_show_a_console_that_is_written_byte_by_byte() {
    for (name, confidence) in [
        ("strace-vcpu-tt.txt", 0.6),
        ("strace-f-T.txt", 0.8),
        ("perf-trace.txt", 0.8),
    ] {
        let found = run(["diagnose", "--format", "json", &printed(name)]);
        let found = found.json().unwrap();
        let finding = &found["findings"][0];
        assert_eq!(finding["id"], "console-on-irq-vcpu", "{name}");
        assert_eq!(finding["severity"], "medium", "{name}");
        assert_eq!(finding["confidence"], confidence, "{name}");
    }
}

#[test]
fn maps_of_bpftrace_are_exits_by_reason() {
    for name in ["bpftrace-reasons.txt", "bpftrace-numbers.txt"] {
        let text = run(["report", &printed(name)]).text();
        assert!(words(&text).contains("exits are IO_INSTRUCTION"), "{text}");
        assert!(words(&text).contains("printed by bpftrace"), "{text}");
    }
    let text = run(["report", &printed("runqlat.txt")]).text();
    assert!(text.contains("2220 values, half below 8"), "{text}");
    let times = run(["exits", &printed("kvm_service_time-amd.txt")]).text();
    assert!(times.contains("svm") && times.contains("40011"), "{times}");
}

/// A ticket may hold both.
#[test]
fn a_table_beside_a_recording_is_reported_after_it() {
    let table = fs::read_to_string(seed("case2-acpi_pm.perf-kvm-stat-ioport.txt")).unwrap();
    let trace = "       CPU 0/KVM-1010  [001]    10.000001: kvm_entry:            \
                 vcpu 0, rip 0xffffffff81000000\n       \
                 CPU 0/KVM-1010  [001]    10.000002: kvm_exit:             \
                 vcpu 0 reason hlt rip 0xffffffff81000000 info1 0x0 info2 0x0 intr_info 0x0 error_code 0x0\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ticket.txt");
    fs::write(
        &path,
        format!("{}\nand perf says\n\n{table}", trace.repeat(9)),
    )
    .unwrap();
    let document = json(&["report"], &path).unwrap();
    let recordings = document["recordings"].as_array().unwrap();
    assert_eq!(recordings.len(), 2, "{document}");
    assert_eq!(recordings[0]["events"][0]["count"], 9);
    assert_eq!(recordings[1]["exits"][0]["rows"][0]["count"], 24618);
}

#[test]
fn times_of_arm64_in_a_table_are_said_to_be_the_guests() {
    let document = json(&["exits"], &seed("case4-virtio.perf-kvm-stat-vmexit.txt")).unwrap();
    let warnings = document["quality"]["warnings"].to_string();
    assert!(warnings.contains("how long the guest ran"), "{warnings}");
    let document = json(&["exits"], &seed("case2-hpet.perf-kvm-stat-vmexit.txt")).unwrap();
    let warnings = document["quality"]["warnings"].to_string();
    assert!(!warnings.contains("how long the guest ran"), "{warnings}");
}

#[test]
fn counts_of_perf_stat_come_with_their_ratios() {
    let document = json(&["report"], &seed("case5-perf-stat.txt")).unwrap();
    let recordings = document["recordings"].as_array().unwrap();
    assert_eq!(recordings.len(), 3);
    let slow = &recordings[0]["counts"];
    let cycles = slow
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["event"] == "cycles");
    let cycles = cycles.unwrap();
    assert_eq!(cycles["count"], 67_086_874_844u64);
    let near = |value: &Value, expected: f64| {
        let value = value.as_f64().unwrap();
        assert!((value / expected - 1.0).abs() < 1e-9, "{value} {expected}");
    };
    near(&cycles["per_second"], 67_086_874_844.0 / 10.047327675);
    near(&cycles["per_switch"], 67_086_874_844.0 / 795_370.0);
    assert!(cycles["per_exit"].is_null());
    // The third does not say for how long it counted.
    assert!(recordings[2]["counts"][0]["per_second"].is_null());
    let text = run(["report".as_ref(), seed("case5-perf-stat.txt").as_os_str()]).text();
    assert!(
        text.contains("per switch") && text.contains("good host"),
        "{text}"
    );
    let refused = run(["exits".as_ref(), seed("case5-perf-stat.txt").as_os_str()]);
    assert!(
        refused.stderr.contains("trapline report"),
        "{}",
        refused.stderr
    );
    // By exit, and from intervals.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stat.txt");
    let text = "#           time             counts unit events\n\
                \x20    1.000100000              2,000      kvm:kvm_exit\n\
                \x20    1.000100000             10,000      context-switches\n\
                \x20    2.000200000              4,000      kvm:kvm_exit\n\
                \x20    2.000200000             20,000      context-switches\n";
    fs::write(&path, text).unwrap();
    let document = json(&["report"], &path).unwrap();
    let switches = &document["recordings"][0]["counts"][1];
    assert_eq!(switches["count"], 30_000);
    near(&switches["per_exit"], 5.0);
    near(&switches["per_second"], 30_000.0 / 2.0002);
}

#[test]
fn the_scheduler_s_table_is_shown_by_sched_and_by_report() {
    let path = seed("case5-slow-host.perf-sched-latency.txt");
    let document = json(&["sched"], &path).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let iperf = rows.iter().find(|row| row["comm"] == "iperf").unwrap();
    assert_eq!(
        (&iperf["switches"], &iperf["threads"]),
        (&27683.into(), &6.into())
    );
    assert_eq!(iperf["delay_max_ns"], 31_598_000);
    assert!(iperf["delay_p99_ns"].is_null() && iperf["preempted"].is_null());
    let name = path.to_string_lossy().into_owned();
    let text = run(["sched", &name]).text();
    assert!(
        text.contains("iperf:(6)") && text.contains("p99 -"),
        "{text}"
    );
    assert!(run(["report", &name]).text().contains("iperf:(6)"));
    for args in [&["--by", "cpu"][..], &["--histogram"], &["--vcpu", "0"]] {
        let refused = run([&["sched", name.as_str()], args].concat());
        assert_eq!((refused.status, refused.stdout.len()), (1, 0), "{args:?}");
    }
}

/// Checks that every command answers a text with the option that takes it.
fn answered(failures: &mut Failures, what: &str, path: &Path, words: &[&str]) {
    let name = path.display().to_string();
    for command in [
        "info", "events", "exits", "vcpus", "sched", "paths", "report", "diagnose", "compare",
    ] {
        // A definition alone is checked by itself.
        if what == "domain" && matches!(command, "report" | "diagnose") {
            continue;
        }
        let mut args = vec![command, &name];
        if command == "compare" {
            args.push(&name);
        }
        let run = run(args);
        failures.equal(&format!("{what}: {command}"), &run.status, &1);
        failures.equal(
            &format!("{what}: {}", run.stderr),
            &run.stderr.lines().count(),
            &1,
        );
        for word in words.iter().chain([&name.as_str()]) {
            failures.check(run.stderr.contains(word), || {
                format!("{what}: {command}: {} does not say {word}", run.stderr)
            });
        }
    }
}

#[test]
fn texts_that_an_option_takes_are_answered_with_it() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| write_text(folder.path(), name, text);
    let domain = seed("case2-win10.domain.xml");
    answered(&mut failures, "domain", &domain, &["win10-2", "--domain"]);
    let ps = write(
        "ps.txt",
        "    PID     TID COMMAND         COMMAND\n      1       1 init            /sbin/init\n    \
         854     854 qemu-system-x86 qemu-system-x86_64 -name web -m 1G\n    854     857 CPU 0/KVM       \
         qemu-system-x86_64 -name web -m 1G\n",
    );
    answered(&mut failures, "ps", &ps, &["--facts", "1 VM"]);
    let cpus = write(
        "cpus.txt",
        "* CPU #0: thread_id=857\n  CPU #1: thread_id=858\n",
    );
    answered(&mut failures, "info cpus", &cpus, &["--facts"]);
    let facts = run(["facts", "--format", "json"]);
    assert_eq!(facts.status, 0, "{}", facts.stderr);
    let facts = write("facts.json", &facts.text());
    answered(&mut failures, "facts", &facts, &["--facts", "settings"]);
    let symbols = write(
        "kallsyms",
        "ffffffff81000000 T _stext\nffffffff81000040 T secondary_startup_64\n",
    );
    answered(&mut failures, "kallsyms", &symbols, &["--kallsyms"]);
    failures.finish(150);
}

/// A profile has no tracepoints, and so no formats to miss.
#[test]
fn a_profile_is_refused_with_what_it_holds() {
    let mut failures = Failures::default();
    for name in [
        "x86/flame-iperf3/l1.perf.data.zst",
        "arm64/vhost-mmio/boot2-vsock/perf.data.l2",
    ] {
        let path = case(name).path;
        for command in ["exits", "vcpus", "sched"] {
            let run = run([command.as_ref(), path.as_os_str()]);
            failures.equal(&format!("{name}: {command}"), &run.status, &1);
            failures.check(run.stderr.contains("it holds"), || run.stderr.clone());
            failures.check(!run.stderr.contains("formats"), || run.stderr.clone());
        }
    }
    // One that was cut off, before its formats, is another thing.
    let cut = case("x86/format-variants/truncated.perf.data.zst").path;
    let run = run(["exits".as_ref(), cut.as_os_str()]);
    failures.check(run.stderr.contains("--formats"), || run.stderr.clone());
    failures.finish(15);
}

/// Tables of different kinds are of one situation, as `diagnose` takes them: one screen, and one part of a page.
#[test]
fn tables_of_one_situation_make_one_report() {
    let tables = ["vmexit", "ioport"]
        .map(|kind| seed(&format!("case2-windows-before.perf-kvm-stat-{kind}.txt")));
    let [vmexit, ioport] = tables.each_ref().map(|path| path.to_str().unwrap());
    let screen = run(["report", vmexit, ioport]).text();
    assert_eq!(screen.matches("\nmore: ").count(), 1, "{screen}");
    assert!(
        screen.contains("high, timer-port-exits") && screen.contains("2.920s (89.0 %"),
        "{screen}"
    );
    let more = format!("more: trapline report --full {vmexit} {ioport}\n");
    assert!(screen.ends_with(&more), "{screen}");
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let page_name = page.to_str().unwrap();
    assert_eq!(run(["report", "-o", page_name, vmexit, ioport]).status, 0);
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("2.920s"), "no finding of both tables");
    assert_eq!(html.matches("<article class=\"finding\"").count(), 1);
}

/// Where perf says of no time when a task waited longest, none is shown.
#[test]
fn a_task_without_a_delay_has_no_time_of_it() {
    let table = seed("case5-good-host.perf-sched-latency.txt");
    let document = json(&["sched"], &table).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        assert_ne!(row["delay_max_at_ns"], 0, "{row}");
        let none = row["delay_max_ns"] == 0;
        assert!(!none || row["delay_max_at_ns"].is_null(), "{row}");
    }
}

/// Several tables of one kind are of several situations, and each has its name above it.
#[test]
fn tables_of_several_situations_stand_apart_below_their_headings() {
    let stat = seed("case5-perf-stat.txt");
    let name = stat.to_str().unwrap();
    let text = run(["report", name]).text();
    let headings: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("=== "))
        .collect();
    let said = [
        "slow host (ondemand",
        "(good host)",
        "slow host (performance",
    ];
    assert_eq!(headings.len(), 3, "{text}");
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (at, one) in said.iter().enumerate() {
        assert!(
            folded.contains(&format!("case5-perf-stat.txt, line {} ", 2 + 8 * at)),
            "{text}"
        );
        assert!(folded.contains(one), "{text}");
    }
    // One table of a kind in each of two files, and another kind in the second: that one belongs to its own file.
    let folder = tempfile::tempdir().unwrap();
    let both = folder.path().join("after.txt");
    let read = |kind: &str| {
        crate::common::read_text(&seed(&format!("case2-hpet.perf-kvm-stat-{kind}.txt")))
    };
    fs::write(&both, format!("{}\n\n{}", read("vmexit"), read("ioport"))).unwrap();
    let before = seed("case2-kvm-clock.perf-kvm-stat-vmexit.txt");
    let text = run([
        "report",
        "--format",
        "json",
        before.to_str().unwrap(),
        both.to_str().unwrap(),
    ])
    .text();
    let document: Value = serde_json::from_str(&text).unwrap();
    let inputs = |at: usize| document["recordings"][at]["input"].clone();
    assert_eq!(inputs(0), before.to_str().unwrap());
    assert_eq!(inputs(1), both.to_str().unwrap());
}

/// The first case: all interrupts of eth1 are handled by CPU 0. Of two readings in one text counts are the difference.
#[test]
fn interrupts_of_a_device_that_go_to_one_cpu_are_named() {
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../perftables/tests/tables");
    let before = tables.join("proc-interrupts-3.10.txt");
    let said = run(["report", &before.to_string_lossy()]).text();
    assert!(
        said.contains("interrupts of eth1 came to CPU 0 since boot."),
        "{said}"
    );
    let text = fs::read_to_string(&before).unwrap();
    let after = text.replace("918273", "918373");
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| write_text(folder.path(), name, text);
    let both = write(
        "both.txt",
        &format!("{text}\nnach zehn Sekunden:\n\n{after}"),
    );
    let document = json(&["report"], &both).unwrap();
    let recordings = document["recordings"].as_array().unwrap();
    assert_eq!(recordings.len(), 1);
    let interrupts = &recordings[0]["interrupts"];
    let row = &interrupts["rows"][0];
    assert_eq!((&row["irq"], &row["count"]), (&"57".into(), &100.into()));
    assert_eq!(interrupts["difference"], true);
    assert_eq!(interrupts["on_one_cpu"][0]["device"], "eth1");
    // Of two files they may be of two machines.
    let (one, other) = (write("one.txt", &text), write("other.txt", &after));
    let paths = [&one, &other].map(|path| path.to_string_lossy().into_owned());
    let apart = run(["report", "--format", "json", &paths[0], &paths[1]]);
    let apart = apart.json().unwrap();
    assert_eq!(apart["recordings"].as_array().unwrap().len(), 2);
    let queues = json(&["report"], &tables.join("virtiostat-python3.txt")).unwrap();
    let queue = &queues["recordings"][0]["virtio"][1];
    assert_eq!(
        (&queue["queue"], &queue["out_bytes"]),
        (&"output.0".into(), &375_796_680.into())
    );
}

/// The fourth case's hand computation: what is in idle functions is taken off each task's share; both are printed.
#[test]
fn shares_of_perf_report_stand_beside_those_without_idle() {
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../perftables/tests/tables");
    let table = |name: &str| fs::read_to_string(tables.join(name)).unwrap();
    let text = format!(
        "vhost-net:\n\n{}\nroot@host:~# perf kvm --host --guest report --stdio | grep idle\n{}",
        table("case4-vhost.perf-kvm-report.txt"),
        table("case4-vhost.perf-kvm-report-idle.txt")
    );
    let folder = tempfile::tempdir().unwrap();
    let path = write_text(folder.path(), "perf-kvm-report.txt", &text);
    let document = json(&["report"], &path).unwrap();
    let shares = &document["recordings"][0]["shares"];
    let first = &shares["tasks"][0];
    let numbers = ["share", "idle", "busy", "guest_sys", "sys"].map(|name| first[name].as_f64());
    assert_eq!(first["comm"], ":1146");
    assert_eq!(numbers, [0.4037, 0.3001, 0.1036, 0.4037, 0.0].map(Some));
    assert_eq!(shares["all_functions"], false);
    let said = run(["report", &path.to_string_lossy()]).text();
    assert!(
        said.contains("qemu-system-aar has 13.1 % of the samples."),
        "{said}"
    );
    assert!(
        said.contains(":1146              40.37   30.01    10.36"),
        "{said}"
    );
    assert!(!said.contains("Nothing wrong"), "{said}");
    // What is cut off says nothing of all that a task has.
    let cut = table("perf-report-newest.txt");
    let cut: String = cut.split_inclusive('\n').take(14).collect();
    let path = write_text(folder.path(), "perf-report-cut.txt", &cut);
    let said = run(["report", &path.to_string_lossy()]).text();
    assert!(said.contains("as far as rows are listed"), "{said}");
    assert!(said.contains("not all rows are there"), "{said}");
}

#[test]
fn no_share_is_computed_of_rows_that_contradict_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let written =
        |name: &str, text: &str| write_text(folder.path(), name, text).display().to_string();
    let table = fs::read_to_string(seed("case2-hpet.perf-kvm-stat-vmexit.txt")).unwrap();
    let row = table
        .lines()
        .find(|line| line.contains("EPT_MISCONFIG"))
        .unwrap();
    let count = row.split_whitespace().nth(1).unwrap();
    let whole = written("whole", &table);
    let sound = run(["report", "--format", "json", &whole]).json().unwrap();
    assert_eq!(
        sound["recordings"][0]["findings"][0]["id"],
        "hpet-mmio-exits"
    );
    // A digit more, as a page that was typed has it.
    let changed = table.replace(row, &row.replacen(count, &format!("9{count}"), 1));
    let path = written("changed", &changed);
    let document = run(["report", "--format", "json", &path]).json().unwrap();
    let recording = &document["recordings"][0];
    assert_eq!(
        recording["findings"],
        Value::Array(Vec::new()),
        "{recording}"
    );
    let rows = recording["exits"][0]["rows"].as_array().unwrap();
    let shares: Vec<bool> = rows.iter().map(|row| row["share"].is_null()).collect();
    let at = rows
        .iter()
        .position(|row| row["key"] == "EPT_MISCONFIG")
        .unwrap();
    assert!(
        shares[at] && shares.iter().filter(|unknown| **unknown).count() == 1,
        "{rows:?}"
    );
    let text = run(["report", &path]).text();
    for words_of in [
        "contradict the rest of the table: EPT_MISCONFIG in",
        "could not be checked",
    ] {
        assert!(
            words(&text)
                .to_lowercase()
                .contains(&words_of.to_lowercase()),
            "{text}"
        );
    }
    // Without the last line the sums are of that row too.
    let cut = changed.split("Total Samples").next().unwrap();
    let path = written("cut", cut);
    let rows = run(["exits", "--format", "json", &path]).json().unwrap();
    let rows = rows["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["share"].is_null()), "{rows:?}");
    let compared = words(&run(["compare", &whole, &path]).text());
    assert!(
        compared.contains("Exits are not compared: numbers of rows contradict"),
        "{compared}"
    );
}
