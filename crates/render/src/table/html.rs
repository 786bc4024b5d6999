//! A table as HTML, for pages: exact values beside what people read.

use std::borrow::Borrow;
use std::fmt::Write;

use serde_json::Value;
use words::{duration, share};

use super::{Column, Table, Unit};
use crate::html::{Frame, TableEvents, escape};

impl Unit {
    /// Returns what pages call it.
    fn name(self, nanoseconds: bool) -> &'static str {
        match self {
            Unit::Text | Unit::Name => "text",
            Unit::Number => "number",
            Unit::Count => "count",
            Unit::Nanoseconds if nanoseconds => "ns",
            Unit::Nanoseconds => "ticks",
            Unit::Share => "share",
            Unit::Value => "value",
            Unit::Address | Unit::Vector => "address",
            Unit::Flag => "flag",
            Unit::Nested => "list",
        }
    }
}

/// Whether a column of times holds points in time, which are printed as they stand in the recording.
fn is_point(name: &str) -> bool {
    name.ends_with("_at_ns") || matches!(name, "from_ns" | "to_ns" | "start_ns")
}

impl<R> Column<'_, R> {
    /// Returns the exact value as documents have it; nothing for names and for what the row does not have.
    fn exact(&self, value: Option<&Value>) -> Option<String> {
        match value {
            None | Some(Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_)) => {
                None
            }
            Some(value) => Some(value.to_string()),
        }
    }

    fn cell(&self, row: &R, value: Option<&Value>, frame: &Frame<'_>) -> String {
        let number = value.and_then(Value::as_u64);
        match (self.unit, value) {
            (_, None | Some(Value::Null)) => "-".to_owned(),
            (Unit::Nanoseconds, Some(_)) if is_point(&self.name) => match number {
                Some(at) if frame.layout.nanoseconds => duration::seconds(at),
                _ => number.unwrap_or_default().to_string(),
            },
            (Unit::Share, Some(value)) => share::tenths(value.as_f64().unwrap_or_default()),
            (Unit::Address, Some(_)) => format!("{:#x}", number.unwrap_or_default()),
            (Unit::Flag, Some(value)) => match value.as_bool() {
                Some(true) => "yes".to_owned(),
                _ => "no".to_owned(),
            },
            (_, Some(Value::String(text))) => crate::clean(text),
            (Unit::Nanoseconds, Some(value)) => match value.as_i64() {
                Some(less) if less < 0 => format!("-{}", frame.layout.time(less.unsigned_abs())),
                _ => self.text(row, frame.layout),
            },
            (Unit::Value, Some(value)) if self.show.is_none() => match value.as_f64() {
                Some(number) if value.is_f64() => words::number(number),
                _ => value.to_string(),
            },
            (Unit::Number | Unit::Count, Some(value)) => value.to_string(),
            _ => self.text(row, frame.layout),
        }
    }
}

impl<R> Table<'_, R> {
    /// Returns a text in which columns of times are called as they are on a page.
    pub(crate) fn with_headings(&self, text: &str) -> String {
        let columns = self.columns.iter();
        let times = columns.filter(|column| column.unit == Unit::Nanoseconds);
        times.fold(text.to_owned(), |text, column| match column.page {
            Some(heading) => with_heading(&text, &column.name, heading),
            None => text,
        })
    }

    /// Returns a text in which columns of times are called as they are on a terminal, which is their name without the
    /// unit.
    pub(crate) fn with_columns(&self, text: &str) -> String {
        let columns = self.columns.iter();
        let times = columns.filter(|column| column.unit == Unit::Nanoseconds);
        times.fold(text.to_owned(), |text, column| {
            match column.name.strip_suffix("_ns") {
                Some(heading) => with_heading(&text, &column.name, heading),
                None => text,
            }
        })
    }

    /// Returns rows as a table of a page; columns that no row has are left out. Beyond the frame's limit a sentence
    /// says how many rows there are, and what prints them.
    pub(crate) fn html(
        &self,
        rows: impl IntoIterator<Item = impl Borrow<R>>,
        frame: &Frame<'_>,
    ) -> String {
        let limit = frame.layout.limit;
        let mut left = 0usize;
        let mut kept = Vec::new();
        for row in rows {
            if kept.len() < limit {
                kept.push(row);
            } else {
                left += 1;
            }
        }
        let columns = self.ordered(|column| column.after).into_iter();
        let columns = columns.filter_map(|column| {
            let heading = column.page?;
            let values = kept.iter().map(|row| column.value(row.borrow()));
            let values: Vec<Option<Value>> = values.collect();
            let any = values
                .iter()
                .any(|value| value.as_ref().is_some_and(|value| !value.is_null()));
            any.then_some((column, heading, values))
        });
        let columns: Vec<_> = columns.collect();
        let mut out = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{caption}\"><table class=\"data\" \
             id=\"table-{name}\" data-name=\"{name}\" data-command=\"{}\"{}><caption>{caption}</caption>\n<thead><tr>",
            escape(frame.command),
            frame.events.map_or_else(String::new, events),
            caption = escape(frame.caption),
            name = escape(frame.name),
        );
        for (column, heading, _) in &columns {
            let _ = write!(
                out,
                "<th scope=\"col\" data-unit=\"{}\" data-column=\"{}\">{}</th>",
                column.unit.name(frame.layout.nanoseconds),
                escape(&column.name),
                escape(heading),
            );
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for (at, row) in kept.iter().enumerate() {
            match frame.rows {
                true => drop(write!(out, "<tr id=\"row-{}-{at}\">", escape(frame.name))),
                false => out.push_str("<tr>"),
            }
            for (column, _, values) in &columns {
                let value = values.get(at).and_then(Option::as_ref);
                let cell = escape(&column.cell(row.borrow(), value, frame));
                let text = matches!(column.unit, Unit::Text | Unit::Name | Unit::Nested);
                let _ = match column.exact(value) {
                    Some(exact) => write!(out, "<td data-v=\"{exact}\">{cell}</td>"),
                    None if text || cell != "-" => write!(out, "<td>{cell}</td>"),
                    None => write!(out, "<td class=\"none\">{cell}</td>"),
                };
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        if left > 0 {
            let _ = writeln!(
                out,
                "<p class=\"more\">{} not shown here; <code>{}</code> prints all.</p>",
                words::counted(left, "more row is", "more rows are"),
                escape(frame.command),
            );
        }
        out
    }
}

/// Returns attributes that say how the events behind numbers are printed.
fn events(events: TableEvents<'_>) -> String {
    let row = events
        .row
        .map(|row| format!(" data-explain-row=\"{}\"", escape(row)));
    format!(
        " data-explain=\"{}\" data-explain-of=\"{}\"{} data-recording=\"{}\"",
        escape(events.command),
        escape(events.of),
        row.unwrap_or_default(),
        events.recording
    )
}

/// Returns a text in which a column is called as its heading.
fn with_heading(text: &str, name: &str, heading: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, from) = rest.split_at(at);
        // A name may be the end of another one.
        let within = before.ends_with(|c: char| c == '_' || c.is_ascii_alphanumeric());
        out.push_str(before);
        match within {
            true => out.push_str(name),
            false => drop(write!(out, "'{heading}'")),
        }
        rest = &from[name.len()..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    struct Row {
        name: &'static str,
        ns: Option<u64>,
    }

    #[test]
    fn a_page_s_table_has_exact_values_and_escaped_names() {
        let table = Table::new()
            .column("worst_at_ns", Unit::Nanoseconds, |row: &Row| row.ns)
            .page("worst at")
            .column("name", Unit::Name, |row| row.name)
            .page("name")
            .after("")
            .column("share", Unit::Share, |_| 0.25)
            .page("of all")
            .column("never", Unit::Count, |_| None::<u64>)
            .page("never")
            .column("wait_ns", Unit::Nanoseconds, |row| row.ns)
            .page("waited")
            .after("name");
        let rows = [
            Row {
                name: "<script>&\"\x1b",
                ns: Some(12_345),
            },
            Row {
                name: "b",
                ns: None,
            },
            Row {
                name: "c",
                ns: Some(1),
            },
        ];
        let frame = Frame {
            name: "waits",
            command: "trapline waits 'a b'",
            caption: "waits",
            rows: true,
            events: None,
            layout: Layout {
                width: 80,
                limit: 2,
                nanoseconds: true,
            },
        };
        let html = table.html(&rows, &frame);
        assert!(html.contains("<tr id=\"row-waits-0\"><td>&lt;script&gt;&amp;&quot;\\x1b</td><td \
            data-v=\"12345\">12.35us</td><td data-v=\"12345\">0.000012345</td><td data-v=\"0.25\">25.0 \
            %</td></tr>"), "{html}");
        assert!(
            html.contains("<td>b</td><td class=\"none\">-</td>"),
            "{html}"
        );
        assert!(!html.contains("never"), "{html}");
        assert!(
            html.contains("data-unit=\"ns\" data-column=\"wait_ns\">waited"),
            "{html}"
        );
        assert!(
            html.contains(
                "1 more row is not shown here; <code>trapline waits &#39;a b&#39;</code> prints \
            all."
            ),
            "{html}"
        );
    }
}
