//! Version 7 files that are cut off: finding what the missing options would have given.
//!
//! A recorder writes sections one after another and, behind each buffer, the options that tell where its CPUs'
//! data lies. When the end of the file is missing, the sections are found by walking from the front; and a
//! buffer's CPUs by the way trace-cmd writes them (`lib/trace-cmd/trace-output.c`, `out_write_cpu_data`): one
//! after another in order of their number, each beginning at a multiple of the page size.

use crate::info::{CpuPages, CpuStats};
use crate::options::{TraceOptions, id};
use crate::page::PageLayout;
use crate::sections::{SECTION_HEADER, SectionHeader, Sections};
use cpuset::MAX_CPUS;
use std::collections::HashSet;
use std::ops::Range;
use tracefmt::Diagnostic;

/// Walks the sections from the front of the file, takes options not read yet and notes where other sections are.
/// Returns the buffers that no option describes.
pub(crate) fn walk_sections(
    sections: &Sections<'_>,
    front: usize,
    options: &mut TraceOptions,
    visited: &mut Vec<u64>,
) -> Vec<SectionHeader> {
    let mut buffers = Vec::new();
    let mut at = front as u64;
    // Every step goes forward by a header at least, so this ends.
    while let Some(section) = sections.at(at) {
        if section.id > id::LAST {
            break;
        }
        match section.id {
            id::DONE => {
                let _ = sections.options_at(&section, options, visited);
            }
            id::BUFFER => buffers.push(section),
            id::STRINGS | id::BUFFER_TEXT => {}
            _ => {
                if !options.sections.iter().any(|s| s.0 == section.id) {
                    options.sections.push((section.id, at));
                }
            }
        }
        if section.size == 0 {
            // Its recorder did not live to write its size.
            break;
        }
        at = section.end();
    }
    let known: HashSet<u64> = options.buffers.iter().map(|known| known.offset).collect();
    buffers.retain(|buffer| !known.contains(&(buffer.offset as u64)));
    if let Some(beyond) = buffers.get(MAX_BUFFERS) {
        let what = format!(
            "more than {MAX_BUFFERS} buffers that nothing describes: the others are not read"
        );
        options
            .diagnostics
            .push(Diagnostic::at(beyond.offset as u64, what));
        buffers.truncate(MAX_BUFFERS);
    }
    buffers
}

/// More buffers than this are not looked for.
const MAX_BUFFERS: usize = 1024;

/// Finds the CPUs of a buffer. `stats` are the kernel's counts for its CPUs, if the file has them.
pub(crate) fn cpus(
    sections: &Sections<'_>,
    section: &SectionHeader,
    layout: &PageLayout,
    stats: &[&CpuStats],
    consumed: &mut dyn FnMut(Range<usize>),
) -> Vec<CpuPages> {
    let end = usize::try_from(section.end()).unwrap_or(usize::MAX);
    let end = if section.size == 0 {
        sections.data.len()
    } else {
        end.min(sections.data.len())
    };
    let start = align(section.offset + SECTION_HEADER, layout.page_size);
    // CPUs without events leave no trace in the file. The counts tell which those are.
    let mut numbers: Vec<(u32, u64)> = stats
        .iter()
        .map(|s| (s.cpu, s.entries.saturating_add(s.read)))
        .filter(|s| s.1 > 0)
        .collect();
    numbers.sort_unstable();
    numbers.dedup_by_key(|s| s.0);
    let found = RecoveredCpus {
        numbers,
        list: Vec::new(),
    };
    if section.compressed {
        by_chunks(sections, start..end, layout, found, consumed)
    } else {
        by_pages(sections, start..end, layout, found, consumed)
    }
}

/// The CPUs found so far.
struct RecoveredCpus {
    /// Number of each CPU that has data, and how many events of it there should be.
    numbers: Vec<(u32, u64)>,
    list: Vec<CpuPages>,
}

impl RecoveredCpus {
    fn push(&mut self, range: Range<usize>) {
        if range.is_empty() || self.list.len() >= MAX_CPUS {
            return;
        }
        let at = self.list.len();
        // Without counts, or with more runs than they allow, CPUs are numbered as they come.
        let next = self.list.last().map_or(0, |l| l.cpu.saturating_add(1));
        let cpu = self.numbers.get(at).map_or(next, |n| n.0);
        self.list.push(CpuPages {
            cpu,
            offset: range.start as u64,
            size: range.len() as u64,
        });
    }

    /// Returns how many events the CPU that is being looked at should have.
    fn expected(&self) -> Option<u64> {
        self.numbers.get(self.list.len()).map(|n| n.1)
    }
}

/// How often memory already looked at is given back, in bytes.
const STEP: usize = 1 << 20;

/// Compressed data: a count of chunks, and the chunks, tell where a CPU ends.
fn by_chunks(
    sections: &Sections<'_>,
    range: Range<usize>,
    layout: &PageLayout,
    mut found: RecoveredCpus,
    consumed: &mut dyn FnMut(Range<usize>),
) -> Vec<CpuPages> {
    let endian = sections.endian;
    let data = sections.data.get(..range.end).unwrap_or(sections.data);
    let mut released = range.start;
    let mut at = range.start;
    while let Some(count) = endian.u32(data, at) {
        let start = at;
        at += 4;
        if count == 0 {
            break;
        }
        for _ in 0..count {
            let (Some(packed), Some(size)) = (endian.u32(data, at), endian.u32(data, at + 4))
            else {
                at = data.len();
                break;
            };
            if packed == 0 || size == 0 || !(size as usize).is_multiple_of(layout.page_size) {
                // Not what a recorder writes: whatever this is, it is no list of chunks.
                at = data.len();
                break;
            }
            at = (at + 8).saturating_add(packed as usize).min(data.len());
            if at - released >= STEP {
                consumed(released..at);
                released = at;
            }
        }
        found.push(start..at);
        at = align(at, layout.page_size);
    }
    found.list
}

/// Uncompressed data: a page earlier than the one before it belongs to the next CPU, as does the page after the
/// last event the kernel counted.
fn by_pages(
    sections: &Sections<'_>,
    range: Range<usize>,
    layout: &PageLayout,
    mut found: RecoveredCpus,
    consumed: &mut dyn FnMut(Range<usize>),
) -> Vec<CpuPages> {
    let mut start = range.start;
    let mut released = range.start;
    let mut at = range.start;
    let mut last = 0;
    let mut events = 0u64;
    while at < range.end {
        let page = sections
            .data
            .get(at..(at + layout.page_size).min(range.end))
            .unwrap_or_default();
        let Some(header) = layout.header(page) else {
            break;
        };
        let full = found.expected().is_some_and(|expected| events >= expected);
        if at > start && (header.time < last || full) {
            found.push(start..at);
            (start, events) = (at, 0);
        }
        last = header.time;
        if found.expected().is_some() {
            events = events.saturating_add(layout.count(page, &header));
        }
        at += layout.page_size;
        if at - released >= STEP {
            consumed(released..at.min(range.end));
            released = at;
        }
    }
    found.push(start..at.min(range.end));
    found.list
}

fn align(at: usize, page_size: usize) -> usize {
    at.checked_next_multiple_of(page_size).unwrap_or(usize::MAX)
}
