//! Latency paths as one of the analyses of a walk.
//!
//! It costs more than 2 ns an event, because each event is looked up by its thread, vCPU or task among all
//! instances that wait for it, and each that is found is moved on to what it waits for next.

use doubts::{Concern, Concerns};
use event::{Data, Event, EventType, Side, index_of};
use model::{Machine, RetiredThreads};
use paths::Paths;

use crate::analysis::{
    AccountScope, AccountedEvents, Analysis, Context, EventAccount, EventDetail, FilterScope,
    GuestEvent, Needs, Note, States, Turn, WalkState,
};
use crate::series::SliceMeasure;
use crate::slices::Amount;

impl Analysis for Paths {
    fn filter_scope(&self) -> Option<FilterScope> {
        Some(FilterScope::Whole)
    }

    fn concerns(&self) -> Concerns {
        Concerns::of(&[Concern::Paths, Concern::Names])
    }

    fn needs(&self) -> Needs {
        Needs {
            states: States::All,
            ..Needs::default()
        }
    }

    fn turn(&self) -> Turn {
        // What a vCPU was doing when an instance came to it.
        Turn::Before
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match Paths::wants(self, ty) {
            true => EventDetail::Order,
            false => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        self.count_host_event();
        // Of others nobody knows which vCPU's they are.
        if event.tid >= 0 || event.ty.kind.is_sched() {
            self.take(event, data, context.machine);
            if self.has_listed() {
                hand_out(self, context);
            }
        }
    }

    fn wants_of_guest(&mut self, ty: &EventType<'_>) -> bool {
        Paths::wants_of_guest(self, ty)
    }

    fn guest_event(&mut self, guest: &GuestEvent<'_>, context: &mut Context<'_>) {
        // What happened on nobody knows which vCPU belongs to no instance.
        let Some(vcpu) = guest.vcpu_tid else {
            return;
        };
        self.take_of_guest(guest.event, guest.data, vcpu, context.machine);
        if self.has_listed() {
            hand_out(self, context);
        }
    }

    fn guest_side(&mut self, machine: u16, side: &Side<'_>) {
        Paths::guest_side(self, machine, side);
    }

    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        Paths::retire(self, retired);
    }

    fn side(&mut self, side: &Side<'_>) {
        Paths::side(self, side);
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        Paths::finish(self, context.machine);
        hand_out(self, context);
    }

    fn counted(&self, _: &WalkState<'_>) -> Vec<EventAccount> {
        let (types, events) = self.host_events();
        let instances = self.instance_account();
        vec![
            EventAccount {
                which: AccountedEvents::Types(types.to_vec()),
                name: "of paths",
                of: AccountScope::Read,
                events,
            },
            EventAccount {
                which: AccountedEvents::Own {
                    noun: "instance",
                    count: instances.begun,
                },
                name: "that began",
                of: AccountScope::Read,
                events: instances.ended(),
            },
        ]
    }

    fn counters(&self, _: &WalkState<'_>, report: &mut dyn FnMut(u8, u32, Amount)) {
        for ((count, ns), number) in self.sums().zip(0u32..) {
            report(0, number, Amount { count, ns });
        }
    }

    fn measured(&self, _: u8, number: u32, _: &WalkState<'_>) -> Option<SliceMeasure> {
        let path = self.paths().get(index_of(number))?;
        Some(SliceMeasure::Path(path.name.clone()))
    }
}

/// Passes on the instances that have completed, if anybody asked for them.
fn hand_out(paths: &mut Paths, context: &mut Context<'_>) {
    if context.notes.are_heard() {
        for instance in context.notes.spare() {
            paths.reuse(instance);
        }
        paths.each_listed(|instance| context.notes.push(Note::Completed(instance)));
    }
}
