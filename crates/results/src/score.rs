//! A result that a benchmark of somebody else printed: `sysbench`, `iperf`, `fio`, `ping`.

use words::{duration, large, number, share};

/// What a score is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoreUnit {
    /// Events, requests or operations for each second.
    PerSecond,
    /// Bits for each second.
    BitsPerSecond,
    /// Bytes for each second.
    BytesPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// A share, 0 to 1.
    Share,
    /// A count, or a number of which nobody said in what it is.
    Number,
}

impl ScoreUnit {
    /// Returns its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            ScoreUnit::PerSecond => "per_second",
            ScoreUnit::BitsPerSecond => "bits_per_second",
            ScoreUnit::BytesPerSecond => "bytes_per_second",
            ScoreUnit::Nanoseconds => "ns",
            ScoreUnit::Share => "share",
            ScoreUnit::Number => "number",
        }
    }

    /// Returns a value in words: `9.410 Gbit/s`, `287.60`, `3.480ms`.
    pub fn amount(self, value: f64) -> String {
        match self {
            ScoreUnit::Nanoseconds => duration::of_f64(value),
            ScoreUnit::Share => share::rough_to_hundredths(value),
            ScoreUnit::BitsPerSecond => with_letter(value, "bit/s"),
            ScoreUnit::BytesPerSecond => with_letter(value, "B/s"),
            // A benchmark's score is read to its last digit.
            ScoreUnit::PerSecond | ScoreUnit::Number
                if value < 10_000.0 && value.fract() != 0.0 =>
            {
                format!("{value:.2}")
            }
            ScoreUnit::PerSecond | ScoreUnit::Number => number(value),
        }
    }
}

fn with_letter(value: f64, unit: &str) -> String {
    let scaled = large(value);
    match scaled.ends_with(|c: char| c.is_ascii_digit()) {
        true => format!("{scaled} {unit}"),
        false => format!("{scaled}{unit}"),
    }
}

/// One result of a benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// The line of the text, counted from 1; 0 where it is of no text.
    pub line: u64,
    /// The tool: `sysbench`, `iperf3`.
    pub printed_by: &'static str,
    /// What it is of: `events per second`, `bitrate (sender)`.
    pub name: String,
    /// How much.
    pub value: f64,
    /// In what.
    pub unit: ScoreUnit,
    /// Whether more is better; else less is.
    pub higher_is_better: bool,
}

impl Score {
    /// Returns a score of a tool, of which more is better where it is a rate, and else less.
    pub(crate) fn new(
        line: u64,
        printed_by: &'static str,
        name: impl Into<String>,
        (value, unit): (f64, ScoreUnit),
    ) -> Score {
        let higher_is_better = matches!(
            unit,
            ScoreUnit::PerSecond | ScoreUnit::BitsPerSecond | ScoreUnit::BytesPerSecond
        );
        // What a time has beyond a thousandth of a nanosecond is the rounding of its digits.
        let value = match unit {
            ScoreUnit::Nanoseconds => (value * 1e3).round() / 1e3,
            _ => value,
        };
        Score {
            line,
            printed_by,
            name: name.into(),
            value,
            unit,
            higher_is_better,
        }
    }

    /// Reads a number that somebody wrote down: `287.6`, of which more is better, or a time as `0.18ms`, of which less
    /// is.
    pub fn of_number(text: &str) -> Option<Score> {
        let text = text.trim();
        let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e')));
        let (number, unit) = text.split_at(end.unwrap_or(text.len()));
        let value: f64 = number.parse().ok()?;
        let scale = match unit.trim_start() {
            "" => None,
            "ns" => Some(1.0),
            "us" | "\u{b5}s" | "\u{3bc}s" => Some(1e3),
            "ms" => Some(1e6),
            "s" => Some(1e9),
            _ => return None,
        };
        let unit = scale.map_or(ScoreUnit::Number, |_| ScoreUnit::Nanoseconds);
        let value = value * scale.unwrap_or(1.0);
        value.is_finite().then(|| Score {
            line: 0,
            printed_by: "",
            name: "score".to_owned(),
            value,
            unit,
            higher_is_better: scale.is_none(),
        })
    }

    /// Returns its tool and what it is of: `sysbench events per second`.
    pub fn title(&self) -> String {
        match self.printed_by {
            "" => self.name.clone(),
            tool => format!("{tool} {}", self.name),
        }
    }

    /// Returns how much work was done in a second, and what one unit of it is called, where it is of work.
    pub fn work(&self) -> Option<(f64, String)> {
        let (scale, one) = match self.unit {
            ScoreUnit::PerSecond => (1.0, "request"),
            ScoreUnit::BitsPerSecond => (1e9, "Gbit"),
            ScoreUnit::BytesPerSecond => (1e9, "GB"),
            _ => return None,
        };
        let each = self.value / scale;
        (self.higher_is_better && each > 0.0)
            .then(|| (each, format!("{one} of {}", self.printed_by)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_a_time_is_a_score() {
        let of = |text: &str| {
            let score = Score::of_number(text)?;
            Some((score.value, score.unit, score.higher_is_better))
        };
        assert_eq!(of("287.6"), Some((287.6, ScoreUnit::Number, true)));
        assert_eq!(
            of(" 0.18 ms"),
            Some((180_000.0, ScoreUnit::Nanoseconds, false))
        );
        assert_eq!(of("2s"), Some((2e9, ScoreUnit::Nanoseconds, false)));
        for other in [
            "",
            "ms",
            "12 apples",
            "1e999",
            "nan",
            "inf",
            "a.txt",
            "3.txt",
            "1-2",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
