//! What recording cost, by what the recorder measured.

/// What recording cost, as the recorder measured it when it recorded and wrote it into the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingCost {
    /// What an event costs the thread that makes it, ns: measured with warm caches, so the real cost is this much or
    /// more.
    pub event_ns: u64,
    /// The same as the mean over the events of this recording, some of which cost something else (call chains, probes),
    /// on the CPU where they cost most, ns; `None` where the recording did not end in order, or all cost the same.
    pub mean_ns: Option<u64>,
    /// That CPU.
    pub busiest_cpu: Option<u32>,
    /// The CPU where that was measured.
    pub cpu: u32,
    /// CPU time of the recorder from its start to its end, ns; `None` where the recording did not end in order.
    pub recorder_ns: Option<u64>,
}

impl RecordingCost {
    /// Returns what an event cost the thread that made it, as a mean, ns: this much or more.
    pub fn per_event_ns(&self) -> u64 {
        self.mean_ns.unwrap_or(self.event_ns)
    }
}
