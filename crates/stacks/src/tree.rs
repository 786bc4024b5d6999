//! Stacks as a tree: those that begin with the same frames share their nodes.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// The node that all stacks begin with; it is no frame.
pub const ROOT: u32 = 0;

/// What samples weigh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weight {
    /// How many there are.
    pub samples: u64,
    /// What they stand for, in the unit of whoever collected them: periods of an event, or nanoseconds.
    pub amount: u64,
}

impl Weight {
    /// Adds another.
    pub fn add(&mut self, other: Weight) {
        self.samples = self.samples.saturating_add(other.samples);
        self.amount = self.amount.saturating_add(other.amount);
    }
}

/// A frame behind those that called it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackNode {
    /// Who called it.
    pub parent: u32,
    /// The frame.
    pub frame: u32,
    /// What ended here: samples whose innermost frame this is.
    pub own: Weight,
}

/// Stacks, outermost frame first.
#[derive(Debug, Clone)]
pub struct StackTree {
    nodes: Vec<StackNode>,
    /// Numbers of nodes, by who called them and their frame.
    index: HashTable<u32>,
    /// By node, the frame that it called last and its node: mostly that is what it calls again, and the index is a
    /// large table somewhere else in memory. The root stands for nothing.
    last: Vec<(u32, u32)>,
    most: usize,
    shortened: Weight,
}

/// Returns where a node is looked for.
fn hash_of(parent: u32, frame: u32) -> u64 {
    FxBuildHasher.hash_one((parent, frame))
}

impl StackTree {
    /// Returns an empty tree that has no more than so many nodes.
    pub fn new(most: usize) -> StackTree {
        StackTree {
            nodes: vec![StackNode {
                parent: ROOT,
                frame: 0,
                own: Weight::default(),
            }],
            index: HashTable::new(),
            last: vec![(0, ROOT)],
            most: most.min(u32::MAX as usize),
            shortened: Weight::default(),
        }
    }

    /// Adds a stack, outermost frame first. Where the tree is full it is shortened: its inner frames are left out.
    pub fn add(&mut self, frames: impl IntoIterator<Item = u32>, weight: Weight) {
        let (node, whole) = self.node(frames);
        if !whole {
            self.shortened.add(weight);
        }
        self.nodes[node as usize].own.add(weight);
    }

    /// Returns the node of a stack, outermost frame first, and whether it is all of the stack: where the tree is full,
    /// its inner frames are left out.
    pub fn node(&mut self, frames: impl IntoIterator<Item = u32>) -> (u32, bool) {
        let mut at = ROOT;
        for frame in frames {
            match self.child(at, frame) {
                Some(child) => at = child,
                None => return (at, false),
            }
        }
        (at, true)
    }

    /// Returns the node of a frame that another one called; `None` where there is none and the tree is full.
    pub fn child(&mut self, parent: u32, frame: u32) -> Option<u32> {
        let last = self.last.get_mut(parent as usize)?;
        if last.0 == frame && last.1 != ROOT {
            return Some(last.1);
        }
        let hash = hash_of(parent, frame);
        let nodes = &self.nodes;
        let place = |node: &u32| {
            let node = nodes.get(*node as usize);
            node.map_or((ROOT, 0), |node| (node.parent, node.frame))
        };
        let found = self.index.find(hash, |node| place(node) == (parent, frame));
        if let Some(&node) = found {
            *last = (frame, node);
            return Some(node);
        }
        let node = self.nodes.len();
        if node >= self.most {
            return None;
        }
        *last = (frame, node as u32);
        let hash_of_place = |node: &u32| {
            let (parent, frame) = place(node);
            hash_of(parent, frame)
        };
        self.index.insert_unique(hash, node as u32, hash_of_place);
        self.last.push((0, ROOT));
        self.nodes.push(StackNode {
            parent,
            frame,
            own: Weight::default(),
        });
        Some(node as u32)
    }

    /// Whether there is no room for another node.
    pub(crate) fn is_full(&self) -> bool {
        self.nodes.len() >= self.most
    }

    /// Adds to what ends at a node.
    pub fn weigh(&mut self, node: u32, weight: Weight) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.own.add(weight);
        }
    }

    /// Counts a stack that there was no room for.
    pub(crate) fn shorten(&mut self, weight: Weight) {
        self.shortened.add(weight);
    }

    /// Returns all nodes by number, the root first and nobody before who called it.
    pub fn nodes(&self) -> &[StackNode] {
        &self.nodes
    }

    /// Returns by node what it and all that it called weigh.
    pub fn totals(&self) -> Vec<Weight> {
        let own: Vec<Weight> = self.nodes.iter().map(|node| node.own).collect();
        self.totals_of(&own)
    }

    /// Returns the same where `own` says of each node what ended there.
    pub(crate) fn totals_of(&self, own: &[Weight]) -> Vec<Weight> {
        let mut totals = own.to_vec();
        totals.resize(self.nodes.len(), Weight::default());
        for number in (1..self.nodes.len()).rev() {
            let weight = totals[number];
            totals[self.nodes[number].parent as usize].add(weight);
        }
        totals
    }

    /// Returns what samples weigh that were shortened since there were too many stacks.
    pub fn shortened(&self) -> Weight {
        self.shortened
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Weight = Weight {
        samples: 1,
        amount: 10,
    };

    #[test]
    fn stacks_share_what_they_begin_with() {
        let mut tree = StackTree::new(100);
        tree.add([1, 2, 3], ONE);
        tree.add([1, 2, 4], ONE);
        tree.add([1, 2], ONE);
        tree.add([], ONE);
        assert_eq!(tree.nodes().len(), 5);
        let totals = tree.totals();
        let samples: Vec<u64> = totals.iter().map(|weight| weight.samples).collect();
        assert_eq!(samples, [4, 3, 3, 1, 1]);
        assert_eq!(totals[0].amount, 40);
        assert_eq!(tree.shortened(), Weight::default());
    }

    #[test]
    fn what_there_is_no_room_for_is_shortened_and_counted() {
        let mut tree = StackTree::new(3);
        tree.add([1, 2, 3], ONE);
        tree.add([4], ONE);
        tree.add([1, 2], ONE);
        assert_eq!(tree.nodes().len(), 3);
        assert_eq!(tree.totals()[0].samples, 3);
        assert_eq!(tree.shortened().samples, 2);
    }

    #[test]
    fn recursion_without_end_is_no_recursion_here() {
        let mut tree = StackTree::new(1 << 20);
        tree.add(std::iter::repeat_n(7, 500_000), ONE);
        assert_eq!(tree.totals()[0], ONE);
        assert_eq!(tree.nodes().len(), 500_001);
    }
}
