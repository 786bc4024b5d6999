//! Tables with a cell on each line, as texts are that were taken out of slides.

use perftables::{KvmStat, PerfTable, read};

fn table(text: &str) -> KvmStat {
    let (tables, _) = read(text.as_bytes());
    match <[PerfTable; 1]>::try_from(tables) {
        Ok([PerfTable::KvmStat(table)]) => table,
        other => panic!("{other:?}"),
    }
}

/// Key, count, and least, greatest and mean time in nanoseconds.
type Row<'t> = (&'t str, u64, Option<u64>, Option<u64>, u64);

fn rows(table: &KvmStat) -> Vec<Row<'_>> {
    let rows = table.rows.iter();
    rows.map(|row| {
        (
            row.key.as_str(),
            row.count,
            row.min_ns,
            row.max_ns,
            row.mean_ns,
        )
    })
    .collect()
}

#[test]
fn cells_of_a_row_are_put_together() {
    let virtio = table(include_str!("tables/case4-virtio.cells.txt"));
    let wanted = [
        // What the slides' reader misread stays as it is: `DABT LOW`, `IRO`.
        ("DABT LOW", 4578, Some(6_600), Some(1_961_410), 104_750),
        ("WFx", 3546, Some(8_040), Some(2_113_930), 234_700),
        ("SYS64", 2430, Some(5_640), Some(1_621_330), 16_180),
        ("IRO", 856, Some(11_160), Some(2_793_490), 533_310),
    ];
    assert_eq!(rows(&virtio), wanted);
    let errors = virtio
        .rows
        .iter()
        .map(|row| (row.error.unwrap_or(0.0) * 1e4).round());
    assert_eq!(errors.collect::<Vec<f64>>(), [195.0, 256.0, 793.0, 370.0]);
    let vhost = table(include_str!("tables/case4-vhost.cells.txt"));
    let wanted = [
        ("DABT_LOW", 23050, Some(6_240), Some(3_449_530), 59_700),
        ("IRO", 6750, Some(8_280), Some(3_951_140), 59_500),
        ("SYS64", 2433, Some(5_760), Some(3_352_330), 20_030),
        ("WFx", 2318, Some(12_720), Some(1_807_210), 103_550),
    ];
    assert_eq!(rows(&vhost), wanted);
}

#[test]
fn a_row_without_one_of_its_cells_is_left_out_and_noted() {
    let text = include_str!("tables/case4-virtio.cells.txt")
        .replace("                          4578\n", "");
    let (tables, notes) = read(text.as_bytes());
    // Without it no count is the share that stands beside it.
    let read = tables.iter().map(|table| match table {
        PerfTable::KvmStat(table) => table.rows.len(),
        _ => 0,
    });
    assert!(read.sum::<usize>() < 4, "{tables:?}");
    assert!(!notes.is_empty() || tables.is_empty(), "{notes:?}");
}

#[test]
fn titles_alone_are_no_table() {
    for text in [
        "VM-EXIT\nSamples\n",
        "Samples\nTime%\nThe columns are these.\n",
        "Min Time\nMax Time\n10\n20\n",
    ] {
        assert_eq!(read(text.as_bytes()).0, [], "{text}");
    }
}
