//! Exit reasons of the other architectures, as far as their tracepoints record one.

/// RISC-V: `scause` of the trap into the hypervisor. Source: `arch/riscv/include/asm/csr.h` (`EXC_*`); the
/// interrupt bit is dropped, interrupts have names of their own in the privileged specification.
pub(super) const RISCV: &[(u32, &str)] = &[
    (0, "INST_MISALIGNED"),
    (1, "INST_ACCESS"),
    (2, "INST_ILLEGAL"),
    (3, "BREAKPOINT"),
    (4, "LOAD_MISALIGNED"),
    (5, "LOAD_ACCESS"),
    (6, "STORE_MISALIGNED"),
    (7, "STORE_ACCESS"),
    (8, "SYSCALL"),
    (9, "HYPERVISOR_SYSCALL"),
    (10, "SUPERVISOR_SYSCALL"),
    (12, "INST_PAGE_FAULT"),
    (13, "LOAD_PAGE_FAULT"),
    (15, "STORE_PAGE_FAULT"),
    (20, "INST_GUEST_PAGE_FAULT"),
    (21, "LOAD_GUEST_PAGE_FAULT"),
    (22, "VIRTUAL_INST_FAULT"),
    (23, "STORE_GUEST_PAGE_FAULT"),
];

/// s390: interception codes. Source: `arch/s390/include/uapi/asm/sie.h` (`icpt_insn_codes` and
/// `sie_intercept_code`).
pub(super) const S390: &[(u32, &str)] = &[
    (0x00, "Host interruption"),
    (0x04, "Instruction"),
    (0x08, "Program interruption"),
    (0x0c, "Instruction and program interruption"),
    (0x10, "External request"),
    (0x14, "External interruption"),
    (0x18, "I/O request"),
    (0x1c, "Wait state"),
    (0x20, "Validity"),
    (0x28, "Stop request"),
    (0x2c, "Operation exception"),
    (0x38, "Partial-execution"),
    (0x3c, "I/O interruption"),
    (0x40, "I/O instruction"),
    (0x48, "Timing subset"),
];

pub(super) fn riscv(code: u32) -> Option<&'static str> {
    super::find(RISCV, code)
}

pub(super) fn s390(code: u32) -> Option<&'static str> {
    super::find(S390, code)
}

/// POWER: trap vectors (`arch/powerpc/include/asm/kvm_asm.h`, `BOOK3S_INTERRUPT_*`).
pub(super) const POWERPC: &[(u32, &str)] = &[
    (0x100, "SYSTEM_RESET"),
    (0x200, "MACHINE_CHECK"),
    (0x300, "DATA_STORAGE"),
    (0x380, "DATA_SEGMENT"),
    (0x400, "INST_STORAGE"),
    (0x480, "INST_SEGMENT"),
    (0x500, "EXTERNAL"),
    (0x600, "ALIGNMENT"),
    (0x700, "PROGRAM"),
    (0x800, "FP_UNAVAIL"),
    (0x900, "DECREMENTER"),
    (0x980, "HV_DECREMENTER"),
    (0xc00, "SYSCALL"),
    (0xd00, "TRACE"),
    (0xe00, "H_DATA_STORAGE"),
    (0xe20, "H_INST_STORAGE"),
    (0xe40, "H_EMUL_ASSIST"),
    (0xe60, "HMI"),
    (0xe80, "H_DOORBELL"),
    (0xea0, "H_VIRT"),
    (0xf00, "PERFMON"),
    (0xf20, "ALTIVEC"),
    (0xf40, "VSX"),
    (0xf60, "FAC_UNAVAIL"),
    (0xf80, "H_FAC_UNAVAIL"),
];

pub(super) fn powerpc(code: u32) -> Option<&'static str> {
    super::find(POWERPC, code)
}

/// LoongArch: exception codes (`arch/loongarch/include/asm/loongarch.h`, `EXCCODE_*`).
pub(super) const LOONGARCH: &[(u32, &str)] = &[
    (0, "Interrupt"),
    (1, "TLBL"),
    (2, "TLBS"),
    (3, "TLBI"),
    (4, "TLBM"),
    (5, "TLBNR"),
    (6, "TLBNX"),
    (7, "TLBPE"),
    (15, "FPDis"),
    (16, "LSXDis"),
    (17, "LASXDis"),
    (22, "GSPR"),
    (23, "HVC"),
    (24, "GCM"),
];

pub(super) fn loongarch(code: u32) -> Option<&'static str> {
    super::find(LOONGARCH, code)
}

/// Returns the code of a name that s390 kernels print.
pub(super) fn s390_code(name: &str) -> Option<u32> {
    super::find_name(S390, name)
}

/// Returns the code of a name that POWER kernels print.
pub(super) fn powerpc_code(name: &str) -> Option<u32> {
    super::find_name(POWERPC, name)
}
