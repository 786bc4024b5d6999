//! Names that a recording has chosen, in messages of one line.

use std::borrow::Cow;

/// Returns a name as it stands in a message of one line: threads, and events of a file that was made up, are called
/// whatever they like, ends of lines among it.
pub fn on_one_line(name: &str) -> Cow<'_, str> {
    if !name.contains(char::is_control) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 8);
    for char in name.chars() {
        match char.is_control() {
            true => out.extend(char.escape_default()),
            false => out.push(char),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_letter_is_escaped() {
        assert_eq!(on_one_line("CPU 0/KVM"), "CPU 0/KVM");
        assert_eq!(on_one_line("a\nb\u{1b}[1m"), "a\\nb\\u{1b}[1m");
    }
}
