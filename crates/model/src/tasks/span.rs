//! What tasks and CPUs do, as spans of time.

use event::sched::TaskState;

/// What a task does, as the scheduler sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum RunState {
    /// Nothing was seen of it, or it has ended.
    #[default]
    Unknown,
    /// It has a CPU.
    Running,
    /// It left its CPU and could go on: it was preempted, or it yielded.
    Preempted,
    /// It was woken, and waits for a CPU.
    Woken,
    /// It waits for something that is no CPU.
    Asleep,
    /// A signal or a tracer stopped it (`TASK_STOPPED`, `TASK_TRACED`).
    Stopped,
}

impl RunState {
    /// Returns whether it is on a run queue and has no CPU.
    #[inline]
    pub fn is_runnable(self) -> bool {
        matches!(self, RunState::Preempted | RunState::Woken)
    }

    /// Returns whether only a wake-up lets it go on.
    #[inline]
    pub fn is_blocked(self) -> bool {
        matches!(self, RunState::Asleep | RunState::Stopped)
    }
}

/// What ended a span of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanEnd {
    /// The task got a CPU.
    GotCpu,
    /// It left its CPU.
    LeftCpu,
    /// It was woken.
    Woken,
    /// It waits on, and its CPU went from the task that it waited behind to another ([`TaskSpan::behind`]).
    Behind,
    /// It waits on, on the run queue of another CPU.
    Moved,
    /// An event shows that the one that ended the span was missed.
    Missed,
    /// Nothing: the span is still under way.
    Open,
}

/// A stretch of time that a task spent in one state, or a part of it: a wait for a CPU has a part for each task that
/// it was behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskSpan {
    /// The task: its slot in [`crate::Threads`].
    pub thread: u32,
    /// What it did.
    pub state: RunState,
    /// From when. Where the span is a part of a wait, that of the part.
    pub start: u64,
    /// Until when.
    pub end: u64,
    /// What ended it.
    pub ended_by: SpanEnd,
    /// When the task began to be in this state.
    pub since: u64,
    /// The CPU of the event that began it: a waker's may be another than the task's. [`event::NONE`] when not known.
    pub began_on: i32,
    /// The CPU that it ran on, waited for, or had last; [`event::NONE`] when not known.
    pub cpu: i32,
    /// When, and from which CPU, it left its last CPU, unless it has had one since or that was not seen.
    pub left: Option<(u64, i32)>,
    /// The state in which it left.
    pub left_as: TaskState,
    /// The task that got that CPU.
    pub taken_by: Option<u32>,
    /// Who woke it first since it left.
    pub waker: Option<u32>,
    /// While it was runnable: the task that had the CPU that it waited for.
    pub behind: Option<u32>,
}

impl TaskSpan {
    /// Returns its length.
    #[inline]
    pub fn ns(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Returns how long the task has been in this state, parts of a wait that were handed out before included.
    #[inline]
    pub fn whole_ns(&self) -> u64 {
        self.end.saturating_sub(self.since)
    }
}

/// A stretch of time in which one task had a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuSpan {
    /// The CPU.
    pub cpu: i32,
    /// The task that had it, by its slot in [`crate::Threads`]; `None` if a switch was missed: the CPU went away from
    /// another task than the one that it had gone to.
    pub thread: Option<u32>,
    /// Whether that is the idle task.
    pub idle: bool,
    /// From when.
    pub start: u64,
    /// Until when.
    pub end: u64,
    /// Whether events of the CPU were lost meanwhile.
    pub lost: bool,
}

impl CpuSpan {
    /// Returns its length.
    #[inline]
    pub fn ns(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// A task left a CPU, and another got it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuSwitch {
    /// When.
    pub time: u64,
    /// The CPU; [`event::NONE`] when not known.
    pub cpu: i32,
    /// Who left, by its slot.
    pub prev: u32,
    /// Who got it.
    pub next: u32,
    /// Whether the one that left is the idle task.
    pub prev_idle: bool,
    /// Whether the one that got it is.
    pub next_idle: bool,
    /// In which state it left.
    pub left_as: TaskState,
}

/// A task was woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskWakeup {
    /// The task, by its slot.
    pub task: u32,
    /// Who woke it: the thread that made the event, if that kind of event knows. `None` where tasks are not followed.
    pub waker: Option<u32>,
    /// When.
    pub time: u64,
    /// Whether it is `sched_waking`, which begins a wake-up that `sched_wakeup` finishes.
    pub waking: bool,
    /// Whether the task is new (`sched_wakeup_new`): no `sched_waking` comes before.
    pub of_new: bool,
    /// The CPU that it was woken for, if that is recorded.
    pub target_cpu: Option<i32>,
}

/// What an event of the scheduler changed.
#[derive(Debug, Clone, Default)]
pub struct TaskChanges {
    /// The switch that it is, if it is one.
    pub switch: Option<CpuSwitch>,
    /// The wake-up that it is, if it is one.
    pub wakeup: Option<TaskWakeup>,
    /// Who had the CPU until then.
    pub cpu: Option<CpuSpan>,
    /// What tasks did until then: first those that wait for the CPU, then the one that leaves it, then the one that
    /// gets it.
    pub tasks: Vec<TaskSpan>,
}

impl TaskChanges {
    /// Returns whether the event changed nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.switch.is_none() && self.wakeup.is_none() && self.tasks.is_empty()
    }

    pub(super) fn clear(&mut self) {
        (self.switch, self.wakeup, self.cpu) = (None, None, None);
        self.tasks.clear();
    }
}
