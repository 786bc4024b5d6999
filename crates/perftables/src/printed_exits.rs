//! Lines that people let `bpftrace` print (`printf`) for each exit. They have no fixed format: what is read are lines
//! of one shape in which the reason has its name (`exit_reason`, `reason`: the fields of KVM's tracepoints,
//! `arch/x86/kvm/trace.h`), or in which a vCPU's thread stands beside a reason that has a name.

use std::collections::HashMap;

use forms::InputForm;

use crate::lines::CleanLine;
use crate::open::{MAX_ROWS, too_many};
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{CountPrinter, KvmTotal, KvmTotals, PerfTable, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "bpftrace (printf)",
    recognised_by: "lines of one shape with `exit_reason=` or `reason=` (or a colon) beside `vcpu`, `rip` or `kvm`, \
                    or with `CPU 0/KVM` and the name of a reason",
    yields: "exits by reason: counts; numbers that have no name beside them are left out: print a map instead",
    fixtures: &[
        "tests/tables/bpftrace-printf-fields.txt",
        "tests/tables/bpftrace-printf-threads.txt",
    ],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: Some(first_row),
};

/// Fewer lines may be anything.
const MIN_LINES: u64 = 3;
/// Words of a line that are looked at.
const MAX_WORDS: usize = 64;
/// Bytes of a reason at most.
const MAX_REASON: usize = 40;
/// Names of the field that has the reason.
const REASON: [&str; 3] = ["exit_reason", "exitreason", "reason"];
/// Names of other fields of KVM's tracepoints: `reason` alone is in other programs' lines too.
const OTHERS: [&str; 6] = ["vcpu", "vcpu_id", "guest_rip", "rip", "guest_pc", "vcpu_pc"];
/// The reasons that guests have most exits for, by which a line without names of fields is known (`asm/vmx.h`,
/// `asm/svm.h`).
const NAMES: [&str; 16] = [
    "HLT",
    "EPT_VIOLATION",
    "EPT_MISCONFIG",
    "IO_INSTRUCTION",
    "EXTERNAL_INTERRUPT",
    "PREEMPTION_TIMER",
    "MSR_WRITE",
    "MSR_READ",
    "CPUID",
    "PAUSE_INSTRUCTION",
    "PENDING_INTERRUPT",
    "EOI_INDUCED",
    "APIC_WRITE",
    "NPF",
    "IOIO",
    "MSR",
];

/// The command, where it prints lines and no map.
fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let text = &view.first()?.text;
    let prints = text.contains("bpftrace") && text.contains("printf") && text.contains("kvm_exit");
    (prints && !text.contains('@')).then(|| {
        let open = OpenExits {
            known: true,
            ..OpenExits::default()
        };
        (Box::new(open) as Box<dyn OpenTable>, 1)
    })
}

/// A line is one of several: the next has the same shape.
fn first_row(view: &[CleanLine]) -> Option<TableBeginning> {
    let (first, later) = view.split_first()?;
    let (shape, _) = exit(&first.text)?;
    let next = later.iter().find(|line| !line.text.trim().is_empty())?;
    let (same, _) = exit(&next.text)?;
    let mut open = OpenExits::default();
    (shape == same).then(|| open.take(view)).flatten()?;
    Some((Box::new(open), 1))
}

/// Reads a line: its shape, which are the names in it, and the exit's reason.
fn exit(text: &str) -> Option<(String, String)> {
    if is_event_line(text) {
        return None;
    }
    let separates = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '|' | '(' | ')');
    let mut words = text.split(separates).filter(|word| !word.is_empty());
    let mut shape = String::new();
    let mut reason = None;
    let mut of_kvm = text.contains("kvm") || text.contains("/KVM");
    let mut last = "";
    for word in words.by_ref().take(MAX_WORDS) {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key, value),
            // `reason: 48`, and `vcpu 0 reason 48`.
            None => (last, word),
        };
        let name = key.trim_end_matches(':').to_ascii_lowercase();
        last = word;
        let is_reason = REASON.contains(&name.as_str());
        of_kvm |= name == "exit_reason" || OTHERS.contains(&name.as_str());
        if is_reason || OTHERS.contains(&name.as_str()) {
            shape.push_str(&name);
            shape.push(' ');
        }
        if is_reason && reason.is_none() && !value.is_empty() {
            reason = Some(value);
        }
    }
    let reason = match reason {
        Some(reason) => Some(reason).filter(|_| of_kvm),
        None => beside_thread(text).inspect(|_| shape.push_str("CPU/KVM")),
    }?;
    is_reason(reason).then(|| (shape, reason.to_owned()))
}

/// Whether a line is one of a trace: a time or a CPU in brackets before the name of an event, which has a colon. What
/// traces have is read as events.
fn is_event_line(text: &str) -> bool {
    let mut dated = false;
    for word in text.split_whitespace().take(MAX_WORDS) {
        let cpu = word
            .strip_prefix('[')
            .and_then(|word| word.strip_suffix(']'));
        let digits =
            |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        match word.strip_suffix(':') {
            Some(name) if dated && name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                return true;
            }
            Some(time) => dated |= time.starts_with(|c: char| c.is_ascii_digit()),
            None => dated |= cpu.is_some_and(digits),
        }
    }
    false
}

/// Returns the only name of a reason in a line that has a vCPU's thread: `CPU 0/KVM 12 HLT 34567`.
fn beside_thread(text: &str) -> Option<&str> {
    let (before, behind) = text.split_once("/KVM")?;
    let (_, number) = before.rsplit_once("CPU ")?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let words = behind.split_whitespace().take(MAX_WORDS);
    let mut names = words.filter(|word| NAMES.contains(word));
    let name = names.next().filter(|_| digits)?;
    names.next().is_none().then_some(name)
}

/// Whether a word may be a reason: a name, or a number.
fn is_reason(word: &str) -> bool {
    let number = word.strip_prefix("0x").unwrap_or(word);
    let is_number = match number.len() == word.len() {
        true => number.bytes().all(|byte| byte.is_ascii_digit()),
        false => number.bytes().all(|byte| byte.is_ascii_hexdigit()),
    };
    let named = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let is_name = word.starts_with(|c: char| c.is_ascii_uppercase()) && word.bytes().all(named);
    (2..=MAX_REASON).contains(&word.len()) && is_name
        || !number.is_empty() && is_number && word.len() < 12
}

/// Lines under way.
#[derive(Debug, Default)]
struct OpenExits {
    /// Whether the command was read.
    known: bool,
    shape: Option<String>,
    lines: u64,
    rows: Vec<KvmTotal>,
    /// Where each reason's row is.
    at: HashMap<String, usize>,
    beyond: u64,
}

impl OpenTable for OpenExits {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        let first = view.first()?;
        let text = first.text.trim();
        if self.known && self.lines == 0 && text.starts_with("Attach") {
            return Some(1);
        }
        let (shape, reason) = exit(text)?;
        if *self.shape.get_or_insert_with(|| shape.clone()) != shape {
            return None;
        }
        self.lines += 1;
        let known = self.at.get(&reason).copied();
        match known.and_then(|at| self.rows.get_mut(at)) {
            Some(row) => row.total = row.total.saturating_add(1),
            None if self.at.len() < MAX_ROWS => {
                self.at.insert(reason.clone(), self.rows.len());
                self.rows.push(KvmTotal {
                    line: first.number,
                    event: format!("@exit_reason[{reason}]"),
                    total: 1,
                    per_second: None,
                });
            }
            None => self.beyond += 1,
        }
        Some(1)
    }

    fn close(self: Box<Self>, place: TablePlace, notes: &mut Vec<TableNote>) -> Option<PerfTable> {
        too_many(place.line, self.beyond, notes);
        if self.lines < MIN_LINES {
            if self.known {
                notes.push(TableNote {
                    line: place.line,
                    text: "Which of the printed numbers is the exit's reason is not known: print a map instead, \
                           bpftrace -e 'tracepoint:kvm:kvm_exit { @[args->exit_reason] = count(); }'."
                        .to_owned(),
                });
            }
            return None;
        }
        Some(PerfTable::KvmTotals(KvmTotals {
            printer: CountPrinter::Bpftrace,
            line: place.line,
            label: place.label,
            rows: self.rows,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_trace_are_no_printed_exits() {
        for line in [
            "CPU 0/KVM-6912 [003] 12.345678: kvm_exit: reason CPUID rip 0xffffffff81000000 info 0 0",
            "qemu-system-x86 6912 [003] 12.345678: kvm:kvm_exit: vcpu 0 reason HLT rip 0xffff info1 0x0",
            "qemu-system-x86-6912 12.345678: kvm_exit: vcpu 0 reason HLT rip 0xffff",
            "CPU 0/KVM-6912 3d..1 123us+: kvm_exit: reason HLT rip 0xffff",
        ] {
            assert_eq!(exit(line), None, "{line}");
        }
        for line in [
            "kvm_exit: vcpu 0 reason 12",
            "CPU 0/KVM 12 HLT 34567",
            "exit_reason=48 rip=0x10",
        ] {
            assert!(exit(line).is_some(), "{line}");
        }
    }
}
