//! What events, records and headers say.

use super::words::{self, WordPlace};
use crate::redactor::RedactedNames;
use crate::{records, texts};

/// Events whose text is somebody's own: of trace_printk and of programs that write into the trace.
const FREE_TEXTS: [&str; 6] = [
    "print",
    "bprint",
    "bputs",
    "raw_data",
    "tracing_mark_write",
    "tracing_mark_raw",
];
/// Events that print bytes of a guest's code.
const GUESTS_CODE: [&str; 1] = ["kvm_emulate_insn"];

/// Appends what an event says.
pub(super) fn event(event: &[u8], text: &[u8], names: &mut RedactedNames, out: &mut Vec<u8>) {
    let event = str::from_utf8(event).unwrap_or_default();
    let name = event.rsplit(':').next().unwrap_or_default();
    if FREE_TEXTS.contains(&name) {
        out.extend(names.free_text(text.trim_ascii()));
        return;
    }
    if let Some(field) = records::guests_field(name)
        && let Some(value) = value_of(text, field)
    {
        words::put_in(&text[..value.start], WordPlace::OfKvm, names, out);
        out.extend(b"0x0");
        words::put_in(&text[value.end..], WordPlace::OfKvm, names, out);
        return;
    }
    if GUESTS_CODE.contains(&name) {
        return words::put_in(text, WordPlace::GuestsCode, names, out);
    }
    if name.starts_with("kvm") {
        return words::put_in(text, WordPlace::OfKvm, names, out);
    }
    let mut at = 0;
    // trace-cmd prints `comm:pid [prio]`, and of a switch a second one behind an arrow.
    if name.starts_with("sched_") {
        while let Some((comm, begin)) = comm_with_id(&text[at..]) {
            words::put(&text[at..at + begin], names, out);
            out.extend(names.comm(&text[at + begin..at + comm]));
            at += comm;
        }
    }
    words::put(&text[at..], names, out);
}

/// Returns where the number of a field stands: `val 0x41`, or with `trace-cmd report -R` `val=0x41`.
fn value_of(text: &[u8], field: &str) -> Option<std::ops::Range<usize>> {
    let len = field.len();
    let named = |at: &usize| {
        let begins = at.checked_sub(1).is_none_or(|before| text[before] == b' ');
        let behind = text.get(at + len).copied();
        begins && text[*at..].starts_with(field.as_bytes()) && matches!(behind, Some(b' ' | b'='))
    };
    let at = (0..text.len()).find(named)? + len + 1;
    let digits = text[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit() || **byte == b'x');
    Some(at..at + digits.count()).filter(|range| !range.is_empty())
}

/// Returns where in `comm:123 [120]` the name ends, and where it begins: at the start, or behind `==> `.
fn comm_with_id(text: &[u8]) -> Option<(usize, usize)> {
    let arrow = text.windows(4).position(|four| four == b"==> ");
    let first = text
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    let begin = match text.first() {
        // Behind the first name a number and its priority stand.
        Some(b':') => arrow? + 4,
        _ => first,
    };
    let rest = text.get(begin..)?;
    let mut from = 0;
    loop {
        let colon = from + rest.get(from..)?.iter().position(|byte| *byte == b':')?;
        let digits = rest[colon + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        let digits = digits.count();
        if digits > 0 && rest.get(colon + 1 + digits..)?.starts_with(b" [") {
            // What has fields has names of its own.
            let is_field = rest[..colon].contains(&b'=');
            return (!is_field && colon > 0).then_some((begin + colon, begin));
        }
        from = colon + 1;
    }
}

/// Appends what a record says that perf script prints beside events.
pub(super) fn record(text: &[u8], names: &mut RedactedNames, out: &mut Vec<u8>) {
    let begins = |word: &[u8]| text.trim_ascii_start().starts_with(word);
    if begins(b"PERF_RECORD_COMM")
        && let Some(colon) = text.iter().rposition(|byte| *byte == b':')
        && let Some(before) = text[..colon].windows(2).position(|two| two == b": ")
    {
        words::put(&text[..before + 2], names, out);
        out.extend(names.comm(&text[before + 2..colon]));
        words::put(&text[colon..], names, out);
        return;
    }
    let path = text
        .windows(3)
        .position(|three| three == b"]: ")
        .map(|at| at + 3);
    // Behind the protection: `r-xp /usr/bin/x`.
    let path = path.and_then(|at| {
        let blank = text[at..].iter().position(|byte| *byte == b' ')?;
        Some(at + blank + 1)
    });
    if let Some(path) = path.filter(|_| begins(b"PERF_RECORD_MMAP")) {
        let end = text.trim_ascii_end().len();
        words::put_in(&text[..path], WordPlace::Mapping, names, out);
        out.extend(names.file(&text[path..end.max(path)]));
        out.extend(&text[end.max(path)..]);
        return;
    }
    words::put(text, names, out);
}

/// Members of perf's header that stay as they are.
const KEPT: [&str; 9] = [
    "arch",
    "cpudesc",
    "cpuid",
    "nrcpus online",
    "nrcpus avail",
    "total memory",
    "captured on",
    "data offset",
    "time of first sample",
];

/// Appends a line of a header.
pub(super) fn header(line: &[u8], names: &mut RedactedNames, out: &mut Vec<u8>) {
    let text = str::from_utf8(line).unwrap_or_default();
    let member = text
        .trim_start()
        .strip_prefix('#')
        .and_then(|rest| rest.split_once(':'));
    let Some((name, value)) = member else {
        return words::put(line, names, out);
    };
    let name = name.trim();
    match name {
        "os release" | "perf version" => {
            out.extend(&line[..line.len() - value.len()]);
            out.push(b' ');
            out.extend(texts::release(value.trim()).into_bytes());
        }
        _ if KEPT.contains(&name) => out.extend(line),
        _ => words::put(line, names, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_guest_writes_is_gone_in_every_form() {
        for (name, text, expected) in [
            (
                "kvm:kvm_pio",
                "pio_write at 0x3f8 size 1 count 1 val 0x41 ",
                "pio_write at 0x3f8 size 1 count 1 val 0x0 ",
            ),
            (
                "kvm_pio",
                "rw=1 port=0x3f8 size=1 count=1 val=0x41",
                "rw=1 port=0x3f8 size=1 count=1 val=0x0",
            ),
            (
                "kvm_mmio",
                "mmio write len 4 gpa 0xfe val 0x41",
                "mmio write len 4 gpa 0xfe val 0x0",
            ),
            ("print", " alice logged in", "n1"),
        ] {
            let mut out = Vec::new();
            event(
                name.as_bytes(),
                text.as_bytes(),
                &mut RedactedNames::of_text(0),
                &mut out,
            );
            assert_eq!(String::from_utf8_lossy(&out), expected, "{text}");
        }
    }
}
