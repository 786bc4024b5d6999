//! Counts of bcc's `kvmexit` (`tools/kvmexit.py`): exits by reason, of threads, of a VM or of all.

use std::collections::HashMap;

use forms::InputForm;

use crate::lines::CleanLine;
use crate::open::{MAX_ROWS, too_many};
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{CountPrinter, KvmTotal, KvmTotals, PerfTable, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "kvmexit (bcc)",
    recognised_by: "the heading `KVM_EXIT_REASON STAT` or `COUNT`, with the columns of ids before it or without",
    yields: "exits by reason: counts, no times",
    fixtures: &[
        "tests/tables/kvmexit-of-all.txt",
        "tests/tables/kvmexit-of-a-thread.txt",
    ],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: None,
};

fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let first = view.first()?;
    header(&first.text).then(|| (Box::<OpenReasons>::default() as Box<dyn OpenTable>, 1))
}

/// Reads the heading: `TGID     PID      KVM_EXIT_REASON                     STAT`, `KVM_EXIT_REASON   COUNT`.
fn header(text: &str) -> bool {
    let mut words = text.split_whitespace().rev();
    let last = matches!(words.next(), Some("STAT" | "COUNT"));
    last && words.next() == Some("KVM_EXIT_REASON")
        && words.all(|word| matches!(word, "TGID" | "PID" | "TID" | "VCPU" | "VCPU_ID"))
}

/// Reads a row: ids, the reason and how many. Returns the last two.
fn row(text: &str) -> Option<(&str, u64)> {
    let mut words = text.split_whitespace().rev();
    let count = words.next()?.parse().ok()?;
    let reason = words.next()?;
    let is_reason = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let named = reason.len() > 2
        && reason.as_bytes()[0].is_ascii_uppercase()
        && reason.bytes().all(is_reason);
    let ids = words.all(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    let bare = ["EXIT_REASON_", "SVM_EXIT_"]
        .iter()
        .find_map(|start| reason.strip_prefix(start));
    (named && ids).then_some((bare.unwrap_or(reason), count))
}

/// A table under way.
#[derive(Debug, Default)]
struct OpenReasons {
    /// By reason, in their order; threads are added up.
    reasons: Vec<(String, u64)>,
    /// Where each reason is.
    places: HashMap<String, usize>,
    left_out: u64,
}

impl OpenTable for OpenReasons {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        let (reason, count) = row(&view.first()?.text)?;
        if let Some((_, sum)) = self
            .places
            .get(reason)
            .and_then(|at| self.reasons.get_mut(*at))
        {
            *sum = sum.saturating_add(count);
        } else if self.reasons.len() < MAX_ROWS {
            self.places.insert(reason.to_owned(), self.reasons.len());
            self.reasons.push((reason.to_owned(), count));
        } else {
            self.left_out += 1;
        }
        Some(1)
    }

    fn close(self: Box<Self>, place: TablePlace, notes: &mut Vec<TableNote>) -> Option<PerfTable> {
        let line = place.line;
        too_many(line, self.left_out, notes);
        if self.reasons.is_empty() {
            return None;
        }
        let all = self.reasons.iter().map(|(_, count)| *count);
        let all = KvmTotal {
            line,
            event: "kvm_exit".to_owned(),
            total: all.fold(0, u64::saturating_add),
            per_second: None,
        };
        let each = self.reasons.into_iter().map(|(reason, total)| KvmTotal {
            line,
            event: format!("kvm_exit({reason})"),
            total,
            per_second: None,
        });
        Some(PerfTable::KvmTotals(KvmTotals {
            printer: CountPrinter::Kvmexit,
            line,
            label: place.label,
            rows: std::iter::once(all).chain(each).collect(),
        }))
    }
}
