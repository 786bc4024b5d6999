//! `/proc/interrupts`: who got which interrupt on which CPU since boot (`show_interrupts` of `kernel/irq/proc.c`,
//! `arch_show_interrupts` of `arch/x86/kernel/irq.c` and `arch/arm64/kernel/smp.c`, Linux 3.10 to 6.12).

use forms::InputForm;

use crate::lines::{CleanLine, WINDOW, joined};
use crate::number::count;
use crate::open::{MAX_ROWS, too_many};
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{InterruptCounts, InterruptRow, PerfTable, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "/proc/interrupts",
    recognised_by: "a line of `CPU0 CPU1 ...` with a row of as many numbers below, whose number or name ends with a \
                    colon",
    yields: "interrupts since boot by CPU; of two readings of the same CPUs in one text the difference",
    fixtures: &[
        "tests/tables/proc-interrupts-x86.txt",
        "tests/tables/proc-interrupts-arm64.txt",
        "tests/tables/proc-interrupts-3.10.txt",
    ],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: None,
};

/// CPUs of a table at most: a line is no longer.
const MAX_CPUS: usize = 4096;
/// Characters of a name that are kept: those of shared lines are long.
const MAX_NAME: usize = 256;
/// Lines that are no rows, in a row, after which a table is over.
const PATIENCE: u32 = 3;

fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let (first, below) = view.split_first()?;
    let cpus = cpus(&first.text)?;
    let open = OpenInterrupts {
        cpus,
        ..OpenInterrupts::default()
    };
    // The line alone may be another tool's heading.
    open.row_of(below)?;
    Some((Box::new(open), 1))
}

/// Reads `           CPU0       CPU1`.
fn cpus(text: &str) -> Option<Vec<u32>> {
    let mut out: Vec<u32> = Vec::new();
    for word in text.split_whitespace() {
        let cpu: u32 = word
            .strip_prefix("CPU")
            .filter(|cpu| count(cpu).is_some())?
            .parse()
            .ok()?;
        let rises = out.last().is_none_or(|last| *last < cpu);
        if !rises || out.len() >= MAX_CPUS {
            return None;
        }
        out.push(cpu);
    }
    (!out.is_empty()).then_some(out)
}

/// Reads a row with a count for each of so many CPUs.
fn row(text: &str, line: u64, cpus: usize) -> Option<InterruptRow> {
    let (label, rest) = text.trim_start().split_once(':')?;
    let is_label = |byte: u8| byte.is_ascii_alphanumeric();
    if label.is_empty() || label.len() > 8 || !label.bytes().all(is_label) {
        return None;
    }
    let mut rest = rest;
    let mut counts = Vec::with_capacity(cpus.min(64));
    for _ in 0..cpus {
        rest = rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, more) = rest.split_at(end);
        counts.push(count(word)?);
        rest = more;
    }
    let rest = rest.trim();
    // Numbers have a controller behind them, and the architecture's own rows say what they are.
    let name = match count(label) {
        Some(_) => handlers(rest)?,
        None => rest,
    };
    Some(InterruptRow {
        line,
        irq: label.to_owned(),
        name: name.chars().take(MAX_NAME).collect(),
        counts,
    })
}

/// Returns who handles an interrupt, of what stands behind its counts: the controller, its own number, how it is
/// triggered, and the handlers (`PCI-MSI 524288-edge  eth0-TxRx-0`, `GICv3  27 Level  arch_timer`,
/// `IO-APIC-fasteoi  acpi`).
fn handlers(rest: &str) -> Option<&str> {
    let is_trigger = |word: &str| {
        let kind = word.rsplit('-').next().unwrap_or_default();
        matches!(kind, "edge" | "level" | "fasteoi" | "Edge" | "Level")
    };
    let base = rest.as_ptr() as usize;
    let mut words = rest.split_whitespace();
    let trigger = words.find(|word| is_trigger(word));
    match trigger {
        Some(word) => {
            let end = word.as_ptr() as usize - base + word.len();
            Some(rest.get(end..)?.trim())
        }
        // Controllers that do not say how they are triggered.
        None => rest
            .rsplit("  ")
            .next()
            .map(str::trim)
            .filter(|name| !name.is_empty()),
    }
}

/// Whether a row counts errors, for all CPUs together: `ERR:          0`.
fn is_errors(text: &str) -> bool {
    let mut words = text.split_whitespace();
    matches!(words.next(), Some("ERR:" | "MIS:" | "Err:"))
        && words.all(|word| count(word).is_some())
}

/// A table under way.
#[derive(Debug, Default)]
struct OpenInterrupts {
    cpus: Vec<u32>,
    rows: Vec<InterruptRow>,
    beyond: u64,
}

impl OpenInterrupts {
    /// Reads the row that begins at a line, which may have been broken, and of how many lines it is.
    fn row_of(&self, view: &[CleanLine]) -> Option<(InterruptRow, usize)> {
        let first = view.first()?;
        let cpus = self.cpus.len();
        if let Some(row) = row(&first.text, first.number, cpus) {
            return Some((row, 1));
        }
        first.text.contains(':').then_some(())?;
        (2..=WINDOW).find_map(|lines| {
            // What has a label of its own is the next row.
            let later = view.get(1..lines)?;
            if later.iter().any(|line| line.text.contains(": ")) {
                return None;
            }
            let whole = joined(view, lines);
            let row = whole
                .iter()
                .rev()
                .find_map(|text| row(text, first.number, cpus));
            Some((row?, lines))
        })
    }
}

impl OpenTable for OpenInterrupts {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        if is_errors(&view.first()?.text) {
            return Some(1);
        }
        let (row, lines) = self.row_of(view)?;
        if self.rows.len() < MAX_ROWS {
            self.rows.push(row);
        } else {
            self.beyond += 1;
        }
        Some(lines)
    }

    fn patience(&self) -> u32 {
        PATIENCE
    }

    fn close(self: Box<Self>, place: TablePlace, notes: &mut Vec<TableNote>) -> Option<PerfTable> {
        too_many(place.line, self.beyond, notes);
        (!self.rows.is_empty()).then_some(PerfTable::InterruptCounts(InterruptCounts {
            line: place.line,
            label: place.label,
            cpus: self.cpus,
            rows: self.rows,
        }))
    }
}
