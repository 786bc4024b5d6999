//! The description of a trace, in the format's own language (TSDL; CTF 1.8.3, 7 and appendix C).

use std::fmt::Write;

use tracefmt::Endian;

use super::classes::{ClassField, EventClass, FieldShape};
use crate::TraceMachine;

/// Types, header and clock, up to where the byte order stands. What `stream.rs` writes.
const TYPES: &str = r"typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
";

/// The clock. Its times are the recording's, so that it begins with 0.
const CLOCK: &str = r#"clock {
	name = "recording";
	description = "The clock of the recording";
	freq = 1000000000;
	offset = 0;
};

typealias integer { size = 64; align = 8; signed = false; map = clock.recording.value; } := moment_t;
"#;

/// Returns the description of a trace that has events of these kinds.
pub(super) fn text<'c>(
    endian: Endian,
    about: &TraceMachine,
    classes: impl Iterator<Item = &'c EventClass>,
) -> String {
    let order = match endian {
        Endian::Little => "le",
        Endian::Big => "be",
    };
    let mut out = format!(
        "/* CTF 1.8 */\n\n{TYPES}\ntrace {{\n\tmajor = 1;\n\tminor = 8;\n\tbyte_order = {order};\n\
         \tpacket.header := struct {{\n\t\tuint32_t magic;\n\t\tuint32_t stream_id;\n\t}};\n}};\n\nenv {{\n"
    );
    let known = [
        ("domain", Some("kernel")),
        ("tracer_name", Some("perf")),
        ("sysname", Some("Linux")),
        ("release", about.kernel.as_deref()),
        ("machine", about.arch.as_deref()),
    ];
    for (name, value) in known {
        if let Some(value) = value {
            let _ = writeln!(out, "\t{name} = {};", quoted(value));
        }
    }
    let _ = write!(out, "}};\n\n{CLOCK}\n");
    for (number, cpu) in [(0, "\t\tuint32_t cpu_id;\n"), (1, "")] {
        let _ = write!(
            out,
            "stream {{\n\tid = {number};\n\
             \tevent.header := struct {{\n\t\tuint32_t id;\n\t\tmoment_t timestamp;\n\t}};\n\
             \tevent.context := struct {{\n\t\tint32_t _pid;\n\t\tint32_t _tid;\n\t\tstring _procname;\n\t}};\n\
             \tpacket.context := struct {{\n\t\tmoment_t timestamp_begin;\n\t\tmoment_t timestamp_end;\n\
             \t\tuint64_t content_size;\n\t\tuint64_t packet_size;\n\t\tuint64_t events_discarded;\n{cpu}\t}};\n}};\n\n"
        );
    }
    for class in classes {
        for stream in [0, 1] {
            if class.streams[stream] {
                event(&mut out, class, stream);
            }
        }
    }
    out
}

fn event(out: &mut String, class: &EventClass, stream: usize) {
    let _ = write!(
        out,
        "event {{\n\tname = {};\n\tid = {};\n\tstream_id = {stream};\n\tfields := struct {{\n",
        quoted(&class.name),
        class.number
    );
    for field in &class.fields {
        member(out, field);
    }
    out.push_str("\t};\n};\n\n");
}

/// Appends the declaration of a field.
fn member(out: &mut String, field: &ClassField) {
    let name = &field.name;
    let integer = |bytes: u32, signed: bool, base: u32| {
        let bits = bytes * 8;
        format!("integer {{ size = {bits}; align = 8; signed = {signed}; base = {base}; }}")
    };
    let _ = match field.shape {
        FieldShape::Number { bytes, signed, hex } => {
            let base = if hex { 16 } else { 10 };
            writeln!(out, "\t\t{} {name};", integer(bytes, signed, base))
        }
        FieldShape::Text => writeln!(out, "\t\tstring {name};"),
        FieldShape::Array {
            bytes,
            count,
            signed,
        } => writeln!(out, "\t\t{} {name}[{count}];", integer(bytes, signed, 10)),
        FieldShape::Sequence { bytes, signed } => writeln!(
            out,
            "\t\tuint32_t _{name}_length;\n\t\t{} {name}[_{name}_length];",
            integer(bytes, signed, 10)
        ),
    };
}

/// Returns a text as a string of the language. It knows C's escapes; what is no printable ASCII stands for a character
/// that nobody can read anyway.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => {
                out.push('\\');
                out.push(char);
            }
            ' '..='~' => out.push(char),
            _ => out.push('?'),
        }
    }
    out.push('"');
    out
}
