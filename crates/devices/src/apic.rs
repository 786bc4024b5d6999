//! Local APIC, x2APIC and I/O APIC registers: Intel SDM volume 3, chapter "Advanced Programmable Interrupt
//! Controller", tables of the local APIC's register address map and of the x2APIC MSRs; 82093AA I/O APIC data
//! sheet, with the EOI register of version 0x20; kernel `arch/x86/include/asm/apicdef.h`.

use std::borrow::Cow;

use crate::name::DeviceName;
use crate::regs;

/// Number of the register (offset / 16, or MSR - 0x800) and its name.
const LOCAL: &[(u32, &str)] = &[
    (0x02, "ID"),
    (0x03, "version"),
    (0x08, "TPR"),
    (0x09, "APR"),
    (0x0a, "PPR"),
    (0x0b, "EOI"),
    (0x0c, "RRD"),
    (0x0d, "LDR"),
    (0x0e, "DFR"),
    (0x0f, "SVR"),
    (0x28, "ESR"),
    (0x2f, "LVT CMCI"),
    (0x30, "ICR"),
    (0x31, "ICR (high)"),
    (0x32, "LVT timer"),
    (0x33, "LVT thermal"),
    (0x34, "LVT performance counter"),
    (0x35, "LVT LINT0"),
    (0x36, "LVT LINT1"),
    (0x37, "LVT error"),
    (0x38, "timer initial count"),
    (0x39, "timer current count"),
    (0x3e, "timer divide"),
    (0x3f, "self IPI"),
];

fn local_register(number: u32) -> Option<Cow<'static, str>> {
    // Eight registers of 32 bits each: in service, trigger mode, interrupt request.
    let bits = match number {
        0x10..=0x17 => Some("ISR"),
        0x18..=0x1f => Some("TMR"),
        0x20..=0x27 => Some("IRR"),
        _ => None,
    };
    if let Some(bits) = bits {
        return Some(Cow::Owned(format!("{bits}{}", number % 8)));
    }
    LOCAL
        .iter()
        .find(|entry| entry.0 == number)
        .map(|entry| Cow::Borrowed(entry.1))
}

/// The local APIC's page; what follows it in QEMU's region takes message signalled interrupts.
pub(crate) fn local(offset: u64) -> DeviceName {
    let Some(page @ 0..0x1000) = u32::try_from(offset).ok() else {
        return DeviceName::device("MSI address");
    };
    let register = local_register(page / 16).filter(|_| page % 16 < 4);
    DeviceName::register("LAPIC", register.unwrap_or_else(|| regs::plain(offset)))
}

/// MSRs of the x2APIC, which has no DFR and one ICR of 64 bits.
pub(crate) const X2APIC: std::ops::RangeInclusive<u32> = 0x800..=0x8ff;

pub(crate) fn x2apic(msr: u32) -> DeviceName {
    let number = msr.saturating_sub(*X2APIC.start());
    let register = local_register(number).filter(|_| !matches!(number, 0x0e | 0x31));
    DeviceName::register(
        "x2APIC",
        register.unwrap_or_else(|| regs::plain(u64::from(number))),
    )
}

pub(crate) fn io(offset: u64) -> DeviceName {
    let register = match offset {
        0x00..=0x03 => Cow::Borrowed("select"),
        0x10..=0x13 => Cow::Borrowed("data"),
        0x40..=0x43 => Cow::Borrowed("EOI"),
        _ => regs::plain(offset),
    };
    DeviceName::register("IOAPIC", register)
}

#[cfg(test)]
mod tests {
    use super::{io, local, x2apic};

    #[test]
    fn local_apic() {
        assert_eq!(local(0xb0).to_string(), "LAPIC EOI");
        assert_eq!(local(0x80).to_string(), "LAPIC TPR");
        assert_eq!(local(0x300).to_string(), "LAPIC ICR");
        assert_eq!(local(0x310).to_string(), "LAPIC ICR (high)");
        assert_eq!(local(0x380).to_string(), "LAPIC timer initial count");
        assert_eq!(local(0x170).to_string(), "LAPIC ISR7");
        assert_eq!(local(0x210).to_string(), "LAPIC IRR1");
        assert_eq!(local(0x40).to_string(), "LAPIC +0x40");
        assert_eq!(local(0xb8).to_string(), "LAPIC +0xb8");
        assert_eq!(local(0x1000).to_string(), "MSI address");
        assert_eq!(local(u64::MAX).to_string(), "MSI address");
    }

    #[test]
    fn x2apic_msrs() {
        assert_eq!(x2apic(0x830).to_string(), "x2APIC ICR");
        assert_eq!(x2apic(0x80b).to_string(), "x2APIC EOI");
        assert_eq!(x2apic(0x83f).to_string(), "x2APIC self IPI");
        assert_eq!(x2apic(0x838).to_string(), "x2APIC timer initial count");
        assert_eq!(x2apic(0x827).to_string(), "x2APIC IRR7");
        assert_eq!(x2apic(0x831).to_string(), "x2APIC +0x31");
        assert_eq!(x2apic(0x80e).to_string(), "x2APIC +0xe");
    }

    #[test]
    fn io_apic() {
        assert_eq!(io(0).to_string(), "IOAPIC select");
        assert_eq!(io(0x10).to_string(), "IOAPIC data");
        assert_eq!(io(0x40).to_string(), "IOAPIC EOI");
    }
}
