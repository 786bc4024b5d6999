//! /proc/interrupts, and bcc's virtiostat.

use std::path::Path;

use perftables::{InterruptCounts, InterruptRow, PerfTable, read};

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn interrupts(text: &str) -> Vec<InterruptCounts> {
    let (tables, _) = read(text.as_bytes());
    let tables = tables.into_iter().map(|table| match table {
        PerfTable::InterruptCounts(counts) => counts,
        other => panic!("{other:?}"),
    });
    tables.collect()
}

fn row<'t>(table: &'t InterruptCounts, irq: &str) -> &'t InterruptRow {
    table.rows.iter().find(|row| row.irq == irq).unwrap()
}

#[test]
fn interrupts_have_their_handlers_and_a_count_for_each_cpu() {
    let arm = &interrupts(&fixture("proc-interrupts-arm64.txt"))[0];
    assert_eq!(arm.cpus, [0, 1, 2, 3]);
    let shared = row(arm, "44");
    assert_eq!(
        (shared.name.as_str(), &shared.counts[..]),
        ("aerdrv, PCIe PME, pciehp", &[1, 0, 0, 0][..])
    );
    assert_eq!(row(arm, "3").name, "arch_timer");
    assert_eq!(row(arm, "IPI0").name, "Rescheduling interrupts");
    assert_eq!(arm.rows.len(), 9);
    let old = &interrupts(&fixture("proc-interrupts-3.10.txt"))[0];
    assert_eq!(row(old, "57").name, "eth1");
    assert_eq!(row(old, "58").name, "vfio-msix[0](0000:01:00.0)");
    assert_eq!(row(old, "LOC").counts, [8_123_991, 8_001_223]);
    let new = &interrupts(&fixture("proc-interrupts-x86.txt"))[0];
    assert_eq!(row(new, "38").name, "virtio2-input.0");
}

#[test]
fn broken_rows_are_put_together() {
    let text = fixture("proc-interrupts-arm64.txt");
    let broken = text
        .replace("  ITS-MSI", "\n  ITS-MSI")
        .replace("       1722", "\n 1722");
    let rows = |text: &str| -> Vec<(String, String, Vec<u64>)> {
        let tables = interrupts(text).into_iter().flat_map(|table| table.rows);
        tables.map(|row| (row.irq, row.name, row.counts)).collect()
    };
    assert_eq!(rows(&broken), rows(&text));
}

#[test]
fn other_text_is_none() {
    for text in [
        "           CPU0       CPU1\n",
        "CPU0 CPU1\nare the CPUs: 1 2\n",
        "CPU0 12.5% idle\n",
        "  57:     918273          0   PCI-MSI-edge      eth1\n",
        "CPU0       CPU1\n 57:     918273   PCI-MSI-edge      eth1\n",
        "Driver Device VQ Name In SGs Out SGs In BW Out BW\nnothing\n",
    ] {
        assert_eq!(read(text.as_bytes()).0, [], "{text}");
    }
}

#[test]
fn queues_have_buffers_and_bytes() {
    for (name, rows, bytes) in [
        ("virtiostat.txt", 3, 376_253_940),
        ("virtiostat-python3.txt", 2, 375_796_680),
    ] {
        let (tables, notes) = read(fixture(name).as_bytes());
        assert_eq!(notes, []);
        let [PerfTable::VirtioTraffic(table)] = &tables[..] else {
            panic!("{tables:?}");
        };
        assert_eq!(table.rows.len(), rows);
        let out = &table.rows[1];
        assert_eq!(
            (out.driver.as_str(), out.device.as_str(), out.queue.as_str()),
            ("virtio_net", "virtio0", "output.0")
        );
        assert_eq!((out.in_bytes, out.out_bytes), (0, bytes));
    }
}
