//! What recording cost, by what the recorder measured and how many events there are.

use crate::Picture;

/// What recording cost the CPU that recorded most events, and the recorder itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostReport {
    /// What an event cost the thread that made it, ns: the mean where some have call chains. It was measured with warm
    /// caches, so the real cost is this much or more.
    pub event_ns: u64,
    /// The CPU with most events, or whose events cost most where some cost more than others.
    pub cpu: u32,
    /// Its events.
    pub events: u64,
    /// What these cost, as a share of its time, 0 to 1.
    pub share: f64,
    /// From the first to the last event, ns.
    pub span_ns: u64,
    /// CPU time of the recorder, ns; `None` where the recording did not end in order.
    pub recorder_ns: Option<u64>,
}

/// Returns what recording cost; `None` where the recorder did not measure it, or the recording has no time.
pub fn recording_cost(picture: &Picture) -> Option<CostReport> {
    let cost = picture.about.cost?;
    let span_ns = picture.span_ns.filter(|span| *span > 0)?;
    let cpus = picture.signs.cpus.iter().zip(0u32..);
    // Where some events cost more than others, the recorder says which CPU had most of that.
    let said = |cpu: &u32| cost.busiest_cpu == Some(*cpu);
    let (busiest, cpu) = cpus.max_by_key(|(signs, cpu)| (said(cpu), signs.events))?;
    let event_ns = cost.per_event_ns();
    let took = busiest.events.saturating_mul(event_ns);
    Some(CostReport {
        event_ns,
        cpu,
        events: busiest.events,
        share: (took as f64 / span_ns as f64).min(1.0),
        span_ns,
        recorder_ns: cost.recorder_ns,
    })
}
