//! Lines of the function_graph tracer (`kernel/trace/trace_functions_graph.c`, Linux 2.6.29 to 7.0):
//!
//! ```text
//! #     TIME        CPU  TASK/PID         DURATION                  FUNCTION CALLS
//!   444.000100 |   1)  CPU 0/K-1240 |   0.541 us    |  kvm_arch_vcpu_put();
//!  1) ! 120.500 us  |  } /* vcpu_enter_guest */
//! ```
//!
//! Each column is an option of the tracer. By default there are the CPU, the duration and the calls, and so no time of
//! day. Events that happen within a function stand in comments.

use event::NONE;

use crate::scan;
use crate::span::LineSpan;
use crate::who;

/// What a line of the tracer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GraphCall {
    /// A function was called: it calls others (`f() {`), or returned at once (`f();`).
    Entry,
    /// A function returned: `}`.
    Return,
    /// An event, or a text of the kernel: `/* kvm_entry: vcpu 0 */`.
    Comment,
    /// An interrupt begins or ends: `==========>`.
    Interrupt,
}

/// One line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GraphLine {
    pub call: GraphCall,
    /// With the option `funcgraph-abstime`.
    pub time_ns: Option<u64>,
    pub cpu: i32,
    /// With the option `funcgraph-proc`. The name has seven bytes at most.
    pub tid: i32,
    pub comm: LineSpan,
    /// Duration and call, from the duration on. Of a comment, what is in it.
    pub says: LineSpan,
}

impl GraphLine {
    /// Returns the line as `trace-cmd report` prints what it says: `comm-tid [cpu] time: funcgraph_entry: ...`, and an
    /// event that stands in a comment as itself. `None` where it has no time of day or no CPU, or is none of them.
    pub(crate) fn as_event(&self, line: &[u8]) -> Option<Vec<u8>> {
        let (time_ns, says) = (self.time_ns?, self.says.of(line));
        let name: &[u8] = match self.call {
            GraphCall::Entry => b"funcgraph_entry: ",
            GraphCall::Return => b"funcgraph_exit: ",
            // Events begin with their name; texts of trace_printk do not.
            GraphCall::Comment if is_named(says) => b"",
            GraphCall::Comment => b"print: ",
            GraphCall::Interrupt => return None,
        };
        let comm = self.comm.of(line);
        // A longer name is cut off here.
        let comm = if comm.len() < CUT_COMM {
            comm
        } else {
            b"<...>"
        };
        let mut event = Vec::with_capacity(says.len() + 64);
        if self.tid >= 0 {
            event.extend_from_slice(comm);
            event.extend_from_slice(format!("-{} ", self.tid).as_bytes());
        }
        let (seconds, micros) = (time_ns / 1_000_000_000, time_ns / 1000 % 1_000_000);
        let cpu = u32::try_from(self.cpu).ok()?;
        event.extend_from_slice(format!("[{cpu:03}] {seconds}.{micros:06}: ").as_bytes());
        event.extend_from_slice(name);
        event.extend_from_slice(says);
        Some(event)
    }
}

/// Whether a text begins with an event's name: `kvm_exit: reason ...`.
fn is_named(text: &[u8]) -> bool {
    let end = text
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
        .count();
    let rest = text.get(end..).unwrap_or_default();
    end > 0 && (rest == b":" || rest.starts_with(b": "))
}

/// The tracer prints so many bytes of a thread's name (`print_graph_proc`).
const CUT_COMM: usize = 7;
/// Things that pasting puts before a line, which are passed over.
const MAX_JUNK: usize = 8;
/// Bytes of a line in which the columns end.
const MAX_COLUMNS: usize = 160;
/// Bytes of a name and a thread id: seven, a hyphen, ten digits.
const MAX_PROC: usize = 20;

/// Reads a line of the tracer. `None` when it is none.
pub(crate) fn parse(line: &[u8]) -> Option<GraphLine> {
    at_columns(line, columns)
}

/// Returns whether a line has the tracer's columns from the CPU or the time on, whatever is behind them.
pub(crate) fn begins(line: &[u8]) -> bool {
    let columns = at_columns(line, bar);
    columns.is_some_and(|columns| columns.read.cpu >= 0 || columns.read.time_ns.is_some())
}

/// Returns whether a line has the tracer's columns, but no call behind them that is whole: it was broken.
pub(crate) fn is_broken(line: &[u8]) -> bool {
    begins(line) && parse(line).is_none()
}

/// Reads from where the columns may begin, and then from behind what pasting put there.
fn at_columns<T>(line: &[u8], read: fn(&[u8], usize) -> Option<T>) -> Option<T> {
    // Nearly every line of another form has no `|` near its beginning.
    memchr::memchr(b'|', line.get(..MAX_COLUMNS).unwrap_or(line))?;
    let mut at = scan::skip_blanks(line, 0);
    for _ in 0..MAX_JUNK {
        if let Some(read) = read(line, at) {
            return Some(read);
        }
        let rest = line.get(at..)?;
        at += who::junk(rest).or_else(|| file_and_number(rest))?;
        at = scan::skip_blanks(line, at);
    }
    None
}

/// Returns the length of `trace.txt:12:`, which `grep -n` puts before a line.
fn file_and_number(bytes: &[u8]) -> Option<usize> {
    let colon = memchr::memchr(b':', bytes)?;
    let one_word = !bytes.get(..colon)?.iter().any(|b| scan::is_blank(*b));
    let number = bytes.get(colon + 1..)?;
    let digits = number.iter().take_while(|b| b.is_ascii_digit()).count();
    let ends = number.get(digits) == Some(&b':') && digits > 0;
    (one_word && colon > 0 && ends).then_some(colon + digits + 2)
}

/// The columns of a line, up to the bar before the call.
struct GraphColumns {
    read: GraphLine,
    /// Where the duration begins.
    says: usize,
    bar: usize,
    /// Whether an arrow stands in the place of the duration, and so no call follows.
    arrow: bool,
}

fn bar(line: &[u8], start: usize) -> Option<GraphColumns> {
    let mut read = GraphLine {
        call: GraphCall::Interrupt,
        time_ns: None,
        cpu: NONE,
        tid: NONE,
        comm: LineSpan::default(),
        says: LineSpan::default(),
    };
    let mut at = start;
    if let Some((time_ns, next)) = absolute_time(line, at) {
        read.time_ns = Some(time_ns);
        at = next;
    }
    if let Some(next) = relative_time(line, at) {
        at = next;
    }
    if let Some((cpu, next)) = cpu(line, at) {
        read.cpu = cpu;
        at = next;
    }
    if let Some((comm, tid, next)) = process(line, at) {
        (read.comm, read.tid) = (comm, tid);
        at = next;
    }
    if let Some(next) = flags(line, at) {
        at = next;
    }
    let says = at;
    let mark = matches!(line.get(at), Some(b'$' | b'@' | b'*' | b'#' | b'!' | b'+'));
    let duration = duration(line, scan::skip_blanks(line, at + usize::from(mark)));
    let arrow = arrow(line, at).filter(|_| duration.is_none());
    let bar = scan::skip_blanks(line, duration.or(arrow).unwrap_or(at));
    // Something of the tracer's own must be there beside the bar: a table's row has bars too.
    let own = duration.is_some() || read.cpu >= 0 || read.time_ns.is_some();
    (line.get(bar) == Some(&b'|') && own).then_some(GraphColumns {
        read,
        says,
        bar,
        arrow: arrow.is_some(),
    })
}

fn columns(line: &[u8], start: usize) -> Option<GraphLine> {
    let GraphColumns {
        mut read,
        says,
        bar,
        arrow,
    } = bar(line, start)?;
    if arrow {
        read.says = LineSpan::new(says, bar);
        return Some(read);
    }
    let call = scan::skip_blanks(line, bar + 1);
    let text = scan::trim(line.get(call..)?);
    read.call = call_of(text)?;
    read.says = match read.call {
        GraphCall::Comment => {
            let inside = text.strip_suffix(b"*/").unwrap_or(text);
            let begin = scan::skip_blanks(line, call + 2);
            LineSpan::new(begin, begin.max(call + scan::trim(inside).len()))
        }
        _ => LineSpan::new(says, call + text.len()),
    };
    Some(read)
}

/// `  444.000100 |`: seconds.
fn absolute_time(line: &[u8], at: usize) -> Option<(u64, usize)> {
    let end = scan::token_end(line, at);
    let token = line.get(at..end)?.strip_suffix(b"|");
    let (token, bar) = match token {
        Some(token) => (token, end - 1),
        None => (line.get(at..end)?, scan::skip_blanks(line, end)),
    };
    let point = memchr::memchr(b'.', token)?;
    let (seconds, micros) = (token.get(..point)?, token.get(point + 1..)?);
    if line.get(bar) != Some(&b'|') || micros.len() != 6 {
        return None;
    }
    let time = scan::decimal(seconds)?.checked_mul(1_000_000_000)?;
    let time = time.checked_add(scan::decimal(micros)?.checked_mul(1000)?)?;
    Some((time, scan::skip_blanks(line, bar + 1)))
}

/// `     1234 us |`, since the trace began, behind which the CPU's column stands; a duration stands before the call.
fn relative_time(line: &[u8], at: usize) -> Option<usize> {
    let end = scan::token_end(line, at);
    let unit = scan::skip_blanks(line, end);
    let bar = scan::skip_blanks(line, scan::token_end(line, unit));
    let is_time = scan::all_digits(line.get(at..end)?)
        && line.get(unit..)?.starts_with(b"us ")
        && line.get(bar) == Some(&b'|');
    let next = scan::skip_blanks(line, bar + 1);
    (is_time && cpu(line, next).is_some()).then_some(next)
}

/// `1)`.
fn cpu(line: &[u8], at: usize) -> Option<(i32, usize)> {
    let rest = line.get(at..)?;
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let cpu = scan::decimal(rest.get(..digits)?)?;
    let cpu = i32::try_from(cpu).ok().filter(|_| digits <= 5)?;
    let behind = rest.get(digits + 1).copied().unwrap_or(b' ');
    let is_column = rest.get(digits) == Some(&b')') && (scan::is_blank(behind) || behind == b'|');
    is_column.then(|| (cpu, scan::skip_blanks(line, at + digits + 1)))
}

/// `CPU 0/K-1240 |`.
fn process(line: &[u8], at: usize) -> Option<(LineSpan, i32, usize)> {
    let reach = line.get(at..line.len().min(at + MAX_PROC + 16))?;
    let bar = memchr::memchr(b'|', reach)?;
    let column = scan::trim(reach.get(..bar)?);
    let hyphen = memchr::memrchr(b'-', column)?;
    let tid = scan::id(column.get(hyphen + 1..)?).filter(|tid| *tid >= 0)?;
    (column.len() <= MAX_PROC).then(|| {
        (
            LineSpan::new(at, at + hyphen),
            tid,
            scan::skip_blanks(line, at + bar + 1),
        )
    })
}

/// `d..1. |` of the latency format.
fn flags(line: &[u8], at: usize) -> Option<usize> {
    let end = scan::token_end(line, at);
    let bar = scan::skip_blanks(line, end);
    let has_flags = who::are_flags(line.get(at..end)?) && line.get(bar) == Some(&b'|');
    has_flags.then(|| scan::skip_blanks(line, bar + 1))
}

/// `0.541 us`. Returns where it ends.
fn duration(line: &[u8], at: usize) -> Option<usize> {
    let end = scan::token_end(line, at);
    let number = line.get(at..end)?;
    let is_number = match memchr::memchr(b'.', number) {
        Some(point) => {
            scan::decimal(&number[..point]).is_some()
                && scan::decimal(&number[point + 1..]).is_some()
        }
        None => scan::decimal(number).is_some(),
    };
    let unit = scan::skip_blanks(line, end);
    let rest = line.get(unit..)?.strip_prefix(b"us")?;
    let apart = rest
        .first()
        .is_none_or(|b| scan::is_blank(*b) || *b == b'|');
    (is_number && apart).then_some(unit + 2)
}

/// `==========>`. Returns where it ends.
fn arrow(line: &[u8], at: usize) -> Option<usize> {
    let end = scan::token_end(line, at);
    let token = line.get(at..end)?;
    (token == b"==========>" || token == b"<==========").then_some(end)
}

/// Says what is called; `None` when this is no call.
fn call_of(text: &[u8]) -> Option<GraphCall> {
    if text.starts_with(b"/*") {
        return text.ends_with(b"*/").then_some(GraphCall::Comment);
    }
    if let Some(rest) = text.strip_prefix(b"}") {
        let rest = scan::trim(rest);
        let named = rest.starts_with(b"/*") && rest.ends_with(b"*/");
        return (rest.is_empty() || named).then_some(GraphCall::Return);
    }
    // A function's name, with the module behind it where it has one, and its arguments.
    let name = text
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'@' | b'$'))
        .count();
    let behind = text.get(name..)?;
    let behind = match behind.strip_prefix(b" [") {
        Some(module) => module.get(memchr::memchr(b']', module)? + 1..)?,
        None => behind,
    };
    let named = text
        .first()
        .is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.'));
    let arguments = behind.strip_prefix(b"(")?;
    let close = memchr::memchr(b')', arguments)?;
    let tail = scan::trim(arguments.get(close + 1..)?);
    let ends = tail.starts_with(b";") || tail.starts_with(b"{");
    (named && ends).then_some(GraphCall::Entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_the_tracer() {
        use GraphCall::{Comment, Entry, Interrupt, Return};
        for (line, call, time_ns, cpu, tid, says) in [
            (
                " 1)   0.541 us    |  kvm_arch_vcpu_put();",
                Entry,
                None,
                1,
                NONE,
                "0.541 us    |  kvm_arch_vcpu_put();",
            ),
            (
                " 12)               |  vcpu_enter_guest [kvm]() {",
                Entry,
                None,
                12,
                NONE,
                "|  vcpu_enter_guest [kvm]() {",
            ),
            (
                " 0) ! 120.5 us | }",
                Return,
                None,
                0,
                NONE,
                "! 120.5 us | }",
            ),
            (
                "  444.000100 |   1)  CPU 0/K-1240 |   0.541 us    |  f();",
                Entry,
                Some(444_000_100_000),
                1,
                1240,
                "0.541 us    |  f();",
            ),
            (
                "  444.000100 |   1)  CPU 0/K-1240 |  d..1. | + 12.541 us   |  } /* f */",
                Return,
                Some(444_000_100_000),
                1,
                1240,
                "+ 12.541 us   |  } /* f */",
            ),
            (
                " 1)               |    /* kvm_entry: vcpu 0, rip 0x10 */",
                Comment,
                None,
                1,
                NONE,
                "kvm_entry: vcpu 0, rip 0x10",
            ),
            (
                " 1)   ==========> |",
                Interrupt,
                None,
                1,
                NONE,
                "==========> ",
            ),
            (
                "> > 12:  1)   0.541 us    |  f(a=0x1, b=2); /* ret=0x0 */",
                Entry,
                None,
                1,
                NONE,
                "0.541 us    |  f(a=0x1, b=2); /* ret=0x0 */",
            ),
            (
                "     1234 us |   1)   1234567 us |  f();",
                Entry,
                None,
                1,
                NONE,
                "1234567 us |  f();",
            ),
        ] {
            let read = parse(line.as_bytes()).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(read.call, call, "{line}");
            assert_eq!(
                (read.time_ns, read.cpu, read.tid),
                (time_ns, cpu, tid),
                "{line}"
            );
            assert_eq!(read.says.of(line.as_bytes()), says.as_bytes(), "{line}");
        }
    }

    #[test]
    fn tables_and_sentences_are_none() {
        for line in [
            "",
            "| a | b | c |",
            "|  f();",
            " 1) see | f() for more",
            " 1) the first | the second",
            "  kworker/0:1-123 |   0.541 ms |  12 | avg: 0.1 ms",
            "  444.000100 | text",
            " 0) CPU 0/K-1240 => swapper-0",
        ] {
            assert!(parse(line.as_bytes()).is_none(), "{line}");
        }
    }
}
