//! What scheduling latencies ask of a walk, and what they take of it.

use doubts::{Concern, Concerns, DoubtKind, Doubts};
use event::{Data, Event, EventType, KERNEL_STACK, Kind, Side};
use model::{Machine, RetiredThreads, TaskChanges};

use super::{DELAYS, OTHERS_SLOT, SchedLatencies};
use crate::analysis::{
    Analysis, Context, EventAccount, EventDetail, FilterScope, Needs, WalkState,
};
use crate::series::SliceMeasure;
use crate::slices::Amount;

impl Analysis for SchedLatencies {
    fn filter_scope(&self) -> Option<FilterScope> {
        Some(FilterScope::Time)
    }

    fn concerns(&self) -> Concerns {
        Concerns::of(&[Concern::Sched])
    }

    fn doubts(&self, _: &WalkState<'_>, doubts: &mut Doubts) {
        match self.saw_switches() {
            true => self.raise(doubts),
            false => doubts.raise(DoubtKind::NoSwitches),
        }
    }

    fn counted(&self, _: &WalkState<'_>) -> Vec<EventAccount> {
        self.count_switches().into_iter().collect()
    }

    fn needs(&self) -> Needs {
        Needs {
            threads: true,
            task_spans: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match ty.kind {
            Kind::SchedWaking => self.has.wakings |= ty.recorded,
            // A text asks when it comes upon the first one, and others ask before they begin.
            Kind::SchedWakeup => self.has.wakeups |= ty.recorded && self.end == 0,
            Kind::SchedMigrateTask => self.has.migrations |= ty.recorded,
            Kind::SchedStatRuntime => self.has.runtimes |= ty.recorded,
            Kind::WorkqueueExecuteStart => {
                self.has.work |= ty.recorded;
                return EventDetail::Thread;
            }
            Kind::WorkqueueExecuteEnd => return EventDetail::Thread,
            Kind::Other if ty.name == KERNEL_STACK => {}
            kind if kind.is_sched() => {}
            _ => return EventDetail::Nothing,
        }
        EventDetail::Order
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        if context.chosen.inside {
            self.take(event, data, context.machine);
        }
    }

    fn task_spans(&mut self, changes: &TaskChanges, context: &Context<'_>) {
        if context.chosen.inside {
            self.changed(changes, context.window);
        } else if context.chosen.in_time {
            self.elsewhere(changes);
        } else {
            for span in &changes.tasks {
                self.still(span, context.window);
            }
            if let Some(ran) = &changes.cpu {
                self.still_runs(ran, context.window);
            }
        }
    }

    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        self.fold(retired);
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        let tasks = context.machine.task_states();
        let slots: Vec<u32> = self.tasks.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            if let Some(span) = tasks.open(slot, self.end) {
                self.still(&span, context.window);
            }
        }
        for ran in tasks.running(self.end) {
            self.still_runs(&ran, context.window);
        }
        self.finished = true;
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

    fn counters(&self, walked: &WalkState<'_>, report: &mut dyn FnMut(u8, u32, Amount)) {
        self.sums(walked.machine.task_states(), walked.window, report);
    }

    fn counted_by(&self, _: u8, number: u32, retired: &RetiredThreads) -> u32 {
        match retired.has_slot(number) {
            true => OTHERS_SLOT,
            false => number,
        }
    }

    fn measured(&self, part: u8, number: u32, walked: &WalkState<'_>) -> Option<SliceMeasure> {
        let comm = SchedLatencies::comm_of(number, walked.machine.threads())?;
        Some(match part {
            DELAYS => SliceMeasure::Delays(comm),
            _ => SliceMeasure::Ran(comm),
        })
    }
}
