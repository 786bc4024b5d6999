//! Evaluation of `print fmt:`.

use crate::{Abi, Field};

/// A `print fmt:` line, parsed once and evaluated for every record.
#[derive(Debug, Clone, Default)]
pub struct Printer {}

impl Printer {
    /// Parses the text behind `print fmt:`.
    pub fn parse(_text: &str, _fields: &[Field], _abi: Abi) -> Printer {
        Printer {}
    }
}
