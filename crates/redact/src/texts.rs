//! Texts of which a part stays: releases, what the recorder says, tracing data.

use serde_json::Value;
use tracefmt::{Cursor, Endian};

/// Words in releases of kernels and versions of tools that distributions use.
const RELEASE_WORDS: [&str; 24] = [
    "amd64",
    "arm64",
    "x86_64",
    "aarch64",
    "generic",
    "cloud",
    "default",
    "lts",
    "rt",
    "azure",
    "aws",
    "gcp",
    "kvm",
    "virtual",
    "lowlatency",
    "server",
    "uek",
    "debug",
    "dirty",
    "trapline",
    "perf",
    "bpo",
    "deb12",
    "deb13",
];
/// What stands before a number in them.
const RELEASE_PREFIXES: [&str; 5] = ["el", "fc", "rc", "pve", "rt"];

/// Returns a release of which numbers and the words of distributions stay; `x` stands for each other word.
pub(crate) fn release(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(['.', '-', '+', '~', ' ']).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let numbers = |word: &str| {
            word.bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'_')
        };
        let known = RELEASE_WORDS.contains(&word)
            || numbers(word)
            || RELEASE_PREFIXES
                .iter()
                .any(|prefix| word.strip_prefix(prefix).is_some_and(numbers));
        out.push_str(if known { word } else { "x" });
        let mut chars = behind.chars();
        out.extend(chars.next());
        rest = chars.as_str();
    }
    out
}

/// Returns what our recorder says: its numbers, and of its texts the names of events.
pub(crate) fn recorder(json: &str) -> Option<String> {
    let mut value = serde_json::from_str::<Value>(json).ok()?;
    strip(&mut value);
    Some(value.to_string())
}

fn strip(value: &mut Value) {
    match value {
        Value::String(text) => {
            let part = |part: &str| {
                let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                !part.is_empty() && part.bytes().all(word)
            };
            let is_event = text
                .split_once(':')
                .is_some_and(|(system, name)| part(system) && part(name));
            if !is_event {
                *text = String::new();
            }
        }
        // No deeper than 128, as the parser has it.
        Value::Array(list) => list.iter_mut().for_each(strip),
        Value::Object(object) => object.values_mut().for_each(strip),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Decides what stands in place of what tracing data has beside formats.
pub(crate) trait TracingMask {
    /// Returns what stands in place of a thread's name.
    fn thread(&mut self, comm: &[u8]) -> Vec<u8>;

    /// Returns what stands in place of lines of `/proc/kallsyms`.
    fn kernel_symbols(&mut self, text: &[u8]) -> Vec<u8>;
}

/// Returns tracing data with formats, and what stays of symbols and names of threads: texts of `trace_printk` are left
/// out.
pub(crate) fn tracing(data: &[u8], mask: &mut dyn TracingMask) -> Vec<u8> {
    let mut cursor = Cursor::new(data, Endian::Little);
    let Some(has_names) = pass_formats(&mut cursor) else {
        return Vec::new();
    };
    let endian = cursor.endian;
    let mut out = data[..cursor.position()].to_vec();
    let [symbols, _printk] =
        [sized(&mut cursor), sized(&mut cursor)].map(Option::unwrap_or_default);
    let symbols = mask.kernel_symbols(symbols);
    out.extend(endian.u32_bytes(u32::try_from(symbols.len()).unwrap_or(0)));
    out.extend(symbols);
    out.extend(endian.u32_bytes(0));
    if has_names {
        let size = cursor.u64();
        let names = size.and_then(|size| cursor.take(size)).unwrap_or_default();
        let names = saved_names(names, &mut |comm| mask.thread(comm));
        out.extend(endian.u64_bytes(names.len() as u64));
        out.extend(names);
    }
    out
}

/// Returns the saved names of threads, lines of an id and a name, with names replaced by `comm`.
pub(crate) fn saved_names(text: &[u8], comm: &mut dyn FnMut(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let lines = text.split(|byte| *byte == b'\n').filter_map(|line| {
        let blank = line.iter().position(|byte| *byte == b' ')?;
        let (tid, name) = (&line[..blank], &line[blank + 1..]);
        let number = tid.iter().all(u8::is_ascii_digit);
        number.then(|| [tid, b" ", &comm(name), b"\n"].concat())
    });
    lines.flatten().collect()
}

/// Passes all up to the symbols. Returns whether names of threads stand behind them; `None` where the data ends before.
fn pass_formats(cursor: &mut Cursor<'_>) -> Option<bool> {
    cursor.take(10)?;
    let version = String::from_utf8_lossy(cursor.cstr()?).into_owned();
    cursor.endian = match cursor.u8()? {
        0 => Endian::Little,
        _ => Endian::Big,
    };
    cursor.u8()?;
    cursor.u32()?;
    for _ in 0..2 {
        cursor.cstr()?;
        let size = cursor.u64()?;
        cursor.take(size)?;
    }
    let list = |cursor: &mut Cursor<'_>| {
        for _ in 0..cursor.u32()? {
            let size = cursor.u64()?;
            cursor.take(size)?;
        }
        Some(())
    };
    list(cursor)?;
    for _ in 0..cursor.u32()? {
        cursor.cstr()?;
        list(cursor)?;
    }
    // Names were added in version 0.6.
    let minor = version
        .split_once('.')
        .and_then(|(_, minor)| minor.parse::<u32>().ok());
    Some(!version.starts_with("0.") || minor.unwrap_or(0) >= 6)
}

/// Returns a text that stands behind its length.
fn sized<'d>(cursor: &mut Cursor<'d>) -> Option<&'d [u8]> {
    let size = cursor.u32()?;
    cursor.take(u64::from(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_words_of_distributions_stay_in_a_release() {
        for (before, after) in [
            ("6.1.0-50-cloud-amd64", "6.1.0-50-cloud-amd64"),
            (
                "5.14.0-427.13.1.el9_4.x86_64",
                "5.14.0-427.13.1.el9_4.x86_64",
            ),
            ("6.6.31-acme-hv7+", "6.6.31-x-x+"),
            ("6.1.187", "6.1.187"),
        ] {
            assert_eq!(release(before), after);
        }
    }

    #[test]
    fn of_what_the_recorder_says_numbers_and_events_stay() {
        let said = r#"{"recorder":{"pid":7,"host":"db1"},"pairs":[{"a":"kvm:kvm_exit","b":"/usr/bin/x:main"}]}"#;
        let kept = recorder(said).expect("an object");
        assert!(kept.contains("kvm:kvm_exit") && kept.contains('7'));
        assert!(!kept.contains("db1") && !kept.contains("main"));
    }
}
