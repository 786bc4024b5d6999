//! What a thread does while time passes.

use event::sched::{Leaves, TaskState};

/// What a thread does while time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ThreadState {
    /// It has a CPU.
    Runs,
    /// It has none, though it could go on: it was preempted, or it yielded.
    Preempted,
    /// It was woken and has yet to get a CPU.
    Woken,
    /// It sleeps, in the state that the kernel prints this letter for (`S`, `D`, `I`, `T`, `t`, `P`).
    Sleeps(char),
}

impl ThreadState {
    /// Returns what a thread does that left its CPU in a state; `None` if it has ended.
    pub(super) fn of(state: TaskState) -> Option<ThreadState> {
        match state.leaves() {
            Leaves::Runnable => Some(ThreadState::Preempted),
            Leaves::Blocked => Some(ThreadState::Sleeps(letter(state))),
            Leaves::Dead => None,
        }
    }

    /// Returns whether it waits for a CPU.
    pub fn is_runnable(self) -> bool {
        matches!(self, ThreadState::Preempted | ThreadState::Woken)
    }

    /// Returns what stands for it in stacks.
    pub fn text(self) -> &'static str {
        match self {
            ThreadState::Runs => "on CPU",
            ThreadState::Preempted => "runnable (preempted)",
            ThreadState::Woken => "runnable (woken)",
            ThreadState::Sleeps('S') => "sleeping (S)",
            ThreadState::Sleeps('D') => "uninterruptible (D)",
            ThreadState::Sleeps('I') => "idle kernel thread (I)",
            ThreadState::Sleeps('T') => "stopped (T)",
            ThreadState::Sleeps('t') => "traced (t)",
            ThreadState::Sleeps('P') => "parked (P)",
            ThreadState::Sleeps(_) => "sleeping (state unknown)",
        }
    }
}

/// The letter of the lowest bit of a state, as the kernel prints it first (`TASK_REPORT`, `task_index_to_char` in
/// `include/linux/sched.h`; 0x80 is `I` where a recording has it at all: before 4.14 it was not reported).
fn letter(state: TaskState) -> char {
    match state.0 & 0xff {
        bits if bits & 1 != 0 => 'S',
        bits if bits & 2 != 0 => 'D',
        bits if bits & 4 != 0 => 'T',
        bits if bits & 8 != 0 => 't',
        bits if bits & 0x40 != 0 => 'P',
        bits if bits & 0x80 != 0 => 'I',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_the_kernels_letters() {
        let of = |text: &str| ThreadState::of(TaskState::from_text(text.as_bytes()).unwrap());
        assert_eq!(of("S"), Some(ThreadState::Sleeps('S')));
        assert_eq!(of("D"), Some(ThreadState::Sleeps('D')));
        assert_eq!(of("I"), Some(ThreadState::Sleeps('I')));
        assert_eq!(of("R+"), Some(ThreadState::Preempted));
        assert_eq!(of("S+"), Some(ThreadState::Preempted));
        assert_eq!(of("R"), Some(ThreadState::Preempted));
        assert_eq!(of("Z"), None);
    }
}
