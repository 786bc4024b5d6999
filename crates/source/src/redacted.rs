//! A recording without what is private in it.

use std::io::{self, Write};
use std::ops::ControlFlow;

use event::{Event, EventType, Sink};
use perfdata::{OmittedParts, PerfRecording};
use redact::{RedactionCheck, RedactionCounts, Redactor, ReplacedNames, TextRedactor};
use salvage::{SalvageOutlet, WriteOutlet};
use tracedat::MaskableDat;

use crate::sniff::{FileContent, sniff};
use crate::{OpenError, ReaderOptions, RecordingBytes};

/// A recording that can be written without what is private in it.
#[derive(Debug)]
pub struct RedactableRecording<'r> {
    recording: &'r RecordingBytes,
    container: RedactableContainer<'r>,
}

#[derive(Debug)]
enum RedactableContainer<'r> {
    Perf(Box<PerfRecording<'r>>),
    Dat(Box<MaskableDat<'r>>),
    Text(&'r [u8]),
}

/// Bytes of a text after which its memory is given back.
const PIECE: usize = 1 << 20;
/// A text whose first line is longer than this has other ends of lines than line feeds.
const FIRST_LINE: usize = 1 << 16;

impl RecordingBytes {
    /// Reads what stands around the records of a perf.data or trace.dat, or that a file is a text of events, to write
    /// it without what is private.
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
        let container = if perfdata::is_perf_data(data) {
            let perf = PerfRecording::parse(data).map_err(|error| unusable(error.to_string()))?;
            RedactableContainer::Perf(Box::new(perf))
        } else if tracedat::is_trace_dat(data) {
            let mut release = |range| self.release(range);
            let dat = MaskableDat::new(data, &mut release).map_err(|e| unusable(e.to_string()))?;
            let dat = dat.map_err(|e| unusable(e.to_string()))?;
            RedactableContainer::Dat(Box::new(dat))
        } else {
            match sniff(data) {
                FileContent::Recording(_) => RedactableContainer::Text(data),
                found => {
                    return Err(unusable(format!(
                        "is {}; expected a perf.data, a trace.dat, or the text of events that perf script, trace-cmd \
                         report or the kernel printed",
                        found.described()
                    )));
                }
            }
        };
        Ok(RedactableRecording {
            recording: self,
            container,
        })
    }
}

/// Sums up what events have that stays.
#[derive(Debug, Default, PartialEq, Eq)]
struct EventDigest {
    events: u64,
    digest: u64,
}

impl Sink for EventDigest {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.events += 1;
        for number in [
            event.time,
            event.cpu.cast_unsigned().into(),
            event.tid.cast_unsigned().into(),
            event.ty.index.into(),
        ] {
            // The step of FNV-1a, of words.
            self.digest = (self.digest ^ number).wrapping_mul(0x0100_0000_01b3);
        }
        ControlFlow::Continue(())
    }
}

fn digest(recording: &RecordingBytes) -> Result<EventDigest, OpenError> {
    let mut digest = EventDigest::default();
    recording
        .reader(ReaderOptions::default())?
        .walk(&mut digest);
    Ok(digest)
}

impl RedactableRecording<'_> {
    /// Reads what was written, and looks for the names that were replaced.
    ///
    /// # Errors
    ///
    /// One of them cannot be read.
    pub fn check(
        &self,
        written: &RecordingBytes,
        names: &ReplacedNames,
    ) -> Result<RedactionCheck, OpenError> {
        let (before, after) = (digest(self.recording)?, digest(written)?);
        Ok(RedactionCheck {
            events: after.events,
            events_before: before.events,
            is_same: before == after,
            names: names.count(),
            remaining: names.remaining_in(written.present(), &mut |range| written.release(range)),
        })
    }

    /// Writes the recording without what is private. Of `random` nobody may know what it is. Returns the names that
    /// were replaced, too.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn write(
        &self,
        random: u64,
        out: &mut dyn Write,
    ) -> io::Result<(RedactionCounts, ReplacedNames)> {
        let release = |range| self.recording.release(range);
        let mut out = WriteOutlet::new(out, &release);
        let (redactor, omitted) = match &self.container {
            RedactableContainer::Text(text) => return write_text(text, random, &mut out),
            RedactableContainer::Perf(perf) => {
                let mut redactor = Redactor::new(perf.formats(), random);
                let omitted = perf.write_masked(&mut redactor, &mut out)?;
                (redactor, omitted)
            }
            RedactableContainer::Dat(dat) => {
                let mut redactor = Redactor::new(dat.formats(), random);
                let features = dat.write(&mut redactor, &mut out)?;
                let none = OmittedParts::default();
                (redactor, OmittedParts { features, ..none })
            }
        };
        let counts = RedactionCounts {
            replaced: redactor.counts(),
            omitted,
        };
        Ok((counts, redactor.replaced()))
    }
}

/// Writes a text without what is private, line by line. Ends of lines stay as they are.
fn write_text(
    text: &[u8],
    random: u64,
    out: &mut dyn SalvageOutlet,
) -> io::Result<(RedactionCounts, ReplacedNames)> {
    let mut redactor = TextRedactor::new(random);
    let first = &text[..text.len().min(FIRST_LINE)];
    let separator = match first.contains(&b'\n') {
        true => b'\n',
        false => b'\r',
    };
    let mut made = Vec::new();
    let (mut at, mut given) = (0, 0);
    for line in text.split_inclusive(|byte| *byte == separator) {
        at += line.len();
        let body = line.strip_suffix(&[separator]).unwrap_or(line);
        let body = body.strip_suffix(b"\r").unwrap_or(body);
        redactor.line(body, &mut made);
        made.extend(&line[body.len()..]);
        if at - given >= PIECE || at == text.len() {
            out.put(&made)?;
            made.clear();
            out.consumed(given..at);
            given = at;
        }
    }
    let counts = RedactionCounts {
        replaced: redactor.counts(),
        omitted: OmittedParts::default(),
    };
    Ok((counts, redactor.replaced()))
}
