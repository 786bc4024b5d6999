//! What guests printed on their serial lines.

use std::fmt::Write;

use analysis::{ConsoleLine, ConsoleSums};
use serde_json::Value;

use crate::ClockUnit;
use crate::schema::{Member, Shape};
use crate::table::{CsvRows, Table, Unit};

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
/// `^[`, bytes that are no UTF-8 as `\x9b`, characters that steer how others are shown as `<U+202E>`, bytes of which
/// the recording does not have the values as `<5 bytes not recorded>`.
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
            "; {} more not recorded: KVM records only the first value of a string instruction, old kernels none",
            sums.unknown
        );
    }
    out.push('\n');
    out
}

/// A line, and who wrote it.
#[derive(Debug, Clone)]
pub struct ConsoleRow {
    /// The line.
    pub line: ConsoleLine,
    /// Who wrote it.
    pub writer: Writer,
}

/// Lines as rows of JSON and CSV.
#[derive(Debug)]
pub struct Lines(CsvRows<'static, ConsoleRow>);

impl Default for Lines {
    fn default() -> Lines {
        Lines(columns().csv_rows())
    }
}

/// Columns of the lines.
pub(crate) fn columns() -> Table<'static, ConsoleRow> {
    use Unit::{Address, Count, Flag, Name, Nanoseconds, Number, Text};
    Table::new()
        .column("time_ns", Nanoseconds, |w: &ConsoleRow| w.line.start)
        .column("end_ns", Nanoseconds, |w| w.line.end)
        .column("vm", Name, |w| w.writer.vm.clone())
        .column("vm_pid", Number, |w| w.writer.vm_pid)
        .column("vcpu", Number, |w| w.writer.vcpu)
        .column("tid", Number, |w| w.line.tid)
        .column("device", Text, |w| w.line.uart.name)
        .column("address", Address, |w| w.line.uart.address)
        .column("text", Name, |w| visible(&w.line))
        .column("bytes", Count, |w| w.line.bytes.len())
        .column("unknown_bytes", Count, |w| w.line.unknown_bytes())
        .column("whole", Flag, |w| w.line.whole)
}

impl Lines {
    /// Returns what documents have of them.
    pub fn shape() -> Shape {
        Shape::Object(vec![
            Member::new("console", columns().shape().list()),
            Member::new("lines", Shape::Integer),
            Member::new("bytes", Shape::Integer),
            Member::new("unknown_bytes", Shape::Integer),
        ])
    }

    /// Returns rows of lines whose times count this.
    pub fn new(clock: ClockUnit) -> Lines {
        Lines(columns().counted_in(clock).csv_rows())
    }

    /// Returns the names of CSV's columns as a line.
    pub fn csv_head(&self) -> String {
        self.0.head()
    }

    /// Returns a line of the console as a line of CSV.
    pub fn csv(&self, written: &ConsoleRow) -> String {
        self.0.line(written)
    }

    /// Returns a line of the console as an object of a document.
    pub fn json(&self, written: &ConsoleRow) -> Value {
        self.0.table().object(written).into()
    }
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
