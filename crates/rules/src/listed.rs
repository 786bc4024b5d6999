//! Shares that `perf report` printed: what rules find in them where samples themselves were not recorded.
//!
//! A table is of samples too, but rounded, of an event that a text may not name, and what it does not list proves
//! nothing. So what rests on one is no all-clear, and no finding that is high.

use analysis::{PrintedShares, SampledShare, plain};

use crate::evidence::{Evidence, Share, says};
use crate::sampled::SampleShare;
use crate::{Base, Case, Finding, FindingCost, Severity};

/// A share of what was sampled while CPUs were not idle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ListedShare {
    pub part: f64,
    /// Samples that it is of, where the text says how many there are.
    samples: Option<u64>,
}

/// How sure a share is of which nobody says of how many samples it is.
const UNCOUNTED: f64 = 0.5;

impl ListedShare {
    /// Returns a part of some part of all samples.
    pub(crate) fn of(shares: &PrintedShares, part: f64, whole: f64) -> ListedShare {
        let part = match whole > 0.0 {
            true => (part / whole).min(1.0),
            false => 0.0,
        };
        let samples = shares.samples().map(|all| (all as f64 * whole) as u64);
        ListedShare { part, samples }
    }

    /// Returns how sure it is that the share is over a limit: by chance, where samples are counted. Without, it has to
    /// be twice as much. `None` where that is not enough for a finding.
    pub(crate) fn above(self, limit: f64) -> Option<f64> {
        let Some(all) = self.samples else {
            return (self.part >= 2.0 * limit).then_some(UNCOUNTED);
        };
        let sampled = SampleShare {
            of: (self.part * all as f64) as u64,
            all,
        };
        sampled.is_above(limit).then(|| sampled.above(limit))
    }

    /// Makes a finding as severe as the share is, and no more than a table is worth.
    pub(crate) fn rank(self, finding: &mut Finding, base: Base) {
        let cost = FindingCost::of((self.part * 1e4) as u64, 10_000, base);
        finding.at_least = match self.samples {
            Some(_) => cost.severity().min(Severity::Medium),
            None => Severity::Low,
        };
        finding.at_most = Severity::Medium;
    }

    /// Says what it is of.
    pub(crate) fn says(self, of: &'static str) -> Evidence {
        let share = says!("{share} of {of}", share = Share(self.part), of = of);
        match self.samples {
            Some(samples) => share.then(says!(
                " ({samples} samples or more, by what perf report printed)",
                samples = samples
            )),
            None => share.then(says!(" (perf report does not say of how many)")),
        }
    }
}

/// Whether a row is one of these functions of the kernel, or of a guest's.
pub(crate) fn is_in(row: &SampledShare, of_guest: bool, names: &[&str]) -> bool {
    let level = match of_guest {
        true => row.level == Some('g'),
        false => row.level == Some('k'),
    };
    let name = row.symbol.as_deref().unwrap_or_default();
    level && names.contains(&plain(name))
}

impl<'a> Case<'a> {
    /// Returns shares of the CPUs' time that perf report printed, where there are no samples.
    pub(crate) fn listed(&self) -> Option<&'a PrintedShares> {
        let shares = self.picture.shares.as_ref();
        let shares = shares.filter(|_| self.picture.profile.is_none());
        shares.filter(|shares| shares.are_of_time() && shares.by_function.is_some())
    }
}
