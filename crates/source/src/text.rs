//! Text as events.

use std::ops::ControlFlow;

use doubts::DoubtKind;
use event::{Kind, Sink};
use tracetext::{TextProducer, TextTimeUnit};

use crate::header::{RecordingHeader, TimeStampUnit};
use crate::map::PAGE;
use crate::unthreaded::{TextScan, ThreadAssigner, ThreadColumn};
use crate::walked::{WalkOutcome, WalkWatch};

/// A text is recognized by its beginning: this many bytes of it.
const HEAD: usize = 64 << 10;
/// Returns what of a text it is recognized by: its beginning, behind blank lines.
pub(crate) fn beginning(data: &[u8]) -> &[u8] {
    let data = &data[blank(data)..];
    data.get(..HEAD).unwrap_or(data)
}

/// Returns how many bytes of blank lines a text begins with.
fn blank(data: &[u8]) -> usize {
    let first = data.iter().position(|byte| !byte.is_ascii_whitespace());
    let text = first.unwrap_or(data.len());
    // The first line with something in it may begin with blanks.
    let line = data[..text].iter().rposition(|byte| *byte == b'\n');
    line.map_or(0, |end| end + 1)
}

/// What a column of numbers has may show later than that; further than this is not looked.
const FURTHER: usize = 8 << 20;
/// Pages are given back when this much of a text was read.
const STEP: usize = 1 << 20;

/// A text whose style is decided.
#[derive(Debug)]
pub(crate) struct TextRecording<'r> {
    data: &'r [u8],
    style: TextProducer,
    header: RecordingHeader,
    /// What it says of threads, and beside its columns.
    column: ThreadColumn,
    scan: TextScan,
}

impl<'r> TextRecording<'r> {
    /// Decides what printed the text. `None` when it holds no events.
    pub(crate) fn new(data: &'r [u8]) -> Option<TextRecording<'r>> {
        let head = beginning(data);
        let style = tracetext::sniff(head).filter(|style| !style.is_table())?;
        // TextTimeUnit and resolution of the times show in the first lines.
        let mut scan = TextScan::default();
        let summary = tracetext::walk(head, &mut scan);
        let mut column = match style {
            TextProducer::PerfScript => scan.column(summary.thread_column),
            // ftrace has the thread's id or none.
            _ if summary.thread_column => ThreadColumn::Threads,
            _ => ThreadColumn::Nothing,
        };
        if column == ThreadColumn::Unknown && data.len() > HEAD {
            scan = TextScan::default();
            let text = &data[blank(data)..];
            tracetext::walk(&text[..text.len().min(FURTHER)], &mut scan);
            column = scan.column(true);
        }
        if matches!(column, ThreadColumn::Processes | ThreadColumn::Nothing) {
            // Which thread has which CPU, and is which vCPU, shows later too.
            scan = TextScan::default();
            tracetext::walk(data, &mut scan);
        } else {
            scan = TextScan::default();
        }
        let seconds = summary.unit == TextTimeUnit::Nanoseconds;
        let header = RecordingHeader {
            format: format!("text of {}", style.name()),
            arch: summary.isa.and_then(arch).map(str::to_owned),
            cpus: summary.machine_cpus,
            time_unit: if seconds {
                TimeStampUnit::Nanoseconds
            } else {
                TimeStampUnit::Ticks
            },
            seconds,
            resolution_ns: summary.resolution,
            nine_digits: summary.resolution < 1000,
            buffers: summary.sources,
            unthreaded: matches!(column, ThreadColumn::Processes | ThreadColumn::Nothing),
            ..RecordingHeader::default()
        };
        Some(TextRecording {
            data,
            style,
            header,
            column,
            scan,
        })
    }

    pub(crate) fn header(&self) -> &RecordingHeader {
        &self.header
    }

    pub(crate) fn is_perf(&self) -> bool {
        self.style == TextProducer::PerfScript
    }

    pub(crate) fn walk(&self, sink: &mut dyn Sink, watch: &WalkWatch<'_>) -> WalkOutcome {
        if self.column == ThreadColumn::Threads {
            return self.push(sink, watch);
        }
        let mut threaded = ThreadAssigner::new(sink, self.column, &self.scan);
        let mut outcome = self.push(&mut threaded, watch);
        if let Some(text) = threaded.threads_unknown(self.is_perf()) {
            outcome.quality.raise(DoubtKind::ThreadsUnknown { text });
        }
        outcome
    }

    fn push(&self, sink: &mut dyn Sink, watch: &WalkWatch<'_>) -> WalkOutcome {
        let mut released = 0;
        let summary = tracetext::walk_telling(self.data, sink, &mut |at, reader| {
            if at - released >= STEP || at == self.data.len() {
                watch.release(released..at);
                // What was left of the last page goes with the next.
                released = at / PAGE * PAGE;
                watch.counted(reader.counts(), reader.lost());
            }
            match watch.look() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        WalkOutcome {
            read: summary
                .types
                .iter()
                .map(|ty| (Kind::of(&ty.system, &ty.name), ty.count))
                .collect(),
            quality: summary.quality,
            resolution_ns: summary.resolution,
        }
    }
}

/// Returns the architecture whose exits these are.
fn arch(isa: event::Isa) -> Option<&'static str> {
    Some(match isa {
        event::Isa::Vmx | event::Isa::Svm => "x86_64",
        event::Isa::Arm64 => "aarch64",
        event::Isa::Riscv => "riscv64",
        event::Isa::S390 => "s390x",
        event::Isa::Powerpc => "ppc64le",
        event::Isa::Loongarch => "loongarch64",
        _ => return None,
    })
}
