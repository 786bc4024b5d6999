//! Where a second walk over a recording need not look: between the times that are asked for.
//!
//! The first walk keeps, at places that the recording offers, all that another walk needs to go on from there
//! (`analysis/src/resume.rs`): the place, a copy of the machine, and what the timeline has under way. At most 256 are
//! kept; every second is given up when there are more. Behind a time that is asked for, the second walk ends and goes
//! on from the last place before the next one, as soon as each lane has all up to there. Where the timeline gave
//! threads up no place is kept, and where there is none everything is walked. `session/tests/corpus/timeline_hops.rs`
//! compares both.

use analysis::{Resume, StretchPlan, TimelineWindow};

/// The times that are asked for, and the moments from which a walk can go on, by their numbers.
pub(crate) struct Hops {
    /// The times of the moments, in order.
    moments: Vec<u64>,
    /// Times that are asked for, in order and apart from each other.
    asked: Vec<(u64, u64)>,
    /// The first of them that is not past.
    at: usize,
    /// The moment from which the walk is to go on, once it has ended.
    next: Option<usize>,
    /// The time of the moment from which it went on last. Events that were written late may come behind it with earlier
    /// times: going by these alone, the walk would go on from the same moment without an end.
    from: u64,
}

impl Hops {
    /// Puts together what is asked for.
    pub(crate) fn new(resumes: &[Resume], plan: &StretchPlan, windows: &[TimelineWindow]) -> Hops {
        let windows = windows.iter().map(|window| (window.begin, window.end));
        let moments = resumes.iter().map(|one| one.place.time).collect();
        Hops::of(moments, windows.chain(plan.times()).collect())
    }

    /// The same, of the times of moments in order, and of times in any order.
    fn of(moments: Vec<u64>, mut asked: Vec<(u64, u64)>) -> Hops {
        asked.sort_unstable();
        asked.dedup_by(|next, last| {
            let touches = next.0 <= last.1;
            if touches {
                last.1 = last.1.max(next.1);
            }
            touches
        });
        let mut hops = Hops {
            moments,
            asked,
            at: 0,
            next: None,
            from: 0,
        };
        hops.next = hops.before_next(0);
        hops
    }

    /// Returns whether there is anywhere to go on from.
    pub(crate) fn any(&self) -> bool {
        !self.moments.is_empty()
    }

    /// Takes the moment from which the walk goes on.
    pub(crate) fn take(&mut self) -> Option<usize> {
        let next = self.next.take()?;
        self.from = *self.moments.get(next)?;
        Some(next)
    }

    /// Returns the last moment before the next time that is asked for, if it is later than now.
    fn before_next(&self, now: u64) -> Option<usize> {
        let (begin, _) = self.asked.get(self.at)?;
        let count = self.moments.partition_point(|moment| moment < begin);
        let last = count.checked_sub(1)?;
        let moment = *self.moments.get(last)?;
        (moment > now.max(self.from)).then_some(last)
    }

    /// Takes note of the time now. Returns whether the walk is to end, to go on at a later moment. `may` says whether
    /// nothing is left out if what is asked for up to a time is past.
    pub(crate) fn ends(&mut self, now: u64, may: impl FnOnce(usize, u64) -> bool) -> bool {
        while self.asked.get(self.at).is_some_and(|(_, end)| *end < now) {
            self.at += 1;
        }
        let Some(next) = self.before_next(now) else {
            return false;
        };
        let past = self.at.checked_sub(1).and_then(|last| self.asked.get(last));
        if past.is_none_or(|(_, end)| may(next, *end)) {
            self.next = Some(next);
        }
        self.next.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_goes_on_from_the_last_moment_before_what_is_asked_for() {
        let mut hops = Hops::of(vec![10, 20, 30, 40], vec![(25, 26), (45, 50)]);
        assert_eq!(hops.take(), Some(1));
        assert!(!hops.ends(25, |_, _| true));
        assert!(!hops.ends(27, |_, _| false));
        assert!(hops.ends(27, |next, past| (next, past) == (3, 26)));
        assert_eq!((hops.take(), hops.take()), (Some(3), None));
        assert!(!hops.ends(60, |_, _| true));
    }

    #[test]
    fn events_that_come_late_do_not_lead_back_to_the_same_moment() {
        let mut hops = Hops::of(vec![100], vec![(150, 160)]);
        assert_eq!(hops.take(), Some(0));
        for late in [1, 50, 99, 100, 120] {
            assert!(!hops.ends(late, |_, _| true), "{late}");
        }
        assert_eq!(hops.take(), None);
    }
}
