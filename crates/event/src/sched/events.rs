//! The scheduler's events (`include/trace/events/sched.h`, `task.h`).
//!
//! Two wordings of their texts are read: the kernel's print formats, which are fields as `name=value`, and those of
//! trace-cmd's sched_switch plugin, `swapper/3:0 [120] R ==> kworker/3:1:15 [120]`. Names of tasks may hold blanks and
//! nearly anything else, so fields are found from what follows them.

use super::task::{TaskComm, TaskState};
use crate::define::{TextForm, event};
use crate::text::{all_digits, behind, decimal, find, hex, id as number_of_thread, word};

event! {
    /// `sched:sched_switch`.
    SchedSwitch at SwitchPlaces {
        /// The task that leaves the CPU.
        prev_tid: i32 = "prev_pid",
        /// Its name.
        prev_comm: TaskComm = "prev_comm" or TaskComm::default(),
        /// Why it leaves.
        prev_state: TaskState = "prev_state",
        /// The task that runs next; 0 is the idle task.
        next_tid: i32 = "next_pid",
        /// Its name.
        next_comm: TaskComm = "next_comm" or TaskComm::default(),
    }
    text: TextForm::Whole(switch)
}

event! {
    /// `sched:sched_waking`, `sched_wakeup` and `sched_wakeup_new`.
    SchedWakeup at WakeupPlaces {
        /// The task that is woken. The waker is the event's own task.
        tid: i32 = "pid",
        /// Its name.
        comm: TaskComm = "comm" or TaskComm::default(),
        /// The CPU whose run queue it goes to, if recorded.
        target_cpu: Option<i32> = "target_cpu" or None,
    }
    text: TextForm::Whole(wakeup)
}

event! {
    /// `sched:sched_migrate_task`.
    SchedMigrateTask at MigratePlaces {
        /// The task.
        tid: i32 = "pid",
        /// Where it was.
        orig_cpu: i32 = "orig_cpu",
        /// Where it goes.
        dest_cpu: i32 = "dest_cpu",
    }
    text: TextForm::Whole(|text| Some(SchedMigrateTask {
        tid: id(text, b"pid=")?,
        orig_cpu: id(text, b"orig_cpu=")?,
        dest_cpu: id(text, b"dest_cpu=")?,
    }))
}

event! {
    /// `sched:sched_stat_runtime`.
    SchedStatRuntime at RuntimePlaces {
        /// The task.
        tid: i32 = "pid",
        /// Its name.
        comm: TaskComm = "comm" or TaskComm::default(),
        /// How long it ran since the last such event.
        runtime_ns: u64 = "runtime",
    }
    text: TextForm::Whole(|text| Some(SchedStatRuntime {
        tid: id(text, b" pid=")?,
        comm: comm(text, b"comm=", b" pid="),
        runtime_ns: decimal(word(behind(text, b" runtime=")?))?,
    }))
}

event! {
    /// `sched:sched_process_fork`.
    SchedProcessFork at ForkPlaces {
        /// The new task.
        tid: i32 = "child_pid",
        /// Its name.
        comm: TaskComm = "child_comm" or TaskComm::default(),
    }
    text: TextForm::Whole(|text| Some(SchedProcessFork {
        tid: id(text, b"child_pid=")?,
        comm: comm(text, b"child_comm=", b" child_pid="),
    }))
}

event! {
    /// `sched:sched_process_exit`.
    SchedProcessExit at ExitPlaces {
        /// The task that ends.
        tid: i32 = "pid",
        /// Its name.
        comm: TaskComm = "comm" or TaskComm::default(),
    }
    text: TextForm::Whole(|text| Some(SchedProcessExit {
        tid: id(text, b" pid=")?,
        comm: comm(text, b"comm=", b" pid="),
    }))
}

event! {
    /// `task:task_rename`.
    TaskRename at RenamePlaces {
        /// The task. Where the id is not recorded the task renames itself.
        tid: i32 = "pid" | "common_pid",
        /// Its new name.
        comm: TaskComm = "newcomm" or TaskComm::default(),
    }
    text: TextForm::Whole(|text| Some(TaskRename {
        tid: id(text, b"pid=")?,
        comm: comm(text, b" newcomm=", b" oom_score_adj="),
    }))
}

fn id(text: &[u8], name: &[u8]) -> Option<i32> {
    number_of_thread(word(behind(text, name)?))
}

/// Returns a name between its field and the one behind it.
fn comm(text: &[u8], name: &[u8], next: &[u8]) -> TaskComm {
    let Some(rest) = behind(text, name) else {
        return TaskComm::default();
    };
    let end = find(rest, next).unwrap_or(rest.len());
    TaskComm::new(rest[..end].trim_ascii())
}

/// Reads a state, as letters or as the number that `trace-cmd report -R` prints.
fn state(word: &[u8]) -> Option<TaskState> {
    match word.strip_prefix(b"0x") {
        Some(_) => hex(word).map(TaskState),
        None if all_digits(word) => decimal(word).map(TaskState),
        None => TaskState::from_text(word),
    }
}

/// Reads a field that the text begins with, `name` with what stands before it; ends at a blank. Returns what follows.
#[inline]
fn take_field<'t>(text: &'t [u8], name: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let rest = text.strip_prefix(name)?;
    Some(rest.split_at(memchr::memchr(b' ', rest).unwrap_or(rest.len())))
}

/// Reads a name and the id behind it, where the text begins with them and the name has no `=` that a search for another
/// field could stop at. Returns what follows.
#[inline]
fn take_task<'t>(text: &'t [u8], name: &[u8], next: &[u8]) -> Option<(TaskComm, i32, &'t [u8])> {
    let rest = text.strip_prefix(name)?;
    let (comm, rest) = rest.split_at(memchr::memchr(b'=', rest)?);
    let comm = comm.strip_suffix(next)?.trim_ascii();
    let (tid, rest) = take_field(rest, b"=")?;
    Some((TaskComm::new(comm), number_of_thread(tid)?, rest))
}

/// Reads what kernels print, from the beginning to the end.
#[inline]
fn usual_switch(text: &[u8]) -> Option<SchedSwitch> {
    let (prev_comm, prev_tid, rest) = take_task(text, b"prev_comm=", b" prev_pid")?;
    let (prio, rest) = take_field(rest, b" prev_prio=")?;
    let (left, rest) = take_field(rest, b" prev_state=")?;
    let (next_comm, next_tid, _) = take_task(rest, b" ==> next_comm=", b" next_pid")?;
    let plain = all_digits(prio) && memchr::memchr2(b'=', b'\t', left).is_none();
    let prev_state = state(left).filter(|_| plain)?;
    Some(SchedSwitch {
        prev_tid,
        prev_comm,
        prev_state,
        next_tid,
        next_comm,
    })
}

fn switch(text: &[u8]) -> Option<SchedSwitch> {
    if let Some(switch) = usual_switch(text) {
        return Some(switch);
    }
    if find(text, b"prev_pid=").is_some() {
        return Some(SchedSwitch {
            prev_tid: id(text, b"prev_pid=")?,
            prev_comm: comm(text, b"prev_comm=", b" prev_pid="),
            prev_state: state(word(behind(text, b"prev_state=")?))?,
            next_tid: id(text, b"next_pid=")?,
            next_comm: comm(text, b"next_comm=", b" next_pid="),
        });
    }
    let arrow = find(text, b" ==> ")?;
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
fn task(text: &[u8]) -> Option<(TaskComm, i32, &[u8])> {
    let open = memchr::memrchr(b'[', text)?;
    let close = open + memchr::memchr(b']', &text[open..])?;
    let who = text[..open].trim_ascii();
    let colon = memchr::memrchr(b':', who)?;
    let tid = number_of_thread(&who[colon + 1..])?;
    Some((TaskComm::new(&who[..colon]), tid, &text[close + 1..]))
}

/// Reads what kernels print, from the beginning to the end.
#[inline]
fn usual_wakeup(text: &[u8]) -> Option<SchedWakeup> {
    let (comm, tid, rest) = take_task(text, b"comm=", b" pid")?;
    let (prio, rest) = take_field(rest, b" prio=")?;
    let (cpu, _) = take_field(rest, b" target_cpu=")?;
    let target_cpu = number_of_thread(cpu).filter(|_| all_digits(prio))?;
    Some(SchedWakeup {
        tid,
        comm,
        target_cpu: Some(target_cpu),
    })
}

fn wakeup(text: &[u8]) -> Option<SchedWakeup> {
    if let Some(wakeup) = usual_wakeup(text) {
        return Some(wakeup);
    }
    if find(text, b"pid=").is_some() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::TypedKind;

    fn read<T: TypedKind>(text: &str) -> Option<T> {
        match T::TEXT {
            TextForm::Whole(read) => read(text.as_bytes()),
            _ => None,
        }
    }

    #[test]
    fn a_switch_reads_the_same_in_both_wordings() {
        let texts: [&[u8]; 2] = [
            b"prev_comm=CPU 0/KVM prev_pid=1508 prev_prio=120 prev_state=S ==> next_comm=a b:c next_pid=7 \
                next_prio=120",
            b"CPU 0/KVM:1508 [120] S ==> a b:c:7 [120]",
        ];
        for text in texts {
            let switch = switch(text).unwrap();
            assert_eq!((switch.prev_tid, switch.next_tid), (1508, 7));
            assert_eq!(switch.prev_comm.as_bytes(), b"CPU 0/KVM");
            assert_eq!(switch.next_comm.as_bytes(), b"a b:c");
            assert_eq!(switch.prev_state, TaskState(1));
        }
        let preempted = b"prev_comm=x prev_pid=1 prev_prio=1 prev_state=R+ ==> next_comm=y next_pid=2 next_prio=1";
        let switch = switch(preempted).unwrap();
        assert_eq!(switch.prev_state, TaskState::PREEMPTED);
    }

    #[test]
    fn wakeups_read_the_same_in_both_wordings() {
        let texts: [&[u8]; 2] = [
            b"comm=CPU 0/KVM pid=1508 prio=120 target_cpu=003",
            b"CPU 0/KVM:1508 [120] CPU:003",
        ];
        for text in texts {
            let wakeup = wakeup(text).unwrap();
            assert_eq!((wakeup.tid, wakeup.target_cpu), (1508, Some(3)));
            assert_eq!(wakeup.comm.as_bytes(), b"CPU 0/KVM");
        }
    }

    #[test]
    fn names_end_before_the_next_field() {
        let runtime = "comm=a pid=5 runtime=12345 [ns] vruntime=9 [ns]";
        let runtime = read::<SchedStatRuntime>(runtime).unwrap();
        assert_eq!((runtime.tid, runtime.runtime_ns), (5, 12345));
        let migrate = read("comm=a pid=5 prio=120 orig_cpu=1 dest_cpu=2");
        let expected = SchedMigrateTask {
            tid: 5,
            orig_cpu: 1,
            dest_cpu: 2,
        };
        assert_eq!(migrate, Some(expected));
        let fork = read("comm=a pid=5 child_comm=b c child_pid=6");
        let expected = SchedProcessFork {
            tid: 6,
            comm: TaskComm::new(b"b c"),
        };
        assert_eq!(fork, Some(expected));
    }

    #[test]
    fn what_is_cut_off_is_not_read() {
        let text = "prev_comm=CPU 0/KVM prev_pid=1508 prev_prio=120 prev_state=S ==> next_comm=a next_pid=7";
        for end in 0..text.len() - 1 {
            assert_eq!(switch(&text.as_bytes()[..end]), None, "{end}");
        }
    }
}
