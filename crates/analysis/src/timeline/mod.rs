/*!
The data of a picture of the whole recording: what every vCPU, CPU and thread of interest did when, and when paths'
instances and losses were. Memory is bounded whatever the recording's length, and nothing is sampled: what is too short
to be kept alone is in a sum that is exact to the nanosecond (`lane.rs`).

[`Timeline`] collects it in the walk that all analyses share. A [`TimelineReport`] is what it found. Which times are of
interest is known then: a [`StretchPlan`] has the sums that lie in them, and another `Timeline` of that plan, in a
second walk, finds the stretches that take their place ([`TimelineReport::refine`]).
*/

mod build;
mod causes;
pub(crate) mod cell;
pub(crate) mod class;
mod examples;
mod guest_lanes;
mod guests;
mod lane;
mod limits;
mod marks;
mod names;
mod open;
mod plan;
mod refine;
mod report;
mod tasks;

pub use cell::{Cell, KINDS, LaneGroup, OUTSIDE, Stretch, StretchSum};
pub use examples::PathExamples;
pub(crate) use guest_lanes::{GuestLane, GuestLanes};
pub use limits::TimelineLimits;
pub use marks::Mark;
pub use names::TimelineNames;
pub use plan::StretchPlan;
pub use report::{TimelineEvent, TimelineLane, TimelineMarks, TimelineReport, TimelineWindow};

use doubts::{Concern, Concerns};
use event::{
    Data, Event, EventType, ExitReason, KERNEL_STACK, Kind, LostKind, NONE, Side, index_of,
};
use model::{Span, State, TaskChanges, Threads};
use paths::CompletedInstance;

use crate::analysis::{Analysis, Context, EventDetail, FilterScope, Needs, Note, States, Turn};
use crate::chosen::Window;
use crate::open_lanes::OpenLanes;
use causes::Causes;
use cell::NOBODY;
use examples::Examples;
pub(crate) use examples::total_ns;
use lane::{FEWEST, Lane};
use limits::unit;
use marks::MarkList;
use plan::Parts;
use tasks::{Caps, TaskLanes, window_of};

/// vCPUs that have a lane.
const MAX_VCPUS: usize = 1 << 11;
/// Paths whose instances are marked.
const MAX_PATHS: usize = 64;
/// How much larger lanes of vCPUs and of CPUs may be than those of threads.
const VCPU_WEIGHT: usize = 3;
const CPU_WEIGHT: usize = 2;
/// Stretches of vCPUs and switches after which it is looked at anew how many cells each lane may have.
const EVERY: u32 = 1 << 13;
/// The state of a vCPU in KVM, in an exit in which its guest asked to wait: what it is to be called is known at the end
/// ([`model::SeenEvents::settle`]).
const KERNEL_WAITING: u8 = 9;

/// Instances of one path.
#[derive(Debug, Default)]
struct OfPath {
    marks: MarkList,
    examples: Examples,
}

/// Collects a timeline.
#[derive(Debug, Default)]
pub struct Timeline {
    window: Window,
    limits: TimelineLimits,
    vcpus: Vec<Lane>,
    /// Whether there are vCPUs that have no lane.
    beyond: bool,
    causes: Causes,
    scheduled: TaskLanes,
    paths: Vec<OfPath>,
    /// How many of the paths are the host's, if others follow.
    of_host: Option<usize>,
    lost: MarkList,
    /// Time of the last event.
    now: u64,
    /// How many cells lanes may have, and what was taken since that was looked at.
    vcpu_cap: usize,
    caps: Caps,
    taken: u32,
    /// What of vCPUs is wanted, where only parts are.
    parts: Option<Box<Parts>>,
}

/// A stretch of a vCPU is summed as what it is.
fn as_is(one: &Stretch) -> u8 {
    one.kind
}

impl Timeline {
    /// Returns a timeline of nothing.
    pub fn new(window: Window, limits: TimelineLimits) -> Timeline {
        let cells = limits.cells;
        Timeline {
            window,
            limits,
            vcpu_cap: cells,
            caps: Caps {
                cpus: cells,
                threads: cells,
            },
            ..Timeline::default()
        }
    }

    /// Says that of the paths those from this one on go through guests. They are marked as the others are, but do not
    /// say which threads have lanes: the host's lanes are the same with guests and without.
    #[must_use]
    pub fn of_host(self, paths: usize) -> Timeline {
        Timeline {
            of_host: Some(paths),
            ..self
        }
    }

    /// Returns one that finds the stretches that a plan asks for, and nothing else.
    pub fn of_plan(plan: &StretchPlan, window: Window) -> Timeline {
        let (parts, only) = plan.parts();
        let mut timeline = Timeline::new(window, plan.limits());
        timeline.parts = Some(Box::new(parts));
        timeline.scheduled = TaskLanes::of_parts(only);
        timeline
    }

    /// Returns whether all that a plan asks for has been found.
    pub fn is_past(&self) -> bool {
        let parts = self.parts.as_ref();
        parts.is_some_and(|parts| parts.is_empty())
            && self.vcpus.iter().all(Lane::is_past)
            && self.scheduled.is_past()
    }

    /// Looks anew at how many cells each lane may have: those that need few leave theirs to others.
    #[cold]
    fn share(&mut self) {
        self.taken = 0;
        if self.parts.is_some() {
            return;
        }
        // A lane may grow until it is looked at again, and lanes are made to fit at the end.
        let wants = |cells: usize| cells.saturating_mul(2).max(FEWEST);
        let mut lanes: Vec<(usize, usize)> = Vec::new();
        let (cpus, threads) = self.scheduled.cells();
        lanes.extend(
            self.vcpus
                .iter()
                .map(|lane| (wants(lane.len()), VCPU_WEIGHT)),
        );
        lanes.extend(cpus.map(|cells| (wants(cells), CPU_WEIGHT)));
        lanes.extend(threads.map(|cells| (wants(cells), 1)));
        let unit = unit(&lanes, self.limits.cells.saturating_mul(2)).max(FEWEST);
        self.vcpu_cap = unit.saturating_mul(VCPU_WEIGHT);
        self.caps = Caps {
            cpus: unit.saturating_mul(CPU_WEIGHT),
            threads: unit,
        };
    }

    #[inline]
    fn takes(&mut self) {
        self.taken += 1;
        if self.taken >= EVERY {
            self.share();
        }
    }

    #[inline]
    fn span(&mut self, span: &Span) {
        let waiting = || span.cause.reason.is_some_and(ExitReason::is_waiting);
        let kind = match span.state {
            State::Kernel if waiting() => KERNEL_WAITING,
            state => state as u8,
        };
        let one = Stretch {
            start: span.start,
            end: span.end,
            kind,
            cpu: span.cpu,
            what: self.causes.number(&span.cause),
            behind: span.behind.unwrap_or(NOBODY),
        };
        let Some(one) = window_of(&self.window, one) else {
            return;
        };
        let index = index_of(span.vcpu);
        if self.vcpus.len() <= index && !self.meet(index) {
            return;
        }
        if let Some(lane) = self.vcpus.get_mut(index) {
            lane.push(one, self.vcpu_cap, &as_is);
        }
        self.takes();
    }

    /// Makes lanes for vCPUs; returns whether there may be so many.
    #[cold]
    fn meet(&mut self, index: usize) -> bool {
        if index >= MAX_VCPUS {
            self.beyond = true;
            return false;
        }
        for number in self.vcpus.len()..=index {
            self.vcpus.push(match &mut self.parts {
                Some(parts) => Lane::of_ranges(parts.of_vcpu(number)),
                None => Lane::default(),
            });
        }
        true
    }

    /// An instance of a path has completed.
    fn completed(&mut self, one: &CompletedInstance) {
        if one.path >= MAX_PATHS || self.parts.is_some() {
            return;
        }
        if self.paths.len() <= one.path {
            self.paths.resize_with(one.path + 1, OfPath::default);
        }
        let (Some(first), Some(of_path)) = (one.reached.first(), self.paths.get_mut(one.path))
        else {
            return;
        };
        let ns = total_ns(one);
        of_path.marks.add(Mark {
            begin: first.time,
            end: first.time.saturating_add(ns),
            count: 1,
            max_ns: ns,
            amount: 0,
            what: one.subject.unwrap_or(NOBODY),
        });
        of_path.examples.add(one);
        if self.of_host.is_some_and(|paths| one.path >= paths) {
            return;
        }
        for reached in &one.reached {
            self.scheduled.takes_part(reached.thread);
            if let Some(task) = reached.task {
                self.scheduled.takes_part(task);
            }
        }
    }

    fn hear(&mut self, context: &Context<'_>) {
        for note in context.notes.iter() {
            if let Note::Completed(instance) = note {
                self.completed(instance);
            }
        }
    }
}

/// Whether an event is one of those that say how long a recording of the scheduler is: those that
/// [`crate::SchedLatencies`] takes.
fn of_sched(ty: &EventType<'_>) -> bool {
    ty.kind.is_sched()
        || matches!(
            ty.kind,
            Kind::WorkqueueExecuteStart | Kind::WorkqueueExecuteEnd
        )
        || ty.kind == Kind::Other && ty.name == KERNEL_STACK
}

impl Analysis for Timeline {
    fn filter_scope(&self) -> Option<FilterScope> {
        Some(FilterScope::Whole)
    }

    fn open_lanes(&self) -> Option<OpenLanes> {
        self.open()
    }

    fn may_resume(&self, open: &OpenLanes, time: u64, now: &Threads, then: &Threads) -> bool {
        self.may_skip_to(open, time, now, then)
    }

    fn resume(&mut self, open: &OpenLanes, before: &Threads, now: &Threads) {
        self.skip_to(open, before, now);
    }

    fn concerns(&self) -> Concerns {
        Concerns::of(&[Concern::States, Concern::Sched, Concern::Paths])
    }

    fn needs(&self) -> Needs {
        Needs {
            states: States::All,
            spans: true,
            task_spans: true,
            ..Needs::default()
        }
    }

    fn turn(&self) -> Turn {
        // It hears of instances that complete.
        Turn::Last
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match of_sched(ty) {
            true => EventDetail::Order,
            false => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, _: &Data, context: &mut Context<'_>) {
        self.now = self.now.max(event.time);
        self.hear(context);
        if of_sched(event.ty) {
            self.scheduled.passes(event.time);
        }
    }

    fn task_spans(&mut self, changes: &TaskChanges, context: &Context<'_>) {
        let (window, caps) = (&self.window, self.caps);
        self.scheduled.take(changes, context.machine, window, caps);
        self.takes();
    }

    fn spans(&mut self, spans: &[Span], _: &Context<'_>) {
        for span in spans {
            self.span(span);
        }
    }

    fn side(&mut self, side: &Side<'_>) {
        let Side::Lost {
            time,
            cpu,
            count,
            kind: LostKind::Ring,
            ..
        } = *side
        else {
            return;
        };
        let begin = if time == 0 { self.now } else { time };
        let here = cpu == NONE || self.window.has_cpu(cpu);
        if here && self.window.has_time(begin) && self.parts.is_none() {
            self.lost.add(Mark {
                begin,
                end: begin,
                count: 1,
                max_ns: 0,
                amount: count.unwrap_or(0),
                what: u32::try_from(cpu).unwrap_or(NOBODY),
            });
        }
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        self.hear(context);
        let machine = &*context.machine;
        self.scheduled.finish(machine, &self.window, self.caps);
        for lane in &mut self.vcpus {
            lane.finish(self.vcpu_cap, &as_is);
        }
    }
}
