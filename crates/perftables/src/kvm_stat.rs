//! Counts of `kvm_stat`, the kernel's own tool (`tools/kvm/kvm_stat/kvm_stat`; QEMU had it before): its screen, `-1`
//! (`batch`) and `-l` (`log`).

use forms::InputForm;

use crate::lines::CleanLine;
use crate::number::decimal;
use crate::open::{MAX_ROWS, too_many};
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{CountPrinter, KvmTotal, KvmTotals, PerfTable, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "kvm_stat",
    recognised_by: "the screen's heading `Event Total %Total CurAvg/s`; rows of `-1` (a tracepoint of KVM's, a \
                    total and a rate); lines of `-l` below names of tracepoints",
    yields: "counts, and `kvm_stat`'s own rates",
    fixtures: &[
        "tests/tables/kvm_stat-screen.txt",
        "tests/tables/kvm_stat-screen-4.4.txt",
        "tests/tables/kvm_stat-batch.txt",
        "tests/tables/kvm_stat-log.txt",
    ],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: Some(first_row),
};

fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let text = &view.first()?.text;
    let mut open = OpenTotals::default();
    if header(text) {
        open.headed = true;
    } else {
        open.push_names(names(text)?);
    }
    Some((Box::new(open), 1))
}

fn first_row(view: &[CleanLine]) -> Option<TableBeginning> {
    let mut open = OpenTotals::default();
    let used = open.take(view)?;
    Some((Box::new(open), used))
}

/// Names of a line of `-l` at least: fewer may be prose.
const MIN_NAMES: usize = 3;

/// Reads `Event   Total %Total CurAvg/s`, the screen's heading; older ones have `Current` in place of the last.
fn header(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    matches!(
        words[..],
        ["Event", "Total", "%Total", "CurAvg/s"]
            | ["Event", "Total", "Current"]
            | ["Event", "Total", "%Total", "Current"]
    )
}

/// Reads a row of the screen (`kvm_entry 5198993 23.1 277007`, the last column is empty where nothing happened), or one
/// of `-1` (`kvm_entry 5198993 277007`: what happened within a second).
fn row(text: &str, line: u64, headed: bool) -> Option<KvmTotal> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (event, numbers) = words.split_first()?;
    if !is_event(event) || !headed && !event.starts_with("kvm_") {
        return None;
    }
    let number = |word: &str| word.parse::<u64>().ok();
    let is_share = |word: &str| word.contains('.') && decimal(word).is_some();
    let (total, per_second) = match *numbers {
        [total, share, rate] if headed && is_share(share) => (number(total)?, Some(number(rate)?)),
        [total, share] if headed && is_share(share) => (number(total)?, Some(0)),
        [total, rate] => (number(total)?, Some(number(rate)?)),
        // The row of totals has no share; without a rate it is no row.
        _ => return None,
    };
    Some(KvmTotal {
        line,
        event: (*event).to_owned(),
        total,
        per_second,
    })
}

/// Whether a word may be a counter: a tracepoint's name, one of debugfs, or one of either with a reason behind it
/// (`kvm_exit(HLT)`).
fn is_event(word: &str) -> bool {
    let bare = word.split('(').next().unwrap_or_default();
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    bare.len() > 2 && bare.as_bytes()[0].is_ascii_lowercase() && bare.bytes().all(letters)
}

/// The names that begin the lines of `-l`: `kvm_ack_irq kvm_age_page ...`.
fn names(text: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let of_kvm = |word: &&str| word.starts_with("kvm_") && is_event(word);
    let all = words.len() >= MIN_NAMES && words.iter().all(of_kvm);
    all.then(|| words.into_iter().map(str::to_owned).collect())
}

/// A table under way.
#[derive(Debug, Default)]
struct OpenTotals {
    /// Whether its heading was read.
    headed: bool,
    rows: Vec<KvmTotal>,
    /// Of `-l`: the columns, and their sums.
    columns: Vec<(String, u64)>,
    intervals: u64,
    beyond: u64,
    /// Whether its last row was read.
    whole: bool,
}

impl OpenTotals {
    /// Takes the names of columns; those of one log are printed again and again.
    fn push_names(&mut self, names: Vec<String>) {
        let columns = names.into_iter().map(|name| (name, 0));
        let columns: Vec<(String, u64)> = columns.collect();
        let same = self.columns.iter().map(|(name, _)| name);
        if !same.eq(columns.iter().map(|(name, _)| name)) {
            self.columns = columns;
        }
    }

    /// Takes a line of `-l`. Returns whether it is one.
    fn push_interval(&mut self, text: &str) -> bool {
        let numbers: Option<Vec<u64>> = text
            .split_whitespace()
            .map(|word| word.parse().ok())
            .collect();
        let Some(numbers) =
            numbers.filter(|all| all.len() == self.columns.len() && !all.is_empty())
        else {
            return false;
        };
        for ((_, sum), number) in self.columns.iter_mut().zip(numbers) {
            *sum = sum.saturating_add(number);
        }
        self.intervals += 1;
        true
    }

    fn push(&mut self, row: KvmTotal) {
        if self.rows.len() < MAX_ROWS {
            self.rows.push(row);
        } else {
            self.beyond += 1;
        }
    }
}

impl OpenTable for OpenTotals {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        let first = view.first()?;
        let text = &first.text;
        // What follows the last row is another table.
        if self.whole {
            return None;
        }
        if !self.headed
            && let Some(names) = names(text)
        {
            self.push_names(names);
            return Some(1);
        }
        // The row of all: `Total  22521394  1199967`.
        if total(text) && (self.headed || !self.rows.is_empty()) {
            self.whole = true;
            return Some(1);
        }
        if self.push_interval(text) {
            return Some(1);
        }
        self.push(row(text, first.number, self.headed)?);
        Some(1)
    }

    fn close(
        mut self: Box<Self>,
        place: TablePlace,
        notes: &mut Vec<TableNote>,
    ) -> Option<PerfTable> {
        let line = place.line;
        too_many(line, self.beyond, notes);
        if self.intervals > 0 {
            let columns = self.columns.into_iter();
            self.rows.extend(columns.map(|(event, total)| KvmTotal {
                line,
                event,
                total,
                per_second: None,
            }));
        }
        // One row of two numbers behind a name may be anything.
        let known = self.headed || self.intervals > 0 || self.rows.len() >= MIN_NAMES;
        (known && !self.rows.is_empty()).then_some(PerfTable::KvmTotals(KvmTotals {
            printer: CountPrinter::KvmStat,
            line,
            label: place.label,
            rows: self.rows,
        }))
    }
}

/// Reads the row of all.
fn total(text: &str) -> bool {
    let mut words = text.split_whitespace();
    words.next() == Some("Total") && words.next().is_some_and(|word| word.parse::<u64>().is_ok())
}
