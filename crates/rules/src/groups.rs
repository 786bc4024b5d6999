//! What facts of a host say of the control groups that limit its VMs, and of its memory during the recording.

use facts::ControlGroup;

use crate::Case;
use crate::evidence::{Evidence, Ns, Share, says};

/// A group that limits a VM's CPU time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuQuota<'a> {
    pub group: &'a ControlGroup,
    quota_us: u64,
    period_us: u64,
}

impl CpuQuota<'_> {
    /// Returns how many periods it was throttled in, and for how long in nanoseconds; during the recording where that
    /// is known.
    pub(crate) fn throttled(&self) -> (u64, u64) {
        let of = |name| self.group.counted(name).unwrap_or(0);
        let us = of("cpu.stat.throttled_usec");
        (of("cpu.stat.nr_throttled"), us.saturating_mul(1000))
    }

    /// Returns whether that was counted during the recording, and not since the group was made.
    pub(crate) fn is_of_recording(&self) -> bool {
        self.group.during.contains_key("cpu.stat.nr_throttled")
    }

    /// Says what the limit is and what it did.
    pub(crate) fn said(&self) -> Evidence {
        let (throttled, ns) = self.throttled();
        says!(
            "The control group {path} has a quota of {quota} in each {period} (cpu.max), {share} of one CPU; it was \
             throttled in {throttled} of {periods} periods, {time} in all, {when}.",
            path = self.group.path.as_str(),
            quota = Ns(self.quota_us.saturating_mul(1000)),
            period = Ns(self.period_us.saturating_mul(1000)),
            share = Share(self.quota_us as f64 / self.period_us as f64),
            throttled = throttled,
            periods = self.group.counted("cpu.stat.nr_periods").unwrap_or(0),
            time = Ns(ns),
            when = match self.is_of_recording() {
                true => "during the recording",
                false => "since it was made",
            },
        )
    }
}

impl<'a> Case<'a> {
    /// Returns the groups that limit the CPU time of the recorded VMs, the most throttled first; `None` where nothing
    /// is known of their groups.
    pub(crate) fn cpu_quotas(&self) -> Option<Vec<CpuQuota<'a>>> {
        let mut known = false;
        let mut all: Vec<CpuQuota<'a>> = Vec::new();
        for group in self.groups() {
            known |= group.limits.contains_key("cpu.max");
            let Some((quota_us, period_us)) = group.cpu_quota_us() else {
                continue;
            };
            if !all.iter().any(|one| one.group.path == group.path) {
                all.push(CpuQuota {
                    group,
                    quota_us,
                    period_us,
                });
            }
        }
        all.sort_by_key(|one| std::cmp::Reverse(one.throttled()));
        known.then_some(all)
    }

    /// Returns the groups of the recorded VMs; of all that facts know where none of those is among them.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &'a ControlGroup> + use<'a> {
        let recorded: Vec<i32> = self.vms().iter().filter_map(|vm| vm.pid).collect();
        let facts = self.facts;
        let vms = facts.iter().flat_map(|facts| &facts.vms);
        let is_recorded = move |pid: Option<i32>| pid.is_some_and(|pid| recorded.contains(&pid));
        let any = vms.clone().any(|vm| is_recorded(vm.pid));
        let of: Vec<&'a facts::ReportedVm> = vms.filter(|vm| !any || is_recorded(vm.pid)).collect();
        let groups = of
            .into_iter()
            .filter_map(move |vm| Some(facts?.groups_of(vm)));
        groups.flatten()
    }

    /// Returns what the host counted during the recording, by the kernel's name.
    pub(crate) fn counted_during(&self, name: &str) -> Option<u64> {
        self.host()?.counters_during.get(name).copied()
    }
}
