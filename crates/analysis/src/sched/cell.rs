//! One task's cell of the table of scheduling latencies, while the walk goes on.

use model::Threads;

use super::SchedLatencies;
use crate::cells::CellSum;

/// What of a task is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedColumn {
    /// Delays, as perf counts them: `switches`, `mean`, `max`.
    Delays,
    /// Waits for a CPU after a wake-up.
    Woken,
    /// Waits for a CPU after preemption.
    Preempted,
    /// What `sched_stat_runtime` says that it ran.
    Runtime,
}

impl SchedLatencies {
    /// Returns what has been counted so far of the task that has a thread id now. Of run times the number is not
    /// counted.
    pub fn cell(&self, threads: &Threads, tid: i32, column: SchedColumn) -> CellSum {
        let slot = threads.slot_of(tid);
        let task = slot.and_then(|slot| self.tasks.get(slot));
        let Some(sums) = task.map(|task| &*task.own) else {
            return CellSum::default();
        };
        match column {
            SchedColumn::Delays => CellSum::of(&sums.delays),
            SchedColumn::Woken => CellSum::of(&sums.woken_waits),
            SchedColumn::Preempted => CellSum::of(&sums.preempted),
            SchedColumn::Runtime => CellSum {
                count: 0,
                total_ns: sums.runtime_ns,
            },
        }
    }
}
