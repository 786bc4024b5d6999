//! Tickets, mails and pages: texts in which several things stand, as one argument.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{run, run_with};

fn seed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../corpus/seed-text")
        .join(name)
}

/// A mail with a definition, two traces of which one shows the cause, and a table.
fn mail() -> String {
    let read = |name: &str| fs::read_to_string(seed(name)).expect("the corpus");
    format!(
        "Hello,\n\nWe have this guest:\n\n{}\nIts exits:\n\n{}\n{}\nThe slow ping:\n\n{}\nThanks\n",
        read("case2-win10.domain.xml"),
        read("case2-windows-before.perf-kvm-stat-vmexit.txt"),
        read("case2-windows-before.perf-kvm-stat-ioport.txt"),
        read("case1-slow-ping.sched.txt"),
    )
}

#[test]
fn all_parts_are_used_and_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mail.txt");
    fs::write(&path, mail()).expect("a file");
    let path = path.display().to_string();
    let screen = run(["report", &path]).text();
    let first = screen
        .split("\n\n")
        .nth(1)
        .unwrap_or_default()
        .replace('\n', " ");
    assert!(
        first.contains("The guest reads time from I/O ports"),
        "{screen}"
    );
    for what in [
        "definition of win10-2",
        "perf kvm stat report (vmexit), of win10-2: Its exits",
        "trace, as trace-cmd report prints it, of win10-2: The slow ping",
    ] {
        assert!(screen.contains(what), "{what}: {screen}");
    }
    let document = run(["report", "--format", "json", &path])
        .json()
        .expect("JSON");
    let parts = document["tickets"][0]["parts"].as_array().map(Vec::len);
    assert_eq!(parts, Some(4), "{document}");
    let recordings = document["recordings"].as_array().expect("a list");
    assert_eq!(recordings.len(), 2);
    // The definition is that of the tables' guest: its patch needs no option.
    let patch = run(["diagnose", "--patch", &path]).text();
    assert!(
        patch.contains("+") && patch.contains("hypervclock"),
        "{patch}"
    );
    let found = run(["diagnose", "--format", "json", &path])
        .json()
        .expect("JSON");
    let ids: Vec<&str> = found["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["id"].as_str())
        .collect();
    assert!(
        ids.starts_with(&["timer-port-exits"]) && ids.contains(&"console-on-irq-vcpu"),
        "{ids:?}"
    );
}

#[test]
fn a_part_is_named_by_its_line_in_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mail.txt");
    fs::write(&path, mail()).expect("a file");
    let text = mail();
    let line = |what: &str| {
        text.lines()
            .position(|line| line.contains(what))
            .expect(what)
            + 1
    };
    let at = |line: usize| format!("{}:{line}", path.display());
    let trace = at(line("sched_switch"));
    let alone = seed("case1-slow-ping.sched.txt").display().to_string();
    let rows = |name: &str| -> Value {
        let document = run(["sched", "--format", "json", name])
            .json()
            .expect("JSON");
        document["tasks"].clone()
    };
    assert_eq!(rows(&trace), rows(&alone));
    let table = at(line("VM-EXIT"));
    let exits = run(["exits", "--event", "ioport", &table]).text();
    assert!(exits.contains("0x608:PIN"), "{exits}");
}

#[test]
fn standard_input_is_read_once_and_cut() {
    let text = mail();
    let piped = run_with(["report", "-"], text.as_bytes());
    assert_eq!(piped.status, 0, "{}", piped.stderr);
    assert!(
        piped.text().contains("definition of win10-2"),
        "{}",
        piped.text()
    );
    // A mail may begin with any word.
    let mail = format!("QEMU guest is slow\n\n{text}");
    let piped = run_with(["report", "-"], mail.as_bytes());
    assert!(
        piped.text().contains("definition of win10-2"),
        "{}",
        piped.stderr
    );
}

#[test]
fn facts_of_what_happened_are_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dmesg.txt");
    let log = "[ 1234.567890] x86/split lock detection: #AC: CPU 0/KVM/1700 took a split_lock trap at address: 0x7f\n";
    fs::write(&path, log).expect("a file");
    let path = path.display().to_string();
    for command in ["report", "diagnose"] {
        let run = run([command, &path]);
        assert_eq!(run.status, 0, "{command}: {}", run.stderr);
    }
    // Who is whose thread is no answer to anything by itself.
    fs::write(&path, "* CPU #0: thread_id=1700\n").expect("a file");
    let alone = run(["report", &path]);
    assert_eq!(alone.status, 1);
    assert!(alone.stderr.contains("--facts"), "{}", alone.stderr);
}

#[test]
fn a_text_that_names_commands_hears_what_to_paste() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page.md");
    fs::write(
        &path,
        "# IPIs\n\nperf kvm stat report\n\n![all of it](a.png)\n",
    )
    .expect("a file");
    for command in ["report", "diagnose"] {
        let run = run([command, path.to_str().expect("a name")]);
        assert_eq!(run.status, 1);
        assert!(
            run.stderr.contains("'perf kvm stat report' in line 3"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn two_tables_of_a_page_are_compared_with_their_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page.txt");
    let read = |name: &str| fs::read_to_string(seed(name)).expect("the corpus");
    let run_of = |rate: &str| format!("CPU speed:\n    events per second:   {rate}\n\n");
    let page = format!(
        "hpet:\n\n{}{}\ntsc:\n\n{}{}\n",
        run_of("280.83"),
        read("case2-hpet.perf-kvm-stat-vmexit.txt"),
        run_of("286.59"),
        read("case2-tsc.perf-kvm-stat-vmexit.txt")
    );
    fs::write(&path, page).expect("a file");
    let compared = run(["compare", path.to_str().expect("a name")]).text();
    assert!(
        compared.contains("sysbench events per second: 280.83 to 286.59"),
        "{compared}"
    );
    assert!(compared.contains("EPT_MISCONFIG: 22691 to 8"), "{compared}");
}

/// A page with two definitions and one table: the guest that the table is of is changed, and no other one.
#[test]
fn the_definition_of_another_guest_stays_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page.txt");
    let read = |name: &str| fs::read_to_string(seed(name)).expect("the corpus");
    let page = |heading: &str| {
        format!(
            "{}\n{}\n{heading}\n\n{}\n{}",
            read("case2-win10.domain.xml"),
            read("case2-ubuntu.domain.xml"),
            read("case2-windows-before.perf-kvm-stat-vmexit.txt"),
            read("case2-windows-before.perf-kvm-stat-ioport.txt"),
        )
    };
    let patched = |heading: &str| {
        fs::write(&path, page(heading)).expect("a file");
        run(["diagnose", "--patch", path.to_str().expect("a name")]).text()
    };
    let windows = patched("the windows guest:");
    assert!(windows.contains("hypervclock"), "{windows}");
    assert_eq!(windows.matches("--- ").count(), 1, "{windows}");
    // Nobody changes the Windows guest by what was found of the other one.
    let linux = patched("the ubuntu guest:");
    assert!(!linux.contains("hypervclock"), "{linux}");
}
