//! What was counted up to some time, and between two times.

use event::ExitReason;
use model::{Access, Polls, State, Times};

/// Durations, in buckets by powers of two.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Durations {
    /// How many.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub total_ns: u64,
    /// The longest in nanoseconds. Of the difference of two snapshots: the longest there can have been, which is known to a
    /// factor of two where a longer one was before.
    pub max_ns: u64,
    /// How many are in each bucket: bucket `n` has those from 2^(n-1) to below 2^n nanoseconds, the last one all that are longer.
    pub buckets: Vec<u64>,
}

impl Durations {
    /// Returns the mean in nanoseconds, 0 where there are none.
    pub fn mean_ns(&self) -> u64 {
        self.total_ns.checked_div(self.count).unwrap_or(0)
    }

    /// Returns a bound in nanoseconds that this part (0 to 1) of the durations do not exceed: the end of a bucket, so it is up to
    /// twice the exact percentile; or the longest, if that is less. 0 where there are none.
    pub fn at_most_ns(&self, part: f64) -> u64 {
        let all: u64 = self.buckets.iter().sum();
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
    pub fn merge(&mut self, other: &Durations) {
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
    fn since(&self, earlier: &Durations) -> Durations {
        let before = earlier.buckets.iter().chain(std::iter::repeat(&0));
        let mut since = Durations {
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
pub enum What {
    /// Exits of one reason, from `kvm_exit` to `kvm_entry`.
    Exit(ExitReason),
    /// Accesses to a port, an address or a register, timed as `analysis::Exits` times them.
    Access(Access),
    /// Writes to an address of which the address says all (`kvm_fast_mmio`): virtio's notifications on x86, with no VMM in the
    /// way. Timed to `kvm_entry`.
    FastMmio {
        /// Guest physical address.
        gpa: u64,
    },
}

/// Exits or accesses of one kind of one vCPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The vCPU's thread.
    pub tid: i32,
    /// Of what.
    pub what: What,
    /// How many, and how long they took.
    pub durations: Durations,
    /// The shortest in nanoseconds; not known of the difference of two snapshots if there were some before.
    pub min_ns: Option<u64>,
    /// How many of them the VMM handled.
    pub user_count: u64,
    /// Of ports: the time in nanoseconds of the exits that were made for it.
    pub whole_ns: u64,
    /// Of exits: what the vCPU did in them.
    pub times: Times,
}

/// One vCPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vcpu {
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
    pub woken: Durations,
    /// Waits for a CPU after it was preempted.
    pub preempted: Durations,
}

/// For how long a vCPU waited for a CPU while another task had it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// The vCPU's thread.
    pub tid: i32,
    /// The other's; 0 is the idle task: the CPU had yet to wake up.
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
pub struct Dropped {
    /// Events of vCPUs beyond the most that are followed.
    pub vcpus: u64,
    /// Exits and accesses of kinds beyond the most rows.
    pub rows: u64,
    /// Waits behind tasks beyond the most that are told apart, or behind too many others.
    pub behind: u64,
}

/// All that was counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// From when on, in nanoseconds of the kernel's monotonic clock.
    pub from_ns: u64,
    /// Up to when.
    pub to_ns: u64,
    /// The vCPUs, by process and thread.
    pub vcpus: Vec<Vcpu>,
    /// Exits and accesses, by thread and kind.
    pub rows: Vec<Row>,
    /// Behind whom vCPUs waited, by thread.
    pub behind: Vec<Behind>,
    /// What found no room.
    pub dropped: Dropped,
}

/// Returns what was added to times. What is first taken for KVM's own time becomes polling once the halt is over: where the
/// earlier reading was amid a halt, a state may have less than before, and what it lacks is taken from what it became.
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
    /// Returns what happened between an earlier snapshot of the same [`Live`](crate::Live) and this one.
    pub fn since(&self, earlier: &Snapshot) -> Snapshot {
        let vcpu = |now: &Vcpu| {
            let same = |before: &&Vcpu| before.tid == now.tid && before.pid == now.pid;
            let Some(before) = earlier.vcpus.iter().find(same) else {
                return now.clone();
            };
            Vcpu {
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
        let row = |now: &Row| {
            while rows
                .next_if(|row| (row.tid, row.what) < (now.tid, now.what))
                .is_some()
            {}
            let Some(before) = rows.next_if(|row| (row.tid, row.what) == (now.tid, now.what))
            else {
                return now.clone();
            };
            Row {
                durations: now.durations.since(&before.durations),
                min_ns: None,
                user_count: now.user_count.saturating_sub(before.user_count),
                whole_ns: now.whole_ns.saturating_sub(before.whole_ns),
                times: now.times.since(&before.times),
                ..*now
            }
        };
        let mut others = earlier.behind.iter().peekable();
        let behind = |now: &Behind| {
            let key = |one: &Behind| (one.tid, one.by_tid);
            while others.next_if(|one| key(one) < key(now)).is_some() {}
            let before = others.next_if(|one| key(one) == key(now));
            let (count, ns) = before.map_or((0, 0), |before| (before.count, before.ns));
            Behind {
                count: now.count.saturating_sub(count),
                ns: now.ns.saturating_sub(ns),
                ..now.clone()
            }
        };
        let mut since = Snapshot {
            from_ns: earlier.to_ns,
            to_ns: self.to_ns,
            vcpus: self.vcpus.iter().map(vcpu).collect(),
            rows: self.rows.iter().map(row).collect(),
            behind: self.behind.iter().map(behind).collect(),
            dropped: Dropped {
                vcpus: self.dropped.vcpus.saturating_sub(earlier.dropped.vcpus),
                rows: self.dropped.rows.saturating_sub(earlier.dropped.rows),
                behind: self.dropped.behind.saturating_sub(earlier.dropped.behind),
            },
        };
        since
            .rows
            .retain(|row| row.durations.count > 0 || row.whole_ns > 0);
        since.behind.retain(|one| one.ns > 0);
        since.vcpus.retain(|vcpu| vcpu.times.total() > 0);
        since
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

    fn durations(list: &[u64]) -> Durations {
        let mut buckets = vec![0; 40];
        for ns in list {
            buckets[(64 - ns.leading_zeros() as usize).min(39)] += 1;
        }
        Durations {
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
        assert_eq!(Durations::default().at_most_ns(0.5), 0);
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
