//! A recording, and what stands around its data.

use tracefmt::{Diagnostic, Endian, Formats};

use crate::attr::{Attr, AttrType};
use crate::feature::{self, Info};

/// Attributes of one recording are not believed beyond this: perf opens a few hundred tracepoints at most.
pub(crate) const MAX_ATTRS: usize = 60_000;

/// A recording of `perf record`.
#[derive(Debug)]
pub struct PerfData<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) endian: Endian,
    pub(crate) attrs: Vec<Attr>,
    /// First byte of the records.
    pub(crate) start: usize,
    /// First byte behind the records.
    pub(crate) end: usize,
    pipe: bool,
    formats: Formats,
    has_formats: bool,
    info: Info,
    pub(crate) truncated: bool,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> PerfData<'a> {
    /// Returns a recording of which nothing has been read.
    pub(crate) fn unread(data: &'a [u8], endian: Endian, pipe: bool) -> PerfData<'a> {
        PerfData {
            data,
            endian,
            attrs: Vec::new(),
            start: 0,
            end: data.len(),
            pipe,
            formats: Formats::default(),
            has_formats: false,
            info: Info::default(),
            truncated: false,
            diagnostics: Vec::new(),
        }
    }

    pub(crate) fn ids(&self, bytes: &[u8]) -> Vec<u64> {
        bytes
            .chunks_exact(8)
            .filter_map(|c| self.endian.u64(c, 0))
            .collect()
    }

    pub(crate) fn feature(&mut self, bit: u32, section: &[u8]) {
        let tracing = feature::read(
            bit,
            section,
            self.endian,
            &mut self.info,
            &mut self.attrs,
            &mut self.diagnostics,
        );
        if let Some(tracing) = tracing {
            self.set_tracing(tracing);
        }
    }

    pub(crate) fn set_tracing(&mut self, tracing: tracefmt::TracingData) {
        self.diagnostics
            .extend(tracing.formats.diagnostics.iter().cloned());
        self.formats = tracing.formats;
        self.has_formats = true;
    }

    /// Names events that have none: tracepoints by their format, the generalised ones by their number.
    pub(crate) fn name_attrs(&mut self) {
        for attr in &mut self.attrs {
            if !attr.name.is_empty() {
                continue;
            }
            attr.name = match attr.kind {
                AttrType::Tracepoint => match self.formats.by_id(attr.config as u32) {
                    Some(format) => format!("{}:{}", format.system, format.name),
                    None => format!("tracepoint:{}", attr.config),
                },
                AttrType::Hardware => HARDWARE
                    .get(attr.config as usize)
                    .map_or_else(|| format!("hardware:{}", attr.config), |n| (*n).to_owned()),
                AttrType::Software => SOFTWARE
                    .get(attr.config as usize)
                    .map_or_else(|| format!("software:{}", attr.config), |n| (*n).to_owned()),
                AttrType::Other(kind) => format!("pmu{kind}:{:#x}", attr.config),
            };
        }
    }

    /// Returns byte order of the recording.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Returns the event attributes. Samples name theirs by its position here.
    pub fn attrs(&self) -> &[Attr] {
        &self.attrs
    }

    /// Returns the formats of its tracepoints; empty when the recording has none, or lost them.
    pub fn formats(&self) -> &Formats {
        &self.formats
    }

    /// Returns whether the recording brought its formats.
    pub fn has_formats(&self) -> bool {
        self.has_formats
    }

    /// Returns what it tells of machine and recording.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Returns whether it was written to a pipe.
    pub fn is_pipe(&self) -> bool {
        self.pipe
    }

    /// Returns whether its end is missing, as far as its header tells.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Returns what of it could not be taken, records aside.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    pub(crate) fn note(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    pub(crate) fn info_mut(&mut self) -> &mut Info {
        &mut self.info
    }
}

/// `PERF_COUNT_HW_*`, as perf prints them.
const HARDWARE: &[&str] = &[
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// `PERF_COUNT_SW_*`, as perf prints them.
const SOFTWARE: &[&str] = &[
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];
