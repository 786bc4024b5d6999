//! What a part of a picture needs to have its section of the page, its place in the text of `report`, and its member of
//! the documents of `report` and `export`: one entry.

use analysis::Picture;
use serde_json::Value;

use crate::Layout;
use crate::html::Frame;
use crate::schema::Shape;

/// A part of a picture.
#[derive(Debug)]
pub struct PicturePart {
    /// The command that prints it, which documents and pages call it by.
    pub name: &'static str,
    /// The heading of its section.
    pub heading: &'static str,
    /// What its table is of.
    pub caption: &'static str,
    /// What a page says where it is not there. Where this is empty, a page has no such section then.
    pub nothing: &'static str,
    /// Returns what the command's own document has; `None` where it was not recorded.
    pub document: fn(&Picture) -> Option<Value>,
    /// Returns what that looks like.
    pub shape: fn() -> Shape,
    /// Returns its table for a page.
    pub html: fn(&Picture, &Frame<'_>) -> String,
    /// Returns its table for a terminal.
    pub text: fn(&Picture, Layout) -> String,
}
