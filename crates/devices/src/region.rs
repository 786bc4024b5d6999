//! Regions of an address space, and from an address to the region that holds it.

/// The name given to the windows of the built-in machines in which firmware places PCI devices.
pub(crate) const WINDOW: &str = "PCI device memory";

/// The same of I/O ports.
pub(crate) const PORT_WINDOW: &str = "PCI device I/O";

/// Whether a region of a built-in machine is one of these windows.
pub(crate) fn is_window(name: &str) -> bool {
    name == WINDOW || name == PORT_WINDOW
}

/// A region of a built-in machine: first and last address, and the name QEMU gives it.
pub(crate) struct MachineRegion(pub u64, pub u64, pub &'static str);

/// A region found for an address.
#[derive(Clone, Debug)]
pub(crate) struct RegionHit<'a> {
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
pub(crate) fn find(regions: &[MachineRegion], addr: u64) -> Option<RegionHit<'static>> {
    let MachineRegion(base, end, name) = regions
        .iter()
        .filter(|MachineRegion(low, high, _)| (*low..=*high).contains(&addr))
        .min_by_key(|MachineRegion(low, high, _)| high - low)?;
    let first = regions.iter().filter(|r| r.2 == *name).map(|r| r.0).min();
    Some(RegionHit {
        name,
        parent: "",
        base: *base,
        last: end - base,
        offset: addr - base,
        first: first.unwrap_or(*base),
    })
}
