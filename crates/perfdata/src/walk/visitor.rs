//! Who receives the records of a recording, and what a walk counts.

use std::ops::{ControlFlow, Range};

use tracefmt::Diagnostic;

use crate::record::SideRecord;
use crate::sample::Sample;

/// Whether samples of an attribute are wanted, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Want {
    /// They are not.
    No,
    /// In time order with all others.
    #[default]
    InOrder,
    /// Those of each thread in time order. Between two records that need time order they come thread by thread; a thread's
    /// first ones come in time order.
    OfThread,
    /// In any order.
    AnyOrder,
}

/// Receives a recording's records in time order.
pub trait Visitor {
    /// Takes one sample. Returning `Break` ends the walk.
    fn sample(&mut self, sample: &Sample<'_>) -> ControlFlow<()>;

    /// Takes a record that is no sample; `time` is 0 and `cpu` -1 when it carries none.
    fn side(&mut self, time: u64, cpu: i32, misc: u16, record: &SideRecord<'_>) {
        let _ = (time, cpu, misc, record);
    }

    /// Tells that this range of the input was read and is not needed for now. It may be read again, if
    /// rarely: dropping its pages costs time but nothing else.
    fn release(&mut self, range: Range<usize>) {
        let _ = range;
    }
}

/// What a walk counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Samples by attribute, wanted or not.
    pub samples: Vec<u64>,
    /// Events lost, as the ring buffer's own records told.
    pub lost_ring: u64,
    /// Records that told so: what perf calls lost chunks.
    pub lost_records: u64,
    /// Events lost, as the sums by event told.
    pub lost_samples: u64,
    /// Samples whose id belongs to no attribute.
    pub unknown_id: u64,
    /// Samples that came after a later one had gone out.
    pub out_of_order: u64,
    /// Bytes of AUX data, which are not read.
    pub aux_bytes: u64,
    /// Bytes skipped because no record could be found in them.
    pub skipped_bytes: u64,
    /// Whether the records end in the middle of one.
    pub truncated: bool,
    /// What was odd, with byte offsets; the first few.
    pub diagnostics: Vec<Diagnostic>,
}
