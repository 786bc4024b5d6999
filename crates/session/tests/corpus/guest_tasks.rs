//! What guests' tasks did adds up to what their vCPUs did: the pairs of the corpus, whose files name each other.

use std::path::Path;

use analysis::{ExitTable, RowSplit};
use fixtures::json::{list, number};
use fixtures::pairs::{GUEST, GuestPair, HOST, pairs};
use fixtures::{Failures, FixtureQuestion, file, read};
use serde_json::Value;

/// Returns a question about what a filter takes: an option and its value, or nothing.
fn asked(filter: &[&str]) -> FixtureQuestion {
    match filter {
        [option, value] => FixtureQuestion::new().filter(option, value),
        _ => FixtureQuestion::new(),
    }
}

fn vcpus(asked: FixtureQuestion, host: &Path) -> Value {
    asked.vcpus_document(host).expect("it can be read")
}

#[test]
fn times_of_guests_tasks_add_up_to_those_of_their_vcpus() {
    let mut failures = Failures::default();
    let mut compared = 0;
    let sums = [
        "guest_ns",
        "kernel_ns",
        "user_ns",
        "poll_ns",
        "halted_ns",
        "runnable_ns",
        "unknown_ns",
        "exits",
    ];
    for GuestPair { host, guest } in &pairs() {
        let alone = vcpus(FixtureQuestion::new(), host);
        let begin = number(&list(&alone["rows"])[0], "from_ns") + 500_000_000;
        let window = format!("{}.{:09},", begin / 1_000_000_000, begin % 1_000_000_000);
        for more in [
            &[][..],
            &["--vcpu", "1"],
            &["--cpu", "0-1"],
            &["--time", &window],
        ] {
            let name = format!("{} {more:?}", guest.display());
            let both = vcpus(asked(more).guest(guest), host);
            let alone = vcpus(asked(more), host);
            for (row, alone) in list(&both["rows"]).iter().zip(list(&alone["rows"])) {
                let tasks = list(&row["guest"]);
                // The guest's recording may have no event at the time or on the CPUs that are asked for.
                let few = match more.first() {
                    Some(&"--time" | &"--cpu") => 0,
                    _ => 3,
                };
                failures.check(tasks.len() > few, || format!("{name}: {row}"));
                for field in sums {
                    let sum: u64 = tasks.iter().map(|task| number(task, field)).sum();
                    failures.equal(&format!("{name}: {field}"), &sum, &number(row, field));
                    failures.equal(
                        &format!("{name}: {field} alone"),
                        &row[field],
                        &alone[field],
                    );
                    compared += 1;
                }
            }
        }
    }
    failures.finish(compared);
}

#[test]
fn exits_of_guests_tasks_add_up_to_all_exits() {
    let mut failures = Failures::default();
    let mut compared = 0;
    let tables = [
        ExitTable::Vmexit,
        ExitTable::Ioport,
        ExitTable::Mmio,
        ExitTable::Msr,
    ];
    for GuestPair { host, guest } in &pairs() {
        for more in [&[][..], &["--vcpu", "1"]] {
            let name = format!("{} {more:?}", guest.display());
            let asked = tables.into_iter().fold(asked(more), FixtureQuestion::table);
            let by = RowSplit {
                task: true,
                ..RowSplit::default()
            };
            let both = asked.clone().by(by).guest(guest).exits_document(host);
            let both = both.expect("it can be read");
            let alone = asked.exits_document(host).expect("it can be read");
            for (table, alone) in list(&both["tables"]).iter().zip(list(&alone["tables"])) {
                for row in list(&alone["rows"]) {
                    let of_key = list(&table["rows"])
                        .iter()
                        .filter(|one| one["key"] == row["key"]);
                    for field in ["count", "total_ns", "kernel_ns", "user_ns", "user_count"] {
                        let sum: u64 = of_key.clone().map(|one| number(one, field)).sum();
                        failures.equal(
                            &format!("{name}: {} {field}", row["key"]),
                            &sum,
                            &number(row, field),
                        );
                        compared += 1;
                    }
                }
            }
        }
    }
    failures.finish(compared);
}

#[test]
fn the_guest_is_seen_to_print() {
    // The workload's output goes to the serial line, whose exits the VMM handles.
    let host = file(HOST);
    let guest = file(GUEST);
    let document = vcpus(FixtureQuestion::new().vcpu(1).guest(&guest), &host);
    let row = &list(&document["rows"])[0];
    let tasks = list(&row["guest"]);
    let serial = tasks.iter().find(|task| task["name"] == "ttyS0");
    let serial = serial.expect("the serial line interrupts");
    assert_eq!(serial["what"], "interrupt");
    assert!(
        number(serial, "user_ns") * 10 > number(row, "user_ns") * 9,
        "{serial}"
    );
    let pingpong: u64 = tasks
        .iter()
        .filter(|task| task["name"] == "wl")
        .map(|task| number(task, "exits"))
        .sum();
    assert!(pingpong * 3 > number(row, "exits"), "{tasks:?}");
}

#[test]
fn behind_the_last_event_of_a_cpu_in_a_cut_file_nobody_knows_what_it_does() {
    let host = file(HOST);
    let guest = read(&file(GUEST));
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let cut = folder.path().join("cut.dat");
    // CPU 1 has events until 1021.5868 on the host's clock then, and CPU 0 until 1025.2277.
    std::fs::write(&cut, &guest[..guest.len() * 9 / 10]).expect("there is room");
    let document = vcpus(FixtureQuestion::new().guest(&cut), &host);
    let ends = [1_025_227_700_000_u64, 1_021_586_900_000];
    for (row, end) in list(&document["rows"]).iter().zip(ends) {
        let states = [
            "guest_ns",
            "kernel_ns",
            "user_ns",
            "poll_ns",
            "halted_ns",
            "runnable_ns",
        ];
        let known = list(&row["guest"])
            .iter()
            .filter(|task| task["what"] != "unknown");
        let known: u64 = known
            .flat_map(|task| states.map(|state| number(task, state)))
            .sum();
        let most = end - number(row, "from_ns");
        assert!(
            known <= most && known * 10 > most * 8,
            "{known} of {most}: {row}"
        );
    }
}
