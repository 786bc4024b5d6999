//! Writes perf.data files, and says what a walk over them has to give.
//!
//! Layouts are those of `include/uapi/linux/perf_event.h` and
//! `tools/perf/Documentation/perf.data-file-format.txt`.

#![allow(dead_code, reason = "each test uses a part")]

mod collected;
mod numbers;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

#[allow(unused_imports, reason = "each test uses a part")]
pub(crate) use collected::{Collect, Out, walk, walk_wanting};
pub(crate) use numbers::{Numbers, framed, magic};

pub(crate) const IP: u64 = 1 << 0;
pub(crate) const TID: u64 = 1 << 1;
pub(crate) const TIME: u64 = 1 << 2;
pub(crate) const ADDR: u64 = 1 << 3;
pub(crate) const READ: u64 = 1 << 4;
pub(crate) const CALLCHAIN: u64 = 1 << 5;
pub(crate) const ID: u64 = 1 << 6;
pub(crate) const CPU: u64 = 1 << 7;
pub(crate) const PERIOD: u64 = 1 << 8;
pub(crate) const STREAM_ID: u64 = 1 << 9;
pub(crate) const RAW: u64 = 1 << 10;
pub(crate) const IDENTIFIER: u64 = 1 << 16;

/// `PERF_FORMAT_GROUP`.
pub(crate) const GROUP: u64 = 1 << 3;

pub(crate) const FINISHED_ROUND: u32 = 68;
pub(crate) const AUXTRACE: u32 = 71;
pub(crate) const COMPRESSED: u32 = 81;
pub(crate) const COMPRESSED2: u32 = 83;

/// Bytes of the newest `perf_event_attr`.
const ATTR: usize = 136;
/// Bytes of the file header.
pub(crate) const FILE_HEADER: usize = 104;

/// One event of the recording.
#[derive(Debug, Clone)]
pub(crate) struct Attr {
    pub sample_type: u64,
    pub read_format: u64,
    pub sample_id_all: bool,
    pub ids: Vec<u64>,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    Sample {
        ip: u64,
        addr: u64,
        period: u64,
        /// Counter values of a group; the first one alone without a group.
        counters: Vec<u64>,
        callchain: Vec<u64>,
        raw: Vec<u8>,
    },
    Comm(Vec<u8>),
    Fork,
    Exit,
    Mmap(Vec<u8>),
    Mmap2(Vec<u8>),
    Ksymbol(Vec<u8>),
    Lost(u64),
    LostSamples(u64),
    /// `PERF_RECORD_AUX`, which is passed over.
    Aux,
}

impl Body {
    /// A sample with nothing in it beside what its attribute asks for.
    pub(crate) fn empty_sample() -> Body {
        Body::Sample {
            ip: 0,
            addr: 0,
            period: 0,
            counters: Vec::new(),
            callchain: Vec::new(),
            raw: Vec::new(),
        }
    }
}

/// One record of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub attr: usize,
    pub time: u64,
    pub cpu: u32,
    pub pid: u32,
    pub tid: u32,
    pub misc: u16,
    pub body: Body,
}

/// What stands in the file.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    Kernel(Record),
    Round,
    /// An AUX trace with so many bytes behind it.
    AuxTrace(usize),
}

/// How the records are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Storage {
    Plain,
    /// One endless zstd frame of raw blocks this large, cut into records of this many bytes.
    Endless {
        kind: u32,
        block: usize,
        piece: usize,
    },
    /// A zstd frame, really compressed, for each round, cut into records of this many bytes.
    Frames {
        kind: u32,
        piece: usize,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Recording {
    pub big: bool,
    pub pipe: bool,
    pub storage: Storage,
    pub attrs: Vec<Attr>,
    pub items: Vec<Item>,
}

/// A recording as bytes.
pub(crate) struct Written {
    pub bytes: Vec<u8>,
    /// Where the records begin.
    pub start: usize,
    /// Where each item ends, if records are stored plainly.
    pub ends: Vec<usize>,
}

impl Attr {
    /// `struct perf_event_attr`.
    pub(crate) fn bytes(&self, big: bool, config: u64) -> Vec<u8> {
        let mut n = Numbers::new(big);
        // PERF_TYPE_TRACEPOINT
        n.u32(2).u32(ATTR as u32).u64(config).u64(1);
        n.u64(self.sample_type).u64(self.read_format);
        // sample_id_all is the 19th flag; bit fields fill words from the other end on big-endian machines.
        let flag = u64::from(self.sample_id_all);
        n.u64(if big { flag << (63 - 18) } else { flag << 18 });
        n.out.resize(ATTR, 0);
        n.out
    }

    fn has(&self, bit: u64) -> bool {
        self.sample_type & bit != 0
    }
}

impl Record {
    /// Whether its time is in the file.
    pub(crate) fn timed(&self, attrs: &[Attr]) -> bool {
        let attr = &attrs[self.attr];
        attr.has(TIME) && (attr.sample_id_all || matches!(self.body, Body::Sample { .. }))
    }

    pub(crate) fn bytes(&self, big: bool, attr: &Attr) -> Vec<u8> {
        let mut n = Numbers::new(big);
        let id = attr.ids.get(self.time as usize % attr.ids.len().max(1));
        let id = id.copied().unwrap_or(0);
        let kind = match &self.body {
            Body::Sample {
                ip,
                addr,
                period,
                counters,
                callchain,
                raw,
            } => {
                let mut part = |bit: u64, value: u64| {
                    if attr.has(bit) {
                        n.u64(value);
                    }
                };
                part(IDENTIFIER, id);
                part(IP, *ip);
                if attr.has(TID) {
                    n.u32(self.pid).u32(self.tid);
                }
                let mut part = |bit: u64, value: u64| {
                    if attr.has(bit) {
                        n.u64(value);
                    }
                };
                part(TIME, self.time);
                part(ADDR, *addr);
                part(ID, id);
                part(STREAM_ID, id);
                if attr.has(CPU) {
                    n.u32(self.cpu).u32(0);
                }
                if attr.has(PERIOD) {
                    n.u64(*period);
                }
                if attr.has(READ) {
                    counters_bytes(&mut n, attr.read_format, counters);
                }
                if attr.has(CALLCHAIN) {
                    n.u64(callchain.len() as u64);
                    for &ip in callchain {
                        n.u64(ip);
                    }
                }
                if attr.has(RAW) {
                    n.u32(raw.len() as u32);
                    n.out.extend(raw);
                }
                return framed(big, 9, self.misc, &n.out);
            }
            Body::Comm(name) => {
                n.u32(self.pid).u32(self.tid).name(name);
                3
            }
            Body::Fork | Body::Exit => {
                n.u32(self.pid).u32(self.pid + 1);
                n.u32(self.tid).u32(self.tid + 1).u64(self.time);
                if self.body == Body::Fork { 7 } else { 4 }
            }
            Body::Mmap(name) => {
                n.u32(self.pid).u32(self.tid).u64(0x1000).u64(0x2000);
                n.u64(0x3000).name(name);
                1
            }
            Body::Mmap2(name) => {
                n.u32(self.pid).u32(self.tid).u64(0x1000).u64(0x2000);
                n.u64(0x3000).u64(8).u64(9).u64(10);
                n.u32(5).u32(2).name(name);
                10
            }
            Body::Ksymbol(name) => {
                n.u64(0x4000).u32(0x500).u16(1).u16(1).name(name);
                17
            }
            Body::Lost(count) => {
                n.u64(id).u64(*count);
                2
            }
            Body::LostSamples(count) => {
                n.u64(*count);
                13
            }
            Body::Aux => {
                n.u64(1).u64(2).u64(3);
                11
            }
        };
        if attr.sample_id_all {
            if attr.has(TID) {
                n.u32(self.pid).u32(self.tid);
            }
            if attr.has(TIME) {
                n.u64(self.time);
            }
            if attr.has(ID) {
                n.u64(id);
            }
            if attr.has(STREAM_ID) {
                n.u64(id);
            }
            if attr.has(CPU) {
                n.u32(self.cpu).u32(0);
            }
            if attr.has(IDENTIFIER) {
                n.u64(id);
            }
        }
        framed(big, kind, self.misc, &n.out)
    }
}

/// Counter values as `PERF_FORMAT_*` lays them out.
fn counters_bytes(n: &mut Numbers, format: u64, counters: &[u64]) {
    let times = (format & 3).count_ones() as usize;
    let each = (1 + (format >> 2 & 1) + (format >> 4 & 1)) as usize;
    let values = if format & GROUP != 0 {
        n.u64(counters.len() as u64).u64s(&vec![7; times]);
        counters
    } else {
        &counters[..1]
    };
    for value in values {
        n.u64s(&vec![*value; each]);
    }
    if format & GROUP == 0 {
        n.u64s(&vec![7; times]);
    }
}

impl Recording {
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.items.iter().filter_map(|item| match item {
            Item::Kernel(record) => Some(record),
            _ => None,
        })
    }

    /// Writes the recording.
    pub(crate) fn write(&self) -> Written {
        let mut data = Vec::new();
        let mut ends = Vec::new();
        let mut stream = Vec::new();
        let mut begun = false;
        for item in &self.items {
            match item {
                Item::Kernel(record) => {
                    let bytes = record.bytes(self.big, &self.attrs[record.attr]);
                    match self.storage {
                        Storage::Plain => data.extend(bytes),
                        _ => stream.extend(bytes),
                    }
                }
                Item::Round => {
                    self.compress(&mut stream, &mut begun, &mut data);
                    data.extend(framed(self.big, FINISHED_ROUND, 0, &[]));
                }
                Item::AuxTrace(size) => {
                    self.compress(&mut stream, &mut begun, &mut data);
                    let mut n = Numbers::new(self.big);
                    n.u64(*size as u64).u64(0).u64(0).u64(0).u64(0);
                    data.extend(framed(self.big, AUXTRACE, 0, &n.out));
                    // Bytes that would be taken for records.
                    data.extend((0..*size).map(|at| if at % 8 == 0 { 9 } else { 0 }));
                }
            }
            ends.push(data.len());
        }
        self.compress(&mut stream, &mut begun, &mut data);
        let head = if self.pipe {
            self.pipe_head()
        } else {
            self.file_head(data.len() as u64)
        };
        let start = head.len();
        let mut bytes = head;
        bytes.extend(data);
        if !self.pipe {
            bytes.extend(self.features(bytes.len()));
        }
        ends.iter_mut().for_each(|end| *end += start);
        Written { bytes, start, ends }
    }

    /// Ends a round's compressed data, as perf flushes its stream.
    fn compress(&self, stream: &mut Vec<u8>, begun: &mut bool, out: &mut Vec<u8>) {
        let (kind, piece, bytes) = match self.storage {
            Storage::Plain => return,
            Storage::Endless { kind, block, piece } => {
                let mut bytes = Vec::new();
                if !*begun {
                    *begun = true;
                    // Magic; no checksum, no content size; a window of 8 KiB.
                    bytes.extend([0x28, 0xb5, 0x2f, 0xfd, 0, 3 << 3]);
                }
                for part in stream.chunks(block) {
                    bytes.extend(&((part.len() as u32) << 3).to_le_bytes()[..3]);
                    bytes.extend(part);
                }
                (kind, piece, bytes)
            }
            Storage::Frames { kind, piece } => {
                if stream.is_empty() {
                    return;
                }
                let bytes = compress_to_vec(stream.as_slice(), CompressionLevel::Fastest);
                (kind, piece, bytes)
            }
        };
        for part in bytes.chunks(piece) {
            let mut body = Vec::new();
            if kind == COMPRESSED2 {
                // Its size without the padding comes first.
                let mut n = Numbers::new(self.big);
                n.u64(part.len() as u64);
                body = n.out;
            }
            body.extend(part);
            if kind == COMPRESSED2 {
                body.resize(body.len().next_multiple_of(8), 0xee);
            }
            out.extend(framed(self.big, kind, 0, &body));
        }
        stream.clear();
    }

    fn pipe_head(&self) -> Vec<u8> {
        let mut n = Numbers::new(self.big);
        n.out.extend(magic(self.big));
        n.u64(16);
        for (config, attr) in self.attrs.iter().enumerate() {
            let mut body = attr.bytes(self.big, config as u64);
            let mut ids = Numbers::new(self.big);
            ids.u64s(&attr.ids);
            body.extend(ids.out);
            n.out.extend(framed(self.big, 64, 0, &body));
        }
        n.out
    }

    /// Header, ids, attributes.
    fn file_head(&self, data_size: u64) -> Vec<u8> {
        let ids_at = FILE_HEADER;
        let ids: usize = self.attrs.iter().map(|a| a.ids.len() * 8).sum();
        let attrs_at = ids_at + ids;
        let attr_size = ATTR + 16;
        let data_at = attrs_at + self.attrs.len() * attr_size;
        let mut n = Numbers::new(self.big);
        n.out.extend(magic(self.big));
        n.u64(FILE_HEADER as u64).u64(attr_size as u64);
        n.u64(attrs_at as u64)
            .u64((self.attrs.len() * attr_size) as u64);
        n.u64(data_at as u64).u64(data_size).u64(0).u64(0);
        // One feature: the host name.
        n.u64(1 << 3).u64(0).u64(0).u64(0);
        for attr in &self.attrs {
            n.u64s(&attr.ids);
        }
        let mut at = ids_at;
        for (config, attr) in self.attrs.iter().enumerate() {
            let bytes = attr.bytes(self.big, config as u64);
            n.out.extend(bytes);
            n.u64(at as u64).u64(attr.ids.len() as u64 * 8);
            at += attr.ids.len() * 8;
        }
        assert_eq!(n.out.len(), data_at);
        n.out
    }

    /// The feature sections and, before them, where they are.
    fn features(&self, at: usize) -> Vec<u8> {
        let mut n = Numbers::new(self.big);
        n.u64(at as u64 + 16).u64(4 + 8);
        n.u32(8);
        n.out.extend(b"machine\0");
        n.out
    }
}
