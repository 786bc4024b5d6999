//! Garbage between records.

use super::Walk;
use super::out::Out;
use crate::record::{HEADER, Header, kind};

/// How far a reader looks for the next record behind garbage, in bytes.
const MAX_RESYNC: usize = 1 << 20;

impl<O: Out, const BIG: bool> Walk<'_, '_, '_, O, BIG> {
    /// Looks for the next place where two plausible records follow each other.
    pub(super) fn resync(&mut self, data: &[u8], at: usize, end: usize) -> Option<usize> {
        self.note(
            at,
            "no record here: its kind or size is impossible".to_owned(),
        );
        let plausible = |at: usize| {
            let header = Header::read::<BIG>(&data[..end], at)?;
            let known = header.kind != 0 && header.kind <= kind::HIGHEST;
            let next = at.checked_add(header.size)?;
            (known && header.size > HEADER && header.size % 8 == 0 && next <= end).then_some(next)
        };
        let limit = end.min(at.saturating_add(MAX_RESYNC));
        // Records begin at multiples of 8 from the first one.
        let mut try_at = at + 8;
        while try_at < limit {
            if let Some(next) = plausible(try_at)
                && (next == end || plausible(next).is_some())
            {
                return Some(try_at);
            }
            try_at += 8;
        }
        None
    }
}
