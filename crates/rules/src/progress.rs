//! Of every vCPU whether it got anywhere: what is asked before how fast it was.

use analysis::{ProgressRow, VcpuRow};
use model::State;

use crate::Case;
use crate::rules::{hangs, is_spinning_in_halts, is_stuck};

/// Whether a vCPU got anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressState {
    /// It ran different code, or was halted until something woke it.
    Advances,
    /// It takes the same fault again and again.
    Stuck,
    /// It halts and goes on at once.
    HaltsAtOnce,
    /// Its guest's kernel runs the same few instructions, with interrupts off.
    Spins,
    /// It ended.
    Ended,
    /// It was never in its guest: it only slept, or waited for a CPU.
    NeverRan,
    /// Without events of KVM nobody knows.
    Unknown,
}

impl ProgressState {
    /// Returns its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            ProgressState::Advances => "advances",
            ProgressState::Stuck => "stuck",
            ProgressState::HaltsAtOnce => "halts_at_once",
            ProgressState::Spins => "spins",
            ProgressState::Ended => "ended",
            ProgressState::NeverRan => "never_ran",
            ProgressState::Unknown => "unknown",
        }
    }
}

/// What is said of one vCPU's progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressVerdict {
    /// Process of its VM, if known.
    pub vm_pid: Option<i32>,
    /// Its number in the VM.
    pub vcpu: u32,
    /// Its thread.
    pub tid: i32,
    /// Whether it got anywhere.
    pub state: ProgressState,
    /// Since when that is so, on the recording's clock.
    pub since: u64,
    /// The same in a sentence.
    pub text: String,
}

/// Returns it of every vCPU of a case that has a row of its own.
pub(crate) fn verdicts(case: &Case<'_>) -> Vec<ProgressVerdict> {
    if case.counts_ticks() {
        return Vec::new();
    }
    let rows = case.picture.vcpus.iter().flat_map(|report| &report.rows);
    let own = rows.filter(|row| row.others == 0);
    own.map(|row| verdict(case, row)).collect()
}

fn verdict(case: &Case<'_>, row: &VcpuRow) -> ProgressVerdict {
    let mut progress = case.picture.progress.rows.iter();
    let progress = progress.find(|one| one.tid == row.tid);
    let (state, since) = judged(case, row, progress);
    let what = match state {
        ProgressState::Advances => "makes progress",
        ProgressState::Stuck => "takes the same fault again and again",
        ProgressState::HaltsAtOnce => "halts and goes on at once",
        ProgressState::Spins => "runs the same few instructions of its kernel",
        ProgressState::Ended => "ended",
        ProgressState::NeverRan => "was never in its guest",
        ProgressState::Unknown => "may or may not make progress: no exit and no entry shows it",
    };
    ProgressVerdict {
        vm_pid: row.vm_pid,
        vcpu: row.vcpu,
        tid: row.tid,
        state,
        since,
        text: format!("{} {what}.", words::capital(&row.called)),
    }
}

fn judged(case: &Case<'_>, row: &VcpuRow, progress: Option<&ProgressRow>) -> (ProgressState, u64) {
    let Some(progress) = progress.filter(|_| !row.presumed) else {
        return (ProgressState::Unknown, row.from);
    };
    if let Some(end) = progress.end.as_ref().filter(|end| end.later_exits == 0) {
        return (ProgressState::Ended, end.time);
    }
    if is_stuck(progress) {
        return (ProgressState::Stuck, progress.same_fault.from);
    }
    if is_spinning_in_halts(progress) {
        return (ProgressState::HaltsAtOnce, progress.from);
    }
    if hangs(case, progress) {
        return (ProgressState::Spins, progress.spin.from);
    }
    let asleep = row.times.get(State::Halted);
    match row.times.get(State::Guest) {
        0 if asleep == 0 && row.times.total() > 0 => (ProgressState::NeverRan, row.from),
        _ => (ProgressState::Advances, row.from),
    }
}
