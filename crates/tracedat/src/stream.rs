//! The data of one CPU of one buffer, page by page, record by record.

use crate::ahead::AheadPool;
use crate::chunks::{FileChunk, MAX_CHUNK};
use crate::clock::CpuClock;
use crate::compress::Decompressor;
use crate::page::{ByteOrder, MissedEvents, PageCursor, PageLayout, PageStep};
use std::ops::Range;
use tracefmt::Endian;

/// Where the fields that every event has lie in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommonFields {
    pub type_offset: usize,
    pub pid_offset: usize,
}

impl CommonFields {
    /// `struct trace_entry` in `include/linux/trace_events.h`.
    pub(crate) const USUAL: CommonFields = CommonFields {
        type_offset: 0,
        pid_offset: 4,
    };
}

/// Where pages come from.
#[derive(Debug)]
enum PageSource {
    /// The pages themselves are in the file.
    Pages,
    /// Chunks of pages, compressed; how many are left.
    Chunks(u32),
}

/// Chunks that were asked for and not taken: those behind the current one.
#[derive(Debug, Clone, Copy, Default)]
struct AskedChunks {
    chunks: usize,
    /// Where the last one of them ends.
    end: usize,
    /// How many chunks are behind it.
    left: u32,
}

/// A record, apart from its payload.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StreamRecord {
    /// Time, converted.
    pub time: u64,
    /// `common_type`.
    pub id: u32,
    /// `common_pid`.
    pub pid: i32,
}

/// The record at the front of a stream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StreamHead {
    pub record: StreamRecord,
    /// Bytes of its payload, which ends where the cursor stands.
    pub len: usize,
    /// What was lost before it.
    pub missed: MissedEvents,
    /// Whether the record itself is wanted, or stands here for what was lost before it.
    pub wanted: bool,
}

/// What a stream found amiss, counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StreamFaults {
    /// Pages whose header cannot be.
    pub pages: u64,
    /// Pages with a record that does not fit into them.
    pub records: u64,
    /// Where the first of either lies, in bytes from the start of the file.
    pub first: Option<u64>,
    /// The data ends inside a page or chunk.
    pub cut: bool,
    /// A chunk that could not be decompressed, and why.
    pub chunks: u64,
}

/// Everything known about one CPU's data while it is walked.
#[derive(Debug)]
pub(crate) struct CpuStream<'a> {
    /// Its place in the list of streams.
    lane: usize,
    pub buffer: u16,
    pub cpu: u32,
    pub layout: PageLayout,
    pub clock: CpuClock,
    pub faults: StreamFaults,
    /// Why the first bad chunk could not be decompressed.
    pub fault_text: Option<String>,
    pub skipped: u64,
    /// Whether the file ends before this data does.
    short: bool,
    source: PageSource,
    /// All of the CPU's data in the file.
    region: &'a [u8],
    /// Where the region begins in the file.
    base: usize,
    /// How far the region was read.
    at: usize,
    /// How far the region was given back.
    released: usize,
    /// The last chunk, decompressed.
    chunk: Vec<u8>,
    /// Bytes of the largest chunk so far: what its buffer took from the budget.
    held: usize,
    /// Chunks behind it that others decompress.
    asked: AskedChunks,
    /// The current page, without what follows its last record: in `chunk`, or in the region.
    page: Range<usize>,
    /// Where the page after it begins, in `chunk` only.
    next_page: usize,
    cursor: PageCursor,
    pub head: StreamHead,
    pending: MissedEvents,
    /// The page's last record was cut off or damaged.
    broken: bool,
}

/// What all streams of a walk share.
#[derive(Debug)]
pub(crate) struct SharedStreams<'w, 'a> {
    pub wanted: &'w [bool],
    pub common: CommonFields,
    pub decompressor: Decompressor,
    /// Decompresses chunks before their turn comes; `None` without other threads.
    pub ahead: Option<&'w AheadPool<'a>>,
    /// Bytes that decompressed chunks may still take up at one time.
    pub budget: usize,
    /// Bytes that may still be decompressed in all.
    pub work: u64,
    /// How many bytes of a CPU's data may be read before they are given back.
    pub step: usize,
}

impl SharedStreams<'_, '_> {
    #[inline(always)]
    fn wants(&self, id: u32) -> bool {
        self.wanted.is_empty() || self.wanted.get(id as usize).copied().unwrap_or(false)
    }
}

impl<'a> CpuStream<'a> {
    /// Returns the stream of a region of the file. `size` is how long the region should be.
    pub(crate) fn new(
        (lane, buffer, cpu): (usize, u16, u32),
        (file, offset, size): (&'a [u8], u64, u64),
        compressed: bool,
        layout: PageLayout,
        clock: CpuClock,
    ) -> CpuStream<'a> {
        let base = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(file.len());
        // trace-cmd before 3.2 did not count the four bytes of the chunks' number. The chunks themselves tell
        // where they end.
        let reach = size.saturating_add(if compressed { 4 } else { 0 });
        let end = usize::try_from(offset.saturating_add(reach)).unwrap_or(usize::MAX);
        let region = &file[base..end.min(file.len()).max(base)];
        let mut stream = CpuStream {
            lane,
            buffer,
            cpu,
            layout,
            clock,
            faults: StreamFaults::default(),
            fault_text: None,
            skipped: 0,
            short: (region.len() as u64) < size,
            source: PageSource::Pages,
            region,
            base,
            at: 0,
            released: 0,
            chunk: Vec::new(),
            held: 0,
            asked: AskedChunks::default(),
            page: 0..0,
            next_page: 0,
            cursor: PageCursor::default(),
            head: StreamHead::default(),
            pending: MissedEvents::None,
            broken: false,
        };
        if compressed {
            stream.source = PageSource::Chunks(layout.endian.u32(region, 0).unwrap_or(0));
            stream.at = 4.min(region.len());
        }
        stream
    }

    /// Returns the current page up to the end of its last record.
    #[inline(always)]
    pub(crate) fn page(&self) -> &[u8] {
        let bytes: &[u8] = match self.source {
            PageSource::Pages => self.region,
            PageSource::Chunks(_) => &self.chunk,
        };
        bytes.get(self.page.clone()).unwrap_or_default()
    }

    /// Returns the cursor in the current page.
    #[inline(always)]
    pub(crate) fn cursor(&self) -> PageCursor {
        self.cursor
    }

    /// Puts the cursor and the head back where the caller took them from.
    #[inline(always)]
    pub(crate) fn put_back(&mut self, cursor: PageCursor, skipped: u64, broken: bool) {
        self.cursor = cursor;
        self.skipped += skipped;
        self.broken = broken;
    }

    /// Returns from when on its data is missing, after all that there is was read; `None` if none is.
    pub(crate) fn cut_from(&self) -> Option<u64> {
        let any = self.cursor.at > 0;
        let last = || self.clock.convert(self.cursor.time);
        self.short.then(|| if any { last() } else { 0 })
    }

    /// Goes to the next page that has a wanted record, or one behind lost events, and makes it the head.
    ///
    /// Returns `false` at the end of the data. `consumed` gets what is not needed any more.
    pub(crate) fn next_page_head(
        &mut self,
        shared: &mut SharedStreams<'_, 'a>,
        consumed: &mut dyn FnMut(Range<usize>),
    ) -> bool {
        loop {
            if self.broken {
                self.broken = false;
                self.fault_here(self.cursor.at);
                let last = self.short && self.at >= self.region.len();
                if last {
                    self.faults.cut = true;
                } else {
                    self.faults.records += 1;
                }
            }
            if !self.next_page(shared, consumed) {
                return false;
            }
            let page = self.page();
            let mut cursor = self.cursor;
            let mut skipped = 0;
            let (head, broken) = match self.layout.endian {
                Endian::Little => self.first_head::<crate::page::LittleEndian>(
                    page,
                    &mut cursor,
                    &mut skipped,
                    shared,
                ),
                Endian::Big => self.first_head::<crate::page::BigEndian>(
                    page,
                    &mut cursor,
                    &mut skipped,
                    shared,
                ),
            };
            self.put_back(cursor, skipped, broken);
            if let Some(head) = head {
                self.head = head;
                self.pending = MissedEvents::None;
                return true;
            }
        }
    }

    /// Finds the first head of a page just begun: its first record, if events were lost before it, or else its
    /// first wanted record.
    fn first_head<O: ByteOrder>(
        &self,
        page: &[u8],
        cursor: &mut PageCursor,
        skipped: &mut u64,
        shared: &SharedStreams<'_, '_>,
    ) -> (Option<StreamHead>, bool) {
        if self.pending != MissedEvents::None {
            return match cursor.next::<O>(page) {
                PageStep::Record(payload) => {
                    let (id, pid) = shared.common.read::<O>(payload);
                    let wanted = shared.wants(id);
                    *skipped += u64::from(!wanted);
                    let record = StreamRecord {
                        time: self.clock.convert(cursor.time),
                        id,
                        pid,
                    };
                    let head = StreamHead {
                        record,
                        len: payload.len(),
                        missed: self.pending,
                        wanted,
                    };
                    (Some(head), false)
                }
                PageStep::End => (None, false),
                PageStep::Broken => (None, true),
            };
        }
        match next_wanted::<O>(page, cursor, &self.clock, shared, skipped) {
            Ok((record, payload)) => {
                let len = payload.len();
                (
                    Some(StreamHead {
                        record,
                        len,
                        missed: MissedEvents::None,
                        wanted: true,
                    }),
                    false,
                )
            }
            Err(broken) => (None, broken),
        }
    }

    /// Notes where something is amiss, at an offset from the start of the current page.
    fn fault_here(&mut self, in_page: usize) {
        let at = match self.source {
            PageSource::Pages => self.base + self.page.start + in_page,
            // Inside a chunk there is no place in the file; the chunk's end must do.
            PageSource::Chunks(_) => self.base + self.at,
        };
        self.faults.first.get_or_insert(at as u64);
    }

    /// Goes to the next page with a sound header.
    fn next_page(
        &mut self,
        shared: &mut SharedStreams<'_, 'a>,
        consumed: &mut dyn FnMut(Range<usize>),
    ) -> bool {
        let size = self.layout.page_size;
        loop {
            let (bytes, start): (&[u8], usize) = match self.source {
                PageSource::Pages => (self.region, self.at),
                PageSource::Chunks(_) => {
                    if self.next_page >= self.chunk.len() && !self.next_chunk(shared) {
                        // What the chunk took up may be had by another CPU.
                        shared.budget += std::mem::take(&mut self.held);
                        self.chunk = Vec::new();
                        self.page = 0..0;
                        self.release(0, consumed);
                        return false;
                    }
                    (&self.chunk, self.next_page)
                }
            };
            let Some(rest) = bytes.get(start..).filter(|r| !r.is_empty()) else {
                self.page = 0..0;
                self.release(0, consumed);
                return false;
            };
            let page = &rest[..size.min(rest.len())];
            let len = page.len();
            let header = self.layout.header(page);
            let records = header.map_or(0, |h| self.layout.records(page, &h).len());
            match self.source {
                PageSource::Pages => self.at = start + len,
                PageSource::Chunks(_) => self.next_page = start + len,
            }
            self.release(shared.step, consumed);
            self.look_ahead(shared);
            let Some(header) = header else {
                self.page = start..start;
                if len < size && self.short {
                    self.faults.cut = true;
                } else {
                    self.faults.pages += 1;
                }
                self.fault_here(0);
                continue;
            };
            self.faults.cut |= self.short && records < self.layout.data_offset + header.committed;
            self.page = start..start + records;
            self.cursor = PageCursor {
                at: self.layout.data_offset,
                time: header.time,
            };
            self.pending = self.pending.and(header.missed);
            return true;
        }
    }

    /// Decompresses the next chunk that can be.
    fn next_chunk(&mut self, shared: &mut SharedStreams<'_, 'a>) -> bool {
        while let PageSource::Chunks(left @ 1..) = &mut self.source {
            *left -= 1;
            let here = self.base + self.at;
            let Some(chunk) = FileChunk::at(self.region, self.at, self.layout.endian) else {
                *left = 0;
                self.at = self.region.len();
                self.faults.first.get_or_insert(here as u64);
                if self.short {
                    self.faults.cut = true;
                } else {
                    self.faults.chunks += 1;
                    self.fault_text
                        .get_or_insert_with(|| "its size reaches beyond the CPU's data".into());
                }
                return false;
            };
            self.at = chunk.end();
            self.next_page = 0;
            match self.decompress(&chunk, shared) {
                Ok(()) => return true,
                Err(text) => {
                    self.chunk.clear();
                    self.faults.chunks += 1;
                    self.faults.first.get_or_insert(here as u64);
                    self.fault_text.get_or_insert(text);
                    // Nobody knows how many events were in it.
                    self.pending = MissedEvents::Unknown;
                }
            }
        }
        false
    }

    /// Makes a chunk the current one, if the limits allow.
    fn decompress(
        &mut self,
        chunk: &FileChunk<'a>,
        shared: &mut SharedStreams<'_, 'a>,
    ) -> Result<(), String> {
        let size = chunk.size;
        let ahead = shared.ahead.filter(|_| self.asked.chunks > 0);
        self.asked.chunks -= usize::from(ahead.is_some());
        // The buffer is kept, so only what it must grow by is taken from the budget.
        let more = size.saturating_sub(self.held);
        if size > MAX_CHUNK || more > shared.budget || size as u64 > shared.work {
            if let Some(ahead) = ahead {
                ahead.forget(self.lane);
            }
            return Err(format!(
                "its decompressed size, {size} bytes, is not believed"
            ));
        }
        shared.budget -= more;
        shared.work -= size as u64;
        self.held += more;
        if let Some(ahead) = ahead
            && ahead.take(self.lane, &mut self.chunk, &mut shared.decompressor)
        {
            // It may have been the buffer of a larger chunk.
            self.chunk.shrink_to(self.held);
            return Ok(());
        }
        if self.chunk.capacity() < size {
            self.chunk = Vec::with_capacity(size);
        }
        shared.decompressor.run(chunk.input, size, &mut self.chunk)
    }

    /// Asks for the chunks behind the current one, if others decompress them ahead.
    #[inline]
    pub(crate) fn look_ahead(&mut self, shared: &SharedStreams<'_, 'a>) {
        if let Some(ahead) = shared.ahead
            && self.asked.chunks < ahead.depth()
            && (ahead.early() || self.next_page >= self.chunk.len())
        {
            self.ask(ahead);
        }
    }

    #[cold]
    fn ask(&mut self, ahead: &AheadPool<'a>) {
        let PageSource::Chunks(left) = self.source else {
            return;
        };
        if self.asked.chunks == 0 {
            (self.asked.end, self.asked.left) = (self.at, left);
        }
        while self.asked.chunks < ahead.depth() && self.asked.left > 0 {
            let chunk = FileChunk::at(self.region, self.asked.end, self.layout.endian);
            let Some(chunk) = chunk.filter(|&chunk| ahead.ask(self.lane, chunk)) else {
                return;
            };
            self.asked.end = chunk.end();
            self.asked.left -= 1;
            self.asked.chunks += 1;
        }
    }

    /// Returns how many chunks there can be, and how large the first one says it is.
    pub(crate) fn chunks(&self) -> (usize, usize) {
        let PageSource::Chunks(left) = self.source else {
            return (0, 0);
        };
        let first = FileChunk::at(self.region, self.at, self.layout.endian);
        let most = self.region.len() / FileChunk::HEAD;
        ((left as usize).min(most), first.map_or(0, |c| c.size))
    }

    /// Gives back what was read, once it is `step` bytes; all of it at the end.
    fn release(&mut self, step: usize, consumed: &mut dyn FnMut(Range<usize>)) {
        // The current page of uncompressed data is still in use; so is nothing of compressed data.
        let done = match self.source {
            PageSource::Pages if step > 0 => self.at.saturating_sub(self.layout.page_size),
            _ => self.at,
        };
        if done > self.released && done - self.released >= step {
            consumed(self.base + self.released..self.base + done);
            self.released = done;
        }
    }

    /// Takes what was lost behind the last record: a page said so that had no record.
    pub(crate) fn take_pending(&mut self) -> MissedEvents {
        std::mem::take(&mut self.pending)
    }
}

/// Steps to the next wanted record of a page. The error says whether the page ends in something broken.
#[inline(always)]
pub(crate) fn next_wanted<'p, O: ByteOrder>(
    page: &'p [u8],
    cursor: &mut PageCursor,
    clock: &CpuClock,
    shared: &SharedStreams<'_, '_>,
    skipped: &mut u64,
) -> Result<(StreamRecord, &'p [u8]), bool> {
    loop {
        match cursor.next::<O>(page) {
            PageStep::Record(payload) => {
                let (id, pid) = shared.common.read::<O>(payload);
                if !shared.wants(id) {
                    *skipped += 1;
                    continue;
                }
                return Ok((
                    StreamRecord {
                        time: clock.convert(cursor.time),
                        id,
                        pid,
                    },
                    payload,
                ));
            }
            PageStep::End => return Err(false),
            PageStep::Broken => return Err(true),
        }
    }
}

impl CommonFields {
    /// Reads a record's `common_type` and `common_pid`; what is not there is 0.
    #[inline(always)]
    fn read<O: ByteOrder>(self, payload: &[u8]) -> (u32, i32) {
        match payload.first_chunk::<8>() {
            // Where they are in every kernel there has been.
            Some(&[a, b, _, _, c, d, e, f]) if self == CommonFields::USUAL => (
                u32::from(O::u16([a, b])),
                O::u32([c, d, e, f]).cast_signed(),
            ),
            _ => self.read_anywhere::<O>(payload),
        }
    }

    #[cold]
    fn read_anywhere<O: ByteOrder>(self, payload: &[u8]) -> (u32, i32) {
        let id = payload
            .get(self.type_offset..)
            .and_then(|p| p.first_chunk::<2>());
        let pid = payload
            .get(self.pid_offset..)
            .and_then(|p| p.first_chunk::<4>());
        (
            id.map_or(0, |&b| u32::from(O::u16(b))),
            pid.map_or(0, |&b| O::u32(b).cast_signed()),
        )
    }
}
