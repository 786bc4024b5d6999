//! Devices: emulated where a paravirtual one exists, back ends in QEMU's main thread, cache modes.

use domain::{Controller, Disk, Domain, DomainChange};

use super::remark::{BY_LOAD, DefinitionRemark, RemarkKind, SELDOM, in_form};
use crate::RecordNeeds::{Exits, Paths, Sched};

const DRIVERS: &str = "The guest needs virtio's drivers first (Windows: virtio-win, and for the disk that it boots \
    from before it is changed), so --patch leaves it as it is. Names of disks and interfaces in the guest change.";

pub(super) static EMULATED_NIC: RemarkKind = RemarkKind {
    id: "emulated-nic",
    why: "Each access of an emulated card's registers is an exit to the VMM, several for a packet; virtio leaves the \
        guest once for many, and vhost then works in the kernel.",
    price: DRIVERS,
    refuted_by: "A recording under the guest's usual load in which few exits are for this card (emulated-device \
        finds nothing).",
    confidence: BY_LOAD,
    record: &[Exits],
    sources: &["QEMU, hw/net/e1000.c, hw/net/rtl8139.c (registers are MMIO and ports)"],
};

pub(super) static EMULATED_DISK: RemarkKind = RemarkKind {
    id: "emulated-disk",
    why: "Each request to an emulated controller takes several accesses of its registers, each an exit to the VMM, \
        and its requests are handled by QEMU's main thread.",
    price: DRIVERS,
    refuted_by: "A recording under the guest's usual load in which few exits are for this controller \
        (emulated-device finds nothing).",
    confidence: BY_LOAD,
    record: &[Exits],
    sources: &["QEMU, hw/ide/ahci.c, hw/ide/core.c"],
};

pub(super) static QEMU_NET: RemarkKind = RemarkKind {
    id: "network-in-qemu",
    why: "Packets then go through QEMU's main thread, which has to be woken, instead of a vhost worker of the \
        kernel.",
    price: "The guest has to be shut down and started again. vhost workers need CPU time on the host too.",
    refuted_by: "A recording in which QEMU's main thread takes little CPU time (userspace-virtio-backend finds \
        nothing).",
    confidence: BY_LOAD,
    record: &[Paths],
    sources: &["libvirt, docs/formatdomain.rst (driver of an interface)"],
};

pub(super) static NATIVE_CACHED: RemarkKind = RemarkKind {
    id: "native-io-through-cache",
    why: "Linux AIO is asynchronous for direct I/O only: through the host's page cache a request blocks the VMM's \
        thread that submits it.",
    price: "The guest has to be shut down and started again. Without the host's cache, reads that it answered go to \
        the disk.",
    refuted_by: "A recording in which threads of the VMM do not sleep in I/O.",
    confidence: BY_LOAD,
    record: &[Paths],
    sources: &[
        "io_submit(2)",
        "QEMU, block/file-posix.c (aio=native needs cache.direct=on)",
    ],
};

pub(super) static WRITE_THROUGH: RemarkKind = RemarkKind {
    id: "write-through",
    why: "Each write of the guest is then followed by a flush of the disk before it is complete.",
    price: "A guest that does not flush by itself can lose what it wrote last when the host fails; systems of today \
        flush.",
    refuted_by: "A guest that seldom writes, or a disk with a cache that survives a power cut.",
    confidence: BY_LOAD,
    record: &[Paths],
    sources: &["QEMU, qemu-options.hx (cache=)"],
};

pub(super) static NO_IOTHREAD: RemarkKind = RemarkKind {
    id: "no-iothread",
    why: "Requests of these disks are then handled by QEMU's main thread, one after the other, beside its monitor, \
        its display and its timers.",
    price: "The guest has to be shut down and started again. Each iothread wants a CPU when the disks are busy.",
    refuted_by: "A recording in which QEMU's main thread is seldom busy and never waits for a CPU.",
    confidence: BY_LOAD,
    record: &[Paths],
    sources: &[
        "QEMU, docs/devel/multiple-iothreads.rst",
        "libvirt, docs/formatdomain.rst (iothreads)",
    ],
};

pub(super) static TABLET: RemarkKind = RemarkKind {
    id: "usb-tablet",
    why: "QEMU looks at the schedules of a UHCI or EHCI controller again and again while a device is on it, in an \
        idle guest too; an xHCI controller says when there is something to do.",
    price: "Without a tablet the pointer of a VNC console is captured and can be off. The guest needs a driver for \
        xHCI (Windows from 8 on has one).",
    refuted_by: "QEMU's main thread takes no CPU time while the guest is idle.",
    confidence: BY_LOAD,
    record: &[Sched],
    sources: &[
        "QEMU, docs/system/devices/usb.rst (xHCI takes less CPU)",
        "QEMU, hw/usb/hcd-uhci.c (FRAME_TIMER_FREQ)",
    ],
};

pub(super) static ONE_QUEUE: RemarkKind = RemarkKind {
    id: "one-network-queue",
    why: "With one queue one vCPU's interrupt and one vhost worker carry all packets of a guest with many vCPUs.",
    price: "Each queue has a vhost worker, which wants a CPU when it is busy; the guest has to be shut down.",
    refuted_by: "A recording in which the vhost worker is not busy for most of the time.",
    confidence: SELDOM,
    record: &[Paths],
    sources: &["libvirt, docs/formatdomain.rst (queues)"],
};

/// vCPUs from which on one queue of a network card is remarked on.
const MANY_VCPUS: u32 = 8;

pub(super) fn devices(domain: &Domain, out: &mut Vec<DefinitionRemark>) {
    interfaces(domain, out);
    disks(domain, out);
    iothreads(domain, out);
    tablet(domain, out);
}

fn interfaces(domain: &Domain, out: &mut Vec<DefinitionRemark>) {
    for interface in &domain.interfaces {
        let name = interface
            .target
            .as_deref()
            .or(interface.mac.as_deref())
            .unwrap_or("?");
        let model = interface.model.as_deref();
        let emulated = model.filter(|model| !model.starts_with("virtio"));
        // What the host's hardware or another process answers has no registers that QEMU emulates.
        let real = matches!(interface.kind.as_str(), "hostdev" | "vdpa");
        if let (Some(model), false) = (emulated, real) {
            let what = format!(
                "Interface {name} is an emulated {model}: each access of its registers is an exit to the VMM."
            );
            let change = in_form(
                domain,
                "Install virtio's driver in the guest, then set <model type='virtio'/>.",
                "Install virtio's driver in the guest, then use -device virtio-net-pci.",
                "Install virtio's driver in the guest, then use virtio= in netN:.",
            );
            out.push(EMULATED_NIC.remark(domain, what, change));
        }
        if interface.driver.as_deref() == Some("qemu") {
            let setting = in_form(
                domain,
                "<driver name='qemu'/>",
                "a tap without vhost=on",
                "no vhost",
            );
            let what = format!(
                "Interface {name} has its back end in QEMU ({setting}), not in the kernel."
            );
            let change = in_form(
                domain,
                "Take <driver name='qemu'/> away, or set name='vhost'.",
                "Add vhost=on to its -netdev tap.",
                "Remove what turns vhost off.",
            );
            out.push(QEMU_NET.remark(domain, what, change));
        }
        let vcpus = domain.vcpus.unwrap_or(0);
        let virtio = model.is_some_and(|model| model.starts_with("virtio"));
        if virtio && vcpus >= MANY_VCPUS && interface.queues.unwrap_or(1) < 2 {
            let what = format!("Interface {name} has one queue for {vcpus} vCPUs.");
            let change = in_form(
                domain,
                "Set <driver queues='N'/> to the vCPUs that have much traffic.",
                "Set queues=N on the -netdev, mq=on and vectors=2N+2 on the device.",
                "Set queues=N in netN:.",
            );
            out.push(ONE_QUEUE.remark(domain, what, change));
        }
    }
}

fn of_guest(disk: &&Disk) -> bool {
    matches!(disk.device.as_str(), "disk" | "lun")
}

fn disks(domain: &Domain, out: &mut Vec<DefinitionRemark>) {
    for disk in domain.disks.iter().filter(of_guest) {
        let name = disk.target.as_deref().unwrap_or("?");
        if let Some(on) = emulated(domain, disk) {
            let what = format!(
                "Disk {name} is on an emulated {on}: each access of its controller is an exit to the VMM."
            );
            let change = in_form(
                domain,
                "Install virtio's drivers in the guest, then set <target bus='virtio'/>.",
                "Install virtio's drivers in the guest, then use -device virtio-blk-pci or virtio-scsi-pci.",
                "Install virtio's drivers in the guest, then make it scsiN: with scsihw: virtio-scsi-single.",
            );
            out.push(EMULATED_DISK.remark(domain, what, change));
        }
        let cache = disk.cache.as_deref();
        let direct = matches!(cache, Some("none" | "directsync"));
        if disk.io.as_deref() == Some("native") && !direct {
            let what = format!(
                "Disk {name} has io='native' without a direct cache mode: requests that are not cached block the \
                 VMM's thread."
            );
            let change = in_form(
                domain,
                "Set cache='none', or io='io_uring'.",
                "Set cache=none.",
                "Set cache=none.",
            );
            out.push(NATIVE_CACHED.remark(domain, what, change));
        }
        if let Some(mode @ ("writethrough" | "directsync")) = cache {
            let what = format!("Disk {name} has cache='{mode}': each write waits for a flush.");
            let change = "Set the cache mode to none, if the guest flushes by itself.";
            out.push(WRITE_THROUGH.remark(domain, what, change));
        }
    }
}

/// Returns the bus or the controller of a disk, where it is one whose registers QEMU emulates.
fn emulated(domain: &Domain, disk: &Disk) -> Option<String> {
    match disk.bus.as_deref()? {
        bus @ ("ide" | "sata" | "fdc" | "usb" | "sd") => Some(format!("{bus} bus")),
        "scsi" => {
            let model = scsi_controller(domain, disk)?.model.as_deref()?;
            let emulated = [
                "lsi", "buslogic", "megasas", "pvscsi", "vmpvscsi", "am53c974", "dc390",
            ];
            let is_emulated = emulated.iter().any(|name| model.starts_with(name));
            is_emulated.then(|| format!("{model} controller"))
        }
        _ => None,
    }
}

/// Returns the SCSI controller that a disk hangs on.
fn scsi_controller<'d>(domain: &'d Domain, disk: &Disk) -> Option<&'d Controller> {
    let index = disk.controller.unwrap_or(0);
    let is_it = |one: &&Controller| one.kind == "scsi" && one.index.unwrap_or(0) == index;
    domain.controllers.iter().find(is_it)
}

/// Disks on virtio that no iothread serves: several, or one whose I/O threads QEMU's main thread has to wait for, or
/// one while iothreads are there and idle.
fn iothreads(domain: &Domain, out: &mut Vec<DefinitionRemark>) {
    let lone: Vec<&Disk> = domain
        .disks
        .iter()
        .filter(of_guest)
        .filter(|disk| disk.iothread.is_none())
        .filter(|disk| match disk.bus.as_deref() {
            Some("virtio") => true,
            Some("scsi") => lone_controller(domain, disk).is_some(),
            _ => false,
        })
        .collect();
    let threads = lone
        .iter()
        .any(|disk| disk.io.as_deref() == Some("threads"));
    let idle = domain.iothreads.is_some_and(|count| count > 0);
    if lone.is_empty() || (lone.len() < 2 && !threads && !idle) {
        return;
    }
    let names: Vec<&str> = lone
        .iter()
        .map(|disk| disk.target.as_deref().unwrap_or("?"))
        .collect();
    let what = match (lone.len(), idle) {
        (1, true) => format!(
            "Disk {} uses none of the iothreads that are defined.",
            names.join(", ")
        ),
        (1, false) => format!("Disk {} has no iothread.", names.join(", ")),
        (_, true) => format!(
            "Disks {} use none of the iothreads that are defined.",
            names.join(", ")
        ),
        (_, false) => format!("Disks {} have no iothread.", names.join(", ")),
    };
    let change = in_form(
        domain,
        "Set <iothreads> and <driver iothread='N'/> of each disk or virtio-scsi controller.",
        "Add -object iothread,id=N and iothread=N to each virtio-blk or virtio-scsi device.",
        "Set scsihw: virtio-scsi-single and iothread=1 on each disk.",
    );
    let remark = NO_IOTHREAD.remark(domain, what, change);
    out.push(remark.changing(domain, own_iothreads(domain, &lone)));
}

/// Returns the virtio-scsi controller that a disk hangs on, if no iothread serves it.
fn lone_controller(domain: &Domain, disk: &Disk) -> Option<u32> {
    let controller = scsi_controller(domain, disk)?;
    let virtio = controller
        .model
        .as_deref()
        .is_some_and(|model| model.starts_with("virtio"));
    (virtio && controller.iothread.is_none()).then_some(disk.controller.unwrap_or(0))
}

/// More iothreads than this are not proposed.
const MAX_IOTHREADS: u32 = 4;

/// Returns the changes that give disks iothreads, those that are there first.
fn own_iothreads(domain: &Domain, lone: &[&Disk]) -> Vec<DomainChange> {
    // With numbers of their own it is not known which are free.
    if !domain.iothread_ids.is_empty() {
        return Vec::new();
    }
    let mut changes = Vec::new();
    let count = match domain.iothreads.filter(|count| *count > 0) {
        Some(count) => count,
        None => {
            let count =
                u32::try_from(lone.len()).map_or(MAX_IOTHREADS, |many| many.min(MAX_IOTHREADS));
            changes.push(DomainChange::Iothreads(count));
            count
        }
    };
    for (disk, iothread) in lone.iter().zip((1..=count).cycle()) {
        let change = match (disk.bus.as_deref(), &disk.target) {
            (Some("virtio"), Some(target)) => DomainChange::DiskIothread {
                disk: target.as_str().into(),
                iothread,
            },
            (Some("scsi"), _) => DomainChange::ControllerIothread {
                index: disk.controller.unwrap_or(0),
                iothread,
            },
            _ => continue,
        };
        let known = |one: &DomainChange| match (one, &change) {
            (
                DomainChange::ControllerIothread { index, .. },
                DomainChange::ControllerIothread { index: other, .. },
            ) => index == other,
            _ => false,
        };
        if !changes.iter().any(known) {
            changes.push(change);
        }
    }
    changes
}

/// A tablet on a USB controller that QEMU polls.
fn tablet(domain: &Domain, out: &mut Vec<DefinitionRemark>) {
    let on_usb = |input: &&domain::InputDevice| {
        input.kind == "tablet" && input.bus.as_deref().unwrap_or("usb") == "usb"
    };
    let Some(tablet) = domain.inputs.iter().find(on_usb) else {
        return;
    };
    // An EHCI controller has the number of its companions; without a number it may be on any.
    let of_tablet = |one: &&Controller| {
        one.kind == "usb"
            && tablet
                .controller
                .is_none_or(|number| one.index.is_none_or(|index| index == number))
    };
    let models = domain.controllers.iter().filter(of_tablet);
    let models: Vec<&str> = models.filter_map(|one| one.model.as_deref()).collect();
    let polled = |model: &&&str| model.contains("uhci") || model.contains("ehci");
    // Without a model it is libvirt's or QEMU's choice, which depends on versions.
    let (Some(model), false) = (
        models.iter().find(polled),
        models.iter().any(|model| model.contains("xhci")),
    ) else {
        return;
    };
    let what = format!("There is a USB tablet on the controller {model}.");
    let change = in_form(
        domain,
        "Set <controller type='usb' model='qemu-xhci'/>, or take <input type='tablet' bus='usb'/> away.",
        "Use -device qemu-xhci for the tablet, or leave usb-tablet away.",
        "Set tablet: 0 if nobody works on the console.",
    );
    out.push(TABLET.remark(domain, what, change));
}
