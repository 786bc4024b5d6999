//! Analyses that take part in a walk side by side, each called directly.
//!
//! Whoever walks calls an analysis through a table of functions, which for a small one costs as much as what it does.
//! Several that are added at once are one call for each event, and from there the compiler knows which they are.

use doubts::{Concerns, Doubts};
use event::{Data, Event, EventType, Side, index_of};
use model::{Machine, RetiredThreads, Span, TaskChanges, Threads};

use crate::analysis::{
    Analysis, Context, EventAccount, EventDetail, FilterScope, GuestEvent, Needs, Turn, WalkState,
};
use crate::handle::{Handle, Seat, SeatedAnalysis};
use crate::open_lanes::OpenLanes;
use crate::study::Study;

/// Several analyses of one turn that are added to a [`Study`] at once: tuples of them, see [`Study::add_together`].
pub trait AnalysisTuple {
    /// A handle for each.
    type Handles;

    /// Adds them, and returns their handles in the same order.
    fn seat_in(self, study: &mut Study, machine: u16) -> Self::Handles;

    /// Looks at each, in their order.
    fn each(&self, look: &mut dyn FnMut(&dyn Analysis));
}

/// Analyses in their places, and what each wants.
#[derive(Debug)]
struct SeatedTuple<T, const N: usize> {
    members: T,
    needs: [Needs; N],
    /// By kind of events, of the host and of guests.
    wants: Vec<[EventDetail; N]>,
    of_guests: Vec<[bool; N]>,
}

impl<T, const N: usize> SeatedTuple<T, N> {
    fn want(&mut self, ty: &EventType<'_>, row: [EventDetail; N]) -> EventDetail {
        let index = index_of(ty.index);
        if self.wants.len() <= index {
            self.wants.resize(index + 1, [EventDetail::Nothing; N]);
        }
        self.wants[index] = row;
        row.into_iter().max().unwrap_or_default()
    }

    fn want_of_guest(&mut self, ty: &EventType<'_>, row: [bool; N]) -> bool {
        let index = index_of(ty.index);
        if self.of_guests.len() <= index {
            self.of_guests.resize(index + 1, [false; N]);
        }
        self.of_guests[index] = row;
        row.contains(&true)
    }
}

macro_rules! tuples {
    ($($count:literal: $($at:tt $type:ident),+;)+) => {$(
        impl<$($type: Analysis),+> AnalysisTuple for ($($type,)+) {
            type Handles = ($(Handle<$type>,)+);

            fn seat_in(self, study: &mut Study, machine: u16) -> Self::Handles {
                let pairs = ($(Handle::of(self.$at, study.joins::<$type>()),)+);
                let seated = SeatedTuple {
                    needs: [$(pairs.$at.1.needs()),+],
                    members: ($(pairs.$at.1,)+),
                    wants: Vec::new(),
                    of_guests: Vec::new(),
                };
                study.seat(machine, Box::new(seated));
                ($(pairs.$at.0,)+)
            }

            fn each(&self, look: &mut dyn FnMut(&dyn Analysis)) {
                $(look(&self.$at);)+
            }
        }

        impl<$($type: Analysis),+> SeatedTuple<($(SeatedAnalysis<$type>,)+), $count> {
            #[inline(always)]
            fn fan(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
                let Some(row) = self.wants.get(index_of(event.ty.index)) else {
                    return;
                };
                $(match row[$at] {
                    EventDetail::Thread | EventDetail::Order => {
                        self.members.$at.event(event, data, context);
                    }
                    EventDetail::Head => self.members.$at.head(event, context),
                    EventDetail::Nothing | EventDetail::Count => {}
                })+
            }
        }

        impl<$($type: Analysis),+> Seat for SeatedTuple<($(SeatedAnalysis<$type>,)+), $count> {
            fn give_back(self: Box<Self>) {
                $(Box::new(self.members.$at).give_back();)+
            }

            fn leaves<'s>(&'s self, list: &mut Vec<&'s dyn Analysis>) {
                $(list.push(&self.members.$at);)+
            }
        }

        impl<$($type: Analysis),+> Analysis for SeatedTuple<($(SeatedAnalysis<$type>,)+), $count> {
            fn needs(&self) -> Needs {
                self.needs.into_iter().fold(Needs::default(), Needs::and)
            }
            fn turn(&self) -> Turn {
                $(debug_assert_eq!(self.members.$at.turn(), self.members.0.turn());)+
                self.members.0.turn()
            }
            fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
                let row = [$(self.members.$at.wants(ty)),+];
                self.want(ty, row)
            }
            fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
                // Where it is known what the event is, nobody asks again.
                match data {
                    Data::KvmExit(_) => self.fan(event, data, context),
                    Data::KvmEntry(_) => self.fan(event, data, context),
                    _ => self.fan(event, data, context),
                }
            }
            fn head(&mut self, event: &Event<'_>, context: &mut Context<'_>) {
                let Some(row) = self.wants.get(index_of(event.ty.index)) else {
                    return;
                };
                $(if row[$at] == EventDetail::Head {
                    self.members.$at.head(event, context);
                })+
            }
            fn wants_of_guest(&mut self, ty: &EventType<'_>) -> bool {
                let row = [$(self.members.$at.wants_of_guest(ty)),+];
                self.want_of_guest(ty, row)
            }
            fn guest_event(&mut self, guest: &GuestEvent<'_>, context: &mut Context<'_>) {
                let Some(row) = self.of_guests.get(index_of(guest.event.ty.index)) else {
                    return;
                };
                $(if row[$at] {
                    self.members.$at.guest_event(guest, context);
                })+
            }
            fn guest_side(&mut self, machine: u16, side: &Side<'_>) {
                $(self.members.$at.guest_side(machine, side);)+
            }
            fn spans(&mut self, spans: &[Span], context: &Context<'_>) {
                $(if self.needs[$at].spans {
                    self.members.$at.spans(spans, context);
                })+
            }
            fn task_spans(&mut self, changes: &TaskChanges, context: &Context<'_>) {
                $(if self.needs[$at].task_spans {
                    self.members.$at.task_spans(changes, context);
                })+
            }
            fn retire(&mut self, retired: &RetiredThreads, machine: &Machine) {
                $(self.members.$at.retire(retired, machine);)+
            }
            fn side(&mut self, side: &Side<'_>) {
                $(self.members.$at.side(side);)+
            }
            fn finish(&mut self, context: &mut Context<'_>) {
                $(self.members.$at.finish(context);)+
            }
            fn filter_scope(&self) -> Option<FilterScope> {
                [$(self.members.$at.filter_scope()),+].into_iter().max().flatten()
            }
            fn concerns(&self) -> Concerns {
                Concerns::default()$(.and(self.members.$at.concerns()))+
            }
            fn doubts(&self, walked: &WalkState<'_>, doubts: &mut Doubts) {
                $(self.members.$at.doubts(walked, doubts);)+
            }
            fn counted(&self, walked: &WalkState<'_>) -> Vec<EventAccount> {
                let mut counted = Vec::new();
                $(counted.extend(self.members.$at.counted(walked));)+
                counted
            }
            fn open_lanes(&self) -> Option<OpenLanes> {
                None$(.or_else(|| self.members.$at.open_lanes()))+
            }
            fn may_resume(&self, open: &OpenLanes, time: u64, now: &Threads, then: &Threads) -> bool {
                true $(&& self.members.$at.may_resume(open, time, now, then))+
            }
            fn resume(&mut self, open: &OpenLanes, before: &Threads, now: &Threads) {
                $(self.members.$at.resume(open, before, now);)+
            }
        }
    )+};
}

impl Study {
    /// Adds several analyses of one turn, which are called together: their handles are in the same order.
    pub fn add_together<T: AnalysisTuple>(&mut self, analyses: T) -> T::Handles {
        analyses.seat_in(self, 0)
    }
}

tuples! {
    2: 0 A, 1 B;
    3: 0 A, 1 B, 2 C;
    4: 0 A, 1 B, 2 C, 3 D;
    5: 0 A, 1 B, 2 C, 3 D, 4 E;
    6: 0 A, 1 B, 2 C, 3 D, 4 E, 5 F;
    7: 0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G;
    8: 0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H;
    9: 0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I;
    10: 0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J;
    11: 0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J, 10 K;
    12: 0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J, 10 K, 11 L;
}
