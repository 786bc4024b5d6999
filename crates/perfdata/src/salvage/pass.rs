//! A pass over the records: those that are whole go out, and where some are missing a record of lost events.
//!
//! What is a record, where the next one behind garbage is, and which rounds there are is what the walk takes for that
//! (`walk`): a reader of the new file sees the records that a reader of the old one sees.

use std::collections::HashMap;
use std::io;
use std::ops::Range;

use salvage::{SalvageOutlet, SalvagedCpu};

use super::lost::{header, lost_record};
use super::unpacked::{UnpackedRecords, UnpackedSink, payload};
use crate::pipe::payload_behind;
use crate::record::{HEADER, PerfRecordHeader, kind};
use crate::sample::place_of;
use crate::walk::WalkPlan;

/// Bytes of the input that are written at once, and given back.
const STEP: usize = 1 << 20;
/// More CPUs than this are counted as one, that nobody knows.
const MAX_CPUS: usize = 1 << 16;

/// What a pass found.
#[derive(Debug, Default)]
pub(crate) struct PassResult {
    /// Bytes of records that went out.
    pub bytes: u64,
    /// Samples, and other records, of the input.
    pub events: u64,
    pub others: u64,
    /// By CPU, -1 for what has none.
    pub cpus: HashMap<i32, SalvagedCpu>,
    /// Bytes of the input that are part of no whole record, and those of compressed data that is not either.
    pub left_out: u64,
    /// Places at which records are missing.
    pub places: u64,
    /// Whether records were compressed.
    pub compressed: bool,
    /// Whether records were left out that the recorder put ahead of what it had not written yet.
    pub padding: bool,
    /// Bytes of AUX data that are missing.
    pub aux_missing: u64,
    /// Records that describe events, in a pipe.
    pub attrs: usize,
}

/// A record that goes out when the next one comes: what is before garbage is given up.
#[derive(Debug, Clone, Copy)]
struct HeldRecord {
    at: usize,
    end: usize,
    time: u64,
    /// Its CPU, if it is a sample.
    cpu: Option<i32>,
    is_sample: bool,
}

/// A pass under way.
pub(super) struct RecordPass<'p, 'o, 'r, 'a, const BIG: bool> {
    reading: &'p WalkPlan<'r, 'a>,
    /// Where the records go; a pass that only counts has none.
    out: Option<&'o mut dyn SalvageOutlet>,
    pub(super) found: PassResult,
    /// Records of the input that are to be written.
    pending: Range<usize>,
    held: Option<HeldRecord>,
    /// The newest time so far, that of the rounds before, and that of the rounds before those, as the walk has them.
    newest: u64,
    flush_to: u64,
    whole_until: u64,
    /// Whether this round had a hole.
    hole: bool,
}

impl<'p, 'o, 'r, 'a, const BIG: bool> RecordPass<'p, 'o, 'r, 'a, BIG> {
    pub(super) fn new(
        reading: &'p WalkPlan<'r, 'a>,
        out: Option<&'o mut dyn SalvageOutlet>,
    ) -> RecordPass<'p, 'o, 'r, 'a, BIG> {
        let start = reading.recording.start;
        RecordPass {
            reading,
            out,
            found: PassResult::default(),
            pending: start..start,
            held: None,
            newest: 0,
            flush_to: 0,
            whole_until: 0,
            hole: false,
        }
    }

    /// Goes over all records.
    pub(super) fn run(mut self) -> io::Result<PassResult> {
        let recording = self.reading.recording;
        let (data, end) = (recording.data, recording.end);
        let mut unpacked = UnpackedRecords::default();
        let mut at = recording.start;
        let mut torn = None;
        while at < end {
            let Some(header) = PerfRecordHeader::read::<BIG>(&data[..end], at) else {
                torn = Some(at);
                break;
            };
            if header.is_none() {
                let next = self.reading.resync::<BIG>(data, at, end);
                self.hole(at, next.unwrap_or(end))?;
                at = next.unwrap_or(end);
                continue;
            }
            let next = at + header.size;
            if next > end {
                torn = Some(at);
                break;
            }
            let body = &data[at + HEADER..next];
            match header.kind {
                kind::FINISHED_ROUND if header.size > HEADER => {
                    self.found.padding = true;
                    self.leave_out(at..next)?;
                }
                kind::FINISHED_ROUND => match unpacked.round() {
                    None => {
                        self.keep(at..next)?;
                        self.finish_round()?;
                    }
                    Some(now) => {
                        self.pass_over(at..next)?;
                        if now {
                            self.unpacked_round()?;
                        }
                    }
                },
                kind::COMPRESSED | kind::COMPRESSED2 => {
                    self.pass_over(at..next)?;
                    self.found.compressed = true;
                    let payload = payload(header.kind, body, recording.endian);
                    if !unpacked.take::<BIG>(payload, &mut self)? {
                        self.leave_out(next..end)?;
                        torn = Some(end);
                        break;
                    }
                }
                kind::HEADER_TRACING_DATA | kind::AUXTRACE => {
                    let behind = payload_behind(header.kind, body, recording.endian);
                    let whole = next.saturating_add(behind);
                    if whole > end {
                        self.cut_payload(header, at..end)?;
                        torn = Some(end);
                        break;
                    }
                    self.keep(at..whole)?;
                    self.found.others += 1;
                    at = whole;
                    continue;
                }
                number => {
                    self.keep(at..next)?;
                    self.found.attrs += usize::from(number == kind::HEADER_ATTR);
                    match number < kind::USER_START {
                        true => self.note(header, body, (at, next)),
                        false => self.found.others += 1,
                    }
                }
            }
            at = next;
        }
        self.finish(unpacked, torn)
    }

    /// Ends the pass: what is held goes out, and what the cut took is noted.
    fn finish(
        mut self,
        mut unpacked: UnpackedRecords,
        torn: Option<usize>,
    ) -> io::Result<PassResult> {
        let recording = self.reading.recording;
        let left = unpacked.finish::<BIG>(&mut self)?;
        let torn_bytes = match (left.is_empty(), torn) {
            (false, _) => left.as_slice(),
            (true, Some(at)) => recording.data.get(at..recording.end).unwrap_or_default(),
            (true, None) => &[],
        };
        self.settle_held();
        if let Some(at) = torn {
            self.leave_out(at..recording.end)?;
        }
        self.found.left_out += left.len() as u64;
        self.write_pending()?;
        self.end_hole()?;
        let is_cut = torn.is_some() || !left.is_empty() || recording.data_cut;
        if is_cut || self.found.padding {
            let attr = self.torn_event(torn_bytes);
            if self.whole_until > 0 && self.whole_until < self.newest {
                self.lost(attr, self.whole_until, 0)?;
            }
            self.lost(attr, self.newest, 1)?;
            self.found.places += 1;
        }
        Ok(self.found)
    }

    /// Returns the event of which the torn record is a sample, by number and id, as far as that is there.
    fn torn_event(&self, torn: &[u8]) -> Option<(u32, u64)> {
        let header = PerfRecordHeader::read::<BIG>(torn, 0)?;
        let at = HEADER + usize::from(self.reading.id_at?);
        let id = self.reading.recording.endian.u64(torn, at)?;
        let attr = self.reading.ids.get(id)?;
        (header.kind == kind::SAMPLE).then_some((attr, id))
    }

    /// Takes a record of the kernel into the account; it is of the input if it has a place there.
    fn note(&mut self, header: PerfRecordHeader, body: &[u8], (at, end): (usize, usize)) {
        self.settle_held();
        let recording = self.reading.recording;
        let is_sample = header.kind == kind::SAMPLE;
        let attr = is_sample.then(|| self.reading.attr_of::<BIG>(body));
        let (time, cpu) = match attr {
            Some(Some(attr)) => (
                self.reading.time_of::<BIG>(header, body, attr),
                Some(place_of::<BIG>(&recording.attrs, body, attr).1),
            ),
            Some(None) => (0, Some(-1)),
            None => (self.reading.time_of::<BIG>(header, body, 0), None),
        };
        self.held = Some(HeldRecord {
            at,
            end,
            time,
            cpu,
            is_sample,
        });
    }

    /// Counts the record that was held.
    fn settle_held(&mut self) {
        let Some(held) = self.held.take() else { return };
        self.newest = self.newest.max(held.time);
        match held.cpu {
            Some(cpu) => {
                self.found.events += 1;
                self.cpu(cpu).event(held.time);
            }
            None => self.found.others += 1,
        }
    }

    fn cpu(&mut self, cpu: i32) -> &mut SalvagedCpu {
        let cpus = &mut self.found.cpus;
        let is_there = cpus.len() < MAX_CPUS || cpus.contains_key(&cpu);
        cpus.entry(if is_there { cpu } else { -1 }).or_default()
    }

    /// Takes bytes of the input into the new file.
    fn keep(&mut self, range: Range<usize>) -> io::Result<()> {
        if self.pending.end != range.start {
            self.write_pending()?;
            self.pending = range;
            return Ok(());
        }
        // What is held stays: it may be given up.
        if range.end - self.pending.start > STEP {
            self.settle_held();
            self.write_pending()?;
            self.pending.start = range.start;
        }
        self.pending.end = range.end;
        Ok(())
    }

    /// Passes over bytes of the input that are written in another form.
    fn pass_over(&mut self, range: Range<usize>) -> io::Result<()> {
        self.settle_held();
        self.write_pending()?;
        self.pending = range.end..range.end;
        self.consumed(range);
        Ok(())
    }

    /// Leaves bytes of the input out.
    fn leave_out(&mut self, range: Range<usize>) -> io::Result<()> {
        self.found.left_out += range.len() as u64;
        self.pass_over(range)
    }

    /// Writes what is to be written of the input.
    fn write_pending(&mut self) -> io::Result<()> {
        let range = std::mem::replace(&mut self.pending, 0..0);
        self.pending = range.end..range.end;
        let data = self.reading.recording.data;
        self.write(data.get(range.clone()).unwrap_or_default())?;
        self.consumed(range);
        Ok(())
    }

    fn consumed(&mut self, range: Range<usize>) {
        if let Some(out) = &mut self.out {
            out.consumed(range);
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.found.bytes += bytes.len() as u64;
        match &mut self.out {
            Some(out) if !bytes.is_empty() => out.put(bytes),
            _ => Ok(()),
        }
    }

    /// Notes garbage: the record that ends where it begins is given up, and lost events stand in its place, at the
    /// moments at which a walk reports a hole (`walk/hole.rs`).
    fn hole(&mut self, at: usize, next: usize) -> io::Result<()> {
        let mut event = None;
        if let Some(held) = self.held.filter(|held| held.end == at) {
            self.held = None;
            self.pending.end = held.at;
            self.found.left_out += (at - held.at) as u64;
            let torn = &self.reading.recording.data[held.at..at];
            event = held.is_sample.then(|| self.torn_event(torn)).flatten();
        }
        self.leave_out(at..next)?;
        self.found.places += 1;
        let before = self.newest;
        if !self.hole && self.flush_to > 0 && before > self.flush_to {
            self.lost(event, self.flush_to, 0)?;
        }
        self.hole = true;
        self.lost(event, before, 1)
    }

    /// Reports a hole once more at the end of its round.
    fn end_hole(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.hole) {
            true => self.lost(None, self.newest, 0),
            false => Ok(()),
        }
    }

    /// Writes a record of lost events.
    fn lost(&mut self, event: Option<(u32, u64)>, time: u64, count: u64) -> io::Result<()> {
        let recording = self.reading.recording;
        // The kernel names the event whose ring it was, which is the first of those that share one.
        let first = || {
            (
                0,
                recording.attrs.first().and_then(|a| a.ids.first()).copied(),
            )
        };
        let (attr, id) = event.map_or_else(first, |(attr, id)| (attr, Some(id)));
        let attr = self.reading.trailer_attr(attr);
        let record = lost_record(attr, id.unwrap_or(0), (time, count), recording.endian);
        self.write(&record)
    }

    /// Ends a round whose end was written.
    fn finish_round(&mut self) -> io::Result<()> {
        self.settle_held();
        if self.hole {
            // It belongs before the end of its round.
            let round = self.pending.end - HEADER..self.pending.end;
            self.pending.end = round.start;
            self.write_pending()?;
            self.end_hole()?;
            self.pending = round;
        }
        self.whole_until = self.flush_to;
        self.flush_to = self.newest;
        Ok(())
    }

    /// Keeps the part of AUX data that is there.
    fn cut_payload(&mut self, found: PerfRecordHeader, range: Range<usize>) -> io::Result<()> {
        let data = self.reading.recording.data;
        let body = range.start + HEADER..range.start + found.size;
        let part = body.end..range.end;
        // It has a whole number of words, as perf pads it.
        let kept = part.len() & !7;
        if found.kind != kind::AUXTRACE || kept == 0 || body.len() < 8 {
            return self.leave_out(range);
        }
        self.pass_over(range.start..range.start)?;
        let endian = self.reading.recording.endian;
        let size = endian.u64(data, body.start).unwrap_or(0);
        self.found.aux_missing = size.saturating_sub(kept as u64);
        let mut record = header(found.kind, found.size, endian).to_vec();
        record.extend(endian.u64_bytes(kept as u64));
        record.extend(data.get(body.start + 8..body.end).unwrap_or_default());
        self.found.others += 1;
        self.write(&record)?;
        self.pending = part.start..part.start + kept;
        self.write_pending()?;
        self.leave_out(part.start + kept..part.end)
    }
}

impl<const BIG: bool> UnpackedSink for RecordPass<'_, '_, '_, '_, BIG> {
    fn unpacked_record(&mut self, record: &[u8]) -> io::Result<()> {
        if let Some(header) = PerfRecordHeader::read::<BIG>(record, 0) {
            match header.kind < kind::USER_START {
                true => self.note(header, &record[HEADER..], (usize::MAX, usize::MAX)),
                false => self.found.others += 1,
            }
        }
        self.write(record)
    }

    fn unpacked_garbage(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.settle_held();
        self.found.left_out += bytes.len() as u64;
        self.found.places += 1;
        self.hole = true;
        self.lost(None, self.newest, 1)
    }

    fn unpacked_round(&mut self) -> io::Result<()> {
        self.settle_held();
        self.end_hole()?;
        self.whole_until = self.flush_to;
        self.flush_to = self.newest;
        let endian = self.reading.recording.endian;
        self.write(&header(kind::FINISHED_ROUND, HEADER, endian))
    }
}

/// Goes over the records of a recording.
pub(crate) fn pass(
    reading: &WalkPlan<'_, '_>,
    out: Option<&mut dyn SalvageOutlet>,
) -> io::Result<PassResult> {
    // Byte order is settled once, not at every number.
    match reading.recording.endian {
        tracefmt::Endian::Little => RecordPass::<false>::new(reading, out).run(),
        tracefmt::Endian::Big => RecordPass::<true>::new(reading, out).run(),
    }
}
