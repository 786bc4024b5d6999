//! How two machines' clocks are compared.

/// One comparison: the host asked and the guest answered, each with the time that its events' clock had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockSample {
    /// The middle between asking and having the answer, on the host's clock, ns.
    pub host_ns: u64,
    /// When the guest answered, on its own, ns.
    pub guest_ns: u64,
    /// How long the answer took, ns: half of it is what the sample is wrong by at most.
    pub round_ns: u64,
}

impl ClockSample {
    /// Returns what was found by asking and answering at these times; `None` where time ran backward.
    pub fn of(asked_ns: u64, guest_ns: u64, answered_ns: u64) -> Option<ClockSample> {
        let round_ns = answered_ns.checked_sub(asked_ns)?;
        Some(ClockSample {
            host_ns: asked_ns + round_ns / 2,
            guest_ns,
            round_ns,
        })
    }

    /// Returns the sample that says most: that whose answer took the least time.
    pub fn best(samples: &[ClockSample]) -> Option<ClockSample> {
        samples.iter().copied().min_by_key(|one| one.round_ns)
    }

    /// Returns the host's time less the guest's, ns; `None` where it has no room in 64 bits.
    pub fn offset_ns(&self) -> Option<i64> {
        i64::try_from(i128::from(self.host_ns) - i128::from(self.guest_ns)).ok()
    }
}

/// How the clocks compared before and behind a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockSamples {
    /// The best of the samples before it.
    pub begin: Option<ClockSample>,
    /// The best of those behind it.
    pub end: Option<ClockSample>,
}

/// Parts of a million by which two machines' clocks run apart at most. The kernel's NTP slews by 500
/// (`include/linux/timex.h`, `MAXFREQ`), and each of them may be slewed; crystals are off by a tenth of that.
const DRIFT_PPM: u128 = 1500;

impl ClockSamples {
    /// Returns whether a clock can have said both: as much time went by on the guest's as on the host's.
    pub fn is_plausible(&self) -> bool {
        let (Some(begin), Some(end)) = (self.begin, self.end) else {
            return true;
        };
        let passed = |begin: u64, end: u64| i128::from(end) - i128::from(begin);
        let host = passed(begin.host_ns, end.host_ns);
        let guest = passed(begin.guest_ns, end.guest_ns);
        let apart = host.unsigned_abs() * DRIFT_PPM / 1_000_000;
        let unsure = u128::from(begin.round_ns) + u128::from(end.round_ns);
        (guest - host).unsigned_abs() <= apart + unsure
    }

    /// Returns the guest's times of the comparisons, ns; `None` where there are not two.
    pub fn guest_span_ns(&self) -> Option<[u64; 2]> {
        Some([self.begin?.guest_ns, self.end?.guest_ns])
    }

    /// Returns the host's time less the guest's, ns: the middle of both, where there are two.
    pub fn offset_ns(&self) -> Option<i64> {
        let offset = |one: Option<ClockSample>| one.and_then(|one| one.offset_ns());
        match (offset(self.begin), offset(self.end)) {
            (Some(begin), Some(end)) => {
                i64::try_from((i128::from(begin) + i128::from(end)) / 2).ok()
            }
            (begin, end) => begin.or(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_answer_counts() {
        let slow = ClockSample::of(1000, 50, 9000).expect("a sample");
        let quick = ClockSample::of(10_000, 2000, 10_100).expect("a sample");
        assert_eq!(ClockSample::best(&[slow, quick]), Some(quick));
        assert_eq!((quick.host_ns, quick.round_ns), (10_050, 100));
        assert_eq!(quick.offset_ns(), Some(8050));
        assert_eq!(ClockSample::of(10, 0, 9), None);
        assert_eq!(ClockSample::best(&[]), None);
    }

    #[test]
    fn the_offset_is_the_middle_of_begin_and_end() {
        let of = |host_ns, guest_ns| {
            Some(ClockSample {
                host_ns,
                guest_ns,
                round_ns: 1,
            })
        };
        let begin = of(100, 1100);
        let end = of(200, 1220);
        assert_eq!(ClockSamples { begin, end }.offset_ns(), Some(-1010));
        assert_eq!(ClockSamples { begin, end: None }.offset_ns(), Some(-1000));
        assert_eq!(ClockSamples::default().offset_ns(), None);
        let far = of(u64::MAX, 0);
        let both = ClockSamples {
            begin: far,
            end: far,
        };
        assert_eq!(both.offset_ns(), None);
    }

    #[test]
    fn a_clock_that_runs_otherwise_is_not_believed() {
        let of = |host_ns, guest_ns| {
            Some(ClockSample {
                host_ns,
                guest_ns,
                round_ns: 1000,
            })
        };
        let said = |guest_ns| ClockSamples {
            begin: of(1_000_000_000, 5_000_000_000),
            end: of(11_000_000_000, guest_ns),
        };
        assert!(said(15_000_000_000).is_plausible());
        assert!(said(15_000_000_000 + 15_001_000).is_plausible());
        assert!(!said(15_000_000_000 + 15_003_000).is_plausible());
        for guest_ns in [0, 5_000_000_000, 25_000_000_000, u64::MAX] {
            assert!(!said(guest_ns).is_plausible(), "{guest_ns}");
        }
        let one = ClockSamples {
            end: None,
            ..said(0)
        };
        assert!(one.is_plausible() && one.guest_span_ns().is_none());
    }
}
