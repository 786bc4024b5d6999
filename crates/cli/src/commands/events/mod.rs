//! `trapline events`: the events themselves, one a line.

pub(crate) mod args;
mod console;
mod rows;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Result, bail};
use doubts::DoubtKind;
use event::{Event, EventType, Quality, Side, Sink};
use eventtext::EventPrinter;
use model::Threads;
#[cfg(test)]
use render::schema::{HasShape, Member, Shape};
use render::{ClockUnit, neutral};
use serde::Serialize;
use session::{Guest, GuestPairing, OpenRecording};
use tracefmt::{FormatCatalog, FormatText};
use wildmatch::WildMatch;

use crate::answer::Answer;
use crate::commands::events::args::{EventsArgs, TextConvention};
use crate::commands::events::rows::EventRows;
use crate::commands::no_events;
use crate::opening::{self, AccompanyingFiles};
use crate::options::Format;
use crate::output;
use crate::stream::Stream;
use crate::usage::Usage;

/// Runs the command.
pub(crate) fn run(args: &EventsArgs) -> Result<()> {
    let named = args.guests.host()?;
    let inputs = named.inputs();
    let beside = AccompanyingFiles {
        with_guests: true,
        ..AccompanyingFiles::default()
    };
    let session = opening::session(&args.common, &beside, &inputs)?;
    let host = session.host(&named.recording, &named.guests)?;
    let recording = host.input().recording_with_symbols()?;
    let facts = session.host_facts();
    if args.console {
        if inputs.len() > 1 {
            return Err(Usage::error(
                "--console takes the host's recording alone: what guests write to their consoles are its events",
            ));
        }
        return console::run(args, &recording, facts);
    }
    let paired = host.paired(&recording)?;
    let guests = &paired.guests;
    let names = host.names();
    let name = names.join(", ");
    let none = FormatCatalog::default();
    let format = args.common.format;
    let machines = machines(&recording, guests, &none, (args.convention, args.ns));
    let clock = ClockUnit::of(recording.nanoseconds());
    let start = match format {
        Format::Table => String::new(),
        Format::Csv => csv_head(guests, clock),
        Format::Json => {
            let mut quality = no_events::quality(&recording, facts);
            for text in &paired.left_out {
                quality.raise(DoubtKind::GuestLeftOut { text: text.clone() });
            }
            let answer = Answer {
                format,
                command: "events",
                inputs: &names,
                quality: &quality,
                clock,
            };
            answer.up_to("events")
        }
    };
    let mut sink = Events::new(machines, format, &args.event, Stream::new(&start));
    sink.begin_rows(clock);
    sink.learn(&recording);
    let outcomes = recording.walk_events_with(guests, &mut sink);
    let quality = paired.quality(outcomes);
    sink.stream.check()?;
    if !sink.matched && !args.event.is_empty() {
        bail!(
            "{name}: no event is named {}{}; 'trapline info RECORDING' lists those that a recording has",
            args.event.join(" or "),
            sink.nearest(&args.event)
        );
    }
    recording.require_events(sink.printed)?;
    if !sink.printed && !sink.silent.is_empty() {
        // An empty answer is one, where it is certain that the events would be there.
        let names = words::list(&sink.silent);
        writeln!(
            std::io::stderr(),
            "{}",
            neutral::name(&format!("{name}: recorded, and did not occur: {names}"))
        )?;
    }
    if format == Format::Json {
        sink.stream.text("\n  ]\n}\n");
    }
    sink.stream.end()?;
    // The lines equal the other tools' to the byte, so losses are said beside them.
    match format {
        Format::Table | Format::Csv => output::say_doubts(&name, &quality),
        Format::Json => Ok(()),
    }
}

/// Returns the names of CSV's columns as a line.
fn csv_head(guests: &[Guest<'_>], clock: ClockUnit) -> String {
    let recording = (!guests.is_empty()).then(|| "recording".to_owned());
    let ticks = clock.ticks_name(TIME);
    let names = recording.into_iter().chain([TIME.to_owned()]).chain(ticks);
    let others = ["cpu", "pid", "tid", "comm", "event", "text"].map(str::to_owned);
    let mut out = String::new();
    render::csv::row(&mut out, names.chain(others));
    out
}

/// What the time of an event is called.
const TIME: &str = "time_ns";

/// Returns what prints the events of each recording, the host's first.
fn machines<'f>(
    recording: &'f OpenRecording<'_>,
    guests: &'f [Guest<'_>],
    none: &'f FormatCatalog,
    style: (Option<TextConvention>, bool),
) -> Vec<Machine<'f>> {
    let (convention, ns) = style;
    let readers = std::iter::once(recording.reader()).chain(guests.iter().map(Guest::reader));
    let names = std::iter::once(recording.name()).chain(guests.iter().map(Guest::name));
    let names: Vec<String> = names.map(str::to_owned).collect();
    let machines = readers.zip(prefixes(&names)).map(|(reader, called)| {
        let formats = reader.formats().unwrap_or(none);
        let perf = convention.map_or_else(|| reader.is_perf(), |one| one == TextConvention::Perf);
        // Of guests' kernels the host's recording alone has build ids.
        let host = (called.number == 0).then_some(recording);
        let mut threads = Threads::default();
        let saved = formats.cmdlines.iter();
        threads.saved_names(saved.map(|(tid, name)| (*tid, name.as_str())));
        Machine {
            printer: session::event_printer(reader, host, formats, perf, ns),
            threads,
            rows: EventRows::default(),
            called,
        }
    });
    machines.collect()
}

/// Writes the events that filters let through, and those of guests, as CSV. Returns what the recordings lack.
pub(super) fn csv<'o>(
    recording: &'o OpenRecording<'_>,
    paired: &'o GuestPairing<'_>,
    out: Box<dyn Write + 'o>,
) -> Result<Quality> {
    let guests = &paired.guests;
    let none = FormatCatalog::default();
    let machines = machines(recording, guests, &none, (None, false));
    let clock = ClockUnit::of(recording.nanoseconds());
    let stream = Stream::to(out, &csv_head(guests, clock));
    let mut sink = Events::new(machines, Format::Csv, &[], stream);
    sink.begin_rows(clock);
    sink.learn(recording);
    let outcomes = recording.walk_events_with(guests, &mut sink);
    recording.require_events(sink.printed)?;
    sink.stream.end()?;
    Ok(paired.quality(outcomes))
}

/// An event as an item of a document. What is not known is null.
#[derive(Debug, Serialize)]
struct EventLine<'a> {
    /// Left out where there is one recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    recording: Option<&'a str>,
    time_ns: u64,
    cpu: Option<i32>,
    pid: Option<i32>,
    tid: Option<i32>,
    comm: Option<&'a str>,
    event: &'a str,
    text: &'a str,
}

#[cfg(test)]
render::shape!(EventLine<'static> { recording?, time_ns, cpu, pid, tid, comm, event, text });

/// Returns what documents have of events.
#[cfg(test)]
pub(crate) fn shape() -> Shape {
    Shape::Object(vec![Member::new(
        "events",
        Vec::<EventLine<'static>>::shape(),
    )])
}

/// What a recording is called where there are several.
#[derive(Debug, Default)]
struct RecordingLabel {
    /// Its place among them; the host's is the first.
    number: usize,
    /// The file.
    name: String,
    /// What stands before its lines, as trace-cmd has it; empty where there is one recording.
    prefix: String,
}

/// Returns what recordings are called: by their files' names, those in front that differ by no more by their paths.
fn prefixes(names: &[String]) -> Vec<RecordingLabel> {
    let file = |name: &String| {
        let file = Path::new(name).file_name();
        file.map_or_else(|| name.clone(), |file| file.to_string_lossy().into_owned())
    };
    let mut short: Vec<String> = names.iter().map(file).collect();
    let mut sorted = short.clone();
    sorted.sort();
    if sorted.windows(2).any(|two| two[0] == two[1]) {
        short = names.to_vec();
    }
    let width = short.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or(0);
    let prefix = |name: &String| match names.len() {
        1 => String::new(),
        _ => format!("{name:>width$}: "),
    };
    let all = short.iter().zip(names).enumerate();
    let called = all.map(|(number, (short, name))| RecordingLabel {
        number,
        name: name.clone(),
        prefix: prefix(short),
    });
    called.collect()
}

/// A recording's events are printed by its own formats, with its own names.
struct Machine<'f> {
    printer: EventPrinter<'f>,
    threads: Threads,
    rows: EventRows,
    called: RecordingLabel,
}

struct Events<'f> {
    machines: Vec<Machine<'f>>,
    format: Format,
    globs: Vec<WildMatch>,
    stream: Stream<'f>,
    text: FormatText,
    /// Whether any kind of event was asked for by name and is there.
    matched: bool,
    /// What kinds of events are called, as far as none was asked for by its name.
    others: Vec<String>,
    /// Whether any event was printed.
    printed: bool,
    /// What those kinds are called that were asked for by their name and recorded for certain, whether or not they
    /// happened.
    silent: Vec<String>,
    /// What the events' times count.
    clock: ClockUnit,
}

impl<'f> Events<'f> {
    fn new(
        machines: Vec<Machine<'f>>,
        format: Format,
        globs: &[String],
        stream: Stream<'f>,
    ) -> Events<'f> {
        Events {
            machines,
            format,
            globs: globs.iter().map(|glob| WildMatch::new(glob)).collect(),
            stream,
            text: FormatText::new(),
            matched: false,
            others: Vec::new(),
            printed: false,
            silent: Vec::new(),
            clock: ClockUnit::Nanoseconds,
        }
    }

    /// Returns a remark on the kind of events that may have been meant by one of some names.
    fn nearest(&self, globs: &[String]) -> String {
        let known = || {
            let labels = self.others.iter().map(String::as_str);
            labels.flat_map(|label| [label, label.rsplit(':').next().unwrap_or(label)])
        };
        let asked = globs.iter().map(|glob| glob.replace(['*', '?'], ""));
        let remarks = asked.map(|name| words::did_you_mean(&name, known()));
        remarks.collect()
    }

    /// Takes what is known of the host's threads beside its events.
    fn learn(&mut self, host: &OpenRecording<'_>) {
        if let Some(machine) = self.machines.first_mut() {
            machine.threads.saved_names(host.saved_names());
            machine.threads.add_facts(host.thread_facts());
        }
    }

    /// Appends an event as a row.
    fn row(&mut self, event: &Event<'_>) {
        if let Some(machine) = self.machines.get_mut(usize::from(event.machine())) {
            let (rows, printer) = (&mut machine.rows, &machine.printer);
            self.stream.lines(|out| {
                rows.put(event, printer, &machine.threads, out);
                true
            });
        }
    }

    /// Says what each recording's rows begin with.
    fn begin_rows(&mut self, clock: ClockUnit) {
        self.clock = clock;
        let several = self.machines.len() > 1;
        for machine in &mut self.machines {
            let name = several.then_some(machine.called.name.as_str());
            machine.rows.begin_with(name, clock.is_nanoseconds());
        }
    }

    /// Appends an event as an object.
    fn record(&mut self, event: &Event<'_>) {
        let several = self.machines.len() > 1;
        let Some(machine) = self.machines.get_mut(usize::from(event.machine())) else {
            return;
        };
        self.text.clear();
        machine.printer.body(event, &mut self.text);
        let text = String::from_utf8_lossy(self.text.as_bytes());
        let text = text.trim_end();
        let thread = machine.threads.get(event.tid);
        let comm = event
            .comm
            .or_else(|| thread.and_then(|t| t.comm.as_deref()));
        let known = |n: i32| (n >= 0).then_some(n);
        let pid = known(event.pid).or_else(|| thread.and_then(|t| t.pid));
        let item = EventLine {
            recording: several.then_some(machine.called.name.as_str()),
            time_ns: event.time,
            cpu: known(event.cpu),
            pid,
            tid: known(event.tid),
            comm,
            event: event.ty.label,
            text,
        };
        self.stream.item(item, self.clock);
    }
}

impl Sink for Events<'_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        if let Some(machine) = self.machines.get_mut(usize::from(ty.machine)) {
            machine.printer.declare(ty);
            machine.rows.declare();
        }
        let full = format!("{}:{}", ty.system, ty.name);
        let names = [ty.name, ty.label, &full];
        let wanted = self.globs.is_empty()
            || self
                .globs
                .iter()
                .any(|glob| names.iter().any(|name| glob.matches(name)));
        self.matched |= wanted;
        if wanted && ty.recorded && !self.globs.is_empty() {
            self.silent.push(ty.label.to_owned());
        }
        if !self.matched {
            self.others.push(ty.label.to_owned());
        }
        wanted
    }

    fn wants_samples(&self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.printed = true;
        match self.format {
            Format::Table => {
                if let Some(machine) = self.machines.get_mut(usize::from(event.machine())) {
                    self.stream.lines(|out| {
                        out.extend_from_slice(machine.called.prefix.as_bytes());
                        machine.printer.event(event, out)
                    });
                }
            }
            Format::Json => self.record(event),
            Format::Csv => self.row(event),
        }
        self.stream.flow()
    }

    fn side(&mut self, side: &Side<'_>) {
        self.side_of(0, side);
    }

    fn side_of(&mut self, machine: u16, side: &Side<'_>) {
        let Some(machine) = self.machines.get_mut(usize::from(machine)) else {
            return;
        };
        match self.format {
            Format::Table => {
                let (printer, prefix) = (&mut machine.printer, machine.called.prefix.as_bytes());
                self.stream.lines(|out| {
                    let before = out.len();
                    out.extend_from_slice(prefix);
                    printer.side(side, out);
                    if out.len() == before + prefix.len() {
                        out.truncate(before);
                    }
                    false
                });
            }
            Format::Json | Format::Csv => {
                machine.threads.side(side);
                machine.rows.forget_threads();
            }
        }
    }
}
