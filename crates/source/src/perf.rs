//! perf.data as events.

use std::sync::Arc;

use doubts::DoubtKind;
use event::{EventType, Quality, RecordingCost, Sink};
use perfdata::{PerfRecording, SampleWish, Totals};
use tracefmt::FormatCatalog;

use crate::header::{JointRecordings, RecordingHeader, TimeStampUnit, WallClock, WallClockSource};
use crate::perf_push::{AttrKinds, PerfPush};
use crate::walked::{WalkOutcome, WalkWatch};
use crate::{kept, pairs, together};

/// Returns who recorded: perf says its version alone.
fn recorder(version: &str) -> String {
    match version.starts_with("trapline ") {
        true => version.to_owned(),
        false => format!("perf {version}"),
    }
}

/// Returns what trapline's own recorder says of the recording's cost.
fn cost(json: &str) -> Option<RecordingCost> {
    let said: serde_json::Value = serde_json::from_str(json).ok()?;
    let number = |name: &str| said["cost"][name].as_u64();
    Some(RecordingCost {
        event_ns: number("event_ns")?,
        mean_ns: number("mean_ns"),
        busiest_cpu: number("busiest_cpu").and_then(|cpu| u32::try_from(cpu).ok()),
        cpu: number("cpu").and_then(|cpu| u32::try_from(cpu).ok())?,
        recorder_ns: number("recorder_ns"),
    })
}

/// Returns the process of trapline's own recorder.
fn recorder_pid(json: &str) -> Option<i32> {
    let said: serde_json::Value = serde_json::from_str(json).ok()?;
    let pid = said["recorder"]["pid"].as_i64()?;
    i32::try_from(pid).ok().filter(|pid| *pid > 0)
}

/// Returns what the time of day was, as trapline's own recorder says, or perf's header.
fn wall_clock(info: &perfdata::PerfMachine) -> Option<WallClock> {
    let own = info.trapline.as_deref().and_then(|json| {
        let said: serde_json::Value = serde_json::from_str(json).ok()?;
        let number = |name: &str| said["wall_clock"][name].as_u64();
        let (unix_ns, event_ns) = (number("unix_ns")?, number("event_ns")?);
        WallClock::of(unix_ns, event_ns, WallClockSource::Recorder)
    });
    own.or_else(|| {
        let (unix_ns, event_ns) = info.wall_clock?;
        WallClock::of(unix_ns, event_ns, WallClockSource::ClockData)
    })
}

/// A perf.data whose definitions are read.
#[derive(Debug)]
pub(crate) struct PerfReader<'r> {
    data: PerfRecording<'r>,
    lent: Option<&'r FormatCatalog>,
    /// By attribute, what perf calls an event whose name was lost with its format: `system:name`.
    labels: Vec<Option<String>>,
    header: RecordingHeader,
}

impl<'r> PerfReader<'r> {
    pub(crate) fn new(data: PerfRecording<'r>, lent: Option<&'r FormatCatalog>) -> PerfReader<'r> {
        let info = data.info();
        let clockid = data.attrs().iter().find_map(|a| a.clockid);
        let header = RecordingHeader {
            format: if data.is_pipe() {
                "perf.data (pipe)"
            } else {
                "perf.data"
            }
            .to_owned(),
            arch: info.arch.clone(),
            kernel: info.kernel.clone(),
            hostname: info.hostname.clone(),
            cpus: info.cpus.map(|c| c.1.max(c.0)),
            cpu_desc: info.cpu_desc.clone(),
            nodes: info.nodes.clone(),
            clock: Some(clock_name(clockid)),
            wall_clock: wall_clock(info),
            time_unit: TimeStampUnit::Nanoseconds,
            seconds: true,
            resolution_ns: 1,
            recorder: info.perf_version.as_deref().map(recorder),
            recorder_pid: info.trapline.as_deref().and_then(recorder_pid),
            pairs: info.trapline.as_deref().map_or_else(Vec::new, pairs::names),
            cost: info.trapline.as_deref().and_then(cost),
            together: info
                .trapline
                .as_deref()
                .map_or_else(JointRecordings::default, together::reported),
            command: (!info.cmdline.is_empty()).then(|| info.cmdline.join(" ")),
            ..RecordingHeader::default()
        };
        let mut reader = PerfReader {
            data,
            lent,
            labels: Vec::new(),
            header,
        };
        reader.labels = reader.lost_labels();
        reader
    }

    fn lost_labels(&self) -> Vec<Option<String>> {
        let (formats, lent) = (self.formats(), !self.data.has_formats());
        let label = |attr: &perfdata::EventAttr| {
            let format = formats.by_id(attr.tracepoint_id()?).filter(|_| lent)?;
            Some(format!("{}:{}", format.system, format.name))
        };
        self.data.attrs().iter().map(label).collect()
    }

    fn kinds(&self) -> AttrKinds<'_> {
        let (formats, attrs) = (self.formats(), self.data.attrs());
        let types = attrs.iter().zip(&self.labels).zip(0u32..);
        let types = types.map(|((attr, label), index)| {
            let label = label.as_deref().unwrap_or(&attr.name);
            let format = attr.tracepoint_id().and_then(|id| formats.by_id(id));
            let ty = match format {
                Some(format) => EventType::of_format(index, format, label),
                None => EventType::bare(index, label, attr.tracepoint_id().is_some()),
            };
            EventType {
                recorded: true,
                ..ty
            }
        });
        AttrKinds::new(types.collect(), attrs, self.data.endian())
    }

    /// Begins a walk over records that come in pieces.
    pub(crate) fn pieces<'s>(&'s self, watch: WalkWatch<'s>) -> RecordingPieces<'s> {
        RecordingPieces {
            kinds: self.kinds(),
            walk: self.data.pieces(),
            watch,
        }
    }

    pub(crate) fn header(&self) -> &RecordingHeader {
        &self.header
    }

    pub(crate) fn data(&self) -> &PerfRecording<'r> {
        &self.data
    }

    pub(crate) fn formats(&self) -> &FormatCatalog {
        match self.lent {
            Some(lent) if !self.data.has_formats() => lent,
            _ => self.data.formats(),
        }
    }

    pub(crate) fn walk(
        &self,
        sink: &mut dyn Sink,
        watch: &WalkWatch<'_>,
        threads: usize,
    ) -> WalkOutcome {
        self.walk_by(sink, watch, |push, wanted| {
            self.data.walk_on(threads, wanted, push)
        })
    }

    /// Walks on from a place.
    pub(crate) fn walk_from(
        &self,
        place: &perfdata::WalkPlace,
        sink: &mut dyn Sink,
        watch: &WalkWatch<'_>,
    ) -> WalkOutcome {
        // Who goes on from a place looks at a short part, and another thread would read far ahead of it.
        self.walk_by(sink, watch, |push, wanted| {
            self.data.walk_from(place, wanted, push)
        })
    }

    fn walk_by(
        &self,
        sink: &mut dyn Sink,
        watch: &WalkWatch<'_>,
        walk: impl FnOnce(&mut PerfPush<'_>, &[SampleWish]) -> Totals,
    ) -> WalkOutcome {
        let mut kinds = self.kinds();
        // What a group's leader says of its members is not seen where the scan finds the sample.
        let tallies = !self.data.has_groups();
        let wanted = kinds.wanted(sink, tallies);
        let mut push = kinds.push(sink, watch);
        let totals = walk(&mut push, &wanted);
        let losses = push.losses;
        WalkOutcome {
            quality: Quality {
                losses,
                ..self.quality(&totals, &kinds.types)
            },
            read: kinds
                .types
                .iter()
                .map(|ty| ty.kind)
                .zip(totals.samples.iter().copied())
                .collect(),
            resolution_ns: 1,
        }
    }

    fn quality(&self, totals: &Totals, types: &[EventType<'_>]) -> Quality {
        let cut = totals.truncated || self.data.data_truncated();
        let mut quality = Quality {
            // Both count the same losses: the ring where they happened, the sums at the end (perf 6.1 on).
            // Of a hole nobody knows more than that there were some.
            lost_events: (totals.lost_ring.max(totals.lost_samples)).saturating_add(totals.holes),
            truncated: totals.truncated || self.data.truncated(),
            uneven_from: totals.whole_until.filter(|_| cut),
            ..Quality::default()
        };
        if let Some(less) = self.data.info().trapline.as_deref().and_then(kept::less) {
            quality.raise(less);
        }
        let said = self.data.info().trapline.as_deref();
        for pair in said.into_iter().flat_map(pairs::doubts) {
            quality.raise(pair);
        }
        for diagnostic in self.data.diagnostics().iter().chain(&totals.diagnostics) {
            quality.raise(DoubtKind::FileDamaged {
                format: self.header.format.clone(),
                what: diagnostic.to_string(),
            });
        }
        let without_format: u64 = types
            .iter()
            .zip(&totals.samples)
            .zip(self.data.attrs())
            .filter(|((ty, _), attr)| ty.format.is_none() && attr.tracepoint_id().is_some())
            .map(|((_, count), _)| count)
            .sum();
        let numbers = [
            (
                without_format,
                DoubtKind::FormatMissing {
                    events: without_format,
                },
            ),
            (
                totals.unknown_id,
                DoubtKind::SamplesUnknown {
                    samples: totals.unknown_id,
                },
            ),
            (
                totals.out_of_order,
                DoubtKind::OutOfOrder {
                    samples: totals.out_of_order,
                },
            ),
            (
                totals.skipped_bytes,
                DoubtKind::Holes {
                    bytes: totals.skipped_bytes,
                    holes: totals.holes,
                },
            ),
            (
                totals.unknown_records,
                DoubtKind::RecordTypesUnknown {
                    records: totals.unknown_records,
                    kind: u64::from(totals.unknown_kind),
                },
            ),
            (
                totals.aux_bytes,
                DoubtKind::AuxNotRead {
                    bytes: totals.aux_bytes,
                },
            ),
        ];
        if self.data.info().of_folder {
            quality.raise(DoubtKind::FilesNotRead);
        }
        for (number, doubt) in numbers {
            if number > 0 {
                quality.raise(doubt);
            }
        }
        quality
    }
}

/// Names the clock as perf's `-k` does.
fn clock_name(clockid: Option<i32>) -> String {
    match clockid {
        None => "perf".to_owned(),
        Some(0) => "realtime".to_owned(),
        Some(1) => "monotonic".to_owned(),
        Some(4) => "monotonic_raw".to_owned(),
        Some(7) => "boottime".to_owned(),
        Some(11) => "tai".to_owned(),
        Some(other) => format!("clockid {other}"),
    }
}

/// A walk over a perf.data whose records come in pieces, while they are recorded ([`crate::RecordingReader::pieces`]).
///
/// It gives a sink what [`crate::RecordingReader::walk`] over all of them does, all in time order, each event as soon
/// as a piece has the end of the round that settles it.
#[derive(Debug)]
pub struct RecordingPieces<'s> {
    kinds: AttrKinds<'s>,
    walk: perfdata::PerfPieces<'s, 's>,
    watch: WalkWatch<'s>,
}

impl RecordingPieces<'_> {
    /// Asks a sink which kinds of events it wants: before the first piece, and when another sink takes its place.
    pub fn ask(&mut self, sink: &mut dyn Sink) {
        let wanted = self.kinds.wanted(sink, false);
        self.walk.want(&wanted);
    }

    /// Takes a piece, which is of whole records, and pushes what is settled then.
    pub fn walk(&mut self, piece: &Arc<Vec<u8>>, sink: &mut dyn Sink) {
        self.walk
            .walk(piece, &mut self.kinds.push(sink, &self.watch));
    }

    /// Pushes all that waits: behind the last piece nothing comes any more.
    pub fn finish(&mut self, sink: &mut dyn Sink) {
        self.walk.finish(&mut self.kinds.push(sink, &self.watch));
    }

    /// Returns up to which time everything was pushed.
    pub fn settled(&self) -> u64 {
        self.walk.settled()
    }

    /// Returns the newest time of all that came before the end of the last round, pushed or not.
    pub fn newest(&self) -> u64 {
        self.walk.newest()
    }
}
