//! All records of a file in order of time.

use crate::ahead::{self, AheadPool};
use crate::chunks::work_limit;
use crate::clock::CpuClock;
use crate::compress::Decompressor;
use crate::file::TraceDat;
use crate::page::{BigEndian, ByteOrder, LittleEndian, MissedEvents};
use crate::stream::{
    CommonFields, CpuStream, SharedStreams, StreamHead, StreamRecord, next_wanted,
};
use std::ops::{ControlFlow, Range};
use tracefmt::{Diagnostic, Endian};

/// One record of the ring buffer.
#[derive(Debug, Clone, Copy)]
pub struct RingRecord<'r> {
    /// Time as the reference reader gives it: in [`TraceMetadata::time_unit`](crate::TraceMetadata::time_unit), all
    /// conversions done.
    pub time: u64,
    /// Number of the CPU it was written on.
    pub cpu: u32,
    /// Index of its buffer in [`TraceMetadata::buffers`](crate::TraceMetadata::buffers).
    pub buffer: u16,
    /// `common_type`: the id of its format.
    pub id: u32,
    /// `common_pid`: the thread that ran, 0 for an idle CPU.
    pub pid: i32,
    /// The record, common fields included. It may end in up to three bytes of padding.
    pub data: &'r [u8],
}

/// A gap: events the kernel had no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostGap {
    /// Number of the CPU.
    pub cpu: u32,
    /// Index of the buffer in [`TraceMetadata::buffers`](crate::TraceMetadata::buffers).
    pub buffer: u16,
    /// How many, where the kernel said.
    pub count: Option<u64>,
    /// Time of the record behind the gap; of the last record if there is none.
    pub time: u64,
}

/// Takes what [`TraceDat::walk`] finds.
pub trait TraceVisitor {
    /// Takes a record. Returning [`ControlFlow::Break`] ends the walk.
    fn record(&mut self, record: &RingRecord<'_>) -> ControlFlow<()>;

    /// Takes a gap, just before the record behind it. Gaps come whether or not that record is wanted.
    fn lost(&mut self, _lost: &LostGap) {}

    /// Learns that these bytes of the input will not be read again in this walk. It comes about every MiB of a
    /// CPU's data, more often when there are many CPUs.
    fn consumed(&mut self, _range: Range<usize>) {}
}

/// How a walk went.
#[derive(Debug, Clone, Default)]
pub struct WalkEnd {
    /// Records the visitor took.
    pub records: u64,
    /// Records it did not want.
    pub skipped: u64,
    /// Whether the visitor ended the walk.
    pub stopped: bool,
    /// Sum of all gaps whose size is known.
    pub lost: u64,
    /// Number of gaps whose size is not known.
    pub lost_unknown: u64,
    /// Whether data of some CPU ends before it should.
    pub truncated: bool,
    /// From when on a CPU's data is missing though that of others may be there: the file has one CPU's behind
    /// another's. 0 where there is nothing of a CPU; `None` where nothing is missing, and where the visitor ended the
    /// walk.
    pub uneven_from: Option<u64>,
    /// What of the data could not be taken.
    pub diagnostics: Vec<Diagnostic>,
}

/// Bytes of all CPUs' data together that may be read before they are given back.
const MAPPED: usize = 16 << 20;
/// Bytes that decompressed chunks of all CPUs may take up, and how many more for every byte of the file.
const CHUNK_BUDGET: usize = 64 << 20;
const CHUNK_RATIO: usize = 32;

impl TraceDat<'_> {
    /// Visits every wanted record of all buffers in order of time.
    ///
    /// `wanted` says by event id which records to visit; when it is empty, all are. Records of equal time come
    /// in order of their buffer and CPU, as `trace-cmd report` prints them; records of one CPU always come in the
    /// order they were written in.
    ///
    /// Nothing is allocated per record. Uncompressed data is never copied; of compressed data one chunk per CPU is
    /// held at a time.
    pub fn walk<V: TraceVisitor + ?Sized>(&self, wanted: &[bool], visitor: &mut V) -> WalkEnd {
        self.walk_on(1, wanted, visitor)
    }

    /// Does the same with up to `threads` threads, which decompress chunks ahead: up to four for each CPU, a few MiB in
    /// all.
    ///
    /// What is found is the same with any number of threads. The visitor is called by this one. Others are started only
    /// if there is enough for them to do.
    pub fn walk_on<V: TraceVisitor + ?Sized>(
        &self,
        threads: usize,
        wanted: &[bool],
        visitor: &mut V,
    ) -> WalkEnd {
        let mut end = WalkEnd::default();
        let mut streams = self.streams(&mut end);
        let mut shared = SharedStreams {
            wanted,
            common: self.common(),
            decompressor: Decompressor::new(self.compression),
            ahead: None,
            work: work_limit(self.data.len()),
            budget: CHUNK_BUDGET.saturating_add(self.data.len().saturating_mul(CHUNK_RATIO)),
            step: (MAPPED / streams.len().max(1)).clamp(64 << 10, 1 << 20),
        };
        let (mut behind, mut size) = (0usize, 0);
        for stream in &streams {
            let (chunks, first) = stream.chunks();
            behind = behind.saturating_add(chunks.saturating_sub(1));
            size = first.max(size);
        }
        let workers = ahead::workers(threads, behind);
        if workers == 0 {
            self.merge(&mut streams, &mut shared, visitor, &mut end);
        } else {
            let ahead = AheadPool::new(streams.len(), size);
            shared.ahead = Some(&ahead);
            std::thread::scope(|scope| {
                let _closing = ahead.start(workers, self.compression, scope);
                self.merge(&mut streams, &mut shared, visitor, &mut end);
            });
        }
        for stream in &mut streams {
            end.skipped += stream.skipped;
            self.tell_faults(stream, &mut end);
        }
        if !end.stopped {
            let cut = streams.iter().filter_map(CpuStream::cut_from);
            end.uneven_from = cut.chain(self.missing_cpus.then_some(0)).min();
        }
        end
    }

    fn merge<'a, V: TraceVisitor + ?Sized>(
        &self,
        streams: &mut [CpuStream<'a>],
        shared: &mut SharedStreams<'_, 'a>,
        visitor: &mut V,
        end: &mut WalkEnd,
    ) {
        match self.formats.abi.endian {
            Endian::Little => merge::<LittleEndian, V>(streams, shared, visitor, end),
            Endian::Big => merge::<BigEndian, V>(streams, shared, visitor, end),
        }
    }

    /// Returns where the fields that all events share lie. They are the same in every format, so the first shows.
    fn common(&self) -> CommonFields {
        let offset = |name: &str, size: u32| {
            let field = self.formats.all().first()?.field(name)?;
            (field.size == size).then_some(field.offset as usize)
        };
        CommonFields {
            type_offset: offset("common_type", 2).unwrap_or(CommonFields::USUAL.type_offset),
            pid_offset: offset("common_pid", 4).unwrap_or(CommonFields::USUAL.pid_offset),
        }
    }

    fn streams(&self, end: &mut WalkEnd) -> Vec<CpuStream<'_>> {
        let mut streams = Vec::new();
        let mut left = self.data.len() as u64;
        for (index, buffer) in self.info.buffers.iter().enumerate() {
            let Ok(number) = u16::try_from(index) else {
                break;
            };
            let Some(layout) = self.page_layout(buffer) else {
                let message = format!(
                    "the page size of buffer {:?} is not known: its data is not read",
                    buffer.name
                );
                end.diagnostics.push(Diagnostic::new(message));
                continue;
            };
            for cpu in buffer.cpus.iter().filter(|c| c.size > 0) {
                // Data of two CPUs never overlaps in a sound file; in a crafted one it could multiply.
                let there = cpu
                    .size
                    .min((self.data.len() as u64).saturating_sub(cpu.offset));
                if there > left {
                    let message = format!(
                        "CPU {} of buffer {:?}: its data is that of others too",
                        cpu.cpu, buffer.name
                    );
                    end.diagnostics.push(Diagnostic::at(cpu.offset, message));
                    end.truncated = true;
                    return streams;
                }
                left -= there;
                let clock = CpuClock::new(&self.info, cpu.cpu as usize, buffer.name.is_empty());
                let place = (self.data, cpu.offset, cpu.size);
                streams.push(CpuStream::new(
                    (streams.len(), number, cpu.cpu),
                    place,
                    buffer.compressed,
                    layout,
                    clock,
                ));
            }
        }
        streams
    }

    fn tell_faults(&self, stream: &CpuStream<'_>, end: &mut WalkEnd) {
        let faults = &stream.faults;
        end.truncated |= faults.cut;
        let name = self
            .info
            .buffers
            .get(usize::from(stream.buffer))
            .map_or("", |b| &b.name);
        let cpu = stream.cpu;
        let mut tell = |message: String| {
            end.diagnostics.push(Diagnostic {
                offset: faults.first,
                message,
            });
        };
        if faults.pages > 0 {
            let n = faults.pages;
            tell(format!(
                "CPU {cpu} of buffer {name:?}: {n} pages have no sound header and were skipped"
            ));
        }
        if faults.records > 0 {
            let n = faults.records;
            tell(format!(
                "CPU {cpu} of buffer {name:?}: {n} pages end in a record that does not fit"
            ));
        }
        if faults.chunks > 0 {
            let n = faults.chunks;
            let why = stream.fault_text.as_deref().unwrap_or("unknown");
            tell(format!(
                "CPU {cpu} of buffer {name:?}: {n} chunks cannot be decompressed: {why}"
            ));
        }
    }
}

/// Streams that have a head, the earliest first: a binary heap over time and place in the list.
struct Heap(Vec<(u64, u32)>);

impl Heap {
    /// Puts the first entry where it belongs.
    #[inline]
    fn sift(&mut self, mut at: usize) {
        let heap = &mut self.0;
        loop {
            let left = 2 * at + 1;
            let Some(&first) = heap.get(left) else { return };
            let child = match heap.get(left + 1) {
                Some(&second) if second < first => left + 1,
                _ => left,
            };
            if heap[at] <= heap[child] {
                return;
            }
            heap.swap(at, child);
            at = child;
        }
    }

    /// Returns the last time at which the first stream still goes before all others.
    #[inline]
    fn bound(&self) -> u64 {
        let second = match (self.0.get(1), self.0.get(2)) {
            (Some(&a), Some(&b)) => a.min(b),
            (Some(&a), None) => a,
            _ => return u64::MAX,
        };
        if self.0[0].1 < second.1 {
            second.0
        } else {
            second.0.saturating_sub(1)
        }
    }
}

/// What [`run`] came to.
enum StreamRun {
    /// The stream's next record belongs behind another stream's.
    Later,
    /// The stream has no more.
    End,
    /// The visitor wants no more.
    Stop,
}

fn merge<'a, O: ByteOrder, V: TraceVisitor + ?Sized>(
    streams: &mut [CpuStream<'a>],
    shared: &mut SharedStreams<'_, 'a>,
    visitor: &mut V,
    end: &mut WalkEnd,
) {
    for stream in streams.iter_mut() {
        stream.look_ahead(shared);
    }
    let mut heap = Heap(Vec::with_capacity(streams.len()));
    for (index, stream) in (0u32..).zip(streams.iter_mut()) {
        if stream.next_page_head(shared, &mut |range| visitor.consumed(range)) {
            heap.0.push((stream.head.record.time, index));
        } else {
            tell_lost(stream, stream.head.record.time, visitor, end);
        }
    }
    for at in (0..heap.0.len() / 2).rev() {
        heap.sift(at);
    }
    while let Some(&(_, index)) = heap.0.first() {
        let bound = heap.bound();
        let Some(stream) = streams.get_mut(index as usize) else {
            return;
        };
        match run::<O, V>(stream, bound, shared, visitor, end) {
            StreamRun::Later => heap.0[0].0 = stream.head.record.time,
            StreamRun::End => {
                heap.0.swap_remove(0);
            }
            StreamRun::Stop => {
                end.stopped = true;
                return;
            }
        }
        heap.sift(0);
    }
}

/// Visits a stream's records up to a time.
fn run<'a, O: ByteOrder, V: TraceVisitor + ?Sized>(
    stream: &mut CpuStream<'a>,
    bound: u64,
    shared: &mut SharedStreams<'_, 'a>,
    visitor: &mut V,
    end: &mut WalkEnd,
) -> StreamRun {
    let (buffer, cpu) = (stream.buffer, stream.cpu);
    let emit = |found: &StreamRecord, data: &[u8], visitor: &mut V| {
        let StreamRecord { time, id, pid } = *found;
        visitor.record(&RingRecord {
            time,
            cpu,
            buffer,
            id,
            pid,
            data,
        })
    };
    loop {
        let page = stream.page();
        let mut cursor = stream.cursor();
        let mut skipped = 0;
        let StreamHead {
            mut record,
            mut len,
            missed,
            wanted,
        } = stream.head;
        if missed != MissedEvents::None {
            tell(missed, (buffer, cpu), record.time, visitor, end);
        }
        let mut flow = ControlFlow::Continue(());
        let mut records = 0;
        if wanted {
            records = 1;
            let data = page.get(cursor.at.saturating_sub(len)..cursor.at);
            flow = emit(&record, data.unwrap_or_default(), visitor);
        }
        let broken = loop {
            if flow.is_break() {
                break None;
            }
            let next = next_wanted::<O>(page, &mut cursor, &stream.clock, shared, &mut skipped);
            let data;
            match next {
                Ok(next) => (record, data) = next,
                Err(broken) => break Some(broken),
            }
            if record.time > bound {
                len = data.len();
                break None;
            }
            records += 1;
            flow = emit(&record, data, visitor);
        };
        end.records += records;
        stream.put_back(cursor, skipped, broken == Some(true));
        if flow.is_break() {
            return StreamRun::Stop;
        }
        if broken.is_none() {
            stream.head = StreamHead {
                record,
                len,
                missed: MissedEvents::None,
                wanted: true,
            };
            return StreamRun::Later;
        }
        if !stream.next_page_head(shared, &mut |range| visitor.consumed(range)) {
            tell_lost(stream, record.time, visitor, end);
            return StreamRun::End;
        }
        if stream.head.record.time > bound {
            return StreamRun::Later;
        }
    }
}

/// Says what was lost behind a stream's last record.
fn tell_lost<V: TraceVisitor + ?Sized>(
    stream: &mut CpuStream<'_>,
    time: u64,
    visitor: &mut V,
    end: &mut WalkEnd,
) {
    let missed = stream.take_pending();
    if missed != MissedEvents::None {
        tell(missed, (stream.buffer, stream.cpu), time, visitor, end);
    }
}

#[cold]
fn tell<V: TraceVisitor + ?Sized>(
    missed: MissedEvents,
    (buffer, cpu): (u16, u32),
    time: u64,
    visitor: &mut V,
    end: &mut WalkEnd,
) {
    let count = match missed {
        MissedEvents::Count(count) => {
            end.lost = end.lost.saturating_add(count);
            Some(count)
        }
        _ => {
            end.lost_unknown += 1;
            None
        }
    };
    visitor.lost(&LostGap {
        cpu,
        buffer,
        count,
        time,
    });
}
