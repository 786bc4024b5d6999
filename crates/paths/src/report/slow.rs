//! What sets the slow instances apart, in numbers and sentences.

use event::index_of;
use words::share;

use super::data::{SlowCause, SlowReport, SlowestInstance};
use super::names::{PathWords, was_name};
use crate::notes::VcpuActivity;
use crate::slow::{self, SlowReason, SlowSplit};
use crate::tally::PathTally;
use crate::traits::InstanceTrait;

impl PathWords<'_> {
    pub(super) fn slow(&self, tally: &PathTally, split: &SlowSplit) -> SlowReport {
        let mean =
            |bucket: &crate::tally::TotalBucket| bucket.ns.checked_div(bucket.count).unwrap_or(0);
        let reasons = slow::reasons(tally, split);
        let because = self
            .where_time_went(tally, split)
            .into_iter()
            .chain(reasons.iter().map(|reason| self.because(split, reason)))
            .collect();
        SlowReport {
            threshold_ns: split.threshold_ns,
            found: split.found,
            count: split.slow.count,
            mean_ns: mean(&split.slow),
            fast_mean_ns: mean(&split.fast),
            slowest: self.slowest(tally),
            because,
        }
    }

    /// What is known of the slowest instance.
    fn slowest(&self, tally: &PathTally) -> Option<SlowestInstance> {
        let (example, stage, ns) = tally.slowest.as_ref()?;
        let stage = tally.stages.get(index_of(*stage))?;
        let mut text = format!(
            "{} of its time went from '{}' to '{}'",
            share::whole(*ns as f64 / example.total_ns.max(1) as f64),
            self.step(stage.chain, stage.from),
            self.step(stage.chain, stage.to)
        );
        let has = || {
            example
                .traits
                .iter()
                .filter_map(|at| tally.traits.get(index_of(*at)))
        };
        let vcpu = has().find_map(|one| match one {
            InstanceTrait::Vcpu(slot) => Some(self.task(*slot)),
            _ => None,
        });
        let was = has().find_map(|one| match one {
            InstanceTrait::Was(was) => Some(*was),
            _ => None,
        });
        let with = has().find_map(|one| match one {
            InstanceTrait::BusyWith(access) => Some(*access),
            _ => None,
        });
        if let (Some(vcpu), Some(was)) = (vcpu, was) {
            text.push_str(&format!("; the vCPU {vcpu} was "));
            text.push_str(match was {
                VcpuActivity::Running => "already running, so it was not woken",
                was => was_name(was),
            });
            if let Some(access) = with {
                text.push_str(&format!(", handling {}", self.access(&access)));
            }
        }
        let most = has()
            .filter_map(|one| match one {
                InstanceTrait::Accesses(access, true, level) => Some((*level, *access)),
                _ => None,
            })
            .max_by_key(|(level, _)| *level);
        if let Some((level, access)) = most.filter(|(level, _)| *level > 1) {
            text.push_str(&format!(
                "; meanwhile it exited to user space at least {} on {}",
                words::times(level.into()),
                self.access(&access)
            ));
        }
        text.push('.');
        let instance = example.number;
        Some(SlowestInstance { instance, text })
    }

    /// The stage that takes much more of the slow instances' time than of the others'.
    fn where_time_went(&self, tally: &PathTally, split: &SlowSplit) -> Option<SlowCause> {
        let share = |bucket: &crate::tally::TotalBucket, at: usize| {
            let ns = bucket.stages.get(at).map_or(0, |sum| sum.ns);
            ns as f64 / bucket.ns.max(1) as f64
        };
        if split.slow.count == 0 || split.fast.count == 0 || tally.stages.len() < 2 {
            return None;
        }
        let (at, stage) = tally.stages.iter().enumerate().max_by(|(a, _), (b, _)| {
            let gain = |at: usize| share(&split.slow, at) - share(&split.fast, at);
            gain(*a).total_cmp(&gain(*b))
        })?;
        let (slow_share, fast_share) = (share(&split.slow, at), share(&split.fast, at));
        if slow_share < 0.4 || slow_share - fast_share < 0.2 {
            return None;
        }
        let name = format!(
            "{} → {}",
            self.step(stage.chain, stage.from),
            self.step(stage.chain, stage.to)
        );
        let examples = |bucket: &crate::tally::TotalBucket| {
            let mean = bucket.ns.checked_div(bucket.count).unwrap_or(0);
            let mut all: Vec<_> = bucket.examples.iter().collect();
            all.sort_by_key(|one| (one.total_ns.abs_diff(mean), one.number));
            all.iter()
                .take(2)
                .map(|one| one.number)
                .collect::<Vec<u64>>()
        };
        Some(SlowCause {
            feature: format!("time in {name}"),
            slow_share,
            fast_share,
            text: format!(
                "The time went from '{}' to '{}': {} of the slow instances' time, {} of the others'.",
                self.step(stage.chain, stage.from),
                self.step(stage.chain, stage.to),
                share::whole(slow_share),
                share::whole(fast_share)
            ),
            gain: slow_share - fast_share,
            slow_instances: examples(&split.slow),
            fast_instances: examples(&split.fast),
        })
    }

    fn because(&self, split: &SlowSplit, reason: &SlowReason) -> SlowCause {
        let share = |part: u64, all: u64| {
            if all == 0 {
                0.0
            } else {
                part as f64 / all as f64
            }
        };
        let (slow_share, fast_share) = (
            share(reason.slow, split.slow.count),
            share(reason.fast, split.fast.count),
        );
        let more = slow_share > fast_share;
        let feature = self.feature(&reason.what);
        let text = format!(
            "{}: {} of the slow instances, {} of the others.",
            self.sentence(&reason.what),
            share::whole(slow_share),
            share::whole(fast_share)
        );
        // Examples are typical: those nearest to their group's mean.
        let examples = |bucket: &crate::tally::TotalBucket, having: bool| {
            let mean = bucket.ns.checked_div(bucket.count).unwrap_or(0);
            let mut all: Vec<_> = bucket
                .examples
                .iter()
                .filter(|one| one.traits.contains(&reason.number) == having)
                .collect();
            all.sort_by_key(|one| (one.total_ns.abs_diff(mean), one.number));
            let numbers = all.iter().take(2).map(|one| one.number);
            numbers.collect::<Vec<u64>>()
        };
        SlowCause {
            feature,
            slow_share,
            fast_share,
            text,
            gain: reason.gain,
            slow_instances: examples(&split.slow, more),
            fast_instances: examples(&split.fast, !more),
        }
    }
}
