//! What went on in some stretches of time: what vCPUs did, which instances of paths were under way, and which tasks had
//! CPUs.

use std::collections::BTreeMap;

use event::{Data, Event, EventType, cpu_index};
use model::{Machine, Span, TaskChanges, Times};
use paths::{CompletedInstance, ReachedStep};

use crate::analysis::{Analysis, Context, EventDetail, FilterScope, Needs, Note, States, Turn};

/// Stretches that are looked at, at most.
const MOST: usize = 1 << 14;
/// Instances that are kept of one: those that lie in it for the longest.
const INSTANCES: usize = 4;
/// Tasks of one CPU that are kept of one.
const TASKS: usize = 64;

/// A stretch of time, and what went on in it.
#[derive(Debug, Clone, Default)]
pub struct WatchedStretch {
    /// When it began.
    pub from: u64,
    /// When it ended.
    pub to: u64,
    /// What each vCPU did in it, by its place in [`model::Machine::vcpus`]; those of which nothing is known are left
    /// out.
    pub vcpus: BTreeMap<u32, Times>,
    /// The instances of paths that were under way in it, those first that were for the longest; of many, those.
    pub instances: Vec<CompletedInstance>,
    /// For how long each thread had a CPU in it, by CPU and thread.
    pub tasks: BTreeMap<(i32, i32), u64>,
}

impl WatchedStretch {
    /// Returns how much of the time between two is in it.
    pub fn shared(&self, from: u64, to: u64) -> u64 {
        to.min(self.to).saturating_sub(from.max(self.from))
    }
}

/// Looks at some stretches of time. Paths have to be followed in the same study, and listed ([`paths::Paths::list`]).
#[derive(Debug, Default)]
pub struct StretchWatch {
    /// In the order of their beginnings.
    stretches: Vec<WatchedStretch>,
    /// Of these and all before, the latest end: what ends before a time cannot be found behind it.
    ends: Vec<u64>,
    /// Times of the first and the last event that were looked at: what was before and behind them is not known.
    first: Option<u64>,
    now: u64,
}

impl StretchWatch {
    /// Looks at these stretches: when they begin, and when they end. Of more than 16384 the first are taken.
    pub fn new(stretches: impl IntoIterator<Item = (u64, u64)>) -> StretchWatch {
        let mut stretches: Vec<WatchedStretch> = stretches
            .into_iter()
            .take(MOST)
            .map(|(from, to)| WatchedStretch {
                from,
                to: to.max(from),
                ..WatchedStretch::default()
            })
            .collect();
        stretches.sort_by_key(|one| (one.from, one.to));
        let mut latest = 0;
        let ends = stretches.iter().map(|one| {
            latest = one.to.max(latest);
            latest
        });
        StretchWatch {
            ends: ends.collect(),
            stretches,
            first: None,
            now: 0,
        }
    }

    /// Returns them in the order of their beginnings.
    pub fn stretches(&self) -> &[WatchedStretch] {
        &self.stretches
    }

    /// Returns the one between two times.
    pub fn stretch(&self, from: u64, to: u64) -> Option<&WatchedStretch> {
        let at = self
            .stretches
            .binary_search_by_key(&(from, to), |one| (one.from, one.to));
        self.stretches.get(at.ok()?)
    }

    /// Returns those that lie, for some time, between two times.
    fn within(&mut self, from: u64, to: u64) -> impl Iterator<Item = &mut WatchedStretch> {
        let first = self.ends.partition_point(|end| *end <= from);
        let stretches = self.stretches.get_mut(first..).unwrap_or_default();
        let stretches = stretches
            .iter_mut()
            .take_while(move |one| one.from < to.max(from + 1));
        stretches.filter(move |one| one.to > from)
    }

    fn span(&mut self, span: &Span) {
        for one in self.within(span.start, span.end) {
            let ns = one.shared(span.start, span.end);
            one.vcpus.entry(span.vcpu).or_default().add(span.state, ns);
        }
    }

    fn ran(&mut self, cpu: i32, tid: Option<i32>, from: u64, to: u64) {
        let Some(tid) = tid else {
            return;
        };
        for one in self.within(from, to) {
            let ns = one.shared(from, to);
            if one.tasks.len() < TASKS || one.tasks.contains_key(&(cpu, tid)) {
                *one.tasks.entry((cpu, tid)).or_default() += ns;
            }
        }
    }

    fn hear(&mut self, context: &Context<'_>) {
        for note in context.notes.iter() {
            let Note::Completed(instance) = note else {
                continue;
            };
            let reached = &instance.reached;
            let (Some(first), Some(last)) = (reached.first(), reached.last()) else {
                continue;
            };
            for one in self.within(first.time, last.time) {
                let length = one.shared(first.time, last.time);
                let shared = |known: &CompletedInstance| {
                    let time = |reached: Option<&ReachedStep>| reached.map_or(0, |one| one.time);
                    let reached = &known.reached;
                    one.shared(time(reached.first()), time(reached.last()))
                };
                let place = one
                    .instances
                    .partition_point(|known| shared(known) >= length);
                if place < INSTANCES {
                    one.instances.insert(place, instance.clone());
                    one.instances.truncate(INSTANCES);
                }
            }
        }
    }
}

impl Analysis for StretchWatch {
    fn filter_scope(&self) -> Option<FilterScope> {
        Some(FilterScope::Whole)
    }

    fn needs(&self) -> Needs {
        Needs {
            threads: true,
            states: States::All,
            spans: true,
            task_spans: true,
            ..Needs::default()
        }
    }

    fn turn(&self) -> Turn {
        Turn::Last
    }

    fn wants(&mut self, _: &EventType<'_>) -> EventDetail {
        EventDetail::Nothing
    }

    fn event(&mut self, event: &Event<'_>, _: &Data, context: &mut Context<'_>) {
        self.hear(context);
        self.now = self.now.max(event.time);
    }

    fn task_spans(&mut self, changes: &TaskChanges, context: &Context<'_>) {
        let Some(switch) = changes.switch else {
            return;
        };
        self.now = self.now.max(switch.time);
        // Who leaves the CPU had it since the switch before, or since before the recording began.
        let first = *self.first.get_or_insert(switch.time);
        let (task, since) = match changes.cpu {
            Some(cpu) => (cpu.thread, cpu.start),
            None => (Some(switch.prev), first),
        };
        if cpu_index(switch.cpu).is_some() {
            self.ran(
                switch.cpu,
                tid_of(task, context.machine),
                since,
                switch.time,
            );
        }
    }

    fn spans(&mut self, spans: &[Span], _: &Context<'_>) {
        for span in spans {
            self.span(span);
            self.now = self.now.max(span.end);
        }
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        self.hear(context);
        for one in context.machine.task_states().running(self.now) {
            let tid = tid_of(one.thread, context.machine);
            self.ran(one.cpu, tid, one.start, one.end);
        }
    }
}

/// Returns the id of a thread, by its slot.
fn tid_of(thread: Option<u32>, machine: &Machine) -> Option<i32> {
    machine.threads().at(thread?).map(|(tid, _)| tid)
}

#[cfg(test)]
mod tests {
    use event::NONE;
    use model::{Cause, State};

    use super::*;

    fn span(vcpu: u32, state: State, start: u64, end: u64) -> Span {
        Span {
            vcpu,
            state,
            start,
            end,
            cpu: NONE,
            cause: Cause::default(),
            behind: None,
        }
    }

    #[test]
    fn each_stretch_has_its_part_of_what_went_on() {
        let mut during = StretchWatch::new([(500, 600), (100, 200), (150, 400)]);
        during.span(&span(0, State::Guest, 0, 120));
        during.span(&span(0, State::Halted, 120, 160));
        during.span(&span(0, State::Runnable, 160, 550));
        during.span(&span(1, State::Guest, 600, 700));
        during.ran(3, Some(7), 0, 110);
        during.ran(3, Some(8), 190, 1000);
        let found: Vec<_> = during
            .stretches()
            .iter()
            .map(|one| {
                let times = one.vcpus.get(&0).copied().unwrap_or_default();
                let states = [State::Guest, State::Halted, State::Runnable];
                (one.from, states.map(|state| times.get(state)))
            })
            .collect();
        assert_eq!(
            found,
            [(100, [20, 40, 40]), (150, [0, 10, 240]), (500, [0, 0, 50])]
        );
        assert!(during.stretches().iter().all(|one| one.vcpus.len() == 1));
        let tasks: Vec<Vec<_>> = during
            .stretches()
            .iter()
            .map(|one| one.tasks.iter().map(|(who, ns)| (*who, *ns)).collect())
            .collect();
        assert_eq!(
            tasks,
            [
                vec![((3, 7), 10), ((3, 8), 10)],
                vec![((3, 8), 210)],
                vec![((3, 8), 100)]
            ]
        );
    }
}
