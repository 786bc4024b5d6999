//! The flight recorder: the last seconds, when something has happened.

use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use record::file::Features;
use record::{EventClock, Flight, KeepLimit, OpenedEvents};

use crate::error::RecordingError;
use crate::kept::{
    DueRecording, FlightRequest, KeptTime, NOTHING_WRITTEN, WrittenRecordings, command_status,
    nanoseconds,
};
use crate::news::RecordingNews;

/// How long a turn lasts where no ring fills, as part of what is kept, and at least and at most: what a path took is
/// known after two.
const TURN_PART: u32 = 10;
const SHORTEST_TURN: Duration = Duration::from_millis(50);
const LONGEST_TURN: Duration = Duration::from_millis(500);
/// What is recorded after something has happened, as part of what is kept, so that what follows is there too.
const AFTER_PART: u32 = 20;

/// An instance of a path that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateInstance {
    /// When it began, on the recording's clock.
    pub begin_ns: u64,
    /// How long it took.
    pub total_ns: u64,
}

impl LateInstance {
    /// Says of a path's instance how long it took.
    pub fn sentence(&self, path: &str) -> String {
        format!(
            "path {path}: an instance took {}, which began at {}",
            words::duration::human(self.total_ns),
            words::duration::seconds(self.begin_ns)
        )
    }
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
    watches: Vec<Box<dyn LateWatch + 'a>>,
    clock: Option<EventClock>,
    begun: Instant,
    written: WrittenRecordings,
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
    /// Begins. `watches` look at what is recorded; `clock` says what time it is in the kernel's log, where this thread
    /// could open it.
    ///
    /// # Errors
    ///
    /// Events cannot be switched on.
    pub fn begin(
        request: FlightRequest<'a>,
        opened: OpenedEvents,
        (features, side): (Features, Vec<u8>),
        watches: Vec<Box<dyn LateWatch + 'a>>,
        clock: Option<EventClock>,
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
            watches,
            clock,
            begun,
            written: WrittenRecordings::default(),
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
        while self.request.goes_on(self.written.count()) {
            if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            let status = command_status(child)?;
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
        if self.written.count() < self.request.times {
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
        let watches = self.watches.iter_mut();
        let late: Vec<String> = watches
            .filter_map(|watch| Some(watch.look(&round, last)?.sentence(watch.path())))
            .collect();
        Ok((!late.is_empty()).then(|| late.join("; ")))
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
        let since = self.flight.since();
        let now_ns = self.clock.as_mut().and_then(EventClock::now_ns);
        let time = self.begun.elapsed().saturating_sub(since);
        let due = DueRecording {
            why,
            time,
            kept: KeptTime {
                during_ns: now_ns.map(|now| now.saturating_sub(nanoseconds(time))..=now),
                from_begin: since.is_zero(),
            },
            size: self.flight.bytes(),
        };
        let flight = &mut self.flight;
        let write = |file| flight.write(file);
        Ok(news.made(&self.written.write(&self.request, &due, write)?)?)
    }

    /// Ends, and says what there was.
    fn end(&mut self, news: &mut dyn RecordingNews) -> Result<(), RecordingError> {
        let summary = self.flight.stop()?;
        if self.written.count() == 0 {
            news.made(NOTHING_WRITTEN)?;
        }
        for watch in &self.watches {
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
