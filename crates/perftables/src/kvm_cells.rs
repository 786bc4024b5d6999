//! A table of `perf kvm stat` with a cell, or a few, on each line, as texts are that were taken out of slides and PDFs:
//! the cells of a row stand together, in any order, and their columns are known by what they are.

use forms::InputForm;

use crate::kvm::PrintedKvmRow;
use crate::kvm_check;
use crate::lines::CleanLine;
use crate::number::{Time, count, decimal, share, time};
use crate::open::{MAX_ROWS, too_many};
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{KvmStat, KvmStatEvent, KvmStatPrinter, PerfTable, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "perf kvm stat, a cell on each line",
    recognised_by: "lines with titles of its columns alone, and below them lines of one or a few of its cells",
    yields: "exits by reason, as of `perf kvm stat report`; rows whose cells do not fit together are left out",
    fixtures: &[
        "tests/tables/case4-virtio.cells.txt",
        "tests/tables/case4-vhost.cells.txt",
    ],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: None,
};

/// Titles of columns, longer ones before those that they begin with.
const TITLES: [&str; 8] = [
    "VM-EXIT",
    "Samples%",
    "Samples",
    "Time%",
    "Min Time",
    "Max Time",
    "Avg time",
    "Mean Time",
];
/// The end of a longer title alone is none.
const FIRST_LINES: usize = 2;
/// Letters of a reason at most.
const MAX_KEY: usize = 24;
/// A row's share of the samples is that of its count, but for rounding.
const ROUNDED: f64 = 0.001;

/// Whether a line has titles of columns and nothing else.
fn is_titles(text: &str) -> bool {
    let mut rest = text.trim();
    let all = !rest.is_empty();
    while let Some(behind) = TITLES.iter().find_map(|title| rest.strip_prefix(title)) {
        rest = behind.trim_start();
    }
    all && rest.is_empty()
}

fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let titles = view.iter().take(FIRST_LINES);
    // A line with all of them is the heading of a table as perf prints it.
    let whole = view.first()?.text.contains("Samples%") && view.first()?.text.contains("Time%");
    let begins = view.len() >= FIRST_LINES && titles.clone().all(|line| is_titles(&line.text));
    (begins && !whole).then(|| (Box::<OpenCells>::default() as Box<dyn OpenTable>, 1))
}

/// The cells of a row.
#[derive(Debug, Default)]
struct RowCells {
    line: u64,
    key: Option<String>,
    count: Option<u64>,
    shares: Vec<f64>,
    times: Vec<Time>,
    mean: Option<Time>,
    error: Option<f64>,
}

/// A cell.
#[derive(Debug)]
enum RowCell {
    Key(String),
    Count(u64),
    Share(f64),
    /// The shortest or the longest.
    Extreme(Time),
    Mean(Time),
    Error(f64),
}

impl RowCells {
    /// Takes a cell, if there is room for one of its kind; returns it if there is none.
    fn take(&mut self, cell: RowCell) -> Option<RowCell> {
        match cell {
            RowCell::Key(key) if self.key.is_none() => self.key = Some(key),
            RowCell::Count(count) if self.count.is_none() => self.count = Some(count),
            RowCell::Share(share) if self.shares.len() < 2 => self.shares.push(share),
            // An error whose bracket went on another way.
            RowCell::Share(share) if self.mean.is_some() && self.error.is_none() => {
                self.error = Some(share);
            }
            RowCell::Extreme(time) if self.times.len() < 2 => self.times.push(time),
            RowCell::Mean(time) if self.mean.is_none() => self.mean = Some(time),
            RowCell::Error(error) if self.error.is_none() => self.error = Some(error),
            other => return Some(other),
        }
        None
    }

    fn is_empty(&self) -> bool {
        self.key.is_none()
            && self.count.is_none()
            && self.shares.is_empty()
            && self.times.is_empty()
    }
}

/// A table under way.
#[derive(Debug, Default)]
struct OpenCells {
    rows: Vec<RowCells>,
    /// Rows without all their cells.
    torn: u64,
    beyond: u64,
}

impl OpenCells {
    fn push(&mut self, cell: RowCell, line: u64) {
        if self.rows.is_empty() {
            self.rows.push(RowCells::default());
        }
        let Some(row) = self.rows.last_mut() else {
            return;
        };
        if row.is_empty() {
            row.line = line;
        }
        let Some(cell) = row.take(cell) else { return };
        if self.rows.len() >= MAX_ROWS {
            self.beyond += 1;
            return;
        }
        let mut next = RowCells {
            line,
            ..RowCells::default()
        };
        next.take(cell);
        self.rows.push(next);
    }
}

/// Returns the cells of a line; none if there is anything else on it.
fn cells(text: &str) -> Option<Vec<RowCell>> {
    let mut out = Vec::new();
    let text = text
        .replace("( +-", " +- ")
        .replace("(+-", " +- ")
        .replace('\u{b1}', " +- ");
    let mut words = text.split_whitespace().peekable();
    let mut key: Option<String> = None;
    while let Some(word) = words.next() {
        let bare = word.trim_end_matches(')');
        let is_word = bare.bytes().any(|byte| byte.is_ascii_alphabetic())
            && bare
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
            && bare.as_bytes().first().is_some_and(u8::is_ascii_uppercase);
        if word == "+-" {
            // What stands behind it on this line is the error.
            if let Some(error) = words
                .peek()
                .and_then(|next| share(next.trim_end_matches(')')))
            {
                out.push(RowCell::Error(error));
                words.next();
            }
        } else if let Some(value) = share(bare).filter(|_| bare.ends_with('%')) {
            // An error that was broken off its mean has the bracket that ends it.
            let is_error = word.ends_with(')');
            out.push(match is_error {
                true => RowCell::Error(value),
                false => RowCell::Share(value),
            });
        } else if let Some(value) = time(bare).filter(|_| bare.ends_with("us")) {
            out.push(match words.peek() == Some(&"+-") {
                true => RowCell::Mean(value),
                false => RowCell::Extreme(value),
            });
        } else if decimal(bare).is_some()
            && let Some(value) = count(bare)
        {
            out.push(RowCell::Count(value));
        } else if is_word {
            let key = key.get_or_insert_default();
            if !key.is_empty() {
                key.push(' ');
            }
            key.push_str(bare);
        } else if !bare.is_empty() {
            return None;
        }
    }
    if let Some(key) = key {
        if key.len() > MAX_KEY {
            return None;
        }
        out.push(RowCell::Key(key));
    }
    (!out.is_empty()).then_some(out)
}

impl OpenTable for OpenCells {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        let first = view.first()?;
        if is_titles(&first.text) {
            return self.rows.is_empty().then_some(1);
        }
        for cell in cells(&first.text)? {
            self.push(cell, first.number);
        }
        Some(1)
    }

    fn close(
        mut self: Box<Self>,
        place: TablePlace,
        notes: &mut Vec<TableNote>,
    ) -> Option<PerfTable> {
        too_many(place.line, self.beyond, notes);
        let all: u64 = self
            .rows
            .iter()
            .filter_map(|row| row.count)
            .fold(0, u64::saturating_add);
        let mut printed = Vec::new();
        for row in std::mem::take(&mut self.rows) {
            match assembled(&row, all) {
                Some(whole) => printed.push((row.line, whole)),
                None if row.is_empty() => {}
                None => self.torn += 1,
            }
        }
        if printed.is_empty() {
            return None;
        }
        if self.torn > 0 {
            notes.push(TableNote {
                line: place.line,
                text: words::counted(
                    self.torn,
                    "row of a table with a cell on each line does not have all its cells; it is left out.",
                    "rows of a table with a cell on each line do not have all their cells; they are left out.",
                ),
            });
        }
        Some(PerfTable::KvmStat(KvmStat {
            printer: KvmStatPrinter::PerfKvmStat,
            line: place.line,
            label: place.label,
            event: KvmStatEvent::Vmexit,
            pids: None,
            vcpu: None,
            rows: kvm_check::rows(printed, None, notes),
            total_count: None,
            total_ns: None,
            lost_events: None,
            machine: None,
        }))
    }
}

/// Puts the cells of a row together, of a table with so many samples; none if one is missing, or if its count is
/// neither share of them.
fn assembled(row: &RowCells, all: u64) -> Option<PrintedKvmRow> {
    let (&[one, other], count) = (row.shares.as_slice(), row.count?) else {
        return None;
    };
    let of_count = count as f64 / all.max(1) as f64;
    let (count_share, time_share) = match (one - of_count).abs() <= (other - of_count).abs() {
        true => (one, other),
        false => (other, one),
    };
    if (count_share - of_count).abs() > ROUNDED {
        return None;
    }
    let (min, max) = match row.times.as_slice() {
        [one, other] if one.ns <= other.ns => (Some(*one), Some(*other)),
        [one, other] => (Some(*other), Some(*one)),
        _ => (None, None),
    };
    Some(PrintedKvmRow {
        key: row.key.clone()?,
        unknown_code: None,
        count,
        count_share,
        time_share,
        min,
        max,
        mean: Some(row.mean?),
        error: row.error,
        total_ns: None,
    })
}
