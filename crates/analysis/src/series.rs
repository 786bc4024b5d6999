//! What is counted by slice of time, with the names by which the sums of two recordings are known to be the same.

use std::collections::{BTreeMap, btree_map::Entry};

use crate::exits::table::ExitTable;
use crate::guests::ContextName;
use crate::slices::{SliceAmounts, SliceCounter, SlicedCounts};

/// What is counted by slice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SliceMeasure {
    /// A row of a table of exits, by its key.
    Exits(ExitTable, String),
    /// A state of the vCPUs, as [`model::State::ALL`] numbers them.
    State(u8),
    /// Delays of the tasks of a name.
    Delays(String),
    /// Run time of the tasks of a name.
    Ran(String),
    /// A path.
    Path(String),
    /// Events of a kind.
    Events(String),
    /// What a part of a picture counts, by the part and a name ([`PartCounts`]).
    Part(&'static str, String),
    /// Time in which guests did something, in the guest.
    GuestTime(ContextName),
    /// Time in which what guests did waited, since the vCPU had no CPU.
    GuestSteal(ContextName),
    /// vCPUs' time of which guests' recordings say what the guests did.
    GuestKnown,
    /// A row of a table of exits by its key, of what guests did.
    GuestExits(ExitTable, String, ContextName),
}

/// What a part of a picture counts, for a comparison of two recordings. By slices of time it is
/// [`SliceMeasure::Part`], of the same names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartCounts {
    /// The part, which changes are called by: `irqs`.
    pub part: &'static str,
    /// What is counted, in words. Two recordings are compared where both count the same.
    pub of: &'static str,
    /// How many of each name.
    pub counts: BTreeMap<String, u64>,
}

/// Counts in slices of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// How long each slice is.
    pub slice_ns: Vec<u64>,
    /// What happened in each.
    pub of: BTreeMap<SliceMeasure, SliceAmounts>,
}

impl Series {
    /// Names what was counted.
    pub(crate) fn of(
        counts: SlicedCounts,
        measured: impl Fn(SliceCounter) -> Option<SliceMeasure>,
    ) -> Series {
        let mut of: BTreeMap<SliceMeasure, SliceAmounts> = BTreeMap::new();
        for (counter, amounts) in counts.counters {
            if amounts.iter().next().is_some()
                && let Some(measured) = measured(counter)
            {
                match of.entry(measured) {
                    Entry::Vacant(first) => {
                        first.insert(amounts);
                    }
                    Entry::Occupied(mut sum) => sum.get_mut().merge(&amounts),
                }
            }
        }
        Series {
            slice_ns: counts.slice_ns,
            of,
        }
    }
}
