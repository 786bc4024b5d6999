//! What a walk asks of a study, and hands to it.

use std::ops::ControlFlow;

use event::{Event, EventOrder, EventType, HeadTally, Kind, ResumePlace, Side, Sink, index_of};

use super::Study;
use crate::analysis::{EventDetail, States, Turn};
use crate::chosen::Chosen;
use crate::round::{FollowLevel, KindReaders};

impl Sink for Study {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        let mut wanted = KindReaders {
            kind: ty.kind,
            order: EventOrder::Any,
            ..KindReaders::default()
        };
        let mut any = false;
        let of_machine = self.members.iter_mut().zip(0u32..);
        for (member, number) in of_machine.filter(|(one, _)| one.machine == ty.machine) {
            let member_set = 1u64.checked_shl(number).unwrap_or(0);
            let want = member.analysis.wants(ty);
            wanted.order = wanted.order.max(want.order());
            let set = match (want, member.turn) {
                (EventDetail::Nothing, _) => continue,
                (EventDetail::Count, _) => {
                    any = true;
                    continue;
                }
                (EventDetail::Head, _) => &mut wanted.heads,
                (EventDetail::Thread | EventDetail::Order, Turn::Before) => &mut wanted.before,
                (EventDetail::Thread | EventDetail::Order, Turn::After) => &mut wanted.after,
                (EventDetail::Thread | EventDetail::Order, Turn::Last) => &mut wanted.last,
            };
            wanted.samples |= member.needs.samples;
            *set |= member_set;
        }
        if ty.machine != 0 {
            for (member, number) in self.members.iter_mut().zip(0u32..) {
                if member.machine == 0 && member.analysis.wants_of_guest(ty) {
                    wanted.of_guest |= 1u64.checked_shl(number).unwrap_or(0);
                    wanted.order = EventOrder::Time;
                }
            }
        }
        any |= wanted.is_read() || (wanted.heads | wanted.of_guest) != 0;
        let followed = self.followed(ty.machine);
        if followed.active {
            any = true;
            wanted.order = wanted.order.max(EventOrder::Thread);
        }
        let of_threads = ty.kind.is_sched() || matches!(ty.kind, Kind::KvmEntry | Kind::KvmExit);
        if followed.states > States::Nothing && followed.machine.wants(ty) {
            wanted.follows = FollowLevel::States;
        } else if followed.threads
            && of_threads
            && (any || followed.vcpus || followed.task_spans != 0 && ty.kind.is_sched())
        {
            followed.machine.announced(ty);
            wanted.follows = FollowLevel::Threads;
        }
        if wanted.follows != FollowLevel::Nothing {
            // Events of the scheduler are about other threads than the one that makes them.
            let order = match ty.kind.is_sched() {
                true => EventOrder::Time,
                false => EventOrder::Thread,
            };
            wanted.order = wanted.order.max(order);
        }
        wanted.goes_round = wanted.is_read()
            || wanted.follows != FollowLevel::Nothing
            || (wanted.heads | wanted.of_guest) != 0;
        followed.counts.announced(ty);
        self.silenced.hush(&mut wanted);
        let index = index_of(ty.index);
        if self.kinds.len() <= index {
            self.kinds.resize(index + 1, KindReaders::default());
        }
        self.kinds[index] = wanted;
        let sliced = self.slices.is_some() && ty.machine == 0;
        any || wanted.follows != FollowLevel::Nothing || sliced
    }

    fn order(&self, ty: &EventType<'_>) -> EventOrder {
        // What one analysis notes of an event others hear with it, and slices are cut at a time.
        let at_once = self.notes.heard || self.slices.is_some();
        match self.kinds.get(index_of(ty.index)) {
            Some(kind) if !at_once => kind.order,
            _ => EventOrder::Time,
        }
    }

    fn wants_samples(&self, ty: &EventType<'_>) -> bool {
        let kind = self.kinds.get(index_of(ty.index));
        kind.is_some_and(|kind| kind.samples)
    }

    fn places(&self) -> bool {
        self.resumes.are_kept()
    }

    fn place(&mut self, place: &ResumePlace) {
        let mut resumes = std::mem::take(&mut self.resumes);
        if self.machines.len() == 1 {
            // One analysis alone has something under way that another walk takes up.
            let open = || {
                self.members
                    .iter()
                    .find_map(|one| one.analysis.open_lanes())
            };
            resumes.add(place, &self.machines[0].machine, open);
        }
        self.resumes = resumes;
    }

    fn tallies(&mut self) -> bool {
        let asked = self.machines.iter().any(|one| one.counted || one.active);
        self.tallied = asked && self.machines.len() == 1 && !self.looks_at_each();
        self.tallied
    }

    fn tallied(&mut self, tally: &mut HeadTally) {
        self.followed(0).tallied(tally);
        tally.clear();
    }

    fn only_tallied(&self, ty: &EventType<'_>) -> bool {
        let kind = self.kinds.get(index_of(ty.index));
        // Who goes on from a moment of this walk looks at all kinds.
        let all = self.resumes.are_kept();
        self.tallied && !all && kind.is_some_and(|kind| !kind.goes_round)
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if self.looks_at_each() {
            self.choose_event(event);
            return ControlFlow::Continue(());
        }
        if !self.tallied
            && let Some(followed) = self.machines.get_mut(usize::from(event.machine()))
        {
            followed.happened(event);
        }
        let kind = self.kinds.get(index_of(event.ty.index));
        if kind.is_some_and(|kind| kind.goes_round) {
            self.round(event, Chosen::ALL);
        }
        ControlFlow::Continue(())
    }

    fn side(&mut self, side: &Side<'_>) {
        self.side_of(0, side);
    }

    fn side_of(&mut self, machine: u16, side: &Side<'_>) {
        for member in &mut self.members {
            if member.machine == machine {
                member.analysis.side(side);
            } else if member.machine == 0 {
                member.analysis.guest_side(machine, side);
            }
        }
        let followed = self.followed(machine);
        followed.activity.side(side);
        followed.machine.side(side);
    }
}
