//! What the addresses of a recording belong to.

use event::{Side, UserStackBytes};

use crate::files::{FileRegion, Files};
use crate::kernel::KernelFile;
use crate::mode::CpuMode;
use crate::processes::{MappedProcesses, ThreadName};
use crate::spaces::{MappingRecord, SpaceId};
use crate::user::{UserMapping, UserUnwinder};

/// The threads of a recording with their names over time, what their processes have mapped, and the kernel: the host's,
/// and those of all its guests, which perf keeps as one.
///
/// It has to see all side records and the events in time order.
#[derive(Debug)]
pub struct Addresses<N> {
    files: Files,
    host: MappedProcesses<N>,
    guest: MappedProcesses<N>,
    /// Whether mappings are kept.
    mappings: bool,
    /// Whether an event was seen.
    started: bool,
}

impl<N: ThreadName> Addresses<N> {
    /// `mappings` says whether addresses will be asked for, `known` are the kernels and modules that the recording has
    /// build ids of, in its order.
    pub fn new(mappings: bool, known: &[KernelFile<'_>]) -> Addresses<N> {
        let mut files = Files::new();
        Addresses {
            host: MappedProcesses::new(false, mappings, known, &mut files),
            guest: MappedProcesses::new(true, mappings, known, &mut files),
            files,
            mappings,
            started: false,
        }
    }

    /// Takes a side record: a name, a loss, a mapping.
    pub fn side(&mut self, side: &Side<'_>) {
        match *side {
            Side::Comm { pid, tid, comm, .. } => self.host.comm(pid, tid, comm.as_bytes()),
            Side::Fork {
                time,
                pid,
                tid,
                ppid,
                ptid,
            } => {
                // Recorders tell first what they found. Recordings without time stamps go on with 0.
                let at_start = time == 0 && !self.started;
                self.host.fork(pid, tid, ppid, ptid, at_start);
            }
            Side::Exit { tid, .. } => self.host.exit(tid),
            Side::Mmap {
                pid,
                tid,
                start,
                len,
                pgoff,
                misc,
                exec,
                huge,
                build_id,
                path,
                ..
            } => {
                let mode = CpuMode::of(misc);
                let processes = if mode.is_guest() {
                    &mut self.guest
                } else {
                    &mut self.host
                };
                let mapping = MappingRecord {
                    start,
                    len,
                    pgoff,
                    exec,
                    huge,
                    build_id,
                    path: path.as_bytes(),
                };
                processes.mmap(pid, tid, mode, &mapping, &mut self.files);
            }
            Side::Ksymbol {
                start,
                len,
                name,
                gone,
                ..
            } if self.mappings => {
                let kernel = self.host.kernel_mut();
                if gone {
                    kernel.remove_symbol(start);
                } else {
                    kernel.add_symbol(start, len, name.as_bytes(), &mut self.files);
                }
            }
            _ => {}
        }
    }

    /// Forgets a thread that is not kept apart any more, where no record named it and no other thread needs it.
    pub fn forget(&mut self, tid: i32) {
        self.host.forget(tid);
    }

    /// Takes an event's thread, and returns its name and what its process has mapped.
    #[inline]
    pub fn running(&mut self, mode: CpuMode, pid: i32, tid: i32) -> (&N, Option<SpaceId>) {
        self.started = true;
        if mode.is_guest() {
            self.guest.running(pid, tid)
        } else {
            self.host.running(pid, tid)
        }
    }

    /// Returns what an address belongs to, the empty region if it is nothing known. `event` is the mode of the event,
    /// `space` what its process has mapped, `mode` whose code the address is.
    pub fn find(
        &self,
        event: CpuMode,
        space: Option<SpaceId>,
        address: u64,
        mode: CpuMode,
    ) -> FileRegion {
        let processes = if event.is_guest() {
            &self.guest
        } else {
            &self.host
        };
        let found = match mode {
            CpuMode::Kernel | CpuMode::GuestKernel => processes.kernel().find(address),
            CpuMode::User | CpuMode::GuestUser => processes.user(space, address),
            CpuMode::Other => None,
        };
        found.unwrap_or(FileRegion::EMPTY)
    }

    /// Makes a stack of user space of the host.
    pub fn unwind(
        &self,
        unwinder: &mut dyn UserUnwinder,
        space: SpaceId,
        stack: &UserStackBytes<'_>,
        most: usize,
        addresses: &mut Vec<u64>,
    ) {
        let Some(spaces) = self.host.spaces() else {
            return;
        };
        let mappings = |each: &mut dyn FnMut(UserMapping<'_>)| {
            spaces.each(space, |start, end, pgoff, file| {
                each(UserMapping {
                    start,
                    end,
                    pgoff,
                    path: self.files.name(file),
                    build_id: self.files.build_id(file),
                });
            });
        };
        let process = (space, spaces.version(space));
        unwinder.unwind(process, &mappings, stack, most, addresses);
    }

    /// Returns the names of files.
    pub fn files(&self) -> &Files {
        &self.files
    }
}
