//! Walks a host's recording and those of its guests together: every event in the order of the host's clock.
//!
//! The host's walk leads. Each guest's recording is walked by a thread of its own, which copies what is wanted of it
//! into batches and hands them over through a channel that holds few: memory does not grow with the recordings.

use std::ops::{ControlFlow, Range};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::Builder;

use clocks::Fit;
use doubts::DoubtKind;
use event::{Body, Data, Event, EventOrder, EventType, Kind, LostKind, OwnedType, Side, Sink};
use source::{RecordingReader, WalkOutcome};

/// Batches that wait for the host's walk.
const WAITING: usize = 4;
/// Events of a batch.
const EVENTS: usize = 1024;
/// Bytes of a batch, beyond which it is handed over.
const BYTES: usize = 1 << 18;

/// What a guest's thread hands over.
enum FeedMessage {
    /// A kind of events; whether it is wanted is answered.
    Kind(Box<OwnedType>),
    Batch(Batch),
}

/// What an event says, in a batch.
enum BodyCopy {
    Raw(Range<usize>),
    Text(Range<usize>, Data),
    Nothing,
}

/// One event of a batch.
struct EventCopy {
    /// On the host's clock.
    time: u64,
    cpu: i32,
    tid: i32,
    pid: i32,
    /// Its place among the guest's kinds.
    kind: u32,
    said: BodyCopy,
    comm: Option<Range<usize>>,
    buffer: u16,
}

/// A side record of a batch.
enum SideCopy {
    Comm {
        time: u64,
        pid: i32,
        tid: i32,
        comm: Box<str>,
        exec: bool,
    },
    Lost {
        time: u64,
        cpu: i32,
        buffer: u16,
        count: Option<u64>,
        kind: LostKind,
    },
}

/// Events and side records of a guest, in its order.
#[derive(Default)]
struct Batch {
    events: Vec<EventCopy>,
    /// Side records, each before the event with that number.
    asides: Vec<(usize, SideCopy)>,
    bytes: Vec<u8>,
}

/// Copies what is wanted of a guest's recording.
struct Feeder {
    fit: Fit,
    batch: Batch,
    to: SyncSender<FeedMessage>,
    answers: Receiver<bool>,
    /// The host's walk has ended.
    over: bool,
}

impl Feeder {
    fn hand_over(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        if !batch.events.is_empty() || !batch.asides.is_empty() {
            self.over |= self.to.send(FeedMessage::Batch(batch)).is_err();
        }
    }

    fn copy(&mut self, bytes: &[u8]) -> Range<usize> {
        let from = self.batch.bytes.len();
        self.batch.bytes.extend_from_slice(bytes);
        from..self.batch.bytes.len()
    }
}

impl Sink for Feeder {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        // What came before is of kinds that are known: their order stays.
        self.hand_over();
        let asked = self
            .to
            .send(FeedMessage::Kind(Box::new(OwnedType::of(ty))))
            .is_ok();
        asked && self.answers.recv().unwrap_or(false)
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        EventOrder::Time
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let said = match event.body {
            Body::Raw(record) => BodyCopy::Raw(self.copy(record)),
            Body::Text { text, data } => BodyCopy::Text(self.copy(text.as_bytes()), data),
            Body::None => BodyCopy::Nothing,
        };
        let comm = event.comm.map(|comm| self.copy(comm.as_bytes()));
        self.batch.events.push(EventCopy {
            time: self.fit.host(event.time),
            cpu: event.cpu,
            tid: event.tid,
            pid: event.pid,
            kind: event.ty.index,
            said,
            comm,
            buffer: event.buffer,
        });
        if self.batch.events.len() >= EVENTS || self.batch.bytes.len() >= BYTES {
            self.hand_over();
        }
        match self.over {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn side(&mut self, side: &Side<'_>) {
        let host = |time: u64| match time {
            // The recorder's start, or not recorded.
            0 => 0,
            time => self.fit.host(time),
        };
        let aside = match *side {
            Side::Comm {
                time,
                pid,
                tid,
                comm,
                exec,
            } => SideCopy::Comm {
                time: host(time),
                pid,
                tid,
                comm: comm.into(),
                exec,
            },
            Side::Lost {
                time,
                cpu,
                buffer,
                count,
                kind,
            } => SideCopy::Lost {
                time: host(time),
                cpu,
                buffer,
                count,
                kind,
            },
            // Nobody who looks at guests needs the others.
            _ => return,
        };
        let at = self.batch.events.len();
        self.batch.asides.push((at, aside));
        if self.batch.asides.len() >= EVENTS {
            self.hand_over();
        }
    }
}

/// What of a guest has come and has not been passed on.
struct GuestFeed {
    machine: u16,
    /// Its kinds of events, by the index that they have in its recording.
    kinds: Vec<Option<OwnedType>>,
    from: Receiver<FeedMessage>,
    answers: Sender<bool>,
    batch: Batch,
    /// The next event of the batch, and the next side record.
    at: usize,
    aside: usize,
    /// When its CPUs' parts end before the recording does, and which: in order, and those behind `ended` are to come.
    ends: Vec<(u64, i32)>,
    ended: usize,
    /// When its last event is, whether or not anybody wants it.
    last: u64,
    /// Nothing more comes, and that was said.
    over: bool,
    closed: bool,
}

impl GuestFeed {
    /// Makes sure that there is something to pass on, if anything will ever come. `inner` is asked whether it wants a
    /// kind; each gets the `next` index of all recordings.
    fn fill(&mut self, inner: &mut dyn Sink, next: &mut u32) {
        while !self.over && self.at >= self.batch.events.len() {
            self.asides(inner, usize::MAX);
            match self.from.recv() {
                Ok(FeedMessage::Batch(batch)) => {
                    self.batch = batch;
                    self.at = 0;
                    self.aside = 0;
                }
                Ok(FeedMessage::Kind(kind)) => {
                    let index = kind.ty().index as usize;
                    let kind = kind.with(self.machine, *next);
                    *next += 1;
                    let wanted = inner.wants(&kind.ty());
                    if self.kinds.len() <= index {
                        self.kinds.resize_with(index + 1, || None);
                    }
                    self.kinds[index] = Some(kind);
                    // Where the guest's walk has ended, the channel says so next.
                    let _ = self.answers.send(wanted);
                }
                Err(_) => self.over = true,
            }
        }
    }

    /// Passes on the side records that stand before an event.
    fn asides(&mut self, inner: &mut dyn Sink, before: usize) {
        while let Some((at, aside)) = self.batch.asides.get(self.aside) {
            if *at > before {
                break;
            }
            self.aside += 1;
            let side = match aside {
                SideCopy::Comm {
                    time,
                    pid,
                    tid,
                    comm,
                    exec,
                } => Side::Comm {
                    time: *time,
                    pid: *pid,
                    tid: *tid,
                    comm,
                    exec: *exec,
                },
                SideCopy::Lost {
                    time,
                    cpu,
                    buffer,
                    count,
                    kind,
                } => Side::Lost {
                    time: *time,
                    cpu: *cpu,
                    buffer: *buffer,
                    count: *count,
                    kind: *kind,
                },
            };
            inner.side_of(self.machine, &side);
        }
    }

    /// Returns when its next event is, or when it ends; `None` if it has ended.
    fn next_time(&mut self, inner: &mut dyn Sink, next: &mut u32) -> Option<u64> {
        self.fill(inner, next);
        match self.batch.events.get(self.at) {
            Some(event) => Some(event.time),
            None => (!self.closed).then_some(self.last),
        }
    }

    /// Passes its next event on, or says that there is none any more.
    fn pass(&mut self, inner: &mut dyn Sink) -> ControlFlow<()> {
        self.asides(inner, self.at);
        let Some(event) = self.batch.events.get(self.at) else {
            self.closed = true;
            let time = self.last;
            inner.side_of(self.machine, &Side::End { time, cpu: None });
            return ControlFlow::Continue(());
        };
        while let Some((time, cpu)) = self.ends.get(self.ended).copied()
            && time < event.time
        {
            self.ended += 1;
            let cpu = Some(cpu);
            inner.side_of(self.machine, &Side::End { time, cpu });
        }
        self.at += 1;
        self.last = self.last.max(event.time);
        let kind = self.kinds.get(event.kind as usize).and_then(Option::as_ref);
        let Some(ty) = kind.map(OwnedType::ty) else {
            return ControlFlow::Continue(());
        };
        let bytes = |range: &Range<usize>| self.batch.bytes.get(range.clone()).unwrap_or_default();
        let text = |range: &Range<usize>| std::str::from_utf8(bytes(range)).unwrap_or_default();
        inner.event(&Event {
            time: event.time,
            cpu: event.cpu,
            tid: event.tid,
            pid: event.pid,
            ty: &ty,
            body: match &event.said {
                BodyCopy::Raw(range) => Body::Raw(bytes(range)),
                BodyCopy::Text(range, data) => Body::Text {
                    text: text(range),
                    data: *data,
                },
                BodyCopy::Nothing => Body::None,
            },
            sample: None,
            buffer: event.buffer,
            comm: event.comm.as_ref().map(text),
        })
    }
}

/// The host's walk, with what comes of guests before each of its events.
struct Lockstep<'s> {
    inner: &'s mut dyn Sink,
    guests: Vec<GuestFeed>,
    /// When the next event of any guest is; 0 as long as nobody has looked, `u64::MAX` if there is none.
    next: u64,
    /// The index that the next kind of events of a guest gets.
    index: u32,
    /// Whether the sink has had enough.
    ended: bool,
}

impl Lockstep<'_> {
    /// Finds out when the next event of any guest is, and whose.
    fn look(&mut self) -> Option<usize> {
        let (inner, index) = (&mut *self.inner, &mut self.index);
        let next = self.guests.iter_mut().enumerate();
        let next = next.filter_map(|(at, guest)| Some((guest.next_time(inner, index)?, at)));
        let next = next.min();
        self.next = next.map_or(u64::MAX, |(time, _)| time);
        next.map(|(_, at)| at)
    }

    /// Passes on what guests have before a time, and what they have `with` it.
    #[inline(never)]
    fn up_to(&mut self, time: u64, with: bool) {
        while let Some(at) = self.look() {
            if self.ended || self.next > time || (self.next == time && !with) {
                break;
            }
            self.ended = self.guests[at].pass(self.inner).is_break();
        }
    }
}

impl Sink for Lockstep<'_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.index = self.index.max(ty.index.saturating_add(1));
        self.inner.wants(ty)
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        // Each has its place among the guests' events.
        EventOrder::Time
    }

    fn wants_samples(&self, ty: &EventType<'_>) -> bool {
        self.inner.wants_samples(ty)
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if event.time >= self.next {
            // What happens at the time of an exit happened before it.
            self.up_to(event.time, event.ty.kind == Kind::KvmExit);
        }
        let flow = match self.ended {
            true => ControlFlow::Break(()),
            false => self.inner.event(event),
        };
        self.ended = flow.is_break();
        flow
    }

    fn side(&mut self, side: &Side<'_>) {
        self.inner.side(side);
    }
}

/// A guest to be walked with its host.
pub(super) struct GuestWalk<'w> {
    /// Its recording.
    pub(super) reader: &'w RecordingReader<'w>,
    /// How its clock reads on the host's.
    pub(super) fit: Fit,
    /// The number of its machine.
    pub(super) machine: u16,
    /// When its CPUs' last events are, on its own clock, where it was cut off and these differ by that.
    pub(super) ends: &'w [(u64, i32)],
    /// When its last event is, on its own clock.
    pub(super) last: Option<u64>,
}

/// Kinds of events that a text of a host may have: it asks for each when it comes upon it, when those of guests have
/// their indexes.
const OF_TEXT: u32 = 1 << 13;

/// Walks a sink over all events of a host and its guests. Returns what is missing in each recording, the host's first.
pub(super) fn walk(
    host: &RecordingReader<'_>,
    guests: &[GuestWalk<'_>],
    sink: &mut dyn Sink,
) -> Vec<WalkOutcome> {
    std::thread::scope(|scope| {
        let mut fed = Vec::new();
        let mut walks = Vec::new();
        for guest in guests {
            let (to, from) = sync_channel(WAITING);
            let (answers, answered) = channel();
            let mut feeder = Feeder {
                fit: guest.fit,
                batch: Batch::default(),
                to,
                answers: answered,
                over: false,
            };
            let mut ends: Vec<(u64, i32)> = guest
                .ends
                .iter()
                .map(|(time, cpu)| (guest.fit.host(*time), *cpu))
                .collect();
            ends.sort_unstable();
            let reader = guest.reader;
            walks.push(Builder::new().spawn_scoped(scope, move || {
                let outcome = reader.walk(&mut feeder);
                feeder.hand_over();
                outcome
            }));
            fed.push(GuestFeed {
                machine: guest.machine,
                kinds: Vec::new(),
                from,
                answers,
                batch: Batch::default(),
                at: 0,
                aside: 0,
                ends,
                ended: 0,
                last: guest.last.map_or(0, |last| guest.fit.host(last)),
                over: false,
                closed: false,
            });
        }
        let mut lockstep = Lockstep {
            inner: sink,
            guests: fed,
            next: 0,
            index: match host.formats() {
                Some(_) => 0,
                None => OF_TEXT,
            },
            ended: false,
        };
        let outcome = host.walk(&mut lockstep);
        // What guests have behind the host's last event.
        lockstep.up_to(u64::MAX, true);
        drop(lockstep);
        let ended = walks
            .into_iter()
            .map(|walk| match walk.map(|walk| walk.join()) {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) | Err(_) => unread(),
            });
        std::iter::once(outcome).chain(ended).collect()
    })
}

/// What is said of a recording for which there was no thread.
fn unread() -> WalkOutcome {
    let mut outcome = WalkOutcome::default();
    outcome.quality.truncated = true;
    outcome.quality.raise(DoubtKind::NotReadWhole);
    outcome
}
