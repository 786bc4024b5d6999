//! The high precision event timer's registers: IA-PC HPET specification 1.0a, section 2.3; QEMU's
//! `include/hw/timer/hpet.h`.

use crate::name::DeviceName;
use crate::regs::{self, Reg};

const REGS: &[Reg] = &[
    Reg(0x000, 4, "capabilities"),
    Reg(0x004, 4, "counter period"),
    Reg(0x010, 8, "configuration"),
    Reg(0x020, 8, "interrupt status"),
    Reg(0x0f0, 8, "main counter"),
];

/// Registers of each timer, from 0x100 on, 0x20 bytes apart.
const TIMER: &[Reg] = &[
    Reg(0x00, 8, "configuration"),
    Reg(0x08, 8, "comparator"),
    Reg(0x10, 8, "interrupt route"),
];

/// The specification has room for 32 timers in the 1 KiB of the block.
const TIMERS: std::ops::Range<u64> = 0x100..0x500;

pub(crate) fn name(offset: u64) -> DeviceName {
    if TIMERS.contains(&offset) {
        let timer = (offset - TIMERS.start) / 0x20;
        let register = regs::at(TIMER, offset % 0x20);
        return DeviceName::register("HPET", format!("timer {timer} {register}"));
    }
    DeviceName::register("HPET", regs::at(REGS, offset))
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn counter_and_timers() {
        let text = |offset| name(offset).to_string();
        assert_eq!(text(0xf0), "HPET main counter");
        assert_eq!(text(0xf4), "HPET main counter (high)");
        assert_eq!(text(0x04), "HPET counter period");
        assert_eq!(text(0x10), "HPET configuration");
        assert_eq!(text(0x20), "HPET interrupt status");
        assert_eq!(text(0x100), "HPET timer 0 configuration");
        assert_eq!(text(0x128), "HPET timer 1 comparator");
        assert_eq!(text(0x14c), "HPET timer 2 comparator (high)");
        assert_eq!(text(0x150), "HPET timer 2 interrupt route");
        assert_eq!(text(0x30), "HPET +0x30");
    }
}
