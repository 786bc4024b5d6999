//! On which NUMA node CPUs are, and how far nodes are from each other.

use crate::{NumaNode, cpu_index};

/// How far the NUMA nodes of two CPUs are from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeDistance {
    /// They are one.
    Same,
    /// They are two, at this distance, where that is known (10 is the node itself).
    Other(Option<u32>),
}

/// The nodes of a machine, by CPU.
#[derive(Debug, Clone, Default)]
pub struct NodeMap {
    /// By CPU, one more than the place of its node; 0 where it is on none.
    cpus: Vec<u16>,
    /// By place of both nodes.
    distances: Vec<Vec<u32>>,
    /// How many nodes have CPUs.
    with_cpus: usize,
}

impl NodeMap {
    /// Makes one of a machine's nodes.
    pub fn of(nodes: &[NumaNode]) -> NodeMap {
        let with_cpus = nodes.iter().filter(|node| !node.cpus.is_empty());
        let mut map = NodeMap {
            with_cpus: with_cpus.count(),
            ..NodeMap::default()
        };
        let mut nodes: Vec<&NumaNode> = nodes.iter().collect();
        nodes.sort_by_key(|node| node.node);
        for (node, number) in nodes.iter().zip(1u16..) {
            for cpu in node.cpus.iter() {
                let Some(at) = i32::try_from(cpu).ok().and_then(cpu_index) else {
                    continue;
                };
                if map.cpus.len() <= at {
                    map.cpus.resize(at + 1, 0);
                }
                map.cpus[at] = number;
            }
        }
        map.distances = nodes.iter().map(|node| node.distances.clone()).collect();
        map
    }

    /// Returns whether the node of any CPU is known.
    pub fn is_known(&self) -> bool {
        self.with_cpus > 0
    }

    /// Returns whether there are several nodes with CPUs, so that there are distances to tell apart.
    pub fn has_several(&self) -> bool {
        self.with_cpus > 1
    }

    /// Returns how far two CPUs' nodes are from each other, if both are known.
    pub fn distance(&self, from: i32, to: i32) -> Option<NodeDistance> {
        let node = |cpu: i32| {
            let number = self.cpus.get(cpu_index(cpu)?)?;
            usize::from(*number).checked_sub(1)
        };
        let (from, to) = (node(from)?, node(to)?);
        if from == to {
            return Some(NodeDistance::Same);
        }
        let distances = self.distances.get(from);
        Some(NodeDistance::Other(
            distances.and_then(|all| all.get(to)).copied(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(node: u32, cpus: &str, distances: &[u32]) -> NumaNode {
        NumaNode {
            node,
            cpus: cpus.parse().unwrap(),
            memory_bytes: None,
            distances: distances.to_vec(),
        }
    }

    #[test]
    fn distances_are_those_of_the_cpus_nodes() {
        // In any order, and with a node that is memory alone.
        let map = NodeMap::of(&[
            node(4, "4-7", &[21, 28, 10]),
            node(0, "0-3", &[10, 17, 21]),
            node(2, "", &[17, 10, 28]),
        ]);
        assert_eq!(map.distance(0, 3), Some(NodeDistance::Same));
        assert_eq!(map.distance(1, 7), Some(NodeDistance::Other(Some(21))));
        assert_eq!(map.distance(4, 0), Some(NodeDistance::Other(Some(21))));
        assert_eq!(map.distance(4, 8), None);
        assert_eq!(map.distance(-1, 0), None);
        // perf.data has no distances.
        let map = NodeMap::of(&[node(0, "0", &[]), node(1, "1", &[])]);
        assert_eq!(map.distance(0, 1), Some(NodeDistance::Other(None)));
        // One node has no distances to tell apart.
        let one = NodeMap::of(&[node(0, "0-7", &[10]), node(1, "", &[20])]);
        assert_eq!(one.distance(0, 1), Some(NodeDistance::Same));
        assert!(one.is_known() && !one.has_several());
        assert!(!NodeMap::of(&[]).is_known());
    }
}
