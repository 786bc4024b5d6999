/*!
Results of `trapline bench`: what a benchmark found, on which machine, when, and how quiet it was. A result is the JSON
document that the command prints; [`read`] reads one back, so that several can be compared.

[`scores`] finds the results that other tools printed, `sysbench`, `iperf`, `fio` and `ping`, in any text.

Nothing is measured here. Durations are nanoseconds.

```
let text = br#"{"trapline": "0.1.0", "command": "bench", "bench": "clock"}"#;
assert!(results::looks_like(text));
let error = results::read(text).unwrap_err().to_string();
assert!(error.starts_with("is no whole result of 'trapline bench'"), "{error}");
```
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod machine;
mod read;
mod row;
mod score;
mod scores;

pub use machine::{BenchMachine, BenchPlan, ClockReadings, Noise};
pub use read::{MAX_BYTES, MAX_ROWS, ReadError, looks_like, read};
pub use row::{BenchRow, SLOW, Slow, Stat};
pub use score::{Score, ScoreUnit};
pub use scores::{FORMS, scores};

use std::fmt;

use serde::{Deserialize, Serialize};

/// The version of the document's own part. A reader takes this one and no other.
pub const RESULT_VERSION: u64 = 1;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bench {
    /// Inter-processor interrupts.
    Ipi,
    /// Waking a thread.
    Wake,
    /// Reading clocks.
    Clock,
    /// How late timers fire.
    Timer,
    /// What leaves a guest: CPUID, ports, registers in memory.
    Exits,
    /// Round trips over a network.
    Net,
    /// Requests to a disk.
    Disk,
}

impl Bench {
    /// Returns its name, as the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Bench::Ipi => "ipi",
            Bench::Wake => "wake",
            Bench::Clock => "clock",
            Bench::Timer => "timer",
            Bench::Exits => "exits",
            Bench::Net => "net",
            Bench::Disk => "disk",
        }
    }

    /// Returns what its rows say, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Bench::Ipi => "how long an IPI takes until its function has run on the target CPU",
            Bench::Wake => "from the call that wakes a thread until that thread runs",
            Bench::Clock => "what one read of a clock costs",
            Bench::Timer => "how late a timer fires",
            Bench::Exits => "what one instruction costs that a guest cannot do alone",
            Bench::Net => "from sending a message until its answer is there",
            Bench::Disk => "one request at a time, until it is done",
        }
    }

    /// Returns the values of rows that are compared, the most telling first.
    pub fn stats(self) -> &'static [Stat] {
        match self {
            Bench::Ipi => &[Stat::First, Stat::Mean, Stat::P50, Stat::P99, Stat::Max],
            Bench::Clock | Bench::Exits => &[Stat::Mean, Stat::P50, Stat::P99],
            _ => &[Stat::Mean, Stat::P50, Stat::P99, Stat::Max],
        }
    }
}

impl fmt::Display for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What stands before the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultsHead {
    /// [`RESULT_VERSION`].
    pub result_version: u64,
    /// What was measured.
    pub bench: Bench,
    /// What the user calls this run: `haltpoll`.
    pub label: Option<String>,
    /// Whether somebody ended it before it was done.
    pub interrupted: bool,
    /// Where it was measured.
    pub machine: BenchMachine,
    /// What was asked for.
    pub plan: BenchPlan,
    /// The clocks when it began.
    pub started: ClockReadings,
    /// The clocks when it ended.
    pub ended: ClockReadings,
    /// How quiet the CPUs were.
    pub noise: Noise,
}

/// What a benchmark found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchResults {
    /// What stands before the rows.
    #[serde(flatten)]
    pub head: ResultsHead,
    /// What was measured, in order.
    pub rows: Vec<BenchRow>,
}

impl BenchResults {
    /// Returns the slowest iterations of all rows, the slowest first: the row's number, and the iteration.
    pub fn slowest(&self, most: usize) -> Vec<(usize, Slow)> {
        let rows = self.rows.iter().enumerate();
        let mut all: Vec<(usize, Slow)> = rows
            .flat_map(|(at, row)| row.slow.iter().map(move |slow| (at, *slow)))
            .collect();
        all.sort_by_key(|(_, slow)| (std::cmp::Reverse(slow.ns), slow.begin_ns));
        all.truncate(most);
        all
    }
}
