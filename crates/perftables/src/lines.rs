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
    let text = String::from_utf8_lossy(line);
    // Most lines are as a tool printed them, and a text may have millions.
    if line
        .iter()
        .all(|byte| matches!(byte, b'\t' | b' '..=b'~') && *byte != b'&')
    {
        return unquoted(&text).trim_end().to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        let skip = match c {
            '\u{1b}' => escape_chars(&text[at..]),
            '&' => match entity(&text[at..]) {
                Some((c, len)) => {
                    out.push(c);
                    len - 1
                }
                None => {
                    out.push('&');
                    0
                }
            },
            c => {
                out.extend(plain(c));
                0
            }
        };
        for _ in 0..skip {
            chars.next();
        }
    }
    if !out.is_ascii() {
        out = plain_blanks(&out);
    }
    let kept = unquoted(&out);
    if kept.len() < out.len() {
        out.drain(..out.len() - kept.len());
    }
    out.truncate(out.trim_end().len());
    out
}

/// Returns the text without blanks.
pub(crate) fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Returns whether a character is a blank that does not break, or a narrow one, which stand between groups of digits
/// in some languages.
pub(crate) fn is_group_blank(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{202f}' | '\u{2009}')
}

/// Returns the text with plain blanks for those that do not stand between groups of digits.
fn plain_blanks(text: &str) -> String {
    let mut digit = false;
    let plain = text.char_indices().map(|(at, c)| {
        let groups = std::mem::replace(&mut digit, c.is_ascii_digit()) && is_group_blank(c) && {
            let rest = &text[at + c.len_utf8()..];
            rest.bytes().take_while(u8::is_ascii_digit).count() == 3
        };
        if c.is_whitespace() && c != '\t' && !groups {
            ' '
        } else {
            c
        }
    });
    plain.collect()
}

/// Returns what a character stands for; nothing if it takes no room.
fn plain(c: char) -> Option<char> {
    Some(match c {
        '\t' => '\t',
        // Zero-width characters and the byte order mark.
        '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' => return None,
        '\0'..='\u{1f}' | '\u{7f}' => return None,
        // Full-width forms of ASCII, without the comma, which is a sign of prose.
        '\u{ff0c}' => c,
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        // Hyphens and dashes.
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        // Lines of boxes.
        '\u{2502}' | '\u{2503}' => '|',
        '\u{2500}' | '\u{2501}' => '-',
        c => c,
    })
}

/// Returns the text without the marks that mailers, forums and terminals put before lines.
fn unquoted(text: &str) -> &str {
    let mut rest = text;
    while let Some(inner) = rest.trim_start().strip_prefix('>') {
        rest = inner;
    }
    // What a terminal shows of an interrupt.
    rest.strip_prefix("^C").unwrap_or(rest)
}

/// Returns how many characters of a terminal's escape sequence follow the escape.
fn escape_chars(text: &str) -> usize {
    let mut chars = text.chars().skip(1);
    match chars.next() {
        Some('[') => 2 + chars.take_while(|c| ('\x20'..'\x40').contains(c)).count(),
        Some(']') => {
            1 + chars
                .take(80)
                .position(|c| c == '\x07')
                .map_or(0, |at| at + 1)
        }
        Some(_) => 1,
        None => 0,
    }
}

const ENTITIES: [(&str, char); 10] = [
    ("&gt;", '>'),
    ("&lt;", '<'),
    ("&amp;", '&'),
    ("&nbsp;", '\u{a0}'),
    ("&quot;", '"'),
    ("&apos;", '\''),
    ("&plusmn;", '\u{b1}'),
    ("&micro;", '\u{b5}'),
    ("&percnt;", '%'),
    ("&vert;", '|'),
];

/// Reads an entity of HTML. Returns its character and its length, which is ASCII.
fn entity(text: &str) -> Option<(char, usize)> {
    if let Some((name, c)) = ENTITIES.iter().find(|(name, _)| text.starts_with(name)) {
        return Some((*c, name.len()));
    }
    let body = text.strip_prefix("&#")?;
    let end = body.bytes().take(8).position(|b| b == b';')?;
    let code = match body[..end].strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => body[..end].parse().ok()?,
    };
    let c = char::from_u32(code).filter(|c| !c.is_control())?;
    Some((c, end + 3))
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

    #[track_caller]
    fn cleaned(line: &str, want: &str) {
        assert_eq!(clean(line.as_bytes()), want);
    }

    #[test]
    fn pasted_characters_become_those_printed() {
        cleaned("> > a\tb \u{200b}", " a\tb");
        cleaned("&gt; 1&nbsp;2 &amp; &#37; &x;", " 1 2 & % &x;");
        cleaned(
            "a\u{a0}1\u{202f}234\u{a0}567\u{a0}89",
            "a 1\u{202f}234\u{a0}567 89",
        );
        cleaned("\x1b[1;31mred\x1b[0m \x1b]0;t\x07x\x1b[", "red x");
        cleaned("１２．５％（＋－", "12.5%(+-");
        cleaned("a\u{3000}b \u{2502} c", "a b | c");
        assert_eq!(clean(b"a\xffb"), "a\u{fffd}b");
    }

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
