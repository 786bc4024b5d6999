//! Scheduling latency: how long tasks waited for a CPU, who woke them, who ran in their place.
//!
//! Count, mean and maximum of a task's delays, and its run time, are those of `perf sched latency`
//! (`tools/perf/builtin-sched.c`, 6.1): a delay is from `sched_wakeup`, or from leaving a CPU with state 0, to
//! getting one; a task that is seen getting its CPU first counts a delay of nothing. What perf leaves out, the waits
//! of tasks that were preempted, is counted apart from that.

mod report;
mod task;
mod work;

use std::collections::VecDeque;
use std::ops::Range;

use event::sched::Leaves;
use event::{Body, Data, Event, EventType, KERNEL_STACK, Kind, Side};
use model::{Machine, Threads};
use rustc_hash::FxHashMap;
use task::{Sums, Task};
use work::{Function, StackOf, Work, function_in};

pub use report::{CpuRow, Merge, Other, SchedReport, TaskRow, WorkRow};

use crate::analysis::{Analysis, Context, Needs, Walked, Want};
use crate::series::Measured;
use crate::slices::Amount;
use crate::{OTHERS, Stats};

/// Tasks that have a row of their own. When there are more, those that ended first are one row together, called
/// [`OTHERS`], and so are those that come when none has ended. No kernel runs more at once on the machines that VMs run on; over
/// time there may be millions, each of a few milliseconds.
pub const MAX_TASKS: usize = 1 << 16;
/// Stands for a task's slot where those without a row are meant.
const OTHERS_SLOT: u32 = u32::MAX;

/// What is counted by slices of time: a task's delays, and how long it ran.
const DELAYS: u8 = 0;
const RAN: u8 = 1;

/// One CPU.
#[derive(Debug, Clone, Default)]
struct Cpu {
    switches: u64,
    /// Task that runs, and since when.
    current: Option<(u32, u64)>,
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

/// Which kinds of events there are.
#[derive(Debug, Clone, Copy, Default)]
struct Has {
    switches: bool,
    wakeups: bool,
    wakings: bool,
    runtimes: bool,
    migrations: bool,
}

/// Collects scheduling latencies.
#[derive(Debug)]
pub struct Sched {
    /// By thread slot.
    tasks: Vec<Task>,
    /// How many have sums of their own, and how many may.
    own: usize,
    most: usize,
    /// Those that ended and have sums of their own, in the order of their ends.
    ended: VecDeque<u32>,
    /// What is counted of those that have not.
    others: Sums,
    /// What of that was counted when it was of a task of its own.
    folded: Folded,
    cpus: Vec<Cpu>,
    functions: FxHashMap<Function, u32>,
    work: Vec<Work>,
    /// The stack that a text tells line by line, if it is a kworker's.
    stack: Option<StackOf>,
    /// Addresses of the function that calls those of work items.
    caller: Option<Range<u64>>,
    has: Has,
    end: u64,
    /// From when on events of some CPUs are missing, and not those of others.
    uneven_from: Option<u64>,
}

/// What was counted of tasks before they became others.
#[derive(Debug, Clone, Copy, Default)]
struct Folded {
    delays: Amount,
    ran_ns: u64,
}

impl Default for Sched {
    fn default() -> Sched {
        Sched::with_rows(MAX_TASKS)
    }
}

impl Sched {
    /// Returns a collector that has seen nothing.
    pub fn new() -> Sched {
        Sched::default()
    }

    /// Returns one that keeps so many tasks apart at most.
    fn with_rows(most: usize) -> Sched {
        Sched {
            tasks: Vec::new(),
            own: 0,
            most,
            ended: VecDeque::new(),
            others: Sums::default(),
            folded: Folded::default(),
            cpus: Vec::new(),
            functions: FxHashMap::default(),
            work: Vec::new(),
            stack: None,
            caller: None,
            has: Has::default(),
            end: 0,
            uneven_from: None,
        }
    }

    /// Returns whether any task was seen getting a CPU.
    pub fn saw_switches(&self) -> bool {
        self.has.switches
    }

    /// Tells the sums so far of every task.
    fn sums(&self, tell: &mut dyn FnMut(u8, u32, Amount)) {
        let mut running = 0u64;
        let mut told = |slot: u32, sums: &Sums, running_ns: u64, before: Folded| {
            let delays = Amount {
                count: sums.delays.count().saturating_sub(before.delays.count),
                ns: sums.delays.total().saturating_sub(before.delays.ns),
            };
            let on_cpu_ns = sums.on_cpu_ns.saturating_add(running_ns);
            let ns = sums.runtime_ns.max(on_cpu_ns).saturating_sub(before.ran_ns);
            tell(DELAYS, slot, delays);
            tell(RAN, slot, Amount { count: 0, ns });
        };
        for (task, slot) in self.tasks.iter().zip(0u32..) {
            let (running_ns, _) = self.under_way(task);
            match &task.own {
                Some(own) => told(slot, own, running_ns, Folded::default()),
                None => running = running.saturating_add(running_ns),
            }
        }
        // What tasks did before they became others was told as theirs.
        if self.own == self.most {
            told(OTHERS_SLOT, &self.others, running, self.folded);
        }
    }

    /// Returns up to when what a CPU was last seen doing is what it did: all of its events may not be there.
    fn known_until(&self, cpu: i32) -> u64 {
        let Some(from) = self.uneven_from else {
            return self.end;
        };
        let cpu = usize::try_from(cpu).ok().and_then(|cpu| self.cpus.get(cpu));
        from.max(cpu.map_or(0, |cpu| cpu.last)).min(self.end)
    }

    /// Returns for how long a task has been running, and away from its CPU, beside what is counted.
    fn under_way(&self, task: &Task) -> (u64, u64) {
        // Away from one CPU it may have gone on on any.
        let away_until = self.uneven_from.map_or(self.end, |from| from.min(self.end));
        (
            task.running_ns(self.known_until(task.cpu())),
            task.away_ns(away_until),
        )
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

    /// Returns a task, and the sums of those that have none of their own.
    #[inline]
    fn task(&mut self, slot: u32) -> (&mut Task, &mut Sums) {
        let index = slot as usize;
        if self.tasks.len() <= index {
            self.tasks.resize_with(index + 1, Task::default);
        }
        if !self.tasks[index].met {
            self.meet(index);
        }
        (&mut self.tasks[index], &mut self.others)
    }

    /// Gives a task sums of its own, if there is room, or one that ended can make room.
    #[cold]
    fn meet(&mut self, index: usize) {
        if self.own < self.most {
            self.own += 1;
            self.tasks[index].own = Some(Box::default());
        } else if let Some(mut own) = self.make_room() {
            self.folded.delays.count += own.delays.count();
            self.folded.delays.ns = self.folded.delays.ns.saturating_add(own.delays.total());
            let ran = own.runtime_ns.max(own.on_cpu_ns);
            self.folded.ran_ns = self.folded.ran_ns.saturating_add(ran);
            self.others.merge(&own);
            *own = Sums::default();
            self.tasks[index].own = Some(own);
        }
        self.tasks[index].met = true;
    }

    /// Takes the sums of the task that ended first.
    fn make_room(&mut self) -> Option<Box<Sums>> {
        loop {
            let ended = self.ended.pop_front()?;
            // One whose thread id was used again may have ended twice.
            if let Some(own) = self.tasks[ended as usize].own.take() {
                return Some(own);
            }
        }
    }

    /// A task has ended: nothing comes after it, but what the end of its process may tell of it.
    fn ended(&mut self, slot: u32) {
        if let Some(own) = self.tasks[slot as usize].own.as_deref_mut() {
            own.settle();
            self.ended.push_back(slot);
        }
    }

    fn cpu(&mut self, cpu: i32) -> Option<&mut Cpu> {
        let index = event::cpu_index(cpu)?;
        if self.cpus.len() <= index {
            self.cpus.resize_with(index + 1, Cpu::default);
        }
        self.cpus.get_mut(index)
    }

    fn switch(&mut self, event: &Event<'_>, switch: &event::sched::SchedSwitch, machine: &Machine) {
        self.has.switches = true;
        let model::Tasks { prev, task: next } = machine.tasks();
        let time = event.time;
        let (task, others) = self.task(prev);
        task.leaves(others, time, switch.prev_state, next);
        if switch.prev_state.leaves() == Leaves::Dead && switch.prev_tid != 0 {
            self.ended(prev);
        }
        let (task, others) = self.task(next);
        let delay = task.gets(others, time, event.cpu);
        let next_idle = switch.next_tid == 0;
        let prev_idle = switch.prev_tid == 0;
        let Some(cpu) = self.cpu(event.cpu) else {
            return;
        };
        cpu.switches += 1;
        if let Some((current, since)) = cpu.current {
            let ns = time.saturating_sub(since);
            if current != prev {
                // A switch in between was not seen.
                cpu.unseen += 1;
                cpu.unknown_ns = cpu.unknown_ns.saturating_add(ns);
            } else if prev_idle {
                cpu.idle_ns = cpu.idle_ns.saturating_add(ns);
            } else {
                cpu.busy_ns = cpu.busy_ns.saturating_add(ns);
            }
        }
        cpu.current = Some((next, time));
        if let Some(delay) = delay
            && !next_idle
        {
            if delay > cpu.delays.max() || cpu.worst.is_none() {
                cpu.worst = Some((next, time - delay));
            }
            cpu.delays.add(delay);
        }
    }

    fn wakes(
        &mut self,
        event: &Event<'_>,
        wakeup: &event::sched::SchedWakeup,
        waking: bool,
        machine: &mut Machine,
    ) {
        let task = machine.tasks().task;
        if waking {
            self.has.wakings = true;
            // On its run queue it is with sched_wakeup, if that is recorded.
            if !self.has.wakeups {
                self.task(task).0.wakes(event.time, false);
            }
        } else {
            // The first one corrects what its sched_waking was taken for. That of a new task says nothing of others: perf
            // sched record takes it along with sched_waking.
            let of_all = event.ty.kind == Kind::SchedWakeup;
            let first = of_all && !self.has.wakeups;
            self.has.wakeups |= of_all;
            let (woken, _) = self.task(task);
            woken.woken(event.time);
            woken.wakes(event.time, first);
            if let Some(cpu) = wakeup.target_cpu.and_then(|cpu| self.cpu(cpu)) {
                cpu.wakeups += 1;
            }
        }
        // A remote wake-up is finished on the CPU of the task that is woken: who began it sched_waking knows.
        if waking || !self.has.wakings {
            let waker = machine.slot(event.tid);
            let (task, others) = self.task(task);
            task.woken_by(others, waker);
        }
    }
}

impl Sched {
    /// Takes an event of a CPU that was not asked for: what it tells counts nothing, and ends what was under way, so that no
    /// wait is taken for one that ends with a later event.
    fn elsewhere(&mut self, data: &Data, time: u64, of: model::Tasks) {
        match data {
            Data::SchedSwitch(switch) => {
                if let Some(task) = self.met(of.prev) {
                    task.leaves_elsewhere(time, switch.prev_state.leaves());
                }
                if let Some(task) = self.met(of.task) {
                    task.gets_elsewhere();
                }
            }
            Data::SchedWaking(_) if self.has.wakeups => {}
            Data::SchedWaking(_) | Data::SchedWakeup(_) => {
                if let Some(task) = self.met(of.task) {
                    task.woken_elsewhere();
                }
            }
            _ => {}
        }
    }

    /// Returns a task that something was counted of.
    fn met(&mut self, slot: u32) -> Option<&mut Task> {
        let task = self.tasks.get_mut(slot as usize);
        task.filter(|task| task.met)
    }

    fn take(&mut self, event: &Event<'_>, data: &Data, machine: &mut Machine) {
        self.end = self.end.max(event.time);
        if let Some(cpu) = self.cpu(event.cpu) {
            cpu.last = cpu.last.max(event.time);
        }
        if let Some(comm) = event.comm {
            // Texts have the names that their recording told apart from its events.
            machine.called(event.tid, comm);
        }
        self.stack_begins(event, machine.threads());
        match data {
            Data::SchedSwitch(switch) => self.switch(event, switch, machine),
            Data::SchedWaking(wakeup) => self.wakes(event, wakeup, true, machine),
            Data::SchedWakeup(wakeup) => self.wakes(event, wakeup, false, machine),
            Data::SchedStatRuntime(runtime) => {
                self.has.runtimes = true;
                let (task, others) = self.task(machine.tasks().task);
                task.ran(others, event.time, runtime.runtime_ns);
            }
            Data::SchedMigrateTask(_) => {
                self.has.migrations = true;
                let (task, others) = self.task(machine.tasks().task);
                task.migrates(others);
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

impl Analysis for Sched {
    fn needs(&self) -> Needs {
        Needs {
            threads: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> Want {
        match ty.kind {
            Kind::SchedWaking => self.has.wakings |= ty.recorded,
            // A text asks when it comes upon the first one, and others ask before they begin.
            Kind::SchedWakeup => self.has.wakeups |= ty.recorded && self.end == 0,
            Kind::SchedMigrateTask => self.has.migrations |= ty.recorded,
            Kind::SchedStatRuntime => self.has.runtimes |= ty.recorded,
            Kind::WorkqueueExecuteStart | Kind::WorkqueueExecuteEnd => return Want::Thread,
            Kind::Other if ty.name == KERNEL_STACK => {}
            kind if kind.is_sched() => {}
            _ => return Want::Nothing,
        }
        Want::Order
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        if context.chosen.inside {
            self.take(event, data, context.machine);
        } else if context.chosen.in_time {
            self.elsewhere(data, event.time, context.machine.tasks());
        }
    }

    fn side(&mut self, side: &Side<'_>) {
        if let Side::Cut { from } = *side {
            self.uneven_from = Some(from);
        }
        if let Side::StackLine(frame) = side
            && let Some(symbol) = frame.symbol
        {
            self.stack_line(symbol);
        }
    }

    fn counters(&self, _: &Walked<'_>, tell: &mut dyn FnMut(u8, u32, Amount)) {
        self.sums(tell);
    }

    fn measured(&self, part: u8, number: u32, walked: &Walked<'_>) -> Option<Measured> {
        let comm = Sched::comm_of(number, walked.machine.threads())?;
        Some(match part {
            DELAYS => Measured::Delays(comm),
            _ => Measured::Ran(comm),
        })
    }
}

#[cfg(test)]
#[path = "many_tasks.rs"]
mod many_tasks;

#[cfg(test)]
mod tests {
    use event::{Decoder, NONE};
    use symbols::KernelFunctions;
    use tracefmt::{FormatCatalog, Kallsyms};

    use super::*;
    use crate::Merge;

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
        let mut sched = Sched::new();
        assert_eq!(sched.wants(&ty), Want::Order);
        let mut machine = Machine::new();
        machine.saved_names([(45, "kworker/1:1"), (83, "opt")]);
        sched.caller_at(Some(0x1000..0x1100));
        let mut stack = |tid: i32, addresses: &[u64]| {
            let mut record = vec![0; 16];
            for address in addresses {
                record.extend_from_slice(&address.to_le_bytes());
            }
            let event = Event {
                time: 1,
                cpu: 0,
                tid,
                pid: NONE,
                ty: &ty,
                body: Body::Raw(&record),
                sample: None,
                buffer: 0,
                comm: None,
            };
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
