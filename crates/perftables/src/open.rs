//! Tables that are being read.

use crate::kvm::{KvmFilter, KvmHeading, PrintedKvmRow, Total};
use crate::kvm_check;
use crate::sched;
use crate::stat::{self, MAX_METRICS, Seconds, StatHeading};
use crate::types::{
    Count, KvmStat, KvmStatEvent, KvmStatPrinter, Metric, PerfStat, PerfTable, SchedLatency,
    SchedPrinter, SchedRow, TableNote,
};

/// Rows that are kept of a table.
pub(crate) const MAX_ROWS: usize = 65536;
/// Lines of other text after which a table is over.
const MAX_FOREIGN: u32 = 12;
/// Notes of perf that are kept of a table.
const MAX_INFOS: usize = 16;

/// Lines inside a table that are none of its.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    /// Since the last line of the table, and the first of them.
    since: (u32, u64),
    /// Before the last line of the table, and the first of them.
    inside: (u32, u64),
}

impl Foreign {
    /// Counts a line; returns whether the table is over.
    pub(crate) fn add(&mut self, line: u64) -> bool {
        if self.since.0 == 0 {
            self.since.1 = line;
        }
        self.since.0 += 1;
        self.since.0 > MAX_FOREIGN
    }

    /// A line of the table follows.
    pub(crate) fn end(&mut self) {
        let (lines, first) = std::mem::take(&mut self.since);
        if self.inside.0 == 0 {
            self.inside.1 = first;
        }
        self.inside.0 = self.inside.0.saturating_add(lines);
    }

    fn note(&self, notes: &mut Vec<TableNote>) {
        let text = match self.inside.0 {
            0 => return,
            lines => words::counted(
                lines,
                "line inside a table is no row and passed over.",
                "lines inside a table are no rows and passed over.",
            ),
        };
        notes.push(TableNote {
            line: self.inside.1,
            text,
        });
    }
}

/// Notes that there were more rows than are kept.
pub(crate) fn too_many(line: u64, beyond: u64, notes: &mut Vec<TableNote>) {
    if beyond > 0 {
        notes.push(TableNote {
            line,
            text: format!(
                "The table has more than {MAX_ROWS} rows; the {beyond} behind them are left out."
            ),
        });
    }
}

/// Notes a heading with nothing below.
fn empty(line: u64, notes: &mut Vec<TableNote>) {
    notes.push(TableNote {
        line,
        text: "The heading of a table stands here, and no rows could be read below.".to_owned(),
    });
}

/// A table of `perf kvm stat`.
#[derive(Debug, Default)]
pub(crate) struct OpenKvm {
    line: u64,
    label: Option<String>,
    /// `--event=` of the command line before.
    asked: Option<KvmStatEvent>,
    pub head: KvmFilter,
    pub header: Option<KvmHeading>,
    rows: Vec<(u64, PrintedKvmRow)>,
    pub total: Option<Total>,
    pub lost_events: Option<u64>,
    pub foreign: Foreign,
    /// Code of the reason that the next row counts, if perf has no name of it.
    pub unknown: Option<u64>,
    /// What perf calls the machine in such a message.
    pub machine: Option<String>,
    beyond: u64,
}

impl OpenKvm {
    pub(crate) fn new(line: u64, label: Option<String>, asked: Option<KvmStatEvent>) -> OpenKvm {
        OpenKvm {
            line,
            label,
            asked,
            ..OpenKvm::default()
        }
    }

    /// Returns whether the heading is still to come.
    pub(crate) fn waits(&self) -> bool {
        self.header.is_none() && self.rows.is_empty() && self.total.is_none()
    }

    pub(crate) fn push(&mut self, line: u64, mut row: PrintedKvmRow) {
        self.foreign.end();
        let unknown = self.unknown.take();
        row.unknown_code = unknown.filter(|_| row.key == "UNKNOWN");
        if self.rows.len() < MAX_ROWS {
            self.rows.push((line, row));
        } else {
            self.beyond += 1;
        }
    }

    pub(crate) fn close(self, notes: &mut Vec<TableNote>) -> Option<PerfTable> {
        if self.rows.is_empty() && self.total.is_none() {
            // A line "Analyze events for" alone may be prose.
            if self.header.is_some() {
                empty(self.line, notes);
            }
            return None;
        }
        self.foreign.note(notes);
        too_many(self.line, self.beyond, notes);
        let rows = kvm_check::rows(self.rows, self.total, notes);
        if rows.is_empty() && self.total.is_none() {
            return None;
        }
        let reported = self
            .header
            .map(|header| header.event)
            .filter(|event| *event != KvmStatEvent::Unrecognized);
        let event = reported
            .or(self.asked)
            .unwrap_or_else(|| kvm_check::event_of(&rows));
        let table = KvmStat {
            printer: KvmStatPrinter::PerfKvmStat,
            line: self.line,
            label: self.label,
            event,
            pids: self.head.pids,
            vcpu: self.head.vcpu,
            rows,
            total_count: self.total.map(|total| total.count),
            total_ns: self.total.map(|total| total.time.ns),
            lost_events: self.lost_events,
            machine: self.machine,
        };
        if self.beyond == 0 {
            kvm_check::check(&table, notes);
        }
        Some(PerfTable::KvmStat(table))
    }
}

/// A table of `perf sched latency`.
#[derive(Debug, Default)]
pub(crate) struct OpenSched {
    line: u64,
    label: Option<String>,
    pub header: Option<sched::SchedHeading>,
    pub foreign: Foreign,
    rows: Vec<SchedRow>,
    total: Option<(u64, u64)>,
    lost_events: Option<u64>,
    infos: Vec<String>,
    beyond: u64,
}

impl OpenSched {
    pub(crate) fn new(line: u64, label: Option<String>) -> OpenSched {
        OpenSched {
            line,
            label,
            ..OpenSched::default()
        }
    }

    /// Returns whether its last row was read.
    pub(crate) fn is_whole(&self) -> bool {
        self.total.is_some()
    }

    pub(crate) fn push(&mut self, row: sched::SchedLine) {
        self.foreign.end();
        match row {
            sched::SchedLine::Total {
                runtime_ns,
                switches,
            } => self.total = Some((runtime_ns, switches)),
            sched::SchedLine::Task(row) if self.rows.len() < MAX_ROWS => self.rows.push(row),
            sched::SchedLine::Task(_) => self.beyond += 1,
        }
    }

    /// Takes what perf says of the recording below the table. Returns whether the line is that.
    pub(crate) fn info(&mut self, text: &str) -> bool {
        let Some(info) = text.trim().strip_prefix("INFO:") else {
            return false;
        };
        if let Some(lost) = sched::lost(info) {
            self.lost_events = Some(lost);
        }
        if self.infos.len() < MAX_INFOS {
            self.infos.push(info.trim().to_owned());
        }
        true
    }

    pub(crate) fn close(self, notes: &mut Vec<TableNote>) -> Option<PerfTable> {
        if self.rows.is_empty() && self.total.is_none() {
            empty(self.line, notes);
            return None;
        }
        self.foreign.note(notes);
        too_many(self.line, self.beyond, notes);
        let table = SchedLatency {
            printer: SchedPrinter::Latency,
            line: self.line,
            label: self.label,
            rows: self.rows,
            total_runtime_ns: self.total.map(|(ns, _)| ns),
            total_switches: self.total.map(|(_, switches)| switches),
            lost_events: self.lost_events,
            notes: self.infos,
        };
        if self.beyond == 0 {
            sched::check(&table, notes);
        }
        Some(PerfTable::SchedLatency(table))
    }
}

/// Counts of `perf stat`.
#[derive(Debug, Default)]
pub(crate) struct OpenStat {
    line: u64,
    label: Option<String>,
    pub header: Option<StatHeading>,
    counts: Vec<Count>,
    seconds: Vec<Seconds>,
    beyond: u64,
}

impl OpenStat {
    pub(crate) fn new(line: u64, label: Option<String>) -> OpenStat {
        OpenStat {
            line,
            label,
            ..OpenStat::default()
        }
    }

    /// Returns whether its last counts were read: the time elapsed was.
    pub(crate) fn is_whole(&self) -> bool {
        !self.seconds.is_empty()
    }

    pub(crate) fn push(&mut self, count: Count) {
        if self.counts.len() < MAX_ROWS {
            self.counts.push(count);
        } else {
            self.beyond += 1;
        }
    }

    /// Takes metrics that stand on a line of their own.
    pub(crate) fn push_metrics(&mut self, metrics: Vec<Metric>) {
        if let Some(count) = self.counts.last_mut() {
            let room = MAX_METRICS.saturating_sub(count.metrics.len());
            count.metrics.extend(metrics.into_iter().take(room));
        }
    }

    /// Takes the end of the last line, which was broken off it.
    pub(crate) fn push_tail(&mut self, (error, running): (Option<f64>, Option<f64>)) {
        if let Some(count) = self.counts.last_mut() {
            count.error = count.error.or(error);
            count.running = count.running.or(running);
        }
    }

    /// Takes a time. Returns whether it is one that is not known yet.
    pub(crate) fn push_seconds(&mut self, seconds: Seconds) -> bool {
        let kind = std::mem::discriminant(&seconds);
        let new = self
            .seconds
            .iter()
            .all(|s| std::mem::discriminant(s) != kind);
        if new {
            self.seconds.push(seconds);
        }
        new
    }

    pub(crate) fn close(self, notes: &mut Vec<TableNote>) -> Option<PerfTable> {
        // A number and a word are not enough.
        let strong = |count: &Count| stat::is_known(&count.event) || !count.metrics.is_empty();
        let known = match &self.header {
            Some(_) => true,
            None => self.is_whole() || (self.counts.len() > 1 && self.counts.iter().any(strong)),
        };
        if !known {
            return None;
        }
        if self.counts.is_empty() {
            empty(self.line, notes);
            return None;
        }
        too_many(self.line, self.beyond, notes);
        let header = self.header.unwrap_or_default();
        let mut table = PerfStat {
            line: self.line,
            label: header.label.or(self.label),
            target: header.target,
            runs: header.runs,
            counts: self.counts,
            elapsed_ns: None,
            elapsed_error: None,
            user_ns: None,
            sys_ns: None,
        };
        for seconds in self.seconds {
            match seconds {
                Seconds::Elapsed { ns, error } => {
                    table.elapsed_ns = Some(ns);
                    table.elapsed_error = error;
                }
                Seconds::User(ns) => table.user_ns = Some(ns),
                Seconds::Sys(ns) => table.sys_ns = Some(ns),
            }
        }
        Some(PerfTable::PerfStat(table))
    }
}
