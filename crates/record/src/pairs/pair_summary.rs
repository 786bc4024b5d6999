//! What became of a pair.

use serde::Serialize;

use crate::file::Feature;

/// What became of a pair.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PairSummary {
    /// The first event.
    pub first: String,
    /// The second one.
    pub second: String,
    /// Pairs that are shorter were not written, ns.
    pub least_ns: u64,
    /// How often the first event came while it was looked at, and the second one in all.
    pub firsts: u64,
    /// See [`PairSummary::firsts`].
    pub seconds: u64,
    /// Records of the first event that were written.
    pub written: u64,
    /// How often the second event came when the first had not been seen: before it, or between two windows.
    pub unseen: u64,
    /// Pairs that were shorter than they had to be.
    pub short: u64,
    /// For how long the first event was looked at, and how long the recording is, ns.
    pub seen_ns: u64,
    /// See [`PairSummary::seen_ns`].
    pub recorded_ns: u64,
}

impl PairSummary {
    /// Returns what a recording says of its pairs ([`Feature::Trapline`]); `None` where it has none.
    pub fn said(pairs: &[PairSummary]) -> Option<Feature> {
        let said = serde_json::json!({ "pairs": pairs });
        let json = serde_json::to_vec(&said).unwrap_or_default();
        (!pairs.is_empty()).then_some(Feature::Trapline(json))
    }

    /// Returns for which part of the recording the first event was looked at: 0 to 1.
    pub fn share_seen(&self) -> f64 {
        match self.recorded_ns {
            0 => 1.0,
            all => (self.seen_ns as f64 / all as f64).min(1.0),
        }
    }
}
