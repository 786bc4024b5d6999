//! Makes small recordings out of large ones: trace.dat, rewritten in any version and compression.
//!
//! Layout as in `Documentation/trace-cmd/trace-cmd.dat.v6.5.txt` and `trace-cmd.dat.v7.5.txt` of trace-cmd.

use std::collections::BTreeSet;
use std::io::Read;
use std::ops::ControlFlow;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Options that hold places in the file; these are written anew.
const BUFFER: u16 = 3;
const HEADER_INFO: u16 = 16;
const FTRACE_EVENTS: u16 = 17;
const EVENT_FORMATS: u16 = 18;
const KALLSYMS: u16 = 19;
const PRINTK: u16 = 20;
const CMDLINES: u16 = 21;
/// Behind the table of buffers of version 6 there is the list of clocks, if this option is there.
const CLOCK: u16 = 4;

type Formats = Vec<Vec<u8>>;
/// Formats by system.
type Systems = Vec<(Vec<u8>, Formats)>;
type Options = Vec<(u16, Vec<u8>)>;

/// The parts of a file, of a little-endian machine with 64 bits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dat {
    page_size: u32,
    /// Layout of pages and records, as it stands in the file.
    header_info: Vec<u8>,
    ftrace: Formats,
    systems: Systems,
    kallsyms: Vec<u8>,
    printk: Vec<u8>,
    cmdlines: Vec<u8>,
    options: Options,
    clocks: Vec<u8>,
    buffers: Vec<Buffer>,
}

#[derive(Debug, Clone, Default)]
struct Buffer {
    name: Vec<u8>,
    clock: Vec<u8>,
    /// Pages by CPU.
    cpus: Vec<(u32, Vec<u8>)>,
}

/// How data is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pack {
    None,
    Zlib,
    Zstd,
}

/// Takes parts off the front of some bytes.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn at(data: &'a [u8], place: u64) -> Option<Parts<'a>> {
        data.get(usize::try_from(place).ok()?..).map(Parts)
    }

    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (part, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(part)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&b| b == 0)?;
        Some(&self.take(end as u64 + 1)?[..end])
    }

    fn sized4(&mut self) -> Option<Vec<u8>> {
        let len = self.u32()?;
        self.take(len.into()).map(<[u8]>::to_vec)
    }

    fn sized8(&mut self) -> Option<Vec<u8>> {
        let len = self.u64()?;
        self.take(len).map(<[u8]>::to_vec)
    }

    fn formats(&mut self) -> Option<Formats> {
        (0..self.u32()?).map(|_| self.sized8()).collect()
    }

    fn systems(&mut self) -> Option<Systems> {
        (0..self.u32()?)
            .map(|_| Some((self.string()?.to_vec(), self.formats()?)))
            .collect()
    }

    /// Options up to the last one, and the place that one names.
    fn options(&mut self) -> Option<(Options, u64)> {
        let mut out = Vec::new();
        loop {
            match self.u16()? {
                0 => return Some((out, Parts(self.0.get(4..)?).u64().unwrap_or(0))),
                id => out.push((id, self.sized4()?)),
            }
        }
    }
}

fn unpack(pack: Pack, data: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let done = match pack {
        Pack::None => return Some(data.to_vec()),
        Pack::Zlib => flate2::read::ZlibDecoder::new(data).read_to_end(&mut out),
        Pack::Zstd => ruzstd::decoding::StreamingDecoder::new(data)
            .ok()?
            .read_to_end(&mut out),
    };
    done.ok().map(|_| out)
}

fn packed(pack: Pack, data: &[u8]) -> Vec<u8> {
    match pack {
        Pack::None => data.to_vec(),
        Pack::Zlib => {
            let mut out = Vec::new();
            let mut encoder = flate2::read::ZlibEncoder::new(data, flate2::Compression::fast());
            encoder
                .read_to_end(&mut out)
                .expect("memory does not fail to be read");
            out
        }
        Pack::Zstd => compress_to_vec(data, CompressionLevel::Fastest),
    }
}

impl Dat {
    /// Takes a file apart. `None` when it is none, of another kind of machine, or cut off before its data.
    pub(crate) fn read(data: &[u8]) -> Option<Dat> {
        let mut parts = Parts(data.strip_prefix(b"\x17\x08\x44tracing")?);
        let version = parts.string()?;
        let (big, long) = (parts.take(1)?[0], parts.take(1)?[0]);
        let page_size = parts.u32()?;
        if big != 0 || long != 8 {
            return None;
        }
        let mut dat = Dat {
            page_size,
            ..Dat::default()
        };
        match version {
            b"6" => dat.read_v6(data, parts)?,
            b"7" => dat.read_v7(data, parts)?,
            _ => return None,
        }
        Some(dat)
    }

    fn read_v6(&mut self, data: &[u8], mut parts: Parts<'_>) -> Option<()> {
        let start = parts.0;
        for _ in ["header_page", "header_event"] {
            parts.string()?;
            parts.sized8()?;
        }
        self.header_info = start[..start.len() - parts.0.len()].to_vec();
        self.ftrace = parts.formats()?;
        self.systems = parts.systems()?;
        self.kallsyms = parts.sized4()?;
        self.printk = parts.sized4()?;
        self.cmdlines = parts.sized8()?;
        let cpus = parts.u32()?;
        let mut kind = parts.take(10)?;
        let mut instances = Vec::new();
        if kind == b"options  \0" {
            for (id, option) in options_v6(&mut parts)? {
                if id == BUFFER {
                    let mut option = Parts(&option);
                    instances.push((option.u64()?, option.string()?.to_vec()));
                } else {
                    self.options.push((id, option));
                }
            }
            kind = parts.take(10)?;
        }
        if kind != b"flyrecord\0" {
            return None;
        }
        self.buffers.push(Buffer {
            cpus: read_table(data, &mut parts, cpus)?,
            ..Buffer::default()
        });
        if self.options.iter().any(|o| o.0 == CLOCK) {
            self.clocks = parts.sized8()?;
        }
        for (place, name) in instances {
            let mut parts = Parts::at(data, place)?;
            if parts.take(10)? != b"flyrecord\0" {
                return None;
            }
            self.buffers.push(Buffer {
                name,
                clock: Vec::new(),
                cpus: read_table(data, &mut parts, cpus)?,
            });
        }
        Some(())
    }

    fn read_v7(&mut self, data: &[u8], mut parts: Parts<'_>) -> Option<()> {
        let pack = match parts.string()? {
            b"none" => Pack::None,
            b"zlib" => Pack::Zlib,
            b"zstd" => Pack::Zstd,
            _ => return None,
        };
        parts.string()?;
        let mut next = parts.u64()?;
        while next != 0 {
            let list = section(data, next, pack)?;
            let (options, following) = Parts(&list).options()?;
            for (id, option) in options {
                let place = || Parts(&option).u64();
                let body = || section(data, place()?, pack);
                match id {
                    HEADER_INFO => self.header_info = body()?,
                    FTRACE_EVENTS => self.ftrace = Parts(&body()?).formats()?,
                    EVENT_FORMATS => self.systems = Parts(&body()?).systems()?,
                    KALLSYMS => self.kallsyms = Parts(&body()?).sized4()?,
                    PRINTK => self.printk = Parts(&body()?).sized4()?,
                    CMDLINES => self.cmdlines = Parts(&body()?).sized8()?,
                    BUFFER => {
                        let buffer = read_buffer(data, &option, pack)?;
                        self.buffers.push(buffer);
                    }
                    22.. => {}
                    _ => self.options.push((id, option)),
                }
            }
            next = if following > next { following } else { 0 };
        }
        (!self.buffers.is_empty()).then_some(())
    }

    /// Keeps so many pages of each CPU, those behind lost events first, and what is needed to print them.
    pub(crate) fn trim(&mut self, pages: usize) {
        let size = self.page_size as usize;
        for buffer in &mut self.buffers {
            for (_, data) in &mut buffer.cpus {
                let all: Vec<&[u8]> = data.chunks(size).collect();
                // The upper bits of the commit word tell of lost events.
                let lost = |page: &[u8]| page.get(11).is_some_and(|b| b & 0xc0 != 0);
                let mut kept: Vec<usize> = (0..all.len().min(pages)).collect();
                if let Some(at) = (pages..all.len()).find(|&at| lost(all[at])) {
                    kept.pop();
                    kept.push(at);
                }
                *data = kept.into_iter().flat_map(|at| all[at].to_vec()).collect();
            }
        }
        let text = self.v6();
        let mut ids = Ids(BTreeSet::new());
        if let Ok(data) = tracedat::TraceDat::parse(&text) {
            data.walk(&[], &mut ids);
        }
        // A few that are recorded and never happened stay as well.
        let mut spare = 4;
        let mut keep = |format: &Vec<u8>| {
            if format_id(format).is_some_and(|id| ids.0.contains(&id)) {
                return true;
            }
            spare -= 1;
            spare > 0
        };
        self.ftrace.retain(&mut keep);
        for (_, formats) in &mut self.systems {
            formats.retain(&mut keep);
        }
        self.systems.retain(|s| !s.1.is_empty());
        for text in [&mut self.kallsyms, &mut self.printk] {
            let mut lines: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
            lines.truncate(40);
            *text = lines.concat();
        }
    }

    /// Returns the formats with their ids.
    #[allow(dead_code, reason = "for the fuzzers")]
    pub(crate) fn formats(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let all = self
            .ftrace
            .iter()
            .chain(self.systems.iter().flat_map(|s| &s.1));
        all.filter_map(|text| Some((format_id(text)?, text.as_slice())))
    }

    fn start(&self, version: &[u8]) -> Vec<u8> {
        let mut out = [b"\x17\x08\x44tracing", version, b"\0\0\x08"].concat();
        out.extend(self.page_size.to_le_bytes());
        out
    }

    fn align(&self, out: &mut Vec<u8>) {
        out.resize(out.len().next_multiple_of(self.page_size as usize), 0);
    }

    /// Writes version 6.
    pub(crate) fn v6(&self) -> Vec<u8> {
        let mut out = self.start(b"6");
        out.extend(&self.header_info);
        out.extend(formats(&self.ftrace));
        out.extend(systems(&self.systems));
        out.extend(sized4(&self.kallsyms));
        out.extend(sized4(&self.printk));
        out.extend(sized8(&self.cmdlines));
        out.extend((self.buffers[0].cpus.len() as u32).to_le_bytes());
        out.extend(b"options  \0");
        for (id, data) in &self.options {
            out.extend(option(*id, data));
        }
        let mut places = Vec::new();
        for buffer in &self.buffers[1..] {
            places.push(out.len() + 6);
            out.extend(option(BUFFER, &[&[0; 8], &buffer.name[..], b"\0"].concat()));
        }
        out.extend(0u16.to_le_bytes());
        for (index, buffer) in self.buffers.iter().enumerate() {
            if index > 0 {
                let here = (out.len() as u64).to_le_bytes();
                out[places[index - 1]..][..8].copy_from_slice(&here);
            }
            out.extend(b"flyrecord\0");
            let table = out.len();
            out.resize(table + 16 * buffer.cpus.len(), 0);
            if index == 0 && self.options.iter().any(|o| o.0 == CLOCK) {
                out.extend(sized8(&self.clocks));
            }
            for (slot, (_, data)) in buffer.cpus.iter().enumerate() {
                self.align(&mut out);
                let place = [out.len() as u64, data.len() as u64].map(u64::to_le_bytes);
                out[table + 16 * slot..][..16].copy_from_slice(place.as_flattened());
                out.extend(data);
            }
        }
        out
    }

    /// Writes version 7.
    pub(crate) fn v7(&self, pack: Pack) -> Vec<u8> {
        let mut out = self.start(b"7");
        out.extend(match pack {
            Pack::None => &b"none\0\0"[..],
            Pack::Zlib => b"zlib\x001.2.13\0",
            Pack::Zstd => b"zstd\x001.5.4\0",
        });
        let mut next = out.len();
        out.extend([0; 8]);
        let sections = [
            (HEADER_INFO, self.header_info.clone()),
            (FTRACE_EVENTS, formats(&self.ftrace)),
            (EVENT_FORMATS, systems(&self.systems)),
            (KALLSYMS, sized4(&self.kallsyms)),
            (PRINTK, sized4(&self.printk)),
            (CMDLINES, sized8(&self.cmdlines)),
        ];
        let mut options = Vec::new();
        for (id, body) in sections {
            options.push((id, (out.len() as u64).to_le_bytes().to_vec()));
            let mut bytes = body;
            if pack != Pack::None {
                let packed = packed(pack, &bytes);
                let sizes = [packed.len() as u32, bytes.len() as u32].map(u32::to_le_bytes);
                bytes = [sizes.as_flattened(), &packed].concat();
            }
            section_header(&mut out, id, pack != Pack::None, bytes.len());
            out.extend(bytes);
        }
        options.extend(self.options.iter().cloned());
        option_list(&mut out, &options, &mut next);
        for buffer in &self.buffers {
            let at = out.len();
            section_header(&mut out, BUFFER, pack != Pack::None, 0);
            let mut reported = (at as u64).to_le_bytes().to_vec();
            reported.extend([&buffer.name[..], b"\0", &buffer.clock, b"\0"].concat());
            reported.extend(self.page_size.to_le_bytes());
            reported.extend((buffer.cpus.len() as u32).to_le_bytes());
            for (cpu, pages) in &buffer.cpus {
                self.align(&mut out);
                let mut bytes = pages.clone();
                if pack != Pack::None && !pages.is_empty() {
                    let chunks: Vec<_> = pages.chunks(2 * self.page_size as usize).collect();
                    bytes = (chunks.len() as u32).to_le_bytes().to_vec();
                    for chunk in chunks {
                        let packed = packed(pack, chunk);
                        bytes.extend((packed.len() as u32).to_le_bytes());
                        bytes.extend((chunk.len() as u32).to_le_bytes());
                        bytes.extend(packed);
                    }
                }
                reported.extend(cpu.to_le_bytes());
                reported.extend((out.len() as u64).to_le_bytes());
                reported.extend((bytes.len() as u64).to_le_bytes());
                out.extend(bytes);
            }
            let size = (out.len() - at - 16) as u64;
            out[at + 8..at + 16].copy_from_slice(&size.to_le_bytes());
            option_list(&mut out, &[(BUFFER, reported)], &mut next);
        }
        out
    }
}

/// Returns the id that a format's text shows.
fn format_id(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?;
    let id = text.lines().find_map(|l| l.strip_prefix("ID: "))?;
    id.trim().parse().ok()
}

/// Collects the ids of the events that happened.
struct Ids(BTreeSet<u32>);

impl tracedat::TraceVisitor for Ids {
    fn record(&mut self, record: &tracedat::RingRecord<'_>) -> ControlFlow<()> {
        self.0.insert(record.id);
        ControlFlow::Continue(())
    }
}

/// The options of version 6, behind whose last one there is nothing.
fn options_v6(parts: &mut Parts<'_>) -> Option<Options> {
    let mut out = Vec::new();
    loop {
        match parts.u16()? {
            0 => return Some(out),
            id => out.push((id, parts.sized4()?)),
        }
    }
}

fn read_table(data: &[u8], parts: &mut Parts<'_>, cpus: u32) -> Option<Vec<(u32, Vec<u8>)>> {
    let mut out = Vec::new();
    for cpu in 0..cpus {
        let (place, size) = (parts.u64()?, parts.u64()?);
        let rest = Parts::at(data, place).map_or(&[][..], |p| p.0);
        let size = usize::try_from(size).ok()?.min(rest.len());
        out.push((cpu, rest[..size].to_vec()));
    }
    Some(out)
}

/// Returns a section of version 7 without its header, decompressed.
fn section(data: &[u8], place: u64, pack: Pack) -> Option<Vec<u8>> {
    let mut parts = Parts::at(data, place)?;
    let (_, flags, _) = (parts.u16()?, parts.u16()?, parts.u32()?);
    let size = parts.u64()?;
    let mut body = Parts(parts.take(size)?);
    if flags & 1 == 0 {
        return Some(body.0.to_vec());
    }
    let (size, _) = (body.u32()?, body.u32()?);
    unpack(pack, body.take(size.into())?)
}

fn read_buffer(data: &[u8], option: &[u8], pack: Pack) -> Option<Buffer> {
    let mut option = Parts(option);
    let mut header = Parts::at(data, option.u64()?)?;
    let flags = (header.u16()?, header.u16()?).1;
    let mut buffer = Buffer {
        name: option.string()?.to_vec(),
        clock: option.string()?.to_vec(),
        cpus: Vec::new(),
    };
    let _page_size = option.u32()?;
    for _ in 0..option.u32()? {
        let (cpu, place, size) = (option.u32()?, option.u64()?, option.u64()?);
        let mut parts = Parts::at(data, place)?;
        let mut pages = Vec::new();
        if flags & 1 == 0 {
            pages = parts.take(size)?.to_vec();
        } else if size > 0 {
            for _ in 0..parts.u32()? {
                let (packed, _) = (parts.u32()?, parts.u32()?);
                pages.extend(unpack(pack, parts.take(packed.into())?)?);
                // Enough: no more is kept.
                if pages.len() > 4 << 20 {
                    break;
                }
            }
        }
        buffer.cpus.push((cpu, pages));
    }
    Some(buffer)
}

fn sized4(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text].concat()
}

fn sized8(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text].concat()
}

fn formats(list: &[Vec<u8>]) -> Vec<u8> {
    let mut out = (list.len() as u32).to_le_bytes().to_vec();
    list.iter().for_each(|format| out.extend(sized8(format)));
    out
}

fn systems(list: &[(Vec<u8>, Vec<Vec<u8>>)]) -> Vec<u8> {
    let mut out = (list.len() as u32).to_le_bytes().to_vec();
    for (name, events) in list {
        out.extend(name);
        out.push(0);
        out.extend(formats(events));
    }
    out
}

fn option(id: u16, data: &[u8]) -> Vec<u8> {
    [&id.to_le_bytes()[..], &sized4(data)].concat()
}

fn section_header(out: &mut Vec<u8>, id: u16, packed: bool, size: usize) {
    out.extend(id.to_le_bytes());
    out.extend(u16::from(packed).to_le_bytes());
    out.extend([0; 4]);
    out.extend((size as u64).to_le_bytes());
}

/// Writes a list of options and lets the one before it point there.
fn option_list(out: &mut Vec<u8>, options: &[(u16, Vec<u8>)], next: &mut usize) {
    let here = (out.len() as u64).to_le_bytes();
    out[*next..][..8].copy_from_slice(&here);
    let mut body: Vec<u8> = options.iter().flat_map(|(id, d)| option(*id, d)).collect();
    body.extend(option(0, &[0; 8]));
    section_header(out, 0, false, body.len());
    out.extend(body);
    *next = out.len() - 8;
}
