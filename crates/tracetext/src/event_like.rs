//! Lines that were not read and look as if they were events, or parts of them: how much of a text was read is measured
//! by them, and not by its prose.

use crate::graph;
use crate::head;
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

/// Returns whether a line begins with columns of another event, and so is no rest of the one before: it has a CPU and a
/// time, or begins with a time, as a line does whose CPU was lost.
pub(crate) fn begins_event(line: &[u8]) -> bool {
    let first = scan::skip_blanks(line, 0);
    let first = line.get(first..scan::token_end(line, first));
    first.and_then(time).is_some() || looks_like_event(line)
}

/// Returns whether a line ends in a thread's id and a time, `CPU 0/KVM 1240 444.000100:`: what stands before the name
/// of perf's event where perf prints no CPU.
pub(crate) fn ends_in_thread_and_time(line: &[u8]) -> bool {
    if line.last() != Some(&b':') {
        return false;
    }
    let start = scan::token_start(line, line.len());
    let before = scan::back_over_blanks(line, start);
    let thread = line.get(scan::token_start(line, before)..before);
    let thread = thread.unwrap_or_default().split(|byte| *byte == b'/');
    let mut ids = thread.map(scan::id);
    line.get(start..).and_then(time).is_some() && ids.all(|id| id.is_some())
}

/// Returns whether a line that was not read looks like what a tracer printed, and not like a sentence of its reader: it
/// has columns of an event, or begins as what events say.
pub(crate) fn looks_like_output(line: &[u8]) -> bool {
    let line = &line[..line.len().min(HEAD)];
    let text = scan::trim(line);
    let mut words = text
        .split(|byte| scan::is_blank(*byte))
        .filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    begins_event(text)
        || head::may_begin(line)
        || is_task(text)
        || first.starts_with(b"0x")
        || scan::contains(text, b" ==> ")
        || (is_field(first) && words.any(is_field))
        || graph::parse(line).is_some()
}

/// Whether a word is `key=value`.
fn is_field(word: &[u8]) -> bool {
    let Some(at) = memchr::memchr(b'=', word) else {
        return false;
    };
    let key = &word[..at];
    let named = key.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
    named && !key.is_empty() && at + 1 < word.len()
}

/// Returns whether there is a task alone on a line, `qemu-system-x86-1234`: the first column of an event's line.
pub(crate) fn is_task(text: &[u8]) -> bool {
    let Some(hyphen) = memchr::memrchr(b'-', text) else {
        return false;
    };
    let (comm, tid) = (&text[..hyphen], &text[hyphen + 1..]);
    let named = comm
        .first()
        .is_some_and(|b| b.is_ascii_alphabetic() || *b == b'<');
    // A name has 15 bytes; what an event says has signs that no name of a program has.
    let plain = comm.len() <= 15 && !comm.iter().any(|b| matches!(b, b'=' | b',' | b'('));
    named && plain && (1..=7).contains(&tid.len()) && scan::all_digits(tid)
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
    fn sentences_are_no_output() {
        for line in [
            "comm=qemu pid=1353 prio=120 target_cpu=007",
            "swapper/7:0 [120] R ==> qemu:1353 [120]",
            "0xf6643c1 arch timer ctx index: 1",
            "qemu-system-aar-1361",
            "qemu-system-aar-1361 [006]",
            "> a-1 [000] 1.000001: kvm exit:",
            " 0) ! 120.5 us | }",
        ] {
            assert!(looks_like_output(line.as_bytes()), "{line}");
        }
        for line in [
            "",
            "what is this",
            "- Frontend tool for ftrace",
            "At 12:30 [see above] the guest hung: why?",
            "<vcpu placement='static' current='4'>8</vcpu>",
            "[ 5] local 172.16.10.2 port 42458 connected to 172.16.10.1 port 5201",
            "qemu -m 4096 -smp cpus=4 -drive file=a,if=virtio",
            "we set x=1 here",
        ] {
            assert!(!looks_like_output(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn what_begins_an_event_is_no_rest_of_one() {
        for line in [
            "  [006] 7593.924402: sched switch:",
            "7593.924377: kvm irq line:",
            "qemu-1361 [006] 7593.923908: kvm guest fault:",
        ] {
            assert!(begins_event(line.as_bytes()), "{line}");
        }
        for line in ["swapper/1:0 [120] S ==> a:1 [120]", "0x608 size 4", "12: a"] {
            assert!(!begins_event(line.as_bytes()), "{line}");
        }
        for line in [
            "qemu-system-aar-1361",
            "<idle>-0",
            "CPU 0/KVM-12",
            "vhost-1781-1793",
        ] {
            assert!(is_task(line.as_bytes()), "{line}");
        }
        for line in [
            "comm=vhost-1781",
            "0-1",
            "a, b-1",
            "a-",
            "runtime=5 [ns]-1",
            "swapper/1:0 [120]",
        ] {
            assert!(!is_task(line.as_bytes()), "{line}");
        }
    }

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
