//! The longest of many durations, with the time at which each began: what a tail is made of, and whether its durations
//! come together or one by one.

/// Durations that are kept at least, if there are as many.
pub const KEPT: usize = 256;

/// The longest durations, in bounded memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Longest {
    /// Duration and beginning, in no order.
    list: Vec<(u64, u64)>,
    /// The longest duration that was not kept.
    beyond: Option<u64>,
}

impl Longest {
    /// Adds a duration that began at some time, both in nanoseconds.
    #[inline]
    pub fn add(&mut self, ns: u64, begin: u64) {
        if self.beyond.is_some_and(|beyond| ns <= beyond) {
            return;
        }
        self.list.push((ns, begin));
        if self.list.len() >= 2 * KEPT {
            self.shrink();
        }
    }

    #[cold]
    fn shrink(&mut self) {
        self.list
            .select_nth_unstable_by(KEPT, |one, other| other.cmp(one));
        let beyond = self.list.drain(KEPT..).map(|(ns, _)| ns).max();
        self.beyond = self.beyond.max(beyond);
    }

    /// Returns those of a duration and longer, as duration and beginning, in the order of their beginnings; `None` if
    /// there were more than are kept.
    pub fn reaching(&self, bound: u64) -> Option<Vec<(u64, u64)>> {
        if self.beyond.is_some_and(|beyond| beyond >= bound) {
            return None;
        }
        let mut out: Vec<(u64, u64)> = self
            .list
            .iter()
            .filter(|(ns, _)| *ns >= bound)
            .copied()
            .collect();
        out.sort_unstable_by_key(|(ns, begin)| (*begin, *ns));
        Some(out)
    }

    /// Returns the longest few, as duration and beginning, longest first; of equal ones the earlier comes first.
    pub fn first(&self, most: usize) -> Vec<(u64, u64)> {
        let mut out = self.list.clone();
        out.sort_unstable_by_key(|(ns, begin)| (std::cmp::Reverse(*ns), *begin));
        out.truncate(most);
        out
    }

    /// Returns the longest duration; 0 if there is none.
    pub fn max(&self) -> u64 {
        self.list.iter().map(|(ns, _)| *ns).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_kept_with_their_times() {
        let mut longest = Longest::default();
        let ns = |at: u64| at * 7919 % 10_007;
        for at in 0..10_000 {
            longest.add(ns(at), at);
        }
        assert!(longest.list.len() < 2 * KEPT);
        let bound = 9_900;
        let expected: Vec<(u64, u64)> = (0..10_000)
            .map(|at| (ns(at), at))
            .filter(|(ns, _)| *ns >= bound)
            .collect();
        assert!(expected.len() > 50);
        assert_eq!(longest.reaching(bound), Some(expected));
        // More of them than are kept: what is missing is not made up.
        assert_eq!(longest.reaching(100), None);
        assert_eq!(longest.max(), (0..10_000).map(ns).max().unwrap());
        assert_eq!(longest.first(1)[0].0, longest.max());
        assert!(longest.first(9).is_sorted_by(|one, other| one.0 >= other.0));
        assert_eq!(Longest::default().reaching(0), Some(Vec::new()));
    }

    #[test]
    fn equal_durations_are_all_there_or_none() {
        let mut longest = Longest::default();
        for at in 0..3 * KEPT as u64 {
            longest.add(500, at);
        }
        assert_eq!(longest.reaching(500), None);
        assert_eq!(longest.reaching(501), Some(Vec::new()));
    }
}
