//! What was found of each vCPU's time.

use event::ExitReason;
use model::{GuestAccess, Polls, SeenEvents, Times};
use serde::Serialize;

use crate::Stats;
use crate::analysis::WalkState;
use crate::guests::{GuestTasks, GuestTasksReport};
use crate::unknowable::{Unknowable, unknowable};

/// A task that had a CPU which a runnable vCPU waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CpuHolder {
    /// Its name, if known.
    pub comm: Option<String>,
    /// Its thread id; 0 is the idle task: the CPU was free and had yet to come out of idling. `None` where
    /// it is not known who ran, for the sum of what is not listed, and for tasks of one name that are not kept apart
    /// ([`model::StateLimits`]).
    pub tid: Option<i32>,
    /// How many times it ran there meanwhile.
    pub count: u64,
    /// For how long.
    #[serde(rename = "ran_ns")]
    pub ns: u64,
}

/// An exit that the VMM handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCause {
    /// The exit; `None` where its `kvm_exit` was not seen, and for the sum of what is not listed.
    pub reason: Option<ExitReason>,
    /// The access that made it, where it was recorded.
    pub access: Option<GuestAccess>,
    /// Device and register behind the access, where [`crate::name_access`] found it.
    pub name: Option<String>,
    /// How many times the VMM had it.
    pub count: u64,
    /// For how long.
    pub ns: u64,
}

/// One vCPU.
#[derive(Debug, Clone, PartialEq)]
pub struct VcpuRow {
    /// Process of its VM, if known.
    pub vm_pid: Option<i32>,
    /// Name of its VM, if known.
    pub vm_name: Option<String>,
    /// What its VM is called, as no other VM of the recording is ([`model::vm_names`]).
    pub vm: String,
    /// Whether which VM it is of is a guess.
    pub guessed: bool,
    /// Whether names or facts alone say that it is a vCPU: there is no exit and no entry.
    pub presumed: bool,
    /// What it is called: `vCPU 1`, and where there are several VMs `web, vCPU 1` ([`model::vcpu_name`]).
    pub called: String,
    /// Its number in the VM.
    pub vcpu: u32,
    /// Its thread; -1 in the row of the others.
    pub tid: i32,
    /// How many vCPUs that had less time than those with a row, beyond [`model::StateLimits::vcpus`], this row is the
    /// sum of: 0 in the row of a single one.
    pub others: u32,
    /// From when it was observed: its first exit or entry, or the beginning of the window.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// Time by state. It adds up to the time observed.
    pub times: Times,
    /// Exits.
    pub exits: u64,
    /// Halts that were polled.
    pub polls: Polls,
    /// How long it waited for a CPU, each time.
    pub waits: Stats,
    /// Behind whom, most time first.
    pub behind: Vec<CpuHolder>,
    /// What it was in the VMM for, most time first.
    pub user: Vec<UserCause>,
    /// What its guest did, where the guest's recording was walked too.
    pub guest: Option<GuestTasksReport>,
}

impl VcpuRow {
    /// Returns a row of nothing, at an instant.
    pub(crate) fn at(time: u64) -> VcpuRow {
        VcpuRow {
            vm_pid: None,
            vm_name: None,
            vm: String::new(),
            guessed: false,
            presumed: false,
            called: String::new(),
            vcpu: 0,
            tid: -1,
            others: 0,
            from: time,
            to: time,
            times: Times::default(),
            exits: 0,
            polls: Polls::default(),
            waits: Stats::default(),
            behind: Vec::new(),
            user: Vec::new(),
            guest: None,
        }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct VcpusReport {
    /// vCPUs by VM and number.
    pub rows: Vec<VcpuRow>,
    /// What the recording has.
    pub seen: SeenEvents,
}

impl VcpusReport {
    /// Adds what guests did whose recordings were walked too.
    pub fn with_guests(&mut self, tasks: &GuestTasks, walked: &WalkState<'_>) {
        for row in &mut self.rows {
            row.guest = tasks.report(walked, row.tid);
        }
    }

    /// Returns what cannot be known.
    pub fn unknowable(&self) -> Vec<Unknowable> {
        unknowable(&self.seen)
    }
}
