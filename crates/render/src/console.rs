//! What guests printed on their serial lines.

use std::fmt::Write;

use analysis::{ConsoleLine, ConsoleSums};
use serde_json::{Value, json};

use crate::csv;

/// Who wrote a line.
#[derive(Debug, Clone, Default)]
pub struct Writer {
    /// What the VM is called, where there are several.
    pub vm: Option<String>,
    /// Process of the VM.
    pub vm_pid: Option<i32>,
    /// Number of the vCPU that wrote the line's first byte.
    pub vcpu: Option<u32>,
}

/// Returns the text of a line with everything that is not a character to look at written out: control characters as
/// `^[`, bytes that are no UTF-8 as `\x9b`, characters that steer how others are shown as `<U+202E>`, bytes of which the
/// recording does not have the values as `<5 bytes not recorded>`.
pub fn visible(line: &ConsoleLine) -> String {
    let mut out = String::new();
    let mut from = 0;
    for &(at, count) in &line.unknown {
        let at = at.clamp(from, line.bytes.len());
        put(&mut out, line.bytes.get(from..at).unwrap_or_default());
        let _ = write!(out, "<{} not recorded>", words::plural(count, "byte"));
        from = at;
    }
    put(&mut out, line.bytes.get(from..).unwrap_or_default());
    out
}

fn put(out: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\0'..='\x1f' => {
                    out.push('^');
                    out.push(char::from(c as u8 + b'@'));
                }
                '\x7f' => out.push_str("^?"),
                // Marks and overrides of writing direction, and what has no width.
                '\u{80}'..='\u{9f}'
                | '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}' => {
                    let _ = write!(out, "<U+{:04X}>", c as u32);
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

/// Returns a line as text, with the time as it is to be printed.
pub fn line(line: &ConsoleLine, time: &str, writer: &Writer) -> String {
    let mut who = String::new();
    if let Some(vm) = &writer.vm {
        let _ = write!(who, "{}, ", crate::clean(vm));
    }
    match writer.vcpu {
        Some(vcpu) => {
            let _ = write!(who, "vCPU {vcpu}");
        }
        None => {
            let _ = write!(who, "thread {}", line.tid);
        }
    }
    let mut out = format!("{time}  {who}, {}: {}", line.uart.name, visible(line));
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Returns what stands below the lines.
pub fn sums(sums: &ConsoleSums) -> String {
    let mut out = format!(
        "console: {}, {}",
        words::plural(sums.lines, "line"),
        words::plural(sums.bytes, "byte")
    );
    if sums.unknown > 0 {
        let _ = write!(
            out,
            "; {} more not recorded: of a string instruction KVM records the first value only, and old kernels none",
            sums.unknown
        );
    }
    out.push('\n');
    out
}

/// Returns a line as an object of a document.
pub fn json(line: &ConsoleLine, writer: &Writer) -> Value {
    json!({
        "time_ns": line.start,
        "end_ns": line.end,
        "vm": writer.vm,
        "vm_pid": writer.vm_pid,
        "vcpu": writer.vcpu,
        "tid": line.tid,
        "device": line.uart.name,
        "address": line.uart.address,
        "text": visible(line),
        "bytes": line.bytes.len(),
        "unknown_bytes": line.unknown_bytes(),
        "whole": line.whole,
    })
}

/// Names of the columns of [`csv_row`].
pub const CSV_HEADER: &str =
    "time_ns,end_ns,vm,vm_pid,vcpu,tid,device,address,text,bytes,unknown_bytes,whole\n";

/// Returns a line as a row.
pub fn csv_row(line: &ConsoleLine, writer: &Writer) -> String {
    let number = |value: Option<i64>| value.map(|v| v.to_string()).unwrap_or_default();
    let mut out = String::new();
    csv::row(
        &mut out,
        [
            line.start.to_string(),
            line.end.to_string(),
            writer.vm.clone().unwrap_or_default(),
            number(writer.vm_pid.map(i64::from)),
            number(writer.vcpu.map(i64::from)),
            line.tid.to_string(),
            line.uart.name.to_owned(),
            format!("{:#x}", line.uart.address),
            visible(line),
            line.bytes.len().to_string(),
            line.unknown_bytes().to_string(),
            line.whole.to_string(),
        ],
    );
    out
}

#[cfg(test)]
mod tests {
    use analysis::Uart;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_steers_a_terminal(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            unknown in prop::collection::vec((0..300usize, any::<u64>()), 0..5),
        ) {
            let line = ConsoleLine {
                start: 1,
                end: 2,
                vm: None,
                tid: 3,
                uart: Uart { name: "COM1", address: 0x3f8 },
                bytes,
                unknown,
                whole: true,
            };
            let text = visible(&line);
            prop_assert!(text.chars().all(|c| !c.is_control()), "{text:?}");
            let shown = text.matches(" not recorded>").count();
            prop_assert!(shown >= line.unknown.len());
            prop_assert_eq!(super::line(&line, "1.0", &Writer::default()).lines().count(), 1);
        }
    }
}
