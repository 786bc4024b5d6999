//! The line `trace-cmd report` prints for an event, up to the event's own text.
//!
//! Source: `tracecmd/trace-read.c` of trace-cmd 3.1.6 and 3.4 (`trace_show_data`, `print_event_name`,
//! `print_handle_file`) and `src/event-parse.c` of libtraceevent 1.7.1 (`print_event_time`,
//! `data_latency_format`).

use std::fmt::Write;

use event::index_of;
use tracefmt::{EventFormat, FormatCatalog, FormatText};

use crate::columns::{CPUS, LINE, ShortText, StampCache, copy};
use crate::digits::{decimal, nine, signed, six, three_and_colon};

/// How many columns an event name and the colon behind it take up at least.
const NAME_WIDTH: usize = 20;
/// How many columns a thread name takes up at least.
const COMM_WIDTH: usize = 16;
/// How many columns a thread id takes up at least.
const PID_WIDTH: usize = 5;
/// Times are rounded to microseconds, not cut.
const HALF_MICROSECOND: u64 = 500;
/// Bytes that are enough for all but the longest names of events.
const USUAL_NAME: usize = 48;
/// Threads whose columns are kept, a power of two.
const THREADS: usize = 64;

/// How times are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeStyle {
    /// Nanoseconds, as seconds with six decimals, rounded.
    Seconds,
    /// Nanoseconds, as seconds with nine decimals: `trace-cmd report -t`.
    NanoSeconds,
    /// A plain number: clocks such as `x86-tsc`, and `boot`.
    Plain,
}

/// What of a recording decides how its lines look.
#[derive(Debug, Clone)]
pub(crate) struct LineStyle {
    /// How times are printed.
    pub time: TimeStyle,
    /// Columns of the buffers' names; `None` when there is only the top buffer, and no such column.
    buffer_width: Option<usize>,
}

impl LineStyle {
    /// Returns the style of a recording with these buffers besides the top one.
    pub(crate) fn new<'n>(
        time: TimeStyle,
        instances: impl IntoIterator<Item = &'n str>,
    ) -> LineStyle {
        LineStyle {
            time,
            // trace-cmd takes what follows the last slash: it thinks the names are those of files.
            buffer_width: instances
                .into_iter()
                .map(|name| base_name(name).len())
                .max(),
        }
    }
}

/// The columns of one event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineHead<'e> {
    /// Time, in nanoseconds or ticks.
    pub time: u64,
    /// Number of the CPU.
    pub cpu: u32,
    /// The thread that ran.
    pub pid: i32,
    /// Name of the buffer; empty for the top one.
    pub buffer: &'e str,
    /// Whether [`lost_line`] was printed for this event just before. trace-cmd prints the column of the
    /// buffer once for both lines.
    pub after_gap: bool,
}

/// Columns that were put together for earlier lines.
#[derive(Debug)]
pub(crate) struct LineCache {
    clock: StampCache,
    /// By the low bits of the thread id.
    threads: Vec<Option<(i32, ShortText<32>)>>,
    /// By kind of event.
    names: Vec<Option<TracecmdEventName>>,
}

/// What is known of a kind of event.
#[derive(Debug, Clone)]
struct TracecmdEventName {
    column: ShortText<USUAL_NAME>,
    /// Whether neither the name nor any text of such an event steers a terminal.
    plain: bool,
}

impl LineCache {
    pub(crate) fn new() -> LineCache {
        LineCache {
            clock: StampCache::new(false),
            threads: vec![None; THREADS],
            names: Vec::new(),
        }
    }

    /// Appends all columns before the event's own text, as [`line_head`] does, and returns whether it is known that
    /// nothing in them and in the event's own text steers a terminal. `index` is the number of the kind of event.
    #[inline]
    pub(crate) fn head(
        &mut self,
        out: &mut FormatText,
        head: &LineHead<'_>,
        index: u32,
        format: Option<&EventFormat>,
        formats: &FormatCatalog,
        style: &LineStyle,
    ) -> bool {
        if let (TimeStyle::Seconds, None, Some(format), Some(cpu)) = (
            style.time,
            style.buffer_width,
            format,
            CPUS.get(index_of(head.cpu)),
        ) {
            let name = match self.names.get(index_of(index)) {
                Some(Some(name)) => name,
                _ => new_name(&mut self.names, index, format),
            };
            let slot = head.pid as usize & (THREADS - 1);
            let thread = match &self.threads[slot] {
                Some((pid, thread)) if *pid == head.pid => thread,
                _ => new_thread(&mut self.threads[slot], head.pid, formats),
            };
            let column = &name.column;
            if !column.is_long()
                && !thread.is_long()
                && let Some(line) = out.room(LINE).first_chunk_mut()
            {
                let part = self.clock.advance(head.time.wrapping_add(HALF_MICROSECOND));
                let mut at = copy(line, 0, &thread.bytes, thread.len);
                at = copy(line, at, cpu, 6);
                at = copy(line, at, &self.clock.text, self.clock.len);
                at = copy(line, at, &three_and_colon(part / 1000), 5);
                at = copy(line, at, &column.bytes, column.len);
                out.advance(at);
                return name.plain && thread.plain;
            }
        }
        line_head(out, head, format, formats, style);
        false
    }
}

#[cold]
fn new_name<'n>(
    names: &'n mut Vec<Option<TracecmdEventName>>,
    index: u32,
    format: &EventFormat,
) -> &'n TracecmdEventName {
    let index = index_of(index);
    if names.len() <= index {
        names.resize(index + 1, None);
    }
    let mut text = FormatText::new();
    name_column(&mut text, &format.name);
    let column = ShortText::new(text.as_bytes());
    names[index].insert(TracecmdEventName {
        plain: column.plain && format.prints_plain(),
        column,
    })
}

#[cold]
fn new_thread<'t>(
    slot: &'t mut Option<(i32, ShortText<32>)>,
    pid: i32,
    formats: &FormatCatalog,
) -> &'t ShortText<32> {
    let mut text = FormatText::new();
    thread_column(&mut text, pid, formats);
    &slot.insert((pid, ShortText::new(text.as_bytes()))).1
}

/// Appends all columns before the event's own text. `format` is `None` for an event whose format is not there.
pub(crate) fn line_head(
    out: &mut FormatText,
    head: &LineHead<'_>,
    format: Option<&EventFormat>,
    formats: &FormatCatalog,
    style: &LineStyle,
) {
    if !head.after_gap {
        buffer_column(out, head.buffer, style);
    }
    let Some(format) = format else {
        // trace-cmd prints this for every column it cannot fill.
        out.extend_from_slice(b"[UNKNOWN EVENT]");
        out.extend_from_slice(b"[UNKNOWN EVENT] (NULL): ");
        pad(out, NAME_WIDTH - 6);
        out.extend_from_slice(b"[UNKNOWN EVENT]");
        return;
    };
    thread_column(out, head.pid, formats);
    cpu_column(out, head.cpu);
    time(out, head.time, style.time);
    out.push(b' ');
    name_column(out, &format.name);
}

/// Appends the name of an event.
fn name_column(out: &mut FormatText, name: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    pad(out, NAME_WIDTH.saturating_sub(name.len()));
}

/// Appends name and id of a thread, and a space.
fn thread_column(out: &mut FormatText, pid: i32, formats: &FormatCatalog) {
    let comm = match pid {
        0 => "<idle>",
        _ => formats.comm(pid).unwrap_or("<...>"),
    };
    pad(out, COMM_WIDTH.saturating_sub(comm.len()));
    out.extend_from_slice(comm.as_bytes());
    out.push(b'-');
    let start = out.len();
    signed(out, i64::from(pid), 1);
    pad(out, (start + PID_WIDTH).saturating_sub(out.len()));
    out.push(b' ');
}

/// Appends the number of the CPU.
fn cpu_column(out: &mut FormatText, cpu: u32) {
    match CPUS.get(index_of(cpu)) {
        Some(column) => out.extend_from_slice(&column[..5]),
        None => {
            out.push(b'[');
            decimal(out, u64::from(cpu), 3);
            out.push(b']');
        }
    }
}

/// Appends the line that mentions lost events, its end included.
pub(crate) fn lost_line(
    out: &mut FormatText,
    cpu: u32,
    count: Option<u64>,
    buffer: &str,
    style: &LineStyle,
) {
    buffer_column(out, buffer, style);
    // Writing into memory cannot fail.
    let _ = match count {
        Some(count) => writeln!(out, "CPU:{cpu} [{count} EVENTS DROPPED]"),
        None => writeln!(out, "CPU:{cpu} [EVENTS DROPPED]"),
    };
}

/// Appends the first column of a recording with several buffers: the instance's name, or as much space.
fn buffer_column(out: &mut FormatText, buffer: &str, style: &LineStyle) {
    let Some(width) = style.buffer_width else {
        return;
    };
    let name = base_name(buffer);
    pad(out, width.saturating_sub(name.len()));
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(if name.is_empty() { b"  " } else { b": " });
}

fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Appends a time with the colon behind it.
fn time(out: &mut FormatText, time: u64, style: TimeStyle) {
    match style {
        TimeStyle::Seconds => {
            let micros = time.wrapping_add(HALF_MICROSECOND) / 1000;
            out.push(b' ');
            decimal(out, micros / 1_000_000, 5);
            out.push(b'.');
            out.extend_from_slice(&six((micros % 1_000_000) as u32));
        }
        TimeStyle::NanoSeconds => {
            out.push(b' ');
            decimal(out, time / 1_000_000_000, 5);
            out.push(b'.');
            out.extend_from_slice(&nine((time % 1_000_000_000) as u32));
        }
        TimeStyle::Plain => decimal(out, time, 12),
    }
    out.push(b':');
}

fn pad(out: &mut FormatText, count: usize) {
    out.fill(b' ', count);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &[u8] = b"name: sched_switch\nID: 314\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:pid_t prev_pid;\toffset:8;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"%d\", REC->prev_pid\n";

    fn formats() -> FormatCatalog {
        let mut formats = FormatCatalog::default();
        formats.add("sched", SWITCH);
        formats.set_cmdlines(b"1234 CPU 1/KVM\n");
        formats
    }

    fn line(head: LineHead<'_>, style: &LineStyle, formats: &FormatCatalog) -> String {
        let format = formats.by_id(314);
        let mut plain = FormatText::new();
        line_head(&mut plain, &head, format, formats, style);
        // Kept columns, and other threads in between, change nothing.
        let mut cache = LineCache::new();
        for pid in [head.pid, head.pid + THREADS as i32, head.pid] {
            let mut out = FormatText::new();
            let other = LineHead { pid, ..head };
            cache.head(&mut out, &other, 3, format, formats, style);
            assert!(out.as_bytes() == plain.as_bytes() || pid != head.pid);
        }
        String::from_utf8(plain.as_bytes().to_vec()).unwrap()
    }

    const HEAD: LineHead<'_> = LineHead {
        time: 867_639_531_499,
        cpu: 1,
        pid: 1234,
        buffer: "",
        after_gap: false,
    };

    #[test]
    fn columns_stand_where_trace_cmd_puts_them() {
        let formats = formats();
        let style = LineStyle::new(TimeStyle::Seconds, []);
        let text = line(HEAD, &style, &formats);
        assert_eq!(
            text,
            "       CPU 1/KVM-1234  [001]   867.639531: sched_switch:         "
        );
        // Half a microsecond is rounded up.
        let head = LineHead {
            time: 999_999_500,
            pid: 0,
            cpu: 127,
            ..HEAD
        };
        let text = line(head, &style, &formats);
        assert_eq!(
            text,
            "          <idle>-0     [127]     1.000000: sched_switch:         "
        );
        let text = line(
            LineHead {
                pid: 99_999_999,
                ..HEAD
            },
            &style,
            &formats,
        );
        assert_eq!(
            text,
            "           <...>-99999999 [001]   867.639531: sched_switch:         "
        );
    }

    #[test]
    fn ticks_have_no_space_before_them() {
        let formats = formats();
        let style = LineStyle::new(TimeStyle::Plain, []);
        let text = line(
            LineHead {
                time: 2_217_615_388_452,
                ..HEAD
            },
            &style,
            &formats,
        );
        assert_eq!(
            text,
            "       CPU 1/KVM-1234  [001]2217615388452: sched_switch:         "
        );
        let text = line(LineHead { time: 77, ..HEAD }, &style, &formats);
        assert_eq!(
            text,
            "       CPU 1/KVM-1234  [001]          77: sched_switch:         "
        );
        let style = LineStyle::new(TimeStyle::NanoSeconds, []);
        let text = line(HEAD, &style, &formats);
        assert_eq!(
            text,
            "       CPU 1/KVM-1234  [001]   867.639531499: sched_switch:         "
        );
    }

    #[test]
    fn instances_get_a_column() {
        let formats = formats();
        let style = LineStyle::new(TimeStyle::Seconds, ["a", "dir/other"]);
        let text = line(
            LineHead {
                buffer: "a",
                ..HEAD
            },
            &style,
            &formats,
        );
        assert_eq!(
            text,
            "    a:        CPU 1/KVM-1234  [001]   867.639531: sched_switch:         "
        );
        let text = line(HEAD, &style, &formats);
        assert_eq!(
            text,
            "              CPU 1/KVM-1234  [001]   867.639531: sched_switch:         "
        );
        let gap = LineHead {
            buffer: "a",
            after_gap: true,
            ..HEAD
        };
        let text = line(gap, &style, &formats);
        assert_eq!(
            text,
            "       CPU 1/KVM-1234  [001]   867.639531: sched_switch:         "
        );
        let mut out = FormatText::new();
        lost_line(&mut out, 3, Some(724), "dir/other", &style);
        lost_line(
            &mut out,
            3,
            None,
            "",
            &LineStyle::new(TimeStyle::Seconds, []),
        );
        assert_eq!(
            String::from_utf8(out.as_bytes().to_vec()).unwrap(),
            "other: CPU:3 [724 EVENTS DROPPED]\nCPU:3 [EVENTS DROPPED]\n"
        );
    }

    #[test]
    fn an_event_without_a_format_is_named_as_unknown() {
        let formats = formats();
        let style = LineStyle::new(TimeStyle::Seconds, []);
        let mut out = FormatText::new();
        line_head(&mut out, &HEAD, None, &formats, &style);
        assert_eq!(
            String::from_utf8(out.as_bytes().to_vec()).unwrap(),
            "[UNKNOWN EVENT][UNKNOWN EVENT] (NULL):               [UNKNOWN EVENT]"
        );
    }
}
