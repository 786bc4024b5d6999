//! Instances of paths that took longer than a bound, as they complete.

use event::{Data, Event, EventType};

use crate::analysis::{Analysis, Context, EventDetail, Needs, Note, Turn};
use crate::timeline::total_ns;

/// Instances that are kept until somebody takes them.
const MOST: usize = 1 << 10;

/// An instance of a path that took longer than the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowInstance {
    /// Its path, by its place among those that are followed.
    pub path: usize,
    /// When it began.
    pub begin_ns: u64,
    /// How long it took.
    pub total_ns: u64,
}

/// Finds instances that took longer than a bound. Paths have to be followed in the same study, and listed
/// ([`paths::Paths::list`]).
#[derive(Debug, Default)]
pub struct SlowInstances {
    bound_ns: u64,
    found: Vec<SlowInstance>,
    seen: u64,
}

impl SlowInstances {
    /// Looks for instances that took longer than `bound_ns`.
    pub fn above(bound_ns: u64) -> SlowInstances {
        SlowInstances {
            bound_ns,
            ..SlowInstances::default()
        }
    }

    /// Returns those that have completed since the last call; of more than 1024, the first.
    pub fn take(&mut self) -> Vec<SlowInstance> {
        std::mem::take(&mut self.found)
    }

    /// Returns how many instances have completed, slow or not.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    fn hear(&mut self, context: &Context<'_>) {
        for note in context.notes.iter() {
            let Note::Completed(instance) = note else {
                continue;
            };
            self.seen += 1;
            let total_ns = total_ns(instance);
            if total_ns > self.bound_ns
                && self.found.len() < MOST
                && let Some(first) = instance.reached.first()
            {
                self.found.push(SlowInstance {
                    path: instance.path,
                    begin_ns: first.time,
                    total_ns,
                });
            }
        }
    }
}

impl Analysis for SlowInstances {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn turn(&self) -> Turn {
        Turn::Last
    }

    fn wants(&mut self, _: &EventType<'_>) -> EventDetail {
        EventDetail::Nothing
    }

    fn event(&mut self, _: &Event<'_>, _: &Data, context: &mut Context<'_>) {
        self.hear(context);
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        self.hear(context);
    }
}
