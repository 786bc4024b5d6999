//! PCI: MSI-X tables (PCI Express base specification 3.0, section 7.7.2.5 and 6.8.2), configuration space in
//! memory (ECAM, section 7.2.2), and AHCI controllers (Serial ATA AHCI specification 1.3.1, section 3), which
//! `q35` always has.

use std::borrow::Cow;

use crate::name::DeviceName;
use crate::region::{RegionHit, WINDOW};
use crate::regs::{self, Reg};
use crate::virtio;

/// An address in a window of PCI devices: which one cannot be known without the guest's or QEMU's help.
pub(crate) fn window(place: &RegionHit<'_>, write: bool) -> DeviceName {
    let addr = place.base.wrapping_add(place.offset);
    match virtio::guessed_queue(addr % virtio::BAR).filter(|_| write) {
        Some(queue) => {
            DeviceName::register(WINDOW, format!("(queue notify, queue {queue}, if virtio)"))
        }
        None => DeviceName::device(WINDOW),
    }
}

/// The configuration space of every function, 4 KiB each.
pub(crate) fn ecam(offset: u64) -> DeviceName {
    let bus = offset >> 20;
    let device = (offset >> 15) & 0x1f;
    let function = (offset >> 12) & 7;
    let device = format!("PCI config {bus:02x}:{device:02x}.{function}");
    DeviceName::register(device, regs::plain(offset & 0xfff))
}

const MSIX_ENTRY: &[Reg] = &[
    Reg(0, 8, "address"),
    Reg(8, 4, "data"),
    Reg(12, 4, "vector control"),
];

/// An MSI-X table: the region around it is named for the device.
pub(crate) fn msix_table(place: &RegionHit<'_>) -> DeviceName {
    let field = regs::at(MSIX_ENTRY, place.offset % 16);
    let entry = format!("MSI-X entry {} {field}", place.offset / 16);
    match place.parent.strip_suffix("-msix") {
        Some(device) => DeviceName::register(device.to_string(), entry),
        None => DeviceName::device(entry),
    }
}

const AHCI: &[Reg] = &[
    Reg(0x00, 4, "CAP"),
    Reg(0x04, 4, "GHC"),
    Reg(0x08, 4, "IS"),
    Reg(0x0c, 4, "PI"),
    Reg(0x10, 4, "VS"),
];

const AHCI_PORT: &[Reg] = &[
    Reg(0x00, 8, "CLB"),
    Reg(0x08, 8, "FB"),
    Reg(0x10, 4, "IS"),
    Reg(0x14, 4, "IE"),
    Reg(0x18, 4, "CMD"),
    Reg(0x20, 4, "TFD"),
    Reg(0x24, 4, "SIG"),
    Reg(0x28, 4, "SSTS"),
    Reg(0x2c, 4, "SCTL"),
    Reg(0x30, 4, "SERR"),
    Reg(0x34, 4, "SACT"),
    Reg(0x38, 4, "CI"),
];

/// AHCI has 32 ports of 0x80 bytes from 0x100 on.
pub(crate) fn ahci_register(offset: u64) -> Cow<'static, str> {
    match offset.checked_sub(0x100) {
        Some(into) if into < 32 * 0x80 => {
            let register = regs::at(AHCI_PORT, into % 0x80);
            format!("port {} {register}", into / 0x80).into()
        }
        _ => regs::at(AHCI, offset),
    }
}

pub(crate) fn ahci(offset: u64) -> DeviceName {
    DeviceName::register("ahci", ahci_register(offset))
}

#[cfg(test)]
mod tests {
    use super::{ahci, ecam, msix_table, window};
    use crate::region::{RegionHit, WINDOW};

    fn place<'a>(name: &'a str, parent: &'a str, offset: u64) -> RegionHit<'a> {
        RegionHit {
            name,
            parent,
            base: 0xc000_0000,
            last: 0x3fff_ffff,
            offset,
            first: 0,
        }
    }

    #[test]
    fn windows_only_guess_with_an_if() {
        let text = |offset, write| window(&place(WINDOW, "", offset), write).to_string();
        assert_eq!(
            text(0x3004, true),
            "PCI device memory (queue notify, queue 1, if virtio)"
        );
        assert_eq!(text(0x3004, false), "PCI device memory");
        assert_eq!(text(0x3005, true), "PCI device memory");
        assert_eq!(text(0x3818, true), "PCI device memory");
        assert_eq!(text(0x2004, true), "PCI device memory");
    }

    #[test]
    fn configuration_space() {
        assert_eq!(ecam(0xf_b030).to_string(), "PCI config 00:1f.3 +0x30");
        assert_eq!(ecam(0x123_4567).to_string(), "PCI config 12:06.4 +0x567");
    }

    #[test]
    fn msix_entries() {
        let text = |parent, offset| msix_table(&place("msix-table", parent, offset)).to_string();
        assert_eq!(
            text("virtio-net-pci-msix", 0x1c),
            "virtio-net-pci MSI-X entry 1 vector control"
        );
        assert_eq!(text("nvme-bar0", 0x04), "MSI-X entry 0 address (high)");
        assert_eq!(text("", 0x28), "MSI-X entry 2 data");
    }

    #[test]
    fn ahci_ports() {
        assert_eq!(ahci(0x08).to_string(), "ahci IS");
        assert_eq!(ahci(0x128).to_string(), "ahci port 0 SSTS");
        assert_eq!(ahci(0x398).to_string(), "ahci port 5 CMD");
        assert_eq!(ahci(0x2000).to_string(), "ahci +0x2000");
    }
}
