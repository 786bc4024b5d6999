//! What programs had written when they paused: read from its oldest event on, in pieces, so that it takes no memory of
//! its own.

use std::io;

use super::open::OpenCompact;
use super::slot_reader::{CompactSample, SlotCursor};
use super::thread_names::{NameRecord, ThreadNames};

/// An event that interrupted another one stands before it, though it is the later one. So many may do that, one within
/// the other: of tasks, softirqs, interrupts and NMIs each once, with what each of them has begun.
const NESTED: usize = 32;

/// The slots of all CPUs, into which nobody writes as long as this lives.
#[derive(Debug)]
pub(crate) struct HeldSlots<'c> {
    compact: &'c mut OpenCompact,
    cpus: Vec<HeldCpu>,
    names: ThreadNames,
    resumed: bool,
}

/// The slots of a CPU.
#[derive(Debug)]
struct HeldCpu {
    cpu: u32,
    /// Where its first event is that is wanted, or the oldest one.
    cursor: SlotCursor,
    wrapped: bool,
    waiting: Vec<CompactSample>,
    /// How many of these were taken.
    taken: usize,
    ended: bool,
}

impl HeldCpu {
    /// Returns the next event in the order of times, where it is before a time.
    fn next(&mut self, compact: &OpenCompact, end_ns: u64) -> Option<CompactSample> {
        if !self.ended && self.waiting.len() - self.taken <= NESTED {
            self.waiting.drain(..self.taken);
            self.taken = 0;
            self.ended = !compact.read_some(self.cpu, &mut self.cursor, &mut self.waiting);
            if !self.waiting.is_sorted_by_key(|event| event.time_ns) {
                self.waiting.sort_by_key(|event| event.time_ns);
            }
        }
        let event = *self.waiting.get(self.taken)?;
        if event.time_ns >= end_ns {
            return None;
        }
        self.taken += 1;
        Some(event)
    }

    /// Returns when its oldest event was, and leaves it where it is.
    fn oldest_ns(&self, compact: &OpenCompact) -> Option<u64> {
        let mut cursor = self.cursor;
        let mut events = Vec::new();
        while events.is_empty() && compact.read_some(self.cpu, &mut cursor, &mut events) {}
        events.iter().map(|event| event.time_ns).min()
    }
}

impl OpenCompact {
    /// Lets programs write nothing for a while, and returns what slots have. They go on with [`HeldSlots::resume`], or
    /// when that is dropped.
    ///
    /// # Errors
    ///
    /// Those of bpf(2).
    pub(crate) fn hold(&mut self) -> io::Result<HeldSlots<'_>> {
        let cursors = self.pause()?;
        let cpus = cursors.into_iter().map(|(cpu, cursor)| HeldCpu {
            cpu,
            cursor,
            wrapped: cursor.is_wrapped(),
            waiting: Vec::new(),
            taken: 0,
            ended: false,
        });
        Ok(HeldSlots {
            cpus: cpus.collect(),
            compact: self,
            names: OpenCompact::no_names(),
            resumed: false,
        })
    }
}

impl HeldSlots<'_> {
    /// Returns the CPUs whose slots do not reach back to a time: since when they have everything, and their bytes.
    pub(crate) fn short(&self, since_ns: u64) -> impl Iterator<Item = (u32, u64, usize)> {
        self.cpus
            .iter()
            .filter(|own| own.wrapped)
            .filter_map(move |own| {
                let oldest_ns = own.oldest_ns(self.compact)?;
                (oldest_ns > since_ns).then(|| (own.cpu, oldest_ns, self.compact.bytes_of_cpu()))
            })
    }

    /// Learns what threads were called: `before`, whole records one behind the other, and what changed.
    pub(crate) fn learn(&mut self, before: &[&[u8]], changes: &[Vec<u8>]) {
        for records in before {
            self.names.begin(records);
        }
        let records = changes.iter().filter_map(|record| NameRecord::of(record));
        self.names.learn(records.collect());
    }

    /// Leaves out what was before a time. Returns how many bytes the records of the others have.
    pub(crate) fn begin(&mut self, since_ns: u64) -> u64 {
        let mut bytes = 0;
        let mut records = Vec::new();
        for own in &mut self.cpus {
            while own.next(self.compact, since_ns).is_some() {}
            // What is read now is read again when it is written.
            let (at, waiting, taken, ended) =
                (own.cursor, own.waiting.clone(), own.taken, own.ended);
            while let Some(event) = own.next(self.compact, u64::MAX) {
                self.compact
                    .append(&mut records, &event, own.cpu, &mut self.names);
                bytes += records.len() as u64;
                records.clear();
            }
            (own.cursor, own.waiting, own.taken, own.ended) = (at, waiting, taken, ended);
        }
        bytes
    }

    /// Puts perf's records together of the next events of a CPU, by its place among all, that were before a time, until
    /// there are so many bytes. Returns whether that was reached, so that there may be more.
    pub(crate) fn append(
        &mut self,
        at: usize,
        end_ns: u64,
        out: &mut Vec<u8>,
        enough: usize,
    ) -> bool {
        let Some(own) = self.cpus.get_mut(at) else {
            return false;
        };
        while out.len() < enough {
            let Some(event) = own.next(self.compact, end_ns) else {
                return false;
            };
            self.compact.append(out, &event, own.cpu, &mut self.names);
        }
        true
    }

    /// Returns how many CPUs there are.
    pub(crate) fn len(&self) -> usize {
        self.cpus.len()
    }

    /// Lets programs write again.
    ///
    /// # Errors
    ///
    /// Those of bpf(2).
    pub(crate) fn resume(mut self) -> io::Result<()> {
        self.resumed = true;
        self.compact.resume()
    }
}

impl Drop for HeldSlots<'_> {
    fn drop(&mut self) {
        if !self.resumed {
            // Whoever let go of it has its own error to say.
            let _ = self.compact.resume();
        }
    }
}
