//! The lines `perf script` prints for an event.
//!
//! Source: `tools/perf/builtin-script.c` (`process_event`, `perf_sample__fprintf_start`) and
//! `tools/perf/util/evsel_fprintf.c` of kernel 6.1, and what perf 6.1 prints of recordings made to ask it.
//!
//! perf leaves events out that happened in a guest unless it is told where the guest's symbols are; here
//! they are printed, as `perf script --guestkallsyms=FILE` does. Symbols are never looked up in files of the
//! machine that reads the recording: what perf prints with an empty `--symfs` is printed.

use event::{Body, Event, EventType, Sample, Side};
use tracefmt::{Formats, PrintStyle};

use crate::perf_digits::{decimal, hex, hex16, nine, six};
use crate::perf_maps::{Files, KernelFile, SpaceId};
use crate::perf_threads::{CpuMode, Machine};

/// Entries of a call chain that are printed (`PERF_MAX_STACK_DEPTH`).
const MAX_STACK: usize = 127;

/// Numbers in call chains that tell where the following addresses are (`PERF_CONTEXT_*`).
mod context {
    pub const HV: u64 = -32i64 as u64;
    pub const KERNEL: u64 = -128i64 as u64;
    pub const USER: u64 = -512i64 as u64;
    /// The lowest number that is no address (`PERF_CONTEXT_MAX`).
    pub const LOWEST: u64 = -4095i64 as u64;
}

const NANOSECONDS: u64 = 1_000_000_000;

/// What of a recording and of the wish decides how lines look.
#[derive(Debug, Clone, Default)]
pub struct PerfStyle<'f> {
    /// Whether times have nine decimals instead of six: `perf script --ns`.
    pub nanoseconds: bool,
    /// Whether tracepoints show addresses: any tracepoint of the recording has call chains.
    pub tracepoint_addresses: bool,
    /// Whether any event shows addresses: a tracepoint, or one that is none. Mappings are not kept otherwise.
    pub addresses: bool,
    /// Whether the recording is in pipe mode, where perf prints no file names behind tracepoints.
    pub pipe: bool,
    /// The kernels and modules that the recording has build ids of, in its order.
    pub kernel_files: Vec<KernelFile<'f>>,
}

/// The column of an event type's name.
#[derive(Debug, Clone)]
struct NameColumn {
    text: [u8; NameColumn::INLINE],
    len: u8,
    long: Option<Box<[u8]>>,
}

impl NameColumn {
    const INLINE: usize = 64;

    fn new(label: &[u8], width: usize) -> NameColumn {
        let mut line = vec![b' '; width.saturating_sub(label.len())];
        line.extend_from_slice(label);
        line.extend_from_slice(b": ");
        let mut column = NameColumn {
            text: [0; NameColumn::INLINE],
            len: 0,
            long: None,
        };
        match column.text.get_mut(..line.len()) {
            Some(place) => {
                place.copy_from_slice(&line);
                column.len = line.len() as u8;
            }
            None => column.long = Some(line.into_boxed_slice()),
        }
        column
    }

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        match &self.long {
            None => {
                // A copy of fixed size, cut to length behind it, is faster than one of any size.
                let end = out.len() + self.len as usize;
                out.extend_from_slice(&self.text);
                out.truncate(end);
            }
            Some(long) => out.extend_from_slice(long),
        }
    }
}

/// The columns of CPU and second, which hardly change from one line to the next.
#[derive(Debug)]
struct Clock {
    /// Nanoseconds of the second in `text`.
    second: u64,
    /// The second with its point: 11 digits and the point at most.
    text: [u8; 16],
    len: u8,
}

impl Clock {
    fn new() -> Clock {
        let mut clock = Clock {
            second: 0,
            text: [0; 16],
            len: 0,
        };
        clock.set(0);
        clock
    }

    /// Times are 12 columns wide at least, six of them decimals (`%12s`, `%5lu.%09llu`).
    #[cold]
    fn set(&mut self, second: u64) {
        let mut text = Vec::with_capacity(16);
        decimal(&mut text, second, 5);
        text.push(b'.');
        self.second = second.wrapping_mul(NANOSECONDS);
        self.len = text.len().min(self.text.len()) as u8;
        for (place, byte) in self.text.iter_mut().zip(text) {
            *place = byte;
        }
    }

    #[inline]
    fn put(&mut self, out: &mut Vec<u8>, time: u64, nanoseconds: bool) {
        let mut part = time.wrapping_sub(self.second);
        if part >= NANOSECONDS {
            self.set(time / NANOSECONDS);
            part = time % NANOSECONDS;
        }
        let part = part as u32;
        let end = out.len() + self.len as usize;
        out.extend_from_slice(&self.text);
        out.truncate(end);
        if nanoseconds {
            out.extend_from_slice(&nine(part));
        } else {
            out.extend_from_slice(&six(part / 1000));
        }
        out.extend_from_slice(b": ");
    }
}

/// Prints the events of one recording as `perf script` does.
///
/// It has to see all side records and the events in time order: names of threads and what is mapped where
/// change over time.
#[derive(Debug)]
pub struct PerfPrinter {
    style: PerfStyle<'static>,
    names: Vec<Option<NameColumn>>,
    width: usize,
    clock: Clock,
    files: Files,
    host: Machine,
    guest: Machine,
}

/// Stands for what is not known of an event that is no sample of perf's.
const NO_SAMPLE: Sample<'static> = Sample {
    misc: 0,
    ip: None,
    addr: None,
    period: None,
    callchain: None,
    big_endian: false,
    has_cpu: true,
    tracepoint: true,
};

impl PerfPrinter {
    /// Returns a printer of one recording.
    pub fn new(style: &PerfStyle<'_>) -> PerfPrinter {
        let mut files = Files::new();
        PerfPrinter {
            names: Vec::new(),
            width: 0,
            clock: Clock::new(),
            host: Machine::new(false, style.addresses, &style.kernel_files, &mut files),
            guest: Machine::new(true, style.addresses, &style.kernel_files, &mut files),
            files,
            style: PerfStyle {
                kernel_files: Vec::new(),
                ..*style
            },
        }
    }

    /// Takes note of a kind of event: the column of names is as wide as the longest name in the recording.
    /// To be called for every kind before the first event.
    pub fn declare(&mut self, ty: &EventType<'_>) {
        self.width = self.width.max(label(ty).len());
        self.names.clear();
    }

    /// Takes what is told beside events.
    pub fn side(&mut self, side: &Side<'_>) {
        match *side {
            Side::Comm { pid, tid, comm, .. } => self.host.comm(pid, tid, comm.as_bytes()),
            Side::Fork {
                time,
                pid,
                tid,
                ppid,
                ptid,
            } => {
                self.host.fork(pid, tid, ppid, ptid, time == 0);
            }
            Side::Exit { tid, .. } => self.host.exit(tid),
            Side::Mmap {
                pid,
                tid,
                start,
                len,
                pgoff,
                misc,
                path,
                ..
            } => {
                let machine = match CpuMode::of(misc).is_guest() {
                    true => &mut self.guest,
                    false => &mut self.host,
                };
                let path = path.as_bytes();
                machine.mmap(pid, tid, start, len, pgoff, misc, path, &mut self.files);
            }
            Side::Ksymbol {
                start,
                len,
                name,
                gone,
                ..
            } if self.style.addresses => {
                let kernel = self.host.kernel_mut();
                if gone {
                    kernel.remove_symbol(start);
                } else {
                    kernel.add_symbol(start, len, name.as_bytes(), &mut self.files);
                }
            }
            _ => {}
        }
    }

    /// Appends the lines of one event, the last line feed included. `env` is what the recording's formats
    /// refer to.
    pub fn event(&mut self, event: &Event<'_>, env: &Formats, out: &mut Vec<u8>) {
        let sample = event.sample.unwrap_or(&NO_SAMPLE);
        let mode = CpuMode::of(sample.misc);
        let address = match sample.ip {
            Some(ip) if !sample.tracepoint || self.style.tracepoint_addresses => Some(ip),
            _ => None,
        };
        let stack = address.and(sample.callchain);
        let guest = mode.is_guest();
        let machine = if guest {
            &mut self.guest
        } else {
            &mut self.host
        };
        let (columns, space) = machine.running(event.pid, event.tid);
        match stack {
            None => columns.put_wide(out),
            Some(_) => columns.put_narrow(out),
        }
        if sample.has_cpu {
            cpu(out, event.cpu);
        }
        // Events without time stamps have no such column, and nothing happens in the clock's first nanosecond.
        if event.time != 0 {
            self.clock.put(out, event.time, self.style.nanoseconds);
        }
        if !sample.tracepoint {
            decimal(out, sample.period.unwrap_or(0), 10);
            out.push(b' ');
        }
        self.name(event.ty).put(out);
        match event.body {
            Body::Raw(record) => {
                match event.ty.format {
                    Some(format) => format.print(record, env, PrintStyle::Perf, out),
                    // perf cannot print such an event at all: its format was lost with the file's end.
                    None => hex_record(record, out),
                }
            }
            Body::Text { text, .. } => out.extend_from_slice(text.as_bytes()),
            Body::None => {}
        }
        let Some(address) = address else {
            out.push(b'\n');
            return;
        };
        let machine = if guest { &self.guest } else { &self.host };
        let place = Place {
            machine,
            files: &self.files,
            space,
            // perf leaves file names out behind tracepoints of piped recordings.
            file: !(self.style.pipe && sample.tracepoint),
        };
        match stack {
            Some(chain) => {
                out.push(b'\n');
                place.chain(out, chain, sample.big_endian);
                out.push(b'\n');
            }
            None => {
                out.push(b' ');
                out.extend_from_slice(&hex16(address));
                place.ending(out, address, mode);
            }
        }
    }

    /// Returns the column of a type's name.
    #[inline]
    fn name(&mut self, ty: &EventType<'_>) -> &NameColumn {
        let index = ty.index as usize;
        if self.names.len() <= index {
            // Kinds of events are few: each has an attribute of at least 64 bytes in the recording.
            self.names.resize(index.saturating_add(1), None);
        }
        let width = self.width;
        self.names[index].get_or_insert_with(|| NameColumn::new(&label(ty), width))
    }
}

/// Returns the name of a kind of event as perf prints it. Recordings in which names are missing have those of
/// the formats.
fn label(ty: &EventType<'_>) -> Vec<u8> {
    if ty.label.is_empty() && !ty.name.is_empty() {
        return format!("{}:{}", ty.system, ty.name).into_bytes();
    }
    ty.label.as_bytes().to_vec()
}

/// Appends the column of the CPU (`[%03d]`).
#[inline]
fn cpu(out: &mut Vec<u8>, cpu: i32) {
    match u32::try_from(cpu) {
        Ok(cpu @ 0..1000) => {
            let [_, _, _, a, b, c] = six(cpu);
            out.extend_from_slice(&[b'[', a, b, c, b']', b' ']);
        }
        _ => out.extend_from_slice(format!("[{cpu:03}] ").as_bytes()),
    }
}

/// Where addresses of one event are looked up.
struct Place<'p> {
    machine: &'p Machine,
    files: &'p Files,
    space: Option<SpaceId>,
    /// Whether file names are printed.
    file: bool,
}

impl Place<'_> {
    /// Appends the lines of a call chain.
    fn chain(&self, out: &mut Vec<u8>, chain: &[u8], big_endian: bool) {
        let start = out.len();
        let mut mode = CpuMode::User;
        let mut left = MAX_STACK;
        for bytes in chain.chunks_exact(8) {
            if left == 0 {
                break;
            }
            let bytes: [u8; 8] = bytes.try_into().unwrap_or_default();
            let address = match big_endian {
                true => u64::from_be_bytes(bytes),
                false => u64::from_le_bytes(bytes),
            };
            if address < context::LOWEST {
                left -= 1;
                self.entry(out, address, mode);
                continue;
            }
            mode = match address {
                context::KERNEL => CpuMode::Kernel,
                context::USER => CpuMode::User,
                context::HV => CpuMode::Other,
                _ => {
                    // perf takes a chain with any other number for damaged, and prints nothing of it.
                    out.truncate(start);
                    return;
                }
            };
        }
    }

    /// Appends the line of one address in a call chain.
    fn entry(&self, out: &mut Vec<u8>, address: u64, mode: CpuMode) {
        let mut line = [b'\t'; 17];
        let place = match mode {
            CpuMode::User | CpuMode::GuestUser => self.machine.user(self.space, address),
            _ => None,
        };
        let printed = place.map_or(address, |(printed, _)| printed);
        for (place, digit) in line[1..].iter_mut().zip(hex16(printed)) {
            *place = digit;
        }
        out.extend_from_slice(&line);
        match place {
            Some((_, file)) if self.file => out.extend_from_slice(self.files.ending(file)),
            _ => self.ending(out, address, mode),
        }
    }

    /// Appends symbol and file of an address, with the line feed.
    fn ending(&self, out: &mut Vec<u8>, address: u64, mode: CpuMode) {
        let mut file = Default::default();
        match mode {
            CpuMode::Kernel | CpuMode::GuestKernel => {
                if let Some(found) = self.machine.kernel().find(address) {
                    file = found.file;
                    if let Some(offset) = found.offset {
                        return self.symbol(out, self.files.name_ending(file), offset);
                    }
                }
            }
            CpuMode::User | CpuMode::GuestUser => {
                if let Some((_, found)) = self.machine.user(self.space, address) {
                    file = found;
                }
            }
            CpuMode::Other => {}
        }
        if self.file {
            out.extend_from_slice(self.files.ending(file));
        } else {
            out.extend_from_slice(Files::UNKNOWN_SYMBOL);
            out.push(b'\n');
        }
    }

    /// Appends a symbol that has the name of its file, ` NAME+0xOFFSET (NAME)`.
    fn symbol(&self, out: &mut Vec<u8>, name_ending: &[u8], offset: u64) {
        let name = name_ending.strip_prefix(b" (").unwrap_or(name_ending);
        let name = name.strip_suffix(b")\n").unwrap_or(name);
        out.push(b' ');
        out.extend_from_slice(name);
        out.extend_from_slice(b"+0x");
        hex(out, offset);
        out.extend_from_slice(if self.file { name_ending } else { b"\n" });
    }
}
/// Appends a record whose format is not known, as hexadecimal bytes.
pub(crate) fn hex_record(record: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"raw");
    for byte in record {
        let digits = [b' ', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        out.extend_from_slice(&digits);
    }
}

