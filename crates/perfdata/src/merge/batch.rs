//! What comes next out of the runs that wait.

use std::ops::Range;

use tracefmt::index_of;

use super::loser_tree::NO_NUMBER;
use super::{MergeKey, MergeQueue, place_in_index};

/// Records of a run that go out behind each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergeStretch {
    /// The slot of the run.
    pub slot: u32,
    /// Which buffer it is in: 0 is the input.
    pub buffer: u32,
    /// Range of the index.
    pub entry: u32,
    pub entry_end: u32,
}

/// What goes out next.
#[derive(Debug, Default)]
pub(crate) struct MergeBatch {
    /// In time order.
    pub stretches: Vec<MergeStretch>,
    /// Buffers of runs that end with it.
    pub over: Vec<u32>,
}

/// Stretches of a batch: few enough for the processor's own memory.
const BATCH: usize = 4096;

/// How many runs are many: with fewer a heap is as quick, and of more each batch would have to put in order too many.
const MANY_RUNS: Range<usize> = 16..2048;

impl MergeQueue {
    /// Takes out what comes next, up to and including a time: as much as a batch has, or as comes before a run without
    /// an index.
    pub(crate) fn take_batch(&mut self, limit: u64, batch: &mut MergeBatch) {
        batch.stretches.clear();
        batch.over.clear();
        if MANY_RUNS.contains(&self.heap.len()) {
            return self.take_of_many(limit, batch);
        }
        while batch.stretches.len() < BATCH {
            let Some(&first) = self.heap.first() else {
                return;
            };
            if first.time() > limit {
                return;
            }
            let Some(next) = self.take_stretch(first, limit, self.second(), batch) else {
                return;
            };
            match next {
                Some(key) => {
                    self.heap[0] = key;
                    self.sift_down();
                }
                None => self.remove_first(),
            }
        }
    }

    /// The same where runs are so many that to find the next one takes longer than to read it.
    fn take_of_many(&mut self, limit: u64, batch: &mut MergeBatch) {
        let mut tree = std::mem::take(&mut self.tree);
        let slots = self.heap.iter().map(|key| key.slot());
        self.leaves.clear();
        self.leaves.resize(self.runs.len(), 0);
        for (slot, leaf) in slots.zip(0..) {
            self.leaves[slot] = leaf;
        }
        tree.fill(self.heap.iter().map(|key| key.0));
        let mut before = usize::MAX;
        while batch.stretches.len() < BATCH {
            let first = MergeKey(tree.least());
            if first.time() > limit || first.0 == NO_NUMBER {
                break;
            }
            let leaf = index_of(self.leaves[first.slot()]);
            // Whose turn it is again may have more than one turn.
            let until = match std::mem::replace(&mut before, leaf) == leaf {
                true => MergeKey(tree.second(leaf)),
                false => first,
            };
            let Some(next) = self.take_stretch(first, limit, until, batch) else {
                break;
            };
            self.heap[leaf] = next.unwrap_or(MergeKey(NO_NUMBER));
            tree.replace(leaf, self.heap[leaf].0);
            if next.is_none() {
                self.free.push(first.slot());
            }
        }
        self.heap.retain(|key| key.0 != NO_NUMBER);
        self.heap.sort_unstable();
        self.tree = tree;
    }

    /// Takes the next record of a run, whose key that is, and those behind it that do not come after another key or a
    /// time. Returns the key of what is left of the run, if anything is; `None` where it has no index.
    #[inline(always)]
    #[expect(
        clippy::option_option,
        reason = "a run that has nothing left has an index"
    )]
    fn take_stretch(
        &mut self,
        first: MergeKey,
        limit: u64,
        until: MergeKey,
        batch: &mut MergeBatch,
    ) -> Option<Option<MergeKey>> {
        let run = self.runs.get_mut(first.slot())?;
        if run.entry >= run.entry_end {
            return None;
        }
        let begins = run.entry;
        let mut next = begins + 1;
        let left = loop {
            if next >= run.entry_end {
                break None;
            }
            let time = self.entries.get(index_of(next))?.time;
            let key = first.at_time(time);
            if key > until || time > limit {
                break Some(key);
            }
            next += 1;
        };
        run.entry = next;
        batch.stretches.push(MergeStretch {
            slot: place_in_index(first.slot()),
            buffer: run.buffer,
            entry: begins,
            entry_end: next,
        });
        if left.is_none() && run.buffer != 0 {
            batch.over.push(run.buffer);
        }
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all records out up to each of some times, as (time, place).
    fn drain(queue: &mut MergeQueue, limits: &[u64]) -> Vec<(u64, usize)> {
        let (mut out, mut batch) = (Vec::new(), MergeBatch::default());
        for limit in limits {
            loop {
                queue.take_batch(*limit, &mut batch);
                if batch.stretches.is_empty() {
                    break;
                }
                for stretch in &batch.stretches {
                    let range = index_of(stretch.entry)..index_of(stretch.entry_end);
                    let records = queue.entries[range].iter();
                    out.extend(records.map(|one| (one.time, one.at())));
                }
            }
            assert!(queue.first().is_none_or(|(time, ..)| time > *limit));
        }
        out
    }

    #[test]
    fn few_and_many_runs_come_in_the_same_order() {
        for (runs, most) in [
            (3, 40u64),
            (15, 40),
            (16, 40),
            (17, 3),
            (200, 40),
            (3000, 5),
        ] {
            let mut queue = MergeQueue::new();
            let mut expected = Vec::new();
            let (mut place, mut state) = (0, 1u64);
            let mut random = |most: u64| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 33) % most
            };
            for _ in 0..runs {
                let mut time = random(50);
                for _ in 0..=random(most) {
                    // Some have equal times; some CPUs have many records behind each other.
                    time += random(9) * random(2);
                    queue.add(0, place * 8, place * 8 + 8, time, 0);
                    expected.push((time, place * 8));
                    place += 1;
                }
                queue.close();
            }
            expected.sort_unstable();
            let found = drain(&mut queue, &[30, 31, 90, u64::MAX]);
            assert_eq!(found, expected, "{runs} runs");
            assert_eq!(queue.len(), 0);
        }
    }
}
