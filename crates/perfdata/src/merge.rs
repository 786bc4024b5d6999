//! Records waiting to go out in time order.
//!
//! perf empties one per-CPU buffer after the other, so the file is a sequence of runs that are in time
//! order already. A heap merges the runs. What a run holds is kept twice: as the range of bytes it covers,
//! and as an index of its records (time, place, attribute), so that the merge touches only the records that
//! are wanted. The index is given up when it grows too large, which happens only in recordings without
//! rounds; the runs are then walked again byte by byte. Either way the state does not grow with the length
//! of the recording.

/// One record: when, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub time: u64,
    /// Place in the buffer in the low 48 bits, attribute above; [`Entry::SIDE`] for records that are no
    /// samples.
    place: u64,
}

impl Entry {
    pub(crate) const SIDE: u32 = 0xffff;
    const SHIFT: u32 = 48;

    #[inline(always)]
    pub(crate) fn new(time: u64, at: usize, attr: u32) -> Entry {
        Entry {
            time,
            place: at as u64 | u64::from(attr) << Entry::SHIFT,
        }
    }

    #[inline(always)]
    pub(crate) fn at(self) -> usize {
        (self.place & ((1 << Entry::SHIFT) - 1)) as usize
    }

    #[inline(always)]
    pub(crate) fn attr(self) -> u32 {
        (self.place >> Entry::SHIFT) as u32
    }
}

/// Records in time order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// Time stamp of the next record.
    pub time: u64,
    /// Order of the runs in the file: decides between equal times, as perf does.
    pub seq: u64,
    /// Which buffer the range is in: 0 is the input.
    pub buffer: u32,
    /// Next record.
    pub at: usize,
    /// End of the last record.
    pub end: usize,
    /// Range of the index; empty when the run has none.
    pub entry: u32,
    pub entry_end: u32,
}

impl Run {
    #[inline]
    fn before(&self, other: &Run) -> bool {
        (self.time, self.seq) < (other.time, other.seq)
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
struct Open {
    run: Run,
    last_time: u64,
}

/// Runs of records, the earliest first.
#[derive(Debug)]
pub(crate) struct Queue {
    /// A binary min-heap.
    runs: Vec<Run>,
    pub entries: Vec<Entry>,
    open: Option<Open>,
    indexing: bool,
    next_seq: u64,
    /// Newest time stamp of all runs that were closed.
    pub newest: u64,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        Queue {
            runs: Vec::new(),
            entries: Vec::new(),
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
            self.entries.push(Entry::new(time, at, attr));
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
        self.open = Some(Open {
            run: Run {
                time,
                seq,
                buffer,
                at,
                end,
                entry,
                entry_end: entry,
            },
            last_time: time,
        });
    }

    #[cold]
    fn drop_index(&mut self) {
        self.indexing = false;
        self.entries = Vec::new();
        let open = self.open.iter_mut().map(|o| &mut o.run);
        for run in self.runs.iter_mut().chain(open) {
            (run.entry, run.entry_end) = (0, 0);
        }
    }

    /// Ends the run being extended: what follows may not be part of it.
    pub(crate) fn close(&mut self) {
        let Some(Open { mut run, last_time }) = self.open.take() else {
            return;
        };
        if self.indexing {
            run.entry_end = place_in_index(self.entries.len());
        }
        self.newest = self.newest.max(last_time);
        self.push(run);
    }

    /// Drops the index of what went out, and begins to index again.
    pub(crate) fn compact(&mut self) {
        self.indexing = true;
        let left: usize = self
            .runs
            .iter()
            .map(|r| (r.entry_end - r.entry) as usize)
            .sum();
        if self.entries.len() <= 2 * left {
            return;
        }
        let mut kept = Vec::with_capacity(left);
        for run in &mut self.runs {
            let start = place_in_index(kept.len());
            let range = run.entry as usize..run.entry_end as usize;
            kept.extend_from_slice(&self.entries[range]);
            (run.entry, run.entry_end) = (start, place_in_index(kept.len()));
        }
        // Keep the room for the next round.
        self.entries.clear();
        self.entries.extend_from_slice(&kept);
    }

    /// Returns the number that the next run will have.
    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    fn push(&mut self, run: Run) {
        self.runs.push(run);
        let mut at = self.runs.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if !self.runs[at].before(&self.runs[parent]) {
                break;
            }
            self.runs.swap(at, parent);
            at = parent;
        }
    }

    /// Returns the run whose next record is the earliest.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Run> {
        self.runs.first()
    }

    /// Returns time and sequence of the run that comes after the first; the largest of both when there is
    /// none.
    #[inline]
    pub(crate) fn second(&self) -> (u64, u64) {
        let next = match (self.runs.get(1), self.runs.get(2)) {
            (Some(a), Some(b)) => {
                if a.before(b) {
                    a
                } else {
                    b
                }
            }
            (Some(a), None) => a,
            _ => return (u64::MAX, u64::MAX),
        };
        (next.time, next.seq)
    }

    /// Replaces the first run by what is left of it, and restores the order.
    #[inline]
    pub(crate) fn replace_first(&mut self, run: Run) {
        if let Some(first) = self.runs.first_mut() {
            *first = run;
            self.sift_down();
        }
    }

    /// Takes the first run out.
    pub(crate) fn remove_first(&mut self) {
        if !self.runs.is_empty() {
            self.runs.swap_remove(0);
            self.sift_down();
        }
    }

    /// Returns the lowest position in the input that a run still needs.
    pub(crate) fn lowest_input(&self) -> Option<usize> {
        let open = self.open.iter().map(|o| &o.run);
        let runs = self.runs.iter().chain(open);
        runs.filter(|r| r.buffer == 0).map(|r| r.at).min()
    }

    #[inline]
    fn sift_down(&mut self) {
        let mut at = 0;
        loop {
            let left = 2 * at + 1;
            if left >= self.runs.len() {
                return;
            }
            let right = left + 1;
            let child = if right < self.runs.len() && self.runs[right].before(&self.runs[left]) {
                right
            } else {
                left
            };
            if !self.runs[child].before(&self.runs[at]) {
                return;
            }
            self.runs.swap(at, child);
            at = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all records out, one at a time, as (time, place).
    fn drain(queue: &mut Queue) -> Vec<(u64, usize)> {
        let mut out = Vec::new();
        queue.close();
        while let Some(&run) = queue.first() {
            let mut run = run;
            let entry = queue.entries[run.entry as usize];
            out.push((entry.time, entry.at()));
            run.entry += 1;
            if run.entry == run.entry_end {
                queue.remove_first();
            } else {
                run.time = queue.entries[run.entry as usize].time;
                queue.replace_first(run);
            }
        }
        out
    }

    #[test]
    fn records_come_by_time_and_then_by_place_in_the_file() {
        let mut queue = Queue::new();
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
        let mut queue = Queue::new();
        for place in 0..MAX_ENTRIES + 10 {
            queue.add(0, place * 8, place * 8 + 8, place as u64, 0);
        }
        queue.close();
        let run = queue.first().unwrap();
        assert_eq!((run.entry, run.entry_end), (0, 0));
        assert_eq!((run.at, run.end), (0, (MAX_ENTRIES + 10) * 8));
        queue.remove_first();
        queue.compact();
        queue.add(0, 0, 8, 1, 7);
        queue.close();
        let run = queue.first().unwrap();
        assert_eq!(run.entry_end - run.entry, 1);
        assert_eq!(queue.entries[0].attr(), 7);
    }
}
