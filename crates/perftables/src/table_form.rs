//! What the file of a reader declares: its form, how a table begins, and the table under way.

use forms::InputForm;

use crate::lines::CleanLine;
use crate::types::{PerfTable, TableNote};

/// A table that begins, and how many lines its beginning takes.
pub(crate) type TableBeginning = (Box<dyn OpenTable>, usize);

/// Begins a table at the first line in view, if one begins there.
pub(crate) type BeginTable = fn(&[CleanLine]) -> Option<TableBeginning>;

/// Where a table stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct TablePlace {
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The line of text before it.
    pub label: Option<String>,
}

/// A table under way.
pub(crate) trait OpenTable {
    /// Takes the lines that begin with the first in view, if they are the table's. Returns how many; none if they are
    /// not.
    fn take(&mut self, view: &[CleanLine]) -> Option<usize>;

    /// Returns how many lines in a row that are not the table's end it. Without more, the first does.
    fn patience(&self) -> u32 {
        0
    }

    /// Ends the table. Returns it, unless what was read is too little to be one.
    fn close(self: Box<Self>, place: TablePlace, notes: &mut Vec<TableNote>) -> Option<PerfTable>;
}

/// A reader of one printed form.
pub(crate) struct TableForm {
    pub form: &'static InputForm,
    /// Begins a table with a heading.
    pub heading: BeginTable,
    /// Begins a table with a row, where the heading was not pasted; only what can be nothing else.
    pub row: Option<BeginTable>,
}
