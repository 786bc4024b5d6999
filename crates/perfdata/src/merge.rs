//! Runs of records that are already in time order, and the heap that merges them.
//!
//! perf empties one per-CPU buffer after the other, so the file is a sequence of runs in time order. A run
//! is kept as a range of bytes, not as a list of records: what the merge needs does not grow with the
//! number of records, and a run is walked again when it is merged, while it is still in the cache.

/// Bytes of records in time order.
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
    /// End of the run.
    pub end: usize,
}

impl Run {
    #[inline]
    fn before(&self, other: &Run) -> bool {
        (self.time, self.seq) < (other.time, other.seq)
    }
}

/// A binary min-heap of runs that also tells the second smallest, so that the merge can stay on one run
/// while it is ahead of all others.
#[derive(Debug, Default)]
pub(crate) struct RunHeap {
    runs: Vec<Run>,
}

impl RunHeap {
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    pub fn push(&mut self, run: Run) {
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
    pub fn first(&self) -> Option<&Run> {
        self.runs.first()
    }

    /// Returns time and sequence of the run that comes after the first.
    #[inline]
    pub fn second(&self) -> Option<(u64, u64)> {
        let pair = match (self.runs.get(1), self.runs.get(2)) {
            (Some(a), Some(b)) => {
                if a.before(b) {
                    a
                } else {
                    b
                }
            }
            (Some(a), None) => a,
            _ => return None,
        };
        Some((pair.time, pair.seq))
    }

    /// Moves the first run on to its record at `at` with this time, and restores the order.
    #[inline]
    pub fn advance_first(&mut self, at: usize, time: u64) {
        self.runs[0].at = at;
        self.runs[0].time = time;
        self.sift_down();
    }

    /// Takes the first run out.
    pub fn remove_first(&mut self) {
        self.runs.swap_remove(0);
        self.sift_down();
    }

    /// Returns the lowest position in the input that a run still needs.
    pub fn lowest_input(&self) -> Option<usize> {
        self.runs
            .iter()
            .filter(|r| r.buffer == 0)
            .map(|r| r.at)
            .min()
    }

    /// Returns whether any run lies in this buffer.
    pub fn uses(&self, buffer: u32) -> bool {
        self.runs.iter().any(|r| r.buffer == buffer)
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

    #[test]
    fn the_heap_gives_runs_by_time_and_then_by_place_in_the_file() {
        let mut heap = RunHeap::default();
        for (seq, time) in [(0u64, 30u64), (1, 10), (2, 20), (3, 10), (4, 5)] {
            heap.push(Run {
                time,
                seq,
                buffer: 0,
                at: seq as usize,
                end: 100,
            });
        }
        assert_eq!(heap.second(), Some((10, 1)));
        assert_eq!(heap.lowest_input(), Some(0));
        let mut order = Vec::new();
        while let Some(first) = heap.first() {
            order.push((first.time, first.seq));
            heap.remove_first();
        }
        assert_eq!(order, [(5, 4), (10, 1), (10, 3), (20, 2), (30, 0)]);
        assert!(!heap.uses(0));
    }
}
