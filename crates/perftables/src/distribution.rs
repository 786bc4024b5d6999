//! Distributions of values as bcc's tools print them (`print_log2_hist` and `print_linear_hist` in
//! `src/python/bcc/table.py`: `runqlat`, `funclatency`, `biolatency`) and as `bpftrace` does (`hist`, `lhist`;
//! `src/output.cpp`).

use forms::InputForm;

use crate::lines::{CleanLine, squeezed};
use crate::number::count;
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{DistributionBucket, PerfTable, PrintedDistribution, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "runqlat, funclatency (bcc), bpftrace hist",
    recognised_by: "the heading `usecs : count distribution`; a map's name and rows `[1K, 2K) 123 |@@@ |`",
    yields: "how many values there are, and between which bounds their percentiles lie",
    fixtures: &["tests/tables/runqlat.txt", "tests/tables/bpftrace-hist.txt"],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: None,
};

/// Buckets of one distribution: there are 64 powers of two, and linear ones of bcc have 101.
const MAX_BUCKETS: usize = 4096;
/// Characters of a name.
const MAX_NAME: usize = 120;

fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let first = view.first()?.text.trim();
    let bcc = squeezed(first);
    let name = match bcc.strip_suffix(":countdistribution") {
        Some(unit) if !unit.is_empty() => unit.to_owned(),
        _ => {
            // A map's name stands alone before its rows.
            let map = first.strip_suffix(':').filter(|map| map.starts_with('@'))?;
            bucket(&view.get(1)?.text)?;
            map.to_owned()
        }
    };
    if name.len() > MAX_NAME {
        return None;
    }
    let open = OpenDistribution {
        name,
        buckets: Vec::new(),
    };
    Some((Box::new(open), 1))
}

/// Reads a number of bpftrace with its unit: `2K` is 2048.
fn scaled(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: i64 = digits.parse().ok()?;
    let shift = match text.get(digits.len()..)? {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        "P" => 50,
        "E" => 60,
        _ => return None,
    };
    // Below zero there are no times; what counts is that it is little.
    u64::try_from(number).unwrap_or(0).checked_mul(1 << shift)
}

/// Reads a row of either: `    0 -> 1          : 233      |****   |`, `[1K, 2K)    123 |@@@@  |`.
fn bucket(text: &str) -> Option<DistributionBucket> {
    let text = text.trim();
    let bcc = text.split_once(':');
    if let Some((range, rest)) = bcc.filter(|(range, _)| range.ends_with([' ', '\t'])) {
        let range = range.trim();
        let (from, to) = range.split_once("->").unwrap_or((range, range));
        let (from, to) = (count(from.trim())?, count(to.trim())?);
        let number = count(rest.split_whitespace().next()?)?;
        return rest.contains('|').then_some(DistributionBucket {
            from,
            below: to.checked_add(1),
            count: number,
        });
    }
    let (range, rest) = match text.find([')', ']']) {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?),
        None => return None,
    };
    let range = range.strip_prefix(['[', '('])?;
    let (from, below) = match range.split_once(", ") {
        Some(("...", to)) => (0, Some(scaled(to)?)),
        Some((from, "...")) => (scaled(from)?, None),
        Some((from, to)) => (scaled(from)?, Some(scaled(to)?)),
        None => (scaled(range)?, scaled(range)?.checked_add(1)),
    };
    let number = count(rest.split_whitespace().next()?)?;
    rest.contains('|').then_some(DistributionBucket {
        from,
        below,
        count: number,
    })
}

/// A distribution under way.
#[derive(Debug)]
struct OpenDistribution {
    name: String,
    buckets: Vec<DistributionBucket>,
}

impl OpenTable for OpenDistribution {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        let bucket = bucket(&view.first()?.text)?;
        if self.buckets.len() < MAX_BUCKETS {
            self.buckets.push(bucket);
        }
        Some(1)
    }

    fn close(self: Box<Self>, place: TablePlace, _: &mut Vec<TableNote>) -> Option<PerfTable> {
        (!self.buckets.is_empty()).then_some(PerfTable::Distribution(PrintedDistribution {
            line: place.line,
            label: place.label,
            name: self.name,
            buckets: self.buckets,
        }))
    }
}
