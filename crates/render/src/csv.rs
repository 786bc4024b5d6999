//! Comma separated values (RFC 4180), in which nothing is run by spreadsheets and nothing steers a terminal.

/// Appends one row; fields with commas, quotes or line breaks are quoted.
pub fn row<S: AsRef<str>>(out: &mut String, fields: impl IntoIterator<Item = S>) {
    for (position, text) in fields.into_iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        field(out, text.as_ref());
    }
    out.push('\n');
}

/// Appends one field.
#[inline]
pub fn field(out: &mut String, text: &str) {
    if stands_as_it_is(text.as_bytes()) {
        out.push_str(text);
    } else {
        unusual_field(out, text);
    }
}

/// Returns whether a field is written as it is: printable ASCII characters without commas and quotes, with no
/// beginning of a formula.
#[inline]
pub fn stands_as_it_is(field: &[u8]) -> bool {
    // One look at all bytes, without a branch for each.
    let usual = |b: u8| (b.wrapping_sub(0x20) < 0x5f) & (b != b',') & (b != b'"');
    let begins = !matches!(field, [b'=' | b'+' | b'-' | b'@', ..]);
    begins & field.iter().fold(true, |all, &b| all & usual(b))
}

#[cold]
fn unusual_field(out: &mut String, text: &str) {
    let field = crate::neutral::cell(text);
    if field.contains([',', '"', '\n', '\r']) {
        out.push('"');
        out.push_str(&field.replace('"', "\"\""));
        out.push('"');
    } else {
        out.push_str(&field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_at_every_place_of_a_line() {
        for (text, field) in [
            ("", ""),
            ("plain text", "plain text"),
            ("a,", "\"a,\""),
            ("\"", "\"\"\"\""),
            ("a\"b", "\"a\"\"b\""),
            ("a\nb", "\"a\nb\""),
            ("\r", "\\x0d"),
            ("a\tb\u{1b}\0\u{7f}", "a\\x09b\\x1b\\x00\\x7f"),
            ("\u{9b}é\u{fffd}", "\\x9bé\u{fffd}"),
            ("\u{202e}", "\\u{202e}"),
            ("=1+1", "'=1+1"),
            ("-1,5", "\"'-1,5\""),
            ("-15", "-15"),
            ("@", "@"),
        ] {
            for before in ["", "x", "a long field before it, with a comma"] {
                let shown = if before.contains(',') {
                    format!("\"{before}\"")
                } else {
                    before.to_owned()
                };
                for (fields, expected) in [
                    (vec![text], format!("{field}\n")),
                    (vec![text, before], format!("{field},{shown}\n")),
                    (vec![before, text], format!("{shown},{field}\n")),
                    (
                        vec![before, text, text],
                        format!("{shown},{field},{field}\n"),
                    ),
                ] {
                    let mut out = String::new();
                    row(&mut out, fields);
                    assert_eq!(out, expected, "{text:?}");
                }
            }
        }
    }
}
