//! What rules look at, and how they ask it.

use std::collections::HashSet;

use analysis::{ExitRow, ExitTable, Origin, Picture};
use domain::{Domain, GuestOs};
use event::Isa;
use facts::{Facts, Host};
use model::Vm;

use crate::evidence::{Evidence, Ns, Of, says};
use crate::{Base, Cost, Finding, Verdict};

/// One recording, or one set of printed tables, with what is known beside it.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// What the recording tells.
    pub picture: &'a Picture,
    /// What is told of the host, if anything is.
    pub facts: Option<&'a Facts>,
    /// The guest's definition, if it is known.
    pub domain: Option<&'a Domain>,
}

/// A rate takes a tenth of a second: the tick of the slowest kernel comes ten times in it, and what happens at a start or at
/// an end no longer is most of it.
const LEAST_SPAN_NS: u64 = 100_000_000;

/// Count and time of several rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub count: u64,
    pub ns: u64,
}

impl Sum {
    pub(crate) fn of<'r>(rows: impl IntoIterator<Item = &'r ExitRow>) -> Sum {
        let mut sum = Sum::default();
        for row in rows {
            sum.count = sum.count.saturating_add(row.stats.count());
            sum.ns = sum.ns.saturating_add(row.stats.total());
        }
        sum
    }
}

impl<'a> Case<'a> {
    /// Returns what is told of the host itself.
    pub fn host(&self) -> Option<&'a Host> {
        self.facts?.host.as_ref()
    }

    /// Returns the guest's operating system, as its definition has it.
    pub fn guest(&self) -> GuestOs {
        self.domain.map_or(GuestOs::Unknown, |domain| domain.os)
    }

    /// Returns whether numbers come from printed tables.
    pub fn printed(&self) -> bool {
        self.picture.origin == Origin::Printed
    }

    /// Returns whether exits were counted.
    pub fn has_exits(&self) -> bool {
        let table = self.picture.table(ExitTable::Vmexit);
        table.is_some_and(|report| report.total_count > 0)
    }

    /// Returns whether exits are x86's.
    pub fn x86(&self) -> bool {
        match self.picture.isa {
            Some(isa) => matches!(isa, Isa::Vmx | Isa::Svm),
            None => true,
        }
    }

    /// Returns all exits and their time.
    pub(crate) fn all_exits(&self) -> Sum {
        let report = self.picture.table(ExitTable::Vmexit);
        report.map_or(Sum::default(), |report| Sum {
            count: report.total_count,
            ns: report.total_ns,
        })
    }

    /// Returns the time of all exits in which the guest did not ask to wait.
    pub fn handling_ns(&self) -> u64 {
        let report = self.picture.table(ExitTable::Vmexit);
        report.map_or(0, |report| report.handling_ns)
    }

    /// Returns the exits of a reason that goes by one of these names.
    pub(crate) fn exits(&self, names: &[&str]) -> Sum {
        Sum::of(self.picture.reason(names))
    }

    /// Returns what all other exits take on average in which the guest does not ask to wait.
    pub(crate) fn others_mean_ns(&self, but: Sum) -> u64 {
        let rows = self.picture.rows(ExitTable::Vmexit).iter();
        let handled = Sum::of(rows.filter(|row| !row.waiting));
        let count = handled.count.saturating_sub(but.count);
        handled.ns.saturating_sub(but.ns) / count.max(1)
    }

    /// Returns the rows of accesses that a test picks.
    pub(crate) fn accesses(
        &self,
        table: ExitTable,
        pick: impl Fn(&ExitRow) -> bool,
    ) -> Vec<&'a ExitRow> {
        self.picture
            .rows(table)
            .iter()
            .filter(|row| pick(row))
            .collect()
    }

    /// Returns a cost that the vCPUs bear: a share of their time, or where that is not known of all exits'.
    pub fn vcpu_cost(&self, ns: u64) -> Cost {
        match self.picture.observed_ns() {
            0 => Cost::of(ns, self.handling_ns(), Base::Handling),
            observed => Cost::of(ns, observed, Base::VcpuTime),
        }
    }

    /// Returns a cost in latency: a share of the time from the first event to the last.
    pub fn span_cost(&self, ns: u64) -> Cost {
        Cost::of(ns, self.picture.span_ns.unwrap_or(0), Base::Span)
    }

    /// Returns a cost of the host's CPUs.
    pub fn cpu_cost(&self, ns: u64) -> Cost {
        let cpus = self.picture.sched.iter().flat_map(|report| &report.cpus);
        let known = cpus.map(|cpu| cpu.busy_ns.saturating_add(cpu.idle_ns));
        match known.fold(0, u64::saturating_add) {
            0 => self.span_cost(ns),
            all => Cost::of(ns, all, Base::CpuTime),
        }
    }

    /// Returns whether time spent on exits is worth a word: a twentieth of all that exits take, and a thousandth of
    /// the time in which vCPUs had something to do.
    pub fn matters(&self, ns: u64) -> bool {
        let handling = self.handling_ns();
        let busy = self.picture.busy_ns();
        handling > 0 && ns >= handling / 20 && ns >= busy / 1000
    }

    /// Returns what a rule has to say that asks how long or how often, where the recording's clock counts ticks of which
    /// nobody knows how many make a second.
    pub(crate) fn in_ticks(&self) -> Option<Verdict> {
        let ticks = !self.printed() && self.picture.span_ns.is_none();
        ticks.then(|| {
            Verdict::Lacks(
                "The recording's clock counts ticks of unknown length; record with another one \
                 (trace-cmd record -C mono, perf record -k CLOCK_MONOTONIC) to measure how long and how often."
                    .to_owned(),
            )
        })
    }

    /// Returns what a rule has to say that would find something in a recording that is too short for a rate or a share.
    pub(crate) fn too_brief(&self) -> Option<Verdict> {
        let span = self
            .picture
            .span_ns
            .filter(|ns| *ns < LEAST_SPAN_NS && !self.printed())?;
        Some(Verdict::Lacks(format!(
            "The recording is only {} long, which is too short for a rate or a share; record a second or more.",
            words::duration::human(span)
        )))
    }

    /// Says in a finding that stands on counts that its share is of a short recording, if that is so.
    pub(crate) fn tell_brief(&self, finding: Finding) -> Finding {
        let brief = |ns: &u64| *ns < LEAST_SPAN_NS && !self.printed();
        match self.picture.span_ns.filter(brief) {
            Some(span) => finding.evidence(says!(
                "The recording is only {span} long: the share may not be typical.",
                span = Ns(span),
            )),
            None => finding,
        }
    }

    /// Returns whether events of a kind were recorded, though none may have come, or a printed table has them.
    pub(crate) fn tells(&self, event: &str, table: ExitTable) -> bool {
        self.picture.events(event).is_some() || !self.picture.rows(table).is_empty()
    }

    /// Returns whether the scheduler was recorded of the threads of one process only (perf record -p): nothing else is seen to
    /// run, nor its own threads to get a CPU.
    pub(crate) fn one_process(&self) -> bool {
        let seen = self.picture.vcpus.as_ref().map(|report| report.seen);
        seen.is_some_and(|seen| seen.switches && !seen.returns)
    }

    /// Returns whether addresses of faults were recorded.
    pub(crate) fn tells_addresses(&self) -> bool {
        let events = ["kvm_page_fault", "kvm_guest_fault"];
        events
            .iter()
            .any(|name| self.picture.events(name).is_some())
    }

    /// Returns a sentence on what the recording lost, if it lost anything.
    pub(crate) fn losses(&self) -> Option<Evidence> {
        let lost = self.picture.quality.lost_events;
        (lost > 0).then(|| {
            says!(
                "The recording lost {lost} events: counts are lower bounds, and the cost is the counted exits times the mean of those \
                 that were timed.",
                lost = lost,
            )
        })
    }

    /// Returns seconds of the recording; one where that is not known.
    pub fn seconds(&self) -> f64 {
        match self.picture.span_ns {
            Some(ns) if ns > 0 => ns as f64 / 1e9,
            _ => 1.0,
        }
    }

    /// Returns the VMs, as events or what is told beside them show them.
    pub fn vms(&self) -> &'a [Vm] {
        &self.picture.info.vms
    }

    /// Returns the threads of the vCPUs.
    pub fn vcpu_tids(&self) -> HashSet<i32> {
        let of_vms = self.vms().iter().flat_map(|vm| &vm.vcpus);
        let rows = self.picture.vcpus.iter().flat_map(|report| &report.rows);
        of_vms
            .map(|vcpu| vcpu.tid)
            .chain(rows.map(|row| row.tid))
            .collect()
    }
}

/// Returns what a row is called: its key, and its name where it has one.
pub(crate) fn called(row: &ExitRow) -> String {
    match &row.name {
        Some(name) => format!("{} ({name})", row.key),
        None => row.key.clone(),
    }
}

/// Returns evidence for the rows of a table that count most.
pub(crate) fn listed(
    table: impl Fn(&ExitRow) -> ExitTable,
    rows: &[&ExitRow],
    whole: u64,
    most: usize,
) -> Vec<Evidence> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| std::cmp::Reverse((row.stats.total(), row.stats.count())));
    let line = |row: &&ExitRow| {
        says!(
            "{row}: {count} of them ({share}), {all} in all, {each} each.",
            row = called(row),
            count = row.stats.count(),
            share = Of(row.stats.count(), whole),
            all = Ns(row.stats.total()),
            each = Ns(row.stats.mean()),
        )
        .row(table(row), row)
    };
    rows.iter().take(most).map(line).collect()
}
