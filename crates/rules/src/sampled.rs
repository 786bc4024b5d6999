//! Shares of samples, and how surely they are more than some limit.

use analysis::{ProfileThread, SampleUnit};
use model::vcpu_from_comm;
use stacks::Weight;

use crate::evidence::{Evidence, Share, says};
use crate::{Base, Case, FindingCost};

/// Standard deviations on each side of a mean that hold 95 of 100.
const SIDES: f64 = 1.96;
/// A share is over a limit where that is wrong once in ten such recordings at most.
const SURE: f64 = 0.9;
/// Fewer samples are no share: samples of one thread come in bursts, so each says less than if it came alone.
const LEAST: u64 = 20;
/// Samples beyond this tell nothing that is not known.
const MOST: u64 = 1 << 20;

/// A part of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleShare {
    /// Samples of it.
    pub of: u64,
    /// All of them.
    pub all: u64,
}

impl SampleShare {
    /// Returns the share.
    pub(crate) fn share(self) -> f64 {
        self.of as f64 / self.all.max(1) as f64
    }

    /// Returns between what the share is, but for one in 20 such recordings (Wilson, 1927).
    pub(crate) fn bounds(self) -> (f64, f64) {
        let all = self.all as f64;
        if self.all == 0 {
            return (0.0, 1.0);
        }
        let square = SIDES * SIDES;
        let middle = self.share() + square / (2.0 * all);
        let away = self.share() * (1.0 - self.share()) / all + square / (4.0 * all * all);
        let away = SIDES * away.max(0.0).sqrt();
        let whole = 1.0 + square / all;
        let bound = |value: f64| (value / whole).clamp(0.0, 1.0);
        (bound(middle - away), bound(middle + away))
    }

    /// Returns how sure it is that the share is over a limit: how improbable as many samples are if it is not (the
    /// binomial distribution).
    pub(crate) fn above(self, limit: f64) -> f64 {
        // Beyond what shows anything the same share of fewer stands for it.
        let by = self.all.div_ceil(MOST).max(1);
        let (of, all) = (self.of / by, self.all / by);
        if of == 0 || limit <= 0.0 || limit >= 1.0 {
            return 0.0;
        }
        let odds = (limit / (1.0 - limit)).ln();
        let mut term = all as f64 * (1.0 - limit).ln();
        let mut below = term.exp();
        for at in 1..of.min(all + 1) {
            term += ((all - at + 1) as f64 / at as f64).ln() + odds;
            below += term.exp();
        }
        below.clamp(0.0, 1.0)
    }

    /// Returns whether it is over a limit, as surely as a finding has to be.
    pub(crate) fn is_above(self, limit: f64) -> bool {
        self.of >= LEAST && self.above(limit) >= SURE
    }

    /// Returns whether it is surely below one.
    pub(crate) fn is_below(self, limit: f64) -> bool {
        self.all > 0 && self.bounds().1 < limit
    }

    /// Says how many of what it is, and how well that is known.
    pub(crate) fn says(self, of: &'static str) -> Evidence {
        let (least, most) = self.bounds();
        says!(
            "{part} of {all} {of} ({share}; by chance {least} to {most})",
            part = self.of,
            all = self.all,
            of = of,
            share = Share(self.share()),
            least = Share(least),
            most = Share(most),
        )
    }
}

/// Returns whether a thread is a vCPU's: as KVM's events or its samples show, or by its name.
pub(crate) fn is_vcpu(case: &Case<'_>) -> impl Fn(&ProfileThread) -> bool + use<> {
    let tids = case.vcpu_tids();
    move |thread| {
        tids.contains(&thread.tid)
            || thread.guest.samples > 0 && !thread.is_idle()
            || thread.vm_pid.is_some() && vcpu_from_comm(&thread.comm).is_some()
    }
}

/// Returns the sum of what several threads weigh.
pub(crate) fn sum<'t>(all: impl IntoIterator<Item = (&'t ProfileThread, Weight)>) -> Weight {
    let mut sum = Weight::default();
    all.into_iter().for_each(|(_, weight)| sum.add(weight));
    sum
}

/// Whether a frame is marked.
pub(crate) fn has(marks: &[bool], frame: u32) -> bool {
    marks.get(frame as usize).copied().unwrap_or(false)
}

impl Case<'_> {
    /// Returns a cost of CPU time that was sampled, as a share of other samples' time; `None` where samples do not say
    /// how long each stands for.
    pub(crate) fn sampled_cost(&self, part: Weight, whole: u64, base: Base) -> Option<FindingCost> {
        let profile = self.picture.profile.as_ref()?;
        (profile.unit == SampleUnit::Nanoseconds).then(|| FindingCost::of(part.amount, whole, base))
    }

    /// Returns what a rule has to add that cannot tell by samples because kernel functions have no names in them, or
    /// there are no stacks; nothing where that is not so.
    pub(crate) fn nameless(&self) -> &'static str {
        match &self.picture.profile {
            Some(profile) if !profile.names_kernel() => {
                " Kernel functions have no names in its samples: give --kallsyms, a copy of the host's /proc/kallsyms."
            }
            Some(profile) if profile.kernel.0 > 0 && !profile.has_stacks() => {
                " Its samples have no stacks; record them with 'trapline record --for stacks'."
            }
            _ => "",
        }
    }

    /// Returns the command that shows samples by function.
    pub(crate) fn flame(&self) -> String {
        let name = self.picture.names.first().map_or("REC", String::as_str);
        format!("trapline flame {name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(of: u64, all: u64) -> SampleShare {
        SampleShare { of, all }
    }

    #[test]
    fn three_samples_are_nothing() {
        assert!(!sampled(3, 20).is_above(0.01));
        assert!(!sampled(25, 200).is_above(0.1));
        assert!(sampled(300, 2000).is_above(0.1));
        assert!(!sampled(0, 100).is_below(0.02));
        assert!(sampled(0, 1000).is_below(0.02));
        assert!(!sampled(0, 0).is_below(0.5));
        assert!(!sampled(0, 0).is_above(0.01));
    }

    #[test]
    fn bounds_are_wilsons() {
        // As any table of score intervals has it for 15 of 100: 9.31 % to 23.28 %.
        let (least, most) = sampled(15, 100).bounds();
        assert!((least - 0.0931).abs() < 1e-3 && (most - 0.2328).abs() < 1e-3);
        assert_eq!(sampled(0, 0).bounds(), (0.0, 1.0));
    }

    #[test]
    fn tails_are_the_binomial_distributions() {
        // P(X < 3) of 10 at 0.1 is 0.9298; of 20 at one half P(X < 15) is 0.9793.
        assert!((sampled(3, 10).above(0.1) - 0.929_809).abs() < 1e-5);
        assert!((sampled(15, 20).above(0.5) - 0.979_305).abs() < 1e-5);
        // So many that powers of the limit are nothing.
        assert!((sampled(500_001, 1_000_000).above(0.5) - 0.5).abs() < 0.01);
        assert!(sampled(u64::MAX / 2, u64::MAX).above(0.4) > 0.999);
        assert_eq!(sampled(5, 5).above(0.0), 0.0);
    }
}
