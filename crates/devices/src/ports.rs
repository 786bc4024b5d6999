//! The PC's I/O ports, and the registers of the devices that are only there.
//!
//! Places and names: QEMU's `pc` and `q35` machines (`hw/i386`, `hw/isa`, `hw/acpi`, `docs/specs`), with the
//! power management block where SeaBIOS, OVMF, Cloud Hypervisor and crosvm put it. Registers: Intel 8254, 8259A
//! and 8237 data sheets, MC146818 data sheet, PCI local bus specification 3.0 section 3.2.2.3, QEMU
//! `docs/specs/fw_cfg.rst`.

use std::borrow::Cow;

use crate::DeviceSpace;
use crate::name::DeviceName;
use crate::region::{MachineRegion, PORT_WINDOW, RegionHit};
use crate::regs;

#[rustfmt::skip]
pub(crate) const REGIONS: &[MachineRegion] = &[
    MachineRegion(0x0000, 0x0007, "dma-chan"),
    MachineRegion(0x0008, 0x000f, "dma-cont"),
    MachineRegion(0x0020, 0x0021, "pic"),
    MachineRegion(0x0040, 0x0043, "pit"),
    MachineRegion(0x0060, 0x0060, "i8042-data"),
    MachineRegion(0x0061, 0x0061, "pcspk"),
    MachineRegion(0x0064, 0x0064, "i8042-cmd"),
    MachineRegion(0x0070, 0x0071, "rtc"),
    MachineRegion(0x007e, 0x007f, "kvmvapic"),
    MachineRegion(0x0080, 0x0080, "ioport80"),
    MachineRegion(0x0081, 0x0083, "dma-page"),
    MachineRegion(0x0087, 0x0087, "dma-page"),
    MachineRegion(0x0089, 0x008b, "dma-page"),
    MachineRegion(0x008f, 0x008f, "dma-page"),
    MachineRegion(0x0092, 0x0092, "port92"),
    MachineRegion(0x00a0, 0x00a1, "pic"),
    MachineRegion(0x00b2, 0x00b3, "apm-io"),
    MachineRegion(0x00c0, 0x00cf, "dma-chan"),
    MachineRegion(0x00d0, 0x00df, "dma-cont"),
    MachineRegion(0x00f0, 0x00f0, "ioportF0"),
    MachineRegion(0x0170, 0x0177, "ide"),
    MachineRegion(0x01ce, 0x01d1, "vbe"),
    MachineRegion(0x01f0, 0x01f7, "ide"),
    MachineRegion(0x02e8, 0x02ef, "serial"),
    MachineRegion(0x02f8, 0x02ff, "serial"),
    MachineRegion(0x0376, 0x0376, "ide"),
    MachineRegion(0x0378, 0x037f, "parallel"),
    MachineRegion(0x03b4, 0x03b5, "vga"),
    MachineRegion(0x03ba, 0x03ba, "vga"),
    MachineRegion(0x03c0, 0x03cf, "vga"),
    MachineRegion(0x03d4, 0x03d5, "vga"),
    MachineRegion(0x03da, 0x03da, "vga"),
    MachineRegion(0x03e8, 0x03ef, "serial"),
    MachineRegion(0x03f1, 0x03f5, "fdc"),
    MachineRegion(0x03f6, 0x03f6, "ide"),
    MachineRegion(0x03f7, 0x03f7, "fdc"),
    MachineRegion(0x03f8, 0x03ff, "serial"),
    MachineRegion(0x0402, 0x0402, "isa-debugcon"),
    MachineRegion(0x04d0, 0x04d0, "elcr"),
    MachineRegion(0x04d1, 0x04d1, "elcr"),
    MachineRegion(0x0501, 0x0501, "isa-debug-exit"),
    MachineRegion(0x0505, 0x0505, "pvpanic"),
    MachineRegion(0x0510, 0x0511, "fwcfg"),
    MachineRegion(0x0514, 0x051b, "fwcfg.dma"),
    // q35 with any firmware and pc with SeaBIOS: event block, control block and timer. What follows them is
    // q35's alone; pc has the general purpose events at 0xafe0.
    MachineRegion(0x0600, 0x0603, "acpi-evt"),
    MachineRegion(0x0604, 0x0605, "acpi-cnt"),
    MachineRegion(0x0608, 0x060b, "acpi-tmr"),
    MachineRegion(0x0620, 0x062f, "acpi-gpe0"),
    MachineRegion(0x0630, 0x0637, "acpi-smi"),
    MachineRegion(0x0660, 0x067f, "sm-tco"),
    MachineRegion(0x0700, 0x073f, "pm-smbus"),
    MachineRegion(0x0a00, 0x0a17, "acpi-mem-hotplug"),
    MachineRegion(0x0a18, 0x0a1b, "nvdimm-acpi-io"),
    MachineRegion(0x0cc0, 0x0cd7, "acpi-pci-hotplug"),
    MachineRegion(0x0cd8, 0x0cf7, "acpi-cpu-hotplug"),
    MachineRegion(0x0cf8, 0x0cfb, "pci-conf-idx"),
    MachineRegion(0x0cf9, 0x0cf9, "lpc-reset-control"),
    MachineRegion(0x0cfc, 0x0cff, "pci-conf-data"),
    MachineRegion(0x5658, 0x5658, "vmport"),
    // pc.
    MachineRegion(0xae00, 0xae17, "acpi-pci-hotplug"),
    MachineRegion(0xaf00, 0xaf1f, "acpi-cpu-hotplug"),
    MachineRegion(0xafe0, 0xafe3, "acpi-gpe0"),
    // pc with OVMF.
    MachineRegion(0xb000, 0xb003, "acpi-evt"),
    MachineRegion(0xb004, 0xb005, "acpi-cnt"),
    MachineRegion(0xb008, 0xb00b, "acpi-tmr"),
    MachineRegion(0xb100, 0xb13f, "pm-smbus"),
    // Where SeaBIOS and OVMF place devices.
    MachineRegion(0x6000, 0xffff, PORT_WINDOW),
];

/// The register of a device that is only in I/O space; `bare` is the region's name without `kvm-`. None for
/// those that are called what QEMU calls them.
pub(crate) fn register(bare: &str, place: &RegionHit<'_>, write: bool) -> Option<DeviceName> {
    let off = place.offset;
    let (device, register): (&'static str, Cow<'static, str>) = match (bare, off) {
        ("pit", 0..=2) => ("PIT", format!("counter {off}").into()),
        ("pit", 3) => ("PIT", "control".into()),
        ("pic", 0..=1) => {
            let device = if place.base == 0xa0 {
                "i8259 slave"
            } else {
                "i8259 master"
            };
            (device, if off == 0 { "command" } else { "data" }.into())
        }
        ("elcr", _) if place.base == 0x4d1 => ("i8259 slave", "trigger mode".into()),
        ("elcr", _) => ("i8259 master", "trigger mode".into()),
        ("rtc" | "rtc-index", 0) => ("RTC/CMOS", "index".into()),
        ("rtc", 1) => ("RTC/CMOS", "data".into()),
        ("i8042-data", _) => ("i8042", "data".into()),
        ("i8042-cmd", _) => ("i8042", if write { "command" } else { "status" }.into()),
        ("pci-conf-idx", _) => ("PCI config", "address".into()),
        ("pci-conf-data", _) => ("PCI config", "data".into()),
        ("lpc-reset-control" | "piix3-reset-control" | "piix-reset-control", _) => {
            ("PCI", "reset control".into())
        }
        ("apm-io", 0) => ("APM", "command (SMI)".into()),
        ("apm-io", 1) => ("APM", "status".into()),
        ("ioport80", _) => ("ioport80", "(POST code)".into()),
        ("port92", _) => ("port92", "(A20, reset)".into()),
        ("pcspk", _) => ("pcspk", "(PIT gate)".into()),
        _ => return None,
    };
    Some(DeviceName::register(device, register))
}

/// QEMU's firmware configuration device: two ports and a DMA register on x86, three regions in memory on Arm.
pub(crate) fn fwcfg(space: DeviceSpace, place: &RegionHit<'_>) -> DeviceName {
    let register = match (place.name, space) {
        // The upper half comes first: the register is big endian.
        ("fwcfg.dma", _) if place.offset < 4 => Cow::Borrowed("DMA address (high)"),
        ("fwcfg.dma", _) if place.offset < 8 => Cow::Borrowed("DMA address"),
        ("fwcfg.ctl", _) => Cow::Borrowed("selector"),
        ("fwcfg.data", _) => Cow::Borrowed("data"),
        ("fwcfg", DeviceSpace::Io) if place.offset == 0 => Cow::Borrowed("selector"),
        ("fwcfg", DeviceSpace::Io) => Cow::Borrowed("data"),
        _ => regs::plain(place.offset),
    };
    DeviceName::register("fw_cfg", register)
}

#[cfg(test)]
mod tests {
    use crate::{AddressNames, Arch};

    #[test]
    fn the_pc() {
        let names = AddressNames::builtin(Arch::X86);
        let text = |port, write| names.port(port, write).map(|name| name.to_string());
        for (port, write, expected) in [
            (0x608, false, "acpi-tmr"),
            (0xb008, false, "acpi-tmr"),
            (0x604, false, "acpi-cnt"),
            (0x70, true, "RTC/CMOS index"),
            (0x71, false, "RTC/CMOS data"),
            (0x40, false, "PIT counter 0"),
            (0x42, true, "PIT counter 2"),
            (0x43, true, "PIT control"),
            (0x20, true, "i8259 master command"),
            (0x21, false, "i8259 master data"),
            (0xa0, true, "i8259 slave command"),
            (0x4d1, true, "i8259 slave trigger mode"),
            (0x60, false, "i8042 data"),
            (0x64, false, "i8042 status"),
            (0x64, true, "i8042 command"),
            (0xcf8, true, "PCI config address"),
            (0xcf9, true, "PCI reset control"),
            (0xcfe, false, "PCI config data"),
            (0x3f8, true, "serial COM1 THR"),
            (0x3fd, false, "serial COM1 LSR"),
            (0x2f9, true, "serial COM2 IER"),
            (0x510, true, "fw_cfg selector"),
            (0x511, false, "fw_cfg data"),
            (0x514, true, "fw_cfg DMA address (high)"),
            (0x518, true, "fw_cfg DMA address"),
            (0x80, true, "ioport80 (POST code)"),
            (0x92, false, "port92 (A20, reset)"),
            (0x402, true, "isa-debugcon"),
            (0xb2, true, "APM command (SMI)"),
            (0xafe0, false, "acpi-gpe0"),
            (0xc050, true, "PCI device I/O"),
        ] {
            assert_eq!(text(port, write).as_deref(), Some(expected), "{port:#x}");
        }
        assert_eq!(text(0xed, true), None);
    }

    #[test]
    fn other_machines_have_no_ports() {
        assert_eq!(AddressNames::builtin(Arch::Arm64).port(0x608, false), None);
        assert_eq!(AddressNames::builtin(Arch::Other).port(0x608, false), None);
    }
}
