//! What the system says of an error.

use std::fmt::Display;

/// Returns what the system says of an error, without its number.
pub(crate) fn why(error: &impl Display) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::why;

    #[test]
    fn numbers_of_errors_are_left_out() {
        let error = std::io::Error::from_raw_os_error(libc::EPERM);
        assert_eq!(why(&error), "Operation not permitted");
        assert_eq!(why(&rustix::io::Errno::PERM), "Operation not permitted");
        assert_eq!(why(&"else"), "else");
    }
}
