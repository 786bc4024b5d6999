//! The head of an event's line: everything before what the event says.
//!
//! All styles agree in one place: a time stamp that ends in a colon, then the event's name that ends in a
//! colon. The head is found there and read outwards, to the left who and where (see `who`), to the right the
//! name. Whatever pasting put before the line, prompts, line numbers, the name of a file, stands to the left
//! of what is read and does no harm.

use event::Kind;

use crate::name::system_len;
use crate::scan;
use crate::span::{LineSpan, short};
use crate::types::Types;
use crate::who::{self, LineTask};

/// What follows the time stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadRest {
    /// An event with its name.
    Event,
    /// A line of the function tracer, `callee <-caller`, which has no name.
    Function,
    /// A stack that the kernel prints under its own head.
    KernelStack,
    /// The same of user space.
    UserStack,
    /// A record that perf script prints beside events: `PERF_RECORD_...`.
    Record,
}

/// Head of an event's line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventHead {
    pub what: HeadRest,
    pub who: LineTask,
    /// Nanoseconds, or the bare number when `decimals` is 0.
    pub time: u64,
    /// Digits behind the decimal point.
    pub decimals: u8,
    /// The name as printed, without its colon.
    pub name: LineSpan,
    /// The kind of the event, if its name was seen lately.
    pub ty: Option<u16>,
    /// Whether the name is `system:name`.
    pub has_system: bool,
    /// Whether the name is padded to a column, as trace-cmd does; `None` when its length does not say.
    pub padded: Option<bool>,
    /// Where what the event says begins.
    pub args: u32,
    /// Where the colon behind the time stands.
    pub colon: u16,
}

impl EventHead {
    /// Returns whether tabs stand for blanks around the event's name, and so behind it. Such a name is never known.
    pub(crate) fn is_tabbed(&self, line: &[u8]) -> bool {
        let tab = |at: usize| line.get(at) == Some(&b'\t');
        tab(usize::from(self.colon) + 1) || tab(usize::from(self.name.end) + 1)
    }

    /// Returns whether the columns before the time end in the flags that the kernel and trace-cmd print.
    pub(crate) fn has_flags(&self, line: &[u8]) -> bool {
        let end = scan::back_over_blanks(line, usize::from(self.colon));
        who::ends_in_flags(line, scan::token_start(line, end))
    }
}

/// The time stamp stands within so many bytes, junk before the line included.
const MAX_HEAD: usize = 512;

/// Longest name taken for one.
const MAX_NAME: usize = 160;

/// Reads the head of a line; `None` when the line is no event's.
///
/// `perf` says that the text is known to be perf script's, without thread ids.
#[inline]
pub(crate) fn parse(line: &[u8], types: &Types, perf: bool) -> Option<EventHead> {
    let reach = &line[..line.len().min(MAX_HEAD)];
    memchr::memchr_iter(b':', reach).find_map(|colon| parse_at(line, colon, types, perf))
}

/// Reads the head of a line whose time stamp may end at `colon`, where that of another line did.
#[inline]
pub(crate) fn parse_near(
    line: &[u8],
    colon: usize,
    types: &Types,
    perf: bool,
) -> Option<EventHead> {
    if line.get(colon) == Some(&b':') {
        // Elsewhere in a line this much cannot stand: what an event says has no CPU in brackets before it.
        let head = parse_at(line, colon, types, perf);
        if head.is_some_and(|h| h.who.cpu >= 0 && h.ty.is_some()) {
            return head;
        }
    }
    parse(line, types, perf)
}

#[inline]
fn parse_at(line: &[u8], colon: usize, types: &Types, perf: bool) -> Option<EventHead> {
    // Nearly all colons that are not the one fail in these two tests.
    if line.get(colon + 1).is_some_and(|b| !scan::is_blank(*b)) {
        return None;
    }
    let clock = clock(line, colon).or_else(|| joined_clock(line, colon))?;
    let name = known_name(line, colon + 1, types).or_else(|| name(line, colon + 1))?;
    let perf = perf || name.has_system;
    let who = who::parse(line, clock.start, perf);
    if !plausible(line, &who, &clock, &name) {
        return None;
    }
    Some(name.of(who, clock.time, clock.decimals, colon))
}

/// Distinguishes an event's line from prose that happens to hold a number and two colons.
#[inline]
fn plausible(line: &[u8], who: &LineTask, clock: &HeadClock, name: &HeadName) -> bool {
    let nameless = matches!(
        name.what,
        HeadRest::Function | HeadRest::KernelStack | HeadRest::UserStack
    );
    if who.cpu >= 0 && !nameless {
        return clock.decimals > 0 || who.tid >= 0;
    }
    if who.cpu >= 0 {
        return who.joined || who::ends_in_flags(line, clock.start);
    }
    is_perfs_or_cut(line, who, clock, name)
}

/// The same of a line without a CPU.
#[inline(never)]
fn is_perfs_or_cut(line: &[u8], who: &LineTask, clock: &HeadClock, name: &HeadName) -> bool {
    let nameless = name.what != HeadRest::Event && name.what != HeadRest::Record;
    // Times have six or nine digits behind the point.
    if nameless || !matches!(clock.decimals, 6 | 9) {
        return false;
    }
    // Without a CPU, which perf's -F can leave out, the rest has to be perf's own.
    name.has_system || (who.has_tid && !who.joined) || is_cut(line, clock, name)
}

/// Whether this is a line of the kernel or of trace-cmd that lost its columns before the time, or before the flags: its
/// event is known by its name.
#[cold]
fn is_cut(line: &[u8], clock: &HeadClock, name: &HeadName) -> bool {
    let known = std::str::from_utf8(name.span.of(line));
    let known = known.is_ok_and(|name| Kind::of("", name) != Kind::Other);
    known || (who::ends_in_flags(line, clock.start) && name.what == HeadRest::Event)
}

struct HeadClock {
    time: u64,
    decimals: u8,
    start: usize,
}

const POWERS: [u64; 10] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
];

/// Reads the digits that end at `end`, from the last to the first. Returns the number and where it starts.
#[inline]
fn digits_before(line: &[u8], end: usize) -> Option<(u64, usize)> {
    let mut n = 0u64;
    let mut scale = 1u64;
    let mut start = end;
    for &b in line[..end].iter().rev() {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        // Nineteen digits always fit, and no clock prints more.
        if end - start == 19 {
            return None;
        }
        n += u64::from(digit) * scale;
        scale = scale.wrapping_mul(10);
        start -= 1;
    }
    (start < end).then_some((n, start))
}

#[inline]
fn stands_apart(line: &[u8], start: usize) -> bool {
    start == 0 || scan::is_blank(line[start - 1]) || line[start - 1] == b']'
}

/// Reads the time stamp that ends before `end`.
#[inline]
fn clock(line: &[u8], end: usize) -> Option<HeadClock> {
    let Some((digits, tail)) = digits_before(line, end) else {
        return latency_clock(line, end);
    };
    if tail > 0
        && line[tail - 1] == b'.'
        && let Some((seconds, start)) = digits_before(line, tail - 1)
    {
        let scale = POWERS.get(9usize.checked_sub(end - tail)?)?;
        let time = seconds
            .checked_mul(POWERS[9])?
            .checked_add(digits * scale)?;
        let decimals = u8::try_from(end - tail).ok()?;
        return stands_apart(line, start).then_some(HeadClock {
            time,
            decimals,
            start,
        });
    }
    let clock = HeadClock {
        time: digits,
        decimals: 0,
        start: tail,
    };
    stands_apart(line, tail).then_some(clock)
}

/// Flags that trace-cmd prints: interrupts off, resched, interrupt, preempt depth and migration.
const FLAGS: usize = 5;

/// Reads the time stamp behind flags with no blank between, as trace-cmd 3.4 prints one that is wider than its column:
/// `[003] d.s3.2217615388452:` of `x86-tsc` and `--raw-ts`, with `-l` `3d.s3.2217615388452:`.
fn joined_clock(line: &[u8], end: usize) -> Option<HeadClock> {
    let token = scan::token_start(line, end);
    let cpu = line[token..end].iter().take_while(|b| b.is_ascii_digit());
    let cpu = cpu.count();
    let flags = token + cpu;
    let start = flags + FLAGS;
    let digits = line.get(start..end)?;
    let before = scan::back_over_blanks(line, token);
    let behind_cpu = before < token && (cpu > 0 || line[..before].last() == Some(&b']'));
    if !behind_cpu || digits.is_empty() || !who::are_flags(&line[flags..start]) {
        return None;
    }
    let (whole, fraction) = match memchr::memchr(b'.', digits) {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &digits[..0]),
    };
    let whole = scan::decimal(whole)?;
    let time = match fraction {
        [] => whole,
        fraction => {
            let scale = POWERS.get(9usize.checked_sub(fraction.len())?)?;
            let below = scan::decimal(fraction)?.checked_mul(*scale)?;
            whole.checked_mul(POWERS[9])?.checked_add(below)?
        }
    };
    Some(HeadClock {
        time,
        decimals: u8::try_from(fraction.len()).ok()?,
        start,
    })
}

/// Reads the time stamp of the kernel's latency format: microseconds since the first event of the buffer,
/// `us`, and a mark for long delays (`kernel/trace/trace_output.c`, `trace_print_lat_context`).
fn latency_clock(line: &[u8], end: usize) -> Option<HeadClock> {
    let mark = end.checked_sub(1)?;
    let unit = if matches!(
        line[mark],
        b' ' | b'\t' | b'+' | b'!' | b'#' | b'*' | b'@' | b'$'
    ) {
        mark
    } else {
        end
    };
    let digits_end = unit.checked_sub(2)?;
    if &line[digits_end..unit] != b"us" {
        return None;
    }
    let (micros, start) = digits_before(line, digits_end)?;
    stands_apart(line, start).then_some(HeadClock {
        time: micros.checked_mul(1000)?,
        decimals: 6,
        start,
    })
}

/// An event's name in a line.
pub(crate) struct HeadName {
    pub what: HeadRest,
    pub span: LineSpan,
    pub has_system: bool,
    pub padded: Option<bool>,
    pub ty: Option<u16>,
    pub args: usize,
}

impl HeadName {
    /// Returns the head of the event of this name, whose time stamp ends at `colon`.
    #[inline(always)]
    pub(crate) fn of(self, who: LineTask, time: u64, decimals: u8, colon: usize) -> EventHead {
        EventHead {
            what: self.what,
            who,
            time,
            decimals,
            name: self.span,
            ty: self.ty,
            has_system: self.has_system,
            padded: self.padded,
            args: u32::try_from(self.args).unwrap_or(u32::MAX),
            colon: short(colon),
        }
    }
}

/// Reads the event's name behind the time stamp, if it is one seen lately and nothing stands before it.
#[inline]
pub(crate) fn known_name(line: &[u8], at: usize, types: &Types) -> Option<HeadName> {
    let start = scan::skip_blanks(line, at);
    let (ty, len) = types.recent(&line[start..])?;
    let args = scan::skip_blanks(line, start + len + 1);
    Some(HeadName {
        what: HeadRest::Event,
        span: LineSpan::new(start, start + len),
        has_system: !types.get(ty).system.is_empty(),
        padded: padding(line, start, len, args),
        // There are at most `types::MAX_TYPES`.
        ty: u16::try_from(ty).ok(),
        args,
    })
}

/// Returns whether a name is padded to the column of trace-cmd.
#[inline]
pub(crate) fn padding(line: &[u8], start: usize, len: usize, args: usize) -> Option<bool> {
    (len < 20 && args < line.len()).then_some(args - start >= 22)
}

/// Reads the event's name behind the time stamp.
fn name(line: &[u8], at: usize) -> Option<HeadName> {
    let mut start = scan::skip_blanks(line, at);
    let mut end = token_end(line, start)?;
    // `trace-cmd report --ts-diff` puts the time since the line before here.
    if line[start..end].starts_with(b"(+") && line[end - 1] == b')' {
        start = scan::skip_blanks(line, end);
        end = token_end(line, start)?;
    }
    // perf prints the period of hardware and software events before the name.
    if end - start <= 20 && scan::all_digits(&line[start..end]) {
        start = scan::skip_blanks(line, end);
        end = token_end(line, start)?;
    }
    let token = &line[start..end];
    let args = scan::skip_blanks(line, end);
    if token.starts_with(b"PERF_RECORD_") {
        return Some(HeadName {
            what: HeadRest::Record,
            span: LineSpan::new(start, end),
            has_system: true,
            padded: None,
            ty: None,
            args,
        });
    }
    let Some((b':', bare)) = token.split_last() else {
        return nameless(line, start, end).or_else(|| remote(line, at, start, end));
    };
    if bare.is_empty() || !is_name(bare) {
        return None;
    }
    Some(HeadName {
        what: HeadRest::Event,
        span: LineSpan::new(start, end - 1),
        has_system: system_len(bare).is_some(),
        padded: padding(line, start, bare.len(), args),
        ty: None,
        args,
    })
}

#[inline]
fn token_end(line: &[u8], start: usize) -> Option<usize> {
    let end = scan::token_end(&line[..line.len().min(start + MAX_NAME)], start);
    (end > start).then_some(end)
}

/// Returns whether these bytes can be an event's name: perf's own end in modifiers or contain whole terms
/// (`cpu/event=0xc0/u`).
#[inline]
fn is_name(bare: &[u8]) -> bool {
    let first = bare[0];
    (first.is_ascii_alphabetic() || first == b'_' || bare.starts_with(b"0x"))
        && bare.iter().all(|b| {
            b.is_ascii_alphanumeric()
                || matches!(
                    b,
                    b'_' | b':' | b'-' | b'.' | b'/' | b'=' | b',' | b'@' | b'+' | b'*' | b'%'
                )
        })
}

/// Reads what the kernel's tracers print in the place of a name.
fn nameless(line: &[u8], start: usize, end: usize) -> Option<HeadName> {
    let rest = &line[start..];
    let what = if rest.starts_with(b"<stack trace") {
        HeadRest::KernelStack
    } else if rest.starts_with(b"<user stack") {
        HeadRest::UserStack
    } else if line[scan::skip_blanks(line, end)..].starts_with(b"<-") && is_name(&line[start..end])
    {
        HeadRest::Function
    } else {
        return None;
    };
    Some(HeadName {
        what,
        span: LineSpan::new(start, end),
        has_system: false,
        padded: None,
        ty: None,
        args: start,
    })
}

/// Reads the name of an event of a remote buffer, as pKVM's hypervisor writes one (`hyp_enter`): no colon is behind
/// it, and the columns before it are a CPU and a time alone, without a thread (`kernel/trace/trace_remote.c`,
/// `trace_remote_iter_print_event`, Linux 7.0).
fn remote(line: &[u8], at: usize, start: usize, end: usize) -> Option<HeadName> {
    let time = scan::token_start(line, at - 1);
    let (_, open) = who::bracket(line, scan::back_over_blanks(line, time))?;
    let alone = scan::skip_blanks(line, 0) == open;
    let args = scan::skip_blanks(line, end);
    // Prose may begin like this; but what an event says begins with a field.
    let field = token_end(line, args).map(|field| &line[args..field]);
    let is_field = field.is_none_or(|field| field.contains(&b'='));
    (alone && is_field && is_name(&line[start..end])).then(|| HeadName {
        what: HeadRest::Event,
        span: LineSpan::new(start, end),
        has_system: false,
        padded: None,
        ty: None,
        args,
    })
}

/// Returns whether a line could be the first part of a wrapped event's line: it says on which CPU, and
/// whose, but has no name behind a time.
pub(crate) fn may_begin(line: &[u8]) -> bool {
    let reach = &line[..line.len().min(MAX_HEAD)];
    memchr::memchr_iter(b']', reach).any(|close| who::is_reported(line, close + 1))
}
