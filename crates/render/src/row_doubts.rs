//! The doubts that are about a row of a document.

use doubts::{AnswerScope, Concerns, Doubts};

use crate::table::{Table, Unit};

/// What a row is of, as far as it says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowScope {
    pub(crate) tid: Option<i32>,
    pub(crate) cpu: Option<u32>,
    pub(crate) time: Option<(u64, u64)>,
}

impl RowScope {
    /// Returns the scope of a row of a thread.
    pub(crate) fn of_thread(tid: i32) -> RowScope {
        RowScope {
            tid: Some(tid),
            ..RowScope::default()
        }
    }
}

/// Adds for documents the ids of the doubts that are about a row and not about all.
pub(crate) fn with_doubts<'t, R: 't>(
    table: Table<'t, R>,
    doubts: &'t Doubts,
    scope: fn(&R) -> RowScope,
) -> Table<'t, R> {
    table.column("doubts", Unit::Nested, move |row| {
        let row = scope(row);
        doubts.ids_about(&AnswerScope {
            threads: row.tid.map(|tid| vec![tid]),
            cpus: row.cpu.map(|cpu| vec![(cpu, cpu)]),
            time: row.time,
            ..AnswerScope::of(Concerns::everything())
        })
    })
}
