//! Words about instances of which there are many, each made once.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use model::Machine;
use rustc_hash::FxHasher;

use super::names::{AccessNamer, PathWords};
use crate::engine::{CompletedInstance, Paths};
use crate::tally::groups;
use crate::traits::InstanceTrait;

/// Places for what instances are like; another takes the place of one that it meets there.
const PLACES: usize = 1 << 10;

/// What is known of an instance, in words: what [`InstanceReport`](super::InstanceReport) has of it beside its steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceWords {
    /// The group it belongs to, where the path has groups.
    pub by: Option<String>,
    /// What else is known of it, apart by `; `.
    pub features: String,
}

/// Words that were made, with what they were made of.
#[derive(Debug)]
struct MadeWords {
    path: usize,
    traits: Vec<InstanceTrait>,
    /// The tasks that they name, with the names that these had.
    tasks: Vec<(u32, Option<Arc<str>>)>,
    words: InstanceWords,
}

/// Words of the instances that came last. Most instances are as earlier ones were, so that their words are found. The
/// memory is that of a fixed number of instances.
#[derive(Debug, Default)]
pub struct RecentWords {
    places: Vec<Option<Box<MadeWords>>>,
    /// Words that may not be used again.
    unique: InstanceWords,
}

/// The task that the words of a trait name.
fn task_of(one: &InstanceTrait) -> Option<u32> {
    match one {
        InstanceTrait::Vcpu(slot)
        | InstanceTrait::Beside(slot)
        | InstanceTrait::Behind(slot)
        | InstanceTrait::BackEndThread(slot) => Some(*slot),
        _ => None,
    }
}

fn name_now(machine: &Machine, slot: u32) -> Option<&Arc<str>> {
    machine.threads().at(slot)?.1.comm.as_ref()
}

impl MadeWords {
    /// Returns whether they are what would be made now.
    fn say(&self, one: &CompletedInstance, machine: &Machine) -> bool {
        let same = |(slot, then): &(u32, Option<Arc<str>>)| match (then, name_now(machine, *slot)) {
            (Some(then), Some(now)) => Arc::ptr_eq(then, now) || then == now,
            (then, now) => then.is_none() && now.is_none(),
        };
        self.path == one.path && self.traits == one.traits && self.tasks.iter().all(same)
    }
}

impl Paths {
    /// Returns what is known of an instance in words, as [`Paths::describe`] has it, and keeps them for others.
    pub fn words<'w>(
        &self,
        one: &CompletedInstance,
        machine: &Machine,
        names: AccessNamer<'_>,
        recent: &'w mut RecentWords,
    ) -> &'w InstanceWords {
        let make = || self.make_words(one, machine, names);
        // What a device's thread is called grows with the devices that it is seen to work for.
        let grows = |one: &InstanceTrait| matches!(one, InstanceTrait::Raiser(..));
        if one.traits.iter().any(grows) {
            recent.unique = make();
            return &recent.unique;
        }
        let mut hasher = FxHasher::default();
        one.path.hash(&mut hasher);
        one.traits.hash(&mut hasher);
        if recent.places.is_empty() {
            recent.places.resize_with(PLACES, || None);
        }
        let at = usize::try_from(hasher.finish() % PLACES as u64).unwrap_or_default();
        let place = &mut recent.places[at];
        if place.as_ref().is_some_and(|made| made.say(one, machine)) {
            return place.as_ref().map_or(&recent.unique, |made| &made.words);
        }
        let tasks = one.traits.iter().filter_map(task_of);
        let made = place.insert(Box::new(MadeWords {
            path: one.path,
            traits: one.traits.clone(),
            tasks: tasks
                .map(|slot| (slot, name_now(machine, slot).cloned()))
                .collect(),
            words: make(),
        }));
        &made.words
    }

    fn make_words(
        &self,
        one: &CompletedInstance,
        machine: &Machine,
        names: AccessNamer<'_>,
    ) -> InstanceWords {
        let words = self.words_of(one.path, machine, names);
        words.map_or_else(InstanceWords::default, |words| InstanceWords {
            by: words.by(one),
            features: words.features(&one.traits).join("; "),
        })
    }
}

impl PathWords<'_> {
    /// Returns the group that an instance belongs to, where the path has groups.
    pub(super) fn by(&self, one: &CompletedInstance) -> Option<String> {
        let by = self.path.by?;
        let group = one.traits.iter().find(|one| groups(by, one));
        group.map(|group| self.group(group))
    }
}
