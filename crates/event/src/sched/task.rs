//! Names and states of tasks.

use std::fmt;

use tracefmt::{Endian, FormatField};

use crate::record::{Chars, FieldLoad, FieldType, number};

/// Name of a task, as the kernel keeps it: up to 15 bytes and a NUL (`TASK_COMM_LEN`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TaskComm([u8; 16]);

impl TaskComm {
    /// Takes a name up to its NUL; what is longer than 16 bytes is cut.
    #[inline]
    pub fn new(bytes: &[u8]) -> TaskComm {
        let mut comm = [0; 16];
        for (to, &from) in comm.iter_mut().zip(bytes.iter().take_while(|&&b| b != 0)) {
            *to = from;
        }
        TaskComm(comm)
    }

    /// Returns the bytes of the name.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        let len = self.0.iter().position(|&b| b == 0);
        self.0.get(..len.unwrap_or(16)).unwrap_or_default()
    }

    /// Returns the name; what is no UTF-8 shows as such.
    pub fn to_str_lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }
}

impl fmt::Debug for TaskComm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_str_lossy())
    }
}

/// Why a task left its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Leaves {
    /// It could go on: preempted, or it yielded.
    Runnable,
    /// It waits for something.
    Blocked,
    /// It has ended.
    Dead,
}

/// What `prev_state` says, as the kernel recorded it: 0 for a task that could go on, bits for what it waits
/// for otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TaskState(pub u64);

/// The bits that the kernel prints a letter for, since 4.14 (`TASK_REPORT`, `include/linux/sched.h`); and the
/// letters that trace-cmd's plugin (3.1) prints for the last two, after those of older kernels.
const LETTERS: [(u8, u64); 11] = [
    (b'R', 0),
    (b'S', 1),
    (b'D', 2),
    (b'T', 4),
    (b't', 8),
    (b'X', 0x10),
    (b'Z', 0x20),
    (b'P', 0x40),
    (b'I', 0x80),
    (b'x', 0x40),
    (b'W', 0x80),
];

impl TaskState {
    /// The task was preempted (`TASK_REPORT_MAX`); texts print `R+`.
    pub const PREEMPTED: TaskState = TaskState(0x100);

    /// Returns the state that a text stands for, as `S`, `R+`, or `D|W` of old kernels. A letter that is not
    /// known is one for a task that sleeps: of the others there are two, and they have not changed.
    pub fn from_text(text: &[u8]) -> Option<TaskState> {
        let (&letter, rest) = text.split_first()?;
        let known = LETTERS.iter().find(|l| l.0 == letter).map(|l| l.1);
        let bits = known.or_else(|| letter.is_ascii_alphabetic().then_some(1))?;
        let preempted = rest.contains(&b'+');
        Some(TaskState(if preempted { bits | 0x100 } else { bits }))
    }

    /// Returns why the task left its CPU.
    ///
    /// A task that is preempted on its way to sleep is still on the run queue, whatever its bits say.
    /// Kernels before 4.14 mark preemption with a bit above those of the states they knew then (0x400, 0x800
    /// or 0x1000), which no state of that time uses.
    #[inline]
    pub fn leaves(self) -> Leaves {
        match self.0 {
            0 => Leaves::Runnable,
            bits if bits & 0x100 != 0 || bits >= 0x400 => Leaves::Runnable,
            bits if bits & 0x30 != 0 => Leaves::Dead,
            _ => Leaves::Blocked,
        }
    }
}

impl FieldType for TaskComm {
    type Place = Chars;

    const NUMBER: bool = false;

    fn place(field: &FormatField, _endian: Endian) -> Option<Chars> {
        Chars::of(field)
    }

    #[inline]
    fn read(place: Chars, record: &[u8]) -> Option<TaskComm> {
        place.get(record).map(TaskComm::new)
    }

    fn printed(_number: u64) -> Option<TaskComm> {
        None
    }

    fn number(self) -> Option<u64> {
        None
    }
}

// Texts print letters, which conditions compare as texts.
number!(TaskState, false, TaskState, |state: TaskState| state.0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_their_nul() {
        let comm = TaskComm::new(b"CPU 0/KVM\0junk");
        assert_eq!(comm.as_bytes(), b"CPU 0/KVM");
        assert_eq!(TaskComm::new(b"0123456789abcdefgh").as_bytes().len(), 16);
    }

    #[test]
    fn states_say_why_a_task_left() {
        for (text, leaves) in [
            ("R", Leaves::Runnable),
            ("R+", Leaves::Runnable),
            ("S", Leaves::Blocked),
            ("S+", Leaves::Runnable),
            ("D", Leaves::Blocked),
            ("D|W", Leaves::Blocked),
            ("I", Leaves::Blocked),
            ("W", Leaves::Blocked),
            ("K", Leaves::Blocked),
            ("X", Leaves::Dead),
            ("Z", Leaves::Dead),
        ] {
            let state = TaskState::from_text(text.as_bytes()).unwrap();
            assert_eq!(state.leaves(), leaves, "{text}");
        }
        assert_eq!(TaskState::from_text(b"?"), None);
        assert_eq!(TaskState(0x400).leaves(), Leaves::Runnable);
    }
}
