//! This machine, as a host has it recorded.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use agent::{ClockSamples, GuestRecorder, RecordedGuest, RecordingStart, Start};
use record::cost::EventCosts;
use record::file::{Feature, Features};
use record::together::JointRecording;
use record::{EventClock, Folder, HostRecorder, OpenedEvents, RecordSummary, tasks};

use crate::clocks::clock_comparisons;
use crate::machine::missing_sentences;
use crate::questions;

/// The recording in its folder.
pub const DATA: &str = "agent.perf.data";

/// What is ready to record: everything is open, and nothing of the host has been read.
#[derive(Debug)]
pub struct AskedMachine {
    /// Taken by the one recording that is made.
    pub opened: Option<OpenedEvents>,
    /// What the file says of this machine, and what stands before the records.
    pub features: Features,
    /// The records that stand before the kernel's.
    pub side: Vec<u8>,
    /// What an event costs here, where it could be measured.
    pub cost: Option<EventCosts>,
    /// Where the recording is until the host has it.
    pub folder: Folder,
    /// The clock of its events.
    pub clock: EventClock,
    /// This machine's name.
    pub name: String,
    /// The questions that it answers, as bits.
    pub questions: u8,
    /// The recording, once it was begun.
    pub recording: Option<GuestFile>,
}

/// Its recording.
#[derive(Debug)]
pub struct GuestFile {
    recorder: Option<HostRecorder>,
    file: File,
    size: u64,
    together: JointRecording,
    summary: Option<RecordSummary>,
}

impl AskedMachine {
    /// Returns whether its one recording was begun.
    pub fn is_used(&self) -> bool {
        self.opened.is_none()
    }

    /// Begins its recording. Returns its number, and what is not recorded, a line for each reason.
    fn begin(&mut self, start: &Start) -> Result<(u64, String), String> {
        let mut opened = self
            .opened
            .take()
            .ok_or("it has made its recording already")?;
        let answered = start.questions & self.questions;
        opened.only(&questions::events(answered));
        if opened.tracepoints().is_empty() {
            return Err("none of what is asked for is recorded there: see its --for".to_owned());
        }
        let unanswered = questions::unanswered(start.questions, self.questions);
        let missing = missing_sentences(opened.missing())
            .into_iter()
            .chain(unanswered);
        let missing = missing.collect::<Vec<_>>().join("\n");
        let together = JointRecording {
            own: agent::number().map_err(|error| error.to_string())?,
            host: Some(start.host),
            ..JointRecording::default()
        };
        let mut features = self.features.clone();
        features.set(together.said());
        // What a host never fetched.
        let _ = self.folder.remove(DATA);
        let failed = |error: &dyn std::fmt::Display| {
            format!(
                "{}/{DATA}: cannot be written: {error}",
                self.folder.path().display()
            )
        };
        let file = self.folder.file(DATA).map_err(|error| failed(&error))?;
        let kept = file.try_clone().map_err(|error| failed(&error))?;
        // Names of now: the agent may have waited for days.
        opened.record_names().map_err(|error| failed(&error))?;
        let side = [self.side.clone(), tasks::names()].concat();
        let recorder = HostRecorder::begin(opened, file, features, &side);
        let recorder = recorder.map_err(|error| failed(&error))?;
        let needed = recorder.at_most();
        if needed > start.size {
            let _ = self.folder.remove(DATA);
            return Err(questions::too_small(start.size, needed));
        }
        let own = together.own;
        self.recording = Some(GuestFile {
            recorder: Some(recorder),
            file: kept,
            size: start.size,
            together,
            summary: None,
        });
        Ok((own, missing))
    }

    fn recorder(&mut self) -> Result<(&mut HostRecorder, u64), String> {
        let recording = self.recording.as_mut().ok_or("nothing is recorded")?;
        let size = recording.size;
        let recorder = recording.recorder.as_mut();
        Ok((recorder.ok_or("the recording has ended")?, size))
    }
}

impl GuestRecorder for AskedMachine {
    fn start(&mut self, start: &Start) -> Result<RecordingStart, String> {
        let (own, missing) = self.begin(start)?;
        Ok(RecordingStart {
            own,
            time: start.time,
            size: start.size,
            name: self.name.clone(),
            missing,
        })
    }

    fn turn(&mut self, peer: BorrowedFd<'_>, at_most: Duration) -> Result<bool, String> {
        let (recorder, size) = self.recorder()?;
        let turned = recorder.turn_or(peer, at_most);
        turned.map_err(|error| error.to_string())?;
        Ok(recorder.at_most() <= size)
    }

    fn now_ns(&mut self) -> Option<u64> {
        self.clock.now_ns()
    }

    fn stop(&mut self) -> Result<(), String> {
        let (recorder, _) = self.recorder()?;
        let stopped = recorder.stop().map_err(|error| error.to_string());
        if let Some(recording) = &mut self.recording {
            recording.summary = stopped.as_ref().ok().cloned();
        }
        stopped.map(drop)
    }

    fn finish(&mut self, clocks: &ClockSamples) -> Result<RecordedGuest, String> {
        let recording = self.recording.as_mut().ok_or("nothing is recorded")?;
        let recorder = recording.recorder.take();
        let recorder = recorder.ok_or("the recording has ended already")?;
        recording.together.offset_ns = clocks.offset_ns();
        recording.together.clocks = clock_comparisons(clocks);
        // One that could not be written to its end is not ended in order, so that readers say that some is missing.
        if let Some(summary) = &recording.summary {
            let cost = self.cost.map(|cost| cost.at_end(summary).said());
            let said = cost.map(Feature::Trapline).into_iter();
            let said = said.chain([recording.together.said()]).collect();
            let finished = recorder.finish(said);
            finished.map_err(|error| error.to_string())?;
        }
        let length = recording
            .file
            .metadata()
            .map_err(|error| error.to_string())?;
        let summary = recording.summary.as_ref();
        Ok(RecordedGuest {
            // Of a file that is not ended in order, what lies ahead is empty.
            length: length.len().min(recording.size),
            events: summary.map_or(0, |summary| summary.samples),
            lost: summary.and_then(RecordSummary::lost),
        })
    }

    fn read(&mut self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        match &self.recording {
            Some(recording) => recording.file.read_at(room, at),
            None => Ok(0),
        }
    }

    fn fetched(&mut self) {
        // One that cannot be removed goes when the next one begins.
        let _ = self.folder.remove(DATA);
    }
}
