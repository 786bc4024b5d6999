//! How the clocks of a host and its guest compared, as recordings say it.

use agent::{ClockSample, ClockSamples};
use record::together::ClockComparison;

/// Returns both comparisons, as far as there are any.
pub fn clock_comparisons(clocks: &ClockSamples) -> Vec<ClockComparison> {
    let both = [clocks.begin, clocks.end].into_iter().flatten();
    both.map(|one: ClockSample| ClockComparison {
        host_ns: one.host_ns,
        guest_ns: one.guest_ns,
        round_ns: one.round_ns,
    })
    .collect()
}
