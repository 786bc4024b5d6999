//! What a recording says of itself, whatever its container.

use cpuset::NumaNode;
use event::RecordingCost;

/// What the recording's time stamps count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeStampUnit {
    /// Nanoseconds.
    #[default]
    Nanoseconds,
    /// Ticks of a counter whose rate the recording does not say.
    Ticks,
}

/// What says what time of day it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WallClockSource {
    /// perf's header (`CLOCK_DATA`), where it was asked for a clock.
    ClockData,
    /// trace-cmd's option `DATE` (`trace-cmd record --date`).
    Date,
    /// trapline, which records it.
    Recorder,
}

impl WallClockSource {
    /// Returns its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            WallClockSource::ClockData => "clock_data",
            WallClockSource::Date => "date",
            WallClockSource::Recorder => "recorder",
        }
    }
}

/// What the time of day was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallClock {
    /// To be added to time stamps: then they are nanoseconds since 1970 in UTC.
    pub offset_ns: i64,
    /// Who says so.
    pub source: WallClockSource,
}

impl WallClock {
    /// Returns what one moment on both clocks says.
    pub(crate) fn of(unix_ns: u64, event_ns: u64, source: WallClockSource) -> Option<WallClock> {
        let offset_ns = i128::from(unix_ns) - i128::from(event_ns);
        let offset_ns = i64::try_from(offset_ns).ok()?;
        Some(WallClock { offset_ns, source })
    }

    /// Returns a time stamp as nanoseconds since 1970 in UTC; `None` before that.
    pub fn unix_ns(self, time: u64) -> Option<u64> {
        time.checked_add_signed(self.offset_ns)
    }
}

/// What a recording says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordingHeader {
    /// Container and version, as `perf.data (file)` or `trace.dat v7 (zstd)`.
    pub format: String,
    /// Architecture as `uname -m` has it.
    pub arch: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Host name.
    pub hostname: Option<String>,
    /// CPUs of the machine.
    pub cpus: Option<u32>,
    /// The CPU's own name.
    pub cpu_desc: Option<String>,
    /// NUMA nodes, where the recording has them.
    pub nodes: Vec<NumaNode>,
    /// Clock the time stamps are from, as the recorder names it.
    pub clock: Option<String>,
    /// What the time of day was, where the recording says it.
    pub wall_clock: Option<WallClock>,
    /// What the time stamps count.
    pub time_unit: TimeStampUnit,
    /// Whether the recorder prints times as seconds with decimals; if not, as plain numbers. Not the same as
    /// the unit: trace-cmd prints the clock `boot` plainly although it counts nanoseconds.
    pub seconds: bool,
    /// Resolution of the time stamps in nanoseconds: 1 in binary recordings, 1000 in most texts.
    pub resolution_ns: u64,
    /// Whether a text has its times with nine decimals.
    pub nine_digits: bool,
    /// Recorder and version.
    pub recorder: Option<String>,
    /// The recorder's process, where the recording has it.
    pub recorder_pid: Option<i32>,
    /// Pairs of events of which the recorder wrote no more than belongs to them: the names of both.
    pub pairs: Vec<(String, String)>,
    /// What recording cost, where the recorder measured it.
    pub cost: Option<RecordingCost>,
    /// The recording command.
    pub command: Option<String>,
    /// Names of the ring buffers, the main one first; empty where there is only one.
    pub buffers: Vec<String>,
    /// Whether the events do not say which thread made them, as texts that perf printed without thread ids.
    pub unthreaded: bool,
    /// Which threads are the vCPUs of guests that were recorded at the same time.
    pub guests: Vec<GuestMap>,
    /// Which recordings were made together with this one.
    pub together: JointRecordings,
    /// More that the container shows, as name and text.
    pub more: Vec<(String, String)>,
}

/// The recording's own map of a guest (trace-cmd's option `GUEST`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuestMap {
    /// What the recorder calls it: the name or the number (vsock CID) that `trace-cmd record -A` was given.
    pub name: String,
    /// The number of its recording ([`JointRecordings::own`]).
    pub trace_id: u64,
    /// Number and thread of its vCPUs.
    pub vcpus: Vec<(u32, i32)>,
}

/// Which recordings were made together, as trace-cmd's options `TRACEID`, `GUEST` and `TIME_SHIFT` tell, or what
/// trapline says of a perf.data that `record --agent` made: each has a number of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JointRecordings {
    /// The number of this one.
    pub own: Option<u64>,
    /// Those of its guests, whether or not it knows their vCPUs' threads.
    pub guests: Vec<u64>,
    /// That of its host.
    pub host: Option<u64>,
    /// Host's time less the guest's, in nanoseconds, as the recorder measured it again and again: the middle of what it
    /// found. On its own clock ([`ReaderOptions::own_clock`](crate::ReaderOptions::own_clock)) a guest's times are so
    /// far from its host's.
    pub offset_ns: Option<i64>,
    /// Whether it found the same each time: then it is no measurement, but what the host's KVM adds to the guest's TSC.
    pub constant: bool,
}
