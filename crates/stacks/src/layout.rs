//! Where the boxes of a flame graph lie.
//!
//! A box is a frame behind those that called it, as wide as what it and all that it called weigh. Its children lie side
//! by side within it, from its start on, in the order of their names. What is too small to be seen is merged into one
//! box of its parent, and counted.

use crate::diff::Diff;
use crate::named::Stacks;
use crate::tree::{ROOT, StackTree, Weight};

/// What is laid out. Whatever is smaller or deeper is merged, the smallest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutBounds {
    /// A box is at least one of so many parts of the whole, on one side of a difference.
    pub parts: u64,
    /// So many boxes at most, without those that stand for smaller ones: of these, each box has one at most.
    pub boxes: usize,
    /// The names of all boxes take so many bytes at most, each name counted once.
    pub name_bytes: usize,
    /// Frames of a stack at most.
    pub levels: u32,
}

/// What a box stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxContent {
    /// All stacks.
    All,
    /// A frame, by the number of its name.
    Frame(u32),
    /// So many frames that its parent called, and what they called.
    Smaller(u64),
}

/// A box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// What it stands for.
    pub content: BoxContent,
    /// The box that it lies on; the first one lies on itself.
    pub parent: u32,
    /// How many boxes are below it.
    pub level: u32,
    /// Where it begins, in the unit of the weights' amount.
    pub start: u64,
    /// What it and all that it called weigh; its amount is its width.
    pub weight: Weight,
    /// What ended in it.
    pub own: Weight,
    /// What it called and has no box.
    pub hidden: Weight,
    /// Of a difference, what it weighs in A.
    pub before: Weight,
}

/// What has no box of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOutFrames {
    /// Frames behind those that called them.
    pub frames: u64,
    /// What they weigh.
    pub weight: Weight,
    /// Of a difference, what they weigh in A.
    pub before: Weight,
}

/// The boxes of a flame graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlameLayout {
    /// Boxes; each comes before those that it called, from the left on. The first one is all stacks.
    pub blocks: Vec<Block>,
    /// How many levels there are.
    pub levels: u32,
    /// What was too small.
    pub smaller: LeftOutFrames,
    /// What was too deep.
    pub deeper: LeftOutFrames,
}

/// The tree that is laid out.
struct LayoutSource<'s> {
    stacks: &'s Stacks,
    tree: &'s StackTree,
    totals: Vec<Weight>,
    before: Vec<Weight>,
}

/// Sizes are parts of this, so that those of two recordings can be compared.
const WHOLE: u128 = 1 << 62;

impl FlameLayout {
    /// Lays out stacks. `bytes` says how long the name with a number is.
    pub fn of(stacks: &Stacks, bounds: LayoutBounds, bytes: impl Fn(u32) -> usize) -> FlameLayout {
        let tree = stacks.tree();
        let totals = tree.totals();
        let before = vec![Weight::default(); totals.len()];
        let source = LayoutSource {
            stacks,
            tree,
            totals,
            before,
        };
        source.lay(bounds, bytes)
    }

    /// Lays out a difference: widths are B's.
    pub fn of_diff(diff: &Diff, bounds: LayoutBounds, bytes: impl Fn(u32) -> usize) -> FlameLayout {
        let stacks = diff.stacks();
        let tree = stacks.tree();
        let source = LayoutSource {
            stacks,
            tree,
            totals: tree.totals(),
            before: tree.totals_of(diff.before()),
        };
        source.lay(bounds, bytes)
    }

    /// Returns what all stacks weigh.
    pub fn whole(&self) -> Weight {
        self.blocks.first().map_or(Weight::default(), |b| b.weight)
    }
}

/// What is to be laid out.
enum LayoutTask {
    /// A node, the box that it lies on, and where it begins.
    Node(u32, u32, u64),
    /// A box that is done.
    Block(Block),
}

/// What of a node's children has no box.
#[derive(Debug, Clone, Copy, Default)]
struct BoxlessRest {
    smaller: LeftOutFrames,
    deeper: LeftOutFrames,
}

impl LeftOutFrames {
    fn add(&mut self, frames: u64, weight: Weight, before: Weight) {
        self.frames += frames;
        self.weight.add(weight);
        self.before.add(before);
    }

    /// Returns the box that stands for it.
    fn block(&self, parent: u32, level: u32, start: u64) -> Block {
        Block {
            content: BoxContent::Smaller(self.frames),
            parent,
            level,
            start,
            weight: self.weight,
            own: Weight::default(),
            hidden: Weight::default(),
            before: self.before,
        }
    }
}

impl LayoutSource<'_> {
    /// Returns how much of the whole two weights are, on the side where it is more. No node is larger than who called
    /// it.
    fn size(&self, weight: Weight, before: Weight) -> u64 {
        let of = |part: Weight, whole: Weight| match whole.amount {
            0 => 0,
            whole => (u128::from(part.amount) * WHOLE / u128::from(whole)) as u64,
        };
        of(weight, self.totals[0]).max(of(before, self.before[0]))
    }

    fn sizes(&self) -> Vec<u64> {
        let pairs = self.totals.iter().zip(&self.before);
        pairs
            .map(|(now, before)| self.size(*now, *before))
            .collect()
    }

    /// Returns by node its level.
    fn levels(&self) -> Vec<u32> {
        let mut levels: Vec<u32> = Vec::with_capacity(self.totals.len());
        for node in self.tree.nodes() {
            let parent = levels.get(node.parent as usize);
            levels.push(parent.map_or(0, |level| level + 1));
        }
        levels
    }

    /// Returns the nodes that get a box, in order of their number.
    fn chosen(
        &self,
        sizes: &[u64],
        levels: &[u32],
        bounds: LayoutBounds,
        bytes: impl Fn(u32) -> usize,
    ) -> Vec<u32> {
        let least = least(bounds);
        let nodes = self.tree.nodes();
        let large = (1..nodes.len() as u32).filter(|at| {
            let at = *at as usize;
            sizes[at] >= least && levels[at] <= bounds.levels
        });
        let mut chosen: Vec<u32> = large.collect();
        // A parent is no smaller than its children and has a lower number, so it comes before them.
        chosen.sort_unstable_by_key(|at| (std::cmp::Reverse(sizes[*at as usize]), *at));
        let mut named = vec![false; self.stacks.names().len()];
        let mut left = bounds.name_bytes;
        let fits = chosen.iter().take(bounds.boxes).take_while(|at| {
            let frame = nodes[**at as usize].frame;
            match named.get_mut(frame as usize) {
                Some(known) if !*known => {
                    *known = true;
                    let bytes = bytes(frame);
                    let fits = bytes <= left;
                    left = left.saturating_sub(bytes);
                    fits
                }
                _ => true,
            }
        });
        let fits = fits.count();
        chosen.truncate(fits);
        chosen.sort_unstable();
        chosen
    }

    fn lay(&self, bounds: LayoutBounds, bytes: impl Fn(u32) -> usize) -> FlameLayout {
        let nodes = self.tree.nodes();
        let sizes = self.sizes();
        let levels = self.levels();
        let chosen = self.chosen(&sizes, &levels, bounds, bytes);
        // By node, its place in `rests` and `called`: the root's is 0.
        let mut places: Vec<Option<u32>> = vec![None; nodes.len()];
        places[ROOT as usize] = Some(0);
        for (at, place) in chosen.iter().zip(1u32..) {
            places[*at as usize] = Some(place);
        }
        let rests = self.rests(&places, &levels, bounds);
        let mut called: Vec<Vec<u32>> = vec![Vec::new(); chosen.len() + 1];
        for at in &chosen {
            if let Some(place) = places[nodes[*at as usize].parent as usize] {
                called[place as usize].push(*at);
            }
        }
        let name = |at: &u32| {
            let name = self.stacks.name(nodes[*at as usize].frame);
            name.map(|name| (&*name.text, name.part))
        };
        for list in &mut called {
            list.sort_by(|a, b| name(a).cmp(&name(b)));
        }
        let mut layout = FlameLayout {
            blocks: Vec::with_capacity(chosen.len() * 2 + 1),
            levels: 0,
            smaller: LeftOutFrames::default(),
            deeper: LeftOutFrames::default(),
        };
        for rest in &rests {
            let (smaller, deeper) = (rest.smaller, rest.deeper);
            let (out, deep) = (&mut layout.smaller, &mut layout.deeper);
            out.add(smaller.frames, smaller.weight, smaller.before);
            deep.add(deeper.frames, deeper.weight, deeper.before);
        }
        let least = least(bounds);
        // What is left to lay out, last first: stacks may be deeper than ours.
        let mut left = vec![LayoutTask::Node(ROOT, 0, 0)];
        while let Some(item) = left.pop() {
            let (at, parent, start) = match item {
                LayoutTask::Node(at, parent, start) => (at, parent, start),
                LayoutTask::Block(block) => {
                    layout.levels = layout.levels.max(block.level + 1);
                    layout.blocks.push(block);
                    continue;
                }
            };
            let Some(place) = places[at as usize] else {
                continue;
            };
            let own_place = layout.blocks.len() as u32;
            let level = levels[at as usize];
            let rest = &rests[place as usize];
            let mut block = self.block(at, parent, start, level, rest);
            let mut next = start;
            let from = left.len();
            for child in &called[place as usize] {
                left.push(LayoutTask::Node(*child, own_place, next));
                next = next.saturating_add(self.totals[*child as usize].amount);
            }
            if self.size(rest.smaller.weight, rest.smaller.before) >= least {
                block.hidden = rest.deeper.weight;
                left.push(LayoutTask::Block(rest.smaller.block(
                    own_place,
                    level + 1,
                    next,
                )));
            }
            left[from..].reverse();
            layout.levels = layout.levels.max(level + 1);
            layout.blocks.push(block);
        }
        layout
    }

    /// Returns by place what of its children has no box.
    fn rests(
        &self,
        places: &[Option<u32>],
        levels: &[u32],
        bounds: LayoutBounds,
    ) -> Vec<BoxlessRest> {
        let nodes = self.tree.nodes();
        let count = places.iter().flatten().count();
        let mut rests = vec![BoxlessRest::default(); count];
        // By node without a box, how many frames it and all that it called are.
        let mut frames: Vec<u64> = vec![0; nodes.len()];
        for at in (1..nodes.len()).rev() {
            if places[at].is_some() {
                continue;
            }
            let own = frames[at] + 1;
            let parent = nodes[at].parent as usize;
            let Some(place) = places[parent] else {
                frames[parent] += own;
                continue;
            };
            let rest = &mut rests[place as usize];
            let kind = match levels[at] > bounds.levels {
                true => &mut rest.deeper,
                false => &mut rest.smaller,
            };
            kind.add(own, self.totals[at], self.before[at]);
        }
        rests
    }

    fn block(&self, at: u32, parent: u32, start: u64, level: u32, rest: &BoxlessRest) -> Block {
        let node = &self.tree.nodes()[at as usize];
        let mut hidden = rest.smaller.weight;
        hidden.add(rest.deeper.weight);
        Block {
            content: match at {
                ROOT => BoxContent::All,
                _ => BoxContent::Frame(node.frame),
            },
            parent,
            level,
            start,
            weight: self.totals[at as usize],
            own: node.own,
            hidden,
            before: self.before[at as usize],
        }
    }
}

/// Returns how large a box is at least.
fn least(bounds: LayoutBounds) -> u64 {
    ((WHOLE / u128::from(bounds.parts.max(1))) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::FrameName;
    use crate::samples::of;

    const ALL: LayoutBounds = LayoutBounds {
        parts: u64::MAX,
        boxes: usize::MAX,
        name_bytes: usize::MAX,
        levels: u32::MAX,
    };

    /// Name, level, start, width.
    fn reported(stacks: &Stacks, layout: &FlameLayout) -> Vec<(String, u32, u64, u64)> {
        let text = |content| match content {
            BoxContent::All => "all".to_owned(),
            BoxContent::Frame(frame) => stacks.name(frame).unwrap().text.to_string(),
            BoxContent::Smaller(frames) => format!("{frames} smaller"),
        };
        let blocks = layout.blocks.iter();
        blocks
            .map(|b| (text(b.content), b.level, b.start, b.weight.amount))
            .collect()
    }

    fn expected(boxes: &[(&str, u32, u64, u64)]) -> Vec<(String, u32, u64, u64)> {
        let boxes = boxes.iter();
        boxes.map(|b| (b.0.to_owned(), b.1, b.2, b.3)).collect()
    }

    fn small() -> Stacks {
        of(&[
            (vec![1, 3], 50),
            (vec![1, 2], 20),
            (vec![1, 4, 5], 1),
            (vec![1, 6], 2),
            (vec![1], 7),
            (vec![0], 20),
        ])
    }

    #[test]
    fn children_lie_on_their_parents_by_name() {
        let stacks = small();
        let layout = FlameLayout::of(&stacks, ALL, |_| 2);
        let boxes = [
            ("all", 0, 0, 1000),
            ("f0", 1, 0, 200),
            ("f1", 1, 200, 800),
            ("f2", 2, 200, 200),
            ("f3", 2, 400, 500),
            ("f4", 2, 900, 10),
            ("f5", 3, 900, 10),
            ("f6", 2, 910, 20),
        ];
        assert_eq!(reported(&stacks, &layout), expected(&boxes));
        assert_eq!((layout.levels, layout.smaller.frames), (4, 0));
    }

    #[test]
    fn what_is_small_is_merged() {
        let stacks = small();
        let bounds = LayoutBounds { parts: 34, ..ALL };
        let layout = FlameLayout::of(&stacks, bounds, |_| 2);
        let merged = reported(&stacks, &layout).pop().unwrap();
        assert_eq!(merged, ("3 smaller".to_owned(), 2, 900, 30));
        assert_eq!(
            (layout.smaller.frames, layout.smaller.weight.samples),
            (3, 3)
        );
        // What is too small even together has no box, and is counted all the same.
        let layout = FlameLayout::of(&stacks, LayoutBounds { parts: 33, ..ALL }, |_| 2);
        assert_eq!(layout.blocks.len(), 5);
        assert_eq!(layout.blocks[2].hidden.amount, 30);
        assert_eq!(layout.smaller.weight.amount, 30);
    }

    #[test]
    fn a_picture_has_an_end() {
        let stacks = small();
        let few = LayoutBounds { boxes: 2, ..ALL };
        let reported_few = reported(&stacks, &FlameLayout::of(&stacks, few, |_| 2));
        let boxes = [
            ("all", 0, 0, 1000),
            ("f1", 1, 0, 800),
            ("f3", 2, 0, 500),
            ("4 smaller", 2, 500, 230),
            ("1 smaller", 1, 800, 200),
        ];
        assert_eq!(reported_few, expected(&boxes));
        let short = LayoutBounds {
            name_bytes: 4,
            ..ALL
        };
        assert_eq!(
            reported(&stacks, &FlameLayout::of(&stacks, short, |_| 2)),
            reported_few
        );
    }

    #[test]
    fn levels_have_an_end() {
        let deep: Vec<u32> = (0..10_000).map(|n| n % 3).collect();
        let stacks = of(&[(deep, 5)]);
        let layout = FlameLayout::of(&stacks, LayoutBounds { levels: 200, ..ALL }, |_| 2);
        assert_eq!((layout.levels, layout.blocks.len()), (201, 201));
        assert_eq!(
            (layout.deeper.frames, layout.deeper.weight.samples),
            (9800, 5)
        );
        assert_eq!(FlameLayout::of(&stacks, ALL, |_| 2).levels, 10_001);
    }

    #[test]
    fn a_difference_keeps_what_only_one_side_has() {
        let a = of(&[(vec![1], 50), (vec![2], 50)]);
        let b = of(&[(vec![1], 10), (vec![3], 10)]);
        let diff = Diff::of(&a, &b, FrameName::clone);
        let layout = FlameLayout::of_diff(&diff, LayoutBounds { parts: 3, ..ALL }, |_| 2);
        let reported: Vec<(u64, u64, u64)> = (layout.blocks.iter())
            .map(|b| (b.start, b.weight.amount, b.before.amount))
            .collect();
        assert_eq!(
            reported,
            [(0, 200, 1000), (0, 100, 500), (100, 0, 500), (100, 100, 0)]
        );
    }

    fn any() -> impl Strategy<Value = Vec<(Vec<u32>, u64)>> {
        let stack = prop::collection::vec(0u32..5, 0..7);
        prop::collection::vec((stack, 0u64..50), 0..30)
    }

    fn bounds() -> impl Strategy<Value = LayoutBounds> {
        let of = (1u64..200, 0usize..30, 0usize..40, 0u32..8);
        of.prop_map(|(parts, boxes, name_bytes, levels)| LayoutBounds {
            parts,
            boxes,
            name_bytes,
            levels,
        })
    }

    proptest! {
        #[test]
        fn nothing_is_lost(lists in any(), bounds in bounds(), wide in proptest::bool::ANY) {
            let stacks = of(&lists);
            let bounds = match wide {
                true => ALL,
                false => bounds,
            };
            let layout = FlameLayout::of(&stacks, bounds, |_| 2);
            prop_assert_eq!(layout.whole(), stacks.tree().totals()[0]);
            let mut inner: Vec<Weight> = layout.blocks.iter().map(|b| b.own).collect();
            let mut ends: Vec<u64> = layout.blocks.iter().map(|b| b.start).collect();
            let (mut own, mut merged) = (Weight::default(), Weight::default());
            for (block, at) in layout.blocks.iter().zip(0u32..) {
                own.add(block.own);
                merged.add(block.hidden);
                inner[at as usize].add(block.hidden);
                if let BoxContent::Smaller(frames) = block.content {
                    prop_assert!(frames > 0);
                    inner[at as usize].add(block.weight);
                    merged.add(block.weight);
                }
                if at == 0 {
                    continue;
                }
                prop_assert!(block.parent < at);
                let parent = &layout.blocks[block.parent as usize];
                prop_assert_eq!(block.level, parent.level + 1);
                prop_assert_eq!(block.start, ends[block.parent as usize]);
                let end = block.start + block.weight.amount;
                prop_assert!(end <= parent.start + parent.weight.amount);
                ends[block.parent as usize] = end;
                inner[block.parent as usize].add(block.weight);
            }
            for (block, inner) in layout.blocks.iter().zip(inner) {
                prop_assert_eq!(block.weight, inner);
            }
            let mut left_out = layout.smaller.weight;
            left_out.add(layout.deeper.weight);
            prop_assert_eq!(merged, left_out);
            own.add(left_out);
            prop_assert_eq!(own, layout.whole());
            let frames = layout.blocks.iter().filter(|b| matches!(b.content, BoxContent::Frame(_)));
            let count = frames.count();
            prop_assert!(count <= bounds.boxes);
            let all = stacks.tree().nodes().len() as u64 - 1;
            prop_assert_eq!(count as u64 + layout.smaller.frames + layout.deeper.frames, all);
            prop_assert!(bounds == ALL || layout.levels <= bounds.levels + 2);
        }
    }
}
