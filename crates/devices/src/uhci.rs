//! USB 1 controllers: Universal Host Controller Interface design guide 1.1, section 2.1.

use std::borrow::Cow;

use crate::regs::{self, Reg};

const REGISTERS: &[Reg] = &[
    Reg(0x00, 2, "USBCMD"),
    Reg(0x02, 2, "USBSTS"),
    Reg(0x04, 2, "USBINTR"),
    Reg(0x06, 2, "FRNUM"),
    Reg(0x08, 4, "FRBASEADD"),
    Reg(0x0c, 1, "SOFMOD"),
    Reg(0x10, 2, "PORTSC1"),
    Reg(0x12, 2, "PORTSC2"),
];

/// Ports of the BAR.
pub(crate) const BAR: u64 = 0x20;

/// The register at an offset of the BAR.
pub(crate) fn register(offset: u64) -> Cow<'static, str> {
    regs::at(REGISTERS, offset)
}

#[cfg(test)]
mod tests {
    use super::register;

    #[test]
    fn registers() {
        assert_eq!(register(2), "USBSTS");
        assert_eq!(register(0x12), "PORTSC2");
        assert_eq!(register(0x14), "+0x14");
    }
}
