//! The parts all JSON documents share.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::clock_unit::ClockedDocument;
use crate::neutral::JsonWriter;
use crate::schema::{HasShape, Member, Shape};
use crate::shape;

/// A document: what all begin with, and behind it the command's own fields.
#[derive(Debug, Serialize)]
struct Document<'a, D> {
    /// Version.
    trapline: &'a str,
    /// The number of the documents' form.
    schema: u32,
    command: &'a str,
    inputs: &'a [String],
    quality: QualityDocument,
    #[serde(flatten)]
    own: D,
}

/// What has to be known of the inputs, together.
#[derive(Debug, Serialize)]
struct QualityDocument {
    lost_events: u64,
    truncated: bool,
    /// The texts of the doubts.
    warnings: Vec<String>,
    doubts: Vec<DoubtDocument>,
    /// The share of the events that were read which is counted in what is printed; null where nothing counts them.
    accounted: Option<f64>,
}

shape!(QualityDocument {
    lost_events,
    truncated,
    warnings,
    doubts,
    accounted
});

/// One doubt.
#[derive(Debug, Serialize)]
struct DoubtDocument {
    id: &'static str,
    severity: &'static str,
    concerns: Vec<&'static str>,
    text: String,
}

shape!(DoubtDocument {
    id,
    severity,
    concerns,
    text
});

impl QualityDocument {
    fn of(quality: &event::Quality) -> QualityDocument {
        let doubts = quality.all_doubts();
        QualityDocument {
            lost_events: quality.lost_events,
            truncated: quality.truncated,
            warnings: doubts.texts(),
            doubts: doubts
                .iter()
                .map(|doubt| DoubtDocument {
                    id: doubt.id(),
                    severity: doubt.severity().name(),
                    concerns: doubt.concerns().names(),
                    text: doubt.text(),
                })
                .collect(),
            accounted: quality.accounted.map(|accounted| accounted.share()),
        }
    }
}

/// Returns what all documents have.
fn envelope() -> Shape {
    let texts = || Shape::Text.list();
    Shape::Object(vec![
        Member::new("trapline", Shape::Text),
        Member::new("schema", Shape::Integer),
        Member::new("command", Shape::Text),
        Member::new("inputs", texts()),
        Member::new("quality", QualityDocument::shape()),
    ])
}

/// The number of the form that documents have: it goes up where a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// Bytes of a document that are put together before they are written.
const PIECE: usize = 64 << 10;

/// Writes a document, a line break behind it. `own` has the command's own fields; `()` has none.
///
/// # Errors
///
/// It cannot be written.
pub fn write_document(
    out: &mut dyn Write,
    version: &str,
    command: &str,
    inputs: &[String],
    quality: &event::Quality,
    own: ClockedDocument<impl Serialize>,
) -> io::Result<()> {
    let document = Document {
        trapline: version,
        schema: SCHEMA,
        command,
        inputs,
        quality: QualityDocument::of(quality),
        own,
    };
    let mut out = BufWriter::with_capacity(PIECE, JsonWriter::new(out));
    serde_json::to_writer_pretty(&mut out, &document)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Returns a document as text, as [`write_document`] writes it.
pub fn document(
    version: &str,
    command: &str,
    inputs: &[String],
    quality: &event::Quality,
    own: ClockedDocument<impl Serialize>,
) -> String {
    let mut text = Vec::new();
    // What has names for fields can always be written.
    let _ = write_document(&mut text, version, command, inputs, quality, own);
    String::from_utf8(text).unwrap_or_default()
}

/// Returns an item of a list as text, in one line.
pub fn line(item: ClockedDocument<impl Serialize>) -> String {
    shown(serde_json::to_string(&item))
}

/// Returns the schema of a command's document: what all have, and what is its own. `clocked` says whether its times are
/// of a recording's clock.
pub fn schema(command: &str, own: &Shape, clocked: bool) -> Value {
    let forms = match own {
        Shape::OneOf(forms) => forms.as_slice(),
        one => std::slice::from_ref(one),
    };
    let whole = forms.iter().map(|form| {
        let whole = envelope().with(form.clone().members());
        let mut schema = whole.schema(clocked);
        schema["properties"]["command"] = json!({"const": command});
        schema
    });
    let mut whole: Vec<Value> = whole.collect();
    let mut out = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("trapline {command} --format json"),
    });
    match (whole.pop(), whole.is_empty()) {
        (Some(Value::Object(only)), true) => {
            out.as_object_mut().unwrap_or(&mut Map::new()).extend(only)
        }
        (last, _) => out["anyOf"] = whole.into_iter().chain(last).collect(),
    }
    out
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
