//! What libvirt and KVM counted of the recorded VMs (`virsh domstats`), and what that may show.
//!
//! Sums since a VM began say nothing of the time of a recording: they raise a finding only where there are no events
//! that show the same, and never a severe one.

use facts::DomainStatistics;

use crate::Case;
use crate::evidence::{Evidence, Ns, Of, says};

/// A deep idle state of a server's CPU is left in less (the largest `exit_latency` of servers' tables in
/// `drivers/idle/intel_idle.c` is 290 us): what a woken vCPU waits for that is nobody's fault.
const IDLE_EXIT_NS: u64 = 300_000;

impl<'a> Case<'a> {
    /// Returns the statistics of the VMs that were recorded, or are defined; without either of all. None where nobody
    /// knows which are whose.
    pub(crate) fn domstats(&self) -> Vec<&'a DomainStatistics> {
        let Some(facts) = self.facts else {
            return Vec::new();
        };
        let all = || facts.domstats.iter();
        let recorded = self.vms().iter();
        let recorded = recorded.filter_map(|vm| {
            let name = vm.name.as_deref()?;
            (vm.process.as_deref() != Some(name)).then_some(name)
        });
        let defined = self.domain.map(|domain| domain.name.as_str());
        let names: Vec<&str> = recorded.chain(defined).collect();
        let alone = facts.domstats.len() == 1 && self.vms().len() <= 1;
        if names.is_empty() {
            let may_be = alone || self.vms().is_empty();
            return all().filter(|_| may_be).collect();
        }
        let of = all().filter(|one| match &one.name {
            Some(name) => names.contains(&name.as_str()),
            None => alone,
        });
        of.collect()
    }
}

/// What a domain is called in a sentence.
pub(crate) fn name_of(domain: &DomainStatistics) -> &str {
    domain.name.as_deref().unwrap_or("the VM")
}

/// The time that its sums are of.
pub(crate) fn when(domain: &DomainStatistics) -> &'static str {
    match domain.is_difference() {
        true => "between the two outputs of virsh domstats",
        false => "since the VM began (virsh domstats)",
    }
}

/// What a domain's vCPUs waited for a CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedWaits<'a> {
    pub domain: &'a DomainStatistics,
    /// Of all its vCPUs that are listed, what they waited and what they were on a CPU.
    pub waited_ns: u64,
    pub ran_ns: u64,
    /// The one that waited most, for its time.
    worst: (u32, u64, u64),
    /// What of the waits the way out of idling cannot explain.
    left_ns: u64,
    worst_left_ns: u64,
}

impl<'a> CountedWaits<'a> {
    /// Sums them; `None` where they were not counted.
    pub(crate) fn of(domain: &'a DomainStatistics) -> Option<CountedWaits<'a>> {
        let each = domain.vcpus.iter().filter_map(|(id, vcpu)| {
            let (waited, ran) = DomainStatistics::waited_ns(vcpu)?;
            let woken = vcpu.counted("halt_wakeup");
            // Without the number of wake-ups twice as much is asked for.
            let idle = woken.map_or(waited / 2, |woken| woken.saturating_mul(IDLE_EXIT_NS));
            Some((*id, waited, ran, waited.saturating_sub(idle)))
        });
        let each: Vec<(u32, u64, u64, u64)> = each.collect();
        let sum =
            |of: fn(&(u32, u64, u64, u64)) -> u64| each.iter().map(of).fold(0, u64::saturating_add);
        let share = |one: &(u32, u64, u64, u64)| share(one.3, one.1.saturating_add(one.2));
        let worst = each.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
        Some(CountedWaits {
            domain,
            waited_ns: sum(|one| one.1),
            ran_ns: sum(|one| one.2),
            worst: (worst.0, worst.1, worst.2),
            left_ns: sum(|one| one.3),
            worst_left_ns: worst.3,
        })
    }

    /// Returns the share of the time in which the vCPUs wanted a CPU that they waited for one behind others for sure,
    /// and the same of the worst vCPU.
    pub(crate) fn shares(&self) -> (f64, f64) {
        let (_, waited, ran) = self.worst;
        (
            share(self.left_ns, self.waited_ns.saturating_add(self.ran_ns)),
            share(self.worst_left_ns, waited.saturating_add(ran)),
        )
    }

    /// Returns whether it was counted how often each vCPU was woken.
    pub(crate) fn counts_wakeups(&self) -> bool {
        let mut vcpus = self.domain.vcpus.values();
        vcpus.all(|vcpu| vcpu.counted("halt_wakeup").is_some())
    }

    /// Says how long it was.
    pub(crate) fn said(&self) -> Evidence {
        let (id, waited, ran) = self.worst;
        let all = self.waited_ns.saturating_add(self.ran_ns);
        let sentence = says!(
            "vCPUs of {domain} waited {waited} for a CPU and were on one for {ran} ({share} of both), {when}",
            domain = name_of(self.domain),
            waited = Ns(self.waited_ns),
            ran = Ns(self.ran_ns),
            share = Of(self.waited_ns, all),
            when = when(self.domain),
        );
        match self.domain.vcpus.len() {
            1 => sentence.then(says!(".")),
            _ => sentence.then(says!(
                "; most vCPU {id}: {time} ({share_of_worst}).",
                id = u64::from(id),
                time = Ns(waited),
                share_of_worst = Of(waited, waited.saturating_add(ran)),
            )),
        }
    }
}

/// What a domain's vCPUs polled in halts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedPolls<'a> {
    pub domain: &'a DomainStatistics,
    pub failed_ns: u64,
    pub succeeded_ns: u64,
    /// Halts that a poll ended and all halts, of the vCPUs of which both were counted.
    pub ended: Option<(u64, u64)>,
    /// Polls that failed, where that was counted of every vCPU.
    pub failures: Option<u64>,
    /// Time that it is a share of, and whether that is the vCPUs' whole time. Else it is CPU time alone.
    pub base_ns: u64,
    pub is_whole_time: bool,
}

impl<'a> CountedPolls<'a> {
    /// Sums them; `None` where they were not counted.
    pub(crate) fn of(domain: &'a DomainStatistics) -> Option<CountedPolls<'a>> {
        let whole = domain.lists_all_vcpus();
        let of = |of_all: &str, of_vcpus: &str| {
            let summed = || domain.of_vcpus(of_vcpus).filter(|_| whole);
            domain.all.counted(of_all).or_else(summed)
        };
        let failed_ns = of("cpu.haltpoll.fail.time", "halt_poll_fail_ns")?;
        let succeeded_ns = of("cpu.haltpoll.success.time", "halt_poll_success_ns")?;
        let pairs = |one: &str, other: &str| {
            let each = domain.vcpus.values();
            let each = each.filter_map(|vcpu| Some((vcpu.counted(one)?, vcpu.counted(other)?)));
            each.reduce(|a, b| (a.0.saturating_add(b.0), a.1.saturating_add(b.1)))
        };
        let tries = pairs("halt_successful_poll", "halt_attempted_poll").filter(|_| whole);
        let vcpus = domain.vcpus.values();
        let times = vcpus.map(|vcpu| {
            let (waited, ran) = DomainStatistics::waited_ns(vcpu)?;
            let slept = vcpu.counted("halt_wait_ns")?;
            Some(waited.saturating_add(ran).saturating_add(slept))
        });
        let times: Option<Vec<u64>> = times.collect();
        let times = times.filter(|times| whole && !times.is_empty());
        let cpu_time = || {
            let listed = domain.of_vcpus("time").filter(|_| whole);
            domain.all.counted("cpu.time").or(listed)
        };
        let (base_ns, is_whole_time) = match times {
            Some(times) => (times.into_iter().fold(0, u64::saturating_add), true),
            None => (cpu_time()?, false),
        };
        Some(CountedPolls {
            domain,
            failed_ns,
            succeeded_ns,
            ended: pairs("halt_successful_poll", "halt_exits"),
            failures: tries.map(|(hits, tries)| tries.saturating_sub(hits)),
            base_ns,
            is_whole_time,
        })
    }

    /// Returns the share of their time that polls took which failed.
    pub(crate) fn share(&self) -> f64 {
        share(self.failed_ns, self.base_ns)
    }

    /// Says how long they took.
    pub(crate) fn said(&self) -> Evidence {
        let sentence = says!(
            "Halt polling of {domain} failed for {failed} ({share} of {base} {what}) and succeeded for {succeeded}, \
             {when}",
            domain = name_of(self.domain),
            failed = Ns(self.failed_ns),
            share = Of(self.failed_ns, self.base_ns),
            base = Ns(self.base_ns),
            what = match self.is_whole_time {
                true => "in which its vCPUs ran, waited or slept",
                false => "of CPU time",
            },
            succeeded = Ns(self.succeeded_ns),
            when = when(self.domain),
        );
        match self.ended {
            Some((ended, halts)) => sentence.then(says!(
                "; a poll ended {ended} of {halts} halts ({share_of_halts}).",
                ended = ended,
                halts = halts,
                share_of_halts = Of(ended, halts),
            )),
            None => sentence.then(says!(".")),
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(text: &str) -> DomainStatistics {
        let (facts, _) = facts::read(text.as_bytes());
        facts.domstats.first().cloned().expect("statistics")
    }

    #[test]
    fn what_idle_cpus_may_explain_is_not_counted() {
        let of = |woken: u64| {
            let text = format!(
                "vcpu.0.time=9000000000\nvcpu.0.delay=1000000000\nvcpu.0.halt_wakeup.sum={woken}\n"
            );
            CountedWaits::of(&statistics(&text)).map(|waits| waits.shares())
        };
        let (all, worst) = of(1000).expect("waits");
        assert!((all - 0.07).abs() < 1e-9 && (worst - 0.07).abs() < 1e-9);
        assert_eq!(of(10_000), Some((0.0, 0.0)));
        // Of whose wake-ups nothing is known.
        let known = statistics("vcpu.0.time=900\nvcpu.0.delay=100\n");
        let waits = CountedWaits::of(&known).expect("waits");
        assert!((waits.shares().0 - 0.05).abs() < 1e-9 && !waits.counts_wakeups());
        assert!(CountedWaits::of(&statistics("vcpu.0.time=9\nvcpu.0.wait=0\n")).is_none());
    }

    #[test]
    fn polls_are_a_share_of_the_whole_time_where_that_is_known() {
        let text = "vcpu.current=1\ncpu.time=100\ncpu.haltpoll.success.time=1\ncpu.haltpoll.fail.time=10\n\
                    vcpu.0.time=90\nvcpu.0.delay=10\nvcpu.0.halt_exits.sum=4\nvcpu.0.halt_successful_poll.sum=1\n";
        let known = statistics(text);
        let polls = CountedPolls::of(&known).expect("polls");
        assert!(!polls.is_whole_time && polls.ended == Some((1, 4)) && polls.failures.is_none());
        assert!((polls.share() - 0.1).abs() < 1e-9);
        let known = statistics(&format!(
            "{text}vcpu.0.halt_wait_ns.sum=900\nvcpu.0.halt_attempted_poll.sum=3"
        ));
        let polls = CountedPolls::of(&known).expect("polls");
        assert!(polls.is_whole_time && polls.failures == Some(2));
        assert!((polls.share() - 0.01).abs() < 1e-9);
    }
}
