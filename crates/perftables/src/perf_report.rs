//! Shares of samples: `perf report --stdio`, `perf kvm report`, `perf top`, and what is copied out of their browser.

use forms::InputForm;

use crate::lines::CleanLine;
use crate::number::count;
use crate::open::{MAX_ROWS, too_many};
use crate::perf_report_hierarchy::ShareTree;
use crate::perf_report_row::{ShareColumns, bare_row, heading as columns_of, row, shares};
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{PerfTable, SampledShare, SampledShares, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "perf report, perf top",
    recognised_by: "the heading `Overhead` or `Children Self` with titles of columns, `Samples: N of event '...'` \
                    before it; rows of a share, a task, a file and a function with its mark (`[k]`, `[.]`, `[g]`), \
                    or with the shares of all modes, which add up",
    yields: "shares of one event's samples, by task, file and function; a hierarchy's leaves; of a \
             group of events the first; call graphs are passed over",
    fixtures: &[
        "tests/tables/perf-report-6.1.txt",
        "tests/tables/perf-report-children-6.1.txt",
        "tests/tables/perf-report-newest.txt",
        "tests/tables/perf-report-columns.txt",
        "tests/tables/perf-report-hierarchy-6.1.txt",
        "tests/tables/perf-report-hierarchy-counts-6.1.txt",
        "tests/tables/perf-report-group-6.1.txt",
        "tests/tables/perf-report-group-children-6.1.txt",
        "tests/tables/perf-top-browser.txt",
        "tests/tables/perf-top-stdio.txt",
        "tests/tables/case4-vhost.perf-kvm-report.txt",
        "tests/tables/case4-vhost.perf-kvm-report-idle.txt",
        "tests/tables/case4-virtio.perf-kvm-report.txt",
    ],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: Some(first_row),
};

fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let mut open = OpenShares::default();
    let text = bare(&view.first()?.text);
    if is_begun(&view.first()?.text) {
        open.broken_heading = true;
    } else if !open.preface(text) {
        open.columns = Some(columns_of(text)?);
    }
    open.group = open.group.max(1);
    Some((Box::new(open), 1))
}

fn first_row(view: &[CleanLine]) -> Option<TableBeginning> {
    let mut open = OpenShares::default();
    let first = view.first()?;
    open.push(bare_row(&first.text, first.number)?);
    Some((Box::new(open), 1))
}

/// Lines that are no rows, in a row, after which a table with a heading is over.
const PATIENCE: u32 = 6;
/// Lines that a row may be broken into: each of its shares, its task and its function on one.
const PIECES: usize = 9;
/// Characters behind shares that may be a row's.
const MAX_REST: usize = 120;

/// Returns a line without the mark of comments.
fn bare(text: &str) -> &str {
    text.trim_start_matches(['#', ' ', '\t']).trim_end()
}

/// Whether a line only belongs to perf's layout: `#`, the dots below the titles, its tips, what it says of headers.
fn is_layout(text: &str) -> bool {
    let inner = bare(text);
    // Bullets are what is read of a picture.
    let dots = !inner.is_empty()
        && inner
            .chars()
            .all(|c| matches!(c, '.' | '\u{2022}' | '#' | ' ' | '\t'));
    text.trim_start().starts_with('#') && inner.is_empty()
        || dots
        || inner.starts_with("(Tip: ")
        || is_header(inner)
}

fn is_header(inner: &str) -> bool {
    inner.starts_with("To display the perf.data header info")
}

/// Whether a line is the beginning of a heading that was broken, as what is read of a picture is.
fn is_begun(text: &str) -> bool {
    text.trim_start().starts_with('#') && bare(text) == "Overhead"
}

/// Whether a line is titles of columns and nothing else; letters may be misread.
fn is_titles(text: &str) -> bool {
    let titles = [
        "sys", "SVS", "usr", "guest", "quest", "Command", "Shared", "Object", "Symbol",
    ];
    let mut words = text.split_whitespace().peekable();
    words.peek().is_some() && words.all(|word| titles.contains(&word))
}

/// Whether a line belongs to a call graph (`ui/stdio/hist.c`): branches with their shares, bars, callers below.
fn is_graph(text: &str) -> bool {
    let inner = text.trim_start();
    let branch = inner.trim_start_matches('|').trim_start();
    let blanks = text.bytes().take(text.len() - inner.len());
    let columns: usize = blanks.map(|byte| if byte == b'\t' { 8 } else { 1 }).sum();
    let indented = columns >= 8;
    inner.starts_with('|')
        || branch.starts_with("--")
        || branch.starts_with("|--")
        || indented
            && !inner.contains("  ")
            && !inner.starts_with(|c: char| c.is_ascii_digit() && inner.contains('%'))
}

/// A table under way.
#[derive(Debug, Default)]
struct OpenShares {
    event: Option<String>,
    /// Events of the group that it is of.
    group: usize,
    tree: ShareTree,
    samples: Option<u64>,
    event_count: Option<u64>,
    lost: Option<u64>,
    /// Whether something of what perf prints before the heading was read.
    begun: bool,
    columns: Option<ShareColumns>,
    /// Whether its heading was broken, so that rows alone show what their columns are.
    broken_heading: bool,
    rows: Vec<SampledShare>,
    beyond: u64,
    /// Lines of a row that is not whole yet.
    broken: Vec<(u64, String)>,
    /// Rows that could not be read, and the first one's line.
    unread: (u64, u64),
}

impl OpenShares {
    fn push(&mut self, row: SampledShare) {
        if self.rows.len() < MAX_ROWS {
            self.rows.push(row);
        } else {
            self.beyond += 1;
        }
    }

    /// Takes a line of those before the heading. Returns whether it is one.
    fn preface(&mut self, inner: &str) -> bool {
        let known =
            is_header(inner) || self.lost(inner) || self.samples(inner) || self.count(inner);
        self.begun |= known;
        known
    }

    /// `Total Lost Samples: 0`.
    fn lost(&mut self, inner: &str) -> bool {
        let lost = inner
            .strip_prefix("Total Lost Samples:")
            .and_then(|rest| count(rest.trim()));
        self.lost = lost.or(self.lost);
        lost.is_some()
    }

    /// `Samples: 2K of event 'cycles:ppp'`, in the browser with what stands on the next line of `--stdio`; and
    /// `PerfTop: 1158 irqs/sec ... [4000Hz cycles],  (all, 8 CPUs)`.
    fn samples(&mut self, inner: &str) -> bool {
        if let Some(rest) = inner.strip_prefix("PerfTop:") {
            let event = rest
                .split_once('[')
                .and_then(|(_, event)| event.split_once(']'));
            let event = event.and_then(|(event, _)| event.split_whitespace().last());
            self.event = event.map(str::to_owned);
            return rest.contains("irqs/sec");
        }
        let Some(rest) = inner.strip_prefix("Samples:") else {
            return false;
        };
        let rest = rest.trim_start();
        let Some((samples, rest)) = rest.split_once("of event") else {
            return false;
        };
        let Some(samples) = rounded(samples.trim()) else {
            return false;
        };
        let mut quoted = rest.split(['\'', '\u{2018}', '\u{2019}', '"']);
        let names: Vec<&str> = events(quoted.nth(1).unwrap_or_default());
        self.event = names.first().map(|name| (*name).to_owned());
        self.group = names.len().max(1);
        self.samples = Some(samples);
        let behind = quoted.collect::<Vec<_>>().join("'");
        if let Some((_, more)) = behind.split_once("Event count") {
            self.count(&format!("Event count{more}"));
        }
        true
    }

    /// `Event count (approx.): 23777777540`.
    fn count(&mut self, inner: &str) -> bool {
        let Some(rest) = inner.strip_prefix("Event count (approx.):") else {
            return false;
        };
        let value = rest
            .split_whitespace()
            .next()
            .and_then(|word| count(word.trim_end_matches(',')));
        self.event_count = value.or(self.event_count);
        value.is_some()
    }

    fn read(&self, text: &str, line: u64) -> Option<SampledShare> {
        match &self.columns {
            Some(columns) => row(text, line, columns),
            None => bare_row(text, line),
        }
    }

    /// Gives up a row that never became whole.
    fn give_up(&mut self) {
        if let Some((line, _)) = self.broken.first() {
            self.unread.0 += 1;
            if self.unread.1 == 0 {
                self.unread.1 = *line;
            }
            self.broken.clear();
        }
    }

    /// Takes a line that is the end of a broken row, or the beginning of one.
    fn piece(&mut self, line: &CleanLine) -> bool {
        let text = line.text.trim();
        let (parts, rest) = shares(text);
        let begins = !parts.is_empty() && rest.chars().count() < MAX_REST;
        if self.broken.is_empty() && !begins {
            return false;
        }
        self.broken.push((line.number, text.to_owned()));
        // Where what was read of a picture is out of order, the first lines may be another row's.
        for from in 0..self.broken.len() {
            let Some(pieces) = self.broken.get(from..).filter(|pieces| pieces.len() > 1) else {
                break;
            };
            if let Some(row) = self.joined(pieces) {
                self.broken.truncate(from);
                self.give_up();
                self.push(row);
                return true;
            }
        }
        // Text behind shares ends a row, but for what a mailer broke between its words.
        let is_end = self.broken.len() > 1 && !rest.is_empty();
        if is_end || self.broken.len() > PIECES {
            self.broken.pop();
            self.give_up();
            if begins {
                self.broken.push((line.number, text.to_owned()));
            }
            return begins;
        }
        true
    }

    /// Returns the row that several lines are. Shares on lines of their own are one only if they can be checked, as
    /// those of all modes, which add up, and what they are of stands behind the last of them: on a line of its own it
    /// may be the next row's.
    fn joined(&self, pieces: &[(u64, String)]) -> Option<SampledShare> {
        let (line, first) = pieces.first()?;
        let (_, last) = pieces.last()?;
        let texts: Vec<&str> = pieces.iter().map(|(_, text)| text.as_str()).collect();
        let text_first = !shares(first).1.is_empty();
        let is_share = !shares(last).0.is_empty();
        let whole = [texts.join(" "), texts.concat()];
        let row = whole.iter().find_map(|text| self.read(text, *line));
        row.filter(|row| row.own > 0.0 && (text_first || row.modes.is_some() && is_share))
    }
}

impl OpenTable for OpenShares {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        let first = view.first()?;
        let inner = bare(&first.text);
        let headed = self.columns.is_some() || self.broken_heading;
        let has_heading = headed || !self.rows.is_empty();
        if self.broken_heading && is_titles(&first.text) {
            return Some(1);
        }
        if is_begun(&first.text) {
            return None;
        }
        if let Some(columns) = columns_of(inner) {
            if has_heading {
                return None;
            }
            self.columns = Some(ShareColumns {
                group: self.group,
                ..columns
            });
            return Some(1);
        }
        if is_layout(&first.text) {
            return (!has_heading || !is_header(inner)).then_some(1);
        }
        let mut next = OpenShares::default();
        if next.preface(inner) {
            // Of the next event.
            return (!has_heading && self.preface(inner)).then_some(1);
        }
        if let Some(columns) = self.columns.as_ref().filter(|columns| columns.hierarchy) {
            let rows = self.tree.line(&first.text, first.number, columns)?;
            rows.into_iter().for_each(|row| self.push(row));
            return Some(1);
        }
        if let Some(row) = self.read(&first.text, first.number) {
            self.give_up();
            self.push(row);
            return Some(1);
        }
        if !self.rows.is_empty() && self.broken.is_empty() && is_graph(&first.text) {
            return Some(1);
        }
        (headed && self.piece(first)).then_some(1)
    }

    fn patience(&self) -> u32 {
        // Without a heading nothing says that what follows is of the same table.
        match self.columns.is_some() || self.broken_heading {
            true => PATIENCE,
            false => 0,
        }
    }

    fn close(
        mut self: Box<Self>,
        place: TablePlace,
        notes: &mut Vec<TableNote>,
    ) -> Option<PerfTable> {
        self.give_up();
        let last = self.tree.end(0);
        last.into_iter().for_each(|row| self.push(row));
        if self.group > 1 {
            let event = self.event.as_deref().unwrap_or_default();
            let text = format!(
                "Of a group of {} events the shares of the first, {event}, are read.",
                self.group
            );
            notes.push(TableNote {
                line: place.line,
                text,
            });
        }
        too_many(place.line, self.beyond, notes);
        let (unread, line) = self.unread;
        if unread > 0 {
            let text = words::counted(
                unread,
                "row of perf report could not be read, as it is broken.",
                "rows of perf report could not be read, as they are broken.",
            );
            notes.push(TableNote { line, text });
        }
        if self.rows.is_empty() {
            return None;
        }
        Some(PerfTable::SampledShares(SampledShares {
            line: place.line,
            label: place.label.filter(|label| !is_of_perf(label)),
            event: self.event,
            samples: self.samples,
            event_count: self.event_count,
            lost_samples: self.lost,
            rows: self.rows,
            unread,
        }))
    }
}

/// Returns the events that a heading names: one, or those of a group, `anon group { cpu-clock, page-faults }`.
fn events(text: &str) -> Vec<&str> {
    let inner = text
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'));
    match inner {
        Some((inner, _)) => inner.split(',').map(str::trim).collect(),
        None => Some(text)
            .filter(|text| !text.is_empty())
            .into_iter()
            .collect(),
    }
}

/// Whether a line before the table is what perf says of the recording or of symbols, and nobody's heading.
fn is_of_perf(label: &str) -> bool {
    // The last is the end of a command line that was broken.
    let starts = [
        "No kallsyms",
        "missing features",
        "unwind:",
        "contains ",
        "cmdline :",
        "[",
        "show-cpu-utilization",
    ];
    starts.iter().any(|start| label.starts_with(start))
}

/// Reads how many samples there are: `960`, `123K`, `2M`, of which the rest is cut off (`convert_unit`,
/// `tools/perf/util/units.c`).
fn rounded(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(digits) if text.ends_with('K') => (digits, 1_000),
        Some(digits) if text.ends_with('M') => (digits, 1_000_000),
        Some(digits) => (digits, 1_000_000_000),
        None => (text, 1),
    };
    count(digits)?.checked_mul(unit)
}
