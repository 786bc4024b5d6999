//! How long vCPUs slept in the VMM, each time.
//!
//! A vCPU's thread sleeps there for many reasons: for a lock, for a device that the VMM emulates, since the VM is
//! paused. One that is throttled sleeps again and again for about the same time, however much its guest has to do.

use event::EventType;
use model::{BySlot, Machine, RetiredThreads, Span, State};

use crate::Stats;
use crate::analysis::{Analysis, Context, EventDetail, FilterScope, Needs, States};

/// The sleeps of one vCPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VmmSleepsRow {
    /// Its thread.
    pub tid: i32,
    /// What it slept in the VMM.
    pub sleeps: Stats,
}

/// Follows vCPUs into their sleep.
#[derive(Debug, Default)]
pub struct VmmSleeps {
    vcpus: BySlot<Stats>,
}

impl VmmSleeps {
    /// Returns one that has seen nothing.
    pub fn new() -> VmmSleeps {
        VmmSleeps::default()
    }

    /// Returns the sleeps of all vCPUs that slept in the VMM.
    pub fn report(&self, machine: &Machine) -> Vec<VmmSleepsRow> {
        let rows = self.vcpus.iter();
        rows.filter_map(|(vcpu, sleeps)| {
            Some(VmmSleepsRow {
                tid: machine.vcpu(vcpu)?.tid,
                sleeps: sleeps.clone(),
            })
        })
        .collect()
    }
}

impl Analysis for VmmSleeps {
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

    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        for vcpu in retired.vcpus() {
            self.vcpus.remove(vcpu);
        }
    }

    fn spans(&mut self, spans: &[Span], context: &Context<'_>) {
        for span in spans.iter().filter(|span| span.state == State::UserBlocked) {
            let Some((start, end)) = context.window.part(span) else {
                continue;
            };
            let sleeps = self.vcpus.entry(span.vcpu, Stats::default);
            sleeps.add(end.saturating_sub(start));
        }
    }
}
