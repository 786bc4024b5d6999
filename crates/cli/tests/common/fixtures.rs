//! The recordings made by hand for rules; `rules.rs` says how they are written.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "perf_data.rs"]
pub(crate) mod perf_data;

pub(crate) use perf_data::Written;

/// Returns the folder that has a folder for each rule.
pub(crate) fn folder() -> PathBuf {
    // Tests of other crates use them too.
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/rules")
}

/// Returns the fixtures of a rule whose names begin so.
pub(crate) fn fixtures(id: &str, begin: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder().join(id)).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with(begin) && name.ends_with(".txt")
        })
        .collect();
    files.sort();
    files
}

/// Where a line's time stamp is, and the time in units of its last digit: the first number with six or nine digits
/// behind its point and a colon behind those.
fn stamp(line: &str) -> Option<(std::ops::Range<usize>, u64, usize)> {
    let bytes = line.as_bytes();
    for (at, _) in line.match_indices(':') {
        let digits = bytes[..at].iter().rev().take_while(|b| b.is_ascii_digit());
        let digits = digits.count();
        let point = at.checked_sub(digits + 1)?;
        if !matches!(digits, 6 | 9) || bytes[point] != b'.' {
            continue;
        }
        let whole = bytes[..point]
            .iter()
            .rev()
            .take_while(|b| b.is_ascii_digit())
            .count();
        let seconds: u64 = line[point - whole..point].parse().ok()?;
        let rest: u64 = line[point + 1..at].parse().ok()?;
        let time = seconds * 10u64.pow(digits as u32) + rest;
        return Some((point - whole..at, time, digits));
    }
    None
}

/// Moves a line to a later time.
fn later(line: &str, by_us: u64) -> (Option<u64>, String) {
    let Some((range, time, digits)) = stamp(line) else {
        return (None, line.to_owned());
    };
    let unit = if digits == 9 { 1000 } else { 1 };
    let time = time + by_us * unit;
    let second = 1_000_000 * unit;
    let text = format!(
        "{}{}.{:0digits$}{}",
        &line[..range.start],
        time / second,
        time % second,
        &line[range.end..]
    );
    (Some(time), text)
}

/// Returns the recording that a fixture describes: its text, or where a line `#! perf.data` says so, the recording of which that is
/// the text. With `#! perf.data without symbols` kernels have none.
pub(crate) fn recording(text: &str) -> Written {
    let form = text.lines().find_map(|line| line.strip_prefix("#! "));
    match form {
        Some("perf.data") => perf_data::write(&expand(text), true),
        Some("perf.data without symbols") => perf_data::write(&expand(text), false),
        Some(other) => panic!("no form of recordings: {other}"),
        None => Written {
            bytes: expand(text).into_bytes(),
            guest_symbols: String::new(),
        },
    }
}

/// Writes the recording out that a fixture describes.
pub(crate) fn expand(text: &str) -> String {
    // Lines with their times; what has none stays behind the line before it.
    let mut lines: Vec<(u64, String)> = Vec::new();
    let mut block: Vec<&str> = Vec::new();
    let mut repeat: Option<(u64, u64)> = None;
    let mut now = 0;
    let mut put = |line: &str, by_us: u64| {
        let (time, text) = later(line, by_us);
        now = time.unwrap_or(now);
        lines.push((now, text));
    };
    let mut sorts = false;
    for line in text.lines() {
        if ["#=", "# ", "#!"]
            .iter()
            .any(|begin| line.starts_with(begin))
        {
            continue;
        }
        let Some(rest) = line.strip_prefix("#*") else {
            match repeat {
                Some(_) => block.push(line),
                None => put(line, 0),
            }
            continue;
        };
        sorts = true;
        let numbers: Vec<u64> = rest
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        match (numbers.as_slice(), repeat.take()) {
            ([times, step], None) => repeat = Some((*times, *step)),
            ([], Some((times, step))) => {
                for n in 0..times {
                    for line in &block {
                        put(line, n * step);
                    }
                }
                block.clear();
            }
            _ => panic!("{line}"),
        }
    }
    assert!(repeat.is_none(), "a block has no end");
    if sorts {
        lines.sort_by_key(|(time, _)| *time);
    }
    let mut out = String::new();
    for (_, line) in lines {
        out.push_str(&line);
        out.push('\n');
    }
    out
}
