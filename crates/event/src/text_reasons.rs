//! What the lines of a text said so far and later lines leave out.

use crate::{ExitReason, Isa};

/// Slots for reasons looked up lately; a recording has some twenty kinds.
pub(crate) const RECENT: usize = 128;

/// A reason's name and what it was found to mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReasonName {
    pub name: [u8; 32],
    pub len: u8,
    pub reason: ExitReason,
}

/// What earlier lines said. Texts do not always say whose exit reasons they print, so the instruction set of earlier
/// lines is kept.
#[derive(Debug, Default)]
pub(crate) struct TextReasons {
    pub isa: Option<Isa>,
    /// Reasons looked up lately, by a hash of their names.
    pub recent: Vec<Option<ReasonName>>,
}
