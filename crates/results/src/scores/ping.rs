//! Results of `ping`: of iputils (`ping_common.c`, `finish`), BusyBox (`networking/ping.c`) and the BSDs.

use forms::InputForm;

use crate::score::{Score, ScoreUnit};
use crate::scores::pasted::{PastedLine, ScoreReader, decimal, leading};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "ping",
    recognised_by: "`N packets transmitted, M received, X% packet loss`; `rtt min/avg/max/mdev = ... ms` and \
                    `round-trip min/avg/max = ... ms`; without them the replies, `64 bytes from ... time=0.045 ms`",
    yields: "scores: round trips (shortest, mean, longest, mean deviation) and loss; less is better",
    fixtures: &[
        "tests/scores/ping-iputils.txt",
        "tests/scores/ping-flood-iputils.txt",
        "tests/scores/ping-busybox.txt",
        "tests/scores/ping-without-its-end.txt",
    ],
};

const TOOL: &str = "ping";

const LABELS: [&str; 5] = [
    "64 bytes from",
    "--- ",
    "rtt min/",
    "round-trip min/",
    "PING ",
];

/// A ping under way.
#[derive(Debug, Default)]
pub(crate) struct PingReader {
    /// Of its replies: the first line, how many, the sum, the shortest and the longest, in nanoseconds.
    replies: Option<(u64, u32, f64, f64, f64)>,
}

impl PingReader {
    /// Ends a ping whose summary is missing: what its replies say.
    fn close(&mut self, out: &mut Vec<Score>) {
        let Some((line, count, sum, min, max)) = self.replies.take() else {
            return;
        };
        // One reply is no ping.
        if count < 2 {
            return;
        }
        let each = [
            ("rtt min", min),
            ("rtt avg", sum / f64::from(count)),
            ("rtt max", max),
        ];
        for (name, ns) in each {
            out.push(Score::new(line, TOOL, name, (ns, ScoreUnit::Nanoseconds)));
        }
    }
}

/// Reads a reply: `64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.045 ms`. Returns its time in nanoseconds.
fn reply(text: &str) -> Option<f64> {
    let (_, rest) = leading(text.trim_start())?;
    let rest = rest.trim_start().strip_prefix("bytes from ")?;
    if !rest.contains("seq=") {
        return None;
    }
    let (_, time) = rest.rsplit_once("time=")?;
    let (ms, unit) = leading(time.trim_start())?;
    unit.trim().starts_with("ms").then_some(ms * 1e6)
}

/// Reads the line of losses. Returns the share that was lost.
fn loss(text: &str) -> Option<f64> {
    let (sent, rest) = leading(text.trim_start())?;
    let rest = rest.trim_start().strip_prefix("packets transmitted,")?;
    let (received, rest) = leading(rest.trim_start())?;
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("packets ").unwrap_or(rest);
    // What was duplicated counts as received.
    (rest.starts_with("received") && sent > 0.0).then(|| (1.0 - received / sent).max(0.0))
}

/// Reads the line of round trips. Returns their names and values in nanoseconds.
fn trips(text: &str) -> Option<Vec<(String, f64)>> {
    let text = text.trim_start();
    let rest = text
        .strip_prefix("rtt ")
        .or(text.strip_prefix("round-trip "))?;
    let (names, values) = rest.split_once('=')?;
    if !names.starts_with("min/avg/max") {
        return None;
    }
    let values = values.trim_start();
    let end = values.find(' ').unwrap_or(values.len());
    let (values, unit) = values.split_at(end);
    if !unit.trim_start().starts_with("ms") {
        return None;
    }
    let values = values.split('/').map(|value| Some(decimal(value)? * 1e6));
    let each = names.trim_end().split('/').zip(values);
    each.map(|(name, value)| Some((format!("rtt {name}"), value?)))
        .collect()
}

impl ScoreReader for PingReader {
    fn take(&mut self, line: PastedLine<'_>, out: &mut Vec<Score>) {
        if let Some(ns) = reply(line.text) {
            let (_, count, sum, min, max) =
                self.replies.get_or_insert((line.number, 0, 0.0, ns, ns));
            *count = count.saturating_add(1);
            *sum += ns;
            *min = min.min(ns);
            *max = max.max(ns);
        } else if let Some(share) = loss(line.text) {
            out.push(Score::new(
                line.number,
                TOOL,
                "loss",
                (share, ScoreUnit::Share),
            ));
        } else if let Some(trips) = trips(line.text) {
            self.replies = None;
            for (name, ns) in trips {
                out.push(Score::new(
                    line.number,
                    TOOL,
                    name,
                    (ns, ScoreUnit::Nanoseconds),
                ));
            }
        } else if line.text.trim_start().starts_with("PING ") {
            self.close(out);
        }
    }

    fn end(&mut self, out: &mut Vec<Score>) {
        self.close(out);
    }

    fn labels(&self) -> &'static [&'static str] {
        &LABELS
    }
}
