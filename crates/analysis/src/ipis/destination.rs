//! Whom a write of the interrupt controller's command register (ICR) is for.

/// Whom an interrupt is for, by the numbers of local APICs, which KVM's VMMs give vCPUs as theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// No vCPU that could be halted: the sender itself, or one that has not begun.
    Nobody,
    One(u32),
    /// A bit for each, from a number on.
    Bits(u32, u32),
    /// All but the sender.
    All,
    /// The upper half of the register was not recorded.
    Unknown,
}

impl Destination {
    /// Reads the ICR: its lower half, and its destination where that was recorded (Intel SDM volume 3, 11.6.1, 11.6.2,
    /// 11.12.9 and 11.12.10). Linux uses the flat model where destinations are logical and have eight bits.
    pub(super) fn of(icr: u32, destination: Option<u32>, x2apic: bool) -> Destination {
        // Fixed and lowest priority; INIT and SIPI find a vCPU that has not begun, an NMI is for nobody who polls.
        if icr >> 8 & 7 > 1 {
            return Destination::Nobody;
        }
        let logical = icr >> 11 & 1 == 1;
        match (icr >> 18 & 3, destination) {
            (1, _) => Destination::Nobody,
            (2 | 3, _) => Destination::All,
            (_, None) => Destination::Unknown,
            (_, Some(to)) if to == if x2apic { u32::MAX } else { 0xff } => Destination::All,
            (_, Some(to)) if !logical => Destination::One(to),
            (_, Some(to)) if x2apic => {
                Destination::Bits((to >> 16).saturating_mul(16), to & 0xffff)
            }
            (_, Some(to)) => Destination::Bits(0, to & 0xff),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_register_says_whom_an_interrupt_is_for() {
        use Destination::{All, Bits, Nobody, One, Unknown};
        for (icr, to, x2apic, whom) in [
            // Fixed, physical, one vCPU: what guests with few vCPUs send.
            (0xfb, Some(1), true, One(1)),
            (0xfd, Some(3), false, One(3)),
            // Logical: the second cluster's first and third; three bits of the flat model.
            (0x8fb, Some(0x1_0005), true, Bits(16, 5)),
            (0x8fb, Some(0x7), false, Bits(0, 7)),
            // Shorthands: itself, all, all but itself; and all by number.
            (0x400fb, Some(0), true, Nobody),
            (0xc00fb, Some(0), true, All),
            (0x800fb, None, false, All),
            (0xfb, Some(u32::MAX), true, All),
            (0xfb, Some(0xff), false, All),
            // INIT, SIPI, NMI.
            (0x500, Some(1), true, Nobody),
            (0x608, Some(1), true, Nobody),
            (0x400, Some(1), true, Nobody),
            (0xfb, None, false, Unknown),
        ] {
            assert_eq!(Destination::of(icr, to, x2apic), whom, "{icr:#x} {to:?}");
        }
    }
}
