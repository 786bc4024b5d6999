//! What a recording beside a definition says of remarks: which of them a finding proves, and which it refutes.

use super::remark::{DefinitionRemark, RemarkMeasure};
use crate::{Diagnosis, Finding};

/// By remark, the rules that find in a recording what it costs.
static PROVED_BY: &[(&str, &[&str])] = &[
    ("hyperv-timers", &["timer-port-exits", "hpet-mmio-exits"]),
    ("hyperv-clock", &["timer-port-exits", "hpet-mmio-exits"]),
    ("hpet", &["hpet-mmio-exits"]),
    ("emulated-nic", &["emulated-device"]),
    ("emulated-disk", &["emulated-device"]),
    ("network-in-qemu", &["userspace-virtio-backend"]),
    ("usb-tablet", &["vmm-polls"]),
    ("disk-limit", &["slow-storage"]),
    ("cpu-quota", &["vcpu-throttled"]),
    ("vcpus-share-cpu", &["vcpu-preempted"]),
    ("vms-share-cpu", &["vcpu-preempted"]),
    ("vmm-on-vcpu-cpus", &["vcpu-preempted"]),
    ("no-huge-pages", &["ept-violation-storm"]),
    ("large-memory-without-huge-pages", &["ept-violation-storm"]),
];

/// Takes down what a recording says of remarks; nothing where the rules that would know could not check.
pub fn measure(remarks: &mut [DefinitionRemark], diagnosis: &Diagnosis) {
    for remark in remarks {
        let known = PROVED_BY.iter().find(|(id, _)| *id == remark.kind.id);
        remark.measured = known.and_then(|(_, rules)| of(rules, diagnosis));
    }
}

fn of(rules: &[&'static str], diagnosis: &Diagnosis) -> Option<RemarkMeasure> {
    let found = |finding: &&Finding| rules.contains(&finding.rule.id);
    if let Some(finding) = diagnosis.findings.iter().find(found) {
        return Some(RemarkMeasure {
            found: true,
            rules: vec![finding.rule.id],
            text: format!(
                "The recording shows {}: {}.",
                finding.rule.id,
                finding.sentence()
            ),
        });
    }
    let is_clear = |id: &&str| diagnosis.clear.iter().any(|rule| rule.id == *id);
    rules.iter().all(is_clear).then(|| RemarkMeasure {
        found: false,
        rules: rules.to_vec(),
        text: format!(
            "The recording does not show it: {} looked and found nothing.",
            rules.join(" and ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::PROVED_BY;

    #[test]
    fn remarks_and_rules_are_there() {
        for (id, rules) in PROVED_BY {
            let kind = crate::remark_kinds().iter().find(|kind| kind.id == *id);
            assert!(kind.is_some(), "{id}");
            assert!(
                !rules.is_empty() && rules.iter().all(|id| crate::rule(id).is_some()),
                "{id}"
            );
        }
    }
}
