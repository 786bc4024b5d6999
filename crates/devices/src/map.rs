//! From a region's name to the register table that applies.
//!
//! The names are QEMU's (`memory_region_init_io` and its kin, one per device source file). KVM's in-kernel
//! devices have the same name with `kvm-` before it.

use crate::name::DeviceName;
use crate::region::{RegionHit, WINDOW};
use crate::{DeviceSpace, apic, e1000, gic, hpet, pci, ports, uart, uhci, virt, virtio};

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
pub(crate) fn describe(
    space: DeviceSpace,
    place: &RegionHit<'_>,
    write: bool,
) -> Option<DeviceName> {
    if is_container(place.name) {
        return None;
    }
    let bare = place.name.strip_prefix("kvm-").unwrap_or(place.name);
    let off = place.offset;
    let name = match (space, bare) {
        (DeviceSpace::Memory, "hpet") => hpet::name(off),
        (DeviceSpace::Memory, "apic-msi") => apic::local(off),
        (DeviceSpace::Memory, "ioapic") => apic::io(off),
        (DeviceSpace::Memory, "pl011") => uart::pl011(off),
        (DeviceSpace::Memory, "pl031") => virt::pl031(off),
        (DeviceSpace::Memory, "pl061") => virt::pl061(off),
        (DeviceSpace::Memory, "gic_dist" | "gicv3_dist") => gic::distributor(off),
        (DeviceSpace::Memory, "gic_cpu") => gic::cpu_interface(off),
        (DeviceSpace::Memory, "gicv2m") => gic::v2m(off),
        (DeviceSpace::Memory, "control") if its(place) => gic::its(off),
        (DeviceSpace::Memory, "translation") if its(place) => gic::its(gic::ITS_TRANSLATION + off),
        (DeviceSpace::Memory, "gicv3_its") => gic::its(off),
        (DeviceSpace::Memory, "virtio-mmio") => virtio::mmio(place, write),
        (DeviceSpace::Memory, "msix-table") => pci::msix_table(place),
        (DeviceSpace::Memory, "ahci") => pci::ahci(off),
        (DeviceSpace::Memory, "e1000-mmio") => DeviceName::register("e1000", e1000::register(off)),
        (DeviceSpace::Io, "uhci") => DeviceName::register("uhci", uhci::register(off)),
        (DeviceSpace::Memory, "pcie-mmcfg-mmio" | "pcie-ecam") => pci::ecam(off),
        (DeviceSpace::Memory, WINDOW) => pci::window(place, write),
        (DeviceSpace::Memory, name) if name.starts_with("gicv3_redist_region") => {
            gic::redistributor(name, off)
        }
        (DeviceSpace::Io, "virtio-pci") => virtio::legacy(off),
        (_, "serial") => uart::serial(space, place, write),
        (_, name) if name.starts_with("fwcfg") => ports::fwcfg(space, place),
        (_, name) if name.starts_with("virtio-pci-") => {
            virtio::pci(place).unwrap_or_else(|| DeviceName::device(place.name.to_string()))
        }
        (DeviceSpace::Io, _) => ports::register(bare, place, write)
            .unwrap_or_else(|| DeviceName::device(place.name.to_string())),
        _ => DeviceName::device(place.name.to_string()),
    };
    Some(name)
}

/// The two halves of an ITS have names that any region may have: by the region around them, or by their size
/// in a flat view, which has no regions around others.
fn its(place: &RegionHit<'_>) -> bool {
    place.parent == "gicv3_its" || (place.parent.is_empty() && place.last == 0xffff)
}
