//! Interrupts of arm64's interrupt controller.
//!
//! `vgic_update_irq_pending` says that the line of an interrupt was raised or lowered (`kvm_vgic_inject_irq`,
//! `arch/arm64/kvm/vgic/{vgic.c,trace.h}`), on the thread that did it. Of interrupts that a vCPU has for itself
//! (below 32) it has the vCPU's number; which vCPU takes a shared one, it does not say.

use std::collections::BTreeMap;

use event::{Event, NONE};
use model::Vm;
use rustc_hash::FxHashMap;

use super::row::{GicIrq, IrqCounts, IrqPlace, IrqRow};
use crate::analysis::WalkState;

/// Interrupts below it are a vCPU's own: its SGIs and PPIs (`include/kvm/arm_vgic.h`, `VGIC_NR_PRIVATE_IRQS`).
const FIRST_SHARED: u32 = 32;

/// Who raised an interrupt of arm64, for which vCPU's number if it is a vCPU's own, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct GicSender {
    tid: i32,
    pid: i32,
    number: Option<u32>,
    intid: u32,
}

impl GicSender {
    /// Returns the row that it is counted in; `None` where it is not known of which VM it is.
    pub(super) fn place(&self, vms: &[Vm]) -> Option<IrqPlace> {
        let vm = vm_of(vms, self.tid, self.pid)?;
        let owner = self.number.and_then(|number| owner(&vms[vm], number));
        Some(IrqPlace {
            tid: owner.map_or(NONE, |(_, tid)| tid),
            vm: Some(vm),
            number: self.intid,
        })
    }

    /// Returns who made an event, and for which vCPU it is if that is the interrupt's own.
    pub(super) fn of(event: &Event<'_>, vcpu: Option<u32>, intid: u32) -> GicSender {
        GicSender {
            tid: event.tid,
            pid: event.pid,
            number: vcpu.filter(|_| intid < FIRST_SHARED),
            intid,
        }
    }
}

/// Which VM's interrupt of arm64 it is, and whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct GicPlace {
    vm: usize,
    /// Number and thread of the vCPU whose own it is.
    owner: Option<(u32, i32)>,
    intid: u32,
}

/// Returns rows, and how many interrupts are in none, since it is not known of which VM they are.
pub(super) fn rows(
    all: &FxHashMap<GicSender, IrqCounts>,
    vms: &[Vm],
    walked: &WalkState<'_>,
) -> (Vec<IrqRow>, u64) {
    let mut rows: BTreeMap<GicPlace, IrqCounts> = BTreeMap::new();
    let mut unresolved = 0;
    for (sender, sums) in all {
        let Some(at) = vm_of(vms, sender.tid, sender.pid) else {
            unresolved += sums.count;
            continue;
        };
        let vcpus = || vms[at].vcpus.iter();
        let owner = sender.number.and_then(|number| owner(&vms[at], number));
        let left_out = match owner {
            Some((_, tid)) => walked.left_out.has(tid),
            // Whoever looks at one vCPU does not see what may have gone to another.
            None => vcpus().any(|vcpu| walked.left_out.has(vcpu.tid)),
        };
        if !left_out {
            let place = GicPlace {
                vm: at,
                owner,
                intid: sender.intid,
            };
            rows.entry(place).or_default().add(*sums);
        }
    }
    let rows = rows.into_iter().map(|(place, sums)| IrqRow {
        vm: Some(place.vm),
        vcpu: place.owner.map(|(number, _)| number),
        tid: place.owner.map_or(NONE, |(_, tid)| tid),
        gic: Some(GicIrq {
            intid: place.intid,
            raised: sums.count,
            lowered: sums.special,
        }),
        ..IrqRow::default()
    });
    (rows.collect(), unresolved)
}

/// Returns number and thread of a VM's vCPU.
fn owner(vm: &Vm, number: u32) -> Option<(u32, i32)> {
    let vcpu = vm.vcpus.iter().find(|vcpu| vcpu.id == number)?;
    Some((vcpu.id, vcpu.tid))
}

/// Returns the place of the VM that a thread works for; of the only one where that is not known.
fn vm_of(vms: &[Vm], tid: i32, pid: i32) -> Option<usize> {
    let brings = |vm: &Vm| vm.is_of(tid) || (pid != NONE && vm.is_of(pid));
    let only = || (vms.len() == 1).then_some(0);
    vms.iter().position(brings).or_else(only)
}
