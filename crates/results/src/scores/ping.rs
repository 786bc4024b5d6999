//! Results of `ping`: of iputils (`ping_common.c`, `finish`; its `po/de.po`, `po/fr.po` and
//! `po/zh_CN.po`), BusyBox (`networking/ping.c`) and the BSDs.

use forms::InputForm;

use crate::score::{Score, ScoreUnit};
use crate::scores::pasted::{PastedLine, ScoreReader, decimal, leading};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "ping",
    recognised_by: "`N packets transmitted, M received, X% packet loss`; `rtt min/avg/max/mdev = ... ms` and \
                    `round-trip min/avg/max = ... ms`; without them the replies, `64 bytes from ... time=0.045 ms`; \
                    iputils' also in German, French and Chinese",
    yields: "scores: round trips (shortest, mean, longest, mean deviation) and loss; less is better",
    fixtures: &[
        "tests/scores/ping-iputils.txt",
        "tests/scores/ping-flood-iputils.txt",
        "tests/scores/ping-busybox.txt",
        "tests/scores/ping-without-its-end.txt",
        "tests/scores/ping-german.txt",
        "tests/scores/ping-french.txt",
        "tests/scores/ping-chinese.txt",
    ],
};

const TOOL: &str = "ping";

const LABELS: [&str; 8] = [
    "64 bytes from",
    "64 Bytes von",
    "64 octets de",
    "64 字节，来自",
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

/// What stands behind a reply's length, by language: English, German, French, Chinese.
const FROM: [&str; 4] = ["bytes from ", "Bytes von ", "octets de ", "字节，来自 "];

/// What stands behind the count of packets that were sent, and of those that came back.
const SENT: [[&str; 2]; 3] = [
    ["packets transmitted,", "received"],
    ["Pakete übertragen,", "empfangen"],
    ["paquets transmis,", "reçus"],
];

/// Reads a time: `0.045 ms`, `0,045 ms`, `0.045 毫秒`. Returns nanoseconds.
fn milliseconds(text: &str) -> Option<f64> {
    let (ms, unit) = leading(text.trim_start())?;
    let unit = unit.trim_start();
    (unit.starts_with("ms") || unit.starts_with("毫秒")).then_some(ms * 1e6)
}

/// Reads a reply: `64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.045 ms`. Returns its time in nanoseconds.
fn reply(text: &str) -> Option<f64> {
    let (_, rest) = leading(text.trim_start())?;
    let rest = rest.trim_start();
    let rest = FROM.iter().find_map(|from| rest.strip_prefix(from))?;
    if !rest.contains("seq=") {
        return None;
    }
    let words = ["time=", "Zeit=", "temps=", "时间="];
    let time = words
        .iter()
        .find_map(|word| Some(rest.rsplit_once(word)?.1));
    milliseconds(time?)
}

/// Reads the line of losses. Returns the share that was lost.
fn loss(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let (sent, received) = match text.strip_prefix("已发送 ") {
        Some(rest) => {
            let (sent, rest) = leading(rest)?;
            let rest = rest.trim_start().strip_prefix("个包，")?.trim_start();
            let (received, rest) = leading(rest.strip_prefix("已接收 ")?)?;
            rest.trim_start().strip_prefix("个包")?;
            (sent, received)
        }
        None => {
            let (sent, rest) = leading(text)?;
            let rest = rest.trim_start();
            let (rest, word) = SENT
                .iter()
                .find_map(|[words, back]| Some((rest.strip_prefix(words)?, back)))?;
            let (received, rest) = leading(rest.trim_start())?;
            let rest = rest.trim_start();
            let rest = rest.strip_prefix("packets ").unwrap_or(rest);
            rest.starts_with(word).then_some((sent, received))?
        }
    };
    // What was duplicated counts as received.
    (sent > 0.0).then(|| (1.0 - received / sent).max(0.0))
}

/// Reads the line of round trips. Returns their names and values in nanoseconds.
fn trips(text: &str) -> Option<Vec<(String, f64)>> {
    let text = text.trim_start();
    let rest = text
        .strip_prefix("rtt ")
        .or(text.strip_prefix("round-trip "))?;
    let (names, values) = rest.split_once('=')?;
    // French has another word for the mean.
    let names = names.replace("/moy/", "/avg/");
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
