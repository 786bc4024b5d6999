//! Stacks whose frames have names.

use std::borrow::Cow;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::tree::{ROOT, StackTree, Weight};

/// Nodes that inlined functions may take beside those of the functions that they were put into.
const MAX_INLINED: usize = 1 << 22;

/// Whose code a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameOwner {
    /// No code: a thread, a CPU, a VM that stands below its stacks.
    Group,
    /// The host's kernel, without KVM.
    Kernel,
    /// KVM, a part of the host's kernel.
    Kvm,
    /// User space of the host, without VMMs.
    User,
    /// User space of a VM's process, its VMM.
    Vmm,
    /// A guest, its kernel or its user space.
    Guest,
    /// Code whose owner is not known: folded text mostly does not say.
    Unknown,
}

/// A frame's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FrameName {
    /// The name, shared by whoever has it: there may be a million of them.
    pub text: Arc<str>,
    /// Whose code it is.
    pub part: FrameOwner,
}

/// What a function weighs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionWeight {
    /// Its name.
    pub name: FrameName,
    /// Samples that were in it.
    pub own: Weight,
    /// Those and samples in what it called; where it called itself they count once.
    pub total: Weight,
}

/// Stacks with names, outermost frame first.
#[derive(Debug, Clone)]
pub struct Stacks {
    names: Vec<FrameName>,
    /// Numbers of names.
    index: HashTable<u32>,
    tree: StackTree,
}

impl Stacks {
    /// Returns none, with room for so many nodes.
    pub fn new(most: usize) -> Stacks {
        Stacks {
            names: Vec::new(),
            index: HashTable::new(),
            tree: StackTree::new(most),
        }
    }

    /// Returns the stacks of a tree. `name` says what its frames are called, and `drop` which nodes of the first frame
    /// are left out with all that they called. Frames that have one name become one.
    pub fn of(
        tree: &StackTree,
        mut name: impl FnMut(u32) -> FrameName,
        drop: impl Fn(u32) -> bool,
    ) -> Stacks {
        Stacks::of_inlined(tree, |frame| vec![name(frame)], drop)
    }

    /// Returns the same of frames that may be several: a function with what was inlined into it, outermost first. Where
    /// there is no more room inner ones are left out, and what that takes from stacks is counted
    /// ([`StackTree::shortened`]).
    pub fn of_inlined(
        tree: &StackTree,
        mut names: impl FnMut(u32) -> Vec<FrameName>,
        drop: impl Fn(u32) -> bool,
    ) -> Stacks {
        let nodes = tree.nodes();
        let mut stacks = Stacks::new(nodes.len().saturating_add(MAX_INLINED));
        // By the tree's node, ours; nothing where it is left out.
        let mut ours: Vec<Option<u32>> = Vec::with_capacity(nodes.len());
        // By frame, where its names stand among `frames`.
        let mut numbers: FxHashMap<u32, [u32; 2]> = FxHashMap::default();
        let mut frames: Vec<u32> = Vec::new();
        for (node, at) in nodes.iter().zip(0u32..) {
            if at == ROOT {
                stacks.tree.weigh(ROOT, node.own);
                ours.push(Some(ROOT));
                continue;
            }
            let parent = ours.get(node.parent as usize).copied().flatten();
            let parent = parent.filter(|_| node.parent != ROOT || !drop(node.frame));
            let Some(parent) = parent else {
                ours.push(None);
                continue;
            };
            let range = numbers.entry(node.frame).or_insert_with(|| {
                let begin = frames.len();
                let names = names(node.frame).into_iter();
                frames.extend(names.map(|name| stacks.number(name)));
                [begin, frames.len()].map(|place| place as u32)
            });
            let range = range[0] as usize..range[1] as usize;
            let mut at = parent;
            for frame in frames.get(range).unwrap_or_default() {
                let Some(child) = stacks.tree.child(at, *frame) else {
                    stacks.tree.shorten(node.own);
                    break;
                };
                at = child;
            }
            stacks.tree.weigh(at, node.own);
            ours.push(Some(at));
        }
        stacks
    }

    /// Returns the number of a name.
    pub fn number(&mut self, name: FrameName) -> u32 {
        let hash = FxBuildHasher.hash_one(&name);
        let names = &self.names;
        let is_it = |number: &u32| names.get(*number as usize) == Some(&name);
        if let Some(number) = self.index.find(hash, is_it) {
            return *number;
        }
        let next = names.len() as u32;
        let hash_of = |number: &u32| {
            let name = names.get(*number as usize);
            name.map_or(0, |name| FxBuildHasher.hash_one(name))
        };
        self.index.insert_unique(hash, next, hash_of);
        self.names.push(name);
        next
    }

    /// Returns the node of a frame that another one called; nothing where there is none and there is no more room.
    pub fn child(&mut self, parent: u32, name: u32) -> Option<u32> {
        self.tree.child(parent, name)
    }

    /// Adds to what ends at a node.
    pub fn weigh(&mut self, node: u32, weight: Weight) {
        self.tree.weigh(node, weight);
    }

    /// Returns the tree to change.
    pub(crate) fn tree_mut(&mut self) -> &mut StackTree {
        &mut self.tree
    }

    /// Returns the tree; its frames are numbers of names.
    pub fn tree(&self) -> &StackTree {
        &self.tree
    }

    /// Returns the name of a frame.
    pub fn name(&self, frame: u32) -> Option<&FrameName> {
        self.names.get(frame as usize)
    }

    /// Returns all functions, heaviest first by what they and those they called weigh, then by name.
    pub fn functions(&self) -> Vec<FunctionWeight> {
        let own: Vec<Weight> = self.tree.nodes().iter().map(|node| node.own).collect();
        let mut functions = self.weigh_functions(&own);
        // Names are also those of stacks that were collected and are not shown, such as idle ones.
        functions.retain(|function| {
            let shown = function.total != Weight::default();
            function.name.part != FrameOwner::Group && shown
        });
        functions.sort_by(|a, b| {
            let total = b.total.amount.cmp(&a.total.amount);
            let own = b.own.amount.cmp(&a.own.amount);
            total.then(own).then(a.name.text.cmp(&b.name.text))
        });
        functions
    }

    /// Returns what each name weighs, by its number, where `own` says of each node what ended there.
    pub(crate) fn weigh_functions(&self, own: &[Weight]) -> Vec<FunctionWeight> {
        let nodes = self.tree.nodes();
        let totals = self.tree.totals_of(own);
        let mut functions: Vec<FunctionWeight> = self
            .names
            .iter()
            .map(|name| FunctionWeight {
                name: name.clone(),
                own: Weight::default(),
                total: Weight::default(),
            })
            .collect();
        // By name, how often it is in the stack that is being visited.
        let mut open: Vec<u32> = vec![0; self.names.len()];
        self.visit(|at, enters| {
            if at == ROOT {
                return;
            }
            let frame = nodes[at as usize].frame as usize;
            if enters {
                functions[frame]
                    .own
                    .add(own.get(at as usize).copied().unwrap_or_default());
                if open[frame] == 0 {
                    functions[frame].total.add(totals[at as usize]);
                }
                open[frame] += 1;
            } else {
                open[frame] -= 1;
            }
        });
        functions
    }

    /// Returns the same stacks, where frames whose names are written the same are one, whoever's code they are.
    pub fn by_text(&self) -> Cow<'_, Stacks> {
        let mut texts: FxHashMap<&str, u32> = FxHashMap::default();
        for (name, number) in self.names.iter().zip(0u32..) {
            texts.entry(&name.text).or_insert(number);
        }
        if texts.len() == self.names.len() {
            return Cow::Borrowed(self);
        }
        let name = |frame: u32| {
            let name = self.names.get(frame as usize);
            let first = name.and_then(|name| texts.get(&*name.text));
            let first = first.and_then(|first| self.names.get(*first as usize));
            first.cloned().unwrap_or_else(|| FrameName {
                text: "".into(),
                part: FrameOwner::Group,
            })
        };
        Cow::Owned(Stacks::of(&self.tree, name, |_| false))
    }

    /// Returns the names of all frames, by number.
    pub fn names(&self) -> &[FrameName] {
        &self.names
    }

    /// Hands out all stacks that weigh anything, in the order of their frames' names: the numbers of the names,
    /// outermost frame first.
    pub fn each(&self, mut stack: impl FnMut(&[u32], Weight)) {
        let nodes = self.tree.nodes();
        let mut path = Vec::new();
        self.visit(|at, enters| {
            if at == ROOT {
                return;
            }
            let node = &nodes[at as usize];
            if !enters {
                path.pop();
                return;
            }
            path.push(node.frame);
            if node.own != Weight::default() {
                stack(&path, node.own);
            }
        });
    }

    /// Goes over all nodes, those called by one in the order of their names, and reports when it enters and leaves
    /// each.
    pub(crate) fn visit(&self, mut each: impl FnMut(u32, bool)) {
        let nodes = self.tree.nodes();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
        for (node, at) in nodes.iter().zip(0u32..).skip(1) {
            children[node.parent as usize].push(at);
        }
        let text = |at: &u32| {
            let name = self.name(nodes[*at as usize].frame);
            name.map_or("", |name| &*name.text)
        };
        for list in &mut children {
            list.sort_by(|a, b| text(a).cmp(text(b)));
        }
        // What is left to do, last first: stacks may be deeper than ours.
        let mut left = vec![(ROOT, true)];
        while let Some((at, enters)) = left.pop() {
            each(at, enters);
            if enters {
                left.push((at, false));
                let called = std::mem::take(&mut children[at as usize]);
                left.extend(called.into_iter().rev().map(|child| (child, true)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(frame: u32) -> FrameName {
        FrameName {
            text: ["a", "b", "b", "c", "thread"][frame as usize].into(),
            part: if frame == 4 {
                FrameOwner::Group
            } else {
                FrameOwner::Kernel
            },
        }
    }

    fn weight(samples: u64) -> Weight {
        Weight {
            samples,
            amount: samples * 100,
        }
    }

    #[test]
    fn frames_of_one_name_are_one() {
        let mut tree = StackTree::new(100);
        tree.add([4, 0, 1], weight(1));
        tree.add([4, 0, 2], weight(2));
        tree.add([3], weight(5));
        let stacks = Stacks::of(&tree, name, |frame| frame == 3);
        assert_eq!(stacks.tree().totals()[0], weight(3));
        let mut lists = Vec::new();
        stacks.each(|stack, weight| lists.push((stack.len(), weight.samples)));
        assert_eq!(lists, [(3, 3)]);
        let functions = stacks.functions();
        let texts: Vec<(&str, u64, u64)> = functions
            .iter()
            .map(|f| (&*f.name.text, f.own.samples, f.total.samples))
            .collect();
        assert_eq!(texts, [("b", 3, 3), ("a", 0, 3)]);
    }

    #[test]
    fn names_that_read_the_same_can_be_one() {
        let mut tree = StackTree::new(100);
        tree.add([0, 3], weight(1));
        tree.add([1, 3], weight(2));
        let part = |frame| {
            if frame == 0 {
                FrameOwner::User
            } else {
                FrameOwner::Vmm
            }
        };
        let name = |frame| FrameName {
            text: if frame == 3 { "read" } else { "[unknown]" }.into(),
            part: part(frame),
        };
        let stacks = Stacks::of(&tree, name, |_| false);
        assert_eq!(stacks.tree().nodes().len(), 5);
        let mut lists = Vec::new();
        stacks
            .by_text()
            .each(|stack, weight| lists.push((stack.len(), weight.samples)));
        assert_eq!(lists, [(2, 3)]);
        assert!(matches!(stacks.by_text().by_text(), Cow::Borrowed(_)));
    }

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        let mut tree = StackTree::new(100);
        tree.add([0, 1, 0, 0], weight(3));
        tree.add([0], weight(1));
        let functions = Stacks::of(&tree, name, |_| false).functions();
        let a = functions.iter().find(|f| &*f.name.text == "a").unwrap();
        assert_eq!((a.own, a.total), (weight(4), weight(4)));
    }

    #[test]
    fn deep_stacks_are_no_deep_calls() {
        let mut tree = StackTree::new(1 << 20);
        tree.add((0..300_000).map(|n| n % 3), weight(1));
        let functions = Stacks::of(&tree, name, |_| false).functions();
        assert_eq!(functions.len(), 2);
        assert_eq!(functions[0].total, weight(1));
    }
}
