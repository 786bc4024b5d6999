//! Tables that were pasted as one line, as some editors and chats do: what stands at the end of a row ends a line
//! again.

use crate::stat;

/// Shorter lines are no tables.
const MIN_LINE: usize = 120;
/// A run of so many dashes is one of perf's rulers.
const RULER: usize = 20;

/// Returns the lines of a table that stand in one; none if it is no such line.
pub(crate) fn unrolled(text: &str) -> Option<Vec<String>> {
    if text.len() < MIN_LINE {
        return None;
    }
    let rows = sched_rows(text)
        .or_else(|| kvm_rows(text))
        .or_else(|| stat_rows(text))?;
    let rows: Vec<String> = rows
        .into_iter()
        .map(|row| row.trim().to_owned())
        .filter(|row| !row.is_empty())
        .collect();
    (rows.len() > 1).then_some(rows)
}

/// Cuts a text behind each place.
fn cut(text: &str, mut places: Vec<usize>) -> Vec<&str> {
    places.sort_unstable();
    places.dedup();
    let mut from = 0;
    let mut out = Vec::with_capacity(places.len() + 1);
    for place in places {
        if place > from && place < text.len() {
            out.push(&text[from..place]);
            from = place;
        }
    }
    out.push(&text[from..]);
    out
}

/// `perf sched latency`: rows end with the longest delay, or with its time (`max at: 910804.377561 s`); rulers stand
/// around the heading. A row of totals ends with the switches.
fn sched_rows(text: &str) -> Option<Vec<&str>> {
    let ends = ["max at:", "max end:"];
    let timed = ends.iter().any(|end| text.contains(end));
    let rows = text.matches("avg:").count();
    if rows < 1 || text.matches('|').count() < 8 || !text.contains("max:") {
        return None;
    }
    let mut places = Vec::new();
    for end in if timed { &ends[..] } else { &["max:"] } {
        for (at, _) in text.match_indices(end) {
            places.extend(behind_unit(text, at + end.len()));
        }
    }
    places.extend(text.match_indices("TOTAL:").map(|(at, _)| at));
    // The rulers are lines of their own.
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let run = bytes[at..].iter().take_while(|byte| **byte == b'-').count();
        if run >= RULER {
            places.extend([at, at + run]);
        }
        at += run.max(1);
    }
    Some(cut(text, places))
}

/// Returns where a number and its unit end, and the bar behind them.
fn behind_unit(text: &str, from: usize) -> Option<usize> {
    let rest = &text[from..];
    let number = rest.trim_start();
    let digits = number.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let unit = number[digits..].trim_start();
    let letters = unit
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(unit.len());
    let end = text.len() - unit[letters..].len();
    let bar = text[end..].trim_start();
    Some(match bar.strip_prefix('|') {
        Some(more) => text.len() - more.len(),
        None => end,
    })
}

/// `perf kvm stat`: rows end with `( +-  13.51% )`, the heading with `Avg time`.
fn kvm_rows(text: &str) -> Option<Vec<&str>> {
    if !text.contains("+-") || !text.contains("us") || !text.contains('%') {
        return None;
    }
    let mut places: Vec<usize> = Vec::new();
    for (at, _) in text.match_indices("+-") {
        // The parenthesis is closed soon.
        let close = text[at..].char_indices().take(24).find(|(_, c)| *c == ')');
        places.extend(close.map(|(len, _)| at + len + 1));
    }
    if places.len() < 2 {
        return None;
    }
    let heading = text
        .match_indices("Avg time")
        .map(|(at, word)| at + word.len());
    places.extend(heading);
    for word in [
        "VM-EXIT",
        "Total Samples",
        "unknown kvm exit code",
        "Analyze events",
    ] {
        places.extend(text.match_indices(word).map(|(at, _)| at));
    }
    Some(cut(text, places))
}

/// `perf stat`: a whole number and the name of an event begin a row.
fn stat_rows(text: &str) -> Option<Vec<&str>> {
    let mut words = Vec::new();
    let mut from = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (c.is_whitespace(), from) {
            (false, None) => from = Some(at),
            (true, Some(start)) => {
                words.push((start, &text[start..at]));
                from = None;
            }
            _ => {}
        }
    }
    let mut places = Vec::new();
    let mut events = 0;
    for (at, pair) in words.windows(2).enumerate() {
        let [(start, number), (_, event)] = *pair else {
            continue;
        };
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let is_metric = before.is_some_and(|(_, word)| *word == "#");
        if is_count(number) && !is_metric && is_event(event) {
            events += 1;
            places.push(start);
        } else if event == "seconds" && number.contains('.') {
            places.push(start);
        }
    }
    let bar = |row: &&str| row.trim() != "|";
    let rows = || {
        cut(text, places)
            .into_iter()
            .map(|row| row.trim_end_matches(['|', ' ']))
    };
    (events >= 2).then(|| rows().filter(bar).collect())
}

/// Whether a word is a whole number, with marks between its groups or without.
fn is_count(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let marks = word
        .bytes()
        .filter(|byte| matches!(byte, b',' | b'\''))
        .count();
    digits > 0 && digits + marks == word.len() && word.as_bytes()[0].is_ascii_digit()
}

/// Whether a word may be an event: one of perf's, or a tracepoint.
fn is_event(word: &str) -> bool {
    let tracepoint = word.split_once(':').is_some_and(|(system, name)| {
        let part = |text: &str| {
            let mut chars = text.chars();
            chars.next().is_some_and(|c| c.is_ascii_lowercase())
                && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        part(system) && part(name)
    });
    tracepoint || stat::is_known(word)
}
