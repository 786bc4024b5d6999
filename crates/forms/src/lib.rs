/*!
What a reader declares of itself: the form that it reads, by what it recognises it, what comes of it, and the texts that
its tests read.

Each reader's file has one [`InputForm`], each crate of readers a list of them. `docs/input.md` has a table of all.
*/
#![forbid(unsafe_code)]

/// A form that one reader reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputForm {
    /// Who prints or writes it, as people call it: `perf kvm stat report`.
    pub printed_by: &'static str,
    /// By what it is recognised, wherever in a text it stands.
    pub recognised_by: &'static str,
    /// What comes of it.
    pub yields: &'static str,
    /// Texts of it that tests read: files below the crate's folder.
    pub fixtures: &'static [&'static str],
}
