//! Where tasks sleep: the stacks with which they leave their CPUs, and how long they are away.
//!
//! perf samples a call chain with `sched_switch` (`perf record -g`), ftrace writes a `kernel_stack` behind it
//! (`options/stacktrace`), and texts print the lines of either below it.

use std::collections::BTreeMap;

use event::sched::Leaves;
use event::{Body, Data, Event, EventType, KERNEL_STACK, Side, index_of, kernel_stack};
use model::{CpuSwitch, Machine, RetiredThreads, SpanEnd, TaskSpan, TaskStates, Threads};
use rustc_hash::FxHashMap;
use symbols::{KernelFunctions, kernel_part};

use crate::Stats;
use crate::analysis::{Analysis, Context, EventDetail, Needs};

/// Different stacks that are counted; what is beyond is not counted.
const MAX_STACKS: usize = 1 << 13;
/// Pairs of task and stack that are counted.
const MAX_ROWS: usize = 1 << 16;
/// Frames of a stack that are kept: the kernel's own `PERF_MAX_STACK_DEPTH`.
const MAX_FRAMES: usize = 127;

/// Functions that are the way into sleep, not its reason, as names begin.
const SCHEDULER: [&str; 12] = [
    "__schedule",
    "schedule",
    "preempt_schedule",
    "__cond_resched",
    "_cond_resched",
    "__traceiter_sched_switch",
    "perf_trace_sched_switch",
    "trace_event_raw_event_sched_switch",
    "ftrace_",
    "__switch_to",
    "io_schedule",
    "wait_woken",
];

/// A stack, innermost frame first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Stack {
    Addresses(Box<[u64]>),
    Names(Box<[Box<str>]>),
}

/// A task asleep with one stack.
#[derive(Debug, Clone, PartialEq)]
pub struct SleepRow {
    /// The task's name, or `:TID`.
    pub comm: String,
    /// Its thread id.
    pub tid: i32,
    /// The kernel's functions, innermost first, without those of the scheduler; an address where nothing names it.
    pub frames: Vec<String>,
    /// How long it slept, each time: until it was woken. What it then waited for a CPU is not in it.
    pub stats: Stats,
}

impl SleepRow {
    /// Returns whether a function is in the stack.
    pub fn has(&self, function: &str) -> bool {
        self.frames.iter().any(|frame| frame == function)
    }
}

/// A task that left its CPU to sleep.
#[derive(Debug, Clone, Copy)]
struct SleepingTask {
    /// When.
    since: u64,
    /// With which stack.
    stack: u32,
    /// When it was woken, as far as that is known.
    woken: Option<u64>,
}

/// Collects where tasks sleep.
#[derive(Debug, Default)]
pub struct Sleeps {
    index: FxHashMap<Stack, u32>,
    rows: FxHashMap<(u32, u32), Stats>,
    /// By task, who sleeps.
    away: FxHashMap<u32, SleepingTask>,
    /// By CPU, the thread and task that left it last, whose stack may follow as an event.
    switched: FxHashMap<i32, (i32, u32, u64)>,
    /// The task that left with the last event of a text, whose stack may follow line by line.
    leaving: Option<(u32, u64)>,
    /// Lines of that stack so far.
    lines: Vec<Box<str>>,
}

impl Sleeps {
    /// Returns a collector that has seen nothing.
    pub fn new() -> Sleeps {
        Sleeps::default()
    }

    /// Returns whether any stack of a task that left its CPU was seen.
    pub fn saw_stacks(&self) -> bool {
        !self.index.is_empty()
    }

    fn stack(&mut self, stack: Stack) -> Option<u32> {
        let next = self.index.len();
        match self.index.get(&stack) {
            Some(number) => Some(*number),
            None if next < MAX_STACKS => {
                self.index.insert(stack, next as u32);
                Some(next as u32)
            }
            None => None,
        }
    }

    fn left(&mut self, task: u32, time: u64, stack: Stack) {
        if let Some(number) = self.stack(stack) {
            let away = SleepingTask {
                since: time,
                stack: number,
                woken: None,
            };
            self.away.insert(task, away);
        }
    }

    /// The lines of a stack end with the next event.
    fn lines_end(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        if let Some((task, time)) = self.leaving.take()
            && !lines.is_empty()
        {
            self.left(task, time, Stack::Names(lines.into()));
        }
    }

    fn take(&mut self, event: &Event<'_>, tasks: &TaskStates) {
        if event.ty.name == KERNEL_STACK {
            // Between an event and its stack others may come, from other CPUs; on its own the next is of another task.
            let Some((tid, task, time)) = self.switched.remove(&event.cpu) else {
                return;
            };
            let stack: Vec<u64> = kernel_stack(event).take(MAX_FRAMES).collect();
            if tid == event.tid && !stack.is_empty() {
                self.left(task, time, Stack::Addresses(stack.into()));
            }
            return;
        }
        self.lines_end();
        if !event.ty.kind.is_sched() {
            return;
        }
        let changes = tasks.changes();
        for span in &changes.tasks {
            self.did(span, true);
        }
        if let Some(switch) = changes.switch {
            self.leaves(event, switch);
        }
    }

    /// A task did something until now. A sleep that its stack is known of counts, if `counts` says so, when the task
    /// gets a CPU.
    fn did(&mut self, span: &TaskSpan, counts: bool) {
        let Some(away) = self.away.get_mut(&span.thread) else {
            return;
        };
        let since_left = span.left.is_some_and(|(time, _)| time == away.since);
        if since_left && span.ended_by != SpanEnd::Missed {
            // What it waits for a CPU after it was woken is no sleep.
            let asleep = span.state.is_blocked();
            away.woken = Some(if asleep { span.end } else { span.since });
        }
        if span.ended_by != SpanEnd::GotCpu {
            return;
        }
        let SleepingTask {
            since,
            stack,
            woken,
        } = *away;
        self.away.remove(&span.thread);
        let row = (span.thread, stack);
        if let Some(ns) = woken.and_then(|woken| woken.checked_sub(since))
            && counts
            && (self.rows.len() < MAX_ROWS || self.rows.contains_key(&row))
        {
            self.rows.entry(row).or_default().add(ns);
        }
    }

    fn leaves(&mut self, event: &Event<'_>, switch: CpuSwitch) {
        self.switched.remove(&event.cpu);
        if switch.prev_idle || switch.left_as.leaves() != Leaves::Blocked {
            return;
        }
        let prev = switch.prev;
        let chain = event.sample.and_then(|sample| {
            let addresses = kernel_part(sample.callchain?).take(MAX_FRAMES);
            Some(addresses.collect::<Vec<u64>>())
        });
        match chain {
            Some(chain) if !chain.is_empty() => {
                self.left(prev, event.time, Stack::Addresses(chain.into()));
            }
            _ if matches!(event.body, Body::Text { .. }) => self.leaving = Some((prev, event.time)),
            _ if event::cpu_index(event.cpu).is_some() => {
                let left = (event.tid, prev, event.time);
                self.switched.insert(event.cpu, left);
            }
            _ => {}
        }
    }

    /// Returns what was found, most time first. `functions` names the kernel's functions.
    pub fn report(&self, threads: &Threads, functions: KernelFunctions<'_>) -> Vec<SleepRow> {
        let mut frames: Vec<Vec<String>> = vec![Vec::new(); self.index.len()];
        for (stack, number) in &self.index {
            if let Some(place) = frames.get_mut(index_of(*number)) {
                *place = words(stack, functions);
            }
        }
        // Stacks that differ in addresses within functions only are one.
        let mut rows: BTreeMap<(u32, &[String]), Stats> = BTreeMap::new();
        for ((task, stack), stats) in &self.rows {
            if let Some(frames) = frames.get(index_of(*stack)) {
                rows.entry((*task, frames)).or_default().merge(stats);
            }
        }
        let mut rows: Vec<SleepRow> = rows
            .into_iter()
            .filter_map(|((task, frames), stats)| {
                let (tid, thread) = threads.at(task)?;
                let comm = thread.comm.as_deref();
                Some(SleepRow {
                    comm: comm.map_or_else(|| format!(":{tid}"), str::to_owned),
                    tid,
                    frames: frames.to_vec(),
                    stats,
                })
            })
            .collect();
        rows.sort_by(|a, b| {
            let time = b.stats.total().cmp(&a.stats.total());
            time.then_with(|| (a.tid, &a.frames).cmp(&(b.tid, &b.frames)))
        });
        rows
    }
}

impl Analysis for Sleeps {
    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        self.away.retain(|slot, _| !retired.has_slot(*slot));
    }

    fn needs(&self) -> Needs {
        Needs {
            threads: true,
            task_spans: true,
            samples: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match ty.kind.is_sched() || ty.name == KERNEL_STACK {
            true => EventDetail::Order,
            false => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, _: &Data, context: &mut Context<'_>) {
        if context.chosen.inside {
            self.take(event, context.machine.task_states());
        } else if context.chosen.in_time && event.ty.kind.is_sched() {
            // A task that wakes up elsewhere has slept until then, and who gets a CPU there sleeps no more.
            for span in &context.machine.task_states().changes().tasks {
                self.did(span, false);
            }
        }
    }

    fn side(&mut self, side: &Side<'_>) {
        if let Side::StackLine(frame) = side
            && let Some(symbol) = frame.symbol
            && self.leaving.is_some()
            && self.lines.len() < MAX_FRAMES
        {
            self.lines.push(symbol.into());
        }
    }
}

/// Returns whether a function is on the way into sleep, and not its reason.
pub(crate) fn is_scheduler(function: &str) -> bool {
    SCHEDULER.iter().any(|begin| function.starts_with(begin))
}

/// Returns the functions of a stack, without those of the scheduler at its inner end.
fn words(stack: &Stack, functions: KernelFunctions<'_>) -> Vec<String> {
    let all: Vec<String> = match stack {
        Stack::Addresses(list) => list
            .iter()
            .map(|address| functions.name_or_address(*address))
            .collect(),
        Stack::Names(list) => list.iter().map(|name| name.to_string()).collect(),
    };
    let first = all.iter().position(|name| !is_scheduler(name)).unwrap_or(0);
    all[first..].to_vec()
}

#[cfg(test)]
mod tests {
    use event::sched::{SchedSwitch, SchedWakeup, TaskComm, TaskState};
    use event::{EventType, Kind};
    use model::Machine;

    use super::*;

    #[test]
    fn a_stack_is_its_own_switchs_whatever_comes_between() {
        let mut formats = tracefmt::FormatCatalog::default();
        formats.add(
            "ftrace",
            b"name: kernel_stack\nID: 4\nformat:\n\
              \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
              \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
              \tfield:unsigned long caller[8];\toffset:8;\tsize:64;\tsigned:0;\n\nprint fmt: \"stack\"\n",
        );
        let ty = |name: &'static str, kind: Kind| EventType {
            index: 0,
            machine: 0,
            system: "",
            name,
            label: name,
            kind,
            format: formats.by_id(4),
            decoder: event::Decoder::default(),
            recorded: true,
        };
        let (switches, stacks) = (
            ty("sched_switch", Kind::SchedSwitch),
            ty(KERNEL_STACK, Kind::Other),
        );
        let wakeups = ty("sched_wakeup", Kind::SchedWakeup);
        let (mut sleeps, mut machine) = (Sleeps::new(), Machine::new());
        machine.task_states_mut().follow();
        let mut take =
            |ty: &EventType<'_>, time: u64, cpu: i32, tid: i32, record: &[u8], data: Data| {
                let event = Event::bare(ty, (time, cpu, tid), Body::Raw(record));
                machine.learn(&event, &data);
                sleeps.take(&event, machine.task_states());
            };
        let switch = |prev_tid: i32, state: u64, next_tid: i32| {
            Data::SchedSwitch(SchedSwitch {
                prev_tid,
                prev_comm: TaskComm::new(b"a"),
                prev_state: TaskState(state),
                next_tid,
                next_comm: TaskComm::new(b"b"),
            })
        };
        let stack = |address: u64| [[0; 8], address.to_le_bytes()].concat();
        // Two CPUs switch before either's stack is there, and the second one's comes first.
        take(&switches, 100, 0, 11, &[], switch(11, 1, 0));
        take(&switches, 101, 1, 12, &[], switch(12, 1, 0));
        take(&stacks, 102, 1, 12, &stack(0x2000), Data::Other);
        take(&stacks, 103, 0, 11, &stack(0x1000), Data::Other);
        take(&switches, 1100, 0, 0, &[], switch(0, 0, 11));
        take(&switches, 2101, 1, 0, &[], switch(0, 0, 12));
        // A sleep without a stack does not get that of a later preemption.
        take(&switches, 3000, 0, 11, &[], switch(11, 1, 0));
        take(&switches, 3100, 0, 0, &[], switch(0, 0, 11));
        take(&switches, 3200, 0, 11, &[], switch(11, 0, 12));
        take(&stacks, 3201, 0, 11, &stack(0x3000), Data::Other);
        take(&switches, 3300, 0, 12, &[], switch(12, 0, 11));
        // What it waits for a CPU after it was woken is no sleep.
        take(&switches, 4000, 0, 11, &[], switch(11, 1, 0));
        take(&stacks, 4001, 0, 11, &stack(0x1000), Data::Other);
        let woken = SchedWakeup {
            tid: 11,
            comm: TaskComm::new(b"a"),
            target_cpu: Some(0),
        };
        take(&wakeups, 4300, 1, 12, &[], Data::SchedWakeup(woken));
        take(&switches, 5000, 0, 0, &[], switch(0, 0, 11));
        let found: Vec<_> = (sleeps
            .report(machine.threads(), KernelFunctions::default())
            .into_iter())
        .map(|row| (row.tid, row.frames.concat(), row.stats.total()))
        .collect();
        assert_eq!(
            found,
            [
                (12, "0x2000".to_owned(), 2000),
                (11, "0x1000".to_owned(), 1300)
            ]
        );
    }

    #[test]
    fn the_scheduler_is_not_why_a_task_sleeps() {
        let names = [
            "__schedule",
            "schedule",
            "schedule_timeout",
            "wait_woken",
            "sk_stream_wait_memory",
        ];
        let stack = Stack::Names(names.iter().map(|name| Box::from(*name)).collect());
        assert_eq!(
            words(&stack, KernelFunctions::default()),
            ["sk_stream_wait_memory"]
        );
        // Where there is nothing else, that is the answer.
        let stack = Stack::Names(Box::new([Box::from("schedule")]));
        assert_eq!(words(&stack, KernelFunctions::default()), ["schedule"]);
    }
}
