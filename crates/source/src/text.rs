//! Text as events.

use event::Sink;

use crate::header::Header;
use crate::reader::Outcome;

/// A text whose style is decided.
#[derive(Debug)]
pub(crate) struct TextReader<'r> {
    _data: &'r [u8],
    header: Header,
}

impl<'r> TextReader<'r> {
    pub fn new(_data: &'r [u8]) -> Option<TextReader<'r>> {
        None
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    pub fn is_perf(&self) -> bool {
        true
    }

    pub fn walk(&self, _sink: &mut dyn Sink) -> Outcome {
        Outcome::default()
    }
}

/// Says in a few words what bytes that are no recording look like.
pub(crate) fn describe(data: &[u8]) -> String {
    const KNOWN: &[(&[u8], &str)] = &[
        (b"\x89PNG", "a PNG picture"),
        (b"\xff\xd8\xff", "a JPEG picture"),
        (b"GIF8", "a GIF picture"),
        (b"%PDF", "a PDF document"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x7fELF", "an ELF program or library"),
        (b"BZh", "a bzip2 file; unpack it first"),
        (b"\xfd7zXZ", "an xz file; unpack it first"),
        (b"\x04\x22\x4d\x18", "an lz4 file; unpack it first"),
        (b"QEMU", "a QEMU image"),
        (b"QFI\xfb", "a qcow2 disk image"),
        (b"\xc1\x1f\xfc\xc1", "a Common Trace Format (LTTng) stream"),
        (b"/* CTF", "Common Trace Format (LTTng) metadata"),
        (b"SQLite format", "an SQLite database"),
    ];
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| data.starts_with(magic)) {
        return (*what).to_owned();
    }
    let head = &data[..data.len().min(4096)];
    let text = std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |_| true);
    if text && !head.contains(&0) {
        "a text without any event line in it".to_owned()
    } else {
        let first: Vec<String> = head.iter().take(4).map(|b| format!("{b:02x}")).collect();
        format!(
            "a binary file of unknown kind, beginning {}",
            first.join(" ")
        )
    }
}
