//! Counters of threads: cycles, instructions and cache misses of vCPUs, in the guest apart from in the host.
//!
//! They are counted by the processor and never sampled: a sample each so many cycles would be an interrupt, which is an
//! exit of a vCPU. Each thread has a group for its guest and one for the host, since what is computed of several events
//! holds only where they were counted at the same time. They are read once a second and at the end: reading a counter
//! of a thread that runs on another CPU interrupts that CPU (`perf_event_read` in `kernel/events/core.c`).
//!
//! What was counted since the last time stands in the file as `PERF_RECORD_READ`, as the kernel itself writes it for
//! `perf record --stat`, so `perf report --threads` adds it up too.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use event::CounterMode;
use rings::{CountedMode, EventCounts, EventSource, RingAttr, RingEvent, format, sample};

use crate::clock::{ClockSource, EventClock};
use crate::file::FileEvent;
use crate::reasons;
use crate::tasks::{self, RunningThread};

/// How often they are read.
const EACH: Duration = Duration::from_secs(1);
/// `PERF_RECORD_READ`.
const READ: u32 = 8;
/// Bytes of such a record: header, thread, value, both times, id; thread, time, CPU and id as all records have them.
const READ_BYTES: u16 = 8 + 8 + 4 * 8 + 4 * 8;
/// A record that was made on no CPU.
const NO_CPU: u32 = u32::MAX;

/// Events that are counted together.
const GROUPS: [(CountedMode, &[(&str, EventSource)]); 3] = [
    (
        CountedMode::Guest,
        &[
            ("cycles:G", EventSource::Cycles),
            ("instructions:G", EventSource::Instructions),
            ("cache-misses:G", EventSource::CacheMisses),
        ],
    ),
    (
        CountedMode::Host,
        &[
            ("cycles:H", EventSource::Cycles),
            ("instructions:H", EventSource::Instructions),
            ("cache-misses:H", EventSource::CacheMisses),
        ],
    ),
    (
        CountedMode::Both,
        &[
            ("task-clock", EventSource::TaskClock),
            ("page-faults", EventSource::PageFaults),
        ],
    ),
];
/// Events of all groups: as many files a thread takes.
pub(crate) const FILES: u64 = 8;
/// Room for what else a process has open that counts out of rings or by programs.
const OTHER_FILES: u64 = 4096;

/// A kind of counter, of all threads.
#[derive(Debug)]
struct CounterKind {
    name: &'static str,
    attr: RingAttr,
    ids: Vec<u64>,
}

/// What an event has counted of a thread since its counter was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterReading {
    /// The thread.
    pub tid: i32,
    /// The event's name, as perf has it: `cycles:G`.
    pub event: &'static str,
    /// Whose execution it counts.
    pub mode: CounterMode,
    /// How many, not scaled.
    pub value: u64,
    /// How long the event was enabled while the thread ran, ns, and how long of that it was counted.
    pub times_ns: (u64, u64),
}

/// A group of a thread that is open.
#[derive(Debug)]
struct CounterGroup {
    mode: CountedMode,
    /// Names of its events, in the order in which they were opened.
    names: Vec<&'static str>,
    pid: u32,
    tid: u32,
    leader: RingEvent,
    /// Open as long as the leader is.
    others: Vec<RingEvent>,
    /// What each had counted when it was read last, in the order of the kernel's answer.
    last: Vec<EventCounts>,
}

impl CounterGroup {
    fn ids(&self) -> impl Iterator<Item = u64> {
        std::iter::once(&self.leader)
            .chain(&self.others)
            .map(RingEvent::id)
    }
}

/// Counters that are open, of some threads.
#[derive(Debug)]
pub struct ThreadCounters {
    kinds: Vec<CounterKind>,
    groups: Vec<CounterGroup>,
    /// Names of events that are not counted, by the reason.
    missing: Vec<(String, Vec<&'static str>)>,
    clock: Option<EventClock>,
    /// When they were read last.
    read_at: Option<Instant>,
}

impl ThreadCounters {
    /// Opens the counters of threads, for the calling thread, which is to be the one that reads them. What this machine
    /// does not count is [`ThreadCounters::missing`]; threads that have ended meanwhile are left out.
    pub(crate) fn open(threads: &[RunningThread]) -> ThreadCounters {
        let mut counters = ThreadCounters {
            kinds: Vec::new(),
            groups: Vec::new(),
            missing: Vec::new(),
            clock: EventClock::open(ClockSource::Local).ok(),
            read_at: None,
        };
        for thread in threads {
            for (mode, events) in GROUPS {
                counters.add(thread, mode, events);
            }
        }
        counters
    }

    /// Opens the counters of these threads and lets them count, for [`ThreadCounters::counted`].
    ///
    /// # Errors
    ///
    /// Fails when the kernel does not let them count.
    pub fn of_threads(tids: &[i32]) -> io::Result<ThreadCounters> {
        let mut counters = ThreadCounters::open(&[]);
        counters.follow(tids)?;
        Ok(counters)
    }

    /// Opens the counters of those of these threads that have none and lets them count, and closes those of all others.
    ///
    /// # Errors
    ///
    /// Fails when the kernel does not let them count. As many threads as may have open files have counters.
    pub fn follow(&mut self, tids: &[i32]) -> io::Result<()> {
        let wanted: HashSet<u32> = tids
            .iter()
            .filter_map(|tid| (*tid).try_into().ok())
            .collect();
        self.groups.retain(|group| wanted.contains(&group.tid));
        let open: HashSet<u64> = self.groups.iter().flat_map(CounterGroup::ids).collect();
        for kind in &mut self.kinds {
            kind.ids.retain(|id| open.contains(id));
        }
        let counted: HashSet<u32> = self.groups.iter().map(|group| group.tid).collect();
        rings::more_files(OTHER_FILES + FILES * wanted.len() as u64)?;
        let first = self.groups.len();
        for tid in wanted.difference(&counted) {
            let Some(thread) = tasks::thread(*tid) else {
                continue;
            };
            for (mode, events) in GROUPS {
                self.add(&thread, mode, events);
            }
        }
        let mut opened = self.groups.iter().skip(first);
        opened.try_for_each(|group| group.leader.enable(true))
    }

    /// Returns what all have counted since they were opened. Each thread that runs on another CPU is interrupted for
    /// it.
    ///
    /// # Errors
    ///
    /// Fails when the kernel refuses.
    pub fn counted(&self) -> io::Result<Vec<CounterReading>> {
        let mut out = Vec::new();
        for group in &self.groups {
            let Ok(tid) = i32::try_from(group.tid) else {
                continue;
            };
            let counts = group.leader.group_counts(1 + group.others.len())?;
            // The kernel answers in the order in which the group was opened.
            for (event, (_, counts)) in group.names.iter().zip(counts) {
                out.push(CounterReading {
                    tid,
                    event,
                    mode: match group.mode {
                        CountedMode::Both => CounterMode::Both,
                        CountedMode::Guest => CounterMode::Guest,
                        CountedMode::Host => CounterMode::Host,
                    },
                    value: counts.value,
                    times_ns: (counts.enabled_ns, counts.running_ns),
                });
            }
        }
        Ok(out)
    }

    /// Opens a group of a thread.
    fn add(
        &mut self,
        thread: &RunningThread,
        mode: CountedMode,
        events: &[(&'static str, EventSource)],
    ) {
        let Ok(tid) = i32::try_from(thread.tid) else {
            return;
        };
        let mut leader: Option<RingEvent> = None;
        let (mut others, mut names) = (Vec::new(), Vec::new());
        for (name, of) in events {
            let attr = RingAttr::counted(*of, mode);
            match RingEvent::open_thread(&attr, tid, leader.as_ref()) {
                Ok(event) => {
                    self.opened(name, attr, event.id());
                    names.push(*name);
                    match leader {
                        None => leader = Some(event),
                        Some(_) => others.push(event),
                    }
                }
                Err(error) if has_ended(&error) => return,
                Err(error) => self.refused(name, &error),
            }
        }
        if let Some(leader) = leader {
            let last = vec![EventCounts::default(); 1 + others.len()];
            self.groups.push(CounterGroup {
                mode,
                names,
                pid: thread.pid,
                tid: thread.tid,
                leader,
                others,
                last,
            });
        }
    }

    fn opened(&mut self, name: &'static str, attr: RingAttr, id: u64) {
        match self.kinds.iter_mut().find(|kind| kind.name == name) {
            Some(kind) => kind.ids.push(id),
            None => self.kinds.push(CounterKind {
                name,
                attr,
                ids: vec![id],
            }),
        }
    }

    fn refused(&mut self, name: &'static str, error: &io::Error) {
        let why = reasons::not_counted(error);
        let known = self.missing.iter_mut().find(|(known, _)| *known == why);
        match known {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => self.missing.push((why, vec![name])),
        }
    }

    /// Returns which events are not counted, and why: an entry for each reason.
    pub fn missing(&self) -> impl Iterator<Item = (String, String)> {
        let missing = self.missing.iter();
        missing.map(|(why, names)| (names.join(", "), why.clone()))
    }

    /// Returns the events as a file describes them: read one by one, whatever their group. None has a sample, but `perf
    /// script` refuses a recording with an event whose samples hold neither an instruction pointer nor an address
    /// (`evsel__check_attr` in `tools/perf/builtin-script.c`).
    pub(crate) fn described(&self) -> impl Iterator<Item = FileEvent> {
        self.kinds.iter().map(|kind| FileEvent {
            name: kind.name.to_owned(),
            attr: RingAttr {
                read: format::TOTAL_TIME_ENABLED | format::TOTAL_TIME_RUNNING | format::ID,
                sample: kind.attr.sample | sample::ADDR,
                ..kind.attr
            }
            .bytes(),
            ids: kind.ids.clone(),
        })
    }

    /// Lets them count, or stops them.
    pub(crate) fn enable(&self, on: bool) -> io::Result<()> {
        let mut groups = self.groups.iter();
        groups.try_for_each(|group| group.leader.enable(on))
    }

    /// Returns how many bytes one reading of all is at most.
    pub(crate) fn at_most(&self) -> u64 {
        let ids: usize = self.kinds.iter().map(|kind| kind.ids.len()).sum();
        ids as u64 * u64::from(READ_BYTES)
    }

    /// Returns the records of what was counted since they were read last, if that is long enough ago.
    pub(crate) fn due(&mut self) -> io::Result<Vec<u8>> {
        let since = self.read_at.get_or_insert_with(Instant::now);
        match since.elapsed() < EACH {
            true => Ok(Vec::new()),
            false => self.read(),
        }
    }

    /// Returns the records of what was counted since they were read last.
    pub(crate) fn read(&mut self) -> io::Result<Vec<u8>> {
        self.read_at = Some(Instant::now());
        let mut out = Vec::new();
        for group in &mut self.groups {
            // Each at its own time: reading all takes a while.
            let time = self.clock.as_mut().and_then(EventClock::now_ns);
            let now = group.leader.group_counts(1 + group.others.len())?;
            for ((id, now), last) in now.into_iter().zip(&mut group.last) {
                let since = EventCounts {
                    value: now.value.wrapping_sub(last.value),
                    enabled_ns: now.enabled_ns.saturating_sub(last.enabled_ns),
                    running_ns: now.running_ns.saturating_sub(last.running_ns),
                    lost: None,
                };
                *last = now;
                let thread = [group.pid, group.tid];
                push(&mut out, thread, id, since, time.unwrap_or(0));
            }
        }
        Ok(out)
    }
}

/// Returns whether a thread was gone before its counter could be opened.
fn has_ended(error: &io::Error) -> bool {
    /// `ESRCH`.
    const NO_SUCH_PROCESS: i32 = 3;
    error.raw_os_error() == Some(NO_SUCH_PROCESS)
}

/// Appends a record of what a counter counted.
fn push(out: &mut Vec<u8>, thread: [u32; 2], id: u64, counts: EventCounts, time_ns: u64) {
    out.extend(READ.to_ne_bytes());
    out.extend(0u16.to_ne_bytes());
    out.extend(READ_BYTES.to_ne_bytes());
    let ids = thread.map(u32::to_ne_bytes).concat();
    out.extend_from_slice(&ids);
    for word in [counts.value, counts.enabled_ns, counts.running_ns, id] {
        out.extend(word.to_ne_bytes());
    }
    out.extend_from_slice(&ids);
    out.extend(time_ns.to_ne_bytes());
    out.extend(NO_CPU.to_ne_bytes());
    out.extend(0u32.to_ne_bytes());
    out.extend(id.to_ne_bytes());
}
