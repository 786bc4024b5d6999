//! Counting records by hand: as little as it takes of the containers, written apart from the program's own
//! readers so that it can be held against them. Little endian files of 64-bit machines only.

use std::io::Read;

fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(data.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(data.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(data.get(at..at + 8)?.try_into().ok()?))
}

/// `enum perf_event_type` of the kernel and `enum perf_user_event_type` of perf.
const SAMPLE: u32 = 9;
const TRACING_DATA: u32 = 66;
const COMPRESSED: u32 = 81;

/// Counts the complete samples in the first `len` bytes of a perf.data, file or pipe mode.
pub(crate) fn samples(data: &[u8], len: usize) -> usize {
    let header = u64_at(data, 8).expect("a header");
    let (begin, end) = if header == 16 {
        (16, data.len())
    } else {
        let begin = u64_at(data, 40).expect("a header") as usize;
        (begin, begin + u64_at(data, 48).expect("a header") as usize)
    };
    let data = &data[..len.min(end)];
    let mut unpacked = Vec::new();
    let mut count = 0;
    let mut at = begin;
    while let (Some(kind), Some(size)) = (u32_at(data, at), u16_at(data, at + 6)) {
        let size = usize::from(size);
        if size < 8 || at + size > data.len() {
            break;
        }
        match kind {
            SAMPLE => count += 1,
            COMPRESSED => unpacked.extend_from_slice(&data[at + 8..at + size]),
            // The formats stand behind their record.
            TRACING_DATA => at += (u32_at(data, at + 8).unwrap_or(0) as usize).next_multiple_of(8),
            _ => {}
        }
        at += size;
    }
    count + samples_inside(&unpacked)
}

/// Counts samples in the zstd stream that the compressed records are pieces of: one frame without an end,
/// flushed at the end of each record.
fn samples_inside(stream: &[u8]) -> usize {
    if stream.is_empty() {
        return 0;
    }
    // An empty last block, raw and of length 0, ends the frame wherever the recording was cut.
    let ended = [stream, &[1, 0, 0]].concat();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(ended.as_slice()).expect("a frame");
    let mut bytes = Vec::new();
    decoder.read_to_end(&mut bytes).expect("whole blocks");
    let mut count = 0;
    let mut at = 0;
    while let (Some(kind), Some(size)) = (u32_at(&bytes, at), u16_at(&bytes, at + 6)) {
        if size < 8 || at + usize::from(size) > bytes.len() {
            break;
        }
        count += usize::from(kind == SAMPLE);
        at += usize::from(size);
    }
    count
}

/// A reader of the parts of a trace.dat that stand before its data.
struct Cursor<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let part = &self.data[self.at..self.at + len];
        self.at += len;
        part
    }

    fn string(&mut self) -> &'a [u8] {
        let rest = &self.data[self.at..];
        let len = rest
            .iter()
            .position(|&b| b == 0)
            .expect("a terminated string");
        self.at += len + 1;
        &rest[..len]
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take(2).try_into().expect("2 bytes"))
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().expect("4 bytes"))
    }

    fn u64(&mut self) -> usize {
        u64::from_le_bytes(self.take(8).try_into().expect("8 bytes")) as usize
    }
}

/// Returns where each CPU's pages are in an uncompressed trace.dat: CPU, offset and size.
pub(crate) fn cpu_data(data: &[u8]) -> Vec<(u32, usize, usize)> {
    let mut cursor = Cursor { data, at: 10 };
    let version = cursor.string().to_vec();
    // Byte order, size of a long, page size.
    cursor.take(6);
    match version.as_slice() {
        b"6" => cpu_data_v6(&mut cursor),
        b"7" => cpu_data_v7(&mut cursor),
        _ => panic!("trace.dat of version {version:?}"),
    }
}

fn cpu_data_v6(cursor: &mut Cursor<'_>) -> Vec<(u32, usize, usize)> {
    for name in [&b"header_page"[..], b"header_event"] {
        assert_eq!(cursor.string(), name);
        let len = cursor.u64();
        cursor.take(len);
    }
    let formats = |cursor: &mut Cursor<'_>| {
        for _ in 0..cursor.u32() {
            let len = cursor.u64();
            cursor.take(len);
        }
    };
    formats(cursor);
    for _ in 0..cursor.u32() {
        cursor.string();
        formats(cursor);
    }
    let symbols = cursor.u32() as usize;
    cursor.take(symbols);
    // Formats of trace_printk, their size in 4 bytes; names of threads, in 8.
    let printk = cursor.u32() as usize;
    cursor.take(printk);
    let names = cursor.u64();
    cursor.take(names);
    let cpus = cursor.u32();
    assert_eq!(cursor.take(10), b"options  \0");
    while cursor.u16() != 0 {
        let len = cursor.u32() as usize;
        cursor.take(len);
    }
    assert_eq!(cursor.take(10), b"flyrecord\0");
    (0..cpus)
        .map(|cpu| (cpu, cursor.u64(), cursor.u64()))
        .collect()
}

fn cpu_data_v7(cursor: &mut Cursor<'_>) -> Vec<(u32, usize, usize)> {
    // Compression: name and version.
    cursor.string();
    cursor.string();
    let mut options = cursor.u64();
    let mut found = Vec::new();
    while options != 0 {
        // Section: id 0, flags, description, size.
        let mut section = Cursor {
            data: cursor.data,
            at: options,
        };
        section.take(8);
        let end = section.u64();
        let end = section.at + end;
        options = 0;
        while section.at < end {
            let id = section.u16();
            let len = section.u32() as usize;
            let mut option = Cursor {
                data: section.take(len),
                at: 0,
            };
            match id {
                // DONE: where more options are.
                0 => options = option.u64(),
                // BUFFER: section, name, clock, page size, CPUs.
                3 => {
                    option.u64();
                    option.string();
                    option.string();
                    option.u32();
                    for _ in 0..option.u32() {
                        found.push((option.u32(), option.u64(), option.u64()));
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// Counts the complete events of a CPU in the first `len` bytes of an uncompressed trace.dat: the ring buffer
/// as the kernel's `include/linux/ring_buffer.h` describes it.
pub(crate) fn ring_events(data: &[u8], len: usize, offset: usize, size: usize) -> usize {
    const PAGE: usize = 4096;
    let data = &data[..len];
    let mut count = 0;
    for page in (offset..offset + size).step_by(PAGE) {
        // Time stamp, then the size of what is in the page; its upper bits tell of missed events.
        let Some(commit) = u64_at(data, page + 8) else {
            break;
        };
        let end = page + 16 + (commit as usize & 0xf_ffff);
        let mut at = page + 16;
        while at < end {
            let Some(word) = u32_at(data, at) else {
                return count;
            };
            let (kind, is_event, bytes) = match word & 0x1f {
                0 => (0, true, u32_at(data, at + 4).map(|len| 4 + len as usize)),
                29 if word >> 5 == 0 => break,
                29 => (29, false, u32_at(data, at + 4).map(|len| 4 + len as usize)),
                // Time extension, absolute time stamp.
                kind @ (30 | 31) => (kind, false, Some(8)),
                kind => (kind, true, Some(4 + 4 * kind as usize)),
            };
            let Some(bytes) = bytes else { return count };
            assert!(bytes >= 4, "an event of type {kind} without length");
            at += bytes;
            if at > data.len() {
                return count;
            }
            count += usize::from(is_event);
        }
    }
    count
}
