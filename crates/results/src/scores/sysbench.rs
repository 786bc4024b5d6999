//! Results of `sysbench`: 0.4, 0.5, 1.0 and 1.1. Its layouts are those of `sb_timer.c`, `sysbench.c` and the tests
//! (`tests/cpu`, `memory`, `fileio`, `src/lua/oltp_*`) of these versions. What 0.4 does not print for the test of the
//! CPU, events for each second, is its number of events by its total time.

use forms::InputForm;

use crate::score::{Score, ScoreUnit};
use crate::scores::pasted::{PastedLine, ScoreReader, behind, decimal, leading};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "sysbench",
    recognised_by: "lines `events per second:`, `total time:` with `total number of events:`, `transactions:`, \
                    `reads/s:`, `... ops/sec)`, `... MiB/sec)`, and `min:`, `avg:`, `max:` below a heading of latency",
    yields: "scores: events, transactions, operations and bytes per second (more is better), latency (less is)",
    fixtures: &[
        "tests/scores/sysbench-cpu-1.0.20.txt",
        "tests/scores/sysbench-memory-1.0.20.txt",
        "tests/scores/sysbench-fileio-1.0.20.txt",
        "tests/scores/sysbench-threads-1.0.20.txt",
        "tests/scores/sysbench-oltp-1.1.txt",
        "tests/scores/sysbench-cpu-0.4.12.txt",
        "tests/scores/sysbench-fileio-0.5.txt",
    ],
};

const TOOL: &str = "sysbench";
const EVENTS: &str = "events per second";

const LABELS: [&str; 16] = [
    "CPU speed:",
    "events per second:",
    "General statistics:",
    "Test execution summary:",
    "total time:",
    "total number of events:",
    "total time taken by event execution:",
    "per-request statistics:",
    "Latency (ms):",
    "min:",
    "avg:",
    "max:",
    "95th percentile:",
    "approx. 95 percentile:",
    "sum:",
    "Threads fairness:",
];

/// A run under way.
#[derive(Debug, Default)]
pub(crate) struct SysbenchReader {
    /// Whether a rate was printed.
    has_events: bool,
    total_s: Option<f64>,
    /// With its line.
    events: Option<(u64, f64)>,
    /// Whether times below are latencies: none where it says nothing of them.
    latency: bool,
    /// Lines since the last of the run.
    foreign: u32,
}

/// Lines of something else after which a run is over.
const MAX_FOREIGN: u32 = 24;

impl SysbenchReader {
    /// Ends a run: its events for each second are worked out if they are not printed.
    fn close(&mut self, out: &mut Vec<Score>) {
        if let (false, Some(seconds), Some((line, events))) =
            (self.has_events, self.total_s, self.events)
            && seconds > 0.0
        {
            out.push(Score::new(
                line,
                TOOL,
                EVENTS,
                (events / seconds, ScoreUnit::PerSecond),
            ));
        }
        *self = SysbenchReader::default();
    }

    fn read(&mut self, line: PastedLine<'_>, out: &mut Vec<Score>) -> bool {
        let text = line.text.trim();
        let mut add = |name: &str, value: f64, unit: ScoreUnit| {
            out.push(Score::new(line.number, TOOL, name, (value, unit)));
        };
        let printed = behind(text, "events per second:").or(behind(text, "events/s (eps):"));
        if let Some(rate) = printed.and_then(decimal) {
            // 1.1 has the same twice, and transactions are its events.
            if !self.has_events {
                add(EVENTS, rate, ScoreUnit::PerSecond);
            }
            self.has_events = true;
            return true;
        }
        let total = behind(text, "total time:").or(behind(text, "time elapsed:"));
        if let Some(seconds) = total.and_then(|rest| decimal(rest.strip_suffix('s')?)) {
            self.total_s = Some(seconds);
            return true;
        }
        if let Some(events) = behind(text, "total number of events:").and_then(decimal) {
            self.events = Some((line.number, events));
            return true;
        }
        if let Some((name, value, unit)) = rate(text) {
            add(name, value, unit);
            self.has_events = true;
            return true;
        }
        // 0.4 and 0.5 have the unit behind the value, 1.0 in the heading.
        if matches!(
            text,
            "Latency (ms):" | "per-request statistics:" | "response time:"
        ) {
            self.latency = true;
            return true;
        }
        if let Some((name, ns)) = self.latency.then(|| latency(text)).flatten() {
            add(&name, ns, ScoreUnit::Nanoseconds);
            return true;
        }
        if text == "Threads fairness:" {
            self.latency = false;
        }
        text.starts_with("CPU speed:") || LABELS.iter().any(|label| text.starts_with(label))
    }
}

/// Reads a line of a rate, of any test.
fn rate(text: &str) -> Option<(&'static str, f64, ScoreUnit)> {
    const EACH: [(&str, &str); 5] = [
        ("reads/s:", "reads per second"),
        ("writes/s:", "writes per second"),
        ("fsyncs/s:", "fsyncs per second"),
        ("read, MiB/s:", "bytes read"),
        ("written, MiB/s:", "bytes written"),
    ];
    for (label, name) in EACH {
        if let Some(value) = behind(text, label).and_then(decimal) {
            return Some(match label.contains("MiB") {
                true => (name, value * MIB, ScoreUnit::BytesPerSecond),
                false => (name, value, ScoreUnit::PerSecond),
            });
        }
    }
    // `transactions: 3770   (376.98 per sec.)`
    const COUNTED: [(&str, &str); 5] = [
        ("transactions:", "transactions per second"),
        ("queries:", "queries per second"),
        ("read/write requests:", "requests per second"),
        ("Total operations:", "operations per second"),
        ("Operations performed:", "operations per second"),
    ];
    for (label, name) in COUNTED {
        if let Some(rest) = behind(text, label) {
            let (_, rest) = leading(rest)?;
            let rest = rest.trim_start().strip_prefix('(')?.trim_start();
            let (value, rest) = leading(rest)?;
            let ends = ["per sec.)", "per second)", "ops/sec)"];
            let is_rate = ends.iter().any(|end| rest.trim() == *end);
            return is_rate.then_some((name, value, ScoreUnit::PerSecond));
        }
    }
    // `5746.58 MiB transferred (2864.25 MiB/sec)`, `159.99 Requests/sec executed`
    let (value, rest) = leading(text)?;
    if rest.trim() == "Requests/sec executed" {
        return Some(("requests per second", value, ScoreUnit::PerSecond));
    }
    let rest = rest.trim_start();
    let rest = rest
        .strip_prefix("MiB transferred (")
        .or(rest.strip_prefix("MB transferred ("))?;
    let (value, rest) = leading(rest)?;
    // Its MB are 1024 * 1024 bytes too (0.4, sb_memory.c).
    matches!(rest.trim(), "MiB/sec)" | "MB/sec)").then_some((
        "bytes transferred",
        value * MIB,
        ScoreUnit::BytesPerSecond,
    ))
}

const MIB: f64 = 1_048_576.0;

/// Reads a line of latencies, in nanoseconds.
fn latency(text: &str) -> Option<(String, f64)> {
    let (label, rest) = text.split_once(':')?;
    let rest = rest.trim();
    let ms = decimal(rest.strip_suffix("ms").unwrap_or(rest).trim_end())?;
    let percent = label.strip_suffix("percentile").map(str::trim_end);
    let name = match (label, percent) {
        ("min" | "avg" | "max", _) => format!("latency {label}"),
        // `95th percentile`, `approx.  95 percentile`
        (_, Some(percent)) => {
            let percent = percent
                .strip_prefix("approx.")
                .unwrap_or(percent)
                .trim_start();
            let percent = percent.strip_suffix("th").unwrap_or(percent);
            format!("latency p{}", decimal(percent)?)
        }
        _ => return None,
    };
    Some((name, ms * 1e6))
}

impl ScoreReader for SysbenchReader {
    fn take(&mut self, line: PastedLine<'_>, out: &mut Vec<Score>) {
        let text = line.text.trim_start();
        let version = behind(text, "sysbench ");
        let begins = version.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        // Without its heading, a run begins with the rate or the time of the one after.
        let again = self.has_events && text.starts_with("events per second:")
            || self.events.is_some()
                && [
                    "total time:",
                    "time elapsed:",
                    "events per second:",
                    "CPU speed:",
                ]
                .iter()
                .any(|label| text.starts_with(label));
        if begins || again {
            self.close(out);
        }
        match self.read(line, out) {
            true => self.foreign = 0,
            false if text.is_empty() => {}
            false => {
                self.latency = false;
                self.foreign += 1;
                if self.foreign > MAX_FOREIGN {
                    self.close(out);
                }
            }
        }
    }

    fn end(&mut self, out: &mut Vec<Score>) {
        self.close(out);
    }

    fn labels(&self) -> &'static [&'static str] {
        &LABELS
    }
}
