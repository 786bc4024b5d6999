//! The tracing data that perf.data carries and trace.dat begins with.
//!
//! Sources: `tools/perf/util/trace-event-info.c` (writer), `Documentation/trace-cmd/trace-cmd.dat.v6.5.txt`.

use crate::{Abi, Diagnostic, Endian, FormatCatalog, HeaderPage, Kallsyms};

/// Walks bytes front to back, never past their end.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    data: &'a [u8],
    at: usize,
    /// Byte order of the numbers it reads.
    pub endian: Endian,
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the start of `data`.
    pub fn new(data: &'a [u8], endian: Endian) -> Self {
        Cursor {
            data,
            at: 0,
            endian,
        }
    }

    /// Returns how many bytes have been read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Returns what has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        &self.data[self.at..]
    }

    /// Reads `len` bytes; `None`, and the cursor stays, when there are fewer.
    pub fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let len = usize::try_from(len).ok()?;
        let bytes = self.rest().get(..len)?;
        self.at += len;
        Some(bytes)
    }

    /// Reads an 8-bit number.
    pub fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|b| b[0])
    }

    /// Reads a 16-bit number.
    pub fn u16(&mut self) -> Option<u16> {
        let endian = self.endian;
        endian.u16(self.take(2)?, 0)
    }

    /// Reads a 32-bit number.
    pub fn u32(&mut self) -> Option<u32> {
        let endian = self.endian;
        endian.u32(self.take(4)?, 0)
    }

    /// Reads a 64-bit number.
    pub fn u64(&mut self) -> Option<u64> {
        let endian = self.endian;
        endian.u64(self.take(8)?, 0)
    }

    /// Reads up to and over the next NUL byte, and returns what stood before it.
    pub fn cstr(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        let end = rest.iter().position(|&b| b == 0)?;
        self.at += end + 1;
        Some(&rest[..end])
    }
}

/// The result of [`parse_tracing_data`].
#[derive(Debug, Clone, Default)]
pub struct TracingSection {
    /// Everything the data said, as far as it could be read.
    pub formats: FormatCatalog,
    /// Version text, as `0.6`.
    pub version: String,
    /// How many bytes it took; the number of bytes read before the fault when it is cut off.
    pub consumed: usize,
    /// Whether the data ended before its own last part.
    pub truncated: bool,
}

/// The ten bytes that tracing data begins with.
pub(crate) const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

/// Parses tracing data: the magic, version, byte order, word and page size, then header page, header
/// event, ftrace formats, event formats by subsystem, kallsyms, printk strings and saved command lines.
///
/// Never fails: what is missing is in [`TracingSection::truncated`] and the diagnostics.
pub fn parse_tracing_data(data: &[u8]) -> TracingSection {
    let mut out = TracingSection::default();
    let mut cursor = Cursor::new(data, Endian::Little);
    let complete = parse_into(&mut cursor, &mut out);
    out.consumed = cursor.position();
    if complete.is_none() {
        out.truncated = true;
        out.formats.diagnostics.push(Diagnostic::at(
            cursor.position() as u64,
            "tracing data ends early: some event formats are missing",
        ));
    }
    out
}

fn parse_into(cursor: &mut Cursor<'_>, out: &mut TracingSection) -> Option<()> {
    if cursor.take(10)? != MAGIC {
        out.formats.diagnostics.push(Diagnostic::at(
            0,
            "tracing data does not begin with its magic bytes",
        ));
        return None;
    }
    out.version = String::from_utf8_lossy(cursor.cstr()?).into_owned();
    cursor.endian = if cursor.u8()? == 0 {
        Endian::Little
    } else {
        Endian::Big
    };
    let long_size = cursor.u8()?;
    let long_size = if long_size == 4 { 4 } else { 8 };
    out.formats.abi = Abi {
        endian: cursor.endian,
        long_size,
    };
    out.formats.page_size = cursor.u32()?;
    if cursor.cstr()? == b"header_page" {
        let size = cursor.u64()?;
        out.formats.header_page = HeaderPage::parse(cursor.take(size)?);
    }
    cursor.cstr()?;
    let size = cursor.u64()?;
    cursor.take(size)?;
    parse_ftrace_formats(cursor, &mut out.formats)?;
    parse_event_formats(cursor, &mut out.formats)?;
    let size = cursor.u32()?;
    out.formats.kallsyms = Kallsyms::parse(cursor.take(u64::from(size))?);
    let size = cursor.u32()?;
    let printk = cursor.take(u64::from(size))?;
    out.formats.set_printk(printk);
    if version_has_cmdlines(&out.version) {
        let size = cursor.u64()?;
        let text = cursor.take(size)?;
        out.formats.set_cmdlines(text);
    }
    Some(())
}

/// Command lines were added to the data in version 0.6.
fn version_has_cmdlines(version: &str) -> bool {
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    (
        major.parse::<u32>().unwrap_or(0),
        minor.parse::<u32>().unwrap_or(0),
    ) >= (0, 6)
}

impl Cursor<'_> {
    /// Reads a list of formats: a 32-bit count, then 64-bit size and text each.
    fn format_list(&mut self, system: &str, formats: &mut FormatCatalog) -> Option<()> {
        let count = self.u32()?;
        for _ in 0..count {
            let size = self.u64()?;
            let text = self.take(size)?;
            formats.add(system, text);
        }
        Some(())
    }
}

/// Parses the list of ftrace's own formats: a 32-bit count, then size and text each.
///
/// Returns `None` when the data ends first; what came before is kept.
pub(crate) fn parse_ftrace_formats(
    cursor: &mut Cursor<'_>,
    formats: &mut FormatCatalog,
) -> Option<()> {
    cursor.format_list("ftrace", formats)
}

/// Parses the subsystems: a 32-bit count, then name and list of formats each.
pub(crate) fn parse_event_formats(
    cursor: &mut Cursor<'_>,
    formats: &mut FormatCatalog,
) -> Option<()> {
    let systems = cursor.u32()?;
    for _ in 0..systems {
        let system = String::from_utf8_lossy(cursor.cstr()?).into_owned();
        cursor.format_list(&system, formats)?;
    }
    Some(())
}

impl FormatCatalog {
    /// Reads a section of ftrace formats (trace.dat v7, option 17); `false` when it is cut off.
    pub fn read_ftrace_formats(&mut self, cursor: &mut Cursor<'_>) -> bool {
        parse_ftrace_formats(cursor, self).is_some()
    }

    /// Reads a section of event formats (trace.dat v7, option 18); `false` when it is cut off.
    pub fn read_event_formats(&mut self, cursor: &mut Cursor<'_>) -> bool {
        parse_event_formats(cursor, self).is_some()
    }
}
