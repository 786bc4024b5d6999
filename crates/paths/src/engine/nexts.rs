//! What instances wait for, looked up once for all that come as far; and the places that are one instance's only.

use event::index_of;

use super::instance::LiveInstance;
use super::plan::{PathIndex, StepSet};
use super::slots::SlotMap;

/// The key of what has no other.
const ANY: u64 = u64::MAX;

/// Makes one key of the values that joins compare: one is itself.
pub(super) fn key_of(values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let mut key: Option<u64> = None;
    for value in values {
        let value = value?;
        key = Some(match key {
            None => value,
            Some(key) => key.rotate_left(17) ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        });
    }
    Some(key.unwrap_or(ANY))
}

/// What instances that have come as far wait for. It is looked up again whenever one comes there.
#[derive(Debug, Default)]
pub(super) struct NextWaits {
    pub(super) from: InstanceProgress,
    /// Alternatives, and the roles that the instance is found by.
    pub(super) waits: Vec<(u32, WaiterKey)>,
    /// What it ends by, and the thread whose event that has to be: a role's, or that of the last step's event.
    pub(super) ends: Vec<(u32, Option<usize>)>,
}

/// How far an instance has come, as far as that decides what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct InstanceProgress {
    pub(super) steps: StepSet,
    pub(super) bound: u16,
    pub(super) late: bool,
}

/// What a key is made of.
#[derive(Debug, Clone, Copy)]
pub(super) enum WaiterKey {
    /// What one role holds.
    Role(usize),
    /// What several hold, or none.
    Roles,
}

/// Of one step, different ways to have come there that are remembered: a chain has few.
const MAX_NEXT: usize = 64;

/// What instances wait for, by step and how they came there. What was found out holds as long as nothing more is known
/// of what is recorded.
#[derive(Debug, Default)]
pub(super) struct WaitCache(pub(super) Vec<Vec<NextWaits>>);

impl WaitCache {
    pub(super) fn new(steps: usize) -> WaitCache {
        WaitCache((0..steps).map(|_| Vec::new()).collect())
    }

    /// Forgets all: more is known of what is recorded.
    pub(super) fn clear(&mut self) {
        for of_step in &mut self.0 {
            of_step.clear();
        }
    }

    #[inline]
    pub(super) fn find(&self, step: usize, from: InstanceProgress) -> Option<usize> {
        self.0[step].iter().position(|next| next.from == from)
    }

    pub(super) fn keep(&mut self, step: usize, next: NextWaits) -> usize {
        let of_step = &mut self.0[step];
        if of_step.len() >= MAX_NEXT {
            of_step.clear();
        }
        of_step.push(next);
        of_step.len() - 1
    }
}

/// By step and what its roles hold, the one instance that is there.
#[derive(Debug, Default)]
pub(super) struct UniquePlaces(Vec<SlotMap<Option<u32>>>);

impl UniquePlaces {
    pub(super) fn new(steps: usize) -> UniquePlaces {
        UniquePlaces((0..steps).map(|_| SlotMap::default()).collect())
    }

    #[inline]
    pub(super) fn get(&self, (step, key): (u32, u64)) -> Option<u32> {
        self.0.get(index_of(step))?.get(key).copied().flatten()
    }

    #[inline]
    pub(super) fn put(&mut self, (step, key): (u32, u64), instance: u32) {
        if let Some(of_step) = self.0.get_mut(index_of(step)) {
            *of_step.entry(key) = Some(instance);
        }
    }

    /// An instance leaves its place, if it still has it.
    #[inline]
    pub(super) fn leave(&mut self, (step, key): (u32, u64), instance: u32) {
        if let Some(of_step) = self.0.get_mut(index_of(step))
            && let Some(place) = of_step.get_mut(key)
            && *place == Some(instance)
        {
            *place = None;
            of_step.empties(key);
        }
    }
}

impl LiveInstance {
    /// What it is found by when it waits for an alternative of these roles; nothing if it does not hold all of them.
    pub(super) fn found_by(&self, roles: &[usize]) -> Option<u64> {
        key_of(roles.iter().map(|role| self.role(*role)))
    }

    /// How it waits for an alternative, if it holds what that joins.
    pub(super) fn waits_by(&self, alt: u32, index: &PathIndex) -> Option<(u32, WaiterKey)> {
        let roles = index.alts[index_of(alt)].found_by.as_slice();
        self.found_by(roles)?;
        Some(match roles {
            [role] => (alt, WaiterKey::Role(*role)),
            _ => (alt, WaiterKey::Roles),
        })
    }
}
