//! arm64: what the world switch returned, and the exception classes of `ESR_EL2`.
//!
//! Source: `arch/arm64/include/asm/kvm_asm.h` (`ARM_EXCEPTION_*`), `arch/arm64/include/asm/esr.h`
//! (`ESR_ELx_EC_*`, 7.2). Names are those of `kvm_arm_exception_class` and of `perf kvm stat`.

use super::class::ExitClass::{
    End, Exception, Hypercall, Instruction, Interrupt, Nested, Other, PageFault, Register, Waiting,
};
use super::class::{ExitClass, TabledReason, classes, entry};

/// A trap: the exception class says which (`ARM_EXCEPTION_TRAP`).
pub const ARM_EXCEPTION_TRAP: u32 = 2;

/// Marks codes of [`super::ExitReason`] that are exception classes.
pub(super) const TRAP_BASE: u32 = 0x100;

/// Exception classes, sorted.
pub(super) const CLASSES: &[TabledReason] = &[
    entry(0x00, "UNKNOWN", Other),
    entry(0x01, "WFx", Waiting),
    entry(0x03, "CP15_32", Register),
    entry(0x04, "CP15_64", Register),
    entry(0x05, "CP14_MR", Register),
    entry(0x06, "CP14_LS", Register),
    entry(0x07, "FP_ASIMD", Instruction),
    entry(0x08, "CP10_ID", Register),
    entry(0x09, "PAC", Instruction),
    entry(0x0a, "OTHER", Other),
    entry(0x0c, "CP14_64", Register),
    entry(0x0d, "BTI", Exception),
    entry(0x0e, "ILL", Exception),
    entry(0x11, "SVC32", Exception),
    entry(0x12, "HVC32", Hypercall),
    entry(0x13, "SMC32", Hypercall),
    entry(0x15, "SVC64", Exception),
    entry(0x16, "HVC64", Hypercall),
    entry(0x17, "SMC64", Hypercall),
    entry(0x18, "SYS64", Register),
    entry(0x19, "SVE", Instruction),
    entry(0x1a, "ERET", Nested),
    entry(0x1c, "FPAC", Exception),
    entry(0x1d, "SME", Instruction),
    entry(0x1f, "IMP_DEF", Other),
    entry(0x20, "IABT_LOW", PageFault),
    entry(0x21, "IABT_CUR", Exception),
    entry(0x22, "PC_ALIGN", Exception),
    entry(0x24, "DABT_LOW", PageFault),
    entry(0x25, "DABT_CUR", Exception),
    entry(0x26, "SP_ALIGN", Exception),
    entry(0x27, "MOPS", Instruction),
    entry(0x28, "FP_EXC32", Exception),
    entry(0x2c, "FP_EXC64", Exception),
    entry(0x2d, "GCS", Exception),
    entry(0x2f, "SERROR", Exception),
    entry(0x30, "BREAKPT_LOW", Exception),
    entry(0x31, "BREAKPT_CUR", Exception),
    entry(0x32, "SOFTSTP_LOW", Exception),
    entry(0x33, "SOFTSTP_CUR", Exception),
    entry(0x34, "WATCHPT_LOW", Exception),
    entry(0x35, "WATCHPT_CUR", Exception),
    entry(0x38, "BKPT32", Exception),
    entry(0x3a, "VECTOR32", Exception),
    entry(0x3c, "BRK64", Exception),
];

/// What the world switch returned where it was no trap, sorted.
const RETURNED: &[TabledReason] = &[
    entry(0, "IRQ", Interrupt),
    entry(1, "SERROR", Exception).also(&["EL1_SERROR"]),
    entry(ARM_EXCEPTION_TRAP, "TRAP", Other),
    entry(3, "ILLEGAL", Exception).also(&["IL"]),
    // HVC_STUB_ERR: the hypervisor stub answered, KVM is gone.
    entry(0xbad_ca11, "HYP_GONE", End),
];

pub(super) fn find(code: u32) -> Option<&'static TabledReason> {
    match code & !0x3f {
        TRAP_BASE => super::find(CLASSES, code & 0x3f),
        _ => super::find(RETURNED, code),
    }
}

/// Classes of the exception classes.
static CLASS_OF: [ExitClass; 64] = classes(CLASSES);

#[inline]
pub(super) fn class(code: u32) -> ExitClass {
    match code & !0x3f {
        TRAP_BASE => CLASS_OF[(code & 0x3f) as usize],
        _ => super::find(RETURNED, code).map_or(Other, |one| one.class),
    }
}

/// Returns the code of a name as texts print it: an exception class, or a return code that is no trap.
pub(super) fn code(name: &str) -> Option<u32> {
    let of = |table: &'static [TabledReason]| table.iter().find(|one| one.is_called(name));
    match name {
        // In a text's brackets, this is the exception class.
        "SERROR" | "TRAP" => None,
        _ => of(RETURNED).map(|one| one.code),
    }
    .or_else(|| Some(TRAP_BASE | of(CLASSES)?.code))
}
