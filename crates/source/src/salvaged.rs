//! A cut or damaged recording made whole, whatever its container.

use std::io::{self, Write};

use perfdata::{PerfRecording, PerfSalvage};
use salvage::{SalvageAccount, WriteOutlet};
use tracedat::DatSalvage;

use crate::sniff::sniff;
use crate::{OpenError, RecordingBytes};

/// A recording that was looked through, and can be written whole.
#[derive(Debug)]
pub struct RecordingSalvage<'r> {
    recording: &'r RecordingBytes,
    container: SalvagedContainer<'r>,
}

#[derive(Debug)]
enum SalvagedContainer<'r> {
    Perf(Box<PerfSalvage<'r>>),
    Dat(Box<DatSalvage<'r>>),
}

impl RecordingBytes {
    /// Looks through a perf.data or trace.dat for what is whole. `lent` is a perf.data of the same kernel, whose event
    /// formats stand in for those that are gone.
    ///
    /// # Errors
    ///
    /// Fails where it is neither, or where no whole recording can be made of what is left.
    pub fn salvage<'r>(
        &'r self,
        lent: Option<&RecordingBytes>,
    ) -> Result<RecordingSalvage<'r>, OpenError> {
        let data = self.present();
        let unusable = |reason: String| OpenError::Unusable {
            name: self.name().to_owned(),
            reason,
        };
        let formats = match lent {
            None => None,
            Some(lent) => {
                let formats = perfdata::tracing_section(lent.present());
                Some(formats.ok_or_else(|| OpenError::Unusable {
                    name: lent.name().to_owned(),
                    reason: "has no event formats to lend; expected a perf.data file with tracepoints"
                        .to_owned(),
                })?)
            }
        };
        let container = if perfdata::is_perf_data(data) {
            let parsed = PerfRecording::parse(data).map_err(|e| unusable(e.to_string()))?;
            let mut release = |range| self.release(range);
            let perf = PerfSalvage::new(parsed, formats, &mut release);
            let perf = perf.map_err(|e| unusable(e.to_string()))?;
            SalvagedContainer::Perf(Box::new(perf))
        } else if tracedat::is_trace_dat(data) {
            let mut release = |range| self.release(range);
            let dat = DatSalvage::new(data, &mut release).map_err(|e| unusable(e.to_string()))?;
            let dat = dat.map_err(|e| unusable(e.to_string()))?;
            SalvagedContainer::Dat(Box::new(dat))
        } else {
            let found = sniff(data).described();
            return Err(unusable(format!(
                "is {found}; expected a perf.data or trace.dat, which alone can be cut so that no tool opens them"
            )));
        };
        Ok(RecordingSalvage {
            recording: self,
            container,
        })
    }
}

impl RecordingSalvage<'_> {
    /// Returns what is kept, and what is lost.
    pub fn account(&self) -> &SalvageAccount {
        match &self.container {
            SalvagedContainer::Perf(perf) => perf.account(),
            SalvagedContainer::Dat(dat) => dat.account(),
        }
    }

    /// Returns whether its times are nanoseconds.
    pub fn has_nanoseconds(&self) -> bool {
        match &self.container {
            SalvagedContainer::Perf(_) => true,
            SalvagedContainer::Dat(dat) => dat.has_nanoseconds(),
        }
    }

    /// Writes the whole recording.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let release = |range| self.recording.release(range);
        let mut out = WriteOutlet::new(out, &release);
        match &self.container {
            SalvagedContainer::Perf(perf) => perf.write(&mut out),
            SalvagedContainer::Dat(dat) => dat.write(&mut out),
        }
    }
}
