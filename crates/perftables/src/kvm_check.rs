//! Makes a table of `perf kvm stat` of what was printed, and says what does not fit together.

use forms::InputForm;

use crate::kvm::{PrintedKvmRow, Total};
use crate::kvm_agreement;
use crate::types::{KvmRow, KvmStat, KvmStatEvent, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "perf kvm stat report, perf kvm stat live",
    recognised_by: "the heading `VM-EXIT Samples Samples%`, that of the full-screen view, or rows of a key, a count \
                    and two shares",
    yields: "exits by reason, port, address or MSR: counts, times, extremes",
    fixtures: &[
        "tests/tables/case2-hpet.perf-kvm-stat-vmexit.txt",
        "tests/tables/case4-vhost.perf-kvm-stat-vmexit.txt",
    ],
};

/// Half of the last digit of a printed share.
const SHARE_HALF: f64 = 0.5e-4;

/// Returns the rows. Rows without a mean need the table's time; those that cannot have one are left out and noted.
pub(crate) fn rows(
    printed: Vec<(u64, PrintedKvmRow)>,
    total: Option<Total>,
    notes: &mut Vec<TableNote>,
) -> Vec<KvmRow> {
    let only = printed.len() == 1;
    let contradicting = kvm_agreement::contradicting(&printed, total);
    let all = (printed.into_iter().zip(contradicting)).filter_map(|((line, p), contradicts)| {
        // One that contradicts the rest says what its own count and mean say, if it has both.
        let of_table = total.filter(|_| !contradicts || p.mean.is_none());
        let (total_ns, total_error_ns) = total_of(&p, of_table, only).or_else(|| {
            notes.push(TableNote {
                line,
                text: format!(
                    "The row {} ({} samples) ends before its mean, and without the table's last line its time is \
                     not known; it is left out.",
                    p.key, p.count
                ),
            });
            None
        })?;
        let mean_ns = match p.mean {
            Some(mean) => mean.ns,
            None => total_ns.checked_div(p.count).unwrap_or(0),
        };
        Some(KvmRow {
            line,
            key: p.key,
            unknown_code: p.unknown_code,
            count: p.count,
            count_share: p.count_share,
            time_share: p.time_share,
            min_ns: p.min.map(|t| t.ns),
            max_ns: p.max.map(|t| t.ns),
            mean_ns,
            error: p.error,
            total_ns,
            total_error_ns,
            contradicts,
        })
    });
    let rows: Vec<KvmRow> = all.collect();
    kvm_agreement::note(&rows, notes);
    rows
}

/// Returns the time of all samples of a row and the bound of its error.
fn total_of(p: &PrintedKvmRow, total: Option<Total>, only: bool) -> Option<(u64, u64)> {
    if let Some(exact) = p.total_ns {
        return Some((exact, 0));
    }
    let by_mean = p.mean.and_then(|mean| {
        let total = p.count.checked_mul(mean.ns)?;
        Some((total, p.count.saturating_mul(mean.half_ns)))
    });
    let by_share = total.map(|total| {
        let bound = total.time.half_ns;
        if only && total.count == p.count {
            return (total.time.ns, bound);
        }
        let all = total.time.ns as f64;
        let rounding = whole_ns((all * SHARE_HALF).ceil());
        (
            whole_ns((all * p.time_share).round()),
            bound.saturating_add(rounding),
        )
    });
    match (by_mean, by_share) {
        (Some(a), Some(b)) => Some(if b.1 < a.1 { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// Returns a rounded time as a number of nanoseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a time is not below 0, and a cast stops at the largest number"
)]
fn whole_ns(rounded: f64) -> u64 {
    rounded as u64
}

/// Says what the rows are from their keys, where the text does not say.
pub(crate) fn event_of(rows: &[KvmRow]) -> KvmStatEvent {
    let is_access = |key: &str, kinds: [&str; 2]| {
        let address = kinds.iter().find_map(|kind| key.strip_suffix(kind));
        address.is_some_and(|address| address.starts_with("0x"))
    };
    let all =
        |test: &dyn Fn(&str) -> bool| !rows.is_empty() && rows.iter().all(|row| test(&row.key));
    if all(&|key| is_access(key, [":PIN", ":POUT"])) {
        KvmStatEvent::Ioport
    } else if all(&|key| key.starts_with("H_")) {
        KvmStatEvent::Hcall
    } else if all(&|key| is_access(key, [":R", ":W"])) || rows.is_empty() {
        // Addresses of MMIO and numbers of MSRs look alike.
        KvmStatEvent::Unrecognized
    } else {
        KvmStatEvent::Vmexit
    }
}

/// Notes what does not fit together in a table.
pub(crate) fn check(table: &KvmStat, notes: &mut Vec<TableNote>) {
    let mut note = |line: u64, text: String| notes.push(TableNote { line, text });
    let sum = table
        .rows
        .iter()
        .fold(0u64, |sum, row| sum.saturating_add(row.count));
    if let Some(total) = table.total_count
        && sum != total
    {
        let which = if sum < total {
            "rows are missing"
        } else {
            "rows are there twice or changed"
        };
        note(
            table.line,
            format!(
                "The rows have {sum} samples together, the table's last line says {total}: {which}."
            ),
        );
    }
    let shares: f64 = table.rows.iter().map(|row| row.count_share).sum();
    let slack = SHARE_HALF * (table.rows.len() + 1) as f64;
    if table.total_count.is_none()
        && !table.rows.is_empty()
        && (shares - 1.0).abs() > slack
        && sum > 0
    {
        note(
            table.line,
            format!(
                "The rows' shares of samples add up to {:.2}%: rows are missing or changed.",
                shares * 100.0
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kvm::row;
    use crate::number::Time;

    fn printed(text: &str) -> PrintedKvmRow {
        row(text, None).unwrap()
    }

    fn total(count: u64, ns: u64) -> Option<Total> {
        Some(Total {
            count,
            time: Time { ns, half_ns: 5 },
        })
    }

    #[test]
    fn the_more_exact_product_is_taken() {
        let few = printed("HLT 2 1.00% 50.00% 1.00us 9.00us 5.00us ( +- 1.00% )");
        // Two samples: off by 10 ns. The share: by 0.005% of a second.
        assert_eq!(
            total_of(&few, total(200, 1_000_000_000), false),
            Some((10_000, 10))
        );
        let many = printed("HLT 9000000 1.00% 50.00% 1.00us 9.00us 5.00us ( +- 1.00% )");
        let got = total_of(&many, total(900_000_000, 90_000_000_000), false);
        assert_eq!(got, Some((45_000_000_000, 4_500_005)));
        assert_eq!(
            total_of(&many, None, false),
            Some((45_000_000_000, 45_000_000))
        );
        assert_eq!(total_of(&few, total(2, 10_004), true), Some((10_004, 5)));
    }

    #[test]
    fn keys_tell_the_event_where_they_can() {
        let of = |keys: &[&str]| {
            let text = |key: &&str| {
                (
                    1,
                    printed(&format!("{key} 2 1.00% 5.00% 1.00us ( +- 1.00% )")),
                )
            };
            event_of(&rows(
                keys.iter().map(text).collect(),
                None,
                &mut Vec::new(),
            ))
        };
        assert_eq!(of(&["0x608:PIN", "0x70:POUT"]), KvmStatEvent::Ioport);
        assert_eq!(of(&["0xfee00300:W", "0x1b:R"]), KvmStatEvent::Unrecognized);
        assert_eq!(of(&["HLT", "MSR_WRITE"]), KvmStatEvent::Vmexit);
        assert_eq!(of(&["H_CEDE"]), KvmStatEvent::Hcall);
        assert_eq!(of(&[]), KvmStatEvent::Unrecognized);
    }
}
