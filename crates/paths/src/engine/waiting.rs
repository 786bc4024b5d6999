//! Instances by what they wait for.

use rustc_hash::FxHashMap;

/// Instances that wait for one thing: mostly one.
#[derive(Debug, Clone)]
enum Few {
    One(u32),
    Many(Vec<u32>),
}

/// By alternative (or step, for what gives an instance up) and the value of its key, the instances that wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    by_key: FxHashMap<(u32, u64), Few>,
    /// By alternative, how many wait: most events are waited for by nobody.
    counts: Vec<u32>,
}

impl Waiting {
    pub fn new(alts: usize) -> Waiting {
        Waiting {
            by_key: FxHashMap::default(),
            counts: vec![0; alts],
        }
    }

    /// Whether anybody waits for an alternative.
    #[inline]
    pub fn any(&self, alt: u32) -> bool {
        self.counts.get(alt as usize).is_some_and(|n| *n > 0)
    }

    pub fn add(&mut self, alt: u32, key: u64, instance: u32) {
        if let Some(count) = self.counts.get_mut(alt as usize) {
            *count += 1;
        }
        match self.by_key.get_mut(&(alt, key)) {
            None => {
                self.by_key.insert((alt, key), Few::One(instance));
            }
            Some(few) => match few {
                Few::One(first) => *few = Few::Many(vec![*first, instance]),
                Few::Many(all) => all.push(instance),
            },
        }
    }

    pub fn remove(&mut self, alt: u32, key: u64, instance: u32) {
        let Some(few) = self.by_key.get_mut(&(alt, key)) else {
            return;
        };
        let empty = match few {
            Few::One(first) if *first == instance => true,
            Few::One(_) => return,
            Few::Many(all) => {
                let Some(at) = all.iter().position(|one| *one == instance) else {
                    return;
                };
                all.remove(at);
                all.is_empty()
            }
        };
        if empty {
            self.by_key.remove(&(alt, key));
        }
        if let Some(count) = self.counts.get_mut(alt as usize) {
            *count -= 1;
        }
    }

    /// Puts those that wait into `out`, in the order in which they came.
    #[inline]
    pub fn get(&self, alt: u32, key: u64, out: &mut Vec<u32>) {
        match self.by_key.get(&(alt, key)) {
            None => {}
            Some(Few::One(one)) => out.push(*one),
            Some(Few::Many(all)) => out.extend_from_slice(all),
        }
    }
}
