//! All that one recording, or one set of printed tables, tells: what causes are looked for in, and what is compared.

use std::collections::{BTreeMap, HashSet};

use devices::Names;
use event::{Isa, Quality};
use model::{Access, State, guesses};
use paths::PathReport;
use symbols::Functions;

use crate::waits::waits;
use crate::{
    Amount, Continuity, ContinuityReport, Counter, ExitRow, ExitTable, Exits, ExitsReport,
    FaultsReport, Info, InfoReport, Ipis, IpisReport, LeftOut, Merge, MovesRow, RecorderReport,
    SchedReport, Signs, SleepRow, StallsReport, Stats, Study, TimersReport, Unpaired, VcpusReport,
    WaitsReport, name_access, name_causes, name_rows,
};

/// Where a picture's numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// From events.
    #[default]
    Recording,
    /// From tables that a tool printed: sums only, without percentiles, without order.
    Printed,
}

/// What a recording says of the machine it was made on, and of the tool that made it. What it does not say is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Architecture as `uname -m` has it.
    pub arch: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// CPUs of the machine.
    pub cpus: Option<u32>,
    /// The CPU's own name.
    pub cpu: Option<String>,
    /// The tool that recorded: `perf`, `trace-cmd`.
    pub recorder: Option<String>,
    /// Whether it lists the kinds of events that were recorded and never happened, as perf.data does. A text has only
    /// what happened.
    pub lists_events: bool,
}

/// What one recording tells.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// The files it comes from.
    pub names: Vec<String>,
    /// Where its printed tables stand in their files, and under what heading.
    pub places: Vec<String>,
    /// What it says of its machine and recorder.
    pub about: About,
    /// Whether from events or from tables.
    pub origin: Origin,
    /// Instruction set of the exits.
    pub isa: Option<Isa>,
    /// What is in it.
    pub info: InfoReport,
    /// Tables of exits.
    pub exits: Vec<ExitsReport>,
    /// Exits that could not be timed.
    pub unpaired: Unpaired,
    /// Exits for memory, devices and the local APIC; `None` where nobody asked, as of printed tables.
    pub faults: Option<FaultsReport>,
    /// Exits that guests' timers made; `None` where nobody asked.
    pub timers: Option<TimersReport>,
    /// vCPUs' moves between CPUs.
    pub moves: Vec<MovesRow>,
    /// Where the vCPUs' time went.
    pub vcpus: Option<VcpusReport>,
    /// Scheduling: of all tasks but the vCPUs that filters leave out.
    pub sched: Option<SchedReport>,
    /// Threads that filters choose, where they choose any: of other tasks nobody asked.
    pub tasks: Option<HashSet<i32>>,
    /// vCPUs that they do not choose.
    pub left_out: LeftOut,
    /// Latency paths.
    pub paths: Vec<PathReport>,
    /// Where tasks slept; `None` where no stacks were recorded.
    pub sleeps: Option<Vec<SleepRow>>,
    /// Who recorded, and what that took.
    pub recorder: RecorderReport,
    /// Behind whom vCPUs waited for a CPU.
    pub waits: WaitsReport,
    /// Long times in which a vCPU stood still; `None` where vCPUs' time was not asked for.
    pub stalls: Option<StallsReport>,
    /// Inter-processor interrupts, by what their targets were doing.
    pub ipis: IpisReport,
    /// Single events that tell of causes.
    pub signs: Signs,
    /// Whether events are missing, though nobody said that they were lost.
    pub continuity: ContinuityReport,
    /// What happened when.
    pub series: Series,
    /// Counts that `perf stat` printed, by event.
    pub counts: Vec<(String, u64)>,
    /// How long `perf stat` counted, where it says.
    pub counted_ns: Option<u64>,
    /// From the first to the last event, or what a printed table was told to be of.
    pub span_ns: Option<u64>,
    /// What it lacks.
    pub quality: Quality,
}

/// What is counted by slice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measured {
    /// A row of a table of exits, by its key.
    Exits(ExitTable, String),
    /// A state of the vCPUs, as [`State::ALL`] numbers them.
    State(u8),
    /// Delays of the tasks of a name.
    Delays(String),
    /// Run time of the tasks of a name.
    Ran(String),
    /// A path.
    Path(String),
    /// Events of a kind.
    Events(String),
}

/// Counts in slices of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// How long each slice is.
    pub slice_ns: Vec<u64>,
    /// What happened in each.
    pub of: BTreeMap<Measured, Vec<Amount>>,
}

impl Series {
    /// Names what a study counted by slice, up to the time of its last event.
    pub fn of(study: &mut Study, end: u64) -> Series {
        let slices = study.take_slices(end);
        let mut out = Series {
            slice_ns: slices.iter().map(|slice| slice.ns).collect(),
            of: BTreeMap::new(),
        };
        for (at, slice) in slices.iter().enumerate() {
            for (counter, amount) in &slice.amounts {
                let Some(measured) = named(study, *counter) else {
                    continue;
                };
                let list = out
                    .of
                    .entry(measured)
                    .or_insert_with(|| vec![Amount::default(); slices.len()]);
                if let Some(sum) = list.get_mut(at) {
                    sum.count = sum.count.saturating_add(amount.count);
                    sum.ns = sum.ns.saturating_add(amount.ns);
                }
            }
        }
        out
    }
}

fn named(study: &Study, counter: Counter) -> Option<Measured> {
    Some(match counter {
        Counter::Exits(table, row) => {
            Measured::Exits(table, study.exits.as_ref()?.key_of(table, row)?)
        }
        Counter::State(state) => Measured::State(state),
        Counter::Delays(slot) => Measured::Delays(study.sched.as_ref()?.comm_of(slot)?),
        Counter::Ran(slot) => Measured::Ran(study.sched.as_ref()?.comm_of(slot)?),
        Counter::Path(number) => {
            let paths = study.paths.as_ref()?.paths();
            Measured::Path(paths.get(number as usize)?.name.clone())
        }
        Counter::Events(index) => Measured::Events(study.info.as_ref()?.label(index)?.to_owned()),
    })
}

/// Returns the names of devices for a machine, and tells what of them was not understood.
pub type NamesOf<'n> = &'n dyn Fn(Option<Isa>, &mut Quality) -> Names;

impl Picture {
    /// Takes out of a study what it found, after [`Study::finish`]. `keep` says, where filters choose, which tasks are
    /// asked for, by thread id and process; `functions` names those of the kernel.
    pub fn of(
        study: &mut Study,
        quality: Quality,
        keep: Option<&dyn Fn(i32, Option<i32>) -> bool>,
        functions: Functions<'_>,
        names: NamesOf<'_>,
    ) -> Picture {
        let mut quality = quality;
        let mut info = study.info.as_ref().map(Info::report).unwrap_or_default();
        if let Some(machine) = &study.machine {
            // It has followed what is outside of a window too.
            info.vms = machine.vms();
        }
        if let Some(guesses) = guesses(&info.vms) {
            quality.warn(guesses);
        }
        let (start, end) = (info.start.unwrap_or(0), info.end.unwrap_or(0));
        let series = Series::of(study, end);
        let isa = study.exits.as_ref().and_then(Exits::isa);
        let devices = names(isa, &mut quality);
        let mut exits = study
            .exits
            .as_ref()
            .map(|exits| exits.reports(study.machine.as_ref()))
            .unwrap_or_default();
        for report in &mut exits {
            name_rows(report, &devices);
        }
        let name = |access: &Access| name_access(access, &devices);
        let mut vcpus = study.vcpus_report();
        if let Some(report) = &mut vcpus {
            name_causes(report, &devices);
        }
        let continuity = study.continuity.as_ref().map(Continuity::report);
        let continuity = continuity.unwrap_or_default();
        if let Some(warning) = continuity.warning() {
            quality.warn(warning);
        }
        let sched = study.sched.as_ref().filter(|sched| sched.saw_switches());
        // A cause may be any task, but for the vCPUs of which nobody asked. Where there are no VMs tasks are asked for.
        let host = info.vms.is_empty();
        let of_case = |tid: i32, pid: Option<i32>| match keep {
            Some(keep) if host => keep(tid, pid),
            _ => !study.left_out().has(tid),
        };
        let sched = sched.map(|sched| sched.report(Merge::No, &of_case, functions));
        let asked = |keep: &dyn Fn(i32, Option<i32>) -> bool| -> HashSet<i32> {
            let rows = sched.iter().flat_map(|report| &report.rows);
            let rows = rows.filter(|row| keep(row.tid, row.pid));
            rows.map(|row| row.tid).collect()
        };
        let tasks = keep.map(asked);
        let asked_of = tasks.clone();
        let stalls = match (&study.stalls, &study.machine) {
            (Some(stalls), Some(machine)) => Some(stalls.report(machine)),
            _ => None,
        };
        let recorder = study.recorder.as_ref().zip(study.machine.as_ref());
        let recorder = recorder
            .map(|(recorder, machine)| recorder.report(machine))
            .unwrap_or_default();
        let waits = match (&study.vcpus, &study.machine) {
            (Some(vcpus), Some(machine)) => waits(vcpus, machine, &recorder),
            _ => WaitsReport::default(),
        };
        let paths = study.paths.as_ref().zip(study.machine.as_ref());
        let causes = study.causes.as_ref();
        let sleeps = study.sleeps.as_ref().filter(|sleeps| sleeps.saw_stacks());
        Picture {
            isa,
            exits,
            vcpus,
            sched,
            recorder,
            waits,
            stalls,
            ipis: study.ipis.as_mut().map(Ipis::report).unwrap_or_default(),
            unpaired: study
                .exits
                .as_ref()
                .map(Exits::unpaired)
                .unwrap_or_default(),
            faults: causes.map(|causes| causes.faults.report()),
            timers: causes.map(|causes| causes.timers.report()),
            moves: causes
                .map(|causes| causes.moves.report())
                .unwrap_or_default(),
            tasks,
            left_out: study.left_out().clone(),
            paths: paths
                .map(|(paths, machine)| paths.report(machine, &name))
                .unwrap_or_default(),
            sleeps: sleeps.map(|sleeps| {
                let mut rows = sleeps.report(functions);
                if let Some(tasks) = asked_of.filter(|_| host) {
                    rows.retain(|row| tasks.contains(&row.tid));
                }
                rows
            }),
            signs: causes
                .map(|causes| causes.signs.clone())
                .unwrap_or_default(),
            continuity,
            series,
            span_ns: Some(end.saturating_sub(start)),
            info,
            quality,
            ..Picture::default()
        }
    }

    /// Leaves of VMs and the scheduler's rows those that filters ask for: causes were looked for in all.
    pub fn only_asked(&mut self) {
        let left_out = &self.left_out;
        for vm in &mut self.info.vms {
            vm.vcpus.retain(|vcpu| !left_out.has(vcpu.tid));
        }
        self.info.vms.retain(|vm| !vm.vcpus.is_empty());
        let Some((report, tasks)) = self.sched.as_mut().zip(self.tasks.as_ref()) else {
            return;
        };
        report.rows.retain(|row| tasks.contains(&row.tid));
        report.delays = Stats::default();
        for row in &report.rows {
            report.delays.merge(&row.delays);
        }
    }

    /// Returns a table of exits.
    pub fn table(&self, table: ExitTable) -> Option<&ExitsReport> {
        self.exits.iter().find(|report| report.table == table)
    }

    /// Returns the rows of a table of exits.
    pub fn rows(&self, table: ExitTable) -> &[ExitRow] {
        self.table(table).map_or(&[], |report| &report.rows)
    }

    /// Returns the exits of a reason that goes by one of these names.
    pub fn reason(&self, names: &[&str]) -> Vec<&ExitRow> {
        let rows = self.rows(ExitTable::Vmexit).iter();
        rows.filter(|row| names.contains(&row.key.as_str()))
            .collect()
    }

    /// Returns how many events of a name were recorded, whatever their subsystem; `None` if nothing tells that any
    /// were asked for.
    pub fn events(&self, name: &str) -> Option<u64> {
        let counts = self.info.events.iter();
        let of_name = counts.filter(|count| bare(&count.name) == name);
        of_name
            .map(|count| count.count)
            .reduce(|a, b| a.saturating_add(b))
    }

    /// Returns how many events have a part of a name in theirs, as probes are called after their function.
    pub fn events_about(&self, part: &str) -> u64 {
        let counts = self.info.events.iter();
        let about = counts.filter(|count| bare(&count.name).contains(part));
        about.map(|count| count.count).sum()
    }

    /// Returns the kinds of events that happened, by their names without subsystem and modifiers, and how many.
    pub fn happened(&self) -> impl Iterator<Item = (&str, u64)> {
        let kinds = self.info.events.iter().filter(|kind| kind.count > 0);
        kinds.map(|kind| (bare(&kind.name), kind.count))
    }

    /// Returns the names of the kinds of events that were recorded, whether or not they happened, without subsystem and
    /// modifiers.
    pub fn recorded_names(&self) -> impl Iterator<Item = &str> {
        self.info.recorded.iter().map(|label| bare(label))
    }

    /// Returns whether events of a name were recorded, whatever their subsystem: `Some(false)` where it is certain that
    /// they were not, `None` where nothing tells.
    pub fn recorded(&self, name: &str) -> Option<bool> {
        let mut names = self.info.recorded.iter();
        if names.any(|label| bare(label) == name) {
            Some(true)
        } else {
            self.about.lists_events.then_some(false)
        }
    }

    /// Returns the sum of the vCPUs' time in a state.
    pub fn state_ns(&self, state: State) -> u64 {
        let rows = self.vcpus.iter().flat_map(|report| &report.rows);
        let times = rows.map(|row| row.times.get(state));
        times.fold(0, u64::saturating_add)
    }

    /// Returns the time that vCPUs were observed, all together.
    pub fn observed_ns(&self) -> u64 {
        let rows = self.vcpus.iter().flat_map(|report| &report.rows);
        rows.map(|row| row.times.total())
            .fold(0, u64::saturating_add)
    }

    /// Returns the time in which vCPUs had something to do: observed and neither halted nor polling.
    pub fn busy_ns(&self) -> u64 {
        let idle = self
            .state_ns(State::Halted)
            .saturating_add(self.state_ns(State::Poll));
        self.observed_ns().saturating_sub(idle)
    }

    /// Returns a path.
    pub fn path(&self, name: &str) -> Option<&PathReport> {
        self.paths
            .iter()
            .find(|path| path.name == name && path.count > 0)
    }
}

/// Returns the name of a kind of events without its subsystem and without perf's modifiers.
fn bare(label: &str) -> &str {
    let mut parts = label.split(':');
    match (parts.next(), parts.next()) {
        (Some(_), Some(name)) if !name.is_empty() => name,
        (Some(first), _) => first.split('/').next().unwrap_or(first),
        _ => label,
    }
}

#[cfg(test)]
mod tests {
    use super::bare;

    #[test]
    fn names_of_events_are_found_in_labels() {
        for (label, name) in [
            ("kvm:kvm_exit", "kvm_exit"),
            ("kvm_exit", "kvm_exit"),
            ("kvm:kvm_exit:k", "kvm_exit"),
            ("cycles/", "cycles"),
        ] {
            assert_eq!(bare(label), name);
        }
    }
}
