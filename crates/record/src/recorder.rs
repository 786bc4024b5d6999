//! Records to a file until it is asked to stop.

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rings::WrittenBytes;

use crate::RecordError;
use crate::file::{Feature, Features, PerfFile, ROUND};
use crate::live::LiveRecording;
use crate::opened::OpenedEvents;
use crate::summary::RecordSummary;

/// A recording that is being made.
#[derive(Debug)]
pub struct HostRecorder {
    live: LiveRecording,
    file: PerfFile,
}

impl HostRecorder {
    /// Begins a recording in an empty file, and lets the events be recorded. `side` are records that stand before those
    /// of the kernel: names of threads that are there already ([`crate::tasks`]).
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`], and [`RecordError::Wait`] where events cannot be enabled.
    pub fn begin(
        opened: OpenedEvents,
        file: File,
        features: Features,
        side: &[u8],
    ) -> Result<HostRecorder, RecordError> {
        let file = PerfFile::begin(file, &opened.described(), features);
        let mut file = file.map_err(RecordError::Write)?;
        file.append(&[side]).map_err(RecordError::Write)?;
        let mut live = LiveRecording::begin(opened)?;
        live.learn(side);
        Ok(HostRecorder { live, file })
    }

    /// Waits until rings have enough to be worth a write, at most for a time, and writes what they have.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`]: what was written before stays readable, and what is in the rings stays there.
    pub fn turn(&mut self, at_most: Duration) -> Result<(), RecordError> {
        self.live.wait(None, at_most)?;
        self.drain()?;
        self.count(false)
    }

    /// The same, but waits no longer when another file has something to read.
    ///
    /// # Errors
    ///
    /// As [`HostRecorder::turn`].
    pub fn turn_or(&mut self, or: BorrowedFd<'_>, at_most: Duration) -> Result<(), RecordError> {
        self.live.wait(Some(or), at_most)?;
        self.drain()?;
        self.count(false)
    }

    /// Returns how many bytes the file has at most when it ends after another turn, whatever happens until then.
    pub fn at_most(&self) -> u64 {
        // A turn takes what all rings hold, and so does the end.
        self.file.length() + 2 * self.live.at_most()
    }

    /// Writes what the rings have, all of them at once: a write costs as much as a few hundred bytes. Then what
    /// programs in the kernel have written.
    fn drain(&mut self) -> Result<(), RecordError> {
        self.live.gather();
        let written = self.live.written();
        let had: Vec<usize> = written.iter().map(WrittenBytes::len).collect();
        let bytes: u64 = had.iter().map(|bytes| *bytes as u64).sum();
        let pieces = written.iter().flat_map(|one| [one.first, one.second]);
        let pieces: Vec<&[u8]> = pieces.collect();
        let before = (self.file.written(), self.file.samples());
        let ended = self.file.append(&pieces);
        // Where it failed, what is in the file is not to come again.
        let appended = self.file.written() - before.0;
        let samples = self.file.samples() - before.1;
        self.live.take(&had, appended, samples);
        ended.map_err(RecordError::Write)?;
        let mut made = false;
        while self.live.make() {
            made = true;
            let before = (self.file.written(), self.file.samples());
            let ended = self.file.append(&[self.live.made()]);
            let samples = self.file.samples() - before.1;
            self.live.take_made(self.file.written() - before.0, samples);
            ended.map_err(RecordError::Write)?;
        }
        match bytes > 0 || made {
            true => self.file.append(&[&ROUND]).map_err(RecordError::Write),
            false => Ok(()),
        }
    }

    /// Writes what threads' counters counted, at the end or where it is time.
    fn count(&mut self, at_end: bool) -> Result<(), RecordError> {
        let records = self.live.counters(at_end)?;
        self.file.append(&[&records]).map_err(RecordError::Write)
    }

    /// Stops the events, writes what is left in the rings, and returns what was recorded; [`HostRecorder::finish`] ends
    /// the file.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`].
    pub fn stop(&mut self) -> Result<RecordSummary, RecordError> {
        self.live.stop()?;
        self.drain()?;
        self.count(true)?;
        let losses = self.live.losses()?;
        self.file.append(&[&losses]).map_err(RecordError::Write)?;
        self.live.summary()
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`]: the file is readable all the same.
    pub fn finish(mut self, said: Vec<Feature>) -> Result<(), RecordError> {
        said.into_iter().for_each(|one| self.file.set(one));
        self.file.finish().map_err(RecordError::Write)
    }
}
