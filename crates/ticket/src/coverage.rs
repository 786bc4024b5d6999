//! Lines that look like a tool's output and are part of nothing: how much of a text was read is measured by them, and
//! not by its prose.

use crate::lines::{TicketLines, unquoted};

/// Bytes of a line that are looked at.
const HEAD: usize = 512;
/// Numbers of a row at least.
const NUMBERS: usize = 2;

/// Lines that look like a tool's output and were not read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnreadLines {
    /// How many there are.
    pub lines: u64,
    /// The first of them, counted from 1; 0 if there are none.
    pub first: u64,
}

/// Counts the lines that belong to nothing and look like a tool's output, up to the line from which on the text stands
/// there again. `prose` are lines inside of parts that say nothing, in their order.
pub(crate) fn unread(
    lines: &TicketLines<'_>,
    prose: &[usize],
    repeated_from: Option<u64>,
) -> UnreadLines {
    let end = repeated_from.and_then(|line| usize::try_from(line - 1).ok());
    let mut unread = UnreadLines::default();
    let line = |at: usize| match prose.binary_search(&at) {
        Ok(_) => lines.line(at),
        Err(_) => lines.free(at),
    };
    for at in (0..end.unwrap_or(lines.len())).filter(|at| looks_like_output(line(*at))) {
        if unread.lines == 0 {
            unread.first = at as u64 + 1;
        }
        unread.lines += 1;
    }
    unread
}

/// Whether a line is a row of numbers with words, or an event's: half of what stands there are numbers. A date alone, a
/// list of numbers in a sentence and a heading are none.
fn looks_like_output(line: &[u8]) -> bool {
    let line = unquoted(line);
    if tracetext::event_line(line).is_some() {
        return true;
    }
    let line = &line[..line.len().min(HEAD)];
    let words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| word.iter().any(u8::is_ascii_alphanumeric) || !word.is_ascii());
    let (mut all, mut numbers) = (0usize, 0usize);
    for word in words {
        all += 1;
        numbers += usize::from(is_number(word));
    }
    numbers >= NUMBERS && all > NUMBERS && numbers * 2 >= all
}

/// Whether a word is a number, as tools print them: with groups, a unit or a sign behind or before.
fn is_number(word: &[u8]) -> bool {
    let word = word.trim_ascii();
    let bare = word
        .strip_prefix(b"-")
        .or(word.strip_prefix(b"+"))
        .unwrap_or(word);
    let bare = bare.strip_prefix(b"(").unwrap_or(bare);
    let digits = bare.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = bare
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic())
        .count();
    let known = |byte: &u8| byte.is_ascii_alphanumeric() || b".,:%'/()[]|".contains(byte);
    bare.first().is_some_and(u8::is_ascii_digit)
        && digits > 0
        && letters <= 3
        && bare.iter().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_output_and_prose_is_none() {
        for line in [
            "          95th percentile:                        3.55   12",
            " 12.30%  qemu-kvm  [kernel.kallsyms]  3,451  0.2",
            ">  HLT  1447  12.5us  3%",
            "[  5]   0.00-1.00   sec   175 MBytes  1.47 Gbits/sec  0  1.53",
        ] {
            assert!(looks_like_output(line.as_bytes()), "{line}");
        }
        for line in [
            "",
            "2023-10-20 04:16:10",
            "We saw 3 of them in 10 seconds on host 4.",
            "2.2.1. ubuntu clocksource perf",
            "在30秒的时间里, 一共有9百万行记录",
            "![](img/profiling_20221018152251.png)",
            "----------",
        ] {
            assert!(!looks_like_output(line.as_bytes()), "{line}");
        }
    }
}
