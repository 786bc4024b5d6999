//! Instances by what they wait for.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

/// In longer lists one that leaves is not searched for.
const LONG: usize = 64;

/// Instances that wait for one thing: mostly one.
#[derive(Debug, Clone, Default)]
enum Few {
    #[default]
    None,
    One(u32),
    Many(Vec<u32>),
    Crowd(Box<Crowd>),
}

impl Few {
    fn add(&mut self, instance: u32) {
        match self {
            Few::None => *self = Few::One(instance),
            Few::One(first) => *self = Few::Many(vec![*first, instance]),
            Few::Many(all) if all.len() >= LONG => {
                let mut crowd = Crowd::default();
                for one in all.iter().chain([&instance]) {
                    crowd.add(*one);
                }
                *self = Few::Crowd(Box::new(crowd));
            }
            Few::Many(all) => all.push(instance),
            Few::Crowd(all) => all.add(instance),
        }
    }

    /// Returns whether it was there.
    fn remove(&mut self, instance: u32) -> bool {
        match self {
            Few::One(one) if *one == instance => *self = Few::None,
            Few::Many(all) => {
                let Some(at) = all.iter().position(|one| *one == instance) else {
                    return false;
                };
                all.remove(at);
                if all.is_empty() {
                    *self = Few::None;
                }
            }
            Few::Crowd(all) => {
                if !all.remove(instance) {
                    return false;
                }
                if all.places.is_empty() {
                    *self = Few::None;
                }
            }
            Few::None | Few::One(_) => return false,
        }
        true
    }

    fn get(&self, out: &mut Vec<u32>) {
        match self {
            Few::None => {}
            Few::One(one) => out.push(*one),
            Few::Many(all) => out.extend_from_slice(all),
            Few::Crowd(all) => out.extend(all.order.iter().flatten()),
        }
    }
}

/// Many instances that wait for one thing, in the order in which they came. None of them is in it twice.
#[derive(Debug, Clone, Default)]
struct Crowd {
    /// Those that left are holes, until half of it is.
    order: Vec<Option<u32>>,
    /// By instance, where in `order` it is.
    places: FxHashMap<u32, usize>,
}

impl Crowd {
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

/// Keys below this are looked up in a list: slots of threads and numbers of CPUs, as most keys are.
const SMALL: usize = 1 << 12;

/// Returns a key's place in the list, if it has one.
#[inline]
fn small(key: u64) -> Option<usize> {
    usize::try_from(key).ok().filter(|at| *at < SMALL)
}

/// By alternative (or step, for what gives an instance up) and the value of its key, the instances that wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    small: Vec<Vec<Few>>,
    large: FxHashMap<(u32, u64), Few>,
    /// By alternative, how many wait: most events are waited for by nobody.
    counts: Vec<u32>,
}

impl Waiting {
    pub(super) fn new(alts: usize) -> Waiting {
        Waiting {
            small: vec![Vec::new(); alts],
            large: FxHashMap::default(),
            counts: vec![0; alts],
        }
    }

    /// Whether anybody waits for an alternative.
    #[inline]
    pub(super) fn any(&self, alt: u32) -> bool {
        self.counts.get(alt as usize).is_some_and(|n| *n > 0)
    }

    pub(super) fn add(&mut self, alt: u32, key: u64, instance: u32) {
        let Some(count) = self.counts.get_mut(alt as usize) else {
            return;
        };
        *count += 1;
        if let Some(at) = small(key) {
            let list = &mut self.small[alt as usize];
            if list.len() <= at {
                list.resize(at + 1, Few::None);
            }
            list[at].add(instance);
        } else {
            self.large.entry((alt, key)).or_default().add(instance);
        }
    }

    pub(super) fn remove(&mut self, alt: u32, key: u64, instance: u32) {
        let removed = if let Some(at) = small(key) {
            let list = self.small.get_mut(alt as usize);
            list.and_then(|list| list.get_mut(at))
                .is_some_and(|few| few.remove(instance))
        } else {
            match self.large.get_mut(&(alt, key)) {
                None => false,
                Some(few) => {
                    let removed = few.remove(instance);
                    if matches!(few, Few::None) {
                        self.large.remove(&(alt, key));
                    }
                    removed
                }
            }
        };
        if removed && let Some(count) = self.counts.get_mut(alt as usize) {
            *count -= 1;
        }
    }

    /// Puts those that wait into `out`, in the order in which they came.
    #[inline]
    pub(super) fn get(&self, alt: u32, key: u64, out: &mut Vec<u32>) {
        let few = if let Some(at) = small(key) {
            let list = self.small.get(alt as usize);
            list.and_then(|list| list.get(at))
        } else {
            self.large.get(&(alt, key))
        };
        if let Some(few) = few {
            few.get(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many wait and leave, those that are left come in the order in which they came, for small keys and large ones.
    #[test]
    fn a_crowd_keeps_its_order() {
        for key in [7, SMALL as u64, u64::MAX] {
            let mut waiting = Waiting::new(1);
            let mut left: Vec<u32> = Vec::new();
            let mut out = Vec::new();
            for n in 0..1000u32 {
                waiting.add(0, key, n);
                left.push(n);
                if n % 3 != 0 {
                    let gone = left.remove(n as usize * 7 % left.len());
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
                assert!(waiting.any(0));
                waiting.remove(0, key, one);
            }
            assert!(!waiting.any(0));
        }
    }
}
