//! Why a text of the language is refused.

/// Why a path file or a selector on the command line is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageError(pub(crate) String);

impl std::fmt::Display for LanguageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LanguageError {}
