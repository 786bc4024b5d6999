//! Garbage between records.

use super::PerfWalk;
use super::out::RecordOutlet;
use super::reading::WalkPlan;
use crate::pipe::payload_behind;
use crate::record::{HEADER, PerfRecordHeader, kind};

/// How far a reader looks for the next record behind garbage, in bytes.
const MAX_RESYNC: usize = 1 << 20;
/// Records that have to follow one another before it is believed that they are some: what is left of a torn record may
/// look like two.
const CHAIN: usize = 16;

impl<O: RecordOutlet, const BIG: bool> PerfWalk<'_, '_, '_, O, BIG> {
    /// Looks for the next place where plausible records follow each other.
    pub(super) fn resync(&mut self, data: &[u8], at: usize, end: usize) -> Option<usize> {
        self.note(
            at,
            "no record here: its kind or size is impossible".to_owned(),
        );
        self.reading.resync::<BIG>(data, at, end)
    }
}

impl WalkPlan<'_, '_> {
    /// Returns the next place behind garbage at which plausible records follow each other.
    pub(crate) fn resync<const BIG: bool>(
        &self,
        data: &[u8],
        at: usize,
        end: usize,
    ) -> Option<usize> {
        let data = data.get(..end).unwrap_or_default();
        let limit = end.min(at.saturating_add(MAX_RESYNC));
        // Records begin at multiples of 8 from the first one.
        let mut places = (at + 8..limit).step_by(8);
        places.find(|&try_at| {
            let mut next = try_at;
            for _ in 0..CHAIN {
                match self.behind::<BIG>(data, next) {
                    Some(behind) => next = behind,
                    None => return false,
                }
                if next >= end {
                    break;
                }
            }
            true
        })
    }

    /// Returns where the record at a place ends, if it can be one.
    fn behind<const BIG: bool>(&self, data: &[u8], at: usize) -> Option<usize> {
        let header = PerfRecordHeader::read::<BIG>(data, at)?;
        let whole = header.size > HEADER && header.size.is_multiple_of(8);
        let round = header.kind == kind::FINISHED_ROUND && header.size == HEADER;
        if header.is_none() || !(whole || round) {
            return None;
        }
        let next = at.checked_add(header.size)?;
        let body = data.get(at + HEADER..next)?;
        match header.kind {
            kind::SAMPLE => self.attr_of::<BIG>(body)?,
            _ => 0,
        };
        // Behind these stands more than their size says.
        match header.kind {
            kind::HEADER_TRACING_DATA | kind::AUXTRACE => {
                let endian = self.recording.endian;
                next.checked_add(payload_behind(header.kind, body, endian))
            }
            _ => Some(next),
        }
    }
}
