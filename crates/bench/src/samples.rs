//! Iterations: the first, those that warm up, those that count.

use std::sync::atomic::{AtomicBool, Ordering};

use results::BenchRow;
use stats::{Longest, Stats};

use crate::now::now;
use crate::thread::CpuWaits;

/// How many iterations, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IterationBounds<'a> {
    /// Iterations that count.
    pub iterations: u64,
    /// Those before them that do not.
    pub warmup: u64,
    /// A row ends then.
    pub row_time_ns: u64,
    /// Raised when everything is to end.
    pub stop: &'a AtomicBool,
}

/// The iterations of a row.
#[derive(Debug)]
pub(crate) struct RowSamples<'a> {
    bounds: IterationBounds<'a>,
    first: Option<u64>,
    warming: u64,
    made: u64,
    made_ns: u64,
    stats: Stats,
    longest: Longest,
    began_ns: Option<u64>,
    at_ns: u64,
    before: CpuWaits,
}

impl<'a> RowSamples<'a> {
    /// Begins a row, in the thread that measures.
    pub(crate) fn new(bounds: IterationBounds<'a>) -> RowSamples<'a> {
        RowSamples {
            bounds,
            first: None,
            warming: bounds.warmup,
            made: 0,
            made_ns: now(),
            stats: Stats::default(),
            longest: Longest::default(),
            began_ns: None,
            at_ns: 0,
            before: CpuWaits::own(),
        }
    }

    /// Returns whether there is to be another iteration. The time of a row begins with its first iteration.
    #[inline]
    pub(crate) fn go_on(&self) -> bool {
        let left = self.stats.count() < self.bounds.iterations;
        let in_time = self
            .began_ns
            .is_none_or(|began| self.at_ns.saturating_sub(began) < self.bounds.row_time_ns);
        left && in_time && !self.bounds.stop.load(Ordering::Relaxed)
    }

    /// Adds an iteration that began at a time of `CLOCK_MONOTONIC`.
    #[inline]
    pub(crate) fn add(&mut self, begin_ns: u64, ns: u64) {
        self.at_ns = begin_ns.saturating_add(ns);
        if self.began_ns.is_none() {
            self.began_ns = Some(begin_ns);
            self.first = Some(ns);
            self.made = 1;
            return;
        }
        if self.warming > 0 && !self.is_late() {
            self.warming -= 1;
            self.made += 1;
            return;
        }
        self.warming = 0;
        self.made += 1;
        self.stats.add(ns);
        self.longest.add(ns, begin_ns);
    }

    /// Whether a tenth of the row's time is over: what is slow is not warmed up for longer.
    fn is_late(&self) -> bool {
        let began = self.began_ns.unwrap_or(self.at_ns);
        self.at_ns.saturating_sub(began) > self.bounds.row_time_ns / 10
    }

    /// Returns how many iterations were made, with those that do not count.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// Returns whether the row is to end though nothing was added for a while: it was asked to, or its time is over.
    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        let began = self.began_ns.unwrap_or(self.made_ns);
        let over = now_ns.saturating_sub(began) >= self.bounds.row_time_ns;
        over || self.bounds.stop.load(Ordering::Relaxed)
    }

    /// Ends a row, in the thread that began it.
    pub(crate) fn row(&self, row: BenchRow) -> BenchRow {
        let waits = CpuWaits::since(self.before);
        let began = self.began_ns.unwrap_or(self.at_ns);
        let row = BenchRow {
            took_ns: Some(self.at_ns.saturating_sub(began)),
            waited_ns: waits.waited_ns,
            preempted: waits.preempted,
            ..row.measured(self.first, &self.stats, &self.longest)
        };
        match (row.count, self.bounds.stop.load(Ordering::Relaxed)) {
            (0, true) => row.missing("it was interrupted before"),
            (0, false) => row.missing("its time was over before it was warm"),
            _ => row,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_iterations_do_not_count() {
        let stop = AtomicBool::new(false);
        let bounds = IterationBounds {
            iterations: 5,
            warmup: 2,
            row_time_ns: u64::MAX,
            stop: &stop,
        };
        let mut samples = RowSamples::new(bounds);
        let mut made = 0;
        while samples.go_on() {
            made += 1;
            samples.add(1000 * made, if made <= 3 { 900 } else { made });
        }
        assert_eq!((made, samples.made()), (8, 8));
        let row = samples.row(BenchRow::new("x"));
        assert_eq!((row.count, row.first_ns), (5, Some(900)));
        assert_eq!((row.min_ns, row.max_ns), (Some(4), Some(8)));
        assert_eq!((row.slow[0].begin_ns, row.slow[0].ns), (8000, 8));
    }

    #[test]
    fn a_row_ends_in_time_and_when_it_is_asked_to() {
        let stop = AtomicBool::new(false);
        let bounds = IterationBounds {
            iterations: 1000,
            warmup: 0,
            row_time_ns: 100,
            stop: &stop,
        };
        let mut samples = RowSamples::new(bounds);
        let mut at = 0;
        while samples.go_on() {
            samples.add(at, 10);
            at += 10;
        }
        assert_eq!(samples.made(), 10);
        // Those that warm up are not waited for longer than a tenth of it.
        let mut samples = RowSamples::new(IterationBounds {
            warmup: 50,
            ..bounds
        });
        let mut at = 0;
        while samples.go_on() {
            samples.add(at, 1);
            at += 1;
        }
        assert_eq!(samples.row(BenchRow::new("x")).count, 90);
        let mut samples = RowSamples::new(bounds);
        stop.store(true, Ordering::Relaxed);
        assert!(!samples.go_on());
        assert!(samples.row(BenchRow::new("x")).missing.is_some());
        samples.add(0, 1);
        assert_eq!(samples.row(BenchRow::new("x")).first_ns, Some(1));
    }
}
