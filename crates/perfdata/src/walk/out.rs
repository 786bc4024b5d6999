//! Where records go when it is their turn.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use super::groups::SampledGroups;
use super::reading::WalkPlan;
use super::visitor::{PerfVisitor, SampleTally, SampleWish, Totals, WalkPlace};
use crate::record::{
    HEADER, LostSource, PerfRecordHeader, SideRecord, counter, deferred_stack, kind, parse_side,
};
use crate::sample::{PerfSample, TracepointRecord};
use crate::sample_head::{HeadPlaces, SampleHead};
use tracefmt::index_of;

/// The bytes that a record lies in.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordOrigin<'d> {
    /// The input, or a piece of it or one that was unpacked.
    pub data: &'d [u8],
    /// The place of its first byte.
    pub base: usize,
    /// Number of the piece, 0 for the input.
    pub buffer: u32,
    /// The piece.
    pub piece: Option<&'d Arc<Vec<u8>>>,
}

/// Takes what a walk lets out, in the order in which it does.
pub(super) trait RecordOutlet {
    /// Whether records are read as they come, so that they are to be asked for before.
    const READS: bool;

    /// What follows that samples happen.
    type Tally: SampleTally;

    /// Takes what that has, and clears it. `Break` ends the walk.
    fn tallied(&mut self, tally: &mut Self::Tally) -> ControlFlow<()>;

    /// Takes the sample at a place. `Break` ends the walk.
    fn sample(
        &mut self,
        from: RecordOrigin<'_>,
        at: usize,
        time: u64,
        attr: u32,
    ) -> ControlFlow<()>;

    /// Hears that the next sample comes after a later one.
    fn late(&mut self);

    /// Takes the record at a place that is no sample. `Break` ends the walk.
    fn side(&mut self, from: RecordOrigin<'_>, at: usize, time: u64) -> ControlFlow<()>;

    /// Hears that a range of the input is not needed for now. `Break` ends the walk.
    fn release(&mut self, range: Range<usize>) -> ControlFlow<()>;

    /// Hears of a place from which another walk can go on.
    fn place(&mut self, place: WalkPlace);

    /// Hears what has been counted until now: that is what counts if the walk ends here. `Break` ends the walk.
    fn counted(&mut self, totals: impl FnOnce() -> Totals) -> ControlFlow<()>;
}

/// Reads records and hands them to the visitor.
pub(super) struct Direct<'w, 'r, 'a, V, const BIG: bool> {
    reading: &'w WalkPlan<'r, 'a>,
    visitor: &'w mut V,
    /// Of these the losses and what was late are counted here.
    totals: Totals,
    groups: Option<SampledGroups>,
    /// By attribute, where the visitor's part of a sample is, if it wants no more than the record.
    records: Vec<Option<HeadPlaces>>,
}

impl<'w, 'r, 'a, V: PerfVisitor, const BIG: bool> Direct<'w, 'r, 'a, V, BIG> {
    pub(super) fn new(
        reading: &'w WalkPlan<'r, 'a>,
        wanted: &[SampleWish],
        visitor: &'w mut V,
    ) -> Direct<'w, 'r, 'a, V, BIG> {
        let attrs = reading.recording.attrs.iter().zip(0..);
        let records = attrs.map(|(attr, number)| {
            let places = HeadPlaces::new(&attr.layout);
            let enough = places.raw.is_there() && visitor.record_is_enough(number);
            enough.then_some(places)
        });
        Direct {
            records: records.collect(),
            reading,
            visitor,
            totals: Totals::default(),
            groups: SampledGroups::new(&reading.recording.attrs, wanted),
        }
    }

    /// Goes on with what counters had counted in the pieces before.
    pub(super) fn go_on_with(&mut self, groups: Option<SampledGroups>) {
        if let (Some(here), Some(before)) = (&mut self.groups, groups) {
            here.follow(before);
        }
    }

    /// Returns what counters have counted.
    pub(super) fn groups_so_far(self) -> Option<SampledGroups> {
        self.groups
    }

    /// Takes the sample of a group's leader. By itself, so that other samples need not be in memory for it.
    #[inline(never)]
    fn grouped(&mut self, sample: PerfSample<'_>) -> ControlFlow<()> {
        match &mut self.groups {
            Some(groups) => groups.push(&sample, self.visitor),
            None => self.visitor.sample(&sample),
        }
    }

    /// Adds what was counted here.
    pub(super) fn add_to(&self, totals: &mut Totals) {
        totals.lost_ring = self.totals.lost_ring;
        totals.lost_records = self.totals.lost_records;
        totals.lost_samples = self.totals.lost_samples;
        totals.out_of_order += self.totals.out_of_order;
        if let Some(groups) = &self.groups {
            groups.add_to(totals);
        }
    }
}

impl<'d> RecordOrigin<'d> {
    /// The input as a whole.
    pub(super) const fn of_input(data: &'d [u8]) -> RecordOrigin<'d> {
        RecordOrigin {
            data,
            base: 0,
            buffer: 0,
            piece: None,
        }
    }

    /// A piece of another number; nothing where it is gone.
    #[inline(always)]
    pub(super) fn of_piece(buffer: u32, piece: Option<&'d Arc<Vec<u8>>>) -> RecordOrigin<'d> {
        RecordOrigin {
            data: piece.map_or(&[], |piece| piece.as_slice()),
            base: 0,
            buffer,
            piece,
        }
    }

    /// Returns whether the record at a place is all there.
    #[inline(always)]
    pub(super) fn has_record<const BIG: bool>(&self, at: usize) -> bool {
        let at = at.wrapping_sub(self.base);
        let header = PerfRecordHeader::read::<BIG>(self.data, at);
        header.is_some_and(|header| header.size <= self.data.len() - at)
    }

    /// Returns the record of a tracepoint, if its sample is all there and has it in its head.
    #[inline(always)]
    fn tracepoint<const BIG: bool>(
        &self,
        at: usize,
        (time, attr): (u64, u32),
        places: HeadPlaces,
    ) -> Option<TracepointRecord<'d>> {
        let at = at.wrapping_sub(self.base);
        let head = SampleHead::at(self.data, at)?;
        let size = head.header::<BIG>().size;
        let start = places.raw.start() + 4;
        let length = head.half::<BIG>(places.raw, false).cast_unsigned() as usize;
        let end = start + length;
        if size < usize::from(places.least) || end > size {
            return None;
        }
        Some(TracepointRecord {
            attr,
            time,
            pid: head.half::<BIG>(places.tid, false),
            tid: head.half::<BIG>(places.tid, true),
            cpu: head.half::<BIG>(places.cpu, false),
            raw: self.data.get(at + start..at + end)?,
        })
    }

    /// Returns the record at a place: its header, and its body as far as it is there.
    #[inline(always)]
    fn record<const BIG: bool>(self, at: usize) -> Option<(PerfRecordHeader, &'d [u8])> {
        let at = at.wrapping_sub(self.base);
        let header = PerfRecordHeader::read::<BIG>(self.data, at)?;
        let body = self.data.get(at + HEADER..at + header.size);
        Some((header, body.unwrap_or_default()))
    }
}

impl<V: PerfVisitor, const BIG: bool> RecordOutlet for Direct<'_, '_, '_, V, BIG> {
    const READS: bool = true;
    type Tally = V::Tally;

    fn tallied(&mut self, tally: &mut V::Tally) -> ControlFlow<()> {
        self.visitor.tallied(tally);
        tally.clear();
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn sample(
        &mut self,
        from: RecordOrigin<'_>,
        at: usize,
        time: u64,
        attr: u32,
    ) -> ControlFlow<()> {
        if let Some(Some(places)) = self.records.get(index_of(attr))
            && let Some(record) = from.tracepoint::<BIG>(at, (time, attr), *places)
        {
            return self.visitor.tracepoint(record);
        }
        let recording = self.reading.recording;
        let Some((header, body)) = from.record::<BIG>(at) else {
            return ControlFlow::Continue(());
        };
        let (attrs, endian) = (&recording.attrs, recording.endian);
        let sample = PerfSample::of::<BIG>(attrs, endian, header, body, time, attr);
        match self.groups.is_some() && attrs[index_of(attr)].reads_group() {
            true => self.grouped(sample),
            false => self.visitor.sample(&sample),
        }
    }

    fn late(&mut self) {
        self.totals.out_of_order += 1;
    }

    fn side(&mut self, from: RecordOrigin<'_>, at: usize, time: u64) -> ControlFlow<()> {
        let goes_on = ControlFlow::Continue(());
        let endian = self.reading.recording.endian;
        let Some((header, body)) = from.record::<BIG>(at) else {
            return goes_on;
        };
        if header.is_none() {
            self.visitor.side(time, -1, 0, &SideRecord::Skipped);
            return goes_on;
        }
        let layout = self.reading.trailer::<BIG>(body);
        let record = match header.kind {
            kind::CALLCHAIN_DEFERRED => deferred_stack(body, layout, endian),
            kind::READ => {
                let attr = self.reading.attr_at_end::<BIG>(body);
                attr.and_then(|attr| counter(body, attr, endian))
            }
            _ => parse_side(header, body, usize::from(layout.trailer), endian),
        };
        let Some(record) = record else {
            return goes_on;
        };
        if let SideRecord::Lost { count, source } = record {
            let totals = &mut self.totals;
            match source {
                LostSource::Ring => {
                    totals.lost_ring = totals.lost_ring.saturating_add(count);
                    totals.lost_records += 1;
                }
                LostSource::Samples => {
                    totals.lost_samples = totals.lost_samples.saturating_add(count);
                }
            }
        }
        let cpu = layout
            .trailer_cpu
            .and_then(|back| endian.u32(body, body.len().checked_sub(usize::from(back))?))
            .map_or(-1, u32::cast_signed);
        self.visitor.side(time, cpu, header.misc, &record);
        goes_on
    }

    fn release(&mut self, range: Range<usize>) -> ControlFlow<()> {
        self.visitor.release(range);
        ControlFlow::Continue(())
    }

    fn place(&mut self, place: WalkPlace) {
        self.visitor.place(place);
    }

    fn counted(&mut self, totals: impl FnOnce() -> Totals) -> ControlFlow<()> {
        if self.visitor.wants_counts() {
            self.visitor.counted(&totals());
        }
        ControlFlow::Continue(())
    }
}
