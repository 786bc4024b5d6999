//! Lines that are no events: headers, stacks, lost events, and what people leave behind when they cut.

use event::Isa;

use crate::event_like::looks_like_event;
use crate::graph;
use crate::scan;
use crate::span::LineSpan;
use crate::who;

/// What a line is that is no event's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherLine {
    /// Nothing on it.
    Blank,
    /// Part of a call chain.
    Stack,
    /// A comment, or a header without anything needed here.
    Header,
    /// `# tracer: nop` and the like: the kernel's own file.
    Tracer,
    /// The kernel's latency format.
    LatencyTracer,
    /// How many entries the kernel's buffer holds of those written to it.
    Entries {
        held: u64,
        written: u64,
        cpus: Option<u32>,
    },
    /// `cpus=4` of trace-cmd, with the name of the file it belongs to if several are merged.
    Cpus {
        count: u32,
        source: Option<LineSpan>,
    },
    /// The instruction set and vendor, from perf's header.
    Arch(Isa),
    /// Events lost on a CPU, here.
    Lost { cpu: i32, count: Option<u64> },
    /// Events lost in all, by the recorder's sum.
    LostSum { count: u64 },
    /// The recorder says that something was lost, but not how many events.
    LostSome,
    /// Somebody left lines out here.
    Elision,
    /// Marks of a ticket system or a recorder's chatter.
    Chatter,
    /// An event of the kernel's `raw` option: thread, CPU, time, number of the event.
    Raw {
        tid: i32,
        cpu: i32,
        time: u64,
        number: LineSpan,
    },
    /// Not understood.
    Unknown,
}

/// What the lines before tell about this one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineContext {
    /// The line before is an event's.
    pub after_event: bool,
    /// The line before is part of a call chain.
    pub in_stack: bool,
}

/// Says what a line is that is no event's.
pub(crate) fn classify(line: &[u8], context: LineContext) -> OtherLine {
    let indent = scan::skip_blanks(line, 0);
    let text = scan::trim(line);
    let Some(first) = text.first() else {
        return OtherLine::Blank;
    };
    if is_stack(text, indent > 0, context) {
        return OtherLine::Stack;
    }
    match first {
        b'#' => header(text),
        b'C' if text.starts_with(b"CPU:") => cpu_note(&text[4..]),
        b'0'..=b'9' => raw_event(line, indent)
            .or_else(|| chatter(text))
            .unwrap_or(OtherLine::Unknown),
        _ if is_elision(text) => OtherLine::Elision,
        _ => cpus(line, text)
            .or_else(|| chatter(text))
            .unwrap_or(OtherLine::Unknown),
    }
}

/// A call chain's line: of perf script `address symbol+offset (file)`, of ftrace `=> symbol (address)`, with
/// the indentation lost or not.
fn is_stack(text: &[u8], indented: bool, context: LineContext) -> bool {
    if text.starts_with(b"=>")
        || text.starts_with(b"<stack trace")
        || text.starts_with(b"<user stack")
    {
        return true;
    }
    let prefix = if text.starts_with(b"0x") { 2 } else { 0 };
    let digits = scan::hex_digits(&text[prefix..]);
    let end = prefix + digits;
    let rest = text.get(end..).unwrap_or_default();
    let address = (1..=16).contains(&digits) && rest.first().is_none_or(|b| scan::is_blank(*b));
    if address {
        if context.in_stack || (digits >= 8 && (context.after_event || indented)) {
            return true;
        }
        // An address alone (`-F ip`) may be a short one.
        let alone = scan::trim(rest).is_empty();
        let first = context.after_event && indented && (alone || !text[0].is_ascii_digit());
        let symbol = [&b" ("[..], b"[unknown]", b"+0x"];
        return first || symbol.iter().any(|part| scan::contains(rest, part));
    }
    if text.starts_with(b"[unknown]") {
        return true;
    }
    // Without addresses (`-F sym`), and source lines, which stand below their frames.
    let symbol = scan::contains(text, b"+0x") && !text.contains(&b'=');
    symbol && (indented || context.in_stack)
        || (context.in_stack && indented && !looks_like_event(text) && graph::parse(text).is_none())
}

fn header(text: &[u8]) -> OtherLine {
    if text.starts_with(b"# tracer:") {
        return OtherLine::Tracer;
    }
    if scan::contains(text, b" latency trace v") {
        return OtherLine::LatencyTracer;
    }
    if let Some(entries) = entries(text) {
        return entries;
    }
    if let Some(arch) = text.strip_prefix(b"# arch :") {
        let isa = match scan::trim(arch) {
            b"aarch64" => Some(Isa::Arm64),
            b"riscv64" => Some(Isa::Riscv),
            b"s390x" => Some(Isa::S390),
            b"ppc64le" | b"ppc64" => Some(Isa::Powerpc),
            b"loongarch64" => Some(Isa::Loongarch),
            _ => None,
        };
        return isa.map_or(OtherLine::Header, OtherLine::Arch);
    }
    if let Some(vendor) = text.strip_prefix(b"# cpuid :") {
        let is = |name: &[u8]| scan::trim(vendor).starts_with(name);
        if is(b"GenuineIntel") || is(b"CentaurHauls") {
            return OtherLine::Arch(Isa::Vmx);
        }
        if is(b"AuthenticAMD") || is(b"HygonGenuine") {
            return OtherLine::Arch(Isa::Svm);
        }
    }
    OtherLine::Header
}

/// `# entries-in-buffer/entries-written: 27180/27180   #P:4`, in the latency format
/// `# latency: 0 us, #27180/27180, CPU#1 | (...)`.
fn entries(text: &[u8]) -> Option<OtherLine> {
    let pair = match text.strip_prefix(b"# entries-in-buffer/entries-written:") {
        Some(rest) => scan::trim(rest),
        None => {
            let rest = text.strip_prefix(b"# latency:")?;
            let at = memchr::memmem::find(rest, b", #")?;
            &rest[at + 3..]
        }
    };
    let slash = memchr::memchr(b'/', pair)?;
    let held = scan::decimal(&pair[..slash])?;
    let written = scan::number(&pair[slash + 1..])?;
    // `#P:4`: CPUs of the machine.
    let cpus = memchr::memmem::find(text, b"#P:").and_then(|at| scan::number(&text[at + 3..]));
    let cpus = cpus.and_then(|n| u32::try_from(n).ok());
    Some(OtherLine::Entries {
        held,
        written,
        cpus,
    })
}

/// What follows `CPU:`: `1 [724 EVENTS DROPPED]` of trace-cmd, `2 [LOST 123 EVENTS]` of the kernel,
/// `1 [SUBBUFFER START]` of trace-cmd's debugging options, ` 0` of its statistics.
fn cpu_note(rest: &[u8]) -> OtherLine {
    let rest = scan::trim(rest);
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let Some(cpu) = scan::decimal(&rest[..digits]).and_then(|c| i32::try_from(c).ok()) else {
        return OtherLine::Unknown;
    };
    let note = scan::trim(&rest[digits..]);
    let Some(inside) = note.strip_prefix(b"[") else {
        return if note.is_empty() {
            OtherLine::Chatter
        } else {
            OtherLine::Unknown
        };
    };
    if inside.starts_with(b"SUBBUFFER START") {
        return OtherLine::Chatter;
    }
    let inside = &inside[..memchr::memchr(b']', inside).unwrap_or(inside.len())];
    let count = inside.split(|b| scan::is_blank(*b)).find_map(scan::decimal);
    let lost = scan::contains(inside, b"EVENTS DROPPED") || inside.starts_with(b"LOST");
    if lost {
        OtherLine::Lost { cpu, count }
    } else {
        OtherLine::Unknown
    }
}

/// `cpus=4` or, with several files merged, `  trace.dat: cpus=4`.
fn cpus(line: &[u8], text: &[u8]) -> Option<OtherLine> {
    let at = memchr::memmem::find(text, b"cpus=")?;
    let count = u32::try_from(scan::number(&text[at + 5..])?).ok()?;
    if at == 0 {
        return Some(OtherLine::Cpus {
            count,
            source: None,
        });
    }
    let name = text[..at].strip_suffix(b": ")?;
    let blank = name.is_empty() || name.iter().any(|b| scan::is_blank(*b));
    let start = scan::skip_blanks(line, 0);
    let source = LineSpan::new(start, start + name.len());
    (!blank && name.len() <= 255).then_some(OtherLine::Cpus {
        count,
        source: Some(source),
    })
}

/// Whether this is a line of the kernel's `raw` option.
pub(crate) fn is_raw_event(line: &[u8]) -> bool {
    raw_event(line, scan::skip_blanks(line, 0)).is_some()
}

/// A line of the kernel's `raw` option, `4205 2 902863244698 type: 322`: the event's number instead of its
/// name and fields (`kernel/trace/trace.c`, `print_raw_fmt`).
fn raw_event(line: &[u8], start: usize) -> Option<OtherLine> {
    let mut at = start;
    let mut token = || {
        let begin = scan::skip_blanks(line, at);
        at = scan::token_end(line, begin);
        LineSpan::new(begin, at)
    };
    let (tid, cpu, time, word, number) = (token(), token(), token(), token(), token());
    if word.of(line) != b"type:" || !scan::trim(&line[at..]).is_empty() {
        return None;
    }
    scan::decimal(number.of(line))?;
    Some(OtherLine::Raw {
        tid: scan::id(tid.of(line))?,
        cpu: scan::id(cpu.of(line)).filter(|c| (0..100_000).contains(c))?,
        time: scan::decimal(time.of(line))?,
        number,
    })
}

/// Words by which people say that they left something out.
const CUT_WORDS: [&[u8]; 8] = [
    b"snip",
    b"omitted",
    b"skipped",
    b"elided",
    b"removed",
    b"truncated",
    b"more lines",
    b"cut here",
];

/// Returns whether the line stands for lines left out: dots, dashes as of `grep -C`, `[snip]`.
pub(crate) fn is_elision(text: &[u8]) -> bool {
    if text.len() > 80 {
        return false;
    }
    let dots = |b: &u8| {
        matches!(
            b,
            b'.' | b' ' | b'\t' | b'[' | b']' | b'(' | b')' | b'<' | b'>' | b':' | b'~'
        )
    };
    // U+2026 and U+22EE are three dots in one.
    let ellipsis = [b"\xe2\x80\xa6", b"\xe2\x8b\xae"]
        .iter()
        .any(|e| scan::contains(text, &e[..]));
    if (scan::contains(text, b"..") && text.iter().all(dots)) || (ellipsis && text.len() <= 12) {
        return true;
    }
    if text == b"--" || text == b"-" {
        return true;
    }
    let lower = text.to_ascii_lowercase();
    let said = CUT_WORDS.iter().any(|word| scan::contains(&lower, word));
    let marked = matches!(
        text[0],
        b'.' | b'[' | b'(' | b'<' | b'-' | b'=' | b'*' | b'8' | b'~'
    ) || ellipsis;
    said && (marked || lower.len() <= 12)
}

/// Beginnings of lines that recorders, reports and ticket systems put around events.
const CHATTER: [&[u8]; 44] = [
    b"```",
    b"~~~",
    b"{code",
    b"{noformat",
    b"{quote",
    b"<pre",
    b"</pre",
    b"<code",
    b"</code",
    b"[code",
    b"[/code",
    b"version = ",
    b"[ perf record:",
    b"Warning:",
    b"Check IO/CPU overload",
    b"CPU",
    b"Buffer: ",
    b"Kernel buffer statistics",
    b"Note: \"entries\"",
    b"recorded in the trace data",
    b"entries:",
    b"commit overrun:",
    b"bytes:",
    b"oldest event ts:",
    b"now ts:",
    b"dropped events:",
    b"read events:",
    b"overrun:",
    b"trace-cmd: ",
    b"perf: ",
    b"PADDING:",
    b"TIME EXTEND:",
    b"TIME STAMP:",
    b"PERF_RECORD_",
    b"$ ",
    b"$",
    b"root@",
    b"---",
    b"===",
    b"___",
    b"***",
    b"\\",
    b"|",
    b">",
];

fn chatter(text: &[u8]) -> Option<OtherLine> {
    if let Some(lost) = lost_note(text) {
        return Some(lost);
    }
    if scan::contains(text, b" bytes in size") || is_prompt(text) {
        return Some(OtherLine::Chatter);
    }
    let known = CHATTER
        .iter()
        .filter(|word| text.starts_with(word))
        .max_by_key(|w| w.len())?;
    let plain = match *known {
        // Short marks stand alone on their lines, or are said of a CPU.
        b"\\" | b"|" | b">" | b"$" => text.len() == 1,
        b"CPU" => {
            let rest = scan::trim(&text[3..]);
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            digits > 0
                && [&b" is empty"[..], b" data recorded at"]
                    .iter()
                    .any(|t| rest[digits..].starts_with(t))
        }
        _ => true,
    };
    plain.then_some(OtherLine::Chatter)
}

/// Returns whether the line is a shell's prompt with a command: `user@host:~# trace-cmd report`.
fn is_prompt(text: &[u8]) -> bool {
    let reach = &text[..text.len().min(80)];
    let Some(at) = memchr::memchr(b'@', reach) else {
        return false;
    };
    [&b"# "[..], b"$ "]
        .iter()
        .any(|mark| scan::contains(&reach[at..], mark))
        || reach.ends_with(b"#")
}

/// Sentences about lost events: perf script's warnings (`tools/perf/util/session.c`), trace-cmd record's
/// `CPU 1: 3317 events lost`, and the buffer statistics of `trace-cmd report --stat`.
fn lost_note(text: &[u8]) -> Option<OtherLine> {
    if let Some(count) = text.strip_suffix(b" events lost") {
        let colon = memchr::memrchr(b':', count)?;
        let count = scan::decimal(scan::trim(&count[colon + 1..]))?;
        return Some(OtherLine::LostSum { count });
    }
    if let Some(count) = text.strip_prefix(b"overrun:") {
        let count = scan::decimal(scan::trim(count))?;
        return Some(if count > 0 {
            OtherLine::LostSum { count }
        } else {
            OtherLine::Chatter
        });
    }
    if text.starts_with(b"Processed ") && scan::contains(text, b" lost ") {
        return Some(OtherLine::LostSome);
    }
    text.ends_with(b"out of order events recorded.")
        .then_some(OtherLine::Chatter)
}

/// Drops what pasting puts before a line.
pub(crate) fn without_junk(line: &[u8]) -> &[u8] {
    let mut at = scan::skip_blanks(line, 0);
    while let Some(step) = who::junk(&line[at..]) {
        at = scan::skip_blanks(line, at + step);
    }
    &line[at..]
}

/// Drops the marks of a quotation before a line, and one blank behind them: what is indented stays so.
#[inline]
pub(crate) fn unquoted(line: &[u8]) -> &[u8] {
    match line.get(scan::skip_blanks(line, 0)) {
        Some(b'>' | b'|') => behind_marks(line),
        _ => line,
    }
}

#[cold]
fn behind_marks(line: &[u8]) -> &[u8] {
    let marks = |b: &&u8| scan::is_blank(**b) || matches!(**b, b'>' | b'|');
    let before = line.iter().take_while(marks).count();
    let before = line.get(..before).unwrap_or_default();
    let Some(last) = before.iter().rposition(|b| !scan::is_blank(*b)) else {
        return line;
    };
    let rest = line.get(last + 1..).unwrap_or_default();
    rest.strip_prefix(b" ").unwrap_or(rest)
}

/// Drops quote marks, where the line before has them too. What follows may be the rest of a broken line, and
/// begin with anything.
pub(crate) fn without_quotes<'l>(line: &'l [u8], before: &[u8]) -> &'l [u8] {
    let mark = |b: &u8| matches!(b, b'>' | b'|');
    let quoted = scan::trim(before).first().is_some_and(mark);
    let quote = |b: &&u8| scan::is_blank(**b) || (quoted && mark(b));
    &line[line.iter().take_while(quote).count()..]
}
