//! A pair that is open: its programs are attached, and its rings are there.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cpuset::CpuSet;
use rings::{EventSource, Ring, RingAttr, RingEvent, format, record_type, sample, sample_place};

use super::loaded::{PairCount, PairEnd, PairMaps, PairPrograms};
use super::pair_summary::PairSummary;
use super::probe_profile::ProbeProfile;
use super::record_shape::RecordShape;
use super::sample_patch;
use super::windows::{WatchedEvent, WindowThread};
use crate::file::FileEvent;
use crate::plan::{PlannedEvent, PlannedPair, ProbeKind};
use crate::summary::RecordedCount;
use crate::tracefs::{Tracefs, Tracepoint};
use crate::{RecordError, reasons};

/// Bytes of each CPU's ring: pairs are few.
const RING: usize = 128 << 10;

/// An event of a pair whose records programs write.
#[derive(Debug)]
struct KeptEvent {
    tracepoint: Tracepoint,
    probe: Option<ProbeKind>,
    /// Bytes of its records; 0 where perf writes them.
    size: u32,
    /// What the programs write to, by CPU.
    on: Vec<(u32, RingEvent)>,
}

impl KeptEvent {
    /// Finds an event.
    fn find(planned: &PlannedEvent, tracefs: &Tracefs) -> Result<Tracepoint, RecordError> {
        let found = tracefs.event(&planned.system, &planned.name)?;
        found.ok_or_else(|| RecordError::Pair {
            name: format!("{}:{}", planned.system, planned.name),
            why: reasons::no_event(&planned.system),
        })
    }

    fn attr(&self) -> RingAttr {
        RingAttr::each(EventSource::Tracepoint(self.tracepoint.id))
    }

    fn described(&self) -> FileEvent {
        FileEvent {
            name: self.tracepoint.full_name(),
            // What programs write is what perf would have written.
            attr: self.attr().bytes(),
            ids: self.on.iter().map(|(_, event)| event.id()).collect(),
        }
    }

    /// Opens the event that a program is attached to.
    fn open_source(&self, cpu: u32) -> std::io::Result<RingEvent> {
        RingEvent::open(&self.attr(), i32::try_from(cpu).unwrap_or(0))
    }

    fn has(&self, id: u64) -> bool {
        self.on.iter().any(|(_, event)| event.id() == id)
    }
}

/// A pair that is open.
#[derive(Debug)]
pub(crate) struct OpenPair {
    least_ns: u64,
    first: KeptEvent,
    second: KeptEvent,
    /// What the programs are attached to. The first event's is not among them where it is looked at in windows.
    attached: Vec<RingEvent>,
    programs: PairPrograms,
    maps: Arc<Mutex<PairMaps>>,
    rings: Vec<Ring>,
    /// A CPU that is on line.
    cpu: u32,
    /// What a hit of the first event costs, ns, where it is looked at in windows.
    window_ns: Option<u64>,
    thread: Option<WindowThread>,
    /// Open while that is allowed.
    profile: Option<ProbeProfile>,
    began: Option<Instant>,
    seen_ns: u64,
    recorded_ns: u64,
}

fn locked(maps: &Mutex<PairMaps>) -> MutexGuard<'_, PairMaps> {
    maps.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenPair {
    /// Loads the programs of a pair and attaches them; they look at nothing yet. `perf_writes_second` says that the
    /// second event's records are perf's own.
    ///
    /// # Errors
    ///
    /// [`RecordError::Pair`] where the kernel refuses.
    pub(crate) fn open(
        planned: &PlannedPair,
        perf_writes_second: bool,
        cpus: &CpuSet,
        tracefs: &Tracefs,
    ) -> Result<OpenPair, RecordError> {
        let (first, second) = (&planned.first, &planned.second);
        let name = format!(
            "{}:{} -> {}:{}",
            first.system, first.name, second.system, second.name
        );
        let failed = |why: String| RecordError::Pair {
            name: name.clone(),
            why,
        };
        let of_first = KeptEvent::find(first, tracefs)?;
        let of_second = KeptEvent::find(second, tracefs)?;
        let first_shape = RecordShape::of(&of_first, first.probe);
        let first_shape = first_shape
            .map_err(|why| failed(format!("{} cannot be kept: {why}", of_first.full_name())))?;
        let second_shape = match perf_writes_second {
            true => Ok(RecordShape::default()),
            false => RecordShape::of(&of_second, second.probe),
        };
        let second_shape = second_shape
            .map_err(|why| failed(format!("{} cannot be kept: {why}", of_second.full_name())))?;
        let programs = PairPrograms::load(first_shape, second_shape, planned.least_ns);
        let (programs, maps) = programs.map_err(failed)?;
        let kept = |tracepoint, probe, shape: RecordShape| KeptEvent {
            tracepoint,
            probe,
            size: shape.written(),
            on: Vec::new(),
        };
        let mut pair = OpenPair {
            least_ns: planned.least_ns,
            first: kept(of_first, first.probe, first_shape),
            second: kept(of_second, second.probe, second_shape),
            attached: Vec::new(),
            programs,
            maps: Arc::new(Mutex::new(maps)),
            rings: Vec::new(),
            cpu: cpus.iter().next().unwrap_or(0),
            window_ns: None,
            thread: None,
            profile: Some(ProbeProfile::open(tracefs, &first.name)),
            began: None,
            seen_ns: 0,
            recorded_ns: 0,
        };
        for cpu in cpus.iter() {
            pair.ring(cpu).map_err(failed)?;
        }
        let second = pair.attach(PairEnd::Second).map_err(failed)?;
        let first = pair.attach(PairEnd::First).map_err(failed)?;
        pair.attached.extend([second, first]);
        Ok(pair)
    }

    /// Makes the ring of a CPU, and the events by which programs write to it.
    fn ring(&mut self, cpu: u32) -> Result<(), String> {
        let number = i32::try_from(cpu).unwrap_or(i32::MAX);
        let of_ring = RingAttr {
            sample: sample::IDENTIFIER | sample::TID | sample::TIME | sample::CPU,
            wake_after: u32::try_from(RING / 2).unwrap_or(0),
            ..RingAttr::each(EventSource::Nothing)
        };
        let refused = |error| reasons::not_opened(&error);
        let event = RingEvent::open(&of_ring, number).map_err(refused)?;
        let ring = Ring::of(event, RING / rings::page_size(), false);
        let ring = ring.map_err(|error| reasons::no_ring(&error))?;
        let attr = RingAttr {
            read: format::ID | format::LOST,
            ..RingAttr::each(EventSource::BpfOutput)
        };
        for (event, end) in [
            (&mut self.first, PairEnd::First),
            (&mut self.second, PairEnd::Second),
        ] {
            if event.size == 0 {
                continue;
            }
            let output = RingEvent::open(&attr, number).map_err(refused)?;
            output.write_to(ring.event()).map_err(refused)?;
            let map = self.programs.events(end)?;
            let put = output.written_by(map, cpu);
            put.map_err(|error| error.to_string())?;
            event.on.push((cpu, output));
        }
        self.rings.push(ring);
        Ok(())
    }

    /// Attaches the program of an end: it runs on all CPUs until what is returned goes.
    fn attach(&mut self, end: PairEnd) -> Result<RingEvent, String> {
        let of = match end {
            PairEnd::First => &self.first,
            PairEnd::Second => &self.second,
        };
        let source = of.open_source(self.cpu);
        let source = source.map_err(|error| reasons::not_opened(&error))?;
        let program = self.programs.program(end, of.probe.is_some())?;
        let done = source.attach(program.as_fd());
        done.map_err(|error| format!("the program cannot be attached: {error}"))?;
        Ok(source)
    }

    /// Returns the tracepoints whose records programs write.
    pub(crate) fn tracepoints(&self) -> impl Iterator<Item = &Tracepoint> {
        self.kept().map(|event| &event.tracepoint)
    }

    /// Returns as what the events were made whose records programs write.
    pub(crate) fn probes(&self) -> impl Iterator<Item = ProbeKind> {
        self.kept().filter_map(|event| event.probe)
    }

    fn kept(&self) -> impl Iterator<Item = &KeptEvent> {
        let both = [&self.first, &self.second].into_iter();
        both.filter(|event| event.size > 0)
    }

    /// Returns the events as a file describes them.
    pub(crate) fn described(&self) -> impl Iterator<Item = FileEvent> {
        self.kept().map(KeptEvent::described)
    }

    /// Returns what programs write to, with the CPU of each.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &(u32, RingEvent)> {
        self.kept().flat_map(|event| &event.on)
    }

    /// Returns the rings.
    pub(crate) fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// Has the first event looked at in windows where it is a probe of a program: a hit of it costs `each_ns`. Returns
    /// whether it is.
    pub(crate) fn fit(&mut self, each_ns: u64) -> bool {
        let is_trap = self.first.probe.is_some_and(ProbeKind::is_of_user);
        if is_trap && self.window_ns.is_none() {
            self.window_ns = Some(each_ns);
            // The breakpoint goes with the event.
            self.attached.pop();
        }
        is_trap
    }

    /// Returns the first event as one of which nothing is counted yet.
    pub(crate) fn first_count(&self) -> RecordedCount {
        RecordedCount {
            name: self.first.tracepoint.full_name(),
            probe: self.first.probe,
            kept: true,
            ..RecordedCount::default()
        }
    }

    fn counted(&self, what: PairCount) -> Vec<u64> {
        locked(&self.maps).counts(what)
    }

    /// Begins to look, or ends.
    pub(crate) fn enable(&mut self, on: bool) -> std::io::Result<()> {
        if !on {
            if let Some(began) = self.began.take() {
                self.recorded_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                self.seen_ns = match self.thread.take() {
                    Some(thread) => thread.end(),
                    None => self.recorded_ns,
                };
            }
            locked(&self.maps).record(false);
            return self
                .outputs()
                .try_for_each(|(_, event)| event.enable(false));
        }
        self.outputs()
            .try_for_each(|(_, event)| event.enable(true))?;
        self.began = Some(Instant::now());
        locked(&self.maps).record(true);
        match self.window_ns {
            None => locked(&self.maps).next_window(),
            Some(each_ns) => self.thread = Some(self.windows(each_ns)?),
        }
        Ok(())
    }

    /// Starts the thread that looks at the first event in windows.
    fn windows(&mut self, each_ns: u64) -> std::io::Result<WindowThread> {
        let probe = self.first.probe.is_some();
        let program = self.programs.program(PairEnd::First, probe);
        let program = program.map_err(std::io::Error::other)?;
        WindowThread::start(FirstEvent {
            attr: self.first.attr(),
            cpu: i32::try_from(self.cpu).unwrap_or(0),
            program: program.try_clone_to_owned()?,
            maps: Arc::clone(&self.maps),
            profile: self.profile.take().unwrap_or_default(),
            each_ns,
        })
    }

    /// Takes what programs have written out of the rings, as perf would have written it.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) {
        for ring in &mut self.rings {
            let written = ring.written();
            // What comes from here on is taken next time.
            let had = written.len();
            for record in written.records() {
                let bytes = [record.first, record.second].concat();
                if record.kind() != record_type::SAMPLE {
                    out.extend(bytes);
                    continue;
                }
                let id = record.word(sample_place::ID).unwrap_or(0);
                let of = [&self.first, &self.second]
                    .into_iter()
                    .find(|one| one.has(id));
                let patched = of.and_then(|of| sample_patch::patched(&bytes, of.size));
                out.extend(patched.unwrap_or_default());
            }
            ring.take(had);
        }
    }

    /// Returns what became of the events whose records programs write.
    pub(crate) fn recorded(&self) -> std::io::Result<Vec<RecordedCount>> {
        let mut all = Vec::new();
        for (event, hits, written) in [
            (&self.first, PairCount::First, PairCount::WrittenFirst),
            (&self.second, PairCount::Second, PairCount::WrittenSecond),
        ] {
            if event.size == 0 {
                continue;
            }
            let mut lost = Some(0);
            for (_, output) in &event.on {
                lost = lost.zip(output.counts()?.lost).map(|(sum, one)| sum + one);
            }
            let written: u64 = self.counted(written).iter().sum();
            all.push(RecordedCount {
                name: event.tracepoint.full_name(),
                probe: event.probe,
                kept: true,
                count: written + lost.unwrap_or(0),
                by_cpu: (0..).zip(self.counted(hits)).collect(),
                lost,
                ..RecordedCount::default()
            });
        }
        Ok(all)
    }

    /// Returns what became of the pair.
    pub(crate) fn summary(&self) -> PairSummary {
        let sum = |what| self.counted(what).iter().sum();
        PairSummary {
            first: self.first.tracepoint.full_name(),
            second: self.second.tracepoint.full_name(),
            least_ns: self.least_ns,
            firsts: sum(PairCount::First),
            seconds: sum(PairCount::Second),
            written: sum(PairCount::WrittenFirst),
            unseen: sum(PairCount::Unseen),
            short: sum(PairCount::Short),
            seen_ns: self.seen_ns,
            recorded_ns: self.recorded_ns,
        }
    }
}

/// The first event of a pair, as it is looked at in windows.
struct FirstEvent {
    attr: RingAttr,
    cpu: i32,
    program: OwnedFd,
    maps: Arc<Mutex<PairMaps>>,
    profile: ProbeProfile,
    each_ns: u64,
}

impl WatchedEvent for FirstEvent {
    type Window = OpenWindow;

    fn open(&mut self) -> Option<OpenWindow> {
        let source = RingEvent::open(&self.attr, self.cpu).ok()?;
        source.attach(self.program.as_fd()).ok()?;
        locked(&self.maps).next_window();
        Some(OpenWindow {
            maps: Arc::clone(&self.maps),
            _source: source,
        })
    }

    fn hits(&mut self) -> Vec<u64> {
        locked(&self.maps).counts(PairCount::First)
    }

    fn traps(&mut self) -> Option<u64> {
        self.profile.hits()
    }

    fn each_ns(&self) -> u64 {
        self.each_ns
    }
}

/// A window in which the first event is looked at.
struct OpenWindow {
    maps: Arc<Mutex<PairMaps>>,
    _source: RingEvent,
}

impl Drop for OpenWindow {
    fn drop(&mut self) {
        // Before the breakpoint goes: what comes from here on is not seen.
        locked(&self.maps).next_window();
    }
}

/// A program that keeps the last record of an event, for what that costs.
#[derive(Debug)]
pub(crate) struct KeepingProbe {
    _pair: OpenPair,
}

impl KeepingProbe {
    /// Attaches one to an event. It looks until this goes.
    ///
    /// # Errors
    ///
    /// [`RecordError::Pair`] where the kernel refuses.
    pub(crate) fn attach(
        event: &PlannedEvent,
        tracefs: &Tracefs,
    ) -> Result<KeepingProbe, RecordError> {
        let planned = PlannedPair {
            first: event.clone(),
            second: event.clone(),
            // It never comes to a write.
            least_ns: u64::MAX,
        };
        let mut pair = OpenPair::open(&planned, true, &CpuSet::default(), tracefs)?;
        // The second one's program is not what is measured.
        pair.attached.remove(0);
        pair.enable(true).map_err(RecordError::Wait)?;
        Ok(KeepingProbe { _pair: pair })
    }
}
