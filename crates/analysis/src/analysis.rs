//! What an analysis is: what it wants of a recording, what it is shown, and what it has to report.

use doubts::{Concerns, Doubts};
use event::{Data, Event, EventOrder, EventType, Kind, Side};
use model::{Machine, RetiredThreads, Span, TaskChanges, ThreadHandle, ThreadHandles, Threads};
use paths::CompletedInstance;

use crate::activity::Activity;
use crate::chosen::{Chosen, LeftOut, Window};
use crate::counts::Counts;
use crate::open_lanes::OpenLanes;
use crate::series::SliceMeasure;
use crate::slices::Amount;

/// What an analysis wants of the events of one kind.
///
/// Who wants less gets it cheaper: of events that are only counted nobody is called, of those whose head is enough no
/// field is read, and events whose thread alone needs them in order need not be sorted with those of other CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum EventDetail {
    /// None of them.
    #[default]
    Nothing,
    /// How many there are: the walk counts them for all ([`Needs::counts`]).
    Count,
    /// That they happened: when, on which CPU and by whom ([`Analysis::head`]).
    Head,
    /// What they say, those of each thread and of each CPU in order ([`Analysis::event`]).
    Thread,
    /// What they say, in the order of all.
    Order,
}

impl EventDetail {
    /// Returns the order it needs.
    pub(crate) fn order(self) -> EventOrder {
        match self {
            EventDetail::Nothing | EventDetail::Count => EventOrder::Any,
            EventDetail::Thread => EventOrder::Thread,
            EventDetail::Head | EventDetail::Order => EventOrder::Time,
        }
    }
}

/// When an analysis gets an event that the machine gets too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Turn {
    /// Before the machine: what vCPUs were doing, and who had which name, until now.
    Before,
    /// After it: what they do from now on. Spans that the event ended come first ([`Analysis::spans`]).
    #[default]
    After,
    /// After all others. It also gets every event about which others noted something ([`Context::notes`]).
    Last,
}

/// How much of the vCPUs' states an analysis needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum States {
    /// Nothing.
    #[default]
    Nothing,
    /// What they do, and in which exit; not which access made the exit.
    WithoutAccesses,
    /// All of it.
    All,
}

/// What an analysis needs beside events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Needs {
    /// Threads, their names, which are vCPUs, and VMs, as far as those events show them that somebody wants. Who needs
    /// states gets them too.
    pub threads: bool,
    /// The same by every `kvm_entry`, `kvm_exit` and event of the scheduler, whoever wants them.
    pub vcpus: bool,
    /// What vCPUs do.
    pub states: States,
    /// The spans of their states.
    pub spans: bool,
    /// What all tasks do, and who has which CPU, as spans ([`Analysis::task_spans`]).
    pub task_spans: bool,
    /// What perf samples with the events that it wants: call chains.
    pub samples: bool,
    /// How many events of which kind and on which CPU there are, of those that somebody wants ([`WalkState::counts`]).
    pub counts: bool,
    /// When CPUs had events, of whatever kind ([`WalkState::activity`]).
    pub activity: bool,
}

impl Needs {
    /// Returns what two analyses need.
    pub(crate) fn and(self, other: Needs) -> Needs {
        Needs {
            threads: self.threads | other.threads,
            vcpus: self.vcpus | other.vcpus,
            states: self.states.max(other.states),
            spans: self.spans | other.spans,
            task_spans: self.task_spans | other.task_spans,
            samples: self.samples | other.samples,
            counts: self.counts | other.counts,
            activity: self.activity | other.activity,
        }
    }
}

/// What one analysis passes to another during the walk.
#[derive(Debug, Clone)]
pub enum Note {
    /// An instance of a path has completed.
    Completed(CompletedInstance),
    /// The recorder talks to its agent in a guest, whose process that is, if it is known.
    RecorderTalks(Option<i32>),
}

/// Notes about the event now.
#[derive(Debug, Default)]
pub struct Notes {
    /// Whether anybody hears them.
    pub(crate) heard: bool,
    pub(crate) list: Vec<Note>,
    /// Instances that nobody needs any more.
    spare: Vec<CompletedInstance>,
}

impl Notes {
    /// Returns whether anybody hears what is noted.
    #[inline]
    pub fn are_heard(&self) -> bool {
        self.heard
    }

    /// Notes something about the event now.
    #[inline]
    pub fn push(&mut self, note: Note) {
        if self.heard {
            self.list.push(note);
        }
    }

    /// Forgets what was noted.
    pub(crate) fn clear(&mut self) {
        self.spare.clear();
        for note in self.list.drain(..) {
            if let Note::Completed(instance) = note {
                self.spare.push(instance);
            }
        }
    }

    /// Returns instances that were noted of events before and that nobody needs any more.
    pub(crate) fn spare(&mut self) -> impl Iterator<Item = CompletedInstance> + '_ {
        self.spare.drain(..)
    }

    /// Returns whether nothing was noted about the event now.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns what was noted about the event now, first things first.
    pub fn iter(&self) -> impl Iterator<Item = &Note> {
        self.list.iter()
    }
}

/// What all analyses of a walk share, at one event.
#[derive(Debug)]
pub struct Context<'w> {
    /// The machine the event happened on: threads with their names, VMs, and vCPUs with their states, as far as
    /// somebody needs them.
    pub machine: &'w mut Machine,
    /// The number of the thread that made the event.
    pub thread: ThreadHandle,
    /// Those of all threads that made events.
    pub handles: &'w ThreadHandles,
    /// When CPUs had events until now, this one included, if somebody needs that.
    pub activity: &'w Activity,
    /// Whether the event is one of those that were asked for.
    pub chosen: Chosen,
    /// When and on which CPUs events count.
    pub window: &'w Window,
    /// What vCPUs are left out.
    pub left_out: &'w LeftOut,
    /// What analyses pass to each other.
    pub notes: &'w mut Notes,
}

/// An event that happened in a guest whose recording is walked with the host's.
#[derive(Debug, Clone, Copy)]
pub struct GuestEvent<'e> {
    /// The event. Its time is on the host's clock; its CPU and thread are the guest's.
    pub event: &'e Event<'e>,
    /// What it says.
    pub data: &'e Data,
    /// The host's thread that is the vCPU it happened on; `None` where that is not known.
    pub vcpu_tid: Option<i32>,
}

/// What all analyses share when the walk is over, or at one moment of it.
#[derive(Debug, Clone, Copy)]
pub struct WalkState<'w> {
    /// The machine.
    pub machine: &'w Machine,
    /// How many events there are, if somebody needs that.
    pub counts: &'w Counts,
    /// When CPUs had events, if somebody needs that.
    pub activity: &'w Activity,
    /// The time of the last event that an analysis looked at, on the host's clock.
    pub latest_ns: Option<u64>,
    /// When and on which CPUs events count.
    pub window: &'w Window,
    /// What vCPUs are left out.
    pub left_out: &'w LeftOut,
}

/// Which filters may take events away before an analysis sees them. What it does not let them take away it looks at by
/// itself ([`Context::chosen`]), since it needs other events too to know what was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FilterScope {
    /// All: by time, CPU, and the thread that made an event.
    Events,
    /// Those by time and CPU. vCPUs are chosen among what was found, because what a vCPU does may be known from any
    /// thread's events.
    Window,
    /// Those by time. A wait may begin on one CPU and end on another.
    Time,
    /// None: it has to see all events.
    Whole,
}

/// Of which events an analysis accounts for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountScope {
    /// Those that the filters choose ([`Chosen::counts`]).
    Chosen,
    /// Those in the window of time and CPUs, whoever made them ([`Chosen::inside`]).
    Inside,
    /// All that are read: it counts by itself what filters leave out.
    Read,
}

/// The events that an [`EventAccount`] is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountedEvents {
    /// All of them.
    All,
    /// Those of some kinds.
    Kinds(&'static [Kind]),
    /// Those of some types of the host's recording, by [`EventType::index`].
    Types(Vec<u32>),
    /// No events of the reader: so many things that the analysis itself began, or was given beside events. They are
    /// held against what it says became of them, and have no part in the share of events.
    Own {
        /// What one of them is.
        noun: &'static str,
        /// How many.
        count: u64,
    },
}

/// How many events of some kinds an analysis has counted: in rows, in rows of what is beyond the rows, as not timed, or
/// as left out. Whoever walks holds that against the events that the reader handed out ([`event::EventAccounting`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventAccount {
    /// Which events these are.
    pub which: AccountedEvents,
    /// What they are called in a sentence.
    pub name: &'static str,
    /// Whether it is of those that filters leave out too.
    pub of: AccountScope,
    /// How many of them are counted somewhere.
    pub events: u64,
}

/// A question to a recording.
///
/// [`Study`](crate::Study) walks it with others, follows what all of them need once ([`Context`]), and hands each the
/// events that it wants. Whoever adds it gets it back by its [`Handle`](crate::Handle) when the walk has ended.
pub trait Analysis: 'static {
    /// Returns what it needs beside events. Asked once, before all else.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Returns when it gets its events. Asked once, before all else.
    fn turn(&self) -> Turn {
        Turn::default()
    }

    /// Returns what it wants of a kind of events. Asked as [`event::Sink::wants`] is.
    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail;

    /// Takes an event of a kind that it wants to read.
    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        let _ = (event, data, context);
    }

    /// Takes an event of a kind of which its head is enough.
    fn head(&mut self, event: &Event<'_>, context: &mut Context<'_>) {
        let _ = (event, context);
    }

    /// Returns whether it looks at events of a kind that happen in guests whose recordings are walked with the host's.
    /// Asked of analyses of the host, as [`Analysis::wants`] is.
    fn wants_of_guest(&mut self, ty: &EventType<'_>) -> bool {
        let _ = ty;
        false
    }

    /// Takes an event of a guest. `context` is the host's: what its vCPUs were doing at that time.
    fn guest_event(&mut self, guest: &GuestEvent<'_>, context: &mut Context<'_>) {
        let _ = (guest, context);
    }

    /// Takes a side record of a guest, by the number of its machine.
    fn guest_side(&mut self, machine: u16, side: &Side<'_>) {
        let _ = (machine, side);
    }

    /// Takes the spans that the event now has ended, in the order in which they ended.
    fn spans(&mut self, spans: &[Span], context: &Context<'_>) {
        let _ = (spans, context);
    }

    /// Takes the spans of tasks and of a CPU that the event now, one of the scheduler, has ended. They come before
    /// the event itself to those whose turn is after the machine's. What is still under way at the end is in
    /// [`Machine::task_states`].
    fn task_spans(&mut self, changes: &TaskChanges, context: &Context<'_>) {
        let _ = (changes, context);
    }

    /// Threads become part of sums, since there are as many as are kept apart ([`model::StateLimits`]). What is kept of
    /// each of them goes into what is kept of all others, or is dropped where it says nothing of others; the machine
    /// still has them, and forgets them afterwards.
    fn retire(&mut self, retired: &RetiredThreads, machine: &Machine) {
        let _ = (retired, machine);
    }

    /// Takes a side record. Threads and names are followed for all ([`Context::machine`]).
    fn side(&mut self, side: &Side<'_>) {
        let _ = side;
    }

    /// Ends the walk. Those whose turn is before the machine's end before it, the others after it.
    fn finish(&mut self, context: &mut Context<'_>) {
        let _ = context;
    }

    /// Reports all sums so far, for slices of time: each by the part of the analysis it is of, and its number there.
    /// The numbers stay the same for the whole walk, but for those of threads that retire
    /// ([`Analysis::counted_by`]).
    fn counters(&self, walked: &WalkState<'_>, report: &mut dyn FnMut(u8, u32, Amount)) {
        let _ = (walked, report);
    }

    /// Returns the number of the sum that has what this one had counted, once threads have retired: its own unless it
    /// was one of theirs.
    fn counted_by(&self, part: u8, number: u32, retired: &RetiredThreads) -> u32 {
        let _ = (part, retired);
        number
    }

    /// Returns what such a sum is of; `None` if it is nobody's.
    fn measured(&self, part: u8, number: u32, walked: &WalkState<'_>) -> Option<SliceMeasure> {
        let _ = (part, number, walked);
        None
    }

    /// Returns which filters may take events away before it sees them; `None` where it is the same to it.
    fn filter_scope(&self) -> Option<FilterScope> {
        None
    }

    /// Returns the kinds of numbers that it makes: which doubts touch them.
    fn concerns(&self) -> Concerns {
        Concerns::default()
    }

    /// Raises what has to be known before its numbers are believed. Asked when the walk has ended.
    fn doubts(&self, walked: &WalkState<'_>, doubts: &mut Doubts) {
        let _ = (walked, doubts);
    }

    /// Returns how many events it has counted, by kind, where it accounts for all of them. Asked when the walk has
    /// ended.
    fn counted(&self, walked: &WalkState<'_>) -> Vec<EventAccount> {
        let _ = walked;
        Vec::new()
    }

    /// Returns what it has under way, so that another one can go on from here
    /// ([`Study::resume`](crate::Study::resume)); `None` where none can. Asked where the walk is resumable.
    fn open_lanes(&self) -> Option<OpenLanes> {
        None
    }

    /// Returns whether it finds all that is asked for up to a time even if it goes on at a later moment, when `open`
    /// was under way. `now` are the threads of this walk, `then` those of the later moment.
    fn may_resume(&self, open: &OpenLanes, time: u64, now: &Threads, then: &Threads) -> bool {
        let _ = (open, time, now, then);
        false
    }

    /// Goes on at a later moment. `before` are the threads until now, `now` those of that moment.
    fn resume(&mut self, open: &OpenLanes, before: &Threads, now: &Threads) {
        let _ = (open, before, now);
    }
}
