//! Lines of a text without what the way into a ticket put into them.

use std::collections::VecDeque;

/// A line with more bytes is cut off there: no table is that wide, and one that was pasted as a line is seldom longer.
pub(crate) const MAX_LINE: usize = 1 << 16;

/// Lines that are looked at together: a row may be broken into so many.
pub(crate) const WINDOW: usize = 3;

/// A line, cleaned.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CleanLine {
    /// Counted from 1.
    pub number: u64,
    pub text: String,
}

/// Lines of a text, with the next ones in view.
pub(crate) struct CleanLines<'a> {
    rest: Option<&'a [u8]>,
    number: u64,
    window: VecDeque<CleanLine>,
    /// Returns the lines that one line is, if it is several.
    unrolls: fn(&str) -> Option<Vec<String>>,
    /// What is left of such a line.
    several: VecDeque<CleanLine>,
    /// The first such line that was too long, so that its end is missing.
    cut: Option<u64>,
    /// Whether the last line was cut off.
    last_is_cut: bool,
}

impl<'a> CleanLines<'a> {
    pub(crate) fn new(text: &'a [u8], unrolls: fn(&str) -> Option<Vec<String>>) -> CleanLines<'a> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        CleanLines {
            rest: Some(text),
            number: 0,
            window: VecDeque::with_capacity(WINDOW),
            unrolls,
            several: VecDeque::new(),
            cut: None,
            last_is_cut: false,
        }
    }

    /// Returns the lines in view: up to [`WINDOW`], the first being the next. Empty at the end.
    pub(crate) fn view(&mut self) -> &[CleanLine] {
        while self.window.len() < WINDOW {
            let Some(line) = self.pull() else { break };
            self.window.push_back(line);
        }
        self.window.make_contiguous()
    }

    /// Returns the first line that is a table and was too long to be read whole.
    pub(crate) fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// Goes on by some lines.
    pub(crate) fn advance(&mut self, lines: usize) {
        for _ in 0..lines.max(1) {
            self.window.pop_front();
        }
    }

    fn pull(&mut self) -> Option<CleanLine> {
        if let Some(line) = self.several.pop_front() {
            return Some(line);
        }
        let line = self.whole()?;
        let Some(rows) = (self.unrolls)(&line.text) else {
            return Some(line);
        };
        let number = line.number;
        if self.last_is_cut {
            self.cut = self.cut.or(Some(number));
        }
        let rows = rows.into_iter().map(|text| CleanLine { number, text });
        self.several.extend(rows);
        self.several.pop_front()
    }

    /// Returns the next line as it stands there.
    fn whole(&mut self) -> Option<CleanLine> {
        let rest = self.rest?;
        // CR alone ends a line too; CR LF is one end.
        let (line, next) = match memchr::memchr2(b'\n', b'\r', rest) {
            Some(at) => {
                let crlf = rest[at] == b'\r' && rest.get(at + 1) == Some(&b'\n');
                (&rest[..at], rest.get(at + 1 + usize::from(crlf)..))
            }
            None => (rest, None),
        };
        self.rest = next.filter(|next| !next.is_empty());
        self.last_is_cut = line.len() > MAX_LINE;
        self.number += 1;
        Some(CleanLine {
            number: self.number,
            text: clean(line),
        })
    }
}

/// Returns a line as other readers of pasted text need it too: without colours, entities, quote marks and odd blanks,
/// and of its first 64 KiB.
pub fn clean_line(line: &[u8]) -> String {
    clean(line)
}

/// Returns a line as text, without colours, entities, quote marks, and with ASCII for its full-width look-alikes.
pub(crate) fn clean(line: &[u8]) -> String {
    let line = &line[..line.len().min(MAX_LINE)];
    pasted::clean(&String::from_utf8_lossy(line)).into_owned()
}

/// Returns the text without blanks.
pub(crate) fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Returns how a row may have been before it was broken into the first `count` lines: directly broken, or between
/// words. Fewer lines than that give nothing.
pub(crate) fn joined(lines: &[CleanLine], count: usize) -> Vec<String> {
    let Some(lines) = lines.get(..count) else {
        return Vec::new();
    };
    let mut whole = vec![String::new()];
    for (i, line) in lines.iter().enumerate() {
        if i == 0 {
            whole[0].push_str(&line.text);
            continue;
        }
        let next = line.text.trim_start();
        let spaced: Vec<String> = whole.iter().map(|w| format!("{w} {next}")).collect();
        for w in &mut whole {
            // A soft line break of mails.
            if w.ends_with('=') {
                w.pop();
            }
            w.push_str(next);
        }
        whole.extend(spaced);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_line_ends_end_lines() {
        let mut lines = CleanLines::new(b"\xef\xbb\xbfa\r\nb\rc\n\nd", |_| None);
        let mut seen = Vec::new();
        while let Some(line) = lines.view().first() {
            seen.push((line.number, line.text.clone()));
            lines.advance(1);
        }
        let want = [(1, "a"), (2, "b"), (3, "c"), (4, ""), (5, "d")];
        assert_eq!(seen, want.map(|(n, t)| (n, t.to_owned())));
    }

    #[test]
    fn broken_lines_join_both_ways() {
        let line = |text: &str| CleanLine {
            number: 1,
            text: text.to_owned(),
        };
        let lines = [line("a 1="), line(" 2 3"), line("4")];
        assert_eq!(joined(&lines, 2), ["a 12 3", "a 1= 2 3"]);
        assert_eq!(joined(&lines, 3).len(), 4);
        assert!(joined(&lines[..1], 2).is_empty());
    }
}
