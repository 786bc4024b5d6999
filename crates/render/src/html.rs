//! Text that stands in markup.

use crate::neutral;

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
