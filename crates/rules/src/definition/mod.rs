//! What a guest's definition says that may cost time, by itself, against another's and against the host. These are
//! remarks and no findings: nothing here has been measured, but for what a recording beside it shows (`measured.rs`).

mod clocks;
mod devices;
mod limits;
mod measured;
mod memory;
mod pins;
mod remark;

use domain::{Domain, DomainChange};
use facts::Facts;

pub use measured::measure;
pub use remark::{DefinitionRemark, RemarkKind, RemarkMeasure};

/// All sorts of remarks.
static KINDS: [&RemarkKind; 26] = [
    &clocks::HYPERV_TIMERS,
    &clocks::HYPERV_CLOCK,
    &clocks::HYPERV_OTHERS,
    &clocks::HPET,
    &clocks::NO_KVMCLOCK,
    &devices::EMULATED_NIC,
    &devices::EMULATED_DISK,
    &devices::TABLET,
    &devices::NO_IOTHREAD,
    &devices::QEMU_NET,
    &devices::ONE_QUEUE,
    &devices::NATIVE_CACHED,
    &devices::WRITE_THROUGH,
    &limits::CPU_QUOTA,
    &limits::DISK_LIMIT,
    &pins::SHARED_CPU,
    &pins::TWO_VMS,
    &pins::VMM_BESIDE,
    &pins::PARTLY_PINNED,
    &pins::OFFLINE,
    &pins::NODES,
    &pins::SIBLINGS,
    &pins::ISOLATION,
    &memory::NO_HUGE_PAGES,
    &memory::LARGE_MEMORY,
    &memory::CPU_MODEL,
];

/// Sorts of remarks that rest on what a definition says, and on nothing that it does not say: those that one which is
/// cut off can have.
static FROM_WHAT_IS_THERE: [&RemarkKind; 10] = [
    &devices::EMULATED_NIC,
    &devices::EMULATED_DISK,
    &devices::QEMU_NET,
    &devices::NATIVE_CACHED,
    &devices::WRITE_THROUGH,
    &limits::CPU_QUOTA,
    &limits::DISK_LIMIT,
    &pins::SHARED_CPU,
    &pins::TWO_VMS,
    &pins::OFFLINE,
];

/// Returns all sorts of remarks that there are.
pub fn remark_kinds() -> &'static [&'static RemarkKind] {
    &KINDS
}

/// Returns remarks on definitions, the surest first; with several also on what they have in common.
pub fn remarks(domains: &[&Domain], facts: Option<&Facts>) -> Vec<DefinitionRemark> {
    let mut out = Vec::new();
    pins::between(domains, &mut out);
    for domain in domains {
        let host = facts.and_then(|facts| facts.host.as_ref());
        clocks::clocks(domain, &mut out);
        devices::devices(domain, &mut out);
        limits::limits(domain, &mut out);
        pins::pins(domain, &mut out);
        if let Some(facts) = facts {
            pins::beside(domain, facts, &mut out);
        }
        if let Some(host) = host {
            pins::topology(domain, host, &mut out);
        }
        memory::memory(domain, host, &mut out);
    }
    let cut: Vec<&str> = domains
        .iter()
        .filter(|domain| domain.is_part())
        .map(|domain| domain.name.as_str())
        .collect();
    out.retain(|remark| {
        !cut.contains(&remark.domain.as_str())
            || FROM_WHAT_IS_THERE
                .iter()
                .any(|kind| kind.id == remark.kind.id)
    });
    // What is equally sure stays in this order.
    out.sort_by(|a, b| b.kind.confidence.total_cmp(&a.kind.confidence));
    out
}

/// Returns what a definition says of CPU quotas, a full sentence; `None` where it limits no CPU time.
pub(crate) fn cpu_quota(domain: &Domain) -> Option<String> {
    let mut out = Vec::new();
    limits::limits(domain, &mut out);
    let quota = out
        .into_iter()
        .find(|remark| remark.kind.id == limits::CPU_QUOTA.id);
    quota.map(|remark| remark.what)
}

/// Returns what remarks change in a definition of this name, each change once.
pub fn remarked_changes(remarks: &[DefinitionRemark], domain: &Domain) -> Vec<DomainChange> {
    let of_domain = remarks.iter().filter(|remark| remark.domain == domain.name);
    let mut out: Vec<DomainChange> = Vec::new();
    for change in of_domain.flat_map(|remark| &remark.changes) {
        if !out.contains(change) {
            out.push(change.clone());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::remarks;

    fn of(inner: &str, host: Option<&facts::Host>) -> String {
        let text = format!("<domain type='kvm'><name>a</name><vcpu>2</vcpu>{inner}</domain>");
        let (domain, _) = domain::parse(&text).expect("a domain");
        let facts = host.map(|host| {
            let mut facts = facts::Facts::default();
            facts.host = Some(host.clone());
            facts
        });
        let remarks = remarks(&[&domain], facts.as_ref());
        let whats: Vec<&str> = remarks.iter().map(|one| one.what.as_str()).collect();
        whats.join("\n")
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

    /// What a definition that is cut off does not say may have stood behind.
    #[test]
    fn of_a_cut_definition_only_what_is_there_is_remarked_on() {
        let inner = "<memory unit='GiB'>64</memory><metadata><o:libosinfo xmlns:o='http://libosinfo.org/xmlns/libvirt/\
                     domain/1.0'><o:os id='http://microsoft.com/win/11'/></o:libosinfo></metadata>\
                     <cputune><vcpupin vcpu='0' cpuset='3'/><vcpupin vcpu='1' cpuset='3'/></cputune><devices>\
                     <interface type='network'><target dev='n'/><model type='e1000'/></interface>";
        let ids = |text: &str| -> Vec<&str> {
            let found = domain::definitions(text.as_bytes()).expect("a definition");
            let remarks = remarks(&[&found[0].domain], None);
            assert!(
                remarks
                    .iter()
                    .all(|one| !found[0].domain.is_part() || one.changes.is_empty())
            );
            remarks.iter().map(|one| one.kind.id).collect()
        };
        let cut = format!("<domain type='kvm'><name>a</name><vcpu>2</vcpu>{inner}");
        let whole = ids(&format!("{cut}</devices></domain>"));
        assert!(
            whole.contains(&"hyperv-clock") && whole.contains(&"cpu-model"),
            "{whole:?}"
        );
        assert_eq!(ids(&cut), ["vcpus-share-cpu", "emulated-nic"]);
        // Pins may have stood behind.
        let cut = "<domain><name>a</name><vcpu cpuset='3'>2</vcpu><cputune><shares>1</shares>";
        assert_eq!(ids(cut), [""; 0]);
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

    /// Returns ids of the remarks on a definition without a CPU model to be remarked on.
    fn ids(inner: &str) -> Vec<&'static str> {
        let text = format!(
            "<domain type='kvm'><name>a</name><vcpu>4</vcpu><cpu mode='host-passthrough'/>{inner}</domain>"
        );
        let (domain, _) = domain::parse(&text).expect("a domain");
        remarks(&[&domain], None)
            .iter()
            .map(|one| one.kind.id)
            .collect()
    }

    /// What costs time, and beside each the same in health.
    #[test]
    fn each_remark_has_its_twin_without_one() {
        let disk = |driver: &str, bus: &str, more: &str| {
            format!(
                "<devices><disk type='file' device='disk'><driver {driver}/><target dev='xda' bus='{bus}'/>{more}\
                 </disk></devices>"
            )
        };
        let windows = |hyperv: &str, hpet: &str| {
            format!(
                "<features><hyperv>{hyperv}</hyperv></features><clock offset='localtime'>\
                 <timer name='hypervclock' present='yes'/><timer name='hpet' present='{hpet}'/></clock>"
            )
        };
        let on = |names: &[&str]| -> String {
            names
                .iter()
                .map(|name| format!("<{name} state='on'/>"))
                .collect()
        };
        let all = [
            "relaxed",
            "vapic",
            "spinlocks",
            "frequencies",
            "tlbflush",
            "ipi",
            "vpindex",
            "synic",
            "stimer",
        ];
        let tablet = |model: &str| {
            format!(
                "<devices><controller type='usb' index='0' model='{model}'/><input type='tablet' bus='usb'>\
                 <address type='usb' bus='0' port='1'/></input></devices>"
            )
        };
        let card = |model: &str| {
            format!(
                "<devices><interface type='bridge'><model type='{model}'/></interface></devices>"
            )
        };
        let quota = |name: &str, us: i64| format!("<cputune><{name}>{us}</{name}></cputune>");
        let iotune = "<iotune><total_iops_sec>500</total_iops_sec></iotune>";
        let unlimited = "<iotune><total_iops_sec>0</total_iops_sec></iotune>";
        for (id, sick, healthy) in [
            (
                "hyperv-timers",
                windows(&on(&all[..6]), "no"),
                windows(&on(&all), "no"),
            ),
            (
                "hyperv-enlightenments",
                windows(&on(&all[6..]), "no"),
                windows(&on(&all), "no"),
            ),
            ("hpet", windows(&on(&all), "yes"), windows(&on(&all), "no")),
            ("emulated-nic", card("rtl8139"), card("virtio")),
            (
                "emulated-disk",
                disk("name='qemu'", "ide", ""),
                disk("name='qemu'", "virtio", ""),
            ),
            ("usb-tablet", tablet("piix3-uhci"), tablet("qemu-xhci")),
            ("cpu-quota", quota("quota", 25_000), quota("quota", -1)),
            (
                "cpu-quota",
                quota("global_quota", 200_000),
                quota("global_quota", 500_000),
            ),
            (
                "disk-limit",
                disk("name='qemu'", "virtio", iotune),
                disk("name='qemu'", "virtio", unlimited),
            ),
            (
                "no-iothread",
                disk("io='threads'", "virtio", ""),
                disk("io='threads' iothread='1'", "virtio", ""),
            ),
            (
                "write-through",
                disk("cache='writethrough'", "virtio", ""),
                disk("cache='none'", "virtio", ""),
            ),
            (
                "native-io-through-cache",
                disk("io='native'", "virtio", ""),
                disk("io='native' cache='none'", "virtio", ""),
            ),
            (
                "large-memory-without-huge-pages",
                "<memory unit='GiB'>64</memory>".to_owned(),
                "<memory unit='GiB'>4</memory>".to_owned(),
            ),
        ] {
            assert!(ids(&sick).contains(&id), "{id}: {:?} of {sick}", ids(&sick));
            assert_eq!(ids(&healthy), Vec::<&str>::new(), "{id}: {healthy}");
        }
    }
}
