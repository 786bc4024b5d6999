//! The flight recorder of a watch: it is left armed, somebody else decides when what it keeps is written, and where to.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use facts::Facts;
use record::file::Features;
use record::{EventClock, Flight, KeepLimit, OpenedEvents, Overwriting, RecordSummary, ShortRing};

use crate::error::{AtPlace, RecordingError};
use crate::flight::{LateInstance, LateWatch};
use crate::folder::{HOST_DATA, HOST_FACTS, RecordingFolder};
use crate::kept::{KeptTime, nanoseconds};
use crate::overwriting::short_rings_text;

/// Who keeps the last seconds.
#[derive(Debug)]
enum ArmedRings {
    /// The kernel: nobody looks at events before something has happened.
    Kernel(Overwriting),
    /// This process, which looks at all of them for paths.
    Process(Flight),
}

/// A flight recorder that is armed until it ends, however often it writes.
pub struct ArmedRecorder<'a> {
    rings: ArmedRings,
    watches: Vec<Box<dyn LateWatch + 'a>>,
    clock: Option<EventClock>,
    begun: Instant,
    /// Events that were lost until the last recording.
    lost: u64,
}

impl std::fmt::Debug for ArmedRecorder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArmedRecorder")
            .field("rings", &self.rings)
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}

/// A recording that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArmedOutcome {
    /// Of how much time it is.
    pub time: Duration,
    /// Bytes of its events.
    pub bytes: u64,
    /// Events that found no room in a ring since the last recording, or the beginning. Of rings that go over what is
    /// old: those that came while a recording was written.
    pub lost: u64,
    /// What is to be said of rings that held less than was to be kept: whole lines, or nothing.
    pub short: String,
}

/// Where a recording goes to, and what stands beside it.
pub struct ArmedTarget<'t> {
    /// The folder, which is made.
    pub folder: &'t Path,
    /// Bytes of events that there is room for.
    pub room: u64,
    /// The host's settings.
    pub facts: Facts,
    /// Adds to them what is known of the time that is kept.
    pub count_kept: &'t dyn Fn(&mut Facts, &KeptTime),
}

impl std::fmt::Debug for ArmedTarget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArmedTarget")
            .field("folder", &self.folder)
            .field("room", &self.room)
            .finish_non_exhaustive()
    }
}

impl<'a> ArmedRecorder<'a> {
    /// Begins to keep so much. Without `watches` the kernel keeps events, for which `opened` has to be rings that it
    /// goes over ([`record::RecordPlan::flight`]); with them this process does. `clock` says what time it is in the
    /// kernel's log.
    ///
    /// # Errors
    ///
    /// Events cannot be switched on.
    pub fn begin(
        keep: KeepLimit,
        opened: OpenedEvents,
        (features, side): (Features, Vec<u8>),
        watches: Vec<Box<dyn LateWatch + 'a>>,
        clock: Option<EventClock>,
    ) -> Result<ArmedRecorder<'a>, RecordingError> {
        let now = Duration::ZERO;
        let mut begun = Instant::now();
        let rings = match watches.is_empty() {
            true => {
                let rings = Overwriting::begin(opened, features, side, keep.time, now)?;
                // Only now all events are on.
                begun = Instant::now();
                ArmedRings::Kernel(rings)
            }
            false => ArmedRings::Process(Flight::begin(opened, features, side, keep, now)?),
        };
        Ok(ArmedRecorder {
            rings,
            watches,
            clock,
            begun,
            lost: 0,
        })
    }

    /// Waits at most for a time. Returns the paths that had an instance which took too long, each with the longest.
    ///
    /// # Errors
    ///
    /// Rings cannot be read.
    pub fn turn(
        &mut self,
        at_most: Duration,
    ) -> Result<Vec<(String, LateInstance)>, RecordingError> {
        let round = match &mut self.rings {
            ArmedRings::Kernel(_) => {
                thread::sleep(at_most);
                return Ok(Vec::new());
            }
            ArmedRings::Process(flight) => {
                let begun = self.begun;
                flight.turn(at_most, || begun.elapsed())?
            }
        };
        Ok(self.late(&round))
    }

    fn late(&mut self, round: &Arc<Vec<u8>>) -> Vec<(String, LateInstance)> {
        let watches = self.watches.iter_mut();
        let late = watches.filter_map(|watch| {
            let longest = watch.look(round, false)?;
            Some((watch.path().to_owned(), longest))
        });
        late.collect()
    }

    /// Writes what is kept into a new folder, with the host's settings beside it, and goes on keeping. Where it cannot
    /// be written whole nothing of it stays.
    ///
    /// # Errors
    ///
    /// There is no room, the folder cannot be made or written to, or rings cannot be read. Whatever it is, the recorder
    /// stays armed.
    pub fn write(&mut self, target: ArmedTarget<'_>) -> Result<ArmedOutcome, RecordingError> {
        let folder = RecordingFolder::make(Some(target.folder))?;
        match self.write_to(&folder, target) {
            Ok(outcome) => Ok(outcome),
            Err(error) => {
                folder.discard();
                Err(error)
            }
        }
    }

    fn write_to(
        &mut self,
        folder: &RecordingFolder,
        target: ArmedTarget<'_>,
    ) -> Result<ArmedOutcome, RecordingError> {
        let begun = self.begun;
        let file = folder.data()?;
        let place = || folder.recording();
        let (time, kept, bytes, short) = match &mut self.rings {
            ArmedRings::Kernel(rings) => {
                let held = rings.hold(|| begun.elapsed())?;
                let until_ns = held.until_ns();
                let short: Vec<ShortRing> = held.short().to_vec();
                let time = held.time();
                let kept = KeptTime::of_rings(&held, self.clock.as_mut());
                enough(held.bytes(), target.room)?;
                let bytes = held.write(file).at(place)?;
                let short = short_rings_text(&short, until_ns, "--memory");
                (time, kept, bytes, short)
            }
            ArmedRings::Process(flight) => {
                let since = flight.since();
                let time = begun.elapsed().saturating_sub(since);
                let now_ns = self.clock.as_mut().and_then(EventClock::now_ns);
                let kept = KeptTime {
                    during_ns: now_ns.map(|now| now.saturating_sub(nanoseconds(time))..=now),
                    from_begin: since.is_zero(),
                };
                enough(flight.bytes(), target.room)?;
                (time, kept, flight.write(file).at(place)?, String::new())
            }
        };
        folder.begun()?;
        // Only now: rings that were paused for the data are written to again.
        let mut facts = target.facts;
        (target.count_kept)(&mut facts, &kept);
        folder.facts(&facts)?;
        let lost = self.so_far()?.lost().unwrap_or(0);
        let before = std::mem::replace(&mut self.lost, lost);
        Ok(ArmedOutcome {
            time,
            bytes,
            lost: lost.saturating_sub(before),
            short,
        })
    }

    /// Returns what there was so far.
    fn so_far(&self) -> Result<RecordSummary, RecordingError> {
        Ok(match &self.rings {
            ArmedRings::Kernel(rings) => rings.so_far()?,
            ArmedRings::Process(flight) => flight.so_far()?,
        })
    }

    /// Returns how many instances of each path have completed.
    pub fn completed(&self) -> Vec<(&str, u64)> {
        let watches = self.watches.iter();
        watches.map(|one| (one.path(), one.completed())).collect()
    }

    /// Stops the events, and returns what there was in all.
    ///
    /// # Errors
    ///
    /// Events cannot be switched off.
    pub fn end(&mut self) -> Result<RecordSummary, RecordingError> {
        Ok(match &mut self.rings {
            ArmedRings::Kernel(rings) => rings.stop()?,
            ArmedRings::Process(flight) => flight.stop()?,
        })
    }
}

/// The files of a recording's folder that a recorder makes.
pub const RECORDED_FILES: [&str; 2] = [HOST_DATA, HOST_FACTS];

fn enough(bytes: u64, room: u64) -> Result<(), RecordingError> {
    match bytes <= room {
        true => Ok(()),
        false => Err(RecordingError::Refused(format!(
            "the recording has {} KiB, and there is room for {} KiB: it was not written",
            bytes.div_ceil(1024),
            room / 1024
        ))),
    }
}
