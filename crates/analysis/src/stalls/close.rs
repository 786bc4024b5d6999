//! What held a vCPU, when it goes on.

use model::Machine;

use crate::activity::Activity;

use super::{KeptStall, KeptTask, LONG_NS, StallCause, StallTimes, Stalls};

/// Stalls that are kept with their circumstances: the longest.
const KEPT: usize = 24;

impl Stalls {
    /// An exit, or what the guest ran, is over: what was it?
    pub(super) fn close(&mut self, number: u32, machine: &Machine, activity: &Activity) {
        self.end_stall(number, machine, activity, false);
    }

    /// The recording is over, and the vCPU still sleeps.
    pub(super) fn close_at_end(&mut self, number: u32, machine: &Machine, activity: &Activity) {
        self.end_stall(number, machine, activity, true);
    }

    fn end_stall(&mut self, number: u32, machine: &Machine, activity: &Activity, is_open: bool) {
        let Some(vcpu) = self.vcpus.get_mut(number) else {
            return;
        };
        if let Some((from, to)) = vcpu.stopped_at
            && to - from >= LONG_NS
        {
            // A halted vCPU that is stopped does not see its timer either.
            vcpu.stopped_at = None;
            vcpu.from = Some(vcpu.from.map_or(from, |begun| begun.min(from)));
            vcpu.to = vcpu.to.max(to);
        }
        let Some(from) = vcpu.from.take() else {
            return;
        };
        let (to, split) = (vcpu.to, std::mem::take(&mut vcpu.split));
        let total = to.saturating_sub(from);
        if total < LONG_NS {
            vcpu.longest_behind = None;
            return;
        }
        let stall = KeptStall {
            tid: machine.vcpu(number).map_or(0, |vcpu| vcpu.tid),
            from,
            to,
            held: StallCause::Unknown,
            held_ns: 0,
            vmm_ns: split.vmm.saturating_add(split.user),
            reason: vcpu.reason,
            access: vcpu.access,
            waker: None,
            behind: None,
            is_open,
        };
        let stopped = vcpu.stopped;
        let uninterruptible = vcpu.uninterruptible;
        let behind = vcpu.longest_behind.take();
        let (woken_by, beside) = (vcpu.woken_by, std::mem::take(&mut vcpu.beside));
        let cpu = vcpu.cpu;
        let silent = activity.silence_ns(cpu, from, to);
        let held = self.held(&split, stopped, uninterruptible, silent, total);
        let Some((held, held_ns)) = held else { return };
        let sleeps = matches!(
            held,
            StallCause::Stopped | StallCause::Vmm | StallCause::Kernel
        );
        if is_open && !sleeps {
            return;
        }
        let waker = woken_by.filter(|_| sleeps).map(|slot| {
            let ran = beside.iter().find(|(task, _)| *task == slot);
            KeptTask::Slot(slot, ran.map_or(0, |(_, ns)| *ns))
        });
        let behind = behind.filter(|_| held == StallCause::Behind);
        let behind = behind.map(|(slot, ns)| KeptTask::Slot(slot, ns));
        let sum = &mut self.sums[held as usize];
        sum.0 += 1;
        sum.1 = sum.1.saturating_add(total);
        self.keep(KeptStall {
            held,
            held_ns,
            waker,
            behind,
            ..stall
        });
    }

    /// What held a vCPU for most of a stall; `None` if that is not known to be one.
    fn held(
        &self,
        split: &StallTimes,
        stopped: u64,
        uninterruptible: u64,
        silent: u64,
        total: u64,
    ) -> Option<(StallCause, u64)> {
        if stopped >= total / 2 {
            return Some((StallCause::Stopped, stopped));
        }
        // KVM sleeps interruptibly where the guest asked for it: in halts, and before a vCPU is started (INIT
        // and SIPI, PSCI). Of the exit that it is taken for, events may have been missed.
        let light = split.asked.saturating_sub(stopped);
        let light = light.saturating_sub(uninterruptible);
        let asked = if self.userspace { light } else { 0 };
        let known = split.known.saturating_sub(asked);
        // What is not known is no stall, unless it is known for long enough.
        if known < LONG_NS || asked > total / 2 {
            return None;
        }
        // Without kvm_userspace_exit a sleep in KVM looks like one in the VMM.
        if !self.switches || !self.userspace && light > total / 2 {
            return Some((StallCause::Unknown, known));
        }
        let kinds = [
            (StallCause::Vmm, split.vmm),
            (StallCause::Kernel, split.kernel.saturating_sub(asked)),
            (StallCause::Behind, split.behind),
            (StallCause::Host, split.idle),
            (StallCause::Busy, split.running),
        ];
        let (held, ns) = kinds.into_iter().max_by_key(|(_, ns)| *ns)?;
        Some(match held {
            StallCause::Host | StallCause::Busy
                if silent >= total / 2 && (self.ticks || held == StallCause::Host) =>
            {
                (StallCause::Host, silent)
            }
            // An idle CPU that does other things, or one that has no events while a task runs.
            StallCause::Host => (StallCause::Unknown, ns),
            StallCause::Busy if silent >= total / 2 => (StallCause::Unknown, ns),
            _ => (held, ns),
        })
    }

    fn keep(&mut self, stall: KeptStall) {
        let ns = |one: &KeptStall| one.to - one.from;
        if self.kept.len() < KEPT {
            self.kept.push(stall);
            return;
        }
        let shortest = self.kept.iter_mut().min_by_key(|one| ns(one));
        if let Some(shortest) = shortest
            && ns(shortest) < ns(&stall)
        {
            *shortest = stall;
        }
    }
}
