//! Samples that need no global order.
//!
//! A sample that is only counted goes out when it is found. One that concerns its own thread alone waits in a list of
//! that thread, which goes out before the next record that does need its place in time, and at the end of the round: a
//! list costs no comparison with other CPUs, and what one thread did is read in a row.
//!
//! A thread gets its list at the end of the round in which its first sample went out, so that threads are met in time
//! order. Whether a sample is in a list is a matter of its thread, its place and the number of its run, never of the
//! moment: a run that is walked again, because the index grew too large, leaves out just those.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;
use tracefmt::index_of;

use super::out::{RecordOrigin, RecordOutlet};
use super::scan::WantedSample;
use super::visitor::SampleWish;
use crate::attr::EventAttr;
use crate::merge::MergeRecord;
use crate::sample::tid_of;

/// Threads that have lists.
const MAX_THREADS: usize = 1 << 14;
/// Samples in lists. When there are more, lists are not continued.
const MAX_LISTED: usize = 1 << 20;

/// What of one thread waits.
#[derive(Debug)]
struct ThreadBacklog {
    /// In time order if `sorted`.
    entries: Vec<MergeRecord>,
    /// During a flush, the first that has not gone out.
    next: usize,
    sorted: bool,
    /// The number of the first run whose samples are in the list.
    from: u64,
}

/// What threads have.
#[derive(Debug, Default)]
pub(super) struct ThreadBacklogs {
    list: Vec<ThreadBacklog>,
    /// During a flush, the next sample of each list that has one: its time, its place, and the list.
    heads: BinaryHeap<Reverse<(u64, usize, u32)>>,
}

impl ThreadBacklogs {
    /// Makes the lists ready to be let out: nothing is added until they were.
    fn begin(&mut self) {
        self.heads.clear();
        for (thread, number) in self.list.iter_mut().zip(0u32..) {
            if !thread.sorted {
                thread
                    .entries
                    .sort_unstable_by_key(|one| (one.time, one.at()));
                thread.sorted = true;
            }
            if let Some(first) = thread.entries.first() {
                self.heads.push(Reverse((first.time, first.at(), number)));
            }
        }
    }

    /// Lets out what stands before a time and place, thread by thread: `out` gets a list and which of it is next.
    pub(super) fn each(
        &mut self,
        time: u64,
        at: usize,
        mut out: impl FnMut(&[MergeRecord], usize),
    ) {
        while let Some(&Reverse((head_time, head_at, number))) = self.heads.peek() {
            if (head_time, head_at) >= (time, at) {
                break;
            }
            self.heads.pop();
            let Some(thread) = self.list.get_mut(index_of(number)) else {
                continue;
            };
            while let Some(one) = thread.entries.get(thread.next) {
                if (one.time, one.at()) >= (time, at) {
                    self.heads.push(Reverse((one.time, one.at(), number)));
                    break;
                }
                out(&thread.entries, thread.next);
                thread.next += 1;
            }
        }
    }
}

/// Samples that go out of order, or wait for their thread's turn.
#[derive(Debug)]
pub(super) struct UnorderedSamples {
    threads: ThreadBacklogs,
    /// By thread id, its list.
    by_tid: FxHashMap<i32, u32>,
    /// The thread of the last sample, and its list.
    last: (i32, Option<u32>),
    /// Threads that get a list at the end of the round.
    new: Vec<i32>,
    /// Samples in lists, at most: those that went out since the last flush count too.
    listed: usize,
    /// From this place on lists are not continued.
    until: usize,
    /// The newest time of all that came, of what the next flush lets out, and of the rest.
    newest: u64,
    newest_next: u64,
    newest_of_rest: u64,
    /// Samples that came after a later one had gone out.
    pub out_of_order: u64,
    /// The visitor wants no more.
    pub stop: bool,
}

impl Default for UnorderedSamples {
    fn default() -> UnorderedSamples {
        UnorderedSamples {
            threads: ThreadBacklogs::default(),
            by_tid: FxHashMap::default(),
            last: (i32::MIN, None),
            new: Vec::new(),
            listed: 0,
            until: usize::MAX,
            newest: 0,
            newest_next: 0,
            newest_of_rest: 0,
            out_of_order: 0,
            stop: false,
        }
    }
}

impl UnorderedSamples {
    /// Returns the newest time of all that came.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Makes the lists ready for a flush.
    pub(super) fn begin_flush(&mut self) {
        self.threads.begin();
    }

    /// Whether a sample waits that is not later than a time.
    #[inline]
    pub(super) fn is_due(&self, time: u64) -> bool {
        let first = self.threads.heads.peek();
        first.is_some_and(|Reverse((first, ..))| *first <= time)
    }

    /// Takes a sample that need not be in order: lets it out, or puts it into its thread's list. Returns whether it
    /// did. `sent` has the time up to which the next flush lets out, and that of the newest sample that went.
    #[inline(always)]
    pub(super) fn takes<O: RecordOutlet, const BIG: bool>(
        &mut self,
        attrs: &[EventAttr],
        one: &WantedSample<'_>,
        from: RecordOrigin<'_>,
        sent: (u64, u64),
        out: &mut O,
    ) -> bool {
        let WantedSample { time, attr, .. } = *one;
        match one.want {
            SampleWish::No | SampleWish::InOrder => return false,
            SampleWish::OfThread => {
                let tid = tid_of::<BIG>(attrs, one.body, attr);
                if !self.keeps(tid, MergeRecord::new(time, one.at, attr)) {
                    return false;
                }
            }
            SampleWish::AnyOrder => self.stop |= out.sample(from, one.at, time, attr).is_break(),
        }
        self.went(time, sent);
        true
    }

    /// Takes note of a sample that does not go through the merge.
    #[inline(always)]
    fn went(&mut self, time: u64, sent: (u64, u64)) {
        let (flush_to, last_out) = sent;
        self.out_of_order += u64::from(time < last_out);
        self.newest = self.newest.max(time);
        let newest = match time <= flush_to {
            true => &mut self.newest_next,
            false => &mut self.newest_of_rest,
        };
        *newest = time.max(*newest);
    }

    /// Takes a sample into its thread's list, if that has one.
    #[inline(always)]
    fn keeps(&mut self, tid: i32, entry: MergeRecord) -> bool {
        if self.last.0 != tid {
            self.last = (tid, self.by_tid.get(&tid).copied());
        }
        let Some(list) = self.last.1 else {
            return false;
        };
        if entry.at() >= self.until {
            return false;
        }
        let thread = &mut self.threads.list[index_of(list)];
        if let Some(last) = thread.entries.last() {
            thread.sorted &= (last.time, last.at()) <= (entry.time, entry.at());
        }
        thread.entries.push(entry);
        self.listed += 1;
        if self.listed >= MAX_LISTED {
            self.until = entry.at() + 1;
        }
        true
    }

    /// Gives up the sample that was taken last into a list, if it is at this place. Returns whether it was.
    #[cold]
    pub(super) fn give_up(&mut self, at: usize) -> bool {
        let list = self.last.1.map(index_of);
        let thread = list.and_then(|list| self.threads.list.get_mut(list));
        let last = thread.and_then(|thread| thread.entries.pop_if(|last| last.at() == at));
        self.listed -= usize::from(last.is_some());
        last.is_some()
    }

    /// Whether a sample of a run is in its thread's list, or was.
    pub(super) fn kept(&self, tid: i32, at: usize, run: u64) -> bool {
        let list = self.by_tid.get(&tid);
        let thread = list.and_then(|&list| self.threads.list.get(index_of(list)));
        at < self.until && thread.is_some_and(|thread| thread.from <= run)
    }

    /// Takes note of a thread of which a sample goes out in order.
    #[inline]
    pub(super) fn went_in_order(&mut self, tid: i32) {
        if tid >= 0 && self.until == usize::MAX {
            self.meet(tid);
        }
    }

    #[cold]
    fn meet(&mut self, tid: i32) {
        let known = self.by_tid.contains_key(&tid) || self.new.contains(&tid);
        if !known && self.by_tid.len() + self.new.len() < MAX_THREADS {
            self.new.push(tid);
        }
    }

    /// Returns the lists, so that they can be let out.
    pub(super) fn take_threads(&mut self) -> ThreadBacklogs {
        std::mem::take(&mut self.threads)
    }

    /// Takes the lists back.
    pub(super) fn give_back(&mut self, threads: ThreadBacklogs) {
        self.threads = threads;
    }

    /// Takes note of a flush up to a time, with the number of the next run. Returns the newest time of what it let out.
    pub(super) fn settle(&mut self, limit: u64, next_run: u64) -> u64 {
        for tid in self.new.drain(..) {
            let list = u32::try_from(self.threads.list.len()).unwrap_or(u32::MAX);
            self.by_tid.insert(tid, list);
            self.threads.list.push(ThreadBacklog {
                entries: Vec::new(),
                next: 0,
                sorted: true,
                from: next_run,
            });
        }
        self.last = (i32::MIN, None);
        self.listed = 0;
        for thread in &mut self.threads.list {
            thread.entries.drain(..thread.next);
            thread.next = 0;
            self.listed += thread.entries.len();
        }
        let rest = std::mem::take(&mut self.newest_of_rest);
        let next = std::mem::take(&mut self.newest_next);
        if rest <= limit {
            return next.max(rest);
        }
        self.newest_next = rest;
        next
    }
}
