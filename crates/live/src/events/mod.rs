//! The same sums, out of events that the kernel writes to rings: for kernels that allow no BPF.
//!
//! Whoever reads the rings hands over what they have as pieces of a recording ([`EventCounter::look`]). The analyses
//! that walk recordings walk these, so the numbers are theirs.

mod counted;
mod entries;
mod waits;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use analysis::{Exits, RowSplit, SharedAnalysis, Study};
use source::RecordingPieces;
use stats::Stats;

use crate::raw::BUCKETS;
use crate::seeds::{Seed, ThreadSeed};
use counted::CountedEvents;
use counts::{
    DurationBuckets, LiveRow, LiveThread, LiveVcpu, RowSubject, SEVERAL, Snapshot, WaitBehind,
};
use entries::Entries;
use waits::WaitCounter;

/// The events that are counted, by system and name: those that the programs in the kernel take. No kernel has all of
/// them.
pub const EVENTS: [(&str, &str); 14] = [
    ("kvm", "kvm_entry"),
    ("kvm", "kvm_exit"),
    ("kvm", "kvm_userspace_exit"),
    ("kvm", "kvm_fpu"),
    ("kvm", "kvm_pio"),
    ("kvm", "kvm_mmio"),
    ("kvm", "kvm_msr"),
    ("kvm", "kvm_fast_mmio"),
    ("kvm", "kvm_halt_poll_ns"),
    ("kvm", "kvm_vcpu_wakeup"),
    ("sched", "sched_switch"),
    ("sched", "sched_wakeup"),
    ("sched", "sched_migrate_task"),
    ("sched", "sched_process_exit"),
];

/// Threads and what is counted of them, of which there are at most so many before everything is followed anew: a host
/// may make millions of threads in a day.
const MOST: usize = 1 << 17;

/// Counts events.
#[derive(Debug)]
pub struct EventCounter {
    counted: LiveAnalyses,
    /// Whether the study was asked which events it wants.
    asked: bool,
    from_ns: Option<u64>,
    /// Up to when events were counted.
    until_ns: u64,
    /// Who is followed if everything is followed anew.
    vcpus: Vec<Seed>,
    threads: Vec<ThreadSeed>,
    /// Threads that have ended, and of which nothing is to be reported any more.
    gone: HashSet<i32>,
    /// What was counted before everything was followed anew.
    before: Snapshot,
}

/// The analyses that count.
#[derive(Debug)]
struct LiveAnalyses {
    study: Study,
    waits: SharedAnalysis<WaitCounter>,
    exits: SharedAnalysis<Exits>,
    entries: SharedAnalysis<Entries>,
}

fn live_analyses() -> LiveAnalyses {
    let exits = Exits::new(analysis::ExitOptions {
        by: RowSplit {
            vm: true,
            vcpu: true,
            ..RowSplit::default()
        },
        split: true,
        ..analysis::ExitOptions::default()
    });
    let mut study = Study::default();
    LiveAnalyses {
        waits: study.share(WaitCounter::default()),
        exits: study.share(exits),
        entries: study.share(Entries::default()),
        study,
    }
}

impl EventCounter {
    /// Returns a sum of nothing. These threads are followed from the beginning; other vCPUs from their first exit or
    /// entry on.
    pub fn new(vcpus: Vec<Seed>, threads: Vec<ThreadSeed>) -> EventCounter {
        let mut events = EventCounter {
            counted: live_analyses(),
            asked: false,
            from_ns: None,
            until_ns: 0,
            vcpus: Vec::new(),
            threads: Vec::new(),
            gone: HashSet::new(),
            before: Snapshot::default(),
        };
        events.follow(vcpus, threads);
        events
    }

    /// Follows these threads from now on, unless they are followed already.
    pub fn follow(&mut self, vcpus: Vec<Seed>, threads: Vec<ThreadSeed>) {
        self.vcpus = vcpus;
        self.threads = threads;
        let mut waits = self.counted.waits.get_mut();
        waits.follow(&self.vcpus, &self.threads);
    }

    /// Looks at the next piece of a recording of [`EVENTS`], which one round of reading the kernel's rings brought:
    /// counts what is settled by then. Counting begins behind the first round.
    pub fn look(&mut self, pieces: &mut RecordingPieces<'_>, piece: &Arc<Vec<u8>>) {
        let mut counted = CountedEvents::new(&mut self.counted.study, self.from_ns.unwrap_or(0));
        if !std::mem::replace(&mut self.asked, true) {
            pieces.ask(&mut counted);
        }
        pieces.walk(piece, &mut counted);
        self.until_ns = self.until_ns.max(pieces.settled());
        if self.from_ns.is_none() {
            self.until_ns = pieces.newest();
            self.from_ns = Some(self.until_ns);
            self.begin();
        } else if self.size() > MOST || self.is_back() {
            self.follow_anew();
        }
    }

    /// Counts all of a recording, from its beginning.
    #[cfg(test)]
    pub(crate) fn whole(&mut self, reader: &source::RecordingReader<'_>, from_ns: u64) {
        self.from_ns = Some(from_ns);
        self.counted.waits.get_mut().begin(from_ns);
        let mut counted = CountedEvents::new(&mut self.counted.study, 0);
        reader.walk(&mut counted);
        self.until_ns = counted.newest();
    }

    /// Lets what is followed be followed from the time on that was reached.
    fn begin(&mut self) {
        let from = self.until_ns;
        self.counted.waits.get_mut().begin(from);
    }

    fn size(&self) -> usize {
        let waits = self.counted.waits.get().len();
        let exits = self.counted.exits.get().by_thread().count();
        self.counted.study.walked().machine.len() + waits + exits
    }

    /// Returns whether a vCPU has the number of a thread that ended before.
    fn is_back(&self) -> bool {
        let mut vcpus = self.counted.study.walked().machine.vcpus();
        !self.gone.is_empty() && vcpus.any(|one| !one.ended && self.gone.contains(&one.tid))
    }

    /// Keeps what was counted, and forgets all threads but those that are there.
    fn follow_anew(&mut self) {
        let mut counted = self.snapshot();
        counted.forget(&counted.ended());
        let threads = counted.vcpus.iter().map(|vcpu| Seed {
            tid: vcpu.tid,
            pid: vcpu.pid,
            number: vcpu.number.unwrap_or(0),
        });
        self.vcpus = threads.collect();
        self.before = counted;
        self.gone.clear();
        self.counted = live_analyses();
        self.asked = false;
        let (vcpus, threads) = (self.vcpus.clone(), self.threads.clone());
        self.follow(vcpus, threads);
        self.begin();
    }

    /// Reports nothing any more of threads that have ended.
    pub fn forget(&mut self, tids: &HashSet<i32>) {
        self.before.forget(tids);
        self.gone.extend(tids);
    }

    /// Returns up to when events were looked at, in nanoseconds of their clock, if any were.
    pub fn until(&self) -> Option<u64> {
        self.from_ns.map(|_| self.until_ns)
    }

    /// Returns what was counted up to then.
    pub fn snapshot(&self) -> Snapshot {
        let walked = self.counted.study.walked();
        let machine = walked.machine;
        let until = self.until_ns;
        let mut snapshot = Snapshot {
            from_ns: self.from_ns.unwrap_or(0),
            to_ns: until,
            ..Snapshot::default()
        };
        let waits = self.counted.waits.get();
        let exits = self.counted.exits.get();
        let entries = self.counted.entries.get();
        let mut behind = BTreeMap::new();
        for vcpu in machine.vcpus() {
            let number = vcpu.number;
            if self.gone.contains(&vcpu.tid) {
                continue;
            }
            let waited = waits.of(number, machine);
            for (by, sum) in waited.behind {
                let by = by.and_then(|slot| machine.threads().at(slot));
                let (by_tid, comm) = by.map_or((SEVERAL, None), |(tid, thread)| {
                    (tid, thread.comm.as_deref().map(str::to_owned))
                });
                let all: &mut (u64, u64) = behind.entry((vcpu.tid, by_tid, comm)).or_default();
                all.0 += sum.0;
                all.1 += sum.1;
            }
            let thread = machine.threads().at(vcpu.thread).map(|(_, thread)| thread);
            let (before_first_entry, without_entry) = entries.unpaired(vcpu.tid);
            let counted = LiveVcpu {
                tid: vcpu.tid,
                pid: thread.and_then(|thread| thread.pid).unwrap_or(vcpu.tid),
                number: thread.and_then(|thread| thread.vcpu),
                ended: vcpu.ended,
                times: machine.times_at(number, until),
                exits: vcpu.exits,
                before_first_entry,
                without_entry,
                polls: vcpu.polls,
                woken: durations(&waited.woken),
                preempted: durations(&waited.preempted),
            };
            if vcpu.other {
                let mut thread = LiveThread::of(counted);
                thread.vm_pid = waits.vm_of(vcpu.tid).unwrap_or(thread.vm_pid);
                snapshot.threads.push(thread);
            } else {
                snapshot.vcpus.push(counted);
            }
        }
        // A thread that was taken for another than a vCPU at first is one thread.
        let vcpus: HashSet<i32> = snapshot.vcpus.iter().map(|vcpu| vcpu.tid).collect();
        snapshot.threads.retain(|one| !vcpus.contains(&one.tid));
        let behind = behind.into_iter();
        let behind = behind.map(|((tid, by_tid, comm), (count, ns))| WaitBehind {
            tid,
            by_tid,
            comm,
            count,
            ns,
        });
        snapshot.behind.extend(behind);
        self.rows(&exits, &entries, &mut snapshot);
        snapshot.add(&self.before);
        snapshot.sort();
        snapshot
    }

    fn rows(&self, exits: &Exits, entries: &Entries, snapshot: &mut Snapshot) {
        for row in exits.by_thread().filter(|row| row.stats.count() > 0) {
            let what = match (row.reason, row.access) {
                (Some(reason), _) => RowSubject::Exit(reason),
                (None, Some(access)) => RowSubject::Access(access),
                (None, None) => {
                    snapshot.dropped.rows += row.stats.count();
                    continue;
                }
            };
            // What vCPUs did meanwhile is counted for exits alone, as the programs have it.
            let times = row.reason.map(|_| row.times).unwrap_or_default();
            snapshot.rows.push(LiveRow {
                tid: row.tid,
                what,
                durations: durations(row.stats),
                min_ns: Some(row.stats.min()),
                user_count: row.user_count,
                whole_ns: row.whole_ns,
                times,
            });
        }
        for (tid, gpa, stats, user_count) in entries.notifications() {
            snapshot.rows.push(LiveRow {
                tid,
                what: RowSubject::FastMmio { gpa },
                durations: durations(stats),
                min_ns: Some(stats.min()),
                user_count,
                whole_ns: 0,
                times: model::Times::default(),
            });
        }
        snapshot.rows.retain(|row| !self.gone.contains(&row.tid));
    }
}

/// Returns durations in the programs' buckets: those of `Stats` do not cross powers of two.
fn durations(stats: &Stats) -> DurationBuckets {
    let mut buckets = vec![0; BUCKETS];
    for (_, end, count) in stats.octaves() {
        let bucket = end
            .saturating_sub(1)
            .checked_ilog2()
            .map_or(0, |bits| bits + 1);
        let bucket = (bucket as usize).min(BUCKETS - 1);
        buckets[bucket] += count;
    }
    DurationBuckets {
        count: stats.count(),
        total_ns: stats.total(),
        max_ns: stats.max(),
        buckets,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_in_the_programs_buckets() {
        let mut stats = Stats::default();
        for ns in [0, 1, 2, 3, 4, 1023, 1024, u64::MAX] {
            stats.add(ns);
        }
        let durations = durations(&stats);
        let filled = durations.buckets.iter().zip(0..);
        let filled: Vec<(usize, u64)> = filled
            .filter(|(count, _)| **count > 0)
            .map(|(count, bucket)| (bucket, *count))
            .collect();
        let expected = [(0, 1), (1, 1), (2, 2), (3, 1), (10, 1), (11, 1), (39, 1)];
        assert_eq!(filled, expected);
    }
}
