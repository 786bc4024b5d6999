//! Exit reasons of the other architectures, as far as their tracepoints record one.

use super::class::ExitClass::{
    Exception, Hypercall, Instruction, Interrupt, Mmio, Other, PageFault, Register, Waiting,
};
use super::class::{TabledReason, entry};

/// Set in the code of a RISC-V exit that is an interrupt: the highest bit of `scause`, wherever the register ends.
pub(super) const RISCV_INTERRUPT: u32 = 0x8000_0000;
/// A virtual instruction fault whose instruction is `wfi`: the guest waits. No hardware has this number.
pub(super) const RISCV_WFI: u32 = 0x2000_0016;
/// `wfi`, which `stval` has then (RISC-V unprivileged and privileged ISA).
pub(super) const RISCV_WFI_INSTRUCTION: u64 = 0x1050_0073;

/// RISC-V: `scause` of the trap into the hypervisor. Source: `arch/riscv/include/asm/csr.h` (`EXC_*`, `IRQ_*`; 7.2).
/// Names are those of `perf kvm stat` (`riscv_trap_types.h`), which leaves the interrupt's bit out and takes a timer
/// for a fault.
pub(super) const RISCV: &[TabledReason] = &[
    entry(0, "EXC_INST_MISALIGNED", Exception).also(&["INST_MISALIGNED"]),
    entry(1, "EXC_INST_ACCESS", Exception).also(&["INST_ACCESS"]),
    entry(2, "EXC_INST_ILLEGAL", Exception).also(&["INST_ILLEGAL"]),
    entry(3, "EXC_BREAKPOINT", Exception).also(&["BREAKPOINT"]),
    entry(4, "EXC_LOAD_MISALIGNED", Exception).also(&["LOAD_MISALIGNED"]),
    entry(5, "EXC_LOAD_ACCESS", Exception).also(&["LOAD_ACCESS"]),
    entry(6, "EXC_STORE_MISALIGNED", Exception).also(&["STORE_MISALIGNED"]),
    entry(7, "EXC_STORE_ACCESS", Exception).also(&["STORE_ACCESS"]),
    entry(8, "EXC_SYSCALL", Exception).also(&["SYSCALL"]),
    entry(9, "EXC_HYPERVISOR_SYSCALL", Hypercall).also(&["HYPERVISOR_SYSCALL"]),
    entry(10, "EXC_SUPERVISOR_SYSCALL", Hypercall).also(&["SUPERVISOR_SYSCALL"]),
    entry(12, "EXC_INST_PAGE_FAULT", Exception).also(&["INST_PAGE_FAULT"]),
    entry(13, "EXC_LOAD_PAGE_FAULT", Exception).also(&["LOAD_PAGE_FAULT"]),
    entry(15, "EXC_STORE_PAGE_FAULT", Exception).also(&["STORE_PAGE_FAULT"]),
    entry(20, "EXC_INST_GUEST_PAGE_FAULT", PageFault).also(&["INST_GUEST_PAGE_FAULT"]),
    entry(21, "EXC_LOAD_GUEST_PAGE_FAULT", PageFault).also(&["LOAD_GUEST_PAGE_FAULT"]),
    entry(22, "EXC_VIRTUAL_INST_FAULT", Instruction).also(&["VIRTUAL_INST_FAULT"]),
    entry(23, "EXC_STORE_GUEST_PAGE_FAULT", PageFault).also(&["STORE_GUEST_PAGE_FAULT"]),
    entry(RISCV_WFI, "WFI", Waiting),
    entry(RISCV_INTERRUPT | 1, "IRQ_S_SOFT", Interrupt),
    entry(RISCV_INTERRUPT | 2, "IRQ_VS_SOFT", Interrupt),
    entry(RISCV_INTERRUPT | 3, "IRQ_M_SOFT", Interrupt),
    entry(RISCV_INTERRUPT | 5, "IRQ_S_TIMER", Interrupt),
    entry(RISCV_INTERRUPT | 6, "IRQ_VS_TIMER", Interrupt),
    entry(RISCV_INTERRUPT | 7, "IRQ_M_TIMER", Interrupt),
    entry(RISCV_INTERRUPT | 9, "IRQ_S_EXT", Interrupt),
    entry(RISCV_INTERRUPT | 10, "IRQ_VS_EXT", Interrupt),
    entry(RISCV_INTERRUPT | 11, "IRQ_M_EXT", Interrupt),
    entry(RISCV_INTERRUPT | 12, "IRQ_S_GEXT", Interrupt),
    entry(RISCV_INTERRUPT | 13, "IRQ_PMU_OVF", Interrupt),
];

/// s390: interception codes. Source: `arch/s390/include/uapi/asm/sie.h` (`icpt_insn_codes` and `sie_intercept_code`;
/// 7.2).
pub(super) const S390: &[TabledReason] = &[
    entry(0x00, "Host interruption", Interrupt),
    entry(0x04, "Instruction", Instruction),
    entry(0x08, "Program interruption", Exception),
    entry(0x0c, "Instruction and program interruption", Exception),
    entry(0x10, "External request", Interrupt),
    entry(0x14, "External interruption", Interrupt),
    entry(0x18, "I/O request", Interrupt),
    entry(0x1c, "Wait state", Waiting),
    entry(0x20, "Validity", Other),
    entry(0x28, "Stop request", Interrupt),
    entry(0x2c, "Operation exception", Exception),
    entry(0x38, "Partial-execution", Instruction),
    entry(0x3c, "I/O interruption", Interrupt),
    entry(0x40, "I/O instruction", Instruction),
    entry(0x48, "Timing subset", Other),
];

/// POWER: trap vectors (`arch/powerpc/include/asm/kvm_asm.h`, `BOOK3S_INTERRUPT_*`).
pub(super) const POWERPC: &[TabledReason] = &[
    entry(0x100, "SYSTEM_RESET", Interrupt),
    entry(0x200, "MACHINE_CHECK", Exception),
    entry(0x300, "DATA_STORAGE", Exception),
    entry(0x380, "DATA_SEGMENT", Exception),
    entry(0x400, "INST_STORAGE", Exception),
    entry(0x480, "INST_SEGMENT", Exception),
    entry(0x500, "EXTERNAL", Interrupt),
    entry(0x600, "ALIGNMENT", Exception),
    entry(0x700, "PROGRAM", Exception),
    entry(0x800, "FP_UNAVAIL", Exception),
    entry(0x900, "DECREMENTER", Interrupt),
    entry(0x980, "HV_DECREMENTER", Interrupt),
    entry(0xc00, "SYSCALL", Hypercall),
    entry(0xd00, "TRACE", Exception),
    entry(0xe00, "H_DATA_STORAGE", PageFault),
    entry(0xe20, "H_INST_STORAGE", PageFault),
    entry(0xe40, "H_EMUL_ASSIST", Instruction),
    entry(0xe60, "HMI", Interrupt),
    entry(0xe80, "H_DOORBELL", Interrupt),
    entry(0xea0, "H_VIRT", Interrupt),
    entry(0xf00, "PERFMON", Interrupt),
    entry(0xf20, "ALTIVEC", Exception),
    entry(0xf40, "VSX", Exception),
    entry(0xf60, "FAC_UNAVAIL", Exception),
    entry(0xf80, "H_FAC_UNAVAIL", Exception),
];

/// LoongArch: exception codes (`arch/loongarch/include/asm/loongarch.h`, `EXCCODE_*`; 7.2), and behind them what a
/// privileged instruction was, by the numbers of the kernel's events (`arch/loongarch/kvm/trace.h`, `KVM_TRACE_EXIT_*`)
/// and, for what has none there, perf's. Names are those of `perf kvm stat`, and the kernel's where that has none.
pub(super) const LOONGARCH: &[TabledReason] = &[
    entry(0, "Interrupt", Interrupt),
    entry(1, "Mem Read", PageFault).also(&["TLBL"]),
    entry(2, "Mem Store", PageFault).also(&["TLBS"]),
    entry(3, "Inst Fetch", PageFault).also(&["TLBI"]),
    entry(4, "Mem Modify", PageFault).also(&["TLBM"]),
    entry(5, "TLBNR", PageFault),
    entry(6, "TLBNX", PageFault),
    entry(7, "TLBPE", PageFault),
    entry(8, "ADE", Exception),
    entry(9, "ALE", Exception),
    entry(10, "BCE", Exception),
    entry(11, "SYS", Exception),
    entry(12, "BP", Exception),
    entry(13, "INE", Exception),
    entry(14, "IPE", Exception),
    entry(15, "FPU", Instruction).also(&["FPDis"]),
    entry(16, "LSX", Instruction).also(&["LSXDis"]),
    entry(17, "LASX", Instruction).also(&["LASXDis"]),
    entry(18, "FPE", Exception),
    entry(19, "WATCH", Exception),
    entry(20, "BTDIS", Instruction),
    entry(21, "BTE", Exception),
    entry(22, "Privilege Error", Other).also(&["GSPR"]),
    entry(23, "Hypercall", Hypercall).also(&["HVC"]),
    entry(24, "GCM", Register),
    entry(25, "SE", Exception),
    entry(LOONGARCH_IDLE, "Idle", Waiting).also(&["IDLE"]),
    entry(65, "CACHE", Instruction),
    entry(66, "CPUCFG", Instruction),
    entry(67, "CSR", Register),
    entry(LOONGARCH_IOCSR, "IOCSR", Mmio),
];

const LOONGARCH_IDLE: u32 = 64;
const LOONGARCH_IOCSR: u32 = 102;

/// Returns what a privileged instruction of a LoongArch guest is (`kvm_trap_handle_gspr`, `arch/loongarch/kvm/exit.c`).
pub(super) fn loongarch_instruction(word: u32) -> u32 {
    match (word >> 24, word >> 22, word >> 15) {
        (0, ..) => 66,
        (4, ..) => 67,
        (6, 0x18, _) => 65,
        (6, _, 0xc90) => LOONGARCH_IOCSR,
        (6, _, 0xc91) => LOONGARCH_IDLE,
        _ => 22,
    }
}
