//! Results of `iperf` (2.0 and 2.1, `src/ReportOutputs.c`) and `iperf3` (`src/iperf_locale.c`), as people read them.

use forms::InputForm;

use crate::score::{Score, ScoreUnit};
use crate::scores::pasted::{PastedLine, ScoreReader, decimal, leading};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "iperf, iperf3",
    recognised_by: "rows of an interval, bytes and bits per second: `[  5]   0.00-10.00  sec  11.0 GBytes  9.41 \
                    Gbits/sec`, also without their ids and broken in two below a heading of the tool's",
    yields: "scores: bitrate of sender and receiver, or of the whole time (more is better); retransmits, jitter and \
             loss (less is)",
    fixtures: &[
        "tests/scores/iperf3-tcp-3.12.txt",
        "tests/scores/iperf3-tcp-parallel-3.12.txt",
        "tests/scores/iperf3-udp-3.12.txt",
        "tests/scores/iperf3-bidir-3.12.txt",
        "tests/scores/iperf-tcp-2.1.txt",
        "tests/scores/iperf-tcp-parallel-2.1.txt",
        "tests/scores/iperf-udp-2.1.txt",
        "tests/scores/iperf-tcp-2.0.txt",
    ],
};

const LABELS: [&str; 5] = [
    "[ ",
    "[SUM]",
    "Connecting to host",
    "Client connecting to",
    "iperf Done.",
];

/// Rows that are kept of one output: intervals of a day, or of many streams.
const MAX_ROWS: usize = 1 << 16;
/// Lines of something else after which rows without ids are no rows of this.
const MAX_FOREIGN: u32 = 12;

/// Who measured a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowSide {
    Sender,
    Receiver,
    /// The server's, as the client prints it (iperf 2).
    Server,
}

/// A row.
#[derive(Debug, Clone, PartialEq)]
struct BitrateRow {
    line: u64,
    /// `5`, `SUM`, with `TX-C`; empty where the text does not have it.
    id: String,
    from_s: f64,
    to_s: f64,
    bits_per_second: f64,
    retransmits: Option<f64>,
    jitter_ns: Option<f64>,
    loss: Option<f64>,
    side: Option<RowSide>,
}

/// An output under way.
#[derive(Debug, Default)]
pub(crate) struct IperfReader {
    /// Whether a heading of the tool's, or a row with its id, was there.
    inside: bool,
    three: bool,
    server: bool,
    rows: Vec<BitrateRow>,
    foreign: u32,
}

/// Reads bits for each second: `9.41`, `Gbits/sec`. Bytes are powers of 1024, bits of 1000 (`units.c` of both).
fn bits(number: &str, unit: &str) -> Option<f64> {
    let value = decimal(number)?;
    let (prefix, bytes) = match unit.strip_suffix("bits/sec") {
        Some(prefix) => (prefix, false),
        None => (unit.strip_suffix("Bytes/sec")?, true),
    };
    let power = match prefix {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    Some(match bytes {
        true => value * 8.0 * 1024f64.powi(power),
        false => value * 1000f64.powi(power),
    })
}

/// Reads an interval: `0.00-10.00`, also in two or three words. Returns how many words it takes.
fn interval(words: &[&str]) -> Option<(f64, f64, usize)> {
    let of = |text: &str| {
        let (from, to) = text.split_once('-')?;
        Some((decimal(from)?, decimal(to)?))
    };
    (1..=3).find_map(|count| {
        let (from, to) = of(&words.get(..count)?.concat())?;
        (from < to).then_some((from, to, count))
    })
}

/// Reads a row; without its id only if `inside` an output.
fn row(line: PastedLine<'_>, inside: bool) -> Option<BitrateRow> {
    let text = line.text.trim();
    let (id, rest) = match text.strip_prefix('[') {
        Some(rest) => {
            let (id, rest) = rest.split_once(']')?;
            let id = id.trim().trim_start_matches('*').trim();
            match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                Some((role, rest)) => (format!("{id} {role}"), rest),
                None => (id.to_owned(), rest),
            }
        }
        None if inside => (String::new(), text),
        None => return None,
    };
    let words: Vec<&str> = rest.split_whitespace().collect();
    let (from_s, to_s, used) = interval(&words)?;
    let rest = words.get(used..)?;
    let [sec, amount, bytes, rate, unit, rest @ ..] = rest else {
        return None;
    };
    decimal(amount)?;
    if *sec != "sec" || !bytes.ends_with("Bytes") && !bytes.ends_with("bits") {
        return None;
    }
    let mut row = BitrateRow {
        line: line.number,
        id,
        from_s,
        to_s,
        bits_per_second: bits(rate, unit)?,
        retransmits: None,
        jitter_ns: None,
        loss: None,
        side: rest.last().and_then(|word| side(word)),
    };
    match rest {
        [jitter, "ms", lost @ ..] => {
            row.jitter_ns = decimal(jitter).map(|ms| ms * 1e6);
            row.loss = loss(&lost.concat());
        }
        [count, ..] => row.retransmits = count.parse::<u32>().ok().map(f64::from),
        [] => {}
    }
    Some(row)
}

/// Reads `0/8920(0%)`.
fn loss(text: &str) -> Option<f64> {
    let (lost, all) = text.split_once('/')?;
    let (all, _) = leading(all)?;
    (all > 0.0).then_some(decimal(lost)? / all)
}

fn side(word: &str) -> Option<RowSide> {
    match word {
        "sender" => Some(RowSide::Sender),
        "receiver" => Some(RowSide::Receiver),
        _ => None,
    }
}

impl IperfReader {
    fn tool(&self) -> &'static str {
        match self.three
            || self
                .rows
                .iter()
                .any(|row| row.side == Some(RowSide::Sender))
        {
            true => "iperf3",
            false => "iperf",
        }
    }

    /// Ends an output: what it found over the whole time.
    fn close(&mut self, out: &mut Vec<Score>) {
        let tool = self.tool();
        let sides = [
            (Some(RowSide::Sender), "sender"),
            (Some(RowSide::Receiver), "receiver"),
            (Some(RowSide::Server), "server"),
        ];
        let named = self
            .rows
            .iter()
            .any(|row| matches!(row.side, Some(RowSide::Sender | RowSide::Receiver)));
        for (side, name) in sides {
            let of_side = self.rows.iter().filter(|row| row.side == side);
            let of_side: Vec<&BitrateRow> = of_side.collect();
            for row in whole(&of_side) {
                // Both directions of --bidir stand apart.
                let role = row.id.split_once(' ').map_or("", |(_, role)| role);
                let name = match role {
                    "" => name.to_owned(),
                    role => format!("{name}, {role}"),
                };
                add(out, tool, row, &name, side != Some(RowSide::Sender));
            }
        }
        if !named {
            let of_side = self.rows.iter().filter(|row| row.side.is_none());
            let of_side: Vec<&BitrateRow> = of_side.collect();
            let total = totals(&of_side);
            if let Some(row) = total {
                add(out, tool, &row, "", true);
            }
        }
        *self = IperfReader::default();
    }
}

/// Adds what a row says. `received` where jitter and loss are of what came.
fn add(out: &mut Vec<Score>, tool: &'static str, row: &BitrateRow, of: &str, received: bool) {
    let title = |what: &str| match of {
        "" => what.to_owned(),
        of => format!("{what} ({of})"),
    };
    let mut push = |what: &str, value, unit| {
        out.push(Score::new(row.line, tool, title(what), (value, unit)));
    };
    push("bitrate", row.bits_per_second, ScoreUnit::BitsPerSecond);
    if let Some(count) = row.retransmits.filter(|_| !received) {
        push("retransmits", count, ScoreUnit::Number);
    }
    if let Some(ns) = row.jitter_ns.filter(|_| received) {
        push("jitter", ns, ScoreUnit::Nanoseconds);
    }
    if let Some(share) = row.loss.filter(|_| received) {
        push("loss", share, ScoreUnit::Share);
    }
}

/// Returns the rows that are of all streams: the sums, else those of the only stream of each direction.
fn whole<'r>(rows: &[&'r BitrateRow]) -> Vec<&'r BitrateRow> {
    let is_sum = |row: &&&BitrateRow| row.id.starts_with("SUM");
    let sums: Vec<&BitrateRow> = rows.iter().filter(is_sum).copied().collect();
    if !sums.is_empty() {
        return sums;
    }
    let role = |row: &BitrateRow| row.id.split_once(' ').map(|(_, role)| role.to_owned());
    let alone = |row: &&&BitrateRow| {
        let same = rows.iter().filter(|other| role(other) == role(row));
        same.count() == 1
    };
    rows.iter().filter(alone).copied().collect()
}

/// Returns the row of the whole time where no row says whose it is: the one from the beginning to the last end, else
/// the mean of intervals that follow each other. None of several streams without their sum.
fn totals(rows: &[&BitrateRow]) -> Option<BitrateRow> {
    let sums: Vec<&BitrateRow> = rows.iter().filter(|row| row.id == "SUM").copied().collect();
    let rows = if sums.is_empty() { rows } else { &sums };
    let first = rows.first()?;
    if rows.iter().any(|row| row.id != first.id) {
        return None;
    }
    let end = rows.iter().map(|row| row.to_s).fold(0.0, f64::max);
    let whole = rows.iter().rev().find(|row| row.from_s == 0.0)?;
    if whole.to_s >= end {
        return Some((*whole).clone());
    }
    let (mut bits, mut at) = (0.0, 0.0);
    for row in rows {
        if (row.from_s - at).abs() > 0.011 {
            return None;
        }
        bits += row.bits_per_second * (row.to_s - row.from_s);
        at = row.to_s;
    }
    Some(BitrateRow {
        bits_per_second: bits / at,
        retransmits: None,
        ..(*first).clone()
    })
}

impl ScoreReader for IperfReader {
    fn take(&mut self, line: PastedLine<'_>, out: &mut Vec<Score>) {
        let text = line.text.trim();
        let three = text.starts_with("Connecting to host ");
        let two = ["Client connecting to ", "Server listening on "]
            .iter()
            .any(|label| text.starts_with(label));
        if three || two {
            self.close(out);
            self.inside = true;
            self.three = three;
            return;
        }
        let words: Vec<&str> = text.split_whitespace().take(6).collect();
        if matches!(
            words[..],
            ["[", "ID]", "Interval", ..] | ["[", "ID][Role]", "Interval", ..]
        ) {
            // iperf 2 has one heading for each of a server's clients, iperf3 a second one before the sums.
            let again = self.rows.iter().any(|row| row.side.is_some());
            if again && !self.server {
                self.close(out);
            }
            self.inside = true;
            self.foreign = 0;
            return;
        }
        if text.ends_with("Server Report:") {
            self.server = true;
            return;
        }
        if let Some(mut row) = row(line, self.inside) {
            // Another run, whose heading is missing, follows one that has both ends.
            let has = |side| self.rows.iter().any(|other| other.side == Some(side));
            if has(RowSide::Sender) && has(RowSide::Receiver) && row.side.is_none() && !self.server
            {
                self.close(out);
            }
            self.inside = true;
            self.foreign = 0;
            if std::mem::take(&mut self.server) && row.side.is_none() {
                row.side = Some(RowSide::Server);
            }
            if self.rows.len() < MAX_ROWS {
                self.rows.push(row);
            }
            return;
        }
        // The last word of a row that was broken in two.
        if let (Some(side), Some(last)) = (side(text), self.rows.last_mut())
            && last.side.is_none()
            && self.foreign == 0
        {
            last.side = Some(side);
        } else if self.inside && !text.is_empty() {
            self.foreign += 1;
            if self.foreign > MAX_FOREIGN {
                self.close(out);
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
