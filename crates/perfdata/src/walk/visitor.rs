//! Who receives the records of a recording, and what a walk counts.

use crate::record::kind;
use std::ops::{ControlFlow, Range};

use tracefmt::Diagnostic;

use crate::record::SideRecord;
use crate::sample::{PerfSample, TracepointRecord};

/// Whether samples of an attribute are wanted, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleWish {
    /// They are not.
    No,
    /// They are, and not handed out: the visitor's tally is enough ([`PerfVisitor::tally`]).
    Tallied,
    /// In time order with all others.
    #[default]
    InOrder,
    /// Those of each thread in time order, and those of each CPU. Between two records that need time order they come
    /// CPU by CPU; a thread's first one comes in time order. The idle tasks of all CPUs, whose id is 0, are no thread
    /// in this.
    OfThread,
    /// In any order.
    AnyOrder,
}

/// A place from which another walk can go on ([`crate::PerfRecording::walk_from`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkPlace {
    /// Up to when everything has been pushed that was read.
    pub time: u64,
    /// The newest time that was pushed.
    pub(crate) last_out: u64,
    /// Up to when the round goes out, and the newest time of all that was read.
    pub(crate) limit: u64,
    pub(crate) newest: u64,
    /// The byte behind the round.
    pub(crate) end: usize,
    /// What was read and has not been pushed, in the order of the file: from when on, and its bytes.
    pub(crate) runs: Vec<(u64, Range<usize>)>,
}

/// Follows that samples happen where a walk finds them: those of each CPU in its order, but nothing else is certain.
pub trait SampleTally: Clone + Send {
    /// Takes that there is a sample of an attribute, with its time, its thread and its CPU, which are -1 where they are
    /// not recorded.
    fn seen(&mut self, attr: u32, time: u64, place: (i32, i32));

    /// Takes that samples of a CPU were lost; -1 stands for all.
    fn lost(&mut self, cpu: i32);

    /// Takes that a sample of an attribute and a CPU that it has seen, now or before it was cleared, is none: what
    /// follows it is no record.
    fn given_up(&mut self, attr: u32, cpu: i32);

    /// Returns whether it has taken nothing since it was cleared.
    fn is_empty(&self) -> bool;

    /// Begins anew, when what it has was handed out.
    fn clear(&mut self);
}

/// Follows nothing.
impl SampleTally for () {
    #[inline(always)]
    fn seen(&mut self, _: u32, _: u64, _: (i32, i32)) {}

    fn lost(&mut self, _: i32) {}

    fn given_up(&mut self, _: u32, _: i32) {}

    fn is_empty(&self) -> bool {
        true
    }

    fn clear(&mut self) {}
}

/// Receives a recording's records in time order.
pub trait PerfVisitor {
    /// What follows that samples happen, wherever they go out.
    type Tally: SampleTally;

    /// Returns an empty tally, if there is to be one of all that is wanted.
    fn tally(&self) -> Option<Self::Tally> {
        None
    }

    /// Takes what the tally has, which is at the records that go out next or ahead of them.
    fn tallied(&mut self, tally: &mut Self::Tally) {
        let _ = tally;
    }

    /// Takes one sample. Returning `Break` ends the walk.
    fn sample(&mut self, sample: &PerfSample<'_>) -> ControlFlow<()>;

    /// Says whether of an attribute's samples the tracepoint's record is enough: [`PerfVisitor::tracepoint`] takes
    /// those that have one.
    #[inline(always)]
    fn record_is_enough(&self, attr: u32) -> bool {
        let _ = attr;
        false
    }

    /// Takes one of these. Returning `Break` ends the walk.
    #[inline(always)]
    fn tracepoint(&mut self, record: TracepointRecord<'_>) -> ControlFlow<()> {
        let _ = record;
        ControlFlow::Continue(())
    }

    /// Takes a record that is no sample; `time` is 0 and `cpu` -1 when it carries none.
    fn side(&mut self, time: u64, cpu: i32, misc: u16, record: &SideRecord<'_>) {
        let _ = (time, cpu, misc, record);
    }

    /// Says whether [`PerfVisitor::place`] is of interest.
    fn places(&self) -> bool {
        false
    }

    /// Receives a place from which another walk can go on, between the records before it and those after it. There are
    /// some hundreds at most, and none where something is not wanted or needs no order, in packed recordings and those
    /// that came through a pipe.
    fn place(&mut self, place: WalkPlace) {
        let _ = place;
    }

    /// Says that this range of the input was read and is not needed for now. It may be read again, if
    /// rarely: dropping its pages costs time but nothing else.
    fn release(&mut self, range: Range<usize>) {
        let _ = range;
    }

    /// Says whether [`PerfVisitor::counted`] is of interest now. Asked at the end of each round.
    fn wants_counts(&self) -> bool {
        false
    }

    /// Receives what was counted up to the end of a round, which is at the records that go out next or ahead of them.
    /// What was lost, and what came late, is not in it yet.
    fn counted(&mut self, totals: &Totals) {
        let _ = totals;
    }
}

/// What a walk counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Samples by attribute, wanted or not.
    pub samples: Vec<u64>,
    /// Events lost, as the ring buffer's own records said.
    pub lost_ring: u64,
    /// Records that said so: what perf calls lost chunks.
    pub lost_records: u64,
    /// Events lost, as the sums by event said.
    pub lost_samples: u64,
    /// Samples whose id belongs to no attribute.
    pub unknown_id: u64,
    /// Samples that came after a later one had gone out.
    pub out_of_order: u64,
    /// Bytes of AUX data, which are not read.
    pub aux_bytes: u64,
    /// Records of which neither kernel nor perf had the number yet, and the number of the first.
    pub unknown_records: u64,
    /// See `unknown_records`.
    pub unknown_kind: u32,
    /// Bytes skipped because no record could be found in them.
    pub skipped_bytes: u64,
    /// How often bytes were skipped.
    pub holes: u64,
    /// Whether the records end in the middle of one.
    pub truncated: bool,
    /// Up to which time nothing can be missing if the file was cut off: perf reads one CPU's buffer after another, and
    /// what is not newer than the round before the last whole one has been read from all. 0 where there is no such
    /// round, `None` where the visitor ended the walk.
    pub whole_until: Option<u64>,
    /// What was odd, with byte offsets; the first few.
    pub diagnostics: Vec<Diagnostic>,
}

impl Totals {
    /// Counts a record that is no sample.
    pub(super) fn note(&mut self, kind: u32) {
        if kind::is_unknown(kind) {
            if self.unknown_records == 0 {
                self.unknown_kind = kind;
            }
            self.unknown_records += 1;
        }
    }
}
