//! Where tasks sleep: the stacks with which they leave their CPUs, and how long they are away.
//!
//! perf samples a call chain with `sched_switch` (`perf record -g`), ftrace writes a `kernel_stack` behind it
//! (`options/stacktrace`), and texts print the lines of either below it.

use std::collections::BTreeMap;

use event::sched::{Leaves, SchedSwitch};
use event::{Body, Data, Event, Side};
use model::Threads;
use rustc_hash::FxHashMap;

use crate::Stats;

/// Different stacks that are told apart; what is beyond is not counted.
const MAX_STACKS: usize = 1 << 13;
/// Pairs of task and stack that are told apart.
const MAX_ROWS: usize = 1 << 16;
/// Frames of a stack that are kept: the kernel's own `PERF_MAX_STACK_DEPTH`.
const MAX_FRAMES: usize = 127;
/// Context markers of a call chain are above this (`PERF_CONTEXT_MAX`, `include/uapi/linux/perf_event.h`).
const CONTEXT_MAX: u64 = 0u64.wrapping_sub(4095);
/// What follows this marker is the user's part of the chain (`PERF_CONTEXT_USER`).
const CONTEXT_USER: u64 = 0u64.wrapping_sub(512);

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
    /// How long it was away from its CPU, each time.
    pub stats: Stats,
}

impl SleepRow {
    /// Returns whether a function is in the stack.
    pub fn has(&self, function: &str) -> bool {
        self.frames.iter().any(|frame| frame == function)
    }
}

/// Collects where tasks sleep.
#[derive(Debug, Default)]
pub struct Sleeps {
    threads: Threads,
    index: FxHashMap<Stack, u32>,
    rows: FxHashMap<(u32, u32), Stats>,
    /// Tasks that left their CPU to sleep: when, and with which stack.
    away: FxHashMap<u32, (u64, u32)>,
    /// The task that left with the last event, whose stack may follow.
    leaving: Option<(u32, u64)>,
    /// Lines of that stack so far.
    lines: Vec<Box<str>>,
}

impl Sleeps {
    /// Returns a collector that has seen nothing.
    pub fn new() -> Sleeps {
        Sleeps::default()
    }

    /// Takes thread names that the recorder saved apart from the events.
    pub fn saved_names<'n>(&mut self, names: impl IntoIterator<Item = (i32, &'n str)>) {
        self.threads.saved_names(names);
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
            self.away.insert(task, (time, number));
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

    /// Takes an event.
    pub fn take(&mut self, event: &Event<'_>, data: &Data) {
        match data {
            Data::SchedSwitch(switch) => {
                self.lines_end();
                self.switch(event, switch);
            }
            _ if event.ty.name == "kernel_stack" => {
                if let Some((task, time)) = self.leaving.take()
                    && let Some(stack) = ftrace_stack(event)
                {
                    self.left(task, time, stack);
                }
            }
            _ => {
                self.lines_end();
                self.threads.sched(data);
            }
        }
    }

    fn switch(&mut self, event: &Event<'_>, switch: &SchedSwitch) {
        let prev = self.threads.acts_as(switch.prev_tid, &switch.prev_comm);
        let next = self.threads.acts_as(switch.next_tid, &switch.next_comm);
        if let Some((since, stack)) = self.away.remove(&next)
            && let Some(ns) = event.time.checked_sub(since)
            && (self.rows.len() < MAX_ROWS || self.rows.contains_key(&(next, stack)))
        {
            self.rows.entry((next, stack)).or_default().add(ns);
        }
        let sleeps = switch.prev_state.leaves() == Leaves::Blocked;
        if switch.prev_tid == 0 || !sleeps {
            return;
        }
        let chain = event.sample.and_then(|sample| {
            let chain = sample.callchain?;
            Some(addresses(chain, sample.big_endian))
        });
        match chain {
            Some(chain) if !chain.is_empty() => {
                self.left(prev, event.time, Stack::Addresses(chain.into()));
            }
            _ => self.leaving = Some((prev, event.time)),
        }
    }

    /// Takes what is told beside events.
    pub fn side(&mut self, side: &Side<'_>) {
        match side {
            Side::StackLine { symbol } => {
                if self.leaving.is_some() && self.lines.len() < MAX_FRAMES {
                    self.lines.push((*symbol).into());
                }
            }
            _ => self.threads.side(side),
        }
    }

    /// Returns what was found, most time first. `symbol` names the function at an address, if it can.
    pub fn report(&self, symbol: &dyn Fn(u64) -> Option<String>) -> Vec<SleepRow> {
        let mut frames: Vec<Vec<String>> = vec![Vec::new(); self.index.len()];
        for (stack, number) in &self.index {
            if let Some(place) = frames.get_mut(*number as usize) {
                *place = words(stack, symbol);
            }
        }
        // Stacks that differ in addresses within functions only are one.
        let mut rows: BTreeMap<(u32, &[String]), Stats> = BTreeMap::new();
        for ((task, stack), stats) in &self.rows {
            if let Some(frames) = frames.get(*stack as usize) {
                rows.entry((*task, frames)).or_default().merge(stats);
            }
        }
        let mut rows: Vec<SleepRow> = rows
            .into_iter()
            .filter_map(|((task, frames), stats)| {
                let (tid, thread) = self.threads.at(task)?;
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

/// Returns the functions of a stack, without those of the scheduler at its inner end.
fn words(stack: &Stack, symbol: &dyn Fn(u64) -> Option<String>) -> Vec<String> {
    let all: Vec<String> = match stack {
        Stack::Addresses(list) => list
            .iter()
            .map(|address| symbol(*address).unwrap_or_else(|| format!("{address:#x}")))
            .collect(),
        Stack::Names(list) => list.iter().map(|name| name.to_string()).collect(),
    };
    let inner = |name: &String| SCHEDULER.iter().any(|begin| name.starts_with(begin));
    let first = all.iter().position(|name| !inner(name)).unwrap_or(0);
    all[first..].to_vec()
}

/// Returns the kernel's part of a call chain.
fn addresses(chain: &[u8], big_endian: bool) -> Vec<u64> {
    let mut out = Vec::new();
    for bytes in chain.chunks_exact(8) {
        let bytes = bytes.try_into().unwrap_or([0; 8]);
        let address = if big_endian {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        };
        if address == CONTEXT_USER || out.len() >= MAX_FRAMES {
            break;
        }
        if address < CONTEXT_MAX {
            out.push(address);
        }
    }
    out
}

/// Returns the stack that an event of ftrace is.
fn ftrace_stack(event: &Event<'_>) -> Option<Stack> {
    let Body::Raw(record) = event.body else {
        return None;
    };
    let format = event.ty.format?;
    let field = format.field("caller")?;
    let bytes = record.get(field.offset as usize..)?;
    let endian = format.abi.endian;
    let list: Vec<u64> = bytes
        .chunks_exact(8)
        .filter_map(|bytes| endian.uint(bytes, 0, 8))
        .take_while(|address| *address != 0 && *address != u64::MAX)
        .take(MAX_FRAMES)
        .collect();
    (!list.is_empty()).then(|| Stack::Addresses(list.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_the_kernels_part_without_markers() {
        let chain: Vec<u8> = [0u64.wrapping_sub(128), 0x10, 0x20, CONTEXT_USER, 0x30]
            .iter()
            .flat_map(|address| address.to_le_bytes())
            .collect();
        assert_eq!(addresses(&chain, false), [0x10, 0x20]);
        let swapped: Vec<u8> = 0x10u64.to_be_bytes().into();
        assert_eq!(addresses(&swapped, true), [0x10]);
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
        assert_eq!(words(&stack, &|_| None), ["sk_stream_wait_memory"]);
        // Where there is nothing else, that is what is told.
        let stack = Stack::Names(Box::new([Box::from("schedule")]));
        assert_eq!(words(&stack, &|_| None), ["schedule"]);
    }
}
