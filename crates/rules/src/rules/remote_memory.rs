//! vCPUs run on one NUMA node, and their guest's memory lies on others.

use std::collections::BTreeMap;

use facts::{HostNode, ReportedVm};

use crate::evidence::{Evidence, Id, Ns, Of, says};
use crate::{
    Case, EvidenceNumber, Finding, RecordNeeds, Remedy, RestsOn, Rule, RuleLook, Severity, Verdict,
};

/// Share of a VM's time in its guest that its vCPUs ran on one node: on several nodes, memory lies on several too.
const THERE: f64 = 0.75;
/// Share of the VM's memory on that node, below which most accesses go elsewhere.
const MEMORY: f64 = 0.5;
/// The same, below which nearly all do.
const LITTLE: f64 = 0.25;
/// Pages that NUMA balancing moved during the recording, as a share of the VM's memory: it follows.
const FOLLOWS: f64 = 0.01;
/// Of a shorter time in the guest nothing is concluded.
const LEAST_NS: u64 = 10_000_000;

pub(crate) static RULE: Rule = Rule {
    id: "remote-memory",
    title: "vCPUs run on another NUMA node than their memory",
    described_as: &[
        "the guest's memory is on the other NUMA node, numastat",
        "slower on some starts of the VM, the same otherwise",
        "memory bandwidth of the VM is half of the host's",
        "no numatune, vCPUs pinned to one socket",
    ],
    looks_at: "on which CPUs, and so on which NUMA nodes, vCPUs ran their guests, and where the VM's memory lies",
    needs: "kvm_entry and kvm_exit with CPUs; of the host (`trapline facts`, or `numactl -H` and `numastat -p PID`) \
        the nodes and the VM's memory on each",
    record: &[RecordNeeds::Exits],
    measures: &[],
    cause: "Memory of another node is reached through the link between the sockets: each miss of the caches takes half \
        as long again or twice as long, and the link's bandwidth is less. A guest that is not shown the nodes cannot \
        avoid it.",
    found: &[
        "{there} of the time in the guest, or more, was on one node, and less than {memory} of the VM's memory lies \
         there. Confidence 0.4, `low`; less than {little} of it: 0.5, `medium`. It is not more: what it costs is in no \
         event (perf stat counts node-load-misses), and a guest that works in its caches loses nothing.",
        "Not where the memory is interleaved over nodes, which somebody wished, where the host has one node, and where \
         NUMA balancing moved {follows} of the VM's memory or more during the recording: memory follows.",
    ],
    limits: &[
        ("there", EvidenceNumber::Share(THERE)),
        ("memory", EvidenceNumber::Share(MEMORY)),
        ("little", EvidenceNumber::Share(LITTLE)),
        ("follows", EvidenceNumber::Share(FOLLOWS)),
    ],
    seen_from: "{there} of the vCPUs' time in the guest on a node that has less than {memory} of the memory",
    unknown: "*exits*, and *facts* with the nodes and the VM's memory on each: `trapline facts` as root.",
    advice: "",
    looks_alike: "vCPUs that move over nodes all the time ([vcpu-migrates](#vcpu-migrates)) have some of their memory \
        near them wherever they are.",
    remedies: &[
        Remedy {
            what: "Take the memory from the vCPUs' node, and pin them to its CPUs: <numatune> with a strict nodeset, \
                and <vcpupin> in <cputune>; of a guest that is larger than a node, show it the nodes and place each \
                with <memnode>.",
            price: "The VM has to be started again, and the node needs as much free memory.",
            unless: "The VM is larger than a node and the guest is not shown the nodes: then interleave.",
            check: "numastat -p PID: most of the memory is on the vCPUs' node; perf stat -e node-load-misses.",
        },
        Remedy {
            what: "Move it while it runs: migratepages PID FROM TO (of numactl), or pin the vCPUs to the node that has \
                the memory (virsh vcpupin).",
            price: "Moving takes a second for each some gigabytes, in which the guest is slower.",
            unless: "The memory is locked, or in huge pages of which the other node has none: it cannot move.",
            check: "numastat -p PID, and trapline diagnose of a new recording with new facts.",
        },
        Remedy {
            what: "If nothing is pinned, let the kernel move memory to whoever uses it: sysctl \
                kernel.numa_balancing=1.",
            price: "It unmaps pages to see who uses them: faults, each an exit of the guest.",
            unless: "vCPUs are pinned and huge pages set aside: there is nothing that it could move.",
            check: "numa_pages_migrated of /proc/vmstat grows, then stops.",
        },
    ],
    sources: &[
        "Linux, Documentation/admin-guide/mm/numa_memory_policy.rst; fs/proc/task_mmu.c (numa_maps)",
        "libvirt, docs/formatdomain.rst (NUMA Node Tuning); numactl, numastat(8), migratepages(8)",
    ],
    explains: &[],
    look: RuleLook::Case(look),
};

/// Where one VM runs, and where its memory lies.
struct Placement<'a> {
    vm: &'a ReportedVm,
    /// Time in the guest by node, nanoseconds.
    ran: BTreeMap<u32, u64>,
    ran_ns: u64,
    memory_bytes: u64,
}

impl Placement<'_> {
    /// Returns the node on which most of the time was, and its time.
    fn main(&self) -> Option<(u32, u64)> {
        let most = self.ran.iter().max_by_key(|(_, ns)| **ns)?;
        Some((*most.0, *most.1))
    }

    fn bytes_on(&self, node: u32) -> u64 {
        self.vm.node_bytes.get(&node).copied().unwrap_or(0)
    }

    /// Returns whether it is far from its memory, and how much of it is near.
    fn near(&self) -> Option<f64> {
        let (node, ns) = self.main()?;
        let share = self.bytes_on(node) as f64 / self.memory_bytes as f64;
        let mostly = ns as f64 >= self.ran_ns as f64 * THERE;
        (mostly && share < MEMORY).then_some(share)
    }
}

fn look(case: &Case<'_>) -> Verdict {
    let unknown = |what: &str| Verdict::Unknown(what.to_owned());
    // perf.data says how many nodes there are, and not where the VM's memory is.
    let recorded = &case.picture.about.nodes;
    let with_memory = recorded.iter().filter(|node| node.memory_bytes != Some(0));
    if with_memory.count() == 1 {
        return Verdict::Clear;
    }
    let Some(host) = case.host().filter(|host| !host.nodes.is_empty()) else {
        return unknown(
            "Give the host's NUMA nodes and the VM's memory on each: --facts with 'trapline facts', or with numactl -H \
             and numastat -p PID.",
        );
    };
    if host
        .nodes
        .iter()
        .filter(|node| node.memory_bytes != Some(0))
        .count()
        < 2
    {
        return Verdict::Clear;
    }
    let ran = |row: &analysis::MovesRow| !row.guest_ns.is_empty();
    if !case.picture.moves.iter().any(ran) {
        return unknown("Record kvm:kvm_exit and kvm:kvm_entry.");
    }
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let placed = placements(case, &host.nodes);
    if placed.is_empty() {
        return unknown(
            "Give the VM's memory by NUMA node: --facts with 'trapline facts' as root, or with numastat -p PID.",
        );
    }
    let moved = case
        .counted_during("vmstat.numa_pages_migrated")
        .unwrap_or(0);
    let far = placed.iter().filter_map(|one| {
        // Pages of other processes are counted with it: no VM is blamed for what may be its own.
        let follows = moved.saturating_mul(4096) as f64 >= one.memory_bytes as f64 * FOLLOWS;
        let interleaved = one
            .vm
            .memory_policy
            .as_deref()
            .is_some_and(|policy| policy.contains("interleave"));
        let near = one.near().filter(|_| !follows && !interleaved)?;
        Some((one, near))
    });
    match far.min_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((one, near)) => say(case, one, near),
        None => Verdict::Clear,
    }
}

/// Returns the VMs of which both is known.
fn placements<'a>(case: &Case<'a>, nodes: &[HostNode]) -> Vec<Placement<'a>> {
    let node_of = |cpu: u32| {
        nodes
            .iter()
            .find(|node| node.cpus.contains(cpu))
            .map(|node| node.node)
    };
    let vms = case.facts.iter().flat_map(|facts| &facts.vms);
    let placed = vms.filter_map(|vm| {
        let mut ran: BTreeMap<u32, u64> = BTreeMap::new();
        let recorded = case
            .vms()
            .iter()
            .find(|one| one.pid.is_some() && one.pid == vm.pid);
        let tids: Vec<i32> = match recorded {
            Some(one) => one.vcpus.iter().map(|vcpu| vcpu.tid).collect(),
            None => vm.vcpus.iter().map(|vcpu| vcpu.tid).collect(),
        };
        for row in case
            .picture
            .moves
            .iter()
            .filter(|row| tids.contains(&row.tid))
        {
            for (cpu, ns) in &row.guest_ns {
                let sum = ran.entry(node_of(*cpu)?).or_default();
                *sum = sum.saturating_add(*ns);
            }
        }
        let ran_ns = ran.values().copied().fold(0, u64::saturating_add);
        let memory_bytes = vm.node_bytes.values().copied().fold(0, u64::saturating_add);
        (ran_ns >= LEAST_NS && memory_bytes > 0).then_some(Placement {
            vm,
            ran,
            ran_ns,
            memory_bytes,
        })
    });
    placed.collect()
}

fn say(case: &Case<'_>, one: &Placement<'_>, near: f64) -> Verdict {
    let Some((node, ns)) = one.main() else {
        return Verdict::Clear;
    };
    let name = one.vm.name.clone().unwrap_or_else(|| "the VM".to_owned());
    let little = near < LITTLE;
    let confidence = if little { 0.5 } else { 0.4 };
    let mut finding = Finding::new(&RULE, confidence)
        .rests_on(RestsOn::Times)
        .title(format!(
            "{} ran on NUMA node {node}, and {} of its memory lies on others",
            words::capital(&name),
            words::share::tenths(1.0 - near)
        ))
        .evidence(says!(
            "{name} was in its guest on node {node} for {time} of {all} ({share}).",
            name = words::capital(&name),
            node = Id(u64::from(node)),
            time = Ns(ns),
            all = Ns(one.ran_ns),
            share = Of(ns, one.ran_ns),
        ));
    let lies: Vec<Evidence> = (one.vm.node_bytes.iter())
        .map(|(node, bytes)| {
            says!(
                "{share} on node {node}",
                share = Of(*bytes, one.memory_bytes),
                node = Id(u64::from(*node)),
            )
        })
        .collect();
    finding = finding.evidence(
        says!("Of its memory lie ")
            .then(Evidence::join(lies))
            .then(says!(".")),
    );
    if let Some(policy) = &one.vm.memory_policy {
        finding = finding.evidence(says!(
            "The policy of its largest mapping is {policy}.",
            policy = policy.as_str()
        ));
    }
    if let Some(faults) = case.counted_during("vmstat.numa_hint_faults") {
        finding = finding.evidence(says!(
            "NUMA balancing took {faults} faults on the whole host meanwhile, and moved {pages} pages.",
            faults = faults,
            pages = case.counted_during("vmstat.numa_pages_migrated").unwrap_or(0),
        ));
    }
    finding = finding.evidence(
        "What that costs was not measured: it depends on how often the guest misses its caches (perf stat -e \
         node-loads,node-load-misses on the vCPUs' CPUs).",
    );
    if case.host().and_then(|host| host.numa_balancing) == Some(true) {
        finding = finding.only(&[0, 1]);
    }
    (finding.at_least, finding.at_most) = match little {
        true => (Severity::Medium, Severity::Medium),
        false => (Severity::Low, Severity::Low),
    };
    finding.found()
}
