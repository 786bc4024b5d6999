//! One line an event, in the columns of perf or of trace-cmd, whatever the recording is.

use event::{Body, Event, EventType, Side};
use tracefmt::{FormatCatalog, FormatText, PrintStyle};

use crate::PerfPrinter;
use crate::columns::TimeColumns;
use crate::perf_line::hex_record;
use crate::text_line::{TextPrinter, TextStyle};
use crate::tracecmd_line::{LineCache, LineHead, LineStyle, TimeStyle, lost_line};

/// Prints events as lines.
#[derive(Debug)]
pub struct EventPrinter<'f> {
    formats: &'f FormatCatalog,
    columns: LineColumns<'f>,
}

#[derive(Debug)]
enum LineColumns<'f> {
    Perf(Box<PerfPrinter>),
    TraceCmd {
        style: LineStyle,
        cache: LineCache,
        buffers: &'f [String],
        /// The buffer whose gap was printed just before.
        gap: Option<u16>,
    },
    Text(Box<TextPrinter>),
}

impl<'f> EventPrinter<'f> {
    /// Prints as `perf script` does.
    pub fn perf(formats: &'f FormatCatalog, printer: PerfPrinter) -> EventPrinter<'f> {
        EventPrinter {
            formats,
            columns: LineColumns::Perf(Box::new(printer)),
        }
    }

    /// Prints as `trace-cmd report -N` does. `buffers` are the names of the ring buffers, the main one
    /// first.
    pub fn trace_cmd(
        formats: &'f FormatCatalog,
        times: TimeColumns,
        buffers: &'f [String],
    ) -> EventPrinter<'f> {
        let time = match (times.seconds, times.ns) {
            (true, false) => TimeStyle::Seconds,
            (true, true) => TimeStyle::NanoSeconds,
            (false, _) => TimeStyle::Plain,
        };
        let instances = buffers.iter().skip(1).map(String::as_str);
        let style = LineStyle::new(time, instances);
        EventPrinter {
            formats,
            columns: LineColumns::TraceCmd {
                style,
                cache: LineCache::new(),
                buffers,
                gap: None,
            },
        }
    }

    /// Prints events of a text, whose own texts stay as they stood.
    pub fn text(
        formats: &'f FormatCatalog,
        style: TextStyle,
        times: TimeColumns,
    ) -> EventPrinter<'f> {
        EventPrinter {
            formats,
            columns: LineColumns::Text(Box::new(TextPrinter::new(style, times))),
        }
    }

    /// Takes note of a kind of event: columns are as wide as the longest name. To be called for every kind
    /// that the recording mentions before the first event.
    pub fn declare(&mut self, ty: &EventType<'_>) {
        if let LineColumns::Perf(printer) = &mut self.columns {
            printer.declare(ty);
        }
    }

    /// Takes a side record. trace-cmd prints a line for lost events.
    pub fn side(&mut self, side: &Side<'_>, out: &mut FormatText) {
        match &mut self.columns {
            LineColumns::Perf(printer) => printer.side(side),
            LineColumns::TraceCmd {
                style,
                buffers,
                gap,
                ..
            } => {
                if let Side::Lost {
                    cpu, buffer, count, ..
                } = *side
                {
                    let name = buffers.get(usize::from(buffer)).map_or("", String::as_str);
                    lost_line(out, u32::try_from(cpu).unwrap_or(0), count, name, style);
                    *gap = Some(buffer);
                }
            }
            LineColumns::Text(_) => {}
        }
    }

    /// Appends an event's line, its end included. Returns whether it is known that the line is plain
    /// ([`tracefmt::is_plain`]), as most are: nothing in it is a text of the recording that was not looked at.
    #[inline]
    pub fn event(&mut self, event: &Event<'_>, out: &mut FormatText) -> bool {
        match &mut self.columns {
            LineColumns::Perf(printer) => printer.event(event, self.formats, out),
            LineColumns::TraceCmd {
                style,
                cache,
                buffers,
                gap,
            } => {
                let data = match event.body {
                    Body::Raw(data) => data,
                    _ => &[],
                };
                let name = buffers
                    .get(usize::from(event.buffer))
                    .map_or("", String::as_str);
                let head = LineHead {
                    time: event.time,
                    cpu: u32::try_from(event.cpu).unwrap_or(0),
                    pid: event.tid,
                    buffer: name,
                    after_gap: gap.take() == Some(event.buffer),
                };
                let format = event.ty.format;
                let plain = cache.head(out, &head, event.ty.index, format, self.formats, style);
                if let Some(format) = event.ty.format {
                    format.print(data, self.formats, PrintStyle::TraceCmd, out);
                }
                // Stacks and trace_printk end in a line feed of their own.
                if out.as_bytes().last() != Some(&b'\n') {
                    out.push(b'\n');
                }
                plain
            }
            LineColumns::Text(printer) => {
                printer.line(out, event);
                false
            }
        }
    }

    /// Appends the event's own text alone.
    pub fn body(&self, event: &Event<'_>, out: &mut FormatText) {
        match (event.body, event.ty.format) {
            (Body::Raw(data), Some(format)) => {
                format.print(data, self.formats, PrintStyle::TraceCmd, out);
            }
            (Body::Raw(data), None) => hex_record(data, out),
            (Body::Text { text, .. }, _) => out.extend_from_slice(text.as_bytes()),
            _ => {}
        }
    }
}
