//! What the new file is put together of.

use std::ops::Range;

use super::pages::{CpuRegion, WholeRegion};
use crate::page::PageLayout;

/// A part of the new file.
#[derive(Debug, Clone)]
pub(crate) enum NewPart {
    /// Bytes of the input.
    Copy(Range<usize>),
    Made(Vec<u8>),
    /// The data of a CPU, by its buffer's place and its own in that.
    Cpu(usize, usize),
}

impl NewPart {
    /// Returns its bytes.
    pub(crate) fn length(&self, buffers: &[NewBuffer]) -> u64 {
        match self {
            NewPart::Copy(range) => range.len() as u64,
            NewPart::Made(bytes) => bytes.len() as u64,
            NewPart::Cpu(buffer, cpu) => {
                let cpu = buffers.get(*buffer).and_then(|b| b.cpus.get(*cpu));
                cpu.map_or(0, |cpu| cpu.whole.bytes)
            }
        }
    }
}

/// A CPU of a buffer.
#[derive(Debug, Clone)]
pub(crate) struct NewCpu {
    pub cpu: u32,
    pub region: CpuRegion,
    pub whole: WholeRegion,
    /// Where its data lies in the new file.
    pub offset: u64,
}

impl NewCpu {
    pub(crate) fn new(cpu: u32, region: CpuRegion) -> NewCpu {
        NewCpu {
            cpu,
            region,
            whole: WholeRegion::default(),
            offset: 0,
        }
    }

    /// Returns a CPU of which nothing is left.
    pub(crate) fn lost(cpu: u32, layout: PageLayout, compressed: bool) -> NewCpu {
        let region = CpuRegion {
            place: 0..0,
            missing: None,
            cut: true,
            compressed,
            layout,
            time: 0,
        };
        NewCpu::new(cpu, region)
    }

    /// Returns whether it has data in the new file.
    pub(crate) fn has_data(&self) -> bool {
        self.whole.cpu.events > 0 || self.whole.cpu.places > 0 || !self.region.place.is_empty()
    }
}

/// A buffer of the new file.
#[derive(Debug, Clone)]
pub(crate) struct NewBuffer {
    /// Number of its list of CPU data in a version 6 file.
    pub list: Option<usize>,
    pub name: String,
    pub clock: Option<String>,
    pub page_size: u32,
    pub compressed: bool,
    /// Whether the list of its CPUs was gone.
    pub recovered: bool,
    pub cpus: Vec<NewCpu>,
}

/// Parts of the new file, and how long they are.
#[derive(Debug, Default)]
pub(crate) struct NewParts {
    pub parts: Vec<NewPart>,
    pub length: u64,
}

impl NewParts {
    pub(crate) fn copy(&mut self, range: Range<usize>) {
        self.length += range.len() as u64;
        self.parts.push(NewPart::Copy(range));
    }

    pub(crate) fn made(&mut self, bytes: Vec<u8>) {
        self.length += bytes.len() as u64;
        self.parts.push(NewPart::Made(bytes));
    }

    /// Adds the data of a buffer's CPUs, each at the beginning of a page, in the order of the input.
    pub(crate) fn cpus(&mut self, index: usize, buffer: &mut NewBuffer) {
        let mut order: Vec<usize> = (0..buffer.cpus.len()).collect();
        // Those of which nothing is left come last.
        order.sort_by_key(|&at| match &buffer.cpus[at].region.place {
            place if place.is_empty() => usize::MAX,
            place => place.start,
        });
        for at in order {
            let Some(cpu) = buffer.cpus.get_mut(at) else {
                continue;
            };
            if !cpu.has_data() {
                continue;
            }
            let page = cpu.region.layout.page_size as u64;
            let begins = self.length.next_multiple_of(page);
            let gap = usize::try_from(begins - self.length).unwrap_or(0);
            if gap > 0 {
                self.made(vec![0; gap]);
            }
            cpu.offset = begins;
            self.length += cpu.whole.bytes;
            self.parts.push(NewPart::Cpu(index, at));
        }
    }
}
