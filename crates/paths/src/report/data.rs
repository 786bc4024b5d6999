//! What was found of paths, as numbers.

use serde::Serialize;
use stats::{Longest, Stats};

use crate::ledger::PathLedger;
use crate::slow::ThresholdOrigin;
use crate::tally::DropReason;
use crate::traits::InstanceTrait;
use crate::uses::{AccessReport, DeviceReport};

/// One stage: the time from one step to the next that was reached.
#[derive(Debug, Clone, PartialEq)]
pub struct StageReport {
    /// Both steps: `accepted → injected`.
    pub name: String,
    /// The chain it is of, where the path has several with names.
    pub chain: Option<String>,
    /// Its durations.
    pub stats: Stats,
    /// Mean in slow instances, and in the others; `None` where none of them has it.
    pub slow_mean_ns: Option<u64>,
    /// The same of the fast ones.
    pub fast_mean_ns: Option<u64>,
    /// Who had its mean.
    pub ledger: PathLedger,
    /// What the slow instances' total would be less if this stage took them as long as the fast ones: an estimate.
    pub saving_ns: u64,
}

/// Instances that are alike in what the path is grouped by.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupReport {
    /// What they have in common.
    pub label: String,
    /// Their totals.
    pub stats: Stats,
}

/// Something that sets slow instances apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowCause {
    /// What it is, in few words.
    pub feature: String,
    /// Share of the slow instances that have it.
    pub slow_share: f64,
    /// Share of the others.
    pub fast_share: f64,
    /// The same as a sentence.
    pub text: String,
    /// How much of the difference it explains: information gained, as a share of all there is.
    pub gain: f64,
    /// Numbers of slow instances that have it (or have not, if that is what sets them apart).
    pub slow_instances: Vec<u64>,
    /// Numbers of other instances for comparison.
    pub fast_instances: Vec<u64>,
}

/// The slow instances.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowReport {
    /// From which total on an instance is slow.
    pub threshold_ns: u64,
    /// How many are.
    pub count: u64,
    /// What sets them apart, most telling first. Empty where nothing does, or too few are slow to tell.
    pub because: Vec<SlowCause>,
    /// How the threshold was found.
    pub found: ThresholdOrigin,
    /// Their mean, and that of the others.
    pub mean_ns: u64,
    /// The others' mean.
    pub fast_mean_ns: u64,
    /// The slowest of all.
    pub slowest: Option<SlowestInstance>,
}

/// The slowest instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SlowestInstance {
    /// Its number.
    pub instance: u64,
    /// What is known of it, a sentence.
    pub text: String,
}

/// One path.
#[derive(Debug, Clone, PartialEq)]
pub struct PathReport {
    /// Its name.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Instances that completed.
    pub count: u64,
    /// Their totals.
    pub total: Stats,
    /// The longest of their totals, with the times at which they began.
    pub longest: Longest,
    /// Who had its mean total.
    pub ledger: PathLedger,
    /// Stages, in the order of the path.
    pub stages: Vec<StageReport>,
    /// By what instances are grouped, if they are.
    pub by: Option<&'static str>,
    /// The groups, most instances first.
    pub groups: Vec<GroupReport>,
    /// Instances that did not complete, by reason; reasons without any are left out.
    pub dropped: Vec<(DropReason, u64)>,
    /// What instances had: how many had it, and the sum of their totals. Slots of threads are [`model::Threads`]'.
    pub traits: Vec<TraitSum>,
    /// The vCPUs that instances were about: thread, how many, and the sum of their totals.
    pub vcpus: Vec<(i32, u64, u64)>,
    /// Devices that were notified, for a path that has back ends: by vCPU, address and back end.
    pub devices: Vec<DeviceReport>,
    /// By vCPU, whether it was busy with an access that its VMM handles, for a path of interrupts: what its instances
    /// took.
    pub met: Vec<AccessReport>,
    /// The slow ones, if there are any.
    pub slow: Option<SlowReport>,
    /// Whether instances have reached steps that a guest's own recording shows; `None` of a path that has none.
    pub in_guests: Option<bool>,
    /// What recording had of the mean total at least: the events of the steps on the way; `None` where the recorder did
    /// not measure what an event costs.
    pub recording_ns: Option<u64>,
    /// Nobody asked for it: it is listed only where it was found.
    pub only_if_found: bool,
    /// What it shows not to be at fault for, of a path that is a part of another's way.
    pub clears: Option<ClearedPath>,
}

/// A path whose slow instances do not lose their time in another one, which is a part of its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClearedPath {
    /// Its name.
    pub path: String,
    /// By how much the mean of its slow instances is above that of the others.
    pub slow_by_ns: u64,
    /// What the part took at most.
    pub longest_ns: u64,
}

/// Something that instances had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraitSum {
    /// What.
    pub what: InstanceTrait,
    /// How many had it.
    pub count: u64,
    /// The sum of their totals.
    pub ns: u64,
}

/// Instances of which a 99th percentile is worth a comparison.
const ENOUGH: u64 = 20;

impl PathReport {
    /// Returns whether something is to be said of it.
    pub fn is_listed(&self) -> bool {
        !self.only_if_found || self.count > 0 || !self.dropped.is_empty()
    }

    /// Returns the path whose slow instances take longest: that with the highest 99th percentile among those with
    /// enough instances, if any has.
    pub fn slowest<'a>(paths: impl IntoIterator<Item = &'a PathReport>) -> Option<&'a PathReport> {
        let paths = paths.into_iter().filter(|path| path.count > 0);
        paths.max_by_key(|path| (path.count >= ENOUGH, path.total.percentile(0.99)))
    }

    /// Returns how many instances had something, and the sum of their totals.
    pub fn with(&self, what: impl Fn(&InstanceTrait) -> bool) -> (u64, u64) {
        let having = self.traits.iter().filter(|had| what(&had.what));
        having.fold((0, 0), |sum, had| {
            (sum.0 + had.count, sum.1.saturating_add(had.ns))
        })
    }

    /// Returns the durations of a stage, by the names of its steps.
    pub fn stage(&self, name: &str) -> Option<&StageReport> {
        self.stages.iter().find(|stage| stage.name == name)
    }
}
