//! Printed tables that were published, against the sums printed in them and what their documents say.

use std::path::PathBuf;

use perftables::{
    KvmStat, KvmStatEvent, PerfTable, SchedLatency, StatCount, TableNote, looks_like, read,
};

fn text(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/tables")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn tables(name: &str) -> (Vec<PerfTable>, Vec<TableNote>) {
    let text = text(name);
    assert!(looks_like(text.as_bytes()), "{name}");
    read(text.as_bytes())
}

fn kvm(name: &str) -> (KvmStat, Vec<TableNote>) {
    let (mut tables, notes) = tables(name);
    assert_eq!(tables.len(), 1, "{name}");
    match tables.remove(0) {
        PerfTable::KvmStat(table) => (table, notes),
        other => panic!("{name}: {other:?}"),
    }
}

fn sched(name: &str) -> (SchedLatency, Vec<TableNote>) {
    let (mut tables, notes) = tables(name);
    assert_eq!(tables.len(), 1, "{name}");
    match tables.remove(0) {
        PerfTable::SchedLatency(table) => (table, notes),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn kvm_tables_of_documents() {
    // Name, event, rows, samples, time in ns.
    let tables: [(&str, KvmStatEvent, usize, u64, u64); 11] = [
        (
            "case2-acpi_pm.perf-kvm-stat-ioport",
            KvmStatEvent::Ioport,
            1,
            24618,
            35_370_400,
        ),
        (
            "case2-acpi_pm.perf-kvm-stat-vmexit",
            KvmStatEvent::Vmexit,
            11,
            37847,
            78_936_674_730,
        ),
        (
            "case2-hpet.perf-kvm-stat-ioport",
            KvmStatEvent::Ioport,
            0,
            0,
            0,
        ),
        (
            "case2-hpet.perf-kvm-stat-vmexit",
            KvmStatEvent::Vmexit,
            11,
            38804,
            83_474_382_310,
        ),
        (
            "case2-kvm-clock.perf-kvm-stat-ioport",
            KvmStatEvent::Ioport,
            0,
            0,
            0,
        ),
        (
            "case2-kvm-clock.perf-kvm-stat-vmexit",
            KvmStatEvent::Vmexit,
            11,
            10421,
            75_040_337_720,
        ),
        (
            "case2-tsc.perf-kvm-stat-ioport",
            KvmStatEvent::Ioport,
            1,
            1,
            48_510,
        ),
        (
            "case2-tsc.perf-kvm-stat-vmexit",
            KvmStatEvent::Vmexit,
            12,
            12863,
            72_859_743_230,
        ),
        (
            "case2-windows-after.perf-kvm-stat-vmexit",
            KvmStatEvent::Vmexit,
            11,
            151854,
            659_416_830,
        ),
        (
            "case2-windows-before.perf-kvm-stat-ioport",
            KvmStatEvent::Ioport,
            4,
            256738,
            899_615_430,
        ),
        (
            "case2-windows-before.perf-kvm-stat-vmexit",
            KvmStatEvent::Vmexit,
            12,
            351826,
            3_319_455_970,
        ),
    ];
    for (name, event, rows, count, ns) in tables {
        let (table, notes) = kvm(&format!("{name}.txt"));
        assert_eq!(
            (table.line, table.event, table.rows.len()),
            (1, event, rows),
            "{name}"
        );
        assert_eq!(
            (table.total_count, table.total_ns),
            (Some(count), Some(ns)),
            "{name}"
        );
        assert_eq!((&table.pids, table.vcpu), (&None, None), "{name}");
        assert_eq!(
            table.rows.iter().map(|row| row.count).sum::<u64>(),
            count,
            "{name}"
        );
        assert_eq!(notes, [], "{name}");
        let total: u64 = table.rows.iter().map(|row| row.total_ns).sum();
        let bound: u64 = table.rows.iter().map(|row| row.total_error_ns).sum();
        assert!(
            total.abs_diff(ns) <= bound,
            "{name}: {total} is not {ns} within {bound}"
        );
    }
}

#[test]
fn kvm_tables_without_a_last_line() {
    for (name, samples) in [
        ("vhost", 23050 + 6750 + 2433 + 2318),
        ("virtio", 4578 + 3546 + 2430 + 856),
    ] {
        let (table, notes) = kvm(&format!("case4-{name}.perf-kvm-stat-vmexit.txt"));
        assert_eq!(
            (table.rows.len(), table.total_count, table.total_ns),
            (4, None, None)
        );
        assert_eq!(table.rows.iter().map(|row| row.count).sum::<u64>(), samples);
        assert_eq!(table.rows[0].key, "DABT_LOW");
        assert_eq!(notes, []);
    }
}

#[test]
fn the_numbers_of_a_row() {
    let (table, _) = kvm("case2-windows-before.perf-kvm-stat-ioport.txt");
    let row = &table.rows[0];
    assert_eq!(
        (row.key.as_str(), row.count, row.line),
        ("0x608:PIN", 158788, 5)
    );
    assert_eq!(
        (row.count_share, row.time_share),
        (61.85 / 100.0, 77.51 / 100.0)
    );
    assert_eq!(
        (row.min_ns, row.max_ns, row.mean_ns),
        (Some(1_040), Some(38_510), 4_390)
    );
    assert_eq!(row.error, Some(0.21 / 100.0));
    // 77.51% of the time, to 45 us, rather than 158788 × 4.39 us, to 794 us.
    assert_eq!((row.total_ns, row.total_error_ns), (697_291_920, 44_986));
}

#[test]
fn sched_tables_of_documents() {
    let (table, notes) = sched("case5-slow-host.perf-sched-latency.txt");
    assert_eq!((table.rows.len(), table.line), (15, 2));
    assert_eq!(
        (table.total_runtime_ns, table.total_switches),
        (Some(12_774_563_000), Some(355893))
    );
    // The document leaves out most rows.
    let switches: u64 = table.rows.iter().map(|row| row.switches).sum();
    let runtime_ns: u64 = table.rows.iter().map(|row| row.runtime_ns).sum();
    assert_eq!(
        (switches, notes.len()),
        (355254, 1),
        "{notes:?} {runtime_ns}"
    );
    let iperf = &table.rows[1];
    assert_eq!(
        (iperf.comm.as_str(), iperf.tid, iperf.threads),
        ("iperf", None, Some(6))
    );
    assert_eq!(
        (iperf.delay_mean_ns, iperf.delay_max_ns),
        (27_000, 31_598_000)
    );
    assert_eq!(iperf.delay_max_at_ns, Some(910_809_489_586_000));
    assert_eq!(table.rows[12].delay_max_at_ns, None);

    let (table, notes) = sched("case5-slow-host-performance-governor.perf-sched-latency.txt");
    assert_eq!(
        (table.rows.len(), table.total_switches),
        (16, Some(16288)),
        "{notes:?}"
    );
    assert_eq!(
        (table.rows[0].comm.as_str(), table.rows[0].tid),
        (":12373", Some(12373))
    );

    let (table, notes) = sched("case5-good-host.perf-sched-latency.txt");
    assert_eq!((table.rows.len(), table.total_switches), (2, None));
    assert_eq!(table.rows[1].comm, "jbd2/sda2-8");
    assert_eq!(notes, []);
}

#[test]
fn counts_of_a_document() {
    let (tables, notes) = tables("case5-perf-stat.txt");
    let mut counts = Vec::new();
    for table in &tables {
        let PerfTable::PerfStat(stat) = table else {
            panic!("{table:?}");
        };
        let last = stat.counts.last().unwrap();
        counts.push((
            stat.line,
            table.label().unwrap(),
            stat.counts.len(),
            stat.elapsed_ns,
        ));
        assert!(
            stat.counts
                .iter()
                .all(|count| matches!(count.value, StatCount::Count(_))),
            "{last:?}"
        );
    }
    let want = [
        (2, "slow host (ondemand governor)", 4, Some(10_047_327_675)),
        (10, "good host", 4, Some(10_050_243_036)),
        (18, "slow host (performance governor)", 8, None),
    ];
    assert_eq!(counts, want);
    assert_eq!(notes, []);
    let PerfTable::PerfStat(stat) = &tables[2] else {
        unreachable!()
    };
    let cycles = &stat.counts[2];
    assert_eq!(
        (cycles.event.as_str(), cycles.value),
        ("cycles", StatCount::Count(111_003_587_975))
    );
    assert_eq!(
        (
            stat.counts[3].metrics[0].value,
            stat.counts[3].metrics[0].unit.as_str()
        ),
        (0.05, "insn per cycle")
    );
    assert_eq!(stat.counts[7].event, "irq:softirq_entry");
}
