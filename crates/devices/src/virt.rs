//! The physical addresses of QEMU's arm64 machine `virt` (`hw/arm/virt.c`), with the last 256 MiB of
//! configuration space and the high windows where they are for up to 255 GiB of memory. Registers of its clock
//! and its GPIO: Arm PrimeCell PL031 (DDI 0224) and PL061 (DDI 0190) technical reference manuals.

use std::borrow::Cow;

use crate::name::DeviceName;
use crate::region::{MachineRegion, WINDOW};
use crate::regs::{self, Reg};

/// Transports of virtio-mmio in the machine, 0x200 bytes each.
const TRANSPORTS: usize = 32;

#[rustfmt::skip]
const FIXED: [MachineRegion; 24] = [
    MachineRegion(0x0000_0000, 0x03ff_ffff, "virt.flash0"),
    MachineRegion(0x0400_0000, 0x07ff_ffff, "virt.flash1"),
    // GICv2 has a distributor of 4 KiB there.
    MachineRegion(0x0800_0000, 0x0800_ffff, "gicv3_dist"),
    MachineRegion(0x0801_0000, 0x0801_ffff, "gic_cpu"),
    MachineRegion(0x0802_0000, 0x0802_0fff, "gicv2m"),
    MachineRegion(0x0808_0000, 0x0809_ffff, "gicv3_its"),
    MachineRegion(0x080a_0000, 0x08ff_ffff, "gicv3_redist_region[0]"),
    MachineRegion(0x0900_0000, 0x0900_0fff, "pl011"),
    MachineRegion(0x0901_0000, 0x0901_0fff, "pl031"),
    MachineRegion(0x0902_0000, 0x0902_0007, "fwcfg.data"),
    MachineRegion(0x0902_0008, 0x0902_0009, "fwcfg.ctl"),
    MachineRegion(0x0902_0010, 0x0902_0017, "fwcfg.dma"),
    MachineRegion(0x0903_0000, 0x0903_0fff, "pl061"),
    MachineRegion(0x0904_0000, 0x0904_0fff, "pl011"),
    MachineRegion(0x0905_0000, 0x0906_ffff, "smmuv3"),
    MachineRegion(0x0907_0000, 0x0907_0017, "acpi-mem-hotplug"),
    MachineRegion(0x0908_0000, 0x0908_0003, "acpi-ged"),
    MachineRegion(0x0c00_0000, 0x0dff_ffff, "platform bus device"),
    MachineRegion(0x1000_0000, 0x3efe_ffff, WINDOW),
    MachineRegion(0x3eff_0000, 0x3eff_ffff, "PCI device I/O"),
    MachineRegion(0x3f00_0000, 0x3fff_ffff, "pcie-ecam"),
    MachineRegion(0x40_0000_0000, 0x40_03ff_ffff, "gicv3_redist_region[1]"),
    MachineRegion(0x40_1000_0000, 0x40_1fff_ffff, "pcie-ecam"),
    MachineRegion(0x80_0000_0000, 0xff_ffff_ffff, WINDOW),
];

/// All of the machine.
pub(crate) const REGIONS: &[MachineRegion] = &all();

const fn all() -> [MachineRegion; FIXED.len() + TRANSPORTS] {
    let mut regions = [const { MachineRegion(0, 0, "") }; FIXED.len() + TRANSPORTS];
    let mut at = 0;
    while at < FIXED.len() {
        let MachineRegion(low, high, name) = FIXED[at];
        regions[at] = MachineRegion(low, high, name);
        at += 1;
    }
    let mut slot = 0;
    while slot < TRANSPORTS {
        let low = 0x0a00_0000 + 0x200 * slot as u64;
        regions[FIXED.len() + slot] = MachineRegion(low, low + 0x1ff, "virtio-mmio");
        slot += 1;
    }
    regions
}

const PL031: &[Reg] = &[
    Reg(0x000, 4, "RTCDR"),
    Reg(0x004, 4, "RTCMR"),
    Reg(0x008, 4, "RTCLR"),
    Reg(0x00c, 4, "RTCCR"),
    Reg(0x010, 4, "RTCIMSC"),
    Reg(0x014, 4, "RTCRIS"),
    Reg(0x018, 4, "RTCMIS"),
    Reg(0x01c, 4, "RTCICR"),
    Reg(0xfe0, 0x10, "RTCPeriphID"),
    Reg(0xff0, 0x10, "RTCPCellID"),
];

const PL061: &[Reg] = &[
    Reg(0x400, 4, "GPIODIR"),
    Reg(0x404, 4, "GPIOIS"),
    Reg(0x408, 4, "GPIOIBE"),
    Reg(0x40c, 4, "GPIOIEV"),
    Reg(0x410, 4, "GPIOIE"),
    Reg(0x414, 4, "GPIORIS"),
    Reg(0x418, 4, "GPIOMIS"),
    Reg(0x41c, 4, "GPIOIC"),
    Reg(0x420, 4, "GPIOAFSEL"),
    Reg(0xfe0, 0x10, "GPIOPeriphID"),
    Reg(0xff0, 0x10, "GPIOPCellID"),
];

pub(crate) fn pl031(offset: u64) -> DeviceName {
    DeviceName::register("PL031", regs::at(PL031, offset))
}

pub(crate) fn pl061(offset: u64) -> DeviceName {
    // The lines are the address: 1 KiB of one register.
    let register = if offset < 0x400 {
        Cow::Borrowed("GPIODATA")
    } else {
        regs::at(PL061, offset)
    };
    DeviceName::register("PL061", register)
}

#[cfg(test)]
mod tests {
    use crate::{AddressNames, Arch};

    #[test]
    fn the_machine() {
        let names = AddressNames::builtin(Arch::Arm64);
        let text = |gpa, write| names.mmio(gpa, write).map(|name| name.to_string());
        for (gpa, write, expected) in [
            (0x0a00_3e50, true, "virtio-mmio 31 queue notify"),
            (0x0a00_0050, true, "virtio-mmio 0 queue notify"),
            (0x0a00_3e60, false, "virtio-mmio 31 interrupt status"),
            (0x0a00_3e64, true, "virtio-mmio 31 interrupt acknowledge"),
            (0x0900_0018, false, "PL011 UARTFR"),
            (0x0901_0000, false, "PL031 RTCDR"),
            (0x0903_0410, true, "PL061 GPIOIE"),
            (0x0903_03fc, false, "PL061 GPIODATA"),
            (0x0902_0008, true, "fw_cfg selector"),
            (0x0902_0014, true, "fw_cfg DMA address"),
            (0x0800_0f00, true, "GIC distributor GICD_SGIR"),
            (0x0801_000c, false, "GICv2 CPU interface GICC_IAR"),
            (0x0802_0040, true, "GICv2m MSI_SETSPI_NS"),
            (0x0808_0088, true, "GICv3 ITS GITS_CWRITER"),
            (0x080d_0100, true, "GICv3 redistributor 1 GICR_ISENABLER0"),
            (
                0x80_0000_3004,
                true,
                "PCI device memory (queue notify, queue 1, if virtio)",
            ),
            (0x40_1000_8004, true, "PCI config 00:01.0 +0x4"),
        ] {
            assert_eq!(text(gpa, write).as_deref(), Some(expected), "{gpa:#x}");
        }
        assert_eq!(text(0x0a00_4000, true), None);
        assert_eq!(text(0x5000_0000, true), None);
    }

    #[test]
    fn other_machines() {
        assert_eq!(
            AddressNames::builtin(Arch::Other).mmio(0x0a00_3e50, true),
            None
        );
        assert_eq!(AddressNames::builtin(Arch::Arm64).msr(0x830), None);
    }
}
