//! One reader for every container.

use doubts::{Doubt, DoubtKind};
use event::{ResumePlace, Side, Sink};
use tracefmt::FormatCatalog;

use crate::dat::DatReader;
use crate::header::RecordingHeader;
use crate::perf::{PerfReader, RecordingPieces};
use crate::sniff::{FileContent, sniff};
use crate::text::TextRecording;
use crate::walked::{WalkOutcome, WalkWatch};
use crate::{OpenError, RecordingBytes};

/// A recording, decided and with its header read.
#[derive(Debug)]
pub struct RecordingReader<'r> {
    recording: &'r RecordingBytes,
    /// Bytes of it that there were when it was decided.
    length: usize,
    kind: ReaderKind<'r>,
    threads: usize,
}

#[derive(Debug)]
enum ReaderKind<'r> {
    Perf(Box<PerfReader<'r>>),
    Dat(Box<DatReader<'r>>),
    Text(Box<TextRecording<'r>>),
}

/// How a recording is to be read.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReaderOptions<'r> {
    /// Formats of another recording of the same kernel, for recordings that lost theirs: a perf.data that was
    /// cut off has its event formats in the part that is missing.
    pub lent: Option<&'r FormatCatalog>,
    /// Whether events will be printed, which needs the kernel's symbols.
    pub symbols: bool,
    /// Threads that may work on a walk, the one that calls included; 0 is 1. What a sink gets, and when, is the same
    /// with any number: it is called by one thread.
    pub threads: usize,
    /// Whether a guest's times are those of its own clock, without what the recorder measured between that and its
    /// host's ([`JointRecordings::offset_ns`](crate::JointRecordings::offset_ns)). Recordings that say
    /// nothing of a host are the same either way.
    pub own_clock: bool,
}

impl RecordingBytes {
    /// Decides by content what the recording is, and reads what stands around its events.
    ///
    /// # Errors
    ///
    /// Fails when it is no recording, or one of which nothing can be used.
    pub fn reader<'r>(
        &'r self,
        options: ReaderOptions<'r>,
    ) -> Result<RecordingReader<'r>, OpenError> {
        let data = self.present();
        let unusable = |reason: String| OpenError::Unusable {
            name: self.name().to_owned(),
            reason: match self.cut_at() {
                Some(at) => format!("was cut off at byte {at} while it was read; {reason}"),
                None => reason,
            },
        };
        let kind = if perfdata::is_perf_data(data) {
            let parsed =
                perfdata::PerfRecording::parse(data).map_err(|e| unusable(e.to_string()))?;
            let parsed = parsed.read_by(self.cheaper_source());
            ReaderKind::Perf(Box::new(PerfReader::new(parsed, options.lent)))
        } else if tracedat::is_trace_dat(data) {
            let parsed = tracedat::TraceDat::parse(data).map_err(|e| unusable(e.to_string()))?;
            ReaderKind::Dat(Box::new(DatReader::new(
                parsed,
                options.symbols,
                options.own_clock,
            )))
        } else if let Some(text) = TextRecording::new(data) {
            ReaderKind::Text(Box::new(text))
        } else {
            return Err(OpenError::NotARecording {
                name: self.name().to_owned(),
                found: match sniff(data) {
                    FileContent::Other(what) => what,
                    _ => "a text without any event line in it".to_owned(),
                },
            });
        };
        Ok(RecordingReader {
            recording: self,
            length: data.len(),
            kind,
            threads: options.threads.max(1),
        })
    }
}

impl<'r> RecordingReader<'r> {
    /// Returns what it reads, which can be read in another way beside it.
    pub fn recording(&self) -> &'r RecordingBytes {
        self.recording
    }

    /// Returns what the recording says of itself.
    pub fn header(&self) -> &RecordingHeader {
        match &self.kind {
            ReaderKind::Perf(perf) => perf.header(),
            ReaderKind::Dat(dat) => dat.header(),
            ReaderKind::Text(text) => text.header(),
        }
    }

    /// Returns the formats of its binary records, if it has any.
    pub fn formats(&self) -> Option<&FormatCatalog> {
        match &self.kind {
            ReaderKind::Perf(perf) => Some(perf.formats()),
            ReaderKind::Dat(dat) => Some(dat.formats()),
            ReaderKind::Text(_) => None,
        }
    }

    /// Returns what stands around the data of a perf.data: attributes, features.
    pub fn perf_data(&self) -> Option<&perfdata::PerfRecording<'r>> {
        match &self.kind {
            ReaderKind::Perf(perf) => Some(perf.data()),
            ReaderKind::Dat(_) | ReaderKind::Text(_) => None,
        }
    }

    /// Returns whether the formats of its binary records are missing, so that they cannot be distinguished. A profile,
    /// which has no tracepoints, needs none.
    pub fn misses_formats(&self) -> bool {
        let none = self
            .formats()
            .is_some_and(|formats| formats.all().is_empty());
        let needs = self.perf_data().is_none_or(|perf| {
            let attrs = perf.attrs();
            attrs.is_empty() || attrs.iter().any(|attr| attr.tracepoint_id().is_some())
        });
        none && needs
    }

    /// Returns at which byte a file was cut off that ends before its first event, so that nothing of it can be read;
    /// `None` for all others.
    pub fn cut_before_events(&self) -> Option<usize> {
        match &self.kind {
            ReaderKind::Dat(dat) => dat.ends_before_data().then_some(self.length),
            ReaderKind::Perf(_) | ReaderKind::Text(_) => None,
        }
    }

    /// Returns whether it is a perf.data (or perf's text), whose events are printed as `perf script` does.
    pub fn is_perf(&self) -> bool {
        match &self.kind {
            ReaderKind::Perf(_) => true,
            ReaderKind::Dat(_) => false,
            ReaderKind::Text(text) => text.is_perf(),
        }
    }

    /// Pushes all events to `sink`, in time order, and says what is missing from the recording.
    ///
    /// Where the file is made shorter while it is read, this ends with what was read until then.
    pub fn walk(&self, sink: &mut dyn Sink) -> WalkOutcome {
        let mut outcome = match self.recording.cut_at() {
            // It is read as the shorter file that it is now.
            Some(at) if at < self.length => self.pushed_to(at, sink),
            _ => self.pushed(sink),
        };
        if let Some(byte) = self.recording.cut_at() {
            outcome.quality.truncated = true;
            outcome.quality.raise(DoubtKind::CutWhileRead { byte });
        }
        for reason in self.recording.warnings() {
            outcome.quality.truncated = true;
            outcome.quality.raise(DoubtKind::InputBroken {
                reason: reason.clone(),
            });
        }
        if let Some(from) = outcome.quality.uneven_from {
            outcome
                .quality
                .raise(Doubt::from(DoubtKind::CutUneven).within(from, u64::MAX));
            sink.side(&Side::Cut { from });
        }
        outcome
    }

    /// Pushes what an earlier walk had not pushed when it noted a place ([`Sink::place`]). The sink has to want all
    /// events, as that one's did. Returns `false`, having pushed nothing, if that cannot be had: the recording has no
    /// places, or the file was cut since. What is missing from the recording was reported by the earlier walk.
    pub fn walk_from(&self, place: &ResumePlace, sink: &mut dyn Sink) -> bool {
        let (ReaderKind::Perf(perf), Some(place)) = (&self.kind, place.inner.downcast_ref()) else {
            return false;
        };
        let watch = WalkWatch::of_part(self.recording, self.length);
        if watch.look() {
            return false;
        }
        perf.walk_from(place, sink, &watch);
        true
    }

    /// Begins a walk over records that come in pieces, while they are recorded: those that this recording has, and then
    /// those of the pieces.
    ///
    /// # Errors
    ///
    /// Fails when this is no perf.data, the only kind whose records can come in pieces.
    pub fn pieces(&self) -> Result<RecordingPieces<'_>, OpenError> {
        match &self.kind {
            ReaderKind::Perf(perf) => {
                Ok(perf.pieces(WalkWatch::of_part(self.recording, self.length)))
            }
            ReaderKind::Dat(_) | ReaderKind::Text(_) => Err(OpenError::Unusable {
                name: self.recording.name().to_owned(),
                reason: "is no perf.data; expected one, whose records can come in pieces"
                    .to_owned(),
            }),
        }
    }

    /// Pushes what is left of a file that was cut. Parts of it that describe the rest may be gone, but were read
    /// before.
    fn pushed_to(&self, length: usize, sink: &mut dyn Sink) -> WalkOutcome {
        if let ReaderKind::Dat(dat) = &self.kind {
            let watch = WalkWatch::new(self.recording, length);
            return dat.shortened(length).walk(sink, &watch, self.threads);
        }
        let options = ReaderOptions {
            lent: self.formats(),
            threads: self.threads,
            ..ReaderOptions::default()
        };
        let shorter = self.recording.reader(options);
        shorter.map_or_else(|_| WalkOutcome::default(), |reader| reader.pushed(sink))
    }

    fn pushed(&self, sink: &mut dyn Sink) -> WalkOutcome {
        let watch = WalkWatch::new(self.recording, self.length);
        match &self.kind {
            ReaderKind::Perf(perf) => perf.walk(sink, &watch, self.threads),
            ReaderKind::Dat(dat) => dat.walk(sink, &watch, self.threads),
            ReaderKind::Text(text) => text.walk(sink, &watch),
        }
    }
}
