//! Interrupts between vCPUs by how far their host CPUs are apart, of recordings made by hand, whose distances and times
//! are known.

use std::fmt::Write;
use std::path::Path;

use fixtures::{FixtureQuestion, write_text};
use serde_json::{Value, json};

/// CPUs 0 to 3 and 4 to 7.
const NODES: &str = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1 2 3\nnode 0 size: 2962 MB\nnode 1 cpus: 4 5 6 7\n\
                     node 1 size: 2962 MB\nnode distances:\nnode   0   1 \n  0:  10  21 \n  1:  21  10 \n";

/// How an interrupt shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentBy {
    /// The events of its path: that it is sent, and accepted.
    Path,
    /// The write of x2APIC's ICR alone, between exit and entry.
    Write,
}

/// Twenty interrupts from vCPU 0 on CPU 0 to three vCPUs each, all awake: vCPU 1 shares its CPU and takes 70 us, vCPU 2
/// is on the same node and takes 20 us, vCPU 3 is on the other one and takes 29 us.
fn recording(by: SentBy) -> String {
    let mut text = String::new();
    let mut event = |vcpu: u32, cpu: u32, us: u64, event: &str| {
        let (name, says) = event.split_once(' ').expect("an event");
        let (seconds, us) = (10 + us / 1_000_000, us % 1_000_000);
        let _ = writeln!(
            text,
            "       CPU {vcpu}/KVM-101{vcpu}   ( 1000) [{cpu:03}] {seconds:>5}.{us:06}: {name}: {says}"
        );
    };
    let cpus = [0, 0, 1, 4];
    let exit = |vcpu: u32, reason: &str| {
        format!("kvm_exit vcpu {vcpu} reason {reason} rip 0xffffffff81a17a0a info1 0x0 info2 0x0")
    };
    let entry = |vcpu: u32| format!("kvm_entry vcpu {vcpu}, rip 0xffffffff81a17a0b");
    for (vcpu, cpu) in (0..).zip(cpus) {
        event(vcpu, cpu, 1 + u64::from(vcpu), &entry(vcpu));
    }
    for number in 0..20 {
        for (vcpu, takes) in [(1u32, 70), (2, 20), (3, 29)] {
            let t = 1_000 * (1 + number * 3 + u64::from(vcpu));
            let cpu = cpus[vcpu as usize];
            event(0, 0, t, &exit(0, "MSR_WRITE"));
            match by {
                SentBy::Path => {
                    let sends =
                        format!("kvm_apic_ipi dst {vcpu} vec 253 (Fixed|physical|assert|edge|dst)");
                    event(0, 0, t + 1, &sends);
                    let accepts = format!("kvm_apic_accept_irq apicid {vcpu} vec 253 (Fixed|edge)");
                    event(0, 0, t + 2, &accepts);
                }
                SentBy::Write => event(
                    0,
                    0,
                    t + 1,
                    &format!("kvm_msr msr_write 830 = 0x{vcpu:x}000000fd"),
                ),
            }
            event(0, 0, t + 4, &entry(0));
            event(vcpu, cpu, t + takes - 5, &exit(vcpu, "EXTERNAL_INTERRUPT"));
            event(vcpu, cpu, t + takes - 2, "kvm_inj_virq IRQ 0xfd");
            event(vcpu, cpu, t + takes, &entry(vcpu));
        }
    }
    text
}

/// The document's part.
fn ipis(recording: &Path, facts: Option<&Path>) -> Value {
    let asked = FixtureQuestion::new();
    let asked = asked.beside(|beside| beside.facts.extend(facts.map(Path::to_owned)));
    asked.irqs_document(recording).expect("interrupts")["ipis"].clone()
}

/// What a row has to say.
fn row(apart: &str, node_distance: Option<u32>, count: u64, times_us: [u64; 3]) -> Value {
    let [p50, p99, max] = times_us.map(|us| us * 1_000);
    json!({
        "apart": apart, "node_distance": node_distance, "count": count, "halted": 0, "p50_ns": p50, "p99_ns": p99,
        "max_ns": max,
    })
}

#[test]
fn each_distance_has_its_own_times() {
    let folder = tempfile::tempdir().expect("a folder");
    let nodes = write_text(folder.path(), "numactl.txt", NODES);
    for by in [SentBy::Path, SentBy::Write] {
        let trace = write_text(folder.path(), "trace.txt", &recording(by));
        let found = ipis(&trace, Some(&nodes));
        assert_eq!(found["numa_nodes_known"], true, "{by:?}");
        assert_eq!(
            found["by_distance"],
            json!([
                row("same_cpu", None, 20, [70; 3]),
                row("same_node", None, 20, [20; 3]),
                row("other_node", Some(21), 20, [29; 3]),
            ]),
            "{by:?}"
        );
    }
}

#[test]
fn without_nodes_only_the_same_cpu_is_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = write_text(folder.path(), "trace.txt", &recording(SentBy::Path));
    let found = ipis(&trace, None);
    assert_eq!(found["numa_nodes_known"], false);
    assert_eq!(
        found["by_distance"],
        json!([
            row("same_cpu", None, 20, [70; 3]),
            row("not_recorded", None, 40, [20, 29, 29]),
        ])
    );
}
