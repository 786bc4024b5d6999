//! Which threads are of one VM, where a recording has no process ids: what wake-ups show.
//!
//! A vCPU that sleeps in KVM is woken by whoever has an interrupt for it: another vCPU of its VM (`kvm_vcpu_kick`
//! of an inter-processor interrupt), its VMM (an ioctl, an eventfd, the big lock that it gives back), or an interrupt
//! of the host. Only the last is made on behalf of anybody, and ftrace says of each event whether it was made in an
//! interrupt. So a thread of user space that wakes a vCPU outside of interrupts, more than once, is of that vCPU's VM.
//! Threads of the kernel serve several VMs.

use std::collections::BTreeMap;

use event::{Body, Event, NONE, index_of};
use rustc_hash::FxHashMap;

use crate::retired::RetiredThreads;
use crate::roles::NamedRole;

/// Pairs that are counted; a VM has some for each vCPU.
const MAX_PAIRS: usize = 1 << 14;

/// Wake-ups that make a bond: a single one may be chance, as where two processes wait for one lock of the kernel.
const BOND: u32 = 2;

/// In an interrupt, a softirq or an NMI (`TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ`, `TRACE_FLAG_NMI` in
/// `include/linux/trace_events.h`).
const IN_INTERRUPT: u8 = 0x08 | 0x10 | 0x40;

/// How often which thread woke which vCPU.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bonds {
    /// By waker and vCPU's thread.
    pairs: FxHashMap<(i32, i32), u32>,
}

/// Returns whether an event was made in an interrupt; `None` where the recording does not say.
pub fn in_interrupt(event: &Event<'_>) -> Option<bool> {
    let Body::Raw(record) = event.body else {
        return None;
    };
    let field = event.ty.format?.field("common_flags")?;
    let flags = record.get(index_of(field.offset))?;
    Some(flags & IN_INTERRUPT != 0)
}

impl Bonds {
    /// Returns how many pairs there are.
    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Forgets threads that have become part of sums.
    pub(crate) fn retire(&mut self, retired: &RetiredThreads) {
        let pairs = &mut self.pairs;
        pairs.retain(|(waker, target), _| !retired.has_tid(*waker) && !retired.has_tid(*target));
    }

    /// Takes a wake-up of a vCPU's thread.
    pub(crate) fn wakes(&mut self, event: &Event<'_>, target: i32) {
        // Where processes are recorded nothing has to be concluded.
        if event.pid != NONE || event.tid <= 0 || event.tid == target {
            return;
        }
        if in_interrupt(event) != Some(false) {
            return;
        }
        let pair = (event.tid, target);
        if let Some(count) = self.pairs.get_mut(&pair) {
            *count = count.saturating_add(1);
        } else if self.pairs.len() < MAX_PAIRS {
            self.pairs.insert(pair, 1);
        }
    }

    /// Returns groups of vCPU threads that are of one VM, each with the other threads that are of it, both sorted.
    /// `vcpus` has the threads in question and their vCPUs' numbers; `comm` returns names.
    pub(crate) fn groups<'t>(
        &self,
        vcpus: &BTreeMap<i32, Option<u32>>,
        comm: impl Fn(i32) -> Option<&'t str>,
    ) -> Vec<(Vec<i32>, Vec<i32>)> {
        let mut by_waker: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for (&(waker, target), &count) in &self.pairs {
            if count >= BOND && vcpus.contains_key(&target) {
                by_waker.entry(waker).or_default().push(target);
            }
        }
        // A VM has one vCPU of a number: who wakes two works for more than one VM.
        let one_vm = |tids: &mut dyn Iterator<Item = i32>| {
            let mut numbers: Vec<u32> = tids.filter_map(|tid| *vcpus.get(&tid)?).collect();
            let all = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            numbers.len() == all
        };
        by_waker.retain(|waker, targets| {
            let known = vcpus.contains_key(waker)
                || comm(*waker).is_some_and(|comm| !NamedRole::from(comm).serves_anybody());
            let itself = vcpus.contains_key(waker).then_some(*waker);
            known && one_vm(&mut targets.iter().copied().chain(itself))
        });
        let mut groups = BondGroups::default();
        for (waker, targets) in &by_waker {
            for target in targets {
                groups.join(*waker, *target);
            }
        }
        let mut by_root: BTreeMap<i32, (Vec<i32>, Vec<i32>)> = BTreeMap::new();
        for tid in by_waker.keys().chain(vcpus.keys()) {
            let group = by_root.entry(groups.root(*tid)).or_default();
            let list = if vcpus.contains_key(tid) {
                &mut group.0
            } else {
                &mut group.1
            };
            list.push(*tid);
        }
        let mut out: Vec<_> = by_root.into_values().collect();
        for (vcpus, others) in &mut out {
            for list in [vcpus, others] {
                list.sort_unstable();
                list.dedup();
            }
        }
        out.retain(|(vcpus, others)| {
            vcpus.len() + others.len() > 1 && one_vm(&mut vcpus.iter().copied())
        });
        out
    }
}

/// Threads joined to groups.
#[derive(Debug, Default)]
struct BondGroups {
    parent: BTreeMap<i32, i32>,
}

impl BondGroups {
    fn root(&mut self, tid: i32) -> i32 {
        let mut at = tid;
        while let Some(&up) = self.parent.get(&at) {
            // Halve the way for the next one.
            if let Some(&further) = self.parent.get(&up) {
                self.parent.insert(at, further);
            }
            at = up;
        }
        at
    }

    fn join(&mut self, a: i32, b: i32) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            self.parent.insert(a.max(b), a.min(b));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bonds(pairs: &[(i32, i32, u32)]) -> Bonds {
        let pairs = pairs
            .iter()
            .map(|&(waker, target, count)| ((waker, target), count));
        Bonds {
            pairs: pairs.collect(),
        }
    }

    #[test]
    fn threads_that_wake_vcpus_are_of_their_vm() {
        let vcpus = [
            (194, Some(0)),
            (195, Some(0)),
            (196, Some(1)),
            (197, Some(1)),
        ];
        let vcpus = vcpus.into_iter().collect();
        let comm = |tid: i32| match tid {
            17 => Some("kworker/0:1"),
            180 | 182 => Some("qemu-system-x86"),
            _ => None,
        };
        let seen = bonds(&[
            (182, 194, 36),
            (197, 194, 6),
            (194, 197, 4),
            (180, 195, 31),
            (180, 196, 42),
            (195, 196, 31),
            // Once is chance, a kworker works for all, and who has no name may be the kernel's.
            (195, 194, 1),
            (17, 194, 9),
            (17, 196, 9),
            (300, 194, 9),
            (300, 196, 9),
        ]);
        let groups = seen.groups(&vcpus, comm);
        assert_eq!(
            groups,
            [(vec![195, 196], vec![180]), (vec![194, 197], vec![182])]
        );
    }

    #[test]
    fn who_wakes_two_vcpus_of_a_number_is_of_no_vm() {
        let vcpus = [(10, Some(0)), (11, Some(0)), (12, Some(1))]
            .into_iter()
            .collect();
        let seen = bonds(&[(5, 10, 9), (5, 11, 9), (10, 12, 9)]);
        let groups = seen.groups(&vcpus, |_| Some("qemu"));
        assert_eq!(groups, [(vec![10, 12], vec![])]);
        // Nor are those whose bonds together say so.
        let seen = bonds(&[(10, 12, 9), (11, 12, 9)]);
        assert_eq!(seen.groups(&vcpus, |_| None), []);
    }
}
