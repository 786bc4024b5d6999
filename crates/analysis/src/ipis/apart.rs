//! Interrupts by how far the host CPUs of their sender and their target are from each other.

use std::collections::BTreeMap;

use cpuset::{NodeDistance, NodeMap};

use crate::Stats;

/// Distances of which sums are kept: ACPI's SLIT has 245 of them (10 to 254), and facts may say anything.
const MAX_DISTANCES: usize = 256;

/// How far the host CPU of an interrupt's target, when it enters its guest, is from that of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IpiDistance {
    /// They are one CPU: the target cannot run before the sender leaves it.
    SameCpu,
    /// They are two, whose NUMA nodes are known.
    Nodes(NodeDistance),
    /// They are two, and the NUMA node of one of them is not known.
    NotRecorded,
}

impl IpiDistance {
    /// Returns how far two CPUs of the host are from each other; `None` where a CPU is not known.
    pub(super) fn of(nodes: &NodeMap, from: i32, to: i32) -> Option<IpiDistance> {
        if from < 0 || to < 0 {
            return None;
        }
        if from == to {
            return Some(IpiDistance::SameCpu);
        }
        let nodes = nodes.distance(from, to);
        Some(nodes.map_or(IpiDistance::NotRecorded, IpiDistance::Nodes))
    }
}

/// Interrupts of one distance.
#[derive(Debug, Clone, PartialEq)]
pub struct IpiDistanceRow {
    /// The distance.
    pub distance: IpiDistance,
    /// From sending to the target's entry, of all, whatever their target was doing.
    pub times: Stats,
    /// How many of them were for a vCPU that was halted.
    pub halted: u64,
}

/// Interrupts by distance.
#[derive(Debug, Default)]
pub(super) struct DistanceSums {
    sums: BTreeMap<IpiDistance, (Stats, u64)>,
}

impl DistanceSums {
    pub(super) fn add(&mut self, distance: IpiDistance, ns: u64, halted: bool) {
        let full = self.sums.len() >= MAX_DISTANCES && !self.sums.contains_key(&distance);
        let key = match full {
            true => IpiDistance::Nodes(NodeDistance::Other(None)),
            false => distance,
        };
        let (times, to_halted) = self.sums.entry(key).or_default();
        times.add(ns);
        *to_halted += u64::from(halted);
    }

    /// Returns them, the nearest first.
    pub(super) fn rows(&self) -> Vec<IpiDistanceRow> {
        let rows = self.sums.iter();
        let rows = rows.map(|(distance, (times, halted))| IpiDistanceRow {
            distance: *distance,
            times: times.clone(),
            halted: *halted,
        });
        rows.collect()
    }
}

#[cfg(test)]
mod tests {
    use cpuset::NumaNode;

    use super::*;

    #[test]
    fn a_distance_is_that_of_two_cpus() {
        let node = |node, cpus: &str| NumaNode {
            node,
            cpus: cpus.parse().unwrap(),
            memory_bytes: None,
            distances: vec![10 + 11 * node, 21 - 11 * node],
        };
        let nodes = NodeMap::of(&[node(0, "0-1"), node(1, "2-3")]);
        let of = |from, to| IpiDistance::of(&nodes, from, to);
        assert_eq!(of(1, 1), Some(IpiDistance::SameCpu));
        assert_eq!(of(0, 1), Some(IpiDistance::Nodes(NodeDistance::Same)));
        let far = NodeDistance::Other(Some(21));
        assert_eq!(of(0, 2), Some(IpiDistance::Nodes(far)));
        assert_eq!(of(0, 9), Some(IpiDistance::NotRecorded));
        assert_eq!(of(0, -1), None);
        let unknown = NodeMap::default();
        assert_eq!(IpiDistance::of(&unknown, 4, 4), Some(IpiDistance::SameCpu));
    }

    #[test]
    fn distances_that_nobody_has_take_no_memory() {
        let mut sums = DistanceSums::default();
        for far in 0..10_000 {
            let distance = IpiDistance::Nodes(NodeDistance::Other(Some(far)));
            sums.add(distance, 1_000, false);
        }
        let rows = sums.rows();
        assert_eq!(rows.len(), MAX_DISTANCES + 1);
        let all: u64 = rows.iter().map(|row| row.times.count()).sum();
        assert_eq!(all, 10_000);
    }
}
