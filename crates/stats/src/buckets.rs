//! Counts of durations by bucket.

/// Buckets to a power of two: a bucket is at most 1/64 of its value wide.
const SUB_BITS: u32 = 6;
const SUB: usize = 1 << SUB_BITS;
/// Powers of two that have buckets: all below 64 are one, and a `u64` has 58 more.
const OCTAVES: usize = 64 - SUB_BITS as usize + 1;

/// How many durations are in each bucket. Waits of one thread lie within a few powers of two, so only those that
/// have any are kept.
#[derive(Debug, Clone)]
pub(crate) struct DurationBuckets {
    /// By power of two where in the list its counts are, counted from one; 0 where it has none.
    places: [u8; OCTAVES],
    octaves: Vec<[u32; SUB]>,
}

impl Default for DurationBuckets {
    fn default() -> DurationBuckets {
        DurationBuckets {
            places: [0; OCTAVES],
            octaves: Vec::new(),
        }
    }
}

/// The order in which powers of two got their first duration makes no difference.
impl PartialEq for DurationBuckets {
    fn eq(&self, other: &DurationBuckets) -> bool {
        self.counts().eq(other.counts())
    }
}

impl DurationBuckets {
    /// Counts a duration.
    #[inline]
    pub(crate) fn add(&mut self, ns: u64) {
        let index = bucket_of(ns);
        let count = &mut self.octave(index >> SUB_BITS)[index & (SUB - 1)];
        *count = count.saturating_add(1);
    }

    /// Returns the counts of a power of two, and begins them where it has none.
    #[inline]
    fn octave(&mut self, at: usize) -> &mut [u32; SUB] {
        if self.places[at] == 0 {
            self.begin(at);
        }
        &mut self.octaves[usize::from(self.places[at]) - 1]
    }

    #[cold]
    fn begin(&mut self, at: usize) {
        // Not twice as many: most have one or two, and a hundred thousand threads have several of these.
        self.octaves.reserve_exact(1);
        self.octaves.push([0; SUB]);
        self.places[at] = self.octaves.len() as u8;
    }

    /// Adds the counts of others.
    pub(crate) fn merge(&mut self, other: &DurationBuckets) {
        for (at, theirs) in other.by_octave() {
            for (mine, theirs) in self.octave(at).iter_mut().zip(theirs) {
                *mine = mine.saturating_add(*theirs);
            }
        }
    }

    /// Returns the powers of two that have durations, with their counts, the lowest first.
    fn by_octave(&self) -> impl Iterator<Item = (usize, &[u32; SUB])> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(at, &place)| {
            let octave = usize::from(place).checked_sub(1)?;
            Some((at, self.octaves.get(octave)?))
        })
    }

    /// Returns the middle of each bucket that has durations, and how many, the lowest first.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_octave().flat_map(|(at, octave)| {
            let counts = octave.iter().enumerate();
            let counts = counts.filter(|(_, count)| **count > 0);
            counts.map(move |(sub, &count)| (middle_of((at << SUB_BITS) + sub), u64::from(count)))
        })
    }
}

/// Returns the bucket of a duration: itself below 64, then 64 buckets to each power of two.
#[inline]
fn bucket_of(ns: u64) -> usize {
    if ns < SUB as u64 {
        return ns as usize;
    }
    let octave = 63 - ns.leading_zeros() - SUB_BITS;
    let sub = (ns >> octave) as usize & (SUB - 1);
    ((octave as usize + 1) << SUB_BITS) + sub
}

/// Returns the middle of a bucket's range.
fn middle_of(index: usize) -> u64 {
    if index < SUB {
        return index as u64;
    }
    let octave = (index >> SUB_BITS) - 1;
    let low = ((SUB + (index & (SUB - 1))) as u64) << octave;
    low + ((1u64 << octave) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_all_numbers_in_order() {
        let mut last = 0;
        for shift in 0..64 {
            for ns in [1u64 << shift, (1u64 << shift) | (1u64 << shift >> 1)] {
                let index = bucket_of(ns);
                assert!(index >= last);
                last = index;
                let middle = middle_of(index);
                assert!(middle.abs_diff(ns) <= ns / 32, "{ns} {middle}");
            }
        }
        assert_eq!(bucket_of(u64::MAX), OCTAVES * SUB - 1);
    }

    /// Of a hundred thousand threads each has some.
    #[test]
    fn what_has_no_durations_takes_no_memory() {
        let mut buckets = DurationBuckets::default();
        for ns in [4_000_000, 4_100_000, 4_200_000, 4_200_001] {
            buckets.add(ns);
        }
        assert_eq!(buckets.octaves.capacity(), 2);
        assert!(size_of::<DurationBuckets>() <= 88);
        let counts: Vec<u64> = buckets.counts().map(|(_, count)| count).collect();
        assert_eq!(counts, [1, 1, 2]);
    }

    #[test]
    fn the_order_of_durations_makes_no_difference() {
        let (mut up, mut down) = (DurationBuckets::default(), DurationBuckets::default());
        for shift in 0..64 {
            up.add(1 << shift);
            down.add(1 << (63 - shift));
        }
        assert_eq!(up, down);
        up.merge(&down);
        assert!(up.counts().all(|(_, count)| count == 2));
    }
}
