//! Whose text is wanted.

/// Whose text is wanted, where the tools differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrintStyle {
    /// That of `trace-cmd report -N`: kernel functions by the symbols in the recording.
    #[default]
    TraceCmd,
    /// That of `perf script`.
    Perf,
}
