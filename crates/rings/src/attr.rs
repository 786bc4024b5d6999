//! `struct perf_event_attr`: what is to be recorded of an event.

/// Bytes of the structure as it is written here: `PERF_ATTR_SIZE_VER5`, which every kernel since 4.1 takes.
pub const SIZE: usize = 112;

/// `PERF_SAMPLE_*`: what a sample holds.
pub mod sample {
    /// The instruction pointer.
    pub const IP: u64 = 1 << 0;
    /// Process and thread.
    pub const TID: u64 = 1 << 1;
    /// When, on the clock of the event.
    pub const TIME: u64 = 1 << 2;
    /// The address of data.
    pub const ADDR: u64 = 1 << 3;
    /// The call chain.
    pub const CALLCHAIN: u64 = 1 << 5;
    /// The CPU.
    pub const CPU: u64 = 1 << 7;
    /// How much it stands for.
    pub const PERIOD: u64 = 1 << 8;
    /// The record of the tracepoint.
    pub const RAW: u64 = 1 << 10;
    /// The id of the event, first in a sample and last in other records.
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// `PERF_FORMAT_*`: what reading an event's counter gives beside its value.
pub mod format {
    /// How long it was enabled, ns.
    pub const TOTAL_TIME_ENABLED: u64 = 1 << 0;
    /// How long it ran, ns.
    pub const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    /// Its id.
    pub const ID: u64 = 1 << 2;
    /// The values of a whole group, read with its leader.
    pub const GROUP: u64 = 1 << 3;
    /// Records that found no room in the ring. Linux 6.0 and later.
    pub const LOST: u64 = 1 << 4;
}

/// `CLOCK_MONOTONIC` (`include/uapi/linux/time.h`).
const MONOTONIC: i32 = 1;

/// What an event counts: `type` and `config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventSource {
    /// A tracepoint, by the id that its `format` file has.
    Tracepoint(u32),
    /// CPU time by the kernel's high resolution timers (`PERF_COUNT_SW_CPU_CLOCK`).
    CpuClock,
    /// CPU cycles (`PERF_COUNT_HW_CPU_CYCLES`), where the machine counts them.
    Cycles,
    /// What BPF programs write with `bpf_perf_event_output` (`PERF_COUNT_SW_BPF_OUTPUT`).
    BpfOutput,
    /// Instructions that were completed (`PERF_COUNT_HW_INSTRUCTIONS`).
    Instructions,
    /// Accesses that no cache answered, mostly of the last level (`PERF_COUNT_HW_CACHE_MISSES`).
    CacheMisses,
    /// The time that a task had a CPU, ns (`PERF_COUNT_SW_TASK_CLOCK`).
    TaskClock,
    /// Page faults of a task (`PERF_COUNT_SW_PAGE_FAULTS`).
    PageFaults,
    /// Nothing: it carries names and forks of threads (`PERF_COUNT_SW_DUMMY`).
    Nothing,
}

impl EventSource {
    /// Returns `type` and `config`.
    fn numbers(self) -> (u32, u64) {
        match self {
            EventSource::Cycles => (0, 0),
            EventSource::Instructions => (0, 1),
            EventSource::CacheMisses => (0, 3),
            EventSource::TaskClock => (1, 1),
            EventSource::PageFaults => (1, 2),
            EventSource::CpuClock => (1, 0),
            EventSource::Nothing => (1, 9),
            EventSource::BpfOutput => (1, 10),
            EventSource::Tracepoint(id) => (2, u64::from(id)),
        }
    }
}

/// Whose execution a counter of the processor counts, where one runs guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CountedMode {
    /// That of the host and of its guests.
    #[default]
    Both,
    /// The guest's alone: perf's modifier `G`.
    Guest,
    /// The host's alone: perf's modifier `H`.
    Host,
}

/// What is to be recorded of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingAttr {
    /// What it counts.
    pub of: EventSource,
    /// A sample after so many; of a frequency ([`RingAttr::frequency`]), so many a second.
    pub period: u64,
    /// Whether `period` is a frequency.
    pub frequency: bool,
    /// What samples hold ([`sample`]).
    pub sample: u64,
    /// What reading the counter gives ([`mod@format`]).
    pub read: u64,
    /// Whether names, mappings, forks and exits of threads are recorded with it.
    pub tasks: bool,
    /// Whether the kernel's part of call chains is left out, and user space's.
    pub no_kernel_chain: bool,
    /// See [`RingAttr::no_kernel_chain`].
    pub no_user_chain: bool,
    /// Bytes in the ring after which a reader is woken; 0: never.
    pub wake_after: u32,
    /// Whether times are those of CLOCK_MONOTONIC, not of perf's own clock.
    pub monotonic: bool,
    /// Whether the ring is written from its end to its beginning and goes on over what is old, for what keeps the last
    /// seconds.
    pub backward: bool,
    /// Whose execution it counts.
    pub mode: CountedMode,
}

/// Bits of the flag word, from the lowest (the bit field behind `read_format`).
mod flag {
    pub(super) const DISABLED: u64 = 1 << 0;
    pub(super) const MMAP: u64 = 1 << 8;
    pub(super) const COMM: u64 = 1 << 9;
    pub(super) const FREQ: u64 = 1 << 10;
    pub(super) const TASK: u64 = 1 << 13;
    pub(super) const WATERMARK: u64 = 1 << 14;
    pub(super) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(super) const EXCLUDE_HOST: u64 = 1 << 19;
    pub(super) const EXCLUDE_GUEST: u64 = 1 << 20;
    pub(super) const EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;
    pub(super) const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    pub(super) const MMAP2: u64 = 1 << 23;
    pub(super) const COMM_EXEC: u64 = 1 << 24;
    pub(super) const USE_CLOCKID: u64 = 1 << 25;
    pub(super) const WRITE_BACKWARD: u64 = 1 << 27;
}

impl RingAttr {
    /// Returns that of an event each of which is recorded.
    pub fn each(of: EventSource) -> RingAttr {
        RingAttr {
            of,
            period: 1,
            frequency: false,
            sample: sample::IDENTIFIER | sample::TID | sample::TIME | sample::CPU | sample::RAW,
            read: format::ID,
            tasks: false,
            no_kernel_chain: false,
            no_user_chain: false,
            wake_after: 0,
            monotonic: false,
            backward: false,
            mode: CountedMode::Both,
        }
    }

    /// Returns that of an event that is counted and never recorded, and read with all others of its group.
    pub fn counted(of: EventSource, mode: CountedMode) -> RingAttr {
        RingAttr {
            period: 0,
            sample: sample::IDENTIFIER | sample::TID | sample::TIME | sample::CPU,
            read: format::TOTAL_TIME_ENABLED
                | format::TOTAL_TIME_RUNNING
                | format::ID
                | format::GROUP,
            mode,
            ..RingAttr::each(of)
        }
    }

    /// Returns the structure's bytes, in this machine's order: the kernel takes them, and a perf.data file holds them.
    /// The event begins disabled.
    pub fn bytes(&self) -> [u8; SIZE] {
        self.with(flag::DISABLED)
    }

    /// Returns the same of an event that begins enabled: of one behind another, which counts once that does.
    pub(crate) fn enabled_bytes(&self) -> [u8; SIZE] {
        self.with(0)
    }

    fn with(&self, disabled: u64) -> [u8; SIZE] {
        let (kind, config) = self.of.numbers();
        let mut flags = disabled | flag::SAMPLE_ID_ALL;
        for (wanted, bit) in [
            (self.frequency, flag::FREQ),
            (self.no_kernel_chain, flag::EXCLUDE_CALLCHAIN_KERNEL),
            (self.no_user_chain, flag::EXCLUDE_CALLCHAIN_USER),
            (self.wake_after > 0, flag::WATERMARK),
            (self.monotonic, flag::USE_CLOCKID),
            (self.backward, flag::WRITE_BACKWARD),
            (self.mode == CountedMode::Guest, flag::EXCLUDE_HOST),
            (self.mode == CountedMode::Host, flag::EXCLUDE_GUEST),
            (
                self.tasks,
                flag::MMAP | flag::COMM | flag::TASK | flag::MMAP2 | flag::COMM_EXEC,
            ),
        ] {
            if wanted {
                flags |= bit;
            }
        }
        if cfg!(target_endian = "big") {
            // C compilers fill a bit field from the other end there.
            flags = flags.reverse_bits();
        }
        let mut bytes = [0; SIZE];
        let mut put = |at: usize, word: &[u8]| bytes[at..at + word.len()].copy_from_slice(word);
        put(0, &kind.to_ne_bytes());
        put(4, &u32::try_from(SIZE).unwrap_or(0).to_ne_bytes());
        put(8, &config.to_ne_bytes());
        put(16, &self.period.to_ne_bytes());
        put(24, &self.sample.to_ne_bytes());
        put(32, &self.read.to_ne_bytes());
        put(40, &flags.to_ne_bytes());
        put(48, &self.wake_after.to_ne_bytes());
        if self.monotonic {
            put(92, &MONOTONIC.to_ne_bytes());
        }
        bytes
    }
}
