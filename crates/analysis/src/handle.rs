//! Typed handles: who adds an analysis to a walk gets it back by its handle, as the type that it is.

use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

use doubts::{Concerns, Doubts};
use event::{Data, Event, EventType, Side};
use model::{Machine, RetiredThreads, Span, TaskChanges, Threads};

use crate::analysis::{
    Analysis, Context, EventAccount, EventDetail, FilterScope, GuestEvent, Needs, Turn, WalkState,
};
use crate::open_lanes::OpenLanes;
use crate::series::SliceMeasure;
use crate::slices::Amount;

/// What gives an analysis back that was added to a [`Study`](crate::Study), once its walk has ended
/// ([`Answers::take`](crate::Answers::take)).
#[derive(Debug)]
pub struct Handle<A>(Rc<RefCell<Option<A>>>);

impl<A> Handle<A> {
    /// Returns a handle of an analysis, and the seat from which it takes part in a walk; if it does not join in, it
    /// asks for nothing there.
    pub(crate) fn of(analysis: A, joins: bool) -> (Handle<A>, SeatedAnalysis<A>) {
        let back = Rc::new(RefCell::new(None));
        let seated = SeatedAnalysis {
            analysis,
            joins,
            back: Rc::clone(&back),
        };
        (Handle(back), seated)
    }

    /// Takes the analysis out; `None` while its walk goes on.
    pub(crate) fn take(self) -> Option<A> {
        self.0.try_borrow_mut().ok()?.take()
    }
}

/// An analysis that takes part in a walk.
pub(crate) trait Seat: Analysis {
    /// Gives it back to its handle.
    fn give_back(self: Box<Self>);

    /// Adds to a list the analyses that it is, in their order.
    fn leaves<'s>(&'s self, list: &mut Vec<&'s dyn Analysis>);

    /// Returns whether it sits the walk out.
    fn is_absent(&self) -> bool {
        false
    }
}

/// An analysis in its place, with where its handle looks for it.
#[derive(Debug)]
pub(crate) struct SeatedAnalysis<A> {
    analysis: A,
    joins: bool,
    back: Rc<RefCell<Option<A>>>,
}

impl<A: Analysis> Seat for SeatedAnalysis<A> {
    fn give_back(self: Box<Self>) {
        let SeatedAnalysis { analysis, back, .. } = *self;
        if let Ok(mut back) = back.try_borrow_mut() {
            *back = Some(analysis);
        }
    }

    fn leaves<'s>(&'s self, list: &mut Vec<&'s dyn Analysis>) {
        list.push(self);
    }

    fn is_absent(&self) -> bool {
        !self.joins
    }
}

/// An analysis that somebody looks at while its walk goes on, as whoever prints things as they are found. It costs
/// each of its events a look more than one that is looked at behind the walk.
#[derive(Debug)]
pub struct SharedAnalysis<A>(Rc<RefCell<A>>);

impl<A> Clone for SharedAnalysis<A> {
    fn clone(&self) -> SharedAnalysis<A> {
        SharedAnalysis(Rc::clone(&self.0))
    }
}

impl<A> SharedAnalysis<A> {
    /// Shares an analysis.
    pub fn new(analysis: A) -> SharedAnalysis<A> {
        SharedAnalysis(Rc::new(RefCell::new(analysis)))
    }

    /// Returns it to be looked at, between two events.
    pub fn get(&self) -> Ref<'_, A> {
        self.0.borrow()
    }

    /// Returns it to be changed, between two events.
    pub fn get_mut(&self) -> RefMut<'_, A> {
        self.0.borrow_mut()
    }
}

/// Hands all that an analysis is asked on to another, which `$read` and `$change` find.
macro_rules! handed_on {
    ($self:ident, $read:expr, $change:expr) => {
        fn turn(&$self) -> Turn {
            $read.turn()
        }
        fn filter_scope(&$self) -> Option<FilterScope> {
            $read.filter_scope()
        }
        fn concerns(&$self) -> Concerns {
            $read.concerns()
        }
        #[inline(always)]
        fn event(&mut $self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
            $change.event(event, data, context);
        }
        #[inline]
        fn head(&mut $self, event: &Event<'_>, context: &mut Context<'_>) {
            $change.head(event, context);
        }
        fn guest_event(&mut $self, guest: &GuestEvent<'_>, context: &mut Context<'_>) {
            $change.guest_event(guest, context);
        }
        fn guest_side(&mut $self, machine: u16, side: &Side<'_>) {
            $change.guest_side(machine, side);
        }
        #[inline]
        fn spans(&mut $self, spans: &[Span], context: &Context<'_>) {
            $change.spans(spans, context);
        }
        #[inline]
        fn task_spans(&mut $self, changes: &TaskChanges, context: &Context<'_>) {
            $change.task_spans(changes, context);
        }
        fn retire(&mut $self, retired: &RetiredThreads, machine: &Machine) {
            $change.retire(retired, machine);
        }
        fn side(&mut $self, side: &Side<'_>) {
            $change.side(side);
        }
        fn finish(&mut $self, context: &mut Context<'_>) {
            $change.finish(context);
        }
        fn counters(&$self, walked: &WalkState<'_>, report: &mut dyn FnMut(u8, u32, Amount)) {
            $read.counters(walked, report);
        }
        fn counted_by(&$self, part: u8, number: u32, retired: &RetiredThreads) -> u32 {
            $read.counted_by(part, number, retired)
        }
        fn measured(&$self, part: u8, number: u32, walked: &WalkState<'_>) -> Option<SliceMeasure> {
            $read.measured(part, number, walked)
        }
        fn doubts(&$self, walked: &WalkState<'_>, doubts: &mut Doubts) {
            $read.doubts(walked, doubts);
        }
        fn counted(&$self, walked: &WalkState<'_>) -> Vec<EventAccount> {
            $read.counted(walked)
        }
        fn open_lanes(&$self) -> Option<OpenLanes> {
            $read.open_lanes()
        }
        fn may_resume(&$self, open: &OpenLanes, time: u64, now: &Threads, then: &Threads) -> bool {
            $read.may_resume(open, time, now, then)
        }
        fn resume(&mut $self, open: &OpenLanes, before: &Threads, now: &Threads) {
            $change.resume(open, before, now);
        }
    };
}

impl<A: Analysis> Analysis for SeatedAnalysis<A> {
    fn needs(&self) -> Needs {
        match self.joins {
            true => self.analysis.needs(),
            false => Needs::default(),
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match self.joins {
            true => self.analysis.wants(ty),
            false => EventDetail::Nothing,
        }
    }

    fn wants_of_guest(&mut self, ty: &EventType<'_>) -> bool {
        self.joins && self.analysis.wants_of_guest(ty)
    }

    handed_on!(self, self.analysis, self.analysis);
}

impl<A: Analysis> Analysis for SharedAnalysis<A> {
    fn needs(&self) -> Needs {
        self.0.borrow().needs()
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        self.0.borrow_mut().wants(ty)
    }

    fn wants_of_guest(&mut self, ty: &EventType<'_>) -> bool {
        self.0.borrow_mut().wants_of_guest(ty)
    }

    handed_on!(self, self.0.borrow(), self.0.borrow_mut());
}
