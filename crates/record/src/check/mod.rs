/*!
What this machine lets a recorder do: a list with a sentence for each thing that is missing, how to get it, and what
works without it.

[`look`] asks the machine; [`lines`] makes the list of what was found, and looks at nothing itself.
*/

mod lines;
mod look;

use std::path::PathBuf;

use crate::PlannedEvent;

pub use lines::lines;
pub use look::look;

/// What is to be recorded: some things depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRequest {
    /// The events: each that the kernel has is a file on each CPU.
    pub events: Vec<PlannedEvent>,
    /// Bytes of each CPU's ring; 0: what suits the machine.
    pub ring_bytes: usize,
    /// Where the recording's folder is made.
    pub folder: PathBuf,
    /// Folders that are to be made there: nothing of these names may be there yet.
    pub names: Vec<PathBuf>,
}

/// What was found on a machine. What cannot be read is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostChecks {
    /// Which user this is, and what it may do.
    pub user: User,
    /// `kernel.perf_event_paranoid`; `None` where the kernel has no perf events.
    pub paranoid: Option<i32>,
    /// What opening an event that counts nothing said; `None` where it was opened.
    pub refused: Option<String>,
    /// The kernel's list of events.
    pub tracefs: TracefsAccess,
    /// Whether KVM's events are among them.
    pub kvm: bool,
    /// Files that probes are made by.
    pub kprobes: TracefsAccess,
    /// The same for probes of programs.
    pub uprobes: TracefsAccess,
    /// Whether /proc/kallsyms shows addresses.
    pub addresses: bool,
    /// `kernel.kptr_restrict`.
    pub kptr_restrict: Option<i32>,
    /// `kernel.perf_event_mlock_kb`.
    pub mlock_kib: Option<u64>,
    /// Bytes that the process may lock beside (`ulimit -l`); `None`: any number.
    pub memlock_bytes: Option<u64>,
    /// CPUs that are on line.
    pub cpus: u64,
    /// Bytes of the ring of each CPU, as they are wanted.
    pub ring_bytes: usize,
    /// Bytes of a page.
    pub page_bytes: usize,
    /// Files that are needed, and how many the process may open: now, and if it asks for more.
    pub files: u64,
    /// See [`HostChecks::files`].
    pub files_now: u64,
    /// See [`HostChecks::files`].
    pub files_most: u64,
    /// Whether the kernel takes programs of BPF.
    pub bpf: bool,
    /// Whether it has BTF.
    pub btf: bool,
    /// Whether sysfs is mounted: a container may have no /sys.
    pub sysfs: bool,
    /// Whether the kernel is locked down so that nobody reads its memory (kernel_lockdown(7), `confidentiality`): its
    /// tracefs is empty then.
    pub confidential: bool,
    /// The folder where the recording's is made.
    pub folder: PathBuf,
    /// The first of the folders that are to be made whose name is taken.
    pub taken: Option<PathBuf>,
    /// Whether a folder can be made there, and the bytes that it has room for.
    pub writable: bool,
    /// See [`HostChecks::writable`].
    pub free_bytes: Option<u64>,
}

/// Who records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct User {
    /// Its number; 0 is root.
    pub uid: u32,
    /// CAP_SYS_ADMIN, which allows what each of the next two does.
    pub sys_admin: bool,
    /// CAP_PERFMON.
    pub perfmon: bool,
    /// CAP_BPF.
    pub bpf: bool,
    /// CAP_IPC_LOCK.
    pub ipc_lock: bool,
    /// CAP_SYS_RESOURCE.
    pub sys_resource: bool,
}

/// Whether something of tracefs can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracefsAccess {
    /// It can.
    Yes(PathBuf),
    /// This user may not.
    Denied(PathBuf),
    /// It is not there.
    Missing,
}

/// Something that recording takes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CheckLine {
    /// What it is called.
    pub name: &'static str,
    /// Whether it is there.
    pub ok: bool,
    /// Whether nothing can be recorded without it.
    pub needed: bool,
    /// What was found or is missing.
    pub found: String,
    /// How to get it.
    pub remedy: Option<String>,
    /// What works without it.
    pub without: Option<String>,
}

impl CheckLine {
    /// Returns it as one sentence.
    pub fn sentence(&self) -> String {
        let mut text = self.found.clone();
        if let Some(remedy) = &self.remedy {
            text.push_str("; ");
            text.push_str(remedy);
        }
        if let Some(without) = &self.without {
            text.push_str("; without it ");
            text.push_str(without);
        }
        text.push('.');
        text
    }
}
