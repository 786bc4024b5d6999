//! `struct perf_event_attr`: what one event was opened with, and how its records are laid out.

use tracefmt::Endian;

/// `PERF_SAMPLE_*` bits (`include/uapi/linux/perf_event.h`).
pub(crate) mod bits {
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
    pub(crate) const BRANCH_STACK: u64 = 1 << 11;
    pub(crate) const REGS_USER: u64 = 1 << 12;
    pub(crate) const STACK_USER: u64 = 1 << 13;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
}

/// `PERF_FORMAT_*` bits.
pub(crate) mod format {
    pub(crate) const TOTAL_TIME_ENABLED: u64 = 1 << 0;
    pub(crate) const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    pub(crate) const ID: u64 = 1 << 2;
    pub(crate) const GROUP: u64 = 1 << 3;
    pub(crate) const LOST: u64 = 1 << 4;
}

/// `PERF_TYPE_*`: which kind of event an attribute opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttrType {
    /// A generalised CPU event; [`EventAttr::config`] is its `PERF_COUNT_HW_*` number.
    Hardware,
    /// A kernel counter; [`EventAttr::config`] is its `PERF_COUNT_SW_*` number.
    Software,
    /// A tracepoint; [`EventAttr::config`] is its id, the `common_type` of its records.
    Tracepoint,
    /// A PMU's own kind, by number.
    Other(u32),
}

/// One event attribute of a recording.
#[derive(Debug, Clone)]
pub struct EventAttr {
    /// Kind of event.
    pub kind: AttrType,
    /// Which one of its kind.
    pub config: u64,
    /// Events between two samples, or samples a second where the kernel adapts the former. It stands for the
    /// period of samples that do not hold their own.
    pub sample_period: u64,
    /// What its samples hold (`PERF_SAMPLE_*`).
    pub sample_type: u64,
    /// What counter values hold (`PERF_FORMAT_*`).
    pub read_format: u64,
    /// Whether records that are no samples end in time, thread and CPU.
    pub sample_id_all: bool,
    /// Whether threads and processes that come later are counted too.
    pub inherit: bool,
    /// Whether the host's own execution is left out.
    pub exclude_host: bool,
    /// Whether guests' execution is left out.
    pub exclude_guest: bool,
    /// `clockid` of `clock_gettime` if the event does not use perf's own clock.
    pub clockid: Option<i32>,
    /// Name, as `kvm:kvm_exit` or `cycles:ppp`; empty where the recording does not say.
    pub name: String,
    /// The ids its records carry.
    pub ids: Vec<u64>,
    /// Where the parts of its records lie.
    pub layout: SampleLayout,
    /// The structure as it stands in the recording.
    pub bytes: Vec<u8>,
}

/// Bytes of the first published `perf_event_attr` (`PERF_ATTR_SIZE_VER0`).
const ATTR_SIZE_VER0: usize = 64;

impl EventAttr {
    /// Parses an attribute; `bytes` is as long as the file says the structure is.
    ///
    /// Returns the bytes of the structure itself along with it. `None` when it is too short.
    pub(crate) fn parse(bytes: &[u8], endian: Endian) -> Option<(EventAttr, usize)> {
        if bytes.len() < ATTR_SIZE_VER0 {
            return None;
        }
        let number = |offset: usize| endian.u64(bytes, offset).unwrap_or(0);
        let kind = match endian.u32(bytes, 0)? {
            0 => AttrType::Hardware,
            1 => AttrType::Software,
            2 => AttrType::Tracepoint,
            other => AttrType::Other(other),
        };
        // Size 0 stands for the first version of the structure.
        let size = match endian.u32(bytes, 4)? as usize {
            0 => ATTR_SIZE_VER0,
            size => size.max(ATTR_SIZE_VER0),
        };
        let flags = Flags {
            word: number(40),
            endian,
        };
        let sample_type = number(24);
        let sample_id_all = flags.bit(18);
        let mut layout = SampleLayout::new(sample_type, sample_id_all);
        // The first version of the structure ends before these.
        let later = |offset: usize| {
            if offset + 8 <= size {
                number(offset)
            } else {
                0
            }
        };
        layout.branches = later(72);
        layout.user_regs = later(80);
        Some((
            EventAttr {
                kind,
                config: number(8),
                sample_period: number(16),
                sample_type,
                read_format: number(32),
                sample_id_all,
                inherit: flags.bit(1),
                exclude_host: flags.bit(19),
                exclude_guest: flags.bit(20),
                clockid: flags
                    .bit(25)
                    .then(|| endian.u32(bytes, 92).unwrap_or(0).cast_signed()),
                name: String::new(),
                ids: Vec::new(),
                layout,
                bytes: bytes.get(..size).unwrap_or(bytes).to_vec(),
            },
            size,
        ))
    }

    /// Returns whether its samples hold call chains.
    pub fn has_callchain(&self) -> bool {
        self.sample_type & bits::CALLCHAIN != 0
    }

    /// Returns whether its samples hold what every event of its group has counted.
    pub fn reads_group(&self) -> bool {
        let by_id = format::GROUP | format::ID;
        self.sample_type & bits::READ != 0 && self.read_format & by_id == by_id
    }

    /// Returns whether it has no samples of its own, as its leader's hold what it counted
    /// (`evsel__config_leader_sampling` in `tools/perf/util/record.c` takes the period away).
    pub fn is_group_member(&self) -> bool {
        self.reads_group() && self.sample_period == 0
    }

    /// Returns whether its samples hold an instruction pointer.
    pub fn has_ip(&self) -> bool {
        self.sample_type & bits::IP != 0
    }

    /// Returns the tracepoint's id, if it is one.
    pub fn tracepoint_id(&self) -> Option<u32> {
        (self.kind == AttrType::Tracepoint)
            .then(|| u32::try_from(self.config).ok())
            .flatten()
    }
}

/// The flag bits of an attribute: a C bit field, which big-endian compilers fill from the other end.
struct Flags {
    word: u64,
    endian: Endian,
}

impl Flags {
    fn bit(&self, bit: u32) -> bool {
        let bit = if self.endian == Endian::Big {
            63 - bit
        } else {
            bit
        };
        self.word >> bit & 1 == 1
    }
}

/// Where the fixed parts of a sample lie, as offsets from the start of its body (behind the 8-byte record
/// header), and those of the trailer that other records have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleLayout {
    pub(crate) sample_type: u64,
    /// What a branch stack holds (`PERF_SAMPLE_BRANCH_*`).
    pub(crate) branches: u64,
    /// Which registers of user space are recorded.
    pub(crate) user_regs: u64,
    pub(crate) id: Option<u16>,
    pub(crate) ip: Option<u16>,
    pub(crate) tid: Option<u16>,
    pub(crate) time: Option<u16>,
    pub(crate) addr: Option<u16>,
    pub(crate) cpu: Option<u16>,
    pub(crate) period: Option<u16>,
    /// Where the parts of variable size begin.
    pub(crate) fixed: u16,
    /// Where the tracepoint's record is, if it is the first of these.
    pub(crate) raw: Option<u16>,
    /// Distance of the trailer's time stamp from the record's end.
    pub(crate) trailer_time: Option<u16>,
    /// Distance of the trailer's CPU number from the record's end.
    pub(crate) trailer_cpu: Option<u16>,
    /// Distance of the trailer's process and thread from the record's end.
    pub(crate) trailer_tid: Option<u16>,
    /// Distance of the trailer's id from the record's end.
    pub(crate) trailer_id: Option<u16>,
    /// Bytes of the trailer; 0 without one.
    pub(crate) trailer: u16,
}

impl SampleLayout {
    /// Returns the layout of events with this `sample_type`.
    ///
    /// Source: the order of parts in `perf_event_sample_format` and `perf_event__sample_id_size`.
    pub(crate) fn new(sample_type: u64, sample_id_all: bool) -> SampleLayout {
        use bits::*;
        let mut layout = SampleLayout {
            sample_type,
            ..SampleLayout::default()
        };
        let mut at = 0u16;
        let mut part = |bit: u64| {
            let here = (sample_type & bit != 0).then_some(at);
            if here.is_some() {
                at += 8;
            }
            here
        };
        let identifier = part(IDENTIFIER);
        layout.ip = part(IP);
        layout.tid = part(TID);
        layout.time = part(TIME);
        layout.addr = part(ADDR);
        let id = part(ID);
        let _stream_id = part(STREAM_ID);
        layout.cpu = part(CPU);
        layout.period = part(PERIOD);
        layout.id = identifier.or(id);
        layout.fixed = at;
        layout.raw =
            (sample_type & RAW != 0 && sample_type & (READ | CALLCHAIN) == 0).then_some(at);
        if sample_id_all {
            // The trailer holds TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER in this order, at the very end.
            let mut back = 0u16;
            let mut part = |bit: u64| {
                (sample_type & bit != 0).then(|| {
                    back += 8;
                    back
                })
            };
            let identifier = part(IDENTIFIER);
            layout.trailer_cpu = part(CPU);
            let _stream_id = part(STREAM_ID);
            let id = part(ID);
            layout.trailer_time = part(TIME);
            layout.trailer_tid = part(TID);
            layout.trailer_id = identifier.or(id);
            layout.trailer = back;
        }
        layout
    }
}

/// How the trailers of records that are no samples are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trailers {
    /// All attributes give theirs the same parts.
    Same,
    /// They do not; the id that ends every trailer gives the attribute.
    ById,
}

impl Trailers {
    pub(crate) fn new(attrs: &[EventAttr]) -> Trailers {
        let parts =
            |layout: &SampleLayout| (layout.trailer, layout.trailer_time, layout.trailer_cpu);
        let differ = attrs
            .windows(2)
            .any(|w| parts(&w[0].layout) != parts(&w[1].layout));
        let id_last = attrs
            .iter()
            .all(|a| a.sample_id_all && a.sample_type & bits::IDENTIFIER != 0);
        if differ && id_last {
            Trailers::ById
        } else {
            Trailers::Same
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_sample_follow_in_the_kernels_order() {
        let layout = SampleLayout::new(
            bits::IDENTIFIER
                | bits::IP
                | bits::TID
                | bits::TIME
                | bits::CPU
                | bits::PERIOD
                | bits::RAW,
            true,
        );
        assert_eq!(layout.id, Some(0));
        assert_eq!(layout.ip, Some(8));
        assert_eq!(layout.tid, Some(16));
        assert_eq!(layout.time, Some(24));
        assert_eq!(layout.cpu, Some(32));
        assert_eq!(layout.period, Some(40));
        assert_eq!(layout.fixed, 48);
        // From the end: identifier 8, CPU 16, time 24, thread 32.
        assert_eq!(layout.trailer_id, Some(8));
        assert_eq!(layout.trailer_cpu, Some(16));
        assert_eq!(layout.trailer_time, Some(24));
        assert_eq!(layout.trailer, 32);
    }

    #[test]
    fn bit_fields_of_a_big_endian_machine_are_mirrored() {
        let mut bytes = vec![0u8; 112];
        bytes[3] = 2;
        // sample_id_all is bit 18 from the most significant end.
        bytes[40..48].copy_from_slice(&(1u64 << (63 - 18)).to_be_bytes());
        let (attr, size) = EventAttr::parse(&bytes, Endian::Big).unwrap();
        assert_eq!(attr.kind, AttrType::Tracepoint);
        assert!(attr.sample_id_all);
        assert_eq!(size, 64);
    }
}
