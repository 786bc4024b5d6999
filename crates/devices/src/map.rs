//! From a region's name to the register table that applies.
//!
//! The names are QEMU's (`memory_region_init_io` and its kin, one per device source file). KVM's in-kernel
//! devices have the same name with `kvm-` before it.

use crate::name::Name;
use crate::region::{Place, WINDOW};
use crate::{Space, apic, gic, hpet, pci, ports, uart, virt, virtio};

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
        (Space::Memory, WINDOW) => pci::window(place, write),
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
