/*!
Names in a recording are whatever its threads, events and files were called: none may steer the terminal that shows
them, or hide what a line says.

Control characters become visible as `\x1b`, and marks that change the direction of text, or end a line where the reader
sees none, as `\u{202e}`. Texts without them, and that is all of ordinary recordings', are left as they are.
*/

use std::borrow::Cow;
use std::fmt::Write;
use std::io;

/// Returns whether a character steers what shows it: control characters (C0, DEL, C1), marks and overrides of
/// direction (UAX #9), and Unicode's separators of lines and paragraphs.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Appends what shows a character that steers.
fn show(out: &mut String, c: char) {
    let code = u32::from(c);
    let _ = if code < 0x100 {
        write!(out, "\\x{code:02x}")
    } else {
        write!(out, "\\u{{{code:x}}}")
    };
}

fn without(
    text: &str,
    steers: impl Fn(char) -> bool,
    show: impl Fn(&mut String, char),
) -> Cow<'_, str> {
    // One look at all bytes, without a branch for each, finds that most texts are plain.
    if text
        .bytes()
        .fold(true, |plain, b| plain & (b' '..0x7f).contains(&b))
    {
        return Cow::Borrowed(text);
    }
    let Some(first) = text.find(&steers) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if steers(c) {
            show(&mut out, c);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Returns a name, or a message of one line: no control character is left in it, line breaks and tabs included.
pub fn name(text: &str) -> Cow<'_, str> {
    without(text, steers, show)
}

/// Returns a text of several lines: line feeds and tabs stay.
pub fn text(text: &str) -> Cow<'_, str> {
    without(text, |c| steers(c) && c != '\n' && c != '\t', show)
}

/// Returns a JSON document that shows in a terminal and says the same: what JSON lets stand in strings though it steers
/// is written as JSON's own escapes.
pub fn json(text: &str) -> Cow<'_, str> {
    without(
        text,
        |c| steers(c) && c != '\n' && c != '\t' && c != '\r',
        |out, c| {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        },
    )
}

/// Writes a JSON document as [`json`] has it, in pieces that may end within a character.
pub(crate) struct JsonWriter<'w> {
    out: &'w mut dyn io::Write,
    /// The beginning of a character.
    begun: Vec<u8>,
}

impl<'w> JsonWriter<'w> {
    pub(crate) fn new(out: &'w mut dyn io::Write) -> JsonWriter<'w> {
        JsonWriter {
            out,
            begun: Vec::new(),
        }
    }
}

impl io::Write for JsonWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let all = match self.begun.is_empty() {
            true => Cow::Borrowed(bytes),
            false => Cow::Owned([&self.begun, bytes].concat()),
        };
        let whole = all.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        self.out.write_all(json(whole).as_bytes())?;
        self.begun = all.get(whole.len()..).unwrap_or_default().to_vec();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns lines that may hold bytes that are no UTF-8, as other tools' do; those stay, but for what are control
/// characters where a terminal takes bytes for characters (C1 of ISO 8859).
pub fn lines(bytes: &[u8]) -> Cow<'_, [u8]> {
    // One look at all bytes, without a branch for each, finds that there is nothing to do.
    let suspect = |b: u8| ((b < 0x20) & (b != b'\n') & (b != b'\t')) | (b >= 0x7f);
    if !bytes.iter().fold(false, |any, &b| any | suspect(b)) {
        return Cow::Borrowed(bytes);
    }
    let mut out = Vec::with_capacity(bytes.len() + 64);
    for chunk in bytes.utf8_chunks() {
        out.extend_from_slice(text(chunk.valid()).as_bytes());
        for byte in chunk.invalid() {
            match byte {
                0x80..0xa0 => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
                _ => out.push(*byte),
            }
        }
    }
    Cow::Owned(out)
}

/// Returns a cell of a table for spreadsheets, which run what begins as a formula: that gets a `'` before it, as they
/// mark texts. Numbers stay.
pub fn cell(text: &str) -> Cow<'_, str> {
    let runs = match text.as_bytes() {
        [b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r', _, ..] => text.parse::<f64>().is_err(),
        _ => false,
    };
    let shown = without(text, |c| steers(c) && c != '\n', show);
    if runs {
        Cow::Owned(format!("'{shown}"))
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_shown_and_all_else_stays() {
        let ordinary = "CPU 0/KVM é → 日本 \\x1b 'a'";
        assert!(matches!(name(ordinary), Cow::Borrowed(_)));
        assert_eq!(name("\x1b[31mred\x07\n"), "\\x1b[31mred\\x07\\x0a");
        assert_eq!(text("a\tb\nc\r\u{9b}2J"), "a\tb\nc\\x0d\\x9b2J");
        // A name that was cut within a letter stays; a byte that steers a terminal of ISO 8859 does not.
        assert_eq!(
            &*lines(b"caf\xc3 \x9b31m \xe2\x86\x92 \xff\n"),
            b"caf\xc3 \\x9b31m \xe2\x86\x92 \xff\n"
        );
        assert_eq!(
            name("a\u{202e}b\u{2066}c\u{200f}"),
            "a\\u{202e}b\\u{2066}c\\u{200f}"
        );
    }

    #[test]
    fn json_says_the_same() {
        let names = serde_json::json!({"comm": "\x1b\u{7f}\u{9b}\u{202e}\u{2069}é\n"});
        let document = serde_json::to_string_pretty(&names).unwrap();
        let shown = json(&document);
        assert!(shown.chars().all(|c| !steers(c) || c == '\n'));
        let back: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(back, names);
    }

    #[test]
    fn lines_keep_bytes_that_are_no_text() {
        let line = b"sh\x1b]0;x\x07 1 \xff\xc2\x9b \xe2\x80\xae \xe2\x86\x92\xe2\n";
        let expected = b"sh\\x1b]0;x\\x07 1 \xff\\x9b \\u{202e} \xe2\x86\x92\xe2\n";
        assert_eq!(*lines(line), expected[..]);
    }

    #[test]
    fn cells_are_no_formulas() {
        for (cell_text, shown) in [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-2+3", "'-2+3"),
            ("\t=1", "'\\x09=1"),
            ("-12", "-12"),
            ("-0.5", "-0.5"),
            ("-1e3", "-1e3"),
            ("-", "-"),
            ("a=b", "a=b"),
            ("a\nb", "a\nb"),
        ] {
            assert_eq!(cell(cell_text), shown, "{cell_text:?}");
        }
    }

    /// Pieces may end anywhere, within a character too.
    #[test]
    fn a_document_in_pieces_is_the_same() {
        let text = "{\"a\": \"\u{202e}x\u{9b}1m é \u{1f600}\"}\n".repeat(3);
        for piece in 1..12 {
            let mut out = Vec::new();
            let mut writer = JsonWriter::new(&mut out);
            for bytes in text.as_bytes().chunks(piece) {
                io::Write::write_all(&mut writer, bytes).unwrap();
            }
            assert_eq!(String::from_utf8(out).unwrap(), json(&text), "{piece}");
        }
    }
}
