//! arm64: what the world switch returned, and the exception classes of `ESR_EL2`.
//!
//! Source: `arch/arm64/include/asm/kvm_asm.h` (`ARM_EXCEPTION_*`), `arch/arm64/include/asm/esr.h`
//! (`ESR_ELx_EC_*`, 6.18). Names are those of `kvm_arm_exception_class` and of `perf kvm stat`.

/// A trap: the exception class says which (`ARM_EXCEPTION_TRAP`).
pub const ARM_EXCEPTION_TRAP: u32 = 2;

/// Marks codes of [`super::ExitReason`] that are exception classes.
pub(super) const TRAP_BASE: u32 = 0x100;

/// Exception class and name, sorted.
pub(super) const CLASSES: &[(u32, &str)] = &[
    (0x00, "UNKNOWN"),
    (0x01, "WFx"),
    (0x03, "CP15_32"),
    (0x04, "CP15_64"),
    (0x05, "CP14_MR"),
    (0x06, "CP14_LS"),
    (0x07, "FP_ASIMD"),
    (0x08, "CP10_ID"),
    (0x09, "PAC"),
    (0x0a, "OTHER"),
    (0x0c, "CP14_64"),
    (0x0d, "BTI"),
    (0x0e, "ILL"),
    (0x11, "SVC32"),
    (0x12, "HVC32"),
    (0x13, "SMC32"),
    (0x15, "SVC64"),
    (0x16, "HVC64"),
    (0x17, "SMC64"),
    (0x18, "SYS64"),
    (0x19, "SVE"),
    (0x1a, "ERET"),
    (0x1c, "FPAC"),
    (0x1d, "SME"),
    (0x1f, "IMP_DEF"),
    (0x20, "IABT_LOW"),
    (0x21, "IABT_CUR"),
    (0x22, "PC_ALIGN"),
    (0x24, "DABT_LOW"),
    (0x25, "DABT_CUR"),
    (0x26, "SP_ALIGN"),
    (0x27, "MOPS"),
    (0x28, "FP_EXC32"),
    (0x2c, "FP_EXC64"),
    (0x2d, "GCS"),
    (0x2f, "SERROR"),
    (0x30, "BREAKPT_LOW"),
    (0x31, "BREAKPT_CUR"),
    (0x32, "SOFTSTP_LOW"),
    (0x33, "SOFTSTP_CUR"),
    (0x34, "WATCHPT_LOW"),
    (0x35, "WATCHPT_CUR"),
    (0x38, "BKPT32"),
    (0x3a, "VECTOR32"),
    (0x3c, "BRK64"),
];

pub(super) fn name(code: u32) -> Option<&'static str> {
    if code & !0x3f == TRAP_BASE {
        return super::find(CLASSES, code & 0x3f);
    }
    Some(match code {
        0 => "IRQ",
        1 => "SERROR",
        ARM_EXCEPTION_TRAP => "TRAP",
        3 => "ILLEGAL",
        // HVC_STUB_ERR: the hypervisor stub answered, KVM is gone.
        0xbad_ca11 => "HYP_GONE",
        _ => return None,
    })
}

/// Returns the code of a name as texts print it: an exception class, or a return code that is no trap.
pub(super) fn class_code(name: &str) -> Option<u32> {
    Some(match name {
        "IRQ" => 0,
        "EL1_SERROR" => 1,
        "ILLEGAL" | "IL" => 3,
        "HYP_GONE" => 0xbad_ca11,
        _ => TRAP_BASE | CLASSES.iter().find(|e| e.1 == name)?.0,
    })
}
