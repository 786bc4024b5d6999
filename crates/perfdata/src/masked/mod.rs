//! A recording with what is private in it replaced.
//!
//! Nothing is passed on because it was not thought of: a part of a record goes into the new file only if it is one of
//! those here, and so does a kind of record, a field of an attribute and a feature section. What is private, and what
//! stands in its place, decides a [`PrivacyMask`].
//!
//! Left out are copied stacks, registers, branch stacks and all else that stands behind a sample's tracepoint record;
//! AUX data; records of namespaces, control groups, code that was changed and BPF programs' tags; build ids.
//!
//! Sources: `include/uapi/linux/perf_event.h`, `tools/perf/util/header.c`.

mod features;
mod records;

use std::io;

use ::salvage::{CountingOutlet, SalvageOutlet};

use crate::attr::bits;
use crate::file::PerfRecording;
use crate::header::{FEATURE_BITS, FEATURE_ENTRY, FEATURES_AT, FILE_HEADER, feature_byte};
use crate::salvage::pass;
use crate::walk::WalkPlan;
use records::MaskedRecords;

/// Decides what stands in place of what is private.
pub trait PrivacyMask {
    /// Returns what stands in place of an address, which may be the kernel's.
    fn address(&mut self, address: u64) -> u64;

    /// Masks a tracepoint's record in place, its common fields included. `id` is that of its format.
    fn tracepoint(&mut self, id: Option<u32>, record: &mut [u8]);

    /// Returns what stands in place of a thread's name.
    fn comm(&mut self, comm: &[u8]) -> Vec<u8>;

    /// Returns what stands in place of the path of a file, or of the name of a mapping.
    fn path(&mut self, path: &[u8]) -> Vec<u8>;

    /// Returns what stands in place of the name of code that the kernel made.
    fn symbol(&mut self, symbol: &[u8]) -> Vec<u8>;

    /// Returns what stands in place of a release or version.
    fn release(&mut self, release: &str) -> String;

    /// Returns what stands in place of what trapline's recorder says, which is JSON; `None` to leave it out.
    fn recorder(&mut self, json: &str) -> Option<String>;

    /// Returns what stands in place of the tracing data: formats, symbols, names.
    fn tracing(&mut self, data: &[u8]) -> Vec<u8>;
}

/// The parts of a sample that stay. All others stand behind them.
const KEPT: u64 = bits::IP
    | bits::TID
    | bits::TIME
    | bits::ADDR
    | bits::READ
    | bits::CALLCHAIN
    | bits::ID
    | bits::CPU
    | bits::PERIOD
    | bits::STREAM_ID
    | bits::RAW
    | bits::IDENTIFIER;
/// Where an attribute has the parts of its samples, and where the fields begin and end that describe those that are
/// left out: branch stack and registers, stack and clock, registers of interrupts, AUX.
const SAMPLE_TYPE: usize = 24;
const BRANCHES: usize = 72;
const STACK_END: usize = 92;
const BEHIND_CLOCK: usize = 96;
/// Where it has two numbers that may be addresses.
const ADDRESSES: [usize; 2] = [56, 64];
/// Bytes of the place and size of an attribute's ids.
const IDS: usize = 16;

/// What was left out of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OmittedParts {
    /// Records that are of no kind that stays.
    pub records: u64,
    /// Samples that had stacks, registers or the like.
    pub sample_parts: u64,
    /// Feature sections.
    pub features: u64,
    /// Bytes of AUX data.
    pub aux_bytes: u64,
}

impl PerfRecording<'_> {
    /// Writes the recording with what is private replaced. It goes over the records twice: the mask has to give the
    /// same for the same.
    ///
    /// # Errors
    ///
    /// Those of the outlet.
    pub fn write_masked(
        &self,
        mask: &mut dyn PrivacyMask,
        out: &mut dyn SalvageOutlet,
    ) -> io::Result<OmittedParts> {
        let reading = WalkPlan::new(self);
        let mut consumed = |range| out.consumed(range);
        let mut nowhere = CountingOutlet::new(&mut consumed);
        let mut counted = MaskedRecords::new(&reading, mask, &mut nowhere);
        pass::pass(&reading, Some(&mut counted))?;
        let (size, mut omitted) = (counted.bytes, counted.omitted);
        let features = features::masked(self, mask, &mut omitted);
        out.put(&self.masked_head(mask, size, &features))?;
        pass::pass(
            &reading,
            Some(&mut MaskedRecords::new(&reading, mask, &mut *out)),
        )?;
        let list = FEATURE_ENTRY * features.len() as u64;
        let mut at = self.masked_start() + size + list;
        for (_, bytes) in &features {
            out.put(&self.endian.u64_bytes(at))?;
            out.put(&self.endian.u64_bytes(bytes.len() as u64))?;
            at += bytes.len() as u64;
        }
        for (_, bytes) in &features {
            out.put(bytes)?;
        }
        Ok(omitted)
    }

    /// Returns where the records of the new file begin: behind the header, attributes and ids.
    fn masked_start(&self) -> u64 {
        let ids: usize = self.attrs.iter().map(|attr| 8 * attr.ids.len()).sum();
        let attrs: usize = self
            .attrs
            .iter()
            .map(|_| self.masked_attr_size() + IDS)
            .sum();
        (FILE_HEADER + attrs + ids) as u64
    }

    /// Returns the bytes of an attribute of the new file: all of one file have the same.
    fn masked_attr_size(&self) -> usize {
        let sizes = self.attrs.iter().map(|attr| attr.bytes.len());
        sizes.max().unwrap_or(0)
    }

    /// Returns an attribute: what describes parts of samples that are left out is 0.
    fn masked_attr(&self, bytes: &[u8], mask: &mut dyn PrivacyMask) -> Vec<u8> {
        let mut attr = bytes.to_vec();
        let endian = self.endian;
        let kinds = endian.u64(&attr, SAMPLE_TYPE).unwrap_or(0) & KEPT;
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(place) = attr.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        };
        put(SAMPLE_TYPE, &endian.u64_bytes(kinds));
        put(BRANCHES, &[0; STACK_END - BRANCHES]);
        for at in ADDRESSES {
            if let Some(address) = endian.u64(bytes, at) {
                put(at, &endian.u64_bytes(mask.address(address)));
            }
        }
        if let Some(rest) = attr.get_mut(BEHIND_CLOCK..) {
            rest.fill(0);
        }
        attr.resize(self.masked_attr_size(), 0);
        attr
    }

    /// Returns header, attributes and ids.
    fn masked_head(
        &self,
        mask: &mut dyn PrivacyMask,
        size: u64,
        features: &[(u32, Vec<u8>)],
    ) -> Vec<u8> {
        let endian = self.endian;
        let attr_size = (self.masked_attr_size() + IDS) as u64;
        let attrs = attr_size * self.attrs.len() as u64;
        let words = [
            FILE_HEADER as u64,
            attr_size,
            FILE_HEADER as u64,
            attrs,
            self.masked_start(),
            size,
            0,
            0,
        ];
        let mut head = self.data.get(..8).unwrap_or_default().to_vec();
        head.extend(words.into_iter().flat_map(|word| endian.u64_bytes(word)));
        debug_assert_eq!(head.len(), FEATURES_AT);
        head.resize(FEATURES_AT + FEATURE_BITS as usize / 8, 0);
        for (bit, _) in features {
            if let Some(byte) = head.get_mut(feature_byte(*bit, endian)) {
                *byte |= 1 << (bit % 8);
            }
        }
        let mut place = FILE_HEADER as u64 + attrs;
        for attr in &self.attrs {
            head.extend(self.masked_attr(&attr.bytes, mask));
            let size = 8 * attr.ids.len() as u64;
            head.extend(endian.u64_bytes(place));
            head.extend(endian.u64_bytes(size));
            place += size;
        }
        let ids = self.attrs.iter().flat_map(|attr| &attr.ids);
        head.extend(ids.flat_map(|id| endian.u64_bytes(*id)));
        head
    }
}
