//! One event's `format` text: name, id, fields and `print fmt:`.

use crate::{Abi, Diagnostic, FieldKind, FormatField, FormatPrinter};

/// What a recording says of one kind of event.
#[derive(Debug, Clone)]
pub struct EventFormat {
    /// Subsystem, as `kvm`.
    pub system: String,
    /// Event name, as `kvm_exit`.
    pub name: String,
    /// The number that stands in `common_type` of every record of this event.
    pub id: u32,
    /// All fields, the common ones first, in the text's order.
    pub fields: Vec<FormatField>,
    /// How many of [`EventFormat::fields`] are the common ones.
    pub common: usize,
    /// Byte order and word size of the records.
    pub abi: Abi,
    /// The `print fmt:` line, ready to be evaluated.
    pub printer: FormatPrinter,
    /// What of the text could not be taken.
    pub diagnostics: Vec<Diagnostic>,
}

impl EventFormat {
    /// Parses one `format` text.
    ///
    /// Returns `None` only when the text has no usable `ID:` line; everything else degrades: a field line
    /// that cannot be read is skipped and noted, a `print fmt:` that cannot be read prints raw fields.
    pub fn parse(system: &str, text: &[u8], abi: Abi) -> Option<EventFormat> {
        let text = String::from_utf8_lossy(text);
        let mut name = None;
        let mut id = None;
        let mut fields = Vec::new();
        let mut common = 0;
        let mut past_common = false;
        let mut diagnostics = Vec::new();
        let mut print_fmt = None;
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            let here = offset;
            offset += line.len();
            if let Some(start) = line.strip_prefix("print fmt:") {
                // The print format is the last thing of the text and may span lines.
                let from = here + (line.len() - start.len());
                print_fmt = Some(text[from..].trim().to_owned());
                break;
            }
            let trimmed = line.trim();
            if let Some(v) = trimmed.strip_prefix("name:") {
                name = Some(v.trim().to_owned());
            } else if let Some(v) = trimmed.strip_prefix("ID:") {
                id = v.trim().parse::<u32>().ok();
            } else if trimmed.starts_with("field") && trimmed.contains(':') {
                match parse_field(trimmed, abi) {
                    Some(field) => {
                        if !past_common {
                            common += 1;
                        }
                        fields.push(field);
                    }
                    None => diagnostics.push(Diagnostic::at(
                        here as u64,
                        format!("field line not understood: {trimmed}"),
                    )),
                }
            } else if trimmed.is_empty() && !fields.is_empty() {
                // An empty line parts the common fields from the event's own.
                past_common = true;
            }
        }
        let id = id?;
        let name = name.unwrap_or_else(|| format!("event-{id}"));
        let text = print_fmt.as_deref().unwrap_or("");
        let printer = FormatPrinter::of_event(system, &name, text, &fields, abi);
        Some(EventFormat {
            system: system.to_owned(),
            name,
            id,
            fields,
            common,
            abi,
            printer,
            diagnostics,
        })
    }

    /// Returns the field of that name.
    pub fn field(&self, name: &str) -> Option<&FormatField> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// Returns the fields that are the event's own.
    pub fn own_fields(&self) -> &[FormatField] {
        &self.fields[self.common.min(self.fields.len())..]
    }
}

/// Parses a line such as `field:char comm[16]; offset:8; size:16; signed:0;`.
fn parse_field(line: &str, abi: Abi) -> Option<FormatField> {
    let mut decl = None;
    let mut offset = None;
    let mut size = None;
    let mut signed = None;
    for part in line.split(';') {
        let part = part.trim();
        let Some((key, value)) = part.split_once(':') else {
            continue;
        };
        match key.trim() {
            "field" | "field special" => decl = Some(value.trim()),
            "offset" => offset = value.trim().parse::<u32>().ok(),
            "size" => size = value.trim().parse::<u32>().ok(),
            "signed" => signed = value.trim().parse::<u32>().ok(),
            _ => {}
        }
    }
    let decl = decl?;
    let (offset, size) = (offset?, size?);
    let (mut ctype, name, dims) = split_declaration(decl);
    if name.is_empty() {
        return None;
    }
    let is_char = ctype
        .split([' ', '\t', '*', '['])
        .any(|w| matches!(w, "char" | "u8" | "s8"))
        && !ctype.contains('*');
    let text_like = ctype.split([' ', '\t', '[']).any(|w| w == "char") && !ctype.contains('*');
    let data_loc = ctype.starts_with("__data_loc");
    let rel_loc = ctype.starts_with("__rel_loc");
    let array = !dims.is_empty() || ctype.ends_with(']');
    let kind = if data_loc || rel_loc {
        let element = element_size(&ctype, abi);
        if rel_loc {
            FieldKind::RelLoc { element }
        } else {
            FieldKind::DataLoc { element }
        }
    } else if array {
        let count = dims.parse::<u32>().ok().filter(|&c| c > 0);
        let element = match count {
            Some(count) if size % count == 0 && size > 0 => size / count,
            _ if is_char => 1,
            _ => element_size(&ctype, abi),
        };
        FieldKind::Array {
            element: element.max(1),
        }
    } else {
        FieldKind::Scalar
    };
    if array && !dims.is_empty() {
        ctype = format!("{ctype}[{dims}]");
    }
    let is_string = text_like && !matches!(kind, FieldKind::Scalar);
    Some(FormatField {
        name,
        ctype,
        offset,
        size,
        // Old kernels do not say: take the type's word for it.
        signed: signed.map_or_else(
            || !decl.contains("unsigned") && !decl.contains('*'),
            |s| s != 0,
        ),
        kind,
        is_string,
    })
}

/// Splits `__data_loc char[] name`, `char comm[16]`, `unsigned long long x`, `const char * p`.
/// Returns type, name, and what stood between the brackets behind the name.
fn split_declaration(decl: &str) -> (String, String, String) {
    let mut decl = decl.trim();
    let mut dims = String::new();
    if decl.ends_with(']')
        && let Some(open) = decl.rfind('[')
    {
        // `char[] name` ends in a name, `name[16]` in a bracket.
        dims = decl[open + 1..decl.len() - 1].trim().to_owned();
        decl = decl[..open].trim_end();
        if dims.is_empty() {
            dims = "0".to_owned();
        }
    }
    let cut = decl
        .rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .map_or(0, |i| {
            i + decl[i..].chars().next().map_or(1, char::len_utf8)
        });
    (decl[..cut].trim().to_owned(), decl[cut..].to_owned(), dims)
}

/// Returns the size of one element of an array of this type, in bytes; 1 when the type is unknown.
fn element_size(ctype: &str, abi: Abi) -> u32 {
    let base = ctype
        .trim_start_matches("__data_loc")
        .trim_start_matches("__rel_loc")
        .trim()
        .trim_end_matches("[]")
        .trim();
    if base.contains('*') {
        return u32::from(abi.long_size);
    }
    let has = |w: &str| base.split_whitespace().any(|x| x == w);
    if has("char") || has("u8") || has("s8") || has("__u8") || has("bool") {
        1
    } else if has("short") || has("u16") || has("s16") || has("__u16") {
        2
    } else if has("u64") || has("s64") || has("__u64") || base.contains("long long") {
        8
    } else if has("long") || has("cpumask_t") || has("size_t") {
        u32::from(abi.long_size)
    } else if has("int")
        || has("unsigned")
        || has("u32")
        || has("s32")
        || has("__u32")
        || has("dev_t")
    {
        4
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 314\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] name;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:u64 args[6];\toffset:32;\tsize:48;\tsigned:0;\n\n\
        print fmt: \"prev_comm=%s\", REC->prev_comm\n";

    #[test]
    fn fields_are_read_as_the_kernel_declares_them() {
        let f = EventFormat::parse("sched", SWITCH.as_bytes(), Abi::default()).unwrap();
        assert_eq!(
            (f.name.as_str(), f.id, f.common, f.fields.len()),
            ("sched_switch", 314, 2, 6)
        );
        let comm = f.field("prev_comm").unwrap();
        assert_eq!(comm.kind, FieldKind::Array { element: 1 });
        assert_eq!(comm.ctype, "char[16]");
        assert!(comm.is_string);
        assert!(f.field("prev_pid").unwrap().signed);
        assert_eq!(
            f.field("name").unwrap().kind,
            FieldKind::DataLoc { element: 1 }
        );
        assert_eq!(
            f.field("args").unwrap().kind,
            FieldKind::Array { element: 8 }
        );
    }

    #[test]
    fn a_locator_outside_the_record_reads_as_nothing() {
        let f = EventFormat::parse("sched", SWITCH.as_bytes(), Abi::default()).unwrap();
        let mut record = vec![0u8; 80];
        record[28..32].copy_from_slice(&((40u32 << 16) | 60).to_le_bytes());
        assert_eq!(f.field("name").unwrap().bytes(&record, f.abi), None);
        record[28..32].copy_from_slice(&((4u32 << 16) | 60).to_le_bytes());
        record[60..64].copy_from_slice(b"ab\0d");
        assert_eq!(
            f.field("name").unwrap().text(&record, f.abi),
            Some(&b"ab"[..])
        );
    }
}
