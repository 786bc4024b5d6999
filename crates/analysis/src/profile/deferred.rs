//! Samples whose call chains end at the system call: user space's part comes when their thread goes back there.
//!
//! Linux 6.19 walks it then once for all samples since the last time (`PERF_RECORD_CALLCHAIN_DEFERRED`), and perf joins
//! them by thread and number (`perf record --call-graph fp,defer`; `tools/perf/util/session.c`).

use rustc_hash::FxHashMap;
use symbols::{CpuMode, SpaceId};

use super::Waiting;

/// Samples that wait at most. A thread that never goes back to user space has as many as it was sampled.
const MOST: usize = 1 << 16;

/// A sample that waits for its callers in user space.
#[derive(Debug)]
pub(super) struct DeferredSample {
    pub of: Waiting,
    /// What it has of its stack, innermost first.
    pub places: Vec<u32>,
    pub pid: i32,
    pub space: Option<SpaceId>,
    pub mode: CpuMode,
}

/// The samples that wait, by thread and number.
#[derive(Debug, Default)]
pub(super) struct DeferredSamples {
    waiting: FxHashMap<(i32, u64), Vec<DeferredSample>>,
    count: usize,
    /// Those whose callers never came, or for which there was no room.
    pub without: u64,
}

impl DeferredSamples {
    /// Keeps a sample until its callers come; gives it back where there is no room.
    pub(super) fn keep(
        &mut self,
        tid: i32,
        cookie: u64,
        sample: DeferredSample,
    ) -> Option<DeferredSample> {
        if self.count == MOST {
            self.without += 1;
            return Some(sample);
        }
        self.count += 1;
        self.waiting.entry((tid, cookie)).or_default().push(sample);
        None
    }

    /// Returns those whose callers these are.
    pub(super) fn take(&mut self, tid: i32, cookie: u64) -> Vec<DeferredSample> {
        let taken = self.waiting.remove(&(tid, cookie)).unwrap_or_default();
        self.count -= taken.len();
        taken
    }

    /// Returns all that still wait, in the order of thread and number.
    pub(super) fn rest(&mut self) -> Vec<DeferredSample> {
        let mut rest: Vec<_> = self.waiting.drain().collect();
        rest.sort_unstable_by_key(|(key, _)| *key);
        self.count = 0;
        let rest: Vec<_> = rest.into_iter().flat_map(|(_, samples)| samples).collect();
        self.without += rest.len() as u64;
        rest
    }
}
