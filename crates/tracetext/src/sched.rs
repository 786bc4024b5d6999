//! What the scheduler's events say, read from their texts.
//!
//! Two wordings are read: the kernel's print formats, which are fields as `name=value`, and those of
//! trace-cmd's sched_switch plugin, `swapper/3:0 [120] R ==> kworker/3:1:15 [120]`. Names of tasks may hold
//! blanks and nearly anything else, so fields are found from what follows them.

use event::sched::{
    Comm, SchedMigrateTask, SchedStatRuntime, SchedSwitch, SchedWakeup, Task, TaskState,
};
use event::{Data, Kind, KvmHaltPollNs, KvmUserspaceExit, KvmVcpuWakeup};
use memchr::memmem;

use crate::scan;

/// Reads the text of an event of this kind; `None` when it lacks something without which the event means
/// nothing.
pub(crate) fn read(kind: Kind, text: &[u8]) -> Option<Data> {
    match kind {
        Kind::SchedSwitch => switch(text).map(Data::SchedSwitch),
        Kind::SchedWaking => wakeup(text).map(Data::SchedWaking),
        Kind::SchedWakeup | Kind::SchedWakeupNew => wakeup(text).map(Data::SchedWakeup),
        Kind::SchedMigrateTask => Some(Data::SchedMigrateTask(SchedMigrateTask {
            tid: id(text, b"pid=")?,
            orig_cpu: id(text, b"orig_cpu=")?,
            dest_cpu: id(text, b"dest_cpu=")?,
        })),
        Kind::SchedStatRuntime => Some(Data::SchedStatRuntime(SchedStatRuntime {
            tid: id(text, b" pid=")?,
            comm: comm(text, b"comm=", b" pid="),
            runtime_ns: scan::decimal(word(behind(text, b" runtime=")?))?,
        })),
        Kind::SchedProcessFork => Some(Data::SchedProcessFork(Task {
            tid: id(text, b"child_pid=")?,
            comm: comm(text, b"child_comm=", b" child_pid="),
        })),
        Kind::SchedProcessExit => Some(Data::SchedProcessExit(Task {
            tid: id(text, b" pid=")?,
            comm: comm(text, b"comm=", b" pid="),
        })),
        Kind::TaskRename => Some(Data::TaskRename(Task {
            tid: id(text, b"pid=")?,
            comm: comm(text, b" newcomm=", b" oom_score_adj="),
        })),
        Kind::KvmUserspaceExit => userspace_exit(text).map(Data::KvmUserspaceExit),
        Kind::KvmVcpuWakeup => vcpu_wakeup(text).map(Data::KvmVcpuWakeup),
        Kind::KvmHaltPollNs => halt_poll(text).map(Data::KvmHaltPollNs),
        Kind::KvmFpu => fpu(text).map(|load| Data::KvmFpu { load }),
        _ => None,
    }
}

/// Returns whether events of this kind are read here.
pub(crate) fn reads(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::KvmExit | Kind::KvmEntry | Kind::KvmMmio | Kind::KvmPio | Kind::KvmMsr | Kind::Other
    )
}

fn behind<'t>(text: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    Some(&text[memmem::find(text, name)? + name.len()..])
}

/// Returns what stands up to the next blank.
fn word(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_start();
    &text[..scan::token_end(text, 0)]
}

fn id(text: &[u8], name: &[u8]) -> Option<i32> {
    scan::id(word(behind(text, name)?))
}

/// Returns a name between its field and the one behind it.
fn comm(text: &[u8], name: &[u8], next: &[u8]) -> Comm {
    let Some(rest) = behind(text, name) else {
        return Comm::default();
    };
    let end = memmem::find(rest, next).unwrap_or(rest.len());
    Comm::new(rest[..end].trim_ascii())
}

/// Reads a state, as letters or as the number that `trace-cmd report -R` prints.
fn state(word: &[u8]) -> Option<TaskState> {
    match word.strip_prefix(b"0x") {
        Some(_) => scan::hex(word).map(TaskState),
        None if scan::all_digits(word) => scan::decimal(word).map(TaskState),
        None => TaskState::from_text(word),
    }
}

fn switch(text: &[u8]) -> Option<SchedSwitch> {
    if memmem::find(text, b"prev_pid=").is_some() {
        return Some(SchedSwitch {
            prev_tid: id(text, b"prev_pid=")?,
            prev_comm: comm(text, b"prev_comm=", b" prev_pid="),
            prev_state: state(word(behind(text, b"prev_state=")?))?,
            next_tid: id(text, b"next_pid=")?,
            next_comm: comm(text, b"next_comm=", b" next_pid="),
        });
    }
    let arrow = memmem::find(text, b" ==> ")?;
    let (prev, next) = (&text[..arrow], &text[arrow + 5..]);
    let (prev_comm, prev_tid, rest) = task(prev)?;
    let (next_comm, next_tid, _) = task(next)?;
    Some(SchedSwitch {
        prev_tid,
        prev_comm,
        prev_state: state(word(rest))?,
        next_tid,
        next_comm,
    })
}

/// Reads `swapper/3:0 [120] R`: name, thread id, and what stands behind the priority.
fn task(text: &[u8]) -> Option<(Comm, i32, &[u8])> {
    let open = memchr::memrchr(b'[', text)?;
    let close = open + memchr::memchr(b']', &text[open..])?;
    let who = text[..open].trim_ascii();
    let colon = memchr::memrchr(b':', who)?;
    let tid = scan::id(&who[colon + 1..])?;
    Some((Comm::new(&who[..colon]), tid, &text[close + 1..]))
}

fn wakeup(text: &[u8]) -> Option<SchedWakeup> {
    if memmem::find(text, b"pid=").is_some() {
        return Some(SchedWakeup {
            tid: id(text, b"pid=")?,
            comm: comm(text, b"comm=", b" pid="),
            target_cpu: id(text, b"target_cpu="),
        });
    }
    let (comm, tid, rest) = task(text)?;
    Some(SchedWakeup {
        tid,
        comm,
        target_cpu: id(rest, b"CPU:"),
    })
}

/// Reads `reason KVM_EXIT_IO (2)`; for a call that failed the kernel prints `restart` or `error` and the
/// error's number.
fn userspace_exit(text: &[u8]) -> Option<KvmUserspaceExit> {
    if let Some(errno) = behind(text, b"errno=") {
        let failed = errno.first() == Some(&b'-') || scan::number(word(errno))? >= 1 << 31;
        let reason = scan::number(word(behind(text, b"reason=")?))? as u32;
        return Some(KvmUserspaceExit {
            reason: (!failed).then_some(reason),
        });
    }
    let rest = behind(text, b"reason ")?;
    if matches!(word(rest), b"restart" | b"error") {
        return Some(KvmUserspaceExit { reason: None });
    }
    let number = behind(rest, b"(")?;
    let digits = number.iter().take_while(|b| b.is_ascii_digit()).count();
    Some(KvmUserspaceExit {
        reason: Some(scan::decimal(&number[..digits])? as u32),
    })
}

/// Reads `load` or `unload`.
fn fpu(text: &[u8]) -> Option<bool> {
    match word(text) {
        b"load" => Some(true),
        b"unload" => Some(false),
        _ => Some(scan::number(word(behind(text, b"load=")?))? != 0),
    }
}

/// Reads `vcpu 0: halt_poll_ns 10000 (grow 0)`: the new time, and the old one in brackets.
fn halt_poll(text: &[u8]) -> Option<KvmHaltPollNs> {
    if let Some(new) = behind(text, b"new=") {
        return Some(KvmHaltPollNs {
            new_ns: scan::number(word(new))?,
            old_ns: scan::number(word(behind(text, b"old=")?))?,
        });
    }
    let new = behind(text, b"halt_poll_ns ")?;
    let old = behind(new, b"(grow ").or_else(|| behind(new, b"(shrink "))?;
    let digits = old.iter().take_while(|b| b.is_ascii_digit()).count();
    Some(KvmHaltPollNs {
        new_ns: scan::decimal(word(new))?,
        old_ns: scan::decimal(&old[..digits])?,
    })
}

/// Reads `wait time 1234 ns, polling valid`.
fn vcpu_wakeup(text: &[u8]) -> Option<KvmVcpuWakeup> {
    if let Some(ns) = behind(text, b"ns=") {
        let flag = |name: &[u8]| Some(scan::number(word(behind(text, name)?))? != 0);
        return Some(KvmVcpuWakeup {
            halted_ns: scan::number(word(ns))?,
            waited: flag(b"waited=")?,
            valid: flag(b"valid=").unwrap_or(true),
        });
    }
    let waited = match word(text) {
        b"wait" => true,
        b"poll" => false,
        _ => return None,
    };
    Some(KvmVcpuWakeup {
        halted_ns: scan::decimal(word(behind(text, b" time ")?))?,
        waited,
        valid: memmem::find(text, b"invalid").is_none(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_reads_the_same_in_both_wordings() {
        let texts: [&[u8]; 2] = [
            b"prev_comm=CPU 0/KVM prev_pid=1508 prev_prio=120 prev_state=S ==> next_comm=a b:c next_pid=7 next_prio=120",
            b"CPU 0/KVM:1508 [120] S ==> a b:c:7 [120]",
        ];
        for text in texts {
            let Some(Data::SchedSwitch(switch)) = read(Kind::SchedSwitch, text) else {
                panic!("{text:?}");
            };
            assert_eq!((switch.prev_tid, switch.next_tid), (1508, 7));
            assert_eq!(switch.prev_comm.as_bytes(), b"CPU 0/KVM");
            assert_eq!(switch.next_comm.as_bytes(), b"a b:c");
            assert_eq!(switch.prev_state, TaskState(1));
        }
        let preempted = b"prev_comm=x prev_pid=1 prev_prio=1 prev_state=R+ ==> next_comm=y next_pid=2 next_prio=1";
        let Some(Data::SchedSwitch(switch)) = read(Kind::SchedSwitch, preempted) else {
            panic!("no switch");
        };
        assert_eq!(switch.prev_state, TaskState::PREEMPTED);
    }

    #[test]
    fn wakeups_read_the_same_in_both_wordings() {
        let texts: [&[u8]; 2] = [
            b"comm=CPU 0/KVM pid=1508 prio=120 target_cpu=003",
            b"CPU 0/KVM:1508 [120] CPU:003",
        ];
        for text in texts {
            let Some(Data::SchedWakeup(wakeup)) = read(Kind::SchedWakeup, text) else {
                panic!("{text:?}");
            };
            assert_eq!((wakeup.tid, wakeup.target_cpu), (1508, Some(3)));
            assert_eq!(wakeup.comm.as_bytes(), b"CPU 0/KVM");
        }
    }

    #[test]
    fn the_rest_is_read_from_the_kernels_own_wording() {
        let read = |kind, text: &str| read(kind, text.as_bytes()).unwrap();
        assert_eq!(
            read(
                Kind::SchedStatRuntime,
                "comm=a pid=5 runtime=12345 [ns] vruntime=9 [ns]"
            ),
            Data::SchedStatRuntime(SchedStatRuntime {
                tid: 5,
                comm: Comm::new(b"a"),
                runtime_ns: 12345
            })
        );
        assert_eq!(
            read(Kind::KvmUserspaceExit, "reason KVM_EXIT_IO (2)"),
            Data::KvmUserspaceExit(KvmUserspaceExit { reason: Some(2) })
        );
        assert_eq!(
            read(Kind::KvmUserspaceExit, "reason restart (4)"),
            Data::KvmUserspaceExit(KvmUserspaceExit { reason: None })
        );
        assert_eq!(
            read(Kind::KvmVcpuWakeup, "wait time 4711 ns, polling invalid"),
            Data::KvmVcpuWakeup(KvmVcpuWakeup {
                halted_ns: 4711,
                waited: true,
                valid: false
            })
        );
        for text in [
            "vcpu 0: halt_poll_ns 10000 (shrink 80000)",
            "grow=0 vcpu_id=0 new=10000 old=80000",
        ] {
            assert_eq!(
                read(Kind::KvmHaltPollNs, text),
                Data::KvmHaltPollNs(KvmHaltPollNs {
                    new_ns: 10000,
                    old_ns: 80000
                })
            );
        }
        assert_eq!(
            read(
                Kind::SchedMigrateTask,
                "comm=a pid=5 prio=120 orig_cpu=1 dest_cpu=2"
            ),
            Data::SchedMigrateTask(SchedMigrateTask {
                tid: 5,
                orig_cpu: 1,
                dest_cpu: 2
            })
        );
        assert_eq!(
            read(
                Kind::SchedProcessFork,
                "comm=a pid=5 child_comm=b c child_pid=6"
            ),
            Data::SchedProcessFork(Task {
                tid: 6,
                comm: Comm::new(b"b c")
            })
        );
    }

    #[test]
    fn what_is_cut_off_is_not_read() {
        let text = "prev_comm=CPU 0/KVM prev_pid=1508 prev_prio=120 prev_state=S ==> next_comm=a next_pid=7";
        for end in 0..text.len() - 1 {
            assert_eq!(
                read(Kind::SchedSwitch, &text.as_bytes()[..end]),
                None,
                "{end}"
            );
        }
    }
}
