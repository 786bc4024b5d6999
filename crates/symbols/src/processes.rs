//! The threads of a recording and their names over time, as perf keeps them.
//!
//! Source: `tools/perf/util/{machine,thread}.c` of kernel 6.1 (`machine__findnew_thread`,
//! `machine__process_fork_event`, `thread__fork`).

use std::collections::VecDeque;

use event::index_of;
use rustc_hash::FxHashMap;

use crate::files::{FileRegion, Files};
use crate::kernel::{KernelFile, KernelMaps};
use crate::mode::CpuMode;
use crate::spaces::{MappingRecord, SpaceId, Spaces, user_file};

/// What is kept of a thread's name. Whoever prints names keeps them as they are printed.
pub trait ThreadName {
    /// Returns the name of a thread.
    fn named(comm: &[u8], tid: i32) -> Self;

    /// Returns what stands for the name of a thread that the recording does not name.
    fn unnamed(tid: i32) -> Self;

    /// Returns the name alone.
    fn comm(&self) -> &[u8];
}

impl ThreadName for Box<[u8]> {
    fn named(comm: &[u8], _tid: i32) -> Box<[u8]> {
        comm.into()
    }

    fn unnamed(tid: i32) -> Box<[u8]> {
        format!(":{tid}").into_bytes().into()
    }

    fn comm(&self) -> &[u8] {
        self
    }
}

/// Threads kept at most. Linux itself has no more than 4 million (`PID_MAX_LIMIT`), and hosts far fewer.
const MAX_THREADS: usize = 1 << 19;
/// Ended threads that are remembered: events of a thread may come shortly after its end.
const MAX_ENDED: usize = 4096;

/// Threads that are found without the table.
const RECENT: usize = 256;

#[derive(Debug)]
struct MappedThread<N> {
    pid: i32,
    /// Whether a record gave its name, or that of who made it.
    named: bool,
    ended: bool,
    /// Distinguishes this use of the place from later ones.
    serial: u32,
    space: Option<SpaceId>,
    name: N,
}

/// Returns the place of a thread among the recent ones: the low bits of its id.
#[inline]
fn recent_place(tid: i32) -> usize {
    index_of(tid.cast_unsigned()) % RECENT
}

/// Returns what stands in a place of the recent threads that has none: a thread that belongs to another place.
fn no_recent(place: usize) -> (i32, u32) {
    (!i32::try_from(place).unwrap_or_default(), u32::MAX)
}

/// The threads of the host, or those of all its guests.
#[derive(Debug)]
pub(crate) struct MappedProcesses<N> {
    by_tid: FxHashMap<i32, u32>,
    /// Threads that ran lately and where they are, by the low bits of their ids.
    recent: [(i32, u32); RECENT],
    threads: Vec<MappedThread<N>>,
    free: Vec<u32>,
    /// Ended threads, the first ones first.
    ended: VecDeque<(i32, u32)>,
    serial: u32,
    /// What processes have mapped; nothing when no addresses are printed.
    spaces: Option<Spaces>,
    kernel: KernelMaps,
    /// Stands for the threads that there is no place for.
    spare: N,
}

impl<N: ThreadName> MappedProcesses<N> {
    /// `addresses` says whether addresses will be asked for.
    pub(crate) fn new(
        guest: bool,
        addresses: bool,
        known: &[KernelFile<'_>],
        files: &mut Files,
    ) -> MappedProcesses<N> {
        let mut processes = MappedProcesses {
            by_tid: FxHashMap::default(),
            recent: std::array::from_fn(no_recent),
            threads: Vec::new(),
            free: Vec::new(),
            ended: VecDeque::new(),
            serial: 0,
            spaces: addresses.then(Spaces::new),
            kernel: KernelMaps::new(guest, known, files),
            spare: N::unnamed(0),
        };
        // perf keeps all guests in one machine unless it is given their file systems.
        if guest {
            processes.comm(-1, 0, b"[guest/0]");
        } else {
            processes.comm(0, 0, b"swapper");
        }
        processes
    }

    /// Returns the name of a thread that ran, and what its process has mapped.
    #[inline]
    pub(crate) fn running(&mut self, pid: i32, tid: i32) -> (&N, Option<SpaceId>) {
        let (known, at) = self.recent[recent_place(tid)];
        let at = if known == tid {
            Some(at)
        } else {
            self.look_up(pid, tid)
        };
        match at.and_then(|at| self.threads.get(index_of(at))) {
            Some(thread) => (&thread.name, thread.space),
            None => (&self.spare, None),
        }
    }

    /// Finds a thread and notes where; sets the spare name if there is no place for it.
    #[inline(never)]
    fn look_up(&mut self, pid: i32, tid: i32) -> Option<u32> {
        let Some(at) = self.thread(pid, tid) else {
            self.spare = N::unnamed(tid);
            return None;
        };
        // A thread whose process is not known has to be looked at again.
        if self.threads[index_of(at)].pid != -1 {
            self.recent[recent_place(tid)] = (tid, at);
        }
        Some(at)
    }

    /// Returns the place of a thread, which is a new one if it was not seen before.
    #[inline]
    fn thread(&mut self, pid: i32, tid: i32) -> Option<u32> {
        if let Some(&at) = self.by_tid.get(&tid) {
            if self.threads[index_of(at)].pid == -1 && pid != -1 {
                self.set_process(at, pid, tid);
            }
            return Some(at);
        }
        self.add(pid, tid)
    }

    fn add(&mut self, pid: i32, tid: i32) -> Option<u32> {
        if self.by_tid.len() >= MAX_THREADS {
            return None;
        }
        let space = if pid == tid || pid == -1 {
            self.spaces.as_mut().map(Spaces::add)
        } else {
            self.space_of_process(pid)
        };
        self.serial = self.serial.wrapping_add(1);
        let thread = MappedThread {
            pid,
            named: false,
            ended: false,
            serial: self.serial,
            space,
            name: N::unnamed(tid),
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.threads[index_of(at)] = thread;
                at
            }
            None => {
                let at = u32::try_from(self.threads.len()).ok()?;
                self.threads.push(thread);
                at
            }
        };
        self.by_tid.insert(tid, at);
        Some(at)
    }

    /// Returns the mappings that all threads of a process share, with one user more.
    fn space_of_process(&mut self, pid: i32) -> Option<SpaceId> {
        self.spaces.as_ref()?;
        let leader = self.thread(pid, pid)?;
        let space = self.threads[index_of(leader)].space?;
        self.spaces.as_mut()?.retain(space);
        Some(space)
    }

    /// Notes the process of a thread that was first seen without.
    #[cold]
    fn set_process(&mut self, at: u32, pid: i32, tid: i32) {
        self.threads[index_of(at)].pid = pid;
        if pid != tid {
            let space = self.space_of_process(pid);
            self.set_space(at, space);
        }
    }

    fn set_space(&mut self, at: u32, space: Option<SpaceId>) {
        let old = std::mem::replace(&mut self.threads[index_of(at)].space, space);
        if let (Some(spaces), Some(old)) = (&mut self.spaces, old) {
            spaces.release(old);
        }
    }

    fn remove(&mut self, tid: i32) {
        if let Some(at) = self.by_tid.remove(&tid) {
            let place = recent_place(tid);
            self.recent[place] = no_recent(place);
            self.set_space(at, None);
            self.threads[index_of(at)].serial = 0;
            self.free.push(at);
        }
    }

    /// Forgets a thread of which the recording says nothing by itself: the next that has its id begins anew.
    pub(crate) fn forget(&mut self, tid: i32) {
        let Some(&at) = self.by_tid.get(&tid) else {
            return;
        };
        let thread = &self.threads[index_of(at)];
        // The others of its process find what is mapped through the first of them.
        let needed = (thread.pid == tid || thread.pid == -1)
            && thread
                .space
                .zip(self.spaces.as_ref())
                .is_some_and(|(space, all)| !all.is_idle(space));
        if !thread.named && !needed {
            self.remove(tid);
        }
    }

    /// A thread has (got) a name.
    pub(crate) fn comm(&mut self, pid: i32, tid: i32, comm: &[u8]) {
        if let Some(at) = self.thread(pid, tid) {
            let thread = &mut self.threads[index_of(at)];
            thread.named = true;
            thread.name = N::named(comm, tid);
        }
    }

    /// A thread was made. `at_start` says that the recorder found it when it began, and will tell what it
    /// has mapped.
    pub(crate) fn fork(&mut self, pid: i32, tid: i32, ppid: i32, ptid: i32, at_start: bool) {
        let Some(mut parent) = self.thread(ppid, ptid) else {
            return;
        };
        if self.threads[index_of(parent)].pid != ppid {
            // Another thread had this id, and its end was lost.
            self.remove(ptid);
            match self.thread(ppid, ptid) {
                Some(new) => parent = new,
                None => return,
            }
        }
        let made_by = &self.threads[index_of(parent)];
        let comm = made_by.named.then(|| N::named(made_by.name.comm(), tid));
        let space = made_by.space;
        if let (Some(spaces), Some(space)) = (&mut self.spaces, space) {
            spaces.retain(space);
        }
        self.remove(tid);
        if let Some(child) = self.thread(pid, tid) {
            let thread = &mut self.threads[index_of(child)];
            if let Some(name) = comm {
                thread.named = true;
                thread.name = name;
            }
            if let (Some(spaces), Some(own), Some(space)) = (&mut self.spaces, thread.space, space)
            {
                if pid == ppid {
                    spaces.retain(space);
                    self.set_space(child, Some(space));
                } else if !at_start {
                    spaces.inherit(own, space);
                }
            }
        }
        if let (Some(spaces), Some(space)) = (&mut self.spaces, space) {
            spaces.release(space);
        }
    }

    /// A thread ended. It stays known for a while.
    pub(crate) fn exit(&mut self, tid: i32) {
        let Some(&at) = self.by_tid.get(&tid) else {
            return;
        };
        let thread = &mut self.threads[index_of(at)];
        if thread.ended || tid == 0 {
            return;
        }
        thread.ended = true;
        self.ended.push_back((tid, thread.serial));
        if self.ended.len() <= MAX_ENDED {
            return;
        }
        if let Some((tid, serial)) = self.ended.pop_front()
            && let Some(&at) = self.by_tid.get(&tid)
            && self.threads[index_of(at)].serial == serial
        {
            self.remove(tid);
        }
    }

    /// Something was mapped.
    pub(crate) fn mmap(
        &mut self,
        pid: i32,
        tid: i32,
        mode: CpuMode,
        mapping: &MappingRecord<'_>,
        files: &mut Files,
    ) {
        let MappingRecord {
            start, len, path, ..
        } = *mapping;
        if self.spaces.is_none() {
            return;
        }
        if matches!(mode, CpuMode::Kernel | CpuMode::GuestKernel) {
            return self.kernel.map(start, len, path, files);
        }
        let Some(at) = self.thread(pid, tid) else {
            return;
        };
        let space = self.threads[index_of(at)].space;
        let (file, shift) = user_file(pid, mapping, files);
        if let (Some(spaces), Some(space)) = (&mut self.spaces, space) {
            spaces.map(space, start, len, shift, file);
        }
    }

    /// Returns the mapping of user space that an address belongs to.
    pub(crate) fn user(&self, space: Option<SpaceId>, address: u64) -> Option<FileRegion> {
        self.spaces.as_ref()?.find(space?, address)
    }

    /// What all processes have mapped, if that is kept.
    pub(crate) fn spaces(&self) -> Option<&Spaces> {
        self.spaces.as_ref()
    }

    /// The kernel and its modules.
    pub(crate) fn kernel(&self) -> &KernelMaps {
        &self.kernel
    }

    /// The kernel and its modules.
    pub(crate) fn kernel_mut(&mut self) -> &mut KernelMaps {
        &mut self.kernel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_no_record_names_and_nobody_needs_are_forgotten() {
        let mut files = Files::new();
        let mut all: MappedProcesses<Box<[u8]>> =
            MappedProcesses::new(false, true, &[], &mut files);
        let kernel = all.by_tid.len();
        all.comm(500, 500, b"qemu");
        for tid in (501..600).chain(1000..1100) {
            all.running(if tid < 600 { 500 } else { tid }, tid);
        }
        for tid in (500..600).chain(1000..1100) {
            all.forget(tid);
        }
        assert_eq!(all.by_tid.len(), kernel + 1, "the named one alone stays");
        assert_eq!(&**all.running(500, 500).0, b"qemu");
        // What a process has mapped is found through the first of its threads.
        all.running(2000, 2001);
        all.forget(2000);
        assert!(all.by_tid.contains_key(&2000));
        all.forget(2001);
        all.forget(2000);
        assert_eq!(all.by_tid.len(), kernel + 1);
    }
}
