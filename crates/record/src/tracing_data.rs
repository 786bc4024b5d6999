/*!
The formats of a recording's events, as a perf.data file holds them.

Source: `tools/perf/util/trace-event-info.c`, and trace-cmd.dat.v6(5), whose header it shares.
*/

use std::path::Path;

use crate::RecordError;
use crate::tracefs::{Tracefs, Tracepoint};

/// How the section begins, up to its version, 0.6, the first with thread names at its end.
const BEGIN: &[u8] = b"\x17\x08\x44tracing0.6\0";

/// Puts the section together: how pages and events begin, the formats, the kernel's functions.
///
/// `symbols` is the text of /proc/kallsyms; perf passes over it and trapline names functions by it.
///
/// # Errors
///
/// [`RecordError::Read`] for the two files that say how ftrace's pages begin.
pub fn of(
    tracefs: &Tracefs,
    events: &[Tracepoint],
    symbols: &[u8],
) -> Result<Vec<u8>, RecordError> {
    let mut out = BEGIN.to_vec();
    out.push(u8::from(cfg!(target_endian = "big")));
    out.push(u8::try_from(size_of::<usize>()).unwrap_or(8));
    out.extend(
        u32::try_from(rings::page_size())
            .unwrap_or(4096)
            .to_ne_bytes(),
    );
    for name in ["header_page", "header_event"] {
        let text = tracefs.read(&Path::new("events").join(name))?;
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        file(&mut out, &text);
    }
    // ftrace's own events: there are none.
    out.extend(0u32.to_ne_bytes());
    let mut systems: Vec<&str> = events.iter().map(|one| one.system.as_str()).collect();
    systems.sort_unstable();
    systems.dedup();
    out.extend(count(systems.len()).to_ne_bytes());
    for system in systems {
        let of_system = || events.iter().filter(|one| one.system == system);
        out.extend_from_slice(system.as_bytes());
        out.push(0);
        out.extend(count(of_system().count()).to_ne_bytes());
        of_system().for_each(|one| file(&mut out, &one.format));
    }
    out.extend(count(symbols.len()).to_ne_bytes());
    out.extend_from_slice(symbols);
    // Formats of trace_printk, and thread names: events have theirs.
    out.extend(0u32.to_ne_bytes());
    out.extend(0u64.to_ne_bytes());
    Ok(out)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn file(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_ne_bytes());
    out.extend_from_slice(bytes);
}

/// Returns the functions of a copy of /proc/kallsyms: other symbols name no code. Empty where it has no addresses, as
/// the kernel shows it to those who may not see them.
pub fn functions(symbols: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(symbols.len());
    let mut any = false;
    for line in symbols.split_inclusive(|byte| *byte == b'\n') {
        let mut words = line.split(|byte| *byte == b' ');
        let (Some(address), Some(kind)) = (words.next(), words.next()) else {
            continue;
        };
        if matches!(kind, b"t" | b"T" | b"w" | b"W") {
            any |= address.iter().any(|digit| *digit != b'0');
            out.extend_from_slice(line);
        }
    }
    if any { out } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_are_kept_and_nothing_of_a_list_without_addresses() {
        let text = b"ffffffff81000000 T startup_64\nffffffff82000000 D jiffies\n\
                     ffffffffc0000000 t tun_get_user\t[tun]\n";
        assert_eq!(
            functions(text),
            b"ffffffff81000000 T startup_64\nffffffffc0000000 t tun_get_user\t[tun]\n"
        );
        assert!(functions(b"0000000000000000 T startup_64\n").is_empty());
    }
}
