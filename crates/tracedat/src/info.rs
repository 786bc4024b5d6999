//! What a trace.dat says of itself.
//!
//! Sources: `Documentation/trace-cmd/trace-cmd.dat.v6.5.txt` and `trace-cmd.dat.v7.5.txt` of trace-cmd (the
//! options), `kernel/trace/trace.c` of the kernel (clocks, the text of `per_cpu/cpuN/stats`).

use tracefmt::Abi;

/// What one unit of a recording's times is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TraceTimeUnit {
    /// A nanosecond.
    #[default]
    Nanoseconds,
    /// Whatever the clock counts: cycles (`x86-tsc`, `ppc-tb`), events (`counter`), clock ticks (`uptime`).
    Ticks,
}

/// How times become nanoseconds: `time * mult >> shift`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tsc2Nsec {
    /// Multiplier.
    pub mult: u32,
    /// Bits to shift right by.
    pub shift: u32,
    /// The time stamp counter when the host's clock was at zero. trace-cmd stores but does not use it.
    pub offset: u64,
}

/// One measurement of a guest's clock against its host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShiftSample {
    /// Guest time of the measurement, in the recording's raw unit.
    pub time: i64,
    /// What is to be added to guest time.
    pub offset: i64,
    /// What guest time is to be multiplied with.
    pub scaling: i64,
    /// Bits to shift the product right by.
    pub fraction: i64,
}

/// The option `TIME_SHIFT`: how this guest's times become its host's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimeShift {
    /// Trace id of the host's recording.
    pub peer_trace_id: u64,
    /// Bit 0: interpolate between two measurements.
    pub flags: u32,
    /// Measurements by CPU.
    pub cpus: Vec<Vec<ShiftSample>>,
}

/// The option `GUEST`: a guest that was recorded at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceGuest {
    /// Name, as libvirt or the recorder's user knows it.
    pub name: String,
    /// Trace id of the guest's recording.
    pub trace_id: u64,
    /// Number of the guest's CPU, and id of the host's thread that ran it.
    pub vcpus: Vec<(u32, i32)>,
}

/// One CPU's part of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuPages {
    /// Number of the CPU.
    pub cpu: u32,
    /// Where its data begins in the file, in bytes.
    pub offset: u64,
    /// How many bytes the file says it has (compressed, if the buffer is), before any cut.
    pub size: u64,
}

/// One ring buffer: the top one, or that of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Buffer {
    /// Name of the instance; empty for the top buffer.
    pub name: String,
    /// Clock of the buffer, where the file gives it.
    pub clock: Option<String>,
    /// Bytes of one page of the ring buffer.
    pub page_size: u32,
    /// Whether the data is compressed.
    pub compressed: bool,
    /// Whether the CPUs' places were found by looking for them, because the list of them is missing.
    pub recovered: bool,
    /// The CPUs, in order of their number.
    pub cpus: Vec<CpuPages>,
}

/// A buffer that was saved as the kernel's own text (`trace-cmd` with a latency tracer).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextBuffer {
    /// Name of the instance; empty for the top buffer.
    pub name: String,
    /// Clock of the buffer, where the file gives it.
    pub clock: Option<String>,
    /// Where the text (or its chunks) begins in the file, in bytes.
    pub offset: u64,
    /// How many bytes of it (or of its chunks) the file says it has.
    pub size: u64,
    /// Whether it is compressed.
    pub compressed: bool,
}

/// The kernel's own counts for one CPU of a buffer, from `per_cpu/cpuN/stats`.
///
/// They were read when recording stopped, before the recorder took what was left in the buffer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuStats {
    /// Name of the instance; empty for the top buffer.
    pub buffer: String,
    /// Number of the CPU.
    pub cpu: u32,
    /// Events still in the buffer.
    pub entries: u64,
    /// Events overwritten before anyone read them.
    pub overrun: u64,
    /// Events lost because a nested writer found no room.
    pub commit_overrun: u64,
    /// Events not written because the buffer was full.
    pub dropped: u64,
    /// Events read by the recorder.
    pub read: u64,
    /// The text itself.
    pub text: String,
}

impl CpuStats {
    /// Returns how many events the CPU's buffer lost.
    pub fn lost(&self) -> u64 {
        (self.overrun.saturating_add(self.commit_overrun)).saturating_add(self.dropped)
    }
}

/// A kernel module that was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceModule {
    /// Name.
    pub name: String,
    /// Bytes of its code and data.
    pub size: u64,
    /// Where it lies; 0 when the recorder was not allowed to know.
    pub address: u64,
}

/// What a trace.dat says of itself, apart from event formats and events.
#[derive(Debug, Clone, Default)]
pub struct TraceMetadata {
    /// Version of the file: 6 or 7.
    pub version: u32,
    /// Name and version of the compression; `None` for version 6.
    pub compression: Option<(String, String)>,
    /// Byte order and word size of the recording kernel.
    pub abi: Abi,
    /// Bytes of a `long` of the recorder, which may be a 32-bit program on a 64-bit kernel.
    pub user_long_size: u8,
    /// Page size of the recording machine, in bytes.
    pub page_size: u32,
    /// Number of CPUs of the machine.
    pub cpus: u32,
    /// The clock in use, as `local`.
    pub clock: Option<String>,
    /// The text of `trace_clock`: all clocks, the one in use in brackets.
    pub clocks: Option<String>,
    /// What one unit of the times is, after all conversions.
    pub time_unit: TraceTimeUnit,
    /// Whether `trace-cmd report` prints times as seconds with six decimals; if not, as plain numbers. It
    /// prints the clock `boot` plainly although it counts nanoseconds.
    pub prints_seconds: bool,
    /// `uname` of the recording machine.
    pub uname: Option<String>,
    /// Version of the recorder.
    pub recorder: Option<String>,
    /// Id of this recording, which the recordings of its host or guests refer to.
    pub trace_id: Option<u64>,
    /// Ring buffers, the top one first.
    pub buffers: Vec<Buffer>,
    /// Buffers saved as text.
    pub texts: Vec<TextBuffer>,
    /// The kernel's counts by buffer and CPU.
    pub cpu_stats: Vec<CpuStats>,
    /// Guests recorded at the same time.
    pub guests: Vec<TraceGuest>,
    /// Conversion of ticks to nanoseconds.
    pub tsc2nsec: Option<Tsc2Nsec>,
    /// Conversion of guest time to host time.
    pub time_shift: Option<TimeShift>,
    /// The option `DATE`: what makes times wall-clock times, in nanoseconds. It is added to every time.
    pub date_offset_ns: i64,
    /// The option `OFFSET`: added to every time, in nanoseconds.
    pub offset_ns: i64,
    /// The option `HOOK`: pairs of events the user asked to be matched.
    pub hooks: Vec<String>,
    /// The option `PROCMAPS`: memory maps of traced processes, as text.
    pub procmaps: Option<String>,
    /// The option `LAST_BOOT_INFO`: instance name, colon, and where the kernel lay when it wrote a buffer that
    /// outlived it.
    pub last_boot: Option<String>,
    /// Loaded modules.
    pub modules: Vec<TraceModule>,
}

impl TraceMetadata {
    /// Returns how many events the kernel's counts call lost, over all buffers and CPUs.
    ///
    /// It counts the same losses as the marks inside the pages do, and others behind the last page. A recording
    /// of a ring buffer in overwrite mode (`trace-cmd start` and `extract`) has only these counts.
    pub fn stats_lost(&self) -> u64 {
        let lost = self.cpu_stats.iter().map(CpuStats::lost);
        lost.fold(0, u64::saturating_add)
    }

    /// Returns the number `trace-cmd report` prints in its first line, `cpus=`: one more than the largest number
    /// of a CPU in the top buffer (v7), or the number of CPUs (v6).
    pub fn printed_cpus(&self) -> u32 {
        let top = self.buffers.iter().find(|b| b.name.is_empty());
        match top.and_then(|b| b.cpus.iter().map(|c| c.cpu).max()) {
            Some(last) if self.version != 6 => last.saturating_add(1),
            _ => self.cpus,
        }
    }

    /// Settles the unit of times once all options are known.
    pub(crate) fn settle_clock(&mut self) {
        let converted = self.tsc2nsec.is_some_and(|t| t.mult != 0);
        let clock = self.clock.as_deref();
        self.time_unit = match clock {
            _ if converted => TraceTimeUnit::Nanoseconds,
            None => TraceTimeUnit::Nanoseconds,
            Some("local" | "global" | "perf" | "boot" | "tai" | "tsc2nsec") => {
                TraceTimeUnit::Nanoseconds
            }
            Some(name) if name.starts_with("mono") => TraceTimeUnit::Nanoseconds,
            Some(_) => TraceTimeUnit::Ticks,
        };
        // The clocks trace-cmd 3.1.6 prints as seconds; its list has `uptime`, which counts clock ticks, and has
        // not `boot`.
        self.prints_seconds = match clock {
            _ if converted => true,
            None => true,
            Some("local" | "global" | "uptime" | "perf" | "tai" | "tsc2nsec") => true,
            Some(name) => name.starts_with("mono"),
        };
    }

    /// Takes the text of `trace_clock`.
    pub(crate) fn set_clocks(&mut self, text: &[u8]) {
        let text = text_of(text);
        if let Some(clock) = text
            .split(['[', ']'])
            .nth(1)
            .map(str::trim)
            .filter(|c| !c.is_empty())
        {
            self.clock = Some(clock.to_owned());
        }
        if !text.is_empty() {
            self.clocks = Some(text);
        }
    }
}

/// Returns the text before the first NUL byte, without white space around it.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}
