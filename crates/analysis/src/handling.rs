//! Of each vCPU by itself: how long KVM and the VMM handled its exits, by their class.
//!
//! The tables of exits are of all vCPUs together. One vCPU of sixteen that does nothing but exit is six per cent there.
//!
//! It costs more than 2 ns an event, because each stretch of time in which an exit is handled goes into the sums of
//! its vCPU and class.

use event::{EventType, ExitClass};
use model::{BySlot, Machine, RetiredThreads, Span, State, Times};

use crate::analysis::{Analysis, Context, EventDetail, FilterScope, Needs, States};
use crate::chosen::Window;

/// Where the time of exits of one class went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HandledClass {
    /// The exits.
    pub class: ExitClass,
    /// Handled by KVM, by the VMM, and, where which of them was not recorded, in an unknown state.
    pub times: Times,
}

/// One vCPU.
#[derive(Debug, Clone, PartialEq)]
pub struct HandlingRow {
    /// Its thread; -1 of those that are not kept apart any more ([`model::StateLimits`]).
    pub tid: i32,
    /// What handling its exits took, by class; only those that took any time.
    pub classes: Vec<HandledClass>,
}

/// Sums up each vCPU's exits by class.
#[derive(Debug, Default)]
pub struct Handling {
    vcpus: BySlot<Vec<HandledClass>>,
    /// Those of vCPUs that are not kept apart any more.
    others: Vec<HandledClass>,
}

impl Handling {
    /// Returns one that has seen nothing.
    pub fn new() -> Handling {
        Handling::default()
    }

    /// Returns what was found, in the order of the vCPUs.
    pub fn report(self, machine: &Machine) -> Vec<HandlingRow> {
        let seen = machine.seen();
        let settled = |mut classes: Vec<HandledClass>| {
            for one in &mut classes {
                let waiting = match one.class {
                    ExitClass::Waiting => one.times.get(State::Kernel),
                    _ => 0,
                };
                one.times = seen.settle(&one.times, waiting);
            }
            classes
        };
        let rows = self.vcpus.iter();
        let rows = rows.filter_map(|(vcpu, classes)| {
            Some(HandlingRow {
                tid: machine.vcpu(vcpu)?.tid,
                classes: settled(classes.clone()),
            })
        });
        let others = (!self.others.is_empty()).then(|| HandlingRow {
            tid: event::NONE,
            classes: settled(self.others.clone()),
        });
        rows.chain(others).collect()
    }

    #[inline]
    fn add(&mut self, span: &Span, window: &Window) {
        if !matches!(span.state, State::Kernel | State::User | State::Unknown) {
            return;
        }
        let Some(reason) = span.cause.reason else {
            return;
        };
        let Some((start, end)) = window.part(span) else {
            return;
        };
        let (class, ns) = (reason.class(), end - start);
        let classes = self.vcpus.entry(span.vcpu, Vec::new);
        times_of(classes, class).add(span.state, ns);
    }
}

/// Returns the times of a class. A guest has exits of few classes, and the most frequent one is among the first.
#[inline]
fn times_of(classes: &mut Vec<HandledClass>, class: ExitClass) -> &mut Times {
    let place = classes.iter().position(|one| one.class == class);
    let place = place.unwrap_or_else(|| {
        classes.push(HandledClass {
            class,
            times: Times::default(),
        });
        classes.len() - 1
    });
    &mut classes[place].times
}

impl Analysis for Handling {
    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        for one in retired.vcpus().filter_map(|vcpu| self.vcpus.remove(vcpu)) {
            for class in one {
                times_of(&mut self.others, class.class).merge(&class.times);
            }
        }
    }

    fn filter_scope(&self) -> Option<FilterScope> {
        Some(FilterScope::Whole)
    }

    fn needs(&self) -> Needs {
        Needs {
            states: States::WithoutAccesses,
            spans: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, _: &EventType<'_>) -> EventDetail {
        EventDetail::Nothing
    }

    fn spans(&mut self, spans: &[Span], context: &Context<'_>) {
        for span in spans {
            self.add(span, context.window);
        }
    }
}
