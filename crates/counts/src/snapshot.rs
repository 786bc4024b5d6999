//! What was counted up to some time, and between two times.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use analysis::ThreadCounts;
use event::ExitReason;
use model::{GuestAccess, Polls, State, Times};

/// Durations, in buckets by powers of two.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DurationBuckets {
    /// How many.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub total_ns: u64,
    /// The longest in nanoseconds. Of the difference of two snapshots: the longest there can have been, which is known
    /// to a factor of two where a longer one was before.
    pub max_ns: u64,
    /// How many are in each bucket: bucket `n` has those from 2^(n-1) to below 2^n nanoseconds, the last one all that
    /// are longer.
    pub buckets: Vec<u64>,
}

impl DurationBuckets {
    /// Returns the mean in nanoseconds, 0 where there are none.
    pub fn mean_ns(&self) -> u64 {
        self.total_ns.checked_div(self.count).unwrap_or(0)
    }

    /// Returns a bound in nanoseconds that this part (0 to 1) of the durations do not exceed: the end of a bucket, so
    /// it is up to twice the exact percentile; or the longest, if that is less. 0 where there are none.
    pub fn at_most_ns(&self, part: f64) -> u64 {
        let all: u64 = self.buckets.iter().copied().fold(0, u64::saturating_add);
        if all == 0 {
            return 0;
        }
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank, at least 1 and at most the count"
        )]
        let rank = ((all as f64 * part).ceil() as u64).clamp(1, all);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        self.end_of(bucket.unwrap_or(0)).min(self.max_ns)
    }

    /// The longest duration that a bucket can have.
    fn end_of(&self, bucket: usize) -> u64 {
        if bucket + 1 >= self.buckets.len() {
            return u64::MAX;
        }
        (1u64 << bucket) - 1
    }

    /// Adds others.
    pub fn merge(&mut self, other: &DurationBuckets) {
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (sum, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += count;
        }
    }

    /// Returns those that were added since an earlier reading.
    fn since(&self, earlier: &DurationBuckets) -> DurationBuckets {
        let before = earlier.buckets.iter().chain(std::iter::repeat(&0));
        let mut since = DurationBuckets {
            count: self.count.saturating_sub(earlier.count),
            total_ns: self.total_ns.saturating_sub(earlier.total_ns),
            max_ns: self.max_ns,
            buckets: self
                .buckets
                .iter()
                .zip(before)
                .map(|(now, before)| now.saturating_sub(*before))
                .collect(),
        };
        if earlier.max_ns == self.max_ns && earlier.count > 0 {
            let longest = since.buckets.iter().rposition(|&count| count > 0);
            since.max_ns = longest.map_or(0, |bucket| since.end_of(bucket).min(self.max_ns));
        }
        since
    }
}

/// Of what a row is the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowSubject {
    /// Exits of one reason, from `kvm_exit` to `kvm_entry`.
    Exit(ExitReason),
    /// Accesses to a port, an address or a register, timed as `analysis::Exits` times them.
    Access(GuestAccess),
    /// Writes to an address of which the address says all (`kvm_fast_mmio`): virtio's notifications on x86, with no VMM
    /// in the way. Timed to `kvm_entry`.
    FastMmio {
        /// Guest physical address.
        gpa: u64,
    },
}

/// Exits or accesses of one kind of one vCPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveRow {
    /// The vCPU's thread.
    pub tid: i32,
    /// Of what.
    pub what: RowSubject,
    /// How many, and how long they took.
    pub durations: DurationBuckets,
    /// The shortest in nanoseconds; not known of the difference of two snapshots if there were some before.
    pub min_ns: Option<u64>,
    /// How many of them the VMM handled.
    pub user_count: u64,
    /// Of ports: the time in nanoseconds of the exits that were made for it.
    pub whole_ns: u64,
    /// Of exits: what the vCPU did in them.
    pub times: Times,
}

impl LiveRow {
    /// Adds another row of the same kind.
    pub fn add(&mut self, row: &LiveRow) {
        self.durations.merge(&row.durations);
        self.min_ns = self.min_ns.zip(row.min_ns).map(|(a, b)| a.min(b));
        self.user_count += row.user_count;
        self.whole_ns += row.whole_ns;
        self.times.merge(&row.times);
    }
}

/// One vCPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveVcpu {
    /// Its thread.
    pub tid: i32,
    /// Its VMM's process.
    pub pid: i32,
    /// Its number in its VM, if known.
    pub number: Option<u32>,
    /// Whether its thread has ended.
    pub ended: bool,
    /// For how long it was watched, by what it did: the times add up to that.
    pub times: Times,
    /// Exits.
    pub exits: u64,
    /// Exits in no row, since their vCPU was not seen entering its guest before.
    pub before_first_entry: u64,
    /// Exits in no row, since no entry followed.
    pub without_entry: u64,
    /// Halts and how KVM polled in them.
    pub polls: Polls,
    /// Waits for a CPU after it was woken.
    pub woken: DurationBuckets,
    /// Waits for a CPU after it was preempted.
    pub preempted: DurationBuckets,
}

/// A thread that works for a VM and is no vCPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LiveThread {
    /// The thread.
    pub tid: i32,
    /// The VM's process, which need not be its own.
    pub vm_pid: i32,
    /// Whether it has ended.
    pub ended: bool,
    /// For how long it had a CPU, in nanoseconds.
    pub ran_ns: u64,
    /// For how long it slept, in nanoseconds.
    pub slept_ns: u64,
    /// For how long it waited for a CPU, in nanoseconds.
    pub runnable_ns: u64,
    /// Time of which nobody knows what it did, in nanoseconds.
    pub unknown_ns: u64,
    /// Waits for a CPU after it was woken.
    pub woken: DurationBuckets,
    /// Waits for a CPU after it was preempted.
    pub preempted: DurationBuckets,
}

impl LiveThread {
    /// Returns a thread that was followed as vCPUs are: on a CPU in user space, asleep in user space.
    pub fn of(vcpu: LiveVcpu) -> LiveThread {
        let times = vcpu.times;
        let (ran, slept) = (times.get(State::User), times.get(State::UserBlocked));
        let runnable = times.get(State::Runnable);
        LiveThread {
            tid: vcpu.tid,
            vm_pid: vcpu.pid,
            ended: vcpu.ended,
            ran_ns: ran,
            slept_ns: slept,
            runnable_ns: runnable,
            unknown_ns: times.total().saturating_sub(ran + slept + runnable),
            woken: vcpu.woken,
            preempted: vcpu.preempted,
        }
    }

    fn since(&self, before: &LiveThread) -> LiveThread {
        LiveThread {
            ran_ns: self.ran_ns.saturating_sub(before.ran_ns),
            slept_ns: self.slept_ns.saturating_sub(before.slept_ns),
            runnable_ns: self.runnable_ns.saturating_sub(before.runnable_ns),
            unknown_ns: self.unknown_ns.saturating_sub(before.unknown_ns),
            woken: self.woken.since(&before.woken),
            preempted: self.preempted.since(&before.preempted),
            ..*self
        }
    }

    /// Returns whether it had a CPU, or waited for one.
    pub fn did_anything(&self) -> bool {
        self.ran_ns > 0 || self.runnable_ns > 0
    }
}

/// Stands for several tasks in [`WaitBehind::by_tid`].
pub const SEVERAL: i32 = -1;

/// For how long a vCPU or another thread waited for a CPU while another task had it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitBehind {
    /// The thread that waited.
    pub tid: i32,
    /// The other's; 0 is the idle task: the CPU had yet to wake up. [`SEVERAL`]: tasks of one name that have ended, or,
    /// without a name, all that found no room.
    pub by_tid: i32,
    /// The other's name, if known.
    pub comm: Option<String>,
    /// How often.
    pub count: u64,
    /// For how long, in nanoseconds.
    pub ns: u64,
}

/// What found no room, and is in no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DroppedCounts {
    /// Events of vCPUs beyond the most that are followed.
    pub vcpus: u64,
    /// Exits and accesses of kinds beyond the most rows.
    pub rows: u64,
    /// Waits of which it is not known behind whom, since too many waited for one CPU.
    pub behind: u64,
    /// Threads beyond the most that are followed, as they are now.
    pub threads: u64,
    /// Events that found no room in a ring, where they are counted out of the kernel's rings.
    pub events: u64,
    /// Events that the kernel counted and neither wrote to its rings nor counted as lost: at least so many.
    pub withheld: u64,
}

/// All that was counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// From when on, in nanoseconds of the kernel's monotonic clock.
    pub from_ns: u64,
    /// Up to when.
    pub to_ns: u64,
    /// The vCPUs, by process and thread.
    pub vcpus: Vec<LiveVcpu>,
    /// Other threads that work for VMs, by process and thread.
    pub threads: Vec<LiveThread>,
    /// Exits and accesses, by thread and kind.
    pub rows: Vec<LiveRow>,
    /// Behind whom they waited, by thread.
    pub behind: Vec<WaitBehind>,
    /// What counters of the processor and of the kernel counted, by thread, where that is asked for.
    pub counters: BTreeMap<i32, ThreadCounts>,
    /// What found no room.
    pub dropped: DroppedCounts,
}

/// Returns what was added to times. What is first taken for KVM's own time becomes polling once the halt is over: where
/// the earlier reading was amid a halt, a state may have less than before, and what is missing from it is taken from
/// what it became.
fn times_since(now: &Times, earlier: &Times) -> Times {
    let mut times = now.since(earlier);
    let lack = |state| earlier.get(state).saturating_sub(now.get(state));
    for (state, became) in [
        (State::Kernel, State::Poll),
        (State::KernelBlocked, State::Halted),
        (State::Unknown, State::Halted),
    ] {
        times.take(became, lack(state));
    }
    times
}

impl Snapshot {
    /// Returns what happened between an earlier snapshot of the same counter and this one.
    pub fn since(&self, earlier: &Snapshot) -> Snapshot {
        let vcpu = |now: &LiveVcpu| {
            let same = |before: &&LiveVcpu| before.tid == now.tid && before.pid == now.pid;
            let Some(before) = earlier.vcpus.iter().find(same) else {
                return now.clone();
            };
            LiveVcpu {
                times: times_since(&now.times, &before.times),
                exits: now.exits.saturating_sub(before.exits),
                before_first_entry: now
                    .before_first_entry
                    .saturating_sub(before.before_first_entry),
                without_entry: now.without_entry.saturating_sub(before.without_entry),
                polls: polls_since(&now.polls, &before.polls),
                woken: now.woken.since(&before.woken),
                preempted: now.preempted.since(&before.preempted),
                ..*now
            }
        };
        let mut rows = earlier.rows.iter().peekable();
        let row = |now: &LiveRow| {
            while rows
                .next_if(|row| (row.tid, row.what) < (now.tid, now.what))
                .is_some()
            {}
            let Some(before) = rows.next_if(|row| (row.tid, row.what) == (now.tid, now.what))
            else {
                return now.clone();
            };
            LiveRow {
                durations: now.durations.since(&before.durations),
                min_ns: None,
                user_count: now.user_count.saturating_sub(before.user_count),
                whole_ns: now.whole_ns.saturating_sub(before.whole_ns),
                times: now.times.since(&before.times),
                ..*now
            }
        };
        let others = earlier.behind.iter().map(|one| (one.key(), one));
        let others: HashMap<_, _> = others.collect();
        let behind = |now: &WaitBehind| {
            let before = others.get(&now.key());
            let (count, ns) = before.map_or((0, 0), |before| (before.count, before.ns));
            WaitBehind {
                count: now.count.saturating_sub(count),
                ns: now.ns.saturating_sub(ns),
                ..now.clone()
            }
        };
        let thread = |now: &LiveThread| {
            let same = |before: &&LiveThread| (before.tid, before.vm_pid) == (now.tid, now.vm_pid);
            let before = earlier.threads.iter().find(same);
            before.map_or_else(|| now.clone(), |before| now.since(before))
        };
        let counters = self.counters.iter().map(|(tid, now)| {
            let before = earlier.counters.get(tid);
            (*tid, before.map_or(*now, |before| now.since(before)))
        });
        let mut since = Snapshot {
            counters: counters.collect(),
            from_ns: earlier.to_ns,
            to_ns: self.to_ns,
            vcpus: self.vcpus.iter().map(vcpu).collect(),
            threads: self.threads.iter().map(thread).collect(),
            rows: self.rows.iter().map(row).collect(),
            behind: self.behind.iter().map(behind).collect(),
            dropped: DroppedCounts {
                vcpus: self.dropped.vcpus.saturating_sub(earlier.dropped.vcpus),
                rows: self.dropped.rows.saturating_sub(earlier.dropped.rows),
                behind: self.dropped.behind.saturating_sub(earlier.dropped.behind),
                threads: self.dropped.threads,
                events: self.dropped.events.saturating_sub(earlier.dropped.events),
                withheld: self
                    .dropped
                    .withheld
                    .saturating_sub(earlier.dropped.withheld),
            },
        };
        since
            .rows
            .retain(|row| row.durations.count > 0 || row.whole_ns > 0);
        since.behind.retain(|one| one.ns > 0);
        since.vcpus.retain(|vcpu| vcpu.times.total() > 0);
        since.threads.retain(LiveThread::did_anything);
        since
    }

    /// Adds what was counted before, of the threads that are in both.
    pub fn add(&mut self, before: &Snapshot) {
        for vcpu in &mut self.vcpus {
            let same = |one: &&LiveVcpu| (one.tid, one.pid) == (vcpu.tid, vcpu.pid);
            let Some(one) = before.vcpus.iter().find(same) else {
                continue;
            };
            vcpu.number = vcpu.number.or(one.number);
            vcpu.times.merge(&one.times);
            vcpu.exits += one.exits;
            vcpu.before_first_entry += one.before_first_entry;
            vcpu.without_entry += one.without_entry;
            vcpu.polls.succeeded += one.polls.succeeded;
            vcpu.polls.succeeded_ns += one.polls.succeeded_ns;
            vcpu.polls.failed += one.polls.failed;
            vcpu.polls.failed_ns += one.polls.failed_ns;
            vcpu.polls.unpolled += one.polls.unpolled;
            vcpu.polls.unpolled_ns += one.polls.unpolled_ns;
            vcpu.woken.merge(&one.woken);
            vcpu.preempted.merge(&one.preempted);
        }
        for thread in &mut self.threads {
            let Some(one) = before.threads.iter().find(|one| one.tid == thread.tid) else {
                continue;
            };
            thread.ran_ns += one.ran_ns;
            thread.slept_ns += one.slept_ns;
            thread.runnable_ns += one.runnable_ns;
            thread.unknown_ns += one.unknown_ns;
            thread.woken.merge(&one.woken);
            thread.preempted.merge(&one.preempted);
        }
        self.dropped.rows += before.dropped.rows;
        let rows = self.rows.drain(..).map(|row| ((row.tid, row.what), row));
        let mut rows: BTreeMap<_, _> = rows.collect();
        for row in &before.rows {
            match rows.entry((row.tid, row.what)) {
                Entry::Vacant(entry) => drop(entry.insert(row.clone())),
                Entry::Occupied(mut entry) => entry.get_mut().add(row),
            }
        }
        self.rows = rows.into_values().collect();
        let others = self.behind.iter().zip(0..).map(|(one, at)| {
            let (tid, by_tid, comm) = one.key();
            ((tid, by_tid, comm.map(str::to_owned)), at)
        });
        let others: HashMap<(i32, i32, Option<String>), usize> = others.collect();
        for one in &before.behind {
            let (tid, by_tid, comm) = one.key();
            let at = others.get(&(tid, by_tid, comm.map(str::to_owned)));
            match at.and_then(|at| self.behind.get_mut(*at)) {
                Some(sum) => {
                    sum.count += one.count;
                    sum.ns += one.ns;
                }
                None => self.behind.push(one.clone()),
            }
        }
    }

    /// Returns the vCPUs and threads that have ended.
    pub fn ended(&self) -> HashSet<i32> {
        let vcpus = self.vcpus.iter().filter(|vcpu| vcpu.ended);
        let threads = self.threads.iter().filter(|thread| thread.ended);
        let vcpus = vcpus.map(|vcpu| vcpu.tid);
        vcpus.chain(threads.map(|thread| thread.tid)).collect()
    }

    /// Leaves out all that is of these threads.
    pub fn forget(&mut self, tids: &HashSet<i32>) {
        self.vcpus.retain(|vcpu| !tids.contains(&vcpu.tid));
        self.threads.retain(|thread| !tids.contains(&thread.tid));
        self.rows.retain(|row| !tids.contains(&row.tid));
        self.behind.retain(|one| !tids.contains(&one.tid));
        self.counters.retain(|tid, _| !tids.contains(tid));
    }

    /// Puts everything in order: vCPUs by process and number, threads by process, the rest by thread.
    pub fn sort(&mut self) {
        self.vcpus
            .sort_by_key(|vcpu| (vcpu.pid, vcpu.number, vcpu.tid));
        self.threads
            .sort_by_key(|thread| (thread.vm_pid, thread.tid));
        self.rows.sort_by_key(|row| (row.tid, row.what));
        self.behind.sort_by(|a, b| a.key().cmp(&b.key()));
    }
}

impl WaitBehind {
    /// Whose wait, and behind whom: by name where several tasks are summed up.
    fn key(&self) -> (i32, i32, Option<&str>) {
        let comm = (self.by_tid == SEVERAL).then_some(self.comm.as_deref());
        (self.tid, self.by_tid, comm.flatten())
    }
}

fn polls_since(now: &Polls, before: &Polls) -> Polls {
    Polls {
        succeeded: now.succeeded.saturating_sub(before.succeeded),
        succeeded_ns: now.succeeded_ns.saturating_sub(before.succeeded_ns),
        failed: now.failed.saturating_sub(before.failed),
        failed_ns: now.failed_ns.saturating_sub(before.failed_ns),
        unpolled: now.unpolled.saturating_sub(before.unpolled),
        unpolled_ns: now.unpolled_ns.saturating_sub(before.unpolled_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durations(list: &[u64]) -> DurationBuckets {
        let mut buckets = vec![0; 40];
        for ns in list {
            buckets[(64 - ns.leading_zeros() as usize).min(39)] += 1;
        }
        DurationBuckets {
            count: list.len() as u64,
            total_ns: list.iter().sum(),
            max_ns: list.iter().copied().max().unwrap_or(0),
            buckets,
        }
    }

    #[test]
    fn percentiles_are_bounds() {
        let all = durations(&[100, 200, 300, 400, 5000]);
        assert_eq!(all.at_most_ns(0.2), 127);
        assert_eq!(all.at_most_ns(0.5), 511);
        // The bucket ends at 8191, and none is longer than 5000.
        assert_eq!(all.at_most_ns(0.99), 5000);
        assert_eq!(DurationBuckets::default().at_most_ns(0.5), 0);
    }

    #[test]
    fn the_longest_of_an_interval_is_exact_where_it_is_the_longest_of_all() {
        let before = durations(&[5000, 10]);
        let more = durations(&[5000, 10, 9000, 20]);
        assert_eq!(more.since(&before), durations(&[9000, 20]));
        let less = durations(&[5000, 10, 300]);
        assert_eq!(less.since(&before).max_ns, 511);
    }

    #[test]
    fn an_interval_that_begins_amid_a_poll_adds_up() {
        let mut before = Times::default();
        before.add(State::Guest, 100);
        before.add(State::Kernel, 50);
        let mut now = Times::default();
        now.add(State::Guest, 100);
        now.add(State::Kernel, 10);
        now.add(State::Poll, 90);
        let times = times_since(&now, &before);
        assert_eq!(times.total(), now.total() - before.total());
        assert_eq!(times.get(State::Poll), 50);
    }
}
