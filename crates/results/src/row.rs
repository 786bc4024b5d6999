//! One thing that was measured.

use serde::{Deserialize, Serialize};
use stats::{Longest, Stats};

/// Slowest iterations that a row keeps.
pub const SLOW: usize = 10;

/// One thing that was measured. Where it could not be, `missing` says why and there are no durations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchRow {
    /// What was measured.
    pub what: String,
    /// What the target did meanwhile: `idle`, `busy`.
    pub target: Option<String>,
    /// The CPU that measures; `None` where there is none in particular.
    pub from: Option<u64>,
    /// The CPUs that are meant, as the kernel's lists have them.
    pub to: Option<String>,
    /// Iterations that count.
    pub count: u64,
    /// The very first one, before all that warmed up.
    pub first_ns: Option<u64>,
    /// Shortest.
    pub min_ns: Option<u64>,
    /// Mean.
    pub mean_ns: Option<u64>,
    /// Half take no longer.
    pub p50_ns: Option<u64>,
    /// 90 % take no longer.
    pub p90_ns: Option<u64>,
    /// 99 % take no longer.
    pub p99_ns: Option<u64>,
    /// Longest.
    pub max_ns: Option<u64>,
    /// Requests without an answer (`net`).
    #[serde(default)]
    pub lost: u64,
    /// Function call interrupts that the target CPUs have counted meanwhile, those of iterations that do not count
    /// among them (`ipi`).
    #[serde(default)]
    pub interrupts: Option<u64>,
    /// How long the row took, from its first iteration to its last.
    #[serde(default)]
    pub took_ns: Option<u64>,
    /// How long the measuring thread waited for its CPU while others ran there.
    pub waited_ns: Option<u64>,
    /// How often another thread took its CPU.
    pub preempted: Option<u64>,
    /// What the row means here, where that is not plain.
    pub note: Option<String>,
    /// Why it was not measured.
    pub missing: Option<String>,
    /// The slowest iterations, slowest first.
    pub slow: Vec<Slow>,
}

/// An iteration that was slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slow {
    /// When it began, on `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    /// How long it took.
    pub ns: u64,
}

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stat {
    /// [`BenchRow::first_ns`].
    First,
    /// [`BenchRow::mean_ns`].
    Mean,
    /// [`BenchRow::p50_ns`].
    P50,
    /// [`BenchRow::p99_ns`].
    P99,
    /// [`BenchRow::max_ns`].
    Max,
}

impl Stat {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Stat::First => "first",
            Stat::Mean => "mean",
            Stat::P50 => "p50",
            Stat::P99 => "p99",
            Stat::Max => "max",
        }
    }
}

impl BenchRow {
    /// Returns a row of which nothing is known yet.
    pub fn new(what: impl Into<String>) -> BenchRow {
        BenchRow {
            what: what.into(),
            ..BenchRow::default()
        }
    }

    /// Returns the same row, with what the target does.
    #[must_use]
    pub fn target(self, target: &str) -> BenchRow {
        BenchRow {
            target: Some(target.to_owned()),
            ..self
        }
    }

    /// Returns the same row, measured from a CPU.
    #[must_use]
    pub fn from(self, cpu: u32) -> BenchRow {
        BenchRow {
            from: Some(u64::from(cpu)),
            ..self
        }
    }

    /// Returns the same row, meant for CPUs.
    #[must_use]
    pub fn to(self, cpus: impl ToString) -> BenchRow {
        BenchRow {
            to: Some(cpus.to_string()),
            ..self
        }
    }

    /// Returns the same row, with what it means.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> BenchRow {
        BenchRow {
            note: Some(note.into()),
            ..self
        }
    }

    /// Returns the same row as one that was not measured, and why.
    #[must_use]
    pub fn missing(self, why: impl Into<String>) -> BenchRow {
        BenchRow {
            missing: Some(why.into()),
            ..self
        }
    }

    /// Returns the same row with the durations of its iterations.
    #[must_use]
    pub fn measured(self, first: Option<u64>, stats: &Stats, longest: &Longest) -> BenchRow {
        let known = |value: u64| (stats.count() > 0).then_some(value);
        let slow = longest.first(SLOW).into_iter();
        BenchRow {
            count: stats.count(),
            first_ns: first,
            min_ns: known(stats.min()),
            mean_ns: known(stats.mean()),
            p50_ns: known(stats.percentile(0.5)),
            p90_ns: known(stats.percentile(0.9)),
            p99_ns: known(stats.percentile(0.99)),
            max_ns: known(stats.max()),
            slow: slow.map(|(ns, begin_ns)| Slow { begin_ns, ns }).collect(),
            ..self
        }
    }

    /// Returns one of its values.
    pub fn value(&self, stat: Stat) -> Option<u64> {
        match stat {
            Stat::First => self.first_ns,
            Stat::Mean => self.mean_ns,
            Stat::P50 => self.p50_ns,
            Stat::P99 => self.p99_ns,
            Stat::Max => self.max_ns,
        }
    }

    /// Returns its name with what the target did: `futex, idle`.
    pub fn title(&self) -> String {
        match &self.target {
            Some(target) => format!("{}, {target}", self.what),
            None => self.what.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_statistics_of_its_samples() {
        let (mut stats, mut longest) = (Stats::default(), Longest::default());
        for at in 1..=100u64 {
            stats.add(at * 10);
            longest.add(at * 10, 1_000_000 + at);
        }
        let row = BenchRow::new("x")
            .from(3)
            .measured(Some(7_777), &stats, &longest);
        assert_eq!(
            (row.count, row.from, row.first_ns),
            (100, Some(3), Some(7_777))
        );
        assert_eq!((row.min_ns, row.max_ns), (Some(10), Some(1000)));
        assert_eq!((row.mean_ns, row.p50_ns), (Some(505), Some(500)));
        assert_eq!((row.p90_ns, row.p99_ns), (Some(900), Some(990)));
        assert_eq!(row.slow.len(), SLOW);
        let slowest = Slow {
            begin_ns: 1_000_100,
            ns: 1000,
        };
        assert_eq!(row.slow[0], slowest);
        assert_eq!(row.value(Stat::P99), Some(990));
    }

    #[test]
    fn a_row_of_nothing_has_no_durations() {
        let row = BenchRow::new("x").measured(None, &Stats::default(), &Longest::default());
        assert_eq!((row.count, row.min_ns, row.p99_ns), (0, None, None));
        assert!(row.slow.is_empty());
    }
}
