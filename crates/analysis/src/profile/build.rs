//! Stacks with names, out of what was collected.

use event::index_of;
use rustc_hash::FxHashMap;
use stacks::{FrameName, FrameOwner, ROOT, Stacks, Weight};

use super::calls::{Calls, NOBODY, StackRow};
use super::naming::{NamedPlace, PlaceSigns, deeper, is_deeper};

/// Nodes of stacks with names that are kept.
const MAX_NODES: usize = 1 << 20;

/// Puts stacks together.
pub(super) struct StackBuilder<'c> {
    calls: &'c Calls,
    named: &'c [NamedPlace],
    pub stacks: Stacks,
    /// By place, the numbers of its names.
    numbers: Vec<Vec<u32>>,
    /// By place, those of the same names where the process is a VM's.
    vmm: Vec<Vec<u32>>,
    deeper: u32,
    /// By what stands below, the node that one of the calls has become there, and whether it is all of it.
    nodes: FxHashMap<(u32, u32, bool), (u32, bool)>,
    /// Calls on the way to one that was met before.
    path: Vec<u32>,
}

impl<'c> StackBuilder<'c> {
    pub(super) fn new(calls: &'c Calls, named: &'c [NamedPlace]) -> StackBuilder<'c> {
        let mut stacks = Stacks::new(MAX_NODES);
        let mut numbers = Vec::new();
        let mut vmm = Vec::new();
        for place in named {
            let of = |name: &FrameName| stacks.number(name.clone());
            let own: Vec<u32> = place.names.iter().map(of).collect();
            let user = place
                .names
                .first()
                .is_some_and(|name| name.part == FrameOwner::User);
            if user {
                let of = |name: &FrameName| {
                    stacks.number(FrameName {
                        text: name.text.clone(),
                        part: FrameOwner::Vmm,
                    })
                };
                vmm.push(place.names.iter().map(of).collect());
            } else {
                vmm.push(own.clone());
            }
            numbers.push(own);
        }
        let deeper = stacks.number(deeper());
        StackBuilder {
            calls,
            named,
            stacks,
            numbers,
            vmm,
            deeper,
            nodes: FxHashMap::default(),
            path: Vec::new(),
        }
    }

    /// Adds a frame that is no code.
    pub(super) fn group(&mut self, below: u32, text: &str) -> u32 {
        let name = FrameName {
            text: text.into(),
            part: FrameOwner::Group,
        };
        self.frame(below, name)
    }

    /// Adds a frame.
    pub(super) fn frame(&mut self, below: u32, name: FrameName) -> u32 {
        let number = self.stacks.number(name);
        self.stacks.child(below, number).unwrap_or(below)
    }

    /// Returns the node of a stack upon another, and whether there was room for all of it; `in_vm` says whether its
    /// user space is a VM's.
    pub(super) fn stack(&mut self, below: u32, stack: u32, in_vm: bool) -> (u32, bool) {
        let nodes = self.calls.tree.nodes();
        self.path.clear();
        let mut at = stack;
        let (mut node, mut whole) = (below, true);
        while at != ROOT {
            if let Some(known) = self.nodes.get(&(below, at, in_vm)) {
                (node, whole) = *known;
                break;
            }
            self.path.push(at);
            at = nodes.get(index_of(at)).map_or(ROOT, |node| node.parent);
        }
        while let Some(at) = self.path.pop() {
            let frame = nodes.get(index_of(at)).map_or(ROOT, |node| node.frame);
            for name in self.names(frame, in_vm) {
                match self.stacks.child(node, name).filter(|_| whole) {
                    Some(child) => node = child,
                    None => whole = false,
                }
            }
            self.nodes.insert((below, at, in_vm), (node, whole));
        }
        (node, whole)
    }

    /// Adds the stack of who woke the thread of another, upside down upon it: where both met is in the middle.
    pub(super) fn waker(&mut self, below: u32, row: &StackRow, comm: Option<&str>) -> u32 {
        let nodes = self.calls.tree.nodes();
        let mut node = self.group(below, "--");
        let mut at = row.waker_stack;
        while at != ROOT && row.waker != NOBODY {
            let Some(call) = nodes.get(index_of(at)) else {
                break;
            };
            for name in self.names(call.frame, false).into_iter().rev() {
                node = self.stacks.child(node, name).unwrap_or(node);
            }
            at = call.parent;
        }
        self.group(node, comm.unwrap_or("[waker unknown]"))
    }

    fn names(&self, frame: u32, in_vm: bool) -> Vec<u32> {
        if is_deeper(frame) {
            return vec![self.deeper];
        }
        let list = if in_vm { &self.vmm } else { &self.numbers };
        list.get(index_of(frame)).cloned().unwrap_or_default()
    }

    pub(super) fn weigh(&mut self, node: u32, weight: Weight) {
        self.stacks.weigh(node, weight);
    }

    /// Returns what the frames of each stack say together, by node.
    pub(super) fn signs(&self) -> Vec<PlaceSigns> {
        let mut signs: Vec<PlaceSigns> = Vec::with_capacity(self.calls.tree.nodes().len());
        for node in self.calls.tree.nodes() {
            let below = signs.get(index_of(node.parent)).copied();
            let own = below.and_then(|_| self.named.get(index_of(node.frame)));
            let own = own.map_or_else(PlaceSigns::default, |named| named.signs);
            signs.push(below.unwrap_or_default().or(own));
        }
        signs
    }
}
