//! Parts of the text format.

use std::fmt::Write;

/// A label's value, as the format has it.
pub(super) fn label(text: &str) -> String {
    let text = crate::clean(text);
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// Nanoseconds as seconds, exactly.
pub(super) fn seconds(ns: u64) -> String {
    let (whole, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
    match rest {
        0 => whole.to_string(),
        _ => format!("{whole}.{rest:09}")
            .trim_end_matches('0')
            .to_owned(),
    }
}

/// Begins a metric: what it is and of which type.
pub(super) fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        for (ns, text) in [
            (0, "0"),
            (1, "0.000000001"),
            (1_500_000_000, "1.5"),
            (u64::MAX, "18446744073.709551615"),
        ] {
            assert_eq!(seconds(ns), text);
        }
    }

    #[test]
    fn names_cannot_leave_their_label() {
        assert_eq!(
            label("a\"} 1\nb\\"),
            "a\\\"} 1\\nb\\\\".replace("\\n", &label("\n"))
        );
        assert!(!label("a\nb").contains('\n'));
    }
}
