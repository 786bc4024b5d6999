//! Version 6: one part after another, and a list of CPU data for each buffer.
//!
//! Source: `Documentation/trace-cmd/trace-cmd.dat.v6.5.txt` of trace-cmd.

use crate::file::{CpuList, KallsymsPlace, TraceDat};
use crate::info::{Buffer, CpuPages, TextBuffer};
use crate::options::{AnnouncedBuffer, ListEnd, TraceOptions};
use tracefmt::{Cursor, FormatCatalog};

/// More instances of a v6 file than this are not read.
const MAX_INSTANCES: usize = 1024;

impl<'a> TraceDat<'a> {
    /// Reads everything behind the page size.
    pub(crate) fn read_v6(&mut self, cursor: &mut Cursor<'a>, options: &mut TraceOptions) {
        if self.read_v6_header(cursor, options).is_none() {
            let at = cursor.position() as u64;
            self.truncated = true;
            self.note(
                at,
                "the file ends inside its header: the list of CPU data is missing",
            );
        }
    }

    /// Says that there are more instances than are read, if there are.
    fn note_beyond(&mut self, announced: &[AnnouncedBuffer]) {
        if let Some(first) = announced.get(MAX_INSTANCES) {
            let what = format!("more than {MAX_INSTANCES} instances: the others are not read");
            self.note(first.offset, what);
        }
    }

    fn read_v6_header(
        &mut self,
        cursor: &mut Cursor<'a>,
        options: &mut TraceOptions,
    ) -> Option<()> {
        let begins = cursor.position();
        self.read_header_info(cursor)?;
        for read in [
            FormatCatalog::read_ftrace_formats,
            FormatCatalog::read_event_formats,
        ] {
            if !read(&mut self.formats, cursor) {
                return None;
            }
        }
        self.places.formats = Some(begins..cursor.position());
        let size = cursor.u32()?;
        let start = cursor.position();
        self.symbols =
            KallsymsPlace::Text(start..start.saturating_add(size as usize).min(self.data.len()));
        cursor.take(u64::from(size))?;
        let size = cursor.u32()?;
        let text = cursor.take(u64::from(size))?;
        self.formats.set_printk(text);
        let size = cursor.u64()?;
        let text = cursor.take(size)?;
        self.places.names = cursor.position() - text.len()..cursor.position();
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
        options.buffers.push(AnnouncedBuffer {
            buffer: top,
            ..AnnouncedBuffer::default()
        });
        // Each CPU takes 16 bytes of a file that is sound; lists that overlap could multiply.
        let mut left = self.data.len() / 16;
        self.note_beyond(&announced);
        for mut instance in announced.into_iter().take(MAX_INSTANCES) {
            self.places.lists.push(CpuList {
                name: instance.buffer.name.clone(),
                option: instance.option,
                entries: None,
                cpus: options.info.cpus,
            });
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
            let mut ignored = TraceOptions::default();
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
        options: &mut TraceOptions,
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
        let entries = Some(cursor.position());
        match self
            .places
            .lists
            .last_mut()
            .filter(|_| !buffer.name.is_empty())
        {
            Some(list) => (list.entries, list.cpus) = (entries, cpus),
            None => self.places.lists.push(CpuList {
                entries,
                cpus,
                ..CpuList::default()
            }),
        }
        for cpu in 0..cpus {
            let offset = cursor.u64()?;
            let size = cursor.u64()?;
            buffer.cpus.push(CpuPages { cpu, offset, size });
        }
        Some(())
    }
}
