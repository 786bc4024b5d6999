//! The PC's physical addresses: QEMU's `pc` and `q35` machines (`hw/i386`, `hw/pci-host/q35.c`), with SeaBIOS.

use crate::region::{MachineRegion, WINDOW};

#[rustfmt::skip]
pub(crate) const REGIONS: &[MachineRegion] = &[
    MachineRegion(0x000a_0000, 0x000b_ffff, "vga-lowmem"),
    // q35: configuration space. With OVMF it is elsewhere.
    MachineRegion(0xb000_0000, 0xbfff_ffff, "pcie-mmcfg-mmio"),
    // From the end of low memory, which depends on the VM, to the I/O APIC.
    MachineRegion(0x8000_0000, 0xfebf_ffff, WINDOW),
    MachineRegion(0xfec0_0000, 0xfec0_0fff, "ioapic"),
    MachineRegion(0xfed0_0000, 0xfed0_03ff, "hpet"),
    MachineRegion(0xfed1_c000, 0xfed1_ffff, "lpc-rcrb-mmio"),
    MachineRegion(0xfed4_0000, 0xfed4_4fff, "tpm-tis-mmio"),
    MachineRegion(0xfed9_0000, 0xfed9_0fff, "intel_iommu"),
    MachineRegion(0xfee0_0000, 0xfeef_ffff, "apic-msi"),
    MachineRegion(0xffc0_0000, 0xffff_ffff, "pc.bios"),
    // Memory never exits as MMIO, so above 4 GiB it can only be the 64-bit window, wherever that is.
    MachineRegion(0x1_0000_0000, 0xf_ffff_ffff_ffff, WINDOW),
];

#[cfg(test)]
mod tests {
    use crate::{AddressNames, Arch};

    #[test]
    fn the_pc() {
        let names = AddressNames::builtin(Arch::X86);
        let text = |gpa, write| names.mmio(gpa, write).map(|name| name.to_string());
        for (gpa, write, expected) in [
            (0xfed0_00f0, false, "HPET main counter"),
            (0xfed0_00f4, false, "HPET main counter (high)"),
            (0xfee0_00b0, true, "LAPIC EOI"),
            (0xfee0_0300, true, "LAPIC ICR"),
            (0xfec0_0000, true, "IOAPIC select"),
            (0xfec0_0010, false, "IOAPIC data"),
            (0xb00f_b030, true, "PCI config 00:1f.3 +0x30"),
            (0xfebf_f3a8, false, "PCI device memory"),
            (
                0x38_0000_3004,
                true,
                "PCI device memory (queue notify, queue 1, if virtio)",
            ),
            (0xb8000, true, "vga-lowmem"),
        ] {
            assert_eq!(text(gpa, write).as_deref(), Some(expected), "{gpa:#x}");
        }
        assert_eq!(text(0x1000, true), None);
        assert_eq!(text(u64::MAX, true), None);
    }
}
