//! A trace.dat file: what its header leads to.

use crate::chunks;
use crate::compress::Compression;
use crate::error::TraceDatError;
use crate::info::{Buffer, TextBuffer, TraceMetadata, text_of};
use crate::options::TraceOptions;
use crate::page::PageLayout;
use crate::sections::{SectionHeader, Sections};
use std::ops::Range;
use tracefmt::{Cursor, Diagnostic, Endian, FormatCatalog, HeaderPage, Kallsyms};

/// The ten bytes a trace.dat begins with; perf's tracing data begins with the same.
const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

/// Returns whether the data begins as a trace.dat of any version does.
///
/// perf's tracing data, which begins with the same magic and a version such as `0.6`, is none.
pub fn is_trace_dat(data: &[u8]) -> bool {
    data.starts_with(MAGIC) && data.get(10..12).is_none_or(|v| v != b"0.")
}

/// Where a v6 file keeps `/proc/kallsyms`, or a v7 file the section of it.
#[derive(Debug, Clone)]
pub(crate) enum KallsymsPlace {
    None,
    Text(Range<usize>),
    Section(SectionHeader),
}

/// A trace.dat, versions 6 and 7: everything but the events is read, the events can be walked.
#[derive(Debug, Clone)]
pub struct TraceDat<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) compression: Compression,
    pub(crate) formats: FormatCatalog,
    pub(crate) info: TraceMetadata,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) truncated: bool,
    /// Whether there were CPUs of which nothing is left, not even their number.
    pub(crate) missing_cpus: bool,
    pub(crate) symbols: KallsymsPlace,
    pub(crate) places: HeaderPlaces,
}

/// Where a file has what leads to its data.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeaderPlaces {
    /// The options as they stand in the file, but for the end of a list: kept only if that is asked for.
    pub options: Option<Vec<(u16, Vec<u8>)>>,
    /// Of a v6 file, the texts of `header_page` and `header_event` and the formats; `None` where the file ends in them.
    pub formats: Option<Range<usize>>,
    /// Of a v6 file, the saved names of threads.
    pub names: Range<usize>,
    /// Of a v7 file, where the first section begins.
    pub front: usize,
    /// The sections that options lead to, by number.
    pub sections: Vec<(u16, u64)>,
    /// Of a v6 file, the lists of CPU data, that of the top buffer first.
    pub lists: Vec<CpuList>,
}

/// The list of a buffer's CPU data in a v6 file.
#[derive(Debug, Clone, Default)]
pub(crate) struct CpuList {
    /// Name of the instance; empty for the top buffer.
    pub name: String,
    /// Where in the file the option has the list's place; `None` for the top buffer, whose list follows its options.
    pub option: Option<u64>,
    /// Where the first CPU's place stands; `None` where the file ends before.
    pub entries: Option<usize>,
    /// How many CPUs it has.
    pub cpus: u32,
}

impl<'a> TraceDat<'a> {
    /// Returns the same file without what lies behind a length, as after somebody made it shorter. What was read of it
    /// before is still known, if it stood in the part that is gone.
    pub fn shortened(&self, length: usize) -> TraceDat<'a> {
        TraceDat {
            data: self.data.get(..length).unwrap_or(self.data),
            truncated: true,
            ..self.clone()
        }
    }

    /// Returns the same file with times as the guest's own clock has them: what the recorder measured between that and
    /// its host's clock ([`TraceMetadata::time_shift`]) is left out, but for the scaling of the counter.
    pub fn on_own_clock(&self) -> TraceDat<'a> {
        let mut own = self.clone();
        for sample in own
            .info
            .time_shift
            .iter_mut()
            .flat_map(|shift| shift.cpus.iter_mut().flatten())
        {
            sample.offset = 0;
        }
        own
    }

    /// Reads everything but symbols and events from a whole file.
    ///
    /// # Errors
    ///
    /// Only when nothing at all is usable. A file that is cut off or damaged gives what can be read of it,
    /// [`TraceDat::truncated`] and [`TraceDat::diagnostics`].
    pub fn parse(data: &'a [u8]) -> Result<TraceDat<'a>, TraceDatError> {
        TraceDat::parse_with(data, &mut |_| {})
    }

    /// Does what [`TraceDat::parse`] does, and says which bytes of the input are not needed any more.
    ///
    /// That matters for a v7 file that is cut off: all its CPU data must be looked at to find whose it is.
    ///
    /// # Errors
    ///
    /// As [`TraceDat::parse`].
    pub fn parse_with(
        data: &'a [u8],
        consumed: &mut dyn FnMut(Range<usize>),
    ) -> Result<TraceDat<'a>, TraceDatError> {
        TraceDat::parse_keeping(data, false, consumed)
    }

    /// Does the same, and keeps the options as they stand in the file if `keep` is set.
    pub(crate) fn parse_keeping(
        data: &'a [u8],
        keep: bool,
        consumed: &mut dyn FnMut(Range<usize>),
    ) -> Result<TraceDat<'a>, TraceDatError> {
        if !data.starts_with(MAGIC) {
            return Err(TraceDatError::NotTraceDat);
        }
        let mut cursor = Cursor::new(data, Endian::Little);
        cursor.take(MAGIC.len() as u64);
        let ends = |cursor: &Cursor<'_>, expected| TraceDatError::EndsEarly {
            offset: cursor.position() as u64,
            expected,
        };
        let version_at = cursor.position() as u64;
        let text = cursor.cstr().ok_or_else(|| ends(&cursor, "its version"))?;
        let version = match text {
            b"6" => 6,
            b"7" => 7,
            _ => {
                let found = String::from_utf8_lossy(&text[..text.len().min(32)]).into_owned();
                return Err(TraceDatError::UnknownVersion {
                    offset: version_at,
                    found,
                });
            }
        };
        let big = cursor.u8().ok_or_else(|| ends(&cursor, "its byte order"))?;
        cursor.endian = if big == 0 {
            Endian::Little
        } else {
            Endian::Big
        };
        let long_size = cursor.u8().ok_or_else(|| ends(&cursor, "its word size"))?;
        let page_size = cursor.u32().ok_or_else(|| ends(&cursor, "its page size"))?;

        let mut file = TraceDat {
            data,
            compression: Compression::None,
            formats: FormatCatalog::default(),
            info: TraceMetadata::default(),
            diagnostics: Vec::new(),
            truncated: false,
            missing_cpus: false,
            symbols: KallsymsPlace::None,
            places: HeaderPlaces::default(),
        };
        file.formats.abi.endian = cursor.endian;
        file.formats.abi.long_size = if long_size == 4 { 4 } else { 8 };
        file.formats.page_size = page_size;
        let mut options = TraceOptions::default();
        options.kept = keep.then(Vec::new);
        options.info.version = version;
        options.info.user_long_size = long_size;
        options.info.page_size = page_size;
        if !plausible_page_size(page_size) {
            file.note(
                version_at,
                format!("page size {page_size}: expected a power of two, 4096 or more"),
            );
        }
        if version == 6 {
            file.read_v6(&mut cursor, &mut options);
        } else {
            let name_at = cursor.position() as u64;
            let name = cursor
                .cstr()
                .ok_or_else(|| ends(&cursor, "the name of its compression"))?;
            let (name, at) = (text_of(name), cursor.position());
            let version = cursor.cstr().ok_or(TraceDatError::EndsEarly {
                offset: at as u64,
                expected: "the version of its compression",
            })?;
            file.compression =
                Compression::from_name(&name).ok_or_else(|| TraceDatError::UnknownCompression {
                    offset: name_at,
                    found: name.clone(),
                })?;
            options.info.compression = Some((name, text_of(version)));
            let start = cursor
                .u64()
                .ok_or_else(|| ends(&cursor, "where its options are"))?;
            file.places.front = cursor.position();
            file.read_v7(start, cursor.position(), &mut options, consumed);
        }
        file.finish(options);
        Ok(file)
    }

    /// Returns the event formats, saved thread names and `trace_printk` strings; and symbols, after
    /// [`TraceDat::load_symbols`].
    pub fn formats(&self) -> &FormatCatalog {
        &self.formats
    }

    /// Reads the kernel's symbols, which printing stacks and function addresses needs.
    ///
    /// They are by far the largest part of a recording's header (5 MB of text), so they are left alone until
    /// asked for.
    pub fn load_symbols(&mut self) {
        match std::mem::replace(&mut self.symbols, KallsymsPlace::None) {
            KallsymsPlace::None => {}
            KallsymsPlace::Text(range) => {
                self.formats.kallsyms = Kallsyms::parse(self.data.get(range).unwrap_or_default());
            }
            KallsymsPlace::Section(section) => {
                let (body, fault) = self.sections().body(&section);
                self.diagnostics.extend(fault);
                let mut cursor = Cursor::new(&body, self.formats.abi.endian);
                let Some(size) = cursor.u32() else { return };
                let text = cursor.take(u64::from(size)).unwrap_or(cursor.rest());
                self.formats.kallsyms = Kallsyms::parse(text);
            }
        }
    }

    /// Returns everything the file says of itself.
    pub fn info(&self) -> &TraceMetadata {
        &self.info
    }

    /// Returns what could not be taken as it stood. [`FormatCatalog::diagnostics`] has more.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Returns whether the file ends before its own end.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Returns whether the file ends before the first byte of what was recorded: no CPU's data and no text is in it.
    pub fn ends_before_data(&self) -> bool {
        let there = |offset: u64| offset < self.data.len() as u64;
        let cpus = self.info.buffers.iter().flat_map(|buffer| &buffer.cpus);
        let data = cpus
            .into_iter()
            .any(|cpu| cpu.size > 0 && there(cpu.offset));
        let text = self.info.texts.iter().any(|text| there(text.offset));
        self.truncated && !data && !text
    }

    /// Reads a text buffer, the kernel's own `trace` text, and gives it away piece by piece. Returns what is
    /// missing from it.
    pub fn read_text(&self, text: &TextBuffer, sink: &mut dyn FnMut(&[u8])) -> Option<Diagnostic> {
        let start = usize::try_from(text.offset)
            .unwrap_or(usize::MAX)
            .min(self.data.len());
        let rest = &self.data[start..];
        if text.compressed {
            return chunks::read_chunks(
                rest,
                text.offset,
                self.formats.abi.endian,
                self.compression,
                sink,
            );
        }
        let size = usize::try_from(text.size).unwrap_or(usize::MAX);
        sink(&rest[..size.min(rest.len())]);
        (size > rest.len()).then(|| {
            let missing = size - rest.len();
            Diagnostic::at(
                self.data.len() as u64,
                format!("the last {missing} bytes of the text are missing"),
            )
        })
    }

    pub(crate) fn note(&mut self, offset: u64, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::at(offset, message));
    }

    pub(crate) fn sections(&self) -> Sections<'a> {
        Sections {
            data: self.data,
            endian: self.formats.abi.endian,
            compression: self.compression,
        }
    }

    /// Returns how pages of a buffer are laid out; `None` when the page size cannot be.
    pub(crate) fn page_layout(&self, buffer: &Buffer) -> Option<PageLayout> {
        let page_size = [buffer.page_size, self.info.page_size]
            .into_iter()
            .find(|&s| plausible_page_size(s))?;
        Some(PageLayout {
            page_size: page_size as usize,
            commit_size: usize::from(self.formats.header_page.commit_size),
            data_offset: 8 + usize::from(self.formats.header_page.commit_size),
            endian: self.formats.abi.endian,
        })
    }

    /// Takes the text of `events/header_page`.
    fn set_header_page(&mut self, text: &[u8]) {
        if text.is_empty() {
            // Kernels before 2.6.31 have none, and another format of records, which is not read here.
            let long = self.formats.abi.long_size;
            self.formats.header_page = HeaderPage {
                commit_size: long,
                data_offset: 8 + u32::from(long),
            };
            self.diagnostics.push(Diagnostic::new(
                "no events/header_page: the kernel's word size is guessed",
            ));
        } else {
            self.formats.header_page = HeaderPage::parse(text);
            self.formats.abi.long_size = self.formats.header_page.commit_size;
        }
    }

    /// Reads `header_page` and `header_event` texts.
    pub(crate) fn read_header_info(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        for want in [&b"header_page"[..], b"header_event"] {
            let name = cursor.cstr()?;
            if name != want {
                let found = String::from_utf8_lossy(&name[..name.len().min(32)]).into_owned();
                self.diagnostics.push(Diagnostic::new(format!(
                    "{found:?} stands where {:?} was expected",
                    String::from_utf8_lossy(want)
                )));
                return None;
            }
            let size = cursor.u64()?;
            let text = cursor.take(size)?;
            if want == b"header_page" {
                self.set_header_page(text);
            }
        }
        Some(())
    }

    /// Settles everything the options said.
    fn finish(&mut self, options: TraceOptions) {
        let TraceOptions {
            mut info,
            buffers,
            mut diagnostics,
            sections,
            kept,
            ..
        } = options;
        self.places.sections = sections;
        self.places.options = kept;
        self.diagnostics.append(&mut diagnostics);
        info.abi = self.formats.abi;
        let (mut tops, mut instances) = (Vec::new(), Vec::new());
        for announced in buffers {
            if announced.text {
                info.texts.push(announced.into_text());
                continue;
            }
            let list = if announced.buffer.name.is_empty() {
                &mut tops
            } else {
                &mut instances
            };
            list.push(announced.buffer);
        }
        if tops.len() > 1 {
            self.diagnostics
                .push(Diagnostic::new("several top buffers: the last one is read"));
        }
        info.buffers.extend(tops.pop());
        info.buffers.append(&mut instances);
        if info.clock.is_none() {
            info.clock = info.buffers.iter().find_map(|b| b.clock.clone());
        }
        if info.cpus == 0 {
            let last = info
                .buffers
                .iter()
                .flat_map(|b| &b.cpus)
                .map(|c| c.cpu)
                .max();
            info.cpus = last.map_or(0, |l| l.saturating_add(1));
        }
        info.settle_clock();
        let len = self.data.len() as u64;
        for buffer in &info.buffers {
            for cpu in &buffer.cpus {
                let end = cpu.offset.saturating_add(cpu.size);
                if cpu.size > 0 && end > len {
                    self.truncated = true;
                    let there = len.saturating_sub(cpu.offset);
                    let (cpu, size, name) = (cpu.cpu, cpu.size, &buffer.name);
                    let message =
                        format!("CPU {cpu} of buffer {name:?}: {there} of {size} bytes are there");
                    self.diagnostics.push(Diagnostic::at(len, message));
                }
            }
        }
        self.info = info;
    }
}

/// Pages are powers of two; the kernel's ring buffer has none below 4096 bytes, and 128 KiB at most per order.
fn plausible_page_size(size: u32) -> bool {
    size.is_power_of_two() && (1024..=1 << 24).contains(&size)
}
