//! Rows of `perf kvm stat` that contradict the others: a count and its share say how many samples the table has, a
//! mean, a count and a share how much time, and each row must say the same. A digit that was changed or broken off
//! shows there; which of the row's numbers is the wrong one does not.

use std::collections::{HashMap, HashSet};

use words::plural;

use crate::kvm::{PrintedKvmRow, Total};
use crate::number::Time;
use crate::types::{KvmRow, TableNote};

/// Half of the last digit of a printed share, and a little for the binary form of decimal fractions.
const SHARE_HALF: f64 = 0.505e-4;
/// Rows that are named; of the others their number is.
const NAMED: usize = 3;

/// What a row says that the whole table has: samples, or nanoseconds.
#[derive(Debug, Clone, Copy)]
struct ImpliedTotal {
    least: f64,
    most: f64,
}

impl ImpliedTotal {
    /// Of an amount between two bounds that is a printed share of the whole. Small shares bound it on one side alone.
    fn of(least: f64, most: f64, share: f64) -> ImpliedTotal {
        let low = share - SHARE_HALF;
        ImpliedTotal {
            least: least / (share + SHARE_HALF),
            most: if low > 0.0 { most / low } else { f64::INFINITY },
        }
    }

    fn of_count(row: &PrintedKvmRow) -> ImpliedTotal {
        ImpliedTotal::of(row.count as f64, row.count as f64, row.count_share)
    }

    fn of_time(row: &PrintedKvmRow) -> Option<ImpliedTotal> {
        // Means that are cut off, not rounded, are off by a whole digit.
        let slack = |time: Time| 2.0 * time.half_ns as f64 + 1.0;
        let count = row.count as f64;
        let (least, most) = match (row.total_ns, row.mean, row.error) {
            (Some(ns), _, _) => (ns as f64, ns as f64),
            (None, Some(mean), Some(_)) => (
                count * (mean.ns as f64 - slack(mean)).max(0.0),
                count * (mean.ns as f64 + slack(mean)),
            ),
            _ => return None,
        };
        Some(ImpliedTotal::of(least, most, row.time_share))
    }

    fn meets(self, other: ImpliedTotal) -> bool {
        self.least <= other.most && other.least <= self.most
    }
}

/// Returns which rows do not agree with the table's last line, or without it with what more than half of the rows say;
/// all that bound the whole if there is no such half.
fn apart(implied: &[Option<ImpliedTotal>], total: Option<ImpliedTotal>) -> Vec<bool> {
    let agreed = total.or_else(|| agreed(implied));
    implied
        .iter()
        .map(|one| match (one, agreed) {
            (Some(one), Some(agreed)) => !one.meets(agreed),
            (Some(one), None) => one.most.is_finite(),
            (None, _) => false,
        })
        .collect()
}

/// Returns the whole that most rows allow, if these are more than half of those that bound it on both sides.
fn agreed(implied: &[Option<ImpliedTotal>]) -> Option<ImpliedTotal> {
    let bounded = || implied.iter().flatten().filter(|one| one.most.is_finite());
    let mut edges: Vec<(f64, bool)> = bounded()
        .flat_map(|one| [(one.least, false), (one.most, true)])
        .collect();
    // Where one ends and another begins, both hold: beginnings come first.
    edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut open, mut best, mut most) = (0usize, None, 0usize);
    for (at, (edge, ends)) in edges.iter().enumerate() {
        if *ends {
            open = open.saturating_sub(1);
            continue;
        }
        open += 1;
        if open > most {
            most = open;
            let end = edges.get(at + 1).map_or(*edge, |next| next.0);
            best = Some(ImpliedTotal {
                least: *edge,
                most: end,
            });
        }
    }
    match bounded().count() {
        // Nothing bounds it, or one row alone, which has nobody to contradict.
        0 | 1 => Some(ImpliedTotal {
            least: 0.0,
            most: f64::INFINITY,
        }),
        all => best.filter(|_| most * 2 > all),
    }
}

/// Returns the rows that contradict the others or themselves, as their places in `rows`.
pub(crate) fn contradicting(rows: &[(u64, PrintedKvmRow)], total: Option<Total>) -> Vec<bool> {
    let whole = |amount: u64, half: u64| ImpliedTotal {
        least: amount.saturating_sub(half) as f64,
        most: amount.saturating_add(half) as f64,
    };
    let counts: Vec<_> = rows
        .iter()
        .map(|(_, row)| Some(ImpliedTotal::of_count(row)))
        .collect();
    let times: Vec<_> = rows
        .iter()
        .map(|(_, row)| ImpliedTotal::of_time(row))
        .collect();
    let of_count = apart(&counts, total.map(|total| whole(total.count, 0)));
    let time = total.filter(|total| total.time.ns > 0);
    let of_time = apart(
        &times,
        time.map(|total| whole(total.time.ns, 2 * total.time.half_ns + 10)),
    );
    let twice = printed_otherwise(rows);
    rows.iter()
        .zip(of_count.iter().zip(&of_time))
        .map(|((_, row), (count, time))| {
            *count || *time || is_disordered(row) || twice.contains(row.key.as_str())
        })
        .collect()
}

/// Returns the keys of which the table has rows with other numbers. Reasons without a name share one key.
fn printed_otherwise(rows: &[(u64, PrintedKvmRow)]) -> HashSet<&str> {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    let named = rows.iter().filter(|(_, row)| row.key != "UNKNOWN");
    named
        .filter(|(_, row)| *counts.entry(&row.key).or_insert(row.count) != row.count)
        .map(|(_, row)| row.key.as_str())
        .collect()
}

/// Whether a row's shortest, mean and longest time are not in this order.
fn is_disordered(row: &PrintedKvmRow) -> bool {
    let above = |low: Option<Time>, high: Option<Time>| match (low, high) {
        (Some(low), Some(high)) => {
            low.ns > high.ns.saturating_add(2 * (low.half_ns + high.half_ns) + 1)
        }
        _ => false,
    };
    above(row.min, row.max) || above(row.min, row.mean) || above(row.mean, row.max)
}

/// Notes the rows that contradict others.
pub(crate) fn note(rows: &[KvmRow], notes: &mut Vec<TableNote>) {
    let of = || rows.iter().filter(|row| row.contradicts);
    let Some(first) = of().next() else {
        return;
    };
    let named: Vec<String> = of()
        .take(NAMED)
        .map(|row| {
            format!(
                "{} in line {} ({} samples, {:.2}%; {:.2}% of the time, {} ns in the mean)",
                row.key,
                row.line,
                row.count,
                row.count_share * 100.0,
                row.time_share * 100.0,
                row.mean_ns
            )
        })
        .collect();
    let all = of().count();
    let more = match all.saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    notes.push(TableNote {
        line: first.line,
        text: format!(
            "The numbers of {} contradict the rest of the table: {}{more}. No share is computed from them.",
            plural(all as u64, "row"),
            named.join(", ")
        ),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kvm::row;

    fn which(texts: &[&str], total: Option<(u64, u64)>) -> Vec<bool> {
        let rows: Vec<_> = (1..)
            .zip(texts.iter().map(|text| row(text, None).unwrap()))
            .collect();
        let total = total.map(|(count, ns)| Total {
            count,
            time: Time { ns, half_ns: 5 },
        });
        contradicting(&rows, total)
    }

    const HLT: &str = "HLT 700 70.00% 90.00% 1.00us 99.00us 12.86us ( +- 1.00% )";
    const IO: &str = "IO_INSTRUCTION 200 20.00% 8.00% 1.00us 9.00us 4.00us ( +- 1.00% )";
    const MSR: &str = "MSR_WRITE 100 10.00% 2.00% 1.00us 9.00us 2.00us ( +- 1.00% )";

    #[test]
    fn rows_of_one_table_agree() {
        assert_eq!(which(&[HLT, IO, MSR], None), [false; 3]);
        assert_eq!(which(&[HLT, IO, MSR], Some((1000, 10_002_000))), [false; 3]);
        // Those that a page cut off do not contradict.
        assert_eq!(which(&[HLT, MSR], None), [false; 2]);
        assert_eq!(which(&[HLT], None), [false]);
    }

    #[test]
    fn a_changed_digit_contradicts() {
        let more = "IO_INSTRUCTION 900 20.00% 8.00% 1.00us 9.00us 4.00us ( +- 1.00% )";
        assert_eq!(which(&[HLT, more, MSR], None), [false, true, false]);
        assert_eq!(
            which(&[HLT, more, MSR], Some((1000, 10_002_000))),
            [false, true, false]
        );
        let longer = "HLT 700 70.00% 90.00% 1.00us 99.00us 42.86us ( +- 1.00% )";
        assert_eq!(which(&[longer, IO, MSR], None), [true, false, false]);
        let shorter = "MSR_WRITE 100 10.00% 2.00% 1.00us 1.50us 2.00us ( +- 1.00% )";
        assert_eq!(which(&[HLT, IO, shorter], None), [false, false, true]);
        assert_eq!(
            which(&[HLT, IO, MSR, more], Some((1000, 10_002_000))),
            [false, true, false, true]
        );
        // Of two nobody knows which.
        assert_eq!(which(&[HLT, more], None), [true, true]);
    }

    #[test]
    fn rounding_is_no_contradiction() {
        let rare = "CPUID 1 0.10% 0.01% 1.00us 1.00us 1.00us ( +- 0.00% )";
        let cut = "HLT 700 70.00% 90.00% 12us ( +- 1.00% )";
        assert_eq!(which(&[cut, IO, MSR, rare], None), [false; 4]);
    }
}
