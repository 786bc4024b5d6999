//! The parts all JSON documents share.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::clock_unit::Clocked;

/// A document: what all begin with, and behind it the command's own fields.
#[derive(Debug, Serialize)]
struct Document<'a, D> {
    /// Version.
    trapline: &'a str,
    command: &'a str,
    inputs: &'a [String],
    quality: Quality<'a>,
    #[serde(flatten)]
    own: D,
}

/// What the inputs lack, together.
#[derive(Debug, Serialize)]
struct Quality<'a> {
    lost_events: u64,
    truncated: bool,
    warnings: &'a [String],
}

/// Returns a document as text, a line break behind it. `own` has the command's own fields, and what their times count; `()` has none.
pub fn document(
    version: &str,
    command: &str,
    inputs: &[String],
    quality: &event::Quality,
    own: Clocked<impl Serialize>,
) -> String {
    let document = Document {
        trapline: version,
        command,
        inputs,
        quality: Quality {
            lost_events: quality.lost_events,
            truncated: quality.truncated,
            warnings: &quality.warnings,
        },
        own,
    };
    shown(serde_json::to_string_pretty(&document)) + "\n"
}

/// Returns an item of a list as text, in one line.
pub fn line(item: Clocked<impl Serialize>) -> String {
    shown(serde_json::to_string(&item))
}

fn shown(text: serde_json::Result<String>) -> String {
    // What has names for fields can always be written.
    let text = text.unwrap_or_else(|_| "{}".to_owned());
    match crate::neutral::json(&text) {
        Cow::Owned(shown) => shown,
        Cow::Borrowed(_) => text,
    }
}

/// Returns items as the value of a column.
pub(crate) fn list<T: Serialize>(items: impl IntoIterator<Item = T>) -> Value {
    let values = items.into_iter().map(serde_json::to_value);
    values.map(Result::unwrap_or_default).collect()
}
