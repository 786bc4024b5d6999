//! One row of a table of exits, while the walk goes on.

use super::rows::{TableRows, make_row};
use super::{ExitTable, Exits};
use crate::cells::CellSum;
use crate::guests::GuestContext;

/// A row of a table of exits, over all VMs and vCPUs that are walked: its number and total time so far.
#[derive(Debug)]
pub struct ExitCell {
    table: ExitTable,
    key: String,
    /// What the guest did, and on which vCPU threads: none stand for all.
    task: Option<(GuestContext, Vec<i32>)>,
    /// How many rows of the table have been looked at, and which of them are the row's.
    checked: usize,
    rows: Vec<usize>,
}

impl ExitCell {
    /// Returns the row of a table that has a key, in any case.
    pub fn new(table: ExitTable, key: &str) -> ExitCell {
        ExitCell {
            table,
            key: key.to_owned(),
            task: None,
            checked: 0,
            rows: Vec::new(),
        }
    }

    /// Leaves the exits that were made while the guest did one thing, on these threads where there are any. It takes
    /// rows that are separated by that.
    #[must_use]
    pub fn of_task(mut self, doing: GuestContext, tids: Vec<i32>) -> ExitCell {
        self.task = Some((doing, tids));
        self
    }

    /// Returns what it has counted so far.
    pub fn sum(&mut self, exits: &Exits) -> CellSum {
        let at = self.table as usize;
        let counted: &TableRows = exits.of_exits.instead_of(at).unwrap_or(&exits.tables[at]);
        let all = &counted.rows;
        if all.len() < self.checked {
            // The exits are not asked for accesses any more, since events of these have come.
            (self.checked, self.rows) = (0, Vec::new());
        }
        for (place, row) in all.iter().enumerate().skip(self.checked) {
            let of_task = self.task.as_ref().is_none_or(|(doing, tids)| {
                let tid = exits.groups.tid(row.group);
                exits.groups.doing(row.group) == Some(*doing)
                    && (tids.is_empty() || tids.contains(&tid))
            });
            let key = make_row(self.table, row.key).key;
            if of_task && key.eq_ignore_ascii_case(&self.key) {
                self.rows.push(place);
            }
        }
        self.checked = all.len();
        let rows = self.rows.iter().filter_map(|place| all.get(*place));
        rows.fold(CellSum::default(), |sum, row| {
            sum.and(CellSum::of(&row.stats))
        })
    }
}
