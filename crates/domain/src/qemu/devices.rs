//! Devices and their back ends: `-device`, `-drive`, `-blockdev`, `-netdev`, and their old forms.

use std::collections::BTreeMap;

use crate::data::{Controller, DISK_LIMITS, Disk, Domain, Hostdev, InputDevice, Interface};

use super::properties::Properties;

/// What devices refer to by its name.
#[derive(Debug, Default)]
pub(super) struct DeviceReader {
    /// `-drive` by id.
    drives: BTreeMap<String, Properties>,
    /// `-blockdev` by node name.
    nodes: BTreeMap<String, Properties>,
    /// `-netdev` by id.
    netdevs: BTreeMap<String, Properties>,
    /// Limits of `-object throttle-group`, by id.
    groups: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// Numbers of iothreads by id, from 1.
    iothreads: BTreeMap<String, u32>,
    /// Numbers of controllers by id.
    controllers: BTreeMap<String, u32>,
    /// Whether `if=ide` and `ide.N` are of an AHCI controller.
    q35: bool,
}

/// Nodes that a disk's chain is followed for: format, throttle, protocol, and room.
const CHAIN: usize = 8;

/// Controllers on which something polls or is emulated, and what libvirt calls their sort.
fn controller_kind(driver: &str) -> Option<&'static str> {
    let usb = driver.contains("usb-uhci")
        || driver.contains("usb-ehci")
        || driver.contains("xhci")
        || driver.ends_with("ohci");
    let scsi = driver.starts_with("virtio-scsi")
        || driver.starts_with("lsi")
        || driver.starts_with("megasas")
        || matches!(driver, "pvscsi" | "am53c974" | "dc390" | "mptsas1068");
    match driver {
        "ahci" | "ich9-ahci" => Some("sata"),
        _ if usb => Some("usb"),
        _ if scsi => Some("scsi"),
        _ => None,
    }
}

/// Returns the model of a network card in libvirt's words; `None` where a driver is none.
fn card(driver: &str) -> Option<&str> {
    if driver.starts_with("virtio-net") {
        return Some("virtio");
    }
    let emulated = driver.starts_with("e1000")
        || driver.starts_with("i8255")
        || matches!(
            driver,
            "rtl8139" | "pcnet" | "ne2k_pci" | "vmxnet3" | "tulip" | "igb" | "usb-net"
        );
    emulated.then_some(driver)
}

impl DeviceReader {
    /// Notes an option that devices refer to.
    pub(super) fn backend(&mut self, name: &str, value: &str) {
        match name {
            "drive" => {
                let list = Properties::read(value, "file");
                if let Some(id) = list.text("id") {
                    self.drives.insert(id, list);
                }
            }
            "blockdev" => {
                let list = Properties::read(value, "driver");
                if let Some(id) = list.text("node-name") {
                    self.nodes.insert(id, list);
                }
            }
            "netdev" => {
                let list = Properties::read(value, "type");
                if let Some(id) = list.text("id") {
                    self.netdevs.insert(id, list);
                }
            }
            "object" => {
                let list = Properties::read(value, "qom-type");
                let Some(id) = list.text("id") else {
                    return;
                };
                match list.get("qom-type") {
                    Some("iothread") => {
                        let number =
                            u32::try_from(self.iothreads.len()).map_or(u32::MAX, |n| n + 1);
                        self.iothreads.insert(id, number);
                    }
                    Some("throttle-group") => {
                        self.groups.insert(id, limits(&list, &["limits.", "x-"]));
                    }
                    _ => {}
                }
            }
            "device" => {
                let list = Properties::read(value, "driver");
                let kind = list.get("driver").and_then(controller_kind);
                if let (Some(_), Some(id)) = (kind, list.text("id")) {
                    let number = u32::try_from(self.controllers.len()).unwrap_or(u32::MAX);
                    self.controllers.insert(id, number);
                }
            }
            _ => {}
        }
    }

    /// Notes which machine it is.
    pub(super) fn machine(&mut self, machine: Option<&str>) {
        self.q35 = machine.is_some_and(|machine| machine.contains("q35"));
    }

    /// Puts what was noted into the domain.
    pub(super) fn finish(&self, domain: &mut Domain) {
        let count = u32::try_from(self.iothreads.len()).unwrap_or(u32::MAX);
        domain.iothreads = Some(count).filter(|count| *count > 0);
    }

    /// Reads an option that makes a device.
    pub(super) fn device(&self, domain: &mut Domain, name: &str, value: &str) {
        match name {
            "device" => self.by_driver(domain, &Properties::read(value, "driver")),
            "drive" => self.drive(domain, &Properties::read(value, "file")),
            "hda" | "hdb" | "hdc" | "hdd" => {
                domain
                    .disks
                    .push(self.disk(name, self.ide(), "disk", &Properties::default()));
            }
            "net" | "nic" => {
                let list = Properties::read(value, "type");
                if let Some(model) = list.get("model").and_then(card) {
                    domain.interfaces.push(Interface {
                        kind: list.get("type").unwrap_or_default().to_owned(),
                        mac: list.text("macaddr").or(list.text("mac")),
                        model: Some(model.to_owned()),
                        target: list.text("ifname").or(list.text("netdev")),
                        ..Interface::default()
                    });
                }
            }
            "usbdevice" if value == "tablet" => domain.inputs.push(tablet(None)),
            // The machine's own controllers: a UHCI of the PIIX3, or ICH9's EHCI with its companions
            // (hw/i386/pc_piix.c, hw/i386/pc_q35.c).
            "usb" => domain.controllers.push(Controller {
                kind: "usb".to_owned(),
                model: Some(
                    if self.q35 {
                        "ich9-usb-ehci1"
                    } else {
                        "piix3-usb-uhci"
                    }
                    .to_owned(),
                ),
                ..Controller::default()
            }),
            _ => {}
        }
    }

    fn ide(&self) -> &'static str {
        if self.q35 { "sata" } else { "ide" }
    }

    /// A `-drive` that makes its own device (`if=`).
    fn drive(&self, domain: &mut Domain, list: &Properties) {
        let bus = match list.get("if") {
            Some("virtio") => "virtio",
            Some("scsi") => "scsi",
            None | Some("ide") => self.ide(),
            _ => return,
        };
        let device = match list.get("media") {
            Some("cdrom") => "cdrom",
            _ => "disk",
        };
        let name = list.get("id").unwrap_or(bus);
        domain.disks.push(self.disk(name, bus, device, list));
    }

    fn by_driver(&self, domain: &mut Domain, list: &Properties) {
        let driver = list.get("driver").unwrap_or_default();
        let id = list.get("id").unwrap_or(driver);
        if let Some(kind) = controller_kind(driver) {
            let scsi = driver.starts_with("virtio-scsi");
            domain.controllers.push(Controller {
                kind: kind.to_owned(),
                index: self.controllers.get(id).copied(),
                model: Some(if scsi { "virtio-scsi" } else { driver }.to_owned()),
                iothread: self.iothread(list),
                queues: list.number("num_queues"),
            });
            return;
        }
        if let Some(model) = card(driver) {
            domain.interfaces.push(self.interface(model, id, list));
            return;
        }
        let bus = list.get("bus").and_then(|bus| bus.split('.').next());
        let disk = match driver {
            _ if driver.starts_with("virtio-blk") => Some(("virtio", "disk")),
            "scsi-hd" | "scsi-disk" | "scsi-block" | "scsi-generic" => Some(("scsi", "disk")),
            "scsi-cd" => Some(("scsi", "cdrom")),
            "ide-hd" | "ide-drive" => Some((self.ide_bus(bus), "disk")),
            "ide-cd" => Some((self.ide_bus(bus), "cdrom")),
            "usb-storage" => Some(("usb", "disk")),
            _ => None,
        };
        if let Some((on, device)) = disk {
            let node = list.get("drive").unwrap_or_default();
            let mut disk = self.disk(id, on, device, &self.chain(node));
            disk.iothread = self.iothread(list);
            disk.queues = list.number("num-queues");
            disk.controller = bus.and_then(|bus| self.controllers.get(bus).copied());
            domain.disks.push(disk);
            return;
        }
        match driver {
            "usb-tablet" => domain.inputs.push(tablet(
                bus.and_then(|bus| self.controllers.get(bus).copied()),
            )),
            "vfio-pci" => domain.hostdevs.push(Hostdev {
                mode: Some("subsystem".to_owned()),
                kind: Some("pci".to_owned()),
            }),
            _ if driver.starts_with("virtio-balloon") => {
                domain.memballoon = Some("virtio".to_owned())
            }
            _ => {}
        }
    }

    /// Returns what the bus of an IDE device is: one of an AHCI controller is SATA.
    fn ide_bus(&self, bus: Option<&str>) -> &'static str {
        match bus {
            Some(bus) if self.controllers.contains_key(bus) => "sata",
            _ => self.ide(),
        }
    }

    fn iothread(&self, list: &Properties) -> Option<u32> {
        // A mapping of queues to iothreads is one too (iothread-vq-mapping).
        let named = list
            .get("iothread")
            .and_then(|id| self.iothreads.get(id).copied());
        let mapped = list
            .all()
            .any(|(key, _)| key.starts_with("iothread-vq-mapping"));
        named.or(mapped.then_some(1))
    }

    /// Returns the properties of a drive, or of a chain of nodes together.
    fn chain(&self, name: &str) -> Properties {
        if let Some(drive) = self.drives.get(name) {
            return drive.clone();
        }
        let mut all = Properties::default();
        let mut next = Some(name.to_owned());
        for _ in 0..CHAIN {
            let Some(node) = next.as_deref().and_then(|name| self.nodes.get(name)) else {
                break;
            };
            // The format is that of the first, its file's name and its I/O that of the last.
            all.extend(node);
            next = node.text("file");
        }
        all
    }

    fn disk(&self, name: &str, bus: &str, device: &str, list: &Properties) -> Disk {
        let cache = list.text("cache").or_else(|| {
            let direct = list.on("cache.direct") == Some(true);
            direct.then(|| "none".to_owned())
        });
        let mut limited = limits(list, &["throttling.", ""]);
        let group = list.get("throttling.group").or(list.get("throttle-group"));
        if let Some(of_group) = group.and_then(|group| self.groups.get(group)) {
            limited.extend(of_group);
        }
        Disk {
            kind: "file".to_owned(),
            device: device.to_owned(),
            target: Some(name.to_owned()),
            bus: Some(bus.to_owned()),
            source: list.text("filename").or(list.text("file")),
            driver: Some("qemu".to_owned()),
            format: list.text("format"),
            cache,
            io: list.text("aio"),
            limits: limited,
            ..Disk::default()
        }
    }

    fn interface(&self, model: &str, id: &str, list: &Properties) -> Interface {
        let netdev = list.get("netdev").and_then(|id| self.netdevs.get(id));
        let kind = netdev
            .and_then(|netdev| netdev.get("type"))
            .unwrap_or_default();
        let tap = matches!(kind, "tap" | "bridge");
        let vhost = netdev.and_then(|netdev| netdev.on("vhost")) == Some(true);
        let queues = netdev.and_then(|netdev| {
            let descriptors = netdev.get("fds").map(|fds| fds.split(':').count());
            netdev
                .number("queues")
                .or(descriptors.and_then(|count| u32::try_from(count).ok()))
        });
        let driver = match (tap && model == "virtio", vhost) {
            (true, true) => Some("vhost"),
            (true, false) => Some("qemu"),
            _ => None,
        };
        Interface {
            kind: kind.to_owned(),
            mac: list.text("mac"),
            model: Some(model.to_owned()),
            driver: driver.map(str::to_owned),
            queues,
            target: netdev
                .and_then(|netdev| netdev.text("ifname"))
                .or_else(|| Some(id.to_owned())),
            ..Interface::default()
        }
    }
}

fn tablet(controller: Option<u32>) -> InputDevice {
    InputDevice {
        kind: "tablet".to_owned(),
        bus: Some("usb".to_owned()),
        controller,
    }
}

/// Returns the limits above zero that properties set, whose names have one of some beginnings. Old names have none:
/// `iops`, `bps_rd` of `-drive` (`docs/throttle.txt`).
fn limits(list: &Properties, beginnings: &[&str]) -> BTreeMap<&'static str, u64> {
    let mut out = BTreeMap::new();
    for (libvirt, qemu, old) in DISK_LIMITS {
        let mut new = beginnings.iter().filter(|one| !one.is_empty());
        let new = new.find_map(|one| list.number(&format!("{one}{qemu}")));
        let plain = beginnings.contains(&"").then(|| list.number(old)).flatten();
        if let Some(value) = new.or(plain).filter(|value: &u64| *value > 0) {
            out.insert(libvirt, value);
        }
    }
    out
}
