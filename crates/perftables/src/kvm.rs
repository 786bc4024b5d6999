//! Tables of `perf kvm stat` (`print_result` in `tools/perf/builtin-kvm.c`).

use crate::lines::{CleanLine, joined, squeezed};
use crate::number::{self, Time, count, is_unit, share, words};
use crate::types::KvmStatEvent;

/// Columns of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KvmColumns {
    /// Key, samples, samples%, time%, mean: perf 3.13 and older.
    Mean,
    /// Key, samples, samples%, time%, min, max, mean.
    MinMaxMean,
    /// The full-screen view of perf 6.4 and later, in nanoseconds: key, samples, sample%, time, time%, max, min, mean.
    Nanoseconds,
}

/// A heading of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KvmHeading {
    pub event: KvmStatEvent,
    pub layout: KvmColumns,
}

/// Reads a heading, which may be broken in two or three. Returns it and how many lines it takes.
pub(crate) fn header(view: &[CleanLine]) -> Option<(KvmHeading, usize)> {
    let first = &view.first()?.text;
    if !first.contains("Sample") {
        return None;
    }
    let mut found = header_in(first).map(|header| (header, 1));
    // The rest of a heading of which enough is in the first line.
    if found
        .is_none_or(|(header, _)| header.layout == KvmColumns::Mean && !first.contains("Avg time"))
    {
        for lines in 2..=view.len() {
            let rest = view.get(lines - 1)?;
            if !rest.text.contains("ime") && !rest.text.contains("ample")
                || row(&rest.text, None).is_some()
            {
                break;
            }
            if let Some(header) = joined(view, lines).iter().find_map(|text| header_in(text)) {
                found = Some((header, lines));
            }
        }
    }
    // What is left of a heading, when enough of it was in the first line.
    let (header, used) = found?;
    let ends = view.get(used).is_some_and(|line| {
        // The first word may be the end of one.
        let column = |word: &str| {
            let columns = ["Min", "Max", "Avg", "Mean", "Time", "time", "(ns)"];
            columns.iter().any(|column| column.ends_with(word))
        };
        line.text.split_whitespace().all(column) && !line.text.trim().is_empty()
    });
    Some((header, used + usize::from(ends)))
}

fn header_in(text: &str) -> Option<KvmHeading> {
    // Programs that print or read such headings quote them.
    if text.contains('"') {
        return None;
    }
    let at = text.find("Samples")?;
    let shares = text.contains("Samples%") || text.contains("Sample%");
    if !shares || !text.contains("Time%") {
        return None;
    }
    let title = text[..at].trim_matches(|c: char| c.is_whitespace() || c == '|' || c == '*');
    let event = match title.to_ascii_uppercase().replace('-', " ").trim() {
        "VM EXIT" | "VMEXIT" => KvmStatEvent::Vmexit,
        "IO PORT ACCESS" => KvmStatEvent::Ioport,
        "MMIO ACCESS" => KvmStatEvent::Mmio,
        "MSR ACCESS" => KvmStatEvent::Msr,
        "HCALL EVENT" => KvmStatEvent::Hcall,
        _ => KvmStatEvent::Unrecognized,
    };
    let columns = squeezed(text);
    let layout = if columns.contains("(ns)") {
        KvmColumns::Nanoseconds
    } else if columns.contains("MinTime") || columns.contains("MaxTime") {
        KvmColumns::MinMaxMean
    } else {
        KvmColumns::Mean
    };
    Some(KvmHeading { event, layout })
}

/// What a table is restricted to, the line above the heading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KvmFilter {
    pub pids: Option<Vec<i32>>,
    pub vcpu: Option<u32>,
}

/// Processes that are kept of a list.
const MAX_PIDS: usize = 4096;

/// Reads `Analyze events for all VMs, VCPU 1:`. perf 3.x leaves out the first part.
pub(crate) fn head(text: &str) -> Option<KvmFilter> {
    let at = text.find("Analyze events for")?;
    let rest = &text[at + "Analyze events for".len()..];
    if rest.contains('"') || rest.contains('%') {
        return None;
    }
    let vcpu_at = rest.to_ascii_uppercase().rfind("VCPU")?;
    let (target, vcpu) = rest.split_at(vcpu_at);
    let pids = target.find("pid(s)").map(|at| {
        target[at + 6..]
            .split([',', ' '])
            .filter_map(|pid| pid.trim().parse().ok())
            .take(MAX_PIDS)
            .collect()
    });
    let number = vcpu[4..].trim_matches(|c: char| c.is_whitespace() || c == ':');
    Some(KvmFilter {
        pids,
        vcpu: number.parse().ok(),
    })
}

/// The last line: samples and time of all rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Total {
    pub count: u64,
    pub time: Time,
}

/// Reads `Total Samples:24618, Total events handled time:35370.40us.`, which may be broken.
pub(crate) fn total(view: &[CleanLine]) -> Option<(Total, usize)> {
    if !view.first()?.text.contains("Total Sam") {
        return None;
    }
    (1..=view.len()).find_map(|lines| {
        let text = joined(view, lines);
        Some((text.iter().find_map(|text| total_in(text))?, lines))
    })
}

fn total_in(text: &str) -> Option<Total> {
    let (_, rest) = text.split_once("Total Samples")?;
    let (samples, rest) = rest.split_once("Total events handled time")?;
    let blank = |c: char| c.is_whitespace() || matches!(c, ':' | ',' | '\u{ff0c}' | '|');
    let time = rest.trim_matches(blank).trim_end_matches('.');
    Some(Total {
        count: count(samples.trim_matches(blank))?,
        time: number::time(time.trim_end())?,
    })
}

/// Reads `Lost events: 12`.
pub(crate) fn lost(text: &str) -> Option<u64> {
    let rest = text.trim_start().strip_prefix("Lost events")?;
    count(rest.trim_matches(|c: char| c.is_whitespace() || c == ':'))
}

/// Reads perf's message of a reason without a name (`get_exit_reason`): `unknown kvm exit code:78 on VMX`. Returns the
/// code, and what perf calls the machine.
pub(crate) fn unknown(text: &str) -> Option<(u64, Option<&str>)> {
    let rest = text.trim_start().strip_prefix("unknown kvm exit code:")?;
    let mut words = rest.split_whitespace();
    let code = count(words.next()?)?;
    let on = words.next().filter(|word| *word == "on");
    Some((code, on.and_then(|_| words.next())))
}

/// A row as printed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PrintedKvmRow {
    pub key: String,
    /// Of the message before the row.
    pub unknown_code: Option<u64>,
    pub count: u64,
    pub count_share: f64,
    pub time_share: f64,
    pub min: Option<Time>,
    pub max: Option<Time>,
    pub mean: Option<Time>,
    pub error: Option<f64>,
    /// Only in nanoseconds.
    pub total_ns: Option<u64>,
}

/// Reads a whole row.
pub(crate) fn row(text: &str, layout: Option<KvmColumns>) -> Option<PrintedKvmRow> {
    if layout == Some(KvmColumns::Nanoseconds) {
        return row_ns(text);
    }
    // A sign of the error and two shares: most lines are recognised by that.
    if !text.contains('%') {
        return None;
    }
    let text = unbarred(text);
    let (left, error) = error_of(&text)?;
    let printed = columns(left, layout, Some(error))?;
    printed.mean.is_some().then_some(printed)
}

/// Reads a row that was cut off on the right, anywhere behind the share of time.
pub(crate) fn cut_row(text: &str, layout: Option<KvmColumns>) -> Option<PrintedKvmRow> {
    if layout == Some(KvmColumns::Nanoseconds) || !text.contains('%') {
        return None;
    }
    let text = unbarred(text);
    let left = match text
        .find(['(', '\u{b1}'])
        .filter(|at| error_begins(&text[*at..]))
    {
        Some(at) => &text[..at],
        None => &text,
    };
    columns(left, layout, None).or_else(|| {
        // The last word is a part of one.
        let (at, word) = *words(left).last()?;
        if !is_numeric(word) {
            return None;
        }
        columns(&left[..at], layout, None)
    })
}

fn error_begins(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_whitespace() || c.is_ascii_digit() || "(+-/\u{b1}.,%)".contains(c))
}

/// Returns the text with blanks for the bars of a wiki's table.
fn unbarred(text: &str) -> String {
    text.replace('|', " ")
}

/// Splits `( +-   0.28% )` off a row.
pub(crate) fn error_of(text: &str) -> Option<(&str, f64)> {
    let signs = ["+-", "+/-", "\u{b1}"];
    let (at, len) = signs
        .iter()
        .find_map(|sign| Some((text.rfind(sign)?, sign.len())))?;
    let error = text[at + len..]
        .trim()
        .trim_end_matches([')', '.'])
        .trim_end();
    let left = text[..at].trim_end();
    Some((left.strip_suffix('(').unwrap_or(left), share(error)?))
}

/// Words of a row, taken from the right.
struct RowWords<'a> {
    text: &'a str,
    words: Vec<(usize, &'a str)>,
}

impl<'a> RowWords<'a> {
    /// Takes the last word if it can be read, or the last two if the last is a unit or sign of its own.
    fn take<T>(&mut self, alone: fn(&str) -> bool, read: fn(&str) -> Option<T>) -> Option<T> {
        let (at, word) = *self.words.last()?;
        if let Some(value) = read(word) {
            self.words.pop();
            return Some(value);
        }
        let (before, _) = *self.words.get(self.words.len().checked_sub(2)?)?;
        let value = if alone(word) {
            read(&self.text[before..at + word.len()])
        } else {
            None
        };
        if value.is_some() {
            self.words.truncate(self.words.len() - 2);
        }
        value
    }

    fn time(&mut self) -> Option<Time> {
        self.take(is_unit, number::time)
    }

    fn share(&mut self) -> Option<f64> {
        // Rounding makes 100.00% of a little more.
        self.take(|word| word == "%", share)
            .filter(|share| *share < 1.001)
    }

    fn count(&mut self) -> Option<u64> {
        self.take(|_| false, count)
    }

    /// Returns what is left: the key.
    fn key(&self) -> Option<String> {
        let (from, _) = *self.words.first()?;
        let (last, word) = *self.words.last()?;
        let key = self.text.get(from..last + word.len())?.trim_matches('`');
        (!key.is_empty() && key.len() <= MAX_KEY).then(|| key.to_owned())
    }
}

/// perf prints at most 40 characters.
const MAX_KEY: usize = 80;

fn columns(left: &str, layout: Option<KvmColumns>, error: Option<f64>) -> Option<PrintedKvmRow> {
    let mut columns = RowWords {
        text: left,
        words: words(left),
    };
    let mut times = Vec::with_capacity(3);
    while times.len() < 3
        && let Some(time) = columns.time()
    {
        times.push(time);
    }
    times.reverse();
    let time_share = columns.share()?;
    let count_share = columns.share()?;
    let count = columns.count()?;
    let at = |i: usize| times.get(i).copied();
    // A whole row ends with its mean; of one that was cut off, the heading says what its times are.
    let (min, max, mean) = match (times.len(), error) {
        (3, _) => (at(0), at(1), at(2)),
        (1, Some(_)) => (None, None, at(0)),
        (_, Some(_)) => return None,
        (1, None) if layout == Some(KvmColumns::Mean) => (None, None, at(0)),
        _ => (at(0), at(1), None),
    };
    Some(PrintedKvmRow {
        key: columns.key()?,
        unknown_code: None,
        count,
        count_share,
        time_share,
        min,
        max,
        mean,
        error,
        total_ns: None,
    })
}

/// Reads a row of the full-screen view.
fn row_ns(text: &str) -> Option<PrintedKvmRow> {
    let text = unbarred(text);
    let mut columns = RowWords {
        text: &text,
        words: words(&text),
    };
    let time = |ns| Time { ns, half_ns: 0 };
    let mean = columns.count().map(time);
    let min = columns.count().map(time);
    let max = columns.count().map(time);
    let time_share = columns.share()?;
    let total_ns = columns.count();
    let count_share = columns.share()?;
    let count = columns.count()?;
    mean?;
    total_ns?;
    Some(PrintedKvmRow {
        key: columns.key()?.trim_start_matches(['+', ' ']).to_owned(),
        unknown_code: None,
        count,
        count_share,
        time_share,
        min,
        max,
        mean,
        error: None,
        total_ns,
    })
}

/// Returns whether a word may be a part of a row behind its key.
fn is_numeric(word: &str) -> bool {
    word.chars()
        .all(|c| c.is_ascii_digit() || ".,%usnm\u{b5}()+-".contains(c))
}

/// Returns whether a line may be the beginning of a row that goes on in the next one: a key and a number at least.
fn begins_row(text: &str) -> bool {
    let text = unbarred(text);
    let words = words(&text);
    let Some(number) = words
        .iter()
        .skip(1)
        .position(|(_, word)| count(word).is_some())
    else {
        return false;
    };
    words
        .iter()
        .skip(number + 1)
        .all(|(_, word)| is_numeric(word))
}

/// Returns whether a line may be the end of a row that began in the one before.
fn ends_row(text: &str) -> bool {
    let text = unbarred(text);
    !text.trim().is_empty() && text.split_whitespace().all(is_numeric)
}

/// Reads a row that may be broken in two or three. Returns it and how many lines it takes.
pub(crate) fn row_of(
    view: &[CleanLine],
    layout: Option<KvmColumns>,
) -> Option<(PrintedKvmRow, usize)> {
    let first = &view.first()?.text;
    let (row, used) = match row(first, layout) {
        Some(row) => (row, 1),
        None if begins_row(first) => (2..=view.len())
            .take_while(|lines| view.get(lines - 1).is_some_and(|line| ends_row(&line.text)))
            .find_map(|lines| {
                let texts = joined(view, lines);
                Some((texts.iter().find_map(|text| row(text, layout))?, lines))
            })?,
        None => return None,
    };
    // The end of the error is not needed, but may be there.
    let ends = view
        .get(used)
        .is_some_and(|line| matches!(line.text.trim(), ")" | ") |" | ")|"));
    Some((row, used + usize::from(ends)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<CleanLine> {
        let numbered = text.lines().zip(1..);
        let line = |(text, number): (&str, u64)| CleanLine {
            number,
            text: text.to_owned(),
        };
        numbered.map(line).collect()
    }

    const ROW: &str = "      IO_INSTRUCTION      24618    65.05%     0.19%      3.91us     90.62us      5.96us ( +-   \
        0.43% )";

    #[track_caller]
    fn is_the_row(row: &PrintedKvmRow) {
        assert_eq!(row.key, "IO_INSTRUCTION");
        assert_eq!(row.count, 24618);
        assert_eq!((row.count_share, row.time_share), (0.6505, 0.0019));
        assert_eq!(row.min.unwrap().ns, 3_910);
        assert_eq!(row.max.unwrap().ns, 90_620);
        assert_eq!(
            row.mean,
            Some(Time {
                ns: 5_960,
                half_ns: 5
            })
        );
        assert_eq!(row.error, Some(0.43 / 100.0));
    }

    #[test]
    fn a_row_broken_at_any_column_is_the_same_row() {
        let from = ROW.find("24618").unwrap() + 1;
        for at in from..ROW.len() {
            let (a, b) = ROW.split_at(at);
            let view = lines(&format!("{}\n{}", a.trim_end(), b));
            let (row, used) = row_of(&view, Some(KvmColumns::MinMaxMean))
                .unwrap_or_else(|| panic!("{a:?} {b:?}"));
            is_the_row(&row);
            assert!(
                used == 2 || b.trim().is_empty() || a.contains("0.43%"),
                "{a:?}"
            );
            for more in at + 1..ROW.len() {
                let (b, c) = b.split_at(more - at);
                if b.trim().is_empty() || c.trim().is_empty() {
                    continue;
                }
                let view = lines(&format!("{a}\n{b}\n{c}"));
                let (row, _) = row_of(&view, None).unwrap_or_else(|| panic!("{a:?} {b:?} {c:?}"));
                is_the_row(&row);
            }
        }
    }

    #[test]
    fn rows_of_other_layouts() {
        let old = row(
            "  HLT   12  10.00%  20.00%  33.10us ( +-   0.43% )",
            Some(KvmColumns::Mean),
        )
        .unwrap();
        assert_eq!((old.min, old.mean.unwrap().ns), (None, 33_100));
        let whole = row("HLT 12 10.00% 20.00% 3us 1234us 33.10us ( +- 0.43% )", None).unwrap();
        assert_eq!(
            whole.max,
            Some(Time {
                ns: 1_234_000,
                half_ns: 500
            })
        );
        let wiki = row(
            "| DIAG (0x44) time slice end | 12 | 10.00 % | 20.00% | 3 us | 1us | 33,10us (±0.43%) |",
            None,
        );
        let wiki = wiki.unwrap();
        assert_eq!(wiki.key, "DIAG (0x44) time slice end");
        assert_eq!((wiki.mean.unwrap().ns, wiki.count_share), (33_100, 0.1));
        let tui = "   EPT_VIOLATION    92840   61.14%   369800000   56.08%   51530   1120   3983";
        let tui = row(tui, Some(KvmColumns::Nanoseconds)).unwrap();
        assert_eq!(tui.total_ns, Some(369_800_000));
        assert_eq!(
            (
                tui.max.unwrap().ns,
                tui.min.unwrap().ns,
                tui.mean.unwrap().ns
            ),
            (51_530, 1_120, 3_983)
        );
        let nan = row("HLT 0 -nan% -nan% 0.00us 0.00us -nanus ( +- 0.00% )", None);
        assert_eq!(nan, None);
    }

    #[test]
    fn rows_cut_off_give_what_is_left() {
        for at in ROW.find("0.19%").unwrap() + 5..ROW.len() - 3 {
            let cut = cut_row(&ROW[..at], Some(KvmColumns::MinMaxMean))
                .unwrap_or_else(|| panic!("{}", &ROW[..at]));
            assert_eq!((cut.count, cut.time_share), (24618, 0.0019));
            assert!(
                cut.mean.is_none_or(|mean| mean.ns == 5_960),
                "{}",
                &ROW[..at]
            );
        }
    }

    #[test]
    fn what_is_no_row_is_none() {
        for text in [
            "",
            "%",
            "24618 65.05% 0.19% 3.91us 90.62us 5.96us ( +- 0.43% )",
            "HLT 65.05% 0.19% 3.91us 90.62us 5.96us ( +- 0.43% )",
            "HLT 1 165.05% 0.19% 3.91us 90.62us 5.96us ( +- 0.43% )",
            "HLT 1 65.05% 0.19% 90.62us 5.96us ( +- 0.43% )",
            "       111,415,469      cache-misses              #    4.444 % of all cache refs  ( +- 0.5% )",
        ] {
            assert_eq!(row(text, None), None, "{text}");
        }
    }

    #[test]
    fn heads_say_what_the_table_is_restricted_to() {
        let read = |text: &str| head(text).map(|h| (h.pids, h.vcpu));
        assert_eq!(
            read("Analyze events for all VMs, all VCPUs:"),
            Some((None, None))
        );
        assert_eq!(read("Analyze events for all VCPUs:"), Some((None, None)));
        assert_eq!(
            read("Analyze events for all VMs, VCPU 1:"),
            Some((None, Some(1)))
        );
        let pids = Some((Some(vec![12, 13]), Some(0)));
        assert_eq!(read("Analyze events for pid(s) 12,13, VCPU 0:"), pids);
        assert_eq!(read("pr_info(\"Analyze events for \");"), None);
        assert_eq!(read("Analyze events for me"), None);
    }

    #[test]
    fn headings_and_last_lines_may_be_broken() {
        let text = "  IO Port Access    Samples  Samples%     Time%    Min Time    Max Time         Avg time";
        let want = KvmHeading {
            event: KvmStatEvent::Ioport,
            layout: KvmColumns::MinMaxMean,
        };
        assert_eq!(header(&lines(text)), Some((want, 1)));
        for at in text.find("Samples%").unwrap()..text.find("Time%").unwrap() + 5 {
            let view = lines(&format!("{}\n{}", &text[..at], &text[at..]));
            assert_eq!(header(&view), Some((want, 2)), "{}", &text[..at]);
        }
        let quoted = "pr_info(\"Samples  Samples%     Time%\")";
        assert_eq!(header(&lines(quoted)), None);

        let want = Total {
            count: 24618,
            time: Time {
                ns: 35_370_400,
                half_ns: 5,
            },
        };
        let text = "Total Samples:24618, Total events handled time:35370.40us.";
        assert_eq!(total(&lines(text)), Some((want, 1)));
        for at in 13..text.len() - 1 {
            let view = lines(&format!("{}\n{}", &text[..at], &text[at..]));
            assert!(
                total(&view).is_some_and(|(total, _)| total == want),
                "{}",
                &text[..at]
            );
        }
    }
}
