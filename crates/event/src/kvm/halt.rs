//! A vCPU halts: how long it slept or polled, and for how long KVM lets it poll.

use memchr::memmem;

use crate::define::{TextForm, event};
use crate::text::{behind, decimal, word};

event! {
    /// `kvm:kvm_vcpu_wakeup`: a halted vCPU goes on (`virt/kvm/kvm_main.c`, `kvm_vcpu_halt`).
    KvmVcpuWakeup at WakeupPlaces {
        /// How long it was halted, polling included.
        halted_ns: u64 = "ns",
        /// Whether it slept; if not, polling was enough.
        waited: bool = "waited",
        /// Whether there was something to wake up for.
        valid: bool = "valid" or true,
    }
    text: TextForm::Whole(vcpu_wakeup)
}

/// Reads `wait time 1234 ns, polling valid`.
fn vcpu_wakeup(text: &[u8]) -> Option<KvmVcpuWakeup> {
    if memmem::find(text, b"ns=").is_some() {
        return KvmVcpuWakeup::from_fields(text);
    }
    let waited = match word(text) {
        b"wait" => true,
        b"poll" => false,
        _ => return None,
    };
    Some(KvmVcpuWakeup {
        halted_ns: decimal(word(behind(text, b" time ")?))?,
        waited,
        valid: memmem::find(text, b"invalid").is_none(),
    })
}

event! {
    /// `kvm:kvm_halt_poll_ns`: KVM makes the time longer or shorter for which a vCPU polls when it halts
    /// (`grow_halt_poll_ns` and `shrink_halt_poll_ns` in `virt/kvm/kvm_main.c`).
    KvmHaltPollNs at HaltPollPlaces {
        /// From now on, in nanoseconds.
        new_ns: u64 = "new",
        /// Until now, in the halt that ends as well.
        old_ns: u64 = "old",
    }
    text: TextForm::Whole(halt_poll)
}

/// Reads `vcpu 0: halt_poll_ns 10000 (grow 0)`: the new time, and the old one in brackets.
fn halt_poll(text: &[u8]) -> Option<KvmHaltPollNs> {
    if memmem::find(text, b"new=").is_some() {
        return KvmHaltPollNs::from_fields(text);
    }
    let new = behind(text, b"halt_poll_ns ")?;
    let old = behind(new, b"(grow ").or_else(|| behind(new, b"(shrink "))?;
    let digits = old.iter().take_while(|b| b.is_ascii_digit()).count();
    Some(KvmHaltPollNs {
        new_ns: decimal(word(new))?,
        old_ns: decimal(old.get(..digits)?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halts_are_read_from_both_wordings() {
        let wakeup = KvmVcpuWakeup {
            halted_ns: 4711,
            waited: true,
            valid: false,
        };
        for text in [
            "wait time 4711 ns, polling invalid",
            "ns=4711 waited=1 valid=0",
        ] {
            assert_eq!(vcpu_wakeup(text.as_bytes()), Some(wakeup));
        }
        let poll = KvmHaltPollNs {
            new_ns: 10000,
            old_ns: 80000,
        };
        for text in [
            "vcpu 0: halt_poll_ns 10000 (shrink 80000)",
            "grow=0 vcpu_id=0 new=10000 old=80000",
        ] {
            assert_eq!(halt_poll(text.as_bytes()), Some(poll));
        }
    }
}
