//! KVM's paravirtual MSRs: kernel `arch/x86/include/uapi/asm/kvm_para.h` and
//! `Documentation/virt/kvm/x86/msr.rst`.

/// MSR and what it is for; the first two are the numbers used before Linux 2.6.35.
pub(crate) const MSRS: &[(u32, &str)] = &[
    (0x11, "wall clock"),
    (0x12, "system time"),
    (0x4b56_4d00, "wall clock (new)"),
    (0x4b56_4d01, "system time (new)"),
    (0x4b56_4d02, "async page fault enable"),
    (0x4b56_4d03, "steal time"),
    (0x4b56_4d04, "PV EOI enable"),
    (0x4b56_4d05, "poll control"),
    (0x4b56_4d06, "async page fault interrupt"),
    (0x4b56_4d07, "async page fault acknowledge"),
    (0x4b56_4d08, "migration control"),
];
