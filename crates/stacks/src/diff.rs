//! What changed between two recordings' stacks.

use crate::folded::path;
use crate::named::{FrameName, FrameOwner, Stacks};
use crate::tree::{ROOT, Weight};

/// Differences that are smaller than so many standard errors are called noise.
const NOISE: f64 = 2.0;

/// What a function weighs on both sides, the earlier recording first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionChange {
    /// Its name.
    pub name: FrameName,
    /// Samples that were in it.
    pub own: [Weight; 2],
    /// Those and samples in what it called; where it called itself they count once.
    pub total: [Weight; 2],
}

/// The stacks of two recordings, A and B: one tree that has all of both.
#[derive(Debug, Clone)]
pub struct Diff {
    /// What ends at nodes is B's.
    union: Stacks,
    /// What ended at each node in A.
    before: Vec<Weight>,
    wholes: [Weight; 2],
}

impl Diff {
    /// Returns the stacks of two recordings side by side. `name` gives what is called by a number that changes from one
    /// recording to the next, such as a thread, a name that both have.
    pub fn of(a: &Stacks, b: &Stacks, name: impl Fn(&FrameName) -> FrameName) -> Diff {
        let most = a.tree().nodes().len() + b.tree().nodes().len();
        let mut union = Stacks::new(most);
        let mut before = vec![Weight::default(); most];
        for (side, stacks) in [a, b].into_iter().enumerate() {
            let names = stacks.names().iter();
            let numbers: Vec<u32> = names.map(|n| union.number(name(n))).collect();
            let nodes = stacks.tree().nodes();
            let mut ours: Vec<u32> = Vec::with_capacity(nodes.len());
            for (node, at) in nodes.iter().zip(0u32..) {
                let parent = ours.get(node.parent as usize).copied();
                let frame = numbers.get(node.frame as usize).copied();
                let child = match (parent, frame) {
                    (Some(parent), Some(frame)) if at != ROOT => {
                        union.tree_mut().child(parent, frame).unwrap_or(parent)
                    }
                    _ => ROOT,
                };
                match side {
                    0 => before[child as usize].add(node.own),
                    _ => union.tree_mut().weigh(child, node.own),
                }
                ours.push(child);
            }
        }
        before.truncate(union.tree().nodes().len());
        let whole = |stacks: &Stacks| {
            let nodes = stacks.tree().nodes().iter();
            nodes.fold(Weight::default(), |mut sum, node| {
                sum.add(node.own);
                sum
            })
        };
        let wholes = [whole(a), whole(b)];
        Diff {
            union,
            before,
            wholes,
        }
    }

    /// Returns the stacks of both; what ends at nodes is B's.
    pub fn stacks(&self) -> &Stacks {
        &self.union
    }

    /// Returns by node what ended there in A.
    pub fn before(&self) -> &[Weight] {
        &self.before
    }

    /// Returns what all of A weighs, and all of B.
    pub fn wholes(&self) -> [Weight; 2] {
        self.wholes
    }

    /// Returns what weight of A is in stacks that B does not have, and what weight of B is in stacks that A does not
    /// have.
    pub fn alone(&self) -> [Weight; 2] {
        let nodes = self.union.tree().nodes();
        let totals = self.union.tree().totals();
        let before = self.union.tree().totals_of(&self.before);
        let mut alone = [Weight::default(); 2];
        for (number, node) in nodes.iter().enumerate().skip(1) {
            if totals[number].samples == 0 {
                alone[0].add(self.before[number]);
            }
            if before[number].samples == 0 {
                alone[1].add(node.own);
            }
        }
        alone
    }

    /// Returns all functions, those whose own share changed most first, then by the share with what they called.
    pub fn functions(&self) -> Vec<FunctionChange> {
        let now: Vec<Weight> = self.union.tree().nodes().iter().map(|n| n.own).collect();
        let sides = [&self.before, &now].map(|own| self.union.weigh_functions(own));
        let [a, b] = sides;
        let both = a.into_iter().zip(b).map(|(a, b)| FunctionChange {
            name: a.name,
            own: [a.own, b.own],
            total: [a.total, b.total],
        });
        let mut changes: Vec<FunctionChange> =
            both.filter(|c| c.name.part != FrameOwner::Group).collect();
        let size = |pair: [Weight; 2]| self.change(pair).abs();
        changes.sort_by(|x, y| {
            let own = size(y.own).total_cmp(&size(x.own));
            let total = size(y.total).total_cmp(&size(x.total));
            own.then(total).then_with(|| x.name.text.cmp(&y.name.text))
        });
        changes
    }

    /// Returns both sides' shares, 0 to 1, of what two weights are.
    pub fn shares(&self, pair: [Weight; 2]) -> [f64; 2] {
        let of = |side: usize| pair[side].amount as f64 / self.wholes[side].amount.max(1) as f64;
        [of(0), of(1)]
    }

    /// Returns by how much a share grew from A to B, -1 to 1.
    pub fn change(&self, pair: [Weight; 2]) -> f64 {
        let [a, b] = self.shares(pair);
        b - a
    }

    /// Returns whether two recordings of the same load could differ so by chance: the shares differ by no more than two
    /// standard errors, as if each sample were drawn by itself. The error of a share is that of a ratio of sums, where
    /// the samples in question weigh the same, and so do the others.
    pub fn is_noise(&self, pair: [Weight; 2]) -> bool {
        let variance = |side: usize| {
            let (part, whole) = (pair[side], self.wholes[side]);
            let share = part.amount as f64 / whole.amount.max(1) as f64;
            // The sum of squares of weights that are alike is the square of their sum by their number.
            let squares = |share: f64, samples: u64| share * share / samples.max(1) as f64;
            let others = whole.samples.saturating_sub(part.samples);
            let inside = squares(share, part.samples) * (1.0 - share) * (1.0 - share);
            inside + squares(1.0 - share, others) * share * share
        };
        let error = (variance(0) + variance(1)).sqrt();
        self.change(pair).abs() <= NOISE * error
    }

    /// Hands out all stacks that weigh anything on a side, in the order of their frames' names: the numbers of the
    /// names, outermost frame first, and what they weigh in A and B.
    pub fn each(&self, mut stack: impl FnMut(&[u32], [Weight; 2])) {
        let nodes = self.union.tree().nodes();
        let mut path = Vec::new();
        self.union.visit(|at, enters| {
            if at == ROOT {
                return;
            }
            if !enters {
                path.pop();
                return;
            }
            let node = &nodes[at as usize];
            path.push(node.frame);
            let pair = [self.before[at as usize], node.own];
            if pair.iter().any(|weight| weight.samples > 0) {
                stack(&path, pair);
            }
        });
    }
}

/// Writes stacks with a column for A and one for B, as `difffolded.pl -n` (FlameGraph) does: A's weights are scaled to
/// B's whole and rounded down. Stacks are written as [`crate::folded()`] does. `line` gets each line without its line
/// feed.
pub fn folded_pair(diff: &Diff, most: usize, mut line: impl FnMut(&str)) {
    let [whole_a, whole_b] = diff.wholes.map(|whole| u128::from(whole.amount));
    let mut text = String::new();
    diff.each(|frames, [a, b]| {
        path(&diff.union, frames, most, &mut text);
        let scaled = u128::from(a.amount) * whole_b / whole_a.max(1);
        text.push_str(&format!(" {scaled} {}", b.amount));
        line(&text);
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::StackTree;
    use crate::samples::of;

    fn stacks(lists: &[(&[&str], u64)]) -> Stacks {
        let mut names: Vec<String> = Vec::new();
        let mut tree = StackTree::new(1 << 16);
        for (list, samples) in lists {
            let frames: Vec<u32> = (list.iter())
                .map(|name| {
                    let known = names.iter().position(|known| known == name);
                    known.unwrap_or_else(|| {
                        names.push((*name).to_owned());
                        names.len() - 1
                    }) as u32
                })
                .collect();
            let weight = Weight {
                samples: *samples,
                amount: samples * 10,
            };
            tree.add(frames, weight);
        }
        let name = |frame: u32| {
            let text = names[frame as usize].clone();
            let is_thread = text.starts_with("vhost");
            let part = if is_thread {
                FrameOwner::Group
            } else {
                FrameOwner::Kernel
            };
            FrameName {
                text: text.into(),
                part,
            }
        };
        Stacks::of(&tree, name, |_| false)
    }

    fn threads_alike(name: &FrameName) -> FrameName {
        let text = match name.part {
            FrameOwner::Group => "vhost".to_owned(),
            _ => name.text.to_string(),
        };
        let part = name.part;
        FrameName {
            text: text.into(),
            part,
        }
    }

    fn lines(diff: &Diff) -> Vec<String> {
        let mut lines = Vec::new();
        folded_pair(diff, 1000, |line| lines.push(line.to_owned()));
        lines
    }

    #[test]
    fn both_sides_stand_in_one_tree() {
        let a = stacks(&[
            (&["vhost-854", "read", "copy"], 30),
            (&["vhost-854", "gone"], 10),
        ]);
        let b = stacks(&[
            (&["vhost-2989", "read", "copy"], 10),
            (&["vhost-2989", "read"], 5),
            (&["vhost-2989", "new"], 5),
        ]);
        let diff = Diff::of(&a, &b, threads_alike);
        let expected = [
            "vhost;gone 50 0",
            "vhost;new 0 50",
            "vhost;read 0 50",
            "vhost;read;copy 150 100",
        ];
        assert_eq!(lines(&diff), expected);
        assert_eq!(diff.alone().map(|weight| weight.samples), [10, 5]);
        let functions = diff.functions();
        let own: Vec<(&str, f64)> = (functions.iter())
            .map(|function| (&*function.name.text, diff.change(function.own)))
            .collect();
        let expected = [
            ("copy", -0.25),
            ("gone", -0.25),
            ("new", 0.25),
            ("read", 0.25),
        ];
        assert_eq!(own, expected);
        let read = &functions[3];
        assert_eq!(diff.shares(read.total), [0.75, 0.75]);
    }

    #[test]
    fn few_samples_say_nothing() {
        let a = stacks(&[(&["f"], 3), (&["g"], 1000)]);
        let b = stacks(&[(&["f"], 6), (&["g"], 1000)]);
        let more = stacks(&[(&["f"], 60), (&["g"], 1000)]);
        let f = |diff: &Diff| {
            let functions = diff.functions();
            let f = functions.into_iter().find(|f| &*f.name.text == "f");
            diff.is_noise(f.unwrap().own)
        };
        assert!(f(&Diff::of(&a, &b, FrameName::clone)));
        assert!(!f(&Diff::of(&a, &more, FrameName::clone)));
    }

    fn any() -> impl Strategy<Value = Vec<(Vec<u32>, u64)>> {
        let stack = prop::collection::vec(0u32..4, 0..6);
        prop::collection::vec((stack, 1u64..50), 0..20)
    }

    proptest! {
        #[test]
        fn a_recording_beside_itself_is_no_change(lists in any()) {
            let stacks = of(&lists);
            let diff = Diff::of(&stacks, &stacks, FrameName::clone);
            for function in diff.functions() {
                prop_assert_eq!(function.own[0], function.own[1]);
                prop_assert!(diff.is_noise(function.total));
            }
            prop_assert_eq!(diff.alone(), [Weight::default(); 2]);
        }

        #[test]
        fn each_side_is_what_it_was(a in any(), b in any()) {
            let (a, b) = (of(&a), of(&b));
            let diff = Diff::of(&a, &b, FrameName::clone);
            let sum = |stacks: &Stacks| stacks.tree().totals()[0];
            prop_assert_eq!(diff.wholes(), [sum(&a), sum(&b)]);
            for (side, stacks) in [&a, &b].into_iter().enumerate() {
                let mut kept = Vec::new();
                stacks.each(|frames, weight| {
                    let names: Vec<_> = frames.iter().map(|f| stacks.name(*f).cloned()).collect();
                    kept.push((names, weight));
                });
                let mut found = Vec::new();
                diff.each(|frames, pair| {
                    let names = frames.iter().map(|f| diff.stacks().name(*f).cloned());
                    if pair[side].samples > 0 {
                        found.push((names.collect::<Vec<_>>(), pair[side]));
                    }
                });
                prop_assert_eq!(kept, found);
            }
        }
    }
}
