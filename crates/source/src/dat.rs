//! trace.dat as events.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use doubts::DoubtKind;
use event::{Body, CpuLosses, Event, EventType, LostKind, NONE, Quality, Side, Sink};
use tracedat::{LostGap, RingRecord, TraceDat, TraceVisitor, WalkEnd};
use tracefmt::FormatCatalog;

use crate::header::{
    GuestMap, JointRecordings, RecordingHeader, TimeStampUnit, WallClock, WallClockSource,
};
use crate::walked::{WalkOutcome, WalkWatch};

/// A trace.dat whose header is read.
#[derive(Debug)]
pub(crate) struct DatReader<'r> {
    data: TraceDat<'r>,
    header: RecordingHeader,
}

/// `trace-cmd record -e` saves the formats of the events that it was asked to record, and ftrace's own; without
/// `-e`, and when it extracts what was traced before, it saves those of all of the kernel's hundred systems or
/// more. A file with the formats of so few systems was made by the former.
const ASKED_FOR: usize = 16;

impl<'r> DatReader<'r> {
    /// `symbols` says whether kernel symbols will be printed: they are the largest part of the header. `own_clock` is
    /// that of [`ReaderOptions`](crate::ReaderOptions).
    pub(crate) fn new(mut data: TraceDat<'r>, symbols: bool, own_clock: bool) -> DatReader<'r> {
        if symbols {
            data.load_symbols();
        }
        let header = make_header(&data);
        if own_clock {
            data = data.on_own_clock();
        }
        DatReader { data, header }
    }

    /// Returns the same recording without what lies behind a length. What was read of it before is still known.
    pub(crate) fn shortened(&self, length: usize) -> DatReader<'r> {
        DatReader {
            data: self.data.shortened(length),
            header: self.header.clone(),
        }
    }

    /// Returns whether nothing that was recorded is left.
    pub(crate) fn ends_before_data(&self) -> bool {
        self.data.ends_before_data()
    }

    pub(crate) fn header(&self) -> &RecordingHeader {
        &self.header
    }

    pub(crate) fn formats(&self) -> &FormatCatalog {
        self.data.formats()
    }

    pub(crate) fn walk(
        &self,
        sink: &mut dyn Sink,
        watch: &WalkWatch<'_>,
        threads: usize,
    ) -> WalkOutcome {
        let formats = self.data.formats();
        let mut systems: Vec<&str> = formats.all().iter().map(|f| f.system.as_str()).collect();
        systems.sort_unstable();
        systems.dedup();
        let recorded = systems.len() <= ASKED_FOR;
        let types: Vec<EventType<'_>> = formats
            .all()
            .iter()
            .zip(0u32..)
            .map(|(format, index)| {
                let ty = EventType::of_format(index, format, &format.name);
                EventType { recorded, ..ty }
            })
            .collect();
        // Records of events without a format are wanted too: they are counted, not passed over.
        let ids = usize::from(u16::MAX) + 1;
        let mut wanted = vec![true; ids];
        let mut by_id = vec![u32::MAX; ids];
        for ty in EventType::in_order(&types) {
            if let Some(format) = ty.format {
                by_id[format.id as usize] = ty.index;
                wanted[format.id as usize] = sink.wants(ty);
            }
        }
        let mut push = DatPush {
            sink,
            watch,
            types: &types,
            by_id: &by_id,
            counts: vec![0; types.len()],
            unknown: 0,
            losses: CpuLosses::default(),
        };
        let end = self.data.walk_on(threads, &wanted, &mut push);
        let DatPush {
            unknown,
            counts,
            losses,
            ..
        } = push;
        WalkOutcome {
            quality: self.quality(&end, unknown, losses),
            read: types.iter().map(|ty| ty.kind).zip(counts).collect(),
            resolution_ns: 1,
        }
    }

    fn quality(&self, end: &WalkEnd, unknown: u64, mut losses: CpuLosses) -> Quality {
        let info = self.data.info();
        let stats = info.stats_lost();
        let mut by_cpu: BTreeMap<u32, u64> = BTreeMap::new();
        for one in &info.cpu_stats {
            let sum = by_cpu.entry(one.cpu).or_default();
            *sum = sum.saturating_add(one.lost());
        }
        for (cpu, lost) in by_cpu {
            losses.note_sum(cpu, lost);
        }
        let mut quality = Quality {
            // The marks in the pages and the kernel's own counts tell the same losses twice. Gaps whose size
            // nobody counted are at least one event each.
            lost_events: (stats.max(end.lost.saturating_add(end.lost_unknown)))
                .max(losses.events()),
            losses,
            truncated: self.data.truncated() || end.truncated,
            uneven_from: end.uneven_from,
            ..Quality::default()
        };
        if end.lost_unknown > 0 && stats == 0 {
            quality.raise(DoubtKind::LossUncounted {
                places: end.lost_unknown,
            });
        }
        if unknown > 0 {
            quality.raise(DoubtKind::RecordsUnknown { records: unknown });
        }
        let diagnostics = self.data.diagnostics().iter();
        let formats = self.data.formats().diagnostics.iter();
        for diagnostic in diagnostics.chain(formats).chain(&end.diagnostics) {
            quality.raise(DoubtKind::FileDamaged {
                format: "trace.dat".to_owned(),
                what: diagnostic.to_string(),
            });
        }
        quality
    }
}

fn make_header(data: &TraceDat<'_>) -> RecordingHeader {
    let info = data.info();
    let compression = match &info.compression {
        Some((name, _)) if name != "none" => format!(" ({name})"),
        _ => String::new(),
    };
    // `uname` as trace-cmd writes it: system, host, release, machine.
    let uname: Vec<&str> = info
        .uname
        .as_deref()
        .map(|u| u.split_whitespace().collect())
        .unwrap_or_default();
    let word = |at: usize| uname.get(at).map(|w| (*w).to_owned());
    let mut more = Vec::new();
    // A guest whose vCPUs' threads were not found says nothing.
    let mapped = info.guests.iter().filter(|guest| !guest.vcpus.is_empty());
    let guests: Vec<GuestMap> = mapped
        .map(|guest| GuestMap {
            name: guest.name.clone(),
            trace_id: guest.trace_id,
            vcpus: guest.vcpus.clone(),
        })
        .collect();
    for guest in &guests {
        let vcpus: Vec<String> = guest
            .vcpus
            .iter()
            .map(|(cpu, tid)| format!("{cpu}={tid}"))
            .collect();
        more.push((
            "guest".to_owned(),
            format!("{} (vCPU=thread {})", guest.name, vcpus.join(" ")),
        ));
    }
    if let Some(tsc) = info.tsc2nsec {
        more.push((
            "tsc2nsec".to_owned(),
            format!(
                "mult {} shift {} offset {}",
                tsc.mult, tsc.shift, tsc.offset
            ),
        ));
    }
    if let Some(shift) = &info.time_shift {
        let samples = shift.cpus.first().map_or(0, Vec::len);
        more.push((
            "time shift".to_owned(),
            format!("{} CPUs, {samples} offsets each", shift.cpus.len()),
        ));
    }
    if let Some(id) = info.trace_id {
        more.push(("trace id".to_owned(), format!("{id:#x}")));
    }
    RecordingHeader {
        format: format!("trace.dat v{}{compression}", info.version),
        arch: word(3),
        kernel: word(2),
        hostname: word(1),
        cpus: Some(info.cpus),
        cpu_desc: None,
        nodes: Vec::new(),
        clock: info.clock.clone(),
        // It is added to every time, which then is the time of day.
        wall_clock: (info.date_offset_ns != 0).then_some(WallClock {
            offset_ns: 0,
            source: WallClockSource::Date,
        }),
        time_unit: match info.time_unit {
            tracedat::TraceTimeUnit::Nanoseconds => TimeStampUnit::Nanoseconds,
            _ => TimeStampUnit::Ticks,
        },
        resolution_ns: 1,
        seconds: info.prints_seconds,
        nine_digits: false,
        recorder: info.recorder.as_ref().map(|v| format!("trace-cmd {v}")),
        command: None,
        buffers: if info.buffers.len() > 1 {
            info.buffers.iter().map(|b| b.name.clone()).collect()
        } else {
            Vec::new()
        },
        guests,
        together: together(info),
        unthreaded: false,
        recorder_pid: None,
        pairs: Vec::new(),
        cost: None,
        more,
    }
}

/// Returns what the recording says of those that were made with it.
fn together(info: &tracedat::TraceMetadata) -> JointRecordings {
    let shift = info.time_shift.as_ref();
    let cpus = shift.map_or(&[][..], |shift| &shift.cpus);
    let mut offsets: Vec<i64> = cpus.iter().flatten().map(|one| one.offset).collect();
    offsets.sort_unstable();
    let middle = offsets.get(offsets.len() / 2);
    let in_ns = |offset: i64| match info.tsc2nsec {
        // As times are converted: a product, of which the lowest bits go.
        Some(tsc) => {
            let product = i128::from(offset).saturating_mul(tsc.mult.into());
            i64::try_from(product >> tsc.shift.min(127)).ok()
        }
        None => Some(offset),
    };
    JointRecordings {
        own: info.trace_id,
        guests: info.guests.iter().map(|guest| guest.trace_id).collect(),
        host: shift.map(|shift| shift.peer_trace_id),
        offset_ns: middle.and_then(|offset| in_ns(*offset)),
        constant: offsets.first() == offsets.last(),
    }
}

/// Returns the number of a CPU as events have it. Only a damaged file has one that does not fit, and it is nobody's.
#[inline]
fn cpu_number(cpu: u32) -> i32 {
    i32::try_from(cpu).unwrap_or(NONE)
}

struct DatPush<'p> {
    sink: &'p mut dyn Sink,
    watch: &'p WalkWatch<'p>,
    types: &'p [EventType<'p>],
    by_id: &'p [u32],
    /// By kind of events, how many were read.
    counts: Vec<u64>,
    unknown: u64,
    /// What CPUs' buffers lost.
    losses: CpuLosses,
}

impl TraceVisitor for DatPush<'_> {
    #[inline]
    fn record(&mut self, record: &RingRecord<'_>) -> ControlFlow<()> {
        if self.watch.event() {
            return ControlFlow::Break(());
        }
        let index = self
            .by_id
            .get(record.id as usize)
            .copied()
            .unwrap_or(u32::MAX);
        let Some(ty) = self.types.get(index as usize) else {
            self.unknown += 1;
            return ControlFlow::Continue(());
        };
        self.counts[index as usize] += 1;
        self.sink.event(&Event {
            time: record.time,
            cpu: cpu_number(record.cpu),
            tid: record.pid,
            pid: NONE,
            ty,
            body: Body::Raw(record.data),
            sample: None,
            buffer: record.buffer,
            comm: None,
        })
    }

    fn lost(&mut self, lost: &LostGap) {
        let side = Side::Lost {
            time: lost.time,
            cpu: cpu_number(lost.cpu),
            buffer: lost.buffer,
            count: lost.count,
            kind: LostKind::Ring,
        };
        self.losses.note(&side);
        self.sink.side(&side);
    }

    fn consumed(&mut self, range: Range<usize>) {
        self.watch.release(range);
        if self.watch.wants_counts() {
            let names = self.types.iter().map(|ty| ty.name);
            let kinds = names.zip(self.counts.iter().copied());
            self.watch.counted(kinds, self.losses.events());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_cannot_be_is_nobodys() {
        let numbers = [0, 8191, 1 << 31, u32::MAX - 5, u32::MAX].map(cpu_number);
        assert_eq!(numbers, [0, 8191, NONE, NONE, NONE]);
    }
}
