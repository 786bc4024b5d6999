//! The events of what a cell counts, printed while the recording is walked once more.

use std::ops::ControlFlow;

use event::{Event, EventOrder, EventType, Side, Sink, index_of};
use eventtext::EventPrinter;
use render::ClockUnit;
use render::explain::{ExplainedPart, ExplainedParts};
use session::CellPart;
use tracefmt::FormatText;

use crate::commands::explain::cell::PartEvents;
use crate::options::Format;
use crate::stream::Stream;

/// A part that has begun.
struct OpenPart {
    /// Its place in the list.
    at: usize,
    /// The event that began it, as a line, and whether it surely did.
    begin: Vec<u8>,
    sure: bool,
    /// One that may have ended it.
    end: Vec<u8>,
}

/// Prints a line about each part, and its two events.
pub(super) struct PartLines<'f, 'p> {
    printer: EventPrinter<'f>,
    of: PartEvents,
    parts: &'p [CellPart],
    /// Places of parts in the order in which they begin, and how many have begun.
    by_begin: Vec<u32>,
    begun: usize,
    open: Vec<OpenPart>,
    stream: Stream<'static>,
    format: Format,
    rows: ExplainedParts,
    clock: ClockUnit,
    /// Parts of which an event was not found, and those that were printed.
    unseen: u64,
    printed: u64,
    line: FormatText,
}

impl<'f, 'p> PartLines<'f, 'p> {
    pub(super) fn new(
        printer: EventPrinter<'f>,
        of: PartEvents,
        parts: &'p [CellPart],
        stream: Stream<'static>,
        format: Format,
        clock: ClockUnit,
    ) -> PartLines<'f, 'p> {
        let places = (0..parts.len()).filter_map(|at| u32::try_from(at).ok());
        let mut by_begin: Vec<u32> = places.collect();
        by_begin.sort_by_key(|at| parts[index_of(*at)].start);
        PartLines {
            printer,
            of,
            parts,
            by_begin,
            begun: 0,
            open: Vec::new(),
            stream,
            format,
            rows: ExplainedParts::new(clock),
            clock,
            unseen: 0,
            printed: 0,
            line: FormatText::new(),
        }
    }

    /// Begins the parts that begin up to a time.
    fn begin(&mut self, time: u64) {
        while let Some(at) = self.by_begin.get(self.begun) {
            let at = index_of(*at);
            if self.parts[at].start > time {
                break;
            }
            self.open.push(OpenPart {
                at,
                begin: Vec::new(),
                sure: false,
                end: Vec::new(),
            });
            self.begun += 1;
        }
    }

    /// Prints a part.
    fn print(&mut self, at: usize, begin: &[u8], end: &[u8]) {
        let part = self.parts[at];
        let needs_begin = !self.of.is_single();
        self.unseen += u64::from(end.is_empty() || needs_begin && begin.is_empty());
        self.printed += 1;
        if self.format == Format::Table {
            let ns = part.end.saturating_sub(part.start);
            let time = words::duration::of(ns, self.clock.is_nanoseconds());
            // An event that counts by itself has a line, and takes no time.
            if !matches!(self.of, PartEvents::Single(_) | PartEvents::Readings(..)) {
                self.stream.text(&format!("# {}: {time}\n", self.printed));
            }
            self.stream.lines(|out| {
                out.extend_from_slice(begin);
                out.extend_from_slice(end);
                false
            });
            return;
        }
        let text = |line: &[u8]| String::from_utf8_lossy(line).trim().to_owned();
        let row = ExplainedPart {
            number: self.printed,
            start: part.start,
            end: part.end,
            tid: (part.tid >= 0).then_some(part.tid),
            begin_event: text(begin),
            end_event: text(end),
        };
        match self.format {
            Format::Json => self.stream.item(ExplainedParts::object(&row), self.clock),
            _ => {
                let mut line = String::new();
                self.rows.csv_row(&row, &mut line);
                self.stream.text(&line);
            }
        }
    }

    /// Ends what ended before a time without an event that says so.
    fn give_up(&mut self, time: u64) {
        let mut at = 0;
        while at < self.open.len() {
            match self.parts[self.open[at].at].end < time {
                true => {
                    let one = self.open.remove(at);
                    self.print(one.at, &one.begin, &one.end);
                }
                false => at += 1,
            }
        }
    }

    /// Ends the list. Returns the stream, and of how many parts an event was not found.
    pub(super) fn finish(mut self) -> (Stream<'static>, u64) {
        self.begin(u64::MAX);
        for one in std::mem::take(&mut self.open) {
            self.print(one.at, &one.begin, &one.end);
        }
        (self.stream, self.unseen)
    }

    /// Gives an event, whose line this is, to the parts that it ends and begins.
    fn place(&mut self, event: &Event<'_>, line: &[u8]) {
        let (of, parts, any) = (self.of, self.parts, self.of.takes_any());
        // An event may end one part and begin another.
        let ends = self.open.iter().position(|one| {
            let part = &parts[one.at];
            part.end == event.time && of.ends(event, part)
        });
        if let Some(place) = ends {
            let one = self.open.remove(place);
            self.print(one.at, &one.begin, line);
        }
        for one in &mut self.open {
            let part = &parts[one.at];
            if part.start == event.time && !one.sure {
                let sure = of.begins(event, part);
                if sure || any && one.begin.is_empty() {
                    one.begin = line.to_vec();
                    one.sure = sure;
                }
            }
            if part.end == event.time && any && one.end.is_empty() {
                one.end = line.to_vec();
            }
        }
    }

    /// Prints a reading of a counter that is a part, in the form of `perf report -D` (`tools/perf/util/session.c`,
    /// `dump_read`), in one line.
    fn reading(&mut self, side: &Side<'_>) {
        let (
            PartEvents::Readings(of, column),
            Side::Counter {
                time,
                pid,
                tid,
                event,
                mode,
                value,
                times_ns,
            },
        ) = (self.of, *side)
        else {
            return;
        };
        let is_next = self
            .parts
            .get(self.begun)
            .is_some_and(|part| part.start == time);
        if !is_next || tid != of || !column.has(event, mode) {
            return;
        }
        let (seconds, below) = (time / 1_000_000_000, time % 1_000_000_000);
        let mut line = format!(
            "{tid:>8} {seconds:>6}.{below:09}: PERF_RECORD_READ: {pid} {tid} {event} {value}"
        );
        if let Some((enabled, running)) = times_ns {
            line.push_str(&format!(" time enabled: {enabled} time running: {running}"));
        }
        line.push('\n');
        self.print(self.begun, b"", line.as_bytes());
        self.begun += 1;
    }

    /// Ends the walk behind the last part.
    fn end_of_parts(&self) -> ControlFlow<()> {
        match self.begun == self.parts.len() && self.open.is_empty() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Sink for PartLines<'_, '_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.printer.declare(ty);
        self.of.wants(ty.kind)
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        EventOrder::Time
    }

    fn wants_samples(&self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if event.machine() != 0 {
            return ControlFlow::Continue(());
        }
        if matches!(self.of, PartEvents::Readings(..)) {
            return self.stream.flow();
        }
        self.begin(event.time);
        self.give_up(event.time);
        let (of, parts, time) = (self.of, self.parts, event.time);
        let any = of.takes_any();
        let touches = |one: &OpenPart| {
            let part = &parts[one.at];
            let (begins, ends) = (part.start == time, part.end == time);
            begins && !one.sure && (any || of.begins(event, part))
                || ends && (any && one.end.is_empty() || of.ends(event, part))
        };
        if self.open.iter().any(touches) {
            self.line.clear();
            self.printer.event(event, &mut self.line);
            let line = self.line.as_bytes().to_vec();
            self.place(event, &line);
        }
        match self.stream.flow() {
            ControlFlow::Continue(()) => self.end_of_parts(),
            ControlFlow::Break(()) => ControlFlow::Break(()),
        }
    }

    fn side(&mut self, side: &Side<'_>) {
        self.reading(side);
        self.line.clear();
        self.printer.side(side, &mut self.line);
    }
}
