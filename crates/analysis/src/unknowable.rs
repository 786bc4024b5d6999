//! Which parts of vCPUs' time cannot be known without events that were not recorded.

use std::fmt;

use doubts::DoubtKind;
use model::Seen;
use serde::Serialize;

/// Time of which the recording does not say enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Unknowable {
    /// Fields that cannot be known, or only in part.
    pub fields: &'static [&'static str],
    /// Why, and where the time is instead.
    pub why: &'static str,
}

impl Unknowable {
    /// Returns the doubt that says so.
    pub fn doubt(&self) -> DoubtKind {
        DoubtKind::StateUnknown {
            fields: self.fields.to_vec(),
            why: self.why,
        }
    }
}

impl fmt::Display for Unknowable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Cannot be known: {}: {}.",
            self.fields.join(" and "),
            self.why
        )
    }
}

/// Returns what cannot be known of vCPUs' time without the events that a recording does not have.
pub fn unknowable(seen: &Seen) -> Vec<Unknowable> {
    let mut out = Vec::new();
    if !seen.switches {
        out.push(Unknowable {
            fields: &["runnable_ns"],
            why: "there are no sched_switch events: time without a CPU is within kernel_ns, user_ns and \
                  halted_ns, and all of an exit in which the guest asked to wait is in halted_ns",
        });
    } else if !seen.returns {
        out.push(Unknowable {
            fields: &["runnable_ns"],
            why: "threads are seen to leave their CPUs and not to get them again, as where one process was \
                  recorded (perf record -p): halted_ns and runnable_ns last until a vCPU's next event",
        });
    } else if !seen.wakeups {
        out.push(Unknowable {
            fields: &["runnable_ns"],
            why: "there are no sched_wakeup events: it holds what followed preemption, and how long a woken \
                  vCPU waited for its CPU is within halted_ns",
        });
    }
    if !seen.userspace_exits {
        out.push(Unknowable {
            fields: &["kernel_ns", "user_ns"],
            why: "there are no kvm_userspace_exit events: handling by KVM and by the VMM cannot be \
                  separated, and is in unknown_ns but for exits in which the guest asked to wait (all of it is KVM's \
                  if they were recorded and none came)",
        });
    }
    if !seen.halts {
        out.push(Unknowable {
            fields: &["poll_ns"],
            why: if seen.switches {
                "there are no kvm_vcpu_wakeup events, or their nanoseconds cannot be compared with the \
                 recording's ticks: halt polling is within kernel_ns"
            } else {
                "there are no kvm_vcpu_wakeup events: halt polling is within halted_ns"
            },
        });
    } else if !seen.switches {
        out.push(Unknowable {
            fields: &["poll_ns"],
            why: "there are no sched_switch events: it holds polls that succeeded, and those that failed are \
                  within halted_ns",
        });
    } else if !seen.poll_lengths {
        out.push(Unknowable {
            fields: &["poll_ns"],
            why: "there are no kvm_halt_poll_ns events: whether a halt was polled in vain is guessed, by 10 us or more \
                  on the CPU before it slept, which a slow host takes to go to sleep",
        });
    }
    out
}
