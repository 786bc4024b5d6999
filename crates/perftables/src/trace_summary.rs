//! The summary of `perf trace -s` and `-S` (`trace__fprintf_summary` of `tools/perf/builtin-trace.c`, Linux 3.13 to
//! 6.17): each thread's system calls. Before 5.9 there is no column of errors.

use forms::InputForm;

use crate::lines::{CleanLine, squeezed};
use crate::number::{count, decimal};
use crate::open::{MAX_ROWS, too_many};
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{CountPrinter, PerfTable, SyscallRow, SyscallThread, SyscallTotals, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "perf trace -s",
    recognised_by: "`Summary of events:`, or the heading `syscall calls errors total min avg max stddev`",
    yields: "how often each thread made each system call, and failed",
    fixtures: &[
        "tests/tables/perf-trace-summary-6.1.txt",
        "tests/tables/perf-trace-summary-4.9.txt",
    ],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: None,
};

fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let text = view.first()?.text.trim();
    let begins = text == "Summary of events:" || is_titles(text);
    begins.then(|| (Box::<OpenSummary>::default() as Box<dyn OpenTable>, 1))
}

fn is_titles(text: &str) -> bool {
    let titles = squeezed(text);
    matches!(
        titles.as_str(),
        "syscallcallstotalminavgmaxstddev" | "syscallcallserrorstotalminavgmaxstddev"
    )
}

/// Whether a line has the units below the titles, or divides them from the rows.
fn is_units(text: &str) -> bool {
    let ruler = |word: &str| word.bytes().all(|byte| byte == b'-');
    text.split_whitespace()
        .all(|word| ruler(word) || matches!(word, "(msec)" | "(%)"))
}

/// Reads ` CPU 0/KVM (2989), 1290 events, 23.4%`, or `total, 2824 events` of all threads together.
fn thread(text: &str) -> Option<SyscallThread> {
    if let Some(rest) = text.strip_prefix("total, ") {
        count(rest.strip_suffix(" events")?)?;
        return Some(SyscallThread::default());
    }
    let (before, events) = text.split_once("), ")?;
    let (comm, tid) = before.rsplit_once(" (")?;
    let (events, _) = events.split_once(" events, ")?;
    count(events)?;
    Some(SyscallThread {
        tid: Some(tid.parse().ok().filter(|tid| *tid >= 0)?),
        comm: Some(comm.to_owned()),
    })
}

/// Reads `   mmap     30      0     0.495     0.014     0.016     0.024      2.82%`: the call, how often, errors.
fn row(text: &str) -> Option<(&str, u64, u64)> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    decimal(words.pop()?.strip_suffix('%')?)?;
    for _ in 0..4 {
        let time = words.pop()?;
        decimal(time).filter(|_| time.contains(['.', ',']))?;
    }
    match words[..] {
        [call, calls] => Some((call, count(calls)?, 0)),
        [call, calls, errors] => Some((call, count(calls)?, count(errors)?)),
        _ => None,
    }
}

/// Whether a line counts one error of the call above it (`--errno-summary`): `ENOENT: 3`.
fn is_error(text: &str) -> bool {
    let known = |(name, times): (&str, &str)| {
        let named = name.starts_with('E') && name.bytes().all(|byte| byte.is_ascii_uppercase());
        named && count(times.trim()).is_some()
    };
    text.split_once(':').is_some_and(known)
}

/// A summary under way.
#[derive(Debug, Default)]
struct OpenSummary {
    thread: SyscallThread,
    rows: Vec<SyscallRow>,
    beyond: u64,
}

impl OpenTable for OpenSummary {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        let text = view.first()?.text.trim();
        if let Some(thread) = thread(text) {
            self.thread = thread;
            return Some(1);
        }
        if let Some((call, count, errors)) = row(text) {
            if self.rows.len() < MAX_ROWS {
                self.rows.push(SyscallRow {
                    thread: self.thread.clone(),
                    call: call.to_owned(),
                    count,
                    errors,
                });
            } else {
                self.beyond += 1;
            }
            return Some(1);
        }
        let is_error = !self.rows.is_empty() && is_error(text);
        (is_titles(text) || is_units(text) || is_error).then_some(1)
    }

    fn close(self: Box<Self>, place: TablePlace, notes: &mut Vec<TableNote>) -> Option<PerfTable> {
        too_many(place.line, self.beyond, notes);
        (!self.rows.is_empty()).then_some(PerfTable::SyscallTotals(SyscallTotals {
            printer: CountPrinter::PerfTrace,
            line: place.line,
            label: place.label,
            rows: self.rows,
            writes: Vec::new(),
            span_ns: None,
        }))
    }
}
