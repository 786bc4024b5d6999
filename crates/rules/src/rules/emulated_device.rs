//! The guest uses an emulated device where a paravirtual one exists.

use analysis::{ExitRow, ExitTable, known_devices};
use devices::KnownDevice;
use event::ExitClass;
use words::duration::human;

use crate::common::listed;
use crate::evidence::{Ns, Of, says};
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, RecordNeeds, Remedy, Rule, RuleLook, Verdict,
};

/// Share of the vCPUs' time.
const SHARE: f64 = 0.05;
/// Fewer accesses are a driver that looks for its device.
const LEAST: u64 = 200;

pub(crate) static RULE: Rule = Rule {
    id: "emulated-device",
    title: "The guest uses an emulated device",
    described_as: &[
        "the network of the VM is slow with e1000 or rtl8139",
        "an IDE or SATA disk in the VM is slow",
        "many IO_INSTRUCTION or MMIO exits for a network card",
        "the VM is slow without virtio drivers",
    ],
    looks_at: "accesses of emulated memory and of ports, by device: which registers of a BAR are used is its \
        fingerprint",
    needs: "kvm_mmio and kvm_pio with kvm_exit and kvm_entry, or the printed tables",
    record: &[RecordNeeds::Exits],
    measures: &[],
    cause: "A device that exists in hardware is driven by registers: several for each packet or block, each of them an \
        exit to the VMM and back, in which the vCPU waits. A virtio device takes many requests with one notification.",
    found: &[
        "{least} accesses of one such device that take {share} of the vCPUs' time (of printed tables: of the time of \
         exits without waiting). An e1000 is four of its registers in one BAR of 128 KiB (STATUS 0x8, ICR 0xc0, ICS \
         0xc8, IMS 0xd0, IMC 0xd8, RDT 0x2818, TDT 0x3818, ...), one of a queue's end and one of interrupts among \
         them; an AHCI controller IS 0x8 with IS and CI of one port (0x110 and 0x138 of the first) or what sets it \
         up; IDE the ports 0x1f0 to 0x1f7 and 0x170 to 0x177. Confidence 0.85.",
    ],
    limits: &[
        ("least", EvidenceNumber::Count(LEAST)),
        ("share", EvidenceNumber::Share(SHARE)),
    ],
    seen_from: "{least} accesses of an emulated device that take {share} of the vCPUs' time",
    unknown: "*exits*, with addresses: `kvm_mmio`, `kvm_pio`.",
    advice: "The device decides which remedy is offered.",
    looks_alike: "A virtio device that the VMM answers is [userspace-virtio-backend](#userspace-virtio-backend); a \
    serial \
        console, [console-on-irq-vcpu](#console-on-irq-vcpu).",
    remedies: &[
        Remedy {
            what: "Give the guest a virtio network card: <model type='virtio'/> in <interface> (QEMU: \
                virtio-net-pci), with vhost.",
            price: "The guest has to have the driver (Windows: virtio-win), sees a new card, and has to be restarted.",
            unless: "A guest without the driver, as some appliances and installers, has no network then.",
            check: "trapline compare BEFORE AFTER: the exits for this device are gone.",
        },
        Remedy {
            what: "Give the guest virtio disks: bus='virtio', or virtio-scsi with bus='scsi', and an iothread.",
            price: "The guest has to have the driver when it boots (Windows: install it first), and disks may have \
                other names in it.",
            unless: "A guest that cannot boot from virtio does not start.",
            check: "trapline compare BEFORE AFTER: the exits for this device are gone.",
        },
    ],
    sources: &[
        "Intel, PCI/PCI-X Family of Gigabit Ethernet Controllers Software Developer's Manual (317453), table 13-2",
        "Serial ATA AHCI specification 1.3.1, sections 3.1 and 3.3; ATA-1, table of registers",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::Mmio),
        ExplainedTime::Exits(ExitClass::PageFault),
        ExplainedTime::Exits(ExitClass::Port),
        ExplainedTime::Asleep,
    ],
    look: RuleLook::Case(look),
};

/// Positions of the remedies.
const NETWORK: usize = 0;
const DISK: usize = 1;

/// A device that has a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EmulatedDevice {
    Network,
    Ahci,
    Ide,
}

impl EmulatedDevice {
    fn of(device: KnownDevice) -> Option<EmulatedDevice> {
        match device {
            KnownDevice::E1000 => Some(EmulatedDevice::Network),
            KnownDevice::Ahci => Some(EmulatedDevice::Ahci),
            KnownDevice::Uhci | KnownDevice::Virtio | KnownDevice::VirtioBalloon => None,
        }
    }

    fn called(self) -> &'static str {
        match self {
            EmulatedDevice::Network => "network card (e1000)",
            EmulatedDevice::Ahci => "SATA controller (AHCI)",
            EmulatedDevice::Ide => "IDE controller",
        }
    }
}

/// Accesses of one device.
struct DeviceAccesses<'a> {
    device: EmulatedDevice,
    rows: Vec<&'a ExitRow>,
    count: u64,
    ns: u64,
}

impl<'a> DeviceAccesses<'a> {
    fn of(device: EmulatedDevice, rows: Vec<&'a ExitRow>) -> DeviceAccesses<'a> {
        let count = rows
            .iter()
            .map(|row| row.stats.count())
            .fold(0, u64::saturating_add);
        let ns = rows.iter().map(|row| row.stats.total());
        DeviceAccesses {
            device,
            count,
            ns: ns.fold(0, u64::saturating_add),
            rows,
        }
    }
}

fn devices<'a>(case: &Case<'a>) -> Vec<DeviceAccesses<'a>> {
    let memory = case.picture.table(ExitTable::Mmio);
    let known = known_devices(memory).into_iter();
    let mut out: Vec<DeviceAccesses<'a>> = known
        .filter_map(|place| {
            let device = EmulatedDevice::of(place.device)?;
            let rows = case.accesses(ExitTable::Mmio, |row| {
                row.address
                    .is_some_and(|address| place.holds(false, address))
            });
            Some(DeviceAccesses::of(device, rows))
        })
        .collect();
    let ide = case.accesses(ExitTable::Ioport, |row| {
        row.address
            .is_some_and(|port| matches!(port, 0x1f0..=0x1f7 | 0x170..=0x177 | 0x3f6 | 0x376))
    });
    out.push(DeviceAccesses::of(EmulatedDevice::Ide, ide));
    out
}

fn look(case: &Case<'_>) -> Verdict {
    let tables = [ExitTable::Mmio, ExitTable::Ioport];
    let addresses = tables
        .iter()
        .any(|table| !case.picture.rows(*table).is_empty());
    if !addresses {
        let recorded = case.records("kvm_mmio", ExitTable::Mmio) && case.has_exits();
        return match recorded {
            true => Verdict::Clear,
            false => Verdict::Unknown(
                "Record kvm:kvm_exit, kvm:kvm_entry, kvm:kvm_mmio and kvm:kvm_pio.".to_owned(),
            ),
        };
    }
    if !case.has_exits() {
        return Verdict::Unknown(
            "Which part of the vCPUs' time these accesses took is not known; record kvm:kvm_exit and kvm:kvm_entry too."
                .to_owned(),
        );
    }
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let found = devices(case)
        .into_iter()
        .filter(|one| one.count >= LEAST && case.vcpu_cost(one.ns).share >= SHARE);
    let Some(most) = found.max_by_key(|one| one.ns) else {
        return Verdict::Clear;
    };
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    say(case, &most).found()
}

fn say(case: &Case<'_>, of: &DeviceAccesses<'_>) -> Finding {
    let table = match of.device {
        EmulatedDevice::Ide => ExitTable::Ioport,
        EmulatedDevice::Network | EmulatedDevice::Ahci => ExitTable::Mmio,
    };
    let mut finding = Finding::new(&RULE, 0.85)
        .cost(case.vcpu_cost(of.ns))
        .title(format!(
            "The guest uses an emulated {}: {} accesses, {}",
            of.device.called(),
            of.count,
            human(of.ns)
        ))
        .evidence(says!(
            "{count} accesses of its registers took {time} ({share} of the vCPUs' time), {each} each.",
            count = of.count,
            time = Ns(of.ns),
            share = Of(of.ns, case.picture.observed_ns()),
            each = Ns(of.ns / of.count.max(1)),
        ));
    for line in listed(|_| table, &of.rows, (of.count, "accesses of it"), 4) {
        finding = finding.evidence(line);
    }
    match of.device {
        EmulatedDevice::Network => cards(case, finding).only(&[NETWORK]),
        EmulatedDevice::Ahci | EmulatedDevice::Ide => finding.only(&[DISK]),
    }
}

/// Says how many emulated cards the definition has.
fn cards(case: &Case<'_>, finding: Finding) -> Finding {
    let interfaces = case.domain.iter().flat_map(|domain| &domain.interfaces);
    let emulated = interfaces.filter(|interface| {
        let model = interface.model.as_deref();
        model.is_some_and(|model| model.starts_with("e1000"))
    });
    match emulated.count() {
        0 => finding,
        count => finding.note(
            NETWORK,
            format!(
                "The definition has {}.",
                words::plural(count as u64, "interface of this model")
            ),
        ),
    }
}
