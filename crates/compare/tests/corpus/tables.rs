//! Comparisons of printed tables and of recordings, and of inputs that do not go together.

use fixtures::made_folder::MadeFolder;
use std::fs;
use std::path::{Path, PathBuf};

use fixtures::json::{list, text};
use fixtures::{file, read};
use serde_json::Value;

use crate::{ComparedFiles, compared, document, notes, said as said_in};

/// Returns the sentences of what changed, in order.
fn said(document: &Value) -> Vec<String> {
    said_in(document, "changes")
}

fn find<'a>(document: &'a Value, what: &str) -> &'a Value {
    crate::find(&document["changes"], what)
}

/// A document's printed table or fragment.
fn seed(name: &str) -> PathBuf {
    file(&format!("seed-text/{name}.txt"))
}

fn seeds(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| seed(name)).collect()
}

fn groups(a: &[&str], b: &[&str]) -> Value {
    crate::groups(&seeds(a), &seeds(b))
}

/// Compares two files by units of work. Fails with a sentence that has these words.
fn refused(a: &Path, b: &Path, work: Option<&str>, words: &[&str]) {
    let files = ComparedFiles {
        a: vec![a],
        b: vec![b],
        work,
        ..ComparedFiles::default()
    };
    let error = files.compare().err().expect("an error");
    for word in words {
        assert!(error.contains(word), "{word}: {error}");
    }
}

#[test]
fn case_2_loses_its_port_exits() {
    let document = groups(
        &["case2-windows-before.perf-kvm-stat-vmexit"],
        &["case2-windows-after.perf-kvm-stat-vmexit"],
    );
    let first = said(&document).remove(0);
    assert!(
        first.starts_with(
            "IO_INSTRUCTION gone: it was 89 % of the time of all exits (256738 of them, 2.947s)"
        ),
        "{first}"
    );
    let exits = find(&document, "exits");
    assert_eq!(
        (exits["a"].as_f64(), exits["b"].as_f64()),
        (Some(351_826.0), Some(151_854.0))
    );
    assert_eq!(exits["unit"], "count");
    assert!(notes(&document).contains("do not say how much time they cover"));
    // With the table of ports the finding goes as well, behind what it is of.
    let document = groups(
        &[
            "case2-windows-before.perf-kvm-stat-vmexit",
            "case2-windows-before.perf-kvm-stat-ioport",
        ],
        &["case2-windows-after.perf-kvm-stat-vmexit"],
    );
    assert!(
        said(&document)[0].starts_with("IO_INSTRUCTION gone"),
        "{:?}",
        said(&document)
    );
    find(&document, "finding timer-port-exits");
}

#[test]
fn case_4_moves_its_back_end() {
    let document = groups(
        &[
            "case4-virtio.perf-kvm-stat-vmexit",
            "case4-virtio.trace-cmd",
        ],
        &["case4-vhost.perf-kvm-stat-vmexit", "case4-vhost.trace-cmd"],
    );
    let moved = find(&document, "path kick back end");
    let words = text(&moved["text"]);
    assert!(
        words.contains("moved from a VMM thread") && words.contains("to a vhost thread"),
        "{words}"
    );
    assert!(words.contains("from 568.0us to 187.0us"), "{words}");
    assert!(moved["delta"].is_null() && moved["ratio"].is_null() && moved["unit"] == "word");
    let exits = find(&document, "exits");
    // The tables' own, without the exit or two of the fragments.
    assert_eq!(
        (exits["a"].as_f64(), exits["b"].as_f64()),
        (Some(11_410.0), Some(34_551.0))
    );
    assert!(text(&exits["text"]).starts_with("Exits rose"));
    let dabt = find(&document, "vmexit DABT_LOW");
    assert_eq!(
        (dabt["a"].as_f64(), dabt["b"].as_f64()),
        (Some(4578.0), Some(23_050.0))
    );
    assert!(text(&find(&document, "exits waiting")["text"]).starts_with("Waiting (halted) fell"));
    find(&document, "finding userspace-virtio-backend");
    assert!(
        notes(&document).contains("perf kvm stat measures how long the guest ran before each exit")
    );
    // One loop says nothing of shares of time.
    let shares = list(&document["changes"])
        .iter()
        .filter(|change| change["unit"] == "share");
    assert_eq!(shares.count(), 0, "{:?}", said(&document));
}

#[test]
fn recordings_of_case_4_move_their_back_end() {
    let mut pairs = vec![
        ["virtio-mmio", "vhost-mmio"]
            .map(|name| file(&format!("arm64/{name}/boot1/trace.dat.zst"))),
    ];
    if let Some(folder) = std::env::var_os("TRAPLINE_CORPUS") {
        let folder = Path::new(&folder).join("arm64");
        pairs.push(
            ["virtio-mmio", "vhost-mmio"].map(|name| folder.join(name).join("boot1/trace.dat")),
        );
    }
    for [a, b] in pairs {
        let document = document(&a, &b);
        let words = text(&find(&document, "path kick back end")["text"]);
        assert!(
            words.contains("from a VMM thread") && words.contains("to a vhost thread"),
            "{words}"
        );
        let vhost = find(&document, "sched vhost");
        assert!(vhost["a"].is_null(), "{vhost}");
        find(&document, "finding userspace-virtio-backend");
        let work = &list(&vhost["per_work"])[0];
        assert_eq!(work["of"], "tun_get_user");
    }
}

#[test]
fn case_5_loses_its_switches() {
    let document = groups(
        &["case5-slow-host.perf-sched-latency"],
        &["case5-good-host.perf-sched-latency"],
    );
    let iperf = find(&document, "sched iperf");
    assert_eq!(
        (iperf["a"].as_f64(), iperf["b"].as_f64()),
        (Some(27_683.0), Some(44.0))
    );
    assert!(text(&iperf["text"]).starts_with("iperf: 27683 to 44 switches (-99.8 %)"));
    let kworker = find(&document, "sched kworker (of a CPU)");
    assert!(
        kworker["b"].is_null() && text(&kworker["text"]).contains("gone"),
        "{kworker}"
    );
    find(&document, "finding cpufreq-governor-kworker");
}

#[test]
fn the_first_rows_of_a_table_do_not_say_who_is_gone() {
    // 'perf sched latency -s max', as it was pasted without the row of totals, before and after a new kernel.
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../rules/tests/by_hand/helper-waits-for-cpu");
    let [before, after] =
        ["negative-table.txt", "positive-table.txt"].map(|name| folder.join(name));
    let document = ComparedFiles {
        a: vec![&before],
        b: vec![&after],
        ..ComparedFiles::default()
    };
    let document = document.compare().expect("two tables").document();
    let said = notes(&document);
    assert!(said.contains("it was cut"), "{said}");
    let changes = &document["changes"];
    let gone = list(changes)
        .iter()
        .any(|change| text(&change["text"]).contains("gone"));
    assert!(!gone, "{changes:#}");
    let longest = find(&document, "sched longest wait");
    assert_eq!(longest["b"].as_f64(), Some(366_314_000.0));
    assert_eq!(longest["worse"], "b");
    find(&document, "finding helper-waits-for-cpu");
}

#[test]
fn one_of_several_tables_must_be_chosen() {
    let three = seed("case5-perf-stat");
    refused(
        &three,
        &three,
        None,
        &[
            "3 tables of perf stat",
            "line 2 (slow host (ondemand governor))",
            "line 10 (good host)",
            "FILE:LINE",
        ],
    );
    // Each alone can be compared: for each second where both say how long they counted.
    let all = fs::read_to_string(&three).expect("a text");
    let folder = MadeFolder::new();
    let blocks: Vec<PathBuf> = all
        .split("\n# ")
        .filter(|block| !block.trim().is_empty())
        .enumerate()
        .map(|(number, block)| {
            folder.write(
                &format!("stat{number}"),
                format!("# {}\n", block.trim_start_matches("# ")),
            )
        })
        .collect();
    let document = document(&blocks[0], &blocks[1]);
    let switches = find(&document, "counter context-switches");
    assert_eq!(switches["unit"], "per_second");
    let rate = switches["a"].as_f64().expect("a rate");
    assert!((rate - 795_370.0 / 10.047_327_675).abs() < 0.01, "{rate}");
    assert_eq!(switches["worse"], "a");
    // Six times the misses are no more than the good host's work.
    let first = text(&list(&document["changes"])[0]["what"]);
    assert_eq!(first, "counter context-switches");
    let misses = find(&document, "counter cache-misses");
    assert!(misses["worse"].is_null(), "{misses}");
    assert!(
        text(&misses["text"]).contains("4.44 % to 8.15 %"),
        "{misses}"
    );
    // The last does not say.
    let counted = self::document(&blocks[0], &blocks[2]);
    let switches = find(&counted, "counter context-switches");
    assert_eq!(
        (switches["unit"].as_str(), switches["b"].as_f64()),
        (Some("count"), Some(43_713.0))
    );
    assert!(switches["worse"].is_null(), "{switches}");
}

#[test]
fn a_recording_against_a_table_is_compared_by_shares() {
    let folder = MadeFolder::new();
    let a = folder.record("a", |_| {});
    let table = seed("case2-windows-before.perf-kvm-stat-vmexit");
    let document = document(&a, &table);
    assert!(
        notes(&document).contains("by shares and mean times, not by counts"),
        "{}",
        notes(&document)
    );
    // Nobody knows which other tables could have been printed.
    assert!(
        !notes(&document).contains("not recorded"),
        "{}",
        notes(&document)
    );
    let io = find(&document, "vmexit IO_INSTRUCTION");
    assert_eq!(io["unit"], "share");
    assert!((io["b"].as_f64().unwrap() - 0.7297).abs() < 1e-3, "{io}");
    for change in list(&document["changes"]) {
        assert!(
            change["unit"] != "count" && change["unit"] != "per_second",
            "{change}"
        );
        assert!(!text(&change["text"]).contains("in a second"), "{change}");
    }
}

#[test]
fn work_that_nobody_counts_is_an_error() {
    let folder = MadeFolder::new();
    let a = folder.record("a", |_| {});
    let b = folder.record("b", |_| {});
    let words = ["'nothing_such'", "trapline info"];
    refused(&a, &b, Some("nothing_such"), &words);
    let table = seed("case2-windows-before.perf-kvm-stat-vmexit");
    refused(&table, &table, Some("kvm_exit"), &["printed tables"]);
    let files = ComparedFiles {
        a: vec![&a],
        b: vec![&b],
        work: Some("kvm_pio"),
        ..ComparedFiles::default()
    };
    let document = files.compare().expect("a comparison").document();
    assert!(
        notes(&document).contains("kvm_pio ("),
        "{}",
        notes(&document)
    );
}

#[test]
fn what_one_side_did_not_record_is_said() {
    let folder = MadeFolder::new();
    let both = folder.record("both", |_| {});
    let no_sched = folder.record("no_sched", |process| process.sched = false);
    let no_kvm = folder.record("no_kvm", |process| process.kvm = false);
    for (a, b, words) in [
        (
            &both,
            &no_sched,
            "Tasks are not compared: B has no scheduling events.",
        ),
        (
            &no_sched,
            &both,
            "Tasks are not compared: A has no scheduling events.",
        ),
        (&both, &no_kvm, "Exits are not compared: B has none."),
        (&no_kvm, &both, "Exits are not compared: A has none."),
    ] {
        let document = document(a, b);
        assert!(notes(&document).contains(words), "{}", notes(&document));
        for gone in said(&document) {
            assert!(
                !gone.contains(" gone") && !gone.contains(" is new"),
                "{gone}"
            );
        }
    }
    let nothing = document(&no_sched, &no_kvm);
    assert!(said(&nothing).is_empty(), "{:?}", said(&nothing));
    let table = compared(&no_sched, &no_kvm).text(false);
    assert!(
        table.contains("The two have nothing in common that could be compared."),
        "{table}"
    );
}

#[test]
fn other_machines_have_other_reasons() {
    let folder = MadeFolder::new();
    let x86 = folder.record("x86", |_| {});
    let arm64 = file("arm64/two-guests-mmio/perf.data.guest.zst");
    let document = document(&x86, &arm64);
    assert!(
        notes(&document).contains("A is of vmx, B of arm64"),
        "{}",
        notes(&document)
    );
    for change in list(&document["changes"]) {
        assert!(!text(&change["what"]).starts_with("vmexit "), "{change}");
    }
}

#[test]
fn one_event_is_not_a_rate() {
    let folder = MadeFolder::new();
    let all = folder.record("a", |_| {});
    let recording = String::from_utf8(read(&all)).expect("a text");
    let exit = recording.lines().find(|line| line.contains("kvm_exit"));
    let one = folder.write("one", format!("cpus=4\n{}\n", exit.expect("an exit")));
    let document = document(&all, &one);
    assert!(
        notes(&document).contains("has no duration"),
        "{}",
        notes(&document)
    );
    for change in list(&document["changes"]) {
        assert!(change["unit"] != "per_second", "{change}");
    }
    self::document(&one, &one);
}

#[test]
fn ticks_are_no_seconds() {
    let folder = MadeFolder::new();
    let nanoseconds = folder.record("a", |_| {});
    // As with the clock x86-tsc: whole numbers.
    let ticks = |name: &str, port_rate: f64| {
        let path = folder.record(name, |process| process.port_rate = port_rate);
        let recording = fs::read_to_string(&path).expect("a text");
        let lines = recording.lines().map(|line| {
            let (head, rest) = line.split_once(": ").unwrap_or((line, ""));
            let whole = head.replacen('.', "", usize::from(head.contains("] ")));
            format!("{whole}: {rest}\n")
        });
        folder.write(name, lines.skip(1).collect::<String>())
    };
    let usual = ticks("b", 1.0);
    let without = ticks("c", 0.0);
    for (a, b) in [
        (&nanoseconds, &usual),
        (&usual, &nanoseconds),
        (&usual, &without),
    ] {
        let document = document(a, b);
        let notes = notes(&document);
        assert!(notes.contains("counts ticks of unknown rate"), "{notes}");
        assert!(notes.contains("by shares only"), "{notes}");
        for change in list(&document["changes"])
            .iter()
            .chain(list(&document["noise"]))
        {
            let unit = text(&change["unit"]);
            assert!(unit == "share" || unit == "word", "{change}");
        }
    }
    let gone = document(&usual, &without);
    let gone = text(&find(&gone, "vmexit IO_INSTRUCTION")["text"]);
    assert!(gone.starts_with("IO_INSTRUCTION gone: it was "), "{gone}");
}
