/*!
Where libvirt writes an element among its siblings (`virDomainDefFormatInternalSetRootName` and what it calls, in
`src/conf/domain_conf.c`). Its schema takes most of them in any order, so this decides where a reader looks for it.
*/

use crate::element::Element;
use crate::tree::{XmlNode, attr};

/// A place among siblings: by name, then by number.
pub(crate) type SiblingPlace = (usize, u32);

const DOMAIN: &[&str] = &[
    "name",
    "uuid",
    "genid",
    "title",
    "description",
    "metadata",
    "maxMemory",
    "memory",
    "currentMemory",
    "blkiotune",
    "memtune",
    "memoryBacking",
    "vcpu",
    "vcpus",
    "iothreads",
    "iothreadids",
    "defaultiothread",
    "cputune",
    "numatune",
    "resource",
    "sysinfo",
    "bootloader",
    "bootloader_args",
    "os",
    "idmap",
    "features",
    "cpu",
    "clock",
    "on_poweroff",
    "on_reboot",
    "on_crash",
    "on_lockfailure",
    "pm",
    "perf",
    "devices",
    "seclabel",
    "keywrap",
    "launchSecurity",
];

const FEATURES: &[&str] = &[
    "acpi",
    "apic",
    "pae",
    "hap",
    "viridian",
    "privnet",
    "hyperv",
    "kvm",
    "pvspinlock",
    "capabilities",
    "pmu",
    "vmport",
    "gic",
    "smm",
    "ioapic",
    "hpt",
    "vmcoreinfo",
];

const CPUTUNE: &[&str] = &[
    "shares",
    "period",
    "quota",
    "global_period",
    "global_quota",
    "emulator_period",
    "emulator_quota",
    "iothread_period",
    "iothread_quota",
    "vcpupin",
    "emulatorpin",
    "iothreadpin",
    "vcpusched",
    "iothreadsched",
    "emulatorsched",
    "cachetune",
    "memorytune",
];

const DEVICES: &[&str] = &[
    "emulator",
    "disk",
    "controller",
    "lease",
    "filesystem",
    "interface",
    "smartcard",
    "serial",
    "parallel",
    "console",
    "channel",
];

/// Hyper-V's enlightenments (`virDomainHyperv`) as of libvirt 9.0. Later ones are no change here, since the schema of
/// libvirt before them refuses the whole document.
pub(crate) const HYPERV: &[&str] = &[
    "relaxed",
    "vapic",
    "spinlocks",
    "vpindex",
    "runtime",
    "synic",
    "stimer",
    "reset",
    "vendor_id",
    "frequencies",
    "reenlightenment",
    "tlbflush",
    "ipi",
    "evmcs",
    "avic",
];

/// KVM's own features for guests (`virDomainKVM`).
pub(crate) const KVM: &[&str] = &[
    "hidden",
    "hint-dedicated",
    "poll-control",
    "pv-ipi",
    "dirty-ring",
];

/// Names of the elements in one, in order.
fn table(parent: &str) -> &'static [&'static str] {
    match parent {
        "domain" => DOMAIN,
        "features" => FEATURES,
        "hyperv" => HYPERV,
        "kvm" => KVM,
        "cputune" => CPUTUNE,
        "devices" => DEVICES,
        "memoryBacking" => &[
            "hugepages",
            "nosharepages",
            "locked",
            "source",
            "access",
            "allocation",
            "discard",
        ],
        "numatune" => &["memory", "memnode"],
        "clock" => &["timer"],
        "cpu" => &[
            "model",
            "vendor",
            "topology",
            "cache",
            "maxphysaddr",
            "feature",
            "numa",
        ],
        "disk" => &[
            "driver",
            "auth",
            "source",
            "backingStore",
            "mirror",
            "target",
        ],
        "interface" => &[
            "mac",
            "source",
            "virtualport",
            "backend",
            "backenddomain",
            "ip",
            "route",
            "portForward",
            "script",
            "downscript",
            "target",
            "guest",
            "model",
            "driver",
        ],
        _ => &[],
    }
}

/// Returns the number that elements of one name are ordered by.
fn number(name: &str, attribute: impl Fn(&str) -> Option<u32>) -> u32 {
    let key = match name {
        "vcpupin" => "vcpu",
        "iothreadpin" => "iothread",
        _ => return 0,
    };
    attribute(key).unwrap_or(0)
}

/// Returns the place of an element that is there; `None` if it has none.
pub(crate) fn of(parent: &str, node: XmlNode<'_, '_>) -> Option<SiblingPlace> {
    let name = node.tag_name().name();
    let rank = table(parent).iter().position(|known| *known == name)?;
    let value = |key: &str| attr(node, key).and_then(|value| value.trim().parse().ok());
    Some((rank, number(name, value)))
}

/// Returns the place of a new element: behind all others if it has none of its own.
pub(crate) fn of_new(parent: &str, element: &Element) -> SiblingPlace {
    let name = element.name();
    let rank = table(parent).iter().position(|known| *known == name);
    let value = |key: &str| element.attribute(key).and_then(|value| value.parse().ok());
    (rank.unwrap_or(usize::MAX), number(name, value))
}
