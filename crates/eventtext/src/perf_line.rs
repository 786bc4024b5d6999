//! The lines `perf script` prints for an event.
//!
//! Source: `tools/perf/builtin-script.c` (`process_event`, `perf_sample__fprintf_start`) and
//! `tools/perf/util/evsel_fprintf.c` of kernel 6.1, and what perf 6.1 prints of recordings made to ask it.
//!
//! perf leaves events out that happened in a guest unless it knows where the guest's symbols are; here
//! they are printed, as `perf script --guestkallsyms=FILE` does. Symbols are never looked up in files of the
//! machine that reads the recording: what perf prints with an empty `--symfs` is printed.

use event::index_of;
use event::{Body, Event, EventSample, EventType, Side};
use symbols::{Addresses, CpuMode, KernelFile};
use tracefmt::{EventFormat, FormatCatalog, FormatText, PrintStyle};

use crate::columns::StampCache;
use crate::perf_columns::{ColumnParts, NameColumn, ThreadColumns, put_usual};
use crate::perf_stack::{Endings, StackLookup};

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

/// Prints the events of one recording as `perf script` does.
///
/// It has to see all side records and the events in time order: names of threads and what is mapped where
/// change over time.
#[derive(Debug)]
pub struct PerfPrinter {
    style: PerfStyle<'static>,
    names: Vec<Option<PerfEventName>>,
    width: usize,
    clock: StampCache,
    addresses: Addresses<ThreadColumns>,
    endings: Endings,
}

/// What is known of a kind of event.
#[derive(Debug)]
struct PerfEventName {
    column: NameColumn,
    /// Whether neither the name nor any text of such an event steers a terminal.
    plain: bool,
}

/// Stands for what is not known of an event that is no sample of perf's.
const NO_SAMPLE: EventSample<'static> = EventSample {
    misc: 0,
    ip: None,
    addr: None,
    period: None,
    callchain: None,
    call_branches: None,
    user_stack: None,
    has_cpu: true,
    tracepoint: true,
};

impl PerfPrinter {
    /// Returns a printer of one recording.
    pub fn new(style: &PerfStyle<'_>) -> PerfPrinter {
        let addresses = Addresses::new(style.addresses, &style.kernel_files);
        let mut endings = Endings::default();
        endings.follow(addresses.files());
        PerfPrinter {
            names: Vec::new(),
            width: 0,
            clock: StampCache::new(style.nanoseconds),
            addresses,
            endings,
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

    /// Takes a side record: a name, a loss, a mapping.
    pub fn side(&mut self, side: &Side<'_>) {
        self.addresses.side(side);
        self.endings.follow(self.addresses.files());
    }

    /// Appends the lines of one event, the last line feed included, and returns whether it is known that nothing in
    /// them steers a terminal. `env` is what the recording's formats refer to.
    #[inline]
    pub fn event(&mut self, event: &Event<'_>, env: &FormatCatalog, out: &mut FormatText) -> bool {
        let sample = event.sample.unwrap_or(&NO_SAMPLE);
        if sample.tracepoint
            && sample.has_cpu
            && !self.style.tracepoint_addresses
            && let (Body::Raw(record), Some(format)) = (event.body, event.ty.format)
        {
            let name = match self.names.get(index_of(event.ty.index)) {
                Some(Some(name)) => name,
                _ => new_name(&mut self.names, event.ty, self.width),
            };
            let mode = CpuMode::of(sample.misc);
            let (thread, _) = self.addresses.running(mode, event.pid, event.tid);
            let (cpu, time) = (event.cpu, event.time);
            if let Some(plain) = put_usual(out, thread, cpu, &mut self.clock, time, &name.column) {
                format.print(record, env, PrintStyle::Perf, out);
                out.push(b'\n');
                return plain && name.plain;
            }
        }
        self.any(event, sample, env, out);
        false
    }

    /// Appends the lines of an event of any kind.
    #[inline(never)]
    fn any(
        &mut self,
        event: &Event<'_>,
        sample: &EventSample<'_>,
        env: &FormatCatalog,
        out: &mut FormatText,
    ) {
        let mode = CpuMode::of(sample.misc);
        let address = match sample.ip {
            Some(ip) if !sample.tracepoint || self.style.tracepoint_addresses => Some(ip),
            _ => None,
        };
        let stack = address.and(sample.callchain);
        let name = match self.names.get(index_of(event.ty.index)) {
            Some(Some(name)) => name,
            _ => new_name(&mut self.names, event.ty, self.width),
        };
        let (thread, space) = self.addresses.running(mode, event.pid, event.tid);
        let head = ColumnParts {
            thread,
            narrow: stack.is_some(),
            cpu: sample.has_cpu.then_some(event.cpu),
            // Events without time stamps have no such column, and nothing happens in a clock's first nanosecond.
            time: (event.time != 0).then_some(event.time),
            period: match sample.tracepoint {
                true => None,
                false => Some(sample.period.unwrap_or(0)),
            },
            name: &name.column,
        };
        head.put(out, &mut self.clock);
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
        let place = StackLookup {
            addresses: &self.addresses,
            endings: &self.endings,
            mode,
            space,
            // perf leaves file names out behind tracepoints of piped recordings.
            file: !(self.style.pipe && sample.tracepoint),
        };
        match stack {
            Some(chain) => {
                out.push(b'\n');
                place.chain(out, chain);
                out.push(b'\n');
            }
            None => place.address(out, address),
        }
    }
}

/// Makes the column of a kind of event that was not printed before.
#[cold]
fn new_name<'n>(
    names: &'n mut Vec<Option<PerfEventName>>,
    ty: &EventType<'_>,
    width: usize,
) -> &'n PerfEventName {
    let index = index_of(ty.index);
    if names.len() <= index {
        // Kinds of events are few: each has an attribute of 64 bytes or more in the recording.
        names.resize_with(index.saturating_add(1), || None);
    }
    names[index].get_or_insert_with(|| {
        let column = NameColumn::new(&label(ty), width);
        PerfEventName {
            plain: column.is_plain() && ty.format.is_some_and(EventFormat::prints_plain),
            column,
        }
    })
}

/// Returns the name of a kind of event as perf prints it. Recordings in which names are missing have those of
/// the formats.
fn label(ty: &EventType<'_>) -> Vec<u8> {
    if ty.label.is_empty() && !ty.name.is_empty() {
        return format!("{}:{}", ty.system, ty.name).into_bytes();
    }
    ty.label.as_bytes().to_vec()
}

/// Appends a record whose format is not known, as hexadecimal bytes.
pub(crate) fn hex_record(record: &[u8], out: &mut FormatText) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"raw");
    for byte in record {
        let digits = [
            b' ',
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ];
        out.extend_from_slice(&digits);
    }
}
