//! Where CPUs meet: moments between which each CPU's records may go out by themselves.
//!
//! Most samples concern the thread that made them, and its CPU. They need not be merged with those of other CPUs: what
//! a run has up to the next barrier is read straight on. A barrier is
//!
//! - a record that is wanted in time order: all that stands before it goes out first, and it goes out then;
//! - the first sample of a thread, so that threads are met in time order;
//! - the moment from which on a thread's samples, or a CPU's, stand in another run than before: a thread that was
//!   migrated, or what a CPU has in the next round.
//!
//! The last kind is found from *stretches*: samples of one thread, or of one CPU, behind each other in one run. Where
//! stretches of a thread overlap in time, every change from one to the other is a barrier, so the order of a thread's
//! samples is exact whatever happens. Idle tasks are no threads in this: each CPU has its own, with the same id.

use std::ops::Range;

use rustc_hash::FxHashSet;

use super::scan::WantedSample;
use super::visitor::SampleWish;
use crate::merge::{MergeQueue, MergeRecord};

/// Threads that are remembered as met. Of those beyond, each stretch may be the first.
const MAX_MET: usize = 1 << 14;
/// Barriers and stretches that wait, at most: beyond, all records go through the merge until these have gone.
const MAX_WAITING: usize = 1 << 18;
/// Runs in which the samples of one owner stand at the same time, at most: beyond, all goes through the merge.
const MAX_OPEN: usize = 64;
/// Looks at runs that barriers may cost for each record, and beside that. Each barrier looks at all runs, and being put
/// into order costs it as much as so many looks.
const SORTED: usize = 40;
const MOST_LOOKS: usize = 8;
const FREE_LOOKS: usize = 1 << 14;
/// Flushes in a row with too many barriers after which there are none any more.
const MAX_CROWDED: u32 = 8;

/// The id that the idle tasks of all CPUs have.
const IDLE: i32 = 0;

/// A place in the order of all records: a time, and the number of a run, which decides between equal times.
pub(super) type OrderKey = (u64, u64);

/// Where CPUs meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Barrier {
    /// All that stands before this goes out first.
    pub key: OrderKey,
    /// Then goes the next record of the key's run.
    pub takes: bool,
}

/// Whose samples a stretch is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StretchOwner {
    Thread(i32),
    Cpu(i32),
}

/// Samples of one thread, or of one CPU, behind each other in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    owner: StretchOwner,
    first: u64,
    run: u64,
    last: u64,
}

/// Barriers of what waits, and what more of them are found from.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    /// Whether there is anything between them: samples that go out without the merge.
    used: bool,
    /// Records that are wanted in time order.
    records: Vec<Barrier>,
    stretches: Vec<Stretch>,
    /// The stretches of the run now, and the time of their last sample.
    thread: Option<Stretch>,
    cpu: Option<Stretch>,
    last: u64,
    run: u64,
    met: FxHashSet<i32>,
    /// There are too many: some were not noted.
    full: bool,
    /// Up to when those were that were not noted; 0 when all have gone.
    exact_until: u64,
    /// Some sample waits that goes out between barriers.
    any: bool,
    /// How many flushes in a row had too many barriers.
    crowded: u32,
    /// The barriers of one flush.
    found: Vec<Barrier>,
}

impl Barriers {
    /// Prepares for samples that are wanted so, by attribute; those beyond the end are wanted in order.
    pub(super) fn new(wanted: &[SampleWish]) -> Barriers {
        Barriers {
            used: wanted.contains(&SampleWish::OfThread),
            ..Barriers::default()
        }
    }

    /// Takes note of a sample of a run, by its thread on its CPU.
    #[inline(always)]
    pub(super) fn sample(&mut self, one: &WantedSample, run: u64) {
        match one.want {
            SampleWish::OfThread if self.used => self.of_thread(one.place, one.time, run),
            _ => self.in_order(one.time, run),
        }
    }

    /// Takes note of a record of a run that is wanted in time order.
    #[inline(always)]
    pub(super) fn in_order(&mut self, time: u64, run: u64) {
        if !self.used {
            return;
        }
        if self.records.len() >= MAX_WAITING {
            self.full = true;
            return;
        }
        self.records.push(Barrier {
            key: (time, run),
            takes: true,
        });
    }

    /// Takes note of a sample of a run that its thread and its CPU alone need in order.
    #[inline(always)]
    fn of_thread(&mut self, (tid, cpu): (i32, i32), time: u64, run: u64) {
        let same = |open: &Option<Stretch>, owner: StretchOwner| {
            open.is_some_and(|open| open.owner == owner)
        };
        if self.run != run
            || !same(&self.thread, StretchOwner::Thread(tid))
            || !same(&self.cpu, StretchOwner::Cpu(cpu))
        {
            self.change((tid, cpu), time, run);
        }
        self.last = time;
    }

    #[inline(never)]
    fn change(&mut self, (tid, cpu): (i32, i32), time: u64, run: u64) {
        self.any = true;
        let other_run = std::mem::replace(&mut self.run, run) != run;
        let begin = |owner| Stretch {
            owner,
            first: time,
            run,
            last: time,
        };
        let owner = StretchOwner::Thread(tid);
        if other_run || self.thread.is_none_or(|open| open.owner != owner) {
            let before = self.thread.replace(begin(owner));
            self.close(before);
        }
        let owner = StretchOwner::Cpu(cpu);
        if other_run || self.cpu.is_none_or(|open| open.owner != owner) {
            let before = self.cpu.replace(begin(owner));
            self.close(before);
        }
    }

    fn close(&mut self, stretch: Option<Stretch>) {
        let Some(stretch) = stretch else {
            return;
        };
        let nobody = match stretch.owner {
            StretchOwner::Thread(tid) => tid == IDLE,
            StretchOwner::Cpu(cpu) => cpu < 0,
        };
        if nobody || self.full {
            return;
        }
        self.full = self.stretches.len() >= MAX_WAITING;
        self.stretches.push(Stretch {
            last: self.last,
            ..stretch
        });
    }

    /// Ends the run now: nothing more comes to it.
    fn end_run(&mut self) {
        let (thread, cpu) = (self.thread.take(), self.cpu.take());
        self.close(thread);
        self.close(cpu);
        self.run = u64::MAX;
    }

    /// Returns the barriers among what goes out up to a time, in their order; `None` where all of it has to go through
    /// the merge. [`Barriers::settle`] takes them back.
    pub(super) fn list(&mut self, limit: u64, queue: &MergeQueue) -> Option<Vec<Barrier>> {
        self.end_run();
        // A run without an index is only found on by reading it.
        if !self.used || self.full || self.exact_until > 0 || !self.any || !queue.is_indexed() {
            return None;
        }
        // Where CPUs meet all the time, the merge takes less, and nobody need take note of where that is.
        let most = FREE_LOOKS + MOST_LOOKS * queue.entries.len();
        let looks = SORTED + queue.len();
        if self.records.len().saturating_mul(looks) > most {
            self.crowded += 1;
            self.used &= self.crowded < MAX_CROWDED;
            return None;
        }
        self.crowded = 0;
        let runs = RunIndex {
            runs: queue.by_seq(),
            entries: &queue.entries,
        };
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        let due = |one: &&Barrier| one.key.0 <= limit;
        found.extend(self.records.iter().filter(due));
        self.stretches.sort_unstable();
        let owners = self.stretches.chunk_by(|a, b| a.owner == b.owner);
        for of_owner in owners {
            let Some(first) = of_owner.first().filter(|first| first.first <= limit) else {
                continue;
            };
            let known = match first.owner {
                StretchOwner::Thread(tid) => self.met.contains(&tid),
                StretchOwner::Cpu(_) => true,
            };
            if !known {
                found.push(first.begin());
            }
            if changes(of_owner, limit, &runs, &mut found).is_none() {
                self.found = found;
                return None;
            }
        }
        found.sort_unstable();
        // Of equal ones a record goes out by itself; what only separates is there once.
        found.dedup_by(|next, one| next.key == one.key && !next.takes && !one.takes);
        if found.len().saturating_mul(looks) > most {
            self.found = found;
            return None;
        }
        Some(found)
    }

    /// Takes note that all up to a time has gone out. `newest` is the time of the newest record that came.
    pub(super) fn settle(&mut self, limit: u64, newest: u64, found: Option<Vec<Barrier>>) {
        if let Some(found) = found {
            self.found = found;
        }
        for stretch in &self.stretches {
            if let StretchOwner::Thread(tid) = stretch.owner
                && stretch.first <= limit
                && self.met.len() < MAX_MET
            {
                self.met.insert(tid);
            }
        }
        self.records.retain(|one| one.key.0 > limit);
        self.stretches.retain(|one| one.last > limit);
        if std::mem::take(&mut self.full) {
            self.exact_until = newest;
        }
        if self.exact_until <= limit {
            self.exact_until = 0;
        }
        self.any = !self.stretches.is_empty();
    }
}

impl Stretch {
    /// The barrier before its first sample.
    fn begin(&self) -> Barrier {
        Barrier {
            key: (self.first, self.run),
            takes: false,
        }
    }
}

/// Where the records of runs are.
struct RunIndex<'q> {
    /// By number, the part of the index.
    runs: Vec<(u64, Range<usize>)>,
    entries: &'q [MergeRecord],
}

impl RunIndex<'_> {
    /// Returns the time of the first record left of a run that does not stand before a place.
    fn time_from(&self, run: u64, key: OrderKey) -> Option<u64> {
        let at = self.runs.binary_search_by_key(&run, |(seq, _)| *seq).ok()?;
        let (_, range) = self.runs.get(at)?;
        let left = self.entries.get(range.clone())?;
        let before = left.partition_point(|one| (one.time, run) < key);
        left.get(before).map(|one| one.time)
    }
}

/// A stretch of which a part may be behind.
#[derive(Debug, Clone, Copy)]
struct StretchRest {
    key: OrderKey,
    last: u64,
}

/// Finds where the samples of one owner go on in another run. `None` if that is too often.
fn changes(
    stretches: &[Stretch],
    limit: u64,
    runs: &RunIndex<'_>,
    found: &mut Vec<Barrier>,
) -> Option<()> {
    let mut other_runs = stretches.iter().map(|one| one.run);
    let first = other_runs.next();
    if other_runs.all(|run| Some(run) == first) {
        return Some(());
    }
    let mut left = stretches.iter();
    // Those that have begun.
    let mut open: Vec<StretchRest> = Vec::new();
    let mut next = left.next();
    let mut run = None;
    loop {
        // The next sample is of one that has begun, or begins one.
        let earliest = open
            .iter()
            .map(|one| one.key)
            .enumerate()
            .min_by_key(|(_, key)| *key);
        let begins = next.map(|one| (one.first, one.run));
        let (at, key) = match (earliest, begins) {
            (Some((at, key)), Some(begins)) if key < begins => (Some(at), key),
            (Some((at, key)), None) => (Some(at), key),
            (_, Some(begins)) => (None, begins),
            (None, None) => return Some(()),
        };
        if key.0 > limit {
            return Some(());
        }
        if open.len() > MAX_OPEN || found.len() > MAX_WAITING {
            return None;
        }
        let at = at.unwrap_or_else(|| {
            let last = next.map_or(0, |one| one.last);
            next = left.next();
            open.push(StretchRest { key, last });
            open.len() - 1
        });
        if run.is_some_and(|run| run != key.1) {
            found.push(Barrier { key, takes: false });
        }
        run = Some(key.1);
        // It goes straight on up to where another has a sample.
        let others = open.iter().enumerate().filter(|(other, _)| *other != at);
        let until = others
            .map(|(_, one)| one.key)
            .chain(next.map(|one| (one.first, one.run)))
            .min();
        let rest = open[at];
        let goes_on = until
            .filter(|until| *until <= (rest.last, key.1))
            .and_then(|until| runs.time_from(key.1, until))
            .filter(|time| *time <= rest.last);
        let goes_on = match goes_on {
            // Another stretch of the same run is at the same place: this one may go on behind it.
            Some(time) if (time, key.1) <= key => runs
                .time_from(key.1, (key.0.saturating_add(1), 0))
                .filter(|time| *time <= rest.last),
            goes_on => goes_on,
        };
        match goes_on {
            Some(time) if (time, key.1) > key => open[at].key = (time, key.1),
            // Nothing of it is left.
            _ => {
                open.swap_remove(at);
            }
        }
    }
}
