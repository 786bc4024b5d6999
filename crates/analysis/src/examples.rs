//! Instances that show what a path is like.

use paths::InstanceReport;

/// A slow instance of a path and a fast one, to look at side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathExamples {
    /// The path's name.
    pub path: String,
    /// A slow one: the slowest.
    pub slow: InstanceReport,
    /// One as fast as most; `None` where there is no other.
    pub fast: Option<InstanceReport>,
}
