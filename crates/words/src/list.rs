//! Lists in sentences.

/// Returns names as a sentence lists them: `a, b and c`.
pub fn list<S: AsRef<str>>(names: &[S]) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

/// Returns the first so many of a list, and how many more there are: `a, b, 3 more`.
pub fn list_first<S: AsRef<str>>(names: &[S], most: usize) -> String {
    let mut shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    let more = format!("{} more", names.len().saturating_sub(most));
    if names.len() > most {
        shown.push(&more);
    }
    shown.join(", ")
}

/// Returns what a sentence begins with: `the vCPU` as `The vCPU`. Names keep their first letter as it is.
pub fn capital(text: &str) -> String {
    match text.strip_prefix("the ") {
        Some(rest) => format!("The {rest}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_aloud() {
        let none: [&str; 0] = [];
        assert_eq!(list(&none), "");
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b"]), "a and b");
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
        assert_eq!(list_first(&["a", "b"], 2), "a, b");
        assert_eq!(list_first(&["a", "b", "c"], 1), "a, 2 more");
    }

    #[test]
    fn names_keep_their_first_letter() {
        assert_eq!(capital("the vCPU"), "The vCPU");
        assert_eq!(capital("vhost"), "vhost");
    }
}
