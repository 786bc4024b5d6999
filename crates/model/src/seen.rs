//! Which kinds of events a recording has, and which parts of the vCPUs' time are unknown without the others.

use crate::span::{State, Times};

/// Which kinds of events a recording has: without some, parts of a vCPU's time are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeenEvents {
    /// `kvm_entry`: when a vCPU enters its guest.
    pub entries: bool,
    /// `kvm_exit`: when it leaves it.
    pub exits: bool,
    /// No exit and no entry was recorded: which threads are vCPUs is presumed, and what they did with their CPUs is not
    /// known.
    pub presumed: bool,
    /// `sched_switch`: whether a thread had its CPU.
    pub switches: bool,
    /// Those by which threads get a CPU: a recording of one process has only those by which its threads leave.
    pub returns: bool,
    /// `sched_wakeup` or `sched_waking`: when a thread that slept was woken.
    pub wakeups: bool,
    /// `kvm_userspace_exit`: whether an exit was handled by the VMM.
    pub userspace_exits: bool,
    /// `kvm_vcpu_wakeup`: how long a vCPU was halted, and whether it slept.
    pub halts: bool,
    /// `kvm_halt_poll_ns`: whether KVM polled before a vCPU slept. Every poll that fails makes one.
    pub poll_lengths: bool,
}

impl SeenEvents {
    /// Puts the time that the recording cannot split where it belongs.
    ///
    /// Without `sched_switch` an exit in which the guest asked to wait is taken as halted whole, which
    /// `kernel_waiting_ns`, the kernel's part in such exits, was. Without `kvm_userspace_exit` handling by
    /// KVM and by the VMM look the same, so that of all other exits is unknown.
    pub fn settle(&self, times: &Times, kernel_waiting_ns: u64) -> Times {
        let mut settled = *times;
        if !self.switches {
            settled.shift(State::Kernel, State::Halted, kernel_waiting_ns);
        }
        if !self.userspace_exits {
            let of_waiting = if self.switches { kernel_waiting_ns } else { 0 };
            let handling = settled.get(State::Kernel).saturating_sub(of_waiting);
            settled.shift(State::Kernel, State::Unknown, handling);
            settled.shift(State::KernelBlocked, State::Unknown, u64::MAX);
        }
        settled
    }

    /// Returns the state under which a stretch of time is counted, by the same rules as [`SeenEvents::settle`] has for
    /// sums. `waiting` says whether it was in an exit in which the guest asked to wait.
    pub fn state(&self, state: State, waiting: bool) -> State {
        match state {
            State::Kernel if waiting && !self.switches => State::Halted,
            State::Kernel if waiting => State::Kernel,
            State::Kernel | State::KernelBlocked if !self.userspace_exits => State::Unknown,
            state => state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_and_sums_are_settled_alike() {
        for bits in 0..4 {
            let seen = SeenEvents {
                switches: bits & 1 != 0,
                userspace_exits: bits & 2 != 0,
                ..SeenEvents::default()
            };
            let (mut raw, mut settled, mut waiting_ns) = (Times::default(), Times::default(), 0);
            for (state, ns) in State::ALL.into_iter().zip(1u64..) {
                for (waiting, ns) in [(false, ns), (true, ns * 100)] {
                    raw.add(state, ns);
                    settled.add(seen.state(state, waiting), ns);
                    if state == State::Kernel && waiting {
                        waiting_ns += ns;
                    }
                }
            }
            assert_eq!(seen.settle(&raw, waiting_ns), settled, "{seen:?}");
        }
    }
}
