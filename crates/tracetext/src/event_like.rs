//! Lines that were not read and look as if they were events: how much of a text was read is measured by them, and not
//! by its prose.

use crate::scan;

/// Bytes of a line that are looked at: the head of an event's line is shorter.
const HEAD: usize = 512;

/// Returns whether a line has what every printed event has: a CPU in brackets (`[006]`), and behind it a time with six
/// or more decimals and a colon (`7593.923908:`).
pub(crate) fn looks_like_event(line: &[u8]) -> bool {
    cpu_and_time(line).is_some()
}

/// The CPU in brackets, and the time behind it in nanoseconds, of a line that has both.
pub(crate) fn cpu_and_time(line: &[u8]) -> Option<(u32, u64)> {
    let line = &line[..line.len().min(HEAD)];
    let mut words = line
        .split(|byte| scan::is_blank(*byte))
        .filter(|word| !word.is_empty());
    let cpu = words.find_map(|word| {
        let inside = word.strip_prefix(b"[")?.strip_suffix(b"]")?;
        let cpu = scan::decimal(inside).filter(|_| inside.len() <= 4)?;
        u32::try_from(cpu).ok()
    })?;
    Some((cpu, words.find_map(time)?))
}

/// The nanoseconds of `SECONDS.FRACTION:`.
fn time(word: &[u8]) -> Option<u64> {
    let number = word.strip_suffix(b":")?;
    let point = memchr::memchr(b'.', number)?;
    let (seconds, fraction) = (&number[..point], &number[point + 1..]);
    let scale = 10u64.pow(u32::try_from(9usize.checked_sub(fraction.len())?).ok()?);
    let fraction = scan::decimal(fraction).filter(|_| fraction.len() >= 6)?;
    let seconds = scan::decimal(seconds)?.checked_mul(1_000_000_000)?;
    seconds.checked_add(fraction * scale)
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
