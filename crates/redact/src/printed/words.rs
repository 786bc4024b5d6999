//! Words: which stay, and what stands in place of the others.

use std::collections::HashSet;
use std::sync::LazyLock;

use event::ExitReason;

use super::functions;
use super::numbers::{ADDRESS_DIGITS, is_number, put_number};
use crate::redactor::RedactedNames;

/// Words of the kernel's tracepoints (`print fmt` in `events/*/*/format`, that is `include/trace/events` and
/// `arch/*/kvm/trace*.h`), of trace-cmd's plugins, and of what perf and trace-cmd print around events.
const PUBLIC: &str = include_str!("public-words.txt");

static PUBLIC_WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| PUBLIC.lines().collect());

/// Fields that have functions of the kernel.
const FUNCTIONS: [&[u8]; 6] = [
    b"function",
    b"func",
    b"caller",
    b"call_site",
    b"callsite",
    b"callback",
];
/// How constants of the kernel and of perf begin that are printed by their names.
const CONSTANTS: [&str; 6] = [
    "KVM_EXIT_",
    "EXIT_",
    "VMEXIT_",
    "APIC_",
    "MSR_",
    "PERF_RECORD_",
];
/// Longest name of a field. What is longer is no name.
const MAX_FIELD: usize = 40;
/// Letters of the flags that the kernel and trace-cmd print: interrupts, resched, context, preempt count and migration
/// (`kernel/trace/trace_output.c`, `trace_print_lat_fmt`).
const FLAGS: &[u8] = b"dDbBnNpPlLhHzZsS.-xX#0123456789";
/// Most of them in a row, the CPU of the latency format before them.
const MAX_FLAGS: usize = 10;

/// What words stand in, by which some stay that would be replaced elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordPlace {
    /// Anywhere.
    Text,
    /// Columns before what an event says, where flags stand.
    Columns,
    /// What an event of KVM says: its numbers have no 0x everywhere.
    OfKvm,
    /// The same, of which bytes of the guest's code are made 0.
    GuestsCode,
    /// A mapping: protection bits, and devices by number.
    Mapping,
}

/// Appends a text in which words are replaced that nobody knows to be public.
pub(super) fn put(text: &[u8], names: &mut RedactedNames, out: &mut Vec<u8>) {
    put_in(text, WordPlace::Text, names, out);
}

/// The same, of a place.
pub(super) fn put_in(text: &[u8], place: WordPlace, names: &mut RedactedNames, out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if is_separator(rest[0]) {
            out.push(rest[0]);
            at += 1;
            continue;
        }
        let starts = at == 0 || text.get(at - 1).is_none_or(|byte| *byte != b':');
        if starts && let Some(len) = network_address(rest) {
            out.extend(names.free_text(&rest[..len]));
            at += len;
            continue;
        }
        let len = rest.iter().position(|byte| is_separator(*byte));
        let (word, behind) = rest.split_at(len.unwrap_or(rest.len()));
        at += word.len();
        let is_field = behind.first() == Some(&b'=') && is_field(word);
        if !is_field {
            put_word(word, place, names, out);
            // `work struct 0xffff... function f`.
            if word == b"function"
                && let Some(function) = behind.strip_prefix(b" ")
            {
                let len = function_len(function);
                out.push(b' ');
                functions::put(&function[..len], names, out);
                at += 1 + len;
            }
            continue;
        }
        out.extend(word);
        let value = &behind[1..];
        let kept = match word {
            _ if word.ends_with(b"comm") => {
                let len = comm_len(value);
                out.push(b'=');
                out.extend(names.comm(&value[..len]));
                1 + len
            }
            _ if FUNCTIONS.contains(&word) => {
                let len = function_len(value);
                out.push(b'=');
                functions::put(&value[..len], names, out);
                1 + len
            }
            _ => 0,
        };
        at += kept;
    }
}

fn is_separator(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(
            byte,
            b'=' | b','
                | b';'
                | b'('
                | b')'
                | b'['
                | b']'
                | b'{'
                | b'}'
                | b'<'
                | b'>'
                | b'|'
                | b'"'
                | b'\''
                | b':'
                | b'*'
                | b'!'
                | b'?'
                | b'`'
                | b'\\'
                | b'&'
                | b'%'
                | b'~'
                | b'^'
                | b'#'
                | b'@'
        )
}

/// Returns whether a word is the name of a field.
fn is_field(word: &[u8]) -> bool {
    let of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    word.len() <= MAX_FIELD && word.iter().all(of_name)
}

/// Returns how long a thread's name is that stands before ` field=` or at the end.
fn comm_len(value: &[u8]) -> usize {
    let mut from = 0;
    while let Some(sign) = value[from..].iter().position(|byte| *byte == b'=') {
        let sign = from + sign;
        let name = value[..sign].iter().rposition(|byte| !is_field(&[*byte]));
        if let Some(blank) = name
            && value[blank] == b' '
            && blank + 1 < sign
        {
            let before = &value[..blank];
            // An arrow stands between the two of a switch.
            let before = before.trim_ascii_end();
            return before
                .strip_suffix(b"==>")
                .unwrap_or(before)
                .trim_ascii_end()
                .len();
        }
        from = sign + 1;
    }
    value.trim_ascii_end().len()
}

/// Returns how long a function's name is, with the module in brackets that it is of.
fn function_len(value: &[u8]) -> usize {
    let len = value.iter().position(|byte| *byte == b' ');
    let len = len.unwrap_or(value.len());
    let behind = &value[len..];
    let module = behind.starts_with(b" [");
    let module = module.then(|| behind.iter().position(|byte| *byte == b']'));
    len + module.flatten().map_or(0, |end| end + 1)
}

/// Appends a word, or what stands in its place.
fn put_word(word: &[u8], place: WordPlace, names: &mut RedactedNames, out: &mut Vec<u8>) {
    // Dots and signs of sentences.
    let end = word
        .iter()
        .rposition(|byte| !matches!(byte, b'.' | b'-' | b'+'));
    let Some(end) = end else {
        out.extend(word);
        return;
    };
    let (word, tail) = word.split_at(end + 1);
    let sign = word
        .iter()
        .take_while(|byte| matches!(byte, b'-' | b'+' | b'.'))
        .count();
    let (sign, word) = word.split_at(sign);
    out.extend(sign);
    put_known(word, place, names, out);
    out.extend(tail);
}

fn put_known(word: &[u8], place: WordPlace, names: &mut RedactedNames, out: &mut Vec<u8>) {
    match place {
        WordPlace::GuestsCode if word.len() == 2 && word.iter().all(u8::is_ascii_hexdigit) => {
            out.extend(b"00");
            return;
        }
        WordPlace::Columns if are_flags(word) => return out.extend(word),
        WordPlace::Mapping if word.iter().all(|byte| b"rwxps-".contains(byte)) => {
            return out.extend(word);
        }
        _ => {}
    }
    if put_number(word, names, out).is_some() {
        return;
    }
    let has_hex = !matches!(place, WordPlace::Text | WordPlace::Columns);
    let is_hex =
        |word: &[u8]| word.len() <= ADDRESS_DIGITS && word.iter().all(u8::is_ascii_hexdigit);
    let is_public = |word: &[u8]| {
        let text = str::from_utf8(word).unwrap_or_default();
        // A letter is no name.
        word.len() == 1 || is_public_word(text) || is_number(word) || (has_hex && is_hex(word))
    };
    if is_public(word) {
        return out.extend(word);
    }
    // `read/write`, `0/KVM`, `0-3`, `8+8`.
    let mut parts = word.split(|byte| matches!(byte, b'/' | b'-' | b'+'));
    match word.first() {
        Some(b'/') => out.extend(names.file(word)),
        _ if parts.all(is_public) => out.extend(word),
        _ => out.extend(names.word(word)),
    }
}

/// Returns whether a word is one that tools print of every host: of the list, an exit reason in anybody's spelling, or
/// a constant of the kernel.
fn is_public_word(word: &str) -> bool {
    let of_constant = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let is_constant =
        || CONSTANTS.iter().any(|prefix| word.starts_with(prefix)) && word.bytes().all(of_constant);
    PUBLIC_WORDS.contains(word) || is_constant() || ExitReason::from_name(None, word).is_some()
}

/// Returns whether a word is one of flags.
fn are_flags(word: &[u8]) -> bool {
    word.len() <= MAX_FLAGS && word.iter().all(|byte| FLAGS.contains(byte))
}

/// Returns how long the address of a network is that stands here: of Ethernet, IPv4 or IPv6.
fn network_address(text: &[u8]) -> Option<usize> {
    let len = text
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'));
    let word = &text[..len.count()];
    let behind = text.get(word.len()).copied().unwrap_or(b' ');
    if behind.is_ascii_alphanumeric() || behind == b'_' {
        return None;
    }
    let word = word.strip_suffix(b".").unwrap_or(word);
    let groups: Vec<&[u8]> = word.split(|byte| *byte == b'.').collect();
    let of_ip = |group: &&[u8]| {
        let number = str::from_utf8(group)
            .ok()
            .and_then(|text| text.parse::<u16>().ok());
        group.len() <= 3 && number.is_some_and(|number| number <= 255)
    };
    // A port may stand behind a colon.
    let (host, _) = match word.iter().position(|byte| *byte == b':') {
        Some(colon) => word.split_at(colon),
        None => (word, &word[..0]),
    };
    let host_groups: Vec<&[u8]> = host.split(|byte| *byte == b'.').collect();
    if host_groups.len() == 4 && host_groups.iter().all(of_ip) {
        return Some(host.len());
    }
    let colons: Vec<&[u8]> = word.split(|byte| *byte == b':').collect();
    let is_short = colons.iter().all(|group| group.len() <= 4);
    let is_double = word.windows(2).any(|two| two == b"::");
    let of_network =
        groups.len() == 1 && is_short && (colons.len() > 3 || (is_double && colons.len() > 2));
    of_network.then_some(word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put_once(text: &str, place: WordPlace) -> String {
        let mut out = Vec::new();
        put_in(
            text.as_bytes(),
            place,
            &mut RedactedNames::of_text(0),
            &mut out,
        );
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn words_stay_that_are_known_to_be_public() {
        for (text, place, expected) in [
            (
                "vcpu 0 reason HLT rip 0xfff0",
                WordPlace::OfKvm,
                "vcpu 0 reason HLT rip 0xfff0",
            ),
            (
                "msr_write c0000080 = 0xd01",
                WordPlace::OfKvm,
                "msr_write c0000080 = 0xd01",
            ),
            (
                "reason KVM_EXIT_IO (2), EXIT_IOIO",
                WordPlace::OfKvm,
                "reason KVM_EXIT_IO (2), EXIT_IOIO",
            ),
            (
                "cpus 0-3,8 1.5ms +4.",
                WordPlace::Text,
                "cpus 0-3,8 1.5ms +4.",
            ),
            // Names of hosts may have the letters of numbers alone.
            ("db1 c0ffee host", WordPlace::Text, "n1 n2 host"),
            ("2dN.5. secret", WordPlace::Columns, "2dN.5. n1"),
            (
                "0:fff:8b 45 (prot64)",
                WordPlace::GuestsCode,
                "0:fff:00 00 (prot64)",
            ),
            ("name=eth0-rx-1 irq=24", WordPlace::Text, "name=n1 irq=24"),
            (
                "sockets at /var/run/x.sock, now",
                WordPlace::Text,
                "sockets at /file-1, now",
            ),
            ("bob@acme.example says: é", WordPlace::Text, "n1@n2 n3: n4"),
        ] {
            assert_eq!(put_once(text, place), expected, "{text}");
        }
    }

    #[test]
    fn names_of_threads_end_where_the_next_field_begins() {
        for (value, len) in [
            ("bash prev_pid=7", 4),
            ("my shell pid=7", 8),
            ("a=b pid=7", 3),
            ("swapper/0 ==> next_comm=x", 9),
            ("last one ", 8),
            ("", 0),
        ] {
            assert_eq!(comm_len(value.as_bytes()), len, "{value}");
        }
    }

    #[test]
    fn addresses_of_networks_are_found_and_numbers_are_none() {
        for (text, len) in [
            ("10.0.0.1 x", Some(8)),
            ("10.0.0.1:443", Some(8)),
            ("52:54:00:12:ab:cd", Some(17)),
            ("fe80::1", Some(7)),
            ("2001:db8:0:1::2, x", Some(15)),
            ("444.000100:", None),
            ("6.1.0", None),
            ("0:fff:8b", None),
            ("12:30:59", None),
            ("1.2.3.999", None),
            ("feed", None),
        ] {
            assert_eq!(network_address(text.as_bytes()), len, "{text}");
        }
    }
}
