//! Who and where: the columns before the time stamp.
//!
//! | text | columns |
//! | --- | --- |
//! | `perf script` | `comm tid [cpu]`, with `-F pid,tid` `comm pid/tid [cpu]`; each can be missing |
//! | `trace-cmd report` | `comm-tid [cpu] flags`, `-l`: `comm-tid cpuflags`; reports of several files have `file: ` before it |
//! | `perf-prof` | `date time comm tid flags [cpu]` |
//! | a remote buffer's `trace` | `[cpu]` alone: pKVM's hypervisor knows no threads |
//! | the kernel's `trace` | `comm-tid (tgid) [cpu] flags`; tgid and flags are options; latency format as `-l` |
//!
//! Names of threads hold anything: blanks, brackets, colons, digits. So the columns are read from the right.

use event::NONE;

use crate::scan;
use crate::span::LineSpan;

/// Who and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineTask {
    pub cpu: i32,
    pub tid: i32,
    pub pid: i32,
    /// Whether there is a column of the thread id at all.
    pub has_tid: bool,
    /// Name of the thread.
    pub comm: LineSpan,
    /// Name of the file or buffer that a merged report prints before each line.
    pub source: LineSpan,
    /// Whether name and thread id are joined by a hyphen, as ftrace and trace-cmd do.
    pub joined: bool,
    /// Whether CPU and flags are one column, as the latency formats have it.
    pub latency: bool,
}

impl Default for LineTask {
    #[inline]
    fn default() -> LineTask {
        LineTask {
            cpu: NONE,
            tid: NONE,
            pid: NONE,
            has_tid: false,
            comm: LineSpan::default(),
            source: LineSpan::default(),
            joined: false,
            latency: false,
        }
    }
}

/// A thread's name has 15 bytes (`TASK_COMM_LEN`, with the zero).
const MAX_COMM: usize = 15;

/// Reads the columns before `end`, where the time stamp starts.
#[inline]
pub(crate) fn parse(line: &[u8], end: usize, perf: bool) -> LineTask {
    let mut who = LineTask::default();
    let end = scan::back_over_blanks(line, end);
    let end = cpu(line, end, &mut who);
    let end = scan::back_over_blanks(line, end);
    let end = thread(line, end, perf, &mut who);
    let end = scan::back_over_blanks(line, end);
    name(line, end, &mut who);
    who
}

/// Returns whether a CPU and a thread are in the columns that end at `end`.
pub(crate) fn is_reported(line: &[u8], end: usize) -> bool {
    let mut who = LineTask::default();
    let Some((_, start)) = bracket(line, end) else {
        return false;
    };
    thread(line, scan::back_over_blanks(line, start), false, &mut who);
    who.has_tid
}

/// Reads `[cpu]` that ends at `end`. Returns it and where it starts.
#[inline]
pub(crate) fn bracket(line: &[u8], end: usize) -> Option<(i32, usize)> {
    // Three digits are printed always.
    if let Some(&[b'[', a, b, c, b']']) = line[..end].last_chunk::<5>() {
        let digits = [a, b, c].map(|d| i32::from(d.wrapping_sub(b'0')));
        if digits.iter().all(|d| *d <= 9) {
            return Some((digits[0] * 100 + digits[1] * 10 + digits[2], end - 5));
        }
    }
    odd_bracket(line, end)
}

fn odd_bracket(line: &[u8], end: usize) -> Option<(i32, usize)> {
    let close = end.checked_sub(1)?;
    if line[close] != b']' {
        return None;
    }
    let floor = close.saturating_sub(7);
    let mut start = close;
    while start > floor && line[start - 1].is_ascii_digit() {
        start -= 1;
    }
    let open = start.checked_sub(1).filter(|o| line[*o] == b'[')?;
    let cpu = scan::decimal(&line[start..close])?;
    // CONFIG_NR_CPUS ends at 8192; five digits leave room.
    let cpu = i32::try_from(cpu).ok()?;
    (close - start <= 5).then_some((cpu, open))
}

#[inline]
fn cpu(line: &[u8], end: usize, who: &mut LineTask) -> usize {
    if let Some((cpu, start)) = bracket(line, end) {
        who.cpu = cpu;
        return start;
    }
    let start = scan::token_start(line, end);
    let token = &line[start..end];
    // `trace-cmd report -R` of newer versions: the flags as a number, joined to the CPU.
    if let Some(at) = memchr::memmem::find(token, b"]-0x")
        && let Some((cpu, start)) = bracket(line, start + at + 1)
    {
        who.cpu = cpu;
        return start;
    }
    if token.len() <= 12
        && let Some((cpu, start)) = bracket(line, scan::back_over_blanks(line, start))
    {
        who.cpu = cpu;
        return start;
    }
    if let Some(cpu) = latency_column(token) {
        who.cpu = cpu;
        who.latency = true;
        return start;
    }
    // The CPU's column was cut away.
    if are_flags(token) {
        return start;
    }
    end
}

/// Returns whether the columns before `end`, where the time stamp starts, end in the flags that the kernel and
/// trace-cmd print.
pub(crate) fn ends_in_flags(line: &[u8], end: usize) -> bool {
    let end = scan::back_over_blanks(line, end);
    let token = &line[scan::token_start(line, end)..end];
    are_flags(token) || latency_column(token).is_some()
}

/// Reads CPU and flags that stand together: `3d..2.`, `3dN.5.`, raw `3-0x1`.
///
/// The flags are those of `trace_print_lat_fmt`: interrupts off (`d`, bottom halves `b` or both `D`, `X`
/// not supported), resched (`N`, `n`, `p`, `l` and kin), interrupt (`h`, `s`, `H`, `z`, `Z`), preempt depth,
/// migration.
fn latency_column(token: &[u8]) -> Option<i32> {
    let digits = token.iter().take_while(|b| b.is_ascii_digit()).count();
    let cpu = scan::decimal(token.get(..digits)?).filter(|_| digits <= 5)?;
    let cpu = i32::try_from(cpu).ok()?;
    let flags = &token[digits..];
    if let Some(number) = flags.strip_prefix(b"-0x") {
        let all_hex = number.iter().all(u8::is_ascii_hexdigit);
        return (!number.is_empty() && all_hex).then_some(cpu);
    }
    are_flags(flags).then_some(cpu)
}

/// Returns whether these are the latency format's flags: `d..2.`, `dNh1`.
pub(crate) fn are_flags(flags: &[u8]) -> bool {
    let Some((first, rest)) = flags.split_first() else {
        return false;
    };
    matches!(first, b'.' | b'd' | b'D' | b'b' | b'X')
        && (3..=8).contains(&rest.len())
        && matches!(
            rest[0],
            b'.' | b'N' | b'n' | b'p' | b'B' | b'L' | b'b' | b'l' | b'g' | b'x'
        )
        && matches!(rest[1], b'.' | b'h' | b'H' | b's' | b'z' | b'Z')
        && rest[2..]
            .iter()
            .all(|b| *b == b'.' || b.is_ascii_hexdigit() || *b == b'#')
}

#[inline]
fn thread(line: &[u8], end: usize, perf: bool, who: &mut LineTask) -> usize {
    // Nearly always: digits, and before them a blank, or a hyphen behind a name.
    let mut tid = 0;
    let mut scale = 1;
    let mut start = end;
    for &b in line[..end].iter().rev() {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 || end - start >= 9 {
            break;
        }
        tid += i32::from(digit) * scale;
        scale = scale.wrapping_mul(10);
        start -= 1;
    }
    let before = line[..start].last().copied().unwrap_or(b' ');
    let apart = scan::is_blank(before) && !who.latency;
    let joined = before == b'-' && !perf;
    if start == end || !(apart || joined) {
        return odd_thread(line, end, perf, who);
    }
    who.tid = tid;
    who.has_tid = true;
    who.joined = joined;
    start - usize::from(joined)
}

#[inline(never)]
fn odd_thread(line: &[u8], end: usize, perf: bool, who: &mut LineTask) -> usize {
    let end = process(line, end, who);
    let mut end = end;
    let mut start = scan::token_start(line, end);
    // perf-prof prints `comm tid flags [cpu]`.
    if !who.latency && are_flags(&line[start..end]) {
        end = scan::back_over_blanks(line, start);
        start = scan::token_start(line, end);
    }
    let token = &line[start..end];
    let apart = if token.starts_with(b"-") && !perf {
        None
    } else {
        scan::id(token)
    };
    if let Some(tid) = apart.filter(|_| !who.latency) {
        who.tid = tid;
        who.has_tid = true;
        return start;
    }
    if let Some(slash) = memchr::memchr(b'/', token)
        && let (Some(pid), Some(tid)) = (scan::id(&token[..slash]), scan::id(&token[slash + 1..]))
    {
        who.pid = pid;
        who.tid = tid;
        who.has_tid = true;
        return start;
    }
    if !perf
        && let Some(hyphen) = memchr::memrchr(b'-', token)
        && let Some(tid) = scan::id(&token[hyphen + 1..]).filter(|tid| *tid >= 0)
    {
        who.tid = tid;
        who.has_tid = true;
        who.joined = true;
        return start + hyphen;
    }
    end
}

/// Reads the thread group, `(  123)` or `(-----)`, which the kernel's option `record-tgid` prints.
fn process(line: &[u8], end: usize, who: &mut LineTask) -> usize {
    let Some(close) = end.checked_sub(1).filter(|c| line[*c] == b')') else {
        return end;
    };
    let floor = close.saturating_sub(12);
    let Some(open) = memchr::memrchr(b'(', &line[floor..close]) else {
        return end;
    };
    let inside = scan::trim(&line[floor + open + 1..close]);
    if let Some(pid) = scan::id(inside) {
        who.pid = pid;
    } else if inside.is_empty() || inside.iter().any(|b| *b != b'-') {
        return end;
    }
    scan::back_over_blanks(line, floor + open)
}

/// Takes what is left for the thread's name, without what pasting and merging put before it.
#[inline]
fn name(line: &[u8], end: usize, who: &mut LineTask) {
    let start = scan::skip_blanks(&line[..end], 0);
    let bytes = &line[start..end];
    let clean = bytes.len() <= MAX_COMM
        && bytes
            .first()
            .is_none_or(|b| b.is_ascii_alphabetic() || matches!(b, b':' | b'<' | b'('))
        && !(bytes.iter().skip(1).any(|b| *b == b':') && scan::contains(bytes, b": "));
    who.comm = LineSpan::new(start, end);
    if !clean && !bytes.is_empty() {
        unclean_name(line, start, end, who);
    }
}

#[cold]
fn unclean_name(line: &[u8], start: usize, end: usize, who: &mut LineTask) {
    let mut at = start;
    // Each step drops at least one byte.
    while let Some(step) = junk(&line[at..end]) {
        at = scan::skip_blanks(&line[..end], at + step);
    }
    if let Some(len) = source(&line[at..end]) {
        // With the number of a line behind it, it is from `grep -n`.
        if !ends_in_line_number(&line[at..at + len]) {
            who.source = LineSpan::new(at, at + len);
        }
        at = scan::skip_blanks(&line[..end], at + len + 1);
    }
    if end - at > MAX_COMM {
        at += long_junk(&line[at..end]);
    }
    who.comm = LineSpan::new(at, end);
}

/// Returns the length of one piece of junk that pasting puts before a line: quote marks, prompts, bullets,
/// line numbers, the kernel log's time.
pub(crate) fn junk(bytes: &[u8]) -> Option<usize> {
    let (first, rest) = bytes.split_first()?;
    let blank_next = rest.first().is_some_and(|b| scan::is_blank(*b));
    match first {
        b'>' | b'|' => Some(1),
        b'$' | b'#' | b'+' | b'-' | b'*' | b'%' if blank_next => Some(1),
        // U+2502, a box drawing's vertical line.
        0xe2 if rest.starts_with(&[0x94, 0x82]) => Some(3),
        b'[' => {
            let close = memchr::memchr(b']', &bytes[..bytes.len().min(40)])?;
            let inside = scan::trim(&bytes[1..close]);
            let log_time = inside.first().is_some_and(u8::is_ascii_digit)
                && inside.iter().all(|b| b.is_ascii_digit() || *b == b'.')
                && inside.contains(&b'.');
            // Newer kernels name the caller as well: `[   12.345678][  T123]`.
            let caller =
                matches!(inside.first(), Some(b'T' | b'C')) && scan::all_digits(&inside[1..]);
            (log_time || caller).then_some(close + 1)
        }
        b'<' => {
            // The log's level, as in `<4>[   12.345678]`.
            let level =
                rest.len() > 2 && rest[0].is_ascii_digit() && rest[1] == b'>' && rest[2] == b'[';
            level.then_some(3)
        }
        b'0'..=b'9' => line_number(bytes),
        _ => None,
    }
}

/// Returns the length of a line number: digits, and then two blanks, a tab, or a mark and a blank.
fn line_number(bytes: &[u8]) -> Option<usize> {
    let digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    let mark = matches!(bytes.get(digits), Some(b':' | b'|' | b')' | b'.'));
    let blanks = &bytes[digits + usize::from(mark)..];
    let apart = match blanks {
        [b'\t', ..] => true,
        [b' ', b' ' | b'\t', ..] => true,
        [b' ', ..] => mark,
        _ => false,
    };
    apart.then_some(digits + usize::from(mark))
}

/// Returns the length of a file's name before `: `, as merged reports have it.
fn source(bytes: &[u8]) -> Option<usize> {
    let colon = memchr::memmem::find(bytes, b": ")?;
    let token = &bytes[..colon];
    let one_word = !token.is_empty() && !token.iter().any(|b| scan::is_blank(*b));
    // A thread may be called `a: b`; a column of file names is wider than a thread's name together with it.
    let column = bytes.len() > MAX_COMM || bytes[colon + 1..].starts_with(b"  ");
    (one_word && column).then_some(colon)
}

/// Returns whether this is a file's name and the number of a line, `report.txt:12`.
fn ends_in_line_number(token: &[u8]) -> bool {
    let colon = memchr::memrchr(b':', token);
    colon.is_some_and(|at| scan::all_digits(&token[at + 1..]))
}

/// Returns how much to drop of something longer than a thread's name can be: all before the last mark that
/// ends a prefix.
fn long_junk(bytes: &[u8]) -> usize {
    const MARKS: [&[u8]; 7] = [b"  ", b"\t", b"> ", b"| ", b"] ", b": ", b"$ "];
    let after = |mark: &&[u8]| memchr::memmem::rfind(bytes, mark).map(|at| at + mark.len());
    if let Some(at) = MARKS.iter().filter_map(after).max() {
        return scan::skip_blanks(bytes, at).min(bytes.len());
    }
    // `grep -n` without a blank: `report.txt:12:CPU 1/KVM`.
    let mut from = 0;
    while let Some(colon) = memchr::memchr(b':', &bytes[from..]).map(|at| from + at) {
        let rest = &bytes[colon + 1..];
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits > 0 && rest.get(digits) == Some(&b':') {
            return colon + 1 + digits + 1;
        }
        from = colon + 1;
    }
    0
}
