//! Words about instances of which there are many, each made once.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use model::Machine;
use rustc_hash::FxHasher;

use super::names::{AccessNamer, PathWords, task};
use crate::engine::{CompletedInstance, Paths};
use crate::lang::PathDefinition;
use crate::tally::groups;
use crate::traits::InstanceTrait;

/// Places for what instances are like, and for tasks; another takes the place of one that it meets there.
const PLACES: usize = 1 << 10;

/// What is known of an instance, in words: what [`InstanceReport`](super::InstanceReport) has of it beside its steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceWords {
    /// The group it belongs to, where the path has groups.
    pub by: Option<Arc<str>>,
    /// What else is known of it.
    pub features: Arc<[String]>,
    /// The same, apart by `; `.
    pub joined: String,
}

/// The names of a path, and those of its chains.
#[derive(Debug)]
pub(super) struct PathNames {
    pub(super) name: Arc<str>,
    chains: Vec<ChainNames>,
}

/// The name of a chain, if it has one, and those of its steps.
#[derive(Debug, Clone, Default)]
pub(super) struct ChainNames {
    pub(super) name: Option<Arc<str>>,
    pub(super) steps: Arc<[Arc<str>]>,
}

impl PathNames {
    fn new(path: &PathDefinition) -> PathNames {
        let chains = path.chains.iter().map(|chain| {
            let steps = chain.steps.iter().map(|step| step.name.as_str().into());
            ChainNames {
                name: chain.name.as_deref().map(Arc::from),
                steps: steps.collect(),
            }
        });
        PathNames {
            name: path.name.as_str().into(),
            chains: chains.collect(),
        }
    }

    /// Returns the names of a chain. One that no path has has none.
    pub(super) fn chain(&self, at: usize) -> ChainNames {
        self.chains.get(at).cloned().unwrap_or_default()
    }
}

/// What a task is called, with what the name was made of.
#[derive(Debug)]
struct TaskText {
    slot: u32,
    thread: Option<(i32, Option<Arc<str>>)>,
    text: Arc<str>,
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

/// Words of the instances that came last, all of them of the same [`Paths`]. Most instances are as earlier ones were,
/// so that their words are found. The memory is that of a fixed number of instances.
#[derive(Debug, Default)]
pub struct RecentWords {
    places: Vec<Option<Box<MadeWords>>>,
    tasks: Vec<Option<TaskText>>,
    paths: Vec<PathNames>,
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

impl RecentWords {
    /// Returns the names of a path, by its number.
    pub(super) fn path(&mut self, paths: &Paths, number: usize) -> Option<&PathNames> {
        if self.paths.is_empty() {
            self.paths = paths.paths().iter().map(PathNames::new).collect();
        }
        self.paths.get(number)
    }

    /// Returns what a task is called now, by its slot.
    pub fn task(&mut self, machine: &Machine, slot: u32) -> Arc<str> {
        if self.tasks.is_empty() {
            self.tasks.resize_with(PLACES, || None);
        }
        let thread = machine.threads().at(slot);
        let thread = thread.map(|(tid, thread)| (tid, thread.comm.as_ref()));
        let place = &mut self.tasks[slot as usize % PLACES];
        let known = place.as_ref().filter(|known| {
            let then = known.thread.as_ref();
            let same = match (then, thread) {
                (Some((then, was)), Some((now, is))) => then == &now && same_name(was.as_ref(), is),
                (then, now) => then.is_none() && now.is_none(),
            };
            known.slot == slot && same
        });
        if let Some(known) = known {
            return Arc::clone(&known.text);
        }
        let text: Arc<str> = task(machine, slot).into();
        *place = Some(TaskText {
            slot,
            thread: thread.map(|(tid, comm)| (tid, comm.cloned())),
            text: Arc::clone(&text),
        });
        text
    }
}

/// Returns whether a thread is called as it was.
fn same_name(then: Option<&Arc<str>>, now: Option<&Arc<str>>) -> bool {
    match (then, now) {
        (Some(then), Some(now)) => Arc::ptr_eq(then, now) || then == now,
        (then, now) => then.is_none() && now.is_none(),
    }
}

fn name_now(machine: &Machine, slot: u32) -> Option<&Arc<str>> {
    machine.threads().at(slot)?.1.comm.as_ref()
}

impl MadeWords {
    /// Returns whether they are what would be made now.
    fn say(&self, one: &CompletedInstance, machine: &Machine) -> bool {
        let same = |(slot, then): &(u32, Option<Arc<str>>)| {
            same_name(then.as_ref(), name_now(machine, *slot))
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
        words.map_or_else(InstanceWords::default, |words| {
            let features = words.features(&one.traits);
            InstanceWords {
                by: words.by(one).map(Arc::from),
                joined: features.join("; "),
                features: features.into(),
            }
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
