//! Accesses in a recording without exits: they are counted, and nothing is said of their time.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{json, run, write_text};

/// A text of `perf script` with so many reads of each port, 3 ms apart.
fn reads(folder: &Path, name: &str, ports: &[(u16, u32)]) -> PathBuf {
    let mut text = String::new();
    let mut at_us = 300_000_000u64;
    for (port, count) in ports {
        for _ in 0..*count {
            let (s, us) = (at_us / 1_000_000, at_us % 1_000_000);
            let _ = writeln!(
                text,
                "qemu-system-x86  1042 [000] {s}.{us:06}: kvm:kvm_pio: pio_read at {port:#x} size 1 count 1 val 0x60"
            );
            at_us += 3000;
        }
    }
    write_text(folder, name, &text)
}

#[test]
fn accesses_without_exits_are_counted_without_times() {
    let folder = tempfile::tempdir().unwrap();
    let path = reads(
        folder.path(),
        "accesses-alone.txt",
        &[(0x3fd, 1001), (0x71, 20)],
    );
    let document = json(&["exits", "--event", "ioport"], &path).unwrap();
    assert_eq!(document["total_count"], 1021);
    assert_eq!(document["total_ns"], Value::Null);
    assert_eq!(document["handling_ns"], Value::Null);
    let row = &document["rows"][0];
    assert_eq!(
        (&row["key"], &row["count"]),
        (&"0x3fd:PIN".into(), &1001.into())
    );
    assert!(row["name"].as_str().unwrap().contains("COM1"), "{row}");
    for field in [
        "total_ns",
        "mean_ns",
        "max_ns",
        "p99_ns",
        "unknown_ns",
        "halted_ns",
    ] {
        assert_eq!(row[field], Value::Null, "{field}");
    }
    let name = path.to_string_lossy().into_owned();
    let table = run(["exits", "--event", "ioport", &name]).text();
    assert!(table.contains("1021 port accesses, not timed"), "{table}");
    assert!(!table.contains("where that time went"), "{table}");
    // perf counts those that lie between an exit and an entry.
    let as_perf = run(["exits", "--event", "ioport", "--as", "perf", &name]).text();
    assert!(as_perf.contains("Total Samples:0"), "{as_perf}");
    let report = run(["report", &name]).text();
    assert!(report.contains("1001 of 1021"), "{report}");
    assert!(report.contains("COM1"), "{report}");
    // What took time is another question, and one that cannot be answered.
    let exits = run(["exits", &name]);
    assert!(exits.stderr.contains("no kvm_exit"), "{}", exits.stderr);
}

#[test]
fn nothing_is_cleared_by_accesses_without_times() {
    let folder = tempfile::tempdir().unwrap();
    let path = reads(
        folder.path(),
        "clock-reads-alone.txt",
        &[(0x71, 1000), (0x608, 1000), (0x1f7, 1000)],
    );
    let document = json(&["diagnose"], &path).unwrap();
    assert_eq!(document["findings"], Value::Array(Vec::new()));
    let clear = document["not_found"].to_string();
    for rule in ["timer-port-exits", "emulated-device", "hpet-mmio-exits"] {
        assert!(!clear.contains(rule), "{rule}: {clear}");
    }
}

#[test]
fn accesses_before_the_first_exit_stay_with_perf() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_text(
        folder.path(),
        "accesses-before-exits.txt",
        "qemu 10 [000] 1.000000: kvm:kvm_pio: pio_read at 0x71 size 1 count 1 val 0x0\n\
         qemu 10 [000] 1.000010: kvm:kvm_entry: vcpu 0, rip 0x1\n\
         qemu 10 [000] 1.000020: kvm:kvm_exit: reason IO_INSTRUCTION rip 0x1 info 0 0\n\
         qemu 10 [000] 1.000021: kvm:kvm_pio: pio_read at 0x71 size 1 count 1 val 0x0\n\
         qemu 10 [000] 1.000030: kvm:kvm_entry: vcpu 0, rip 0x1\n",
    );
    let document = json(&["exits", "--event", "ioport"], &path).unwrap();
    assert_eq!(document["total_count"], 1);
    assert_eq!(document["total_ns"], 9000);
}

/// Without '--event' the table of exits is asked for, which there is not: the message names the one that there is.
#[test]
fn what_has_accesses_alone_names_their_table() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let file = reads(folder.path(), "ports.txt", &[(0x60, 20)]);
    let error = json(&["exits"], &file).expect_err("it has no exits");
    assert!(
        error.contains("exits --event ioport") && error.contains("without times"),
        "{error}"
    );
}

/// What perf's convention gives no time is in no row: how much that is, is said, and all events are accounted for.
#[test]
fn accesses_that_have_no_row_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let rip = "rip 0xffffffff81a17a0b";
    let exit = format!("kvm_exit: vcpu 0 reason EPT_MISCONFIG {rip} info1 0 info2 0");
    let entry = format!("kvm_entry: vcpu 0, {rip}");
    let read = "kvm_mmio: mmio read len 4 gpa 0xfebc0010 val 0x1".to_owned();
    let out = "kvm_pio: pio_write at 0x70 size 1 count 1 val 0x1".to_owned();
    // The second read has no exit before it; of the two writes of a port one stands before the other; the last write
    // has no entry behind it.
    let events = [
        &entry, &exit, &read, &entry, &read, &entry, &exit, &read, &entry, &exit, &out, &out,
        &entry, &exit, &out,
    ];
    let mut text = String::new();
    for (event, us) in events.into_iter().zip(1..) {
        let _ = writeln!(text, "  CPU 0/KVM-1010  [001] 100.{us:06}: {event}");
    }
    let path = write_text(folder.path(), "left-out.txt", &text);
    for (table, shown, said) in [
        ("mmio", 2, "1 of 3 kvm_mmio"),
        ("ioport", 1, "2 of 3 kvm_pio"),
    ] {
        let document = json(&["exits", "--event", table], &path).unwrap();
        assert_eq!(document["total_count"], shown, "{document}");
        let quality = &document["quality"];
        let doubts = quality["doubts"].as_array().unwrap();
        let doubt = doubts.iter().find(|one| one["id"] == "accesses-left-out");
        let text = doubt.expect("a doubt")["text"].as_str().unwrap();
        assert!(text.contains(said), "{text}");
        assert_eq!(quality["accounted"], 1.0, "{quality}");
    }
}

/// Without exits writes of memory are timed and reads are not: what is beyond the most rows has both, and says of how
/// many its times are.
#[test]
fn a_row_of_which_some_are_timed_says_how_many() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    let mut at_us = 0;
    let mut event = |what: &str| {
        at_us += 10;
        let (s, us) = (100 + at_us / 1_000_000, at_us % 1_000_000);
        let _ = writeln!(text, "  CPU 0/KVM-1010  [001] {s}.{us:06}: {what}");
    };
    event("kvm_entry: vcpu 0, rip 0x1");
    let beyond = (1 << 16) + 10;
    for at in 0..beyond {
        event(&format!(
            "kvm_mmio: mmio write len 4 gpa {:#x} val 0x1",
            0x1000_0000 + at * 4
        ));
        event("kvm_entry: vcpu 0, rip 0x1");
    }
    for at in 0..5 {
        event(&format!(
            "kvm_mmio: mmio read len 4 gpa {:#x} val 0x1",
            0x2000_0000 + at * 4
        ));
    }
    let path = write_text(folder.path(), "some-timed.txt", &text);
    let document = json(&["exits", "--event", "mmio"], &path).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let others = rows.iter().find(|row| row["key"] == "others").unwrap();
    // Each write is 10 us before its entry.
    let timed = others["count"].as_u64().unwrap() - 5;
    assert!((10..12).contains(&timed), "{others}");
    assert_eq!(others["total_ns"], timed * 10_000, "{others}");
    assert_eq!(others["mean_ns"], 10_000, "{others}");
    let name = path.to_string_lossy().into_owned();
    let table = run(["exits", "--event", "mmio", "--sort", "count", &name]).text();
    let row = table
        .lines()
        .find(|line| line.starts_with("others"))
        .unwrap();
    assert!(row.starts_with(&format!("others ({timed} timed)")), "{row}");
    let words: Vec<&str> = table.split_whitespace().collect();
    assert!(words.join(" ").contains("time and mean are of the others"));
}

/// An exit of which the reason cannot be read is no row, and it is accounted for.
#[test]
fn exits_that_cannot_be_read_are_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_text(
        folder.path(),
        "unreadable.txt",
        "qemu 10 [000] 1.000000: kvm:kvm_entry: vcpu 0, rip 0x1\n\
         qemu 10 [000] 1.000010: kvm:kvm_exit: reason 99 rip 0x1\n\
         qemu 10 [000] 1.000020: kvm:kvm_entry: vcpu 0, rip 0x1\n\
         qemu 10 [000] 1.000030: kvm:kvm_exit: reason HLT rip 0x1 info 0 0\n\
         qemu 10 [000] 1.000040: kvm:kvm_entry: vcpu 0, rip 0x1\n",
    );
    let document = json(&["exits"], &path).unwrap();
    let quality = document["quality"].to_string();
    assert!(quality.contains("fields-unreadable"), "{quality}");
    assert!(!quality.contains("a defect of trapline"), "{quality}");
    assert_eq!(document["total_count"], 1);
}
