//! Options: those of numbers stay, of texts the part that says of what kind of machine and clock a number is.

use tracefmt::{Cursor, Endian};

use super::mask::TracePrivacyMask;
use crate::file::TraceDat;
use crate::info::text_of;
use crate::options::id;

/// Clocks (`trace_clocks` of `kernel/trace/trace.c`, `ARCH_TRACE_CLOCKS`; `tsc2nsec` of trace-cmd).
const CLOCKS: [&str; 13] = [
    "local", "global", "counter", "uptime", "perf", "mono", "mono_raw", "boot", "tai", "x86-tsc",
    "ppc-tb", "s390-tod", "tsc2nsec",
];
/// Lines of `per_cpu/cpuN/stats` (`tracing_stats_read` of `kernel/trace/trace.c`), the first one trace-cmd's.
const STATS: [&str; 9] = [
    "CPU",
    "entries",
    "overrun",
    "commit overrun",
    "bytes",
    "oldest event ts",
    "now ts",
    "dropped events",
    "read events",
];

/// The options of the new file, and how many were left out.
#[derive(Debug, Default)]
pub(super) struct MaskedOptions {
    pub options: Vec<(u16, Vec<u8>)>,
    pub omitted: u64,
}

/// Returns the options that stay, but for those that say where something is.
pub(super) fn masked(dat: &TraceDat<'_>, mask: &mut dyn TracePrivacyMask) -> MaskedOptions {
    let endian = dat.formats.abi.endian;
    let mut masked = MaskedOptions::default();
    for (number, bytes) in dat.places.options.iter().flatten() {
        let text = || text_of(bytes);
        let made = match *number {
            // Numbers as text.
            id::DATE | id::OFFSET => is_number(&text()).then(|| terminated(&text())),
            id::CPUSTAT => Some(terminated(&stats(&text(), mask))),
            // Of version 6 it may be empty: the text follows elsewhere.
            id::TRACECLOCK if bytes.is_empty() => Some(Vec::new()),
            id::TRACECLOCK => Some(terminated(&clocks(&text()))),
            id::UNAME => Some(terminated(&uname(&text(), mask))),
            id::VERSION => Some(terminated(&mask.version(&text()))),
            id::CPUCOUNT => bytes.get(..4).map(<[u8]>::to_vec),
            id::TRACEID => bytes.get(..8).map(<[u8]>::to_vec),
            id::TSC2NSEC => bytes.get(..16).map(<[u8]>::to_vec),
            // Nothing but numbers.
            id::TIME_SHIFT => Some(bytes.clone()),
            id::GUEST => guest(bytes, endian, mask),
            // These are made anew, or are sections.
            id::BUFFER | id::HEADER_INFO..=id::EVENT_FORMATS | id::CMDLINES | id::STRINGS => {
                continue;
            }
            _ => None,
        };
        match made {
            Some(made) => masked.options.push((*number, made)),
            None => masked.omitted += 1,
        }
    }
    masked
}

/// Returns the clocks of a text as `trace_clock` has it: the one in use in brackets.
pub(super) fn clocks(text: &str) -> String {
    let words = text.split_whitespace();
    let known = words.filter(|word| {
        let bare = word.trim_start_matches('[').trim_end_matches(']');
        CLOCKS.contains(&bare)
    });
    known.collect::<Vec<_>>().join(" ")
}

/// Returns the kernel's counts of a CPU, or the heading with the instance of those that follow.
fn stats(text: &str, mask: &mut dyn TracePrivacyMask) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        let is_number = value.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if STATS.contains(&key) && is_number {
            out.push_str(&format!("{key}: {value}\n"));
        } else if key == "Buffer" {
            out.push_str(&format!("{key}: {}\n", mask.label(value)));
        }
    }
    out
}

/// Returns system, host, release and machine, as trace-cmd writes `uname`, without the host.
fn uname(text: &str, mask: &mut dyn TracePrivacyMask) -> String {
    let mut words = text.split_whitespace();
    let system = match words.next() {
        Some("Linux") => "Linux",
        _ => "x",
    };
    let known: Vec<String> = words.skip(1).map(|word| mask.version(word)).collect();
    format!("{system} x {}", known.join(" "))
}

/// Returns a guest: its name, the id of its recording, its CPUs and their threads.
fn guest(bytes: &[u8], endian: Endian, mask: &mut dyn TracePrivacyMask) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(bytes, endian);
    let name = cursor.cstr()?;
    let mut made = terminated(&mask.label(&text_of(name)));
    let begins = cursor.position();
    cursor.u64()?;
    let count = cursor.u32()?;
    cursor.take(u64::from(count).checked_mul(8)?)?;
    made.extend_from_slice(bytes.get(begins..cursor.position())?);
    Some(made)
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns a text as options have it.
pub(super) fn terminated(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}
