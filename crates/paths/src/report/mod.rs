//! What was found, in numbers and sentences.

mod data;
mod instance;
mod names;
mod related;
mod slow;
mod wording;

use std::collections::BTreeSet;

use model::Machine;

use crate::engine::Paths;
use crate::lang::{PathGrouping, PathStep};
use crate::ledger::{LedgerSums, PathLedger};
use crate::slow::{SlowSplit, split};
use crate::tally::{DropReason, DurationSum, PathTally, offset_of};
use crate::traits::InstanceTrait;
use crate::uses::{AccessReport, DeviceReport};

pub use data::{
    ClearedPath, GroupReport, PathReport, SlowCause, SlowReport, SlowestInstance, StageReport,
    TraitSum,
};
pub use instance::{InstanceReport, StepReport};
pub use names::AccessNamer;
use names::PathWords;
pub use related::complete as complete_reports;
pub use wording::{InstanceWords, RecentWords};

impl Paths {
    /// Returns what was found of every path, in the order in which they were given.
    pub fn report(&self, machine: &Machine, names: AccessNamer<'_>) -> Vec<PathReport> {
        let tallies = self.tallies().iter().enumerate();
        tallies
            .filter_map(|(path, tally)| {
                let words = self.words_of(path, machine, names)?;
                Some(words.path_report(tally))
            })
            .collect()
    }
}

impl Paths {
    /// Returns the addresses that a back end (slot) works for, as far as the paths that are followed show.
    pub(super) fn notified(&self, back_end: u32) -> BTreeSet<u64> {
        let uses = self.tallies().iter().flat_map(|tally| &tally.uses.devices);
        let of_it = uses.filter(|(_, one)| one.back_end == back_end);
        of_it.filter_map(|((_, address, _), _)| *address).collect()
    }
}

impl PathWords<'_> {
    fn path_report(&self, tally: &PathTally) -> PathReport {
        let split = split(tally);
        let mut order: Vec<usize> = (0..tally.stages.len()).collect();
        order.sort_by_key(|at| {
            let stage = &tally.stages[*at];
            (stage.chain, stage.from, stage.to)
        });
        let stages = order
            .into_iter()
            .map(|at| self.stage(tally, at, split.as_ref()))
            .collect();
        let dropped = DropReason::ALL
            .into_iter()
            .map(|why| (why, tally.dropped[why as usize]))
            .filter(|(_, count)| *count > 0)
            .collect();
        let groups = self.groups(tally);
        PathReport {
            name: self.path.name.clone(),
            about: self.path.about.clone(),
            count: tally.count,
            total: tally.total.clone(),
            longest: tally.longest.clone(),
            ledger: self.ledger(tally),
            stages,
            // Without the machine's nodes it is grouped by nothing.
            by: self
                .path
                .by
                .filter(|by| *by != PathGrouping::NodeDistance || !groups.is_empty())
                .map(by_name),
            groups,
            dropped,
            traits: had(tally).collect(),
            vcpus: self.vcpus(tally),
            devices: self.devices(tally),
            met: self.met(tally),
            slow: split.map(|split| self.slow(tally, &split)),
            in_guests: self.in_guests(tally),
            recording_ns: None,
            only_if_found: self.path.only_if_found,
            clears: None,
        }
    }

    /// Returns whether instances have reached steps within guests, if the path has any.
    fn in_guests(&self, tally: &PathTally) -> Option<bool> {
        let inside = |chain: u8, step: u8| {
            let chain = self.path.chains.get(usize::from(chain));
            chain
                .and_then(|chain| chain.steps.get(usize::from(step)))
                .is_some_and(PathStep::is_in_guest)
        };
        let mut stages = tally.stages.iter();
        let reached = || stages.any(|one| inside(one.chain, one.from) || inside(one.chain, one.to));
        let mut steps = self.path.chains.iter().flat_map(|chain| &chain.steps);
        steps.any(PathStep::is_in_guest).then(reached)
    }

    /// Returns whether exits to the VMM are recorded.
    fn to_vmm(&self) -> bool {
        self.machine.seen().userspace_exits
    }

    fn ledger(&self, tally: &PathTally) -> PathLedger {
        let mut sums = LedgerSums::default();
        for stage in &tally.stages {
            sums.merge(&stage.ledger);
        }
        PathLedger::of(sums, tally.total.mean(), self.to_vmm())
    }

    fn groups(&self, tally: &PathTally) -> Vec<GroupReport> {
        let mut groups: Vec<GroupReport> = tally
            .groups
            .iter()
            .map(|(what, stats)| GroupReport {
                label: self.group(what),
                stats: stats.clone(),
            })
            .collect();
        groups.sort_by(|a, b| {
            let counts = b.stats.count().cmp(&a.stats.count());
            counts.then_with(|| a.label.cmp(&b.label))
        });
        groups
    }

    fn vcpus(&self, tally: &PathTally) -> Vec<(i32, u64, u64)> {
        had(tally)
            .filter_map(|had| match had.what {
                InstanceTrait::Vcpu(slot) => {
                    Some((names::tid(self.machine, slot), had.count, had.ns))
                }
                _ => None,
            })
            .collect()
    }

    fn devices(&self, tally: &PathTally) -> Vec<DeviceReport> {
        let threads = self.machine.threads();
        let process = |slot: u32| threads.at(slot).and_then(|(_, thread)| thread.pid);
        let mut all: Vec<_> = tally.uses.devices.iter().collect();
        all.sort_by_key(|(key, _)| **key);
        let all = all.into_iter().map(|((vcpu, address, _), one)| {
            let back_end = threads.at(one.back_end);
            let own = process(*vcpu).zip(process(one.back_end));
            let to_user = address.and_then(|address| tally.uses.to_user.get(&(*vcpu, address)));
            DeviceReport {
                vcpu_tid: names::tid(self.machine, *vcpu),
                address: *address,
                what: one.what,
                back_end_tid: names::tid(self.machine, one.back_end),
                back_end: back_end
                    .and_then(|(_, thread)| thread.comm.as_deref().map(str::to_owned)),
                own_process: own.map(|(vcpu, back_end)| vcpu == back_end),
                answers: one.answers.clone(),
                loops: one.loops.clone(),
                worked: one.worked,
                passed_on: one.passed_on,
                pending: one.pending.clone(),
                waited_ns: one.waited_ns,
                in_use_ns: one.in_use_ns(),
                span: one.span(),
                to_user: to_user.copied().unwrap_or(0),
            }
        });
        all.collect()
    }

    fn met(&self, tally: &PathTally) -> Vec<AccessReport> {
        let all = tally.uses.met.iter();
        let mut all: Vec<AccessReport> = all
            .map(|((vcpu, access), met)| AccessReport {
                vcpu_tid: names::tid(self.machine, *vcpu),
                access: *access,
                totals: met.totals.clone(),
                longest: met.longest,
            })
            .collect();
        all.sort_by_key(|one| (one.vcpu_tid, one.access.map(|access| format!("{access:?}"))));
        all
    }

    fn stage(&self, tally: &PathTally, at: usize, split: Option<&SlowSplit>) -> StageReport {
        let stage = &tally.stages[at];
        let (chain, from, to) = (stage.chain, stage.from, stage.to);
        let sums =
            |bucket: &crate::tally::TotalBucket| bucket.stages.get(at).copied().unwrap_or_default();
        let slow = split.map(|split| sums(&split.slow)).unwrap_or_default();
        let fast = split.map(|split| sums(&split.fast)).unwrap_or_default();
        // Where the fast ones do not go this way, the time between its two steps on theirs.
        let usual = fast.mean().or_else(|| {
            let offsets = &split?.fast.offsets;
            let mean = |step| {
                offsets
                    .get(offset_of(chain, step))
                    .and_then(DurationSum::mean)
            };
            Some(mean(to)?.saturating_sub(mean(from)?))
        });
        let saving_ns = usual.map_or(0, |usual| {
            slow.ns.saturating_sub(usual.saturating_mul(slow.count))
        });
        StageReport {
            name: format!("{} → {}", self.step(chain, from), self.step(chain, to)),
            chain: self
                .path
                .chains
                .get(usize::from(chain))
                .and_then(|c| c.name.clone()),
            stats: stage.stats.clone(),
            ledger: PathLedger::of(stage.ledger.clone(), stage.stats.mean(), self.to_vmm()),
            slow_mean_ns: slow.mean(),
            fast_mean_ns: fast.mean(),
            saving_ns,
        }
    }
}

/// Returns what instances had.
fn had(tally: &PathTally) -> impl Iterator<Item = TraitSum> + '_ {
    let traits = tally.traits.iter().zip(&tally.trait_sums);
    traits.map(|(what, sum)| TraitSum {
        what: *what,
        count: sum.count,
        ns: sum.ns,
    })
}

/// Returns what instances are grouped by.
fn by_name(by: PathGrouping) -> &'static str {
    match by {
        PathGrouping::Waker => "waker",
        PathGrouping::BackEnd => "back end",
        PathGrouping::Access => "access",
        PathGrouping::Chain => "chain",
        PathGrouping::NodeDistance => "NUMA distance",
        PathGrouping::Raiser => "raiser",
    }
}
