//! Names of guests' functions in the tables of exits.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::functions::GuestCode;
use super::{ExitRow, ExitsReport};

impl ExitsReport {
    /// Returns how many exits the rows have whose guest was not in user space, and of how many no function's name is
    /// known.
    pub fn guest_functions(&self) -> (u64, u64) {
        let kernel = self.rows.iter().filter(|row| {
            let function = row.function.as_ref();
            function.is_some_and(|one| one.code != GuestCode::User)
        });
        kernel.fold((0, 0), |(all, unnamed), row| {
            let named = row.function.as_ref().is_some_and(|one| one.name.is_some());
            let count = row.stats.count();
            (all + count, unnamed + if named { 0 } else { count })
        })
    }

    /// Names the functions in which guests were, by the number of their kernel and where they begin. Rows of functions
    /// of one name become one row: kernels of several guests have them in several places. So do those that nothing
    /// names.
    pub fn name_functions(&mut self, name: impl Fn(u16, u64) -> Option<String>) {
        let mut index = FxHashMap::default();
        let mut named: Vec<ExitRow> = Vec::with_capacity(self.rows.len());
        for mut row in std::mem::take(&mut self.rows) {
            if let Some(function) = &mut row.function
                && let GuestCode::Kernel { kernel, start } = function.code
            {
                function.name = name(kernel, start);
            }
            let function = row.function.as_ref();
            let Some(called) = function
                .filter(|one| one.is_in_kernel())
                .map(|one| one.name.clone())
            else {
                named.push(row);
                continue;
            };
            let place = (row.vm_pid, row.vm.clone(), row.vcpu, row.task.clone());
            match index.entry((row.key.clone(), called, place)) {
                Entry::Vacant(free) => {
                    free.insert(named.len());
                    named.push(row);
                }
                Entry::Occupied(known) => named[*known.get()].merge(&row),
            }
        }
        named.sort_by_key(|row| Reverse((row.stats.count(), row.stats.total())));
        self.rows = named;
    }
}
