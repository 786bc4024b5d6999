//! Where threads may run: pins, topology, two VMs on one CPU.

use std::collections::BTreeMap;

use cpuset::CpuSet;
use domain::Domain;
use facts::{Facts, Host};

use super::remark::{BY_LOAD, DefinitionRemark, MOST, RemarkKind, SELDOM, in_form};
use crate::RecordNeeds::{Exits, Sched};

const NO_RESTART: &str =
    "None but that of a CPU: virsh vcpupin and emulatorpin change it while the guest runs.";
const LIBVIRT: &str = "libvirt, docs/formatdomain.rst (CPU Tuning)";

pub(super) static SHARED_CPU: RemarkKind = RemarkKind {
    id: "vcpus-share-cpu",
    why: "Two vCPUs on one CPU take turns: one waits while the other runs, though other CPUs may be idle, and a lock \
        that the waiting one holds is held for as long.",
    price: NO_RESTART,
    refuted_by: "A recording in which these vCPUs do not wait for a CPU (trapline vcpus: runnable).",
    confidence: MOST,
    record: &[Exits, Sched],
    sources: &[LIBVIRT],
};

pub(super) static PARTLY_PINNED: RemarkKind = RemarkKind {
    id: "vcpus-partly-pinned",
    why: "A vCPU that is not pinned may be put on a CPU that another one is pinned to.",
    price: NO_RESTART,
    refuted_by: "A recording in which no vCPU waits behind another (vcpu-preempted finds nothing).",
    confidence: SELDOM,
    record: &[Exits, Sched],
    sources: &[LIBVIRT],
};

pub(super) static VMM_BESIDE: RemarkKind = RemarkKind {
    id: "vmm-on-vcpu-cpus",
    why: "The VMM's main thread and its workers take a vCPU's CPU when they have something to do.",
    price: NO_RESTART,
    refuted_by: "A recording in which vCPUs do not wait behind threads of the VMM (vcpu-preempted finds nothing).",
    confidence: BY_LOAD,
    record: &[Exits, Sched],
    sources: &[LIBVIRT],
};

pub(super) static OFFLINE: RemarkKind = RemarkKind {
    id: "pinned-to-offline-cpu",
    why: "A thread cannot run on a CPU that is not online: libvirt refuses to start the guest, or it runs elsewhere.",
    price: NO_RESTART,
    refuted_by: "Newer facts in which these CPUs are online.",
    confidence: MOST,
    record: &[Sched],
    sources: &["sched_setaffinity(2)"],
};

pub(super) static NODES: RemarkKind = RemarkKind {
    id: "vcpus-over-numa-nodes",
    why: "Memory of another node is farther away, and a guest that sees one node cannot keep tasks beside their \
        memory.",
    price: "With all vCPUs on one node, its CPUs and memory have to suffice. The guest has to be restarted for \
        <numa>.",
    refuted_by: "The guest's memory lies on the node of its vCPUs (numastat -p PID).",
    confidence: BY_LOAD,
    record: &[Exits, Sched],
    sources: &["libvirt, docs/formatdomain.rst (Guest NUMA Topology, NUMA Node Tuning)"],
};

pub(super) static SIBLINGS: RemarkKind = RemarkKind {
    id: "vcpus-on-hyperthreads",
    why: "Hyperthreads share their core. A guest that takes each for a core puts two busy tasks on one while another \
        core is idle.",
    price: "The guest has to be restarted; licences by sockets or cores may count differently.",
    refuted_by: "A guest whose vCPUs are seldom busy at the same time.",
    confidence: BY_LOAD,
    record: &[Exits, Sched],
    sources: &["libvirt, docs/formatdomain.rst (CPU model and topology)"],
};

pub(super) static ISOLATION: RemarkKind = RemarkKind {
    id: "vcpus-partly-isolated",
    why: "On CPUs that are not isolated the scheduler puts other tasks too: these vCPUs wait where the others do \
        not.",
    price: "Isolated CPUs are the host's no more.",
    refuted_by: "A recording in which no vCPU waits for its CPU.",
    confidence: SELDOM,
    record: &[Exits, Sched],
    sources: &["Linux, Documentation/admin-guide/kernel-parameters.txt (isolcpus=)"],
};

pub(super) static TWO_VMS: RemarkKind = RemarkKind {
    id: "vms-share-cpu",
    why: "vCPUs of two VMs that may only run on the same CPUs take turns there when both are busy; pins keep the \
        scheduler from moving one away.",
    price: NO_RESTART,
    refuted_by: "A recording of the host in which vCPUs of neither VM wait behind the other's (vcpu-preempted names \
        who).",
    confidence: BY_LOAD,
    record: &[Exits, Sched],
    sources: &[LIBVIRT, "sched_setaffinity(2)"],
};

/// CPUs that one vCPU alone is pinned to.
fn single_pins(domain: &Domain) -> BTreeMap<u32, u32> {
    let vcpus = 0..domain.vcpus.unwrap_or(0).min(cpuset::MAX_CPU);
    // The pins may have stood behind where a definition is cut off.
    let cpus = |vcpu: u32| match domain.is_part() {
        true => domain.vcpu_pins.get(&vcpu),
        false => domain.vcpu_cpus(vcpu),
    };
    let single = |vcpu: u32| Some((vcpu, cpus(vcpu)?.single()?));
    vcpus.filter_map(single).collect()
}

pub(super) fn pins(domain: &Domain, out: &mut Vec<DefinitionRemark>) {
    let pins = single_pins(domain);
    let vcpus = domain.vcpus.unwrap_or(0);
    let own = in_form(
        domain,
        "Give each vCPU a CPU of its own (<vcpupin>).",
        "Give each vCPU's thread a CPU of its own (taskset, or libvirt's <vcpupin>).",
        "Widen affinity: to as many CPUs as the VM has vCPUs.",
    );
    let mut by_cpu: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (vcpu, cpu) in &pins {
        by_cpu.entry(*cpu).or_default().push(*vcpu);
    }
    for (cpu, shared) in by_cpu.iter().filter(|(_, vcpus)| vcpus.len() > 1) {
        let list: CpuSet = shared.iter().copied().collect();
        let what =
            format!("vCPUs {list} are pinned to the same CPU {cpu}: they wait for each other.");
        out.push(SHARED_CPU.remark(domain, what, own));
    }
    if vcpus > 0 && !pins.is_empty() && pins.len() < vcpus as usize {
        let what = format!(
            "{} of {vcpus} vCPUs are pinned to a CPU of their own, and the others are not.",
            pins.len()
        );
        out.push(PARTLY_PINNED.remark(domain, what, "Pin all vCPUs (<vcpupin>), or none."));
    }
    let used: CpuSet = pins.values().copied().collect();
    let apart = "Give the VMM's threads CPUs of their own (<emulatorpin>).";
    match domain.emulator_cpus() {
        Some(emulator) if emulator.intersects(&used) => {
            let shared: CpuSet = emulator.iter().filter(|cpu| used.contains(*cpu)).collect();
            let what = format!(
                "The VMM's own threads may run on CPUs {shared}, which vCPUs are pinned to: they take turns there."
            );
            out.push(VMM_BESIDE.remark(domain, what, apart));
        }
        None if !used.is_empty() => {
            let what = "vCPUs are pinned and the VMM's own threads are not (<emulatorpin>): they may run on the \
                        vCPUs' CPUs.";
            out.push(VMM_BESIDE.remark(domain, what, apart));
        }
        _ => {}
    }
}

pub(super) fn topology(domain: &Domain, host: &Host, out: &mut Vec<DefinitionRemark>) {
    let pins = single_pins(domain);
    let used: CpuSet = pins.values().copied().collect();
    if let Some(online) = &host.online {
        let off: CpuSet = used.iter().filter(|cpu| !online.contains(*cpu)).collect();
        if !off.is_empty() {
            let what = format!(
                "vCPUs are pinned to CPUs {off}, which the host does not have online ({online})."
            );
            out.push(OFFLINE.remark(
                domain,
                what,
                "Pin to CPUs that are online, or bring them online.",
            ));
        }
    }
    nodes(domain, host, &used, out);
    let siblings = host.cpus.iter().filter(|cpu| used.contains(cpu.cpu));
    let shared = siblings
        .filter(|cpu| {
            cpu.siblings
                .iter()
                .any(|other| other != cpu.cpu && used.contains(other))
        })
        .count();
    let threads = domain
        .topology
        .as_ref()
        .and_then(|topology| topology.threads);
    if shared > 0 && threads.unwrap_or(1) < 2 {
        let what = "vCPUs are pinned to hyperthreads of one core, and the guest sees each as a core of its own \
                    (<topology threads='2'/> would say so).";
        let change = "Say in <topology> which vCPUs are threads of one core, or pin each to a core of its own.";
        out.push(SIBLINGS.remark(domain, what, change));
    }
    if let Some(isolated) = host.isolated.as_ref().filter(|set| !set.is_empty()) {
        let loose: CpuSet = used.iter().filter(|cpu| !isolated.contains(*cpu)).collect();
        if !loose.is_empty() && used.intersects(isolated) {
            let what = format!(
                "Some vCPUs are pinned to isolated CPUs ({isolated}), others to {loose}, which are not."
            );
            out.push(ISOLATION.remark(domain, what, "Pin all vCPUs to isolated CPUs, or none."));
        }
    }
}

/// NUMA nodes of the host, against the pins and the memory.
fn nodes(domain: &Domain, host: &Host, used: &CpuSet, out: &mut Vec<DefinitionRemark>) {
    let on = |node: &&facts::HostNode| used.intersects(&node.cpus);
    let nodes: Vec<u32> = host.nodes.iter().filter(on).map(|node| node.node).collect();
    let one_node = "Pin to CPUs of one node, or show the guest the nodes (<numa> with <numatune>).";
    if nodes.len() > 1 && domain.cells.len() < 2 {
        let what = format!(
            "vCPUs are pinned to CPUs of the NUMA nodes {nodes:?}, and the guest sees only one node (<numa>): it \
             cannot place its memory."
        );
        out.push(NODES.remark(domain, what, one_node));
    }
    let memory = domain
        .numa_memory
        .as_ref()
        .and_then(|memory| memory.nodeset.as_ref());
    if let ([node], Some(memory)) = (nodes.as_slice(), memory)
        && !memory.contains(*node)
    {
        let what =
            format!("vCPUs are pinned to NUMA node {node}, and memory comes from node {memory}.");
        out.push(NODES.remark(
            domain,
            what,
            "Take the memory from the vCPUs' node (<numatune>).",
        ));
    }
    let largest = host.nodes.iter().map(|node| node.cpus.iter().count()).max();
    let vcpus = domain.vcpus.unwrap_or(0) as usize;
    if let Some(largest) = largest
        && host.nodes.len() > 1
        && vcpus > largest
        && nodes.is_empty()
        && domain.cells.len() < 2
    {
        let what = format!(
            "The guest has {vcpus} vCPUs, no NUMA node of the host has more than {largest} CPUs, and the guest sees \
             only one node."
        );
        let change = in_form(
            domain,
            "Show the guest as many nodes as it runs on (<numa> in <cpu>, <numatune>).",
            "Show the guest as many nodes as it runs on (-numa node,cpus=...,memdev=...).",
            "Set numa: 1 and as many sockets as nodes, or numa0:, numa1: with hostnodes=.",
        );
        out.push(NODES.remark(domain, what, change));
    }
}

/// Definitions with pins that are held against each other; a file can have more, which are left out.
const MAX_BESIDE: usize = 64;

/// Where a domain's vCPUs may run.
struct PlacedVcpus<'d> {
    domain: &'d Domain,
    vcpus: u32,
    /// CPUs that single vCPUs are pinned to.
    pins: CpuSet,
    /// All CPUs that they may run on; `None` where some may run on any.
    all: Option<CpuSet>,
}

impl<'d> PlacedVcpus<'d> {
    /// Returns where vCPUs may run; `None` where the definition does not say.
    fn of(domain: &'d Domain) -> Option<PlacedVcpus<'d>> {
        let vcpus = domain.vcpus.filter(|count| *count > 0)?;
        let own = domain.vcpu_pins.range(0..vcpus);
        let unpinned = own.clone().count() < vcpus as usize;
        let mut all = CpuSet::new();
        let sets = own.map(|(_, cpus)| cpus);
        for (first, last) in sets.chain(&domain.vcpu_cpuset).flat_map(CpuSet::ranges) {
            all.insert_range(*first, *last);
        }
        let anywhere = unpinned && (domain.vcpu_cpuset.is_none() || domain.is_part());
        let pins: CpuSet = single_pins(domain).values().copied().collect();
        (!pins.is_empty() || !anywhere).then_some(PlacedVcpus {
            domain,
            vcpus,
            pins,
            all: (!anywhere).then_some(all),
        })
    }

    /// Says which CPUs two domains have to share; `None` where they need not.
    fn shared(&self, other: &PlacedVcpus<'_>) -> Option<String> {
        let (name, others) = (&self.domain.name, &other.domain.name);
        if self.pins.intersects(&other.pins) {
            let both: CpuSet = self
                .pins
                .iter()
                .filter(|cpu| other.pins.contains(*cpu))
                .collect();
            return Some(format!(
                "{name} and {others} have vCPUs that are pinned to the same CPUs {both}."
            ));
        }
        let (set, their) = (self.all.as_ref()?, other.all.as_ref()?);
        let mut union = set.clone();
        for (first, last) in their.ranges() {
            union.insert_range(*first, *last);
        }
        let vcpus = self.vcpus.saturating_add(other.vcpus);
        let few = vcpus as usize > union.len();
        (few && set.intersects(their)).then(|| {
            format!("{name} and {others} have {vcpus} vCPUs together, which may only run on the CPUs {union}.")
        })
    }
}

/// Two definitions whose vCPUs have CPUs in common.
pub(super) fn between(domains: &[&Domain], out: &mut Vec<DefinitionRemark>) {
    let placed = domains.iter().filter_map(|domain| PlacedVcpus::of(domain));
    let placed: Vec<PlacedVcpus<'_>> = placed.take(MAX_BESIDE).collect();
    for (at, one) in placed.iter().enumerate() {
        for other in placed.iter().skip(at + 1) {
            let same = one.domain.name == other.domain.name && one.domain.uuid == other.domain.uuid;
            if !same && let Some(what) = one.shared(other) {
                out.push(TWO_VMS.remark(one.domain, what, "Pin the two VMs to different CPUs."));
            }
        }
    }
}

/// A VM of the host, as facts have it, whose vCPUs are on this one's CPUs.
pub(super) fn beside(domain: &Domain, facts: &Facts, out: &mut Vec<DefinitionRemark>) {
    let used: CpuSet = single_pins(domain).values().copied().collect();
    for vm in &facts.vms {
        let name = vm.name.as_deref().unwrap_or("another VM");
        let same_name = vm.name.as_deref() == Some(domain.name.as_str());
        if same_name || (vm.uuid.is_some() && vm.uuid == domain.uuid) {
            continue;
        }
        let single = vm
            .vcpus
            .iter()
            .filter_map(|vcpu| vcpu.affinity.as_ref()?.single());
        let both: CpuSet = single.filter(|cpu| used.contains(*cpu)).collect();
        if !both.is_empty() {
            let what = format!(
                "vCPUs are pinned to the CPUs {both}, which vCPUs of {name} are pinned to as well."
            );
            out.push(TWO_VMS.remark(domain, what, "Pin the two VMs to different CPUs."));
        }
    }
}
