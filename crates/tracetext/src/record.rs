//! Records that perf script prints beside events, with `--show-lost-events`, `--show-task-events`,
//! `--show-mmap-events` and their like (`tools/perf/util/event.c`, `perf_event__fprintf`).

use event::{LostKind, NONE, Side};

use crate::head::EventHead;
use crate::scan;

/// What a record's line says. Borrowed text may hold bytes that are no UTF-8.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TextRecord<'t> {
    Lost {
        count: Option<u64>,
        kind: LostKind,
    },
    Comm {
        comm: &'t [u8],
        pid: i32,
        tid: i32,
        exec: bool,
    },
    Fork {
        pid: i32,
        tid: i32,
        ppid: i32,
        ptid: i32,
    },
    Exit {
        pid: i32,
        tid: i32,
    },
    Mmap {
        pid: i32,
        tid: i32,
        start: u64,
        len: u64,
        pgoff: u64,
        path: &'t [u8],
    },
    /// Another record, which sinks have no use for.
    Other,
}

/// Reads a record's text, from its `PERF_RECORD_` on.
pub(crate) fn read(text: &[u8]) -> Option<TextRecord<'_>> {
    let text = scan::trim(text).strip_prefix(b"PERF_RECORD_")?;
    let name = text
        .iter()
        .take_while(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || **b == b'_')
        .count();
    let (name, rest) = text.split_at(name);
    let record = match name {
        b"LOST" => lost(rest, LostKind::Ring),
        b"LOST_SAMPLES" => lost(rest, LostKind::Sum),
        b"COMM" => comm(rest),
        b"FORK" => pair_of_ids(rest).map(|(pid, tid, ppid, ptid)| TextRecord::Fork {
            pid,
            tid,
            ppid,
            ptid,
        }),
        b"EXIT" => pair_of_ids(rest).map(|(pid, tid, _, _)| TextRecord::Exit { pid, tid }),
        b"MMAP" | b"MMAP2" => mmap(rest),
        _ => Some(TextRecord::Other),
    };
    Some(record.unwrap_or(TextRecord::Other))
}

/// ` lost 310`.
fn lost(rest: &[u8], kind: LostKind) -> Option<TextRecord<'_>> {
    let number = scan::trim(rest);
    let number = scan::trim(number.strip_prefix(b"lost").unwrap_or(number));
    Some(TextRecord::Lost {
        count: scan::number(number),
        kind,
    })
}

/// ` exec: name:pid/tid` or `: name:pid/tid`; the name may hold colons.
fn comm(rest: &[u8]) -> Option<TextRecord<'_>> {
    let (exec, rest) = match rest.strip_prefix(b" exec") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let rest = rest.strip_prefix(b":")?;
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    let colon = memchr::memrchr(b':', rest)?;
    let (pid, tid) = split_ids(&rest[colon + 1..], b'/')?;
    Some(TextRecord::Comm {
        comm: &rest[..colon],
        pid,
        tid,
        exec,
    })
}

fn split_ids(text: &[u8], by: u8) -> Option<(i32, i32)> {
    let at = memchr::memchr(by, text)?;
    Some((scan::id(&text[..at])?, scan::id(&text[at + 1..])?))
}

/// `(pid:tid):(ppid:ptid)`.
fn pair_of_ids(rest: &[u8]) -> Option<(i32, i32, i32, i32)> {
    let inside = rest.strip_prefix(b"(")?.strip_suffix(b")")?;
    let middle = memchr::memmem::find(inside, b"):(")?;
    let (pid, tid) = split_ids(&inside[..middle], b':')?;
    let (ppid, ptid) = split_ids(&inside[middle + 3..], b':')?;
    Some((pid, tid, ppid, ptid))
}

/// ` -1/0: [0xffffffff81000000(0xe01d32) @ 0xffffffff81000000]: x [kernel.kallsyms]_text`; the second form
/// has device, inode and generation behind the offset, and protection bits.
fn mmap(rest: &[u8]) -> Option<TextRecord<'_>> {
    let rest = scan::trim(rest);
    let colon = memchr::memchr(b':', rest)?;
    let (pid, tid) = split_ids(&rest[..colon], b'/')?;
    let open = colon + memchr::memchr(b'[', &rest[colon..])?;
    let body = &rest[open + 1..];
    let start = scan::hex(body)?;
    let paren = memchr::memchr(b'(', body)?;
    let len = scan::hex(&body[paren + 1..])?;
    let at = memchr::memmem::find(body, b"@ ")?;
    // Zero is printed without `0x`; others have it.
    let pgoff = scan::hex(&body[at + 2..])?;
    let close = memchr::memmem::find(body, b"]: ")?;
    let tail = &body[close + 3..];
    let path = scan::skip_blanks(tail, scan::token_end(tail, 0));
    Some(TextRecord::Mmap {
        pid,
        tid,
        start,
        len,
        pgoff,
        path: &tail[path..],
    })
}

/// Returns the record as sinks see it; `comm` is the record's own text as UTF-8.
pub(crate) fn side<'t>(
    record: &TextRecord<'_>,
    head: &EventHead,
    text: &'t str,
) -> Option<Side<'t>> {
    let time = head.time;
    Some(match *record {
        TextRecord::Lost { count, kind } => Side::Lost {
            time,
            cpu: head.who.cpu,
            buffer: 0,
            count,
            kind,
        },
        TextRecord::Comm { pid, tid, exec, .. } => Side::Comm {
            time,
            pid,
            tid,
            comm: text,
            exec,
        },
        TextRecord::Fork {
            pid,
            tid,
            ppid,
            ptid,
        } => Side::Fork {
            time,
            pid,
            tid,
            ppid,
            ptid,
        },
        TextRecord::Exit { pid, tid } => Side::Exit { time, pid, tid },
        TextRecord::Mmap {
            pid,
            tid,
            start,
            len,
            pgoff,
            ..
        } => {
            // perf prints no header bits; the kernel's own mappings have no process.
            const MISC_KERNEL: u16 = 1;
            const MISC_USER: u16 = 2;
            let misc = if pid == NONE { MISC_KERNEL } else { MISC_USER };
            Side::Mmap {
                time,
                pid,
                tid,
                start,
                len,
                pgoff,
                misc,
                exec: true,
                huge: false,
                build_id: None,
                path: text,
            }
        }
        TextRecord::Other => return None,
    })
}
