//! The feature sections: what perf notes of the machine and of the recording.
//!
//! Source: `tools/perf/util/header.c`, `perf.data-file-format.txt`.

use cpuset::NumaNode;
use tracefmt::index_of;
use tracefmt::{Cursor, Diagnostic, Endian, TracingSection, parse_tracing_data};

use crate::attr::EventAttr;

/// `HEADER_*` numbers.
pub(crate) mod number {
    pub(crate) const TRACING_DATA: u32 = 1;
    pub(crate) const BUILD_ID: u32 = 2;
    pub(crate) const HOSTNAME: u32 = 3;
    pub(crate) const OSRELEASE: u32 = 4;
    pub(crate) const VERSION: u32 = 5;
    pub(crate) const ARCH: u32 = 6;
    pub(crate) const NRCPUS: u32 = 7;
    pub(crate) const CPUDESC: u32 = 8;
    pub(crate) const CPUID: u32 = 9;
    pub(crate) const TOTAL_MEM: u32 = 10;
    pub(crate) const CMDLINE: u32 = 11;
    pub(crate) const EVENT_DESC: u32 = 12;
    pub(crate) const NUMA_TOPOLOGY: u32 = 14;
    pub(crate) const SAMPLE_TIME: u32 = 21;
    pub(crate) const CLOCKID: u32 = 23;
    pub(crate) const DIR_FORMAT: u32 = 24;
    pub(crate) const CLOCK_DATA: u32 = 29;
    /// trapline's own (`record`), far from perf's: perf 6.18 has 32, and passes over those that it does not know.
    pub(crate) const TRAPLINE: u32 = 200;
}

/// Bytes of what trapline says that are read at most: it has a few hundred.
const MAX_JSON: usize = 64 << 10;

/// A file the recording saw, and the build id it had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildId {
    /// File name; `[kernel.kallsyms]` for the kernel.
    pub path: String,
    /// The id, 20 bytes or fewer.
    pub id: Vec<u8>,
    /// Whether the file is the kernel's or a module.
    pub kernel: bool,
    /// Whether a guest had it.
    pub guest: bool,
}

/// What a recording says of the machine and of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PerfMachine {
    /// Host name.
    pub hostname: Option<String>,
    /// Kernel release, as `uname -r`.
    pub kernel: Option<String>,
    /// Version of perf.
    pub perf_version: Option<String>,
    /// Architecture, as `uname -m`.
    pub arch: Option<String>,
    /// CPUs the machine has, and those that were online.
    pub cpus: Option<(u32, u32)>,
    /// The CPU's own name.
    pub cpu_desc: Option<String>,
    /// The CPU's identification: vendor, family, model and stepping on x86, MIDR on arm64.
    pub cpuid: Option<String>,
    /// Memory in KiB.
    pub total_mem_kib: Option<u64>,
    /// NUMA nodes, without their distances.
    pub nodes: Vec<NumaNode>,
    /// The recording command and its arguments.
    pub cmdline: Vec<String>,
    /// First and last sample's time.
    pub sample_time: Option<(u64, u64)>,
    /// `clockid` the recording was asked to use.
    pub clockid_res_ns: Option<u64>,
    /// One moment on the wall clock and on the clock of the events, both in nanoseconds: recorded where perf was asked
    /// for a clock (`perf record -k`).
    pub wall_clock: Option<(u64, u64)>,
    /// What trapline's own recorder says of the recording: JSON, as it stands in the file.
    pub trapline: Option<String>,
    /// Whether it is one file of a folder with several (`perf record --threads`).
    pub of_folder: bool,
    /// Build ids of the files that samples fell into.
    pub build_ids: Vec<BuildId>,
}

/// Reads one feature section into what it says.
///
/// Returns the tracing data if this section is that one.
pub(crate) fn read(
    feature: u32,
    data: &[u8],
    endian: Endian,
    info: &mut PerfMachine,
    attrs: &mut [EventAttr],
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<TracingSection> {
    let mut cursor = Cursor::new(data, endian);
    let complete = match feature {
        number::TRACING_DATA => return Some(parse_tracing_data(data)),
        number::BUILD_ID => read_build_ids(data, endian, &mut info.build_ids),
        number::HOSTNAME => set(&mut info.hostname, string(&mut cursor)),
        number::OSRELEASE => set(&mut info.kernel, string(&mut cursor)),
        number::VERSION => set(&mut info.perf_version, string(&mut cursor)),
        number::ARCH => set(&mut info.arch, string(&mut cursor)),
        number::CPUDESC => set(&mut info.cpu_desc, string(&mut cursor)),
        number::CPUID => set(&mut info.cpuid, string(&mut cursor)),
        number::NRCPUS => {
            let pair = cursor.u32().zip(cursor.u32());
            // Online comes second in the newest layout; both numbers are the same on nearly every machine.
            set(&mut info.cpus, pair)
        }
        number::TOTAL_MEM => set(&mut info.total_mem_kib, cursor.u64()),
        number::NUMA_TOPOLOGY => read_nodes(&mut cursor, &mut info.nodes, diagnostics),
        number::SAMPLE_TIME => set(&mut info.sample_time, cursor.u64().zip(cursor.u64())),
        // The version of the format, which has been 1 since there is one.
        number::DIR_FORMAT => {
            info.of_folder = true;
            Some(())
        }
        number::CLOCKID => set(&mut info.clockid_res_ns, cursor.u64()),
        // `write_clock_data`: version, which is 1, the clock's number, and a time on both.
        number::CLOCK_DATA => {
            let clock = cursor.u32().zip(cursor.u32());
            let times = clock.and_then(|_| cursor.u64().zip(cursor.u64()));
            set(&mut info.wall_clock, times)
        }
        number::CMDLINE => read_cmdline(&mut cursor, &mut info.cmdline),
        number::TRAPLINE => {
            let text = &data[..data.len().min(MAX_JSON)];
            info.trapline = Some(String::from_utf8_lossy(text).into_owned());
            Some(())
        }
        number::EVENT_DESC => read_event_desc(&mut cursor, attrs),
        _ => Some(()),
    };
    if complete.is_none() {
        diagnostics.push(Diagnostic::new(format!(
            "feature section {feature} ends early"
        )));
    }
    None
}

/// Most nodes: `MAX_NUMNODES` of the largest configurations is 1024.
const MAX_NODES: u32 = 1 << 12;

/// `write_numa_topology`: how many; of each its number, its memory and what is free of it in KiB, and its CPUs as a
/// list. One whose CPUs are no list is left out.
fn read_nodes(
    cursor: &mut Cursor<'_>,
    nodes: &mut Vec<NumaNode>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<()> {
    let all = cursor.u32()?;
    if all > MAX_NODES {
        diagnostics.push(Diagnostic::new(format!(
            "{all} NUMA nodes: those beyond {MAX_NODES} are not read"
        )));
    }
    for _ in 0..all.min(MAX_NODES) {
        let (node, memory_kib, _free) = (cursor.u32()?, cursor.u64()?, cursor.u64()?);
        let cpus = string(cursor)?;
        if let Ok(cpus) = cpus.trim().parse() {
            nodes.push(NumaNode {
                node,
                cpus,
                memory_bytes: memory_kib.checked_mul(1024),
                distances: Vec::new(),
            });
        }
    }
    nodes.sort_by_key(|node| node.node);
    Some(())
}

fn set<T>(place: &mut Option<T>, value: Option<T>) -> Option<()> {
    *place = Some(value?);
    Some(())
}

/// A string: 32-bit length, then that many bytes, padded with NUL.
pub(crate) fn string(cursor: &mut Cursor<'_>) -> Option<String> {
    let len = cursor.u32()?;
    let bytes = cursor.take(u64::from(len))?;
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

fn read_cmdline(cursor: &mut Cursor<'_>, out: &mut Vec<String>) -> Option<()> {
    let count = cursor.u32()?;
    out.clear();
    for _ in 0..count {
        out.push(string(cursor)?);
    }
    Some(())
}

/// Names of the events, found again by the ids they share with an attribute.
fn read_event_desc(cursor: &mut Cursor<'_>, attrs: &mut [EventAttr]) -> Option<()> {
    let count = cursor.u32()?;
    let attr_size = cursor.u32()?;
    let mut by_id: Vec<(u64, usize)> = Vec::new();
    for (position, attr) in attrs.iter().enumerate() {
        by_id.extend(attr.ids.iter().map(|&id| (id, position)));
    }
    by_id.sort_unstable();
    let find = |id: u64| {
        let (found, position) = *by_id.get(by_id.partition_point(|p| p.0 < id))?;
        (found == id).then_some(position)
    };
    for index in 0..count {
        let bytes = cursor.take(u64::from(attr_size))?;
        let ids = cursor.u32()?;
        let name = string(cursor)?;
        let mut first_id = None;
        for _ in 0..ids {
            first_id = first_id.or(Some(cursor.u64()?));
        }
        // Without ids there is one event, or the order is the attributes' own.
        let position = first_id.and_then(find).or_else(|| {
            let parsed = EventAttr::parse(bytes, cursor.endian)?.0;
            let same = attrs.get(index_of(index))?;
            (same.config == parsed.config && same.kind == parsed.kind).then_some(index_of(index))
        });
        if let Some(position) = position {
            attrs[position].name = name;
        }
    }
    Some(())
}

/// Build ids are records: header, process, 20 bytes of id (its length in the 21st where a flag says so), name.
fn read_build_ids(data: &[u8], endian: Endian, out: &mut Vec<BuildId>) -> Option<()> {
    const MISC_SIZE: u16 = 1 << 15;
    const FIXED: usize = 8 + 4 + 24;
    let mut at = 0;
    while at < data.len() {
        let misc = endian.u16(data, at + 4)?;
        let size = usize::from(endian.u16(data, at + 6)?);
        let record = data.get(at..at.checked_add(size.max(FIXED))?)?;
        let id_len = if misc & MISC_SIZE != 0 {
            usize::from(record[32]).min(20)
        } else {
            20
        };
        let name = &record[FIXED..];
        let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
        out.push(BuildId {
            path: String::from_utf8_lossy(&name[..end]).into_owned(),
            id: record[12..12 + id_len].to_vec(),
            kernel: misc & 7 == 1 || misc & 7 == 4,
            guest: misc & 7 == 4 || misc & 7 == 5,
        });
        at += record.len();
    }
    Some(())
}

/// Reads a build id record of pipe mode (`PERF_RECORD_HEADER_BUILD_ID`), header included.
pub(crate) fn read_build_id_record(record: &[u8], endian: Endian, out: &mut Vec<BuildId>) {
    let _ = read_build_ids(record, endian, out);
}
