//! Records waiting to go out in time order.
//!
//! perf empties one per-CPU buffer after the other, so the file is a sequence of runs that are in time
//! order already. A heap merges the runs. What a run holds is kept twice: as the range of bytes it covers,
//! and as an index of its records (time, place, attribute), so that the merge touches only the records that
//! are wanted. The index is given up when it grows too large, which happens only in recordings without
//! rounds; the runs are then walked again byte by byte. Either way the state does not grow with the length
//! of the recording.

mod batch;
mod loser_tree;

use std::ops::Range;

use tracefmt::index_of;

pub(crate) use batch::{MergeBatch, MergeStretch};
use loser_tree::{LoserTree, NO_NUMBER};

/// One record: when, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergeRecord {
    pub time: u64,
    /// Place in the buffer in the low 48 bits, attribute above; [`MergeRecord::SIDE`] for records that are no
    /// samples.
    place: u64,
}

impl MergeRecord {
    pub(crate) const SIDE: u32 = 0xffff;
    const SHIFT: u32 = 48;

    #[inline(always)]
    pub(crate) fn new(time: u64, at: usize, attr: u32) -> MergeRecord {
        MergeRecord {
            time,
            place: at as u64 | u64::from(attr) << MergeRecord::SHIFT,
        }
    }

    #[inline(always)]
    pub(crate) fn at(self) -> usize {
        (self.place & ((1 << MergeRecord::SHIFT) - 1)) as usize
    }

    #[inline(always)]
    pub(crate) fn attr(self) -> u32 {
        (self.place >> MergeRecord::SHIFT) as u32
    }
}

/// Records in time order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordRun {
    /// Order of the runs in the file: decides between equal times, as perf does.
    pub seq: u64,
    /// Which buffer the range is in: 0 is the input.
    pub buffer: u32,
    /// Range of the index; empty when the run has none.
    pub entry: u32,
    pub entry_end: u32,
    /// Next record. It stands still while the run has an index.
    pub at: usize,
    /// End of the last record.
    pub end: usize,
}

/// When the next record of a run comes, and which run it is: what the heap orders.
///
/// It is one number, so that no branch decides a comparison, which nobody could foresee: the time, below that the run's
/// place in the file, and below that its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MergeKey(u128);

impl MergeKey {
    /// Bits for slots. There are never as many runs; bits for the order of runs are left enough for any file.
    const SLOTS: u32 = 24;

    fn new(time: u64, seq: u64, slot: usize) -> MergeKey {
        let run = seq << MergeKey::SLOTS | slot as u64;
        MergeKey(u128::from(time) << 64 | u128::from(run))
    }

    fn time(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the lower half alone is meant"
    )]
    fn run(self) -> u64 {
        self.0 as u64
    }

    fn slot(self) -> usize {
        (self.run() & ((1 << MergeKey::SLOTS) - 1)) as usize
    }

    fn seq(self) -> u64 {
        self.run() >> MergeKey::SLOTS
    }

    fn at_time(self, time: u64) -> MergeKey {
        MergeKey(u128::from(time) << 64 | u128::from(self.run()))
    }
}

/// Records indexed at most: 16 bytes each.
const MAX_ENTRIES: usize = 1 << 20;

/// Makes a place in the index short: there are at most [`MAX_ENTRIES`].
#[inline]
fn place_in_index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The run being extended.
#[derive(Debug, Clone, Copy)]
struct OpenRun {
    run: RecordRun,
    first_time: u64,
    last_time: u64,
}

/// Runs of records, the earliest first.
#[derive(Debug)]
pub(crate) struct MergeQueue {
    /// A binary min-heap.
    heap: Vec<MergeKey>,
    /// By slot.
    runs: Vec<RecordRun>,
    /// Slots that are free.
    free: Vec<usize>,
    pub entries: Vec<MergeRecord>,
    /// Where runs are many, whose turn it is, and by slot, which leaf a run is: while a batch is taken.
    tree: LoserTree,
    leaves: Vec<u32>,
    open: Option<OpenRun>,
    indexing: bool,
    next_seq: u64,
    /// Newest time stamp of all runs that were closed.
    pub newest: u64,
}

impl MergeQueue {
    pub(crate) fn new() -> MergeQueue {
        MergeQueue {
            heap: Vec::new(),
            runs: Vec::new(),
            free: Vec::new(),
            entries: Vec::new(),
            tree: LoserTree::default(),
            leaves: Vec::new(),
            open: None,
            indexing: true,
            next_seq: 0,
            newest: 0,
        }
    }

    /// Adds a record that lies behind all others in its buffer. Returns whether a run begins with it.
    #[inline(always)]
    pub(crate) fn add(&mut self, buffer: u32, at: usize, end: usize, time: u64, attr: u32) -> bool {
        let began = match &mut self.open {
            Some(open) if time >= open.last_time && open.run.buffer == buffer => {
                open.run.end = end;
                open.last_time = time;
                false
            }
            _ => {
                self.begin(buffer, at, end, time);
                true
            }
        };
        if self.indexing {
            self.entries.push(MergeRecord::new(time, at, attr));
            if self.entries.len() >= MAX_ENTRIES {
                self.drop_index();
            }
        }
        began
    }

    fn begin(&mut self, buffer: u32, at: usize, end: usize, time: u64) {
        self.close();
        let entry = place_in_index(self.entries.len());
        let seq = self.next_seq;
        self.next_seq += 1;
        self.open = Some(OpenRun {
            run: RecordRun {
                seq,
                buffer,
                entry,
                entry_end: entry,
                at,
                end,
            },
            first_time: time,
            last_time: time,
        });
    }

    #[cold]
    fn drop_index(&mut self) {
        self.indexing = false;
        for run in &mut self.runs {
            run.at = next_of(run, &self.entries);
        }
        let open = self.open.iter_mut().map(|o| &mut o.run);
        for run in self.runs.iter_mut().chain(open) {
            (run.entry, run.entry_end) = (0, 0);
        }
        self.entries = Vec::new();
    }

    /// Gives up the record that was added last, if it is at this place of a buffer. Returns whether it was.
    #[cold]
    pub(crate) fn give_up(&mut self, (buffer, at): (u32, usize)) -> bool {
        let Some(open) = self.open.as_mut() else {
            return false;
        };
        let last = match self.indexing {
            true => self.entries.last().is_some_and(|last| last.at() == at),
            false => (open.run.at..open.run.end).contains(&at),
        };
        if !last || open.run.buffer != buffer {
            return false;
        }
        self.entries.pop();
        open.run.end = at;
        if at <= open.run.at {
            self.open = None;
        } else if let Some(last) = self.entries.last() {
            open.last_time = last.time;
        }
        true
    }

    /// Returns whether a run is being extended.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Ends the run being extended: what follows may not be part of it.
    pub(crate) fn close(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let mut run = open.run;
        if self.indexing {
            run.entry_end = place_in_index(self.entries.len());
        }
        self.newest = self.newest.max(open.last_time);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.runs[slot] = run;
                slot
            }
            None => {
                self.runs.push(run);
                self.runs.len() - 1
            }
        };
        self.push(MergeKey::new(open.first_time, run.seq, slot));
    }

    /// Returns what is left of all runs of the input, in their order: from when on, and its bytes.
    pub(crate) fn left(&self) -> Vec<(u64, Range<usize>)> {
        let runs = self.heap.iter().filter_map(|key| {
            let run = self.runs.get(key.slot())?;
            Some((run.seq, key.time(), next_of(run, &self.entries)..run.end))
        });
        let mut runs: Vec<(u64, u64, Range<usize>)> = runs.collect();
        runs.sort_unstable_by_key(|(seq, ..)| *seq);
        runs.into_iter()
            .map(|(_, time, bytes)| (time, bytes))
            .collect()
    }

    /// Takes up a run of the input of which only the time of its first record is known, behind all others.
    pub(crate) fn take_up(&mut self, time: u64, bytes: Range<usize>) {
        let run = RecordRun {
            seq: self.next_seq,
            buffer: 0,
            entry: 0,
            entry_end: 0,
            at: bytes.start,
            end: bytes.end,
        };
        self.next_seq += 1;
        self.runs.push(run);
        self.push(MergeKey::new(time, run.seq, self.runs.len() - 1));
    }

    /// Drops the index of what went out, and begins to index again.
    pub(crate) fn compact(&mut self) {
        self.indexing = true;
        let slots = self.heap.iter().map(|key| key.slot());
        let left: usize = slots
            .clone()
            .map(|slot| (self.runs[slot].entry_end - self.runs[slot].entry) as usize)
            .sum();
        if self.entries.len() <= 2 * left {
            return;
        }
        let mut kept = Vec::with_capacity(left);
        for slot in slots {
            let run = &mut self.runs[slot];
            let start = place_in_index(kept.len());
            let range = index_of(run.entry)..run.entry_end as usize;
            kept.extend_from_slice(&self.entries[range]);
            (run.entry, run.entry_end) = (start, place_in_index(kept.len()));
        }
        // Keep the room for the next round.
        self.entries.clear();
        self.entries.extend_from_slice(&kept);
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns whether all runs have an index.
    pub(crate) fn is_indexed(&self) -> bool {
        let mut runs = self.heap.iter().filter_map(|key| self.runs.get(key.slot()));
        self.indexing && runs.all(|run| run.entry < run.entry_end)
    }

    /// Returns the runs by their numbers, each with its part of the index.
    pub(crate) fn by_seq(&self) -> Vec<(u64, Range<usize>)> {
        let runs = self.heap.iter().filter_map(|key| {
            let run = self.runs.get(key.slot())?;
            Some((run.seq, index_of(run.entry)..index_of(run.entry_end)))
        });
        let mut runs: Vec<(u64, Range<usize>)> = runs.collect();
        runs.sort_unstable_by_key(|(seq, _)| *seq);
        runs
    }

    /// Takes all runs out, in the order of their numbers: each with the time of its next record.
    pub(crate) fn take_runs(&mut self) -> Vec<(u64, RecordRun)> {
        let runs = self.heap.drain(..).filter_map(|key| {
            let run = self.runs.get(key.slot())?;
            Some((key.time(), *run))
        });
        let mut runs: Vec<(u64, RecordRun)> = runs.collect();
        runs.sort_unstable_by_key(|(_, run)| run.seq);
        self.runs.clear();
        self.free.clear();
        runs
    }

    /// Puts back what is left of runs that were taken out.
    pub(crate) fn put_back(&mut self, runs: impl Iterator<Item = (u64, RecordRun)>) {
        for (time, run) in runs {
            self.runs.push(run);
            self.push(MergeKey::new(time, run.seq, self.runs.len() - 1));
        }
    }

    /// Returns the number of the run that the last record came to.
    #[inline(always)]
    pub(crate) fn open_seq(&self) -> u64 {
        self.next_seq.wrapping_sub(1)
    }

    fn push(&mut self, key: MergeKey) {
        self.heap.push(key);
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[at] >= self.heap[parent] {
                break;
            }
            self.heap.swap(at, parent);
            at = parent;
        }
    }

    /// Returns the run whose next record is the earliest: when that comes, its slot, and the run.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u64, usize, &RecordRun)> {
        let key = self.heap.first()?;
        Some((key.time(), key.slot(), self.runs.get(key.slot())?))
    }

    /// Returns the key of the run that comes after the first; the largest when there is none.
    #[inline]
    fn second(&self) -> MergeKey {
        match (self.heap.get(1), self.heap.get(2)) {
            (Some(a), Some(b)) => *a.min(b),
            (Some(a), None) => *a,
            _ => MergeKey(NO_NUMBER),
        }
    }

    /// Returns time and sequence of the same.
    pub(crate) fn second_run(&self) -> (u64, u64) {
        let next = self.second();
        (next.time(), next.seq())
    }

    /// Says what is left of the first run: it goes on at a time, with this entry of the index, or this record if it has
    /// none.
    #[inline]
    pub(crate) fn first_goes_on(&mut self, time: u64, entry: u32, at: usize) {
        let Some(first) = self.heap.first_mut() else {
            return;
        };
        *first = first.at_time(time);
        if let Some(run) = self.runs.get_mut(first.slot()) {
            (run.entry, run.at) = (entry, at);
        }
        self.sift_down();
    }

    /// Takes the first run out.
    pub(crate) fn remove_first(&mut self) {
        if !self.heap.is_empty() {
            let key = self.heap.swap_remove(0);
            self.free.push(key.slot());
            self.sift_down();
        }
    }

    /// Returns the lowest position in the input that a run still needs.
    pub(crate) fn lowest_input(&self) -> Option<usize> {
        let open = self.open.iter().map(|o| &o.run);
        let runs = self.heap.iter().filter_map(|key| self.runs.get(key.slot()));
        let of_input = runs.chain(open).filter(|run| run.buffer == 0);
        of_input.map(|run| next_of(run, &self.entries)).min()
    }

    /// Restores the order after the first was changed. Where CPUs take turns its place is far below: so it goes all the
    /// way down, and from there up. No branch decides which way down, which nobody could foresee.
    #[inline]
    fn sift_down(&mut self) {
        let heap = self.heap.as_mut_slice();
        let Some(&key) = heap.first() else {
            return;
        };
        let mut at = 0;
        loop {
            let left = 2 * at + 1;
            let child = match heap.get(left..).and_then(<[MergeKey]>::first_chunk) {
                Some([a, b]) => left + usize::from(b < a),
                None => left,
            };
            let Some(&lower) = heap.get(child) else {
                break;
            };
            heap[at] = lower;
            at = child;
        }
        while at > 0 && heap[(at - 1) / 2] > key {
            heap[at] = heap[(at - 1) / 2];
            at = (at - 1) / 2;
        }
        heap[at] = key;
    }
}

/// Returns where the next record of a run is.
fn next_of(run: &RecordRun, entries: &[MergeRecord]) -> usize {
    match run.entry < run.entry_end {
        true => entries
            .get(index_of(run.entry))
            .map_or(run.at, |one| one.at()),
        false => run.at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all records out, one at a time, as (time, place).
    fn drain(queue: &mut MergeQueue) -> Vec<(u64, usize)> {
        let mut out = Vec::new();
        queue.close();
        while let Some((time, _, &run)) = queue.first() {
            let entry = queue.entries[index_of(run.entry)];
            assert_eq!(time, entry.time);
            out.push((entry.time, entry.at()));
            let next = run.entry + 1;
            if next == run.entry_end {
                queue.remove_first();
            } else {
                queue.first_goes_on(queue.entries[index_of(next)].time, next, run.at);
            }
        }
        out
    }

    #[test]
    fn records_come_by_time_and_then_by_place_in_the_file() {
        let mut queue = MergeQueue::new();
        let times = [10, 20, 30, 5, 20, 40, 1, 20];
        for (place, time) in times.into_iter().enumerate() {
            queue.add(0, place * 8, place * 8 + 8, time, 3);
        }
        assert_eq!(queue.len(), 2, "three runs, one of them still open");
        assert_eq!(queue.lowest_input(), Some(0));
        let order = drain(&mut queue);
        let expected = [
            (1, 48),
            (5, 24),
            (10, 0),
            (20, 8),
            (20, 32),
            (20, 56),
            (30, 16),
            (40, 40),
        ];
        assert_eq!(order, expected);
    }

    #[test]
    fn an_index_that_grows_too_large_is_given_up() {
        let mut queue = MergeQueue::new();
        for place in 0..MAX_ENTRIES + 10 {
            queue.add(0, place * 8, place * 8 + 8, place as u64, 0);
        }
        queue.close();
        let (_, _, run) = queue.first().unwrap();
        assert_eq!((run.entry, run.entry_end), (0, 0));
        assert_eq!((run.at, run.end), (0, (MAX_ENTRIES + 10) * 8));
        queue.remove_first();
        queue.compact();
        queue.add(0, 0, 8, 1, 7);
        queue.close();
        let (_, _, run) = queue.first().unwrap();
        assert_eq!(run.entry_end - run.entry, 1);
        assert_eq!(queue.entries[0].attr(), 7);
    }
}
