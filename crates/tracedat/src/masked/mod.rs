//! A recording with what is private in it replaced.
//!
//! The new file is made of what is on a list: the formats of events, the names of threads, options of which it is known
//! what they hold (`options.rs`), the symbols that records have addresses of, and records. Nothing is passed on because
//! it was not thought of: texts of `trace_printk`, modules, type information, buffers of the kernel's own text and
//! options that are not on the list are left out, and so is whatever stands in a page between its records. What is
//! private, and what stands in its place, decides a [`TracePrivacyMask`].
//!
//! A file that was cut off or damaged comes out as a salvaged one (`salvage`), and a compressed one is unpacked.
//!
//! Sources: `Documentation/trace-cmd/trace-cmd.dat.v6.5.txt` and `trace-cmd.dat.v7.5.txt` of trace-cmd.

mod head;
mod mask;
mod options;

use std::io;
use std::ops::Range;

use ::salvage::{CountingOutlet, SalvageOutlet, SalvageRefusal};
use tracefmt::FormatCatalog;

use crate::TraceDatError;
use crate::file::{KallsymsPlace, TraceDat};
use crate::salvage::DatSalvage;
use crate::salvage::pages::{self, CpuRegion, PageForm};
use crate::salvage::parts::NewPart;

pub use mask::TracePrivacyMask;

/// A trace.dat, looked through, that can be written without what is private in it.
#[derive(Debug)]
pub struct MaskableDat<'a> {
    salvage: DatSalvage<'a>,
}

impl<'a> MaskableDat<'a> {
    /// Looks through a file. `consumed` learns which bytes of the input were read and are not needed for now.
    ///
    /// # Errors
    ///
    /// The outer one if it is no trace.dat that can be read; the inner one if nothing is left to keep.
    pub fn new(
        data: &'a [u8],
        consumed: &mut dyn FnMut(Range<usize>),
    ) -> Result<Result<MaskableDat<'a>, SalvageRefusal>, TraceDatError> {
        let dat = TraceDat::parse_keeping(data, true, consumed)?;
        Ok(MaskableDat::of(dat, consumed))
    }

    fn of(
        dat: TraceDat<'a>,
        consumed: &mut dyn FnMut(Range<usize>),
    ) -> Result<MaskableDat<'a>, SalvageRefusal> {
        let salvage = DatSalvage::looked_through(dat, true, consumed)?;
        let is_empty = salvage.account().whole && salvage.dat.info.texts.is_empty();
        if !is_empty {
            salvage.has_events()?;
        }
        let mut counts = salvage.buffers.iter().map(|buffer| buffer.cpus.len());
        let first = counts.next();
        // Version 6 has one number for all of them.
        if salvage.dat.info.version == 6 && counts.any(|count| Some(count) != first) {
            let reason = "its buffers have different numbers of CPUs".to_owned();
            return Err(SalvageRefusal::Layout(reason));
        }
        Ok(MaskableDat { salvage })
    }

    /// Returns the formats of its events.
    pub fn formats(&self) -> &FormatCatalog {
        &self.salvage.dat.formats
    }

    /// Writes the recording with what is private replaced. Returns how many sections, options and buffers of text were
    /// left out. It goes over the records twice where symbols stand before them: the mask has to give the same for the
    /// same.
    ///
    /// # Errors
    ///
    /// Those of the outlet.
    pub fn write(
        &self,
        mask: &mut dyn TracePrivacyMask,
        out: &mut dyn SalvageOutlet,
    ) -> io::Result<u64> {
        let dat = &self.salvage.dat;
        let mut buffers = self.salvage.buffers.clone();
        for buffer in &mut buffers {
            // Those that come out are not.
            buffer.compressed = false;
            if !buffer.name.is_empty() {
                buffer.name = mask.label(&buffer.name);
            }
            let clock = buffer.clock.as_ref().or(dat.info.clock.as_ref());
            buffer.clock = clock.map(|clock| options::clocks(clock));
        }
        if !matches!(dat.symbols, KallsymsPlace::None) {
            let mut consumed = |range| out.consumed(range);
            let mut nowhere = CountingOutlet::new(&mut consumed);
            for cpu in buffers.iter().flat_map(|buffer| &buffer.cpus) {
                self.records(&cpu.region, mask, &mut nowhere)?;
            }
        }
        let options = options::masked(dat, mask);
        let parts = match dat.info.version {
            6 => head::v6(dat, &mut buffers, &options, mask),
            _ => head::v7(dat, &mut buffers, &options, mask),
        };
        for part in &parts {
            match part {
                NewPart::Copy(range) => out.put(dat.data.get(range.clone()).unwrap_or_default())?,
                NewPart::Made(bytes) => out.put(bytes)?,
                NewPart::Cpu(buffer, cpu) => {
                    let cpu = buffers.get(*buffer).and_then(|b| b.cpus.get(*cpu));
                    let Some(region) = cpu.map(|cpu| &cpu.region) else {
                        continue;
                    };
                    self.records(region, mask, &mut *out)?;
                }
            }
        }
        Ok(options.omitted + head::omitted(dat))
    }

    /// Passes on a CPU's pages, masked.
    fn records(
        &self,
        region: &CpuRegion,
        mask: &mut dyn TracePrivacyMask,
        out: &mut dyn SalvageOutlet,
    ) -> io::Result<()> {
        let dat = &self.salvage.dat;
        let layout = region.layout;
        let mut masked = |page: &[u8]| match layout.header(page) {
            Some(header) => {
                let mut record = |record: &mut [u8]| mask.ring_record(record);
                layout.masked(page, &header, &mut record)
            }
            None => vec![0; layout.page_size],
        };
        let form = PageForm::Masked(&mut masked);
        pages::pass(dat.data, region, dat.compression, form, out).map(drop)
    }
}
