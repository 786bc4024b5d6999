//! The table of `strace -c` (`call_summary` in `src/count.c` of strace 4.x to 6.x): system calls by their time.

use forms::InputForm;

use crate::lines::{CleanLine, squeezed};
use crate::number::{count, decimal};
use crate::open::{MAX_ROWS, too_many};
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{CountPrinter, PerfTable, SyscallRow, SyscallThread, SyscallTotals, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "strace -c",
    recognised_by: "the heading `% time seconds usecs/call calls errors syscall`",
    yields: "how often each system call was made, and failed",
    fixtures: &["tests/tables/strace-c.txt", "tests/tables/strace-c-4.txt"],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: None,
};

fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let first = &view.first()?.text;
    let is_heading = squeezed(first) == "%timesecondsusecs/callcallserrorssyscall";
    is_heading.then(|| (Box::<OpenCounts>::default() as Box<dyn OpenTable>, 1))
}

/// Reads ` 67.86    0.003574        1787         2         1 wait4`. Versions before 5.0 print no microseconds of the
/// last row.
fn row(text: &str) -> Option<SyscallRow> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (call, numbers) = words.split_last()?;
    let (share, numbers) = numbers.split_first()?;
    let (seconds, numbers) = numbers.split_first()?;
    decimal(share).filter(|_| share.contains(['.', ',']))?;
    decimal(seconds).filter(|_| seconds.contains(['.', ',']))?;
    let numbers: Option<Vec<u64>> = numbers.iter().map(|number| count(number)).collect();
    let (calls, errors) = match (numbers?.as_slice(), *call) {
        // Of all together nothing is kept.
        (_, "total") => (0, 0),
        ([_, calls], _) => (*calls, 0),
        ([_, calls, errors], _) => (*calls, *errors),
        _ => return None,
    };
    Some(SyscallRow {
        thread: SyscallThread::default(),
        call: (*call).to_owned(),
        count: calls,
        errors,
    })
}

/// A table under way.
#[derive(Debug, Default)]
struct OpenCounts {
    rows: Vec<SyscallRow>,
    left_out: u64,
    /// Whether its last row was read.
    whole: bool,
}

impl OpenTable for OpenCounts {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        let row = row(&view.first()?.text).filter(|_| !self.whole)?;
        if row.call == "total" {
            self.whole = true;
        } else if self.rows.len() < MAX_ROWS {
            self.rows.push(row);
        } else {
            self.left_out += 1;
        }
        Some(1)
    }

    fn close(self: Box<Self>, place: TablePlace, notes: &mut Vec<TableNote>) -> Option<PerfTable> {
        too_many(place.line, self.left_out, notes);
        (!self.rows.is_empty()).then_some(PerfTable::SyscallTotals(SyscallTotals {
            printer: CountPrinter::StraceCounts,
            line: place.line,
            label: place.label,
            rows: self.rows,
            writes: Vec::new(),
            span_ns: None,
        }))
    }
}
