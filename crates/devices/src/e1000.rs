//! Intel's gigabit network cards, as QEMU emulates them (`e1000`, `e1000e`): PCI/PCI-X Family of Gigabit Ethernet
//! Controllers Software Developer's Manual (317453), table 13-2; `hw/net/e1000_regs.h` of QEMU.

use std::borrow::Cow;

use crate::regs::{self, Reg};

/// Bytes of the registers' BAR, which begins at a multiple of that (317453, 4.1.1).
pub(crate) const BAR: u64 = 0x2_0000;

const REGISTERS: &[Reg] = &[
    Reg(0x0000, 4, "CTRL"),
    Reg(0x0008, 4, "STATUS"),
    Reg(0x0010, 4, "EECD"),
    Reg(0x0014, 4, "EERD"),
    Reg(0x0018, 4, "CTRL_EXT"),
    Reg(0x0020, 4, "MDIC"),
    Reg(0x00c0, 4, "ICR"),
    Reg(0x00c4, 4, "ITR"),
    Reg(0x00c8, 4, "ICS"),
    Reg(0x00d0, 4, "IMS"),
    Reg(0x00d8, 4, "IMC"),
    Reg(0x0100, 4, "RCTL"),
    Reg(0x0400, 4, "TCTL"),
    Reg(0x0410, 4, "TIPG"),
    Reg(0x0e00, 4, "LEDCTL"),
    Reg(0x1000, 4, "PBA"),
    Reg(0x2800, 8, "RDBA"),
    Reg(0x2808, 4, "RDLEN"),
    Reg(0x2810, 4, "RDH"),
    Reg(0x2818, 4, "RDT"),
    Reg(0x2820, 4, "RDTR"),
    Reg(0x282c, 4, "RADV"),
    Reg(0x3800, 8, "TDBA"),
    Reg(0x3808, 4, "TDLEN"),
    Reg(0x3810, 4, "TDH"),
    Reg(0x3818, 4, "TDT"),
    Reg(0x3820, 4, "TIDV"),
    Reg(0x382c, 4, "TADV"),
];

/// Statistics, and the tables of addresses that are let through.
const STATISTICS: std::ops::Range<u64> = 0x4000..0x4100;
const FILTERS: std::ops::Range<u64> = 0x5200..0x5800;

/// Registers that drivers use at run time: STATUS, ICR, ITR, ICS, IMS, IMC, RDH, RDT, TDH, TDT.
pub(crate) const USED: [u64; 10] = [
    0x8, 0xc0, 0xc4, 0xc8, 0xd0, 0xd8, 0x2810, 0x2818, 0x3810, 0x3818,
];
/// Registers of interrupts among them, and the ends of the queues: a driver cannot do without either.
pub(crate) const INTERRUPTS: [u64; 4] = [0xc0, 0xc8, 0xd0, 0xd8];
pub(crate) const TAILS: [u64; 2] = [0x2818, 0x3818];

/// The register at an offset of the BAR.
pub(crate) fn register(offset: u64) -> Cow<'static, str> {
    if STATISTICS.contains(&offset) {
        return Cow::Borrowed("statistics");
    }
    if FILTERS.contains(&offset) {
        return Cow::Borrowed("address filter");
    }
    regs::at(REGISTERS, offset)
}

#[cfg(test)]
mod tests {
    use super::register;

    #[test]
    fn registers() {
        assert_eq!(register(0x3818), "TDT");
        assert_eq!(register(0xc0), "ICR");
        assert_eq!(register(0x40d0), "statistics");
        assert_eq!(register(0x5400), "address filter");
        assert_eq!(register(0x2804), "RDBA (high)");
        assert_eq!(register(0xf00), "+0xf00");
    }
}
