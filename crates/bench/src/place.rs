//! Which CPUs: the one that measures, and those that it measures to.

use cpuset::CpuSet;
use facts::Host;

/// A CPU that is measured to, and where it is from the one that measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TargetCpu {
    /// Where it is.
    pub place: &'static str,
    /// Its number.
    pub cpu: u32,
}

/// The CPUs of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BenchCpus {
    /// The one that measures.
    pub from: u32,
    /// All others.
    pub others: Vec<u32>,
    /// One in each place that there is.
    pub targets: Vec<TargetCpu>,
}

/// The other thread of the same core.
pub(crate) const SAME_CORE: &str = "same core";
/// Another core of the same NUMA node.
pub(crate) const SAME_NODE: &str = "same node";
/// A core of another NUMA node.
pub(crate) const OTHER_NODE: &str = "other node";

impl BenchCpus {
    /// Chooses among CPUs: the lowest measures. `None` where there is no CPU.
    pub(crate) fn of(host: &Host, cpus: &CpuSet) -> Option<BenchCpus> {
        let from = cpus.iter().next()?;
        let others: Vec<u32> = cpus.iter().filter(|cpu| *cpu != from).collect();
        let own = host.cpu(from);
        let node = own.and_then(|cpu| cpu.node);
        let place = |other: u32| {
            let known = host.cpu(other);
            let other_node = known.and_then(|cpu| cpu.node);
            if own.is_some_and(|cpu| cpu.siblings.contains(other)) {
                SAME_CORE
            } else if node.is_some() && other_node.is_some() && node != other_node {
                OTHER_NODE
            } else {
                SAME_NODE
            }
        };
        let targets = [SAME_CORE, SAME_NODE, OTHER_NODE].into_iter();
        let targets = targets.filter_map(|wanted| {
            let found = others.iter().find(|cpu| place(**cpu) == wanted);
            found.map(|cpu| TargetCpu {
                place: wanted,
                cpu: *cpu,
            })
        });
        Some(BenchCpus {
            targets: targets.collect(),
            from,
            others,
        })
    }

    /// Returns where threads go that work for the one that measures: the nearest core, or the same CPU where there is
    /// one alone.
    pub(crate) fn peer(&self) -> u32 {
        let by = |place: &str| self.targets.iter().find(|target| target.place == place);
        let nearest = by(SAME_NODE).or_else(|| by(SAME_CORE));
        nearest
            .or(self.targets.first())
            .map_or(self.from, |target| target.cpu)
    }
}

#[cfg(test)]
mod tests {
    use facts::HostCpu;

    use super::*;

    fn host() -> Host {
        let cpu = |cpu: u32, node: u32, siblings: &str| HostCpu {
            cpu,
            node: Some(node),
            siblings: siblings.parse().expect("CPUs"),
            ..HostCpu::default()
        };
        Host {
            cpus: vec![
                cpu(0, 0, "0,4"),
                cpu(1, 0, "1,5"),
                cpu(2, 1, "2,6"),
                cpu(3, 1, "3,7"),
                cpu(4, 0, "0,4"),
                cpu(5, 0, "1,5"),
                cpu(6, 1, "2,6"),
                cpu(7, 1, "3,7"),
            ],
            ..Host::default()
        }
    }

    fn of(cpus: &str) -> Option<(u32, Vec<(&'static str, u32)>)> {
        let places = BenchCpus::of(&host(), &cpus.parse().expect("CPUs"))?;
        let targets = places.targets.iter();
        let targets = targets.map(|target| (target.place, target.cpu)).collect();
        Some((places.from, targets))
    }

    #[test]
    fn one_cpu_in_each_place_is_chosen() {
        let all = vec![(SAME_CORE, 4), (SAME_NODE, 1), (OTHER_NODE, 2)];
        assert_eq!(of("0-7"), Some((0, all)));
        assert_eq!(
            of("1,3,5"),
            Some((1, vec![(SAME_CORE, 5), (OTHER_NODE, 3)]))
        );
        assert_eq!(of("6"), Some((6, Vec::new())));
        assert_eq!(of(""), None);
    }

    #[test]
    fn what_is_not_reported_is_taken_for_one_node() {
        let places = BenchCpus::of(&Host::default(), &"2-3".parse().expect("CPUs"));
        let places = places.expect("CPUs");
        assert_eq!(places.targets[0].place, SAME_NODE);
        assert_eq!((places.from, places.peer()), (2, 3));
        let alone = BenchCpus::of(&Host::default(), &"2".parse().expect("CPUs"));
        assert_eq!(alone.expect("a CPU").peer(), 2);
    }
}
