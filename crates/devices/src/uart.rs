//! UART registers. 16550: National Semiconductor PC16550D data sheet, table of registers; kernel
//! `include/uapi/linux/serial_reg.h`; QEMU `hw/char/serial.c`. PL011: Arm PrimeCell UART technical reference
//! manual (DDI 0183), table of registers; kernel `include/linux/amba/serial.h`.

use std::borrow::Cow;

use crate::DeviceSpace;
use crate::name::DeviceName;
use crate::region::RegionHit;
use crate::regs::{self, Reg};

/// The I/O ports of the PC's serial lines.
const COM: &[(u64, &str)] = &[
    (0x3f8, "serial COM1"),
    (0x2f8, "serial COM2"),
    (0x3e8, "serial COM3"),
    (0x2e8, "serial COM4"),
];

/// Registers of a 16550 with the divisor latch closed: as read, as written. The first two are the divisor
/// while the latch is open, which only happens while the speed is set.
const UART16550: [(&str, &str); 8] = [
    ("RBR", "THR"),
    ("IER", "IER"),
    ("IIR", "FCR"),
    ("LCR", "LCR"),
    ("MCR", "MCR"),
    ("LSR", "LSR"),
    ("MSR", "MSR"),
    ("SCR", "SCR"),
];

/// A 16550. In memory its registers may be further apart than a byte; the size of the region decides.
pub(crate) fn serial(space: DeviceSpace, place: &RegionHit<'_>, write: bool) -> DeviceName {
    let device = COM
        .iter()
        .find(|(base, _)| space == DeviceSpace::Io && *base == place.base)
        .map_or("serial", |(_, name)| name);
    let stride = (place.last.saturating_add(1) / 8).max(1);
    let register = usize::try_from(place.offset / stride)
        .ok()
        .and_then(|at| UART16550.get(at));
    let register = match register {
        Some((_, written)) if write => Cow::Borrowed(*written),
        Some((read, _)) => Cow::Borrowed(*read),
        None => regs::plain(place.offset),
    };
    DeviceName::register(device, register)
}

const PL011: &[Reg] = &[
    Reg(0x000, 4, "UARTDR"),
    Reg(0x004, 4, "UARTRSR/UARTECR"),
    Reg(0x018, 4, "UARTFR"),
    Reg(0x020, 4, "UARTILPR"),
    Reg(0x024, 4, "UARTIBRD"),
    Reg(0x028, 4, "UARTFBRD"),
    Reg(0x02c, 4, "UARTLCR_H"),
    Reg(0x030, 4, "UARTCR"),
    Reg(0x034, 4, "UARTIFLS"),
    Reg(0x038, 4, "UARTIMSC"),
    Reg(0x03c, 4, "UARTRIS"),
    Reg(0x040, 4, "UARTMIS"),
    Reg(0x044, 4, "UARTICR"),
    Reg(0x048, 4, "UARTDMACR"),
    Reg(0xfe0, 0x10, "UARTPeriphID"),
    Reg(0xff0, 0x10, "UARTPCellID"),
];

pub(crate) fn pl011(offset: u64) -> DeviceName {
    DeviceName::register("PL011", regs::at(PL011, offset))
}

#[cfg(test)]
mod tests {
    use super::{pl011, serial};
    use crate::DeviceSpace;
    use crate::region::RegionHit;

    fn place(base: u64, last: u64, offset: u64) -> RegionHit<'static> {
        RegionHit {
            name: "serial",
            parent: "",
            base,
            last,
            offset,
            first: base,
        }
    }

    #[test]
    fn ports_and_directions() {
        let text = |base, offset, write| {
            serial(DeviceSpace::Io, &place(base, 7, offset), write).to_string()
        };
        assert_eq!(text(0x3f8, 0, true), "serial COM1 THR");
        assert_eq!(text(0x3f8, 0, false), "serial COM1 RBR");
        assert_eq!(text(0x2f8, 2, false), "serial COM2 IIR");
        assert_eq!(text(0x3e8, 2, true), "serial COM3 FCR");
        assert_eq!(text(0x2e8, 5, false), "serial COM4 LSR");
        assert_eq!(text(0x1000, 6, false), "serial MSR");
    }

    #[test]
    fn registers_spread_in_memory() {
        let text = |last, offset| {
            serial(DeviceSpace::Memory, &place(0x3f8, last, offset), false).to_string()
        };
        assert_eq!(text(31, 20), "serial LSR");
        assert_eq!(text(0, 0), "serial RBR");
        assert_eq!(text(0, 9), "serial +0x9");
    }

    #[test]
    fn pl011_registers() {
        assert_eq!(pl011(0).to_string(), "PL011 UARTDR");
        assert_eq!(pl011(0x18).to_string(), "PL011 UARTFR");
        assert_eq!(pl011(0x44).to_string(), "PL011 UARTICR");
        assert_eq!(pl011(0xfe4).to_string(), "PL011 UARTPeriphID");
        assert_eq!(pl011(0x10).to_string(), "PL011 +0x10");
    }
}
