//! A recording, and what stands around its data.

use tracefmt::{Diagnostic, Endian, FormatCatalog};

use crate::attr::{AttrType, EventAttr};
use crate::byte_source::ByteSource;
use crate::feature::{self, PerfMachine};

/// Attributes of one recording are not believed beyond this: perf opens a few hundred tracepoints at most.
pub(crate) const MAX_ATTRS: usize = 60_000;

/// Returns what is said of a recording with more of them.
pub(crate) fn too_many_attributes(at: u64) -> Diagnostic {
    let what = format!(
        "more than {MAX_ATTRS} attributes: the samples of the others belong to no known event"
    );
    Diagnostic::at(at, what)
}

/// A recording of `perf record`.
#[derive(Debug)]
pub struct PerfRecording<'a> {
    pub(crate) data: &'a [u8],
    /// Reads it by pieces.
    pub(crate) source: Option<&'a dyn ByteSource>,
    pub(crate) endian: Endian,
    pub(crate) attrs: Vec<EventAttr>,
    /// Whether a pipe has had more of them than are read.
    pub(crate) attrs_beyond: bool,
    /// First byte of the records.
    pub(crate) start: usize,
    /// First byte behind the records.
    pub(crate) end: usize,
    pipe: bool,
    formats: FormatCatalog,
    has_formats: bool,
    info: PerfMachine,
    pub(crate) truncated: bool,
    /// The end of the data is missing, and not only what stands behind it.
    pub(crate) data_cut: bool,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> PerfRecording<'a> {
    /// Returns a recording of which nothing has been read.
    pub(crate) fn unread(data: &'a [u8], endian: Endian, pipe: bool) -> PerfRecording<'a> {
        PerfRecording {
            data,
            source: None,
            endian,
            attrs: Vec::new(),
            attrs_beyond: false,
            start: 0,
            end: data.len(),
            pipe,
            formats: FormatCatalog::default(),
            has_formats: false,
            info: PerfMachine::default(),
            truncated: false,
            data_cut: false,
            diagnostics: Vec::new(),
        }
    }

    /// Returns the input.
    pub fn bytes(&self) -> &'a [u8] {
        self.data
    }

    /// Has walks read the input by pieces, where it is cheaper than to look at it in a map. The source has to have the
    /// same bytes.
    #[must_use]
    pub fn read_by(self, source: Option<&'a dyn ByteSource>) -> PerfRecording<'a> {
        PerfRecording { source, ..self }
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

    pub(crate) fn set_tracing(&mut self, tracing: tracefmt::TracingSection) {
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
                AttrType::Tracepoint => {
                    match attr.tracepoint_id().and_then(|id| self.formats.by_id(id)) {
                        Some(format) => format!("{}:{}", format.system, format.name),
                        None => format!("tracepoint:{}", attr.config),
                    }
                }
                AttrType::Hardware => generalised(HARDWARE, "hardware", attr.config),
                AttrType::Software => generalised(SOFTWARE, "software", attr.config),
                AttrType::Other(kind) => format!("pmu{kind}:{:#x}", attr.config),
            };
        }
    }

    /// Returns byte order of the recording.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Returns the event attributes. Samples name theirs by its position here.
    pub fn attrs(&self) -> &[EventAttr] {
        &self.attrs
    }

    /// Returns the formats of its tracepoints; empty when the recording has none, or lost them.
    pub fn formats(&self) -> &FormatCatalog {
        &self.formats
    }

    /// Returns whether the recording brought its formats.
    pub fn has_formats(&self) -> bool {
        self.has_formats
    }

    /// Returns what it says of machine and recording.
    pub fn info(&self) -> &PerfMachine {
        &self.info
    }

    /// Returns whether it has groups whose members are read with their leader's samples.
    pub fn has_groups(&self) -> bool {
        self.attrs.iter().any(EventAttr::is_group_member)
    }

    /// Returns whether it was written to a pipe.
    pub fn is_pipe(&self) -> bool {
        self.pipe
    }

    /// Returns whether its end is missing, as far as its header shows.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Returns whether records are missing at its end, as far as its header shows.
    pub fn data_truncated(&self) -> bool {
        self.data_cut
    }

    /// Returns what could not be read, records aside.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    pub(crate) fn note(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    pub(crate) fn info_mut(&mut self) -> &mut PerfMachine {
        &mut self.info
    }
}

/// Returns the name of a generalised event: of its kind's list, or kind and number.
fn generalised(names: &[&str], kind: &str, config: u64) -> String {
    let name = usize::try_from(config).ok().and_then(|at| names.get(at));
    name.map_or_else(|| format!("{kind}:{config}"), |n| (*n).to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::SampleLayout;

    #[test]
    fn a_tracepoint_is_named_by_all_of_its_number() {
        let mut recording = PerfRecording::unread(&[], Endian::Little, false);
        let format = b"name: kvm_exit\nID: 7\nformat:\n\nprint fmt: \"\"\n";
        recording.formats.add("kvm", format);
        let attr = |config| EventAttr {
            kind: AttrType::Tracepoint,
            config,
            sample_period: 1,
            sample_type: 0,
            read_format: 0,
            inherit: false,
            sample_id_all: false,
            exclude_host: false,
            exclude_guest: false,
            clockid: None,
            name: String::new(),
            ids: Vec::new(),
            layout: SampleLayout::default(),
            bytes: Vec::new(),
        };
        recording.attrs = vec![attr(7), attr(7 | 1 << 32)];
        recording.name_attrs();
        let names: Vec<_> = recording.attrs.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names, ["kvm:kvm_exit", "tracepoint:4294967303"]);
    }
}
