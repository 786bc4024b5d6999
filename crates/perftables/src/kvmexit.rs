//! Counts of bcc's `kvmexit` (`tools/kvmexit.py`): exits by reason, of threads, of a VM or of all.

use std::collections::HashMap;

use crate::open::{MAX_ROWS, too_many};
use crate::types::{CountPrinter, KvmTotal, KvmTotals, TableNote};

/// Reads the heading: `TGID     PID      KVM_EXIT_REASON                     STAT`, `KVM_EXIT_REASON   COUNT`.
pub(crate) fn header(text: &str) -> bool {
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
pub(crate) struct OpenReasons {
    line: u64,
    label: Option<String>,
    /// By reason, in their order; threads are added up.
    reasons: Vec<(String, u64)>,
    /// Where each reason is.
    places: HashMap<String, usize>,
    left_out: u64,
}

impl OpenReasons {
    pub(crate) fn new(line: u64, label: Option<String>) -> OpenReasons {
        OpenReasons {
            line,
            label,
            ..OpenReasons::default()
        }
    }

    /// Takes a row. Returns whether the line is one.
    pub(crate) fn push(&mut self, text: &str) -> bool {
        let Some((reason, count)) = row(text) else {
            return false;
        };
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
        true
    }

    pub(crate) fn close(self, notes: &mut Vec<TableNote>) -> Option<KvmTotals> {
        too_many(self.line, self.left_out, notes);
        if self.reasons.is_empty() {
            return None;
        }
        let line = self.line;
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
        Some(KvmTotals {
            printer: CountPrinter::Kvmexit,
            line,
            label: self.label,
            rows: std::iter::once(all).chain(each).collect(),
        })
    }
}
