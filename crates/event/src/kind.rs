//! The events that trapline has a typed view of.

/// What an event means to trapline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Kind {
    /// The vCPU left the guest: `kvm:kvm_exit`, on s390 `kvm_s390_sie_exit`, on powerpc
    /// `kvm_hv:kvm_guest_exit`.
    KvmExit,
    /// The vCPU is about to enter the guest: `kvm:kvm_entry`, on s390 `kvm_s390_sie_enter`, on powerpc
    /// `kvm_hv:kvm_guest_enter`.
    KvmEntry,
    /// `kvm:kvm_mmio`: the guest touched memory that KVM emulates.
    KvmMmio,
    /// `kvm:kvm_pio`: the guest touched an I/O port (x86).
    KvmPio,
    /// `kvm:kvm_msr`: the guest read or wrote a model specific register (x86).
    KvmMsr,
    /// Any other event.
    #[default]
    Other,
}

impl Kind {
    /// Returns what an event of this name means. The subsystem is compared only where it is known: texts of
    /// ftrace do not print it.
    pub fn of(system: &str, name: &str) -> Kind {
        let kvm = matches!(system, "" | "kvm" | "kvm_hv" | "kvm-s390");
        if !kvm {
            return Kind::Other;
        }
        match name {
            "kvm_exit" | "kvm_s390_sie_exit" | "kvm_guest_exit" => Kind::KvmExit,
            "kvm_entry" | "kvm_s390_sie_enter" | "kvm_guest_enter" => Kind::KvmEntry,
            "kvm_mmio" => Kind::KvmMmio,
            "kvm_pio" => Kind::KvmPio,
            "kvm_msr" => Kind::KvmMsr,
            _ => Kind::Other,
        }
    }
}
