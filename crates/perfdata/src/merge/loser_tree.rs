//! The least of many numbers that take turns: a tree of losers (Knuth, The Art of Computer Programming, volume 3,
//! 5.4.1).
//!
//! Where the next record of each of many CPUs is to be found, a heap has to find its way down by comparing, each step
//! once the one before is known. Here the way up is known from the beginning, and no branch depends on a comparison.

/// Numbers, of which the least is known.
#[derive(Debug, Default)]
pub(crate) struct LoserTree {
    /// By node, the one that lost there; the first node is none, and the second is the root.
    losers: Vec<u128>,
    least: u128,
}

/// Stands for a leaf that has no number any more: none is larger.
pub(crate) const NO_NUMBER: u128 = u128::MAX;

impl LoserTree {
    /// Takes other numbers. A leaf is the place of one in their list.
    pub(crate) fn fill(&mut self, numbers: impl ExactSizeIterator<Item = u128>) {
        let leaves = numbers.len().next_power_of_two();
        // First the winners, from the leaves to the root.
        let mut winners = vec![NO_NUMBER; 2 * leaves];
        for (place, number) in winners.iter_mut().skip(leaves).zip(numbers) {
            *place = number;
        }
        self.losers.clear();
        self.losers.resize(leaves, NO_NUMBER);
        for node in (1..leaves).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            winners[node] = a.min(b);
            self.losers[node] = a.max(b);
        }
        self.least = winners[1];
    }

    /// Returns the least of all; [`NO_NUMBER`] where none is left.
    #[inline(always)]
    pub(crate) fn least(&self) -> u128 {
        self.least
    }

    /// Puts a number, or none, in place of the least, whose leaf is given.
    #[inline(always)]
    pub(crate) fn replace(&mut self, leaf: usize, number: u128) {
        let mut winner = number;
        let mut node = (self.losers.len() + leaf) / 2;
        while node > 0 {
            let Some(loser) = self.losers.get_mut(node) else {
                break;
            };
            let other = *loser;
            let loses = other < winner;
            *loser = if loses { winner } else { other };
            winner = if loses { other } else { winner };
            node /= 2;
        }
        self.least = winner;
    }

    /// Returns the least of all others than the least, whose leaf is given.
    pub(crate) fn second(&self, leaf: usize) -> u128 {
        let mut least = NO_NUMBER;
        let mut node = (self.losers.len() + leaf) / 2;
        while let Some(loser) = self.losers.get(node).filter(|_| node > 0) {
            least = least.min(*loser);
            node /= 2;
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_their_order() {
        for count in [1usize, 2, 3, 7, 8, 9, 64, 100] {
            // Of each leaf the next numbers are larger; the low digits say which leaf's they are.
            let number =
                |leaf: usize, turn: usize| ((turn * (7 + leaf % 5) + leaf) * 1000 + leaf) as u128;
            let mut turns = vec![0; count];
            let mut expected: Vec<u128> = (0..count)
                .flat_map(|leaf| (0..20 + leaf % 3).map(move |turn| number(leaf, turn)))
                .collect();
            expected.sort_unstable();
            let mut tree = LoserTree::default();
            tree.fill((0..count).map(|leaf| number(leaf, 0)));
            let mut found = Vec::new();
            while tree.least() != NO_NUMBER {
                let least = tree.least();
                let leaf = (least % 1000) as usize;
                if let Some(second) = expected.get(found.len() + 1)
                    && second % 1000 != least % 1000
                {
                    assert_eq!(tree.second(leaf), *second);
                }
                found.push(least);
                turns[leaf] += 1;
                let more = turns[leaf] < 20 + leaf % 3;
                let next = if more {
                    number(leaf, turns[leaf])
                } else {
                    NO_NUMBER
                };
                tree.replace(leaf, next);
            }
            assert_eq!(found, expected);
        }
    }
}
