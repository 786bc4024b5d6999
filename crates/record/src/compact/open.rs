//! Events that programs write, open.

use cpuset::CpuSet;
use rings::{EventSource, RingAttr, SharedWords};
use tracefmt::{Abi, EventFormat};

use super::expanded_record::ExpandedRecord;
use super::kinds::{ALL, AttachPoint, CompactKind, KINDS};
use super::loaded::{CompactPrograms, ProgramState, TakenSlots};
use super::reduced_format;
use super::slot_reader::{CompactSample, CpuSlots, SLOT_WORDS, SlotCursor};
use super::thread_names::{NameRecord, NamedThread, ThreadNames, event_name};
use crate::RecordError;
use crate::file::FileEvent;
use crate::plan::PlannedEvent;
use crate::summary::RecordedCount;
use crate::tasks;
use crate::tracefs::{Tracefs, Tracepoint};

/// Ids of these events' samples: far above those that the kernel counts up for its own.
const IDS: u64 = 1 << 48;
/// Bytes of a slot, and slots of a CPU at least and at most.
const SLOT: usize = SLOT_WORDS * 8;
const LEAST: usize = 1 << 10;
/// Events that are put together at once: what is made of them stays in the processor's caches until it is written.
const PIECE: usize = 1 << 11;
const MOST: usize = 1 << 20;
/// Slots of all CPUs at most where they keep the last seconds: half of the 4 GiB that a map of older kernels has.
const MOST_KEPT: usize = (2 << 30) / SLOT;

/// An event that a program writes.
#[derive(Debug)]
struct CompactEvent {
    kind: &'static CompactKind,
    tracepoint: Tracepoint,
    record: ExpandedRecord,
    /// Events that were read, and those that had been written before slots were read last.
    read: u64,
    written: u64,
}

impl CompactEvent {
    fn id(kind: &CompactKind) -> u64 {
        IDS + u64::from(kind.number)
    }
}

/// A CPU's slots, and what was read of them.
#[derive(Debug)]
struct CompactCpu {
    cpu: u32,
    cursor: SlotCursor,
    waiting: Vec<CompactSample>,
    /// How many of these were taken.
    taken: usize,
}

impl CompactCpu {
    fn of(cpu: u32) -> CompactCpu {
        CompactCpu {
            cpu,
            cursor: SlotCursor::default(),
            waiting: Vec::new(),
            taken: 0,
        }
    }
}

/// Events that programs write.
#[derive(Debug)]
pub(crate) struct OpenCompact {
    programs: CompactPrograms,
    words: SharedWords,
    /// Slots of a CPU.
    slots: usize,
    cpus: Vec<CompactCpu>,
    events: Vec<CompactEvent>,
    /// Where in these events a kind is.
    of_kind: [Option<usize>; KINDS],
    names: ThreadNames,
    /// Whether nobody reads slots before something has happened.
    flight: bool,
}

/// Returns how many slots each of so many CPUs has, of which so many are on line and would have rings of so many
/// bytes: a power of two.
fn slots_of(ring_bytes: usize, on_line: usize, cpus: usize, flight: bool) -> usize {
    let all = ring_bytes.saturating_mul(on_line) / SLOT;
    let most = match flight {
        true => (MOST_KEPT / cpus.max(1)).max(LEAST),
        false => MOST,
    };
    let each = (all / cpus.max(1)).min(most);
    let below = each.checked_ilog2().map_or(1, |bits| 1 << bits);
    below.max(LEAST)
}

/// Returns the kind of an event all of whose records are wanted, in this architecture.
fn kind_of(event: &PlannedEvent) -> Option<&'static CompactKind> {
    let here = std::env::consts::ARCH;
    let whole = PlannedEvent::all(&event.system, &event.name);
    let mut kinds = ALL.iter();
    kinds.find(|kind| {
        (kind.system, kind.name) == (&event.system, &event.name)
            && kind.arch.is_none_or(|arch| arch == here)
            && *event == whole
    })
}

impl OpenCompact {
    /// Loads and attaches programs for those of the events that they know, with as much memory as rings of so many
    /// bytes would take. They record nothing yet. The others are perf's. `flight` says that slots are read only when
    /// somebody asks for what they have.
    ///
    /// # Errors
    ///
    /// [`RecordError::Compact`] where the kernel refuses, and as [`Tracefs::event`].
    pub(crate) fn open(
        wanted: &[PlannedEvent],
        on_line: &CpuSet,
        (ring_bytes, flight): (usize, bool),
        tracefs: &Tracefs,
    ) -> Result<OpenCompact, RecordError> {
        let failed = |why: String| RecordError::Compact { why };
        let mut found = Vec::new();
        for event in wanted {
            if let Some(kind) = kind_of(event)
                && let Some(tracepoint) = tracefs.event(&event.system, &event.name)?
                && let Some(format) =
                    EventFormat::parse(&event.system, &tracepoint.format, Abi::default())
                && is_known(kind, &format)
            {
                found.push((kind, tracepoint, format));
            }
        }
        let exit = found.iter().find(|(kind, ..)| kind.name == "kvm_exit");
        let exit = exit.map(|(_, _, format)| format);
        let cpus =
            aya::util::nr_cpus().map_err(|(path, error)| failed(format!("{path}: {error}")))?;
        let slots = slots_of(ring_bytes, on_line.iter().count(), cpus, flight);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let programs = CompactPrograms::load(exit, number(slots), number(cpus));
        let mut programs = programs.map_err(failed)?;
        let words = slots * cpus * SLOT_WORDS;
        let map = programs.slots().map_err(failed)?;
        let words = SharedWords::of(map, words).map_err(|error| failed(error.to_string()))?;
        let mut events = Vec::new();
        let mut of_kind = [None; KINDS];
        for (kind, tracepoint, format) in found {
            let attached = programs.attach(kind);
            attached.map_err(|why| failed(format!("{}: {why}", kind.name)))?;
            let known = |name: &str| kind.fields.iter().any(|(known, _)| *known == name);
            let reduced = reduced_format::of(&tracepoint.format, &format, known);
            if let Some(place) = of_kind.get_mut(usize::from(kind.number)) {
                *place = Some(events.len());
            }
            events.push(CompactEvent {
                kind,
                record: ExpandedRecord::of(&format, CompactEvent::id(kind), kind.fields),
                tracepoint: Tracepoint {
                    format: reduced,
                    ..tracepoint
                },
                read: 0,
                written: 0,
            });
        }
        Ok(OpenCompact {
            programs,
            words,
            slots,
            cpus: on_line.iter().map(CompactCpu::of).collect(),
            events,
            of_kind,
            names: OpenCompact::no_names(),
            flight,
        })
    }

    /// Returns whether programs write an event.
    pub(crate) fn has(&self, event: &PlannedEvent) -> bool {
        let same =
            |one: &CompactEvent| (one.kind.system, one.kind.name) == (&event.system, &event.name);
        self.events.iter().any(same)
    }

    /// Returns the tracepoints whose records programs write, with the fields that they know.
    pub(crate) fn tracepoints(&self) -> impl Iterator<Item = &Tracepoint> {
        self.events.iter().map(|one| &one.tracepoint)
    }

    /// Returns the events as a file describes them.
    pub(crate) fn described(&self) -> impl Iterator<Item = FileEvent> {
        self.events.iter().map(|one| FileEvent {
            name: one.tracepoint.full_name(),
            attr: RingAttr {
                monotonic: true,
                ..RingAttr::each(EventSource::Tracepoint(one.tracepoint.id))
            }
            .bytes(),
            ids: vec![CompactEvent::id(one.kind)],
        })
    }

    /// Learns what threads are called, from the records that stand before those of the kernel.
    pub(crate) fn begin(&mut self, side: &[u8]) {
        self.names.begin(side);
    }

    /// Lets programs record, or stops them.
    pub(crate) fn enable(&mut self, on: bool) -> std::io::Result<()> {
        let state = match on {
            true => ProgramState::On,
            false => ProgramState::Off,
        };
        self.programs.record(state).map_err(std::io::Error::other)
    }

    /// Reads what programs have written.
    pub(crate) fn read(&mut self) {
        let taken = self.programs.taken();
        for event in &mut self.events {
            event.written = written(&taken, event.kind);
        }
        let kinds = self.slots_of_kinds();
        let slots_of = |kind: u8| kinds.get(usize::from(kind)).copied().unwrap_or(0);
        for own in &mut self.cpus {
            let slots = CpuSlots::of(&self.words, own.cpu, self.slots);
            own.waiting.drain(..own.taken);
            own.taken = 0;
            own.cursor
                .read(&slots, self.slots, &slots_of, &mut own.waiting);
            // One that interrupted another stands before it.
            if !own.waiting.is_sorted_by_key(|event| event.time_ns) {
                own.waiting.sort_by_key(|event| event.time_ns);
            }
        }
    }

    /// Returns how many slots the events of each kind take; 0 of those that programs do not write.
    fn slots_of_kinds(&self) -> [usize; KINDS] {
        self.of_kind.map(|at| {
            let event = at.and_then(|at| self.events.get(at));
            event.map_or(0, |event| event.kind.slots)
        })
    }

    /// Lets programs write nothing for a while. Returns each CPU with the oldest of its slots.
    pub(super) fn pause(&mut self) -> std::io::Result<Vec<(u32, SlotCursor)>> {
        let paused = self.programs.record(ProgramState::Paused);
        paused.map_err(std::io::Error::other)?;
        let taken = self.programs.taken();
        let cpus = self.cpus.iter().map(|own| {
            let taken = taken.get(own.cpu as usize).map_or(0, TakenSlots::slots);
            (own.cpu, SlotCursor::of_oldest(taken, self.slots))
        });
        Ok(cpus.collect())
    }

    /// Returns names of threads of which nothing is known yet.
    pub(super) fn no_names() -> ThreadNames {
        ThreadNames::new(found_thread)
    }

    /// Lets programs write again.
    pub(super) fn resume(&mut self) -> std::io::Result<()> {
        self.enable(true)
    }

    /// Reads a few events of a CPU's slots, from where a cursor is. Returns whether there may be more.
    pub(super) fn read_some(
        &self,
        cpu: u32,
        cursor: &mut SlotCursor,
        out: &mut Vec<CompactSample>,
    ) -> bool {
        let kinds = self.slots_of_kinds();
        let slots_of = |kind: u8| kinds.get(usize::from(kind)).copied().unwrap_or(0);
        let slots = CpuSlots::of(&self.words, cpu, self.slots);
        cursor.read_some(&slots, self.slots, &slots_of, out, PIECE)
    }

    /// Puts perf's record of an event together; nothing of what is none.
    pub(super) fn append(
        &self,
        out: &mut Vec<u8>,
        event: &CompactSample,
        cpu: u32,
        names: &mut ThreadNames,
    ) {
        let at = self.of_kind.get(usize::from(event.kind)).copied().flatten();
        if let Some(of) = at.and_then(|at| self.events.get(at)) {
            of.record.append(out, event, cpu, names);
        }
    }

    /// Returns how many bytes the slots of a CPU have.
    pub(super) fn bytes_of_cpu(&self) -> usize {
        self.slots * SLOT
    }

    /// Learns names of threads: records that have come up to now, after [`OpenCompact::read`].
    pub(crate) fn learn(&mut self, named: &[Vec<u8>]) {
        let records = named.iter().filter_map(|record| NameRecord::of(record));
        self.names.learn(records.collect());
    }

    /// Puts perf's records together of a piece of what was read, CPU by CPU. Returns whether there is more.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) -> bool {
        let mut latest = 0;
        for own in &mut self.cpus {
            let waiting = own.waiting.get(own.taken..).unwrap_or_default();
            let piece = waiting.get(..PIECE.min(waiting.len())).unwrap_or_default();
            for event in piece {
                let at = self.of_kind.get(usize::from(event.kind)).copied().flatten();
                if let Some(of) = at.and_then(|at| self.events.get_mut(at)) {
                    of.read += 1;
                    of.record.append(out, event, own.cpu, &mut self.names);
                }
            }
            own.taken += piece.len();
            if !piece.is_empty() {
                return true;
            }
            latest = latest.max(own.waiting.last().map_or(0, |event| event.time_ns));
        }
        self.names.settle(latest);
        false
    }

    /// Returns what became of the events. What was gone over before anybody asked for it is not lost where slots keep
    /// the last seconds; what came while they were read is.
    pub(crate) fn recorded(&self) -> Vec<RecordedCount> {
        let taken = self.programs.taken();
        let mut paused: u64 = taken.iter().map(TakenSlots::paused).sum();
        let recorded = self.events.iter().map(|one| {
            let by_cpu = taken.iter().map(|own| own.events(one.kind));
            let by_cpu: Vec<(u32, u64)> = (0..).zip(by_cpu).collect();
            // Nobody has asked yet for what was written since then.
            let lost = match self.flight {
                // Of which kind they were is not counted.
                true => std::mem::take(&mut paused),
                false => one.written.saturating_sub(one.read),
            };
            RecordedCount {
                name: one.tracepoint.full_name(),
                kept: true,
                count: written(&taken, one.kind),
                by_cpu,
                lost: Some(lost),
                ..RecordedCount::default()
            }
        });
        recorded.collect()
    }

    /// Returns how many events were gone over before they were read, with the ids of their samples.
    pub(crate) fn losses(&self) -> impl Iterator<Item = (u64, u64)> {
        self.events
            .iter()
            .zip(self.recorded())
            .filter_map(|(one, recorded)| {
                let lost = recorded.lost.filter(|lost| *lost > 0)?;
                Some((CompactEvent::id(one.kind), lost))
            })
    }
}

/// Returns how many events of a kind were written.
fn written(taken: &[TakenSlots], kind: &CompactKind) -> u64 {
    taken.iter().map(|own| own.events(kind)).sum()
}

/// Returns what a thread is called now.
fn found_thread(tid: u32) -> Option<NamedThread> {
    let thread = tasks::thread(tid)?;
    Some(NamedThread {
        pid: thread.pid,
        name: event_name(&thread.name),
    })
}

/// Returns whether an event's arguments are those that its program takes, by the fields of its format.
fn is_known(kind: &CompactKind, format: &EventFormat) -> bool {
    let AttachPoint::Arguments(fields) = kind.attach else {
        return true;
    };
    let own = format.own_fields().iter().map(|field| field.name.as_str());
    own.take(fields.len()).eq(fields.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_take_no_more_memory_than_rings() {
        assert_eq!(slots_of(4 << 20, 2, 2, false), 128 << 10);
        assert_eq!(slots_of(4 << 20, 16, 512, false), LEAST.max(4 << 10));
        assert_eq!(slots_of(256 << 10, 1, 1, false), 8 << 10);
        assert_eq!(slots_of(1 << 30, 2, 2, false), MOST);
        assert_eq!(slots_of(64 << 20, 2, 2, true), 2 << 20);
        assert_eq!(slots_of(1 << 30, 256, 256, true), 256 << 10);
    }

    #[test]
    fn events_with_a_filter_are_perfs() {
        let plain = PlannedEvent::all("sched", "sched_switch");
        assert!(kind_of(&plain).is_some());
        let filtered = PlannedEvent {
            filter: Some("prev_pid==1".to_owned()),
            ..plain
        };
        assert!(kind_of(&filtered).is_none());
        assert!(kind_of(&PlannedEvent::all("irq", "irq_handler_entry")).is_none());
    }
}
