//! The flight recorder that nobody has to feed: the kernel overwrites what is old, and the rings are read when
//! something has happened.
//!
//! Rings are written backward (`Attr::backward`), and the recorder sleeps in one read until a signal comes. Then it
//! gives itself its own name again, so that the kernel records the time on the events' clock; pauses the rings; reads
//! each from its head to the last whole record, without the oldest 64 KiB, which a record under way may still
//! overwrite; and writes the time that all rings hold, oldest first, in rounds of about a MiB. What was asked for and
//! what each ring held is in our own feature section, of which `source/src/kept.rs` makes a warning. What programs in
//! the kernel write is held and written the same way (`compact/held.rs`).

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::time::Duration;

use rings::{PausedRing, RingPlace, SplitRecord, TIME_FROM_END, record_type, sample, sample_place};
use rustix::thread::{gettid, name, set_name};
use serde::Serialize;

use crate::clock::ClockSource;
use crate::compact::{HeldSlots, OpenCompact};
use crate::file::{Feature, Features, FileEvent, PerfFile, ROUND};
use crate::live::LiveRecording;
use crate::opened::OpenedEvents;
use crate::summary::RecordSummary;
use crate::{RecordError, machine, mappings, tasks};

/// Bytes of records that one CPU writes in a second at most, as far as is known: a million events of 64 bytes. A ring
/// that takes longer to fill than what is kept is memory that nobody needs.
const MOST_A_SECOND: u128 = 64 << 20;
/// A ring is not made smaller than this, nor larger: the kernel keeps a list of its pages in 4 MiB at most, which also
/// has a head (`rb_alloc` in `kernel/events/ring_buffer.c`).
const SMALLEST: u64 = 256 << 10;
const LARGEST: u64 = 1 << 30;
/// All rings together take no more of the machine's memory than a part of so many: their pages cannot be swapped.
const PART_OF_MEMORY: u64 = 4;
/// CPUs whose rings are too short that a recording lists at most.
const MOST_SHORT: usize = 256;
/// What is written at once, about: records are put in order in so much memory.
const ROUND_BYTES: usize = 1 << 20;
/// What a recording is cut into at most.
const MOST_ROUNDS: u64 = 1 << 14;

/// Where process and thread stand in a record of a name.
const NAMED_AT: usize = 8;
/// Among so many of a ring's newest records the recorder's own is looked for.
const NEWEST: usize = 1 << 16;

/// Returns how many bytes the ring of each CPU gets, so that all together take no more than `memory` bytes and each no
/// more than it can fill in the time that is kept. A quarter of the machine's memory is never gone beyond.
pub fn ring_bytes(keep: Duration, memory: u64) -> usize {
    let of_machine = machine::memory_kib().saturating_mul(1024) / PART_OF_MEMORY;
    let memory = match of_machine {
        0 => memory,
        most => memory.min(most),
    };
    each(keep, memory, machine::cpus("online").len())
}

fn each(keep: Duration, memory: u64, cpus: usize) -> usize {
    let most = keep.as_millis() * MOST_A_SECOND / 1000;
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    let share = memory / u64::try_from(cpus.max(1)).unwrap_or(u64::MAX);
    let bytes = share.min(most.checked_next_power_of_two().unwrap_or(u64::MAX));
    let below = 1 << bytes.max(1).ilog2();
    usize::try_from(below.clamp(SMALLEST, LARGEST)).unwrap_or(usize::MAX)
}

/// A recording of which only the last seconds are kept, in rings that the kernel goes on over.
#[derive(Debug)]
pub struct Overwriting {
    live: LiveRecording,
    events: Vec<FileEvent>,
    features: Features,
    side: Vec<u8>,
    keep: Duration,
    /// When it began, on the caller's clock.
    begun: Duration,
}

/// A CPU whose ring holds less than was to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ShortRing {
    /// The CPU.
    pub cpu: u32,
    /// Since when everything that happened on it is there, ns on the events' clock.
    pub since_ns: u64,
    /// The bytes of its ring, or of the slots that programs write into.
    pub ring_bytes: usize,
}

/// What a recording says of what was kept, in its own feature section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct KeptSection {
    /// What was asked for.
    asked_ns: u64,
    /// From when to when everything is there, on the events' clock.
    since_ns: u64,
    until_ns: u64,
    /// CPUs whose rings hold less than was asked for.
    short: Vec<ShortRing>,
}

impl KeptSection {
    /// Finds the CPUs whose rings, or slots that programs write into, hold less than was asked for, and takes the time
    /// that all of them hold.
    fn shorten(
        &mut self,
        rings: &[(u32, PausedRing<'_>)],
        slots: Option<&HeldSlots<'_>>,
        times: &TimeOffsets,
    ) {
        let (asked_since_ns, until_ns) = (self.since_ns, self.until_ns);
        for (cpu, ring) in rings {
            if let Some(since_ns) = times.short(ring, asked_since_ns, until_ns) {
                self.is_short(ShortRing {
                    cpu: *cpu,
                    since_ns,
                    ring_bytes: ring.size(),
                });
            }
        }
        let of_programs = slots.into_iter().flat_map(|one| one.short(asked_since_ns));
        for (cpu, since_ns, ring_bytes) in of_programs {
            self.is_short(ShortRing {
                cpu,
                since_ns: since_ns.min(until_ns),
                ring_bytes,
            });
        }
        // Before the latest of them one CPU would be missing among others, and what its threads did would be wrong.
        let latest = self.short.iter().map(|one| one.since_ns).max();
        self.since_ns = latest.map_or(asked_since_ns, |latest| latest.max(asked_since_ns));
    }

    /// A CPU's ring holds less than was asked for. Of what programs write and what perf does the one counts that holds
    /// less.
    fn is_short(&mut self, ring: ShortRing) {
        match self.short.iter_mut().find(|one| one.cpu == ring.cpu) {
            Some(known) if known.since_ns >= ring.since_ns => {}
            Some(known) => *known = ring,
            None => self.short.push(ring),
        }
    }
}

/// What the rings hold: nothing is written to them as long as this lives.
#[derive(Debug)]
pub struct HeldRings<'r> {
    rings: Vec<OfCpu<'r>>,
    /// What programs wrote.
    slots: Option<HeldSlots<'r>>,
    times: TimeOffsets,
    events: &'r [FileEvent],
    features: Features,
    /// Names and mappings of the beginning, and those of now.
    side: [&'r [u8]; 1],
    now: [Vec<u8>; 2],
    kept: KeptSection,
    clock: ClockSource,
    from_begin: bool,
    bytes: u64,
}

/// The ring of a CPU, and where in it the records are that are kept.
#[derive(Debug)]
struct OfCpu<'r> {
    ring: PausedRing<'r>,
    /// Newest first.
    places: Vec<RingPlace>,
}

/// What is chosen of the rings.
#[derive(Debug)]
struct ChosenRecords<'t> {
    times: &'t TimeOffsets,
    /// Since when all is kept; from the first record without.
    first_ns: Option<u64>,
    /// The thread whose own name marks the end, which says nothing of others.
    own: Option<u32>,
    /// Whether programs wrote events, which need names that rings have.
    with_slots: bool,
    /// Threads that were given a name within the time that is kept: they had another one before.
    named: BTreeSet<u32>,
    /// Whole records that are no samples, for the names of what programs wrote.
    changes: Vec<Vec<u8>>,
    /// Bytes of all that is kept.
    bytes: u64,
}

impl ChosenRecords<'_> {
    /// Returns where in a ring the records are that are kept, newest first.
    fn places(&mut self, ring: &PausedRing<'_>) -> Vec<RingPlace> {
        let mut places = Vec::new();
        for record in ring.records() {
            let is_kept = self.times.of(&record) >= self.first_ns;
            if is_kept {
                self.bytes += record.len() as u64;
                places.push(record.place());
                if record.kind() == record_type::COMM {
                    let tid = thread_of_name(&record).filter(|tid| Some(*tid) != self.own);
                    self.named.extend(tid);
                }
            }
            if self.with_slots {
                // Who ends within this time may have its name of before it.
                if record.kind() != record_type::SAMPLE {
                    self.changes.push([record.first, record.second].concat());
                }
            } else if !is_kept {
                break;
            }
        }
        places
    }
}

impl Overwriting {
    /// Begins. `side` are records that stand before those of the kernel ([`crate::tasks`]); `now` is the caller's
    /// clock, which may begin anywhere.
    ///
    /// # Errors
    ///
    /// [`RecordError::Wait`] where events cannot be enabled.
    pub fn begin(
        opened: OpenedEvents,
        features: Features,
        side: Vec<u8>,
        keep: Duration,
        now: Duration,
    ) -> Result<Overwriting, RecordError> {
        Ok(Overwriting {
            events: opened.described(),
            live: LiveRecording::begin(opened)?,
            features,
            side,
            keep,
            begun: now,
        })
    }

    /// Lets the kernel write nothing for a while, and finds what is to be kept: the last seconds, and less where a ring
    /// holds less. `now` reads the caller's clock.
    ///
    /// # Errors
    ///
    /// [`RecordError::Wait`] where a ring cannot be paused.
    pub fn hold(&mut self, now: impl FnOnce() -> Duration) -> Result<HeldRings<'_>, RecordError> {
        // Names of threads whose record was gone over; read before, since what happens in a pause is lost.
        let threads = tasks::threads();
        // The same of code that processes have mapped: call chains are addresses in it.
        let mappings = match self.live.opened.has_chains() {
            true => mappings::processes(),
            false => Vec::new(),
        };
        let own = name_self_again();
        // Asked for behind that record: what was read before takes its time, and by an older answer what happened at
        // the very beginning would seem to lie before it.
        let now = now();
        let clock = self.live.opened.clock();
        let opened = &mut self.live.opened;
        let mut rings = Vec::new();
        for one in &mut opened.rings {
            let ring = one.ring.pause().map_err(RecordError::Wait)?;
            rings.push((one.cpu, ring));
        }
        let slots = opened.compact.as_mut().map(OpenCompact::hold);
        let mut slots = slots.transpose().map_err(RecordError::Wait)?;
        let times = TimeOffsets::of_events(&self.events);
        // Of one that was read before, the ring of another CPU may have an older record.
        let own_time = own.and_then(|tid| {
            rings
                .iter()
                .filter_map(|(_, ring)| times.of_name(ring, tid))
                .max()
        });
        let newest = rings
            .iter()
            .filter_map(|(_, ring)| times.of(&ring.records().next()?));
        let until_ns = own_time.or_else(|| newest.max()).unwrap_or(0);
        let begun_ns = until_ns.saturating_sub(ns(now.saturating_sub(self.begun)));
        let mut kept = KeptSection {
            asked_ns: ns(self.keep),
            since_ns: until_ns.saturating_sub(ns(self.keep)).max(begun_ns),
            until_ns,
            short: Vec::new(),
        };
        kept.shorten(&rings, slots.as_ref(), &times);
        // What is kept from the beginning has the names as well that threads were given shortly before it.
        let from_begin = kept.since_ns == begun_ns;
        let mut chosen = ChosenRecords {
            times: &times,
            first_ns: (!from_begin).then_some(kept.since_ns),
            own,
            with_slots: slots.is_some(),
            named: BTreeSet::new(),
            changes: Vec::new(),
            bytes: 0,
        };
        let rings = rings.into_iter().map(|(_, ring)| OfCpu {
            places: chosen.places(&ring),
            ring,
        });
        let rings = rings.collect();
        let ChosenRecords {
            named,
            changes,
            mut bytes,
            ..
        } = chosen;
        let names = tasks::records(threads.iter().filter(|one| !named.contains(&one.tid)));
        if let Some(slots) = &mut slots {
            slots.learn(&[&self.side, &names], &changes);
            bytes += slots.begin(kept.since_ns);
        }
        let mut features = self.features.clone();
        let said = KeptSection {
            short: kept.short.iter().copied().take(MOST_SHORT).collect(),
            ..kept
        };
        let said = serde_json::to_vec(&serde_json::json!({ "kept": said }));
        features.set(Feature::Trapline(said.unwrap_or_default()));
        Ok(HeldRings {
            rings,
            slots,
            clock,
            times,
            events: &self.events,
            features,
            side: [&self.side],
            now: [mappings, names],
            from_begin,
            kept,
            bytes,
        })
    }

    /// Returns how often each was counted so far.
    ///
    /// # Errors
    ///
    /// [`RecordError::Wait`].
    pub fn so_far(&self) -> Result<RecordSummary, RecordError> {
        self.live.summary()
    }

    /// Stops the events, and returns how often each was counted.
    ///
    /// # Errors
    ///
    /// [`RecordError::Wait`].
    pub fn stop(&mut self) -> Result<RecordSummary, RecordError> {
        self.live.stop()?;
        self.live.summary()
    }
}

impl HeldRings<'_> {
    /// Returns which clock its events have.
    pub fn clock(&self) -> ClockSource {
        self.clock
    }

    /// Returns how many bytes of records are kept.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how much time they are of.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.kept.until_ns - self.kept.since_ns.min(self.kept.until_ns))
    }

    /// Returns the CPUs whose rings hold less than was to be kept: why the time is shorter.
    pub fn short(&self) -> &[ShortRing] {
        &self.kept.short
    }

    /// Returns since when, on the events' clock, everything is there.
    pub fn since_ns(&self) -> u64 {
        self.kept.since_ns
    }

    /// Returns whether that is when the recorder began.
    pub fn is_from_begin(&self) -> bool {
        self.from_begin
    }

    /// Returns until when, on the events' clock, everything is there.
    pub fn until_ns(&self) -> u64 {
        self.kept.until_ns
    }

    /// Writes it to an empty file, and lets the kernel write again. Returns how many bytes of records were written.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`]; [`RecordError::Wait`] where the kernel does not go on.
    pub fn write(mut self, file: File) -> Result<u64, RecordError> {
        let mut file = PerfFile::begin(file, self.events, self.features.clone())
            .map_err(RecordError::Write)?;
        file.append(&self.side).map_err(RecordError::Write)?;
        let [mappings, names] = &self.now;
        file.append(&[mappings, names])
            .map_err(RecordError::Write)?;
        self.rounds(&mut file).map_err(RecordError::Write)?;
        let bytes = file.written();
        for one in self.rings {
            one.ring.resume().map_err(RecordError::Wait)?;
        }
        if let Some(slots) = self.slots {
            slots.resume().map_err(RecordError::Wait)?;
        }
        file.finish().map_err(RecordError::Write)?;
        Ok(bytes)
    }

    /// Writes the records, oldest first, in rounds: each has what all CPUs did in a part of the time, so that readers
    /// never hold much.
    fn rounds(&mut self, file: &mut PerfFile) -> io::Result<()> {
        let (since_ns, until_ns) = (self.kept.since_ns, self.kept.until_ns);
        let rounds = (self.bytes / ROUND_BYTES as u64).clamp(1, MOST_ROUNDS);
        let part = until_ns.saturating_sub(since_ns) / rounds;
        let mut left: Vec<usize> = self.rings.iter().map(|one| one.places.len()).collect();
        let mut records = Vec::new();
        for round in 1..=rounds {
            let end = match round == rounds {
                true => u64::MAX,
                false => since_ns.saturating_add(part.saturating_mul(round)),
            };
            for (one, left) in self.rings.iter().zip(&mut left) {
                while let Some(place) = left.checked_sub(1).and_then(|at| one.places.get(at)) {
                    let Some(record) = one.ring.record(*place) else {
                        break;
                    };
                    if self.times.of(&record) >= Some(end) {
                        break;
                    }
                    *left -= 1;
                    records.extend_from_slice(record.first);
                    records.extend_from_slice(record.second);
                    if records.len() >= ROUND_BYTES {
                        file.append(&[&records])?;
                        records.clear();
                    }
                }
            }
            if let Some(slots) = &mut self.slots {
                for at in 0..slots.len() {
                    while slots.append(at, end, &mut records, ROUND_BYTES) {
                        file.append(&[&records])?;
                        records.clear();
                    }
                }
            }
            records.extend(ROUND);
            file.append(&[&records])?;
            records.clear();
        }
        Ok(())
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Gives this thread the name that it has, and returns its number: the kernel records that with its time, so that it is
/// known what time it is on the events' clock.
fn name_self_again() -> Option<u32> {
    set_name(&name().ok()?).ok()?;
    u32::try_from(gettid().as_raw_nonzero().get()).ok()
}

/// Returns whose name a record gives.
fn thread_of_name(record: &SplitRecord<'_>) -> Option<u32> {
    let [_, _, _, _, tid @ ..] = record.word(NAMED_AT)?.to_ne_bytes();
    Some(u32::from_ne_bytes(tid))
}

/// Where records have their time.
#[derive(Debug)]
struct TimeOffsets {
    /// The ids of events whose samples have an address before it.
    with_address: BTreeSet<u64>,
}

impl TimeOffsets {
    fn of_events(events: &[FileEvent]) -> TimeOffsets {
        let with_address = events.iter().filter(|one| one.sample() & sample::IP != 0);
        TimeOffsets {
            with_address: with_address
                .flat_map(|one| one.ids.iter().copied())
                .collect(),
        }
    }

    /// Returns when a record was written.
    fn of(&self, record: &SplitRecord<'_>) -> Option<u64> {
        if record.kind() != record_type::SAMPLE {
            return record.word(record.len().checked_sub(TIME_FROM_END)?);
        }
        let address = !self.with_address.is_empty()
            && self.with_address.contains(&record.word(sample_place::ID)?);
        record.word(if address {
            sample_place::TIME + 8
        } else {
            sample_place::TIME
        })
    }

    /// Returns when a thread was last given a name, if that is among the newest records.
    fn of_name(&self, ring: &PausedRing<'_>, tid: u32) -> Option<u64> {
        let mut newest = ring.records().take(NEWEST);
        let named =
            newest.find(|one| one.kind() == record_type::COMM && thread_of_name(one) == Some(tid));
        self.of(&named?)
    }

    /// Returns since when a ring holds everything, if that is later than a time.
    fn short(&self, ring: &PausedRing<'_>, since_ns: u64, until_ns: u64) -> Option<u64> {
        if !ring.wrapped() {
            return None;
        }
        let mut oldest = until_ns;
        for record in ring.records() {
            oldest = self.of(&record)?;
            if oldest < since_ns {
                return None;
            }
        }
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_take_what_they_may_and_no_more_than_can_come() {
        let of = |seconds, memory: u64, cpus| {
            each(Duration::from_millis(seconds), memory << 20, cpus) >> 10
        };
        // 256 MiB for two CPUs, for 16 and for 100.
        assert_eq!(of(5000, 256, 2), 128 << 10);
        assert_eq!(of(5000, 256, 16), 16 << 10);
        assert_eq!(of(5000, 256, 100), 2 << 10);
        // A second of one CPU, and half of one.
        assert_eq!(of(1000, 4096, 2), 64 << 10);
        assert_eq!(of(500, 4096, 2), 32 << 10);
        assert_eq!(of(1, 0, 0), 256);
        assert_eq!(of(u64::MAX, 1 << 30, 2), 1 << 20);
    }
}
