//! Threads: names, processes, and which of them are vCPUs.

use std::sync::Arc;

use event::sched::TaskComm;
use event::{Data, Event, Side};

use crate::RecorderClue;
use crate::bonds::Bonds;
use crate::by_number::ByNumber;
use crate::by_slot::BySlot;
use crate::retired::RetiredThreads;
use crate::roles::{RecorderTraces, vcpu_from_comm};
use crate::thread_facts::{Claim, ThreadFacts, VmFact};

/// One thread of the host. A thread id that is used again is another thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its process, if it is recorded.
    pub pid: Option<i32>,
    /// Its name, the last one it had, if it is recorded. Threads share it with the thread that made them.
    pub comm: Option<Arc<str>>,
    /// Whether it entered a guest, or is presumed to.
    pub is_vcpu: bool,
    /// Whether its name or facts alone say that it is a vCPU's: the recording has no exit and no entry.
    pub presumed: bool,
    /// The vCPU's number: recorded with its events, or else part of its name, or else one of the facts beside the
    /// recording.
    pub vcpu: Option<u32>,
    /// Whether its end was recorded.
    pub ended: bool,
    /// Whether it did anything: what was only announced is not a thread id used again.
    acted: bool,
    /// Whether the vCPU's number was recorded with an event.
    vcpu_recorded: bool,
    /// Which vCPU it is, by facts beside the recording.
    pub(crate) claim: Option<Claim>,
}

impl Thread {
    /// Returns whether it was seen to do anything.
    pub(crate) fn has_acted(&self) -> bool {
        self.acted
    }
}

/// Name of the idle tasks, without the CPU the kernel puts behind it.
const IDLE: &str = "swapper";

/// Whether a known name is the one that an event has. `/proc/PID/comm`, from which perf has the names of threads
/// that are there already, says of a kworker what it works for as well: `kworker/2:1-events`.
fn names(known: &[u8], recorded: &[u8]) -> bool {
    match known.strip_prefix(recorded) {
        Some([]) => true,
        Some([b'-' | b'+', ..]) => recorded.starts_with(b"kworker/"),
        _ => false,
    }
}

/// Slots of the tasks that an event of the scheduler is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tasks {
    /// The task; of a switch the one that gets the CPU.
    pub task: u32,
    /// Of a switch, the task that leaves the CPU.
    pub prev: u32,
}

/// All threads of a recording.
///
/// A thread has a *slot*, a number from 0 that is its own even if its id is used again: analyses keep what
/// they know of threads in a list by slot.
#[derive(Debug, Clone, Default)]
pub struct Threads {
    /// The thread that has an id now.
    by_tid: ByNumber<u32>,
    all: BySlot<(i32, Thread)>,
    /// The slot of the next thread.
    next: u32,
    /// VMs known from facts beside the recording.
    pub(crate) vm_facts: Vec<VmFact>,
    /// Who woke vCPUs.
    pub(crate) bonds: Bonds,
    /// What shows who made the recording.
    pub(crate) recorder_traces: RecorderTraces,
    /// Whether vCPUs are known by names and facts alone.
    pub(crate) presumes: bool,
}

impl Threads {
    /// Returns the thread that has (or had last) this id.
    pub fn get(&self, tid: i32) -> Option<&Thread> {
        self.at(*self.by_tid.get(tid)?).map(|(_, thread)| thread)
    }

    /// Returns how many threads and bonds there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len() + self.bonds.len()
    }

    /// Returns how many threads are kept.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns whether the thread of a slot is the one that has an id now.
    pub(crate) fn is_now(&self, tid: i32, slot: u32) -> bool {
        self.by_tid.get(tid) == Some(&slot)
    }

    /// Forgets threads that have become part of sums.
    pub(crate) fn retire(&mut self, retired: &RetiredThreads) {
        for tid in retired.tids() {
            self.by_tid.remove(tid);
        }
        for slot in retired.slots() {
            self.all.remove(slot);
        }
        self.bonds.retire(retired);
    }

    /// Returns the thread of a slot, and its id.
    pub fn at(&self, slot: u32) -> Option<(i32, &Thread)> {
        let (tid, thread) = self.all.get(slot)?;
        Some((*tid, thread))
    }

    /// Returns the slot of the thread that has this id now, if one has been seen.
    pub fn slot_of(&self, tid: i32) -> Option<u32> {
        self.by_tid.get(tid).copied()
    }

    /// Returns the slot of the thread that has this id now; it gets one where it has none.
    #[inline]
    pub fn slot(&mut self, tid: i32) -> u32 {
        let (all, next) = (&mut self.all, &mut self.next);
        *self.by_tid.entry(tid, || {
            let slot = *next;
            *next = slot.saturating_add(1);
            all.entry(slot, || (tid, Thread::default()));
            slot
        })
    }

    /// Returns the slot of the thread that has this id now, which does something.
    #[inline]
    pub fn acts(&mut self, tid: i32) -> u32 {
        let slot = self.slot(tid);
        self.thread_of(slot, tid).acted = true;
        slot
    }

    /// Returns the thread of a slot, to be changed.
    pub(crate) fn at_mut(&mut self, slot: u32) -> Option<&mut Thread> {
        self.all.get_mut(slot).map(|(_, thread)| thread)
    }

    pub(crate) fn entry(&mut self, tid: i32) -> &mut Thread {
        let slot = self.slot(tid);
        self.thread_of(slot, tid)
    }

    /// Returns the thread of a slot that an id has now.
    #[inline]
    fn thread_of(&mut self, slot: u32, tid: i32) -> &mut Thread {
        &mut self.all.entry(slot, || (tid, Thread::default())).1
    }

    /// Returns all threads, in the order in which they were first seen.
    pub fn iter(&self) -> impl Iterator<Item = (i32, &Thread)> {
        self.all.iter().map(|(_, (tid, thread))| (*tid, thread))
    }

    /// Returns the same with their slots.
    pub fn slots(&self) -> impl Iterator<Item = (u32, i32, &Thread)> {
        let all = self.all.iter();
        all.map(|(slot, (tid, thread))| (slot, *tid, thread))
    }

    /// Takes names the recorder saved apart from the events.
    pub fn saved_names<'n>(&mut self, names: impl IntoIterator<Item = (i32, &'n str)>) {
        for (tid, name) in names {
            self.entry(tid).comm = Some(name.into());
        }
    }

    /// Takes a thread's name as an event of the scheduler has it, and returns its slot.
    #[inline]
    pub fn named(&mut self, tid: i32, comm: &TaskComm) -> u32 {
        let slot = self.slot(tid);
        let thread = self.thread_of(slot, tid);
        let known = thread.comm.as_deref().map(str::as_bytes);
        let same = known.is_some_and(|known| names(known, comm.as_bytes()));
        if !same && !comm.as_bytes().is_empty() {
            // Every CPU has an idle task, with a name of its own and the same id.
            let name = if tid == 0 {
                IDLE.into()
            } else {
                comm.to_str_lossy()
            };
            if thread.comm.as_deref() != Some(&*name) {
                thread.comm = Some(name.into());
            }
        }
        slot
    }

    /// Takes the name that a text has in its column of threads, unless an event had another: it may be an old one.
    pub fn called(&mut self, tid: i32, comm: &str) {
        let thread = self.entry(tid);
        let known = thread.comm.as_deref();
        // The column may say more of a kworker than events do.
        if known.is_none_or(|known| known != comm && names(comm.as_bytes(), known.as_bytes())) {
            thread.comm = Some(comm.into());
        }
    }

    /// Takes the name of a thread that does something, and returns its slot.
    #[inline]
    pub fn acts_as(&mut self, tid: i32, comm: &TaskComm) -> u32 {
        let slot = self.named(tid, comm);
        self.thread_of(slot, tid).acted = true;
        slot
    }

    /// Takes what the scheduler's events say of threads: names, beginnings and ends. Returns the tasks that the event
    /// is about; `None` if it is not the scheduler's.
    #[inline]
    pub fn sched(&mut self, data: &Data) -> Option<Tasks> {
        let task = match data {
            Data::SchedSwitch(switch) => {
                return Some(Tasks {
                    prev: self.acts_as(switch.prev_tid, &switch.prev_comm),
                    task: self.acts_as(switch.next_tid, &switch.next_comm),
                });
            }
            Data::SchedWaking(wakeup) | Data::SchedWakeup(wakeup) => {
                self.named(wakeup.tid, &wakeup.comm)
            }
            Data::SchedStatRuntime(runtime) => self.named(runtime.tid, &runtime.comm),
            Data::SchedMigrateTask(migrate) => self.slot(migrate.tid),
            Data::SchedProcessFork(task) => {
                self.forked(task.tid, None);
                self.named(task.tid, &task.comm)
            }
            Data::SchedProcessExit(task) => {
                let slot = self.slot(task.tid);
                self.thread_of(slot, task.tid).ended = true;
                slot
            }
            Data::TaskRename(task) => self.named(task.tid, &task.comm),
            _ => return None,
        };
        Some(Tasks { task, prev: task })
    }

    /// Takes a wake-up of a thread: who wakes a vCPU may be of its VM.
    #[inline]
    pub fn wakes(&mut self, event: &Event<'_>, target: i32) {
        if event.pid < 0 && self.get(target).is_some_and(|thread| thread.is_vcpu) {
            self.bonds.wakes(event, target);
        }
    }

    /// A thread was made. What was known of an earlier one with its id is past.
    fn forked(&mut self, tid: i32, pid: Option<i32>) -> &mut Thread {
        let slot = self.slot(tid);
        let before = &*self.thread_of(slot, tid);
        if before.acted || before.ended || before.is_vcpu {
            self.by_tid.remove(tid);
        }
        let thread = self.entry(tid);
        thread.pid = pid.or(thread.pid);
        thread
    }

    /// Takes what a recording says of threads beside events.
    pub fn side(&mut self, side: &Side<'_>) {
        self.recorder_traces.side(side);
        match *side {
            Side::Comm { pid, tid, comm, .. } => {
                let thread = self.entry(tid);
                thread.comm = Some(comm.into());
                if pid >= 0 {
                    thread.pid = Some(pid);
                }
            }
            Side::Fork { pid, tid, ptid, .. } => {
                let comm = self.get(ptid).and_then(|parent| parent.comm.clone());
                let thread = self.forked(tid, (pid >= 0).then_some(pid));
                thread.comm = comm.or(thread.comm.take());
            }
            Side::Exit { tid, .. } => self.entry(tid).ended = true,
            _ => {}
        }
    }

    /// Takes facts given beside the recording, before its events. A thread that is a vCPU by facts and
    /// never enters a guest in the recording is not made one.
    pub fn add_facts(&mut self, facts: &ThreadFacts) {
        for thread in &facts.threads {
            let known = self.entry(thread.tid);
            known.pid = known.pid.or(thread.pid);
            known.comm = known.comm.take().or_else(|| thread.comm.clone());
        }
        let offset = self.vm_facts.len();
        for (at, vm) in facts.vms.iter().enumerate() {
            for vcpu in &vm.vcpus {
                let known = self.entry(vcpu.tid);
                known.pid = known.pid.or(vm.pid);
                known.claim = known.claim.or(Some(Claim {
                    vm: (offset + at) as u32,
                    id: vcpu.id,
                }));
            }
        }
        self.vm_facts.extend(facts.vms.iter().cloned());
        if facts.recorder != RecorderClue::default() {
            self.recorder_traces.clue(&facts.recorder);
        }
    }

    /// Returns the VM that has a process, by the facts.
    pub(crate) fn vm_of_process(&self, pid: i32) -> Option<&VmFact> {
        self.vm_facts.iter().find(|vm| vm.pid == Some(pid))
    }

    /// Takes an event that only vCPU threads make, with the vCPU's number where the event has it. The thread has to be
    /// known: [`event::NONE`] is nobody.
    pub fn vcpu_event(&mut self, event: &Event<'_>, vcpu: Option<u32>) -> &Thread {
        let thread = self.entry(event.tid);
        thread.is_vcpu = true;
        thread.presumed = false;
        thread.acted = true;
        if event.pid >= 0 {
            thread.pid = Some(event.pid);
        }
        if let Some(comm) = event.comm
            && thread.comm.as_deref() != Some(comm)
        {
            thread.comm = Some(comm.into());
        }
        if vcpu.is_some() && !thread.vcpu_recorded {
            thread.vcpu = vcpu;
            thread.vcpu_recorded = true;
        } else if thread.vcpu.is_none() {
            let by_name = thread.comm.as_deref().and_then(vcpu_from_comm);
            thread.vcpu = by_name.or(thread.claim.map(|claim| claim.id));
        }
        thread
    }
}

#[cfg(test)]
mod tests {
    use event::sched::{SchedProcessExit, SchedProcessFork, TaskRename};

    use super::*;

    #[test]
    fn a_thread_id_used_again_is_another_thread() {
        let mut threads = Threads::default();
        let made = |tid, comm: &str| {
            let comm = TaskComm::new(comm.as_bytes());
            Data::SchedProcessFork(SchedProcessFork { tid, comm })
        };
        let renamed = TaskRename {
            tid: 7,
            comm: TaskComm::new(b"qemu"),
        };
        let ended = SchedProcessExit {
            tid: 7,
            comm: renamed.comm,
        };
        assert!(threads.sched(&made(7, "sh")).is_some());
        // perf records the same fork beside the events.
        let fork = Side::Fork {
            time: 1,
            pid: 7,
            tid: 7,
            ppid: 1,
            ptid: 1,
        };
        threads.side(&fork);
        let first = threads.acts(7);
        threads.sched(&Data::TaskRename(renamed));
        threads.sched(&Data::SchedProcessExit(ended));
        assert_eq!(threads.slot(7), first, "an end is not a new beginning");
        threads.sched(&made(7, "cron"));
        assert_ne!(threads.slot(7), first);
        let (tid, before) = threads.at(first).unwrap();
        assert_eq!((tid, before.comm.as_deref()), (7, Some("qemu")));
        assert_eq!((before.pid, before.ended), (Some(7), true));
        assert_eq!(threads.get(7).unwrap().comm.as_deref(), Some("cron"));
    }
}
