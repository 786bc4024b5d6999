//! What a store of many recordings keeps of each: tables of typed columns.
//!
//! Tables of other commands are taken as they are, without what is nested; those that only a store has are declared
//! here. A table is one variant of [`StoreTable`], its columns one arm of [`StoreTable::columns`], and where its rows
//! come from one arm of [`RecordingSummary::rows`], or a method of [`DetailRows`].

use std::fmt;

use ::paths::InstanceReport;
use analysis::{Picture, Stats};
use facts::Facts;
use rules::Diagnosis;
use stacks::Stacks;

use crate::exit_list::{self, ExitLine};
use crate::info::Head;
use crate::spans::{self, SpanLine};
use crate::table::Unit::{Count, Flag, Name, Nanoseconds, Number, Text};
use crate::table::{StoredColumn, Table};
use crate::{
    ClockUnit, diagnose, exits, facts as render_facts, paths, paths_instance, paths_stored, sched,
    vcpus,
};

pub use crate::table::{CellTaker, RowsTaker, StoredRows, StoredType, TableCell};

/// Stacks of a recording that are kept, those that weigh most.
const STACKS: usize = 256;
/// Bytes of a stack's text.
const STACK_BYTES: usize = 4096;

/// A table of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoreTable {
    /// Where vCPUs' time went: rows of `vcpus`.
    Vcpus,
    /// Exits by reason, port, address and register: rows of `exits`.
    ExitRows,
    /// Tasks and how they waited for CPUs: rows of `sched`.
    Tasks,
    /// Latency paths, a row each.
    Paths,
    /// Their stages.
    Stages,
    /// Durations counted in buckets that are the same in every recording.
    Hists,
    /// Causes that were found: rows of `diagnose`.
    Findings,
    /// What shows them, a sentence each.
    Evidence,
    /// What is known of the host.
    Facts,
    /// Call stacks that weigh most.
    Stacks,
    /// Spans of vCPUs' states, a row each.
    Spans,
    /// Exits, a row each.
    Exits,
    /// Instances of paths, a row each.
    Instances,
    /// The recordings: one that has no row here is not in the store.
    Runs,
}

impl StoreTable {
    /// All of them, in the order in which they are written: that of recordings last.
    pub const ALL: [StoreTable; 14] = [
        StoreTable::Vcpus,
        StoreTable::ExitRows,
        StoreTable::Tasks,
        StoreTable::Paths,
        StoreTable::Stages,
        StoreTable::Hists,
        StoreTable::Findings,
        StoreTable::Evidence,
        StoreTable::Facts,
        StoreTable::Stacks,
        StoreTable::Spans,
        StoreTable::Exits,
        StoreTable::Instances,
        StoreTable::Runs,
    ];

    /// Returns whether it has a row for each single thing, which is asked for.
    pub fn is_detail(self) -> bool {
        matches!(
            self,
            StoreTable::Spans | StoreTable::Exits | StoreTable::Instances
        )
    }

    /// Returns its name, which its folder has.
    pub fn name(self) -> &'static str {
        match self {
            StoreTable::Vcpus => "vcpus",
            StoreTable::ExitRows => "exit_rows",
            StoreTable::Tasks => "tasks",
            StoreTable::Paths => "paths",
            StoreTable::Stages => "stages",
            StoreTable::Hists => "hists",
            StoreTable::Findings => "findings",
            StoreTable::Evidence => "evidence",
            StoreTable::Facts => "facts",
            StoreTable::Stacks => "stacks",
            StoreTable::Spans => "spans",
            StoreTable::Exits => "exits",
            StoreTable::Instances => "instances",
            StoreTable::Runs => "runs",
        }
    }

    /// Returns what its rows are, in a sentence.
    pub fn about(self) -> &'static str {
        match self {
            StoreTable::Vcpus => "Where the time of each vCPU went, as 'vcpus' has it.",
            StoreTable::ExitRows => {
                "Exits of the whole recording by reason, port, address and register, as 'exits' has them; 'event' says \
                 which of these a row is."
            }
            StoreTable::Tasks => "Tasks and their waits for a CPU, as 'sched' has them.",
            StoreTable::Paths => "Latency paths and how long their instances took in all.",
            StoreTable::Stages => "The stages of latency paths, as 'paths' has them.",
            StoreTable::Hists => {
                "How many durations lie in each bucket, sixteen to a power of two. Buckets are the same in every \
                 recording: counts add up, and percentiles of many recordings come from the sums."
            }
            StoreTable::Findings => "Causes that were found, as 'diagnose' has them.",
            StoreTable::Evidence => "What shows a finding, a sentence each.",
            StoreTable::Facts => {
                "What is known of the host beside the recording, as 'facts --format csv' has it."
            }
            StoreTable::Stacks => "The call stacks that weigh most, where any were recorded.",
            StoreTable::Spans => {
                "What vCPUs did, a row for each span of time, as 'export --table spans' has them."
            }
            StoreTable::Exits => "Exits, a row each, as 'export --table exits' has them.",
            StoreTable::Instances => {
                "Instances of paths, a row each, as 'export --table instances' has them."
            }
            StoreTable::Runs => "The recordings. One that has no row here is not in the store.",
        }
    }

    /// Returns its columns, without those that every table begins with.
    pub fn columns(self) -> Vec<StoredColumn> {
        match self {
            StoreTable::Vcpus => vcpus::columns().stored_columns(),
            StoreTable::ExitRows => exits::columns().stored_columns(),
            StoreTable::Tasks => sched::tasks().stored_columns(),
            StoreTable::Paths => paths_stored::rows().stored_columns(),
            StoreTable::Stages => paths::stages().stored_columns(),
            StoreTable::Hists => buckets().stored_columns(),
            StoreTable::Findings => diagnose::columns().stored_columns(),
            StoreTable::Evidence => sentences().stored_columns(),
            StoreTable::Facts => facts().stored_columns(),
            StoreTable::Stacks => weights().stored_columns(),
            StoreTable::Spans => span_columns().stored_columns(),
            StoreTable::Exits => exit_columns().stored_columns(),
            StoreTable::Instances => paths_instance::instances().stored_columns(),
            StoreTable::Runs => runs().stored_columns(),
        }
    }
}

/// Returns the columns that every table of a store begins with: whose recording, and which.
pub fn run_columns() -> Vec<StoredColumn> {
    Table::<(&str, &str)>::new()
        .column("host", Name, |(host, _)| *host)
        .column("run", Text, |(_, run)| *run)
        .stored_columns()
}

/// What a store keeps of a recording as a whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoredRun {
    /// What the host is for.
    pub role: Option<String>,
    /// Other labels, as `name=value` with commas between.
    pub labels: Option<String>,
    /// When the first event was, in nanoseconds since 1970.
    pub started_unix_ns: Option<u64>,
    /// What says on which day it was: `clock_data`, `date`, `recorder`, `given` or `file`.
    pub time_source: Option<&'static str>,
    /// Path of the recording.
    pub input: String,
    /// The recordings of guests that were read with it.
    pub guests: Option<String>,
    /// The program's version.
    pub trapline: &'static str,
    /// Version of the store's tables.
    pub schema: u32,
}

/// What fills the tables that have sums.
#[derive(Clone, Copy)]
pub struct RecordingSummary<'s> {
    /// What was found.
    pub picture: &'s Picture,
    /// What it means.
    pub diagnosis: &'s Diagnosis,
    /// What the recording says of itself.
    pub head: &'s Head,
    /// What is known beside it.
    pub facts: &'s Facts,
    /// Call stacks, each with what they are of.
    pub stacks: &'s [(&'static str, &'s Stacks)],
    /// What is kept of it as a whole.
    pub run: &'s StoredRun,
}

impl fmt::Debug for RecordingSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingSummary")
            .field("run", self.run)
            .finish_non_exhaustive()
    }
}

impl RecordingSummary<'_> {
    /// Hands out the rows of a table that has sums, some at a time. Tables with a row for each single thing have none
    /// here.
    pub fn rows(&self, table: StoreTable, take: RowsTaker<'_>) {
        let picture = self.picture;
        let clock = ClockUnit::of(self.head.nanoseconds);
        match table {
            StoreTable::Vcpus => {
                if let Some(report) = &picture.vcpus {
                    vcpus::store(report, clock, take);
                }
            }
            StoreTable::ExitRows => {
                for report in &picture.exits {
                    let unknowable = exits::unknowable(report);
                    let columns = exits::columns().counted_in(clock);
                    columns.store(exits::rows(picture.isa, report, &unknowable), take);
                }
            }
            StoreTable::Tasks => {
                let columns = sched::tasks().counted_in(clock);
                columns.store(picture.sched.iter().flat_map(sched::task_rows), take);
            }
            StoreTable::Paths => {
                let columns = paths_stored::rows().counted_in(clock);
                columns.store(self.listed_paths(), take);
            }
            StoreTable::Stages => {
                for path in self.listed_paths() {
                    paths_stored::store_stages(path, clock, take);
                }
            }
            StoreTable::Hists => self.histograms(clock, take),
            StoreTable::Findings => {
                diagnose::columns().store(&self.diagnosis.findings, take);
            }
            StoreTable::Evidence => {
                for finding in &self.diagnosis.findings {
                    let all = finding.evidence.iter().zip(0..);
                    let all = all.map(|(one, number)| (finding.rule.id, number, &one.text));
                    sentences().store(all, take);
                }
            }
            StoreTable::Facts => render_facts::each(self.facts, &mut |key, value| {
                facts().store([(key, value)], take);
            }),
            StoreTable::Stacks => {
                for (kind, stacks) in self.stacks {
                    heaviest(kind, stacks, take);
                }
            }
            StoreTable::Runs => runs().counted_in(clock).store([self], take),
            StoreTable::Spans | StoreTable::Exits | StoreTable::Instances => {}
        }
    }

    /// Returns the paths that lists of paths have. What was followed on request alone was asked for by rules.
    fn listed_paths(&self) -> impl Iterator<Item = &::paths::PathReport> {
        let on_request = |name: &str| ::paths::ON_REQUEST.iter().any(|(one, _)| *one == name);
        let all = self.picture.all_paths();
        all.filter(move |path| !on_request(&path.name))
    }

    fn histograms(&self, clock: ClockUnit, take: RowsTaker<'_>) {
        let columns = buckets().counted_in(clock);
        let mut all = |metric: &str, vm_pid: Option<i32>, stats: &Stats| {
            let all = stats.sixteenths().into_iter();
            let all = all.map(|(low_ns, high_ns, count)| Bucket {
                metric: metric.to_owned(),
                vm_pid,
                low_ns,
                high_ns,
                count,
            });
            columns.store(all, take);
        };
        let picture = self.picture;
        for path in self.listed_paths() {
            all(&path.name, None, &path.total);
        }
        for row in picture.vcpus.iter().flat_map(|report| &report.rows) {
            all("vcpu-wait", row.vm_pid, &row.waits);
        }
        for report in &picture.exits {
            for row in report.rows.iter().filter(|row| !row.waiting) {
                all(report.table.name(), row.vm_pid, &row.stats);
            }
        }
        if let Some(sched) = &picture.sched {
            all("sched-delay", None, &sched.delays);
        }
    }

    /// Returns the ids of rules that could tell whether their cause is there.
    fn can_tell(&self) -> String {
        let found = self.diagnosis.findings.iter().map(|one| one.rule.id);
        let clear = self.diagnosis.clear.iter().map(|rule| rule.id);
        let mut all: Vec<&str> = found.chain(clear).collect();
        all.sort_unstable();
        all.dedup();
        all.join(",")
    }
}

/// A bucket of a histogram.
struct Bucket {
    metric: String,
    vm_pid: Option<i32>,
    low_ns: u64,
    high_ns: u64,
    count: u64,
}

fn buckets() -> Table<'static, Bucket> {
    Table::new()
        .column("metric", Text, |bucket: &Bucket| bucket.metric.clone())
        .column("vm_pid", Number, |bucket| bucket.vm_pid)
        .column("low_ns", Nanoseconds, |bucket| bucket.low_ns)
        .column("high_ns", Nanoseconds, |bucket| bucket.high_ns)
        .column("count", Count, |bucket| bucket.count)
}

/// A sentence of evidence: the finding's id, its number, the text.
type Sentence<'s> = (&'static str, u32, &'s String);

fn sentences<'s>() -> Table<'static, Sentence<'s>> {
    Table::new()
        .column("id", Text, |(id, _, _): &Sentence<'s>| *id)
        .column("n", Number, |(_, number, _)| *number)
        .column("text", Name, |(_, _, text)| (*text).clone())
}

fn facts<'f>() -> Table<'static, (&'f str, Option<&'f str>)> {
    Table::new()
        .column("key", Text, |(key, _): &(&str, Option<&str>)| {
            (*key).to_owned()
        })
        .column("value", Name, |(_, value)| value.map(str::to_owned))
}

/// A stack: what it is of, its text from the outermost frame on, and what it weighs.
type StackWeight = (&'static str, String, u64);

fn weights() -> Table<'static, StackWeight> {
    Table::new()
        .column("kind", Text, |(kind, _, _): &StackWeight| *kind)
        .column("stack", Name, |(_, stack, _)| stack.clone())
        .column("weight", Count, |(_, _, weight)| *weight)
}

fn heaviest(kind: &'static str, stacks: &Stacks, take: RowsTaker<'_>) {
    let mut all: Vec<StackWeight> = Vec::new();
    stacks::folded(stacks, STACK_BYTES, |line| {
        if let Some((stack, weight)) = line.rsplit_once(' ') {
            all.push((kind, stack.to_owned(), weight.parse().unwrap_or(0)));
        }
    });
    all.sort_by_key(|(_, _, weight)| std::cmp::Reverse(*weight));
    all.truncate(STACKS);
    weights().store(all, take);
}

fn runs<'s>() -> Table<'static, RecordingSummary<'s>> {
    let quality = |one: &RecordingSummary<'_>| one.picture.quality.all_doubts();
    Table::new()
        .column("role", Name, |one: &RecordingSummary<'_>| {
            one.run.role.clone()
        })
        .column("labels", Name, |one| one.run.labels.clone())
        .column("machine_id", Name, |one| {
            one.facts.host.as_ref()?.machine_id.clone()
        })
        .column("kernel", Text, |one| one.head.kernel.clone())
        .column("arch", Text, |one| one.head.arch.clone())
        .column("cpu_model", Text, |one| one.picture.about.cpu.clone())
        .column("cpus", Number, |one| one.head.cpus)
        .column("format", Text, |one| one.head.format.clone())
        .column("recorder", Text, |one| one.picture.about.recorder.clone())
        .column("clock", Text, |one| one.head.clock.clone())
        .column("started_unix_ns", Number, |one| one.run.started_unix_ns)
        .column("time_source", Text, |one| one.run.time_source)
        .column("start_ns", Nanoseconds, |one| one.picture.info.start)
        .column("duration_ns", Nanoseconds, |one| {
            let info = &one.picture.info;
            Some(info.end?.saturating_sub(info.start?))
        })
        .column("events", Count, |one| {
            let events = one.picture.info.events.iter();
            events
                .map(|kind| kind.count)
                .fold(0u64, u64::saturating_add)
        })
        .column("lost_events", Count, |one| one.picture.quality.lost_events)
        .column("truncated", Flag, |one| one.picture.quality.truncated)
        .column("doubts", Text, move |one| {
            let all = quality(one);
            let ids: Vec<&str> = all.iter().map(|doubt| doubt.id()).collect();
            ids.join(",")
        })
        .column("can_tell", Text, RecordingSummary::can_tell)
        .column("input", Name, |one| one.run.input.clone())
        .column("guests", Name, |one| one.run.guests.clone())
        .column("trapline", Text, |one| one.run.trapline)
        .column("schema", Number, |one| one.run.schema)
}

fn span_columns() -> Table<'static, SpanLine> {
    // What guests did is null where no recording says it, so that every file has the same columns.
    spans::columns_with_guests().without("end_ns")
}

fn exit_columns() -> Table<'static, ExitLine> {
    exit_list::columns().without("end_ns")
}

/// Makes rows of single things.
#[derive(Debug)]
pub struct DetailRows {
    spans: Table<'static, SpanLine>,
    exits: Table<'static, ExitLine>,
    instances: Table<'static, InstanceReport>,
}

impl DetailRows {
    /// Returns what makes rows whose times count this.
    pub fn new(clock: ClockUnit) -> DetailRows {
        DetailRows {
            spans: span_columns().counted_in(clock),
            exits: exit_columns().counted_in(clock),
            instances: paths_instance::instances().counted_in(clock),
        }
    }

    /// Returns rows of [`StoreTable::Spans`].
    pub fn spans<'r>(&'r self, lines: &'r [SpanLine]) -> impl StoredRows + 'r {
        self.spans.stored_rows(lines)
    }

    /// Returns rows of [`StoreTable::Exits`].
    pub fn exits<'r>(&'r self, lines: &'r [ExitLine]) -> impl StoredRows + 'r {
        self.exits.stored_rows(lines)
    }

    /// Returns rows of [`StoreTable::Instances`].
    pub fn instances<'r>(&'r self, all: &'r [InstanceReport]) -> impl StoredRows + 'r {
        self.instances.stored_rows(all)
    }
}
