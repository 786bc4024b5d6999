//! `mpstat` of sysstat (`mpstat.c`, 9.0 to 12.7): what CPUs did, and their interrupts. Titles are not translated; the
//! word for the average is, and decimal signs may be commas.

use std::collections::BTreeMap;

use forms::InputForm;

use crate::lines::CleanLine;
use crate::number::decimal;
use crate::open::{MAX_ROWS, too_many};
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{CpuUsage, CpuUsageRow, PerfTable, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "mpstat",
    recognised_by: "a heading of a time, `CPU`, and titles such as `%usr %sys %soft %steal %guest %idle`, `intr/s`, \
                    `LOC/s`, `NET_RX/s`",
    yields: "what each CPU did: shares of time, interrupts by second; averages, else the mean of the intervals",
    fixtures: &[
        "tests/tables/mpstat-12.6.txt",
        "tests/tables/mpstat-12.6-interrupts.txt",
        "tests/tables/mpstat-11.4-french.txt",
        "tests/tables/mpstat-9.0.txt",
    ],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: None,
};

/// Titles of shares of time, each with its name.
const SHARES: [(&str, &str); 12] = [
    ("%usr", "usr"),
    ("%user", "usr"),
    ("%nice", "nice"),
    ("%sys", "sys"),
    ("%system", "sys"),
    ("%iowait", "iowait"),
    ("%irq", "irq"),
    ("%soft", "soft"),
    ("%steal", "steal"),
    ("%guest", "guest"),
    ("%gnice", "gnice"),
    ("%idle", "idle"),
];
/// Titles of where a CPU is, of which nothing is kept.
const PLACES: [&str; 4] = ["CORE", "SOCK", "NODE", "L2CL"];
/// Columns of a line at most: an interrupt each.
const MAX_COLUMNS: usize = 4096;
/// Shares without which a heading may be another tool's.
const MIN_SHARES: usize = 4;

/// A column behind the CPU's.
#[derive(Debug, Clone, PartialEq)]
enum CpuColumn {
    Place,
    Share(&'static str),
    /// All interrupts by second.
    All,
    /// Those of one kind by second.
    Rate(String),
}

fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let columns = columns(&view.first()?.text)?;
    let open = OpenUsage {
        columns,
        ..OpenUsage::default()
    };
    Some((Box::new(open), 1))
}

/// Reads `01:15:49 AM  CPU    %usr   %nice`.
fn columns(text: &str) -> Option<Vec<CpuColumn>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let cpu = words.iter().take(4).position(|word| *word == "CPU")?;
    let timed = cpu > 0 && words[..cpu].iter().any(|word| word.contains(':'));
    let behind = words
        .get(cpu + 1..)
        .filter(|words| words.len() <= MAX_COLUMNS)?;
    let column = |word: &&str| {
        if PLACES.contains(word) {
            return Some(CpuColumn::Place);
        }
        if *word == "intr/s" {
            return Some(CpuColumn::All);
        }
        let share = SHARES.iter().find(|(title, _)| title == word);
        let rate = || {
            let name = word.strip_suffix("/s")?;
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            (!name.is_empty() && name.bytes().all(plain)).then(|| name.to_owned())
        };
        match share {
            Some((_, name)) => Some(CpuColumn::Share(name)),
            None => rate().map(CpuColumn::Rate),
        }
    };
    let columns: Vec<CpuColumn> = behind.iter().map(column).collect::<Option<_>>()?;
    let shares = columns
        .iter()
        .filter(|column| matches!(column, CpuColumn::Share(_)));
    let rates = columns
        .iter()
        .any(|column| matches!(column, CpuColumn::All | CpuColumn::Rate(_)));
    (shares.count() >= MIN_SHARES || rates && timed).then_some(columns)
}

/// The values of a CPU, added up.
#[derive(Debug, Default)]
struct CpuSums {
    line: u64,
    /// By column's name: the sum of the intervals, how many, and the average that is printed.
    values: BTreeMap<String, (f64, u32, Option<f64>)>,
}

/// A table under way.
#[derive(Debug, Default)]
struct OpenUsage {
    columns: Vec<CpuColumn>,
    cpus: BTreeMap<Option<u32>, CpuSums>,
    kept: usize,
    beyond: u64,
}

/// Names under which a column is kept; shares have their title's mark, so that no interrupt has the same.
fn name(column: &CpuColumn) -> Option<String> {
    match column {
        CpuColumn::Place => None,
        CpuColumn::Share(name) => Some(format!("%{name}")),
        CpuColumn::All => Some("intr/s".to_owned()),
        CpuColumn::Rate(name) => Some(name.clone()),
    }
}

impl OpenUsage {
    /// Takes a row: `Average:     all   97.27    0.00`.
    fn row(&mut self, text: &str, line: u64) -> Option<()> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words.len().checked_sub(self.columns.len() + 1)?;
        let (before, rest) = words
            .split_at_checked(at)
            .filter(|(before, _)| before.len() <= 3)?;
        let (cpu, values) = rest.split_first()?;
        let cpu = match *cpu {
            "all" => None,
            number if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(number.parse().ok()?)
            }
            _ => return None,
        };
        let values: Vec<f64> = values
            .iter()
            .map(|word| decimal(word))
            .collect::<Option<_>>()?;
        // The word for the average has no digits, and times have.
        let head = before.concat();
        let average = head.ends_with(':') && !head.contains(|c: char| c.is_ascii_digit());
        let sums = self.cpus.entry(cpu).or_insert_with(|| CpuSums {
            line,
            ..CpuSums::default()
        });
        for (column, value) in self.columns.iter().zip(values) {
            let Some(name) = name(column) else {
                continue;
            };
            let room = self.kept < MAX_ROWS;
            if !room && !sums.values.contains_key(&name) {
                self.beyond += 1;
                continue;
            }
            let (sum, count, printed) = sums.values.entry(name).or_insert_with(|| {
                self.kept += 1;
                (0.0, 0, None)
            });
            match average {
                true => *printed = Some(value),
                false => {
                    *sum += value;
                    *count += 1;
                }
            }
        }
        Some(())
    }
}

impl OpenTable for OpenUsage {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        let first = view.first()?;
        if let Some(columns) = columns(&first.text) {
            self.columns = columns;
            return Some(1);
        }
        self.row(&first.text, first.number).map(|()| 1)
    }

    fn close(self: Box<Self>, place: TablePlace, notes: &mut Vec<TableNote>) -> Option<PerfTable> {
        too_many(place.line, self.beyond, notes);
        let rows = self.cpus.into_iter().map(|(cpu, sums)| {
            let mut row = CpuUsageRow {
                line: sums.line,
                cpu,
                shares: BTreeMap::new(),
                interrupts_per_s: None,
                rates_per_s: BTreeMap::new(),
            };
            for (name, (sum, count, printed)) in sums.values {
                let value = printed.unwrap_or(sum / f64::from(count.max(1)));
                let share = SHARES
                    .iter()
                    .find(|(_, share)| name.strip_prefix('%') == Some(share));
                match (share, name.as_str()) {
                    // As near to what is printed as a number can be.
                    (Some((_, share)), _) => {
                        row.shares.insert(share, (value * 100.0).round() / 10_000.0);
                    }
                    (None, "intr/s") => row.interrupts_per_s = Some(value),
                    (None, _) if value > 0.0 => {
                        row.rates_per_s.insert(name, value);
                    }
                    (None, _) => {}
                }
            }
            row
        });
        let rows: Vec<CpuUsageRow> = rows.collect();
        (!rows.is_empty()).then_some(PerfTable::CpuUsage(CpuUsage {
            line: place.line,
            label: place.label,
            rows,
        }))
    }
}
