//! A recording printed record by record.

use event::{Body, CallChain, Decoder, Event, EventSample, EventType, Kind, Side};
use eventtext::{PerfPrinter, PerfStyle};
use tracefmt::{FormatCatalog, FormatText};

pub(crate) const KERNEL: u64 = -128i64 as u64;
pub(crate) const USER: u64 = -512i64 as u64;
pub(crate) const HYPERVISOR: u64 = -32i64 as u64;
pub(crate) const GUEST: u64 = -2048i64 as u64;
/// Where the kernel begins.
pub(crate) const TEXT: u64 = 0xffff_ffff_8100_0000;
pub(crate) const MODULES: u64 = 0xffff_ffff_c000_0000;
/// The CPU was in the kernel, in user space, in a guest's kernel, in a guest's user space.
pub(crate) const K: u16 = 1;
pub(crate) const U: u16 = 2;
pub(crate) const GK: u16 = 4;
pub(crate) const GU: u16 = 5;
/// A mapping that is not executable.
pub(crate) const DATA: u16 = 1 << 13;

/// A kind of event without a format.
pub(crate) fn ty(index: u32, label: &'static str) -> EventType<'static> {
    let (system, name) = label.split_once(':').unwrap_or(("", label));
    EventType {
        index,
        machine: 0,
        system,
        name,
        label,
        kind: Kind::Other,
        format: None,
        decoder: Decoder::default(),
        recorded: true,
    }
}

/// A printer with one kind of event that is no tracepoint, and the time.
pub(crate) struct Script {
    pub printer: PerfPrinter,
    ty: EventType<'static>,
    pub sample: EventSample<'static>,
    out: FormatText,
    time: u64,
}

/// The style of a recording whose events show addresses.
pub(crate) fn addresses() -> PerfStyle<'static> {
    PerfStyle {
        addresses: true,
        ..PerfStyle::default()
    }
}

impl Script {
    pub(crate) fn new(style: &PerfStyle<'_>) -> Script {
        let ty = ty(0, "cpu-clock");
        let mut printer = PerfPrinter::new(style);
        printer.declare(&ty);
        let sample = EventSample {
            misc: U,
            ip: Some(TEXT),
            period: Some(1),
            has_cpu: true,
            ..EventSample::default()
        };
        Script {
            printer,
            ty,
            sample,
            out: FormatText::new(),
            time: 1_000_000,
        }
    }

    pub(crate) fn tick(&mut self) -> u64 {
        self.time += 1000;
        self.time
    }

    pub(crate) fn kernel(&mut self) {
        self.mmap(-1, TEXT, 0xe0_0000, TEXT, K, "[kernel.kallsyms]_text");
    }

    pub(crate) fn mmap(
        &mut self,
        pid: i32,
        start: u64,
        len: u64,
        pgoff: u64,
        misc: u16,
        path: &str,
    ) {
        self.map(pid, start..start + len, pgoff, misc, misc & DATA == 0, path);
    }

    /// Code is not taken for what the header marks as data.
    pub(crate) fn map(
        &mut self,
        pid: i32,
        range: std::ops::Range<u64>,
        pgoff: u64,
        misc: u16,
        exec: bool,
        path: &str,
    ) {
        let (start, len) = (range.start, range.end - range.start);
        let time = self.tick();
        self.printer.side(&Side::Mmap {
            time,
            pid,
            tid: pid,
            start,
            len,
            pgoff,
            misc,
            exec,
            huge: false,
            build_id: None,
            path,
        });
    }

    pub(crate) fn comm(&mut self, pid: i32, tid: i32, comm: &str) {
        let time = self.tick();
        self.printer.side(&Side::Comm {
            time,
            pid,
            tid,
            comm,
            exec: false,
        });
    }

    pub(crate) fn fork(&mut self, pid: i32, tid: i32, ppid: i32, ptid: i32) {
        let time = self.tick();
        self.printer.side(&Side::Fork {
            time,
            pid,
            tid,
            ppid,
            ptid,
        });
    }

    pub(crate) fn exit(&mut self, pid: i32, tid: i32) {
        let time = self.tick();
        self.printer.side(&Side::Exit { time, pid, tid });
    }

    fn event(&mut self, pid: i32, tid: i32, sample: &EventSample<'_>) {
        let event = Event {
            time: self.tick(),
            cpu: 0,
            tid,
            pid,
            ty: &self.ty,
            body: Body::None,
            sample: Some(sample),
            buffer: 0,
            comm: None,
        };
        self.printer
            .event(&event, &FormatCatalog::default(), &mut self.out);
    }

    /// Prints an event with a call chain, and returns the chain's lines.
    pub(crate) fn chain(&mut self, pid: i32, tid: i32, misc: u16, chain: &[u64]) -> String {
        let bytes: Vec<u8> = chain.iter().flat_map(|n| n.to_le_bytes()).collect();
        let sample = EventSample {
            misc,
            callchain: Some(CallChain::new(&bytes, false)),
            ..self.sample
        };
        let sample = EventSample {
            callchain: Some(CallChain::new(&bytes, false)),
            ..sample
        };
        self.out.clear();
        self.event(pid, tid, &sample);
        let text = String::from_utf8(self.out.as_bytes().to_vec()).unwrap();
        let (_, lines) = text.split_once('\n').unwrap();
        assert!(
            text.ends_with('\n') && (lines == "\n" || lines.ends_with("\n\n")),
            "{text:?}"
        );
        lines.trim_end_matches('\n').replace("[unknown] ", "")
    }

    /// Prints an event without a call chain.
    pub(crate) fn line(&mut self, pid: i32, tid: i32, misc: u16, ip: u64) -> String {
        let sample = EventSample {
            misc,
            ip: Some(ip),
            ..self.sample
        };
        self.out.clear();
        self.event(pid, tid, &sample);
        String::from_utf8(self.out.as_bytes().to_vec()).unwrap()
    }

    /// Prints an event without a call chain, and returns the thread's name.
    pub(crate) fn name(&mut self, pid: i32, tid: i32) -> String {
        let line = self.line(pid, tid, U, 1);
        line.trim_start()
            .split(&format!(" {tid:5} "))
            .next()
            .unwrap()
            .to_owned()
    }
}
