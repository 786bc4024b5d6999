//! What bytes are, by their beginning.

use tracetext::TextProducer;

use crate::text::beginning;

/// What the bytes of a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileContent {
    /// A recording: of this container, or the text of this tool.
    Recording(String),
    /// A text in which no event was found.
    Text,
    /// Something that is known by its beginning, or by nothing, with an article before it.
    Other(String),
}

/// The beginnings of files that people have at hand.
const KNOWN: &[(&[u8], &str)] = &[
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x7fELF", "an ELF program or library"),
    (b"BZh", "a bzip2 file (unpack it first)"),
    (b"\xfd7zXZ", "an xz file (unpack it first)"),
    (b"\x04\x22\x4d\x18", "an lz4 file (unpack it first)"),
    (b"QEVM", "the state of a VM that QEMU saved"),
    (b"QFI\xfb", "a qcow2 disk image"),
    (b"\xc1\x1f\xfc\xc1", "a Common Trace Format (LTTng) stream"),
    (b"/* CTF", "Common Trace Format (LTTng) metadata"),
    (b"SQLite format", "an SQLite database"),
];

impl FileContent {
    /// Returns what it is with its article: `a text`.
    pub(crate) fn described(self) -> String {
        match self {
            FileContent::Other(what) => what,
            FileContent::Recording(what) => format!("a {what}"),
            FileContent::Text => "a text".to_owned(),
        }
    }
}

/// Says what bytes are. Only their beginning is looked at, of a text behind blank lines, so a recording may still turn
/// out to be unusable.
///
/// ```
/// use source::{FileContent, sniff};
/// assert_eq!(sniff(b"PERFILE2"), FileContent::Recording("perf.data".to_owned()));
/// assert_eq!(sniff(b"Dear all,\n"), FileContent::Text);
/// assert_eq!(sniff(b"%PDF-1.7"), FileContent::Other("a PDF document".to_owned()));
/// ```
pub fn sniff(data: &[u8]) -> FileContent {
    if perfdata::is_perf_data(data) {
        return FileContent::Recording("perf.data".to_owned());
    }
    if tracedat::is_trace_dat(data) {
        return FileContent::Recording("trace.dat".to_owned());
    }
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| data.starts_with(magic)) {
        return FileContent::Other((*what).to_owned());
    }
    if let Some(style) = tracetext::sniff(beginning(data)) {
        let name = style.name();
        return match (style, style.is_table()) {
            (TextProducer::FunctionGraph, _) => FileContent::Other(format!(
                "a text of {name}, which its option funcgraph-abstime prints"
            )),
            (_, true) => FileContent::Other(format!("a table that {name} printed")),
            (_, false) => FileContent::Recording(format!("text of {name}")),
        };
    }
    let head = data.get(..4096).unwrap_or(data);
    let text = std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |_| true);
    if text && !head.contains(&0) {
        return FileContent::Text;
    }
    let first: Vec<String> = head.iter().take(4).map(|b| format!("{b:02x}")).collect();
    FileContent::Other(format!(
        "a binary file of unknown kind, beginning {}",
        first.join(" ")
    ))
}
