//! File mode: file header, attributes, feature sections; and which mode a recording is of.

use std::ops::Range;

use tracefmt::index_of;
use tracefmt::{Diagnostic, Endian};

use crate::PerfFileError;
use crate::attr::EventAttr;
use crate::file::{MAX_ATTRS, PerfRecording, too_many_attributes};
use crate::pipe::{self, PIPE_HEADER};

/// Bytes of `struct perf_file_header`: magic, sizes, three sections, and 256 bits of features.
pub const FILE_HEADER: usize = 104;

/// Returns whether these first bytes of a file are perf.data's.
pub fn is_perf_data(head: &[u8]) -> bool {
    magic(head).is_some()
}

/// Returns the byte order of the magic.
fn magic(head: &[u8]) -> Option<Endian> {
    match head.first_chunk::<8>()? {
        b"PERFILE2" => Some(Endian::Little),
        b"2ELIFREP" => Some(Endian::Big),
        _ => None,
    }
}

impl<'a> PerfRecording<'a> {
    /// Parses everything but the records.
    ///
    /// # Errors
    ///
    /// Fails when the magic is not there or no attribute can be read, without which no record can be
    /// understood. Everything else that is missing is in [`PerfRecording::diagnostics`].
    pub fn parse(data: &'a [u8]) -> Result<PerfRecording<'a>, PerfFileError> {
        let endian = magic(data).ok_or(PerfFileError::Magic)?;
        let header_size = endian.u64(data, 8).ok_or(PerfFileError::Header {
            expected: PIPE_HEADER as u64,
            found: data.len() as u64,
        })?;
        let pipe = header_size == PIPE_HEADER as u64;
        let mut recording = PerfRecording::unread(data, endian, pipe);
        if pipe {
            recording.start = PIPE_HEADER;
            pipe::read_definitions(&mut recording);
        } else {
            recording.parse_file(header_size)?;
        }
        if recording.attrs.is_empty() {
            let place = if pipe {
                "before the first sample"
            } else {
                "in its header"
            };
            return Err(PerfFileError::Attributes(format!("none {place}")));
        }
        recording.name_attrs();
        Ok(recording)
    }

    fn parse_file(&mut self, header_size: u64) -> Result<(), PerfFileError> {
        let (data, endian) = (self.data, self.endian);
        if data.len() < FILE_HEADER {
            return Err(PerfFileError::Header {
                expected: FILE_HEADER as u64,
                found: data.len() as u64,
            });
        }
        if header_size != FILE_HEADER as u64 {
            self.note(Diagnostic::at(
                8,
                format!("header size is {header_size}, expected {FILE_HEADER}"),
            ));
        }
        let word = |offset: usize| endian.u64(data, offset).unwrap_or(0);
        let (attr_size, attrs_at, attrs_size) = (word(16), word(24), word(32));
        let (data_at, data_size) = (word(40), word(48));
        self.parse_attrs(attr_size, attrs_at, attrs_size)?;

        let len = data.len() as u64;
        let start = data_at.min(len);
        let mut end = start.saturating_add(data_size);
        if data_size == 0 {
            // perf writes the size when it ends: this recorder was killed.
            self.truncated = true;
            self.data_cut = true;
            self.note(Diagnostic::at(
                48,
                "the data size in the header is 0: the recorder did not end in order, and left no \
                 feature sections",
            ));
            end = len;
        } else if end > len {
            self.truncated = true;
            self.data_cut = true;
            self.note(Diagnostic::at(
                len,
                format!(
                    "the file ends {} bytes before the end of its data, and its feature sections \
                     are missing",
                    end - len
                ),
            ));
        }
        let in_file = |at: u64| usize::try_from(at).map_or(data.len(), |at| at.min(data.len()));
        self.start = in_file(start);
        self.end = in_file(end);
        if data_size != 0 {
            self.parse_features(end);
        }
        Ok(())
    }

    fn parse_attrs(&mut self, attr_size: u64, at: u64, size: u64) -> Result<(), PerfFileError> {
        // Behind the attribute itself: offset and size of its list of ids.
        const IDS: usize = 16;
        if attr_size <= IDS as u64 || attr_size > 4096 {
            return Err(PerfFileError::Attributes(format!(
                "an attribute of {attr_size} bytes at byte 16"
            )));
        }
        let count = (size / attr_size).min(MAX_ATTRS as u64);
        if size / attr_size > count {
            self.note(too_many_attributes(at));
        }
        // Lists of ids do not overlap; a crafted file could name the same bytes for every attribute.
        let mut ids_left = self.data.len() as u64;
        for index in 0..count {
            let from = at.saturating_add(index * attr_size);
            let Some(bytes) = slice(self.data, from, attr_size) else {
                self.truncated = true;
                self.note(Diagnostic::at(from, "the file ends in its attributes"));
                break;
            };
            let tail = bytes.len() - IDS;
            let body = &bytes[..tail];
            let Some((mut attr, _)) = EventAttr::parse(body, self.endian) else {
                self.note(Diagnostic::at(from, "attribute too short"));
                continue;
            };
            let ids_at = self.endian.u64(bytes, tail).unwrap_or(0);
            let ids_size = self.endian.u64(bytes, tail + 8).unwrap_or(0);
            match slice(self.data, ids_at, ids_size).filter(|_| ids_size <= ids_left) {
                Some(ids) => {
                    ids_left -= ids_size;
                    attr.ids = self.ids(ids);
                }
                None => self.note(Diagnostic::at(from, "ids of an attribute are cut off")),
            }
            self.attrs.push(attr);
        }
        Ok(())
    }

    fn parse_features(&mut self, data_end: u64) {
        for feature in listed_features(self.data, self.endian, data_end) {
            let section = feature.place.and_then(|place| self.data.get(place));
            match section {
                Some(section) => self.feature(feature.bit, section),
                None => {
                    if !self.truncated {
                        let bit = feature.bit;
                        self.note(Diagnostic::at(
                            feature.entry,
                            format!("feature section {bit} lies outside the file"),
                        ));
                    }
                    self.truncated = true;
                }
            }
        }
    }
}

/// Bytes of a feature section's entry in the list: its place and its size.
pub(crate) const FEATURE_ENTRY: u64 = 16;
/// Where the bitmap of features stands in the header, and how many bits it has.
pub(crate) const FEATURES_AT: usize = 72;
pub(crate) const FEATURE_BITS: u32 = 256;

/// A feature section, as the list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedFeature {
    /// Its number.
    pub bit: u32,
    /// Where its entry stands in the file.
    pub entry: u64,
    /// Where it lies; `None` where that, or its entry, is not in the file.
    pub place: Option<Range<usize>>,
}

/// Returns the byte of the header that has a feature's bit, in words of 64 bits in the machine's order.
pub(crate) fn feature_byte(bit: u32, endian: Endian) -> usize {
    let bit = index_of(bit);
    FEATURES_AT
        + match endian {
            Endian::Little => bit / 8,
            Endian::Big => (bit / 64) * 8 + 7 - (bit % 64) / 8,
        }
}

/// Feature sections are listed right behind the data, one place and size for each bit of the header's bitmap, lowest
/// bit first.
pub(crate) fn listed_features(
    data: &[u8],
    endian: Endian,
    data_end: u64,
) -> impl Iterator<Item = ListedFeature> {
    let is_set = move |bit: &u32| {
        let byte = data.get(feature_byte(*bit, endian)).copied();
        byte.unwrap_or(0) >> (bit % 8) & 1 == 1
    };
    (0..FEATURE_BITS)
        .filter(is_set)
        .scan(data_end, move |next, bit| {
            let entry = *next;
            *next = next.saturating_add(FEATURE_ENTRY);
            let place = slice(data, entry, FEATURE_ENTRY)
                .and_then(|e| range(data, endian.u64(e, 0)?, endian.u64(e, 8)?));
            Some(ListedFeature { bit, entry, place })
        })
}

/// Returns a range of the file given by 64-bit numbers out of it; `None` where it is not all in the file.
pub(crate) fn range(data: &[u8], at: u64, len: u64) -> Option<Range<usize>> {
    let start = usize::try_from(at).ok()?;
    let end = start.checked_add(usize::try_from(len).ok()?)?;
    (end <= data.len()).then_some(start..end)
}

/// Returns the bytes of such a range.
fn slice(data: &[u8], at: u64, len: u64) -> Option<&[u8]> {
    data.get(range(data, at, len)?)
}
