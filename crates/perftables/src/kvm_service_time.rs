//! SystemTap's example `kvm_service_time.stp` (`testsuite/systemtap.examples/virtualization`, SystemTap 1.6 to 5.x):
//! the times of exits by their reason's number.

use forms::InputForm;

use crate::lines::{CleanLine, squeezed};
use crate::number::count;
use crate::open::{MAX_ROWS, too_many};
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{KvmRow, KvmStat, KvmStatEvent, KvmStatPrinter, PerfTable, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "kvm_service_time.stp",
    recognised_by: "the heading `# reason: count sum(us) min(us) avg(us) max(us)`, of AMD `reason(hex)`",
    yields: "exits by reason with their times, as `perf kvm stat` has them",
    fixtures: &[
        "tests/tables/kvm_service_time-intel.txt",
        "tests/tables/kvm_service_time-amd.txt",
    ],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: None,
};

/// Whose reasons its numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReasonNumbers {
    Intel,
    Amd,
    /// The kernel did not say: both numbers are printed.
    Either,
}

fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let squeezed = squeezed(&view.first()?.text);
    let columns = squeezed.strip_suffix(":countsum(us)min(us)avg(us)max(us)")?;
    let numbers = match columns.trim_start_matches('#') {
        "reason" => ReasonNumbers::Intel,
        "reason(hex)" => ReasonNumbers::Amd,
        "reasonreason(hex)" => ReasonNumbers::Either,
        _ => return None,
    };
    let open = OpenTimes {
        numbers,
        rows: Vec::new(),
        left_out: 0,
    };
    Some((Box::new(open), 1))
}

/// A table under way.
#[derive(Debug)]
struct OpenTimes {
    numbers: ReasonNumbers,
    rows: Vec<KvmRow>,
    left_out: u64,
}

/// Reads `30: 19642 58926 1 3 120`, of AMD `0x07b: ...`, of either `30 0x01e: ...`.
fn row(text: &str, line: u64, numbers: ReasonNumbers) -> Option<KvmRow> {
    let (reason, times) = text.split_once(':')?;
    let words: Vec<&str> = reason.split_whitespace().collect();
    let code = match (numbers, words.as_slice()) {
        (ReasonNumbers::Intel, [code]) => count(code)?,
        (ReasonNumbers::Amd, [code]) => u64::from_str_radix(code.strip_prefix("0x")?, 16).ok()?,
        (ReasonNumbers::Either, [code, hex]) if hex.starts_with("0x") => count(code)?,
        _ => return None,
    };
    let times: Option<Vec<u64>> = times.split_whitespace().map(count).collect();
    let [count, sum, min, avg, max] = times?[..] else {
        return None;
    };
    let ns = |us: u64| us.saturating_mul(1000);
    Some(KvmRow {
        line,
        key: "UNKNOWN".to_owned(),
        unknown_code: Some(code),
        count,
        count_share: 0.0,
        time_share: 0.0,
        min_ns: Some(ns(min)),
        max_ns: Some(ns(max)),
        mean_ns: match count {
            0 => ns(avg),
            count => ns(sum) / count,
        },
        error: None,
        total_ns: ns(sum),
        // Each was measured in whole microseconds.
        total_error_ns: ns(count),
        contradicts: false,
    })
}

impl OpenTable for OpenTimes {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        let first = view.first()?;
        let row = row(&first.text, first.number, self.numbers)?;
        match self.rows.len() < MAX_ROWS {
            true => self.rows.push(row),
            false => self.left_out += 1,
        }
        Some(1)
    }

    fn close(
        mut self: Box<Self>,
        place: TablePlace,
        notes: &mut Vec<TableNote>,
    ) -> Option<PerfTable> {
        too_many(place.line, self.left_out, notes);
        let sum = |of: fn(&KvmRow) -> u64| {
            let each = self.rows.iter().map(of);
            each.fold(0u64, u64::saturating_add)
        };
        let (all, all_ns) = (sum(|row| row.count), sum(|row| row.total_ns));
        for row in &mut self.rows {
            row.count_share = row.count as f64 / all.max(1) as f64;
            row.time_share = row.total_ns as f64 / all_ns.max(1) as f64;
        }
        let machine = match self.numbers {
            ReasonNumbers::Intel => Some("VMX"),
            ReasonNumbers::Amd => Some("SVM"),
            ReasonNumbers::Either => None,
        };
        (!self.rows.is_empty()).then_some(PerfTable::KvmStat(KvmStat {
            printer: KvmStatPrinter::ServiceTime,
            line: place.line,
            label: place.label,
            event: KvmStatEvent::Vmexit,
            pids: None,
            vcpu: None,
            rows: self.rows,
            total_count: None,
            total_ns: None,
            lost_events: None,
            machine: machine.map(str::to_owned),
        }))
    }
}
