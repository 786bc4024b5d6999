//! Rows of `perf report`, and its heading.
//!
//! After `tools/perf/ui/hist.c` (the columns of shares and their order), `ui/stdio/hist.c` and `util/sort.c` (titles
//! of the others) of Linux 4.4 to 6.12.

use std::borrow::Cow;

use crate::number::{count, share};
use crate::types::{ModeShares, SampledShare};

/// A column that is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextColumn {
    Command,
    /// `Pid:Command`, `Tid:Command`.
    IdCommand,
    Object,
    Symbol,
    /// What is not looked at: a CPU, a line of source code.
    Other,
}

/// The columns of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShareColumns {
    /// Whether there is a column `Children` before the own shares.
    pub callees: bool,
    /// Whether there are those of the CPUs' modes.
    pub modes: bool,
    /// Whole numbers behind the shares, and which of them is that of samples.
    pub counts: usize,
    pub samples: Option<usize>,
    pub texts: Vec<TextColumn>,
    /// Whether the text is a tree's, with a level for each of `texts`.
    pub hierarchy: bool,
    /// Events of a group, each with a column of every share and number.
    pub group: usize,
}

/// Shares of a row at most: a group may have some for each event.
const MAX_SHARES: usize = 64;
/// Characters of a task's name at most (`TASK_COMM_LEN` of the kernel, with the end mark 16), and some for an id.
const MAX_COMM: usize = 15;
/// Shares add up to their sum within the rounding of each.
const ROUNDING: f64 = 0.000_31;

/// The titles, longest first where one begins as another.
const TITLES: [(&str, Option<TextColumn>); 16] = [
    ("Command", Some(TextColumn::Command)),
    ("Pid:Command", Some(TextColumn::IdCommand)),
    ("Tid:Command", Some(TextColumn::IdCommand)),
    ("Shared Object", Some(TextColumn::Object)),
    ("Object", Some(TextColumn::Object)),
    ("Symbol", Some(TextColumn::Symbol)),
    ("Parent symbol", Some(TextColumn::Other)),
    ("Source:Line", Some(TextColumn::Other)),
    ("CPU", Some(TextColumn::Other)),
    ("Socket", Some(TextColumn::Other)),
    ("Time", Some(TextColumn::Other)),
    ("Cgroup", Some(TextColumn::Other)),
    ("IPC   [IPC Coverage]", Some(TextColumn::Other)),
    ("Samples", None),
    ("Period", None),
    ("Weight", None),
];

/// Reads a heading: `# Overhead  Command  Shared Object  Symbol`, with or without the mark.
pub(crate) fn heading(text: &str) -> Option<ShareColumns> {
    let words: Vec<&str> = text
        .trim_start_matches(['#', ' ', '\t'])
        .split_whitespace()
        .collect();
    // The digit is what is read of a picture.
    let rest = match words.split_first()? {
        (&"Children", rest) => rest.strip_prefix(&["Self"])?,
        (&("Overhead" | "0verhead"), rest) => rest,
        _ => return None,
    };
    let mut columns = ShareColumns {
        callees: words[0] == "Children",
        group: 1,
        ..ShareColumns::default()
    };
    let mut rest = rest;
    if let Some(more) = rest.strip_prefix(&["sys", "usr"]) {
        // Without --guest there are those of the host alone.
        rest = more.strip_prefix(&["guest", "sys", "guest", "usr"])?;
        columns.modes = true;
    }
    while !rest.is_empty() {
        // `Command / Shared Object / Symbol`
        if let Some(more) = rest
            .strip_prefix(&["/"])
            .filter(|_| !columns.texts.is_empty())
        {
            columns.hierarchy = true;
            rest = more;
        }
        let title = TITLES.iter().find_map(|(title, column)| {
            let words: Vec<&str> = title.split_whitespace().collect();
            Some((rest.strip_prefix(&words[..])?, *title, *column))
        });
        let (more, title, column) = title?;
        match column {
            Some(column) => columns.texts.push(column),
            // Numbers stand before the text.
            None if !columns.texts.is_empty() => return None,
            None => {
                columns.samples = columns
                    .samples
                    .or((title == "Samples").then_some(columns.counts));
                columns.counts += 1;
            }
        }
        rest = more;
    }
    let looked_at = columns.texts.iter().any(|text| *text != TextColumn::Other);
    looked_at.then_some(columns)
}

/// Takes the shares that a text begins with, each with two digits behind the point as perf prints it.
pub(crate) fn shares(text: &str) -> (Vec<f64>, &str) {
    let mut rest = unfolded(text);
    let mut out = Vec::new();
    while let Some((word, more)) = first_word(rest)
        && let Some(part) = printed_share(word)
        && out.len() < MAX_SHARES
    {
        out.push(part);
        rest = more;
    }
    (out, rest.trim())
}

/// Returns a line without the mark of perf's browser, by which a row's calls are shown or hidden.
fn unfolded(text: &str) -> &str {
    let text = text.trim();
    let bare = text.strip_prefix(['+', '-']);
    bare.filter(|bare| bare.starts_with([' ', '\t']))
        .map_or(text, str::trim_start)
}

pub(crate) fn first_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Reads `12.34%` or `12,34%`, up to 100.00%.
fn printed_share(word: &str) -> Option<f64> {
    let (_, digits) = word.strip_suffix('%')?.rsplit_once(['.', ','])?;
    // As near to what is printed as a number can be.
    let part = (share(word)? * 10_000.0).round() / 10_000.0;
    (digits.len() == 2 && part <= 1.0).then_some(part)
}

/// Returns a line without tags of a page, which stand around some columns.
fn untagged(text: &str) -> Cow<'_, str> {
    match text.contains("pre>") {
        true => Cow::Owned(text.replace("<pre>", "").replace("</pre>", "")),
        false => Cow::Borrowed(text),
    }
}

/// Reads a row whose columns are known.
pub(crate) fn row(text: &str, line: u64, columns: &ShareColumns) -> Option<SampledShare> {
    let text = untagged(text);
    let (parts, mut rest) = shares(&text);
    let wanted = 1 + usize::from(columns.callees) + if columns.modes { 4 } else { 0 };
    // Of a group the first event leads.
    let group = columns.group.max(1);
    if parts.len() != wanted * group {
        return None;
    }
    let parts: Vec<f64> = parts.iter().step_by(group).copied().collect();
    let mut row = of_shares(&parts, columns.callees, columns.modes, line)?;
    for number in 0..columns.counts * group {
        let (word, more) = first_word(rest)?;
        let value = count(word)?;
        if columns.samples.map(|samples| samples * group) == Some(number) {
            row.samples = Some(value);
        }
        rest = more;
    }
    texts(&mut row, rest.trim(), &columns.texts)?;
    Some(row)
}

/// Reads a row that no heading stands above: with the mark before its symbol, or with the shares of all modes, which
/// add up. Nothing else looks so.
pub(crate) fn bare_row(text: &str, line: u64) -> Option<SampledShare> {
    let text = untagged(text);
    let (parts, rest) = shares(&text);
    let (callees, modes) = match parts.len() {
        1 => (false, false),
        2 => (true, false),
        5 => (false, true),
        6 => (true, true),
        _ => return None,
    };
    let row = of_shares(&parts, callees, modes, line)?;
    if marked(rest).is_none() {
        // sed takes the mark away.
        let (comm, symbol) = match pieces(rest)[..] {
            [comm] => (comm, None),
            [comm, symbol] => (comm, Some(symbol)),
            _ => return None,
        };
        let is_named = symbol.is_none_or(|symbol| !symbol.contains(' '));
        return (modes && is_comm(comm) && is_named).then(|| SampledShare {
            comm: Some(comm.to_owned()),
            symbol: symbol.map(str::to_owned),
            ..row
        });
    }
    let object = [TextColumn::Object, TextColumn::Symbol];
    let both = [TextColumn::Command, TextColumn::Object, TextColumn::Symbol];
    // Words before a file may be prose.
    let is_word = |row: &SampledShare| {
        let object = row.object.as_deref().unwrap_or_default();
        object.starts_with('[') || !object.contains(' ')
    };
    [&both[..], &object].into_iter().find_map(|columns| {
        let mut row = row.clone();
        texts(&mut row, rest, columns)?;
        is_word(&row).then_some(row)
    })
}

/// Makes a row of its shares, if they go together.
fn of_shares(parts: &[f64], callees: bool, modes: bool, line: u64) -> Option<SampledShare> {
    let (with_callees, parts) = match callees {
        true => (Some(*parts.first()?), parts.get(1..)?),
        false => (None, parts),
    };
    let (own, parts) = parts.split_first()?;
    if with_callees.is_some_and(|all| all + ROUNDING < *own) {
        return None;
    }
    let modes = match (modes, parts) {
        (true, [sys, usr, guest_sys, guest_usr]) => Some(ModeShares {
            sys: *sys,
            usr: *usr,
            guest_sys: *guest_sys,
            guest_usr: *guest_usr,
        }),
        (false, []) => None,
        _ => return None,
    };
    let adds_up = modes.is_none_or(|modes| {
        let sum = modes.all();
        (sum - own).abs() <= ROUNDING
    });
    adds_up.then_some(SampledShare {
        line,
        own: *own,
        with_callees,
        modes,
        samples: None,
        comm: None,
        id: None,
        object: None,
        symbol: None,
        level: None,
    })
}

/// Reads the columns of text.
fn texts(row: &mut SampledShare, rest: &str, columns: &[TextColumn]) -> Option<()> {
    let mut pieces = pieces(rest);
    if pieces.len() != columns.len() || !fits(&pieces, columns) {
        pieces = by_marks(rest, columns)?;
    }
    if !fits(&pieces, columns) {
        return None;
    }
    for (piece, column) in pieces.iter().zip(columns) {
        let text = || Some((*piece).to_owned());
        match column {
            TextColumn::Command => row.comm = text(),
            TextColumn::IdCommand => {
                let (id, comm) = piece.split_once(':')?;
                row.id = Some(id.trim().parse().ok()?);
                row.comm = Some(comm.to_owned());
            }
            TextColumn::Object => row.object = text(),
            TextColumn::Symbol => match level(piece) {
                Some((level, symbol)) => {
                    row.level = Some(level);
                    row.symbol = Some(symbol.to_owned());
                }
                None => row.symbol = text(),
            },
            TextColumn::Other => {}
        }
    }
    Some(())
}

/// Whether pieces may be of such columns.
fn fits(pieces: &[&str], columns: &[TextColumn]) -> bool {
    let fit = |(piece, column): (&&str, &TextColumn)| match column {
        TextColumn::Command => is_comm(piece),
        TextColumn::IdCommand => piece.split_once(':').is_some_and(|(id, comm)| {
            count(id.trim()).is_some() && (comm.is_empty() || is_comm(comm))
        }),
        TextColumn::Object => is_object(piece),
        TextColumn::Symbol => match level(piece) {
            Some((_, symbol)) => !symbol.is_empty(),
            // Prose has blanks.
            None => !piece.contains(' '),
        },
        TextColumn::Other => true,
    };
    pieces.len() == columns.len() && pieces.iter().zip(columns).all(fit)
}

fn is_comm(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= MAX_COMM && !text.contains(['%', '['])
}

/// Whether a text may name a file: its path may have blanks, but no columns.
fn is_object(text: &str) -> bool {
    let bracketed = text.starts_with('[');
    !text.is_empty()
        && !text.contains("  ")
        && !text.contains('%')
        && (bracketed || !text.contains("] "))
}

/// Cuts a text where two blanks or a tab stand, as perf keeps columns apart.
fn pieces(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let gap = [rest.find("  "), rest.find('\t')]
            .into_iter()
            .flatten()
            .min();
        let (piece, more) = rest.split_at(gap.unwrap_or(rest.len()));
        out.push(piece.trim_end());
        rest = more.trim_start();
    }
    out
}

/// Returns the mark before a symbol, and the symbol: `[k] do_idle`. Pages may have no blank between.
pub(crate) fn level(text: &str) -> Option<(char, &str)> {
    let mut chars = text.strip_prefix('[')?.chars();
    let level = chars.next().filter(|level| "k.guH!".contains(*level))?;
    let symbol = chars.as_str().strip_prefix(']')?;
    Some((level, symbol.trim_start()))
}

/// Returns where the mark of a symbol stands.
fn marked(text: &str) -> Option<usize> {
    let mut marks = text.match_indices('[').map(|(at, _)| at);
    marks.find(|at| {
        let behind_blank = text[..*at]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
        behind_blank && level(&text[*at..]).is_some()
    })
}

/// Cuts a text in which columns are not kept apart as perf does it: the symbol is what begins with its mark, and the
/// file is one word before it.
fn by_marks<'t>(text: &'t str, columns: &[TextColumn]) -> Option<Vec<&'t str>> {
    use TextColumn::{Command, IdCommand, Object, Symbol};
    let (before, symbol) = match columns.last()? {
        Symbol => {
            let (before, symbol) = text.split_at(marked(text)?);
            // What stands behind two blanks is none of it.
            (before.trim(), Some(pieces(symbol).first().copied()?))
        }
        _ => (text, None),
    };
    let columns = &columns[..columns.len() - usize::from(symbol.is_some())];
    let mut out = match columns {
        [] if before.is_empty() => Vec::new(),
        [Object | Command | IdCommand] => vec![before],
        [Command | IdCommand, Object] => {
            let at = before.rfind(char::is_whitespace)?;
            vec![before[..at].trim_end(), before[at..].trim_start()]
        }
        _ => return None,
    };
    out.extend(symbol);
    Some(out)
}
