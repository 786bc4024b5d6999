//! Virtio register layouts: Virtual I/O Device specification 1.2, sections 4.1.4.3 (PCI common configuration),
//! 4.1.4.8 (legacy PCI), 4.2.2 and 4.2.4 (MMIO, and legacy MMIO); kernel `include/uapi/linux/virtio_mmio.h`
//! and `virtio_pci.h`; region names and sizes from QEMU `hw/virtio/virtio-pci.c` and `virtio-mmio.c`.

use std::borrow::Cow;

use crate::name::DeviceName;
use crate::region::RegionHit;
use crate::regs::{self, Reg};

const MMIO: &[Reg] = &[
    Reg(0x000, 4, "magic value"),
    Reg(0x004, 4, "version"),
    Reg(0x008, 4, "device ID"),
    Reg(0x00c, 4, "vendor ID"),
    Reg(0x010, 4, "device features"),
    Reg(0x014, 4, "device features select"),
    Reg(0x020, 4, "driver features"),
    Reg(0x024, 4, "driver features select"),
    Reg(0x028, 4, "guest page size"),
    Reg(0x030, 4, "queue select"),
    Reg(0x034, 4, "queue size max"),
    Reg(0x038, 4, "queue size"),
    Reg(0x03c, 4, "queue align"),
    Reg(0x040, 4, "queue page number"),
    Reg(0x044, 4, "queue ready"),
    Reg(0x050, 4, "queue notify"),
    Reg(0x060, 4, "interrupt status"),
    Reg(0x064, 4, "interrupt acknowledge"),
    Reg(0x070, 4, "status"),
    Reg(0x080, 8, "queue descriptor area"),
    Reg(0x090, 8, "queue driver area"),
    Reg(0x0a0, 8, "queue device area"),
    Reg(0x0ac, 4, "shared memory select"),
    Reg(0x0b0, 8, "shared memory length"),
    Reg(0x0b8, 8, "shared memory base"),
    Reg(0x0c0, 4, "queue reset"),
    Reg(0x0fc, 4, "configuration generation"),
];

/// Where the registers end and the device type's own configuration begins.
const MMIO_CONFIG: u64 = 0x100;

/// A virtio-mmio transport, counted from the first one as QEMU does: `virtio-mmio-bus.N`. Its place says
/// nothing of the device on it.
pub(crate) fn mmio(place: &RegionHit<'_>, write: bool) -> DeviceName {
    let size = place.last.saturating_add(1);
    let slot = place.base.saturating_sub(place.first).checked_div(size);
    let offset = place.offset;
    let register = match offset.checked_sub(MMIO_CONFIG) {
        Some(_) => Cow::Borrowed("device configuration"),
        // The write is the one that makes the device look at its queue; nothing is read there.
        None if offset == 0x50 && !write => regs::plain(offset),
        None => regs::at(MMIO, offset),
    };
    DeviceName::register(format!("virtio-mmio {}", slot.unwrap_or(0)), register)
}

const PCI_COMMON: &[Reg] = &[
    Reg(0x00, 4, "device features select"),
    Reg(0x04, 4, "device features"),
    Reg(0x08, 4, "driver features select"),
    Reg(0x0c, 4, "driver features"),
    Reg(0x10, 2, "configuration MSI-X vector"),
    Reg(0x12, 2, "number of queues"),
    Reg(0x14, 1, "status"),
    Reg(0x15, 1, "configuration generation"),
    Reg(0x16, 2, "queue select"),
    Reg(0x18, 2, "queue size"),
    Reg(0x1a, 2, "queue MSI-X vector"),
    Reg(0x1c, 2, "queue enable"),
    Reg(0x1e, 2, "queue notify offset"),
    Reg(0x20, 8, "queue descriptor area"),
    Reg(0x28, 8, "queue driver area"),
    Reg(0x30, 8, "queue device area"),
    Reg(0x38, 2, "queue notify data"),
    Reg(0x3a, 2, "queue reset"),
];

/// The I/O ports of a legacy or transitional device. With MSI-X, which the region does not say, the two
/// registers after the ISR are vectors and the device's configuration begins four bytes later.
const PCI_LEGACY: &[Reg] = &[
    Reg(0x00, 4, "device features"),
    Reg(0x04, 4, "driver features"),
    Reg(0x08, 4, "queue address"),
    Reg(0x0c, 2, "queue size"),
    Reg(0x0e, 2, "queue select"),
    Reg(0x10, 2, "queue notify"),
    Reg(0x12, 1, "status"),
    Reg(0x13, 1, "ISR"),
];

pub(crate) fn legacy(offset: u64) -> DeviceName {
    DeviceName::register("virtio-pci", legacy_register(offset))
}

pub(crate) fn legacy_register(offset: u64) -> Cow<'static, str> {
    if offset < 0x14 {
        regs::at(PCI_LEGACY, offset)
    } else {
        Cow::Borrowed("device configuration")
    }
}

/// Bytes of the four areas of QEMU's devices: common, ISR, device configuration, notification, a page each
/// (`hw/virtio/virtio-pci.c`, `virtio_pci_realize`). The whole is aligned to its size.
pub(crate) const BAR: u64 = 0x4000;
pub(crate) const ISR: u64 = 0x1000;
pub(crate) const DEVICE: u64 = 0x2000;
pub(crate) const NOTIFY: u64 = 0x3000;
/// As many queues as the guess is made for; further ones are rarer than other devices' registers there.
pub(crate) const GUESSED_QUEUES: u64 = 64;

/// The queue that an offset of these areas may notify.
pub(crate) fn guessed_queue(offset: u64) -> Option<u64> {
    let into = offset.checked_sub(NOTIFY)?;
    (into % 4 == 0 && into / 4 < GUESSED_QUEUES).then_some(into / 4)
}

/// Whether an offset of these areas is one of something: the common configuration, the ISR, the device's
/// configuration, a queue's notification.
pub(crate) fn is_area(offset: u64) -> bool {
    let common = PCI_COMMON.iter();
    let common = common.map(|Reg(start, len, _)| u64::from(*start)..u64::from(start + len));
    match offset {
        0..ISR => common
            .into_iter()
            .any(|register| register.contains(&offset)),
        ISR..DEVICE => offset == ISR,
        DEVICE..NOTIFY => true,
        _ => guessed_queue(offset).is_some(),
    }
}

/// The register at an offset of the areas.
pub(crate) fn modern_register(offset: u64) -> Cow<'static, str> {
    match (guessed_queue(offset), offset) {
        (Some(queue), _) => format!("queue notify, queue {queue}").into(),
        (None, 0..ISR) => regs::at(PCI_COMMON, offset),
        (None, ISR) => Cow::Borrowed("ISR"),
        (None, DEVICE..NOTIFY) => Cow::Borrowed("device configuration"),
        _ => regs::plain(offset),
    }
}

/// Bytes from one queue's notification address to the next: QEMU gives each queue four bytes of one page, or,
/// with `page-per-vq=on`, a page, and then the area has room for 1024 queues.
fn notify_stride(last: u64) -> u64 {
    if last >= 0x3f_ffff { 0x1000 } else { 4 }
}

/// The areas of a modern PCI device: `virtio-pci-AREA-DEVICE`, in QEMU before 5.2 without the device.
pub(crate) fn pci(place: &RegionHit<'_>) -> Option<DeviceName> {
    let rest = place.name.strip_prefix("virtio-pci-")?;
    let (area, device) = rest.split_once('-').unwrap_or((rest, "virtio"));
    // The notification area in I/O space, an option of QEMU's, has one port for all queues.
    let (pio, device) = match device.strip_prefix("pio") {
        Some("") => (true, "virtio"),
        Some(rest) if rest.starts_with('-') => (true, rest.trim_start_matches('-')),
        _ => (false, device),
    };
    let device = if device.is_empty() { "virtio" } else { device };
    let register: Cow<'static, str> = match area {
        "common" => regs::at(PCI_COMMON, place.offset),
        "isr" => Cow::Borrowed("ISR"),
        "device" => Cow::Borrowed("device configuration"),
        "notify" if pio => Cow::Borrowed("queue notify"),
        "notify" => {
            let queue = place.offset / notify_stride(place.last);
            format!("queue notify (queue {queue})").into()
        }
        _ => return None,
    };
    Some(DeviceName::register(device.to_string(), register))
}

#[cfg(test)]
mod tests {
    use super::{legacy, mmio, pci};
    use crate::region::RegionHit;

    fn place(name: &str, base: u64, last: u64, offset: u64) -> RegionHit<'_> {
        RegionHit {
            name,
            parent: "",
            base,
            last,
            offset,
            first: 0x0a00_0000,
        }
    }

    #[test]
    fn mmio_registers() {
        let text = |base, offset, write| {
            mmio(&place("virtio-mmio", base, 0x1ff, offset), write).to_string()
        };
        assert_eq!(text(0x0a00_0600, 0x50, true), "virtio-mmio 3 queue notify");
        assert_eq!(text(0x0a00_0600, 0x50, false), "virtio-mmio 3 +0x50");
        assert_eq!(
            text(0x0a00_3e00, 0x60, false),
            "virtio-mmio 31 interrupt status"
        );
        assert_eq!(
            text(0x0a00_3e00, 0x64, true),
            "virtio-mmio 31 interrupt acknowledge"
        );
        assert_eq!(
            text(0x0a00_0000, 0x84, true),
            "virtio-mmio 0 queue descriptor area (high)"
        );
        assert_eq!(
            text(0x0a00_0000, 0x106, false),
            "virtio-mmio 0 device configuration"
        );
    }

    #[test]
    fn pci_areas() {
        let text = |name, last, offset| {
            pci(&place(name, 0xfebf_0000, last, offset)).map(|name| name.to_string())
        };
        let notify = "virtio-pci-notify-virtio-net";
        assert_eq!(
            text(notify, 0xfff, 4).as_deref(),
            Some("virtio-net queue notify (queue 1)")
        );
        assert_eq!(
            text(notify, 0x3f_ffff, 0x2000).as_deref(),
            Some("virtio-net queue notify (queue 2)")
        );
        assert_eq!(
            text("virtio-pci-common-virtio-blk", 0xfff, 0x16).as_deref(),
            Some("virtio-blk queue select")
        );
        assert_eq!(
            text("virtio-pci-isr-virtio-rng", 0xfff, 0).as_deref(),
            Some("virtio-rng ISR")
        );
        assert_eq!(
            text("virtio-pci-notify", 0xfff, 0).as_deref(),
            Some("virtio queue notify (queue 0)")
        );
        assert_eq!(
            text("virtio-pci-notify-pio", 3, 0).as_deref(),
            Some("virtio queue notify")
        );
        assert_eq!(
            text("virtio-pci-notify-pio-virtio-net", 3, 0).as_deref(),
            Some("virtio-net queue notify")
        );
        assert_eq!(text("virtio-pci-isr-", 3, 0).as_deref(), Some("virtio ISR"));
        assert_eq!(text("virtio-pci-other", 3, 0), None);
    }

    #[test]
    fn legacy_ports() {
        assert_eq!(legacy(0x10).to_string(), "virtio-pci queue notify");
        assert_eq!(legacy(0x13).to_string(), "virtio-pci ISR");
        assert_eq!(legacy(0x1a).to_string(), "virtio-pci device configuration");
    }
}
