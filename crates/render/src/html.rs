//! Text that stands in markup.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

use crate::{Layout, neutral};

/// What stands around the rows of a table in a page.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'f> {
    /// What the table is called in its page, which its id ends in: letters, digits and hyphens.
    pub name: &'f str,
    /// The command that prints it.
    pub command: &'f str,
    /// What it is of.
    pub caption: &'f str,
    /// Whether rows have ids for links to them: `row-`, the table's name, and the row's number.
    pub rows: bool,
    /// How `trapline explain` prints the events of its numbers, if it does.
    pub events: Option<TableEvents<'f>>,
    /// How many rows it has at most, and what times are.
    pub layout: Layout,
}

/// How the events behind a table's numbers are printed. What is behind the command, row and column, the page's script
/// adds when somebody asks for a number.
#[derive(Debug, Clone, Copy)]
pub struct TableEvents<'f> {
    /// The command up to where its row is named.
    pub command: &'f str,
    /// The command whose numbers they are: `exits`.
    pub of: &'f str,
    /// The row that all of the table is of, where the command has it already: a path.
    pub row: Option<&'f str>,
    /// Which of the page's recordings it is of, from 0.
    pub recording: usize,
}

/// Returns what names a script or a style in a content security policy: the hash of its text.
pub fn source(text: &str) -> String {
    let hash = BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!("'sha256-{hash}'")
}

/// Escapes text for HTML: names in a recording are whatever its threads were called.
pub fn escape(text: &str) -> String {
    markup(&neutral::text(text))
}

/// Escapes what is markup in HTML and XML, in elements and in attributes, of text in which nothing steers.
pub(crate) fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        let text = escape("</pre><script>alert('1')</script>\x1b[0m&\"");
        assert!(!text.contains(['<', '>', '"', '\'', '\x1b']), "{text}");
        assert!(text.starts_with("&lt;/pre&gt;&lt;script&gt;"));
    }
}
