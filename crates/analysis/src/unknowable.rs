//! Which parts of vCPUs' time cannot be known without events that were not recorded.

use std::fmt;

use doubts::DoubtKind;
use model::SeenEvents;
use serde::Serialize;

/// Time of which the recording does not say enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Unknowable {
    /// Fields that cannot be known, or only in part.
    pub fields: &'static [&'static str],
    /// Columns of tables that are parts of these fields, or count the same: they cannot be known either.
    #[serde(skip)]
    pub parts: &'static [&'static str],
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
            "{} could not be measured: {}.",
            self.fields.join(" and "),
            self.why
        )
    }
}

/// How long a vCPU waited for a CPU, each time.
const WAITS: &[&str] = &[
    "waits",
    "wait_p50_ns",
    "wait_p90_ns",
    "wait_p99_ns",
    "wait_max_ns",
];
/// The same, and what a vCPU slept while its exit was handled.
const WITHOUT_CPU: &[&str] = &[
    "waits",
    "wait_p50_ns",
    "wait_p90_ns",
    "wait_p99_ns",
    "wait_max_ns",
    "kernel_blocked_ns",
    "user_blocked_ns",
];
/// Polls of halts.
const POLLS: &[&str] = &[
    "polls_succeeded",
    "polls_succeeded_ns",
    "polls_failed",
    "polls_failed_ns",
];
const POLLS_FAILED: &[&str] = &["polls_failed", "polls_failed_ns"];

/// What events of KVM alone show.
const OF_KVM: &[&str] = &[
    "exits",
    "polls_succeeded",
    "polls_succeeded_ns",
    "polls_failed",
    "polls_failed_ns",
    "kernel_blocked_ns",
    "user_blocked_ns",
    "user_count",
];

/// Returns an amount of a column; `None` where it is 0 because the recording cannot show it, which is not the 0 of
/// what did not occur.
pub fn known_amount(unknowable: &[Unknowable], column: &str, amount: u64) -> Option<u64> {
    let hides = |one: &Unknowable| one.fields.contains(&column) || one.parts.contains(&column);
    (amount > 0 || !unknowable.iter().any(hides)).then_some(amount)
}

/// Returns what cannot be known of the time in which vCPUs waited for CPUs.
fn waits(seen: &SeenEvents) -> Option<Unknowable> {
    if !seen.switches {
        Some(Unknowable {
            fields: &["runnable_ns"],
            parts: WITHOUT_CPU,
            why: "there are no sched_switch events. Time without a CPU counts as kernel_ns, user_ns or \
                  halted_ns, and in an exit in which the guest asked to wait as halted_ns",
        })
    } else if !seen.returns {
        Some(Unknowable {
            fields: &["runnable_ns"],
            parts: WAITS,
            why: match seen.presumed {
                true => {
                    "the recording has when threads left their CPUs and not when they got them again, as that \
                     of one process has (perf record -p). runnable_ns lasts until the vCPU's next event"
                }
                false => {
                    "the recording has when threads left their CPUs and not when they got them again, as that \
                     of one process has (perf record -p). halted_ns and runnable_ns last until the vCPU's next \
                     event"
                }
            },
        })
    } else if !seen.wakeups {
        Some(Unknowable {
            fields: &["runnable_ns"],
            parts: WAITS,
            why: match seen.presumed {
                true => {
                    "there are no sched_wakeup events. It has only waits that followed preemption; how long a \
                     woken vCPU waited for its CPU counts as unknown_ns"
                }
                false => {
                    "there are no sched_wakeup events. It has only waits that followed preemption; how long a \
                     woken vCPU waited for its CPU counts as halted_ns"
                }
            },
        })
    } else {
        None
    }
}

/// Returns what cannot be known of vCPUs' time without the events that a recording does not have.
pub fn unknowable(seen: &SeenEvents) -> Vec<Unknowable> {
    let mut out = Vec::new();
    if seen.presumed {
        out.push(Unknowable {
            fields: &["guest_ns", "kernel_ns", "user_ns", "poll_ns", "halted_ns"],
            parts: OF_KVM,
            why: "there are no exits and no entries. Time on a CPU and asleep counts as unknown_ns, and a vCPU \
                  that slept is not known to have been halted",
        });
    }
    if !seen.entries && !seen.presumed {
        out.push(Unknowable {
            fields: &["guest_ns"],
            parts: &[],
            why: "there are no kvm_entry events, so when a vCPU came back into its guest is not known. Its \
                  time there counts to the exit before",
        });
    }
    if !seen.exits && !seen.presumed {
        out.push(Unknowable {
            fields: &["kernel_ns"],
            parts: &["exits"],
            why: "there are no kvm_exit events, so when a vCPU left its guest is not known. What KVM did for \
                  it counts as guest_ns and unknown_ns",
        });
    }
    out.extend(waits(seen));
    if seen.presumed {
        return out;
    }
    if !seen.userspace_exits {
        out.push(Unknowable {
            fields: &["kernel_ns", "user_ns"],
            parts: &["kernel_blocked_ns", "user_blocked_ns", "user_count"],
            why: "there are no kvm_userspace_exit events, so KVM's handling and the VMM's cannot be separated. \
                  Both count as unknown_ns, except in exits in which the guest asked to wait. If these events \
                  were recorded and none came, all of it is KVM's",
        });
    }
    if !seen.halts {
        out.push(Unknowable {
            fields: &["poll_ns"],
            parts: POLLS,
            why: if seen.switches {
                "there are no kvm_vcpu_wakeup events, or their nanoseconds cannot be compared with the \
                 recording's ticks. Halt polling counts as kernel_ns"
            } else {
                "there are no kvm_vcpu_wakeup events. Halt polling counts as halted_ns"
            },
        });
    } else if !seen.switches {
        out.push(Unknowable {
            fields: &["poll_ns"],
            parts: POLLS_FAILED,
            why: "there are no sched_switch events. It has only polls that succeeded; those that failed count \
                  as halted_ns",
        });
    } else if !seen.poll_lengths {
        out.push(Unknowable {
            fields: &["poll_ns"],
            parts: POLLS_FAILED,
            why: "there are no kvm_halt_poll_ns events. A poll is taken to have failed where the vCPU had its \
                  CPU for 10 us or more before it slept, which a slow host needs to go to sleep as well",
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: SeenEvents = SeenEvents {
        presumed: false,
        entries: true,
        exits: true,
        switches: true,
        returns: true,
        wakeups: true,
        userspace_exits: true,
        halts: true,
        poll_lengths: true,
    };

    #[test]
    fn what_was_measured_as_0_stays_0() {
        let none = unknowable(&ALL);
        assert!(none.is_empty(), "{none:?}");
        for column in [
            "guest_ns",
            "poll_ns",
            "runnable_ns",
            "polls_failed",
            "waits",
            "exits",
        ] {
            assert_eq!(known_amount(&none, column, 0), Some(0));
        }
    }

    #[test]
    fn of_presumed_vcpus_waits_alone_are_known() {
        let seen = SeenEvents {
            presumed: true,
            entries: false,
            exits: false,
            userspace_exits: false,
            halts: false,
            poll_lengths: false,
            ..ALL
        };
        let unknown = unknowable(&seen);
        assert_eq!(unknown.len(), 1, "one reason: {unknown:?}");
        for column in ["guest_ns", "halted_ns", "poll_ns", "exits", "user_count"] {
            assert_eq!(known_amount(&unknown, column, 0), None, "{column}");
        }
        for column in ["runnable_ns", "unknown_ns", "waits"] {
            assert_eq!(known_amount(&unknown, column, 0), Some(0), "{column}");
        }
    }

    #[test]
    fn without_an_event_its_0_is_no_amount() {
        for (seen, column) in [
            (
                SeenEvents {
                    entries: false,
                    ..ALL
                },
                "guest_ns",
            ),
            (
                SeenEvents {
                    exits: false,
                    ..ALL
                },
                "exits",
            ),
            (
                SeenEvents {
                    switches: false,
                    ..ALL
                },
                "kernel_blocked_ns",
            ),
            (
                SeenEvents {
                    wakeups: false,
                    ..ALL
                },
                "wait_max_ns",
            ),
            (
                SeenEvents {
                    userspace_exits: false,
                    ..ALL
                },
                "user_count",
            ),
            (
                SeenEvents {
                    halts: false,
                    ..ALL
                },
                "polls_succeeded",
            ),
            (
                SeenEvents {
                    poll_lengths: false,
                    ..ALL
                },
                "polls_failed_ns",
            ),
        ] {
            let unknown = unknowable(&seen);
            assert!(!unknown.is_empty(), "{seen:?}");
            assert_eq!(known_amount(&unknown, column, 0), None, "{column}");
            // A part of it that was seen all the same is shown.
            assert_eq!(known_amount(&unknown, column, 7), Some(7), "{column}");
            assert_eq!(known_amount(&unknown, "halted_ns", 0), Some(0));
        }
    }
}
