//! Instances by what they wait for.

use rustc_hash::{FxHashMap, FxHashSet};

/// Instances that are told what their vCPU does, of one vCPU, and what else goes on, of one CPU: at most so many.
const MOST_OF_ONE: usize = 256;
const MOST_ON_CPU: usize = 1024;
/// CPUs are not believed beyond this number.
const MAX_CPU: i32 = 1 << 16;

/// Longer lists are sets: one that leaves must not be searched for among thousands.
const LONG: usize = 64;

/// Instances that wait for one thing: mostly one.
#[derive(Debug, Clone)]
enum Few {
    One(u32),
    Many(Vec<u32>),
    Crowd(FxHashSet<u32>),
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
                Few::Many(all) if all.len() >= LONG => {
                    let crowd = all.iter().copied().chain([instance]);
                    *few = Few::Crowd(crowd.collect());
                }
                Few::Many(all) => all.push(instance),
                Few::Crowd(all) => {
                    all.insert(instance);
                }
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
            Few::Crowd(all) => {
                if !all.remove(&instance) {
                    return;
                }
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

    /// Puts those that wait into `out`.
    #[inline]
    pub fn get(&self, alt: u32, key: u64, out: &mut Vec<u32>) {
        match self.by_key.get(&(alt, key)) {
            None => {}
            Some(Few::One(one)) => out.push(*one),
            Some(Few::Many(all)) => out.extend_from_slice(all),
            Some(Few::Crowd(all)) => out.extend(all.iter().copied()),
        }
    }
}

/// Instances that are told what goes on around them: by their vCPU's thread, and by the CPU that has it.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    by_thread: FxHashMap<u32, Vec<u32>>,
    by_cpu: FxHashMap<i32, Vec<u32>>,
    count: usize,
}

impl Watchers {
    /// Whether there are none at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Those of a vCPU's thread.
    pub fn of(&self, thread: u32) -> &[u32] {
        self.by_thread.get(&thread).map_or(&[], Vec::as_slice)
    }

    /// Those whose vCPU has a CPU, or had it last.
    pub fn on(&self, cpu: i32) -> &[u32] {
        self.by_cpu.get(&cpu).map_or(&[], Vec::as_slice)
    }

    /// An instance begins to watch. Beyond a number that no vCPU reaches but by intent it is not told anything.
    pub fn add(&mut self, thread: u32, cpu: i32, instance: u32) {
        let all = self.by_thread.entry(thread).or_default();
        if all.len() < MOST_OF_ONE {
            all.push(instance);
            self.count += 1;
            self.arrives(cpu, instance);
        }
    }

    /// It ends. Lists stay: a vCPU is watched again and again.
    pub fn remove(&mut self, thread: u32, cpu: i32, instance: u32) {
        let Some(all) = self.by_thread.get_mut(&thread) else {
            return;
        };
        if let Some(at) = all.iter().position(|one| *one == instance) {
            all.remove(at);
            self.count -= 1;
            self.leaves(cpu, instance);
        }
    }

    /// The instances of a vCPU's thread go with it to another CPU. `from` tells where each was, once, and changes it.
    pub fn moved(&mut self, thread: u32, to: i32, mut from: impl FnMut(u32) -> Option<i32>) {
        let Some(all) = self.by_thread.remove(&thread) else {
            return;
        };
        for instance in &all {
            if let Some(from) = from(*instance).filter(|from| *from != to) {
                self.leaves(from, *instance);
                self.arrives(to, *instance);
            }
        }
        self.by_thread.insert(thread, all);
    }

    fn arrives(&mut self, cpu: i32, instance: u32) {
        if !(0..MAX_CPU).contains(&cpu) {
            return;
        }
        let all = self.by_cpu.entry(cpu).or_default();
        if all.len() < MOST_ON_CPU {
            all.push(instance);
        }
    }

    fn leaves(&mut self, cpu: i32, instance: u32) {
        if let Some(all) = self.by_cpu.get_mut(&cpu)
            && let Some(at) = all.iter().position(|one| *one == instance)
        {
            all.remove(at);
        }
    }
}
