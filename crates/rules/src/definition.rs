//! What a guest's definition says that may cost time, by itself and against the host's topology. These are remarks and
//! no findings: nothing here has been measured.

use std::collections::BTreeMap;

use cpuset::CpuSet;
use domain::{Domain, GuestOs};
use facts::Host;

/// Returns remarks, a full sentence each.
pub fn remarks(domain: &Domain, host: Option<&Host>) -> Vec<String> {
    let mut out = Vec::new();
    pins(domain, &mut out);
    if let Some(host) = host {
        topology(domain, host, &mut out);
    }
    clocks(domain, &mut out);
    devices(domain, &mut out);
    memory(domain, host, &mut out);
    out
}

/// CPUs that one vCPU alone is pinned to.
fn single_pins(domain: &Domain) -> BTreeMap<u32, u32> {
    let vcpus = 0..domain.vcpus.unwrap_or(0).min(cpuset::MAX_CPU);
    let single = |vcpu: u32| Some((vcpu, domain.vcpu_cpus(vcpu)?.single()?));
    vcpus.filter_map(single).collect()
}

fn pins(domain: &Domain, out: &mut Vec<String>) {
    let pins = single_pins(domain);
    let vcpus = domain.vcpus.unwrap_or(0);
    let mut by_cpu: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (vcpu, cpu) in &pins {
        by_cpu.entry(*cpu).or_default().push(*vcpu);
    }
    for (cpu, shared) in by_cpu.iter().filter(|(_, vcpus)| vcpus.len() > 1) {
        let list: CpuSet = shared.iter().copied().collect();
        out.push(format!(
            "vCPUs {list} are pinned to the same CPU {cpu}: they wait for each other."
        ));
    }
    if vcpus > 0 && !pins.is_empty() && pins.len() < vcpus as usize {
        out.push(format!(
            "{} of {vcpus} vCPUs are pinned to a CPU of their own, and the others are not.",
            pins.len()
        ));
    }
    let used: CpuSet = pins.values().copied().collect();
    match domain.emulator_cpus() {
        Some(emulator) if emulator.intersects(&used) => {
            let shared: CpuSet = emulator.iter().filter(|cpu| used.contains(*cpu)).collect();
            out.push(format!(
                "The VMM's own threads may run on CPUs {shared}, which vCPUs are pinned to: they take turns there."
            ));
        }
        None if !used.is_empty() => out.push(
            "vCPUs are pinned and the VMM's own threads are not (<emulatorpin>): they may run on the vCPUs' CPUs."
                .to_owned(),
        ),
        _ => {}
    }
}

fn topology(domain: &Domain, host: &Host, out: &mut Vec<String>) {
    let pins = single_pins(domain);
    let used: CpuSet = pins.values().copied().collect();
    if let Some(online) = &host.online {
        let off: CpuSet = used.iter().filter(|cpu| !online.contains(*cpu)).collect();
        if !off.is_empty() {
            out.push(format!(
                "vCPUs are pinned to CPUs {off}, which the host does not have online ({online})."
            ));
        }
    }
    let on = |nodes: &facts::HostNode| used.intersects(&nodes.cpus);
    let nodes: Vec<u32> = host
        .nodes
        .iter()
        .filter(|node| on(node))
        .map(|node| node.node)
        .collect();
    if nodes.len() > 1 && domain.cells.len() < 2 {
        out.push(format!(
            "vCPUs are pinned to CPUs of the NUMA nodes {nodes:?}, and the guest sees only one node (<numa>): it \
             cannot place its memory."
        ));
    }
    let memory = domain
        .numa_memory
        .as_ref()
        .and_then(|memory| memory.nodeset.as_ref());
    if let ([node], Some(memory)) = (nodes.as_slice(), memory)
        && !memory.contains(*node)
    {
        out.push(format!(
            "vCPUs are pinned to NUMA node {node}, and memory comes from node {memory}."
        ));
    }
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
        out.push(
            "vCPUs are pinned to hyperthreads of one core, and the guest sees each as a core of its own \
             (<topology threads='2'/> would say so)."
                .to_owned(),
        );
    }
    if let Some(isolated) = host.isolated.as_ref().filter(|set| !set.is_empty()) {
        let loose: CpuSet = used.iter().filter(|cpu| !isolated.contains(*cpu)).collect();
        if !loose.is_empty() && used.intersects(isolated) {
            out.push(format!("Some vCPUs are pinned to isolated CPUs ({isolated}), others to {loose}, which are not."));
        }
    }
}

fn clocks(domain: &Domain, out: &mut Vec<String>) {
    let present = |name: &str| domain.timer(name).and_then(|timer| timer.present);
    if domain.os == GuestOs::Windows {
        if present("hypervclock") != Some(true) {
            out.push(
                "The guest is Windows and has no Hyper-V clock (<timer name='hypervclock' \
                present='yes'/>)."
                    .to_owned(),
            );
        }
        let missing: Vec<&str> = ["vpindex", "synic", "stimer"]
            .into_iter()
            .filter(|name| domain.hyperv_on(name) != Some(true))
            .collect();
        if !missing.is_empty() {
            out.push(format!(
                "The guest is Windows and has no Hyper-V {}, which its timers need.",
                missing.join(", ")
            ));
        }
    }
    if present("hpet") == Some(true) {
        out.push(
            "The guest has an HPET: where it is used as the clock, each read is an exit."
                .to_owned(),
        );
    }
    if present("kvmclock") == Some(false) {
        out.push("The guest has no kvmclock.".to_owned());
    }
}

fn devices(domain: &Domain, out: &mut Vec<String>) {
    for interface in &domain.interfaces {
        let name = interface
            .target
            .as_deref()
            .or(interface.mac.as_deref())
            .unwrap_or("?");
        match interface.model.as_deref() {
            Some(model) if !model.starts_with("virtio") && interface.kind != "hostdev" => out.push(format!(
                "Interface {name} is an emulated {model}: each access of its registers is an exit to the VMM."
            )),
            _ => {}
        }
        if interface.driver.as_deref() == Some("qemu") {
            out.push(format!("Interface {name} has its back end in QEMU (<driver name='qemu'/>), not in the kernel."));
        }
    }
    let disks = domain
        .disks
        .iter()
        .filter(|disk| disk.device == "disk" || disk.device == "lun");
    for disk in disks {
        let name = disk.target.as_deref().unwrap_or("?");
        match disk.bus.as_deref() {
            Some("virtio" | "scsi") => {}
            Some(bus) => out.push(format!(
                "Disk {name} is on an emulated {bus} bus: each access of its controller is an exit to the VMM."
            )),
            None => {}
        }
        let direct = matches!(disk.cache.as_deref(), Some("none" | "directsync"));
        if disk.io.as_deref() == Some("native") && !direct {
            out.push(format!(
                "Disk {name} has io='native' without a direct cache mode: requests that are not cached block the VMM's \
                 thread."
            ));
        }
        if disk.bus.as_deref() == Some("virtio")
            && disk.iothread.is_none()
            && domain.iothreads.is_some()
        {
            out.push(format!(
                "Disk {name} uses none of the iothreads that are defined."
            ));
        }
    }
}

fn memory(domain: &Domain, host: Option<&Host>, out: &mut Vec<String>) {
    let never = host.and_then(|host| host.thp.as_deref()) == Some("never");
    if never && domain.memory_backing.hugepages.is_none() {
        out.push(
            "The guest's memory has no huge pages, and the host's transparent ones are off."
                .to_owned(),
        );
    }
    if matches!(domain.cpu_mode.as_deref(), Some("custom") | None)
        && domain.kind == "kvm"
        && domain.arch.as_deref() != Some("aarch64")
    {
        let model = domain.cpu_model.as_deref().unwrap_or("the default");
        out.push(format!(
            "The guest's CPU is {model}, not the host's (<cpu mode='host-passthrough'/> or 'host-model'): it may not \
             have what makes exits rare, such as an invariant TSC."
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::remarks;

    fn of(inner: &str, host: Option<&facts::Host>) -> String {
        let text = format!("<domain type='kvm'><name>a</name><vcpu>2</vcpu>{inner}</domain>");
        let (domain, _) = domain::parse(&text).expect("a domain");
        remarks(&domain, host).join("\n")
    }

    #[test]
    fn a_plain_definition_is_remarked_on_where_it_costs() {
        assert_eq!(of("<cpu mode='host-passthrough'/>", None), "");
        let shared = "<cpu mode='host-passthrough'/><cputune><vcpupin vcpu='0' cpuset='3'/>\
                      <vcpupin vcpu='1' cpuset='3'/><emulatorpin cpuset='0-3'/></cputune>";
        let text = of(shared, None);
        assert!(
            text.contains("vCPUs 0-1 are pinned to the same CPU 3"),
            "{text}"
        );
        assert!(text.contains("may run on CPUs 3"), "{text}");
    }

    #[test]
    fn pins_are_held_against_the_topology() {
        let set = |text: &str| text.parse::<cpuset::CpuSet>().expect("CPUs");
        let cpu = |cpu: u32, siblings: &str| facts::HostCpu {
            cpu,
            siblings: set(siblings),
            ..facts::HostCpu::default()
        };
        let node = |node: u32, cpus: &str| facts::HostNode {
            node,
            cpus: set(cpus),
            ..facts::HostNode::default()
        };
        let host = facts::Host {
            online: Some(set("0-3")),
            cpus: vec![cpu(0, "0,2"), cpu(1, "1,3"), cpu(2, "0,2"), cpu(3, "1,3")],
            nodes: vec![node(0, "0,2"), node(1, "1,3")],
            ..facts::Host::default()
        };
        let pins = |a: u32, b: u32| {
            format!(
                "<cpu mode='host-passthrough'/><cputune><vcpupin vcpu='0' cpuset='{a}'/>\
                 <vcpupin vcpu='1' cpuset='{b}'/><emulatorpin cpuset='9'/></cputune>"
            )
        };
        assert!(of(&pins(0, 1), Some(&host)).contains("NUMA nodes [0, 1]"));
        assert!(of(&pins(0, 2), Some(&host)).contains("hyperthreads of one core"));
        assert!(of(&pins(0, 7), Some(&host)).contains("CPUs 7, which the host does not have"));
    }
}
