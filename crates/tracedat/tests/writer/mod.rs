//! Writes small trace.dat files, so that every part of the format has a known answer.
//!
//! Source: `Documentation/trace-cmd/trace-cmd.dat.v6.5.txt` and `trace-cmd.dat.v7.5.txt` of trace-cmd.
#![allow(dead_code)]

/// Byte order and word size of the machine a file claims to be from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Machine {
    pub big: bool,
    /// Bytes of the kernel's `long`.
    pub long: u8,
    pub page_size: u32,
}

impl Default for Machine {
    fn default() -> Self {
        Machine {
            big: false,
            long: 8,
            page_size: 4096,
        }
    }
}

impl Machine {
    pub(crate) fn u16(&self, value: u16) -> [u8; 2] {
        if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }
    pub(crate) fn u32(&self, value: u32) -> [u8; 4] {
        if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }
    pub(crate) fn u64(&self, value: u64) -> [u8; 8] {
        if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }
    fn long(&self, value: u64) -> Vec<u8> {
        if self.long == 4 {
            self.u32(value as u32).to_vec()
        } else {
            self.u64(value).to_vec()
        }
    }
    /// The first word of a record.
    fn word(&self, kind: u32, delta: u32) -> [u8; 4] {
        assert!(kind < 32 && delta < 1 << 27);
        self.u32(if self.big {
            kind << 27 | delta
        } else {
            delta << 5 | kind
        })
    }

    /// A record of the test event: common fields and one number.
    pub(crate) fn payload(&self, id: u16, pid: i32, value: u32) -> Vec<u8> {
        let mut out = self.u16(id).to_vec();
        out.extend([0, 0]);
        out.extend(self.u32(pid as u32));
        out.extend(self.u32(value));
        out
    }

    /// The format of the test event.
    pub(crate) fn format(&self, name: &str, id: u16) -> String {
        format!(
            "name: {name}\nID: {id}\nformat:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
             \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
             \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
             \tfield:u32 value;\toffset:8;\tsize:4;\tsigned:0;\n\n\
             print fmt: \"value=%u\", REC->value\n"
        )
    }

    fn header_page(&self) -> String {
        let long = self.long;
        let data = 8 + u32::from(long);
        let size = self.page_size - data;
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
             \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
             \tfield: char data;\toffset:{data};\tsize:{size};\tsigned:1;\n"
        )
    }
}

/// A page of the ring buffer.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    machine: Machine,
    time: u64,
    data: Vec<u8>,
    missed: Option<Option<u64>>,
}

impl Page {
    pub(crate) fn new(machine: Machine, time: u64) -> Page {
        Page {
            machine,
            time,
            data: Vec::new(),
            missed: None,
        }
    }

    /// A record of at most 112 bytes.
    pub(crate) fn record(mut self, delta: u32, payload: &[u8]) -> Page {
        let words = payload.len().div_ceil(4);
        assert!((1..=28).contains(&words));
        self.data.extend(self.machine.word(words as u32, delta));
        self.data.extend(payload);
        self.data.resize(self.data.len().next_multiple_of(4), 0);
        self
    }

    /// A record with its length in a word of its own.
    pub(crate) fn long_record(mut self, delta: u32, payload: &[u8]) -> Page {
        self.data.extend(self.machine.word(0, delta));
        self.data.extend(self.machine.u32(payload.len() as u32 + 4));
        self.data.extend(payload);
        self.data.resize(self.data.len().next_multiple_of(4), 0);
        self
    }

    /// More time than fits into a record.
    pub(crate) fn extend(mut self, delta: u64) -> Page {
        self.data
            .extend(self.machine.word(30, (delta & ((1 << 27) - 1)) as u32));
        self.data.extend(self.machine.u32((delta >> 27) as u32));
        self
    }

    /// The time itself, without its upper five bits.
    pub(crate) fn stamp(mut self, time: u64) -> Page {
        let time = time & ((1 << 59) - 1);
        self.data
            .extend(self.machine.word(31, (time & ((1 << 27) - 1)) as u32));
        self.data.extend(self.machine.u32((time >> 27) as u32));
        self
    }

    /// A record its writer discarded, of this many bytes behind its first word.
    pub(crate) fn discarded(mut self, delta: u32, len: usize) -> Page {
        self.data.extend(self.machine.word(29, delta));
        self.data.extend(self.machine.u32(len as u32));
        self.data.resize(self.data.len() + len - 4, 0xee);
        self
    }

    /// The end of the page's data, before the commit word says so.
    pub(crate) fn null(mut self, rest: usize) -> Page {
        self.data.extend(self.machine.word(29, 0));
        self.data.resize(self.data.len() + rest, 0xdd);
        self
    }

    /// Words that are no record.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Page {
        self.data.extend(bytes);
        self
    }

    /// Events were lost before this page; how many, if it is known.
    pub(crate) fn missed(mut self, count: Option<u64>) -> Page {
        self.missed = Some(count);
        self
    }

    /// Bytes of records in the page.
    pub(crate) fn len(&self) -> usize {
        self.data.len()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut commit = self.data.len() as u64;
        let mut data = self.data.clone();
        match self.missed {
            None => {}
            Some(None) => commit |= 1 << 31,
            Some(Some(count)) => {
                commit |= 3 << 30;
                data.extend(self.machine.long(count));
            }
        }
        let mut out = self.machine.u64(self.time).to_vec();
        out.extend(self.machine.long(commit));
        out.extend(data);
        assert!(out.len() <= self.machine.page_size as usize);
        out.resize(self.machine.page_size as usize, 0);
        out
    }
}

/// One buffer of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct BufferSpec {
    pub name: String,
    pub clock: String,
    pub cpus: Vec<(u32, Vec<u8>)>,
    /// Written as text instead.
    pub text: Option<Vec<u8>>,
}

impl BufferSpec {
    pub(crate) fn new(name: &str, cpus: &[(u32, &[Page])]) -> BufferSpec {
        let bytes = |pages: &[Page]| pages.iter().flat_map(|p| p.bytes()).collect();
        BufferSpec {
            name: name.into(),
            clock: "local".into(),
            cpus: cpus
                .iter()
                .map(|(cpu, pages)| (*cpu, bytes(pages)))
                .collect(),
            text: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pack {
    None,
    Zlib,
    Zstd,
}

/// A file to be.
#[derive(Debug, Clone)]
pub(crate) struct FileSpec {
    pub machine: Machine,
    pub pack: Pack,
    pub buffers: Vec<BufferSpec>,
    /// Options that stand before the data.
    pub options: Vec<(u16, Vec<u8>)>,
    pub cmdlines: String,
    pub kallsyms: String,
    pub formats: Vec<(String, u16)>,
    /// The texts of other formats, in place of those, by the names of their systems.
    pub systems: Vec<(String, Vec<String>)>,
    /// Pages in a chunk.
    pub chunk: usize,
    /// Whether chunk tables count the word before them, as trace-cmd does since 3.2.
    pub counts_own_word: bool,
}

impl FileSpec {
    pub(crate) fn new(machine: Machine, buffers: Vec<BufferSpec>) -> FileSpec {
        FileSpec {
            machine,
            pack: Pack::None,
            buffers,
            options: Vec::new(),
            cmdlines: "7 seven\n1234 CPU 0/KVM\n".into(),
            kallsyms: "ffffffff81000000 T _text\nffffffff81000100 t helper\t[kvm]\nffffffff81000200 t last\n".into(),
            formats: vec![("first".into(), 300), ("second".into(), 301)],
            systems: Vec::new(),
            chunk: 10,
            counts_own_word: false,
        }
    }

    pub(crate) fn pack(mut self, pack: Pack) -> FileSpec {
        self.pack = pack;
        self
    }

    pub(crate) fn option(mut self, id: u16, data: impl Into<Vec<u8>>) -> FileSpec {
        self.options.push((id, data.into()));
        self
    }

    fn start(&self, version: &[u8]) -> Vec<u8> {
        let mut out = b"\x17\x08\x44tracing".to_vec();
        out.extend(version);
        out.push(0);
        out.push(u8::from(self.machine.big));
        out.push(8);
        out.extend(self.machine.u32(self.machine.page_size));
        out
    }

    fn header_info(&self) -> Vec<u8> {
        let page = self.machine.header_page();
        let mut out = b"header_page\0".to_vec();
        out.extend(self.machine.u64(page.len() as u64));
        out.extend(page.as_bytes());
        out.extend(b"header_event\0");
        let event = b"# compressed entry header\n";
        out.extend(self.machine.u64(event.len() as u64));
        out.extend(event);
        out
    }

    fn ftrace_events(&self) -> Vec<u8> {
        let format = self.machine.format("bprint", 6);
        let mut out = self.machine.u32(1).to_vec();
        out.extend(self.machine.u64(format.len() as u64));
        out.extend(format.as_bytes());
        out
    }

    fn event_formats(&self) -> Vec<u8> {
        let mut systems = self.systems.clone();
        if systems.is_empty() {
            let formats = self.formats.iter();
            let formats = formats.map(|(name, id)| self.machine.format(name, *id));
            systems.push(("test".to_owned(), formats.collect()));
        }
        let mut out = self.machine.u32(systems.len() as u32).to_vec();
        for (system, formats) in &systems {
            out.extend(system.as_bytes());
            out.push(0);
            out.extend(self.machine.u32(formats.len() as u32));
            for format in formats {
                out.extend(self.machine.u64(format.len() as u64));
                out.extend(format.as_bytes());
            }
        }
        out
    }

    fn sized4(&self, text: &[u8]) -> Vec<u8> {
        [&self.machine.u32(text.len() as u32)[..], text].concat()
    }

    fn sized8(&self, text: &[u8]) -> Vec<u8> {
        [&self.machine.u64(text.len() as u64)[..], text].concat()
    }

    fn option_bytes(&self, (id, data): &(u16, Vec<u8>)) -> Vec<u8> {
        let mut out = self.machine.u16(*id).to_vec();
        out.extend(self.machine.u32(data.len() as u32));
        out.extend(data);
        out
    }

    fn align(&self, out: &mut Vec<u8>) {
        out.resize(
            out.len().next_multiple_of(self.machine.page_size as usize),
            0,
        );
    }

    /// Writes version 6. Instances come behind the top buffer's data.
    pub(crate) fn v6(&self) -> Vec<u8> {
        let m = &self.machine;
        let mut out = self.start(b"6");
        out.extend(self.header_info());
        out.extend(self.ftrace_events());
        out.extend(self.event_formats());
        out.extend(self.sized4(self.kallsyms.as_bytes()));
        out.extend(self.sized4(b"0xffffffff82000000 : \"hello\\n\"\n"));
        out.extend(self.sized8(self.cmdlines.as_bytes()));
        let cpus = self.buffers[0].cpus.len() as u32;
        out.extend(m.u32(cpus));
        out.extend(b"options  \0");
        for option in &self.options {
            out.extend(self.option_bytes(option));
        }
        let mut places = Vec::new();
        for buffer in &self.buffers[1..] {
            let mut data = m.u64(0).to_vec();
            data.extend(buffer.name.as_bytes());
            data.push(0);
            places.push(out.len() + 6);
            out.extend(self.option_bytes(&(3, data)));
        }
        out.extend(m.u16(0));
        for (index, buffer) in self.buffers.iter().enumerate() {
            if index > 0 {
                let here = m.u64(out.len() as u64);
                out[places[index - 1]..][..8].copy_from_slice(&here);
            }
            if let Some(text) = &buffer.text {
                out.extend(b"latency  \0");
                out.extend(text);
                return out;
            }
            out.extend(b"flyrecord\0");
            let table = out.len();
            out.resize(table + 16 * buffer.cpus.len(), 0);
            if index == 0 && self.options.iter().any(|o| o.0 == 4) {
                out.extend(self.sized8(b"local global [mono] x86-tsc\n"));
            }
            for (slot, (_, data)) in buffer.cpus.iter().enumerate() {
                self.align(&mut out);
                let place = [m.u64(out.len() as u64), m.u64(data.len() as u64)].concat();
                out[table + 16 * slot..][..16].copy_from_slice(&place);
                out.extend(data);
            }
        }
        out
    }

    fn packed(&self, data: &[u8]) -> Vec<u8> {
        match self.pack {
            Pack::None => data.to_vec(),
            Pack::Zlib => miniz_oxide::deflate::compress_to_vec_zlib(data, 6),
            Pack::Zstd => {
                ruzstd::encoding::compress_to_vec(data, ruzstd::encoding::CompressionLevel::Fastest)
            }
        }
    }

    fn section(&self, out: &mut Vec<u8>, id: u16, body: &[u8], packable: bool) -> u64 {
        let m = &self.machine;
        let at = out.len() as u64;
        let packed = packable && self.pack != Pack::None;
        let mut bytes = body.to_vec();
        if packed {
            let packed = self.packed(body);
            bytes = [
                &m.u32(packed.len() as u32)[..],
                &m.u32(body.len() as u32),
                &packed,
            ]
            .concat();
        }
        out.extend(m.u16(id));
        out.extend(m.u16(u16::from(packed)));
        out.extend(m.u32(0));
        out.extend(m.u64(bytes.len() as u64));
        out.extend(bytes);
        at
    }

    /// The data of a CPU, or a text, as it stands in the file, and the size that is written for it.
    fn stored(&self, data: &[u8]) -> (Vec<u8>, u64) {
        if self.pack == Pack::None || data.is_empty() {
            return (data.to_vec(), data.len() as u64);
        }
        let m = &self.machine;
        let chunks: Vec<_> = data.chunks(self.chunk * m.page_size as usize).collect();
        let mut bytes = m.u32(chunks.len() as u32).to_vec();
        for chunk in chunks {
            let packed = self.packed(chunk);
            bytes.extend(m.u32(packed.len() as u32));
            bytes.extend(m.u32(chunk.len() as u32));
            bytes.extend(packed);
        }
        let size = bytes.len() as u64 - if self.counts_own_word { 0 } else { 4 };
        (bytes, size)
    }

    /// Writes version 7 in the order trace-cmd does: formats, a list of options, then for each buffer its data
    /// and a list of options that describes it.
    pub(crate) fn v7(&self) -> Vec<u8> {
        let m = &self.machine;
        let mut out = self.start(b"7");
        let name: &[u8] = match self.pack {
            Pack::None => b"none\0\0",
            Pack::Zlib => b"zlib\x001.2.13\0",
            Pack::Zstd => b"zstd\x001.5.4\0",
        };
        out.extend(name);
        let start = out.len();
        out.extend(m.u64(0));
        let mut options = Vec::new();
        for (id, body) in [
            (16, self.header_info()),
            (17, self.ftrace_events()),
            (18, self.event_formats()),
            (19, self.sized4(self.kallsyms.as_bytes())),
            (20, self.sized4(b"0xffffffff82000000 : \"hello\\n\"\n")),
            (21, self.sized8(self.cmdlines.as_bytes())),
            (
                25,
                self.sized8(
                    b"kvm 1134592 1 kvm_amd, Live 0xffffffffc0a00000\nnls 16384 0 - Live 0x0\n",
                ),
            ),
        ] {
            let at = self.section(&mut out, id, &body, true);
            options.push((id, m.u64(at).to_vec()));
        }
        self.section(&mut out, 15, b"strings\0", true);
        options.extend(self.options.iter().cloned());
        let mut next = start;
        self.option_list(&mut out, &options, &mut next);
        for buffer in &self.buffers {
            let at = out.len() as u64;
            let id = if buffer.text.is_some() { 22 } else { 3 };
            self.section(&mut out, id, b"", false);
            if self.pack != Pack::None {
                out[at as usize + 2..][..2].copy_from_slice(&m.u16(1));
            }
            let mut data = m.u64(at).to_vec();
            data.extend(format!("{}\0{}\0", buffer.name, buffer.clock).as_bytes());
            if let Some(text) = &buffer.text {
                let (bytes, _) = self.stored(text);
                out.extend(bytes);
            } else {
                data.extend(m.u32(m.page_size));
                data.extend(m.u32(buffer.cpus.len() as u32));
                for (cpu, pages) in &buffer.cpus {
                    self.align(&mut out);
                    let (bytes, size) = self.stored(pages);
                    data.extend(m.u32(*cpu));
                    data.extend(m.u64(out.len() as u64));
                    data.extend(m.u64(size));
                    out.extend(bytes);
                }
            }
            let size = m.u64(out.len() as u64 - at - 16);
            out[at as usize + 8..][..8].copy_from_slice(&size);
            self.option_list(&mut out, &[(id, data)], &mut next);
        }
        out
    }

    /// Writes a list of options and lets the one before it point there.
    fn option_list(&self, out: &mut Vec<u8>, options: &[(u16, Vec<u8>)], next: &mut usize) {
        let m = &self.machine;
        let here = m.u64(out.len() as u64);
        out[*next..][..8].copy_from_slice(&here);
        let mut body: Vec<u8> = options.iter().flat_map(|o| self.option_bytes(o)).collect();
        body.extend(self.option_bytes(&(0, m.u64(0).to_vec())));
        self.section(out, 0, &body, false);
        *next = out.len() - 8;
    }
}
