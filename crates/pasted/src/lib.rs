/*!
Undoes what the way into a ticket does to the lines of a text: marks of quotes, entities of HTML, a terminal's colours,
blanks that do not break, full-width letters.

```
assert_eq!(pasted::clean("&gt; \u{a0}exits&nbsp;7 "), "  exits 7");
assert_eq!(pasted::unquoted("> > {\"a\": 1}"), Some("{\"a\": 1}"));
```
*/
#![forbid(unsafe_code)]

use std::borrow::Cow;

/// Returns a line as text, without colours, entities, quote marks, and with ASCII for its full-width look-alikes.
pub fn clean(text: &str) -> Cow<'_, str> {
    if is_clean(text) {
        return Cow::Borrowed(text.trim_end());
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
    let kept = without_marks(&out);
    if kept.len() < out.len() {
        out.drain(..out.len() - kept.len());
    }
    out.truncate(out.trim_end().len());
    Cow::Owned(out)
}

/// Returns whether a line is as it was printed: nothing to undo but blanks at its end.
fn is_clean(text: &str) -> bool {
    let plain = |b: u8| matches!(b, b'\t' | b' '..=b'~') && b != b'&';
    text.bytes().all(plain) && !text.trim_start().starts_with(['>', '^'])
}

/// Returns what a mailer quoted: the line without the marks before it and the blank behind each; none if it has none.
pub fn unquoted(line: &str) -> Option<&str> {
    let mut rest = line;
    while let Some(inner) = mark(rest.trim_start()) {
        rest = inner.strip_prefix([' ', '\u{a0}']).unwrap_or(inner);
    }
    (rest.len() < line.len()).then_some(rest)
}

fn mark(text: &str) -> Option<&str> {
    text.strip_prefix('>').or_else(|| text.strip_prefix("&gt;"))
}

/// Returns whether a character is a blank that does not break, or a narrow one, which stand between groups of digits
/// in some languages.
pub fn is_group_blank(c: char) -> bool {
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
fn without_marks(text: &str) -> &str {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn cleaned(line: &str, want: &str) {
        assert_eq!(clean(line), want);
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
    }

    #[test]
    fn quotes_are_taken_off_with_their_blanks() {
        for (line, inner) in [
            ("> > a", Some("a")),
            (">> a", Some("a")),
            (">   a", Some("  a")),
            ("&gt; a", Some("a")),
            ("  > a", Some("a")),
            (">", Some("")),
            ("a > b", None),
            ("", None),
        ] {
            assert_eq!(unquoted(line), inner, "{line}");
        }
    }

    #[test]
    fn lines_as_they_were_printed_are_borrowed() {
        assert!(matches!(clean("a\tb  "), Cow::Borrowed("a\tb")));
        assert!(matches!(clean("  > a"), Cow::Owned(_)));
    }
}
