//! Why a place has no name.

/// Why a place in a file has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MissingReason {
    /// There is no such file here, or it cannot be read.
    NoFile,
    /// There is one of that name, and it has another build id: it is another version.
    OtherBuildId,
    /// The recording has no build id of it, so that a file of that name may be another version.
    NoBuildId,
    /// The file has no symbol there.
    NoSymbol,
    /// There are symbols, and no file that says where in memory its parts are: debug files alone often do not.
    NoLayout,
    /// The file is damaged.
    Damaged,
    /// It is bigger than the limit.
    TooBig,
}

impl MissingReason {
    /// Returns the reason in words that go on after the file's name.
    pub fn words(self) -> &'static str {
        match self {
            MissingReason::NoFile => "is not here",
            MissingReason::OtherBuildId => "has another build id here",
            MissingReason::NoBuildId => "has no build id in the recording",
            MissingReason::NoSymbol => "has no symbol there",
            MissingReason::NoLayout => {
                "is here as a debug file alone, which does not say where its code is"
            }
            MissingReason::Damaged => "is damaged",
            MissingReason::TooBig => "is too big",
        }
    }
}
