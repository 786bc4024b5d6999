//! What libvirt and KVM counted of a domain.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::keep::fill;

/// Sums by their names, and what was added to them in a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CountedSums {
    /// What was counted since the VM began. Names that end in `.cur` or `.max`, and those of the balloon, are no sums:
    /// what was so when it was read.
    pub counters: BTreeMap<String, u64>,
    /// What was counted between the first output and the last one, where a text has several of a domain.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub during: BTreeMap<String, u64>,
}

impl CountedSums {
    /// Returns what was counted between the outputs, else since the VM began.
    pub fn counted(&self, name: &str) -> Option<u64> {
        let sums = match self.during.is_empty() {
            true => &self.counters,
            false => &self.during,
        };
        sums.get(name).copied()
    }

    /// Returns whether no sum is less than it was before.
    fn goes_on(&self, later: &CountedSums) -> bool {
        let before = self.counters.iter().filter(|(name, _)| is_sum(name));
        let mut pairs = before.filter_map(|(name, before)| Some((before, later.get(name)?)));
        pairs.all(|(before, after)| before <= after)
    }

    fn get(&self, name: &str) -> Option<&u64> {
        self.counters.get(name)
    }

    /// Takes a later output's sums.
    fn count_up_to(&mut self, later: &CountedSums) {
        let sums = self.counters.iter().filter(|(name, _)| is_sum(name));
        let grown = sums.filter_map(|(name, before)| {
            let more = later.get(name)?.checked_sub(*before)?;
            Some((name.clone(), more))
        });
        self.during = grown.collect();
    }
}

fn is_sum(name: &str) -> bool {
    let level = [".cur", ".max"].iter().any(|end| name.ends_with(end));
    !level && !name.starts_with("balloon.")
}

/// What `virsh domstats` prints of a domain.
///
/// Names are libvirt's and KVM's (`docs/manpages/virsh.rst` of libvirt; `struct kvm_vcpu_stat` of
/// `arch/*/include/asm/kvm_host.h`, `struct kvm_vcpu_stat_generic` of `include/linux/kvm_types.h`), those of KVM
/// without the `.sum` that libvirt puts behind sums. Times are in nanoseconds, sizes of the balloon in KiB.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DomainStatistics {
    /// The domain's name; none where the line that says it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many vCPUs it has (`vcpu.current`); fewer may be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vcpus_in_all: Option<u64>,
    /// Of the whole domain: `cpu.time`, `cpu.haltpoll.fail.time`, `balloon.rss`, and KVM's of the VM as
    /// `vm.remote_tlb_flush`.
    #[serde(flatten)]
    pub all: CountedSums,
    /// Of its vCPUs, by number: `time` on a CPU, `delay` (waiting for one), `wait`, and KVM's: `exits`, `halt_exits`,
    /// `halt_poll_fail_ns`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vcpus: BTreeMap<u32, CountedSums>,
    /// Of its disks, by target (`vda`): `rd.reqs`, `rd.times`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub disks: BTreeMap<String, CountedSums>,
    /// Of its network interfaces, by their name on the host (`vnet3`): `rx.pkts`, `rx.drop`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub nics: BTreeMap<String, CountedSums>,
}

impl DomainStatistics {
    /// Returns whether it is what was counted between two outputs, and not since the VM began.
    pub fn is_difference(&self) -> bool {
        let vcpus = self.vcpus.values();
        let mut all = vcpus.chain([&self.all]);
        all.any(|sums| !sums.during.is_empty())
    }

    /// Returns whether every vCPU is listed.
    pub fn lists_all_vcpus(&self) -> bool {
        self.vcpus_in_all
            .is_none_or(|all| all <= self.vcpus.len() as u64)
    }

    /// Returns the sum over its vCPUs that have one of a name.
    pub fn of_vcpus(&self, name: &str) -> Option<u64> {
        let each = self.vcpus.values().filter_map(|vcpu| vcpu.counted(name));
        each.reduce(u64::saturating_add)
    }

    /// Returns for how long a vCPU waited for a CPU, and was on one. `delay` is `run_delay` of the scheduler (libvirt
    /// 7.2); before it there is `wait` alone, which kernels count where `kernel.sched_schedstats` is on.
    pub fn waited_ns(vcpu: &CountedSums) -> Option<(u64, u64)> {
        let waited = match vcpu.counted("delay") {
            Some(delay) => delay,
            None => vcpu.counted("wait").filter(|wait| *wait > 0)?,
        };
        Some((waited, vcpu.counted("time")?))
    }

    /// Takes another output of the domain. Returns why it is left out, if it is.
    pub(crate) fn merge(&mut self, later: DomainStatistics) -> Option<&'static str> {
        if *self == later {
            return None;
        }
        fill(&mut self.vcpus_in_all, later.vcpus_in_all);
        if later.is_difference() {
            if !self.is_difference() && self.is_of_same_time(&later) {
                *self = later;
                return None;
            }
            return Some("holds a second difference of a domain's statistics, which is left out");
        }
        if self.is_of_same_time(&later) {
            return None;
        }
        let goes_on = self
            .pairs(&later)
            .all(|(ours, theirs)| ours.goes_on(theirs));
        if !goes_on {
            return Some(
                "counts less of the domain than the output before it: it was started again, or they are in \
                 another order; it is left out",
            );
        }
        self.all.count_up_to(&later.all);
        let lists = [
            (&mut self.disks, &later.disks),
            (&mut self.nics, &later.nics),
        ];
        for (ours, theirs) in lists {
            count_up_to(ours, theirs);
        }
        count_up_to(&mut self.vcpus, &later.vcpus);
        None
    }

    fn is_of_same_time(&self, other: &DomainStatistics) -> bool {
        let counters = |sums: &CountedSums| sums.counters.clone();
        let mut pairs = self.pairs(other).peekable();
        pairs.peek().is_some() && pairs.all(|(ours, theirs)| counters(ours) == counters(theirs))
    }

    /// Returns what both have.
    fn pairs<'a>(
        &'a self,
        other: &'a DomainStatistics,
    ) -> impl Iterator<Item = (&'a CountedSums, &'a CountedSums)> {
        let vcpus = self.vcpus.iter();
        let vcpus = vcpus.filter_map(|(id, ours)| Some((ours, other.vcpus.get(id)?)));
        vcpus.chain([(&self.all, &other.all)])
    }
}

fn count_up_to<K: Ord>(ours: &mut BTreeMap<K, CountedSums>, later: &BTreeMap<K, CountedSums>) {
    for (key, sums) in ours {
        if let Some(later) = later.get(key) {
            sums.count_up_to(later);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(time: u64, exits: u64) -> DomainStatistics {
        let sums = |name: &str, value| CountedSums {
            counters: BTreeMap::from([
                (name.to_owned(), value),
                ("pages_4k.cur".to_owned(), 1_000_000 - time),
            ]),
            ..CountedSums::default()
        };
        DomainStatistics {
            name: Some("web".to_owned()),
            all: sums("cpu.time", time),
            vcpus: BTreeMap::from([(0, sums("exits", exits)), (1, sums("exits", 2 * exits))]),
            ..DomainStatistics::default()
        }
    }

    #[test]
    fn the_last_output_less_the_first_is_what_was_counted_between() {
        let mut known = statistics(1000, 10);
        assert_eq!(known.of_vcpus("exits"), Some(30));
        for (time, exits) in [(1500, 11), (2500, 20)] {
            assert_eq!(known.merge(statistics(time, exits)), None);
        }
        assert!(known.is_difference());
        assert_eq!(known.all.counted("cpu.time"), Some(1500));
        assert_eq!(known.of_vcpus("exits"), Some(30));
        assert_eq!(known.vcpus[&1].counted("exits"), Some(20));
        assert_eq!(known.all.counted("pages_4k.cur"), None);
        // The same once more changes nothing.
        let before = known.clone();
        assert_eq!(known.merge(statistics(1000, 10)), None);
        assert_eq!(known.merge(before.clone()), None);
        assert_eq!(known, before);
    }

    #[test]
    fn sums_that_become_less_are_of_another_start_or_order() {
        let mut known = statistics(1000, 10);
        assert!(known.merge(statistics(2000, 9)).is_some());
        assert_eq!(known, statistics(1000, 10));
    }
}
