//! Halt polling that burns more than it saves.

use model::State;
use stats::duration::human;

use crate::case::percent;
use crate::{Case, Finding, Remedy, Rule, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "halt-poll-waste",
    title: "Halt polling burns CPU time and seldom succeeds",
    looks_at: "time that vCPUs polled in halts before they slept, and how often something came meanwhile",
    needs: "kvm:kvm_vcpu_wakeup with kvm_exit and kvm_entry; sched:sched_switch to tell polling from sleeping; or the host's KVM \
            debug statistics (--facts)",
    measures: &["vcpus poll"],
    cause: "KVM polls for a while when a vCPU halts, so that it need not be woken. Where interrupts come later than that, \
            the time is burnt, and then the vCPU sleeps all the same.",
    remedies: &[
        Remedy {
            what: "Poll for less: lower /sys/module/kvm/parameters/halt_poll_ns (0 turns it off; 200000 is the default on x86).",
            price: "Interrupts that did come while polling now cost a wake-up, tens of microseconds each.",
            unless: "Not where the polls that succeed are the ones that matter: look at the ipi and halt-wake paths first.",
            check: "trapline vcpus: polled time, and polls that succeeded.",
        },
        Remedy {
            what: "Let it shrink at once where it does not pay: halt_poll_ns_shrink=0 resets the interval of a vCPU after a \
                   failure, halt_poll_ns_grow_start says where it begins again.",
            price: "It takes several halts to grow again when the load changes.",
            unless: "Not on kernels before 5.1 for halt_poll_ns_grow_start.",
            check: "trapline vcpus, and the host's halt_poll_fail_ns against halt_poll_success_ns.",
        },
    ],
    sources: &[
        "Linux, Documentation/virt/kvm/halt-polling.rst; virt/kvm/kvm_main.c (kvm_vcpu_halt)",
    ],
    look,
};

fn look(case: &Case<'_>) -> Verdict {
    let rows = || case.picture.vcpus.iter().flat_map(|report| &report.rows);
    let sum = |of: &dyn Fn(&model::Polls) -> u64| {
        rows()
            .map(|row| of(&row.polls))
            .fold(0u64, u64::saturating_add)
    };
    let (hits, misses) = (sum(&|polls| polls.succeeded), sum(&|polls| polls.failed));
    if hits + misses == 0 {
        let seen = case.picture.vcpus.as_ref().map(|report| &report.seen);
        // Halts that were told of, and nobody polled.
        return match seen.is_some_and(|seen| seen.halts && seen.switches) {
            true => Verdict::Clear,
            false => from_statistics(case),
        };
    }
    let burnt = sum(&|polls| polls.failed_ns);
    let saved = sum(&|polls| polls.succeeded_ns);
    let cost = case.vcpu_cost(burnt);
    // More than a guest that works would mind, and most of it in vain.
    if cost.share < 0.02 || burnt < saved.saturating_mul(2) || misses < 50 {
        return Verdict::Clear;
    }
    let mut finding = Finding::new(&RULE, 0.9)
        .cost(cost)
        .title(format!(
            "Halt polling burnt {} for {hits} of {} halts",
            human(burnt),
            hits + misses
        ))
        .evidence(format!(
            "{misses} polls failed and burnt {} ({} of the time that vCPUs were observed); {hits} succeeded after {} in all.",
            human(burnt),
            percent(burnt, case.picture.observed_ns()),
            human(saved),
        ))
        .evidence(format!(
            "Halted beyond polling they were {}.",
            human(case.picture.state_ns(State::Halted))
        ));
    let modules = case.host().map(|host| &host.modules);
    if let Some(ns) = modules.and_then(|modules| modules.get("kvm")?.get("halt_poll_ns")) {
        finding = finding.evidence(format!("The host's halt_poll_ns is {ns}."));
    }
    finding.found()
}

/// Without events: KVM's own sums since the host's start.
fn from_statistics(case: &Case<'_>) -> Verdict {
    let counters = case.host().map(|host| &host.kvm_debug);
    let get = |name: &str| counters.and_then(|all| all.get(name).copied());
    let (Some(fail_ns), Some(success_ns)) = (get("halt_poll_fail_ns"), get("halt_poll_success_ns"))
    else {
        return Verdict::Lacks(
            "Record kvm:kvm_vcpu_wakeup, kvm:kvm_exit, kvm:kvm_entry and sched:sched_switch to know, or give --facts of a host \
             whose KVM debug statistics are readable."
                .to_owned(),
        );
    };
    let (hits, tries) = (
        get("halt_successful_poll").unwrap_or(0),
        get("halt_attempted_poll").unwrap_or(0),
    );
    if fail_ns < success_ns.saturating_mul(2) || tries < 1000 || hits * 4 > tries {
        return Verdict::Clear;
    }
    Finding::new(&RULE, 0.6)
        .title(format!("Halt polling failed {} of {tries} times, by the host's statistics", tries - hits.min(tries)))
        .evidence(format!(
            "Since the VMs' start polls that failed took {}, those that succeeded {}; how long that is a share of is not in \
             these sums.",
            human(fail_ns),
            human(success_ns)
        ))
        .found()
}
