//! `<devices>`.

use super::{ChangeOutcome, ChangeTarget};
use crate::change::DeviceChoice;
use crate::element::Element;
use crate::read::MAX_VCPUS;
use crate::tree::{XmlNode, attr, child};

/// Returns an attribute of an element in a device.
fn of<'p>(device: XmlNode<'p, '_>, name: &str, attribute: &str) -> Option<&'p str> {
    attr(child(device, name)?, attribute)
}

/// Returns whether a disk hangs on virtio: its bus, or its name where libvirt takes the bus from.
pub(super) fn is_virtio_disk(bus: Option<&str>, target: Option<&str>) -> bool {
    match bus {
        Some(bus) => bus == "virtio",
        None => target.is_some_and(|target| target.starts_with("vd")),
    }
}

impl<'p, 't> ChangeTarget<'p, 't> {
    /// Finds one device, or says why there is none.
    fn device(
        &self,
        element: &str,
        which: &DeviceChoice,
    ) -> Result<XmlNode<'p, 't>, ChangeOutcome> {
        let devices = self.all(&["devices", element]);
        let found = match which {
            DeviceChoice::Index(index) => devices.get(*index),
            DeviceChoice::Name(name) => devices.iter().find(|device| {
                of(**device, "target", "dev") == Some(name)
                    || of(**device, "mac", "address")
                        .is_some_and(|mac| mac.eq_ignore_ascii_case(name))
            }),
        };
        found.copied().ok_or_else(|| {
            let what = format!(
                "there is no {element} {which}: the domain has {}: not made",
                devices.len()
            );
            self.refused(self.domain, what)
        })
    }

    /// Gives a device's driver an attribute.
    fn driver(
        &self,
        device: XmlNode<'p, 't>,
        new: Element,
        name: &'static str,
        value: &str,
        what: String,
    ) -> ChangeOutcome {
        match child(device, "driver") {
            Some(driver) => self.set_all(&[driver], name, value, what),
            None => {
                let driver = new.with(name, value);
                ChangeOutcome::Edits(vec![self.page.insert(device, &driver)])
            }
        }
    }

    fn disk(&self, disk: &DeviceChoice, name: &'static str, value: &str) -> ChangeOutcome {
        let device = match self.device("disk", disk) {
            Ok(device) => device,
            Err(refused) => return refused,
        };
        let what = format!("the disk {disk} has {name}='{value}' already");
        self.driver(
            device,
            Element::new("driver").with("name", "qemu"),
            name,
            value,
            what,
        )
    }

    /// Like [`ChangeTarget::disk`], for what only disks on virtio have.
    fn virtio_disk(&self, disk: &DeviceChoice, name: &'static str, value: &str) -> ChangeOutcome {
        let device = match self.device("disk", disk) {
            Ok(device) => device,
            Err(refused) => return refused,
        };
        let bus = of(device, "target", "bus");
        if !is_virtio_disk(bus, of(device, "target", "dev")) {
            let what = format!(
                "the disk {disk} is on the bus {}, whose disks have no {name} of their own; \
                 expected virtio: not made",
                bus.unwrap_or("of libvirt's choice")
            );
            return self.refused(device, what);
        }
        self.disk(disk, name, value)
    }

    pub(super) fn disk_cache(&self, disk: &DeviceChoice, cache: &str) -> ChangeOutcome {
        let known = [
            "none",
            "writeback",
            "writethrough",
            "directsync",
            "unsafe",
            "default",
        ];
        self.unknown("cache mode", cache, &known)
            .unwrap_or_else(|| self.disk(disk, "cache", cache))
    }

    pub(super) fn disk_io(&self, disk: &DeviceChoice, io: &str) -> ChangeOutcome {
        self.unknown("mode of I/O", io, &["threads", "native", "io_uring"])
            .unwrap_or_else(|| self.disk(disk, "io", io))
    }

    pub(super) fn disk_iothread(&self, disk: &DeviceChoice, iothread: u32) -> ChangeOutcome {
        if iothread == 0 {
            let what = "iothreads are counted from 1: there is no iothread 0: not made";
            return self.refused(self.domain, what);
        }
        self.virtio_disk(disk, "iothread", &iothread.to_string())
    }

    pub(super) fn disk_queues(&self, disk: &DeviceChoice, queues: u32) -> ChangeOutcome {
        self.no_queues(queues)
            .unwrap_or_else(|| self.virtio_disk(disk, "queues", &queues.to_string()))
    }

    pub(super) fn controller_iothread(&self, index: u32, iothread: u32) -> ChangeOutcome {
        if iothread == 0 {
            let what = "iothreads are counted from 1: there is no iothread 0: not made";
            return self.refused(self.domain, what);
        }
        let is_it = |controller: &XmlNode<'_, '_>| {
            let number = attr(*controller, "index").and_then(|index| index.trim().parse().ok());
            let virtio =
                attr(*controller, "model").is_some_and(|model| model.starts_with("virtio"));
            attr(*controller, "type") == Some("scsi") && virtio && number == Some(index)
        };
        let controllers = self.all(&["devices", "controller"]);
        let Some(controller) = controllers.into_iter().find(is_it) else {
            let what = format!("there is no virtio-scsi controller {index}: not made");
            return self.refused(self.domain, what);
        };
        let what = format!("the controller {index} has iothread='{iothread}' already");
        let value = iothread.to_string();
        self.driver(controller, Element::new("driver"), "iothread", &value, what)
    }

    /// Returns why a number of queues cannot be.
    fn no_queues(&self, queues: u32) -> Option<ChangeOutcome> {
        let sound = (1..=MAX_VCPUS).contains(&queues);
        let what =
            format!("{queues} queues cannot be; expected one for each vCPU at most: not made");
        (!sound).then(|| self.refused(self.domain, what))
    }

    /// Finds an interface whose packets QEMU or vhost carry, or says why it is none.
    fn tap(&self, interface: &DeviceChoice) -> Result<XmlNode<'p, 't>, ChangeOutcome> {
        let device = self.device("interface", interface)?;
        let kind = attr(device, "type").unwrap_or_default();
        let no = |why: String| {
            let what = format!("the interface {interface} {why}: not made");
            Err(self.refused(device, what))
        };
        // Those that have a tap device (qemuInterfaceVhostNet and its callers).
        if !["network", "bridge", "direct", "ethernet"].contains(&kind) {
            return no(format!(
                "is of type='{}', which has no choice of vhost; \
                 expected network, bridge, direct or ethernet",
                crate::error::quoted(kind)
            ));
        }
        match of(device, "model", "type") {
            Some("virtio" | "virtio-transitional" | "virtio-non-transitional") => Ok(device),
            model => no(format!(
                "has the model {}; expected virtio",
                model.map_or_else(|| "of libvirt's choice".to_owned(), crate::error::quoted)
            )),
        }
    }

    pub(super) fn interface_driver(&self, interface: &DeviceChoice, name: &str) -> ChangeOutcome {
        if let Some(refused) = self.unknown("driver of an interface", name, &["vhost", "qemu"]) {
            return refused;
        }
        match self.tap(interface) {
            Ok(device) => {
                let what = format!("the interface {interface} has the driver {name} already");
                self.driver(device, Element::new("driver"), "name", name, what)
            }
            Err(refused) => refused,
        }
    }

    pub(super) fn interface_queues(&self, interface: &DeviceChoice, queues: u32) -> ChangeOutcome {
        if let Some(refused) = self.no_queues(queues) {
            return refused;
        }
        match self.tap(interface) {
            Ok(device) => {
                let what = format!("the interface {interface} has {queues} queues already");
                let value = queues.to_string();
                self.driver(device, Element::new("driver"), "queues", &value, what)
            }
            Err(refused) => refused,
        }
    }

    pub(super) fn console_virtio(&self) -> ChangeOutcome {
        let consoles = self.all(&["devices", "console"]);
        let virtio = |console: &&XmlNode<'_, '_>| of(**console, "target", "type") == Some("virtio");
        if let Some(console) = consoles.iter().find(virtio) {
            return self.holds(*console, "there is a virtio console already");
        }
        let target = Element::new("target").with("type", "virtio");
        let target = target.with("port", consoles.len());
        let console = Element::new("console").with("type", "pty").holding(target);
        self.put(&["devices"], console)
    }

    pub(super) fn remove_serial(&self, port: u32) -> ChangeOutcome {
        let port_of = |node: &XmlNode<'p, 't>| {
            let port = of(*node, "target", "port")?;
            port.trim().parse::<u32>().ok()
        };
        let serials = self.all(&["devices", "serial"]);
        // One without a number has that of its place, so another one gone would give it another.
        let nameless = serials.iter().find(|serial| port_of(serial).is_none());
        if let (Some(serial), [_, _, ..]) = (nameless, &serials[..]) {
            let what = "one of several serial ports has no number, \
                        which would change with another one gone: not made";
            return self.refused(*serial, what);
        }
        // A console on a serial port, the first if none is given, is another name of it, and would bring it back.
        let consoles = self.all(&["devices", "console"]);
        let aliases = consoles.iter().filter(|console| {
            let kind = of(**console, "target", "type");
            matches!(kind, None | Some("serial"))
        });
        let found = serials.iter().chain(aliases);
        let found: Vec<_> = found
            .filter(|node| port_of(node).unwrap_or(0) == port)
            .copied()
            .collect();
        if found.is_empty() {
            let what = format!("there is no serial port {port}: nothing to remove");
            return self.holds(self.domain, what);
        }
        self.remove_all(&found)
    }
}
