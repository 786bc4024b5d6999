//! A cut or damaged trace.dat made whole.
//!
//! trace-cmd reads nothing of a file that ends before its options (version 7) or within a CPU's data. The formats of
//! events stand in front, so all that has to be made anew is what says where each CPU's data lies: the list of CPUs of
//! version 6, the options of version 7. The data itself is gone over page by page (`pages.rs`). Where events are
//! missing the page behind them has the ring buffer's own mark for it (`RB_MISSED_EVENTS` in
//! `kernel/trace/ring_buffer.c`), which trace-cmd prints as dropped events.

pub(crate) mod pages;
pub(crate) mod parts;
mod stored;
pub(crate) mod v6;
pub(crate) mod v7;

use std::io;
use std::ops::Range;

use ::salvage::{
    CountingOutlet, SalvageAccount, SalvageOutlet, SalvageRefusal, SalvagedCpu, copy_range,
};
use cpuset::MAX_CPUS;

use crate::TraceDatError;
use crate::clock::CpuClock;
use crate::file::TraceDat;
use crate::info::{Buffer, TraceTimeUnit};
use pages::{CpuRegion, PageForm};
use parts::{NewBuffer, NewCpu, NewPart};

/// A trace.dat, looked through, and how it is made whole.
#[derive(Debug)]
pub struct DatSalvage<'a> {
    pub(crate) dat: TraceDat<'a>,
    pub(crate) buffers: Vec<NewBuffer>,
    parts: Vec<NewPart>,
    account: SalvageAccount,
}

impl<'a> DatSalvage<'a> {
    /// Looks through a file. `consumed` learns which bytes of the input were read and are not needed for now.
    ///
    /// # Errors
    ///
    /// The outer one if it is no trace.dat that can be read; the inner one if nothing is left to keep, or no whole file
    /// can be made of it.
    pub fn new(
        data: &'a [u8],
        consumed: &mut dyn FnMut(Range<usize>),
    ) -> Result<Result<DatSalvage<'a>, SalvageRefusal>, TraceDatError> {
        let dat = TraceDat::parse_keeping(data, true, consumed)?;
        Ok(DatSalvage::of(dat, consumed))
    }

    fn of(
        dat: TraceDat<'a>,
        consumed: &mut dyn FnMut(Range<usize>),
    ) -> Result<DatSalvage<'a>, SalvageRefusal> {
        let mut salvage = DatSalvage::looked_through(dat, false, consumed)?;
        if salvage.account.whole {
            salvage.account.output_bytes = salvage.dat.data.len() as u64;
            return Ok(salvage);
        }
        salvage.has_events()?;
        salvage.parts = match salvage.dat.info.version {
            6 => v6::parts(&salvage.dat, &mut salvage.buffers)?,
            _ => v7::parts(&salvage.dat, &mut salvage.buffers, &mut salvage.account)?,
        };
        let sizes = salvage
            .parts
            .iter()
            .map(|part| part.length(&salvage.buffers));
        salvage.account.output_bytes = sizes.fold(0, u64::saturating_add);
        Ok(salvage)
    }

    /// Looks through the data of a file, to write it as it is or, if `unpacked` is set, without compression.
    pub(crate) fn looked_through(
        dat: TraceDat<'a>,
        unpacked: bool,
        consumed: &mut dyn FnMut(Range<usize>),
    ) -> Result<DatSalvage<'a>, SalvageRefusal> {
        let mut salvage = DatSalvage {
            buffers: buffers(&dat)?,
            parts: Vec::new(),
            account: SalvageAccount::default(),
            dat,
        };
        salvage.look_through(unpacked, consumed);
        salvage.count();
        Ok(salvage)
    }

    /// Refuses a file of whose events nothing can be made.
    pub(crate) fn has_events(&self) -> Result<(), SalvageRefusal> {
        if self.account.events == 0 {
            return Err(match self.dat.info.texts.is_empty() {
                true => SalvageRefusal::NoEvents(self.dat.data.len() as u64),
                false => SalvageRefusal::KernelText,
            });
        }
        match self.dat.formats.all().is_empty() {
            true => Err(SalvageRefusal::FormatsGone),
            false => Ok(()),
        }
    }

    /// Returns what is kept, and what is lost.
    pub fn account(&self) -> &SalvageAccount {
        &self.account
    }

    /// Returns whether its times are nanoseconds.
    pub fn has_nanoseconds(&self) -> bool {
        self.dat.info.time_unit == TraceTimeUnit::Nanoseconds
    }

    /// Writes the whole file.
    ///
    /// # Errors
    ///
    /// Those of the outlet.
    pub fn write(&self, out: &mut dyn SalvageOutlet) -> io::Result<()> {
        let data = self.dat.data;
        if self.account.whole {
            return copy_range(data, 0..data.len(), out);
        }
        for part in &self.parts {
            match part {
                NewPart::Copy(range) => copy_range(data, range.clone(), out)?,
                NewPart::Made(bytes) => out.put(bytes)?,
                NewPart::Cpu(buffer, cpu) => {
                    let cpu = self.buffers.get(*buffer).and_then(|b| b.cpus.get(*cpu));
                    if let Some(cpu) = cpu {
                        let form = PageForm::AsFound {
                            chunks: cpu.whole.chunks,
                        };
                        pages::pass(data, &cpu.region, self.dat.compression, form, &mut *out)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Goes over the data of all CPUs, first of those of which there is some: when their buffer began is the time at
    /// which others are missing.
    fn look_through(&mut self, unpacked: bool, consumed: &mut dyn FnMut(Range<usize>)) {
        let (data, compression) = (self.dat.data, self.dat.compression);
        for buffer in &mut self.buffers {
            for empty in [false, true] {
                let begins = buffer
                    .cpus
                    .iter()
                    .filter_map(|cpu| cpu.whole.first_page)
                    .min();
                let cpus = buffer.cpus.iter_mut();
                for cpu in cpus.filter(|cpu| cpu.region.place.is_empty() == empty) {
                    cpu.region.time = begins.unwrap_or(0);
                    let form = match unpacked {
                        true => PageForm::Unpacked,
                        false => PageForm::AsFound { chunks: 0 },
                    };
                    // Nothing is written, so nothing fails.
                    let mut out = CountingOutlet::new(consumed);
                    cpu.whole = pages::pass(data, &cpu.region, compression, form, &mut out)
                        .unwrap_or_default();
                    consumed(cpu.region.place.clone());
                }
            }
        }
    }

    /// Adds up what was found.
    fn count(&mut self) {
        let mut account = SalvageAccount {
            input_bytes: self.dat.data.len() as u64,
            missing_bytes: Some(0),
            ..SalvageAccount::default()
        };
        for buffer in &self.buffers {
            let top = buffer.name.is_empty();
            for cpu in &buffer.cpus {
                let clock = CpuClock::new(&self.dat.info, cpu.cpu as usize, top);
                let whole = &cpu.whole;
                let times = whole.cpu.times;
                account.events += whole.cpu.events;
                account.places += whole.cpu.places;
                account.left_out_bytes += whole.left_out;
                let missing = account.missing_bytes.zip(cpu.region.missing);
                account.missing_bytes = missing.map(|(all, one)| all.saturating_add(one));
                if whole.cpu.events > 0 || whole.cpu.places > 0 {
                    *account.cpu(&buffer.name, i64::from(cpu.cpu)) = SalvagedCpu {
                        times: times
                            .map(|(first, last)| (clock.convert(first), clock.convert(last))),
                        ..whole.cpu
                    };
                }
            }
            if buffer.recovered {
                account.note(
                    "The list of CPUs is gone: where each one's data ends was found by its pages, and where the \
                     kernel's counts are gone too, CPUs are numbered in their order.",
                );
            }
        }
        account.whole = !self.dat.truncated && account.places == 0 && account.left_out_bytes == 0;
        if !account.whole && self.dat.info.clock.is_none() {
            account.note("What clock its times are of is gone with the part that is missing.");
        }
        self.account = account;
    }
}

/// Returns the buffers that the new file has.
fn buffers(dat: &TraceDat<'_>) -> Result<Vec<NewBuffer>, SalvageRefusal> {
    let mut left = dat.data.len() as u64;
    let mut all = Vec::new();
    for (index, buffer) in dat.info.buffers.iter().enumerate() {
        let layout = dat.page_layout(buffer).ok_or_else(|| {
            SalvageRefusal::Layout("the size of its pages is not known".to_owned())
        })?;
        let count = buffer.cpus.len();
        let mut cpus = Vec::new();
        for (at, cpu) in buffer.cpus.iter().enumerate() {
            let region = region(dat, buffer, (at + 1 == count, cpu), layout);
            let there = region.place.len() as u64;
            // Data of two CPUs never overlaps in a sound file; in a crafted one it could multiply. A chunk's count may
            // be counted twice.
            left = (left + 4).checked_sub(there).ok_or_else(|| {
                SalvageRefusal::Layout("its CPUs have the same bytes as their data".to_owned())
            })?;
            cpus.push(NewCpu::new(cpu.cpu, region));
        }
        all.push(NewBuffer {
            list: (dat.info.version == 6).then_some(index),
            name: buffer.name.clone(),
            clock: buffer.clock.clone(),
            page_size: buffer.page_size,
            compressed: buffer.compressed,
            recovered: buffer.recovered,
            cpus,
        });
    }
    match dat.info.version {
        6 => v6::add_lost(dat, &mut all)?,
        _ => v7::add_lost(dat, &mut all),
    }
    let count: usize = all.iter().map(|buffer| buffer.cpus.len()).sum();
    match count > MAX_CPUS.saturating_mul(16) {
        true => Err(SalvageRefusal::Layout(format!(
            "it says that it has {count} CPUs"
        ))),
        false => Ok(all),
    }
}

/// Returns what of a CPU's data is in the file.
fn region(
    dat: &TraceDat<'_>,
    buffer: &Buffer,
    (last, cpu): (bool, &crate::info::CpuPages),
    layout: crate::page::PageLayout,
) -> CpuRegion {
    let length = dat.data.len();
    let in_file = |at: u64| usize::try_from(at).map_or(length, |at| at.min(length));
    // trace-cmd before 3.2 did not count the four bytes of the chunks' number.
    let more = if buffer.compressed && cpu.size > 0 {
        4
    } else {
        0
    };
    let end = cpu.offset.saturating_add(cpu.size);
    let place = match cpu.size {
        0 => 0..0,
        _ => in_file(cpu.offset)..in_file(end.saturating_add(more)),
    };
    let missing = end.saturating_sub(cpu.offset.max(length as u64));
    let behind = buffer.recovered && last && dat.missing_cpus;
    CpuRegion {
        place,
        missing: (!behind).then_some(if cpu.size > 0 { missing } else { 0 }),
        cut: behind || cpu.size > 0 && missing > 0,
        compressed: buffer.compressed,
        layout,
        time: 0,
    }
}
