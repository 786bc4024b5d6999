//! Latency paths as a store keeps them: a row for each, and one for each stage.

use ::paths::PathReport;

use crate::ClockUnit;
use crate::paths::{Line, durations, stages};
use crate::table::Unit::{Count, Nanoseconds, Text};
use crate::table::{RowsTaker, Table};

/// Columns of paths where each is one row.
pub(crate) fn rows() -> Table<'static, PathReport> {
    let names = Table::new()
        .column("path", Text, |path: &PathReport| path.name.clone())
        .column("count", Count, |path| path.count);
    durations(names, |path| &path.total)
        .column("recording_ns", Nanoseconds, |path| path.recording_ns)
        .column("holder", Text, |path| {
            path.ledger.most().map(|term| term.holder.name())
        })
        .column("slow_count", Count, |path| {
            path.slow.as_ref().map(|slow| slow.count)
        })
        .column("slow_from_ns", Nanoseconds, |path| {
            path.slow.as_ref().map(|slow| slow.threshold_ns)
        })
        .column("dropped", Count, |path| {
            path.dropped
                .iter()
                .map(|(_, count)| *count)
                .fold(0u64, u64::saturating_add)
        })
}

/// Hands out the stages of a path, as a store keeps them.
pub(crate) fn store_stages(report: &PathReport, clock: ClockUnit, take: RowsTaker<'_>) {
    let columns = stages().counted_in(clock);
    let stages = report.stages.iter();
    columns.store(stages.map(|stage| Line::of_stage(report, stage)), take);
}
