//! Devices behind PCI base address registers, known by which offsets of one a guest uses.
//!
//! Where firmware or the guest places a BAR says nothing, but it begins at a multiple of its size, and the offsets that
//! a driver uses are the device's. A device is recognized by several of its registers, among them those that
//! no driver does without, and by none that it does not have. It stays a guess: names say *probably*.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::DeviceName;
use crate::{DeviceSpace, e1000, pci, uhci, virtio};

/// What a guest accessed, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedAddress {
    /// The I/O port or guest physical address.
    pub address: u64,
    /// Whether it is an I/O port.
    pub port: bool,
    /// Whether the guest wrote.
    pub write: bool,
    /// How often.
    pub count: u64,
}

/// A device that is known by what is used of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KnownDevice {
    /// Intel's gigabit network cards (QEMU's `e1000` and `e1000e`).
    E1000,
    /// A SATA controller (AHCI).
    Ahci,
    /// A USB 1 controller (UHCI).
    Uhci,
    /// A virtio device, of whatever kind.
    Virtio,
    /// A virtio memory balloon.
    VirtioBalloon,
}

impl KnownDevice {
    /// Returns what names call it.
    pub fn name(self) -> &'static str {
        match self {
            KnownDevice::E1000 => "e1000",
            KnownDevice::Ahci => "ahci",
            KnownDevice::Uhci => "uhci",
            KnownDevice::Virtio => "virtio",
            KnownDevice::VirtioBalloon => "virtio-balloon",
        }
    }
}

/// A device, and where its BAR is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedDevice {
    /// The device.
    pub device: KnownDevice,
    /// Whether the BAR is one of I/O ports.
    pub port: bool,
    /// Its first address.
    pub base: u64,
    /// Bytes of it.
    pub size: u64,
}

impl PlacedDevice {
    /// Returns whether an access is one of the device.
    pub fn holds(&self, port: bool, address: u64) -> bool {
        let offset = address.checked_sub(self.base);
        self.port == port && offset.is_some_and(|offset| offset < self.size)
    }

    /// Returns what a register of it is called; `window` is what the place is called without it.
    pub(crate) fn describe(&self, window: &str, address: u64) -> DeviceName {
        let offset = address.saturating_sub(self.base);
        let register = match (self.device, self.port) {
            (KnownDevice::E1000, _) => e1000::register(offset),
            (KnownDevice::Ahci, _) => pci::ahci_register(offset),
            (KnownDevice::Uhci, _) => uhci::register(offset),
            (KnownDevice::Virtio | KnownDevice::VirtioBalloon, true) => {
                virtio::legacy_register(offset)
            }
            (KnownDevice::Virtio | KnownDevice::VirtioBalloon, false) => {
                virtio::modern_register(offset)
            }
        };
        let device = self.device.name();
        DeviceName::register(
            window.to_owned(),
            format!("(probably {device}: {register})"),
        )
    }
}

/// Of a register at run time, so that it counts: a driver that looks for its device reads each once or twice.
const OFTEN: u64 = 5;
/// Registers of an e1000 that have to be in use.
const E1000_LEAST: usize = 4;
/// Bytes of an AHCI controller's BAR in QEMU (`hw/ide/ahci.c`).
const AHCI_BAR: u64 = 0x1000;
/// Ports of an AHCI controller whose link is asked after.
const AHCI_LINKS: usize = 3;

/// Offsets of one BAR that a guest used.
#[derive(Debug, Default)]
struct UsedOffsets {
    /// By offset and direction, how often.
    counts: BTreeMap<(u64, bool), u64>,
}

impl UsedOffsets {
    fn reads(&self, offset: u64) -> u64 {
        self.counts.get(&(offset, false)).copied().unwrap_or(0)
    }

    fn writes(&self, offset: u64) -> u64 {
        self.counts.get(&(offset, true)).copied().unwrap_or(0)
    }

    fn uses(&self, offset: u64) -> u64 {
        self.reads(offset).saturating_add(self.writes(offset))
    }

    /// How many of these are in use. Reads and writes are each as often as counts.
    fn often(&self, offsets: &[u64]) -> usize {
        let often = |offset: &&u64| self.reads(**offset).max(self.writes(**offset)) >= OFTEN;
        offsets.iter().filter(often).count()
    }

    fn all_within(&self, mut has: impl FnMut(u64) -> bool) -> bool {
        self.counts.keys().all(|(offset, _)| has(*offset))
    }

    /// Its registers have four bytes each and are accessed as a whole (317453, 13.2).
    fn is_e1000(&self) -> bool {
        self.all_within(|offset| offset % 4 == 0)
            && self.often(&e1000::USED) >= E1000_LEAST
            && self.often(&e1000::TAILS) > 0
            && self.often(&e1000::INTERRUPTS) > 0
    }

    /// At run time its IS, and IS and CI of one port; while it is set up GHC and PI, and whether ports have a link
    /// (Serial ATA AHCI specification 1.3.1, sections 3.1 and 3.3).
    fn is_ahci(&self) -> bool {
        let ports = || (0..32).map(|port| 0x100 + port * 0x80);
        let runs = |port: u64| self.often(&[port + 0x10, port + 0x38]) == 2;
        let asks = |port: &u64| self.reads(port + 0x28) > 0;
        let runs = self.often(&[0x8]) > 0 && ports().any(runs);
        let begins = self.uses(0x4) > 0 && self.uses(0xc) > 0;
        runs || begins && ports().filter(asks).count() >= AHCI_LINKS
    }

    /// USBSTS and FRNUM with one of the two ports. There is nothing at the other offsets, where a legacy virtio device
    /// has its ISR.
    fn is_uhci(&self) -> bool {
        self.often(&[0x2, 0x6]) == 2
            && self.often(&[0x10, 0x12]) > 0
            && self.all_within(|offset| matches!(offset, 0 | 2 | 4 | 6 | 8 | 0xc | 0x10 | 0x12))
    }

    /// Queues are notified, and the ISR is read (Virtio specification 1.2, section 4.1.4.8). None of UHCI's registers
    /// is at the offsets in use.
    fn is_legacy_virtio(&self) -> bool {
        self.writes(0x10) >= OFTEN
            && self.reads(0x13) >= OFTEN
            && self.all_within(|offset| !matches!(offset, 0x1..=0x3 | 0x5..=0x7 | 0x9..=0xb))
    }

    /// Its configuration begins at 0x14, as it has no MSI-X in QEMU: how many pages the host wants is read, and how
    /// many it has is written, a byte at a time (section 5.5.4; `vp_get` and `vp_set` in
    /// `drivers/virtio/virtio_pci_legacy.c`). Vectors of MSI-X, at 0x14 and 0x16, have two bytes each.
    fn is_legacy_balloon(&self) -> bool {
        (0x14..0x18).all(|offset| self.reads(offset) >= OFTEN)
            && (0x18..0x1c).all(|offset| self.writes(offset) >= OFTEN)
            && self.all_within(|offset| offset < 0x1c)
    }

    /// Queues are notified, and the ISR or the common configuration shows that this is what they are. QEMU's four areas
    /// have nothing else.
    fn is_virtio(&self) -> bool {
        let notified = (0..virtio::GUESSED_QUEUES).any(|queue| {
            self.writes(virtio::NOTIFY + queue * 4) > 0
                && self.reads(virtio::NOTIFY + queue * 4) == 0
        });
        let isr = self.reads(virtio::ISR) >= OFTEN;
        // Device status, and the choice of a queue: every driver sets both.
        let set_up = self.writes(0x14) > 0 && self.writes(0x16) > 0;
        notified && (isr || set_up) && self.all_within(virtio::is_area)
    }

    /// How many pages the host wants is read, and how many it has is written, and nothing else (section 5.5.4). A
    /// graphics card has registers at the same offsets, writes of which are rare.
    fn is_balloon(&self) -> bool {
        let device = virtio::DEVICE..virtio::NOTIFY;
        self.reads(virtio::DEVICE) >= OFTEN
            && self.writes(virtio::DEVICE + 4) >= OFTEN
            && self.all_within(|offset| !device.contains(&offset) || offset < virtio::DEVICE + 8)
    }
}

/// Sorts what was used by the BAR of a size that it is in.
fn by_bar<'u>(
    used: impl Iterator<Item = &'u UsedAddress>,
    size: u64,
) -> BTreeMap<u64, UsedOffsets> {
    let mut out: BTreeMap<u64, UsedOffsets> = BTreeMap::new();
    for one in used {
        let bar = out.entry(one.address & !(size - 1)).or_default();
        let count = bar.counts.entry((one.address & (size - 1), one.write));
        let count = count.or_default();
        *count = count.saturating_add(one.count);
    }
    out
}

type Recognition = (bool, u64, fn(&UsedOffsets) -> Option<KnownDevice>);

/// What is looked for, by the kind and the size of the BAR; larger ones first, which smaller ones cannot be a part of.
const RECOGNITIONS: [Recognition; 4] = [
    (false, e1000::BAR, |used| {
        used.is_e1000().then_some(KnownDevice::E1000)
    }),
    (false, virtio::BAR, |used| {
        used.is_virtio().then(|| match used.is_balloon() {
            true => KnownDevice::VirtioBalloon,
            false => KnownDevice::Virtio,
        })
    }),
    (false, AHCI_BAR, |used| {
        used.is_ahci().then_some(KnownDevice::Ahci)
    }),
    (true, uhci::BAR, |used| {
        if used.is_uhci() {
            return Some(KnownDevice::Uhci);
        }
        used.is_legacy_virtio()
            .then(|| match used.is_legacy_balloon() {
                true => KnownDevice::VirtioBalloon,
                false => KnownDevice::Virtio,
            })
    }),
];

/// Returns the devices that are known by what a guest used of them, in the order of their places: memory first.
///
/// Only addresses should be given at which PCI devices may be.
pub fn recognize(used: &[UsedAddress]) -> Vec<PlacedDevice> {
    let mut found: Vec<PlacedDevice> = Vec::new();
    for (port, size, recognizes) in RECOGNITIONS {
        let taken: BTreeSet<u64> = found
            .iter()
            .filter(|device| device.port == port)
            .flat_map(|device| {
                let inside = used
                    .iter()
                    .filter(|one| device.holds(one.port, one.address));
                inside.map(|one| one.address)
            })
            .collect();
        let free = used
            .iter()
            .filter(|one| one.port == port && !taken.contains(&one.address));
        let bars = by_bar(free, size).into_iter();
        found.extend(bars.filter_map(|(base, used)| {
            Some(PlacedDevice {
                device: recognizes(&used)?,
                port,
                base,
                size,
            })
        }));
    }
    found.sort_by_key(|device| (device.port, device.base));
    found
}

/// Returns the device of a place among those that were recognized.
pub(crate) fn holding(
    placed: &[PlacedDevice],
    space: DeviceSpace,
    address: u64,
) -> Option<&PlacedDevice> {
    let port = space == DeviceSpace::Io;
    placed.iter().find(|device| device.holds(port, address))
}

#[cfg(test)]
mod tests {
    use super::{KnownDevice, PlacedDevice, UsedAddress, recognize};
    use crate::{AddressNames, Arch};

    const R: bool = false;
    const W: bool = true;

    fn used(port: bool, base: u64, offsets: &[(u64, bool, u64)]) -> Vec<UsedAddress> {
        let each = offsets.iter().map(|&(offset, write, count)| UsedAddress {
            address: base + offset,
            port,
            write,
            count,
        });
        each.collect()
    }

    fn devices(used: &[UsedAddress]) -> Vec<(KnownDevice, u64)> {
        let found = recognize(used).into_iter();
        found.map(|one| (one.device, one.base)).collect()
    }

    /// Checks that something is recognized, and is not without any one of its offsets.
    fn needs_all(
        port: bool,
        base: u64,
        offsets: &[(u64, bool, u64)],
        device: KnownDevice,
        without: Option<KnownDevice>,
    ) {
        assert_eq!(devices(&used(port, base, offsets)), [(device, base)]);
        for left_out in 0..offsets.len() {
            let mut fewer = offsets.to_vec();
            fewer.remove(left_out);
            let found = devices(&used(port, base, &fewer));
            let found = found.first().map(|one| one.0);
            assert_eq!(found, without, "without {:#x?}", offsets[left_out]);
        }
    }

    #[test]
    fn an_e1000() {
        let offsets = [(0x8, R, 5), (0xc4, W, 5), (0xd8, W, 5), (0x3818, W, 5)];
        needs_all(false, 0xfebc_0000, &offsets, KnownDevice::E1000, None);
        // No queue has an end; no interrupt is ever masked; a BAR of another place.
        let none = [
            (0x8, R, 9),
            (0xc0, R, 9),
            (0xc8, W, 9),
            (0xd0, W, 9),
            (0xd8, W, 9),
        ];
        assert_eq!(devices(&used(false, 0xfebc_0000, &none)), []);
        let none = [(0x8, R, 9), (0xc4, W, 9), (0x2818, W, 9), (0x3818, W, 9)];
        assert_eq!(devices(&used(false, 0xfebc_0000, &none)), []);
        assert_eq!(devices(&used(false, 0xfebc_4000, &offsets)), []);
        let mut near = offsets.to_vec();
        near.push((0x16, W, 1));
        assert_eq!(devices(&used(false, 0xfebc_0000, &near)), []);
        // A driver that looks for its card reads each once.
        let once = offsets.map(|(offset, write, _)| (offset, write, 4));
        assert_eq!(devices(&used(false, 0xfebc_0000, &once)), []);
    }

    #[test]
    fn an_ahci_controller() {
        let runs = [(0x8, W, 5), (0x210, W, 5), (0x238, W, 5)];
        needs_all(false, 0xfebf_f000, &runs, KnownDevice::Ahci, None);
        let begins = [
            (0x4, W, 1),
            (0xc, R, 1),
            (0x128, R, 1),
            (0x1a8, R, 1),
            (0x228, R, 1),
        ];
        needs_all(false, 0xfebf_f000, &begins, KnownDevice::Ahci, None);
        // IS of one port and CI of another.
        let near = [(0x8, W, 9), (0x110, W, 9), (0x1b8, W, 9)];
        assert_eq!(devices(&used(false, 0xfebf_f000, &near)), []);
    }

    #[test]
    fn a_uhci_controller_and_what_is_behind_ports() {
        let uhci = [(0x2, R, 9), (0x6, R, 9), (0x10, R, 9)];
        needs_all(true, 0xc040, &uhci, KnownDevice::Uhci, None);
        let mut near = uhci.to_vec();
        near.push((0x13, R, 1));
        assert_eq!(devices(&used(true, 0xc040, &near)), []);
        // The two channels of an IDE controller's DMA, and another's beside them.
        let dma = [
            (0x0, W, 9),
            (0x2, R, 9),
            (0x4, W, 9),
            (0x10, W, 9),
            (0x12, R, 9),
            (0x14, W, 9),
        ];
        assert_eq!(devices(&used(true, 0xc060, &dma)), []);
        let virtio = [(0x10, W, 9), (0x13, R, 9)];
        needs_all(true, 0xc020, &virtio, KnownDevice::Virtio, None);
        // A register of two bytes in the middle of one of virtio's of four.
        let near = [(0x10, W, 9), (0x13, R, 9), (0x2, R, 1)];
        assert_eq!(devices(&used(true, 0xc020, &near)), []);
    }

    #[test]
    fn a_balloon() {
        let mut ports = vec![(0x10, W, 9), (0x13, R, 9)];
        assert_eq!(
            devices(&used(true, 0xc000, &ports)),
            [(KnownDevice::Virtio, 0xc000)]
        );
        let first = ports.len();
        ports.extend((0x14..0x18).map(|offset| (offset, R, 5)));
        ports.extend((0x18..0x1c).map(|offset| (offset, W, 5)));
        assert_eq!(
            devices(&used(true, 0xc000, &ports)),
            [(KnownDevice::VirtioBalloon, 0xc000)]
        );
        for left_out in first..ports.len() {
            let mut fewer = ports.clone();
            fewer.remove(left_out);
            assert_eq!(
                devices(&used(true, 0xc000, &fewer)),
                [(KnownDevice::Virtio, 0xc000)]
            );
        }
        // A network card's address is six bytes.
        ports.extend((0x1c..0x1e).map(|offset| (offset, W, 5)));
        assert_eq!(
            devices(&used(true, 0xc000, &ports)),
            [(KnownDevice::Virtio, 0xc000)]
        );
    }

    #[test]
    fn virtio_with_its_areas_in_memory() {
        let base = 0x38_0000_4000;
        let isr = [(0x3004, W, 1), (0x1000, R, 5)];
        needs_all(false, base, &isr, KnownDevice::Virtio, None);
        let set_up = [(0x3000, W, 1), (0x14, W, 1), (0x16, W, 1)];
        needs_all(false, base, &set_up, KnownDevice::Virtio, None);
        // What no area has.
        for other in [(0x1004, R, 1), (0x3002, W, 1), (0x100, R, 1)] {
            let mut near = isr.to_vec();
            near.push(other);
            assert_eq!(devices(&used(false, base, &near)), [], "{other:x?}");
        }
        let mut balloon = isr.to_vec();
        balloon.extend([(0x2000, R, 5), (0x2004, W, 5)]);
        assert_eq!(
            devices(&used(false, base, &balloon)),
            [(KnownDevice::VirtioBalloon, base)]
        );
        balloon.push((0x2008, R, 1));
        assert_eq!(
            devices(&used(false, base, &balloon)),
            [(KnownDevice::Virtio, base)]
        );
    }

    #[test]
    fn names_are_given_where_nothing_else_says_what_is_there() {
        let card = [(0x8, R, 9), (0xc0, R, 9), (0xd8, W, 9), (0x3818, W, 9)];
        let card = used(false, 0xfebc_0000, &card);
        let names = AddressNames::builtin(Arch::X86).with_used(&card);
        let text = |names: &AddressNames, gpa| {
            let name = names.mmio(gpa, true);
            name.map(|name| name.to_string())
        };
        assert_eq!(
            text(&names, 0xfebc_3818).as_deref(),
            Some("PCI device memory (probably e1000: TDT)")
        );
        assert_eq!(
            text(&names, 0xfebc_40d0).as_deref(),
            Some("PCI device memory (probably e1000: statistics)")
        );
        assert_eq!(
            text(&names, 0xfebe_0000).as_deref(),
            Some("PCI device memory")
        );
        let tree = "0000000000000000-ffffffffffffffff (prio 0, i/o): system\n  \
            00000000febc0000-00000000febdffff (prio 1, i/o): other-mmio\n";
        let (names, _) = AddressNames::builtin(Arch::X86).with_mtree(tree);
        let names = names.with_used(&card);
        assert_eq!(text(&names, 0xfebc_3818).as_deref(), Some("other-mmio"));
        // What a PC has at fixed places is no PCI device.
        let ports = [(0x2, R, 9), (0x6, R, 9), (0x10, R, 9)];
        let names = AddressNames::builtin(Arch::X86);
        let at = |base| names.clone().with_used(&used(true, base, &ports));
        let port = |names: AddressNames, port| names.port(port, false).map(|one| one.to_string());
        assert_eq!(
            port(at(0xc040), 0xc046).as_deref(),
            Some("PCI device I/O (probably uhci: FRNUM)")
        );
        assert_eq!(port(at(0x40), 0x40).as_deref(), Some("PIT counter 0"));
    }

    #[test]
    fn a_place_has_its_end() {
        let device = PlacedDevice {
            device: KnownDevice::Ahci,
            port: false,
            base: 0x1000,
            size: 0x1000,
        };
        assert!(device.holds(false, 0x1000) && device.holds(false, 0x1fff));
        assert!(!device.holds(false, 0xfff) && !device.holds(false, 0x2000));
        assert!(!device.holds(true, 0x1000));
    }
}
