//! What the measurements share: their CPUs, their bounds, and who is shown the progress.

use std::sync::atomic::Ordering;

use cpuset::CpuSet;
use results::BenchRow;

use crate::place::BenchCpus;
use crate::samples::IterationBounds;

/// What the measurements share.
pub(crate) struct BenchRun<'a> {
    /// The CPUs.
    pub places: BenchCpus,
    /// How many iterations, and for how long.
    pub bounds: IterationBounds<'a>,
    /// Hears what is measured next.
    pub doing: &'a dyn Fn(&str),
}

impl BenchRun<'_> {
    /// Says what is measured next.
    pub(crate) fn say(&self, row: &BenchRow) {
        let to = row.to.as_ref().map(|to| format!(", to CPU {to}"));
        (self.doing)(&format!("{}{}", row.title(), to.unwrap_or_default()));
    }

    /// Returns whether everything is to end.
    pub(crate) fn stopped(&self) -> bool {
        self.bounds.stop.load(Ordering::Relaxed)
    }

    /// Returns all CPUs but the one that measures.
    pub(crate) fn others(&self) -> CpuSet {
        let mut set = CpuSet::new();
        for cpu in &self.places.others {
            set.insert(*cpu);
        }
        set
    }
}

/// Returns a duration as names of rows have it: `20 us`, `5 ms`.
pub(crate) fn plain(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{} ms", ns as f64 / 1e6),
        _ => format!("{} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_of_durations_are_short() {
        assert_eq!(plain(20_000), "20 us");
        assert_eq!(plain(5_000_000), "5 ms");
        assert_eq!(plain(1_500_000), "1.5 ms");
        assert_eq!(plain(2_000_000_000), "2 s");
        assert_eq!(plain(7), "7 ns");
    }
}
