//! Tables that were pasted as one line have the rows that they had.

use perftables::{PerfTable, read};

/// A text as an editor makes one line of it.
fn one_line(text: &str) -> String {
    let words = text.lines().map(str::trim).filter(|line| !line.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// What a table says, without where.
fn rows(tables: &[PerfTable]) -> Vec<String> {
    let mut out = Vec::new();
    for table in tables {
        match table {
            PerfTable::KvmStat(stat) => {
                out.push(format!("{:?} {:?}", stat.event, stat.total_count));
                let rows = stat.rows.iter();
                out.extend(rows.map(|row| {
                    format!("{} {} {:?} {}", row.key, row.count, row.max_ns, row.mean_ns)
                }));
            }
            PerfTable::SchedLatency(latency) => {
                out.push(format!("{:?}", latency.total_switches));
                let rows = latency.rows.iter();
                out.extend(rows.map(|row| {
                    let (comm, tid, switches) = (&row.comm, row.tid, row.switches);
                    format!(
                        "{comm} {tid:?} {switches} {} {:?}",
                        row.runtime_ns, row.delay_max_at_ns
                    )
                }));
            }
            PerfTable::PerfStat(stat) => {
                let counts = stat.counts.iter();
                out.extend(counts.map(|count| format!("{} {:?}", count.event, count.value)));
            }
            _ => out.push("another".to_owned()),
        }
    }
    out
}

#[test]
fn one_line_has_the_rows_of_all() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/seed-text");
    let mut compared = 0;
    for file in std::fs::read_dir(folder).expect("the corpus") {
        let path = file.expect("a file").path();
        let text = std::fs::read(&path).expect("a text");
        let Ok(text) = String::from_utf8(text) else {
            continue;
        };
        let (tables, _) = read(text.as_bytes());
        // Of a table without rows its heading is left, which is prose.
        if rows(&tables).len() < 3 {
            continue;
        }
        let (found, _) = read(one_line(&text).as_bytes());
        let (wanted, found) = (rows(&tables), rows(&found));
        assert_eq!(found, wanted, "{}", path.display());
        compared += 1;
    }
    assert!(compared >= 8, "only {compared} texts have tables");
}

#[test]
fn prose_with_numbers_is_no_row() {
    let prose = "We saw 3 cycles of this in 2024, 17 branches of the tree and 100 faults of the page cache, which is \
                 why the next 12 instructions are for people who have 40 minutes and 2 machines to spare for it.";
    let (tables, notes) = read(prose.as_bytes());
    assert_eq!((tables.len(), notes.len()), (0, 0), "{tables:?}");
}

#[test]
fn a_line_that_is_too_long_says_so() {
    let row = "kworker/1:1 | 0.1 ms | 2 | avg: 0.1 ms | max: 0.2 ms | max at: 1.5 s ";
    let (tables, notes) = read(row.repeat(2000).as_bytes());
    let [PerfTable::SchedLatency(table)] = &tables[..] else {
        panic!("{tables:?}");
    };
    assert!(
        (900..1000).contains(&table.rows.len()),
        "{}",
        table.rows.len()
    );
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].text.contains("65536 bytes"), "{}", notes[0].text);
    assert_eq!(read(row.repeat(20).as_bytes()).1, []);
}
