//! Samples that need no order: they go out when they are found.

use super::out::{RecordOrigin, RecordOutlet};
use super::scan::WantedSample;
use super::visitor::SampleWish;

/// What went out as it was found.
#[derive(Debug, Default)]
pub(super) struct UnorderedSamples {
    /// The newest time of all that came, of what the next flush lets out, and of the rest.
    newest: u64,
    newest_next: u64,
    newest_of_rest: u64,
    /// Samples that came after a later one had gone out.
    pub out_of_order: u64,
    /// The visitor wants no more.
    pub stop: bool,
}

impl UnorderedSamples {
    /// Returns the newest time of all that came.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Lets a sample out that need not be in order, or leaves it to the tally. Returns whether it did. `sent` has the
    /// time up to which the next flush lets out, and that of the newest sample that went.
    #[inline(always)]
    pub(super) fn takes<O: RecordOutlet>(
        &mut self,
        one: &WantedSample,
        from: RecordOrigin<'_>,
        sent: (u64, u64),
        out: &mut O,
    ) -> bool {
        let WantedSample { time, attr, .. } = *one;
        match one.want {
            SampleWish::AnyOrder => {
                self.stop |= out.sample(from, one.at, time, attr).is_break();
            }
            SampleWish::Tallied => {}
            _ => return false,
        }
        self.went(time, sent);
        true
    }

    /// Takes note of a sample that does not wait.
    #[inline(always)]
    fn went(&mut self, time: u64, sent: (u64, u64)) {
        let (flush_to, last_out) = sent;
        self.out_of_order += u64::from(time < last_out);
        self.newest = self.newest.max(time);
        let newest = match time <= flush_to {
            true => &mut self.newest_next,
            false => &mut self.newest_of_rest,
        };
        *newest = time.max(*newest);
    }

    /// Takes note of a flush up to a time. Returns the newest time of what it let out.
    pub(super) fn settle(&mut self, limit: u64) -> u64 {
        let rest = std::mem::take(&mut self.newest_of_rest);
        let next = std::mem::take(&mut self.newest_next);
        if rest <= limit {
            return next.max(rest);
        }
        self.newest_next = rest;
        next
    }
}
