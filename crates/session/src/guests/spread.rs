//! Stretches of time that are spread over a recording, so that what is kept of it does not grow with its length.

/// Length of a stretch, as a power of two in nanoseconds: about half a second.
const STRETCH_BITS: u32 = 29;

/// Which stretches are kept: all, every second one, every fourth one, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Spread {
    /// One in `2^thinned` is kept.
    thinned: u32,
}

impl Spread {
    /// Returns whether the stretch is kept that a time is in.
    #[inline]
    pub(crate) fn has(self, time: u64) -> bool {
        let mask = (1u64 << self.thinned) - 1;
        (time >> STRETCH_BITS) & mask == 0
    }

    /// Returns whether all of the stretches from one time to another are kept.
    pub(crate) fn has_all(self, from: u64, to: u64) -> bool {
        let (first, last) = (from >> STRETCH_BITS, to >> STRETCH_BITS);
        last - first <= 1 && self.has(from) && self.has(to)
    }

    /// Keeps every second one of the stretches that were kept until now. Returns `false` if there is next to nothing
    /// left to leave out.
    pub(crate) fn thin(&mut self) -> bool {
        let may = self.thinned < 32;
        self.thinned += u32::from(may);
        may
    }

    /// Returns whether it keeps all.
    pub(crate) fn is_all(self) -> bool {
        self.thinned == 0
    }

    /// Returns the one of both that keeps less: what it keeps the other one keeps too.
    pub(crate) fn and(self, other: Spread) -> Spread {
        Spread {
            thinned: self.thinned.max(other.thinned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thinner_one_keeps_others_keep() {
        let mut thin = Spread::default();
        let all = thin;
        for _ in 0..3 {
            assert!(thin.thin());
        }
        let stretch = 1u64 << STRETCH_BITS;
        let kept = |spread: Spread| (0..64).filter(|at| spread.has(at * stretch)).count();
        assert_eq!((kept(all), kept(thin)), (64, 8));
        assert_eq!(all.and(thin), thin);
        assert_eq!(thin.and(all), thin);
    }

    #[test]
    fn a_stretch_of_two_is_kept_if_both_are() {
        let mut spread = Spread::default();
        let stretch = 1u64 << STRETCH_BITS;
        assert!(spread.has_all(stretch - 1, stretch));
        spread.thin();
        assert!(!spread.has_all(stretch - 1, stretch));
        assert!(spread.has_all(0, stretch - 1));
    }
}
