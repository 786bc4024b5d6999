//! The line `trace-cmd report` prints for an event, up to the event's own text.
//!
//! Source: `tracecmd/trace-read.c` of trace-cmd 3.1.6 and 3.4 (`trace_show_data`, `print_event_name`,
//! `print_handle_file`) and `src/event-parse.c` of libtraceevent 1.7.1 (`print_event_time`,
//! `data_latency_format`).

use std::io::Write;
use tracefmt::{Endian, Format, Formats};

/// How many columns an event name and the colon behind it take up at least.
const NAME_WIDTH: usize = 20;
/// How many columns a thread name takes up at least.
const COMM_WIDTH: usize = 16;

/// How times are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeStyle {
    /// Nanoseconds, as seconds with six decimals, rounded.
    Seconds,
    /// Nanoseconds, as seconds with nine decimals: `trace-cmd report -t`.
    NanoSeconds,
    /// A plain number: clocks such as `x86-tsc`, and `boot`.
    Plain,
}

/// What of a recording decides how its lines look.
#[derive(Debug, Clone)]
pub struct LineStyle {
    /// How times are printed.
    pub time: TimeStyle,
    /// Whether the column with the state of interrupts and preemption (`d..2.`) is printed, as trace-cmd 3.4
    /// does.
    pub flags: bool,
    /// Columns of the buffers' names; `None` when there is only the top buffer, and no such column.
    buffer_width: Option<usize>,
    /// Where the common fields lie that the flags are made of.
    layout: FlagsLayout,
}

#[derive(Debug, Clone, Copy, Default)]
struct FlagsLayout {
    flags: Option<(usize, usize)>,
    preempt_count: Option<(usize, usize)>,
    migrate_disable: Option<(usize, usize)>,
    lock_depth: Option<(usize, usize)>,
}

impl LineStyle {
    /// Returns the style of a recording with these formats and these buffers besides the top one.
    pub fn new<'n>(
        formats: &Formats,
        time: TimeStyle,
        instances: impl IntoIterator<Item = &'n str>,
    ) -> LineStyle {
        let place = |name: &str| {
            let field = formats.all().first()?.field(name)?;
            Some((field.offset as usize, field.size as usize))
        };
        LineStyle {
            time,
            flags: false,
            // trace-cmd takes what follows the last slash: it thinks the names are those of files.
            buffer_width: instances
                .into_iter()
                .map(|name| base_name(name).len())
                .max(),
            layout: FlagsLayout {
                flags: place("common_flags"),
                preempt_count: place("common_preempt_count"),
                migrate_disable: place("common_migrate_disable"),
                lock_depth: place("common_lock_depth"),
            },
        }
    }
}

/// The columns of one event.
#[derive(Debug, Clone, Copy)]
pub struct LineHead<'e> {
    /// Time, in nanoseconds or ticks.
    pub time: u64,
    /// Number of the CPU.
    pub cpu: u32,
    /// The thread that ran.
    pub pid: i32,
    /// The record, common fields included.
    pub data: &'e [u8],
    /// Name of the buffer; empty for the top one.
    pub buffer: &'e str,
    /// Whether [`lost_line`] was printed for this event just before. trace-cmd prints the column of the
    /// buffer once for both lines.
    pub after_gap: bool,
}

/// Appends all columns before the event's own text. `format` is `None` for an event whose format is not there.
pub fn line_head(
    out: &mut Vec<u8>,
    head: &LineHead<'_>,
    format: Option<&Format>,
    formats: &Formats,
    style: &LineStyle,
) {
    if !head.after_gap {
        buffer_column(out, head.buffer, style);
    }
    let Some(format) = format else {
        // trace-cmd prints this for every column it cannot fill.
        out.extend_from_slice(b"[UNKNOWN EVENT]");
        if style.flags {
            out.extend_from_slice(b"[UNKNOWN EVENT]");
        }
        out.extend_from_slice(b"[UNKNOWN EVENT] (NULL): ");
        pad(out, NAME_WIDTH - 6);
        out.extend_from_slice(b"[UNKNOWN EVENT]");
        return;
    };
    let comm = match head.pid {
        0 => "<idle>",
        pid => formats.comm(pid).unwrap_or("<...>"),
    };
    pad(out, COMM_WIDTH.saturating_sub(comm.len()));
    out.extend_from_slice(comm.as_bytes());
    out.push(b'-');
    let start = out.len();
    signed(out, i64::from(head.pid));
    pad(out, (start + 5).saturating_sub(out.len()));
    out.extend_from_slice(b" [");
    number(out, u64::from(head.cpu), 3, b'0');
    out.push(b']');
    if style.flags {
        out.push(b' ');
        flags(out, head.data, formats.abi.endian, style.layout);
    }
    time(out, head.time, style.time);
    out.push(b' ');
    out.extend_from_slice(format.name.as_bytes());
    out.extend_from_slice(b": ");
    pad(out, NAME_WIDTH.saturating_sub(format.name.len()));
}

/// Appends the line that tells of lost events, its end included.
pub fn lost_line(out: &mut Vec<u8>, cpu: u32, count: Option<u64>, buffer: &str, style: &LineStyle) {
    buffer_column(out, buffer, style);
    // Writing into memory cannot fail.
    let _ = match count {
        Some(count) => writeln!(out, "CPU:{cpu} [{count} EVENTS DROPPED]"),
        None => writeln!(out, "CPU:{cpu} [EVENTS DROPPED]"),
    };
}

/// Appends the first column of a recording with several buffers: the instance's name, or as much space.
fn buffer_column(out: &mut Vec<u8>, buffer: &str, style: &LineStyle) {
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
fn time(out: &mut Vec<u8>, time: u64, style: TimeStyle) {
    match style {
        TimeStyle::Seconds => {
            let micros = time.wrapping_add(500) / 1000;
            out.push(b' ');
            number(out, micros / 1_000_000, 5, b' ');
            out.push(b'.');
            number(out, micros % 1_000_000, 6, b'0');
        }
        TimeStyle::NanoSeconds => {
            out.push(b' ');
            number(out, time / 1_000_000_000, 5, b' ');
            out.push(b'.');
            number(out, time % 1_000_000_000, 9, b'0');
        }
        TimeStyle::Plain => number(out, time, 12, b' '),
    }
    out.push(b':');
}

/// Bits of `common_flags`, as `enum trace_flag_type` in `include/linux/trace_events.h`.
const IRQS_OFF: u64 = 0x01;
const IRQS_NOSUPPORT: u64 = 0x02;
const NEED_RESCHED: u64 = 0x04;
const HARDIRQ: u64 = 0x08;
const SOFTIRQ: u64 = 0x10;

/// Appends the state of interrupts and preemption.
fn flags(out: &mut Vec<u8>, data: &[u8], endian: Endian, layout: FlagsLayout) {
    let read = |place: Option<(usize, usize)>| {
        place
            .and_then(|(offset, size)| endian.uint(data, offset, size))
            .unwrap_or(0)
    };
    let bits = read(layout.flags);
    let count = read(layout.preempt_count);
    out.push(match () {
        () if bits & IRQS_OFF != 0 => b'd',
        () if bits & IRQS_NOSUPPORT != 0 => b'X',
        () => b'.',
    });
    out.push(if bits & NEED_RESCHED != 0 { b'N' } else { b'.' });
    out.push(match (bits & HARDIRQ != 0, bits & SOFTIRQ != 0) {
        (true, true) => b'H',
        (true, false) => b'h',
        (false, true) => b's',
        (false, false) => b'.',
    });
    for digit in [count & 0xf, (count >> 4) & 0xf] {
        out.push(if digit == 0 {
            b'.'
        } else {
            b"0123456789abcdef"[digit as usize]
        });
    }
    for place in [layout.migrate_disable, layout.lock_depth] {
        if place.is_some() {
            let value = read(place);
            // The lock depth is a signed byte or int, -1 when no lock is held.
            let size = place.map_or(8, |p| p.1.clamp(1, 8) as u32);
            let shift = 64 - 8 * size;
            let value = ((value << shift) as i64) >> shift;
            if value < 0 {
                out.push(b'.')
            } else {
                signed(out, value)
            }
        }
    }
}

fn pad(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, b' ');
}

fn signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    number(out, value.unsigned_abs(), 1, b' ');
}

/// Appends a number, filled up to a width from the left.
fn number(out: &mut Vec<u8>, mut value: u64, width: usize, fill: u8) {
    let mut digits = [fill; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at.min(digits.len() - width.min(digits.len()))..]);
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

    fn formats() -> Formats {
        let mut formats = Formats::default();
        formats.add("sched", SWITCH);
        formats.set_cmdlines(b"1234 CPU 1/KVM\n");
        formats
    }

    fn line(head: LineHead<'_>, style: &LineStyle, formats: &Formats) -> String {
        let mut out = Vec::new();
        line_head(&mut out, &head, formats.by_id(314), formats, style);
        String::from_utf8(out).unwrap()
    }

    const HEAD: LineHead<'_> = LineHead {
        time: 867_639_531_499,
        cpu: 1,
        pid: 1234,
        data: &[58, 1, 0x0d, 0x21, 0, 0, 0, 0],
        buffer: "",
        after_gap: false,
    };

    #[test]
    fn columns_stand_where_trace_cmd_puts_them() {
        let formats = formats();
        let mut style = LineStyle::new(&formats, TimeStyle::Seconds, []);
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
        style.flags = true;
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
            "           <...>-99999999 [001] dNh12   867.639531: sched_switch:         "
        );
    }

    #[test]
    fn ticks_have_no_space_before_them() {
        let formats = formats();
        let style = LineStyle::new(&formats, TimeStyle::Plain, []);
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
        let style = LineStyle::new(&formats, TimeStyle::NanoSeconds, []);
        let text = line(HEAD, &style, &formats);
        assert_eq!(
            text,
            "       CPU 1/KVM-1234  [001]   867.639531499: sched_switch:         "
        );
    }

    #[test]
    fn instances_get_a_column() {
        let formats = formats();
        let style = LineStyle::new(&formats, TimeStyle::Seconds, ["a", "dir/other"]);
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
        let mut out = Vec::new();
        lost_line(&mut out, 3, Some(724), "dir/other", &style);
        lost_line(
            &mut out,
            3,
            None,
            "",
            &LineStyle::new(&formats, TimeStyle::Seconds, []),
        );
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "other: CPU:3 [724 EVENTS DROPPED]\nCPU:3 [EVENTS DROPPED]\n"
        );
    }

    #[test]
    fn an_event_without_a_format_is_named_as_unknown() {
        let formats = formats();
        let style = LineStyle::new(&formats, TimeStyle::Seconds, []);
        let mut out = Vec::new();
        line_head(&mut out, &HEAD, None, &formats, &style);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "[UNKNOWN EVENT][UNKNOWN EVENT] (NULL):               [UNKNOWN EVENT]"
        );
    }
}
