//! Version 7: the sections, and the chain of options that leads to them.
//!
//! Source: `Documentation/trace-cmd/trace-cmd.dat.v7.5.txt` of trace-cmd.

use crate::compress::{Compression, Decompressor};
use crate::options::{ListEnd, TraceOptions, id};
use std::borrow::Cow;
use tracefmt::{Cursor, Diagnostic, Endian};

/// Bytes of a section's header.
pub(crate) const SECTION_HEADER: usize = 16;
/// Flag of a section whose body is compressed.
const FLAG_COMPRESSED: u16 = 1;
/// A section's decompressed size is believed up to this, and...
const SECTION_LIMIT: usize = 16 << 20;
/// ...up to this many times its compressed size. Texts shrink to a fifth or so.
const SECTION_RATIO: usize = 32;

/// The header of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SectionHeader {
    pub id: u16,
    pub compressed: bool,
    /// Where the header lies in the file.
    pub offset: usize,
    /// Where the body begins.
    pub body: usize,
    /// Bytes of the body, as the file says.
    pub size: u64,
}

impl SectionHeader {
    /// Returns where the next section should begin.
    pub(crate) fn end(&self) -> u64 {
        (self.body as u64).saturating_add(self.size)
    }
}

/// The file and how to read its sections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sections<'a> {
    pub data: &'a [u8],
    pub endian: Endian,
    pub compression: Compression,
}

impl<'a> Sections<'a> {
    /// Reads the header of the section at an offset.
    pub(crate) fn at(&self, offset: u64) -> Option<SectionHeader> {
        let offset = usize::try_from(offset).ok()?;
        let mut cursor = Cursor::new(self.data.get(offset..)?, self.endian);
        let id = cursor.u16()?;
        let flags = cursor.u16()?;
        let _description = cursor.u32()?;
        let size = cursor.u64()?;
        let compressed = flags & FLAG_COMPRESSED != 0;
        Some(SectionHeader {
            id,
            compressed,
            offset,
            body: offset + SECTION_HEADER,
            size,
        })
    }

    /// Returns the body of a section, decompressed if need be. The second value says what is missing from it.
    pub(crate) fn body(&self, section: &SectionHeader) -> (Cow<'a, [u8]>, Option<Diagnostic>) {
        let rest = self.data.get(section.body..).unwrap_or_default();
        let at = section.body as u64;
        if !section.compressed {
            // A recorder writes the size when the section is complete; until then it is 0.
            let size = if section.size == 0 {
                u64::MAX
            } else {
                section.size
            };
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let missing = (section.size > rest.len() as u64).then(|| {
                let lost = section.size - rest.len() as u64;
                Diagnostic::at(
                    at,
                    format!(
                        "section {} is cut off: {lost} bytes are missing",
                        section.id
                    ),
                )
            });
            return (Cow::Borrowed(&rest[..size.min(rest.len())]), missing);
        }
        let fault = |what: String| {
            Some(Diagnostic::at(
                at,
                format!("section {} cannot be decompressed: {what}", section.id),
            ))
        };
        let mut cursor = Cursor::new(rest, self.endian);
        let (Some(packed), Some(size)) = (cursor.u32(), cursor.u32()) else {
            return (
                Cow::Borrowed(&[]),
                fault("it is cut off before its sizes".into()),
            );
        };
        let Some(input) = cursor.take(u64::from(packed)) else {
            let found = cursor.rest().len();
            return (
                Cow::Borrowed(&[]),
                fault(format!("{found} of its {packed} bytes are there")),
            );
        };
        let limit = SECTION_LIMIT.saturating_add(input.len().saturating_mul(SECTION_RATIO));
        if size as usize > limit {
            return (
                Cow::Borrowed(&[]),
                fault(format!("{size} bytes from {packed} are not believed")),
            );
        }
        let mut out = Vec::new();
        let fault = match Decompressor::new(self.compression).run(input, size as usize, &mut out) {
            Ok(()) if out.len() == size as usize => None,
            Ok(()) => fault(format!("{} bytes came out of it, not {size}", out.len())),
            Err(what) => fault(what),
        };
        (Cow::Owned(out), fault)
    }

    /// Follows the chain of option sections from its start. Returns whether the chain came to its end.
    pub(crate) fn options(
        &self,
        start: u64,
        options: &mut TraceOptions,
        visited: &mut Vec<u64>,
    ) -> bool {
        let mut at = start;
        while at != 0 {
            let Some(section) = self.at(at).filter(|s| s.id == id::DONE) else {
                options.diagnostics.push(if at >= self.data.len() as u64 {
                    Diagnostic::at(
                        at,
                        "a list of options should be here, but the file ends before",
                    )
                } else {
                    Diagnostic::at(at, "a list of options should be here")
                });
                return false;
            };
            match self.options_at(&section, options, visited) {
                Some(ListEnd::Done(next)) => at = next,
                Some(ListEnd::Cut) => {
                    options
                        .diagnostics
                        .push(Diagnostic::at(at, "this list of options is cut off"));
                    return false;
                }
                None => {
                    options
                        .diagnostics
                        .push(Diagnostic::at(at, "the lists of options run in a circle"));
                    return false;
                }
            }
        }
        true
    }

    /// Reads one section of options; `None` when it, or part of it, was read before.
    pub(crate) fn options_at(
        &self,
        section: &SectionHeader,
        options: &mut TraceOptions,
        visited: &mut Vec<u64>,
    ) -> Option<ListEnd> {
        let (start, end) = (
            section.offset as u64,
            section.end().max(section.body as u64 + 1),
        );
        // Lists do not overlap in a sound file; in a crafted one they could multiply.
        let overlaps = visited.chunks_exact(2).any(|v| start < v[1] && v[0] < end);
        if overlaps || visited.len() >= 2 * MAX_OPTION_LISTS {
            return None;
        }
        visited.extend([start, end]);
        let (body, fault) = self.body(section);
        options.diagnostics.extend(fault);
        let base = matches!(body, Cow::Borrowed(_)).then_some(section.body as u64);
        Some(options.read_list(&mut Cursor::new(&body, self.endian), true, base))
    }
}

/// More option sections than this are not followed; a recording has one, and one more for each instance.
const MAX_OPTION_LISTS: usize = 4096;
