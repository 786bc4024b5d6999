//! Push interface between recordings and whoever looks at their events.

use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;

use tracefmt::EventFormat;

use crate::chain::CallChain;
use crate::heads::HeadTally;
use crate::stack_line::StackFrame;
use crate::vocabulary::{Data, Decoder, Kind};

/// Stands where a CPU or thread is not known.
pub const NONE: i32 = -1;

/// One kind of event of one recording.
#[derive(Debug)]
pub struct EventType<'f> {
    /// Position in the list of kinds, from 0. Sinks index their tables by it, so where several recordings are walked
    /// together it counts through all of them.
    pub index: u32,
    /// The machine it happens on, where several are walked together: a host and its guests have threads, CPUs and
    /// names of their own. 0 in a recording by itself.
    pub machine: u16,
    /// Subsystem, as `kvm`; empty where the recording does not say (texts of ftrace, hardware events).
    pub system: &'f str,
    /// Name, as `kvm_exit` or `cycles`.
    pub name: &'f str,
    /// Name as the container prints it: perf names events with their subsystem and modifiers.
    pub label: &'f str,
    /// What it means to trapline.
    pub kind: Kind,
    /// The format of its binary records, if it has any.
    pub format: Option<&'f EventFormat>,
    /// Reads the typed view out of binary records.
    pub decoder: Decoder,
    /// Whether it is certain that events of this kind were recorded, so that none means that it never
    /// happened. trace.dat has the formats of events that nobody asked for.
    pub recorded: bool,
}

impl<'f> EventType<'f> {
    /// Returns the kind of a tracepoint's format.
    pub fn of_format(index: u32, format: &'f EventFormat, label: &'f str) -> EventType<'f> {
        let kind = Kind::of(&format.system, &format.name);
        EventType {
            index,
            machine: 0,
            system: &format.system,
            name: &format.name,
            label,
            kind,
            format: Some(format),
            decoder: Decoder::bind(kind, format),
            recorded: false,
        }
    }

    /// Returns the kind of something that has no format: a hardware event, or a tracepoint whose format was lost.
    /// `label` is `system:name`, a bare name, or either with modifiers behind another colon.
    pub fn bare(index: u32, label: &'f str, tracepoint: bool) -> EventType<'f> {
        let (system, name) = match label.split_once(':') {
            Some((system, name)) if tracepoint => (system, name),
            _ => ("", label),
        };
        EventType {
            index,
            machine: 0,
            system,
            name,
            label,
            kind: Kind::of(system, name),
            format: None,
            decoder: Decoder::default(),
            recorded: false,
        }
    }

    /// Returns kinds of events in the order in which sinks are asked for them.
    pub fn in_order<'t>(types: &'t [EventType<'f>]) -> Vec<&'t EventType<'f>> {
        let mut sorted: Vec<_> = types.iter().collect();
        sorted.sort_by_key(|ty| ty.kind);
        sorted
    }
}

/// What an event says.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    /// A binary record, the common fields included.
    Raw(&'a [u8]),
    /// A line's text behind the event name, with what was read from it.
    Text {
        /// The text as it stood.
        text: &'a str,
        /// The typed view.
        data: Data,
    },
    /// Nothing: a hardware or software event of perf.
    None,
}

/// The calls under way in user space as a CPU's last branch records had them (`perf record --call-graph lbr`),
/// innermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallBranches<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> CallBranches<'a> {
    /// `bytes` are the entries as perf.data has them: from, to, flags, 8 bytes each.
    pub fn new(bytes: &'a [u8], big_endian: bool) -> CallBranches<'a> {
        CallBranches { bytes, big_endian }
    }

    /// Returns the addresses of the functions, innermost first: where the last call went, then where each call came
    /// from (`lbr_callchain_add_lbr_ip` in `tools/perf/util/machine.c`).
    pub fn addresses(self) -> impl Iterator<Item = u64> + use<'a> {
        let word = move |entry: &[u8], at: usize| {
            let bytes: [u8; 8] = entry.get(at..at + 8)?.try_into().ok()?;
            Some(match self.big_endian {
                true => u64::from_be_bytes(bytes),
                false => u64::from_le_bytes(bytes),
            })
        };
        let entries = self.bytes.chunks_exact(24);
        let first = entries.clone().next().and_then(|entry| word(entry, 8));
        first
            .into_iter()
            .chain(entries.filter_map(move |entry| word(entry, 0)))
    }
}

/// What was recorded of user space to make a stack of (`perf record --call-graph dwarf`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserStackBytes<'a> {
    /// Which registers there are, a bit each, by the numbers of `PERF_REG_*` (`arch/*/include/uapi/asm/perf_regs.h`).
    pub mask: u64,
    /// The registers, in the order of their numbers, as 8-byte numbers, the lowest byte first.
    pub registers: &'a [u8],
    /// What was on the stack, from the stack pointer on.
    pub stack: &'a [u8],
}

/// What a perf sample has beside time, place and record.
///
/// A tracepoint's address is the tracepoint's own, always the same: it is handed on, with period and call chain,
/// only in recordings whose tracepoints have call chains.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventSample<'a> {
    /// `misc` of the record's header: CPU mode in the low three bits
    /// (`include/uapi/linux/perf_event.h`, `PERF_RECORD_MISC_*`).
    pub misc: u16,
    /// Instruction pointer.
    pub ip: Option<u64>,
    /// Address the sample is about.
    pub addr: Option<u64>,
    /// Events this sample stands for.
    pub period: Option<u64>,
    /// Call chain.
    pub callchain: Option<CallChain<'a>>,
    /// The calls under way in user space, where the CPU recorded them: perf takes these instead of the call chain's
    /// own.
    pub call_branches: Option<CallBranches<'a>>,
    /// What to make a stack of user space of, for programs of 64 bits on machines that put the lowest byte first.
    pub user_stack: Option<UserStackBytes<'a>>,
    /// Whether the recording has a CPU for this event: perf prints none otherwise.
    pub has_cpu: bool,
    /// Whether the event is a tracepoint.
    pub tracepoint: bool,
}

/// One event, in time order.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Time stamp on the recording's clock: nanoseconds, or ticks where the clock counts those.
    pub time: u64,
    /// CPU; [`NONE`] when not recorded.
    pub cpu: i32,
    /// Thread id; [`NONE`] when not recorded.
    pub tid: i32,
    /// Process id; [`NONE`] when not recorded (ftrace does not).
    pub pid: i32,
    /// Its kind.
    pub ty: &'a EventType<'a>,
    /// What it says.
    pub body: Body<'a>,
    /// What perf sampled with it, if the sink wants that ([`Sink::wants_samples`]).
    pub sample: Option<&'a EventSample<'a>>,
    /// The ring buffer it came from: 0 the main one, others the instances of ftrace in the recording's
    /// order.
    pub buffer: u16,
    /// The thread's name where the container has it with every event (texts).
    pub comm: Option<&'a str>,
}

impl<'a> Event<'a> {
    /// Returns an event of a kind with nothing beside it: its time, CPU and thread, and what it says.
    pub fn bare(
        ty: &'a EventType<'a>,
        (time, cpu, tid): (u64, i32, i32),
        body: Body<'a>,
    ) -> Event<'a> {
        Event {
            time,
            cpu,
            tid,
            pid: NONE,
            ty,
            body,
            sample: None,
            buffer: 0,
            comm: None,
        }
    }
}

impl Event<'_> {
    /// Returns the machine it happened on ([`EventType::machine`]).
    #[inline]
    pub fn machine(&self) -> u16 {
        self.ty.machine
    }

    /// Returns the typed view.
    #[inline]
    pub fn data(&self) -> Data {
        match self.body {
            Body::Raw(record) => self.ty.decoder.decode(record),
            Body::Text { data, .. } => data,
            Body::None => Data::Other,
        }
    }
}

/// Who says how many events were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostKind {
    /// The ring buffer, where it happened: `PERF_RECORD_LOST`, ftrace's missed events.
    Ring,
    /// The recorder's sum at the end: `PERF_RECORD_LOST_SAMPLES`. It counts again what the ring counted.
    Sum,
}

/// What a recording says beside events.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Side<'a> {
    /// A thread has (got) this name.
    Comm {
        /// When; 0 for what the recorder found at its start.
        time: u64,
        /// Process id, [`NONE`] when not recorded.
        pid: i32,
        /// Thread id.
        tid: i32,
        /// Name.
        comm: &'a str,
        /// Whether the name comes from an exec, which begins a new program.
        exec: bool,
    },
    /// A thread was made.
    Fork {
        /// When.
        time: u64,
        /// Process of the new thread.
        pid: i32,
        /// The new thread.
        tid: i32,
        /// Process that made it.
        ppid: i32,
        /// Thread that made it.
        ptid: i32,
    },
    /// A counter of a thread was read: what it counted since it was read before.
    Counter {
        /// When; 0 where that is not recorded.
        time: u64,
        /// The thread's process.
        pid: i32,
        /// The thread.
        tid: i32,
        /// The event that it counts, as the recording calls it: `cycles:G`.
        event: &'a str,
        /// Whose execution it counts.
        mode: CounterMode,
        /// What it counted.
        value: u64,
        /// How long it was enabled, ns, and how long of that the processor counted it: less where several events took
        /// turns. `None` where that was not read.
        times_ns: Option<(u64, u64)>,
    },
    /// A thread ended.
    Exit {
        /// When.
        time: u64,
        /// Its process.
        pid: i32,
        /// The thread.
        tid: i32,
    },
    /// A file was mapped executable (or the kernel and its modules were found).
    Mmap {
        /// When; 0 for what the recorder found at its start.
        time: u64,
        /// Process; -1 for the kernel.
        pid: i32,
        /// Thread.
        tid: i32,
        /// First address.
        start: u64,
        /// Bytes.
        len: u64,
        /// Offset in the file of the first byte.
        pgoff: u64,
        /// CPU mode and flags of the record's header.
        misc: u16,
        /// Whether code may run there.
        exec: bool,
        /// Whether it is of huge pages, which have no file whatever their name.
        huge: bool,
        /// The file's build id, where the recorder noted it with the mapping.
        build_id: Option<&'a [u8]>,
        /// The file, as the recorder saw it.
        path: &'a str,
    },
    /// Code that the kernel made, or took away again: a BPF program, a trampoline.
    Ksymbol {
        /// When; 0 for what the recorder found at its start.
        time: u64,
        /// First address.
        start: u64,
        /// Bytes.
        len: u64,
        /// Name.
        name: &'a str,
        /// Whether it is gone.
        gone: bool,
    },
    /// User space's part of the call chains of a thread's events that have a number in its place
    /// ([`CallChain::deferred`](crate::CallChain::deferred)): it comes behind them.
    DeferredStack {
        /// When.
        time: u64,
        /// The thread.
        tid: i32,
        /// The number.
        cookie: u64,
        /// Its addresses, innermost first.
        chain: CallChain<'a>,
    },
    /// A line of the stack of the event before it, innermost first, as texts print stacks.
    StackLine(StackFrame<'a>),
    /// The recording holds its events CPU by CPU and was cut off, so that from a time on those of some CPUs are missing
    /// and those of others are not. Comes after all events.
    Cut {
        /// From when on; 0 where of some CPU there is nothing.
        from: u64,
    },
    /// The recording of one of several machines that are walked together has ended, while that of another goes on; or
    /// the part of it that a CPU recorded has, where it was cut off and others go on.
    End {
        /// When its last event was.
        time: u64,
        /// The CPU; `None` where it is all of the recording.
        cpu: Option<i32>,
    },
    /// Events were lost before this moment.
    Lost {
        /// When it was noticed; 0 when not recorded.
        time: u64,
        /// CPU; [`NONE`] when not recorded.
        cpu: i32,
        /// The ring buffer, as in [`Event::buffer`].
        buffer: u16,
        /// How many; `None` when the recorder only noticed that some were.
        count: Option<u64>,
        /// Who says so.
        kind: LostKind,
    },
}

/// Whose execution a counter counts (`exclude_host` and `exclude_guest` of `perf_event_attr`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterMode {
    /// The host's and its guests'.
    Both,
    /// The guest's alone.
    Guest,
    /// The host's alone.
    Host,
}

/// In which order a sink needs the events of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum EventOrder {
    /// In none.
    Any,
    /// Those of each thread in time order, and those of each CPU, whatever others do meanwhile.
    Thread,
    /// In time order with all others.
    #[default]
    Time,
}

/// A place in a recording from which another walk can go on: what it pushes is what the walk that noted it had yet to
/// push.
#[derive(Debug, Clone)]
pub struct ResumePlace {
    /// Up to when everything has been pushed, but for what comes late.
    pub time: u64,
    /// What the container knows of it.
    pub inner: Arc<dyn Any + Send + Sync>,
}

/// Receives what a recording holds, in time order or as much of it as it needs ([`Sink::order`]).
///
/// Recordings push, and do not offer iterators: the merge of per-CPU streams, decompression buffers and
/// mapped pages stay with the reader, and a sink borrows each event for the length of one call.
pub trait Sink {
    /// Says whether events of this kind are wanted. Called once for each kind, before its first event;
    /// what is not wanted is skipped as early and as cheaply as the container allows. A recording that lists its
    /// kinds asks for all before its first event, in the order of [`Kind`], so that what one kind says can make
    /// another one needless.
    fn wants(&mut self, ty: &EventType<'_>) -> bool;

    /// Reports in which order events of a kind are needed that [`Sink::wants`] asked for. Sorting is a good part of a
    /// walk, so a reader may leave out what nobody needs:
    ///
    /// - [`EventOrder::Any`]: they come as the reader finds them.
    /// - [`EventOrder::Thread`]: between two events that need time order, those of each thread come in time order,
    ///   and those of each CPU. Idle tasks have one id on all CPUs: theirs come in order on each CPU alone. A
    ///   thread's first one comes in time order, so that threads are met in order.
    /// - [`EventOrder::Time`]: before each of them and each side record, all other events come that stand before it,
    ///   but for those that need no order.
    fn order(&self, ty: &EventType<'_>) -> EventOrder {
        let _ = ty;
        EventOrder::Time
    }

    /// Says whether [`Event::sample`] is looked at, of events of a kind that [`Sink::wants`] asked for: gathering it
    /// costs as much as a small analysis does.
    fn wants_samples(&self, ty: &EventType<'_>) -> bool {
        let _ = ty;
        false
    }

    /// Says whether the reader is to follow by itself that events happen ([`Sink::tallied`]), which costs it little
    /// where it finds them. A reader that asks does so if the answer is yes. Asked once, before the first event.
    fn tallies(&mut self) -> bool {
        false
    }

    /// Takes what the reader has found since the last time, of all events that are wanted, and clears it. It may be
    /// ahead of the events that are handed out, never behind.
    fn tallied(&mut self, tally: &mut HeadTally) {
        tally.clear();
    }

    /// Says whether events of a kind that [`Sink::wants`] asked for need not be handed out if the reader tallies.
    fn only_tallied(&self, ty: &EventType<'_>) -> bool {
        let _ = ty;
        false
    }

    /// Says whether [`Sink::place`] is of interest. Asked once, before the first event.
    fn places(&self) -> bool {
        false
    }

    /// Takes a place from which another walk can go on, between the events before it and those after it. Only some
    /// containers tell any.
    fn place(&mut self, place: &ResumePlace) {
        let _ = place;
    }

    /// Takes one event. Returning `Break` ends the walk.
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()>;

    /// Takes a side record: a name, a loss, a mapping.
    fn side(&mut self, side: &Side<'_>) {
        let _ = side;
    }

    /// The same for one of several machines that are walked together ([`EventType::machine`]).
    fn side_of(&mut self, machine: u16, side: &Side<'_>) {
        let _ = machine;
        self.side(side);
    }
}
