//! Lines that were not read and look as if they were events: how much of a text was read is measured by them, and not
//! by its prose.

use crate::scan;

/// Bytes of a line that are looked at: the head of an event's line is shorter.
const HEAD: usize = 512;

/// Returns whether a line has what every printed event has: a CPU in brackets (`[006]`), and behind it a time with six
/// or more decimals and a colon (`7593.923908:`).
pub(crate) fn looks_like_event(line: &[u8]) -> bool {
    let line = &line[..line.len().min(HEAD)];
    let mut words = line
        .split(|byte| scan::is_blank(*byte))
        .filter(|word| !word.is_empty());
    let has_cpu = words.any(|word| {
        let inside = word
            .strip_prefix(b"[")
            .and_then(|rest| rest.strip_suffix(b"]"));
        inside.is_some_and(|cpu| (1..=4).contains(&cpu.len()) && scan::all_digits(cpu))
    });
    has_cpu && words.any(is_time)
}

/// Whether a word is `SECONDS.FRACTION:`.
fn is_time(word: &[u8]) -> bool {
    let Some(number) = word.strip_suffix(b":") else {
        return false;
    };
    let Some(point) = memchr::memchr(b'.', number) else {
        return false;
    };
    let (seconds, fraction) = (&number[..point], &number[point + 1..]);
    let seconds = !seconds.is_empty() && scan::all_digits(seconds);
    seconds && (6..=9).contains(&fraction.len()) && scan::all_digits(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_a_cpu_and_a_time() {
        for line in [
            "qemu-system-aar-1361 [006] 7593.923908: kvm guest fault:",
            "                     [006] 7593.923972: kvm wfx arm64:",
            "> a-1 [000] d..1. 1.000000001: x: y",
        ] {
            assert!(looks_like_event(line.as_bytes()), "{line}");
        }
        for line in [
            "",
            "see [1] and [2], of 2022.1234:",
            "[006]",
            "7593.923908: [006]",
            "  comm=gemu-system-aar pid=1353 prio=120 target cpu=007",
            "took [006] 12.5: s",
            "a [12345] 7593.923908: b",
        ] {
            assert!(!looks_like_event(line.as_bytes()), "{line}");
        }
    }
}
