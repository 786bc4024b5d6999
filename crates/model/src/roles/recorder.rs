//! Which process made the recording.
//!
//! A name does not say it: any process may be called perf. What does, by the tool that recorded, best first:
//!
//! - trapline writes its process into its file.
//! - perf lists the host's processes when it begins, and who forked each (`tools/perf/util/synthetic-events.c`). The
//!   command that it runs is one of them, called `perf-exec` until perf lets it go (`evlist__prepare_workload`): who
//!   forked that is the recorder. In a text, which has no list, it is who wakes `perf-exec` without having been seen to
//!   get its CPU: perf lets the command go when it has just begun to record, and another perf that runs a command later
//!   has to get a CPU first.
//! - Without a command perf is in its own list. Where that is of the whole host, and one process alone in it is called
//!   as the recorder's program, it is that one, unless it ends within the recording.
//! - trace-cmd reads the buffers of each CPU with a process of its own, and one more waits for the end
//!   (`tracecmd_start_recording`). They sleep and are woken, and were forked one after the other: of the tasks that are
//!   called as it is, those whose ids are close together and of which two at least slept. All its other commands are
//!   one process.
//!
//! What none of these decides is not known.

use std::sync::Arc;

use event::Side;
use event::sched::TaskComm;

/// What the command that perf runs is called between its fork and its exec.
pub const PERF_WORKLOAD: &str = "perf-exec";

/// The first process of a host or of a container: who lists it lists all processes there are.
const INIT: i32 = 1;

/// Processes of the recorder's name that are kept: more of them than one decide nothing.
const MAX_LISTED: usize = 64;

/// Tasks of trace-cmd's name that are kept: a reader for each CPU, and one for each vCPU of guests.
const MAX_SLEEPERS: usize = 2 * event::MAX_CPUS;

/// What a recording's header says of who made it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecorderClue {
    /// Its process, where the recording has that.
    pub pid: Option<i32>,
    /// What its program is called, as threads carry it.
    pub comm: Option<Arc<str>>,
    /// Whether it is trace-cmd, which forks a reader for each CPU.
    pub forks_readers: bool,
}

/// What the recording shows of who made it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecorderTraces {
    pub(super) clue: RecorderClue,
    /// The last fork in the recorder's own list: the new process and who made it.
    fork: Option<(i32, i32)>,
    /// Who forked the command that perf runs.
    command_parent: Option<i32>,
    /// The thread that let the command go.
    pub(super) command_waker: Option<i32>,
    /// Processes of its name in its own list.
    listed: Vec<i32>,
    /// Whether that list is of all processes.
    whole_host: bool,
    /// Tasks of trace-cmd's name that slept, or were woken.
    pub(super) sleepers: Vec<i32>,
}

impl RecorderTraces {
    pub(crate) fn clue(&mut self, clue: &RecorderClue) {
        self.clue = clue.clone();
    }

    /// Returns whether a name is that of the recorder's program.
    pub(super) fn is_called(&self, comm: &str) -> bool {
        self.clue.comm.as_deref() == Some(comm)
    }

    /// Takes what a recording says beside events.
    pub(crate) fn side(&mut self, side: &Side<'_>) {
        match *side {
            Side::Fork {
                time: 0, pid, ppid, ..
            } if pid != ppid => self.fork = Some((pid, ppid)),
            Side::Comm {
                time: 0,
                pid,
                tid,
                comm,
                ..
            } if pid == tid => {
                self.whole_host |= pid == INIT;
                if comm == PERF_WORKLOAD {
                    let forked = self.fork.filter(|(child, _)| *child == pid);
                    self.command_parent = forked.map(|(_, parent)| parent).or(self.command_parent);
                } else if self.is_called(comm) && self.listed.len() < MAX_LISTED {
                    self.listed.push(pid);
                }
            }
            Side::Exit { pid, tid, .. } if pid == tid => self.listed.retain(|one| *one != pid),
            _ => {}
        }
    }

    /// A task of the recorder's name slept, or is woken.
    #[inline]
    pub(super) fn sleeps(&mut self, tid: i32, comm: &TaskComm) {
        let named = self.clue.comm.as_deref().map(str::as_bytes) == Some(comm.as_bytes());
        if named && self.sleepers.len() < MAX_SLEEPERS && !self.sleepers.contains(&tid) {
            self.sleepers.push(tid);
        }
    }

    /// Returns the process that recorded, if anything says it.
    pub(super) fn process(&self) -> Option<i32> {
        let alone = || match self.listed.as_slice() {
            [pid] if self.whole_host => Some(*pid),
            _ => None,
        };
        self.clue.pid.or(self.command_parent).or_else(alone)
    }
}
