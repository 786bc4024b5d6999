//! What tasks were called that have become part of sums: those of one name are summed together.

use std::sync::Arc;

use model::{Machine, RetiredThreads};
use rustc_hash::FxHashMap;

/// Names that are kept; what has another one is called [`crate::OTHERS`].
const MAX_NAMES: usize = 1 << 12;

/// Tasks of a name that have become part of sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RetiredName {
    /// Their name.
    pub(crate) comm: Arc<str>,
    /// How many they are.
    pub(crate) tasks: u64,
}

/// The names of tasks that have become part of sums, each with a number.
#[derive(Debug, Clone, Default)]
pub(crate) struct RetiredNames {
    numbers: FxHashMap<Arc<str>, u32>,
    list: Vec<RetiredName>,
}

impl RetiredNames {
    /// Returns what a number stands for.
    pub(crate) fn get(&self, number: u32) -> Option<&RetiredName> {
        self.list.get(number as usize)
    }

    /// Takes the names of tasks that become part of sums, and returns by slot the number of each one's name. Only those
    /// are counted that `is_asked` returns `true` of.
    pub(crate) fn take(
        &mut self,
        retired: &RetiredThreads,
        machine: &Machine,
        is_asked: impl Fn(u32) -> bool,
    ) -> FxHashMap<u32, u32> {
        let slots = retired.slots().filter(|slot| is_asked(*slot));
        let mut sorted: Vec<u32> = slots.collect();
        sorted.sort_unstable();
        sorted
            .into_iter()
            .map(|slot| {
                let thread = machine.threads().at(slot).map(|(_, thread)| thread);
                let comm = thread.and_then(|thread| thread.comm.clone());
                (slot, self.number(comm))
            })
            .collect()
    }

    fn number(&mut self, comm: Option<Arc<str>>) -> u32 {
        let others = || Arc::from(crate::OTHERS);
        let comm = comm.unwrap_or_else(others);
        let known = self.numbers.get(&comm).copied();
        let comm = match self.list.len() < MAX_NAMES || known.is_some() {
            true => comm,
            false => others(),
        };
        let next = self.list.len() as u32;
        let number = *self.numbers.entry(Arc::clone(&comm)).or_insert(next);
        if number == next {
            self.list.push(RetiredName { comm, tasks: 0 });
        }
        if let Some(name) = self.list.get_mut(number as usize) {
            name.tasks += 1;
        }
        number
    }
}
