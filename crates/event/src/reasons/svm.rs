//! SVM exit codes.
//!
//! Source: `arch/x86/include/uapi/asm/svm.h` (6.18) and the AMD64 APM, volume 2, appendix C. Names are the
//! kernel's and those `perf kvm stat` prints. trace-cmd's kvm plugin prints `EXIT_` and the constant's own
//! name, which stands third where it differs.

/// Exit code and name, sorted.
pub(super) const REASONS: &[(u32, &str)] = &[
    (0x000, "read_cr0"),
    (0x002, "read_cr2"),
    (0x003, "read_cr3"),
    (0x004, "read_cr4"),
    (0x008, "read_cr8"),
    (0x010, "write_cr0"),
    (0x012, "write_cr2"),
    (0x013, "write_cr3"),
    (0x014, "write_cr4"),
    (0x018, "write_cr8"),
    (0x020, "read_dr0"),
    (0x021, "read_dr1"),
    (0x022, "read_dr2"),
    (0x023, "read_dr3"),
    (0x024, "read_dr4"),
    (0x025, "read_dr5"),
    (0x026, "read_dr6"),
    (0x027, "read_dr7"),
    (0x030, "write_dr0"),
    (0x031, "write_dr1"),
    (0x032, "write_dr2"),
    (0x033, "write_dr3"),
    (0x034, "write_dr4"),
    (0x035, "write_dr5"),
    (0x036, "write_dr6"),
    (0x037, "write_dr7"),
    (0x040, "DE excp"),
    (0x041, "DB excp"),
    (0x043, "BP excp"),
    (0x044, "OF excp"),
    (0x045, "BR excp"),
    (0x046, "UD excp"),
    (0x047, "NM excp"),
    (0x048, "DF excp"),
    (0x04a, "TS excp"),
    (0x04b, "NP excp"),
    (0x04c, "SS excp"),
    (0x04d, "GP excp"),
    (0x04e, "PF excp"),
    (0x050, "MF excp"),
    (0x051, "AC excp"),
    (0x052, "MC excp"),
    (0x053, "XF excp"),
    (0x060, "interrupt"),
    (0x061, "nmi"),
    (0x062, "smi"),
    (0x063, "init"),
    (0x064, "vintr"),
    (0x065, "cr0_sel_write"),
    (0x066, "read_idtr"),
    (0x067, "read_gdtr"),
    (0x068, "read_ldtr"),
    (0x069, "read_rt"),
    (0x06a, "write_idtr"),
    (0x06b, "write_gdtr"),
    (0x06c, "write_ldtr"),
    (0x06d, "write_rt"),
    (0x06e, "rdtsc"),
    (0x06f, "rdpmc"),
    (0x070, "pushf"),
    (0x071, "popf"),
    (0x072, "cpuid"),
    (0x073, "rsm"),
    (0x074, "iret"),
    (0x075, "swint"),
    (0x076, "invd"),
    (0x077, "pause"),
    (0x078, "hlt"),
    (0x079, "invlpg"),
    (0x07a, "invlpga"),
    (0x07b, "io"),
    (0x07c, "msr"),
    (0x07d, "task_switch"),
    (0x07e, "ferr_freeze"),
    (0x07f, "shutdown"),
    (0x080, "vmrun"),
    (0x081, "hypercall"),
    (0x082, "vmload"),
    (0x083, "vmsave"),
    (0x084, "stgi"),
    (0x085, "clgi"),
    (0x086, "skinit"),
    (0x087, "rdtscp"),
    (0x088, "icebp"),
    (0x089, "wbinvd"),
    (0x08a, "monitor"),
    (0x08b, "mwait"),
    (0x08c, "mwait_cond"),
    (0x08d, "xsetbv"),
    (0x08e, "rdpru"),
    (0x08f, "write_efer_trap"),
    (0x090, "write_cr0_trap"),
    (0x094, "write_cr4_trap"),
    (0x098, "write_cr8_trap"),
    (0x0a2, "invpcid"),
    (0x0a5, "bus_lock"),
    (0x0a6, "idle_hlt"),
    (0x400, "npf"),
    (0x401, "avic_incomplete_ipi"),
    (0x402, "avic_unaccelerated_access"),
    (0x403, "vmgexit"),
    (0x8000_0001, "vmgexit_mmio_read"),
    (0x8000_0002, "vmgexit_mmio_write"),
    (0x8000_0003, "vmgexit_nmi_complete"),
    (0x8000_0004, "vmgexit_ap_hlt_loop"),
    (0x8000_0005, "vmgexit_ap_jump_table"),
    (0x8000_0010, "vmgexit_page_state_change"),
    (0x8000_0011, "vmgexit_guest_request"),
    (0x8000_0012, "vmgexit_ext_guest_request"),
    (0x8000_0013, "vmgexit_ap_creation"),
    (0x8000_fffd, "vmgexit_hypervisor_feature"),
    (0xffff_ffff, "invalid_guest_state"),
];

/// The constants' own names, as trace-cmd's kvm plugin prints them behind `EXIT_`, where they are not the
/// name above in capitals.
const CONSTANTS: &[(&str, u32)] = &[
    ("INTR", 0x060),
    ("IDTR_READ", 0x066),
    ("GDTR_READ", 0x067),
    ("LDTR_READ", 0x068),
    ("TR_READ", 0x069),
    ("IDTR_WRITE", 0x06a),
    ("GDTR_WRITE", 0x06b),
    ("LDTR_WRITE", 0x06c),
    ("TR_WRITE", 0x06d),
    ("IOIO", 0x07b),
    ("VMMCALL", 0x081),
    ("ERR", 0xffff_ffff),
];

pub(super) fn name(code: u32) -> Option<&'static str> {
    super::find(REASONS, code)
}

pub(super) fn code(name: &str) -> Option<u32> {
    if let Some(constant) = name.strip_prefix("EXIT_") {
        // Exceptions are `EXCP_PF` there and `PF excp` above.
        if let Some(exception) = constant.strip_prefix("EXCP_") {
            let named = |name: &str| name.strip_suffix(" excp") == Some(exception);
            return REASONS.iter().find(|e| named(e.1)).map(|e| e.0);
        }
        let own = CONSTANTS.iter().find(|e| e.0 == constant).map(|e| e.1);
        return own.or_else(|| {
            REASONS
                .iter()
                .find(|e| e.1.eq_ignore_ascii_case(constant))
                .map(|e| e.0)
        });
    }
    REASONS.iter().find(|e| e.1 == name).map(|e| e.0)
}
