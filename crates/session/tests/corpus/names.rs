//! Names of devices and registers behind the keys of exit tables.

use std::collections::BTreeMap;
use std::fs;

use analysis::ExitTable;
use fixtures::{Failures, FixtureQuestion, case};

/// Returns the names of a table's rows by key.
fn names(asked: FixtureQuestion, recording: &str) -> BTreeMap<String, String> {
    let document = asked
        .exits_document(&case(recording).path)
        .expect("it reads");
    let rows = document["rows"].as_array().expect("rows").iter();
    rows.map(|row| {
        let text = |field: &str| row[field].as_str().expect("a text").to_owned();
        (text("key"), text("name"))
    })
    .collect()
}

#[test]
fn clock_sources_are_named() {
    let mut failures = Failures::default();
    let ports = names(
        FixtureQuestion::new().table(ExitTable::Ioport),
        "x86/clocksource-acpi_pm/loop/perf.data.guest.zst",
    );
    failures.equal("0x608", &ports["0x608:PIN"].as_str(), &"acpi-tmr");
    let mmio = names(
        FixtureQuestion::new().table(ExitTable::Mmio),
        "x86/clocksource-hpet/perf.data.guest.zst",
    );
    failures.equal("HPET", &mmio["0xfed000f0:R"].as_str(), &"HPET main counter");
    // Exit reasons have no device: their name is their key.
    let reasons = names(
        FixtureQuestion::new(),
        "x86/clocksource-hpet/perf.data.guest.zst",
    );
    failures.check(reasons.iter().all(|(key, name)| key == name), || {
        format!("{reasons:?}")
    });
    failures.finish(3);
}

#[test]
fn virtio_queues_of_arm64_are_named() {
    let mmio = names(
        FixtureQuestion::new().table(ExitTable::Mmio),
        "arm64/virtio-mmio/boot1/perf.data.tracepoints.zst",
    );
    assert!(mmio["0xa003e50:W"].contains("queue notify"), "{mmio:?}");
}

/// A map that QEMU printed counts more than where its devices are by default.
#[test]
fn a_map_of_the_vm_moves_the_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let mtree = folder.path().join("mtree.txt");
    fs::write(
        &mtree,
        "address-space: I/O\n  0000000000000000-000000000000ffff (prio 0, i/o): io\n    \
         0000000000000608-000000000000060b (prio 0, i/o): another-timer\n",
    )
    .expect("a written file");
    let asked = FixtureQuestion::new().table(ExitTable::Ioport);
    let ports = names(
        asked.beside(|beside| beside.mtree = Some(mtree.clone())),
        "x86/clocksource-acpi_pm/loop/perf.data.guest.zst",
    );
    assert_eq!(ports["0x608:PIN"], "another-timer");
}
