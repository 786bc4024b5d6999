/*!
What an event costs the thread that makes it, measured on this machine: the same work with the event on and off.

The work is a signal that the process sends itself and ignores, since it does nothing else and each makes one event
(`signal:signal_generate`, `kernel/signal.c`). Its record is about as long as that of a VM-exit. Caches are warm here as
they are not behind a VM-exit, so the real cost is this much or more.
*/

use std::time::Duration;

use rings::{EventSource, Ring, RingAttr, RingEvent, format, sample};
use rustix::process::{Signal, getpid, kill_process};
use rustix::thread::{CpuSet, gettid, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::reasons;
use crate::tracefs::{Tracefs, Tracepoint};
use crate::{RecordError, RecordSummary};

/// The event that is measured.
const EVENT: (&str, &str) = ("signal", "signal_generate");
/// Signals of a batch; the ring has room for the events of one.
const BATCH: u32 = 64;
const RING: usize = 64 << 10;
/// Batches with the event on and off, in pairs: as many as fit into a time, and at least and at most so many. A system
/// call of an emulated CPU takes a hundred times that of a real one.
const LEAST: usize = 5;
const MOST: usize = 101;
const TIME: Duration = Duration::from_millis(10);
/// A call chain that is as deep as chains are.
const CHAIN: u64 = sample::IP | sample::CALLCHAIN | sample::PERIOD;

/// How an event is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingForm {
    /// Its record goes to the ring.
    Whole,
    /// With the kernel's call chain.
    Chain,
    /// A filter leaves it out.
    FilteredOut,
}

/// What events cost here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EventCosts {
    /// An event whose record goes to the ring: the median, ns.
    pub event_ns: u64,
    /// One with the kernel's call chain, ns; `None` where it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain_ns: Option<u64>,
    /// The mean over the events of a recording, some of which have call chains, ns; `None` where none has, and before
    /// its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<u64>,
    /// The CPU where that was measured.
    pub cpu: u32,
    /// CPU time of the recorder from its start to its end, ns; `None` in a recording that did not end in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorder_ns: Option<u64>,
}

impl EventCosts {
    /// Measures on the CPU where the calling thread runs, in some ten milliseconds; with call chains if the recording
    /// has any.
    ///
    /// # Errors
    ///
    /// As [`measure`].
    pub fn here(tracefs: &Tracefs, chains: bool) -> Result<EventCosts, RecordError> {
        let cpu = u32::try_from(sched_getcpu()).unwrap_or(u32::MAX);
        let chain = || measure(tracefs, RecordingForm::Chain);
        Ok(EventCosts {
            event_ns: measure(tracefs, RecordingForm::Whole)?,
            chain_ns: if chains { Some(chain()?) } else { None },
            mean_ns: None,
            cpu,
            recorder_ns: None,
        })
    }

    /// Returns the same at the end of a recording: the mean over its events, and the CPU time that the process has
    /// taken until now.
    #[must_use]
    pub fn at_end(self, summary: &RecordSummary) -> EventCosts {
        let count = |chain: bool| {
            let events = summary.events.iter();
            let events = events.filter(|one| one.chain == chain && !one.sampled);
            events.map(|one| one.count).fold(0, u64::saturating_add)
        };
        let (plain, chains) = (count(false), count(true));
        let mean = self.chain_ns.map(|chain_ns| {
            let all = u128::from(plain) * u128::from(self.event_ns)
                + u128::from(chains) * u128::from(chain_ns);
            let mean = all / u128::from(plain.saturating_add(chains).max(1));
            u64::try_from(mean).unwrap_or(u64::MAX)
        });
        EventCosts {
            mean_ns: mean,
            recorder_ns: Some(now_ns(ClockId::ProcessCPUTime)),
            ..self
        }
    }

    /// Returns what a recording says of it ([`crate::file::Feature::Trapline`]): JSON.
    pub fn said(&self) -> Vec<u8> {
        serde_json::to_vec(&serde_json::json!({ "cost": self })).unwrap_or_default()
    }
}

/// Lets the calling thread run on one CPU alone.
///
/// # Errors
///
/// Fails where the CPU is off line, or the thread may not run there.
pub fn stay_on(cpu: u32) -> Result<(), RecordError> {
    let mut only = CpuSet::new();
    let number = usize::try_from(cpu).unwrap_or(usize::MAX);
    if number < CpuSet::MAX_CPU {
        only.set(number);
    }
    sched_setaffinity(Some(gettid()), &only).map_err(|_| RecordError::NotMeasured {
        why: "the CPU is off line, or this process may not run there".to_owned(),
    })
}

/// Returns what a signal's event costs the thread that makes it, ns.
///
/// # Errors
///
/// [`RecordError::NotMeasured`] where the kernel has no such event, and as [`measure_event`].
pub fn measure(tracefs: &Tracefs, how: RecordingForm) -> Result<u64, RecordError> {
    let tracepoint = tracefs.event(EVENT.0, EVENT.1)?;
    let tracepoint = tracepoint.ok_or_else(|| RecordError::NotMeasured {
        why: reasons::no_event(EVENT.0),
    })?;
    measure_event(&tracepoint, how)
}

/// Returns what an event that every signal makes costs the thread that makes it, ns: the median of batches with it less
/// that of batches without it.
///
/// # Errors
///
/// [`RecordError::NotMeasured`] where it cannot be opened, and where the kernel counts none.
pub fn measure_event(tracepoint: &Tracepoint, how: RecordingForm) -> Result<u64, RecordError> {
    let failed = |why: String| RecordError::NotMeasured { why };
    let each = RingAttr::each(EventSource::Tracepoint(tracepoint.id));
    let attr = RingAttr {
        sample: each.sample
            | if how == RecordingForm::Chain {
                CHAIN
            } else {
                0
            },
        no_user_chain: how == RecordingForm::Chain,
        read: format::ID,
        ..each
    };
    let opened = RingEvent::open_own(&attr);
    let event = opened.map_err(|error| failed(reasons::not_opened(&error)))?;
    if how == RecordingForm::FilteredOut {
        let filtered = event.filter("sig == 0");
        filtered.map_err(|error| failed(error.to_string()))?;
    }
    let ring = Ring::of(event, RING / rings::page_size(), false);
    let mut ring = ring.map_err(|error| failed(reasons::no_ring(&error)))?;
    let (mut on, mut off) = (Vec::new(), Vec::new());
    let until = now_ns(ClockId::Monotonic) + u64::try_from(TIME.as_nanos()).unwrap_or(0);
    // What is used for the first time takes longer.
    batch().map_err(RecordError::Wait)?;
    while on.len() < LEAST || on.len() < MOST && now_ns(ClockId::Monotonic) < until {
        off.push(batch().map_err(RecordError::Wait)?);
        ring.event().enable(true).map_err(RecordError::Wait)?;
        on.push(batch().map_err(RecordError::Wait)?);
        ring.event().enable(false).map_err(RecordError::Wait)?;
        ring.take(ring.waiting());
    }
    let counted = ring.event().counts().map_err(RecordError::Wait)?.value;
    if counted == 0 && how != RecordingForm::FilteredOut {
        return Err(failed("the kernel counted none of them".to_owned()));
    }
    let each = median(&mut on).saturating_sub(median(&mut off)) / u64::from(BATCH);
    Ok(each)
}

/// Sends the signals of a batch, and returns the thread's CPU time for it, ns: what others run meanwhile is not in it.
fn batch() -> std::io::Result<u64> {
    let before = now_ns(ClockId::ThreadCPUTime);
    for _ in 0..BATCH {
        kill_process(getpid(), Signal::URG)?;
    }
    Ok(now_ns(ClockId::ThreadCPUTime).saturating_sub(before))
}

fn now_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
