//! A recording without what is private in it.

use std::io::{self, Write};

use perfdata::PerfRecording;
use redact::{RedactionCounts, Redactor};
use salvage::WriteOutlet;

use crate::sniff::{FileContent, sniff};
use crate::{OpenError, RecordingBytes};

/// A recording that can be written without what is private in it.
#[derive(Debug)]
pub struct RedactableRecording<'r> {
    recording: &'r RecordingBytes,
    perf: Box<PerfRecording<'r>>,
}

impl RecordingBytes {
    /// Reads what stands around the records of a perf.data, to write it without what is private.
    ///
    /// # Errors
    ///
    /// Fails where it is something else, or cannot be read.
    pub fn redactable(&self) -> Result<RedactableRecording<'_>, OpenError> {
        let data = self.present();
        let unusable = |reason: String| OpenError::Unusable {
            name: self.name().to_owned(),
            reason,
        };
        if !perfdata::is_perf_data(data) {
            let found = match sniff(data) {
                FileContent::Other(what) => what,
                FileContent::Recording(what) => format!("a {what}"),
                FileContent::Text => "a text".to_owned(),
            };
            return Err(unusable(format!(
                "is {found}; expected a perf.data, of which alone it is known where all that is private stands"
            )));
        }
        let perf = PerfRecording::parse(data).map_err(|error| unusable(error.to_string()))?;
        Ok(RedactableRecording {
            recording: self,
            perf: Box::new(perf),
        })
    }
}

impl RedactableRecording<'_> {
    /// Writes the recording without what is private. Of `random` nobody may know what it is.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn write(&self, random: u64, out: &mut dyn Write) -> io::Result<RedactionCounts> {
        let release = |range| self.recording.release(range);
        let mut redactor = Redactor::new(self.perf.formats(), random);
        let mut out = WriteOutlet::new(out, &release);
        let omitted = self.perf.write_masked(&mut redactor, &mut out)?;
        Ok(RedactionCounts {
            replaced: redactor.counts(),
            omitted,
        })
    }
}
