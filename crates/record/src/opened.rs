//! Events that are open on every CPU.

use std::collections::BTreeSet;
use std::io;

use cpuset::CpuSet;
use rings::{EventSource, Ring, RingAttr, RingEvent, format, sample};

use crate::clock::ClockSource;
use crate::compact::OpenCompact;
use crate::counters::{self, ThreadCounters};
use crate::file::{Feature, FileEvent};
use crate::pairs::{OpenPair, PairSummary};
use crate::plan::{CompactUse, PlannedEvent, ProbeKind, RecordPlan};
use crate::summary::RecordedCount;
use crate::tracefs::{Tracefs, Tracepoint};
use crate::{RecordError, filters, machine, reasons, tasks};

/// What samples of call chains hold beside what all records do.
const CHAIN: u64 = sample::IP | sample::CALLCHAIN | sample::PERIOD;
/// A ring's reader is woken when a part of so many is full.
const WAKE_PART: usize = 4;
/// Files that are opened beside those of events, now and then or once: the recording and its folder, a command's pipes,
/// what is read of tracefs and of tasks, sockets of agents, maps of programs.
const OTHER_FILES: u64 = 32;
/// Files that the programs and maps of a pair take.
const FILES_OF_PAIR: u64 = 24;
/// Files that are taken to be open where the kernel does not show them.
const OPEN_FILES: u64 = 16;

/// An event, as it is open on some CPUs.
#[derive(Debug)]
pub(crate) struct OpenEvent {
    /// Its name, as perf has it.
    pub name: String,
    pub attr: RingAttr,
    pub filter: Option<String>,
    /// As what it was made for this recording.
    pub probe: Option<ProbeKind>,
    /// On which CPUs it is open.
    pub on: Vec<(u32, RingEvent)>,
}

impl OpenEvent {
    /// Returns whether it counts while its CPU's leader does. A sampler is one of the processor, which has its own
    /// groups.
    fn is_behind(attr: &RingAttr) -> bool {
        !attr.frequency
    }
}

/// The ring of a CPU.
#[derive(Debug)]
pub(crate) struct CpuRing {
    pub cpu: u32,
    pub ring: Ring,
}

/// An event that was asked for and is not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

/// Events that are open on every CPU, and nothing written yet.
#[derive(Debug)]
pub struct OpenedEvents {
    pub(crate) rings: Vec<CpuRing>,
    pub(crate) events: Vec<OpenEvent>,
    /// An event of each CPU, behind which tracepoints count: they begin and end at once. Closed after them.
    leaders: Vec<RingEvent>,
    pub(crate) tracepoints: Vec<Tracepoint>,
    pub(crate) missing: Vec<Missing>,
    /// Of threads, where they are counted.
    pub(crate) counters: Option<ThreadCounters>,
    pub(crate) ring_bytes: usize,
    /// What was wanted, where this user may not lock as much memory.
    pub(crate) ring_wanted: Option<usize>,
    pub(crate) flight: bool,
    /// Events that programs write as short records.
    pub(crate) compact: Option<OpenCompact>,
    /// Closed before the events that they write to.
    pub(crate) pairs: Vec<OpenPair>,
    no_symbols: bool,
}

/// Why there are no rings.
enum NoRings {
    /// They are more memory than this user may lock: smaller ones may do.
    TooLarge(RecordError),
    Else(RecordError),
}

/// What an event is to be opened as.
struct ToOpen {
    name: String,
    attr: RingAttr,
    filter: Option<String>,
    /// The fields that it may name, for who wrote one that the kernel refuses.
    fields: String,
    cpus: Option<CpuSet>,
    probe: Option<ProbeKind>,
}

/// Returns how many files this process has to be allowed for so many events on so many CPUs: those that it has open
/// now, one for each event, the ring and the leader of each CPU and what programs hand records over by, and a few
/// others.
pub(crate) fn files(events: usize, cpus: usize) -> u64 {
    let open = std::fs::read_dir("/proc/self/fd");
    let open = open.map_or(OPEN_FILES, |all| all.count() as u64);
    open + (events as u64 + 3) * cpus as u64 + OTHER_FILES
}

impl OpenedEvents {
    /// Opens the events of a plan. They begin disabled.
    ///
    /// # Errors
    ///
    /// Fails where an event cannot be opened on a CPU that is on line, or a ring cannot be made. That the kernel does
    /// not have an event is no error: it is [`OpenedEvents::missing`].
    pub fn open(plan: &RecordPlan, tracefs: &Tracefs) -> Result<OpenedEvents, RecordError> {
        let on_line = chosen_cpus(plan)?;
        let mut missing = Vec::new();
        let mut tracepoints = Vec::new();
        let mut to_open = Vec::new();
        let compact = open_compact(plan, &on_line, tracefs)?;
        tracepoints.extend(compact.iter().flat_map(OpenCompact::tracepoints).cloned());
        let is_perfs = |one: &&PlannedEvent| !compact.as_ref().is_some_and(|own| own.has(one));
        for wanted in plan.events.iter().filter(is_perfs) {
            match tracefs.event(&wanted.system, &wanted.name)? {
                Some(tracepoint) => {
                    to_open.push(of_tracepoint(wanted, &tracepoint, &plan.threads));
                    tracepoints.push(tracepoint);
                }
                None => missing.push(Missing {
                    name: format!("{}:{}", wanted.system, wanted.name),
                    why: reasons::no_event(&wanted.system),
                }),
            }
        }
        let files = files(to_open.len(), on_line.len());
        let files = files
            + counters::FILES * plan.counted.len() as u64
            + (FILES_OF_PAIR + on_line.len() as u64) * plan.pairs.len() as u64;
        let allowed = rings::more_files(files).map_err(RecordError::Wait)?;
        if allowed < files {
            return Err(RecordError::Files { files, allowed });
        }
        let wanted = own_ring(plan, on_line.len(), compact.is_some());
        let mut ring_bytes = wanted;
        let rings = loop {
            let of_ring = of_rings(ring_bytes, plan.flight, compact.is_some());
            match rings_of(&on_line, ring_bytes, &of_ring) {
                Ok(rings) => break rings,
                Err(NoRings::TooLarge(_))
                    if !plan.ring_exact && ring_bytes > rings::page_size() =>
                {
                    ring_bytes /= 2;
                }
                Err(NoRings::TooLarge(error) | NoRings::Else(error)) => return Err(error),
            }
        };
        let leaders = leaders_of(&on_line, compact.is_some())?;
        let mut opened = OpenedEvents {
            rings,
            events: Vec::new(),
            leaders,
            tracepoints,
            missing,
            counters: None,
            ring_bytes,
            ring_wanted: (wanted != ring_bytes).then_some(wanted),
            flight: plan.flight,
            compact,
            pairs: Vec::new(),
            no_symbols: plan.no_symbols,
        };
        if let Some(hz) = plan.samples_hz {
            to_open.extend(opened.sampler(hz));
        }
        for one in to_open {
            opened.add(one)?;
        }
        for pair in &plan.pairs {
            let same = |one: &&PlannedEvent| {
                (&one.system, &one.name) == (&pair.second.system, &pair.second.name)
            };
            let is_perfs = plan.events.iter().any(|one| same(&one));
            let pair = OpenPair::open(pair, is_perfs, &on_line, tracefs)?;
            opened.tracepoints.extend(pair.tracepoints().cloned());
            opened.pairs.push(pair);
        }
        if !plan.counted.is_empty() {
            opened.count(&plan.counted);
        }
        Ok(opened)
    }

    /// Closes the events that are not among these, and misses none of the others: what is left is recorded.
    pub fn only(&mut self, wanted: &[PlannedEvent]) {
        let is_wanted = |system: &str, name: &str| {
            wanted
                .iter()
                .any(|one| one.system == system && one.name == name)
        };
        self.events.retain(|one| {
            let (system, name) = one.name.split_once(':').unwrap_or(("", &one.name));
            is_wanted(system, name)
        });
        self.tracepoints
            .retain(|one| is_wanted(&one.system, &one.name));
        self.missing.retain(|one| {
            let (system, name) = one.name.split_once(':').unwrap_or(("", &one.name));
            is_wanted(system, name)
        });
    }

    /// Returns events that were asked for and are not recorded.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Returns whether call chains are recorded.
    pub fn has_chains(&self) -> bool {
        self.events
            .iter()
            .any(|one| one.attr.sample & sample::CALLCHAIN != 0)
    }

    /// Returns the kinds of probes among the events.
    pub fn probes(&self) -> BTreeSet<ProbeKind> {
        let of_pairs = self.pairs.iter().flat_map(OpenPair::probes);
        let own = self.events.iter().filter_map(|one| one.probe);
        own.chain(of_pairs).collect()
    }

    /// Returns which clock its events have.
    pub fn clock(&self) -> ClockSource {
        match self.compact {
            Some(_) => ClockSource::Monotonic,
            None => ClockSource::Local,
        }
    }

    /// Returns whether programs in the kernel keep or write records.
    pub fn has_programs(&self) -> bool {
        !self.pairs.is_empty() || self.compact.is_some()
    }

    /// Returns what a recording says of its pairs, before anything is counted.
    pub fn pairs_said(&self) -> Option<Feature> {
        let pairs: Vec<PairSummary> = self.pairs.iter().map(OpenPair::summary).collect();
        PairSummary::said(&pairs)
    }

    /// Has the first events of pairs looked at in windows, where looking all the time might slow down what makes them.
    /// `each_ns` says what an event costs. Returns whether there are any.
    pub fn fit_pairs(&mut self, each_ns: impl Fn(&RecordedCount) -> u64) -> bool {
        let fit = |pair: &mut OpenPair| {
            let each_ns = each_ns(&pair.first_count());
            pair.fit(each_ns)
        };
        // All of them.
        self.pairs
            .iter_mut()
            .map(fit)
            .fold(false, |any, one| any | one)
    }

    /// Returns whether records hold addresses of the kernel's code, which its symbols are to name: call chains, or a
    /// field that the kernel prints as a function's name.
    pub fn has_code(&self) -> bool {
        let holds =
            || self.has_chains() || self.tracepoints.iter().any(Tracepoint::prints_functions);
        !self.no_symbols && holds()
    }

    /// Returns the tracepoints that are open: their formats belong into the recording.
    pub fn tracepoints(&self) -> &[Tracepoint] {
        &self.tracepoints
    }

    /// Returns the bytes of each ring.
    pub fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }

    /// Returns the bytes that each ring was to have, where this user may not lock as much memory and smaller ones were
    /// made.
    pub fn ring_wanted(&self) -> Option<usize> {
        self.ring_wanted
    }

    /// Returns how samples of call chains are taken here: by cycles where the machine counts them, else by timers.
    fn sampler(&self, hz: u64) -> Option<ToOpen> {
        let cpu = self.rings.first()?.cpu;
        let attr = |of| RingAttr {
            period: hz,
            frequency: true,
            sample: CHAIN | sample::IDENTIFIER | sample::TID | sample::TIME | sample::CPU,
            read: format::ID | format::LOST,
            backward: self.flight,
            ..RingAttr::each(of)
        };
        let cycles = attr(EventSource::Cycles);
        let counted = RingEvent::open(&cycles, i32::try_from(cpu).ok()?).is_ok();
        let (attr, name) = match counted {
            true => (cycles, "cycles"),
            false => (attr(EventSource::CpuClock), "cpu-clock"),
        };
        Some(ToOpen {
            name: name.to_owned(),
            attr,
            filter: None,
            fields: String::new(),
            cpus: None,
            probe: None,
        })
    }

    /// Opens the counters of threads.
    fn count(&mut self, tids: &[i32]) {
        let wanted = |tid: u32| tids.iter().any(|one| i32::try_from(tid) == Ok(*one));
        let mut threads = tasks::threads();
        threads.retain(|thread| wanted(thread.tid));
        let counters = ThreadCounters::open(&threads);
        let missing = counters.missing();
        self.missing
            .extend(missing.map(|(name, why)| Missing { name, why }));
        self.counters = Some(counters);
    }

    /// Opens an event on its CPUs.
    fn add(&mut self, one: ToOpen) -> Result<(), RecordError> {
        let attr = RingAttr {
            backward: self.flight,
            monotonic: self.compact.is_some(),
            ..one.attr
        };
        let mut on = Vec::new();
        for (of_cpu, leader) in self.rings.iter().zip(&self.leaders) {
            if one
                .cpus
                .as_ref()
                .is_some_and(|cpus| !cpus.contains(of_cpu.cpu))
            {
                continue;
            }
            let failed = |error: &io::Error| RecordError::Open {
                name: one.name.clone(),
                cpu: of_cpu.cpu,
                why: reasons::not_opened(error),
            };
            let cpu = i32::try_from(of_cpu.cpu).unwrap_or(i32::MAX);
            let event = match OpenEvent::is_behind(&attr) {
                true => RingEvent::open_behind(leader, &attr, cpu),
                false => RingEvent::open(&attr, cpu),
            };
            let event = event.map_err(|error| failed(&error))?;
            event
                .write_to(of_cpu.ring.event())
                .map_err(|error| failed(&error))?;
            if let Some(filter) = &one.filter {
                event.filter(filter).map_err(|error| RecordError::Filter {
                    name: one.name.clone(),
                    filter: filter.clone(),
                    fields: one.fields.clone(),
                    error,
                })?;
            }
            on.push((of_cpu.cpu, event));
        }
        let read = on
            .first()
            .map_or(attr.read, |(_, event)| event.read_format());
        self.events.push(OpenEvent {
            name: one.name,
            attr: RingAttr { read, ..attr },
            filter: one.filter,
            probe: one.probe,
            on,
        });
        Ok(())
    }

    /// Returns the events as a file describes them: that of the rings themselves first, which carries names of threads.
    pub(crate) fn described(&self) -> Vec<FileEvent> {
        let tasks = FileEvent {
            name: "dummy:u".to_owned(),
            attr: of_rings(self.ring_bytes, self.flight, self.compact.is_some()).bytes(),
            ids: self.rings.iter().map(|one| one.ring.event().id()).collect(),
        };
        let events = self.events.iter().map(|one| FileEvent {
            name: one.name.clone(),
            attr: one.attr.bytes(),
            ids: one.on.iter().map(|(_, event)| event.id()).collect(),
        });
        let of_pairs = self.pairs.iter().flat_map(OpenPair::described);
        let compact = self.compact.iter().flat_map(OpenCompact::described);
        let counters = self.counters.iter().flat_map(ThreadCounters::described);
        let own = std::iter::once(tasks).chain(events);
        own.chain(of_pairs).chain(compact).chain(counters).collect()
    }

    /// Lets names of threads, and what begins and ends, be recorded: before the threads that are there are listed, so
    /// that none is given a name between the two.
    ///
    /// # Errors
    ///
    /// [`RecordError::Wait`].
    pub fn record_names(&self) -> Result<(), RecordError> {
        self.enable_names().map_err(RecordError::Wait)
    }

    fn enable_names(&self) -> io::Result<()> {
        let mut tasks = self.rings.iter().map(|one| one.ring.event());
        tasks.try_for_each(|event| event.enable(true))
    }

    /// Lets all events be recorded, or stops them. Those of a CPU begin and end at once: an entry whose exit is not
    /// recorded yet would look like one whose exit was lost. Names of threads are recorded before and behind them.
    pub(crate) fn enable(&mut self, on: bool) -> io::Result<()> {
        if on {
            self.enable_names()?;
        }
        let samplers = self.events.iter();
        let samplers = samplers.filter(|one| !OpenEvent::is_behind(&one.attr));
        let samplers = samplers.flat_map(|one| &one.on).map(|(_, event)| event);
        let mut all = samplers.chain(&self.leaders);
        all.try_for_each(|event| event.enable(on))?;
        self.pairs.iter_mut().try_for_each(|pair| pair.enable(on))?;
        self.compact.iter_mut().try_for_each(|own| own.enable(on))?;
        self.counters.iter().try_for_each(|one| one.enable(on))
    }
}

/// Returns the CPUs that are recorded.
fn chosen_cpus(plan: &RecordPlan) -> Result<CpuSet, RecordError> {
    let on_line = machine::cpus("online");
    let Some(wanted) = &plan.cpus else {
        return Ok(on_line);
    };
    let (there, not): (Vec<u32>, Vec<u32>) = wanted.iter().partition(|cpu| on_line.contains(*cpu));
    if let Some(cpu) = not.first() {
        return Err(RecordError::NotOnLine {
            cpu: *cpu,
            on_line: on_line.to_string(),
        });
    }
    Ok(there.into_iter().collect())
}

fn of_tracepoint(wanted: &PlannedEvent, tracepoint: &Tracepoint, threads: &[i32]) -> ToOpen {
    let each = RingAttr::each(EventSource::Tracepoint(tracepoint.id));
    let chain = if wanted.stack { CHAIN } else { 0 };
    ToOpen {
        name: tracepoint.full_name(),
        attr: RingAttr {
            sample: each.sample | chain,
            // Where a thread waits is the kernel's; its own code would be a long chain more for each switch.
            no_user_chain: wanted.stack,
            read: format::ID | format::LOST,
            ..each
        },
        filter: filters::joined(
            wanted.filter.as_deref(),
            filters::of_threads(tracepoint, threads),
        ),
        fields: tracepoint.field_names().join(", "),
        cpus: wanted.cpus.clone(),
        probe: wanted.probe,
    }
}

/// Returns the bytes of each CPU's ring. Where programs write too, half of the memory that is to keep the last seconds
/// is theirs.
fn own_ring(plan: &RecordPlan, cpus: usize, with_programs: bool) -> usize {
    let whole = plan.ring(cpus, machine::memory_kib());
    match with_programs && plan.flight && !plan.ring_exact {
        true => (whole / 2).max(rings::page_size()),
        false => whole,
    }
}

/// Opens the events that programs write, where that is wanted.
fn open_compact(
    plan: &RecordPlan,
    on_line: &CpuSet,
    tracefs: &Tracefs,
) -> Result<Option<OpenCompact>, RecordError> {
    if plan.compact == CompactUse::Never {
        return Ok(None);
    }
    let ring_bytes = own_ring(plan, on_line.len(), true);
    let opened = OpenCompact::open(&plan.events, on_line, (ring_bytes, plan.flight), tracefs);
    match plan.compact {
        CompactUse::WherePossible => Ok(opened.ok()),
        CompactUse::Never | CompactUse::Always => opened.map(Some),
    }
}

/// Returns the event whose ring a CPU's events are written to.
fn of_rings(bytes: usize, flight: bool, monotonic: bool) -> RingAttr {
    let wake = u32::try_from(bytes / WAKE_PART).unwrap_or(u32::MAX);
    RingAttr {
        sample: sample::IDENTIFIER | sample::TID | sample::TIME | sample::CPU,
        tasks: true,
        wake_after: if flight { 0 } else { wake },
        monotonic,
        backward: flight,
        ..RingAttr::each(EventSource::Nothing)
    }
}

/// Returns an event for each CPU that records nothing by itself.
fn leaders_of(cpus: &CpuSet, monotonic: bool) -> Result<Vec<RingEvent>, RecordError> {
    // Events of a group have one clock.
    let attr = RingAttr {
        monotonic,
        ..RingAttr::each(EventSource::Nothing)
    };
    let open = |cpu: u32| {
        let event = RingEvent::open(&attr, i32::try_from(cpu).unwrap_or(i32::MAX));
        event.map_err(|error| no_dummy(cpu, &error))
    };
    cpus.iter().map(open).collect()
}

fn no_dummy(cpu: u32, error: &io::Error) -> RecordError {
    RecordError::Open {
        name: "dummy".to_owned(),
        cpu,
        why: reasons::not_opened(error),
    }
}

fn rings_of(cpus: &CpuSet, bytes: usize, attr: &RingAttr) -> Result<Vec<CpuRing>, NoRings> {
    let mut rings = Vec::new();
    for cpu in cpus.iter() {
        let number = i32::try_from(cpu).unwrap_or(i32::MAX);
        let event =
            RingEvent::open(attr, number).map_err(|error| NoRings::Else(no_dummy(cpu, &error)))?;
        let pages = bytes / rings::page_size();
        let ring = Ring::of(event, pages, attr.backward);
        let ring = ring.map_err(|error| {
            let why = RecordError::Ring {
                cpu,
                kib: bytes / 1024,
                why: reasons::no_ring(&error),
            };
            match error.kind() {
                io::ErrorKind::PermissionDenied => NoRings::TooLarge(why),
                _ => NoRings::Else(why),
            }
        })?;
        rings.push(CpuRing { cpu, ring });
    }
    Ok(rings)
}
