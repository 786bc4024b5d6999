/*!
Recordings as traces of the Common Trace Format 1.8 (<https://diamon.org/ctf/v1.8.3/>), which Babeltrace and Trace
Compass read.

A trace is a folder: a text `metadata` that describes the events, and a file for the events of each CPU, `cpu_N`, or
`cpu_unknown` of those whose CPU is not recorded.

- Events have the fields of their tracepoint under the kernel's names. A field that is text up to a zero byte is a
  string, one whose length each event says is a sequence, and all others are bytes as they were recorded. Lines of texts
  have `text`, samples `ip` and `period`. Beside them stand process, thread and its name (`pid`, `tid`, `procname`).
- Names of fields have a `_` before them, as the format's own keywords have none; readers leave it out.
- Events are called `SYSTEM:NAME`, and the environment says `domain = "kernel"` and `tracer_name = "perf"`: by these
  Trace Compass takes the trace for one of a kernel whose fields have the tracepoints' names.
- Times are the recording's. What a CPU lost is in `events_discarded` of its packets.
*/

mod classes;
mod metadata;
mod stream;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use event::{Event, EventType, LostKind, NONE, Side, Sink, index_of};
use model::Threads;
use tracefmt::Endian;
use words::{counted, plural};

use classes::{EventClass, EventPayload};
use stream::PacketStream;

use crate::TraceMachine;

/// CPUs that have a file of their own.
const MAX_CPUS: usize = 4096;
/// Bytes of a packet from which on it is written.
const PACKET: usize = 16 << 10;

/// Takes bytes that stand at the end of one of the folder's files.
pub type CtfFiles<'w> = &'w mut dyn FnMut(&str, &[u8]) -> ControlFlow<()>;

/// Makes a trace of the events that it is given.
pub struct CtfTrace<'w> {
    write: CtfFiles<'w>,
    endian: Endian,
    threads: Threads,
    /// By the number of the kind.
    classes: Vec<Option<EventClass>>,
    /// By CPU; [`NONE`] those of no known CPU.
    streams: BTreeMap<i32, PacketStream>,
    payload: EventPayload,
    /// Events so far.
    events: u64,
    /// Events that came behind later ones of their CPU.
    late: u64,
    /// Events that have stacks.
    with_stacks: u64,
    /// Events of CPUs beyond those that have a file.
    without_file: u64,
    /// Losses of which nobody says how many events they were.
    uncounted_losses: u64,
    stopped: bool,
}

impl std::fmt::Debug for CtfTrace<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CtfTrace").finish_non_exhaustive()
    }
}

/// Returns whether the events of a CPU are of the stream whose packets say no CPU, which is the second.
fn is_unknown(cpu: i32) -> bool {
    cpu < 0
}

impl<'w> CtfTrace<'w> {
    /// Returns a trace without events. `endian` is the byte order of the recording's records, and `threads` what is
    /// known of threads beside the events.
    pub fn new(endian: Endian, threads: Threads, write: CtfFiles<'w>) -> CtfTrace<'w> {
        CtfTrace {
            write,
            endian,
            threads,
            classes: Vec::new(),
            streams: BTreeMap::new(),
            payload: EventPayload::new(endian),
            events: 0,
            late: 0,
            with_stacks: 0,
            without_file: 0,
            uncounted_losses: 0,
            stopped: false,
        }
    }

    /// Returns how many events have come.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Writes what is left, and the description. Returns what the trace does not have, a sentence each. `nanoseconds`
    /// says whether that is what times count.
    pub fn finish(&mut self, about: &TraceMachine, nanoseconds: bool) -> Vec<String> {
        let cpus: Vec<i32> = self.streams.keys().copied().collect();
        for cpu in cpus {
            if self.streams.get(&cpu).is_some_and(PacketStream::has_news) {
                self.write_packet(cpu);
            }
        }
        let classes = self.classes.iter().flatten();
        let text = metadata::text(self.endian, about, classes);
        if !self.stopped {
            let _ = (self.write)("metadata", text.as_bytes());
        }
        self.left_out(nanoseconds)
    }

    fn left_out(&self, nanoseconds: bool) -> Vec<String> {
        let mut said = Vec::new();
        if self.with_stacks > 0 {
            let events = plural(self.with_stacks, "event");
            said.push(format!("The stacks of {events} are left out."));
        }
        if self.late > 0 {
            let events = counted(
                self.late,
                "event came behind a later one of its CPU, and has that one's time",
                "events came behind later ones of their CPU, and have the times of those",
            );
            said.push(format!("{events}."));
        }
        if self.without_file > 0 {
            let events = plural(self.without_file, "event");
            said.push(format!(
                "{events} of CPUs beyond the first {MAX_CPUS} stand among those whose CPU is not known."
            ));
        }
        if self.payload.incomplete > 0 {
            let events = plural(self.payload.incomplete, "event");
            said.push(format!(
                "Fields of {events} are not whole in the recording, and are 0 or empty in the trace."
            ));
        }
        if self.uncounted_losses > 0 {
            let times = plural(self.uncounted_losses, "time");
            said.push(format!(
                "Events were lost {times} without a number: the trace counts one event each."
            ));
        }
        if !nanoseconds {
            said.push(
                "The clock's unit is not known: the trace has its ticks as nanoseconds.".to_owned(),
            );
        }
        said
    }

    /// Returns the CPU whose stream takes what belongs to a CPU.
    fn stream_of(&mut self, cpu: i32) -> i32 {
        let cpu = if is_unknown(cpu) { NONE } else { cpu };
        let is_known = self.streams.contains_key(&cpu);
        match is_known || self.streams.len() < MAX_CPUS {
            true => cpu,
            false => {
                self.without_file += 1;
                NONE
            }
        }
    }

    fn stream(&mut self, cpu: i32) -> &mut PacketStream {
        let endian = self.endian;
        self.streams
            .entry(cpu)
            .or_insert_with(|| PacketStream::new(endian, cpu))
    }

    fn write_packet(&mut self, cpu: i32) {
        let Some(stream) = self.streams.get_mut(&cpu) else {
            return;
        };
        let packet = stream.packet();
        if !self.stopped {
            self.stopped = (self.write)(&file_name(cpu), packet).is_break();
        }
        stream.begin();
    }
}

/// Returns what the file of a CPU is called.
fn file_name(cpu: i32) -> String {
    match is_unknown(cpu) {
        true => "cpu_unknown".to_owned(),
        false => format!("cpu_{cpu}"),
    }
}

impl Sink for CtfTrace<'_> {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn wants_samples(&self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.events += 1;
        let cpu = self.stream_of(event.cpu);
        let at = index_of(event.ty.index);
        if self.classes.len() <= at {
            self.classes.resize_with(at.saturating_add(1), || None);
        }
        let Some(place) = self.classes.get_mut(at) else {
            return ControlFlow::Continue(());
        };
        let class = place.get_or_insert_with(|| EventClass::of(event));
        class.note_stream(is_unknown(cpu));
        self.payload.take(class, event, &self.threads);
        let sample = event.sample;
        let has_stack =
            sample.is_some_and(|sample| sample.callchain.is_some() || sample.user_stack.is_some());
        self.with_stacks += u64::from(has_stack);
        let endian = self.endian;
        let stream = self
            .streams
            .entry(cpu)
            .or_insert_with(|| PacketStream::new(endian, cpu));
        self.late += u64::from(stream.add(event.ty.index, event.time, &self.payload.bytes));
        if stream.len() >= PACKET {
            self.write_packet(cpu);
        }
        match self.stopped {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn side(&mut self, side: &Side<'_>) {
        self.threads.side(side);
        // What the recorder counts at its end is what rings counted, once more.
        if let Side::Lost {
            time,
            cpu,
            count,
            kind: LostKind::Ring,
            ..
        } = *side
        {
            self.uncounted_losses += u64::from(count.is_none());
            let cpu = self.stream_of(cpu);
            let stream = self.stream(cpu);
            // A packet says what was lost up to its end, so that what came before the loss is another's.
            let is_filled = stream.has_events();
            if is_filled {
                self.write_packet(cpu);
            }
            self.stream(cpu).lose(time, count.unwrap_or(1));
        }
    }
}

#[cfg(test)]
mod tests;
