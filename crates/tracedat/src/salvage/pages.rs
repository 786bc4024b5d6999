//! The data of one CPU: pages that are whole stay as they are, of a torn one its whole records do, and the page behind
//! what is missing says that events were lost before it. Where none is behind it, one without records does.

use std::io;
use std::ops::Range;

use salvage::{SalvageOutlet, SalvagedCpu};

use super::stored::stored;
use crate::chunks::{FileChunk, MAX_CHUNK, work_limit};
use crate::compress::{Compression, Decompressor};
use crate::page::{MissedEvents, PageLayout};

/// Bytes of the input after which they are given back.
const STEP: usize = 1 << 20;

/// A CPU's data in the file.
#[derive(Debug, Clone)]
pub(crate) struct CpuRegion {
    /// The part that is in the file.
    pub place: Range<usize>,
    /// Bytes that it should have beyond that; `None` where nobody knows.
    pub missing: Option<u64>,
    /// Whether events are missing behind it.
    pub cut: bool,
    pub compressed: bool,
    pub layout: PageLayout,
    /// Raw time of the page that says what is missing where there is no other.
    pub time: u64,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct WholeRegion {
    /// Bytes of the new data.
    pub bytes: u64,
    /// Chunks, where it is compressed.
    pub chunks: u32,
    /// What is kept and lost of the CPU; times are raw.
    pub cpu: SalvagedCpu,
    /// Bytes of the input that are not in the new file.
    pub left_out: u64,
    /// Raw time of its first page.
    pub first_page: Option<u64>,
}

/// In what form the pages of the new data are.
pub(crate) enum PageForm<'m> {
    /// As in the file: compressed in chunks if they were. `chunks` is how many an earlier pass found.
    AsFound { chunks: u32 },
    /// Not compressed, each as this returns it.
    Masked(&'m mut dyn FnMut(&[u8]) -> Vec<u8>),
    /// Not compressed.
    Unpacked,
}

/// A pass over a CPU's data.
struct RegionPass<'p, 'o, 'm> {
    data: &'p [u8],
    region: &'p CpuRegion,
    compression: Compression,
    form: PageForm<'m>,
    out: &'o mut dyn SalvageOutlet,
    found: WholeRegion,
    /// Whether events are missing before the next page.
    missed: bool,
    last_time: u64,
    /// Pages of the chunk that is made anew.
    pages: Vec<u8>,
    released: usize,
}

/// Goes over a CPU's data.
pub(crate) fn pass(
    data: &[u8],
    region: &CpuRegion,
    compression: Compression,
    form: PageForm<'_>,
    out: &mut dyn SalvageOutlet,
) -> io::Result<WholeRegion> {
    let mut pass = RegionPass {
        data,
        region,
        compression,
        form,
        out,
        found: WholeRegion::default(),
        missed: false,
        last_time: region.time,
        pages: Vec::new(),
        released: region.place.start,
    };
    if region.compressed {
        if let PageForm::AsFound { chunks } = pass.form {
            pass.write(&region.layout.endian.u32_bytes(chunks))?;
        }
        pass.chunks()?;
    } else {
        let mut at = region.place.start;
        while at < region.place.end {
            let next = region.place.end.min(at + region.layout.page_size);
            pass.page(data.get(at..next).unwrap_or_default())?;
            at = next;
            pass.release(at);
        }
    }
    pass.finish()
}

impl RegionPass<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.found.bytes += bytes.len() as u64;
        self.out.put(bytes)
    }

    fn release(&mut self, at: usize) {
        if at - self.released >= STEP {
            let range = std::mem::replace(&mut self.released, at)..at;
            self.out.consumed(range);
        }
    }

    /// Notes that events are missing here.
    fn gap(&mut self) {
        // Of several behind each other one page can say so.
        self.found.cpu.places += u64::from(!self.missed);
        self.missed = true;
    }

    /// Takes a page. Returns whether it went out as it is.
    fn page(&mut self, page: &[u8]) -> io::Result<bool> {
        let (whole, made) = self.checked(page);
        // Pages have a size, also the last one of a CPU.
        let short = self.region.layout.page_size.saturating_sub(page.len());
        match made {
            None if short > 0 => {
                let mut full = page.to_vec();
                full.resize(self.region.layout.page_size, 0);
                self.put_page(&full)?;
            }
            None => self.put_page(page)?,
            Some(made) => self.put_page(&made)?,
        }
        Ok(whole && short == 0)
    }

    /// Looks at a page: whether it may stay as it is, and what stands in its place if not.
    fn checked(&mut self, page: &[u8]) -> (bool, Option<Vec<u8>>) {
        let layout = self.region.layout;
        let Some(header) = layout.header(page) else {
            self.found.left_out += page.len() as u64;
            self.gap();
            return (false, Some(Vec::new()));
        };
        self.found.first_page.get_or_insert(header.time);
        let records = layout.whole_records(page, &header);
        let there = layout.records(page, &header).len();
        let short = there < layout.data_offset + header.committed;
        let torn = records.broken || short;
        if let Some((first, last)) = records.times {
            self.found.cpu.events += records.count;
            let from = self.found.cpu.times.map_or(first, |times| times.0);
            self.found.cpu.times = Some((from, last));
            self.last_time = last;
        }
        let mut missed = header.missed;
        let before = std::mem::take(&mut self.missed);
        if before {
            missed = missed.and(MissedEvents::Unknown);
        }
        if !torn && (!before || header.missed != MissedEvents::None) {
            return (true, None);
        }
        let end = if torn { records.end } else { there };
        let kept = page.get(layout.data_offset..end).unwrap_or_default();
        if torn {
            self.found.left_out += (page.len() - end) as u64;
            if kept.is_empty() {
                // The page that says what is missing has no records either.
                self.found.cpu.places += u64::from(!before);
                self.missed = true;
                return (false, Some(Vec::new()));
            }
        }
        let made = layout.made(header.time, kept, missed);
        if torn {
            self.gap();
        }
        (false, Some(made))
    }

    /// Takes a page of the new file.
    fn put_page(&mut self, page: &[u8]) -> io::Result<()> {
        match &mut self.form {
            PageForm::AsFound { .. } if self.region.compressed => {
                self.pages.extend_from_slice(page);
                Ok(())
            }
            PageForm::Masked(mask) if !page.is_empty() => {
                let masked = mask(page);
                self.write(&masked)
            }
            _ => self.write(page),
        }
    }

    /// Writes the pages that were gathered as a chunk.
    fn put_chunk(&mut self) -> io::Result<()> {
        let pages = std::mem::take(&mut self.pages);
        if pages.is_empty() {
            return Ok(());
        }
        let packed = stored(self.compression, &pages);
        let endian = self.region.layout.endian;
        for size in [packed.len(), pages.len()] {
            let size = u32::try_from(size).unwrap_or(u32::MAX);
            self.write(&endian.u32_bytes(size))?;
        }
        self.write(&packed)?;
        self.found.chunks += 1;
        Ok(())
    }

    /// Takes the chunks of compressed data.
    fn chunks(&mut self) -> io::Result<()> {
        let place = self.region.place.clone();
        let region = self.data.get(place.clone()).unwrap_or_default();
        let endian = self.region.layout.endian;
        let mut left = endian.u32(region, 0).unwrap_or(0);
        let mut at = 4.min(region.len());
        let mut work = work_limit(self.data.len());
        let mut decompressor = Decompressor::new(self.compression);
        let mut bytes = Vec::new();
        while left > 0 {
            let Some(chunk) = FileChunk::at(region, at, endian) else {
                self.found.left_out += (region.len() - at) as u64;
                self.gap();
                break;
            };
            left -= 1;
            let believed = chunk.size <= MAX_CHUNK && chunk.size as u64 <= work;
            if believed {
                work -= chunk.size as u64;
            }
            let good = believed
                && decompressor
                    .run(chunk.input, chunk.size, &mut bytes)
                    .is_ok()
                && !bytes.is_empty();
            if good {
                self.chunk(
                    &bytes,
                    region.get(chunk.at..chunk.end()).unwrap_or_default(),
                )?;
            } else {
                self.found.left_out += (chunk.end() - chunk.at) as u64;
                self.gap();
            }
            at = chunk.end();
            self.release(place.start + at);
        }
        Ok(())
    }

    /// Takes a chunk: as it is, if all of its pages are good and stay.
    fn chunk(&mut self, bytes: &[u8], packed: &[u8]) -> io::Result<()> {
        let mut whole = true;
        for page in bytes.chunks(self.region.layout.page_size) {
            whole &= self.page(page)?;
        }
        if !whole || !matches!(self.form, PageForm::AsFound { .. }) {
            return self.put_chunk();
        }
        self.pages.clear();
        self.found.chunks += 1;
        self.write(packed)
    }

    /// Ends the data.
    fn finish(mut self) -> io::Result<WholeRegion> {
        if self.region.cut {
            self.gap();
        }
        if self.missed {
            let page = self
                .region
                .layout
                .made(self.last_time, &[], MissedEvents::Unknown);
            self.put_page(&page)?;
            self.put_chunk()?;
        }
        self.found.cpu.lost_bytes = self.region.missing;
        if let Some(lost) = &mut self.found.cpu.lost_bytes {
            *lost = lost.saturating_add(self.found.left_out);
        }
        Ok(self.found)
    }
}
