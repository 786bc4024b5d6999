//! What is known of a text so far, and how its events go out.

use std::borrow::Cow;
use std::ops::ControlFlow;

use event::text::decimal;
use event::{
    Body, Data, Event, EventSample, Isa, Kind, LostKind, NONE, Side, Sink, StackFrame, TextReader,
    TextReading,
};

use crate::cpus::TextCpus;
use crate::event_like::{looks_like_event, looks_like_output};
use crate::head::{EventHead, HeadRest};
use crate::line_parts::{before_name, is_name, without_tail};
use crate::lines::{MAX_LINE, TextLine};
use crate::notes::TextNotes;
use crate::other::{LineContext, OtherLine};
use crate::record::{self, TextRecord};
use crate::summary::{TextProducer, TextSummary, TextTimeUnit, TypeCount};
use crate::types::Types;
use crate::who::LineTask;

/// Events counted as certain; for telling what a text is no more are needed.
const ENOUGH: u64 = 100;
/// Files and buffers distinguished in a merged report.
const MAX_SOURCES: usize = 1024;
/// Notes of lost events kept until the event behind them.
const MAX_PENDING: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct TextState {
    /// Bytes consumed by earlier pieces.
    offset: u64,
    lines: u64,
    events: u64,
    /// Events that leave no doubt: their line has a CPU, a subsystem or a period, or a stack follows it.
    certain: u64,
    /// Whether the last event is one of them.
    sure: bool,
    /// Lines that say nothing of how much of a text is events: of stacks, headers, and empty ones.
    beside: u64,
    types: Types,
    style: Option<TextProducer>,
    /// Whether a header named the style.
    style_reported: bool,
    /// Whether times have no decimal point.
    ticks: Option<bool>,
    decimals: u8,
    last_time: u64,
    /// Whether an event gave its thread.
    thread_column: bool,
    /// Events that perf printed before any gave its thread.
    no_thread_lines: u32,
    after_event: bool,
    in_stack: bool,
    /// Whether the sink got the last event, and so its stack.
    sent: bool,
    cpus: TextCpus,
    machine_cpus: Option<u32>,
    sources: Vec<Box<[u8]>>,
    pending_lost: Vec<(i32, Option<u64>)>,
    notes: TextNotes,
}

impl TextState {
    pub(crate) fn at_start(&self) -> bool {
        self.offset == 0
    }

    pub(crate) fn consumed(&mut self, bytes: usize) {
        self.offset += bytes as u64;
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn certain(&self) -> u64 {
        self.certain
    }

    /// Lines beside events that belong to them.
    pub(crate) fn beside(&self) -> u64 {
        self.beside
    }

    pub(crate) fn style(&self) -> Option<TextProducer> {
        self.style
    }

    pub(crate) fn style_reported(&self) -> bool {
        self.style_reported
    }

    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    #[inline]
    pub(crate) fn types(&self) -> &Types {
        &self.types
    }

    /// Returns whether perf printed the text without thread ids.
    #[inline]
    pub(crate) fn no_thread_column(&self) -> bool {
        // One such line can be damage.
        self.no_thread_lines == 3 && !self.thread_column
    }

    pub(crate) fn context(&self) -> LineContext {
        LineContext {
            after_event: self.after_event,
            in_stack: self.in_stack,
        }
    }

    /// Returns whether a line's time is a whole number where others have decimals: the point got lost, or it is
    /// no event at all. The other way round it is the earlier lines that were damaged.
    #[inline]
    pub(crate) fn is_foreign(&self, head: &EventHead) -> bool {
        head.decimals == 0 && self.ticks == Some(false)
    }

    #[inline]
    fn count_lines(&mut self, line: &TextLine<'_>) -> u64 {
        let number = self.lines + 1;
        self.lines += line.count;
        if line.count > 1 {
            self.notes.joined.add(number);
        }
        number
    }

    /// Takes a line of the function_graph tracer without a time of day or a CPU.
    pub(crate) fn untimed_graph(&mut self, line: &TextLine<'_>) {
        let number = self.count_lines(line);
        self.notes.untimed_graph.add(number);
        (self.after_event, self.in_stack) = (false, false);
    }

    pub(crate) fn untimed_graph_lines(&self) -> u64 {
        self.notes.untimed_graph.count
    }

    pub(crate) fn not_understood(&mut self, line: &TextLine<'_>) {
        let number = self.count_lines(line);
        if looks_like_event(&line.bytes) {
            self.notes.unread_events.add(number);
            // The stack behind it is of none that is known.
            self.sent = false;
        }
        // Whatever comes before the first event is an introduction. Of lines that are too long nothing is kept.
        let long = line.bytes.is_empty() || line.bytes.len() > MAX_LINE;
        if self.events > 0 && (long || looks_like_output(&line.bytes)) {
            let offset = self.offset + line.start as u64;
            self.notes.not_understood(number, offset);
        }
    }

    /// Returns the kind of an event, asking the sink about new ones.
    #[inline]
    pub(crate) fn type_of(
        &mut self,
        line: &TextLine<'_>,
        head: &EventHead,
        sink: &mut dyn Sink,
    ) -> Option<usize> {
        if let Some(ty) = head.ty {
            return Some(ty as usize);
        }
        let key = match head.what {
            HeadRest::Function => &b"function"[..],
            HeadRest::KernelStack => b"kernel_stack",
            HeadRest::UserStack => b"user_stack",
            HeadRest::Event | HeadRest::Record => head.name.of(&line.bytes),
        };
        self.type_named(key, sink)
    }

    #[inline]
    fn type_named(&mut self, key: &[u8], sink: &mut dyn Sink) -> Option<usize> {
        let (index, new) = self.types.find_or_add(key)?;
        if new {
            let wanted = sink.wants(&self.types.get(index).event_type(index));
            self.types.get_mut(index).wanted = wanted;
        }
        Some(index)
    }

    #[inline]
    pub(crate) fn wants(&self, ty: usize) -> (Kind, bool) {
        let entry = self.types.get(ty);
        (entry.kind, entry.wanted)
    }

    /// Sends an event out.
    #[inline]
    pub(crate) fn event(
        &mut self,
        line: &TextLine<'_>,
        head: &EventHead,
        ty: usize,
        reading: TextReading,
        sink: &mut dyn Sink,
    ) -> ControlFlow<()> {
        let number = self.count_lines(line);
        self.note(line, head, number);
        let buffer = if head.who.source.is_empty() {
            0
        } else {
            self.source(head.who.source.of(&line.bytes), number)
        };
        self.send_lost(head.time, buffer, sink);
        self.after_event = true;
        self.in_stack = matches!(head.what, HeadRest::KernelStack | HeadRest::UserStack);
        let entry = self.types.get_mut(ty);
        entry.count += 1;
        self.sent = entry.wanted;
        if !entry.wanted {
            return ControlFlow::Continue(());
        }
        if entry.kind.is_read_in_parts() && reading.data == Data::Other {
            self.notes.unread_data.add(number);
        }
        // A line is checked at once, and in its parts only if something is wrong with it.
        let (text, comm);
        if let Some(whole) = line.text.or_else(|| std::str::from_utf8(&line.bytes).ok()) {
            let args = whole.get(head.args as usize..).unwrap_or_default();
            text = Cow::Borrowed(without_tail(args.trim_ascii_end(), &line.bytes));
            comm = whole.get(head.who.comm.range()).map(Cow::Borrowed);
        } else {
            self.notes.odd_text.add(number);
            let args = line.bytes.get(head.args as usize..).unwrap_or_default();
            text = String::from_utf8_lossy(args.trim_ascii_end());
            comm = Some(String::from_utf8_lossy(head.who.comm.of(&line.bytes)));
        }
        let comm = comm.as_deref().filter(|comm| is_name(comm, head.who.tid));
        let ty = self.types.get(ty).event_type(ty);
        let period = before_name(line, head).and_then(decimal);
        let sample = period.map(|_| EventSample {
            period,
            has_cpu: head.who.cpu >= 0,
            ..EventSample::default()
        });
        let data = if ty.kind.is_read_in_parts() {
            reading.data
        } else {
            TextReader::read_whole(ty.kind, text.as_bytes())
        };
        sink.event(&Event {
            time: head.time,
            cpu: head.who.cpu,
            tid: head.who.tid,
            pid: head.who.pid,
            ty: &ty,
            body: Body::Text { text: &text, data },
            sample: sample.as_ref(),
            buffer,
            comm,
        })
    }

    /// Learns from an event's head.
    #[inline]
    fn note(&mut self, line: &TextLine<'_>, head: &EventHead, number: u64) {
        self.events += 1;
        let who = &head.who;
        self.sure = true;
        if self.certain < ENOUGH {
            let period = || before_name(line, head).is_some();
            let quoted = || memchr::memchr(b'"', who.comm.of(&line.bytes)).is_some();
            let has_column = who.cpu >= 0 || head.has_system || head.has_flags(&line.bytes);
            self.sure = (has_column || period()) && !quoted();
            self.certain += u64::from(self.sure);
        }
        if head.time < self.last_time {
            self.notes.backwards.add(number);
        }
        self.last_time = head.time;
        self.decimals = self.decimals.max(head.decimals);
        if who.cpu >= 0 {
            self.cpus.add(who.cpu);
        } else {
            self.notes.cpuless += 1;
        }
        if self.ticks != Some(false) {
            self.ticks = Some(head.decimals == 0);
        }
        if self.style.is_none() {
            self.note_style(head);
        }
        self.thread_column |= who.has_tid;
        self.no_thread_lines +=
            u32::from(head.has_system && !self.thread_column && self.no_thread_lines < 3);
    }

    fn note_style(&mut self, head: &EventHead) {
        let LineTask {
            has_tid,
            joined,
            latency,
            ..
        } = head.who;
        let style = match head.padded {
            _ if head.has_system || (has_tid && !joined) => TextProducer::PerfScript,
            Some(true) => TextProducer::TraceCmd,
            Some(false) if latency => TextProducer::FtraceLatency,
            Some(false) => TextProducer::Ftrace,
            None if head.what != HeadRest::Event => TextProducer::Ftrace,
            None => return,
        };
        self.tell_style(style, false);
    }

    fn tell_style(&mut self, style: TextProducer, reported: bool) {
        if self.style.is_none() || (reported && !self.style_reported) {
            self.style = Some(style);
            self.style_reported = reported;
        }
    }

    /// Returns the number of the file or buffer with this name.
    fn source(&mut self, name: &[u8], line: u64) -> u16 {
        if let Some(at) = self.sources.iter().position(|s| **s == *name) {
            return u16::try_from(at).unwrap_or(0);
        }
        if self.sources.len() >= MAX_SOURCES {
            self.notes.sources_merged.add(line);
            return 0;
        }
        self.sources.push(name.into());
        u16::try_from(self.sources.len() - 1).unwrap_or(0)
    }

    /// Sends out what was lost before an event.
    #[inline]
    fn send_lost(&mut self, time: u64, buffer: u16, sink: &mut dyn Sink) {
        for (cpu, count) in self.pending_lost.drain(..) {
            let side = Side::Lost {
                time,
                cpu,
                buffer,
                count,
                kind: LostKind::Ring,
            };
            self.notes.losses.note(&side);
            sink.side(&side);
        }
    }

    fn utf8<'t>(&mut self, bytes: &'t [u8], line: u64) -> Cow<'t, str> {
        if std::str::from_utf8(bytes).is_err() {
            self.notes.odd_text.add(line);
        }
        String::from_utf8_lossy(bytes)
    }

    fn lost(&mut self, cpu: i32, count: Option<u64>, number: u64) {
        self.notes.lost(count, number);
        if self.pending_lost.len() < MAX_PENDING {
            self.pending_lost.push((cpu, count));
        }
    }

    /// Reads a record that perf prints beside events.
    pub(crate) fn record(&mut self, line: &TextLine<'_>, head: &EventHead, sink: &mut dyn Sink) {
        let number = self.count_lines(line);
        self.certain += 1;
        self.after_event = true;
        self.in_stack = false;
        self.tell_style(TextProducer::PerfScript, false);
        let text = line
            .bytes
            .get(head.name.start as usize..)
            .unwrap_or_default();
        let Some(record) = record::read(text) else {
            return;
        };
        if let TextRecord::Lost { count, kind } = record {
            match kind {
                LostKind::Ring => self.notes.lost(count, number),
                LostKind::Sum => {
                    self.notes.lost_sum = self.notes.lost_sum.saturating_add(count.unwrap_or(0));
                }
            }
        }
        let text = match record {
            TextRecord::Comm { comm, .. } => self.utf8(comm, number),
            TextRecord::Mmap { path, .. } => self.utf8(path, number),
            _ => Cow::Borrowed(""),
        };
        if let Some(side) = record::side(&record, head, &text) {
            self.notes.losses.note(&side);
            sink.side(&side);
        }
    }

    /// Takes a line that is no event's; `bare` is it without what pasting put before it.
    pub(crate) fn other(
        &mut self,
        line: &TextLine<'_>,
        what: OtherLine,
        bare: &[u8],
        sink: &mut dyn Sink,
    ) -> ControlFlow<()> {
        if what == OtherLine::Unknown {
            self.not_understood(line);
            self.after_event = false;
            return ControlFlow::Continue(());
        }
        if let OtherLine::Raw {
            tid,
            cpu,
            time,
            number,
        } = what
        {
            return self.raw_event(line, (tid, cpu, time), number.of(bare), sink);
        }
        let number = self.count_lines(line);
        self.in_stack = what == OtherLine::Stack;
        // What stands above a stack is an event.
        if self.in_stack && self.after_event && !self.sure {
            self.sure = true;
            self.certain += 1;
        }
        self.after_event &= self.in_stack;
        if matches!(
            what,
            OtherLine::Stack | OtherLine::Blank | OtherLine::Header
        ) {
            self.beside += 1;
        }
        match what {
            OtherLine::Stack if self.sent => {
                let whole = line.text.filter(|text| text.len() == bare.len());
                let text = whole.or_else(|| std::str::from_utf8(bare).ok());
                if let Some(frame) = text.and_then(StackFrame::parse) {
                    sink.side(&Side::StackLine(frame));
                }
            }
            OtherLine::Tracer => self.tell_style(TextProducer::Ftrace, true),
            OtherLine::LatencyTracer => {
                self.style_reported = false;
                self.tell_style(TextProducer::FtraceLatency, true);
            }
            OtherLine::Entries {
                held,
                written,
                cpus,
            } => {
                self.machine_cpus = self.machine_cpus.max(cpus);
                self.notes.held = self.notes.held.saturating_add(held);
                let older = written.saturating_sub(held);
                self.notes.overwritten = self.notes.overwritten.saturating_add(older);
            }
            OtherLine::Cpus { count, source } => {
                self.tell_style(TextProducer::TraceCmd, true);
                // A top buffer that `trace-cmd split --top -b NAME` renamed is left behind without CPUs.
                if count > 0 {
                    self.machine_cpus = self.machine_cpus.max(Some(count));
                    let name = source.unwrap_or_default().of(bare);
                    self.source(name, number);
                }
            }
            OtherLine::Lost { cpu, count } => self.lost(cpu, count, number),
            OtherLine::LostSum { count } => {
                self.notes.lost_sum = self.notes.lost_sum.saturating_add(count);
                let (cpu, kind) = (NONE, LostKind::Sum);
                sink.side(&Side::Lost {
                    time: 0,
                    cpu,
                    buffer: 0,
                    count: Some(count),
                    kind,
                });
            }
            OtherLine::LostSome => self.notes.lost_said.add(number),
            OtherLine::Elision if self.events > 0 => self.notes.elisions.add(number),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// Sends an event of the kernel's option `raw` out. Its name is its number.
    fn raw_event(
        &mut self,
        line: &TextLine<'_>,
        (tid, cpu, time): (i32, i32, u64),
        event: &[u8],
        sink: &mut dyn Sink,
    ) -> ControlFlow<()> {
        let mut key = b"type:".to_vec();
        key.extend_from_slice(event);
        let ty = if self.ticks == Some(false) {
            None
        } else {
            self.type_named(&key, sink)
        };
        let Some(ty) = ty else {
            self.not_understood(line);
            return ControlFlow::Continue(());
        };
        let number = self.count_lines(line);
        self.notes.raw_events.add(number);
        // Five numbers in a line are not much without the header.
        self.certain += u64::from(self.style_reported);
        self.style = Some(TextProducer::FtraceRaw);
        self.ticks = Some(true);
        self.events += 1;
        self.thread_column = true;
        self.cpus.add(cpu);
        if time < self.last_time {
            self.notes.backwards.add(number);
        }
        self.last_time = time;
        self.send_lost(time, 0, sink);
        self.types.get_mut(ty).count += 1;
        let entry = self.types.get(ty);
        if !entry.wanted {
            return ControlFlow::Continue(());
        }
        sink.event(&Event {
            time,
            cpu,
            tid,
            pid: NONE,
            ty: &entry.event_type(ty),
            body: Body::Text {
                text: "",
                data: Data::Other,
            },
            sample: None,
            buffer: 0,
            comm: None,
        })
    }

    /// Returns how many events were lost where it happened.
    pub(crate) fn lost_until_now(&self) -> u64 {
        self.notes.lost_ring
    }

    /// Ends the reading.
    pub(crate) fn finish(mut self, isa: Option<Isa>, sink: &mut dyn Sink) -> TextSummary {
        self.send_lost(self.last_time, 0, sink);
        let ticks = self.ticks == Some(true);
        let quality = self.notes.quality(self.events, ticks);
        let merged = self.sources.len() > 1 || self.sources.first().is_some_and(|s| !s.is_empty());
        TextSummary {
            style: self
                .style
                .or((self.events > 0).then_some(TextProducer::TraceCmd)),
            quality,
            lines: self.lines,
            events: self.events,
            unit: if ticks {
                TextTimeUnit::Ticks
            } else {
                TextTimeUnit::Nanoseconds
            },
            resolution: 10u64.pow(u32::from(if ticks { 0 } else { 9 - self.decimals.min(9) })),
            isa,
            cpus: self.cpus.list(),
            machine_cpus: self.machine_cpus,
            sources: if merged {
                self.sources.iter().map(|s| lossy(s)).collect()
            } else {
                Vec::new()
            },
            thread_column: self.thread_column,
            not_understood: self.notes.not_understood.count,
            first_not_understood: self.notes.places,
            types: self
                .types
                .into_entries()
                .into_iter()
                .map(|e| TypeCount {
                    system: e.system.into(),
                    name: e.name.into(),
                    count: e.count,
                })
                .collect(),
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
