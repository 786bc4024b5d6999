//! How one event goes round: to whom, and in what order.

use std::fmt;

use event::{Body, Event, EventOrder, HeadTally, Kind, NONE, index_of};
use model::{Machine, Span, TaskChanges, ThreadHandles};

use crate::activity::Activity;
use crate::analysis::{Analysis, Context, GuestEvent, Needs, Notes, States, Turn};
use crate::chosen::{Chosen, LeftOut, Window};
use crate::counts::Counts;
use crate::handle::Seat;

/// A set of analyses, by their numbers.
pub(crate) type Set = u64;

/// An analysis.
pub(crate) struct StudyMember {
    pub(crate) machine: u16,
    pub(crate) needs: Needs,
    pub(crate) turn: Turn,
    pub(crate) analysis: Box<dyn Seat>,
}

/// Without what it has seen: printing that of all analyses would be half a megabyte of the program.
impl fmt::Debug for StudyMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut member = f.debug_struct("StudyMember");
        member.field("machine", &self.machine);
        member.field("needs", &self.needs);
        member.field("turn", &self.turn).finish_non_exhaustive()
    }
}

/// A machine, and which parts of it are followed.
#[derive(Debug, Default)]
pub(crate) struct FollowedMachine {
    pub(crate) machine: Machine,
    /// The numbers of threads that made events which somebody looks at.
    pub(crate) handles: ThreadHandles,
    /// How many events there are, and whether somebody needs that.
    pub(crate) counts: Counts,
    pub(crate) counted: bool,
    /// When CPUs had events, and whether somebody needs that.
    pub(crate) activity: Activity,
    pub(crate) active: bool,
    /// The time of the last event that an analysis looked at.
    pub(crate) latest_ns: Option<u64>,
    pub(crate) threads: bool,
    /// Whether somebody needs vCPUs, though nobody may want the events that show them.
    pub(crate) vcpus: bool,
    pub(crate) states: States,
    /// By CPU of a guest, the host's thread that is its vCPU; [`event::NONE`] where that is not known.
    pub(crate) vcpu_threads: Vec<i32>,
    /// Who wants spans of vCPUs, who those of tasks, and who hears notes.
    pub(crate) spans: Set,
    pub(crate) task_spans: Set,
    pub(crate) last: Set,
}

impl FollowedMachine {
    /// Takes of an event that was asked for that it happened.
    #[inline(always)]
    pub(crate) fn happened(&mut self, event: &Event<'_>) {
        if self.counted {
            self.counts.count(event.ty.index, event.cpu, event.time);
        }
        if self.active {
            let sampled = matches!(event.body, Body::None);
            self.activity
                .happened(event.time, (event.cpu, event.tid), sampled);
        }
    }

    /// Returns whether as many threads are kept apart as may be.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        // Some make events that say nothing of threads, and have a number alone.
        self.machine.is_full() || self.handles.len() >= 2 * self.machine.limits().threads
    }

    /// Returns what analyses see where no event happens: at the end of a walk, and where threads are retired.
    pub(crate) fn without_event<'c>(
        &'c mut self,
        window: &'c Window,
        left_out: &'c LeftOut,
        notes: &'c mut Notes,
    ) -> Context<'c> {
        Context {
            machine: &mut self.machine,
            thread: self.handles.of(NONE),
            handles: &self.handles,
            activity: &self.activity,
            chosen: Chosen::default(),
            window,
            left_out,
            notes,
        }
    }

    /// Takes what the reader has followed instead.
    pub(crate) fn tallied(&mut self, tally: &HeadTally) {
        self.counts.tallied(tally);
        self.activity.tallied(tally);
    }
}

/// How the machine takes events of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FollowLevel {
    #[default]
    Nothing,
    /// What they say of threads.
    Threads,
    /// All that they say.
    States,
}

/// Who wants events of a kind.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KindReaders {
    pub(crate) kind: Kind,
    pub(crate) follows: FollowLevel,
    pub(crate) before: Set,
    pub(crate) after: Set,
    pub(crate) last: Set,
    pub(crate) heads: Set,
    /// Who of the host looks at them, as events of a guest.
    pub(crate) of_guest: Set,
    /// The order in which they are needed.
    pub(crate) order: EventOrder,
    /// Whether anybody looks at them, beyond counting.
    pub(crate) goes_round: bool,
    /// Whether somebody looks at what perf sampled with them.
    pub(crate) samples: bool,
    /// Events outside of the window of time and CPUs, and those in it that are left out otherwise.
    pub(crate) outside: u64,
    pub(crate) left_out: u64,
}

impl KindReaders {
    /// Whether an analysis reads what they say.
    #[inline]
    pub(crate) fn is_read(&self) -> bool {
        (self.before | self.after | self.last) != 0
    }
}

/// Does something with each analysis of a set, in their order.
#[inline]
pub(crate) fn each(
    members: &mut [StudyMember],
    mut set: Set,
    mut of: impl FnMut(&mut dyn Analysis),
) {
    while set != 0 {
        if let Some(member) = members.get_mut(index_of(set.trailing_zeros())) {
            of(member.analysis.as_mut());
        }
        set &= set - 1;
    }
}

/// What is at hand while an event goes round.
pub(crate) struct Round<'s> {
    pub(crate) members: &'s mut [StudyMember],
    pub(crate) followed: &'s mut FollowedMachine,
    pub(crate) window: &'s Window,
    pub(crate) left_out: &'s LeftOut,
    pub(crate) notes: &'s mut Notes,
    pub(crate) spans: &'s mut Vec<Span>,
}

impl Round<'_> {
    /// Hands an event to those that read what it says.
    #[inline(always)]
    pub(crate) fn read(&mut self, event: &Event<'_>, kind: &KindReaders, chosen: Chosen) {
        let followed = &mut *self.followed;
        let learns = match kind.follows {
            FollowLevel::Nothing => false,
            FollowLevel::Threads => followed.machine.learns(event),
            FollowLevel::States => true,
        };
        if !learns && !kind.is_read() {
            return;
        }
        let thread = followed.handles.of(event.tid);
        let mut context = Context {
            machine: &mut followed.machine,
            thread,
            handles: &followed.handles,
            activity: &followed.activity,
            chosen,
            window: self.window,
            left_out: self.left_out,
            notes: self.notes,
        };
        let data = event.data();
        let members = &mut *self.members;
        let take = |members: &mut [StudyMember], set: Set, context: &mut Context<'_>| {
            each(members, set, |one| one.event(event, &data, context));
        };
        take(members, kind.before, &mut context);
        match kind.follows {
            FollowLevel::States if followed.spans != 0 => {
                context.machine.event(event, &data, self.spans);
                if !self.spans.is_empty() {
                    each(members, followed.spans, |one| {
                        one.spans(self.spans, &context)
                    });
                    self.spans.clear();
                }
            }
            FollowLevel::States => context.machine.event(event, &data, &mut ()),
            FollowLevel::Threads if learns => context.machine.learn(event, &data),
            FollowLevel::Threads | FollowLevel::Nothing => {}
        }
        if followed.task_spans != 0 && event.ty.kind.is_sched() {
            let mut changes = TaskChanges::default();
            context.machine.task_states_mut().swap_changes(&mut changes);
            if !changes.is_empty() {
                each(members, followed.task_spans, |one| {
                    one.task_spans(&changes, &context);
                });
            }
            context.machine.task_states_mut().swap_changes(&mut changes);
        }
        take(members, kind.after, &mut context);
        if context.notes.list.is_empty() {
            take(members, kind.last, &mut context);
        } else {
            take(members, followed.last, &mut context);
            context.notes.clear();
        }
    }

    /// Hands an event to those to which its head is enough.
    #[inline]
    pub(crate) fn heads(&mut self, event: &Event<'_>, kind: &KindReaders, chosen: Chosen) {
        let thread = self.followed.handles.of(event.tid);
        let mut context = Context {
            machine: &mut self.followed.machine,
            thread,
            handles: &self.followed.handles,
            activity: &self.followed.activity,
            chosen,
            window: self.window,
            left_out: self.left_out,
            notes: self.notes,
        };
        each(self.members, kind.heads, |one| {
            one.head(event, &mut context);
        });
    }

    /// Hands an event of a guest to those of the host that look at it. The round is the host's.
    #[inline(never)]
    pub(crate) fn of_guest(&mut self, guest: &GuestEvent<'_>, kind: &KindReaders, chosen: Chosen) {
        let thread = self.followed.handles.of(guest.vcpu_tid.unwrap_or(NONE));
        let mut context = Context {
            machine: &mut self.followed.machine,
            thread,
            handles: &self.followed.handles,
            activity: &self.followed.activity,
            chosen,
            window: self.window,
            left_out: self.left_out,
            notes: self.notes,
        };
        each(self.members, kind.of_guest, |one| {
            one.guest_event(guest, &mut context);
        });
    }
}
