//! What perf printed of recordings, against the sums that it printed below.
//!
//! The repository's references always; those of `TRAPLINE_CORPUS` where it is set.

use std::path::{Path, PathBuf};

use perftables::{KvmStatEvent, PerfTable, looks_like, read};

/// Returns all texts below a folder whose names a test wants.
fn texts(folder: &Path, wanted: fn(&str) -> bool, found: &mut Vec<PathBuf>) {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            texts(&path, wanted, found);
        } else if name.ends_with(".txt") && wanted(&name) {
            found.push(path);
        }
    }
}

fn all(wanted: fn(&str) -> bool) -> Vec<(PathBuf, String)> {
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut found = Vec::new();
    texts(&repository, wanted, &mut found);
    if let Some(corpus) = std::env::var_os("TRAPLINE_CORPUS") {
        texts(Path::new(&corpus), wanted, &mut found);
    }
    found.sort();
    let text = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap();
        (path, String::from_utf8_lossy(&bytes).into_owned())
    };
    found.into_iter().map(text).collect()
}

#[test]
fn every_kvm_table_adds_up() {
    let files = all(|name| name.contains("kvm-stat"));
    let mut tables_seen = 0;
    for (path, text) in &files {
        let name = path.display();
        // Some references say only that there was nothing to print.
        let heads = text.matches("Analyze events for").count();
        assert_eq!(looks_like(text.as_bytes()), heads > 0, "{name}");
        let (tables, notes) = read(text.as_bytes());
        assert_eq!(tables.len(), heads, "{name}");
        assert!(notes.is_empty(), "{name}: {notes:?}");
        tables_seen += tables.len();
        let lines: Vec<&str> = text.lines().collect();
        let mut rows = 0;
        for table in &tables {
            let PerfTable::KvmStat(table) = table else {
                panic!("{name}: {table:?}");
            };
            assert!(
                lines[table.line as usize - 1].contains("Analyze events for"),
                "{name}"
            );
            assert_ne!(table.event, KvmStatEvent::Unrecognized, "{name}");
            rows += table.rows.len();
            let counts: u64 = table.rows.iter().map(|row| row.count).sum();
            if let Some(total) = table.total_count {
                assert_eq!(counts, total, "{name}");
            }
            let ns: u64 = table.rows.iter().map(|row| row.total_ns).sum();
            let bound: u64 = table.rows.iter().map(|row| row.total_error_ns).sum();
            if let Some(total) = table.total_ns {
                assert!(
                    ns.abs_diff(total) <= bound + 5,
                    "{name}: {ns} is not {total} within {bound}"
                );
            }
            for row in &table.rows {
                let line = lines[row.line as usize - 1];
                let start = format!("{:>20} {:>10} ", row.key, row.count);
                assert!(line.starts_with(&start), "{name}: {row:?} of {line:?}");
                assert!(
                    row.min_ns.unwrap() <= row.mean_ns + 5
                        && row.mean_ns <= row.max_ns.unwrap() + 5,
                    "{name}"
                );
            }
        }
        assert_eq!(rows, text.matches("( +-").count(), "{name}");
    }
    assert!(tables_seen > 40, "only {tables_seen} tables were found");
}

#[test]
fn every_sched_table_adds_up() {
    let files = all(|name| name.contains("sched-latency"));
    let mut tables_seen = 0;
    for (path, text) in &files {
        let name = path.display();
        let (tables, notes) = read(text.as_bytes());
        assert_eq!(tables.len(), text.matches("Runtime ms").count(), "{name}");
        assert_eq!(looks_like(text.as_bytes()), !tables.is_empty(), "{name}");
        tables_seen += tables.len();
        let lines: Vec<&str> = text.lines().collect();
        let mut rows = 0;
        for table in &tables {
            let PerfTable::SchedLatency(table) = table else {
                panic!("{name}: {table:?}");
            };
            rows += table.rows.len();
            let switches: u64 = table.rows.iter().map(|row| row.switches).sum();
            // A document's table may be an excerpt, which is noted.
            if notes.is_empty() && table.total_switches.is_some() {
                assert_eq!(Some(switches), table.total_switches, "{name}");
            }
            assert!(
                notes.is_empty() || path.to_string_lossy().contains("seed-text"),
                "{name}: {notes:?}"
            );
            for row in &table.rows {
                let line = lines[row.line as usize - 1];
                let id = match (row.tid, row.threads) {
                    (Some(tid), None) => tid.to_string(),
                    (None, Some(threads)) => format!("({threads})"),
                    other => panic!("{name}: {other:?}"),
                };
                assert!(
                    line.starts_with(&format!("  {}:{id} ", row.comm)),
                    "{name}: {row:?} of {line:?}"
                );
                let mean = format!("avg:{:>8.3} ms", row.delay_mean_ns as f64 / 1e6);
                let squeezed = |text: &str| text.replace(' ', "");
                assert!(
                    squeezed(line).contains(&squeezed(&mean)),
                    "{name}: {row:?} of {line:?}"
                );
            }
            let infos = text.matches("INFO:").count();
            assert_eq!(table.notes.len(), infos, "{name}");
            assert_eq!(
                table.lost_events.is_some(),
                text.contains("% lost events"),
                "{name}"
            );
        }
        assert_eq!(rows, text.matches("| avg:").count(), "{name}");
    }
    assert!(tables_seen > 5, "only {tables_seen} tables were found");
}

#[test]
fn texts_of_traces_are_no_tables() {
    let files = all(|name| {
        // What stands beside a trace may be a reading of /proc/interrupts, which is one.
        let trace = name.ends_with("trace-cmd.txt") && !name.contains("interrupts");
        trace || name.ends_with("sched.txt") || name == "stats.txt"
    });
    assert!(files.len() > 5);
    for (path, text) in &files {
        assert!(
            !looks_like(text.as_bytes()),
            "{}: {:?}",
            path.display(),
            read(text.as_bytes()).0
        );
    }
}
