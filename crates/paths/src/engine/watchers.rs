//! Instances that watch what goes on around them.

use super::slots::SlotMap;

/// Instances of one chain that watch what their vCPU does, of one vCPU, and what else goes on, of one CPU: at most so
/// many. Those of others do not count, or what is said of a path would depend on what else is followed.
const MOST_OF_ONE: usize = 256;
const MOST_ON_CPU: usize = 1024;

/// An instance that watches, and its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstanceWatcher {
    pub(super) instance: u32,
    pub(super) chain: u32,
}

/// Returns whether there is room for one more of a chain.
fn has_room(all: &[InstanceWatcher], chain: u32, most: usize) -> bool {
    all.len() < most || all.iter().filter(|one| one.chain == chain).count() < most
}

/// Instances that watch, by their vCPU's thread, and by the CPU that has it.
#[derive(Debug, Default)]
pub(crate) struct WatcherTable {
    by_thread: SlotMap<Vec<InstanceWatcher>>,
    by_cpu: CpuWatchers,
    count: usize,
}

/// By CPU, the instances whose vCPU has it, or had it last; none where the CPU is not known.
#[derive(Debug, Default)]
struct CpuWatchers(Vec<Vec<InstanceWatcher>>);

impl CpuWatchers {
    fn get(&self, cpu: i32) -> &[InstanceWatcher] {
        let at = usize::try_from(cpu).ok();
        at.and_then(|at| self.0.get(at)).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, cpu: i32, one: InstanceWatcher) {
        let Some(at) = event::cpu_index(cpu) else {
            return;
        };
        if self.0.len() <= at {
            self.0.resize_with(at + 1, Vec::new);
        }
        if has_room(&self.0[at], one.chain, MOST_ON_CPU) {
            self.0[at].push(one);
        }
    }

    fn remove(&mut self, cpu: i32, instance: u32) {
        if let Ok(at) = usize::try_from(cpu)
            && let Some(all) = self.0.get_mut(at)
            && let Some(at) = all.iter().position(|one| one.instance == instance)
        {
            all.remove(at);
        }
    }
}

impl WatcherTable {
    /// Returns whether there are none at all.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Those of a vCPU's thread.
    pub(super) fn of(&self, thread: u32) -> &[InstanceWatcher] {
        let all = self.by_thread.get(u64::from(thread));
        all.map_or(&[], Vec::as_slice)
    }

    /// Those whose vCPU has a CPU, or had it last.
    pub(super) fn on(&self, cpu: i32) -> &[InstanceWatcher] {
        self.by_cpu.get(cpu)
    }

    /// An instance begins to watch. Beyond a number of its chain nothing is noted for it.
    pub(super) fn add(&mut self, thread: u32, cpu: i32, one: InstanceWatcher) {
        let all = self.by_thread.entry(u64::from(thread));
        if has_room(all, one.chain, MOST_OF_ONE) {
            all.push(one);
            self.count += 1;
            self.by_cpu.add(cpu, one);
        }
    }

    /// Threads are not kept apart any more. Lists of which nobody watches go, also those of threads that retired while
    /// somebody did.
    pub(super) fn retire(&mut self) {
        self.by_thread.retain(|all| !all.is_empty());
    }

    /// It ends. Lists stay: a vCPU is watched again and again.
    pub(super) fn remove(&mut self, thread: u32, cpu: i32, instance: u32) {
        let Some(all) = self.by_thread.get_mut(u64::from(thread)) else {
            return;
        };
        if let Some(at) = all.iter().position(|one| one.instance == instance) {
            all.remove(at);
            self.count -= 1;
            self.by_cpu.remove(cpu, instance);
        }
    }

    /// The instances of a vCPU's thread go with it to another CPU. `from` returns where each was, once, and changes it.
    pub(super) fn moved(&mut self, thread: u32, to: i32, mut from: impl FnMut(u32) -> Option<i32>) {
        let Some(all) = self.by_thread.get(u64::from(thread)) else {
            return;
        };
        for one in all {
            if let Some(from) = from(one.instance).filter(|from| *from != to) {
                self.by_cpu.remove(from, one.instance);
                self.by_cpu.add(to, *one);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_threads_that_are_gone_go_once_nobody_watches() {
        let mut table = WatcherTable::default();
        let one = |instance| InstanceWatcher { instance, chain: 0 };
        let threads = 1 << 16..(1 << 16) + 100;
        for thread in threads.clone() {
            table.add(thread, 3, one(thread));
        }
        // All retire while they are watched, and all but the first end later.
        table.retire();
        for thread in threads.clone().skip(1) {
            assert_eq!(table.of(thread), [one(thread)]);
            table.remove(thread, 3, thread);
        }
        table.retire();
        let known = |thread: &u32| table.by_thread.get(u64::from(*thread)).is_some();
        assert_eq!(threads.clone().filter(known).count(), 1);
        assert_eq!(table.of(threads.start), [one(threads.start)]);
        assert_eq!(table.on(3), [one(threads.start)]);
    }
}
