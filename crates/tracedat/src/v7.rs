//! Version 7: what the options and the sections they lead to hold.
//!
//! Source: `Documentation/trace-cmd/trace-cmd.dat.v7.5.txt` of trace-cmd.

use crate::file::{KallsymsPlace, TraceDat};
use crate::info::Buffer;
use crate::options::{AnnouncedBuffer, TraceOptions, id};
use crate::recover;
use crate::sections::SectionHeader;
use std::ops::Range;
use tracefmt::{Cursor, Diagnostic};

impl TraceDat<'_> {
    /// Reads everything the options at `start` lead to; `front` is where the first section begins.
    pub(crate) fn read_v7(
        &mut self,
        start: u64,
        front: usize,
        options: &mut TraceOptions,
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
        section: &SectionHeader,
        options: &TraceOptions,
        consumed: &mut dyn FnMut(Range<usize>),
    ) -> AnnouncedBuffer {
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
        // Its recorder writes the size when it is complete.
        self.missing_cpus |= cut || section.size == 0;
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
        AnnouncedBuffer {
            offset: at,
            buffer,
            ..AnnouncedBuffer::default()
        }
    }

    fn read_section(&mut self, section: &SectionHeader, options: &mut TraceOptions) {
        if section.id == id::KALLSYMS {
            self.symbols = KallsymsPlace::Section(*section);
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
}

/// Returns the text that follows its size, or as much of it as is there.
fn sized<'d>(size: Option<u64>, cursor: &mut Cursor<'d>) -> Option<&'d [u8]> {
    let size = size?;
    Some(cursor.take(size).unwrap_or(cursor.rest()))
}
