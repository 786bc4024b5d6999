//! What several rules say in the same words: costs, recordings that are too short or lost events, rows of tables.

use analysis::{ExitRow, ExitTable};

use crate::evidence::{Evidence, Ns, Of, ShowCommand, says};
use crate::{Base, Case, Finding, FindingCost, TimeWindow, Verdict};

/// A rate takes a tenth of a second: the tick of the slowest kernel comes ten times in it, and what happens at a start
/// or at an end no longer is most of it.
const LEAST_SPAN_NS: u64 = 100_000_000;
/// A share of fewer waits than this is chance, unless it is a large one.
pub(crate) const OFTEN_WAITS: u64 = 10;
/// Times of its limit that make a share a large one: what so few waits add up to is then nothing that happens by
/// chance.
pub(crate) const LARGE_TIMES: f64 = 5.0;

impl Case<'_> {
    /// Returns a cost that the vCPUs bear: a share of their time, or where that is not known of all exits'.
    pub fn vcpu_cost(&self, ns: u64) -> FindingCost {
        match self.picture.observed_ns() {
            0 => FindingCost::of(ns, self.handling_ns(), Base::Handling),
            observed => FindingCost::of(ns, observed, Base::VcpuTime),
        }
    }

    /// Returns a cost in latency: a share of the time from the first event to the last.
    pub fn span_cost(&self, ns: u64) -> FindingCost {
        FindingCost::of(ns, self.picture.span_ns.unwrap_or(0), Base::Span)
    }

    /// Returns a cost of the host's CPUs.
    pub fn cpu_cost(&self, ns: u64) -> FindingCost {
        let cpus = self.picture.sched.iter().flat_map(|report| &report.cpus);
        let known = cpus.map(|cpu| cpu.busy_ns.saturating_add(cpu.idle_ns));
        match known.fold(0, u64::saturating_add) {
            0 => self.span_cost(ns),
            all => FindingCost::of(ns, all, Base::CpuTime),
        }
    }

    /// Returns what a rule has to say that asks how long or how often, where the recording's clock counts ticks of
    /// which nobody knows how many make a second.
    pub(crate) fn in_ticks(&self) -> Option<Verdict> {
        self.counts_ticks().then(|| {
            Verdict::Unknown(
                "The recording's clock counts ticks of unknown length; record with a clock of nanoseconds, as \
                 'trapline record' does, to measure times and rates."
                    .to_owned(),
            )
        })
    }

    /// Returns whether the recording's clock counts ticks of unknown rate.
    pub(crate) fn counts_ticks(&self) -> bool {
        self.picture.about.in_ticks
    }

    /// Returns what a rule has to say that would find something in a recording that is too short for a rate or a share.
    pub(crate) fn too_brief(&self) -> Option<Verdict> {
        let span = self
            .picture
            .span_ns
            .filter(|ns| *ns < LEAST_SPAN_NS && !self.printed())?;
        Some(Verdict::Unknown(format!(
            "The recording is only {} long, too short for a rate or a share; record a second or more.",
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

    /// Returns how many waits of vCPUs for a CPU may be behind tasks that ran so often meanwhile: one wait may be
    /// behind several, and many are behind nobody, as the CPU was idle.
    pub(crate) fn waits_behind(&self, ran: u64) -> u64 {
        let rows = self.picture.vcpus.iter().flat_map(|report| &report.rows);
        let waits = rows.map(|row| row.waits.count());
        waits.fold(0, u64::saturating_add).min(ran)
    }

    /// Returns the command that shows what happened in a time.
    pub(crate) fn command(&self, from: u64, to: u64) -> ShowCommand {
        let name = self.picture.names.first().map_or("REC", String::as_str);
        let window = TimeWindow {
            start_ns: from,
            end_ns: to,
        };
        let command = format!("trapline events {name} --time {}", window.argument(false));
        ShowCommand { command, window }
    }

    /// Returns a sentence on what the recording lost, if it lost anything.
    pub(crate) fn losses(&self) -> Option<Evidence> {
        let lost = self.picture.quality.lost_events;
        (lost > 0).then(|| {
            says!(
                "The recording lost {lost} events: counts are lower bounds, and the cost is the number of exits times \
                 the mean of the timed ones.",
                lost = lost,
            )
        })
    }
}

/// Returns what a row is called: its key, and its name where it has one.
pub(crate) fn called(row: &ExitRow) -> String {
    match &row.name {
        Some(name) => format!("{} ({name})", row.key),
        None => row.key.clone(),
    }
}

/// Returns evidence for the rows of a table that count most. `whole` is how many there are in all that their counts are
/// shares of, and what these are: they may be others than the sentence before speaks of.
pub(crate) fn listed(
    table: impl Fn(&ExitRow) -> ExitTable,
    rows: &[&ExitRow],
    (whole, what): (u64, &str),
    most: usize,
) -> Vec<Evidence> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| std::cmp::Reverse((row.stats.total(), row.stats.count())));
    let line = |row: &&ExitRow| {
        says!(
            "{row}: {count} of {whole} {what} ({share}), {all} in all, {each} each.",
            row = called(row),
            count = row.stats.count(),
            whole = whole,
            what = what,
            share = Of(row.stats.count(), whole),
            all = Ns(row.stats.total()),
            each = Ns(row.stats.mean()),
        )
        .row(table(row), row)
    };
    rows.iter().take(most).map(line).collect()
}

/// Returns whether waits for a CPU, which have a share of the vCPUs' time, reach a limit by more than chance.
pub(crate) fn waits_reach(limit: f64, share: f64, waits: u64) -> bool {
    let needed = match waits >= OFTEN_WAITS {
        true => limit,
        false => limit * LARGE_TIMES,
    };
    share >= needed
}
