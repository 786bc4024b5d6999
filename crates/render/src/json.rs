//! The parts all JSON documents share.

use std::borrow::Cow;

use event::Quality;
use serde_json::{Map, Value, json};

/// Returns the beginning of every document: version, command, inputs and quality.
pub fn envelope(
    version: &str,
    command: &str,
    inputs: &[String],
    quality: &Quality,
) -> Map<String, Value> {
    let mut document = Map::new();
    document.insert("trapline".to_owned(), json!(version));
    document.insert("command".to_owned(), json!(command));
    document.insert("inputs".to_owned(), json!(inputs));
    document.insert(
        "quality".to_owned(),
        json!({
            "lost_events": quality.lost_events,
            "truncated": quality.truncated,
            "warnings": quality.warnings,
        }),
    );
    document
}

/// Returns a document as text, a line break behind it.
pub fn text(document: Map<String, Value>) -> String {
    let text =
        serde_json::to_string_pretty(&Value::Object(document)).unwrap_or_else(|_| "{}".to_owned());
    let mut text = match crate::neutral::json(&text) {
        Cow::Owned(shown) => shown,
        Cow::Borrowed(_) => text,
    };
    text.push('\n');
    text
}
