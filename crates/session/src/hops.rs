//! Where a second walk over a recording need not look: between the times that are asked for.
//!
//! The first walk keeps, at places that the recording offers, all that another walk needs to go on from there
//! (`analysis/src/resume.rs`): the place, a copy of the machine, and what the timeline has under way. At most 256 are
//! kept; every second is given up when there are more. Behind a time that is asked for, the second walk ends and goes
//! on from the last place before the next one, as soon as each lane has all up to there. Where the timeline gave
//! threads up no place is kept, and where there is none everything is walked. `session/tests/corpus/timeline_hops.rs`
//! compares both.

use analysis::{Resume, StretchPlan, TimelineWindow};

/// The times that are asked for, and the moments from which a walk can go on.
pub(crate) struct Hops<'r> {
    resumes: &'r [Resume],
    /// Times that are asked for, in order and apart from each other.
    asked: Vec<(u64, u64)>,
    /// The first of them that is not past.
    at: usize,
    /// The moment from which the walk is to go on, once it has ended.
    next: Option<&'r Resume>,
}

impl<'r> Hops<'r> {
    /// Puts together what is asked for.
    pub(crate) fn new(
        resumes: &'r [Resume],
        plan: &StretchPlan,
        windows: &[TimelineWindow],
    ) -> Hops<'r> {
        let windows = windows.iter().map(|window| (window.begin, window.end));
        let mut asked: Vec<(u64, u64)> = windows.chain(plan.times()).collect();
        asked.sort_unstable();
        asked.dedup_by(|next, last| {
            let touches = next.0 <= last.1;
            if touches {
                last.1 = last.1.max(next.1);
            }
            touches
        });
        let mut hops = Hops {
            resumes,
            asked,
            at: 0,
            next: None,
        };
        hops.next = hops.before_next(0);
        hops
    }

    /// Returns whether there is anywhere to go on from.
    pub(crate) fn any(&self) -> bool {
        !self.resumes.is_empty()
    }

    /// Takes the moment from which the walk goes on.
    pub(crate) fn take(&mut self) -> Option<&'r Resume> {
        self.next.take()
    }

    /// Returns the last moment before the next time that is asked for, if it is later than now.
    fn before_next(&self, now: u64) -> Option<&'r Resume> {
        let (begin, _) = self.asked.get(self.at)?;
        let count = { self.resumes }.partition_point(|one| one.place.time < *begin);
        let last = self.resumes.get(count.checked_sub(1)?)?;
        (last.place.time > now).then_some(last)
    }

    /// Takes note of the time now. Returns whether the walk is to end, to go on at a later moment. `may` says whether
    /// nothing is left out if what is asked for up to a time is past.
    pub(crate) fn ends(&mut self, now: u64, may: impl FnOnce(&Resume, u64) -> bool) -> bool {
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
