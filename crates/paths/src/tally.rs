//! Sums over the instances of a path, in memory that does not grow with their number.
//!
//! Which instances are slow is known when all have been seen. So what they have is counted by how long they took, in
//! buckets a sixteenth of a power of two wide: a threshold between two buckets then parts all counts exactly.

use event::index_of;
use rustc_hash::FxHashMap;
use stats::{Longest, Stats};

use crate::engine::ReachedStep;
use crate::lang::{MAX_STEPS, PathDefinition, PathGrouping};
use crate::ledger::{LedgerPart, LedgerSums};
use crate::traits::{InstanceTrait, TraitNumbers};
use crate::uses::DeviceUses;

/// Different traits that are counted for one path; what is beyond is not counted.
const MAX_TRAITS: usize = 4096;
/// Groups that are counted.
const MAX_GROUPS: usize = 1024;
/// Instances that a bucket keeps as examples.
const EXAMPLES: usize = 3;
/// Buckets to a power of two.
const SUB_BITS: u32 = 4;

/// Why an instance that counted did not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropReason {
    /// Its interrupt was one with another that waited to be injected.
    Coalesced,
    /// The path began again at the same place, or something happened that it had to come before.
    Superseded,
    /// Events were lost where one of its threads was.
    LostEvents,
    /// The recording ended first.
    Ended,
    /// Nothing showed which VM's vCPU its interrupt was for.
    Unresolved,
}

impl DropReason {
    /// All of them.
    pub const ALL: [DropReason; 5] = [
        DropReason::Coalesced,
        DropReason::Superseded,
        DropReason::LostEvents,
        DropReason::Ended,
        DropReason::Unresolved,
    ];

    /// Returns its name, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            DropReason::Coalesced => "coalesced",
            DropReason::Superseded => "superseded",
            DropReason::LostEvents => "lost_events",
            DropReason::Ended => "ended",
            DropReason::Unresolved => "unresolved",
        }
    }
}

/// What became of the instances that counted, of all paths together. What began is what the others add up to, once
/// nothing is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InstanceAccount {
    /// Instances that came to a step from which on they count.
    pub begun: u64,
    /// Those that completed.
    pub complete: u64,
    /// Those that did not, by any [`DropReason`].
    pub dropped: u64,
    /// Those that are not among the ones that were chosen ([`InstanceFilter`](crate::InstanceFilter)).
    pub left_out: u64,
    /// Those that turned out to be none: their path has another beginning in this recording.
    pub none: u64,
}

impl InstanceAccount {
    /// Returns how many have ended, one way or another.
    pub fn ended(&self) -> u64 {
        let ends = [self.complete, self.dropped, self.left_out, self.none];
        ends.into_iter().fold(0, u64::saturating_add)
    }
}

/// An instance kept as an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExampleInstance {
    pub number: u64,
    pub total_ns: u64,
    pub traits: Vec<u32>,
}

/// Time of a stage, or up to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DurationSum {
    pub count: u64,
    pub ns: u64,
}

impl DurationSum {
    pub(crate) fn add(&mut self, ns: u64) {
        self.count += 1;
        self.ns = self.ns.saturating_add(ns);
    }

    pub(crate) fn merge(&mut self, other: &DurationSum) {
        self.count += other.count;
        self.ns = self.ns.saturating_add(other.ns);
    }

    pub(crate) fn mean(&self) -> Option<u64> {
        self.ns.checked_div(self.count)
    }
}

/// Instances that took about as long.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TotalBucket {
    pub count: u64,
    pub ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    /// By trait's number, how many have it.
    pub traits: Vec<u32>,
    /// By stage's number.
    pub stages: Vec<DurationSum>,
    /// By chain and step: time from the instance's beginning.
    pub offsets: Vec<DurationSum>,
    pub examples: Vec<ExampleInstance>,
}

impl TotalBucket {
    /// Adds an instance: its total, the numbers of its traits, and its stages by number with their times.
    #[inline]
    fn add(&mut self, total_ns: u64, traits: &[u32], stages: &[(u32, u64)]) {
        self.min_ns = if self.count == 0 {
            total_ns
        } else {
            self.min_ns.min(total_ns)
        };
        self.max_ns = self.max_ns.max(total_ns);
        self.count += 1;
        self.ns = self.ns.saturating_add(total_ns);
        for number in traits {
            let count = at_place(&mut self.traits, index_of(*number));
            *count = count.saturating_add(1);
        }
        for (number, ns) in stages {
            at_place(&mut self.stages, index_of(*number)).add(*ns);
        }
    }

    /// Adds the times from an instance's beginning to each of its steps.
    #[inline]
    fn add_offsets(&mut self, chain: u8, began: u64, reached: &[ReachedStep]) {
        for step in reached {
            let offset = at_place(&mut self.offsets, offset_of(chain, step.step));
            offset.add(step.time.saturating_sub(began));
        }
    }

    /// Keeps an instance as an example, if there are too few.
    #[inline]
    fn keep_example(&mut self, number: u64, total_ns: u64, traits: &[u32]) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(ExampleInstance {
                number,
                total_ns,
                traits: traits.to_vec(),
            });
        }
    }

    /// Adds another's counts.
    pub(crate) fn merge(&mut self, other: &TotalBucket) {
        self.min_ns = if self.count == 0 {
            other.min_ns
        } else {
            self.min_ns.min(other.min_ns)
        };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.ns = self.ns.saturating_add(other.ns);
        if self.traits.len() < other.traits.len() {
            self.traits.resize(other.traits.len(), 0);
        }
        for (mine, theirs) in self.traits.iter_mut().zip(&other.traits) {
            *mine = mine.saturating_add(*theirs);
        }
        if self.stages.len() < other.stages.len() {
            self.stages
                .resize(other.stages.len(), DurationSum::default());
        }
        for (mine, theirs) in self.stages.iter_mut().zip(&other.stages) {
            mine.merge(theirs);
        }
        if self.offsets.len() < other.offsets.len() {
            self.offsets
                .resize(other.offsets.len(), DurationSum::default());
        }
        for (mine, theirs) in self.offsets.iter_mut().zip(&other.offsets) {
            mine.merge(theirs);
        }
        self.examples.extend_from_slice(&other.examples);
    }

    /// Returns how many have a trait.
    pub(crate) fn with(&self, number: u32) -> u64 {
        self.traits
            .get(index_of(number))
            .map_or(0, |count| u64::from(*count))
    }
}

/// A stage: from one step of a chain to another.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StageTally {
    pub chain: u8,
    pub from: u8,
    pub to: u8,
    pub stats: Stats,
    /// Who had its time.
    pub ledger: LedgerSums,
}

/// All instances of one path.
#[derive(Debug)]
pub(crate) struct PathTally {
    pub count: u64,
    pub total: Stats,
    pub longest: Longest,
    pub stages: Vec<StageTally>,
    /// By [`stage_of`], one more than the number of a stage; 0 if there is none.
    stage_of: Vec<u32>,
    pub dropped: [u64; DropReason::ALL.len()],
    pub coalesced_into: u64,
    /// In the order in which they came.
    pub groups: Vec<(InstanceTrait, Stats)>,
    group_of: FxHashMap<InstanceTrait, usize>,
    /// The trait's number and the group that were looked up last: most instances are of few.
    last_group: Option<(u32, usize)>,
    /// What instances are grouped by: which of their traits.
    by: Option<PathGrouping>,
    pub traits: Vec<InstanceTrait>,
    /// By trait's number, how many instances have it and the sum of their totals.
    pub trait_sums: Vec<DurationSum>,
    trait_of: TraitNumbers,
    buckets: Vec<Option<Box<TotalBucket>>>,
    pub slow_from: Option<u64>,
    /// Memory that instances use again.
    numbers: Vec<u32>,
    /// Sums by device and by vCPU.
    pub uses: DeviceUses,
    /// The instance that took longest: its longest stage, by number, and how long that took.
    pub slowest: Option<(ExampleInstance, u32, u64)>,
}

impl PathTally {
    pub(crate) fn new(path: &PathDefinition) -> PathTally {
        PathTally {
            count: 0,
            total: Stats::default(),
            longest: Longest::default(),
            stages: Vec::new(),
            stage_of: Vec::new(),
            dropped: [0; DropReason::ALL.len()],
            coalesced_into: 0,
            groups: Vec::new(),
            group_of: FxHashMap::default(),
            last_group: None,
            by: path.by,
            traits: Vec::new(),
            trait_sums: Vec::new(),
            trait_of: TraitNumbers::default(),
            buckets: Vec::new(),
            slow_from: None,
            numbers: Vec::new(),
            uses: DeviceUses::default(),
            slowest: None,
        }
    }

    /// Returns the buckets that hold instances, shortest first.
    pub(crate) fn buckets(&self) -> impl DoubleEndedIterator<Item = &TotalBucket> {
        self.buckets.iter().filter_map(|bucket| bucket.as_deref())
    }

    pub(crate) fn slow_from(&mut self, ns: u64) {
        self.slow_from = Some(ns);
    }

    pub(crate) fn dropped(&mut self, why: DropReason) {
        self.dropped[why as usize] += 1;
    }

    /// Counts an instance, and adds nothing up. Returns its number.
    pub(crate) fn count_one(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Adds an instance that completed, and returns its number.
    pub(crate) fn add(
        &mut self,
        chain: u8,
        reached: &[ReachedStep],
        coalesced: u32,
        traits: &[InstanceTrait],
        ledger: &[LedgerPart],
    ) -> u64 {
        self.count += 1;
        self.coalesced_into += u64::from(coalesced);
        let (Some(first), Some(last)) = (reached.first(), reached.last()) else {
            return self.count;
        };
        let total_ns = last.time.saturating_sub(first.time);
        self.total.add(total_ns);
        self.longest.add(total_ns, first.time);
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        self.add_traits(traits, total_ns, &mut numbers);
        let mut stages = [(0u32, 0u64); MAX_STEPS];
        let stages = self.add_stages(chain, reached, &mut stages);
        self.add_ledger(stages, ledger);
        self.keep_slowest(total_ns, &numbers, stages);
        let number = self.count;
        let bucket = self.bucket(total_ns);
        bucket.add(total_ns, &numbers, stages);
        bucket.add_offsets(chain, first.time, reached);
        bucket.keep_example(number, total_ns, &numbers);
        self.numbers = numbers;
        number
    }

    /// Adds an instance's total to its group and to all that it has; `numbers` gets the numbers of these.
    #[inline]
    fn add_traits(&mut self, traits: &[InstanceTrait], total_ns: u64, numbers: &mut Vec<u32>) {
        for one in traits {
            let number = self.trait_number(one);
            if self.by.is_some_and(|by| groups(by, one)) {
                let group = self.group_number(one, number);
                self.groups[group].1.add(total_ns);
            }
            let Some(number) = number else {
                continue;
            };
            if let Some(sum) = self.trait_sums.get_mut(index_of(number)) {
                sum.add(total_ns);
            }
            numbers.push(number);
        }
    }

    /// Returns the number of a group, which is a new one if no instance was of it before. `number` is that of the
    /// trait.
    #[inline]
    fn group_number(&mut self, one: &InstanceTrait, number: Option<u32>) -> usize {
        match self.last_group {
            Some((last, group)) if number == Some(last) => group,
            _ => {
                let group = self.find_group(one);
                self.last_group = number.map(|number| (number, group));
                group
            }
        }
    }

    fn find_group(&mut self, one: &InstanceTrait) -> usize {
        let full = self.groups.len() >= MAX_GROUPS;
        let group = match full && !self.group_of.contains_key(one) {
            true => InstanceTrait::Others,
            false => *one,
        };
        let groups = &mut self.groups;
        *self.group_of.entry(group).or_insert_with(|| {
            groups.push((group, Stats::default()));
            groups.len() - 1
        })
    }

    /// Returns the number of a trait, which is a new one if no instance had it before.
    #[inline]
    fn trait_number(&mut self, one: &InstanceTrait) -> Option<u32> {
        if let Some(number) = self.trait_of.get(one) {
            return Some(number);
        }
        let next = self.traits.len();
        if next >= MAX_TRAITS {
            return None;
        }
        let number = u32::try_from(next).ok()?;
        self.traits.push(*one);
        self.trait_sums.push(DurationSum::default());
        self.trait_of.put(one, number);
        Some(number)
    }

    /// Adds the time of each stage. Returns the stages by number, with their times, in `room`.
    #[inline]
    fn add_stages<'r>(
        &mut self,
        chain: u8,
        reached: &[ReachedStep],
        room: &'r mut [(u32, u64); MAX_STEPS],
    ) -> &'r [(u32, u64)] {
        let mut count = 0;
        for (pair, place) in reached.windows(2).zip(room.iter_mut()) {
            let (from, to) = (&pair[0], &pair[1]);
            let ns = to.time.saturating_sub(from.time);
            let number = self.stage_number(chain, from.step, to.step);
            self.stages[index_of(number)].stats.add(ns);
            *place = (number, ns);
            count += 1;
        }
        &room[..count]
    }

    /// Adds who had the time of the stages just added.
    #[inline]
    fn add_ledger(&mut self, stages: &[(u32, u64)], ledger: &[LedgerPart]) {
        for (number, _) in stages {
            let Some(stage) = self.stages.get_mut(index_of(*number)) else {
                continue;
            };
            for entry in ledger.iter().filter(|entry| entry.step == stage.to) {
                stage.ledger.add(entry.holder, entry.manner, entry.ns);
            }
        }
    }

    /// Returns the number of a stage, which is a new one if no instance went it before.
    #[inline]
    fn stage_number(&mut self, chain: u8, from: u8, to: u8) -> u32 {
        let known = at_place(&mut self.stage_of, stage_of(chain, from, to));
        if *known == 0 {
            self.stages.push(StageTally {
                chain,
                from,
                to,
                stats: Stats::default(),
                ledger: LedgerSums::default(),
            });
            // A stage is three numbers of one byte each: there are no more than 32 bits hold.
            *known = u32::try_from(self.stages.len()).unwrap_or(u32::MAX);
        }
        *known - 1
    }

    /// Keeps the instance just added as the slowest, with its longest stage, if it is.
    #[inline]
    fn keep_slowest(&mut self, total_ns: u64, numbers: &[u32], stages: &[(u32, u64)]) {
        let known = self.slowest.as_ref();
        if known.is_none_or(|(known, ..)| known.total_ns < total_ns)
            && let Some(&(stage, ns)) = stages.iter().max_by_key(|s| s.1)
        {
            let example = ExampleInstance {
                number: self.count,
                total_ns,
                traits: numbers.to_vec(),
            };
            self.slowest = Some((example, stage, ns));
        }
    }

    /// Returns the bucket for instances that took so long.
    #[inline]
    fn bucket(&mut self, total_ns: u64) -> &mut TotalBucket {
        let at = match self.slow_from {
            Some(from) => usize::from(total_ns >= from),
            None => bucket_of(total_ns) as usize,
        };
        if self.buckets.len() <= at {
            self.buckets.resize_with(at + 1, || None);
        }
        self.buckets[at].get_or_insert_default()
    }
}

/// Returns whether a trait is what instances are grouped by.
#[inline]
pub(crate) fn groups(by: PathGrouping, one: &InstanceTrait) -> bool {
    match by {
        PathGrouping::Waker => matches!(one, InstanceTrait::Waker(_)),
        PathGrouping::BackEnd => matches!(one, InstanceTrait::BackEnd(_)),
        PathGrouping::Access => matches!(one, InstanceTrait::For(..)),
        PathGrouping::Chain => matches!(one, InstanceTrait::Chain(_)),
        PathGrouping::NodeDistance => matches!(one, InstanceTrait::NodeDistance(_)),
        PathGrouping::Raiser => matches!(one, InstanceTrait::Raiser(..)),
    }
}

/// Returns a place of a list, which is made as long as that takes.
#[inline]
fn at_place<T: Clone + Default>(list: &mut Vec<T>, at: usize) -> &mut T {
    if list.len() <= at {
        list.resize(at + 1, T::default());
    }
    &mut list[at]
}

/// Returns where the number of a stage is kept.
fn stage_of(chain: u8, from: u8, to: u8) -> usize {
    offset_of(chain, from) * MAX_STEPS + usize::from(to)
}

/// Returns where the time up to a step of a chain is kept.
pub(crate) fn offset_of(chain: u8, step: u8) -> usize {
    usize::from(chain) * MAX_STEPS + usize::from(step)
}

/// Returns the bucket of a total.
fn bucket_of(ns: u64) -> u32 {
    const SUB: u32 = 1 << SUB_BITS;
    if let Ok(ns) = u32::try_from(ns)
        && ns < SUB
    {
        return ns;
    }
    let octave = 63 - ns.leading_zeros() - SUB_BITS;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only the lowest bits of the shifted number count"
    )]
    let sub = (ns >> octave) as u32 & (SUB - 1);
    ((octave + 1) << SUB_BITS) + sub
}
