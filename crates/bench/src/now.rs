//! Clocks.

use results::ClockReadings;
use rings::{EventSource, Ring, RingAttr, RingEvent, format, sample};
use rustix::thread::{name, set_name};
use rustix::time::{ClockId, clock_gettime};

use crate::call;

/// Returns what a clock reads, ns.
pub(crate) fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let rest = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// Returns what `CLOCK_MONOTONIC` reads, ns.
#[inline]
pub(crate) fn now() -> u64 {
    read(ClockId::Monotonic)
}

/// Times that all clocks are read, of which the one counts that took least.
const TRIES: usize = 20;

/// Reads all clocks together.
pub(crate) fn clocks() -> ClockReadings {
    let tries = (0..TRIES).map(|_| {
        let before = now();
        let realtime_ns = read(ClockId::Realtime);
        let monotonic_raw_ns = read(ClockId::MonotonicRaw);
        let counter = call::counter();
        let monotonic_ns = now();
        let boottime_ns = read(ClockId::Boottime);
        ClockReadings {
            realtime_ns,
            monotonic_ns,
            monotonic_raw_ns,
            boottime_ns,
            counter,
            recording_ns: None,
            within_ns: now().saturating_sub(before),
        }
    });
    let best = tries.min_by_key(|clocks| clocks.within_ns);
    let best = best.unwrap_or_default();
    // The clock of recordings goes at the pace of the others within a nanosecond for so short a time.
    let recording_ns = recording().map(|(recording, at)| {
        let since = i128::from(best.monotonic_ns) - i128::from(at);
        let moved = i128::from(recording) + since;
        u64::try_from(moved).unwrap_or(0)
    });
    ClockReadings {
        recording_ns,
        ..best
    }
}

/// Returns what time it is on the clock of recordings, and when that was on `CLOCK_MONOTONIC`: the kernel records when
/// a thread gives itself a name. `None` where it may not be asked.
fn recording() -> Option<(u64, u64)> {
    // Only the time stands behind a record then.
    let attr = RingAttr {
        sample: sample::TIME,
        read: format::ID,
        tasks: true,
        ..RingAttr::each(EventSource::Nothing)
    };
    let event = RingEvent::open_own(&attr).ok()?;
    let mut ring = Ring::of(event, 1, false).ok()?;
    ring.event().enable(true).ok()?;
    let own = name().ok()?;
    let mut best: Option<(u64, u64, u64)> = None;
    for _ in 0..TRIES {
        let before = now();
        set_name(&own).ok()?;
        let after = now();
        let written = ring.written();
        let bytes = [written.first, written.second].concat();
        let time = bytes.last_chunk::<8>().copied().map(u64::from_ne_bytes);
        let all = ring.waiting();
        ring.take(all);
        let took = after.saturating_sub(before);
        if let Some(time) = time
            && best.is_none_or(|(least, ..)| took < least)
        {
            best = Some((took, time, before + took / 2));
        }
    }
    let (_, time, at) = best?;
    Some((time, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_on() {
        let (first, second) = (clocks(), clocks());
        assert!(first.monotonic_ns < second.monotonic_ns);
        assert!(first.realtime_ns > 1_600_000_000_000_000_000);
        if let (Some(first), Some(second)) = (first.counter, second.counter) {
            assert!(first < second);
        }
        if let (Some(first), Some(second)) = (first.recording_ns, second.recording_ns) {
            assert!(first < second);
        }
    }
}
