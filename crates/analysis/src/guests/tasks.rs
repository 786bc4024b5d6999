//! Where vCPUs' time went by what their guests did: which task, interrupt or softirq ran, made the exits, and waited
//! for a CPU.

use std::cmp::Reverse;
use std::collections::VecDeque;

use doubts::{Concern, Concerns};
use event::{Data, Event, EventType, Kind, Side, index_of};
use model::{ByNumber, Span, State, Times};
use rustc_hash::FxHashMap;

use super::doing::{GuestContext, NamedContext};
use super::follow::GuestCpus;
use crate::analysis::{
    Analysis, Context, EventDetail, FilterScope, GuestEvent, Needs, States, WalkState,
};
use crate::chosen::Window;
use crate::series::SliceMeasure;
use crate::slices::Amount;
use crate::timeline::{GuestLane, GuestLanes, TimelineLimits};

/// Most changes of what a guest did between two spans of its vCPU. A guest may run for long without an exit; where it
/// changes more often, what it did before is unknown.
const MAX_CHANGES: usize = 1 << 14;
/// Most rows: a vCPU and something that its guest did. The time of further ones is in the rows of what is unknown.
const MAX_PAIRS: usize = 1 << 20;
/// Most rows whose time is kept by slices, where that is asked for.
const MAX_SLICED: u32 = 1 << 16;
/// Parts of what is counted by slices of time: time in the guest, time without a CPU, and all time that is not unknown.
const IN_GUEST: u8 = 0;
const STOLEN: u8 = 1;
const KNOWN: u8 = 2;

/// Times in which a vCPU was out of its guest at once that are kept of each: the longest, and none that is shorter.
const LONG: usize = 16;
const LONG_NS: u64 = 5_000_000;

/// A time in which a vCPU did not run its guest, which had not asked to wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestHeld {
    /// From when.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// What the guest did, and could not go on with.
    pub who: NamedContext,
}

/// What a guest did on a vCPU, and where the vCPU's time went meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct GuestTask {
    /// What it did.
    pub who: NamedContext,
    /// Time of the vCPU by state while the guest did that.
    pub times: Times,
    /// Exits meanwhile.
    pub exits: u64,
}

/// What was found of one vCPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GuestTasksReport {
    /// Everything that the guest did there, most time out of halts first. The times add up to those of the vCPU.
    pub tasks: Vec<GuestTask>,
    /// Whether the guest's recording has interrupts, and softirqs: where it has not, they are in the tasks' time.
    pub interrupts: bool,
    /// The same of softirqs.
    pub softirqs: bool,
    /// The longest times in which the vCPU did not run its guest, in order.
    pub held: Vec<GuestHeld>,
}

/// A part of a vCPU's span in which its guest did one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestPart {
    /// What the vCPU did, from when until when; within the window of time that was asked for.
    pub span: Span,
    /// What the guest did.
    pub doing: GuestContext,
}

#[derive(Debug, Clone, Copy, Default)]
struct TaskTimes {
    times: Times,
    /// Of the kernel's part, what was in exits in which the guest asked to wait.
    kernel_waiting_ns: u64,
    exits: u64,
    /// Stretches of time in the guest, and of time without a CPU.
    stretches: u64,
    waits: u64,
}

/// A vCPU.
#[derive(Debug, Default)]
struct VcpuChanges {
    /// What the guest did at the end of the last span.
    before: GuestContext,
    /// What it did from which time on, behind that.
    changes: VecDeque<(u64, GuestContext)>,
    /// The longest times out of the guest.
    held: Vec<(u64, u64, GuestContext)>,
}

impl VcpuChanges {
    fn changes(&mut self, time: u64, doing: GuestContext) {
        let last = self.changes.back().map_or(self.before, |(_, last)| *last);
        if last == doing {
            return;
        }
        if self.changes.len() >= MAX_CHANGES {
            self.changes.clear();
            self.before = GuestContext::Unknown;
        }
        self.changes.push_back((time, doing));
    }

    /// Takes the next change that lies before a span's end: returns what the guest did until then, and when that was.
    fn step(&mut self, span: &Span) -> Option<(GuestContext, u64)> {
        let (time, next) = *self.changes.front().filter(|one| one.0 < span.end)?;
        self.changes.pop_front();
        Some((std::mem::replace(&mut self.before, next), time))
    }

    /// The vCPU was out of its guest from one time to another.
    fn held(&mut self, from: u64, to: u64, doing: GuestContext) {
        if to.saturating_sub(from) < LONG_NS {
            return;
        }
        if let Some(last) = self.held.last_mut()
            && (last.1, last.2) == (from, doing)
        {
            last.1 = to;
            return;
        }
        self.held.push((from, to, doing));
        if self.held.len() > LONG {
            let shortest = self.held.iter().enumerate();
            let shortest = shortest.min_by_key(|(_, (from, to, _))| to - from);
            if let Some((at, _)) = shortest {
                self.held.remove(at);
            }
        }
    }

    /// Returns what the guest does now.
    fn now(&self) -> GuestContext {
        self.changes.back().map_or(self.before, |(_, last)| *last)
    }
}

/// Adds up spans of vCPUs by what their guests did.
#[derive(Debug, Default)]
pub struct GuestTasks {
    window: Window,
    follow: GuestCpus,
    /// By thread of the host.
    tracks: ByNumber<VcpuChanges>,
    /// The thread of each vCPU of the machine, as far as its guest has events.
    tids: Vec<Option<i32>>,
    /// What was done on each vCPU; they keep their places.
    sums: Vec<((u32, GuestContext), TaskTimes)>,
    places: FxHashMap<(u32, GuestContext), u32>,
    /// What happened when, where that is asked for.
    lanes: Option<GuestLanes>,
    /// The parts that have come, where these are asked for.
    parts: Option<Vec<GuestPart>>,
}

impl GuestTasks {
    /// Returns a sum of nothing.
    pub fn new(window: Window) -> GuestTasks {
        GuestTasks {
            window,
            follow: GuestCpus::default(),
            tracks: ByNumber::default(),
            tids: Vec::new(),
            sums: Vec::new(),
            places: FxHashMap::default(),
            lanes: None,
            parts: None,
        }
    }

    /// Keeps each part that is added up until it is taken ([`GuestTasks::swap_listed`]).
    pub fn list(&mut self) {
        self.parts = Some(Vec::new());
    }

    /// Exchanges the parts that have come for an empty list. Those of a vCPU come in order, and have no gap but what a
    /// window leaves out.
    pub fn swap_listed(&mut self, empty: &mut Vec<GuestPart>) {
        if let Some(parts) = &mut self.parts {
            std::mem::swap(parts, empty);
        }
    }

    /// Keeps what guests did when as well, for a timeline.
    pub fn with_lanes(self, limits: TimelineLimits) -> GuestTasks {
        GuestTasks {
            lanes: Some(GuestLanes::new(limits)),
            ..self
        }
    }

    /// Takes out what guests did when, if it was kept: lanes, and what the numbers of their names stand for.
    pub(crate) fn take_lanes(&mut self) -> Option<(Vec<GuestLane>, Vec<NamedContext>)> {
        let (lanes, names) = self.lanes.take()?.taken(&self.tids);
        let names = names.iter().map(|(tid, doing)| self.who(*tid, *doing));
        Some((lanes, names.collect()))
    }

    /// Returns what the guest did on a vCPU, by the thread that it is on the host; `None` where there is no guest's
    /// recording of it.
    pub fn report(&self, walked: &WalkState<'_>, tid: i32) -> Option<GuestTasksReport> {
        self.follow.machine(tid)?;
        let vcpu = self.tids.iter().position(|one| *one == Some(tid))? as u32;
        let seen = walked.machine.seen();
        let sums = self.sums.iter().filter(|((of, _), _)| *of == vcpu);
        let tasks = sums.map(|((_, doing), sum)| GuestTask {
            who: self.who(tid, *doing),
            times: seen.settle(&sum.times, sum.kernel_waiting_ns),
            exits: sum.exits,
        });
        let mut tasks: Vec<GuestTask> = tasks.collect();
        // What is not known comes last, and how long nothing was to be done does not make the idle task the first.
        let heavy = |task: &GuestTask| {
            let asleep = task.times.get(State::Halted) + task.times.get(State::Poll);
            let unknown = task.who.doing == GuestContext::Unknown;
            (
                unknown,
                Reverse(task.times.total() - asleep),
                task.who.doing,
            )
        };
        tasks.sort_by_key(heavy);
        let (interrupts, softirqs) = self.follow.has();
        let held = self.tracks.get(tid).map_or(&[][..], |track| &track.held);
        let held = held.iter().map(|&(from, to, doing)| GuestHeld {
            from,
            to,
            who: self.who(tid, doing),
        });
        Some(GuestTasksReport {
            tasks,
            interrupts,
            softirqs,
            held: held.collect(),
        })
    }

    /// Returns whether anything is known of what a guest did, which is this machine ([`EventType::machine`]).
    pub fn has_heard_of(&self, machine: u16) -> bool {
        self.follow.has_heard_of(machine)
    }

    /// Returns what a guest did with its name, as far as it is known by now. `tid` is the thread of the host that is
    /// the vCPU.
    pub fn who(&self, tid: i32, doing: GuestContext) -> NamedContext {
        NamedContext {
            doing,
            name: self.follow.called(tid, doing),
        }
    }

    fn sum(&mut self, vcpu: u32, doing: GuestContext) -> &mut TaskTimes {
        let full = self.sums.len() >= MAX_PAIRS;
        let doing = match full && !self.places.contains_key(&(vcpu, doing)) {
            true => GuestContext::Unknown,
            false => doing,
        };
        let sums = &mut self.sums;
        let place = *self.places.entry((vcpu, doing)).or_insert_with(|| {
            sums.push(((vcpu, doing), TaskTimes::default()));
            sums.len() as u32 - 1
        });
        &mut sums[index_of(place)].1
    }

    fn add(&mut self, span: &Span, doing: GuestContext, from: u64, to: u64) {
        let part = Span {
            start: from,
            end: to,
            ..*span
        };
        let Some((start, end)) = self.window.part(&part) else {
            return;
        };
        let waiting = span.cause.reason.is_some_and(event::ExitReason::is_waiting);
        let out = match span.state {
            State::Guest | State::Poll | State::Halted | State::Unknown => false,
            State::Runnable => true,
            _ => !waiting,
        };
        if let Some(parts) = &mut self.parts {
            let span = Span { start, end, ..part };
            parts.push(GuestPart { span, doing });
        }
        let tid = self.tids.get(index_of(span.vcpu)).copied().flatten();
        if let (Some(lanes), Some(tid)) = (&mut self.lanes, tid) {
            let machine = self.follow.machine(tid).unwrap_or_default();
            lanes.add(span.vcpu, (machine, tid), doing, start, end);
        }
        if out && let Some(track) = tid.and_then(|tid| self.tracks.get_mut(tid)) {
            track.held(start, end, doing);
        }
        let sum = self.sum(span.vcpu, doing);
        sum.times.add(span.state, end - start);
        sum.stretches += u64::from(span.state == State::Guest && end > start);
        sum.waits += u64::from(span.state == State::Runnable && end > start);
        if span.state == State::Kernel && waiting {
            sum.kernel_waiting_ns += end - start;
        }
    }
}

impl Analysis for GuestTasks {
    fn filter_scope(&self) -> Option<FilterScope> {
        Some(FilterScope::Whole)
    }

    fn concerns(&self) -> Concerns {
        Concerns::of(&[Concern::States, Concern::Guests])
    }

    fn needs(&self) -> Needs {
        Needs {
            states: States::All,
            spans: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match ty.kind {
            Kind::KvmExit => EventDetail::Order,
            _ => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, _: &Data, context: &mut Context<'_>) {
        let doing = self
            .tracks
            .get(event.tid)
            .map_or(GuestContext::Unknown, VcpuChanges::now);
        if let Some(vcpu) = context.machine.vcpu_of(event.tid)
            && self.window.has(event.time, event.cpu)
        {
            self.sum(vcpu, doing).exits += 1;
        }
    }

    fn wants_of_guest(&mut self, ty: &EventType<'_>) -> bool {
        self.follow.wants(ty)
    }

    fn guest_event(&mut self, guest: &GuestEvent<'_>, context: &mut Context<'_>) {
        let Some((tid, doing)) = self.follow.takes(guest) else {
            return;
        };
        if let Some(vcpu) = context.machine.vcpu_of(tid) {
            let at = index_of(vcpu);
            if self.tids.len() <= at {
                self.tids.resize(at + 1, None);
            }
            self.tids[at] = Some(tid);
        }
        let track = self.tracks.entry(tid, VcpuChanges::default);
        track.changes(guest.event.time, doing);
    }

    fn counters(&self, walked: &WalkState<'_>, report: &mut dyn FnMut(u8, u32, Amount)) {
        let mut known = Amount::default();
        for (((vcpu, doing), sum), number) in self.sums.iter().zip(0u32..) {
            // What was done on vCPUs whose guest has not been heard of is nobody's.
            let Some(tid) = self.tids.get(index_of(*vcpu)).copied().flatten() else {
                continue;
            };
            if walked.left_out.has(tid) {
                continue;
            }
            if *doing != GuestContext::Unknown {
                known.ns = known.ns.saturating_add(sum.times.total());
            }
            if number >= MAX_SLICED {
                continue;
            }
            let amount = |count: u64, state: State| Amount {
                count,
                ns: sum.times.get(state),
            };
            report(IN_GUEST, number, amount(sum.stretches, State::Guest));
            report(STOLEN, number, amount(sum.waits, State::Runnable));
        }
        report(KNOWN, 0, known);
    }

    fn measured(&self, part: u8, number: u32, _: &WalkState<'_>) -> Option<SliceMeasure> {
        if part == KNOWN {
            return Some(SliceMeasure::GuestKnown);
        }
        let ((vcpu, doing), _) = *self.sums.get(index_of(number))?;
        let tid = self.tids.get(index_of(vcpu)).copied().flatten()?;
        let did = self.who(tid, doing).did();
        Some(match part {
            IN_GUEST => SliceMeasure::GuestTime(did),
            _ => SliceMeasure::GuestSteal(did),
        })
    }

    fn guest_side(&mut self, machine: u16, side: &Side<'_>) {
        let tracks = &mut self.tracks;
        self.follow.side(machine, side, |tid, time| {
            if let Some(track) = tracks.get_mut(tid) {
                track.changes(time, GuestContext::Unknown);
            }
        });
    }

    fn spans(&mut self, spans: &[Span], _: &Context<'_>) {
        for span in spans {
            let tid = self.tids.get(index_of(span.vcpu)).copied().flatten();
            let Some(tid) = tid else {
                self.add(span, GuestContext::Unknown, span.start, span.end);
                continue;
            };
            let mut at = span.start;
            while let Some((doing, to)) =
                self.tracks.get_mut(tid).and_then(|track| track.step(span))
            {
                let to = to.max(at);
                self.add(span, doing, at, to);
                at = to;
            }
            let doing = self
                .tracks
                .get(tid)
                .map_or(GuestContext::Unknown, |track| track.before);
            self.add(span, doing, at, span.end);
        }
    }
}
