//! Reads the scheduler's events out of binary records.

use tracefmt::{Field, FieldKind, Format};

use crate::decode::Load;
use crate::sched::{
    Comm, SchedMigrateTask, SchedStatRuntime, SchedSwitch, SchedWakeup, Task, TaskState,
};
use crate::{Data, Kind};

/// A `char` array in a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chars {
    offset: u32,
    size: u32,
}

impl Chars {
    fn of(field: &Field) -> Option<Chars> {
        matches!(field.kind, FieldKind::Array { element: 1 }).then_some(Chars {
            offset: field.offset,
            size: field.size.min(16),
        })
    }

    #[inline]
    fn get(self, record: &[u8]) -> Option<Comm> {
        let bytes = record.get(self.offset as usize..)?;
        Some(Comm::new(bytes.get(..self.size as usize)?))
    }
}

/// Reads one kind of event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SchedPlan {
    Switch {
        prev: Load,
        prev_comm: Option<Chars>,
        state: Load,
        next: Load,
        next_comm: Option<Chars>,
    },
    Wakeup {
        waking: bool,
        tid: Load,
        comm: Option<Chars>,
        target: Option<Load>,
    },
    Migrate {
        tid: Load,
        orig: Load,
        dest: Load,
    },
    Runtime {
        tid: Load,
        comm: Option<Chars>,
        runtime: Load,
    },
    Task {
        kind: Kind,
        tid: Load,
        comm: Option<Chars>,
    },
    WorkStart {
        work: Load,
        function: Load,
    },
    WorkEnd {
        work: Load,
    },
}

impl SchedPlan {
    /// Prepares to read records of this format; `None` when it lacks a field without which the event means
    /// nothing.
    pub(crate) fn bind(kind: Kind, format: &Format) -> Option<SchedPlan> {
        let endian = format.abi.endian;
        let load = |name: &str| Load::of(format.field(name)?, endian);
        let chars = |name: &str| Chars::of(format.field(name)?);
        Some(match kind {
            Kind::SchedSwitch => SchedPlan::Switch {
                prev: load("prev_pid")?,
                prev_comm: chars("prev_comm"),
                state: load("prev_state")?,
                next: load("next_pid")?,
                next_comm: chars("next_comm"),
            },
            Kind::SchedWaking | Kind::SchedWakeup | Kind::SchedWakeupNew => SchedPlan::Wakeup {
                waking: kind == Kind::SchedWaking,
                tid: load("pid")?,
                comm: chars("comm"),
                target: load("target_cpu"),
            },
            Kind::SchedMigrateTask => SchedPlan::Migrate {
                tid: load("pid")?,
                orig: load("orig_cpu")?,
                dest: load("dest_cpu")?,
            },
            Kind::SchedStatRuntime => SchedPlan::Runtime {
                tid: load("pid")?,
                comm: chars("comm"),
                runtime: load("runtime")?,
            },
            Kind::SchedProcessFork => SchedPlan::Task {
                kind,
                tid: load("child_pid")?,
                comm: chars("child_comm"),
            },
            Kind::SchedProcessExit => SchedPlan::Task {
                kind,
                tid: load("pid")?,
                comm: chars("comm"),
            },
            Kind::TaskRename => SchedPlan::Task {
                kind,
                // Where the id is not recorded the task renames itself.
                tid: load("pid").or_else(|| load("common_pid"))?,
                comm: chars("newcomm"),
            },
            Kind::WorkqueueExecuteStart => SchedPlan::WorkStart {
                work: load("work")?,
                function: load("function")?,
            },
            Kind::WorkqueueExecuteEnd => SchedPlan::WorkEnd {
                work: load("work")?,
            },
            _ => return None,
        })
    }

    /// Reads one record; `None` when it is too short.
    pub(crate) fn decode(self, record: &[u8]) -> Option<Data> {
        let int = |load: Load| load.get(record).map(|v| v as i32);
        let comm = |chars: Option<Chars>| chars.and_then(|c| c.get(record)).unwrap_or_default();
        Some(match self {
            SchedPlan::Switch {
                prev,
                prev_comm,
                state,
                next,
                next_comm,
            } => Data::SchedSwitch(SchedSwitch {
                prev_tid: int(prev)?,
                prev_comm: comm(prev_comm),
                prev_state: TaskState(state.get(record)?),
                next_tid: int(next)?,
                next_comm: comm(next_comm),
            }),
            SchedPlan::Wakeup {
                waking,
                tid,
                comm: name,
                target,
            } => {
                let wakeup = SchedWakeup {
                    tid: int(tid)?,
                    comm: comm(name),
                    target_cpu: target.and_then(int),
                };
                if waking {
                    Data::SchedWaking(wakeup)
                } else {
                    Data::SchedWakeup(wakeup)
                }
            }
            SchedPlan::Migrate { tid, orig, dest } => Data::SchedMigrateTask(SchedMigrateTask {
                tid: int(tid)?,
                orig_cpu: int(orig)?,
                dest_cpu: int(dest)?,
            }),
            SchedPlan::Runtime {
                tid,
                comm: name,
                runtime,
            } => Data::SchedStatRuntime(SchedStatRuntime {
                tid: int(tid)?,
                comm: comm(name),
                runtime_ns: runtime.get(record)?,
            }),
            SchedPlan::Task {
                kind,
                tid,
                comm: name,
            } => {
                let task = Task {
                    tid: int(tid)?,
                    comm: comm(name),
                };
                match kind {
                    Kind::SchedProcessFork => Data::SchedProcessFork(task),
                    Kind::SchedProcessExit => Data::SchedProcessExit(task),
                    _ => Data::TaskRename(task),
                }
            }
            SchedPlan::WorkStart { work, function } => Data::WorkqueueExecuteStart {
                work: work.get(record)?,
                function: function.get(record)?,
            },
            SchedPlan::WorkEnd { work } => Data::WorkqueueExecuteEnd {
                work: work.get(record)?,
            },
        })
    }
}
