//! What flight recorders have in common: what is kept, and the recordings that were written of it.

use std::fs::File;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use facts::Facts;
use record::{ClockSource, EventClock, HeldRings, RecordError};

use crate::error::{AtPlace, RecordingError};
use crate::folder::RecordingFolder;
use crate::news::RecordingNews;

/// Which time a recording of what was kept is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptTime {
    /// From when to when, ns on the clock of the kernel's log; `None` where the kernel does not say what time it is on
    /// it.
    pub during_ns: Option<RangeInclusive<u64>>,
    /// Whether it begins when the recorder did: nothing was let go before.
    pub from_begin: bool,
}

impl KeptTime {
    /// Returns that of rings that are held now. `clock` says what time it is in the kernel's log.
    pub(crate) fn of_rings(held: &HeldRings<'_>, clock: Option<&mut EventClock>) -> KeptTime {
        let during_ns = match held.clock() {
            ClockSource::Local => Some(held.since_ns()..=held.until_ns()),
            ClockSource::Monotonic => {
                let now_ns = clock.and_then(EventClock::now_ns);
                now_ns.map(|now| now.saturating_sub(nanoseconds(held.time()))..=now)
            }
        };
        KeptTime {
            during_ns,
            from_begin: held.is_from_begin(),
        }
    }
}

/// What is kept, and where it is written to.
pub struct FlightRequest<'a> {
    /// How much time is kept.
    pub keep: Duration,
    /// The memory that it may take, bytes.
    pub memory: u64,
    /// What all recordings may take on the disk, bytes.
    pub disk: u64,
    /// How many recordings are written at most.
    pub times: u32,
    /// When it ends.
    pub seconds: Option<Duration>,
    /// The folder, or the beginning of the names of several.
    pub output: Option<&'a Path>,
    /// Which option gives rings more room.
    pub more: &'static str,
    /// The host's settings, which stand beside each recording.
    pub facts: &'a Facts,
    /// Adds to them what is known of the time that is kept, when it is written.
    pub count_kept: &'a dyn Fn(&mut Facts, &KeptTime),
    /// What ends it.
    pub stop: Arc<AtomicBool>,
    /// What has it write what is kept now.
    pub asked: Arc<AtomicBool>,
}

impl std::fmt::Debug for FlightRequest<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = out.debug_struct("FlightRequest");
        out.field("keep", &self.keep)
            .field("times", &self.times)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

impl FlightRequest<'_> {
    /// Returns the folders that were named, each of which is made when it is written.
    pub fn folders(output: Option<&Path>, times: u32) -> impl Iterator<Item = PathBuf> {
        output
            .into_iter()
            .flat_map(move |path| (1..=times).map(move |number| numbered(path, number, times)))
    }

    /// Makes the folder of one of several recordings.
    fn folder(&self, number: u32) -> Result<RecordingFolder, RecordingError> {
        let output = self.output;
        let output = output.map(|path| numbered(path, number, self.times));
        RecordingFolder::make(output.as_deref())
    }

    /// Returns whether it is to go on after so many recordings.
    pub(crate) fn goes_on(&self, written: u32) -> bool {
        !self.stop.load(Ordering::Relaxed) && written < self.times
    }

    /// Returns whether somebody asks for what is kept now.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.swap(false, Ordering::Relaxed)
    }

    /// Says that the recorder waits, where nothing else ends it.
    pub(crate) fn say_keeping(
        &self,
        child: &Option<Child>,
        news: &mut dyn RecordingNews,
    ) -> Result<(), RecordingError> {
        if child.is_none() && self.seconds.is_none() {
            let keep = words::duration::human(nanoseconds(self.keep));
            news.remark(&format!("keeping the last {keep}; Ctrl-C ends it"))?;
        }
        Ok(())
    }
}

/// A recording that is to be written now.
#[derive(Debug)]
pub(crate) struct DueRecording<'a> {
    /// Why.
    pub(crate) why: &'a str,
    /// Of how much time it is, and of which.
    pub(crate) time: Duration,
    pub(crate) kept: KeptTime,
    /// Its bytes of records.
    pub(crate) size: u64,
}

/// The recordings that were written so far.
#[derive(Debug, Default)]
pub(crate) struct WrittenRecordings {
    count: u32,
    bytes: u64,
}

impl WrittenRecordings {
    /// Returns how many they are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Has the next one written, with the host's settings beside it. Returns what is to be said: why it is written,
    /// where it is, of how much time, and its size.
    pub(crate) fn write(
        &mut self,
        request: &FlightRequest<'_>,
        due: &DueRecording<'_>,
        write: impl FnOnce(File) -> Result<u64, RecordError>,
    ) -> Result<String, RecordingError> {
        let DueRecording {
            why, time, size, ..
        } = due;
        let room = request.disk.saturating_sub(self.bytes);
        if *size > room {
            return Err(RecordingError::Refused(format!(
                "{why}; the recording has {} KiB, and --disk leaves room for {} KiB: it was not written",
                size.div_ceil(1024),
                room / 1024
            )));
        }
        let folder = request.folder(self.count + 1)?;
        let bytes = write(folder.data()?).at(|| folder.recording())?;
        folder.begun()?;
        // Only now: rings that were paused for the data are written to again.
        let mut facts = request.facts.clone();
        (request.count_kept)(&mut facts, &due.kept);
        folder.facts(&facts)?;
        self.bytes += bytes;
        self.count += 1;
        Ok(format!(
            "{why}\nwrote {}: the last {}, {} KiB\n",
            folder.shown(),
            words::duration::human(nanoseconds(*time)),
            bytes / 1024
        ))
    }
}

/// Returns how the command ended, if it did.
pub(crate) fn command_status(
    child: &mut Option<Child>,
) -> Result<Option<ExitStatus>, RecordingError> {
    Ok(child.as_mut().map(Child::try_wait).transpose()?.flatten())
}

/// What is said where nothing triggered.
pub(crate) const NOTHING_WRITTEN: &str =
    "Nothing happened that was waited for: nothing was written.\n";

/// Returns a time as nanoseconds.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn numbered(path: &Path, number: u32, of: u32) -> PathBuf {
    if of == 1 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!("-{number}"));
    PathBuf::from(name)
}
