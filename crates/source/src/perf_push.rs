//! What goes out of a perf.data, as events.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use event::{
    Body, CallBranches, CallChain, CounterMode, CpuLosses, Event, EventOrder, EventSample,
    EventType, HeadTally, LostKind, NONE, ResumePlace, Side, Sink, UserStackBytes, index_of,
};
use perfdata::{
    EventAttr, LostSource, PerfVisitor, SampleTally, SampleWish, SideRecord, Totals,
    TracepointRecord,
};
use tracefmt::Endian;

use crate::walked::WalkWatch;

/// The kinds of events of a recording.
#[derive(Debug)]
pub(crate) struct AttrKinds<'k> {
    pub(crate) types: Vec<EventType<'k>>,
    tracepoint: Vec<bool>,
    /// Whether the sink looks at what perf sampled with them.
    sampled: Vec<bool>,
    /// Whether the sink wants a tally.
    tallies: bool,
    /// Stands for the period of samples that do not hold their own.
    periods: Vec<u64>,
    /// Whether tracepoints tell where they were: in recordings whose tracepoints have call chains.
    addresses: bool,
    big_endian: bool,
    /// By attribute, whose execution it counts.
    modes: Vec<CounterMode>,
}

/// Returns whose execution an event counts.
fn mode_of(attr: &EventAttr) -> CounterMode {
    match (attr.exclude_host, attr.exclude_guest) {
        (true, false) => CounterMode::Guest,
        (false, true) => CounterMode::Host,
        _ => CounterMode::Both,
    }
}

impl<'k> AttrKinds<'k> {
    /// Returns what samples of attributes are, whose kinds these are.
    pub(crate) fn new(
        types: Vec<EventType<'k>>,
        attrs: &[EventAttr],
        endian: Endian,
    ) -> AttrKinds<'k> {
        let is_tracepoint = |attr: &EventAttr| attr.tracepoint_id().is_some();
        AttrKinds {
            types,
            tracepoint: attrs.iter().map(is_tracepoint).collect(),
            sampled: Vec::new(),
            tallies: false,
            periods: attrs.iter().map(|attr| attr.sample_period).collect(),
            addresses: attrs
                .iter()
                .any(|attr| is_tracepoint(attr) && attr.has_callchain()),
            big_endian: endian == Endian::Big,
            modes: attrs.iter().map(mode_of).collect(),
        }
    }

    /// Asks a sink which kinds it wants, and in which order; and if there may be a tally, whether that is to be.
    pub(crate) fn wanted(&mut self, sink: &mut dyn Sink, tallies: bool) -> Vec<SampleWish> {
        let in_order = EventType::in_order(&self.types);
        let mut wanted = vec![SampleWish::No; self.types.len()];
        self.sampled = vec![false; self.types.len()];
        for ty in &in_order {
            if sink.wants(ty) {
                wanted[ty.index as usize] = SampleWish::InOrder;
            }
        }
        self.tallies = tallies && sink.tallies();
        // What one kind is wanted for may depend on the others, so orders are asked for when all are known.
        for ty in in_order {
            let want = &mut wanted[ty.index as usize];
            *want = match (*want, sink.order(ty)) {
                (SampleWish::InOrder, _) if self.tallies && sink.only_tallied(ty) => {
                    SampleWish::Tallied
                }
                (SampleWish::InOrder, EventOrder::Any) => SampleWish::AnyOrder,
                (SampleWish::InOrder, EventOrder::Thread) => SampleWish::OfThread,
                (want, _) => want,
            };
            let wanted = *want != SampleWish::No;
            self.sampled[ty.index as usize] = wanted && sink.wants_samples(ty);
        }
        wanted
    }

    /// Returns by attribute what is handed out with its samples.
    fn of_attrs(&self) -> Vec<PushedKind<'_>> {
        let kinds = self.types.iter().zip(&self.tracepoint).zip(&self.periods);
        let sampled = self.sampled.iter().copied().chain(std::iter::repeat(true));
        let kinds = kinds.zip(sampled).zip(&self.modes);
        kinds
            .map(|((((ty, tracepoint), period), sampled), mode)| PushedKind {
                ty,
                tracepoint: *tracepoint,
                sampled,
                period: *period,
                mode: *mode,
            })
            .collect()
    }

    /// Prepares to hand events to a sink.
    pub(crate) fn push<'p>(
        &'p self,
        sink: &'p mut dyn Sink,
        watch: &'p WalkWatch<'p>,
    ) -> PerfPush<'p> {
        PerfPush {
            tallies: self.tallies,
            addresses: self.addresses,
            sink,
            watch,
            kinds: self.of_attrs(),
            big_endian: self.big_endian,
            losses: CpuLosses::default(),
        }
    }
}

/// What is handed out with samples of an attribute.
#[derive(Debug, Clone, Copy)]
struct PushedKind<'p> {
    ty: &'p EventType<'p>,
    tracepoint: bool,
    /// Whether the sink looks at what perf sampled with the event.
    sampled: bool,
    /// Stands for the period of samples that do not hold their own.
    period: u64,
    /// Whose execution it counts.
    mode: CounterMode,
}

/// Returns what a counter of one of the kinds counted.
fn counter<'k>(time: u64, kinds: &[PushedKind<'k>], record: &SideRecord<'_>) -> Option<Side<'k>> {
    let SideRecord::Counter {
        pid,
        tid,
        attr,
        value,
        enabled_ns,
        running_ns,
    } = *record
    else {
        return None;
    };
    let kind = kinds.get(index_of(attr))?;
    Some(Side::Counter {
        time,
        pid,
        tid,
        event: kind.ty.name,
        mode: kind.mode,
        value,
        times_ns: enabled_ns.zip(running_ns),
    })
}

/// Follows that samples happen; attributes have the numbers of their kinds.
#[derive(Debug, Clone)]
pub(crate) struct KindTally {
    heads: HeadTally,
    /// By attribute, whether its samples come when a counter is full.
    sampled: Vec<bool>,
}

impl SampleTally for KindTally {
    #[inline(always)]
    fn seen(&mut self, attr: u32, time: u64, (tid, cpu): (i32, i32)) {
        let sampled = self.sampled.get(attr as usize).copied();
        let sampled = sampled.unwrap_or(false);
        self.heads.happened(attr, time, (cpu, tid), sampled);
    }

    fn lost(&mut self, cpu: i32) {
        self.heads.lost(cpu);
    }

    fn given_up(&mut self, attr: u32, cpu: i32) {
        self.heads.given_up(attr, cpu);
    }

    fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    fn clear(&mut self) {
        self.heads.clear();
    }
}

/// Hands a recording's records to a sink.
pub(crate) struct PerfPush<'p> {
    tallies: bool,
    /// As in [`AttrKinds`].
    addresses: bool,
    sink: &'p mut dyn Sink,
    watch: &'p WalkWatch<'p>,
    /// By attribute.
    kinds: Vec<PushedKind<'p>>,
    big_endian: bool,
    /// What CPUs' buffers lost.
    pub(crate) losses: CpuLosses,
}

impl PerfPush<'_> {
    /// Hands out an event with all that perf sampled with it. By itself, so that others are not made ready for that.
    #[inline(never)]
    fn with_all(
        &mut self,
        event: &Event<'_>,
        sample: &perfdata::PerfSample<'_>,
    ) -> ControlFlow<()> {
        let kind = self.kinds[sample.attr as usize];
        let mut extra = few(sample, kind);
        extra.ip = sample.ip();
        extra.addr = sample.addr();
        extra.period = sample.period().or(Some(kind.period));
        let chain = sample.callchain();
        extra.callchain = chain.map(|chain| CallChain::new(chain, self.big_endian));
        let calls = sample.call_branches();
        extra.call_branches = calls.map(|calls| CallBranches::new(calls, self.big_endian));
        let user = sample.user_stack();
        let user = user.filter(|user| !user.is_32 && !self.big_endian);
        extra.user_stack = user.map(|user| UserStackBytes {
            mask: user.mask,
            registers: user.registers,
            stack: user.stack,
        });
        self.sink.event(&Event {
            sample: Some(&extra),
            ..*event
        })
    }
}

/// What a sample says of its event that is known without reading further.
#[inline(always)]
fn few<'s>(sample: &perfdata::PerfSample<'_>, kind: PushedKind<'_>) -> EventSample<'s> {
    EventSample {
        misc: sample.misc,
        has_cpu: sample.cpu >= 0,
        tracepoint: kind.tracepoint,
        ..EventSample::default()
    }
}

impl PerfVisitor for PerfPush<'_> {
    type Tally = KindTally;

    fn tally(&self) -> Option<KindTally> {
        let sampled = self.kinds.iter().map(|kind| !kind.tracepoint);
        self.tallies.then(|| KindTally {
            heads: HeadTally::default(),
            sampled: sampled.collect(),
        })
    }

    fn tallied(&mut self, tally: &mut KindTally) {
        tally.heads.settle();
        self.sink.tallied(&mut tally.heads);
    }

    #[inline(always)]
    fn record_is_enough(&self, attr: u32) -> bool {
        let kind = &self.kinds[attr as usize];
        kind.tracepoint && !kind.sampled
    }

    #[inline(always)]
    fn tracepoint(&mut self, record: TracepointRecord<'_>) -> ControlFlow<()> {
        if self.watch.event() {
            return ControlFlow::Break(());
        }
        self.sink.event(&Event {
            time: record.time,
            cpu: record.cpu,
            tid: record.tid,
            pid: record.pid,
            ty: self.kinds[record.attr as usize].ty,
            body: Body::Raw(record.raw),
            sample: None,
            buffer: 0,
            comm: None,
        })
    }

    // What the walk has just read of the sample it need not put into memory first, to be read there again at once.
    #[inline(always)]
    fn sample(&mut self, sample: &perfdata::PerfSample<'_>) -> ControlFlow<()> {
        if self.watch.event() {
            return ControlFlow::Break(());
        }
        let kind = self.kinds[sample.attr as usize];
        let body = match sample.raw() {
            Some(raw) if kind.tracepoint => Body::Raw(raw),
            _ => Body::None,
        };
        let event = Event {
            time: sample.time,
            cpu: sample.cpu,
            tid: sample.tid,
            pid: sample.pid,
            ty: kind.ty,
            body,
            sample: None,
            buffer: 0,
            comm: None,
        };
        if !kind.sampled {
            return self.sink.event(&event);
        }
        if self.addresses || !kind.tracepoint {
            return self.with_all(&event, sample);
        }
        let extra = few(sample, kind);
        self.sink.event(&Event {
            sample: Some(&extra),
            ..event
        })
    }

    fn side(&mut self, time: u64, cpu: i32, misc: u16, record: &SideRecord<'_>) {
        let comm;
        let side = match *record {
            SideRecord::Comm {
                pid,
                tid,
                comm: name,
                exec,
            } => {
                comm = String::from_utf8_lossy(name);
                Side::Comm {
                    time,
                    pid,
                    tid,
                    comm: &comm,
                    exec,
                }
            }
            SideRecord::Fork {
                pid,
                tid,
                ppid,
                ptid,
            } => Side::Fork {
                time,
                pid,
                tid,
                ppid,
                ptid,
            },
            SideRecord::Exit { pid, tid } => Side::Exit { time, pid, tid },
            SideRecord::Counter { .. } => match counter(time, &self.kinds, record) {
                Some(side) => side,
                None => return,
            },
            SideRecord::DeferredStack { tid, cookie, chain } => Side::DeferredStack {
                time,
                tid,
                cookie,
                chain: CallChain::new(chain, self.big_endian),
            },
            SideRecord::Mmap {
                pid,
                tid,
                start,
                len,
                pgoff,
                exec,
                huge,
                build_id,
                path,
            } => {
                comm = String::from_utf8_lossy(path);
                Side::Mmap {
                    time,
                    pid,
                    tid,
                    start,
                    len,
                    pgoff,
                    misc,
                    exec,
                    huge,
                    build_id,
                    path: &comm,
                }
            }
            SideRecord::Ksymbol {
                start,
                len,
                name,
                gone,
            } => {
                comm = String::from_utf8_lossy(name);
                Side::Ksymbol {
                    time,
                    start,
                    len: u64::from(len),
                    name: &comm,
                    gone,
                }
            }
            SideRecord::Lost { count, source } => lost(time, cpu, count, source),
            SideRecord::Skipped => Side::Lost {
                time,
                cpu: NONE,
                buffer: 0,
                count: None,
                kind: LostKind::Ring,
            },
            _ => return,
        };
        self.losses.note(&side);
        self.sink.side(&side);
    }

    fn places(&self) -> bool {
        self.sink.places()
    }

    fn place(&mut self, place: perfdata::WalkPlace) {
        self.sink.place(&ResumePlace {
            time: place.time,
            inner: Arc::new(place),
        });
    }

    fn release(&mut self, range: Range<usize>) {
        self.watch.release(range);
    }

    fn wants_counts(&self) -> bool {
        self.watch.wants_counts()
    }

    fn counted(&mut self, totals: &Totals) {
        let names = self.kinds.iter().map(|kind| kind.ty.name);
        let kinds = names.zip(totals.samples.iter().copied());
        self.watch.counted(kinds, self.losses.events());
    }
}

/// Returns what the recorder lost.
fn lost(time: u64, cpu: i32, count: u64, source: LostSource) -> Side<'static> {
    Side::Lost {
        time,
        cpu,
        buffer: 0,
        count: Some(count),
        kind: match source {
            LostSource::Ring => LostKind::Ring,
            LostSource::Samples => LostKind::Sum,
        },
    }
}
