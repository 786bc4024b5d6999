//! The flight recorder: the last seconds, when something has happened.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use facts::Facts;
use record::file::Features;
use record::{Flight, KeepLimit, OpenedEvents};

use crate::error::{AtPlace, RecordingError};
use crate::folder::{HOST_DATA, RecordingFolder};
use crate::news::RecordingNews;

/// How long a turn lasts where no ring fills, as part of what is kept, and at least and at most: what a path took is
/// known after two.
const TURN_PART: u32 = 10;
const SHORTEST_TURN: Duration = Duration::from_millis(50);
const LONGEST_TURN: Duration = Duration::from_millis(500);
/// What is recorded after something has happened, as part of what is kept, so that what follows is there too.
const AFTER_PART: u32 = 20;

/// What is kept, and where it is written to.
#[derive(Debug)]
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
    /// What ends it.
    pub stop: Arc<AtomicBool>,
    /// What has it write what is kept now.
    pub asked: Arc<AtomicBool>,
}

impl FlightRequest<'_> {
    /// Returns the folders that were named, each of which is made when it is written.
    pub fn folders(output: Option<&Path>, times: u32) -> impl Iterator<Item = PathBuf> {
        output
            .into_iter()
            .flat_map(move |path| (1..=times).map(move |number| numbered(path, number, times)))
    }

    /// Makes the folder of one of several recordings.
    pub(crate) fn folder(&self, number: u32) -> Result<RecordingFolder, RecordingError> {
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

/// An instance of a path that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateInstance {
    /// When it began, on the recording's clock.
    pub begin_ns: u64,
    /// How long it took.
    pub total_ns: u64,
}

/// Looks at what is recorded while it is, for instances of a path that take too long.
pub trait LateWatch {
    /// Returns the path's name.
    fn path(&self) -> &str;

    /// Looks at the next piece of the recording's data, which is of whole records, and returns the longest instance
    /// that took too long. Behind the `last` piece nothing can come any more, so all of it is looked at.
    fn look(&mut self, piece: &Arc<Vec<u8>>, last: bool) -> Option<LateInstance>;

    /// Returns how many instances have completed so far.
    fn completed(&self) -> u64;
}

/// The flight recorder at work.
pub struct FlightRecorder<'a> {
    request: FlightRequest<'a>,
    flight: Flight,
    watch: Option<Box<dyn LateWatch + 'a>>,
    begun: Instant,
    written: u32,
    bytes: u64,
}

impl std::fmt::Debug for FlightRecorder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlightRecorder")
            .field("request", &self.request)
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}

impl<'a> FlightRecorder<'a> {
    /// Begins. `watch` looks at what is recorded.
    ///
    /// # Errors
    ///
    /// Events cannot be switched on.
    pub fn begin(
        request: FlightRequest<'a>,
        opened: OpenedEvents,
        (features, side): (Features, Vec<u8>),
        watch: Option<Box<dyn LateWatch + 'a>>,
    ) -> Result<FlightRecorder<'a>, RecordingError> {
        let keep = KeepLimit {
            time: request.keep,
            bytes: usize::try_from(request.memory).unwrap_or(usize::MAX),
        };
        let begun = Instant::now();
        let flight = Flight::begin(opened, features, side, keep, Duration::ZERO)?;
        Ok(FlightRecorder {
            request,
            flight,
            watch,
            begun,
            written: 0,
            bytes: 0,
        })
    }

    /// Records until enough was written, the command ends, time is over or somebody says so.
    ///
    /// # Errors
    ///
    /// Rings cannot be read, or a recording cannot be written.
    pub fn run(
        &mut self,
        child: &mut Option<Child>,
        news: &mut dyn RecordingNews,
    ) -> Result<(), RecordingError> {
        let until = self.request.seconds.map(|time| self.begun + time);
        self.request.say_keeping(child, news)?;
        while self.request.goes_on(self.written) {
            if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            let status = child.as_mut().map(Child::try_wait).transpose()?.flatten();
            if let Some(status) = status {
                if !status.success() {
                    self.turn(false)?;
                    self.write(&format!("the command ended with {status}"), news)?;
                }
                break;
            }
            if let Some(why) = self.turn(false)? {
                self.follow_up()?;
                self.write(&why, news)?;
            } else if self.request.is_asked() {
                self.write("SIGUSR1 came", news)?;
            }
        }
        if self.written < self.request.times {
            // What completed since the last look.
            if let Some(why) = self.turn(true)? {
                self.write(&why, news)?;
            }
        }
        self.end(news)
    }

    /// Takes over what the rings have and looks at it. Returns what took too long, if something did; at the `last` look
    /// nothing waits for what may come.
    fn turn(&mut self, last: bool) -> Result<Option<String>, RecordingError> {
        let begun = self.begun;
        let turn = (self.request.keep / TURN_PART).clamp(SHORTEST_TURN, LONGEST_TURN);
        let round = self.flight.turn(turn, || begun.elapsed())?;
        let Some(watch) = &mut self.watch else {
            return Ok(None);
        };
        let longest = watch.look(&round, last);
        Ok(longest.map(|one| {
            format!(
                "path {}: an instance took {}, which began at {}",
                watch.path(),
                words::duration::human(one.total_ns),
                words::duration::seconds(one.begin_ns)
            )
        }))
    }

    /// Records what follows. Whatever is slow meanwhile is in the same recording.
    fn follow_up(&mut self) -> Result<(), RecordingError> {
        let end = Instant::now() + self.request.keep / AFTER_PART;
        while Instant::now() < end && !self.request.stop.load(Ordering::Relaxed) {
            self.turn(false)?;
        }
        Ok(())
    }

    /// Writes what is kept.
    fn write(&mut self, why: &str, news: &mut dyn RecordingNews) -> Result<(), RecordingError> {
        let kept = self.begun.elapsed().saturating_sub(self.flight.since());
        check_room(&self.request, self.bytes, why, self.flight.bytes())?;
        let folder = self.request.folder(self.written + 1)?;
        folder.facts(self.request.facts)?;
        let written = self.flight.write(folder.file(HOST_DATA)?);
        let bytes = written.at(|| folder.recording())?;
        self.bytes += bytes;
        self.written += 1;
        let shown = folder.shown();
        news.made(&format!(
            "{why}\nwrote {shown}: the last {}, {} KiB\n",
            words::duration::human(nanoseconds(kept)),
            bytes / 1024
        ))?;
        Ok(())
    }

    /// Ends, and says what there was.
    fn end(&mut self, news: &mut dyn RecordingNews) -> Result<(), RecordingError> {
        let summary = self.flight.stop()?;
        if self.written == 0 {
            news.made(NOTHING_WRITTEN)?;
        }
        if let Some(watch) = &self.watch {
            let seen = words::plural(watch.completed(), "instance");
            news.made(&format!("path {}: {seen} completed\n", watch.path()))?;
        }
        if let Some(lost @ 1..) = summary.lost() {
            news.remark(&format!(
                "{} found no room in a ring and are lost: take larger rings with --ring, or ask for less with --for",
                words::plural(lost, "event")
            ))?;
        }
        Ok(())
    }
}

/// Refuses to write a recording that is larger than what is left of the disk that all may take.
pub(crate) fn check_room(
    request: &FlightRequest<'_>,
    written: u64,
    why: &str,
    bytes: u64,
) -> Result<(), RecordingError> {
    let room = request.disk.saturating_sub(written);
    if bytes <= room {
        return Ok(());
    }
    Err(RecordingError::Refused(format!(
        "{why}; the recording has {} KiB, and --disk leaves room for {} KiB: it was not written",
        bytes.div_ceil(1024),
        room / 1024
    )))
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
