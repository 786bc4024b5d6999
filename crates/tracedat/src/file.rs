//! A trace.dat file: what its header leads to.

use crate::compress::Compression;
use crate::error::Error;
use crate::info::{Buffer, CpuData, Info, TextBuffer, text_of};
use crate::options::{Announced, ListEnd, Options, id};
use crate::page::PageLayout;
use crate::recover;
use crate::sections::{Section, Sections};
use crate::stream;
use std::ops::Range;
use tracefmt::{Cursor, Diagnostic, Endian, Formats, HeaderPage, Kallsyms};

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
enum Symbols {
    None,
    Text(Range<usize>),
    Section(Section),
}

/// A trace.dat, versions 6 and 7: everything but the events is read, the events can be walked.
#[derive(Debug)]
pub struct TraceDat<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) compression: Compression,
    pub(crate) formats: Formats,
    pub(crate) info: Info,
    diagnostics: Vec<Diagnostic>,
    truncated: bool,
    symbols: Symbols,
}

impl<'a> TraceDat<'a> {
    /// Reads everything but symbols and events from a whole file.
    ///
    /// # Errors
    ///
    /// Only when nothing at all is usable. A file that is cut off or damaged gives what can be read of it,
    /// [`TraceDat::truncated`] and [`TraceDat::diagnostics`].
    pub fn parse(data: &'a [u8]) -> Result<TraceDat<'a>, Error> {
        TraceDat::parse_with(data, &mut |_| {})
    }

    /// Does what [`TraceDat::parse`] does, and tells which bytes of the input are not needed any more.
    ///
    /// That matters for a v7 file that is cut off: all its CPU data must be looked at to find whose it is.
    ///
    /// # Errors
    ///
    /// As [`TraceDat::parse`].
    pub fn parse_with(
        data: &'a [u8],
        consumed: &mut dyn FnMut(Range<usize>),
    ) -> Result<TraceDat<'a>, Error> {
        if !data.starts_with(MAGIC) {
            return Err(Error::NotTraceDat);
        }
        let mut cursor = Cursor::new(data, Endian::Little);
        cursor.take(MAGIC.len() as u64);
        let ends = |cursor: &Cursor<'_>, expected| Error::EndsEarly {
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
                return Err(Error::UnknownVersion {
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
            formats: Formats::default(),
            info: Info::default(),
            diagnostics: Vec::new(),
            truncated: false,
            symbols: Symbols::None,
        };
        file.formats.abi.endian = cursor.endian;
        file.formats.abi.long_size = if long_size == 4 { 4 } else { 8 };
        file.formats.page_size = page_size;
        let mut options = Options::default();
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
            let version = cursor.cstr().ok_or(Error::EndsEarly {
                offset: at as u64,
                expected: "the version of its compression",
            })?;
            file.compression =
                Compression::from_name(&name).ok_or_else(|| Error::UnknownCompression {
                    offset: name_at,
                    found: name.clone(),
                })?;
            options.info.compression = Some((name, text_of(version)));
            let start = cursor
                .u64()
                .ok_or_else(|| ends(&cursor, "where its options are"))?;
            file.read_v7(start, cursor.position(), &mut options, consumed);
        }
        file.finish(options);
        Ok(file)
    }

    /// Returns the event formats, saved thread names and `trace_printk` strings; and symbols, after
    /// [`TraceDat::load_symbols`].
    pub fn formats(&self) -> &Formats {
        &self.formats
    }

    /// Reads the kernel's symbols, which printing stacks and function addresses needs.
    ///
    /// They are by far the largest part of a recording's header (5 MB of text), so they are left alone until
    /// asked for.
    pub fn load_symbols(&mut self) {
        match std::mem::replace(&mut self.symbols, Symbols::None) {
            Symbols::None => {}
            Symbols::Text(range) => {
                self.formats.kallsyms = Kallsyms::parse(self.data.get(range).unwrap_or_default());
            }
            Symbols::Section(section) => {
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
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Returns what could not be taken as it stood. [`Formats::diagnostics`] has more.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Returns whether the file ends before its own end.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Reads a text buffer, the kernel's own `trace` text, and gives it away piece by piece. Returns what is
    /// missing from it.
    pub fn read_text(&self, text: &TextBuffer, sink: &mut dyn FnMut(&[u8])) -> Option<Diagnostic> {
        let start = usize::try_from(text.offset)
            .unwrap_or(usize::MAX)
            .min(self.data.len());
        let rest = &self.data[start..];
        if text.compressed {
            return stream::read_chunks(
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

    fn note(&mut self, offset: u64, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::at(offset, message));
    }

    fn sections(&self) -> Sections<'a> {
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
    fn read_header_info(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
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

    fn read_v6(&mut self, cursor: &mut Cursor<'a>, options: &mut Options) {
        if self.read_v6_header(cursor, options).is_none() {
            let at = cursor.position() as u64;
            self.truncated = true;
            self.note(
                at,
                "the file ends inside its header: the list of CPU data is missing",
            );
        }
    }

    fn read_v6_header(&mut self, cursor: &mut Cursor<'a>, options: &mut Options) -> Option<()> {
        self.read_header_info(cursor)?;
        for read in [Formats::read_ftrace_formats, Formats::read_event_formats] {
            if !read(&mut self.formats, cursor) {
                return None;
            }
        }
        let size = cursor.u32()?;
        let start = cursor.position();
        self.symbols =
            Symbols::Text(start..start.saturating_add(size as usize).min(self.data.len()));
        cursor.take(u64::from(size))?;
        let size = cursor.u32()?;
        let text = cursor.take(u64::from(size))?;
        self.formats.set_printk(text);
        let size = cursor.u64()?;
        let text = cursor.take(size)?;
        self.formats.set_cmdlines(text);
        options.info.cpus = cursor.u32()?;
        let count = options.info.cpus;
        let mut top = Buffer {
            page_size: options.info.page_size,
            ..Buffer::default()
        };
        self.read_v6_buffer(cursor, options, &mut top, count)?;
        if options.clock_follows && !top.cpus.is_empty() {
            let size = cursor.u64()?;
            let clocks = cursor.take(size)?;
            options.info.set_clocks(clocks);
            top.clock.clone_from(&options.info.clock);
        }
        let announced = std::mem::take(&mut options.buffers);
        options.buffers.push(Announced {
            buffer: top,
            ..Announced::default()
        });
        // Each CPU takes 16 bytes of a file that is sound; lists that overlap could multiply.
        let mut left = self.data.len() / 16;
        for mut instance in announced.into_iter().take(MAX_INSTANCES) {
            let Some(rest) = usize::try_from(instance.offset)
                .ok()
                .and_then(|at| self.data.get(at..))
            else {
                self.truncated = true;
                let name = instance.buffer.name;
                self.note(
                    instance.offset,
                    format!("the file ends before the list of CPU data of instance {name:?}"),
                );
                continue;
            };
            // Offsets count from the start of the file, so the cursor has to as well.
            let mut cursor = Cursor::new(self.data, cursor.endian);
            cursor.take((self.data.len() - rest.len()) as u64);
            instance.buffer.page_size = options.info.page_size;
            let cpus = options
                .info
                .cpus
                .min(u32::try_from(left).unwrap_or(u32::MAX));
            let mut ignored = Options::default();
            if self
                .read_v6_buffer(&mut cursor, &mut ignored, &mut instance.buffer, cpus)
                .is_none()
            {
                self.truncated = true;
                let name = &instance.buffer.name;
                let message =
                    format!("the list of CPU data of instance {name:?} is cut off or damaged");
                self.note(instance.offset, message);
            }
            left -= instance.buffer.cpus.len().min(left);
            instance.buffer.clock.clone_from(&options.info.clock);
            options.buffers.push(instance);
        }
        Some(())
    }

    /// Reads what leads to a buffer's data: options if there are any, then a word that says how the data is kept,
    /// then place and size for every CPU.
    fn read_v6_buffer(
        &mut self,
        cursor: &mut Cursor<'a>,
        options: &mut Options,
        buffer: &mut Buffer,
        mut cpus: u32,
    ) -> Option<()> {
        let mut kind = cursor.take(10)?;
        if kind.starts_with(b"options") {
            options.info.cpus = options.info.cpus.max(cpus);
            if options.read_list(cursor, false, Some(0)) == ListEnd::Cut {
                return None;
            }
            cpus = options.info.cpus;
            kind = cursor.take(10)?;
        }
        if kind.starts_with(b"latency") {
            options.info.texts.push(TextBuffer {
                name: buffer.name.clone(),
                offset: cursor.position() as u64,
                size: cursor.rest().len() as u64,
                ..TextBuffer::default()
            });
            return Some(());
        }
        if !kind.starts_with(b"flyrecord") {
            let at = cursor.position() as u64 - 10;
            let found = String::from_utf8_lossy(kind).into_owned();
            self.note(
                at,
                format!("{found:?} stands where \"flyrecord\" or \"latency\" was expected"),
            );
            return None;
        }
        for cpu in 0..cpus {
            let offset = cursor.u64()?;
            let size = cursor.u64()?;
            buffer.cpus.push(CpuData { cpu, offset, size });
        }
        Some(())
    }

    fn read_v7(
        &mut self,
        start: u64,
        front: usize,
        options: &mut Options,
        consumed: &mut dyn FnMut(Range<usize>),
    ) {
        let sections = self.sections();
        let mut visited = Vec::new();
        let complete = sections.options(start, options, &mut visited);
        let mut lost_buffers = Vec::new();
        if !complete {
            self.truncated = true;
            lost_buffers = recover::walk_sections(&sections, front, options, &mut visited);
        }
        for wanted in id::HEADER_INFO..=id::MODULES_FILE {
            let Some(&(_, offset)) = options.sections.iter().find(|s| s.0 == wanted) else {
                continue;
            };
            match sections.at(offset).filter(|s| s.id == wanted) {
                Some(section) => self.read_section(&section, options),
                None => {
                    self.truncated |= offset >= self.data.len() as u64;
                    self.note(offset, format!("section {wanted} should be here"));
                }
            }
        }
        for section in lost_buffers {
            let buffer = self.recovered(&section, options, consumed);
            options.buffers.push(buffer);
        }
        for announced in &mut options.buffers {
            let Some(section) = sections.at(announced.offset) else {
                let name = &announced.buffer.name;
                let message =
                    format!("the data of buffer {name:?} should be here, but the file ends before");
                self.truncated = true;
                self.diagnostics
                    .push(Diagnostic::at(announced.offset, message));
                continue;
            };
            announced.buffer.compressed = section.compressed;
            if announced.text {
                announced.offset = section.body as u64;
                announced.text_size = section.size;
                self.truncated |= section.end() > self.data.len() as u64;
            }
        }
    }

    /// Finds the CPUs of a buffer whose list of them is missing.
    fn recovered(
        &mut self,
        section: &Section,
        options: &Options,
        consumed: &mut dyn FnMut(Range<usize>),
    ) -> Announced {
        let mut buffer = Buffer {
            compressed: section.compressed,
            recovered: true,
            ..Buffer::default()
        };
        let at = section.offset as u64;
        let known = options.buffers.iter().filter(|b| !b.text).count();
        if known > 0 {
            buffer.name = format!("(buffer {known})");
        }
        let cut = section.end() > self.data.len() as u64;
        self.note(
            at,
            if section.compressed {
                "the list of this buffer's CPU data is missing: CPUs were found by their chunks"
            } else {
                "the list of this buffer's CPU data is missing: CPUs were found by the times of their pages"
            },
        );
        if cut {
            self.truncated = true;
            let missing = section.end() - self.data.len() as u64;
            if section.size > 0 {
                self.note(
                    at,
                    format!("the last {missing} bytes of this buffer are missing"),
                );
            }
        }
        self.info.page_size = options.info.page_size;
        if let Some(layout) = self.page_layout(&buffer) {
            let stats: Vec<_> = options
                .info
                .cpu_stats
                .iter()
                .filter(|s| s.buffer == buffer.name)
                .collect();
            buffer.cpus = recover::cpus(&self.sections(), section, &layout, &stats, consumed);
        }
        Announced {
            offset: at,
            buffer,
            ..Announced::default()
        }
    }

    fn read_section(&mut self, section: &Section, options: &mut Options) {
        if section.id == id::KALLSYMS {
            self.symbols = Symbols::Section(*section);
            return;
        }
        if matches!(
            section.id,
            id::BTF_FILE | id::BUFFER_TEXT | id::LAST_BOOT_INFO
        ) {
            return;
        }
        let (body, fault) = self.sections().body(section);
        let faulty = fault.is_some();
        self.diagnostics.extend(fault);
        let mut cursor = Cursor::new(&body, self.formats.abi.endian);
        let complete = match section.id {
            id::HEADER_INFO => self.read_header_info(&mut cursor),
            id::FTRACE_EVENTS => self.formats.read_ftrace_formats(&mut cursor).then_some(()),
            id::EVENT_FORMATS => self.formats.read_event_formats(&mut cursor).then_some(()),
            id::PRINTK => {
                sized(cursor.u32().map(u64::from), &mut cursor).map(|t| self.formats.set_printk(t))
            }
            id::CMDLINES => sized(cursor.u64(), &mut cursor).map(|t| self.formats.set_cmdlines(t)),
            id::MODULES_FILE => sized(cursor.u64(), &mut cursor).map(|t| options.set_modules(t)),
            _ => Some(()),
        };
        if complete.is_none() || faulty {
            self.truncated |= section.end() > self.data.len() as u64;
            if !faulty {
                self.note(
                    section.offset as u64,
                    format!("section {} ends early", section.id),
                );
            }
        }
    }

    /// Settles everything the options told.
    fn finish(&mut self, options: Options) {
        let Options {
            mut info,
            buffers,
            mut diagnostics,
            ..
        } = options;
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

/// More instances of a v6 file than this are not read.
const MAX_INSTANCES: usize = 1024;

/// Returns the text that follows its size, or as much of it as is there.
fn sized<'d>(size: Option<u64>, cursor: &mut Cursor<'d>) -> Option<&'d [u8]> {
    let size = size?;
    Some(cursor.take(size).unwrap_or(cursor.rest()))
}

/// Pages are powers of two; the kernel's ring buffer has none below 4096 bytes, and 128 KiB at most per order.
fn plausible_page_size(size: u32) -> bool {
    size.is_power_of_two() && (1024..=1 << 24).contains(&size)
}
