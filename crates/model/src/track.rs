//! One vCPU's way through its states: in the guest, in KVM, in the VMM, halt polling, halted, runnable.
//!
//! Runnable is the vCPU's runqueue latency, after a wake-up or a preemption, which its guest counts as steal.

use event::{ExitReason, NONE};

use crate::seen::SeenEvents;
use crate::span::{Cause, Span, SpanSink, State, Times};

/// Where a vCPU's thread is, whether or not it has a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrackPlace {
    Guest,
    Kernel,
    User {
        /// The VMM has it because the guest halted.
        halted: bool,
    },
    /// The event that would say so is missing.
    Lost,
}

/// Whether a thread has a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchedState {
    Running,
    Runnable,
    Blocked,
}

/// A span that waits for its exit to end.
#[derive(Debug, Clone, Copy)]
struct Pending {
    state: State,
    start: u64,
    end: u64,
    cpu: i32,
    behind: Option<u32>,
}

/// Spans of one exit that are kept until it ends. What comes before them then goes out as it is: a halt
/// that becomes known later is no longer found in it.
const MAX_PENDING: usize = 128;

/// KVM polls no shorter than this before it gives a CPU away (`halt_poll_ns_grow_start`,
/// `virt/kvm/kvm_main.c`), so less than this before a vCPU sleeps is the way to sleep. More than this may be either:
/// on a slow host the way to sleep takes longer.
pub(crate) const MIN_POLL_NS: u64 = 10_000;

/// Counts of halts and how KVM polled in them, by `kvm_vcpu_wakeup`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Polls {
    /// Halts that polling ended: the vCPU kept its CPU.
    pub succeeded: u64,
    /// Time polled in those.
    pub succeeded_ns: u64,
    /// Halts that were polled in vain.
    pub failed: u64,
    /// Time polled in those.
    pub failed_ns: u64,
    /// Halts in which the vCPU slept and was not polled for.
    pub unpolled: u64,
    /// Time on the CPU in those before it slept: the way to sleep.
    pub unpolled_ns: u64,
}

impl Polls {
    /// Adds those of another vCPU.
    pub fn merge(&mut self, other: &Polls) {
        self.succeeded += other.succeeded;
        self.succeeded_ns = self.succeeded_ns.saturating_add(other.succeeded_ns);
        self.failed += other.failed;
        self.failed_ns = self.failed_ns.saturating_add(other.failed_ns);
        self.unpolled += other.unpolled;
        self.unpolled_ns = self.unpolled_ns.saturating_add(other.unpolled_ns);
    }
}

/// One vCPU.
#[derive(Debug, Clone)]
pub(crate) struct VcpuTrack {
    /// Its thread: id, and slot in `Threads`.
    pub tid: i32,
    pub thread: u32,
    /// Whether an event had the vCPU's number.
    pub numbered: bool,
    /// Whether it is no vCPU, but another thread that is followed.
    pub other: bool,
    pub place: TrackPlace,
    pub sched: SchedState,
    pub cpu: i32,
    pub cause: Cause,
    /// Time of its first event.
    pub first: u64,
    /// Up to when its states are handed out.
    pub at: u64,
    /// Events of its CPU were lost after `at`.
    pub lost: bool,
    /// When its thread ended, if it did.
    pub ended: Option<u64>,
    /// Since when it is runnable, if `sched_waking` said so and no `sched_wakeup` was ever seen.
    pub waking: Option<u64>,
    /// When, and for which CPU, it was woken though it was not seen to sleep: either it was about to, or its
    /// leaving the CPU was missed.
    pub early: Option<(u64, i32)>,
    /// Where it was when its last event, `kvm_fpu: load`, seemed to say that `KVM_RUN` begins.
    pub loaded_from: Option<TrackPlace>,
    /// It lost its CPU in its guest, if an exit is its next event.
    pub left_guest: bool,
    pub times: Times,
    pub polls: Polls,
    pub exits: u64,
    /// Whether the exit under way, or the last one, has been in the VMM.
    pub vmm: bool,
    /// Whether the halt of the exit under way is over, as far as it has not slept again.
    pub halt_over: bool,
    /// For how long KVM polls in a halt, if an event said so.
    poll_ns: Option<u64>,
    /// For how long it was set to poll in the halt under way, if an event said so: it comes at the end of a halt.
    polled_ns: Option<u64>,
    pending: Vec<Pending>,
}

impl VcpuTrack {
    pub(crate) fn new(tid: i32, thread: u32, time: u64, cpu: i32) -> VcpuTrack {
        VcpuTrack {
            tid,
            thread,
            numbered: false,
            other: false,
            place: TrackPlace::Lost,
            sched: SchedState::Running,
            cpu,
            cause: Cause::default(),
            first: time,
            at: time,
            lost: false,
            ended: None,
            waking: None,
            early: None,
            loaded_from: None,
            left_guest: false,
            times: Times::default(),
            polls: Polls::default(),
            exits: 0,
            vmm: false,
            halt_over: false,
            poll_ns: None,
            polled_ns: None,
            pending: Vec::new(),
        }
    }

    /// Returns about how many things it has: as many as lists of threads have in so much memory.
    pub(crate) fn len(&self) -> usize {
        4 + self.pending.len()
    }

    /// Whether the exit under way is one in which the guest asked to wait.
    #[inline]
    pub(crate) fn waiting(&self) -> bool {
        self.cause.reason.is_some_and(ExitReason::is_waiting)
    }

    /// The state that place and scheduling make.
    #[inline]
    pub(crate) fn state(&self) -> State {
        match (self.sched, self.place) {
            (SchedState::Runnable, _) => State::Runnable,
            (_, TrackPlace::Lost) => State::Unknown,
            (SchedState::Running, TrackPlace::Guest) => State::Guest,
            (SchedState::Running, TrackPlace::Kernel) => State::Kernel,
            (SchedState::Running, TrackPlace::User { .. }) => State::User,
            (SchedState::Blocked, TrackPlace::Kernel) if self.waiting() => State::Halted,
            (SchedState::Blocked, TrackPlace::Kernel) => State::KernelBlocked,
            (SchedState::Blocked, TrackPlace::User { halted: true }) => State::Halted,
            (SchedState::Blocked, TrackPlace::User { halted: false }) => State::UserBlocked,
            // Nothing sleeps in guest mode: the exit before was not seen.
            (SchedState::Blocked, TrackPlace::Guest) => State::Unknown,
        }
    }

    /// Counts the time up to `time` as what the vCPU was last seen doing, and returns the time, which never
    /// runs backwards.
    #[inline]
    pub(crate) fn advance(&mut self, time: u64) -> u64 {
        let state = if self.lost {
            State::Unknown
        } else {
            self.state()
        };
        self.lost = false;
        self.tell(state, time, None)
    }

    /// Counts the time up to `time` as what the vCPU was last seen doing, if the event now can follow from that.
    #[inline]
    pub(crate) fn advance_if(&mut self, fits: bool, time: u64) {
        if fits {
            self.advance(time);
        } else {
            self.gap(time);
        }
    }

    /// Counts the time up to `time` as unknown: an event was missed in it.
    pub(crate) fn gap(&mut self, time: u64) {
        self.lost = false;
        self.tell(State::Unknown, time, None);
    }

    /// Counts the time up to `time` as waiting for a CPU that another task had.
    pub(crate) fn behind(&mut self, time: u64, task: Option<u32>) {
        if self.lost {
            self.gap(time);
        } else {
            self.tell(State::Runnable, time, task);
        }
    }

    #[inline]
    fn tell(&mut self, state: State, time: u64, behind: Option<u32>) -> u64 {
        let ns = time.saturating_sub(self.at);
        if ns == 0 {
            return self.at;
        }
        self.times.add(state, ns);
        let start = std::mem::replace(&mut self.at, time);
        match self.pending.last_mut() {
            Some(last) if last.state == state && last.behind == behind && last.cpu == self.cpu => {
                last.end = time;
            }
            _ => self.pending.push(Pending {
                state,
                start,
                end: time,
                cpu: self.cpu,
                behind,
            }),
        }
        time
    }

    /// Hands out what is kept, if it has become too much.
    pub(crate) fn relieve<S: SpanSink>(&mut self, vcpu: u32, spans: &mut S) {
        if self.pending.len() > MAX_PENDING {
            self.flush(vcpu, spans);
        }
    }

    /// Hands out the spans of the exit that ended, or of the guest's run that did.
    #[inline]
    pub(crate) fn flush<S: SpanSink>(&mut self, vcpu: u32, spans: &mut S) {
        for span in self.kept(vcpu) {
            spans.span(&span);
        }
        self.pending.clear();
    }

    /// Returns the spans that are kept.
    pub(crate) fn kept(&self, vcpu: u32) -> impl Iterator<Item = Span> + '_ {
        self.pending.iter().map(move |span| Span {
            vcpu,
            state: span.state,
            start: span.start,
            end: span.end,
            cpu: span.cpu,
            cause: self.cause,
            behind: span.behind,
        })
    }

    /// `kvm_halt_poll_ns`: in the halt that ends KVM was set to poll for `old_ns`, and is from now on for `new_ns`.
    pub(crate) fn poll_set(&mut self, old_ns: u64, new_ns: u64) {
        self.polled_ns = Some(old_ns);
        self.poll_ns = Some(new_ns);
    }

    /// Whether KVM polled in the halt that ends now, of which `on_cpu` was spent on a CPU; for how long it was set to
    /// poll, if that is known, and whether an event of this halt said so.
    ///
    /// `kvm_vcpu_halt` changes the length of the next poll after each halt that outlasted this one: it grows, or, after
    /// a halt beyond the host's limit, shrinks. So whoever polled in vain made a `kvm_halt_poll_ns` right before
    /// `kvm_vcpu_wakeup`, which says for how long. Without that event nobody can tell a poll from a long way to sleep.
    fn polled(
        &self,
        waited: bool,
        halted_ns: u64,
        on_cpu: u64,
        (set, said): (Option<u64>, bool),
        seen: &SeenEvents,
    ) -> bool {
        let long = on_cpu >= MIN_POLL_NS;
        match set {
            Some(ns) => ns > 0 && (long || !waited || said),
            None if waited => long && !seen.poll_lengths,
            // It was there at once, if this vCPU does not poll.
            None => halted_ns >= MIN_POLL_NS || !seen.poll_lengths || self.polls.unpolled == 0,
        }
    }

    /// `kvm_vcpu_wakeup`: the vCPU was halted for `halted_ns` up to now, polling included, and slept if
    /// `waited`. `seen` says what the recording would tell.
    pub(crate) fn woken(&mut self, time: u64, halted_ns: u64, waited: bool, seen: &SeenEvents) {
        let time = self.advance(time);
        let of_this_halt = self.polled_ns.take();
        let set = of_this_halt.or(self.poll_ns);
        let from = time.saturating_sub(halted_ns);
        self.split(from);
        let first = self.pending.partition_point(|span| span.start < from);
        let (_, halt) = self.pending.split_at(first);
        // What events were missed of in a halt was part of it all the same.
        let sleeps = |state: State| match state {
            State::KernelBlocked | State::UserBlocked | State::Halted => true,
            State::Unknown => waited,
            _ => false,
        };
        let runs = |state: State| match state {
            State::Kernel | State::User => true,
            State::Unknown => !waited,
            _ => false,
        };
        let slept = halt.iter().position(|span| sleeps(span.state));
        let before_sleep = &halt[..slept.unwrap_or(halt.len())];
        let on_cpu: u64 = before_sleep
            .iter()
            .filter(|span| runs(span.state))
            .map(|span| span.end - span.start)
            .sum();
        let polled = self.polled(
            waited,
            halted_ns,
            on_cpu,
            (set, of_this_halt.is_some()),
            seen,
        );
        // Without the scheduler's events nobody knows how long it polled before it slept.
        let hidden_sleep = waited && slept.is_none() && !seen.switches;
        // KVM polls for as long as it is set to: what is several times as long without a sleep that was seen is one
        // that was missed, or that a wake-up was quicker than.
        let set_long = |ns: u64| on_cpu / 4 <= ns.max(MIN_POLL_NS);
        let polled = polled && (!waited || slept.is_some() || set.is_none_or(set_long));
        let (_, halt) = self.pending.split_at_mut(first);
        for (position, span) in halt.iter_mut().enumerate() {
            let becomes = if sleeps(span.state) {
                State::Halted
            } else if !runs(span.state) {
                continue;
            } else if hidden_sleep {
                State::Halted
            } else if polled && slept.is_none_or(|slept| position < slept) {
                State::Poll
            } else {
                State::Kernel
            };
            let ns = span.end - span.start;
            self.times.shift(span.state, becomes, ns);
            span.state = becomes;
        }
        if !waited && polled {
            self.polls.succeeded += 1;
            self.polls.succeeded_ns += on_cpu;
        } else if waited && polled && !hidden_sleep {
            self.polls.failed += 1;
            self.polls.failed_ns += on_cpu;
        } else if waited && !polled && !hidden_sleep {
            self.polls.unpolled += 1;
            self.polls.unpolled_ns += on_cpu;
        }
        self.place = TrackPlace::Kernel;
        self.halt_over = true;
    }

    /// Makes a span end where another is to begin.
    fn split(&mut self, at: u64) {
        let inside = |span: &Pending| span.start < at && at < span.end;
        if let Some(position) = self.pending.iter().position(inside) {
            let mut rest = self.pending[position];
            self.pending[position].end = at;
            rest.start = at;
            self.pending.insert(position + 1, rest);
        }
    }

    /// Whether it is known to be somewhere.
    pub(crate) fn has_cpu(&self) -> bool {
        self.cpu != NONE
    }
}
