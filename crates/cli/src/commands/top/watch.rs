//! Counting, in the kernel or out of its rings, and who the vCPUs are.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use analysis::ThreadCounts;
use anyhow::{Context, Result, anyhow};
use counts::{Choice, CountingWay, NamedCounts, Snapshot};
use devices::AddressNames;
use facts::{Facts, ReportedVm};
use live::{LiveError, LiveOptions, LivePrograms};
use record::ThreadCounters;
use rustix::thread::{CapabilitySet, CapabilitySets};
use rustix::time::{ClockId, clock_gettime};
use session::DeviceNames;

use super::rings::Rings;

/// Returns the kernel's monotonic clock in nanoseconds, which the programs read too.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let rest = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + rest
}

/// What an error of the counters begins with.
const NO_COUNTERS: &str = "--counters";

/// Who counts.
#[derive(Debug)]
enum Counter {
    Programs(LivePrograms),
    Rings(Rings),
}

/// What counts, and what is known of the host's VMs.
#[derive(Debug)]
pub(in crate::commands) struct Watch {
    counter: Counter,
    way: CountingWay,
    facts: Facts,
    /// Processes of VMs that had ended when it was looked last: they are among the facts until the next look.
    ended: HashSet<i32>,
    devices: Option<DeviceNames>,
    /// Counters of the vCPUs, where they are asked for.
    counters: Option<ThreadCounters>,
    last: Snapshot,
}

impl Watch {
    /// Begins to count: out of the kernel's rings if `events`, else in the kernel where that is allowed. `mtree` says
    /// where devices are.
    pub(in crate::commands) fn start(mtree: Option<&Path>, events: bool) -> Result<Watch> {
        let devices = mtree.map(DeviceNames::read).transpose()?;
        let facts = host::collect(Path::new("/"));
        let effective = effective();
        let of_bpf = CapabilitySet::BPF | CapabilitySet::PERFMON;
        let privileged = effective.contains(of_bpf) || effective.contains(CapabilitySet::SYS_ADMIN);
        let now_ns = now_ns();
        let (counter, way) = match events {
            true => (rings(&facts)?, CountingWay::Events { why: None }),
            false => count(&facts, now_ns, privileged)?,
        };
        let last = Snapshot {
            from_ns: now_ns,
            to_ns: now_ns,
            ..Snapshot::default()
        };
        Ok(Watch {
            counter,
            way,
            facts,
            ended: HashSet::new(),
            devices,
            counters: None,
            last,
        })
    }

    /// Begins to count cycles, instructions, cache misses and page faults of the vCPUs that are known.
    pub(super) fn count_threads(&mut self) -> Result<()> {
        let vcpus = live::seeds(&self.facts);
        let tids: Vec<i32> = vcpus.iter().map(|vcpu| vcpu.tid).collect();
        let counters = ThreadCounters::of_threads(&tids).context(NO_COUNTERS)?;
        self.counters = Some(counters);
        Ok(())
    }

    /// Returns what the counters of vCPUs have counted.
    fn counted(&self) -> Result<BTreeMap<i32, ThreadCounts>> {
        let mut threads: BTreeMap<i32, ThreadCounts> = BTreeMap::new();
        let readings = self.counters.as_ref().map(ThreadCounters::counted);
        for one in readings
            .transpose()
            .context(NO_COUNTERS)?
            .into_iter()
            .flatten()
        {
            let thread = threads.entry(one.tid).or_default();
            thread.add(one.event, one.mode, one.value, one.times_ns);
        }
        Ok(threads)
    }

    /// Gives away what the process may do and counting needs no more, but for what is `also` needed as far as it is
    /// there.
    pub(in crate::commands) fn give_away(&self, also: CapabilitySet) {
        let effective = effective();
        let left = match self.counter {
            // Kernels before 5.19 look at CAP_BPF for each reading of a map.
            Counter::Programs(_) => CapabilitySet::BPF,
            Counter::Rings(_) => CapabilitySet::empty(),
        };
        // Counters of vCPUs that are found later are still to be opened.
        let counting = match self.counters {
            Some(_) => CapabilitySet::PERFMON,
            None => CapabilitySet::empty(),
        };
        let left = left | effective & (also | counting);
        if effective.contains(left) {
            // Whether giving the rest away succeeds or not, everything works.
            let _ = rustix::thread::set_capabilities(
                None,
                CapabilitySets {
                    effective: left,
                    permitted: left,
                    inheritable: CapabilitySet::empty(),
                },
            );
        }
    }

    /// Looks again which VMs there are, and which of the threads that were followed.
    pub(in crate::commands) fn look(&mut self) -> Result<()> {
        let facts = host::collect(Path::new("/"));
        let vcpus = self.last.vcpus.iter().map(|vcpu| vcpu.tid);
        let threads = self.last.threads.iter().map(|thread| thread.tid);
        let gone = vcpus.chain(threads).filter(|tid| !is_there(*tid)).collect();
        self.forget(&gone)?;
        let (vcpus, threads) = (live::seeds(&facts), live::thread_seeds(&facts));
        self.remember(facts);
        if let Some(counters) = &mut self.counters {
            let followed = self.last.vcpus.iter().map(|vcpu| vcpu.tid);
            let known = vcpus.iter().map(|vcpu| vcpu.tid);
            let tids: Vec<i32> = known.chain(followed).collect();
            counters.follow(&tids).context(NO_COUNTERS)?;
        }
        match &mut self.counter {
            Counter::Programs(live) => {
                live.follow(&vcpus, &threads, now_ns())?;
                live.fold(is_there)?;
            }
            Counter::Rings(rings) => rings.follow(vcpus, threads)?,
        }
        Ok(())
    }

    /// Takes over what was found, and the VMs that are gone since: what they did up to their end is still to be
    /// reported, by their names.
    fn remember(&mut self, mut found: Facts) {
        let before = std::mem::take(&mut self.facts);
        let is_new = |vm: &ReportedVm| {
            let pid = vm.pid.filter(|pid| !self.ended.contains(pid));
            pid.is_some() && !found.vms.iter().any(|other| other.pid == pid)
        };
        let gone: Vec<ReportedVm> = before.vms.into_iter().filter(is_new).collect();
        self.ended = gone.iter().filter_map(|vm| vm.pid).collect();
        for (tid, thread) in before.threads {
            let of_gone = thread.pid.is_some_and(|pid| self.ended.contains(&pid));
            if of_gone || gone.iter().any(|vm| vm.vhost.contains(&tid)) {
                found.threads.entry(tid).or_insert(thread);
            }
        }
        found.vms.extend(gone);
        self.facts = found;
    }

    /// Returns what is known of the host.
    pub(in crate::commands) fn facts(&self) -> &Facts {
        &self.facts
    }

    fn forget(&mut self, gone: &HashSet<i32>) -> Result<()> {
        match &mut self.counter {
            Counter::Programs(live) => live.forget(gone)?,
            Counter::Rings(rings) => rings.forget(gone)?,
        }
        self.last.forget(gone);
        Ok(())
    }

    /// Returns what was counted since the beginning. What ended is reported once.
    pub(super) fn total(&mut self) -> Result<Snapshot> {
        let mut now = match &mut self.counter {
            Counter::Programs(live) => live.snapshot(now_ns())?,
            Counter::Rings(rings) => rings.snapshot()?,
        };
        now.counters = self.counted()?;
        self.last = now.clone();
        self.forget(&now.ended())?;
        Ok(now)
    }

    /// Returns what was counted since the last interval, or since the beginning.
    pub(in crate::commands) fn interval(&mut self) -> Result<Snapshot> {
        let last = self.last.clone();
        Ok(self.total()?.since(&last))
    }

    /// Returns how it counts.
    pub(in crate::commands) fn way(&self) -> &CountingWay {
        &self.way
    }

    /// Names what was counted.
    pub(in crate::commands) fn named(&self, counted: &Snapshot, choice: &Choice) -> NamedCounts {
        let mtree = self.devices.as_ref().and_then(DeviceNames::mtree);
        let mut named = counts::named(counted, &self.facts, mtree, choice);
        named.way = self.way.clone();
        named
    }

    /// Returns what this kernel does not tell, and what of the map of devices was not understood.
    pub(in crate::commands) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        match &self.counter {
            Counter::Programs(live) => {
                let missing = live.missing().iter();
                warnings.extend(missing.map(|event| {
                    format!(
                        "this kernel's {event} says other things than expected, and is not counted"
                    )
                }));
            }
            Counter::Rings(rings) if !rings.counts_losses() => warnings.push(
                "this kernel does not say how many events found no room in its rings (Linux 6.0 does)"
                    .to_owned(),
            ),
            Counter::Rings(_) => {}
        }
        let missing = self.counters.iter().flat_map(ThreadCounters::missing);
        warnings.extend(missing.map(|(events, why)| format!("{events} are not counted: {why}")));
        if let Some(text) = self.devices.as_ref().and_then(DeviceNames::mtree) {
            let (_, notes) = AddressNames::builtin(devices::Arch::Other).with_mtree(text);
            warnings.extend(notes.into_iter().map(|note| format!("info mtree: {note}")));
        }
        warnings
    }
}

/// Returns what this thread may do.
fn effective() -> CapabilitySet {
    let sets = rustix::thread::capabilities(None).ok();
    sets.map_or(CapabilitySet::empty(), |sets| sets.effective)
}

/// Returns whether a thread exists.
fn is_there(tid: i32) -> bool {
    Path::new(&format!("/proc/{tid}")).exists()
}

fn rings(facts: &Facts) -> Result<Counter> {
    let rings = Rings::start(live::seeds(facts), live::thread_seeds(facts))?;
    Ok(Counter::Rings(rings))
}

/// Begins to count in the kernel, or where that is not allowed out of its rings.
fn count(facts: &Facts, now_ns: u64, privileged: bool) -> Result<(Counter, CountingWay)> {
    let started = LivePrograms::start(&LiveOptions {
        vcpus: live::seeds(facts),
        threads: live::thread_seeds(facts),
        now_ns,
        privileged,
        without_btf: false,
    });
    let error = match started {
        Ok(live) => return Ok((Counter::Programs(live), CountingWay::Bpf)),
        Err(error @ (LiveError::NoPermission | LiveError::NotAllowed(_) | LiveError::Bpf(_))) => {
            error
        }
        // What the kernel's events lack, its rings lack too.
        Err(error) => return Err(error.into()),
    };
    let why = error.to_string();
    match rings(facts) {
        Ok(counter) => Ok((counter, CountingWay::Events { why: Some(why) })),
        Err(other) => Err(anyhow!("{why}; nor can its events be read: {other:#}")),
    }
}
