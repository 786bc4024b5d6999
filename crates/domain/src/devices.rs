//! `<devices>`.

use std::collections::BTreeMap;

use crate::data::{
    Controller, DISK_LIMITS, Disk, Domain, DomainConsole, Hostdev, InputDevice, Interface,
};
use crate::read::DomainReader;
use crate::tree::{self, XmlNode, attr, child, elements};

/// Returns an attribute of an element in a node.
fn of(node: XmlNode<'_, '_>, name: &str, attribute: &str) -> Option<String> {
    attr(child(node, name)?, attribute).map(str::to_owned)
}

/// Returns the first that there is of several attributes of an element in a node.
fn any_of(node: XmlNode<'_, '_>, name: &str, attributes: &[&str]) -> Option<String> {
    let element = child(node, name)?;
    let value = attributes.iter().find_map(|wanted| attr(element, wanted));
    value.map(str::to_owned)
}

impl DomainReader {
    /// Reads the devices that matter for where time goes.
    pub(crate) fn devices(&mut self, domain: &mut Domain, node: XmlNode<'_, '_>) {
        for device in elements(node) {
            match device.tag_name().name() {
                "emulator" => domain.emulator = Some(tree::text(device).into_owned()),
                "disk" => {
                    let disk = self.disk(device);
                    domain.disks.push(disk);
                }
                "controller" => {
                    let driver = child(device, "driver");
                    domain.controllers.push(Controller {
                        kind: attr(device, "type").unwrap_or_default().to_owned(),
                        index: self.number(device, "index"),
                        model: attr(device, "model").map(str::to_owned),
                        iothread: driver.and_then(|driver| self.number(driver, "iothread")),
                        queues: driver.and_then(|driver| self.number(driver, "queues")),
                    });
                }
                "interface" => {
                    let interface = self.interface(device);
                    domain.interfaces.push(interface);
                }
                name @ ("serial" | "console") => {
                    let target = child(device, "target");
                    domain.consoles.push(DomainConsole {
                        line: self.line(device),
                        element: name.to_owned(),
                        kind: attr(device, "type").map(str::to_owned),
                        target_type: of(device, "target", "type"),
                        port: target.and_then(|target| self.number(target, "port")),
                        model: target.and_then(|target| of(target, "model", "name")),
                    });
                }
                "input" => {
                    let address = child(device, "address");
                    let address = address.filter(|one| attr(*one, "type") == Some("usb"));
                    domain.inputs.push(InputDevice {
                        kind: attr(device, "type").unwrap_or_default().to_owned(),
                        bus: attr(device, "bus").map(str::to_owned),
                        controller: address.and_then(|one| self.number(one, "bus")),
                    });
                }
                "hostdev" => domain.hostdevs.push(Hostdev {
                    mode: attr(device, "mode").map(str::to_owned),
                    kind: attr(device, "type").map(str::to_owned),
                }),
                "memballoon" => {
                    domain.memballoon = attr(device, "model").map(str::to_owned);
                    domain.free_page_reporting = self.switch(device, "freePageReporting");
                }
                "watchdog" => {
                    let model = attr(device, "model").unwrap_or_default();
                    domain.watchdogs.push(model.to_owned());
                }
                "iommu" => domain.iommu = attr(device, "model").map(str::to_owned),
                _ => {}
            }
        }
    }

    fn disk(&mut self, node: XmlNode<'_, '_>) -> Disk {
        let driver = child(node, "driver");
        let address = child(node, "address").filter(|a| attr(*a, "type") == Some("drive"));
        Disk {
            line: self.line(node),
            kind: attr(node, "type").unwrap_or_default().to_owned(),
            // What a disk is by default (virDomainDiskDefParseXML).
            device: attr(node, "device").unwrap_or("disk").to_owned(),
            target: of(node, "target", "dev"),
            bus: of(node, "target", "bus"),
            source: any_of(node, "source", &["file", "dev", "name"]),
            driver: of(node, "driver", "name"),
            format: of(node, "driver", "type"),
            cache: of(node, "driver", "cache"),
            io: of(node, "driver", "io"),
            iothread: driver.and_then(|driver| self.number(driver, "iothread")),
            queues: driver.and_then(|driver| self.number(driver, "queues")),
            ioeventfd: driver.and_then(|driver| self.switch(driver, "ioeventfd")),
            discard: of(node, "driver", "discard"),
            controller: address.and_then(|address| self.number(address, "controller")),
            limits: self.limits(node),
        }
    }

    /// Reads `<iotune>`; zero is no limit there (`docs/formatdomain.rst`).
    fn limits(&mut self, disk: XmlNode<'_, '_>) -> BTreeMap<&'static str, u64> {
        let mut limits = BTreeMap::new();
        for limit in child(disk, "iotune").into_iter().flat_map(elements) {
            let name = limit.tag_name().name();
            let Some((known, ..)) = DISK_LIMITS.iter().find(|(known, ..)| *known == name) else {
                continue;
            };
            let text = tree::text(limit);
            if let Some(value) = self.parsed(limit, "the text", &text, "a number")
                && value > 0
            {
                limits.insert(*known, value);
            }
        }
        limits
    }

    fn interface(&mut self, node: XmlNode<'_, '_>) -> Interface {
        let driver = child(node, "driver");
        let mut number = |name: &str| driver.and_then(|driver| self.number(driver, name));
        Interface {
            queues: number("queues"),
            rx_queue_size: number("rx_queue_size"),
            tx_queue_size: number("tx_queue_size"),
            ioeventfd: driver.and_then(|driver| self.switch(driver, "ioeventfd")),
            line: self.line(node),
            kind: attr(node, "type").unwrap_or_default().to_owned(),
            source: any_of(node, "source", &["network", "bridge", "dev", "path"]),
            mac: of(node, "mac", "address"),
            model: of(node, "model", "type"),
            driver: of(node, "driver", "name"),
            target: of(node, "target", "dev"),
        }
    }
}
