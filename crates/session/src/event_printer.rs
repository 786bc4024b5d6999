//! Events as lines of text.

use event::Side;
use eventtext::{EventPrinter, PerfPrinter, PerfStyle, TextStyle, TimeColumns};
use source::RecordingReader;
use tracefmt::FormatCatalog;

use crate::OpenRecording;

/// Returns what prints events of a recording as lines: those of `perf script`, or of `trace-cmd report`. Build ids of
/// kernels are those of the `host`'s recording; `ns` asks for nine digits behind the point of seconds.
pub fn event_printer<'f>(
    reader: &'f RecordingReader<'_>,
    host: Option<&'f OpenRecording<'_>>,
    formats: &'f FormatCatalog,
    perf: bool,
    ns: bool,
) -> EventPrinter<'f> {
    let header = reader.header();
    let times = TimeColumns {
        seconds: header.seconds,
        ns: ns || header.nine_digits,
    };
    if reader.formats().is_none() {
        let style = if perf {
            TextStyle::Perf
        } else {
            TextStyle::TraceCmd
        };
        return EventPrinter::text(formats, style, times);
    }
    if !perf {
        return EventPrinter::trace_cmd(formats, times, &header.buffers);
    }
    let mut style = PerfStyle {
        nanoseconds: ns,
        ..PerfStyle::default()
    };
    if let Some(perf) = reader.perf_data() {
        let tracepoints = || perf.attrs().iter().filter(|a| a.tracepoint_id().is_some());
        style.tracepoint_addresses = tracepoints().any(|a| a.has_callchain());
        style.addresses = style.tracepoint_addresses || tracepoints().count() < perf.attrs().len();
        style.pipe = perf.is_pipe();
        style.kernel_files = host.map(OpenRecording::kernel_files).unwrap_or_default();
    }
    let mut printer = PerfPrinter::new(&style);
    for (tid, comm) in &formats.cmdlines {
        printer.side(&Side::Comm {
            time: 0,
            pid: -1,
            tid: *tid,
            comm,
            exec: false,
        });
    }
    EventPrinter::perf(formats, printer)
}
