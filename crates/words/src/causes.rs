//! Errors that have causes, in one line.

use std::io;

/// Returns an error with all causes that it has in one line, shortened in the middle where it is long, and the number
/// of the system's first error among them (errno(3)).
pub fn causes(error: &(dyn std::error::Error + 'static)) -> (String, Option<i32>) {
    let mut text = error.to_string();
    let mut code = None;
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            code = code.or(io.raw_os_error());
        }
        at = error.source();
        if let Some(cause) = at {
            let cause = cause.to_string();
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
    }
    // The log of the kernel's BPF verifier has a line for each instruction: its end says what is wrong.
    const LONGEST: usize = 400;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = line.len().saturating_sub(LONGEST);
    let cut = (cut..line.len()).find(|&at| line.is_char_boundary(at));
    let short = match cut {
        Some(cut) if cut > 0 => format!(
            "{}... {}",
            line.chars().take(80).collect::<String>(),
            &line[cut..]
        ),
        _ => line,
    };
    (short, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct LoadFailure(io::Error);

    impl std::fmt::Display for LoadFailure {
        fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str("loading failed")
        }
    }

    impl std::error::Error for LoadFailure {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn causes_stand_behind_an_error_once() {
        let error = LoadFailure(io::Error::from_raw_os_error(1));
        let (text, code) = causes(&error);
        assert!(text.starts_with("loading failed: "), "{text}");
        assert_eq!(code, Some(1));
        let long = io::Error::other("x ".repeat(1000) + "the end");
        let (text, code) = causes(&long);
        assert!(text.len() < 500 && text.ends_with("the end"), "{text}");
        assert_eq!(code, None);
    }
}
