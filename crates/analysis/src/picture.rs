//! All that one recording, or one set of printed tables, shows: what causes are looked for in, and what is compared.

use std::collections::HashSet;

use cpuset::NumaNode;
use devices::AddressNames;
use event::{ExitClass, ExitReason, Isa, Quality, RecordingCost};
use model::{GuestAccess, State};
use paths::{PathReport, Paths};
use perftables::{
    CountPrinter, CpuUsageRow, FileWrites, KvmStatPrinter, PrintedDistribution, SchedPrinter,
    VirtioQueue,
};
use symbols::KernelFunctions;

use crate::waits::waits;
use crate::{
    Answers, Continuity, ContinuityReport, Counters, CountersReport, ExitRow, ExitTable, Exits,
    ExitsReport, Faults, FaultsReport, GuestTasks, Handle, Handling, HandlingRow, IdleWakeups,
    IdleWakeupsReport, InfoReport, Ipis, IpisReport, Irqs, IrqsReport, LeftOut, MainLoopRow,
    MainLoops, Merge, Moves, MovesRow, NestedExits, NestedExitsReport, OffCpuSums, PartCounts,
    PathExamples, PrintedInterrupts, PrintedShares, ProfileSums, Progress, ProgressReport,
    Recorder, RecorderReport, RecordingContents, SchedLatencies, SchedReport, Series,
    SharedAnalysis, Signs, SleepRow, Sleeps, Stalls, StallsReport, Stats, Timeline, TimelineReport,
    Timers, TimersReport, Unmaps, UnmapsReport, Vcpus, VcpusReport, VmmSleeps, VmmSleepsRow,
    WaitsReport, WalkState, name_access, name_causes, name_rows, with_used,
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
pub struct RecordedMachine {
    /// Architecture as `uname -m` has it.
    pub arch: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// CPUs of the machine.
    pub cpus: Option<u32>,
    /// The CPU's own name.
    pub cpu: Option<String>,
    /// Its NUMA nodes.
    pub nodes: Vec<NumaNode>,
    /// The tool that recorded: `perf`, `trace-cmd`.
    pub recorder: Option<String>,
    /// What recording cost, where the recorder measured it.
    pub cost: Option<RecordingCost>,
    /// Whether it lists the kinds of events that were recorded and never happened, as perf.data does. A text has only
    /// what happened.
    pub lists_events: bool,
    /// The clock of its events, as its container calls it: `perf`, `local`, `mono`; texts do not say.
    pub clock: Option<String>,
    /// Whether its clock counts ticks of which nobody knows how many make a second.
    pub in_ticks: bool,
}

/// What the analyses found of one recording.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// The files it comes from.
    pub names: Vec<String>,
    /// The recordings of guests that were walked with it.
    pub guests: Vec<String>,
    /// Where its printed tables stand in their files, and under what heading; of a trace that was cut out of a text,
    /// where that stands.
    pub places: Vec<String>,
    /// The line of its file where it begins, if it is a part of a text.
    pub first_line: Option<u64>,
    /// What it says of its machine and recorder.
    pub about: RecordedMachine,
    /// Whether from events or from tables.
    pub origin: Origin,
    /// Instruction set of the exits.
    pub isa: Option<Isa>,
    /// What is in it.
    pub info: InfoReport,
    /// Tables of exits.
    pub exits: Vec<ExitsReport>,
    /// The same tables with rows for each thing that guests did; none where no guest's recording was walked.
    pub guest_exits: Vec<ExitsReport>,
    /// Exits for memory, devices and the local APIC; `None` where nobody asked, as of printed tables.
    pub faults: Option<FaultsReport>,
    /// Exits that guests' timers made; `None` where nobody asked.
    pub timers: Option<TimersReport>,
    /// Of each vCPU, what handling its exits took.
    pub handling: Vec<HandlingRow>,
    /// vCPUs' moves between CPUs.
    pub moves: Vec<MovesRow>,
    /// Whether each vCPU gets anywhere.
    pub progress: ProgressReport,
    /// Who takes memory away from guests.
    pub unmaps: UnmapsReport,
    /// Exits of guests that run guests of their own.
    pub nested: NestedExitsReport,
    /// How long vCPUs slept in the VMM, each time.
    pub vmm_sleeps: Vec<VmmSleepsRow>,
    /// What wakes the main threads of VMMs.
    pub main_loops: Vec<MainLoopRow>,
    /// What it takes idle CPUs to run threads of VMs that are woken for them.
    pub idle: IdleWakeupsReport,
    /// Where the vCPUs' time went.
    pub vcpus: Option<VcpusReport>,
    /// Scheduling: of all tasks but the vCPUs that filters leave out.
    pub sched: Option<SchedReport>,
    /// Threads that filters choose, where they choose any: of other tasks nobody asked.
    pub tasks: Option<HashSet<i32>>,
    /// vCPUs that they do not choose.
    pub left_out: LeftOut,
    /// Latency paths of the host.
    pub paths: Vec<PathReport>,
    /// Latency paths through guests whose recordings were walked. They stand apart from the host's since they begin or
    /// end in a guest: what looks over all paths for what the host did, as rules, comparisons and the headline do, is
    /// not to meet them.
    pub guest_paths: Vec<PathReport>,
    /// Where tasks slept; `None` where no stacks were recorded.
    pub sleeps: Option<Vec<SleepRow>>,
    /// What samples found of the CPUs' time; `None` where nothing was sampled that is a CPU's time.
    pub profile: Option<ProfileSums>,
    /// What threads waited for without a CPU; `None` where nobody asked, and where no switches were recorded.
    pub off_cpu: Option<OffCpuSums>,
    /// Who recorded, and what that took.
    pub recorder: RecorderReport,
    /// Behind whom vCPUs waited for a CPU.
    pub waits: WaitsReport,
    /// Long times in which a vCPU stood still; `None` where vCPUs' time was not asked for.
    pub stalls: Option<StallsReport>,
    /// Inter-processor interrupts, by what their targets were doing.
    pub ipis: IpisReport,
    /// Interrupts of guests, by vCPU and vector.
    pub irqs: IrqsReport,
    /// What the processor counted of vCPUs, where parts are asked for that no rule looks at.
    pub counters: CountersReport,
    /// Single events that tell of causes.
    pub signs: Signs,
    /// Whether events are missing, though nobody said that they were lost.
    pub continuity: ContinuityReport,
    /// What every vCPU, CPU and thread of interest did when; `None` where nobody asked.
    pub timeline: Option<TimelineReport>,
    /// A slow and a typical instance of each path, where the timeline was asked for.
    pub examples: Vec<PathExamples>,
    /// What happened when.
    pub series: Series,
    /// Counts that `perf stat` printed, by event.
    pub counts: Vec<(String, u64)>,
    /// Of counts that `kvm_stat` printed, how many there were a second then.
    pub rates: Vec<(String, u64)>,
    /// Which tool printed the counts.
    pub counted_by: CountPrinter,
    /// Which tool printed the times of tasks.
    pub latencies_by: SchedPrinter,
    /// Which tool printed the times of exits.
    pub exits_by: KvmStatPrinter,
    /// Values by size, as tools printed them.
    pub distributions: Vec<PrintedDistribution>,
    /// What threads wrote, by file descriptor, where system calls were printed.
    pub writes: Vec<FileWrites>,
    /// Shares of samples that `perf report` printed.
    pub shares: Option<PrintedShares>,
    /// Interrupts of the machine by CPU, of `/proc/interrupts`.
    pub interrupts: Option<PrintedInterrupts>,
    /// What a guest's drivers put into the queues of virtio devices, as `virtiostat` counted it.
    pub virtio: Vec<VirtioQueue>,
    /// What the machine's CPUs did, as `mpstat` counted it.
    pub cpu_usage: Vec<CpuUsageRow>,
    /// How long `perf stat` counted, where it says.
    pub counted_ns: Option<u64>,
    /// From the first to the last event, or the time that a printed table is of, as the user says.
    pub span_ns: Option<u64>,
    /// What is missing in it.
    pub quality: Quality,
}

/// Returns the names of devices for a machine.
pub type NamesOf<'n> = &'n dyn Fn(Option<Isa>) -> AddressNames;

/// What a walk for a picture has under way: each analysis by its handle. Whoever puts the walk together adds them to a
/// [`Study`](crate::Study), one line each.
#[derive(Debug)]
pub struct PictureHandles {
    /// What is in the recording.
    pub info: Handle<RecordingContents>,
    /// Tables of exits.
    pub exits: Handle<Exits>,
    /// Where vCPUs' time went.
    pub vcpus: Handle<Vcpus>,
    /// Scheduling.
    pub sched: Handle<SchedLatencies>,
    /// Where tasks slept.
    pub sleeps: Handle<Sleeps>,
    /// Single events that show causes.
    pub signs: Handle<Signs>,
    /// Exits for memory, devices and the local APIC.
    pub faults: Handle<Faults>,
    /// Exits that guests' timers made.
    pub timers: Handle<Timers>,
    /// Of each vCPU, what handling its exits took.
    pub handling: Handle<Handling>,
    /// vCPUs' moves between CPUs.
    pub moves: Handle<Moves>,
    /// Whether each vCPU gets anywhere.
    pub progress: Handle<Progress>,
    /// Who takes memory away from guests.
    pub unmaps: Handle<Unmaps>,
    /// Exits of guests that run guests of their own.
    pub nested: Handle<NestedExits>,
    /// How long vCPUs slept in the VMM, each time.
    pub vmm_sleeps: Handle<VmmSleeps>,
    /// What wakes the main threads of VMMs.
    pub main_loops: Handle<MainLoops>,
    /// What it takes idle CPUs to run threads of VMs that are woken for them.
    pub idle: Handle<IdleWakeups>,
    /// Long stalls.
    pub stalls: Handle<Stalls>,
    /// Who recorded.
    pub recorder: Handle<Recorder>,
    /// Inter-processor interrupts.
    pub ipis: Handle<Ipis>,
    /// Interrupts of guests, where parts are asked for that no rule looks at.
    pub irqs: Option<Handle<Irqs>>,
    /// What the processor counted of vCPUs, where such parts are asked for.
    pub counters: Option<Handle<Counters>>,
    /// Latency paths, where any are followed.
    pub paths: Option<Handle<Paths>>,
    /// Whether events are missing, where that can be known.
    pub continuity: Option<Handle<Continuity>>,
    /// What everything did when, where that is asked for.
    pub timeline: Option<Handle<Timeline>>,
    /// What guests did, and exits by that, where their recordings are walked.
    pub guests: Option<(SharedAnalysis<GuestTasks>, Handle<Exits>)>,
}

/// What the walk for a picture is given beside its events.
#[derive(Clone, Copy)]
pub struct PictureContext<'c> {
    /// Which tasks are asked for, by thread id and process, where filters choose any.
    pub keep: Option<&'c dyn Fn(i32, Option<i32>) -> bool>,
    /// The kernel's functions.
    pub functions: KernelFunctions<'c>,
    /// The names of devices.
    pub names: NamesOf<'c>,
}

impl std::fmt::Debug for PictureContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PictureContext").finish_non_exhaustive()
    }
}

impl Picture {
    /// Returns what a walk found that has ended. `walked` is what its analyses share.
    pub fn of(
        handles: PictureHandles,
        answers: &mut Answers,
        walked: &WalkState<'_>,
        context: PictureContext<'_>,
    ) -> Picture {
        let info = answers.take(handles.info).report(walked);
        let exits = answers.take(handles.exits);
        let isa = exits.isa();
        let reports = exits.reports(walked.machine);
        let devices = with_used((context.names)(isa), &reports);
        let paths = handles.paths.map(|paths| answers.take(paths));
        let name = |access: &GuestAccess| name_access(access, &devices);
        let path_reports = paths.as_ref().map(|one| one.report(walked.machine, &name));
        let path_reports = path_reports.unwrap_or_default();
        let guests = handles
            .guests
            .map(|(tasks, exits)| (tasks, answers.take(exits)));
        let (guest_tasks, guest_exits) = guests.unzip();
        let (sched, tasks) = scheduling(answers.take(handles.sched), walked, &info, context);
        let asked = tasks.as_ref().filter(|_| info.vms.is_empty());
        let sleeps = sleeping(
            &answers.take(handles.sleeps),
            walked,
            asked,
            context.functions,
        );
        let recorder = answers.take(handles.recorder).report(walked);
        let span = (info.start.unwrap_or(0), info.end.unwrap_or(0));
        let drawn = handles.timeline.map(|timeline| {
            let timeline = answers.take(timeline);
            let paths = paths.as_ref();
            let examples =
                paths.map(|paths| timeline.examples(paths, &path_reports, walked, &name));
            let mut report = timeline.report(walked, &devices, paths, span);
            // What guests' tasks show by slices of time stands behind the host's lanes.
            let lanes = guest_tasks.as_ref();
            if let Some((lanes, names)) = lanes.and_then(|tasks| tasks.get_mut().take_lanes()) {
                report.add_guests(lanes, &names);
            }
            report.resumes = std::mem::take(&mut answers.resumes);
            (report, examples.unwrap_or_default())
        });
        let (timeline, examples) = drawn.unzip();
        let vcpus = answers.take(handles.vcpus);
        let waits = waits(&vcpus, walked.machine, &recorder);
        let mut vcpu_report = vcpus.report(walked);
        name_causes(&mut vcpu_report, &devices);
        if let Some(tasks) = &guest_tasks {
            vcpu_report.with_guests(&tasks.get(), walked);
        }
        let irqs = handles.irqs.map(|one| answers.take(one));
        let counters = handles.counters.map(|one| answers.take(one));
        let continuity = handles.continuity.map(|one| answers.take(one).report());
        Picture {
            timeline,
            examples: examples.unwrap_or_default(),
            paths: path_reports,
            isa,
            exits: named(reports, &devices),
            guest_exits: guest_exits
                .map(|exits| named(exits.reports(walked.machine), &devices))
                .unwrap_or_default(),
            vcpus: Some(vcpu_report),
            sched,
            waits,
            recorder,
            stalls: Some(answers.take(handles.stalls).report(walked.machine)),
            ipis: answers.take(handles.ipis).report(),
            irqs: irqs.map(|one| one.report(walked)).unwrap_or_default(),
            counters: counters.map(|one| one.report(walked)).unwrap_or_default(),
            faults: Some(answers.take(handles.faults).report()),
            timers: Some(answers.take(handles.timers).report()),
            handling: answers.take(handles.handling).report(walked.machine),
            moves: answers.take(handles.moves).report(),
            progress: answers.take(handles.progress).report(),
            unmaps: answers.take(handles.unmaps).report(walked),
            nested: answers.take(handles.nested).report(),
            vmm_sleeps: answers.take(handles.vmm_sleeps).report(walked.machine),
            main_loops: answers.take(handles.main_loops).report(walked.machine),
            idle: answers.take(handles.idle).report(walked.machine),
            tasks,
            left_out: walked.left_out.clone(),
            sleeps,
            signs: answers.take(handles.signs).report(walked.counts),
            continuity: continuity.unwrap_or_default(),
            series: std::mem::take(&mut answers.series),
            span_ns: Some(span.1.saturating_sub(span.0)),
            info,
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

    /// Returns what its parts count, by which two recordings are compared: a part is a line.
    pub fn part_counts(&self) -> Vec<PartCounts> {
        [self.irqs.counts()].into_iter().flatten().collect()
    }

    /// Returns a table of exits.
    pub fn table(&self, table: ExitTable) -> Option<&ExitsReport> {
        self.exits.iter().find(|report| report.table == table)
    }

    /// Returns the rows of a table of exits.
    pub fn rows(&self, table: ExitTable) -> &[ExitRow] {
        self.table(table).map_or(&[], |report| &report.rows)
    }

    /// Returns the rows of a table of exits by what guests did.
    pub fn guest_rows(&self, table: ExitTable) -> &[ExitRow] {
        let mut tables = self.guest_exits.iter();
        let found = tables.find(|report| report.table == table);
        found.map_or(&[], |report| &report.rows)
    }

    /// Returns the exits of a reason that goes by one of these names.
    pub fn reason(&self, names: &[&str]) -> Vec<&ExitRow> {
        let rows = self.rows(ExitTable::Vmexit).iter();
        rows.filter(|row| names.contains(&row.key.as_str()))
            .collect()
    }

    /// Returns the exits of a class, on any architecture.
    pub fn exits_of_class(&self, class: ExitClass) -> Vec<&ExitRow> {
        self.exits_that(|reason| reason.class() == class)
    }

    /// Returns the exits whose reason answers a question with yes.
    pub fn exits_that(&self, ask: impl Fn(ExitReason) -> bool) -> Vec<&ExitRow> {
        let rows = self.rows(ExitTable::Vmexit).iter();
        rows.filter(|row| row.reason.is_some_and(&ask)).collect()
    }

    /// Returns how many events of a name were recorded, whatever their subsystem; `None` if the recording does not say
    /// that any were asked for.
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
        about.map(|count| count.count).fold(0, u64::saturating_add)
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
    /// they were not, `None` where that is not known.
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

    /// Returns whether vCPUs are known by names and facts alone: the recording has no exit and no entry.
    pub fn presumes_vcpus(&self) -> bool {
        self.vcpus
            .as_ref()
            .is_some_and(|report| report.seen.presumed)
    }

    /// Returns the time in which vCPUs had something to do: observed and neither halted nor polling. Where no event of
    /// KVM shows that, it is the time in which they had a CPU or waited for one.
    pub fn busy_ns(&self) -> u64 {
        if self.presumes_vcpus() {
            let vcpus = self.vcpus.iter().flat_map(|report| &report.rows);
            let vcpus: HashSet<i32> = vcpus.map(|row| row.tid).collect();
            let tasks = self.sched.iter().flat_map(|report| &report.rows);
            let ran = tasks.filter(|task| vcpus.contains(&task.tid));
            let ran = ran.map(|task| task.on_cpu_ns).fold(0, u64::saturating_add);
            return ran.saturating_add(self.state_ns(State::Runnable));
        }
        let idle = self
            .state_ns(State::Halted)
            .saturating_add(self.state_ns(State::Poll));
        self.observed_ns().saturating_sub(idle)
    }

    /// Returns all latency paths, those through guests last.
    pub fn all_paths(&self) -> impl Iterator<Item = &PathReport> {
        self.paths.iter().chain(&self.guest_paths)
    }

    /// Returns a path of the host.
    pub fn path(&self, name: &str) -> Option<&PathReport> {
        self.paths
            .iter()
            .find(|path| path.name == name && path.count > 0)
    }
}

/// Gives tables the names of devices.
fn named(mut reports: Vec<ExitsReport>, devices: &AddressNames) -> Vec<ExitsReport> {
    for report in &mut reports {
        name_rows(report, devices);
    }
    reports
}

/// Returns what the scheduler did, and the threads of it that filters ask for, where they choose any.
fn scheduling(
    sched: SchedLatencies,
    walked: &WalkState<'_>,
    info: &InfoReport,
    context: PictureContext<'_>,
) -> (Option<SchedReport>, Option<HashSet<i32>>) {
    // A cause may be any task, but for the vCPUs of which nobody asked. Where there are no VMs tasks are asked for.
    let host = info.vms.is_empty();
    let of_case = |tid: i32, pid: Option<i32>| match context.keep {
        Some(keep) if host => keep(tid, pid),
        _ => !walked.left_out.has(tid),
    };
    let threads = walked.machine.threads();
    let report = sched
        .saw_switches()
        .then(|| sched.report(threads, Merge::No, &of_case, context.functions));
    let tasks = context.keep.map(|keep| {
        let rows = report.iter().flat_map(|report| &report.rows);
        let rows = rows.filter(|row| keep(row.tid, row.pid));
        rows.map(|row| row.tid).collect()
    });
    (report, tasks)
}

/// Returns where tasks slept, if stacks show it; where tasks are asked for, of those alone.
fn sleeping(
    sleeps: &Sleeps,
    walked: &WalkState<'_>,
    asked: Option<&HashSet<i32>>,
    functions: KernelFunctions<'_>,
) -> Option<Vec<SleepRow>> {
    if !sleeps.saw_stacks() {
        return None;
    }
    let mut rows = sleeps.report(walked.machine.threads(), functions);
    if let Some(asked) = asked {
        rows.retain(|row| asked.contains(&row.tid));
    }
    Some(rows)
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
