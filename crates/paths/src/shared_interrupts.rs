//! Which vCPU an arm64 guest's shared interrupts (SPIs) go to.
//!
//! `vgic_update_irq_pending` has the number of a vCPU, which is the interrupt's target for private ones (INTID below
//! 32) only: for a shared one KVM is given no vCPU, and the event says 0, and on newer kernels nothing
//! (`virt/kvm/arm/vgic/vgic.c`, `kvm_vgic_inject_irq`). Whom the thread that raises it wakes right behind it is the
//! target, and where an interrupt went once it goes until the guest moves it: the target is then woken again.

use rustc_hash::FxHashMap;

/// Private interrupts have lower numbers (GICv3, INTIDs).
pub(crate) const FIRST_SHARED: u64 = 32;
/// A wake-up that belongs to an interrupt comes within the same call.
const SAME_CALL_NS: u64 = 100_000;
/// Votes for a target, at most: after so many wake-ups of another one the guest has moved the interrupt.
const MOST_VOTES: u8 = 8;
/// Interrupts whose targets are remembered, at most.
const MAX_REMEMBERED: usize = 4096;

/// A VM's interrupt: its process, or the thread that raises it where that is not known, and its number.
type SharedInterrupt = (i64, u64);

/// A vCPU that an interrupt seems to go to.
#[derive(Debug, Clone, Copy)]
struct LikelyTarget {
    vcpu: u32,
    /// How often it was woken more than others. A thread of the VMM that has raised an interrupt for a vCPU that runs
    /// may wake another one for its own reasons.
    votes: u8,
}

/// Targets of shared interrupts, as wake-ups show them.
#[derive(Debug, Default)]
pub(crate) struct SharedInterrupts {
    targets: FxHashMap<SharedInterrupt, LikelyTarget>,
    /// By thread: the interrupt that it raised last, and when.
    raised: FxHashMap<u32, (SharedInterrupt, u64)>,
}

impl SharedInterrupts {
    /// A thread raises one. Returns the number of the vCPU that it goes to, if it is known by now.
    pub(crate) fn raises(
        &mut self,
        thread: u32,
        process: Option<i32>,
        irq: u64,
        time: u64,
    ) -> Option<u32> {
        let owner = process.map_or(-1 - i64::from(thread), i64::from);
        self.raised.insert(thread, ((owner, irq), time));
        self.targets.get(&(owner, irq)).map(|target| target.vcpu)
    }

    /// A thread wakes a vCPU.
    pub(crate) fn wakes(&mut self, thread: u32, vcpu: u32, time: u64) {
        let Some((interrupt, at)) = self.raised.remove(&thread) else {
            return;
        };
        if time.saturating_sub(at) > SAME_CALL_NS {
            return;
        }
        let room = self.targets.len() < MAX_REMEMBERED;
        match self.targets.get_mut(&interrupt) {
            Some(target) if target.vcpu == vcpu => {
                target.votes = (target.votes + 1).min(MOST_VOTES)
            }
            Some(target) if target.votes > 1 => target.votes -= 1,
            Some(target) => *target = LikelyTarget { vcpu, votes: 1 },
            None if room => {
                self.targets
                    .insert(interrupt, LikelyTarget { vcpu, votes: 1 });
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SharedInterrupts;

    #[test]
    fn an_interrupt_goes_where_its_wake_ups_went() {
        let mut shared = SharedInterrupts::default();
        assert_eq!(shared.raises(7, Some(100), 79, 1_000), None);
        shared.wakes(7, 1, 5_000);
        // Its target runs now, and is not woken.
        assert_eq!(shared.raises(7, Some(100), 79, 10_000), Some(1));
        assert_eq!(
            shared.raises(9, Some(200), 79, 11_000),
            None,
            "another VM's"
        );
        assert_eq!(shared.raises(7, Some(100), 80, 12_000), None, "another one");
        // The guest moves it.
        shared.raises(7, Some(100), 79, 13_000);
        shared.wakes(7, 2, 14_000);
        assert_eq!(shared.raises(7, Some(100), 79, 15_000), Some(2));
        // A wake-up much later is of something else.
        shared.wakes(7, 3, 9_000_000);
        assert_eq!(shared.raises(7, Some(100), 79, 10_000_000), Some(2));
    }
}
