//! Comma separated values (RFC 4180), in which nothing is run by spreadsheets and nothing steers a terminal.

/// Appends one row; fields with commas, quotes or line breaks are quoted.
pub fn row<S: AsRef<str>>(out: &mut String, fields: impl IntoIterator<Item = S>) {
    for (position, field) in fields.into_iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        let field = crate::neutral::cell(field.as_ref());
        let field = field.as_ref();
        if field.contains([',', '"', '\n', '\r']) {
            out.push('"');
            out.push_str(&field.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(field);
        }
    }
    out.push('\n');
}
