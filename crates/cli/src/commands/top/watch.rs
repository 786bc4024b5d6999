//! Counting in the kernel, and who the vCPUs are.

use std::path::Path;

use anyhow::Result;
use facts::Facts;
use live::{Live, Options, Snapshot};
use rustix::thread::{CapabilitySet, CapabilitySets};
use rustix::time::{ClockId, clock_gettime};

/// Returns the kernel's monotonic clock in nanoseconds, which the programs read too.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let rest = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + rest
}

/// Programs that count, and what is known of the host's VMs.
#[derive(Debug)]
pub(super) struct Watch {
    live: Live,
    facts: Facts,
    last: Snapshot,
}

impl Watch {
    /// Begins to count. What the process may do and needs no more afterwards it gives away.
    pub(super) fn start() -> Result<Watch> {
        let facts = host::collect(Path::new("/"));
        let capabilities = rustix::thread::capabilities(None).ok();
        let effective = capabilities.map_or(CapabilitySet::empty(), |sets| sets.effective);
        let of_bpf = CapabilitySet::BPF | CapabilitySet::PERFMON;
        let privileged = effective.contains(of_bpf) || effective.contains(CapabilitySet::SYS_ADMIN);
        let now_ns = now_ns();
        let live = Live::start(&Options {
            vcpus: live::seeds(&facts),
            now_ns,
            privileged,
            without_btf: false,
        })?;
        if effective.contains(of_bpf) {
            // Kernels before 5.19 look at CAP_BPF for each reading of a map. Whether giving the rest away succeeds or not,
            // everything works.
            let _ = rustix::thread::set_capabilities(
                None,
                CapabilitySets {
                    effective: CapabilitySet::BPF,
                    permitted: CapabilitySet::BPF,
                    inheritable: CapabilitySet::empty(),
                },
            );
        }
        let last = Snapshot {
            from_ns: now_ns,
            to_ns: now_ns,
            ..Snapshot::default()
        };
        Ok(Watch { live, facts, last })
    }

    /// Looks again which VMs there are.
    pub(super) fn look(&mut self) {
        self.facts = host::collect(Path::new("/"));
    }

    /// Returns what is known of the host.
    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns what was counted since the last interval, or since the beginning.
    pub(super) fn interval(&mut self) -> Result<Snapshot> {
        let now = self.live.snapshot(now_ns())?;
        let interval = now.since(&self.last);
        self.last = now;
        Ok(interval)
    }

    /// Returns what was counted since the beginning.
    pub(super) fn total(&self) -> Result<Snapshot> {
        Ok(self.live.snapshot(now_ns())?)
    }

    /// Returns what this kernel does not tell.
    pub(super) fn warnings(&self) -> Vec<String> {
        let missing = self.live.missing().iter();
        missing
            .map(|event| {
                format!("this kernel's {event} says other things than expected, and is not counted")
            })
            .collect()
    }
}
