//! From an address to a region, and from a region's name to the register table that applies.
//!
//! The names are QEMU's (`memory_region_init_io` and its kin, one per device source file). KVM's in-kernel
//! devices have the same name with `kvm-` before it.

use crate::name::Name;
use crate::{Space, apic, gic, hpet, pci, ports, uart, virt, virtio};

/// A region of a built-in machine: first and last address, and the name QEMU gives it.
pub(crate) struct Region(pub u64, pub u64, pub &'static str);

/// A region found for an address.
#[derive(Clone, Debug)]
pub(crate) struct Place<'a> {
    /// QEMU's name of the region.
    pub name: &'a str,
    /// The name of the region around it; empty if there is none or it is not known.
    pub parent: &'a str,
    /// Where the region begins in the address space.
    pub base: u64,
    /// Bytes in the region, less one.
    pub last: u64,
    /// Bytes from the region's beginning to the address.
    pub offset: u64,
    /// Where the first region of that name begins, for devices that are counted: see `virtio-mmio`.
    pub first: u64,
}

/// The smallest region of `regions` that holds `addr`.
pub(crate) fn find(regions: &[Region], addr: u64) -> Option<Place<'static>> {
    let Region(base, end, name) = regions
        .iter()
        .filter(|Region(low, high, _)| (*low..=*high).contains(&addr))
        .min_by_key(|Region(low, high, _)| high - low)?;
    let first = regions.iter().filter(|r| r.2 == *name).map(|r| r.0).min();
    Some(Place {
        name,
        parent: "",
        base: *base,
        last: end - base,
        offset: addr - base,
        first: first.unwrap_or(*base),
    })
}

/// Regions that hold others and are no device.
pub(crate) fn is_container(name: &str) -> bool {
    matches!(
        name,
        "" | "system"
            | "memory"
            | "io"
            | "pci"
            | "bus master container"
            | "bus master"
            | "mem-container-smram"
            | "smram"
            | "platform bus"
            | "gpex_mmio"
            | "gpex_mmio_window"
            | "gpex_ioport"
            | "gpex_ioport_window"
    ) || name.starts_with("pci_bridge_")
}

/// What `place` is called.
pub(crate) fn describe(space: Space, place: &Place<'_>, write: bool) -> Option<Name> {
    if is_container(place.name) {
        return None;
    }
    let bare = place.name.strip_prefix("kvm-").unwrap_or(place.name);
    let off = place.offset;
    let name = match (space, bare) {
        (Space::Memory, "hpet") => hpet::name(off),
        (Space::Memory, "apic-msi") => apic::local(off),
        (Space::Memory, "ioapic") => apic::io(off),
        (Space::Memory, "pl011") => uart::pl011(off),
        (Space::Memory, "pl031") => virt::pl031(off),
        (Space::Memory, "pl061") => virt::pl061(off),
        (Space::Memory, "gic_dist" | "gicv3_dist") => gic::distributor(off),
        (Space::Memory, "gic_cpu") => gic::cpu_interface(off),
        (Space::Memory, "gicv2m") => gic::v2m(off),
        (Space::Memory, "control") if its(place) => gic::its(off),
        (Space::Memory, "translation") if its(place) => gic::its(gic::ITS_TRANSLATION + off),
        (Space::Memory, "gicv3_its") => gic::its(off),
        (Space::Memory, "virtio-mmio") => virtio::mmio(place, write),
        (Space::Memory, "msix-table") => pci::msix_table(place),
        (Space::Memory, "ahci") => pci::ahci(off),
        (Space::Memory, "pcie-mmcfg-mmio" | "pcie-ecam") => pci::ecam(off),
        (Space::Memory, pci::WINDOW) => pci::window(place, write),
        (Space::Memory, name) if name.starts_with("gicv3_redist_region") => {
            gic::redistributor(name, off)
        }
        (Space::Io, "virtio-pci") => virtio::legacy(off),
        (_, "serial") => uart::serial(space, place, write),
        (_, name) if name.starts_with("fwcfg") => ports::fwcfg(space, place),
        (_, name) if name.starts_with("virtio-pci-") => {
            virtio::pci(place).unwrap_or_else(|| Name::device(place.name.to_string()))
        }
        (Space::Io, _) => ports::register(bare, place, write)
            .unwrap_or_else(|| Name::device(place.name.to_string())),
        _ => Name::device(place.name.to_string()),
    };
    Some(name)
}

/// The two halves of an ITS have names that any region may have: by the region around them, or by their size
/// in a flat view, which has no regions around others.
fn its(place: &Place<'_>) -> bool {
    place.parent == "gicv3_its" || (place.parent.is_empty() && place.last == 0xffff)
}
