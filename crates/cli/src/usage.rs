//! A command line that cannot be meant, where only the command finds out: exit status 2, as for what clap refuses.

use std::fmt;

/// What is wrong with the command line, and what to type.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl Usage {
    /// Returns the error of this text.
    pub(crate) fn error(text: impl Into<String>) -> anyhow::Error {
        Usage(text.into()).into()
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
