//! Splits the text behind `print fmt:` into tokens.
//!
//! The kernel writes C after the preprocessor has been over it, so the tokens are those of C. What is a
//! token and what is not follows libtraceevent 1.7.1 where the two differ: it knows no numbers apart from
//! names (`0x1f` and `1UL` are items), and a string literal takes in those that follow it.

use std::borrow::Cow;

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FormatToken<'t> {
    /// The end of the text.
    End,
    /// A name or a number.
    Item(&'t str),
    /// A string literal without its quotes, escapes kept; adjacent literals are already joined.
    Text(Cow<'t, str>),
    /// A character literal without its quotes, escapes kept.
    Char(&'t str),
    /// `(`, `)` or `,`.
    Delim(u8),
    /// An operator, bracket, brace, or any other printing character.
    Op(&'t str),
}

impl FormatToken<'_> {
    /// Returns whether this is the operator `op`.
    pub(super) fn is_op(&self, op: &str) -> bool {
        matches!(self, FormatToken::Op(o) if *o == op)
    }

    /// Returns whether this is the delimiter `delim`.
    pub(super) fn is_delim(&self, delim: u8) -> bool {
        matches!(self, FormatToken::Delim(d) if *d == delim)
    }

    /// Returns whether an operand can begin with this token and it is no operator.
    pub(super) fn starts_operand(&self) -> bool {
        matches!(
            self,
            FormatToken::Item(_)
                | FormatToken::Text(_)
                | FormatToken::Char(_)
                | FormatToken::Delim(b'(')
        )
    }
}

/// Walks the text.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Lexer { text, at: 0 }
    }

    /// Returns the offset of the next byte to read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Reads the next token, over spaces and line ends.
    pub(super) fn next(&mut self) -> FormatToken<'t> {
        while self
            .peek()
            .is_some_and(|b| b.is_ascii_whitespace() || b == 0x0b)
        {
            self.at += 1;
        }
        let start = self.at;
        let Some(first) = self.peek() else {
            return FormatToken::End;
        };
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => {
                while self
                    .peek()
                    .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
                {
                    self.at += 1;
                }
                FormatToken::Item(&self.text[start..self.at])
            }
            b'"' => self.text_literal(),
            b'\'' => FormatToken::Char(self.quoted(b'\'')),
            b'(' | b')' | b',' => {
                self.at += 1;
                FormatToken::Delim(first)
            }
            0x21..=0x7e => {
                self.at += operator_length(&self.text.as_bytes()[start..]);
                FormatToken::Op(&self.text[start..self.at])
            }
            // Control characters and what is not ASCII never stand outside of quotes.
            _ => {
                self.at = self.text.len();
                FormatToken::End
            }
        }
    }

    /// Reads from the quote under the cursor to the one that closes it, and returns what is between.
    fn quoted(&mut self, quote: u8) -> &'t str {
        self.at += 1;
        let start = self.at;
        while let Some(b) = self.peek() {
            if b == quote {
                let inner = &self.text[start..self.at];
                self.at += 1;
                return inner;
            }
            // The character behind a backslash never closes; it may be several bytes long.
            let step = if b == b'\\' { 2 } else { 1 };
            self.at = (self.at + step).min(self.text.len());
            while !self.text.is_char_boundary(self.at) {
                self.at += 1;
            }
        }
        &self.text[start..]
    }

    fn text_literal(&mut self) -> FormatToken<'t> {
        let mut joined = Cow::Borrowed(self.quoted(b'"'));
        loop {
            let mut ahead = self.at;
            while self
                .text
                .as_bytes()
                .get(ahead)
                .is_some_and(u8::is_ascii_whitespace)
            {
                ahead += 1;
            }
            if self.text.as_bytes().get(ahead) != Some(&b'"') {
                return FormatToken::Text(joined);
            }
            self.at = ahead;
            joined.to_mut().push_str(self.quoted(b'"'));
        }
    }
}

/// Returns how many bytes the operator at the start of `bytes` has.
fn operator_length(bytes: &[u8]) -> usize {
    let second = bytes.get(1).copied();
    let third = bytes.get(2).copied();
    match (bytes[0], second) {
        (b'-', Some(b'>')) => 2,
        (b'<', Some(b'<')) | (b'>', Some(b'>')) => 2 + usize::from(third == Some(b'=')),
        (b'-' | b'+' | b'|' | b'&', Some(next)) if next == bytes[0] => 2,
        (b'-' | b'+' | b'|' | b'&' | b'<' | b'>' | b'!' | b'=', Some(b'=')) => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<FormatToken<'_>> {
        let mut lexer = Lexer::new(text);
        std::iter::from_fn(|| Some(lexer.next()).filter(|t| *t != FormatToken::End)).collect()
    }

    #[test]
    fn operators_are_taken_at_their_longest() {
        let ops: Vec<_> = all("-> - -- >> >>= >= == != && & ~ ! ?:")
            .into_iter()
            .collect();
        let want = [
            "->", "-", "--", ">>", ">>=", ">=", "==", "!=", "&&", "&", "~", "!", "?", ":",
        ]
        .map(FormatToken::Op);
        assert_eq!(ops, want);
    }

    #[test]
    fn adjacent_literals_are_one_and_escaped_quotes_do_not_close() {
        assert_eq!(
            all(r#""APIC_" "ID" , 'e'"#),
            [
                FormatToken::Text("APIC_ID".into()),
                FormatToken::Delim(b','),
                FormatToken::Char("e")
            ]
        );
        assert_eq!(
            all(r#""a\"b" 1"#),
            [FormatToken::Text(r#"a\"b"#.into()), FormatToken::Item("1")]
        );
    }

    #[test]
    fn an_open_literal_ends_with_the_text() {
        assert_eq!(all("\"abc\\"), [FormatToken::Text("abc\\".into())]);
        assert_eq!(
            all("\"a\\é\" x"),
            [FormatToken::Text("a\\é".into()), FormatToken::Item("x")]
        );
    }
}
