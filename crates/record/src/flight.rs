//! The flight recorder: keeps the last seconds in memory, and writes them when something has happened.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use crate::RecordError;
use crate::file::{Features, FileEvent, PerfFile, ROUND, in_memory};
use crate::live::LiveRecording;
use crate::opened::OpenedEvents;
use crate::summary::RecordSummary;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepLimit {
    /// What is older goes.
    pub time: Duration,
    /// Bytes of records at most: where there are more in that time, less of it is kept.
    pub bytes: usize,
}

/// What one look at the rings found.
#[derive(Debug)]
struct RingsRound {
    /// When that was, on the caller's clock.
    at: Duration,
    /// Shared with who looks at them.
    records: Arc<Vec<u8>>,
}

/// A recording of which only the last seconds are kept.
#[derive(Debug)]
pub struct Flight {
    live: LiveRecording,
    events: Vec<FileEvent>,
    features: Features,
    side: Vec<u8>,
    keep: KeepLimit,
    rounds: VecDeque<RingsRound>,
    /// What a look brings that finds nothing: the end of a round.
    nothing: Arc<Vec<u8>>,
    bytes: usize,
    /// Since when nothing was let go.
    since: Duration,
}

impl Flight {
    /// Begins. `side` are records that stand before those of the kernel ([`crate::tasks`]); `now` is the caller's
    /// clock, which may begin anywhere.
    ///
    /// # Errors
    ///
    /// [`RecordError::Wait`] where events cannot be enabled.
    pub fn begin(
        opened: OpenedEvents,
        features: Features,
        side: Vec<u8>,
        keep: KeepLimit,
        now: Duration,
    ) -> Result<Flight, RecordError> {
        let events = opened.described();
        let mut live = LiveRecording::begin(opened)?;
        live.learn(&side);
        Ok(Flight {
            live,
            events,
            features,
            side,
            keep,
            rounds: VecDeque::new(),
            nothing: Arc::new(ROUND.to_vec()),
            bytes: 0,
            since: now,
        })
    }

    /// Returns what stands before the records of such a recording, as one of its own without any: `said` is what it
    /// says of the machine. Who looks at each round ([`Flight::turn`]) reads it first.
    pub fn head(opened: &OpenedEvents, said: &Features, side: &[u8]) -> Vec<u8> {
        // A file that says that it has no data is taken for that of a recorder that was killed.
        in_memory(&opened.described(), said, &[side, &ROUND])
    }

    /// Waits at most for a time, and takes over what the rings have. Returns that: whole records, and the end of the
    /// round, which stands alone where there was nothing. All rounds that were returned are, one behind the other, a
    /// recording's data.
    ///
    /// # Errors
    ///
    /// [`RecordError::Wait`].
    pub fn turn(
        &mut self,
        at_most: Duration,
        now: impl FnOnce() -> Duration,
    ) -> Result<Arc<Vec<u8>>, RecordError> {
        self.live.wait(None, at_most)?;
        // The memory of a round that went is used again.
        let mut records = self.forget();
        self.live.drain(&mut records);
        if records.is_empty() {
            return Ok(Arc::clone(&self.nothing));
        }
        records.extend(ROUND);
        self.bytes += records.len();
        let records = Arc::new(records);
        self.rounds.push_back(RingsRound {
            at: now(),
            records: Arc::clone(&records),
        });
        Ok(records)
    }

    /// Lets go what is too old or too much, and returns the memory of one round of it.
    fn forget(&mut self) -> Vec<u8> {
        let mut spare = Vec::new();
        let newest = self.rounds.back().map_or(self.since, |round| round.at);
        let old = newest.saturating_sub(self.keep.time);
        // A round holds what came since the one before, so it is too old when the next one is.
        while self.bytes > self.keep.bytes && self.rounds.len() > 1
            || self.rounds.get(1).is_some_and(|next| next.at < old)
        {
            let Some(round) = self.rounds.pop_front() else {
                break;
            };
            self.since = round.at;
            self.bytes -= round.records.len();
            // Who looks at rounds may still hold it.
            spare = Arc::try_unwrap(round.records).unwrap_or_default();
        }
        spare.clear();
        spare
    }

    /// Returns how many bytes of records are kept.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Returns since when, on the caller's clock, everything is kept.
    pub fn since(&self) -> Duration {
        self.since
    }

    /// Writes all that is kept to an empty file, and begins to keep anew.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`].
    pub fn write(&mut self, file: File) -> Result<u64, RecordError> {
        let written = self.write_to(file);
        if written.is_ok() {
            self.since = self.rounds.back().map_or(self.since, |round| round.at);
            self.rounds.clear();
            self.bytes = 0;
        }
        written.map_err(RecordError::Write)
    }

    fn write_to(&self, file: File) -> std::io::Result<u64> {
        let mut file = PerfFile::begin(file, &self.events, self.features.clone())?;
        file.append(&[&self.side])?;
        for round in &self.rounds {
            file.append(&[&round.records])?;
        }
        let bytes = file.written();
        file.finish()?;
        Ok(bytes)
    }

    /// Returns what there was so far.
    ///
    /// # Errors
    ///
    /// [`RecordError::Wait`].
    pub fn so_far(&self) -> Result<RecordSummary, RecordError> {
        self.live.summary()
    }

    /// Stops the events, and returns what there was in all.
    ///
    /// # Errors
    ///
    /// [`RecordError::Wait`].
    pub fn stop(&mut self) -> Result<RecordSummary, RecordError> {
        self.live.stop()?;
        self.live.drain(&mut Vec::new());
        self.live.summary()
    }
}
