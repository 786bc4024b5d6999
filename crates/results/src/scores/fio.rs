//! Results of `fio`, as people read them: 3 (`stat.c`, `show_ddir_status` and `display_lat`) and 2, whose line of a
//! direction has `io=`, `bw=` and `iops=`.

use forms::InputForm;

use crate::score::{Score, ScoreUnit};
use crate::scores::pasted::{PastedLine, ScoreReader, leading};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "fio",
    recognised_by: "lines of a direction: `read: IOPS=5466, BW=21.4MiB/s ...` (3), `read : io=... bw=... iops=...` \
                    (2), with `clat (usec): min=...` and `99.00th=[...]` below",
    yields: "scores: I/Os and bytes per second of each direction (more is better), completion latency: mean, 99th \
             percentile, longest (less is)",
    fixtures: &[
        "tests/scores/fio-randrw-3.33.txt",
        "tests/scores/fio-group-3.33.txt",
        "tests/scores/fio-2.2.txt",
    ],
};

const TOOL: &str = "fio";

const LABELS: [&str; 9] = [
    "read: ",
    "read : ",
    "write: ",
    "write : ",
    "clat (",
    "clat percentiles (",
    "lat (",
    "cpu ",
    "Run status",
];

/// Scores of one output that are kept.
const MAX_SCORES: usize = 4096;

/// An output under way.
#[derive(Debug, Default)]
pub(crate) struct FioReader {
    job: String,
    /// The direction whose latencies follow.
    direction: Option<&'static str>,
    /// Nanoseconds of one unit of the percentiles that follow.
    percentiles: Option<f64>,
    /// Each with its job, which is named where there are several.
    found: Vec<(String, Score)>,
}

/// Returns the value behind `NAME=`, where a word ends before it.
fn value<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut places = text.match_indices(name);
    places.find_map(|(at, _)| {
        let before = text[..at].chars().next_back();
        let word = before.is_none_or(|c| !c.is_alphanumeric());
        let rest = text[at + name.len()..].strip_prefix('=')?;
        word.then(|| rest.trim_start())
    })
}

/// Reads a number with the letter of a power of 1000: `12.3k` (`num2str` of fio).
fn counted(text: &str) -> Option<f64> {
    let (number, rest) = leading(text)?;
    let power = match rest.bytes().next() {
        Some(b'k' | b'K') => 1e3,
        Some(b'm' | b'M') => 1e6,
        Some(b'g' | b'G') => 1e9,
        _ => 1.0,
    };
    Some(number * power)
}

/// Reads bytes for each second: `21.4MiB/s`. In version 2, `KB` is 1024 bytes, as its option `kb_base` has it.
fn bytes(text: &str, old: bool) -> Option<f64> {
    let (number, rest) = leading(text)?;
    let (unit, _) = rest.trim_start().split_once("/s")?;
    let (base, prefix): (f64, &str) = match unit.strip_suffix("iB") {
        Some(prefix) => (1024.0, prefix),
        None => (if old { 1024.0 } else { 1000.0 }, unit.strip_suffix('B')?),
    };
    let power = match prefix {
        "" => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    Some(number * base.powi(power))
}

/// Reads the unit of a heading: `clat (usec): ...`.
fn unit(text: &str, label: &str) -> Option<(f64, usize)> {
    let rest = text.strip_prefix(label)?.trim_start().strip_prefix('(')?;
    let (unit, rest) = rest.split_once(')')?;
    let scale = match unit.trim() {
        "nsec" => 1.0,
        "usec" => 1e3,
        "msec" => 1e6,
        "sec" => 1e9,
        _ => return None,
    };
    rest.trim_start()
        .starts_with(':')
        .then_some((scale, text.len() - rest.len()))
}

/// Reads a line of a direction. Returns the direction, I/Os and bytes for each second.
fn direction(text: &str) -> Option<(&'static str, f64, f64)> {
    let (name, rest) = text.split_once(':')?;
    let name = match name.trim() {
        "read" => "read",
        "write" => "write",
        "trim" => "trim",
        "mixed" => "mixed",
        _ => return None,
    };
    let rest = rest.trim_start();
    let (iops, bw, old) = match rest.starts_with("IOPS=") {
        true => ("IOPS", "BW", false),
        false if rest.starts_with("io=") => ("iops", "bw", true),
        false => return None,
    };
    let bytes = bytes(value(rest, bw)?, old)?;
    Some((name, counted(value(rest, iops)?)?, bytes))
}

impl FioReader {
    fn add(&mut self, line: u64, name: String, value: f64, unit: ScoreUnit) {
        if self.found.len() < MAX_SCORES {
            let score = Score::new(line, TOOL, name, (value, unit));
            self.found.push((self.job.clone(), score));
        }
    }

    /// Ends an output.
    fn close(&mut self, out: &mut Vec<Score>) {
        let found = std::mem::take(&mut self.found);
        *self = FioReader::default();
        let first = found.first().map(|(job, _)| job.clone());
        let several = found.iter().any(|(job, _)| Some(job) != first.as_ref());
        for (job, mut score) in found {
            if several {
                score.name = format!("{job} {}", score.name);
            }
            out.push(score);
        }
    }
}

impl ScoreReader for FioReader {
    fn take(&mut self, line: PastedLine<'_>, out: &mut Vec<Score>) {
        let text = line.text.trim();
        if let Some((job, rest)) = text.split_once(": (groupid=") {
            if rest.contains("err=") {
                self.job = job.to_owned();
                self.direction = None;
            }
            return;
        }
        if text.starts_with("Run status group") || text.starts_with("fio-") && text.len() < 40 {
            self.close(out);
            return;
        }
        if let Some((name, iops, bytes)) = direction(text) {
            self.direction = Some(name);
            self.percentiles = None;
            self.add(
                line.number,
                format!("{name} IOPS"),
                iops,
                ScoreUnit::PerSecond,
            );
            self.add(
                line.number,
                format!("{name} bandwidth"),
                bytes,
                ScoreUnit::BytesPerSecond,
            );
            return;
        }
        let Some(direction) = self.direction else {
            return;
        };
        if let Some((scale, at)) = unit(text, "clat") {
            let rest = text.get(at..).unwrap_or_default();
            for (name, title) in [("avg", "avg"), ("max", "max")] {
                if let Some(found) = value(rest, name).and_then(counted) {
                    let name = format!("{direction} clat {title}");
                    self.add(line.number, name, found * scale, ScoreUnit::Nanoseconds);
                }
            }
            return;
        }
        if let Some((scale, _)) = unit(text, "clat percentiles") {
            self.percentiles = Some(scale);
        }
        if let Some(scale) = self.percentiles
            && let Some((_, rest)) = text.split_once("99.00th=[")
            && let Some((found, _)) = leading(rest.trim_start())
        {
            self.percentiles = None;
            let name = format!("{direction} clat p99");
            self.add(line.number, name, found * scale, ScoreUnit::Nanoseconds);
        }
    }

    fn end(&mut self, out: &mut Vec<Score>) {
        self.close(out);
    }

    fn labels(&self) -> &'static [&'static str] {
        &LABELS
    }
}
