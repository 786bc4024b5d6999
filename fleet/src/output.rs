//! Answers as tables, JSON and CSV.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, Schema, UInt64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use serde_json::{Map, Value, json};

use crate::engine_error::with_advice;
use crate::request::{AnswerFormat, Request};
use crate::view::StoreView;

/// Characters of a cell that a table for people has.
const CELL: usize = 60;

impl StoreLosses {
    /// Returns what a document says of the quality of what it rests on.
    pub(crate) fn quality(self, view: &StoreView) -> Value {
        let warnings = view.unread.iter();
        let warnings = warnings.map(|one| format!("{}: {}", one.file.display(), one.why));
        json!({
            "lost_events": self.lost_events,
            "truncated": self.truncated,
            "warnings": warnings.collect::<Vec<_>>(),
            "doubts": [],
            "accounted": null,
        })
    }
}

/// Prints an answer.
pub(crate) struct AnswerPrinter<'r> {
    request: &'r Request,
    view: &'r StoreView,
    losses: StoreLosses,
    columns: Vec<(String, DataType)>,
}

/// What the recordings of a store lost, together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StoreLosses {
    /// Events that were lost.
    pub(crate) lost_events: i64,
    /// Whether a recording was cut off.
    pub(crate) truncated: bool,
    /// How many recordings there are.
    pub(crate) recordings: i64,
}

impl<'r> AnswerPrinter<'r> {
    /// Returns what prints rows of these columns.
    pub(crate) fn new(
        request: &'r Request,
        view: &'r StoreView,
        losses: StoreLosses,
        schema: &Schema,
    ) -> AnswerPrinter<'r> {
        let fields = schema.fields().iter();
        let columns = fields.map(|field| (field.name().clone(), field.data_type().clone()));
        AnswerPrinter {
            request,
            view,
            losses,
            columns: columns.collect(),
        }
    }

    /// Prints the rows as they come; a table for people when all have come.
    ///
    /// # Errors
    ///
    /// The engine fails in the middle, or nobody takes what is printed.
    pub(crate) async fn print(&self, mut stream: SendableRecordBatchStream) -> Result<()> {
        let mut out = BufWriter::new(io::stdout().lock());
        let mut shown: Vec<Vec<String>> = Vec::new();
        let mut rows = 0usize;
        self.begin(&mut out)?;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(|error| with_advice(&error))?;
            for row in 0..batch.num_rows() {
                match self.request.format {
                    AnswerFormat::Table if rows < self.request.limit => {
                        shown.push(texts(&batch, row)?);
                    }
                    AnswerFormat::Table | AnswerFormat::Html => {}
                    AnswerFormat::Json => {
                        let comma = if rows > 0 { ",\n" } else { "\n" };
                        write!(out, "{comma}    {}", self.object(&batch, row)?)?;
                    }
                    AnswerFormat::Csv => csv_line(&mut out, &texts(&batch, row)?)?,
                }
                rows += 1;
            }
        }
        self.end(&mut out, &shown, rows)?;
        out.flush()?;
        drop(out);
        for one in &self.view.unread {
            writeln!(
                io::stderr(),
                "left out: {}: {}",
                one.file.display(),
                one.why
            )?;
        }
        Ok(())
    }

    fn begin(&self, out: &mut dyn Write) -> Result<()> {
        match self.request.format {
            AnswerFormat::Table | AnswerFormat::Html => {}
            AnswerFormat::Csv => {
                let names: Vec<String> =
                    self.columns.iter().map(|(name, _)| name.clone()).collect();
                csv_line(out, &names)?;
            }
            AnswerFormat::Json => {
                let columns = self.columns.iter();
                let columns: Vec<Value> = columns
                    .map(|(name, kind)| json!({"name": name, "type": type_name(kind)}))
                    .collect();
                writeln!(
                    out,
                    "{{\n  \"trapline\": {},",
                    json!(env!("CARGO_PKG_VERSION"))
                )?;
                writeln!(out, "  \"schema\": {},", self.request.schema)?;
                writeln!(out, "  \"command\": \"sql\",")?;
                writeln!(out, "  \"inputs\": {},", json!(self.request.inputs))?;
                let quality = self.losses.quality(self.view);
                writeln!(out, "  \"quality\": {quality},")?;
                writeln!(out, "  \"recordings\": {},", self.losses.recordings)?;
                writeln!(out, "  \"left_out\": {},", json!(self.view.unread))?;
                writeln!(out, "  \"columns\": {},", json!(columns))?;
                write!(out, "  \"rows\": [")?;
            }
        }
        Ok(())
    }

    fn end(&self, out: &mut dyn Write, shown: &[Vec<String>], rows: usize) -> Result<()> {
        match self.request.format {
            AnswerFormat::Csv | AnswerFormat::Html => {}
            AnswerFormat::Json => {
                let end = if rows > 0 { "\n  ]" } else { "]" };
                writeln!(out, "{end}\n}}")?;
            }
            AnswerFormat::Table => {
                self.table(out, shown)?;
                if rows > shown.len() {
                    writeln!(out, "... and {} more rows (--limit)", rows - shown.len())?;
                }
                let of = match self.losses.recordings {
                    1 => "1 recording".to_owned(),
                    many => format!("{many} recordings"),
                };
                let unread = match self.view.unread.len() {
                    0 => String::new(),
                    1 => "; 1 file is left out".to_owned(),
                    many => format!("; {many} files are left out"),
                };
                let rows = match rows {
                    1 => "1 row".to_owned(),
                    many => format!("{many} rows"),
                };
                let lost = match (self.losses.lost_events, self.losses.truncated) {
                    (0, false) => "no events lost, complete".to_owned(),
                    (lost, false) => format!("{lost} events lost"),
                    (lost, true) => format!("{lost} events lost, some are cut off"),
                };
                writeln!(out, "\n{rows} of {of}: {lost}{unread}")?;
            }
        }
        Ok(())
    }

    fn table(&self, out: &mut dyn Write, shown: &[Vec<String>]) -> io::Result<()> {
        let names: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let width = |at: usize| {
            let cells = shown.iter().chain([&names]).filter_map(|row| row.get(at));
            cells
                .map(|cell| cut(cell).chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..names.len()).map(width).collect();
        for row in [&names].into_iter().chain(shown) {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let cell = cut(cell);
                let width = widths.get(at).copied().unwrap_or(0);
                let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
                let right = self
                    .columns
                    .get(at)
                    .is_some_and(|(_, kind)| kind.is_numeric());
                let gap = if at > 0 { "  " } else { "" };
                match right {
                    true => line.push_str(&format!("{gap}{pad}{cell}")),
                    false => line.push_str(&format!("{gap}{cell}{pad}")),
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn object(&self, batch: &RecordBatch, row: usize) -> Result<Value> {
        let mut object = Map::new();
        for ((name, _), column) in self.columns.iter().zip(batch.columns()) {
            object.insert(name.clone(), value(column.as_ref(), row)?);
        }
        Ok(Value::Object(object))
    }
}

/// Returns a text as it may stand in a line of a terminal: names in a store are anybody's.
pub(crate) fn cut(text: &str) -> String {
    let mut chars = text.chars();
    let shown = chars.by_ref().take(CELL);
    let mut out: String = shown
        .map(|char| if char.is_control() { '?' } else { char })
        .collect();
    if chars.next().is_some() {
        out.push_str("...");
    }
    out
}

fn type_name(kind: &DataType) -> &'static str {
    match kind {
        DataType::Boolean => "flag",
        DataType::Float16 | DataType::Float32 | DataType::Float64 => "double",
        kind if kind.is_integer() => "integer",
        _ => "text",
    }
}

fn texts(batch: &RecordBatch, row: usize) -> Result<Vec<String>> {
    let options = FormatOptions::default();
    let columns = batch.columns().iter();
    columns
        .map(|column| {
            let formatter = ArrayFormatter::try_new(column.as_ref(), &options)?;
            Ok(formatter.value(row).try_to_string()?)
        })
        .collect()
}

fn value(column: &dyn Array, row: usize) -> Result<Value> {
    if column.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match column.data_type() {
        DataType::Boolean => Value::Bool(column.as_boolean().value(row)),
        DataType::Int64 => Value::from(column.as_primitive::<Int64Type>().value(row)),
        DataType::UInt64 => Value::from(column.as_primitive::<UInt64Type>().value(row)),
        DataType::Float64 => Value::from(column.as_primitive::<Float64Type>().value(row)),
        kind => {
            let options = FormatOptions::default();
            let text = ArrayFormatter::try_new(column, &options)?
                .value(row)
                .try_to_string()?;
            match kind.is_integer().then(|| text.parse::<i64>()) {
                Some(Ok(number)) => Value::from(number),
                _ => Value::String(text),
            }
        }
    })
}

/// Writes a line as RFC 4180 has it; what a spreadsheet would run as a formula has a `'` before it.
pub(crate) fn csv_line(out: &mut dyn Write, cells: &[String]) -> io::Result<()> {
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        let formula = cell.starts_with(['=', '+', '@', '\t', '\r'])
            || cell.starts_with('-') && cell.parse::<f64>().is_err();
        let cell = if formula {
            format!("'{cell}")
        } else {
            cell.clone()
        };
        match cell.contains([',', '"', '\n', '\r']) {
            true => write!(out, "\"{}\"", cell.replace('"', "\"\""))?,
            false => out.write_all(cell.as_bytes())?,
        }
    }
    out.write_all(b"\n")
}
