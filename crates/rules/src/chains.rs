//! Which finding is the cause of which: one thing to change, with all that comes of it, is one chain and not several
//! strangers.
//!
//! A chain is stated only where the cause makes the effect by how the kernel or the processor works, whatever the
//! recording. Both have to be found on their own, in the same recording: what links them adds no confidence.

use crate::Finding;
use crate::evidence::says;

/// A cause less sure than this is not said to be one.
const POSSIBLE: f64 = 0.5;
/// One that is surer stands above its effect: it is what to change first.
const LIKELY: f64 = 0.6;
/// From here on events show it.
const SURE: f64 = 0.9;

/// A finding that is the effect of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CauseChain {
    /// The rule whose finding is the cause.
    pub cause: &'static str,
    /// The rule whose finding is the effect.
    pub effect: &'static str,
    /// How the one makes the other: the end of a sentence.
    pub how: &'static str,
}

/// Sources: `arch/x86/kvm/lapic.c`, `kvm_apicv_activated`; `kernel/sched/fair.c`, `throttle_cfs_rq`;
/// `arch/x86/kvm/mmu/mmu.c`, `kvm_unmap_gfn_range`; `arch/x86/kvm/vmx/vmx.c`, `vmx_update_cpu_dirty_logging`.
static CHAINS: &[CauseChain] = &[
    CauseChain {
        cause: "hyperv-synic-autoeoi",
        effect: "apic-exits-without-apicv",
        how: "while AutoEOI sets APICv or AVIC aside, KVM emulates each access of the local APIC",
    },
    CauseChain {
        cause: "vcpu-throttled",
        effect: "lock-holder-preempted",
        how: "a vCPU that is throttled while it holds a lock makes the others spin for it",
    },
    CauseChain {
        cause: "vcpu-preempted",
        effect: "lock-holder-preempted",
        how: "a vCPU that is preempted while it holds a lock makes the others spin for it",
    },
    CauseChain {
        cause: "lock-holder-preempted",
        effect: "pause-loop-exits",
        how: "vCPUs that spin for a lock whose holder does not run exit in PAUSE",
    },
    CauseChain {
        cause: "memory-taken-away",
        effect: "ept-violation-storm",
        how: "each page that was taken away faults when the guest touches it again",
    },
    CauseChain {
        cause: "dirty-logging",
        effect: "pml-full-exits",
        how: "while dirty pages are logged, the processor writes each page that the guest writes to into a log",
    },
    CauseChain {
        cause: "cpufreq-governor-kworker",
        effect: "vcpu-preempted",
        how: "each run of the governor's kworker takes the CPU from the vCPU",
    },
];

/// Returns all chains.
pub fn chains() -> &'static [CauseChain] {
    CHAINS
}

/// Says of findings whose effect they are.
pub(crate) fn link(findings: &mut [Finding]) {
    for chain in CHAINS {
        let at = |id: &str| findings.iter().position(|one| one.rule.id == id);
        let (Some(cause), Some(effect)) = (at(chain.cause), at(chain.effect)) else {
            continue;
        };
        let same = findings[effect].inputs.is_empty()
            || (findings[effect].inputs.iter()).any(|name| findings[cause].inputs.contains(name));
        if !same || findings[cause].confidence < POSSIBLE || findings[effect].effect_of.is_some() {
            continue;
        }
        let cost = findings[effect].cost;
        let is = match findings[cause].confidence {
            sure if sure >= SURE => "This is",
            likely if likely >= LIKELY => "This is likely",
            _ => "This may be",
        };
        let how = says!(
            "{is} an effect of {rule}: {how}.",
            is = is,
            rule = chain.cause,
            how = chain.how
        );
        findings[effect].effect_of = Some(chain.cause);
        findings[effect].evidence.push(how);
        let cause = &mut findings[cause];
        if cause.cost.is_none() && cause.confidence >= LIKELY {
            (cause.cost, cause.cost_of_effect) = (cost, true);
        }
    }
}

/// Puts likely causes above their effects, among findings that are in their order.
pub(crate) fn order(findings: &mut Vec<Finding>) {
    // A cause that moves up may be the effect of another one; chains have no circles.
    for _ in 0..CHAINS.len() {
        let mut moved = false;
        for at in 0..findings.len() {
            let Some(cause) = findings.get(at).and_then(|one| one.effect_of) else {
                continue;
            };
            let from = findings.iter().position(|one| one.rule.id == cause);
            let Some(from) = from.filter(|from| *from > at) else {
                continue;
            };
            let stands_above = findings[from].confidence >= LIKELY
                && findings[from].precedence == findings[at].precedence;
            if stands_above {
                let one = findings.remove(from);
                findings.insert(at, one);
                moved = true;
            }
        }
        if !moved {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Base, FindingCost};

    fn finding(id: &str, confidence: f64, ns: Option<u64>) -> Finding {
        let rule = crate::rule(id).expect("a rule");
        let mut finding = Finding::new(rule, confidence);
        finding.cost = ns.map(|ns| FindingCost::of(ns, 1000, Base::VcpuTime));
        finding
    }

    fn linked(findings: Vec<Finding>) -> Vec<Finding> {
        let mut findings = findings;
        findings.sort_by(Finding::rank);
        link(&mut findings);
        findings.sort_by(Finding::rank);
        order(&mut findings);
        findings
    }

    fn ids(findings: &[Finding]) -> Vec<&'static str> {
        findings.iter().map(|one| one.rule.id).collect()
    }

    #[test]
    fn every_chain_is_of_two_rules_and_goes_round_nowhere() {
        for chain in chains() {
            assert!(crate::rule(chain.cause).is_some(), "{}", chain.cause);
            assert!(crate::rule(chain.effect).is_some(), "{}", chain.effect);
            assert!(!chain.how.is_empty());
            let mut above = vec![chain.effect];
            while let Some(effect) = above.pop() {
                let causes = chains().iter().filter(|one| one.effect == effect);
                for one in causes {
                    assert_ne!(one.cause, chain.effect, "{}", chain.effect);
                    above.push(one.cause);
                }
            }
        }
    }

    #[test]
    fn a_likely_cause_stands_above_its_effect_and_costs_what_that_costs_once() {
        let apic = || finding("apic-exits-without-apicv", 0.85, Some(300));
        let found = linked(vec![apic(), finding("hyperv-synic-autoeoi", 0.95, None)]);
        assert_eq!(
            ids(&found),
            ["hyperv-synic-autoeoi", "apic-exits-without-apicv"]
        );
        assert_eq!(found[0].cost.map(|cost| cost.ns), Some(300));
        assert_eq!(found[1].effect_of, Some("hyperv-synic-autoeoi"));
        // The time is explained by the one that has the rows of it.
        assert!(found[0].explained_cost().is_none() && found[1].explained_cost().is_some());
        // A possible one is named, and the effect, which is surer, stays above.
        let found = linked(vec![apic(), finding("hyperv-synic-autoeoi", 0.5, None)]);
        assert_eq!(
            ids(&found),
            ["apic-exits-without-apicv", "hyperv-synic-autoeoi"]
        );
        assert!(found[1].cost.is_none());
        let said = found[0].evidence.last().map(|one| one.text.as_str());
        assert!(said.is_some_and(|said| said.starts_with("This may be an effect of hyperv")));
        // One that is not even possible is no cause.
        let found = linked(vec![apic(), finding("hyperv-synic-autoeoi", 0.3, None)]);
        assert_eq!(found[0].effect_of, None);
    }

    #[test]
    fn a_chain_of_three_stands_in_its_order() {
        let found = linked(vec![
            finding("pause-loop-exits", 0.9, Some(500)),
            finding("lock-holder-preempted", 0.8, Some(300)),
            finding("vcpu-preempted", 0.9, Some(100)),
        ]);
        assert_eq!(
            ids(&found),
            [
                "vcpu-preempted",
                "lock-holder-preempted",
                "pause-loop-exits"
            ]
        );
        assert_eq!(found[0].cost.map(|cost| cost.ns), Some(100));
    }

    #[test]
    fn findings_of_different_recordings_are_no_chain() {
        let mut cause = finding("vcpu-preempted", 0.9, Some(100));
        let mut effect = finding("lock-holder-preempted", 0.8, Some(300));
        cause.inputs = vec!["a".to_owned()];
        effect.inputs = vec!["b".to_owned()];
        assert!(
            linked(vec![cause, effect])
                .iter()
                .all(|one| one.effect_of.is_none())
        );
    }
}
