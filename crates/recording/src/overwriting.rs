//! The flight recorder where only a signal or the command's end triggers: nobody looks at events meanwhile, so the
//! kernel keeps them, and the recorder sleeps.

use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};

use record::file::Features;
use record::{EventClock, OpenedEvents, Overwriting, ShortRing};

use crate::error::RecordingError;
use crate::kept::{
    DueRecording, FlightRequest, KeptTime, NOTHING_WRITTEN, WrittenRecordings, command_status,
};
use crate::news::RecordingNews;

/// How long the recorder sleeps where nothing wakes it.
const SLEEP: Duration = Duration::from_secs(3600);

/// The flight recorder that sleeps.
#[derive(Debug)]
pub struct OverwritingRecorder<'a> {
    request: FlightRequest<'a>,
    flight: Overwriting,
    begun: Instant,
    clock: Option<EventClock>,
    /// Has something to read when a signal came.
    woken: UnixStream,
    written: WrittenRecordings,
}

impl<'a> OverwritingRecorder<'a> {
    /// Begins. `woken` has something to read when something may have changed: a signal came, or the command ended.
    /// `clock` says what time it is in the kernel's log, where this thread could open it.
    ///
    /// # Errors
    ///
    /// Events cannot be switched on.
    pub fn begin(
        request: FlightRequest<'a>,
        opened: OpenedEvents,
        (features, side): (Features, Vec<u8>),
        (woken, clock): (UnixStream, Option<EventClock>),
    ) -> Result<OverwritingRecorder<'a>, RecordingError> {
        let keep = request.keep;
        let flight = Overwriting::begin(opened, features, side, keep, Duration::ZERO)?;
        // Only now all events are on.
        let begun = Instant::now();
        Ok(OverwritingRecorder {
            request,
            flight,
            begun,
            clock,
            woken,
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
            let status = command_status(child)?;
            if let Some(status) = status {
                if !status.success() {
                    self.write(&format!("the command ended with {status}"), news)?;
                }
                break;
            }
            if self.request.is_asked() {
                self.write("SIGUSR1 came", news)?;
                continue;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            self.sleep(left.unwrap_or(SLEEP))?;
        }
        self.end(news)
    }

    /// Sleeps until a signal comes, at most for a time.
    fn sleep(&mut self, at_most: Duration) -> Result<(), RecordingError> {
        // No time at all would be no limit.
        let at_most = at_most.max(Duration::from_millis(1));
        self.woken.set_read_timeout(Some(at_most))?;
        match self.woken.read(&mut [0; 64]) {
            Err(error)
                if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Err(error.into())
            }
            _ => Ok(()),
        }
    }

    /// Writes what is kept.
    fn write(&mut self, why: &str, news: &mut dyn RecordingNews) -> Result<(), RecordingError> {
        let begun = self.begun;
        let held = self.flight.hold(|| begun.elapsed())?;
        let until_ns = held.until_ns();
        let short = held.short().to_vec();
        let due = DueRecording {
            why,
            time: held.time(),
            kept: KeptTime::of_rings(&held, self.clock.as_mut()),
            size: held.bytes(),
        };
        let write = |file| held.write(file);
        let mut text = self.written.write(&self.request, &due, write)?;
        text.push_str(&short_rings_text(&short, until_ns, self.request.more));
        Ok(news.made(&text)?)
    }

    /// Ends, and says what there was.
    fn end(&mut self, news: &mut dyn RecordingNews) -> Result<(), RecordingError> {
        let summary = self.flight.stop()?;
        if self.written.count() == 0 {
            news.made(NOTHING_WRITTEN)?;
        }
        // Nothing else is lost in rings that go over what is old.
        if let Some(lost @ 1..) = summary.lost().filter(|_| self.written.count() > 1) {
            news.remark(&format!(
                "{} came while a recording was written, and are in none",
                words::plural(lost, "event")
            ))?;
        }
        Ok(())
    }
}

/// Says which CPUs' rings held less than was to be kept.
pub(crate) fn short_rings_text(short: &[ShortRing], until_ns: u64, more: &str) -> String {
    let mut text = String::new();
    for one in short {
        let held = until_ns.saturating_sub(one.since_ns);
        text.push_str(&format!(
            "  CPU {}: its ring of {} KiB holds the last {} only, since {}\n",
            one.cpu,
            one.ring_bytes / 1024,
            words::duration::human(held),
            words::duration::seconds(one.since_ns)
        ));
    }
    if !short.is_empty() {
        text.push_str(&format!(
            "  Nothing before that was kept of any CPU: give more {more}, or ask for less with --for.\n"
        ));
    }
    text
}
