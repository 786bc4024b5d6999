//! Records, one by one.

use std::io;
use std::ops::Range;

use ::salvage::SalvageOutlet;
use tracefmt::{Endian, index_of};

use super::{KEPT, OmittedParts, PrivacyMask};
use crate::pipe::payload_behind;
use crate::record::{HEADER, PerfRecordHeader, kind};
use crate::sample::PerfSample;
use crate::walk::WalkPlan;

/// Kinds of the kernel's records and of perf's that have nothing but numbers (`include/uapi/linux/perf_event.h`,
/// `tools/lib/perf/include/perf/event.h`): lost events, ends of threads, throttling (5, 6), new threads, counters,
/// lost samples, switches (14, 15); rounds, times of conversion (79), the end of what perf makes first (82).
const NUMBERS: [u32; 12] = [
    kind::LOST,
    kind::EXIT,
    5,
    6,
    kind::FORK,
    kind::READ,
    kind::LOST_SAMPLES,
    14,
    15,
    kind::FINISHED_ROUND,
    79,
    82,
];
/// Kinds that define what others are, in a pipe.
const DEFINITIONS: [u32; 5] = [
    kind::HEADER_ATTR,
    kind::HEADER_TRACING_DATA,
    kind::HEADER_BUILD_ID,
    kind::EVENT_UPDATE,
    kind::HEADER_FEATURE,
];
/// `PERF_RECORD_MISC_MMAP_BUILD_ID`.
const MISC_BUILD_ID: u16 = 1 << 14;

/// Takes records in the form of a file and passes them on masked.
pub(super) struct MaskedRecords<'m, 'r, 'a> {
    reading: &'m WalkPlan<'r, 'a>,
    mask: &'m mut dyn PrivacyMask,
    out: &'m mut dyn SalvageOutlet,
    pub(super) bytes: u64,
    pub(super) omitted: OmittedParts,
    record: Vec<u8>,
}

impl<'m, 'r, 'a> MaskedRecords<'m, 'r, 'a> {
    /// Returns them, and counts what goes out.
    pub(super) fn new(
        reading: &'m WalkPlan<'r, 'a>,
        mask: &'m mut dyn PrivacyMask,
        out: &'m mut dyn SalvageOutlet,
    ) -> MaskedRecords<'m, 'r, 'a> {
        MaskedRecords {
            reading,
            mask,
            out,
            bytes: 0,
            omitted: OmittedParts::default(),
            record: Vec::new(),
        }
    }

    fn masked<const BIG: bool>(&mut self, records: &[u8]) -> io::Result<()> {
        let endian = self.reading.recording.endian;
        let mut at = 0;
        while let Some(header) = PerfRecordHeader::read::<BIG>(records, at) {
            let next = at + header.size.max(HEADER);
            let Some(body) = records.get(at + HEADER..next) else {
                break;
            };
            let behind = payload_behind(header.kind, body, endian);
            self.record.clear();
            let kept = match header.kind {
                kind::SAMPLE => self.sample::<BIG>(header, body),
                kind::COMM => self.named::<BIG>(header, body, 8..8, |mask, name| mask.comm(name)),
                kind::MMAP | kind::MMAP2 => self.mapping::<BIG>(header, body),
                kind::KSYMBOL => {
                    let kept =
                        self.named::<BIG>(header, body, 16..16, |mask, name| mask.symbol(name));
                    kept.and_then(|()| self.address_at(HEADER))
                }
                number if NUMBERS.contains(&number) => {
                    self.record.extend_from_slice(&records[at..next]);
                    Some(())
                }
                _ => None,
            };
            match kept {
                Some(()) => self.write()?,
                // In a pipe these are what a file has in its header and its feature sections.
                None if DEFINITIONS.contains(&header.kind) => {}
                None => self.omitted.records += 1,
            }
            if header.kind == kind::AUXTRACE {
                self.omitted.aux_bytes = self.omitted.aux_bytes.saturating_add(behind as u64);
            }
            at = next.saturating_add(behind);
        }
        Ok(())
    }

    /// Writes the record that was made.
    fn write(&mut self) -> io::Result<()> {
        let size = self.record.len().next_multiple_of(8);
        self.record.resize(size, 0);
        let endian = self.reading.recording.endian;
        let Ok(size) = u16::try_from(size) else {
            self.omitted.records += 1;
            return Ok(());
        };
        let bytes = match endian {
            Endian::Little => size.to_le_bytes(),
            Endian::Big => size.to_be_bytes(),
        };
        if let Some(place) = self.record.get_mut(6..8) {
            place.copy_from_slice(&bytes);
        }
        self.bytes += self.record.len() as u64;
        self.out.put(&self.record)
    }

    /// Begins a record: its kind and flags.
    fn begin(&mut self, header: PerfRecordHeader, misc: u16) {
        let word = match self.reading.recording.endian {
            Endian::Little => u64::from(header.kind) | u64::from(misc) << 32,
            Endian::Big => u64::from(header.kind) << 32 | u64::from(misc) << 16,
        };
        let bytes = self.reading.recording.endian.u64_bytes(word);
        self.record.extend(bytes);
    }

    /// Masks the address at a place of the record.
    fn address_at(&mut self, at: usize) -> Option<()> {
        let endian = self.reading.recording.endian;
        let address = self.mask.address(endian.u64(&self.record, at)?);
        let place = self.record.get_mut(at..at + 8)?;
        place.copy_from_slice(&endian.u64_bytes(address));
        Some(())
    }

    fn sample<const BIG: bool>(&mut self, header: PerfRecordHeader, body: &[u8]) -> Option<()> {
        let recording = self.reading.recording;
        let attr = self.reading.attr_of::<BIG>(body)?;
        let described = recording.attrs.get(index_of(attr))?;
        let sample =
            PerfSample::of::<BIG>(&recording.attrs, recording.endian, header, body, 0, attr);
        let end = sample.after_raw().filter(|end| *end <= body.len())?;
        let offset = |part: &[u8]| part.as_ptr() as usize - body.as_ptr() as usize;
        let chain = sample.callchain().map(|part| (offset(part), part.len()));
        let raw = sample.raw().map(|part| (offset(part), part.len()));
        if described.sample_type & !KEPT != 0 {
            self.omitted.sample_parts += 1;
        }
        self.begin(header, header.misc);
        self.record.extend_from_slice(&body[..end]);
        let layout = &described.layout;
        for at in [layout.ip, layout.addr].into_iter().flatten() {
            self.address_at(HEADER + usize::from(at))?;
        }
        if let Some((at, len)) = chain {
            for word in (at..at + len).step_by(8) {
                self.address_at(HEADER + word)?;
            }
        }
        if let Some((at, len)) = raw {
            let record = self.record.get_mut(HEADER + at..HEADER + at + len)?;
            self.mask.tracepoint(described.tracepoint_id(), record);
        }
        Some(())
    }

    /// Takes a record with a name between numbers and the trailer. `zeroed` is what of the numbers is left out.
    fn named<const BIG: bool>(
        &mut self,
        header: PerfRecordHeader,
        body: &[u8],
        zeroed: Range<usize>,
        masked: impl FnOnce(&mut dyn PrivacyMask, &[u8]) -> Vec<u8>,
    ) -> Option<()> {
        let name_at = match header.kind {
            kind::MMAP => 32,
            kind::MMAP2 => 64,
            _ => zeroed.end,
        };
        let trailer = usize::from(self.reading.trailer::<BIG>(body).trailer);
        let end = body.len().checked_sub(trailer)?;
        let name = body.get(name_at..end)?;
        let length = name
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(name.len());
        let name = masked(self.mask, &name[..length]);
        self.begin(header, header.misc & !MISC_BUILD_ID);
        self.record.extend_from_slice(body.get(..name_at)?);
        if let Some(place) = self
            .record
            .get_mut(HEADER + zeroed.start..HEADER + zeroed.end)
        {
            place.fill(0);
        }
        self.record.extend_from_slice(&name);
        // It ends with a zero, as names do, and the trailer begins at a multiple of 8.
        let size = (self.record.len() + 1).next_multiple_of(8);
        self.record.resize(size, 0);
        self.record.extend_from_slice(&body[end..]);
        Some(())
    }

    /// Takes a mapping: device and inode, or build id, stand before protection and flags, and are left out.
    fn mapping<const BIG: bool>(&mut self, header: PerfRecordHeader, body: &[u8]) -> Option<()> {
        let zeroed = match header.kind {
            kind::MMAP2 => 32..56,
            _ => 0..0,
        };
        self.named::<BIG>(header, body, zeroed, |mask, name| mask.path(name))?;
        // Of the kernel the offset is an address too.
        self.address_at(HEADER + 8)?;
        self.address_at(HEADER + 24)
    }
}

impl SalvageOutlet for MaskedRecords<'_, '_, '_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.reading.recording.endian {
            Endian::Little => self.masked::<false>(bytes),
            Endian::Big => self.masked::<true>(bytes),
        }
    }

    fn consumed(&mut self, range: Range<usize>) {
        self.out.consumed(range);
    }
}
