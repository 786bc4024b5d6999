//! Functions that change together: callers and callees, of which one is reported.

use std::collections::HashMap;

/// Changes that are looked at together.
pub(crate) const MOST: usize = 64;
/// Two that share this much of their changes are one.
const ALIKE: f64 = 0.8;

/// A thread or a function that changed, in itself or with what it called.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChangedWeight {
    /// Its number.
    pub key: usize,
    /// Whether it is what was sampled in the function itself.
    pub own: bool,
    /// What it took, on both sides.
    pub rates: [f64; 2],
    /// How probable that is by chance.
    pub chance: f64,
}

impl ChangedWeight {
    /// Returns by how much it changed.
    pub(crate) fn delta(&self) -> f64 {
        self.rates[1] - self.rates[0]
    }

    /// Returns whether it changed by more than a share of it.
    pub(crate) fn is_large(&self, least: f64) -> bool {
        let most = self.rates[0].abs().max(self.rates[1].abs());
        most > 0.0 && self.delta().abs() >= least * most
    }
}

/// What changed, and how much of it was sampled in one stack with what else.
pub(crate) struct SampledTogether<'i> {
    items: &'i [ChangedWeight],
    /// By key, the items of it: with what it called, and itself.
    bits: HashMap<usize, [u64; 2]>,
    /// By set of items, by how much stacks changed that have just these.
    sets: HashMap<u64, f64>,
    /// By item, how far it is from the innermost function, and how much that was weighed with.
    depths: Vec<(f64, f64)>,
}

impl<'i> SampledTogether<'i> {
    /// `items` are the first [`MOST`] that changed, largest change first.
    pub(crate) fn new(items: &'i [ChangedWeight]) -> SampledTogether<'i> {
        let mut bits: HashMap<usize, [u64; 2]> = HashMap::new();
        for (item, bit) in items.iter().zip(0u32..MOST as u32) {
            bits.entry(item.key).or_default()[usize::from(item.own)] |= 1 << bit;
        }
        SampledTogether {
            items,
            bits,
            sets: HashMap::new(),
            depths: vec![(0.0, 0.0); items.len()],
        }
    }

    /// Adds a stack of a side: its innermost function, and all keys in it, innermost first.
    pub(crate) fn add(&mut self, side: usize, own: Option<usize>, all: &[usize], amount: f64) {
        let mut set = 0;
        for (depth, key) in all.iter().enumerate() {
            let Some([total, itself]) = self.bits.get(key).copied() else {
                continue;
            };
            let here = total | if own == Some(*key) { itself } else { 0 };
            set |= here;
            let mut left = here;
            while left != 0 {
                let (sum, weight) = &mut self.depths[left.trailing_zeros() as usize];
                *sum += depth as f64 * amount;
                *weight += amount;
                left &= left - 1;
            }
        }
        if set != 0 {
            *self.sets.entry(set).or_default() += if side == 0 { -amount } else { amount };
        }
    }

    /// Returns by how much stacks changed that have two items.
    fn both(&self, one: usize, other: usize) -> f64 {
        let mask = 1u64 << one | 1 << other;
        let sets = self.sets.iter();
        sets.filter(|(set, _)| *set & mask == mask)
            .map(|(_, delta)| delta)
            .sum()
    }

    /// Returns whether two changed by the same stacks.
    fn alike(&self, one: usize, other: usize) -> bool {
        let [a, b] = [one, other].map(|at| self.items[at].delta());
        let both = self.both(one, other);
        let most = a.abs().max(b.abs());
        a * b > 0.0 && both * a > 0.0 && both.abs() >= ALIKE * most
    }

    fn depth(&self, at: usize) -> f64 {
        let (sum, weight) = self.depths[at];
        if weight > 0.0 { sum / weight } else { 0.0 }
    }

    /// Returns the items to tell, largest change first: of each family the innermost that has its change, with the
    /// thread in which it happened where that is one. `is_thread` says which keys are threads.
    pub(crate) fn tell(
        &self,
        is_thread: &dyn Fn(usize) -> bool,
    ) -> Vec<(ChangedWeight, Option<usize>)> {
        let count = self.items.len();
        let mut claimed = vec![false; count];
        let mut reported = Vec::new();
        for first in 0..count {
            if claimed[first] {
                continue;
            }
            let family: Vec<usize> = (0..count)
                .filter(|at| !claimed[*at] && (*at == first || self.alike(first, *at)))
                .collect();
            let deepest = family.iter().copied().min_by(|a, b| {
                let inner = self.depth(*a).total_cmp(&self.depth(*b));
                // What a function called is nothing more than itself here.
                inner.then(self.items[*a].own.cmp(&self.items[*b].own))
            });
            let chosen = deepest.unwrap_or(first);
            // What changed with the one that is reported is reported too.
            let with = (0..count).filter(|at| self.alike(chosen, *at));
            let threads: Vec<usize> = with.collect();
            let thread = (threads.iter().chain(&family))
                .map(|at| self.items[*at].key)
                .find(|key| is_thread(*key) && *key != self.items[chosen].key);
            for at in threads.into_iter().chain(family) {
                claimed[at] = true;
            }
            reported.push((self.items[chosen].clone(), thread));
        }
        reported.sort_by(|(a, _), (b, _)| b.delta().abs().total_cmp(&a.delta().abs()));
        reported
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(key: usize, own: bool, a: f64, b: f64) -> ChangedWeight {
        ChangedWeight {
            key,
            own,
            rates: [a, b],
            chance: 0.0,
        }
    }

    /// Keys: 9 is the thread, which calls 1, which calls 2, which calls 3 or 4.
    fn reported(
        items: &[ChangedWeight],
        a: &[(&[usize], f64)],
        b: &[(&[usize], f64)],
    ) -> Vec<(usize, bool, Option<usize>)> {
        let mut together = SampledTogether::new(items);
        for (side, stacks) in [a, b].iter().enumerate() {
            for (stack, amount) in *stacks {
                together.add(side, stack.first().copied(), stack, *amount);
            }
        }
        let reported = together.tell(&|key| key == 9);
        reported
            .into_iter()
            .map(|(item, thread)| (item.key, item.own, thread))
            .collect()
    }

    #[test]
    fn a_chain_that_is_gone_is_reported_by_its_innermost() {
        let items = [
            item(9, false, 10.0, 0.0),
            item(1, false, 10.0, 0.0),
            item(2, false, 10.0, 0.0),
            item(3, false, 9.0, 0.0),
            item(3, true, 9.0, 0.0),
        ];
        let a: [(&[usize], f64); 2] = [(&[3, 2, 1, 9], 9.0), (&[2, 1, 9], 1.0)];
        assert_eq!(reported(&items, &a, &[]), [(3, false, Some(9))]);
    }

    #[test]
    fn what_two_share_is_reported_of_the_caller_and_of_each() {
        let items = [
            item(2, false, 0.0, 10.0),
            item(1, false, 0.0, 10.0),
            item(3, false, 0.0, 6.0),
            item(4, false, 0.0, 4.0),
        ];
        let b: [(&[usize], f64); 2] = [(&[3, 2, 1, 9], 6.0), (&[4, 2, 1, 9], 4.0)];
        let reported = reported(&items, &[], &b);
        assert_eq!(
            reported,
            [(2, false, None), (3, false, None), (4, false, None)]
        );
    }

    #[test]
    fn more_here_and_less_there_are_two_changes() {
        let items = [item(3, false, 8.0, 0.0), item(4, false, 0.0, 8.0)];
        let a: [(&[usize], f64); 1] = [(&[3, 2, 1, 9], 8.0)];
        let b: [(&[usize], f64); 1] = [(&[4, 2, 1, 9], 8.0)];
        assert_eq!(reported(&items, &a, &b).len(), 2);
    }
}
