//! The doubts that are about a row of a document.

use doubts::{AnswerScope, Concerns, Doubts};

use crate::table::{Table, Unit};

/// What a row is of, as far as it says.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowScope {
    pub(crate) threads: Option<Vec<i32>>,
    pub(crate) cpu: Option<u32>,
    pub(crate) time: Option<(u64, u64)>,
}

impl RowScope {
    /// Returns the scope of a row of a thread.
    pub(crate) fn of_thread(tid: i32) -> RowScope {
        RowScope {
            threads: Some(vec![tid]),
            ..RowScope::default()
        }
    }

    /// Returns the scope of a row that sums what threads did; of no threads, that is what all did.
    pub(crate) fn of_threads(tids: impl IntoIterator<Item = i32>) -> RowScope {
        let mut tids: Vec<i32> = tids.into_iter().collect();
        tids.sort_unstable();
        tids.dedup();
        RowScope {
            threads: Some(tids).filter(|tids| !tids.is_empty()),
            ..RowScope::default()
        }
    }
}

/// Adds for documents the ids of the doubts that are about a row and not about all.
pub(crate) fn with_doubts<'t, R: 't>(
    table: Table<'t, R>,
    doubts: &Doubts,
    scope: fn(&R) -> RowScope,
) -> Table<'t, R> {
    let doubts = doubts.clone();
    table.column("doubts", Unit::Nested, move |row| {
        ids_about(&doubts, scope(row))
    })
}

/// Returns the ids of the doubts that are about a row and not about all.
pub(crate) fn ids_about(doubts: &Doubts, row: RowScope) -> Vec<&'static str> {
    doubts.ids_about(&AnswerScope {
        threads: row.threads,
        cpus: row.cpu.map(|cpu| vec![(cpu, cpu)]),
        time: row.time,
        ..AnswerScope::of(Concerns::everything())
    })
}
