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
