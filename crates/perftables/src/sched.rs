//! Tables of `perf sched latency` (`output_lat_thread` and `perf_sched__lat` in `tools/perf/builtin-sched.c`).

use forms::InputForm;

use crate::lines::{CleanLine, joined, squeezed};
use crate::number::{count, scaled};
use crate::types::{SchedLatency, SchedRow, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "perf sched latency",
    recognised_by: "the heading `Task | Runtime ms | Switches` or `Count`, or rows of a task, bars, `avg:` and `max:`",
    yields: "run time, delays and the longest of each task",
    fixtures: &[
        "tests/tables/case5-good-host.perf-sched-latency.txt",
        "tests/tables/case5-slow-host.perf-sched-latency.txt",
    ],
};

/// A heading of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SchedHeading {
    /// Rows end with the time of the longest delay.
    pub at: bool,
    /// Rows begin with a bar, as a wiki's do.
    pub barred: bool,
}

/// Reads a heading, which may be broken. Returns it and how many lines it takes.
pub(crate) fn header(view: &[CleanLine]) -> Option<(SchedHeading, usize)> {
    let first = &view.first()?.text;
    if !first.contains('|') || !first.contains("Task") {
        return None;
    }
    // What goes on in the next line has letters and bars alone.
    let goes_on = |line: &&CleanLine| {
        let text = line.text.trim();
        let column = |word: &str| ["ms", "s", "at", "end", "start", "delay"].contains(&word);
        let letters = |c: char| c.is_ascii_alphabetic() || "|=".contains(c) || c.is_whitespace();
        let bars = text.contains('|') || text.split_whitespace().all(column);
        !text.is_empty() && bars && text.chars().all(letters)
    };
    let lines = 1 + view[1..].iter().take_while(goes_on).count();
    joined(view, lines).iter().find_map(|text| {
        let barred = text.trim_start().starts_with('|');
        let words = squeezed(text);
        let quoted = text.contains('"');
        let header =
            words.contains("Runtimems") && (words.contains("Switches") || words.contains("Count"));
        let at = words.contains("delayat") || words.contains("delayend");
        (header && !quoted).then_some((SchedHeading { at, barred }, lines))
    })
}

/// A line of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SchedLine {
    Task(SchedRow),
    Total { runtime_ns: u64, switches: u64 },
}

/// A cell: what stands before its number, the number, and what stands behind it.
struct SchedCell<'a> {
    /// Without blanks.
    label: String,
    number: &'a str,
    unit: &'a str,
}

fn cell(text: &str) -> Option<SchedCell<'_>> {
    let text = text.trim();
    let from = text.find(|c: char| c.is_ascii_digit())?;
    let rest = &text[from..];
    let len = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')
        .unwrap_or(rest.len());
    Some(SchedCell {
        label: squeezed(&text[..from]).replace(':', ""),
        number: &rest[..len],
        unit: rest[len..].trim(),
    })
}

impl SchedCell<'_> {
    /// Returns the time in ns if the cell is labelled as asked, or not at all.
    fn ns(&self, labels: &[&str], unit: &str, exponent: u32) -> Option<u64> {
        if self.unit != unit || !(self.label.is_empty() || labels.contains(&self.label.as_str())) {
            return None;
        }
        Some(scaled(self.number, exponent)?.ns)
    }
}

/// Reads a row. `whole` asks for the time of the longest delay.
pub(crate) fn row(text: &str, line: u64, barred: bool, whole: bool) -> Option<SchedLine> {
    if !text.contains('|') || !text.contains("ms") {
        return None;
    }
    let text = if barred {
        text.trim_start().strip_prefix('|').unwrap_or(text)
    } else {
        text
    };
    // Names may hold bars: the first cell that is a time ends them.
    let (name, runtime_ns, rest) = text.match_indices('|').find_map(|(at, _)| {
        let rest = &text[at + 1..];
        let (runtime, rest) = rest.split_once('|').unwrap_or((rest, ""));
        Some((&text[..at], cell(runtime)?.ns(&[], "ms", 6)?, rest))
    })?;
    let mut cells = rest.split('|');
    let switches = count(cells.next()?.trim())?;
    let name = name.trim();
    if name == "TOTAL:" {
        return Some(SchedLine::Total {
            runtime_ns,
            switches,
        });
    }
    let (comm, tid, threads) = task(name)?;
    let delay_mean_ns = cell(cells.next()?)?.ns(&["avg"], "ms", 6)?;
    let delay_max_ns = cell(cells.next()?)?.ns(&["max"], "ms", 6)?;
    let (mut start, mut at) = (None, None);
    for cell in cells.filter_map(cell) {
        match cell.label.as_str() {
            "maxstart" => start = cell.ns(&["maxstart"], "s", 9),
            "maxat" | "maxend" => at = cell.ns(&["maxat", "maxend"], "s", 9),
            _ => {}
        }
    }
    if whole && at.is_none() {
        return None;
    }
    // perf prints 0.000000 where there was no delay.
    let was = |time: &u64| *time > 0 || delay_max_ns > 0;
    Some(SchedLine::Task(SchedRow {
        line,
        comm: comm.to_owned(),
        tid,
        threads,
        runtime_ns,
        switches,
        delay_mean_ns,
        delay_max_ns,
        delay_max_start_ns: start.filter(was),
        delay_max_at_ns: at.filter(was),
    }))
}

/// Splits a task's name and thread: `iperf:(6)`, `kworker/9:1-eve:211650`, `:12373:12373`.
fn task(name: &str) -> Option<(&str, Option<i32>, Option<u64>)> {
    let (comm, id) = name.rsplit_once(':')?;
    let id = id.trim();
    match id.strip_prefix('(').and_then(|id| id.strip_suffix(')')) {
        Some(threads) => Some((comm, None, Some(count(threads.trim())?))),
        None => Some((comm, Some(id.parse().ok()?), None)),
    }
}

/// Returns whether a line may be the beginning of a row that goes on: a name and a bar, or more.
fn begins_row(text: &str) -> bool {
    text.contains('|')
        && text
            .find(':')
            .is_some_and(|at| at > 0 || text.starts_with(':'))
}

/// Returns whether a line may be the end of a row that began in the one before.
fn ends_row(text: &str) -> bool {
    // A word may be broken too, so its end is enough. A mail's soft break ends with a sign of its own.
    let known = |word: &str| {
        let tail = word.trim_start_matches(|c: char| c.is_ascii_digit() || ".,".contains(c));
        let labels = ["ms", "avg", "max", "sum", "start", "end", "at"];
        labels.iter().any(|label| label.ends_with(tail))
    };
    let apart = |c: char| c.is_whitespace() || ":|=".contains(c);
    !text.trim().is_empty() && text.split(apart).all(known)
}

/// Reads a row that may be broken in two or three. Returns it and how many lines it takes.
pub(crate) fn row_of(
    view: &[CleanLine],
    header: Option<SchedHeading>,
) -> Option<(SchedLine, usize)> {
    let first = view.first()?;
    // Without a heading a row is known by its label.
    if header.is_none() && !first.text.contains("| avg:") && !first.text.contains("|avg:") {
        return None;
    }
    let barred = header.map_or(first.text.trim_start().starts_with('|'), |h| h.barred);
    let whole = header.is_none_or(|h| h.at);
    if let Some(row) = row(&first.text, first.number, barred, whole) {
        return Some((row, 1));
    }
    if begins_row(&first.text) {
        let broken = (2..=view.len())
            .take_while(|lines| view.get(lines - 1).is_some_and(|line| ends_row(&line.text)))
            .find_map(|lines| {
                let texts = joined(view, lines);
                let row = texts
                    .iter()
                    .find_map(|text| row(text, first.number, barred, whole))?;
                Some((row, lines))
            });
        if broken.is_some() {
            return broken;
        }
    }
    // Cut off behind the longest delay, or a table without its time.
    Some((row(&first.text, first.number, barred, false)?, 1))
}

/// Reads the number of lost events: `INFO: 2.878% lost events (512 out of 17792, in 1 chunks)`.
pub(crate) fn lost(info: &str) -> Option<u64> {
    let (_, rest) = info.split_once("lost events (")?;
    count(rest.split(' ').next()?)
}

/// Notes what does not fit together in a table.
pub(crate) fn check(table: &SchedLatency, notes: &mut Vec<TableNote>) {
    let mut note = |text: String| {
        notes.push(TableNote {
            line: table.line,
            text,
        });
    };
    let switches = table
        .rows
        .iter()
        .fold(0u64, |sum, row| sum.saturating_add(row.switches));
    if let Some(total) = table.total_switches
        && switches != total
    {
        let which = if switches < total {
            "rows are missing"
        } else {
            "rows are there twice or changed"
        };
        note(format!(
            "The rows have {switches} switches together, the row TOTAL says {total}: {which}."
        ));
    } else if let Some(total) = table.total_runtime_ns {
        let sum = table
            .rows
            .iter()
            .fold(0u64, |sum, row| sum.saturating_add(row.runtime_ns));
        // Every row is rounded by up to half a microsecond.
        let slack = 500 * (table.rows.len() as u64 + 2);
        if sum.abs_diff(total) > slack {
            note(format!(
                "The rows ran {} us together, the row TOTAL says {} us: rows are changed.",
                sum / 1000,
                total / 1000
            ));
        }
    }
    if let Some(row) = table
        .rows
        .iter()
        .find(|row| row.delay_mean_ns > row.delay_max_ns)
    {
        notes.push(TableNote {
            line: row.line,
            text: format!(
                "The mean delay of {} ({} us) is longer than its longest ({} us).",
                row.comm,
                row.delay_mean_ns / 1000,
                row.delay_max_ns / 1000
            ),
        });
    }
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

    const OLD: &str = "  kworker/9:1-eve:211650 |    2643.633 ms |    53689 | avg:    0.003 ms | max:    2.335 ms | \
        max at: 910801.817809 s";
    const NEW: &str = "  CPU 1/KVM:(2)         |   2378.374 ms |      223 | avg:   0.182 ms | max:  15.189 ms | max \
        start:    83.045449 s | max end:    83.060638 s";
    const AT: SchedHeading = SchedHeading {
        at: true,
        barred: false,
    };

    fn read(text: &str, header: Option<SchedHeading>) -> (SchedRow, usize) {
        match row_of(&lines(text), header) {
            Some((SchedLine::Task(row), used)) => (row, used),
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn rows_of_both_layouts() {
        let (row, _) = read(OLD, Some(AT));
        assert_eq!(
            (row.comm.as_str(), row.tid, row.threads),
            ("kworker/9:1-eve", Some(211650), None)
        );
        assert_eq!((row.runtime_ns, row.switches), (2_643_633_000, 53689));
        assert_eq!((row.delay_mean_ns, row.delay_max_ns), (3_000, 2_335_000));
        assert_eq!(
            (row.delay_max_start_ns, row.delay_max_at_ns),
            (None, Some(910_801_817_809_000))
        );
        let (row, _) = read(NEW, None);
        assert_eq!(
            (row.comm.as_str(), row.tid, row.threads),
            ("CPU 1/KVM", None, Some(2))
        );
        assert_eq!(row.delay_max_start_ns, Some(83_045_449_000));
        assert_eq!(row.delay_max_at_ns, Some(83_060_638_000));
    }

    #[test]
    fn names_may_hold_anything() {
        for name in [":12373", "a|b", "| 1.000 m", "a: b", "-:", "名"] {
            let text =
                format!("  {name}:7 |  2.5 ms | 3 | avg: 0.1 ms | max: 0.2 ms | max at: 1.0 s");
            assert_eq!(read(&text, Some(AT)).0.comm, name);
        }
        let wiki = SchedHeading {
            at: true,
            barred: true,
        };
        let text =
            "| sh:586 | 57.582 ms | 6 | avg: 0.051 ms | max: 0.134 ms | max at: 82.029801 s |";
        assert_eq!(read(text, Some(wiki)).0.comm, "sh");
        assert_eq!(read(text, None).0.comm, "sh");
    }

    #[test]
    fn without_a_delay_there_is_no_time_of_it() {
        let text = "sshd:1 | 0.932 ms | 1 | avg: 0.000 ms | max: 0.000 ms | max at: 0.000000 s";
        assert_eq!(read(text, Some(AT)).0.delay_max_at_ns, None);
    }

    #[test]
    fn a_row_broken_anywhere_is_the_same_row() {
        for (text, header) in [(OLD, Some(AT)), (NEW, Some(AT))] {
            let (want, _) = read(text, header);
            for at in text.find("ms |").unwrap() + 4..text.len() {
                let (a, b) = text.split_at(at);
                if b.trim().is_empty() {
                    continue;
                }
                let (row, used) = read(&format!("{}\n{b}", a.trim_end()), header);
                assert_eq!((&row, used), (&want, 2), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn a_row_cut_off_gives_what_is_left() {
        for end in [OLD.find("| max at").unwrap(), OLD.len() - 2] {
            let (row, used) = read(&format!("{}\n{NEW}", &OLD[..end]), Some(AT));
            assert_eq!(
                (row.switches, row.delay_max_ns, used),
                (53689, 2_335_000, 1)
            );
        }
    }

    #[test]
    fn headings_of_all_versions() {
        let old = "  Task | Runtime ms  | Switches | Average delay ms | Maximum delay ms | Maximum delay at       |";
        assert_eq!(header(&lines(old)), Some((AT, 1)));
        let older = "  Task | Runtime ms  | Switches | Average delay ms | Maximum delay ms |";
        assert_eq!(
            header(&lines(older)),
            Some((
                SchedHeading {
                    at: false,
                    barred: false
                },
                1
            ))
        );
        let new = "Task | Runtime ms  |  Count   | Avg delay ms    |\nMax delay ms    | Max delay start | Max delay \
            end |";
        assert_eq!(header(&lines(new)), Some((AT, 2)));
        let code =
            "printf(\"  Task | Runtime ms  | Switches | Average delay ms | Maximum delay ms |\");";
        assert_eq!(header(&lines(code)), None);
    }
}
