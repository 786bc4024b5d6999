//! Whose vectors are in Linux on x86.

/// Events of `irq_vectors` and their vectors on x86 (`arch/x86/include/asm/trace/irq_vectors.h`,
/// `arch/x86/include/asm/irq_vectors.h`, Linux 4.17 to 6.12).
pub(super) const NAMED_VECTORS: [(&str, u8); 11] = [
    ("local_timer", 0xec),
    ("deferred_error_apic", 0xf4),
    ("irq_work", 0xf6),
    ("x86_platform_ipi", 0xf7),
    ("threshold_apic", 0xf9),
    ("thermal_apic", 0xfa),
    ("call_function_single", 0xfb),
    ("call_function", 0xfc),
    ("reschedule", 0xfd),
    ("error_apic", 0xfe),
    ("spurious_apic", 0xff),
];

/// Whose a vector is in Linux on x86.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VectorOwner {
    /// A device's: its handler has `irq_handler_entry`.
    Device,
    /// Linux's own: it has an event of `irq_vectors`, or none.
    System,
    /// It depends on the kernel: the cleanup of moved interrupts (0x20, up to Linux 6.8), posted MSIs (0xeb, from
    /// 6.11), the hypervisor's callback (0xf3), and what firmware uses.
    Either,
}

/// Returns whose a vector is (`arch/x86/include/asm/irq_vectors.h`).
pub(super) fn whose(vector: u8) -> VectorOwner {
    match vector {
        0..=0x20 | 0xeb | 0xf3 => VectorOwner::Either,
        0xec..=0xff => VectorOwner::System,
        _ => VectorOwner::Device,
    }
}

/// Returns what an event of `irq_vectors` is of, and whether it is an entry. Where the system is not known, only known
/// names count.
pub(super) fn of_vectors<'n>(system: &str, name: &'n str) -> Option<(&'n str, bool)> {
    let of = match name.strip_suffix("_entry") {
        Some(of) => (of, true),
        None => (name.strip_suffix("_exit")?, false),
    };
    let known = || NAMED_VECTORS.iter().any(|(one, _)| *one == of.0);
    (!system.is_empty() || known()).then_some(of)
}
