//! Scheduling latency: how long tasks waited for a CPU, who woke them, who ran in their place.
//!
//! Count, mean and maximum of a task's delays, and its run time, are those of `perf sched latency`
//! (`tools/perf/builtin-sched.c`, 6.1): a delay is from `sched_wakeup`, or from leaving a CPU with state 0, to
//! getting one; a task that is seen getting its CPU first counts a delay of nothing. What perf leaves out, the waits
//! of tasks that were preempted, is counted apart from that. [`DelayConvention::Perf612`] counts as later ones do.

mod asked;
mod cell;
mod report;
mod task;
mod work;

use std::ops::Range;

use event::{Body, Data, Event, Kind};
use model::{
    BySlot, CpuSpan, CpuSwitch, Machine, RetiredThreads, RunState, TaskChanges, TaskSpan,
    TaskStates, TaskWakeup, Threads,
};
use rustc_hash::FxHashMap;
use task::{SchedSums, SchedTask};
use work::{Function, StackOf, WorkSums, function_in};

pub use cell::SchedColumn;
pub use report::{
    CpuRow, LongestWait, Merge, OtherTask, SchedKinds, SchedReport, TaskRow, WorkRow,
};

use crate::chosen::Window;
use crate::slices::Amount;
use crate::{OTHERS, Stats};

/// Stands for a task's slot where those without a row are meant.
const OTHERS_SLOT: u32 = u32::MAX;

/// What is counted by slices of time: a task's delays, and how long it ran.
const DELAYS: u8 = 0;
const RAN: u8 = 1;

/// One CPU.
#[derive(Debug, Clone, Default)]
struct CpuSums {
    switches: u64,
    /// Time of its last event.
    last: u64,
    busy_ns: u64,
    idle_ns: u64,
    /// Time in which a switch was missed, and how often one was.
    unknown_ns: u64,
    unseen: u64,
    wakeups: u64,
    delays: Stats,
    /// The task that waited longest, and since when.
    worst: Option<(u32, u64)>,
}

/// Whose delays are counted: perf changed what a delay is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DelayConvention {
    /// Those of perf up to 6.8: a delay begins at `sched_wakeup`, and a task that is preempted in the kernel (`R+`)
    /// waits for nothing.
    #[default]
    Perf61,
    /// Those of perf since 6.12: it begins at `sched_waking` where that is recorded, and at any preemption (the latter
    /// since 6.9, `evsel__taskstate`).
    Perf612,
}

impl DelayConvention {
    /// Returns what it is called on the command line and in documents.
    pub fn name(self) -> &'static str {
        match self {
            DelayConvention::Perf61 => "perf-6.1",
            DelayConvention::Perf612 => "perf-6.12",
        }
    }
}

/// Which kinds of events there are.
#[derive(Debug, Clone, Copy, Default)]
struct RecordedKinds {
    switches: bool,
    /// Switches away from an idle task: then switches to threads were recorded, and not those away from some of them
    /// alone.
    from_idle: bool,
    wakeups: bool,
    wakings: bool,
    runtimes: bool,
    migrations: bool,
    /// `workqueue_execute_start`.
    work: bool,
}

/// Collects scheduling latencies.
#[derive(Debug, Clone, Default)]
pub struct SchedLatencies {
    convention: DelayConvention,
    /// Switches of which the CPU is not known.
    without_cpu: u64,
    /// By thread slot.
    tasks: BySlot<SchedTask>,
    /// What was counted of those that are not kept apart any more ([`model::StateLimits`]), and how many they are.
    others: SchedSums,
    other_tasks: u64,
    cpus: Vec<CpuSums>,
    functions: FxHashMap<Function, u32>,
    work: Vec<WorkSums>,
    /// The stack that a text has line by line, if it is a kworker's.
    stack: Option<StackOf>,
    /// Addresses of the function that calls those of work items.
    caller: Option<Range<u64>>,
    has: RecordedKinds,
    /// Whether what was under way at the end has been counted.
    finished: bool,
    end: u64,
    /// From when on events of some CPUs are missing, and not those of others.
    uneven_from: Option<u64>,
}

impl CpuSums {
    /// Counts what it did.
    fn ran(&mut self, ran: &CpuSpan, until: u64) {
        let ns = until.saturating_sub(ran.start);
        let sum = match ran.thread {
            Some(_) if ran.idle => &mut self.idle_ns,
            Some(_) => &mut self.busy_ns,
            // A switch in between was not seen.
            None => {
                self.unseen += 1;
                &mut self.unknown_ns
            }
        };
        *sum = sum.saturating_add(ns);
    }
}

/// Returns since when a task without a CPU is away from it: since it left it, if that was asked for, or else since it
/// was woken.
fn away_since(span: &TaskSpan, window: &Window) -> Option<u64> {
    let left = span.left.filter(|&(time, cpu)| window.has(time, cpu));
    let began = window.has(span.since, span.began_on).then_some(span.since);
    left.map(|(time, _)| time).or(began)
}

impl SchedLatencies {
    /// Returns a collector that has seen nothing.
    pub fn new() -> SchedLatencies {
        SchedLatencies::default()
    }

    /// Counts delays as another version of perf does.
    pub fn count_as(&mut self, convention: DelayConvention) {
        self.convention = convention;
    }

    /// Returns whether a delay begins with a wake-up of this event.
    fn counts(&self, wakeup: &TaskWakeup) -> bool {
        match self.convention {
            DelayConvention::Perf61 => !wakeup.waking,
            DelayConvention::Perf612 => wakeup.of_new || wakeup.waking == self.has.wakings,
        }
    }

    /// Returns whether any task was seen getting a CPU.
    pub fn saw_switches(&self) -> bool {
        self.has.switches
    }

    /// Reports the sums so far of every task.
    fn sums(&self, tasks: &TaskStates, window: &Window, report: &mut dyn FnMut(u8, u32, Amount)) {
        let mut report_task = |slot: u32, sums: &SchedSums, running_ns: u64| {
            let delays = Amount {
                count: sums.delays.count(),
                ns: sums.delays.total(),
            };
            let on_cpu_ns = sums.on_cpu_ns.saturating_add(running_ns);
            let ns = sums.runtime_ns.max(on_cpu_ns);
            report(DELAYS, slot, delays);
            report(RAN, slot, Amount { count: 0, ns });
        };
        for (slot, task) in self.tasks.iter() {
            let open = tasks.open(slot, self.end).filter(|_| !self.finished);
            let running_ns = open.map_or(0, |span| self.under_way(&span, window).0);
            report_task(slot, &task.own, running_ns);
        }
        if self.other_tasks > 0 {
            report_task(OTHERS_SLOT, &self.others, 0);
        }
    }

    /// Returns up to when what a CPU was last seen doing is what it did: all of its events may not be there.
    fn known_until(&self, cpu: i32) -> u64 {
        let Some(from) = self.uneven_from else {
            return self.end;
        };
        let cpu = event::cpu_index(cpu).and_then(|cpu| self.cpus.get(cpu));
        from.max(cpu.map_or(0, |cpu| cpu.last)).min(self.end)
    }

    /// Returns for how long a task has been running, and away from its CPU, in a span that is under way when what was
    /// asked for ends.
    fn under_way(&self, span: &TaskSpan, window: &Window) -> (u64, u64) {
        if span.state == RunState::Running {
            let began = window.has(span.since, span.began_on);
            let until = self.known_until(span.cpu);
            let ns = until.saturating_sub(span.since);
            return (if began { ns } else { 0 }, 0);
        }
        // Away from one CPU it may have gone on on any.
        let until = self.uneven_from.map_or(self.end, |from| from.min(self.end));
        let since = away_since(span, window);
        (0, since.map_or(0, |since| until.saturating_sub(since)))
    }

    /// Returns the name of the task that a sum is of; the idle tasks have none.
    fn comm_of(slot: u32, threads: &Threads) -> Option<String> {
        if slot == OTHERS_SLOT {
            return Some(OTHERS.to_owned());
        }
        let (tid, thread) = threads.at(slot).filter(|(tid, _)| *tid != 0)?;
        let comm = thread.comm.as_deref();
        Some(comm.map_or_else(|| format!(":{tid}"), str::to_owned))
    }

    /// Returns a task.
    #[inline]
    fn task(&mut self, slot: u32) -> &mut SchedTask {
        self.tasks.entry(slot, SchedTask::default)
    }

    /// Adds tasks to the others that are not kept apart any more.
    fn fold(&mut self, retired: &RetiredThreads) {
        for (_, task) in self.tasks.iter_mut() {
            task.own.retire(retired);
        }
        for cpu in &mut self.cpus {
            if let Some((slot, _)) = &mut cpu.worst
                && retired.has_slot(*slot)
            {
                *slot = OTHERS_SLOT;
            }
        }
        for slot in retired.slots() {
            let Some(task) = self.tasks.remove(slot) else {
                continue;
            };
            self.other_tasks += u64::from(task.has_atoms());
            self.others.merge(&task.own);
        }
    }

    fn cpu(&mut self, cpu: i32) -> Option<&mut CpuSums> {
        let index = event::cpu_index(cpu)?;
        if self.cpus.len() <= index {
            self.cpus.resize_with(index + 1, CpuSums::default);
        }
        self.cpus.get_mut(index)
    }

    /// Takes what an event that was asked for changed.
    fn changed(&mut self, changes: &TaskChanges, window: &Window) {
        for span in &changes.tasks {
            let away_ns =
                away_since(span, window).map_or(0, |since| span.end.saturating_sub(since));
            let whole = window.has(span.since, span.began_on);
            self.task(span.thread).did(span, whole, away_ns);
        }
        if let Some(switch) = &changes.switch {
            let ran = changes.cpu.filter(|ran| window.has_time(ran.start));
            self.switch(switch, ran);
        }
        if let Some(wakeup) = &changes.wakeup {
            self.wakes(wakeup);
        }
    }

    fn switch(&mut self, switch: &CpuSwitch, ran: Option<CpuSpan>) {
        self.has.switches = true;
        self.has.from_idle |= switch.prev_idle;
        let (time, next) = (switch.time, switch.next);
        // The kernel has a bit of its own for a task that is preempted, beyond those of the states that it reports.
        let runnable = match self.convention {
            DelayConvention::Perf61 => switch.left_as.0 == 0,
            DelayConvention::Perf612 => switch.left_as.0 & 0xff == 0,
        };
        self.task(switch.prev).leaves(time, runnable);
        let delay = self.task(next).gets(time, switch.cpu);
        let Some(cpu) = self.cpu(switch.cpu) else {
            self.without_cpu += 1;
            return;
        };
        cpu.switches += 1;
        if let Some(ran) = ran {
            cpu.ran(&ran, ran.end);
        }
        if let Some(delay) = delay
            && !switch.next_idle
        {
            if delay > cpu.delays.max() || cpu.worst.is_none() {
                cpu.worst = Some((next, time - delay));
            }
            cpu.delays.add(delay);
        }
    }

    fn wakes(&mut self, wakeup: &TaskWakeup) {
        let counts = self.counts(wakeup);
        let task = self.task(wakeup.task);
        if let Some(waker) = wakeup.waker {
            task.woken_by(waker);
        }
        if counts {
            task.woken(wakeup.time);
        }
        if !wakeup.waking
            && let Some(cpu) = wakeup.target_cpu.and_then(|cpu| self.cpu(cpu))
        {
            cpu.wakeups += 1;
        }
    }

    /// Counts what was under way when what was asked for ended: what an event behind that has ended, or none.
    fn still(&mut self, span: &TaskSpan, window: &Window) {
        if window.has_time(span.start) {
            let (running_ns, away_ns) = self.under_way(span, window);
            if running_ns > 0 || away_ns > 0 {
                self.task(span.thread).does(running_ns, away_ns);
            }
        }
    }

    /// Counts what a CPU was still doing then.
    fn still_runs(&mut self, ran: &CpuSpan, window: &Window) {
        let until = self.known_until(ran.cpu);
        if ran.thread.is_some()
            && window.has(ran.start, ran.cpu)
            && let Some(cpu) = self.cpu(ran.cpu)
        {
            cpu.ran(ran, until);
        }
    }

    /// Takes what an event of a CPU changed that was not asked for: that counts nothing, and ends what perf thinks
    /// was under way, so that no wait is taken for one that ends with a later event.
    fn elsewhere(&mut self, changes: &TaskChanges) {
        if let Some(switch) = changes.switch {
            if let Some(task) = self.met(switch.prev) {
                task.leaves_elsewhere(switch.time, switch.left_as.leaves());
            }
            if let Some(task) = self.met(switch.next) {
                task.gets_elsewhere();
            }
        }
        if let Some(wakeup) = changes.wakeup
            && match self.convention {
                DelayConvention::Perf61 => !(wakeup.waking && self.has.wakeups),
                DelayConvention::Perf612 => self.counts(&wakeup),
            }
            && let Some(task) = self.met(wakeup.task)
        {
            task.woken_elsewhere();
        }
    }

    /// Returns a task that something was counted of.
    fn met(&mut self, slot: u32) -> Option<&mut SchedTask> {
        self.tasks.get_mut(slot)
    }

    fn take(&mut self, event: &Event<'_>, data: &Data, machine: &mut Machine) {
        self.end = self.end.max(event.time);
        if let Some(cpu) = self.cpu(event.cpu) {
            cpu.last = cpu.last.max(event.time);
        }
        if let Some(comm) = event.comm {
            // Texts have the names that their recording has apart from its events.
            machine.called(event.tid, comm);
        }
        self.stack_begins(event, machine.threads());
        self.has.wakings |= event.ty.kind == Kind::SchedWaking;
        self.has.wakeups |= event.ty.kind == Kind::SchedWakeup;
        match data {
            Data::SchedStatRuntime(runtime) => {
                self.has.runtimes = true;
                let task = self.task(machine.tasks().task);
                task.ran(event.time, runtime.runtime_ns);
            }
            Data::SchedMigrateTask(_) => {
                self.has.migrations = true;
                self.task(machine.tasks().task).migrates();
            }
            Data::WorkqueueExecuteStart(work) => {
                self.work_begins(event, Function::Address(work.function), machine);
            }
            Data::WorkqueueExecuteEnd(_) => self.work_ends(event, machine),
            _ => {
                if let Body::Text { text, .. } = event.body {
                    match event.ty.kind {
                        Kind::WorkqueueExecuteStart => {
                            if let Some(name) = function_in(text) {
                                self.work_begins(event, Function::Name(name.into()), machine);
                            }
                        }
                        Kind::WorkqueueExecuteEnd => self.work_ends(event, machine),
                        _ => {}
                    }
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "many_tasks.rs"]
mod many_tasks;

#[cfg(test)]
mod tests {
    use event::{Decoder, EventType, KERNEL_STACK};
    use symbols::KernelFunctions;
    use tracefmt::{FormatCatalog, Kallsyms};

    use super::*;
    use crate::Merge;
    use crate::analysis::{Analysis, EventDetail};

    const FORMAT: &[u8] = b"name: kernel_stack
ID: 4
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;
\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;

print fmt: \"stack\"
";

    #[test]
    fn stacks_of_addresses_tell_what_a_kworker_runs() {
        let mut formats = FormatCatalog::default();
        formats.add("ftrace", FORMAT);
        let ty = EventType {
            index: 0,
            machine: 0,
            system: "ftrace",
            name: KERNEL_STACK,
            label: KERNEL_STACK,
            kind: Kind::Other,
            format: formats.by_id(4),
            decoder: Decoder::default(),
            recorded: true,
        };
        let mut sched = SchedLatencies::new();
        assert_eq!(sched.wants(&ty), EventDetail::Order);
        let mut machine = Machine::new();
        machine.saved_names([(45, "kworker/1:1"), (83, "opt")]);
        sched.caller_at(Some(0x1000..0x1100));
        let mut stack = |tid: i32, addresses: &[u64]| {
            let mut record = vec![0; 16];
            for address in addresses {
                record.extend_from_slice(&address.to_le_bytes());
            }
            let event = Event::bare(&ty, (1, 0, tid), Body::Raw(&record));
            sched.take(&event, &event.data(), &mut machine);
        };
        stack(45, &[0x9000, 0x2040, 0x1010, 0x3000]);
        stack(45, &[0x9000, 0x2050, 0x10ff]);
        stack(45, &[0x9000, 0x3000]);
        stack(45, &[0x1010]);
        stack(83, &[0x9000, 0x2040, 0x1010]);
        let symbols = Kallsyms::parse(b"2000 T od_dbs_update\n2100 T end\n9000 T last\n");
        let functions = KernelFunctions::new(Some(&symbols), None);
        let report = sched.report(machine.threads(), Merge::No, &|_, _| true, functions);
        let work: Vec<_> = report
            .work
            .iter()
            .map(|w| (w.function.as_str(), w.stacks))
            .collect();
        assert_eq!(work, [("od_dbs_update", 2)]);
    }
}
