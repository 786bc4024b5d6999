//! Records that are no samples.

use tracefmt::Endian;

use crate::attr::{EventAttr, SampleLayout, format};

/// `PERF_RECORD_*` numbers: the kernel's below 64 (`include/uapi/linux/perf_event.h`), perf's own from 64
/// (`tools/lib/perf/include/perf/event.h`).
pub(crate) mod kind {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const EXIT: u32 = 4;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const READ: u32 = 8;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const KSYMBOL: u32 = 17;
    pub(crate) const USER_START: u32 = 64;
    pub(crate) const HEADER_ATTR: u32 = 64;
    pub(crate) const HEADER_TRACING_DATA: u32 = 66;
    pub(crate) const HEADER_BUILD_ID: u32 = 67;
    pub(crate) const FINISHED_ROUND: u32 = 68;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const EVENT_UPDATE: u32 = 78;
    pub(crate) const HEADER_FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const COMPRESSED2: u32 = 83;
    pub(crate) const CALLCHAIN_DEFERRED: u32 = 22;
    /// The highest of the kernel's numbers that are known, and of perf's own (both of 7.2).
    const HIGHEST_OF_KERNEL: u32 = 22;
    const HIGHEST_OF_PERF: u32 = 86;
    /// Numbers above this are taken for garbage: those of newer kernels and perfs come one at a time.
    pub(crate) const HIGHEST: u32 = 127;

    /// Returns whether a record of this number is one that kernel and perf did not have yet.
    pub(crate) fn is_unknown(number: u32) -> bool {
        match number < USER_START {
            true => number > HIGHEST_OF_KERNEL,
            false => number > HIGHEST_OF_PERF,
        }
    }
}

/// Of a `PERF_RECORD_LOST_SAMPLES`: a filter of BPF left the samples out (`PERF_RECORD_MISC_LOST_SAMPLES_BPF`).
const MISC_LOST_SAMPLES_BPF: u16 = 1 << 15;

/// Bytes of `struct perf_event_header`.
pub(crate) const HEADER: usize = 8;

/// `struct perf_event_header`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PerfRecordHeader {
    pub kind: u32,
    pub misc: u16,
    /// Bytes of the record, header included.
    pub size: usize,
}

impl PerfRecordHeader {
    /// Reads the header at `at`. `None` when it is not all there.
    #[inline(always)]
    pub(crate) fn read<const BIG: bool>(data: &[u8], at: usize) -> Option<PerfRecordHeader> {
        u64_at::<BIG>(data, at).map(PerfRecordHeader::of_word::<BIG>)
    }

    /// Takes it apart.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the three numbers are parts of one word"
    )]
    pub(crate) fn of_word<const BIG: bool>(word: u64) -> PerfRecordHeader {
        if BIG {
            PerfRecordHeader {
                kind: (word >> 32) as u32,
                misc: (word >> 16) as u16,
                size: usize::from(word as u16),
            }
        } else {
            PerfRecordHeader {
                kind: word as u32,
                misc: (word >> 32) as u16,
                size: (word >> 48) as usize,
            }
        }
    }

    /// Whether no record begins like this: its kind or size is impossible.
    pub(crate) fn is_none(self) -> bool {
        let impossible = self.size < HEADER || self.kind == 0 || self.kind > kind::HIGHEST;
        // What nobody knows has to look like a record at least: all are whole words.
        impossible || kind::is_unknown(self.kind) && !self.size.is_multiple_of(8)
    }

    /// Reads the header at `at` in a byte order known only now.
    pub(crate) fn read_in(data: &[u8], at: usize, endian: Endian) -> Option<PerfRecordHeader> {
        match endian {
            Endian::Little => PerfRecordHeader::read::<false>(data, at),
            Endian::Big => PerfRecordHeader::read::<true>(data, at),
        }
    }
}

/// Reads a 64-bit number, big-endian or little-endian.
#[inline(always)]
pub(crate) fn u64_at<const BIG: bool>(data: &[u8], at: usize) -> Option<u64> {
    let bytes: &[u8; 8] = data.get(at..)?.first_chunk()?;
    Some(if BIG {
        u64::from_be_bytes(*bytes)
    } else {
        u64::from_le_bytes(*bytes)
    })
}

/// Who counted lost events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostSource {
    /// `PERF_RECORD_LOST`: the kernel found the ring buffer full.
    Ring,
    /// `PERF_RECORD_LOST_SAMPLES`: perf's sum by event, read at the end (since 6.1), or samples the
    /// hardware dropped. It covers what the ring records said.
    Samples,
}

/// The part of a call chain that was walked when its thread went back to user space (`PERF_RECORD_CALLCHAIN_DEFERRED`).
pub(crate) fn deferred_stack<'a>(
    body: &'a [u8],
    layout: &SampleLayout,
    endian: Endian,
) -> Option<SideRecord<'a>> {
    let back = layout.trailer_tid?;
    // Process and thread are one part.
    let tid = endian.u32(body, body.len().checked_sub(usize::from(back))? + 4)?;
    let count = usize::try_from(endian.u64(body, 8)?).ok()?;
    let end = count.checked_mul(8)?.checked_add(16)?;
    Some(SideRecord::DeferredStack {
        tid: tid.cast_signed(),
        cookie: endian.u64(body, 0)?,
        chain: body.get(16..end)?,
    })
}

/// What a counter counted (`PERF_RECORD_READ`), whose attribute the id at the end says, or that is the only one.
/// The kernel writes such a record when a thread ends that is counted with `inherit_stat` (`perf_event_read_event` in
/// `kernel/events/core.c`); values of a whole group are not read.
///
/// An event that threads inherit is open on each CPU, and enabled for a thread wherever that runs: on all CPUs but one
/// it does not run, and nothing is missed. So its times say nothing of events that took turns, and are left out.
pub(crate) fn counter<'a>(
    body: &[u8],
    (attr, of): (u32, &EventAttr),
    endian: Endian,
) -> Option<SideRecord<'a>> {
    if of.read_format & format::GROUP != 0 {
        return None;
    }
    let mut at = 8;
    let end = body.len().checked_sub(usize::from(of.layout.trailer))?;
    let mut word = || {
        let value = endian.u64(body, at)?;
        at += 8;
        (at <= end).then_some(value)
    };
    let value = word()?;
    let has = |bit: u64| of.read_format & bit != 0 && !of.inherit;
    let enabled_ns = if has(format::TOTAL_TIME_ENABLED) {
        Some(word()?)
    } else {
        None
    };
    let running_ns = if has(format::TOTAL_TIME_RUNNING) {
        Some(word()?)
    } else {
        None
    };
    Some(SideRecord::Counter {
        pid: endian.u32(body, 0)?.cast_signed(),
        tid: endian.u32(body, 4)?.cast_signed(),
        attr,
        value,
        enabled_ns,
        running_ns,
    })
}

/// What a recording says beside samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SideRecord<'a> {
    /// A thread's name.
    Comm {
        /// Process id.
        pid: i32,
        /// Thread id.
        tid: i32,
        /// Name, without the padding.
        comm: &'a [u8],
        /// Whether it comes from an exec.
        exec: bool,
    },
    /// A new thread.
    Fork {
        /// Its process.
        pid: i32,
        /// The thread.
        tid: i32,
        /// Its parent's process.
        ppid: i32,
        /// Its parent.
        ptid: i32,
    },
    /// User space's part of a call chain, innermost first.
    DeferredStack {
        /// The thread.
        tid: i32,
        /// The number that the chain has in its place.
        cookie: u64,
        /// The words of the chain, in the recording's byte order.
        chain: &'a [u8],
    },
    /// A counter of a thread was read: what it counted since it was read before (`PERF_RECORD_READ`).
    Counter {
        /// The thread's process.
        pid: i32,
        /// The thread.
        tid: i32,
        /// The counter's attribute, by its number in the recording.
        attr: u32,
        /// What it counted.
        value: u64,
        /// How long it was enabled, ns, where that was read.
        enabled_ns: Option<u64>,
        /// How long of that the processor counted it, ns, where that was read.
        running_ns: Option<u64>,
    },
    /// A thread's end.
    Exit {
        /// Its process.
        pid: i32,
        /// The thread.
        tid: i32,
    },
    /// An executable mapping.
    Mmap {
        /// Process id, -1 for the kernel.
        pid: i32,
        /// Thread id.
        tid: i32,
        /// First address.
        start: u64,
        /// Bytes.
        len: u64,
        /// Offset in the file.
        pgoff: u64,
        /// Whether code may run there: `PROT_EXEC` of `PERF_RECORD_MMAP2`. `PERF_RECORD_MMAP` has no protection; there,
        /// what its header does not mark as data may.
        exec: bool,
        /// Whether it is of huge pages (`MAP_HUGETLB` of `PERF_RECORD_MMAP2`).
        huge: bool,
        /// The file's build id, where it is in the record (`perf record --buildid-mmap`).
        build_id: Option<&'a [u8]>,
        /// File name.
        path: &'a [u8],
    },
    /// Code that the kernel made, or took away again: a BPF program, a trampoline.
    Ksymbol {
        /// First address.
        start: u64,
        /// Bytes.
        len: u32,
        /// Name.
        name: &'a [u8],
        /// Whether it is gone.
        gone: bool,
    },
    /// Lost events.
    Lost {
        /// How many.
        count: u64,
        /// Who counted.
        source: LostSource,
    },
    /// Bytes were skipped that hold no records: nobody knows of which CPUs there were some. A hole is reported two or
    /// three times, so that each CPU hears of it before the first of its records behind the hole, and when the round
    /// ends that has the hole.
    Skipped,
}

/// `PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER`.
const KSYMBOL_UNREGISTER: u16 = 1;

/// `PERF_RECORD_MISC_MMAP_DATA`.
const MISC_MMAP_DATA: u16 = 1 << 13;
/// `PERF_RECORD_MISC_MMAP_BUILD_ID`: `PERF_RECORD_MMAP2` has a build id instead of device and inode.
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
/// `PROT_EXEC` and `MAP_HUGETLB` (`include/uapi/asm-generic/mman-common.h`).
const PROT_EXEC: u32 = 4;
const MAP_HUGETLB: u32 = 0x4_0000;

/// `PERF_RECORD_MISC_COMM_EXEC`.
const MISC_COMM_EXEC: u16 = 1 << 13;

/// Returns the bytes up to the first NUL.
fn cstr(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

/// Returns the build id of a `PERF_RECORD_MMAP2`: its length in a byte, three bytes of nothing, and 20 for the id.
fn build_id(header: PerfRecordHeader, body: &[u8]) -> Option<&[u8]> {
    if header.misc & MISC_MMAP_BUILD_ID == 0 {
        return None;
    }
    let length = usize::from(*body.get(32)?).min(20);
    body.get(36..36 + length).filter(|id| !id.is_empty())
}

/// Reads a record's body (behind its header). `None` for kinds that are not used here, and for bodies too
/// short for their kind.
pub(crate) fn parse_side<'a>(
    header: PerfRecordHeader,
    body: &'a [u8],
    trailer: usize,
    endian: Endian,
) -> Option<SideRecord<'a>> {
    let int = |offset: usize| endian.u32(body, offset).map(u32::cast_signed);
    let long = |offset: usize| endian.u64(body, offset);
    // Names end where the trailer of time and place begins.
    let name = |offset: usize| Some(cstr(body.get(offset..body.len().checked_sub(trailer)?)?));
    Some(match header.kind {
        kind::COMM => SideRecord::Comm {
            pid: int(0)?,
            tid: int(4)?,
            comm: name(8)?,
            exec: header.misc & MISC_COMM_EXEC != 0,
        },
        kind::FORK => SideRecord::Fork {
            pid: int(0)?,
            ppid: int(4)?,
            tid: int(8)?,
            ptid: int(12)?,
        },
        kind::EXIT => SideRecord::Exit {
            pid: int(0)?,
            tid: int(8)?,
        },
        kind::MMAP => SideRecord::Mmap {
            pid: int(0)?,
            tid: int(4)?,
            start: long(8)?,
            len: long(16)?,
            pgoff: long(24)?,
            exec: header.misc & MISC_MMAP_DATA == 0,
            huge: false,
            build_id: None,
            path: name(32)?,
        },
        // Between offset and name: device and inode, or a build id, then protection and flags.
        kind::MMAP2 => SideRecord::Mmap {
            pid: int(0)?,
            tid: int(4)?,
            start: long(8)?,
            len: long(16)?,
            pgoff: long(24)?,
            exec: endian.u32(body, 56)? & PROT_EXEC != 0,
            huge: endian.u32(body, 60)? & MAP_HUGETLB != 0,
            build_id: build_id(header, body),
            path: name(64)?,
        },
        kind::KSYMBOL => SideRecord::Ksymbol {
            start: long(0)?,
            len: endian.u32(body, 8)?,
            name: name(16)?,
            gone: endian.u16(body, 14)? & KSYMBOL_UNREGISTER != 0,
        },
        kind::LOST => SideRecord::Lost {
            count: long(8)?,
            source: LostSource::Ring,
        },
        // What a filter (perf record --filter, as a program of BPF) left out was not wanted.
        kind::LOST_SAMPLES if header.misc & MISC_LOST_SAMPLES_BPF != 0 => return None,
        kind::LOST_SAMPLES => SideRecord::Lost {
            count: long(0)?,
            source: LostSource::Samples,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_says_whether_code_may_run_there() {
        let read = |kind, misc, prot: u32, flags: u32| {
            let header = PerfRecordHeader {
                kind,
                misc,
                size: 80,
            };
            let mut body = vec![0u8; 72];
            body[56..60].copy_from_slice(&prot.to_le_bytes());
            body[60..64].copy_from_slice(&flags.to_le_bytes());
            match parse_side(header, &body, 0, Endian::Little) {
                Some(SideRecord::Mmap { exec, huge, .. }) => (exec, huge),
                other => panic!("{other:?}"),
            }
        };
        let data = MISC_MMAP_DATA;
        assert_eq!(read(kind::MMAP2, 2, 5, 2), (true, false));
        assert_eq!(read(kind::MMAP2, 2, 3, 2), (false, false));
        assert_eq!(read(kind::MMAP2, 2 | data, 5, 0x4_0022), (true, true));
        // The older record has no protection.
        assert_eq!(read(kind::MMAP, 2, 0, 0), (true, false));
        assert_eq!(read(kind::MMAP, 2 | data, 0, 0), (false, false));
    }

    #[test]
    fn a_mapping_says_its_build_id() {
        let read = |misc, length: u8| {
            let header = PerfRecordHeader {
                kind: kind::MMAP2,
                misc,
                size: 80,
            };
            let mut body = vec![0u8; 72];
            body[32] = length;
            body[36..56].copy_from_slice(&[7; 20]);
            match parse_side(header, &body, 0, Endian::Little) {
                Some(SideRecord::Mmap { build_id, .. }) => build_id.map(<[u8]>::len),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(read(2 | MISC_MMAP_BUILD_ID, 20), Some(20));
        assert_eq!(read(2 | MISC_MMAP_BUILD_ID, 16), Some(16));
        assert_eq!(read(2 | MISC_MMAP_BUILD_ID, 255), Some(20));
        assert_eq!(read(2 | MISC_MMAP_BUILD_ID, 0), None);
        // Device and inode.
        assert_eq!(read(2, 20), None);
    }
}
