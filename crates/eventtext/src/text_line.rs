//! Lines of events that were read from text: the columns set anew, the event's own text as it stood.

use std::fmt::Write;

use event::{Body, Event, NONE};
use tracefmt::FormatText;

use crate::columns::{CPUS, ShortText, StampCache, TimeColumns};
use crate::digits::{signed, six, three_and_colon};

/// Whose columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStyle {
    /// `perf script`: `comm tid [cpu] time: system:event: text`.
    Perf,
    /// `trace-cmd report`: `comm-tid [cpu] time: event: text`.
    TraceCmd,
}

/// Prints events of texts.
#[derive(Debug)]
pub(crate) struct TextPrinter {
    style: TextStyle,
    times: TimeColumns,
    clock: StampCache,
    /// The columns before the time as they were for threads lately.
    placed: Vec<PlacedTask>,
}

/// Threads whose columns are kept, by the low bits of their ids and CPUs.
const PLACED: usize = 64;

/// The columns before the time: thread and CPU.
#[derive(Debug, Clone)]
struct PlacedTask {
    /// Name, as far as it is as long as names are.
    comm: [u8; 16],
    comm_len: u8,
    tid: i32,
    cpu: i32,
    columns: ShortText<48>,
}

/// As many spaces as any column has.
const SPACES: [u8; 32] = [b' '; 32];

/// Appends the spaces that a text of this width leaves in a column.
#[inline]
fn fill(out: &mut FormatText, column: usize, width: usize) {
    out.block(&SPACES, column.saturating_sub(width));
}

/// Returns how many columns a text takes up: its characters are counted, as formatters do.
#[inline]
fn width(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}

impl TextPrinter {
    pub(crate) fn new(style: TextStyle, times: TimeColumns) -> TextPrinter {
        TextPrinter {
            style,
            times,
            clock: StampCache::new(times.ns),
            placed: Vec::new(),
        }
    }

    /// Appends the columns before the time.
    #[inline]
    fn place(&mut self, out: &mut FormatText, event: &Event<'_>) {
        let comm = event.comm.unwrap_or("<...>");
        let slot = (event.tid ^ event.cpu << 3).cast_unsigned() as usize % PLACED;
        match self.placed.get(slot) {
            Some(task)
                if task.tid == event.tid
                    && task.cpu == event.cpu
                    && task.comm.get(..usize::from(task.comm_len)) == Some(comm.as_bytes()) =>
            {
                task.columns.put(out);
            }
            _ => self.place_anew(out, event, comm, slot),
        }
    }

    #[inline(never)]
    fn place_anew(&mut self, out: &mut FormatText, event: &Event<'_>, comm: &str, slot: usize) {
        let start = out.len();
        self.columns(out, event, comm);
        let columns = out.as_bytes().get(start..).unwrap_or_default();
        let mut name = [0; 16];
        let Some(place) = name.get_mut(..comm.len()) else {
            return;
        };
        place.copy_from_slice(comm.as_bytes());
        let task = PlacedTask {
            comm: name,
            comm_len: comm.len() as u8,
            tid: event.tid,
            cpu: event.cpu,
            columns: ShortText::new(columns),
        };
        if self.placed.is_empty() {
            self.placed.resize(PLACED, task.clone());
        }
        self.placed[slot] = task;
    }

    fn columns(&self, out: &mut FormatText, event: &Event<'_>, comm: &str) {
        fill(out, 16, width(comm));
        out.extend_from_slice(comm.as_bytes());
        match self.style {
            TextStyle::Perf => {
                out.push(b' ');
                signed(out, event.tid.into(), 5);
                out.push(b' ');
            }
            TextStyle::TraceCmd => {
                out.push(b'-');
                let before = out.len();
                signed(out, event.tid.into(), 0);
                let digits = out.len() - before;
                fill(out, 5, digits);
                out.push(b' ');
            }
        }
        let cpu = usize::try_from(event.cpu).ok();
        match cpu.and_then(|cpu| CPUS.get(cpu)) {
            Some(column) => out.block(column, 6),
            None if event.cpu == NONE => {}
            // Writing into memory cannot fail.
            None => _ = write!(out, "[{:03}] ", event.cpu),
        }
    }

    /// Appends one event as a line, its end included. Times that are no seconds are plain numbers.
    #[inline]
    pub(crate) fn line(&mut self, out: &mut FormatText, event: &Event<'_>) {
        self.place(out, event);
        self.time(out, event.time);
        match self.style {
            TextStyle::Perf => {
                out.extend_from_slice(event.ty.label.as_bytes());
                out.block(b": ", 2);
            }
            TextStyle::TraceCmd => {
                out.extend_from_slice(event.ty.name.as_bytes());
                out.push(b':');
                fill(out, 21, width(event.ty.name) + 1);
                out.push(b' ');
            }
        }
        if let Body::Text { text, .. } = event.body {
            out.extend_from_slice(text.as_bytes());
        }
        out.push(b'\n');
    }

    #[inline]
    fn time(&mut self, out: &mut FormatText, time: u64) {
        if !self.times.seconds {
            let _ = write!(out, "{time}: ");
            return;
        }
        let part = self.clock.advance(time);
        out.block(&self.clock.text, usize::from(self.clock.len));
        if self.times.ns {
            out.block(&six(part), 6);
            out.block(b": ", 2);
        } else {
            out.block(&three_and_colon(part / 1000), 5);
        }
    }
}

#[cfg(test)]
mod tests {
    use event::{Data, EventType};

    use super::*;

    /// The line as a formatter makes it.
    fn formatted(event: &Event<'_>, style: TextStyle, times: TimeColumns) -> String {
        let comm = event.comm.unwrap_or("<...>");
        let who = match style {
            TextStyle::Perf => format!("{comm:>16} {:>5} ", event.tid),
            TextStyle::TraceCmd => format!("{comm:>16}-{:<5} ", event.tid),
        };
        let cpu = match event.cpu {
            NONE => String::new(),
            cpu => format!("[{cpu:03}] "),
        };
        let (whole, rest) = (event.time / 1_000_000_000, event.time % 1_000_000_000);
        let time = match (times.seconds, times.ns) {
            (false, _) => format!("{}", event.time),
            (true, true) => format!("{whole:>5}.{rest:09}"),
            (true, false) => format!("{whole:>5}.{:06}", rest / 1000),
        };
        let text = match event.body {
            Body::Text { text, .. } => text,
            _ => "",
        };
        let rest = match style {
            TextStyle::Perf => format!("{}: {text}", event.ty.label),
            TextStyle::TraceCmd => format!("{:<21} {text}", format!("{}:", event.ty.name)),
        };
        format!("{who}{cpu}{time}: {rest}\n")
    }

    #[test]
    fn lines_are_what_a_formatter_makes() {
        let comms = [
            None,
            Some(""),
            Some("CPU 0/KVM"),
            Some("grün"),
            Some("a name longer than others"),
        ];
        let labels = [
            "kvm:kvm_exit",
            "kvm_exit",
            "",
            "x:a_name_that_has_more_letters_than_its_column",
            "é",
        ];
        let places = [
            (0, 0),
            (-1, -1),
            (7, 999),
            (-7, 1000),
            (1_234_567, 65_535),
            (i32::MIN, -2),
        ];
        let times = [
            0,
            1,
            999,
            1_072_138_680_123,
            u64::MAX,
            18_446_744_073_000_000_000,
        ];
        let mut events = 0;
        let mut kept = TextPrinter::new(
            TextStyle::Perf,
            TimeColumns {
                seconds: true,
                ns: false,
            },
        );
        for (comm, label) in comms.iter().flat_map(|c| labels.map(|label| (*c, label))) {
            for ((tid, cpu), time) in places.iter().flat_map(|p| times.map(|time| (*p, time))) {
                let ty = EventType::bare(0, label, true);
                let text = Body::Text {
                    text: "vcpu 0",
                    data: Data::Other,
                };
                let body = if events % 3 == 0 { Body::None } else { text };
                let mut event = Event::bare(&ty, (time, cpu, tid), body);
                event.comm = comm;
                events += 1;
                for _ in 0..2 {
                    let mut out = FormatText::new();
                    kept.line(&mut out, &event);
                    let line = String::from_utf8_lossy(out.as_bytes()).into_owned();
                    assert_eq!(line, formatted(&event, kept.style, kept.times));
                }
                for style in [TextStyle::Perf, TextStyle::TraceCmd] {
                    for (seconds, ns) in [(true, false), (true, true), (false, false)] {
                        let times = TimeColumns { seconds, ns };
                        let mut out = FormatText::new();
                        TextPrinter::new(style, times).line(&mut out, &event);
                        let line = String::from_utf8_lossy(out.as_bytes()).into_owned();
                        assert_eq!(line, formatted(&event, style, times));
                    }
                }
            }
        }
    }
}
