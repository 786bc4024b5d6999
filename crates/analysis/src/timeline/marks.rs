//! Marks: moments and short times on the lane of all, in a bounded number, with exact counts.

/// Marks of one list while a recording is walked; they are cut down to half when there are more.
const KEPT: usize = 4096;
/// The largest grain is 2 to this many nanoseconds.
const LARGEST: u32 = 63;
/// Stands for a mark of several things.
pub(crate) const SEVERAL: u32 = u32::MAX;

/// One thing that happened, or several near each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// When the first of them began.
    pub begin: u64,
    /// When the last of them ended.
    pub end: u64,
    /// How many they are.
    pub count: u64,
    /// The longest of them.
    pub max_ns: u64,
    /// How many events were lost, of marks of losses.
    pub amount: u64,
    /// Of what they are: in a report the number of a name, 0 where they are of several things.
    pub what: u32,
}

/// Marks of one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct MarkList {
    list: Vec<Mark>,
    /// Those that begin between two multiples of the grain, 2 to this many nanoseconds, are one; at 0 none are.
    shift: u32,
}

impl MarkList {
    pub(crate) fn add(&mut self, mark: Mark) {
        self.list.push(mark);
        if self.list.len() >= KEPT {
            self.fit(KEPT / 2);
        }
    }

    /// Makes them fit into a number, and puts them in order.
    pub(crate) fn fit(&mut self, most: usize) {
        self.list.sort_by_key(|mark| (mark.begin, mark.end));
        self.merge();
        while self.list.len() > most.max(4) && self.shift < LARGEST {
            self.shift += 1;
            self.merge();
        }
    }

    fn merge(&mut self) {
        let shift = self.shift;
        if shift == 0 {
            return;
        }
        self.list.dedup_by(|next, last| {
            let same = last.begin >> shift == next.begin >> shift;
            if same {
                last.end = last.end.max(next.end);
                last.count = last.count.saturating_add(next.count);
                last.max_ns = last.max_ns.max(next.max_ns);
                last.amount = last.amount.saturating_add(next.amount);
                if last.what != next.what {
                    last.what = SEVERAL;
                }
            }
            same
        });
    }

    /// Returns the marks, in order, no more than a number.
    pub(crate) fn taken(mut self, most: usize) -> Vec<Mark> {
        self.fit(most);
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_counted_however_many_there_are() {
        let mut marks = MarkList::default();
        let mut longest = 0;
        for n in 0..100_000u64 {
            // In no order, as instances complete.
            let begin = n.wrapping_mul(0x9e37_79b9) % 1_000_003;
            longest = longest.max(n % 977);
            marks.add(Mark {
                begin,
                end: begin + n % 977,
                count: 1,
                max_ns: n % 977,
                amount: 2,
                what: 1 + (n % 2) as u32,
            });
            assert!(marks.list.len() <= KEPT);
        }
        let taken = marks.taken(100);
        assert!(taken.len() <= 100 && taken.len() > 25, "{}", taken.len());
        assert!(taken.is_sorted_by_key(|mark| mark.begin));
        assert_eq!(taken.iter().map(|mark| mark.count).sum::<u64>(), 100_000);
        assert_eq!(taken.iter().map(|mark| mark.amount).sum::<u64>(), 200_000);
        assert_eq!(taken.iter().map(|mark| mark.max_ns).max(), Some(longest));
        assert!(taken.iter().all(|mark| mark.what == SEVERAL));
    }

    #[test]
    fn marks_of_one_moment_are_one_and_few_stay_as_they_are() {
        let mark = |begin, what| Mark {
            begin,
            end: begin + 5,
            count: 1,
            max_ns: 5,
            amount: 0,
            what,
        };
        let mut marks = MarkList::default();
        marks.add(mark(9, 1));
        marks.add(mark(3, 2));
        assert_eq!(marks.clone().taken(8), [mark(3, 2), mark(9, 1)]);
        for _ in 0..2 * KEPT {
            marks.add(mark(u64::MAX - 9, 4));
        }
        let taken = marks.taken(4);
        let last = taken.last().unwrap();
        assert_eq!((last.count, last.what), (2 * KEPT as u64, 4));
    }
}
