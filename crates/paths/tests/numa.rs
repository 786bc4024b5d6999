//! IPIs by how far the target's NUMA node is from the sender's.

use cpuset::NumaNode;

use crate::common::{Text, builtin};
use paths::{PathReport, Paths};

/// Three vCPUs: two on node 0 (CPUs 0 and 1), one on node 1 (CPU 4).
const SENDER: (&str, i32) = ("CPU 0/KVM", 10);
const NEAR: (&str, i32) = ("CPU 1/KVM", 11);
const FAR: (&str, i32) = ("CPU 2/KVM", 12);

fn nodes(distances: [&[u32]; 2]) -> Vec<NumaNode> {
    let cpus = ["0-3", "4-7"];
    let nodes = cpus.into_iter().zip(distances).zip(0..);
    nodes
        .map(|((cpus, distances), node)| NumaNode {
            node,
            cpus: cpus.parse().expect("CPUs"),
            memory_bytes: None,
            distances: distances.to_vec(),
        })
        .collect()
}

/// Ten IPIs to each target; the far one takes 9 us longer.
fn ipis(nodes: &[NumaNode]) -> PathReport {
    let mut text = Text::default();
    for (vcpu, cpu) in [(SENDER, 0), (NEAR, 1), (FAR, 4)] {
        text.enters(vcpu, cpu, 1 + u64::try_from(cpu).expect("a CPU"));
    }
    for number in 0..10 {
        for (target, cpu, apic, us) in [(NEAR, 1, 1, 20), (FAR, 4, 2, 29)] {
            let t = 1_000 * (number * 2 + apic);
            text.exits(SENDER, 0, t, "APIC_WRITE");
            let sends = format!("kvm_apic_ipi dst {apic} vec 253 (Fixed|physical|assert|edge|dst)");
            text.event(SENDER, 0, t + 1, &sends);
            let accepts = format!("kvm_apic_accept_irq apicid {apic} vec 253 (Fixed|edge)");
            text.event(SENDER, 0, t + 2, &accepts);
            text.enters(SENDER, 0, t + 4);
            text.exits(target, cpu, t + us - 5, "EXTERNAL_INTERRUPT");
            text.event(target, cpu, t + us - 2, "kvm_inj_virq IRQ 0xfd");
            text.enters(target, cpu, t + us);
        }
    }
    let mut paths = Paths::new(vec![builtin("ipi")]);
    paths.nodes(nodes);
    let mut reports = text.walk_with(paths).reports();
    let report = reports.remove(0);
    assert_eq!(report.count, 20);
    report
}

/// Label, count and median in microseconds of each group.
fn groups(report: &PathReport) -> Vec<(&str, u64, u64)> {
    let groups = report.groups.iter();
    groups
        .map(|group| {
            let median = group.stats.percentile(0.5);
            (group.label.as_str(), group.stats.count(), median / 1000)
        })
        .collect()
}

#[test]
fn they_are_grouped_by_distance() {
    let report = ipis(&nodes([&[10, 21], &[21, 10]]));
    assert_eq!(report.by, Some("NUMA distance"));
    assert_eq!(
        groups(&report),
        [
            ("another NUMA node, distance 21", 10, 29),
            ("same NUMA node", 10, 20)
        ]
    );
    // perf.data has the nodes without their distances.
    let report = ipis(&nodes([&[], &[]]));
    assert_eq!(groups(&report)[0], ("another NUMA node", 10, 29));
}

#[test]
fn without_nodes_they_are_not_grouped() {
    let one = &nodes([&[10], &[10]])[..1];
    for nodes in [&[][..], one] {
        let report = ipis(nodes);
        assert_eq!((report.by, report.groups.len()), (None, 0));
    }
}
