//! Tables of a terminal: 80 columns are enough, and as many rows as one asks for.

use crate::common::{Case, Failures, all_cases, file, run, small};

/// Commands that print tables of a recording.
const TABLES: [&[&str]; 14] = [
    &["info"],
    &["exits"],
    &["exits", "--event", "vmexit,ioport,mmio,msr"],
    &["exits", "--by", "vm"],
    &["exits", "--by", "vcpu"],
    &["vcpus"],
    &["sched"],
    &["sched", "--by", "cpu"],
    &["paths"],
    &["irqs"],
    &["virtqueues"],
    &["counters"],
    &["report"],
    &["diagnose"],
];

/// A command meets one of so many recordings.
const TURNS: usize = 4;
/// Columns of a terminal.
const WIDTH: usize = 80;

/// Recordings that are read in no time.
fn recordings() -> Vec<Case> {
    let mut all = all_cases();
    all.retain(|case| small(&case.path));
    all
}

/// Commands take turns from recording to recording: each table meets recordings of each kind.
#[test]
fn no_table_is_wider_than_a_terminal() {
    let mut failures = Failures::default();
    for (at, case) in recordings().iter().enumerate() {
        let path = case.path.to_str().expect("a plain name");
        for (turn, command) in TABLES.into_iter().enumerate() {
            if (at + turn) % TURNS != 0 {
                continue;
            }
            let run = run([command, &[path]].concat());
            if run.status != 0 {
                continue;
            }
            // A file's name is as long as it is, and stands whole where one copies it.
            let text = run.text();
            let wide = text.lines().find(|line| {
                let columns = line.chars().count();
                columns > WIDTH && !line.contains(path)
            });
            failures.check(wide.is_none(), || {
                format!("{} {command:?}: {}", case.name, wide.unwrap_or_default())
            });
        }
    }
    failures.finish(100);
}

#[test]
fn as_many_rows_are_shown_as_one_asks_for() {
    let one = file("x86/clocksource-acpi_pm/loop/perf.data.guest.zst");
    let several = file("x86/format-variants/plain.perf.data.zst");
    for (command, path) in [
        (&["exits"][..], &one),
        (&["exits", "--event", "ioport"], &one),
        (&["vcpus"], &several),
    ] {
        let path = path.to_str().expect("a plain name");
        let lines = |more: &[&str]| {
            let run = run([command, more, &[path]].concat());
            assert_eq!(run.status, 0, "{}", run.stderr);
            run.text().lines().count()
        };
        assert!(lines(&["--limit", "1"]) < lines(&[]), "{command:?}");
        // Documents have all rows.
        let documents = [vec!["--json"], vec!["--json", "--limit", "1"]].map(|more| {
            let run = run([command, &more[..], &[path]].concat());
            run.json().expect("a document")["rows"].clone()
        });
        assert_eq!(documents[0], documents[1], "{command:?}");
    }
}

/// Whoever asks for scheduling latencies here asks for those of VMs.
#[test]
fn threads_of_vms_stand_before_all_others_each_by_its_longest_delay() {
    let mut failures = Failures::default();
    let mut mixed = 0;
    for case in recordings() {
        let path = case.path.to_str().expect("a plain name");
        let Ok(document) = run(["sched", "--json", path]).json() else {
            continue;
        };
        let rows = document["rows"].as_array().expect("rows");
        let is_vcpu = |row: &&serde_json::Value| {
            let comm = row["comm"].as_str().unwrap_or_default();
            comm.starts_with("CPU ") && comm.ends_with("/KVM")
        };
        let vcpus: Vec<_> = rows.iter().filter(is_vcpu).collect();
        let longest = |row: &serde_json::Value| row["delay_max_ns"].as_u64().unwrap_or(0);
        failures.check(vcpus.is_sorted_by(|a, b| longest(a) >= longest(b)), || {
            format!("{}: vCPUs are not sorted", case.name)
        });
        // A kernel's thread that works for everybody is behind them.
        let last = rows.iter().rposition(|row| is_vcpu(&row));
        let other = rows.iter().position(|row| {
            let comm = row["comm"].as_str().unwrap_or_default();
            comm.starts_with("rcu_") || comm.starts_with("ksoftirqd/")
        });
        if let (Some(last), Some(other)) = (last, other) {
            mixed += 1;
            failures.check(last < other, || {
                format!("{}: row {other} stands before {last}", case.name)
            });
        }
    }
    assert!(mixed > 0, "no recording has both");
    failures.finish(3);
}

#[test]
fn causes_that_were_not_checked_are_one_sentence_and_a_command() {
    let path = file("x86/clocksource-acpi_pm/loop/perf.data.guest.zst");
    let path = path.to_str().expect("a plain name");
    let short = run(["diagnose", path]).text();
    let whole = run(["diagnose", "--full", path]).text();
    let document = run(["diagnose", "--json", path])
        .json()
        .expect("a document");
    let unknown = document["unknown"].as_array().expect("a list");
    let words = short.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(&format!("{} causes could not be checked", unknown.len())),
        "{short}"
    );
    assert!(words.contains("'trapline record --for "), "{short}");
    assert!(words.contains("were looked for and not found"), "{short}");
    for cause in unknown {
        let id = cause["id"].as_str().expect("a name");
        assert!(whole.contains(id), "{id}");
    }
    assert!(
        short.lines().count() + 30 < whole.lines().count(),
        "{short}"
    );
}

/// Rows stand in the order of the column that is asked for, in every format.
#[test]
fn rows_are_sorted_by_any_column() {
    let host = file("x86/format-variants/plain.perf.data.zst");
    let trace = file("vmx/tiny-irqchip/trace.dat");
    for (command, path, sort, member) in [
        (&["exits"][..], &host, "max", "max_ns"),
        (&["exits"], &host, "total_ns", "total_ns"),
        (&["vcpus"], &trace, "runnable", "runnable_ns"),
        (&["vcpus"], &trace, "exits", "exits"),
        (&["sched"], &trace, "migrations", "migrations"),
        (&["sched"], &trace, "preempted", "preempted_wait_ns"),
        (&["irqs"], &trace, "injected", "injected"),
    ] {
        let path = path.to_str().expect("a plain name");
        let run = run([command, &["--sort", sort, "--json", path]].concat());
        assert_eq!(run.status, 0, "{command:?}: {}", run.stderr);
        let document = run.json().expect("a document");
        let rows = document["rows"].as_array().expect("rows").iter();
        let numbers: Vec<Option<u64>> = rows.map(|row| row[member].as_u64()).collect();
        assert!(numbers.len() > 1, "{command:?}");
        assert!(
            numbers.is_sorted_by(|a, b| a >= b),
            "{command:?} {sort}: {numbers:?}"
        );
        // A table for people has the same rows.
        let text = crate::common::run([command, &["--sort", sort, path]].concat());
        assert_eq!(text.status, 0, "{command:?}: {}", text.stderr);
    }
    let path = trace.to_str().expect("a plain name");
    let wrong = run(["vcpus", "--sort", "exit", path]);
    assert_eq!(wrong.status, 2, "{}", wrong.stderr);
    assert!(
        wrong.stderr.contains("did you mean 'exits'"),
        "{}",
        wrong.stderr
    );
    let paths = run(["paths", "--sort", "max", "--json", path])
        .json()
        .expect("a document");
    let paths = paths["paths"].as_array().expect("paths").iter();
    let most: Vec<Option<u64>> = paths.map(|one| one["total"]["max_ns"].as_u64()).collect();
    assert!(most.is_sorted_by(|a, b| a >= b), "{most:?}");
}
