//! Where no event of an access was recorded, the exits themselves say which port or address it was: the tables that
//! are made of them count what the events would have counted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use analysis::{ExitTable, ExitsReport};
use event::Isa;
use fixtures::{Failures, FixtureQuestion, all_cases, events_text, small, sweeping};
use model::GuestAccess;

type AccessCounts = BTreeMap<(u64, bool), u64>;

/// Returns a table of a recording that lost nothing: elsewhere exits and accesses miss each other.
fn table(path: &Path, table: ExitTable) -> Option<(Option<Isa>, ExitsReport)> {
    let (isa, reports, quality) = FixtureQuestion::new().table(table).exits(path).ok()?;
    if quality.lost_events > 0 {
        return None;
    }
    let report = reports.into_iter().find(|report| report.table == table)?;
    Some((isa, report))
}

fn counts(report: &ExitsReport) -> AccessCounts {
    let rows = report.rows.iter();
    rows.filter_map(|row| Some(((row.address?, row.write), row.stats.count())))
        .collect()
}

/// Returns the text without the events of one name.
fn without(text: &str, event: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains(event));
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn word_behind<'t>(line: &'t str, word: &str) -> Option<&'t str> {
    line.split_once(word)?.1.split_whitespace().next()
}

/// Returns how many exits for string instructions accessed no port, by port and direction: one with a repeat prefix
/// ends with an exit in which nothing is left to move. Read of the lines alone.
fn silent_strings(text: &str, isa: Isa) -> AccessCounts {
    let mut open: BTreeMap<&str, Option<(u64, bool)>> = BTreeMap::new();
    let mut silent = AccessCounts::new();
    for line in text.lines() {
        let head = line.split('[').next().unwrap_or_default().trim_end();
        let tid = head.rsplit([' ', '-']).next().unwrap_or_default();
        if line.contains("kvm_exit: ") {
            let info = word_behind(line, "info1 0x").or_else(|| word_behind(line, "info "));
            let info = u64::from_str_radix(info.unwrap_or_default(), 16).unwrap_or_default();
            let string = match (isa, word_behind(line, " reason ")) {
                (Isa::Vmx, Some("IO_INSTRUCTION")) if info & 0x10 != 0 => Some(info & 8 == 0),
                (Isa::Svm, Some("io")) if info & 4 != 0 => Some(info & 1 == 0),
                _ => None,
            };
            open.insert(tid, string.map(|write| (info >> 16 & 0xffff, write)));
        } else if line.contains("kvm_pio: ") {
            open.insert(tid, None);
        } else if line.contains("kvm_entry: ")
            && let Some(Some(access)) = open.insert(tid, None)
        {
            *silent.entry(access).or_default() += 1;
        }
    }
    silent
}

#[test]
fn exits_say_which_ports_they_were_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("text");
    let mut failures = Failures::default();
    let mut compared = BTreeMap::new();
    for case in all_cases() {
        if !sweeping() && !small(&case.path) {
            continue;
        }
        let Some((Some(isa @ (Isa::Vmx | Isa::Svm)), recorded)) =
            table(&case.path, ExitTable::Ioport)
        else {
            continue;
        };
        if recorded.rows.is_empty() || recorded.from_exits || !recorded.is_timed() {
            continue;
        }
        let Some(text) = (events_text(&case.path).ok()).and_then(|t| String::from_utf8(t).ok())
        else {
            continue;
        };
        fs::write(&path, without(&text, "kvm_pio")).expect("a written file");
        let Some((_, alone)) = table(&path, ExitTable::Ioport) else {
            failures.check(false, || {
                format!("{}: it cannot be read any more", case.name)
            });
            continue;
        };
        let mut expected = counts(&recorded);
        for (access, silent) in silent_strings(&text, isa) {
            *expected.entry(access).or_default() += silent;
        }
        failures.check(alone.from_exits, || {
            format!("{}: not from exits", case.name)
        });
        failures.check(counts(&alone) == expected, || {
            format!("{}: {:?}, not {expected:?}", case.name, counts(&alone))
        });
        // They are timed as exits are, and no access is longer than its exit.
        failures.check(alone.total_ns >= recorded.total_ns, || {
            format!("{}: {} ns", case.name, alone.total_ns)
        });
        *compared.entry(isa).or_insert(0u64) += alone.total_count;
    }
    failures.finish(8);
    for isa in [Isa::Vmx, Isa::Svm] {
        let count = compared.get(&isa).copied().unwrap_or_default();
        assert!(count > 100, "{count} of {}", isa.name());
    }
}

#[test]
fn faults_of_amd_say_which_emulated_memory_they_were_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("text");
    let mut failures = Failures::default();
    let mut compared = 0;
    for case in all_cases() {
        let of_hpet = case.name == "x86/clocksource-hpet/perf.data.guest.zst";
        if !sweeping() && !of_hpet && !small(&case.path) {
            continue;
        }
        let Some((Some(Isa::Svm), recorded)) = table(&case.path, ExitTable::Mmio) else {
            continue;
        };
        if recorded.rows.is_empty() || recorded.from_exits || !recorded.is_timed() {
            continue;
        }
        let Some(text) = (events_text(&case.path).ok()).and_then(|t| String::from_utf8(t).ok())
        else {
            continue;
        };
        fs::write(&path, without(&text, "kvm_mmio")).expect("a written file");
        let Some((_, alone)) = table(&path, ExitTable::Mmio) else {
            failures.check(false, || {
                format!("{}: it cannot be read any more", case.name)
            });
            continue;
        };
        let (expected, found) = (counts(&recorded), counts(&alone));
        // No address that was never emulated.
        failures.check(
            found.keys().all(|access| expected.contains_key(access)),
            || format!("{}: {found:?}, not {expected:?}", case.name),
        );
        // The first access to each page makes its entry, and is a fault as any other.
        for (access, count) in &expected {
            let found = found.get(access).copied().unwrap_or_default();
            failures.check((count.saturating_sub(1)..=*count).contains(&found), || {
                format!("{}: {access:x?} {found} times, not {count}", case.name)
            });
        }
        compared += alone.total_count;
    }
    failures.finish(2);
    assert!(compared > 1000, "{compared}");
}

#[test]
fn accesses_are_counted_where_exits_or_entries_are_not_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("text");
    let recording = fixtures::file("vmx/tiny-irqchip/trace.dat");
    let text = events_text(&recording).expect("its text");
    let text = String::from_utf8(text).expect("UTF-8");
    let (no_exits, no_entries) = (without(&text, "kvm_exit"), without(&text, "kvm_entry"));
    let neither = without(&no_exits, "kvm_entry");
    let untimed = |report: &ExitsReport| -> u64 { report.rows.iter().map(|row| row.untimed).sum() };
    for kind in [ExitTable::Ioport, ExitTable::Mmio, ExitTable::Msr] {
        let (_, whole) = table(&recording, kind).expect("a table");
        assert_eq!(untimed(&whole), 0);
        for (what, text) in [
            ("exits", &no_exits),
            ("entries", &no_entries),
            ("either", &neither),
        ] {
            fs::write(&path, text).expect("a written file");
            let (_, report) = table(&path, kind).expect("a table");
            let what = format!("{} without {what}", kind.name());
            assert!(!report.from_exits, "{what}");
            // Without entries it is not known which of them were made before the first.
            let count = report.total_count;
            assert!(
                (whole.total_count..=whole.total_count + 2).contains(&count),
                "{what}: {count}"
            );
            for row in &report.rows {
                let reads = kind == ExitTable::Mmio && !row.write;
                let timed = text.contains("kvm_entry") && !reads;
                assert_eq!(row.total_ns().is_some(), timed, "{what}: {}", row.key);
            }
        }
    }
}

/// Returns how often the VMM had each port's accesses, of all vCPUs.
fn user_ports(path: &Path) -> Option<BTreeMap<(u16, bool), u64>> {
    let (report, quality) = FixtureQuestion::new().vcpus(path).ok()?;
    let mut out = BTreeMap::new();
    for cause in report.rows.iter().flat_map(|row| &row.user) {
        if let Some(GuestAccess::Port { port, write }) = cause.access {
            *out.entry((port, write)).or_default() += cause.count;
        }
    }
    (quality.lost_events == 0).then_some(out)
}

#[test]
fn what_a_vmm_was_needed_for_is_the_same_without_events_of_accesses() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("text");
    let mut failures = Failures::default();
    let mut compared = 0;
    for case in all_cases() {
        if !sweeping() && !small(&case.path) {
            continue;
        }
        let Some(text) = (events_text(&case.path).ok()).and_then(|t| String::from_utf8(t).ok())
        else {
            continue;
        };
        // The times of a text are rounded: some visits are too short for it.
        fs::write(&path, &text).expect("a written file");
        let Some(recorded) = user_ports(&path).filter(|ports| !ports.is_empty()) else {
            continue;
        };
        // Where nothing else says that the VMM is done, the access does: then that changes too.
        if !text.contains("kvm_fpu: ") || !text.contains("kvm_pio: ") {
            continue;
        }
        fs::write(&path, without(&text, "kvm_pio")).expect("a written file");
        let alone = user_ports(&path);
        failures.check(alone.as_ref() == Some(&recorded), || {
            format!("{}: {alone:?}, not {recorded:?}", case.name)
        });
        compared += recorded.values().sum::<u64>();
    }
    failures.finish(2);
    assert!(compared > 1000, "{compared}");
}
