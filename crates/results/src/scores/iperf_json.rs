//! Results of `iperf3 --json` (`iperf_api.c`, `iperf_print_results`).

use forms::InputForm;
use serde::Deserialize;

use crate::score::{Score, ScoreUnit};
use crate::scores::pasted::{PastedLine, ScoreReader};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "iperf3 --json",
    recognised_by: "an object of JSON that begins a line, with `end` and in it `sum_sent`, `sum_received` or `sum`",
    yields: "scores: bitrate of sender and receiver (more is better); retransmits, jitter and loss (less is)",
    fixtures: &[
        "tests/scores/iperf3-tcp-3.12.json",
        "tests/scores/iperf3-udp-3.12.json",
    ],
};

/// A document is no longer than this: streams and intervals have some hundred bytes each.
const MAX_BYTES: usize = 8 << 20;

/// What is read of a document.
#[derive(Debug, Deserialize)]
struct IperfDocument {
    end: IperfEnd,
}

#[derive(Debug, Deserialize)]
struct IperfEnd {
    sum_sent: Option<IperfSum>,
    sum_received: Option<IperfSum>,
    sum: Option<IperfSum>,
    sum_sent_bidir_reverse: Option<IperfSum>,
    sum_received_bidir_reverse: Option<IperfSum>,
}

#[derive(Debug, Deserialize)]
struct IperfSum {
    bits_per_second: f64,
    retransmits: Option<f64>,
    jitter_ms: Option<f64>,
    lost_percent: Option<f64>,
}

/// A document under way.
#[derive(Debug, Default)]
pub(crate) struct IperfJsonReader {
    /// Its text so far, from the line of its first brace.
    text: String,
    line: u64,
    /// Braces that are open.
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl IperfJsonReader {
    /// Follows the braces of a line; returns whether the last one was closed.
    fn follow(&mut self, text: &str) -> bool {
        for byte in text.bytes() {
            match byte {
                _ if std::mem::take(&mut self.escaped) => {}
                b'\\' => self.escaped = self.in_string,
                b'"' => self.in_string = !self.in_string,
                b'{' if !self.in_string => self.depth = self.depth.saturating_add(1),
                b'}' if !self.in_string => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return true;
                    }
                }
                _ => {}
            }
        }
        false
    }

    fn close(&mut self, out: &mut Vec<Score>) {
        let (text, line) = (std::mem::take(&mut self.text), self.line);
        *self = IperfJsonReader::default();
        let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<IperfDocument>();
        if let Some(Ok(document)) = documents.next() {
            scores(&document.end, line, out);
        }
    }
}

fn scores(end: &IperfEnd, line: u64, out: &mut Vec<Score>) {
    let each = [
        (&end.sum_sent, "sender", false),
        (&end.sum_received, "receiver", true),
        (&end.sum_sent_bidir_reverse, "sender, reverse", false),
        (&end.sum_received_bidir_reverse, "receiver, reverse", true),
    ];
    // UDP of older versions has one sum.
    let alone = end.sum_sent.is_none() && end.sum_received.is_none();
    let sum = (&end.sum, "receiver", true);
    let each = each.into_iter().chain(alone.then_some(sum));
    for (sum, name, received) in each {
        let Some(sum) = sum else { continue };
        let mut push = |what: &str, value: f64, unit| {
            if value.is_finite() && value >= 0.0 {
                out.push(Score::new(
                    line,
                    "iperf3",
                    format!("{what} ({name})"),
                    (value, unit),
                ));
            }
        };
        push("bitrate", sum.bits_per_second, ScoreUnit::BitsPerSecond);
        if let (Some(count), false) = (sum.retransmits, received) {
            push("retransmits", count, ScoreUnit::Number);
        }
        if let (Some(ms), true) = (sum.jitter_ms, received) {
            push("jitter", ms * 1e6, ScoreUnit::Nanoseconds);
        }
        if let (Some(percent), true) = (sum.lost_percent, received) {
            push("loss", percent / 100.0, ScoreUnit::Share);
        }
    }
}

impl ScoreReader for IperfJsonReader {
    fn take(&mut self, line: PastedLine<'_>, out: &mut Vec<Score>) {
        // A document begins its line; what is inside is set in.
        if line.text.starts_with('{') && !self.in_string {
            *self = IperfJsonReader::default();
        }
        if self.text.is_empty() {
            if !line.text.trim_start().starts_with('{') {
                return;
            }
            self.line = line.number;
        }
        self.text.push_str(line.text);
        self.text.push('\n');
        if self.follow(line.text) {
            self.close(out);
        } else if self.text.len() > MAX_BYTES {
            *self = IperfJsonReader::default();
        }
    }

    fn end(&mut self, out: &mut Vec<Score>) {
        self.close(out);
    }

    fn labels(&self) -> &'static [&'static str] {
        &[]
    }
}
