//! Work items: which functions kworkers run, from their own events and from stacks.

use std::ops::Range;

use event::{Body, Event, KERNEL_STACK, index_of, kernel_stack};
use model::{Machine, NamedRole, Threads};

use super::SchedLatencies;
use crate::Stats;

/// Functions of work items that have a row each; a kernel has some thousand.
const MAX_FUNCTIONS: usize = 1 << 14;

/// What a work item's function is called: the recording has its address, a text its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Function {
    Address(u64),
    Name(Box<str>),
}

/// A function of work items.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkSums {
    /// How long it took, each time.
    pub(super) stats: Stats,
    /// Stacks that show it.
    pub(super) stacks: u64,
}

/// A stack of a kworker: the last function of it, or nothing once that of its work item was found.
#[derive(Debug, Clone, Default)]
pub(super) struct StackOf {
    last: Option<String>,
    found: bool,
}

/// What kworkers call functions of work items from (`kernel/workqueue.c`).
const CALLER: &str = "process_one_work";

impl SchedLatencies {
    /// Says where the function named by [`SchedLatencies::caller`] is, so that stacks of addresses tell of work items.
    pub fn caller_at(&mut self, range: Option<Range<u64>>) {
        self.caller = range;
    }

    /// Returns the name of the function whose addresses [`SchedLatencies::caller_at`] takes.
    pub fn caller() -> &'static str {
        CALLER
    }

    fn function(&mut self, function: Function) -> Option<u32> {
        let known = self.functions.len();
        match self.functions.get(&function) {
            Some(&number) => Some(number),
            None if known < MAX_FUNCTIONS => {
                self.functions.insert(function, known as u32);
                self.work.push(WorkSums::default());
                Some(known as u32)
            }
            None => None,
        }
    }

    /// A stack shows a work item's function.
    fn stack_shows(&mut self, function: Function) {
        let number = self.function(function);
        if let Some(work) = number.and_then(|number| self.work.get_mut(index_of(number))) {
            work.stacks += 1;
        }
    }

    /// An event of which a stack may follow, or is part.
    pub(super) fn stack_begins(&mut self, event: &Event<'_>, threads: &Threads) {
        self.stack = None;
        if let Body::Text { .. } = event.body {
            let named = event
                .comm
                .is_some_and(|comm| NamedRole::from(comm).is_kworker());
            if named || is_kworker(event.tid, threads) {
                self.stack = Some(StackOf::default());
            }
        } else if let Some(caller) = self.caller.clone()
            && event.ty.name == KERNEL_STACK
            && is_kworker(event.tid, threads)
        {
            let mut last = None;
            for address in kernel_stack(event) {
                if caller.contains(&address) {
                    if let Some(function) = last {
                        self.stack_shows(Function::Address(function));
                    }
                    break;
                }
                last = Some(address);
            }
        }
    }

    /// Takes a line of a stack in a text.
    pub(super) fn stack_line(&mut self, symbol: &str) {
        let Some(stack) = &mut self.stack else {
            return;
        };
        if stack.found {
            return;
        }
        if symbol == CALLER {
            stack.found = true;
            if let Some(function) = stack.last.take() {
                self.stack_shows(Function::Name(function.into()));
            }
        } else {
            stack.last = Some(symbol.to_owned());
        }
    }

    pub(super) fn work_begins(
        &mut self,
        event: &Event<'_>,
        function: Function,
        machine: &mut Machine,
    ) {
        let Some(number) = self.function(function) else {
            return;
        };
        let slot = machine.slot(event.tid);
        self.task(slot).work_begins(event.time, number);
    }

    pub(super) fn work_ends(&mut self, event: &Event<'_>, machine: &mut Machine) {
        let slot = machine.slot(event.tid);
        if let Some((since, function)) = self.task(slot).work_ends()
            && let Some(work) = self.work.get_mut(index_of(function))
        {
            work.stats.add(event.time.saturating_sub(since));
        }
    }
}

/// Whether a thread is a kworker.
fn is_kworker(tid: i32, threads: &Threads) -> bool {
    let thread = threads.get(tid);
    thread.is_some_and(|thread| thread.named_role().is_kworker())
}

/// Returns the function that a text of `workqueue_execute_start` names.
pub(super) fn function_in(text: &str) -> Option<&str> {
    let rest = text.split("function ").nth(1)?;
    rest.split_whitespace().next()
}
