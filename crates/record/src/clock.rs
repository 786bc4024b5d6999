//! What time it is on the clock of the events.
//!
//! perf's clock (`local_clock` in `kernel/sched/clock.c`) can be asked for by no system call. But the kernel writes the
//! time of whatever it records, so a thread gives itself the name that it has, with an event that records that, and
//! reads when. Where programs in the kernel write records, all events have CLOCK_MONOTONIC, which is asked for the same
//! way.

use rings::record_type::COMM;
use rings::{EventSource, Ring, RingAttr, RingEvent, TIME_FROM_END, sample};
use rustix::thread::{name, set_name};

use crate::{RecordError, reasons};

/// Pages of the ring: a name is 64 bytes.
const PAGES: usize = 1;

/// Which clock events have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClockSource {
    /// `local_clock`: perf's own, and that of the kernel's log.
    #[default]
    Local,
    /// CLOCK_MONOTONIC.
    Monotonic,
}

/// The clock of the events, for the thread that opened it.
#[derive(Debug)]
pub struct EventClock {
    ring: Ring,
}

impl EventClock {
    /// Opens the clock for the calling thread, which is to be the one that asks. Asking takes no permission that
    /// opening did not.
    ///
    /// # Errors
    ///
    /// [`RecordError::NoClock`] where this user may not record.
    pub fn open(source: ClockSource) -> Result<EventClock, RecordError> {
        let attr = RingAttr {
            monotonic: source == ClockSource::Monotonic,
            sample: sample::IDENTIFIER | sample::TID | sample::TIME | sample::CPU,
            tasks: true,
            ..RingAttr::each(EventSource::Nothing)
        };
        let refused = |error| RecordError::NoClock {
            why: reasons::not_opened(&error),
        };
        let event = RingEvent::open_own(&attr).map_err(refused)?;
        let ring = Ring::of(event, PAGES, false).map_err(|error| RecordError::NoClock {
            why: reasons::no_ring(&error),
        })?;
        ring.event().enable(true).map_err(refused)?;
        Ok(EventClock { ring })
    }

    /// Returns what time it is, ns; `None` where the kernel did not record it, as for another thread than the one that
    /// opened the clock.
    pub fn now_ns(&mut self) -> Option<u64> {
        // What the thread mapped meanwhile is in the way.
        self.empty();
        set_name(&name().ok()?).ok()?;
        let records = self.ring.written().records();
        let time = records
            .filter(|record| record.kind() == COMM)
            .filter_map(|record| record.word(record.len().checked_sub(TIME_FROM_END)?))
            .last();
        self.empty();
        time
    }

    /// Returns the time of day and the time on this clock, both in nanoseconds, as of one moment; `None` where one of
    /// them cannot be read.
    pub fn with_wall_clock(&mut self) -> Option<(u64, u64)> {
        // The first one pays for what is not in the caches yet.
        self.now_ns()?;
        let wall = || {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
            let seconds = u64::try_from(now.tv_sec).ok()?;
            let below = u64::try_from(now.tv_nsec).ok()?;
            seconds.checked_mul(1_000_000_000)?.checked_add(below)
        };
        let (before, event_ns, after) = (wall()?, self.now_ns()?, wall()?);
        Some((before.midpoint(after), event_ns))
    }

    fn empty(&mut self) {
        let waiting = self.ring.waiting();
        self.ring.take(waiting);
    }
}
