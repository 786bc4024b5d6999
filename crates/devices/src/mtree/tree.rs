//! The regions of one address map, and which of them an address is in.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::line::MtreeRegion;
use crate::DeviceSpace;
use crate::map;
use crate::region::RegionHit;

/// Longest name kept, in bytes: QEMU's are below a hundred.
const MAX_NAME: usize = 200;
/// Most aliases followed one into the other.
const MAX_HOPS: usize = 8;
/// Most regions looked at for one address. A map of one VM needs some hundred.
const MAX_STEPS: usize = 1 << 17;

/// What the regions under a heading are part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Views {
    /// Under any heading at all.
    named: bool,
    memory: bool,
    io: bool,
    /// What aliases point to.
    target: bool,
    /// A flat view: regions do not nest.
    pub flat: bool,
}

impl Views {
    const NONE: Views = Views {
        named: true,
        memory: false,
        io: false,
        target: false,
        flat: false,
    };
    pub(super) const TARGET: Views = Views {
        target: true,
        ..Views::NONE
    };
    pub(super) const FLAT: Views = Views {
        flat: true,
        ..Views::NONE
    };

    /// An address space. vCPUs see `memory`, or one each that is the same with parts of it changed; others are
    /// what devices see, and what vCPUs see in system management mode.
    pub(super) fn of(name: &str) -> Views {
        Views {
            memory: name == "memory" || name.starts_with("cpu-memory"),
            io: name == "I/O",
            target: true,
            ..Views::NONE
        }
    }

    /// Both.
    pub(super) fn and(self, other: Views) -> Views {
        Views {
            named: self.named || other.named,
            memory: self.memory || other.memory,
            io: self.io || other.io,
            target: self.target || other.target,
            flat: self.flat || other.flat,
        }
    }

    /// Whether more address spaces can share the tree.
    pub(super) fn is_address_space(self) -> bool {
        self.named && self.target && !self.flat && self != Views::TARGET
    }
}

#[derive(Clone, Debug)]
struct MtreeNode {
    base: u64,
    last: u64,
    prio: i64,
    name: Box<str>,
    alias: Option<(Box<str>, u64)>,
    skipped: u64,
    disabled: bool,
    /// How much further its line is indented than that of the region around it.
    indent: usize,
    parent: Option<usize>,
    first_child: Option<usize>,
    last_child: Option<usize>,
    next: Option<usize>,
}

/// All regions of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct MtreeTree {
    nodes: Vec<MtreeNode>,
    memory: Vec<usize>,
    io: Vec<usize>,
    flat_memory: Vec<usize>,
    flat_io: Vec<usize>,
    /// What aliases point to, by name: several regions may have the same one.
    targets: HashMap<Box<str>, Vec<usize>>,
    /// By how much one level is indented; none if the indentation, which says what is inside of what, is lost.
    step: Option<usize>,
}

/// A name as it is kept: the text may be anybody's, and names go to terminals.
fn clip(name: &str) -> Box<str> {
    let name = name
        .get(..name.floor_char_boundary(MAX_NAME))
        .unwrap_or(name);
    name.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect::<String>()
        .into()
}

impl MtreeTree {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no address can be found.
    pub(super) fn is_empty(&self) -> bool {
        [&self.memory, &self.io, &self.flat_memory, &self.flat_io]
            .iter()
            .all(|list| list.is_empty())
    }

    /// Whether `addr` is in `node` and `node` is mapped. A line indented by more than one level has a container
    /// that is not shown, because it is not mapped.
    fn holds(&self, node: &MtreeNode, addr: u64) -> bool {
        !node.disabled
            && self.step.is_none_or(|step| node.indent <= step)
            && (node.base..=node.last).contains(&addr)
    }

    /// Adds a region under the heading that `views` says, inside of `outer`: a region, and how much further
    /// this one's line is indented.
    pub(super) fn push(
        &mut self,
        region: &MtreeRegion<'_>,
        outer: Option<(usize, usize)>,
        views: Views,
    ) -> usize {
        let outer = outer.filter(|_| !views.flat);
        let index = self.nodes.len();
        self.nodes.push(MtreeNode {
            base: region.base,
            last: region.last,
            prio: region.prio,
            name: clip(region.name),
            alias: region.alias.map(|(target, from)| (clip(target), from)),
            skipped: region.skipped,
            disabled: region.disabled,
            indent: outer.map_or(0, |(_, indent)| indent),
            parent: outer.map(|(parent, _)| parent),
            first_child: None,
            last_child: None,
            next: None,
        });
        if views.flat {
            if views.memory {
                self.flat_memory.push(index);
            }
            if views.io {
                self.flat_io.push(index);
            }
            return index;
        }
        match outer {
            Some((parent, indent)) => self.link(parent, index, indent),
            None => self.add_root(region, views, index),
        }
        index
    }

    fn add_root(&mut self, region: &MtreeRegion<'_>, views: Views, index: usize) {
        // Lines picked out of the text, without the heading: ports have small numbers.
        let loose = !views.named;
        if views.memory || (loose && region.last > 0xffff) {
            self.memory.push(index);
        }
        if views.io || (loose && region.last <= 0xffff) {
            self.io.push(index);
        }
        if views.target {
            self.targets
                .entry(clip(region.name))
                .or_default()
                .push(index);
        }
    }

    fn link(&mut self, parent: usize, child: usize, indent: usize) {
        self.step = Some(self.step.map_or(indent, |step| step.min(indent)));
        let before = self.nodes.get_mut(parent).and_then(|node| {
            if node.first_child.is_none() {
                node.first_child = Some(child);
            }
            node.last_child.replace(child)
        });
        if let Some(node) = before.and_then(|before| self.nodes.get_mut(before)) {
            node.next = Some(child);
        }
    }

    /// The innermost region at `addr`, by QEMU's rules: higher priorities first, what is inside of a region
    /// before the region, and nothing for what only holds others.
    pub(super) fn find(&self, space: DeviceSpace, addr: u64) -> Option<RegionHit<'_>> {
        let (roots, flat) = match space {
            DeviceSpace::Memory => (&self.memory, &self.flat_memory),
            DeviceSpace::Io => (&self.io, &self.flat_io),
        };
        let mut steps = MAX_STEPS;
        let holds = |index: &usize| {
            self.nodes
                .get(*index)
                .is_some_and(|node| self.holds(node, addr))
        };
        let mut roots: Vec<usize> = roots.iter().copied().filter(holds).collect();
        self.sort(&mut roots);
        for root in roots {
            if let Some((index, offset)) = self.search(root, addr, 0, &mut steps) {
                return self.place(index, addr, offset, None);
            }
        }
        let index = flat.iter().copied().find(|index| {
            self.nodes
                .get(*index)
                .is_some_and(|node| self.holds(node, addr) && !map::is_container(&node.name))
        })?;
        let node = self.nodes.get(index)?;
        let offset = (addr - node.base).saturating_add(node.skipped);
        self.place(index, addr, offset, Some(flat))
    }

    /// Which of regions at the same address is seen first: the one of higher priority. Where that does not
    /// tell, or compares regions that are inside of each other, the smaller one is the device and the larger
    /// one what it lies in.
    fn sort(&self, regions: &mut [usize]) {
        regions.sort_by_key(|index| {
            self.nodes.get(*index).map(|node| {
                let prio = Reverse(if self.step.is_some() { node.prio } else { 0 });
                (prio, node.last - node.base, Reverse(node.prio))
            })
        });
    }

    /// The region at `addr`, an address in `index`'s terms, and the offset in it.
    fn search(
        &self,
        index: usize,
        addr: u64,
        hops: usize,
        steps: &mut usize,
    ) -> Option<(usize, u64)> {
        *steps = steps.checked_sub(1)?;
        let node = self.nodes.get(index)?;
        if !self.holds(node, addr) {
            return None;
        }
        let offset = addr - node.base;
        if let Some((target, from)) = &node.alias {
            let Some(targets) = self.targets.get(target) else {
                return (!map::is_container(&node.name)).then_some((index, offset));
            };
            if hops >= MAX_HOPS {
                return None;
            }
            return targets.iter().find_map(|target| {
                let base = self.nodes.get(*target)?.base;
                let inner = base.checked_add(from.checked_add(offset)?)?;
                self.search(*target, inner, hops + 1, steps)
            });
        }
        let mut inside = Vec::new();
        let mut child = node.first_child;
        while let Some((at, region)) = child.and_then(|at| Some((at, self.nodes.get(at)?))) {
            *steps = steps.checked_sub(1)?;
            if self.holds(region, addr) {
                inside.push(at);
            }
            child = region.next;
        }
        self.sort(&mut inside);
        inside
            .into_iter()
            .find_map(|at| self.search(at, addr, hops, steps))
            .or_else(|| (!map::is_container(&node.name)).then_some((index, offset)))
    }

    fn place(
        &self,
        index: usize,
        addr: u64,
        offset: u64,
        flat: Option<&Vec<usize>>,
    ) -> Option<RegionHit<'_>> {
        let node = self.nodes.get(index)?;
        let parent = node.parent.and_then(|parent| self.nodes.get(parent));
        let base = addr.saturating_sub(offset);
        let last = (node.last - node.base).saturating_add(node.skipped);
        let first = match (flat, parent) {
            (Some(flat), _) => self.lowest(flat.iter().copied(), &node.name),
            (None, Some(parent)) => self.lowest(self.children(parent), &node.name),
            (None, None) => None,
        };
        let before = first.map_or(0, |first| node.base.saturating_sub(first));
        Some(RegionHit {
            name: &node.name,
            parent: parent.map_or("", |parent| &parent.name),
            base,
            last,
            offset,
            first: base.saturating_sub(before),
        })
    }

    fn children(&self, node: &MtreeNode) -> impl Iterator<Item = usize> {
        std::iter::successors(node.first_child, |at| self.nodes.get(*at)?.next)
    }

    fn lowest(&self, regions: impl Iterator<Item = usize>, name: &str) -> Option<u64> {
        regions
            .filter_map(|at| self.nodes.get(at))
            .filter(|node| *node.name == *name)
            .map(|node| node.base)
            .min()
    }
}
