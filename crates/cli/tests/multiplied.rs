//! Numbers that a reader multiplies: in every table of counts, means and totals that is kept in `corpus/golden`, count
//! times mean is the total, within what the last printed digits leave open.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::shipped;

/// What a printed duration may have been before it was rounded, in nanoseconds.
type RoundedFrom = (f64, f64);

/// Reads a duration as tables print it: `870ns`, `76.06us`.
fn duration(text: &str) -> Option<RoundedFrom> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(number.len()..)? {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let digits = number.split_once('.').map_or(0, |(_, digits)| digits.len());
    let half = 0.5 * unit / 10f64.powi(i32::try_from(digits).ok()?);
    let value = number.parse::<f64>().ok()? * unit;
    Some((value - half, value + half))
}

/// Where the columns of a table end that are multiplied: how many, their mean, and their total.
#[derive(Clone, Copy)]
struct MultipliedColumns {
    count: usize,
    mean: usize,
    total: usize,
}

/// Returns the words of a line with the places where they end.
fn words(line: &str) -> Vec<(usize, &str)> {
    let begins = line.split_whitespace().map(|word| {
        let begin = word.as_ptr() as usize - line.as_ptr() as usize;
        let end = line.get(..begin).unwrap_or_default().chars().count() + word.chars().count();
        (end, word)
    });
    begins.collect()
}

fn columns(line: &str) -> Option<MultipliedColumns> {
    let words = words(line);
    let end = |names: &[&str]| {
        let found = words.iter().find(|(_, word)| names.contains(word));
        found.map(|(end, _)| *end)
    };
    Some(MultipliedColumns {
        count: end(&["count", "runs"])?,
        mean: end(&["mean"])?,
        total: end(&["time", "total"])?,
    })
}

/// Returns the count, the mean and the total of a row; how many were timed, where that is another number, stands with
/// its name.
fn row(line: &str, columns: MultipliedColumns) -> Option<(f64, RoundedFrom, RoundedFrom)> {
    let words = words(line);
    let at = |end: usize| {
        words
            .iter()
            .find(|(at, _)| *at == end)
            .map(|(_, word)| *word)
    };
    let timed = line
        .split_once(" timed)")
        .and_then(|(before, _)| before.rsplit_once('('));
    let count = timed.map_or_else(|| at(columns.count), |(_, timed)| Some(timed));
    let count = count?.parse().ok()?;
    Some((
        count,
        duration(at(columns.mean)?)?,
        duration(at(columns.total)?)?,
    ))
}

/// Returns the numbers of a line such as `26.68ms in 68 runs, mean 392.4us, max 2.824ms`.
fn in_words(line: &str) -> Option<(f64, RoundedFrom, RoundedFrom)> {
    let (total, rest) = line.split_once(" in ")?;
    let (count, rest) = rest.split_once(" runs, mean ")?;
    let (mean, _) = rest.split_once(',')?;
    Some((
        count.trim().parse().ok()?,
        duration(mean.trim())?,
        duration(total.trim())?,
    ))
}

/// Returns whether a count times a mean may be a total.
fn agrees((count, mean, total): (f64, RoundedFrom, RoundedFrom)) -> bool {
    // Sums of floating point numbers are exact to far less than a nanosecond.
    count * mean.1 >= total.0 - 1e-3 && count * mean.0 <= total.1 + 1e-3
}

fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => files(&path, all),
            false if path.extension().is_some_and(|end| end == "txt") => all.push(path),
            false => {}
        }
    }
}

#[test]
fn counts_times_means_are_totals() {
    let mut all = Vec::new();
    files(&shipped().join("golden"), &mut all);
    let (mut rows, mut wrong) = (0, Vec::new());
    for file in all {
        let text = fs::read_to_string(&file).expect("text");
        let mut table = None;
        for line in text.lines() {
            if let Some(found) = columns(line) {
                table = Some(found);
                continue;
            }
            if line.trim().is_empty() {
                table = None;
            }
            let numbers = table.and_then(|table| row(line, table));
            if let Some(numbers) = numbers.or_else(|| in_words(line)) {
                rows += 1;
                if !agrees(numbers) {
                    wrong.push(format!("{}: {line}", file.display()));
                }
            }
        }
    }
    assert!(rows > 200, "{rows} rows");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_total_is_noticed() {
    let head = "                         count count%      time      mean";
    let table = columns(head).expect("columns");
    let good = row(
        "  io                         3   10.0   3.000us   1.000us",
        table,
    )
    .expect("a row");
    assert!(agrees(good));
    let bad = row(
        "  io                         3   10.0   3.004us   1.000us",
        table,
    )
    .expect("a row");
    assert!(!agrees(bad));
    let part = row(
        "  io (2 timed)               3   10.0   2.000us   1.000us",
        table,
    )
    .expect("a row");
    assert!(agrees(part));
}
