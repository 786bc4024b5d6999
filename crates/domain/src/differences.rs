//! In what two definitions differ, whatever they are written in: libvirt's XML against another's, or against QEMU's
//! command line. Names, addresses and paths, which differ between any two guests, are none.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use crate::data::{Disk, Domain, Interface};

/// One thing in which two definitions differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainDifference {
    /// What, as libvirt calls it: `timer hpet`, `vcpupin 3`, `disk vda cache`.
    pub what: String,
    /// What the first says; none where it says nothing.
    pub a: Option<String>,
    /// What the second says.
    pub b: Option<String>,
}

/// Returns in what two definitions differ, in the order of their parts.
pub fn differences(a: &Domain, b: &Domain) -> Vec<DomainDifference> {
    let [of_a, of_b] = [a, b].map(said);
    let mut names: Vec<&String> = of_a.iter().map(|(name, _)| name).collect();
    let known: BTreeSet<&String> = names.iter().copied().collect();
    names.extend(
        of_b.iter()
            .map(|(name, _)| name)
            .filter(|name| !known.contains(name)),
    );
    let [map_a, map_b] = [&of_a, &of_b].map(|said| -> BTreeMap<&String, &String> {
        said.iter().map(|(name, value)| (name, value)).collect()
    });
    let each = names.into_iter().map(|name| DomainDifference {
        what: name.clone(),
        a: map_a.get(name).map(|value| (*value).clone()),
        b: map_b.get(name).map(|value| (*value).clone()),
    });
    // Of one that is cut off nobody knows whether it says nothing.
    let known = |one: &DomainDifference| {
        !(one.a.is_none() && a.is_part() || one.b.is_none() && b.is_part())
    };
    each.filter(|one| one.a != one.b && known(one)).collect()
}

/// What a definition says, each with its name.
#[derive(Default)]
struct SaidParts(Vec<(String, String)>);

impl SaidParts {
    fn add(&mut self, name: impl Into<String>, value: Option<impl Display>) {
        if let Some(value) = value {
            self.0.push((name.into(), value.to_string()));
        }
    }

    fn state(&mut self, name: impl Into<String>, on: Option<bool>) {
        self.add(name, on.map(|on| if on { "on" } else { "off" }));
    }
}

fn said(domain: &Domain) -> Vec<(String, String)> {
    let mut out = SaidParts::default();
    out.add("arch", domain.arch.as_ref());
    out.add("machine", domain.machine.as_ref());
    cpus(domain, &mut out);
    clocks(domain, &mut out);
    memory(domain, &mut out);
    for (disk, number) in domain.disks.iter().zip(0..) {
        of_disk(disk, number, &mut out);
    }
    for (interface, number) in domain.interfaces.iter().zip(0..) {
        of_interface(interface, number, &mut out);
    }
    for controller in &domain.controllers {
        let index = controller.index.unwrap_or(0);
        let name = format!("controller {} {index}", controller.kind);
        out.add(format!("{name} model"), controller.model.as_ref());
        out.add(format!("{name} iothread"), controller.iothread);
        out.add(format!("{name} queues"), controller.queues);
    }
    out.add("memballoon", domain.memballoon.as_ref());
    out.add("iommu", domain.iommu.as_ref());
    let tablets = domain.inputs.iter().filter(|input| input.kind == "tablet");
    let tablets = tablets.count();
    out.add("tablets", (tablets > 0).then_some(tablets));
    let hostdevs = domain.hostdevs.len();
    out.add("devices of the host", (hostdevs > 0).then_some(hostdevs));
    out.0
}

fn cpus(domain: &Domain, out: &mut SaidParts) {
    out.add("vcpu", domain.vcpus);
    out.add("vcpu current", domain.current_vcpus);
    out.add("vcpu placement", domain.vcpu_placement.as_ref());
    out.add("vcpu cpuset", domain.vcpu_cpuset.as_ref());
    for (vcpu, cpus) in &domain.vcpu_pins {
        out.add(format!("vcpupin {vcpu}"), Some(cpus));
    }
    out.add("emulatorpin", domain.emulator_pin.as_ref());
    out.add("iothreads", domain.iothreads);
    for (thread, cpus) in &domain.iothread_pins {
        out.add(format!("iothreadpin {thread}"), Some(cpus));
    }
    for sched in &domain.scheds {
        let who = sched.who.as_ref().map(|who| format!(" {who}"));
        let name = format!("{}{}", sched.element, who.unwrap_or_default());
        out.add(name, Some(&sched.scheduler));
    }
    for (name, number) in &domain.cputune {
        out.add(format!("cputune {name}"), Some(number));
    }
    out.add("cpu mode", domain.cpu_mode.as_ref());
    out.add("cpu model", domain.cpu_model.as_ref());
    for feature in &domain.cpu_features {
        let policy = feature.policy.as_deref().unwrap_or("require");
        out.add(format!("cpu feature {}", feature.name), Some(policy));
    }
    if let Some(topology) = &domain.topology {
        out.add("sockets", topology.sockets);
        out.add("dies", topology.dies);
        out.add("cores", topology.cores);
        out.add("threads", topology.threads);
    }
    let cells = domain.cells.len();
    out.add("NUMA cells", (cells > 0).then_some(cells));
}

fn clocks(domain: &Domain, out: &mut SaidParts) {
    out.add("clock offset", domain.clock_offset.as_ref());
    for timer in &domain.timers {
        let name = format!("timer {}", timer.name);
        out.state(name.clone(), timer.present.or(Some(true)));
        out.add(format!("{name} tickpolicy"), timer.tickpolicy.as_ref());
        out.add(format!("{name} mode"), timer.mode.as_ref());
    }
    for name in &domain.features {
        out.add(format!("feature {name}"), Some("on"));
    }
    for (name, on) in &domain.feature_states {
        out.state(format!("feature {name} state"), Some(*on));
    }
    out.state("apic eoi", domain.apic_eoi);
    out.add("gic version", domain.gic_version.as_ref());
    if let Some(hyperv) = &domain.hyperv {
        out.add("hyperv mode", hyperv.mode.as_ref());
        for (name, on) in &hyperv.features {
            out.state(format!("hyperv {name}"), Some(*on));
        }
    }
    for (name, on) in &domain.kvm_features {
        out.state(format!("kvm {name}"), Some(*on));
    }
}

fn memory(domain: &Domain, out: &mut SaidParts) {
    let mib = |bytes: Option<u64>| bytes.map(|bytes| format!("{} MiB", bytes >> 20));
    out.add("memory", mib(domain.memory_bytes));
    out.add("currentMemory", mib(domain.current_memory_bytes));
    let backing = &domain.memory_backing;
    let pages = backing.hugepages.as_ref().map(|pages| {
        let sizes = pages.iter().filter_map(|one| one.size_bytes);
        let sizes: Vec<String> = sizes.map(|bytes| format!("{} KiB", bytes >> 10)).collect();
        match sizes.is_empty() {
            true => "of the host's default size".to_owned(),
            false => sizes.join(", "),
        }
    });
    out.add("hugepages", pages);
    out.add("memory locked", backing.locked.then_some("on"));
    out.add("nosharepages", backing.nosharepages.then_some("on"));
    out.add("memory source", backing.source.as_ref());
    out.add("memory allocation", backing.allocation.as_ref());
    if let Some(numa) = &domain.numa_memory {
        out.add("numatune mode", numa.mode.as_ref());
        out.add("numatune nodeset", numa.nodeset.as_ref());
    }
}

fn of_disk(disk: &Disk, number: usize, out: &mut SaidParts) {
    let name = match &disk.target {
        Some(target) => format!("disk {target}"),
        None => format!("disk number {}", number + 1),
    };
    out.add(format!("{name} type"), Some(&disk.kind));
    out.add(format!("{name} bus"), disk.bus.as_ref());
    out.add(format!("{name} format"), disk.format.as_ref());
    out.add(format!("{name} cache"), disk.cache.as_ref());
    out.add(format!("{name} io"), disk.io.as_ref());
    out.add(format!("{name} iothread"), disk.iothread);
    out.add(format!("{name} queues"), disk.queues);
    out.state(format!("{name} ioeventfd"), disk.ioeventfd);
    out.add(format!("{name} discard"), disk.discard.as_ref());
    for (limit, value) in &disk.limits {
        out.add(format!("{name} {limit}"), Some(value));
    }
}

fn of_interface(interface: &Interface, number: usize, out: &mut SaidParts) {
    let name = format!("interface {}", number + 1);
    out.add(format!("{name} type"), Some(&interface.kind));
    out.add(format!("{name} model"), interface.model.as_ref());
    out.add(format!("{name} driver"), interface.driver.as_ref());
    out.add(format!("{name} queues"), interface.queues);
    out.state(format!("{name} ioeventfd"), interface.ioeventfd);
    out.add(format!("{name} rx_queue_size"), interface.rx_queue_size);
    out.add(format!("{name} tx_queue_size"), interface.tx_queue_size);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Domain {
        crate::parse(text).expect("a definition").0
    }

    const A: &str = "<domain type='kvm'><name>a</name><uuid>11111111-1111-1111-1111-111111111111</uuid>\
        <vcpu>2</vcpu><cputune><vcpupin vcpu='0' cpuset='4'/></cputune>\
        <clock offset='utc'><timer name='hpet' present='no'/></clock>\
        <devices><interface type='bridge'><mac address='52:54:00:00:00:01'/><model type='virtio'/>\
        <driver name='qemu'/></interface></devices></domain>";

    #[test]
    fn what_differs_is_named_and_names_are_not() {
        let b = A
            .replace("<name>a<", "<name>b<")
            .replace("1111-1111", "2222-2222")
            .replace("00:00:01", "00:00:02")
            .replace("cpuset='4'", "cpuset='5'")
            .replace("present='no'", "present='yes'")
            .replace("name='qemu'", "name='vhost' queues='2'");
        let found = differences(&of(A), &of(&b));
        let named: Vec<(&str, Option<&str>, Option<&str>)> = found
            .iter()
            .map(|one| (one.what.as_str(), one.a.as_deref(), one.b.as_deref()))
            .collect();
        assert_eq!(
            named,
            [
                ("vcpupin 0", Some("4"), Some("5")),
                ("timer hpet", Some("off"), Some("on")),
                ("interface 1 driver", Some("qemu"), Some("vhost")),
                ("interface 1 queues", None, Some("2")),
            ]
        );
        assert_eq!(differences(&of(A), &of(A)), []);
    }
}
