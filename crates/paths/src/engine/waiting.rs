//! Instances by what they wait for.

use std::collections::hash_map::Entry;

use event::index_of;
use rustc_hash::FxHashMap;

use super::slots::{NumberSet, SlotMap};

/// In longer lists one that leaves is not searched for.
const LONG: usize = 64;

/// Instances that wait for one thing: mostly one.
#[derive(Debug)]
struct WaiterList {
    /// The one, or [`NOBODY`], or [`MANY`].
    one: u32,
    many: Option<Box<WaiterStore>>,
}

/// No instance has these numbers: there are not so many.
const NOBODY: u32 = u32::MAX;
const MANY: u32 = u32::MAX - 1;

#[derive(Debug)]
enum WaiterStore {
    List(Vec<u32>),
    Crowd(WaiterCrowd),
}

impl Default for WaiterList {
    fn default() -> WaiterList {
        WaiterList {
            one: NOBODY,
            many: None,
        }
    }
}

impl WaiterList {
    #[inline]
    fn add(&mut self, instance: u32) {
        if self.one == NOBODY {
            self.one = instance;
        } else {
            self.add_more(instance);
        }
    }

    #[inline(never)]
    fn add_more(&mut self, instance: u32) {
        let first = std::mem::replace(&mut self.one, MANY);
        let many = self
            .many
            .get_or_insert_with(|| Box::new(WaiterStore::List(vec![first])));
        match many.as_mut() {
            WaiterStore::List(all) if all.len() >= LONG => {
                let mut crowd = WaiterCrowd::default();
                for one in all.iter().chain([&instance]) {
                    crowd.add(*one);
                }
                **many = WaiterStore::Crowd(crowd);
            }
            WaiterStore::List(all) => all.push(instance),
            WaiterStore::Crowd(all) => all.add(instance),
        }
    }

    /// Returns whether it was there.
    #[inline]
    fn remove(&mut self, instance: u32) -> bool {
        if self.one == instance {
            self.one = NOBODY;
            return true;
        }
        self.one == MANY && self.remove_of_many(instance)
    }

    #[inline(never)]
    fn remove_of_many(&mut self, instance: u32) -> bool {
        let Some(many) = &mut self.many else {
            return false;
        };
        let (removed, left) = match many.as_mut() {
            WaiterStore::List(all) => {
                let at = all.iter().position(|one| *one == instance);
                let removed = at.map(|at| all.remove(at)).is_some();
                (removed, all.len())
            }
            WaiterStore::Crowd(all) => (all.remove(instance), all.places.len()),
        };
        if left == 0 {
            *self = WaiterList::default();
        }
        removed
    }

    #[inline]
    fn get(&self, out: &mut Vec<u32>) {
        match (self.one, self.many.as_deref()) {
            (NOBODY, _) => {}
            (MANY, Some(WaiterStore::List(all))) => out.extend_from_slice(all),
            (MANY, Some(WaiterStore::Crowd(all))) => out.extend(all.order.iter().flatten()),
            (one, _) => out.push(one),
        }
    }
}

/// Many instances that wait for one thing, in the order in which they came. None of them is in it twice.
#[derive(Debug, Clone, Default)]
struct WaiterCrowd {
    /// Those that left are holes, until half of it is.
    order: Vec<Option<u32>>,
    /// By instance, where in `order` it is.
    places: FxHashMap<u32, usize>,
}

impl WaiterCrowd {
    fn add(&mut self, instance: u32) {
        if let Entry::Vacant(place) = self.places.entry(instance) {
            place.insert(self.order.len());
            self.order.push(Some(instance));
        }
    }

    /// Returns whether it was there.
    fn remove(&mut self, instance: u32) -> bool {
        let Some(at) = self.places.remove(&instance) else {
            return false;
        };
        if let Some(place) = self.order.get_mut(at) {
            *place = None;
        }
        if self.order.len() > 2 * self.places.len() {
            self.order.retain(Option::is_some);
            for (at, one) in self.order.iter().flatten().enumerate() {
                self.places.insert(*one, at);
            }
        }
        true
    }
}

/// By alternative (or step, for what gives an instance up) and the value of its key, the instances that wait.
#[derive(Debug, Default)]
pub(crate) struct WaitingInstances {
    all: Vec<AlternativeWaiters>,
    /// Alternatives that anybody waits for: most events are waited for by nobody.
    pub(super) awaited: NumberSet,
}

/// Who waits for one alternative.
#[derive(Debug, Default)]
struct AlternativeWaiters {
    /// How many.
    count: u32,
    by_key: SlotMap<WaiterList>,
}

impl WaitingInstances {
    pub(super) fn new(alts: usize) -> WaitingInstances {
        WaitingInstances {
            all: (0..alts).map(|_| AlternativeWaiters::default()).collect(),
            awaited: NumberSet::new(alts),
        }
    }

    #[inline]
    pub(super) fn add(&mut self, alt: u32, key: u64, instance: u32) {
        let Some(awaited) = self.all.get_mut(index_of(alt)) else {
            return;
        };
        if awaited.count == 0 {
            self.awaited.set(alt);
        }
        awaited.count += 1;
        awaited.by_key.entry(key).add(instance);
    }

    #[inline]
    pub(super) fn remove(&mut self, alt: u32, key: u64, instance: u32) {
        if let Some(awaited) = self.all.get_mut(index_of(alt))
            && let Some(few) = awaited.by_key.get_mut(key)
            && few.remove(instance)
        {
            if few.one == NOBODY {
                awaited.by_key.empties(key);
            }
            awaited.count -= 1;
            if awaited.count == 0 {
                self.awaited.clear(alt);
            }
        }
    }

    /// Puts those that wait into `out`, in the order in which they came.
    #[inline]
    pub(super) fn get(&self, alt: u32, key: u64, out: &mut Vec<u32>) {
        let awaited = self.all.get(index_of(alt));
        if let Some(few) = awaited.and_then(|all| all.by_key.get(key)) {
            few.get(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many wait and leave, those that are left come in the order in which they came, for small keys and large
    /// ones.
    #[test]
    fn a_crowd_keeps_its_order() {
        for key in [7, 1 << 12, u64::MAX] {
            let mut waiting = WaitingInstances::new(1);
            let mut left: Vec<u32> = Vec::new();
            let mut out = Vec::new();
            for n in 0..1000u32 {
                waiting.add(0, key, n);
                left.push(n);
                if n % 3 != 0 {
                    let gone = left.remove(index_of(n) * 7 % left.len());
                    waiting.remove(0, key, gone);
                    // It is not there any more.
                    waiting.remove(0, key, gone);
                }
                out.clear();
                waiting.get(0, key, &mut out);
                assert_eq!(out, left);
            }
            assert!(left.len() > LONG);
            for one in left {
                assert!(waiting.all[0].count > 0);
                waiting.remove(0, key, one);
            }
            assert_eq!(waiting.all[0].count, 0);
        }
    }
}
