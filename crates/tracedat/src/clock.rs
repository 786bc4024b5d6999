//! From the time a record carries to the time that is shown.
//!
//! Source: `lib/trace-cmd/trace-input.c` of trace-cmd (`timestamp_calc`): first the guest's time is shifted to
//! its host's, then ticks of the time stamp counter become nanoseconds, then fixed offsets are added.

use crate::info::{ShiftSample, TraceMetadata, Tsc2Nsec};

/// The conversion of one CPU's times.
#[derive(Debug, Clone, Default)]
pub(crate) struct CpuClock {
    /// Corrections in order of their time; empty for none.
    samples: Vec<ShiftSample>,
    /// Whether a correction between two samples is interpolated, or that of the earlier one is taken.
    interpolate: bool,
    tsc: Option<Tsc2Nsec>,
    /// Added last, in nanoseconds (or ticks).
    offset: u64,
    /// Nothing but `offset` applies.
    plain: bool,
}

/// Bit 0 of the flags of the time shift option: corrections are to be interpolated.
const INTERPOLATE: u32 = 1;

impl CpuClock {
    /// Returns the clock of the CPU at this place of a buffer's list of CPUs.
    ///
    /// Only the top buffer is shifted: the reference reader applies a time shift to no other.
    pub(crate) fn new(info: &TraceMetadata, cpu: usize, top: bool) -> CpuClock {
        let mut clock = CpuClock {
            offset: info
                .date_offset_ns
                .wrapping_add(info.offset_ns)
                .cast_unsigned(),
            tsc: info.tsc2nsec.filter(|t| t.mult != 0),
            ..CpuClock::default()
        };
        if let Some(shift) = info.time_shift.as_ref().filter(|_| top)
            && let Some(samples) = shift.cpus.get(cpu)
        {
            clock.samples = samples.clone();
            clock.samples.sort_by_key(|s| s.time);
            clock.samples.dedup_by_key(|s| s.time);
            clock.interpolate = shift.flags & INTERPOLATE != 0;
        }
        clock.plain = clock.samples.is_empty() && clock.tsc.is_none();
        clock
    }

    /// Converts the time of a record.
    #[inline(always)]
    pub(crate) fn convert(&self, raw: u64) -> u64 {
        if self.plain {
            raw.wrapping_add(self.offset)
        } else {
            self.convert_all(raw)
        }
    }

    fn convert_all(&self, raw: u64) -> u64 {
        let mut time = self.shift(raw);
        if let Some(tsc) = self.tsc {
            time = wrapped((u128::from(time) * u128::from(tsc.mult)) >> tsc.shift.min(127));
        }
        time.wrapping_add(self.offset)
    }

    fn shift(&self, raw: u64) -> u64 {
        let (min, max) = match self.samples.as_slice() {
            [] => return raw,
            // A single correction is added without its scaling.
            [only] => return raw.wrapping_add(only.offset.cast_unsigned()),
            samples => {
                // The pair around the time; the first or last pair for times outside.
                let after = samples.partition_point(|s| s.time.cast_unsigned() <= raw);
                let at = after.saturating_sub(1).min(samples.len() - 2);
                (samples[at], samples[at + 1])
            }
        };
        let correction = if self.interpolate {
            let span = i128::from(max.time) - i128::from(min.time);
            let part = (i128::from(raw) - i128::from(min.time))
                .saturating_mul(i128::from(max.offset) - i128::from(min.offset));
            // Times of a pair differ, but by a wrapped negative one they may differ the wrong way round.
            i128::from(min.offset) + part.saturating_add(span / 2).checked_div(span).unwrap_or(0)
        } else {
            i128::from(min.offset)
        };
        let scaled = u128::from(raw) * u128::from(min.scaling.cast_unsigned());
        // A shift that no product reaches leaves nothing.
        let fraction = u32::try_from(min.fraction).map_or(127, |f| f.min(127));
        wrapped(scaled >> fraction).wrapping_add(wrapped(correction.cast_unsigned()))
    }
}

/// Returns what of a sum or product is a time: times wrap at 64 bits, as those of the reference reader do.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "times wrap at 64 bits")]
fn wrapped(number: u128) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_that_cannot_be_true_is_not_taken_for_a_small_one() {
        let sample = |time, fraction| ShiftSample {
            time,
            offset: 7,
            scaling: 1 << 8,
            fraction,
        };
        let shifted = |fraction| {
            let clock = CpuClock {
                samples: vec![sample(0, fraction), sample(100, fraction)],
                ..CpuClock::default()
            };
            clock.convert(1000)
        };
        assert_eq!(shifted(8), 1007);
        assert_eq!(shifted(0), 256_007);
        assert_eq!(shifted(1 << 32), 7);
        assert_eq!(shifted(-1), 7);
        assert_eq!(shifted(i64::MIN), 7);
    }
}
