//! `trapline events`: the events themselves, one a line.

use std::io::Write;
use std::ops::ControlFlow;

use anyhow::{Result, bail};
use event::{Event, EventType, Quality, Side, Sink};
use eventtext::{EventPrinter, PerfPrinter, PerfStyle, TextStyle, Times};
use model::Threads;
use serde::Serialize;
use session::{Opened, Scope};
use tracefmt::{Formats, Text};
use wildmatch::WildMatch;

use crate::answer::Answer;
use crate::args::{As, EventsArgs, Format};
use crate::commands::{console, no_events};
use crate::opening::{self, Beside};
use crate::output;
use crate::stream::Stream;

/// Runs the command.
pub(crate) fn run(args: &EventsArgs) -> Result<()> {
    let session = opening::session(&args.common, &Beside::default(), &[&args.recording])?;
    let input = session.input(&args.recording)?;
    let recording = input.recording_with_symbols()?;
    let facts = session.host_facts();
    if args.console {
        return console::run(args, &recording, facts);
    }
    let (reader, name) = (recording.reader(), recording.name().to_owned());
    let none = Formats::default();
    let formats = reader.formats().unwrap_or(&none);
    let perf = match args.convention {
        Some(convention) => convention == As::Perf,
        None => reader.is_perf(),
    };
    let printer = printer(&recording, formats, perf, args.ns);
    let format = args.common.format;
    let start = match format {
        Format::Table => String::new(),
        Format::Csv => CSV_HEAD.to_owned(),
        Format::Json => {
            let answer = Answer {
                format,
                command: "events",
                inputs: std::slice::from_ref(&name),
                quality: &no_events::quality(&recording, facts),
            };
            answer.up_to("events")
        }
    };
    let mut sink = Events::new(printer, format, &args.event, Stream::new(&start));
    sink.threads.saved_names(recording.saved_names());
    sink.threads.told(recording.thread_facts());
    let outcome = recording.walk_filtered(&mut sink, Scope::Events);
    sink.stream.check()?;
    if !sink.matched && !args.event.is_empty() {
        bail!(
            "{name}: no event is named {}; 'trapline info {name}' lists those it has",
            args.event.join(" or ")
        );
    }
    if format == Format::Json {
        sink.stream.text("\n  ]\n}\n");
    }
    sink.stream.end()?;
    // The lines equal the other tools' to the byte, so losses are said beside them.
    match format {
        Format::Table => output::say_losses(&name, &outcome.quality),
        Format::Json | Format::Csv => Ok(()),
    }
}

/// The columns of CSV.
pub(crate) const CSV_HEAD: &str = "time_ns,cpu,pid,tid,comm,event,text\n";

/// Writes the events that filters let through as CSV. Returns what the recording lacks.
pub(super) fn csv<'o>(recording: &'o Opened<'_>, out: Box<dyn Write + 'o>) -> Result<Quality> {
    let none = Formats::default();
    let formats = recording.reader().formats().unwrap_or(&none);
    let printer = printer(recording, formats, recording.reader().is_perf(), false);
    let mut sink = Events::new(printer, Format::Csv, &[], Stream::to(out, CSV_HEAD));
    sink.threads.saved_names(recording.saved_names());
    sink.threads.told(recording.thread_facts());
    let outcome = recording.walk_filtered(&mut sink, Scope::Events);
    sink.stream.end()?;
    Ok(outcome.quality)
}

/// Chooses the columns.
pub(super) fn printer<'f>(
    recording: &'f Opened<'_>,
    formats: &'f Formats,
    perf: bool,
    ns: bool,
) -> EventPrinter<'f> {
    let reader = recording.reader();
    let header = reader.header();
    let times = Times {
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
        style.kernel_files = recording.kernel_files();
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

/// An event as an item of a document. What is not known is null.
#[derive(Debug, Serialize)]
struct Item<'a> {
    time_ns: u64,
    cpu: Option<i32>,
    pid: Option<i32>,
    tid: Option<i32>,
    comm: Option<&'a str>,
    event: &'a str,
    text: &'a str,
}

struct Events<'f> {
    printer: EventPrinter<'f>,
    format: Format,
    globs: Vec<WildMatch>,
    threads: Threads,
    stream: Stream<'f>,
    text: Text,
    /// Whether any kind of event was asked for by name and is there.
    matched: bool,
}

impl<'f> Events<'f> {
    fn new(
        printer: EventPrinter<'f>,
        format: Format,
        globs: &[String],
        stream: Stream<'f>,
    ) -> Events<'f> {
        Events {
            printer,
            format,
            globs: globs.iter().map(|glob| WildMatch::new(glob)).collect(),
            threads: Threads::default(),
            stream,
            text: Text::new(),
            matched: false,
        }
    }

    /// Appends an event as an object or a row.
    fn record(&mut self, event: &Event<'_>) {
        self.text.clear();
        self.printer.body(event, &mut self.text);
        let text = String::from_utf8_lossy(self.text.as_bytes());
        let text = text.trim_end();
        let thread = self.threads.get(event.tid);
        let comm = event
            .comm
            .or_else(|| thread.and_then(|t| t.comm.as_deref()));
        let known = |n: i32| (n >= 0).then_some(n);
        let pid = known(event.pid).or_else(|| thread.and_then(|t| t.pid));
        if self.format == Format::Csv {
            let number = |n: Option<i32>| n.map(|n| n.to_string()).unwrap_or_default();
            let mut row = String::new();
            render::csv::row(
                &mut row,
                [
                    event.time.to_string().as_str(),
                    &number(known(event.cpu)),
                    &number(pid),
                    &number(known(event.tid)),
                    comm.unwrap_or(""),
                    event.ty.label,
                    text,
                ],
            );
            self.stream.text(&row);
            return;
        }
        self.stream.item(&Item {
            time_ns: event.time,
            cpu: known(event.cpu),
            pid,
            tid: known(event.tid),
            comm,
            event: event.ty.label,
            text,
        });
    }
}

impl Sink for Events<'_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.printer.declare(ty);
        let full = format!("{}:{}", ty.system, ty.name);
        let names = [ty.name, ty.label, &full];
        let wanted = self.globs.is_empty()
            || self
                .globs
                .iter()
                .any(|glob| names.iter().any(|name| glob.matches(name)));
        self.matched |= wanted;
        wanted
    }

    fn wants_samples(&self) -> bool {
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match self.format {
            Format::Table => {
                let printer = &mut self.printer;
                self.stream.lines(|out| printer.event(event, out));
            }
            Format::Json | Format::Csv => self.record(event),
        }
        self.stream.flow()
    }

    fn side(&mut self, side: &Side<'_>) {
        match self.format {
            Format::Table => {
                let printer = &mut self.printer;
                self.stream.lines(|out| {
                    printer.side(side, out);
                    false
                });
            }
            Format::Json | Format::Csv => self.threads.side(side),
        }
    }
}
