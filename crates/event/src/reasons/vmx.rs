//! VMX basic exit reasons.
//!
//! Source: `arch/x86/include/uapi/asm/vmx.h` (6.18) and the Intel SDM, volume 3, appendix C. Names are the
//! kernel's and those `perf kvm stat` prints.

/// Basic exit reason and name, sorted.
pub(super) const REASONS: &[(u32, &str)] = &[
    (0, "EXCEPTION_NMI"),
    (1, "EXTERNAL_INTERRUPT"),
    (2, "TRIPLE_FAULT"),
    (3, "INIT_SIGNAL"),
    (4, "SIPI_SIGNAL"),
    (5, "IO_SMI"),
    (6, "OTHER_SMI"),
    (7, "INTERRUPT_WINDOW"),
    (8, "NMI_WINDOW"),
    (9, "TASK_SWITCH"),
    (10, "CPUID"),
    (11, "GETSEC"),
    (12, "HLT"),
    (13, "INVD"),
    (14, "INVLPG"),
    (15, "RDPMC"),
    (16, "RDTSC"),
    (17, "RSM"),
    (18, "VMCALL"),
    (19, "VMCLEAR"),
    (20, "VMLAUNCH"),
    (21, "VMPTRLD"),
    (22, "VMPTRST"),
    (23, "VMREAD"),
    (24, "VMRESUME"),
    (25, "VMWRITE"),
    (26, "VMOFF"),
    (27, "VMON"),
    (28, "CR_ACCESS"),
    (29, "DR_ACCESS"),
    (30, "IO_INSTRUCTION"),
    (31, "MSR_READ"),
    (32, "MSR_WRITE"),
    (33, "INVALID_STATE"),
    (34, "MSR_LOAD_FAIL"),
    (36, "MWAIT_INSTRUCTION"),
    (37, "MONITOR_TRAP_FLAG"),
    (39, "MONITOR_INSTRUCTION"),
    (40, "PAUSE_INSTRUCTION"),
    (41, "MCE_DURING_VMENTRY"),
    (43, "TPR_BELOW_THRESHOLD"),
    (44, "APIC_ACCESS"),
    (45, "EOI_INDUCED"),
    (46, "GDTR_IDTR"),
    (47, "LDTR_TR"),
    (48, "EPT_VIOLATION"),
    (49, "EPT_MISCONFIG"),
    (50, "INVEPT"),
    (51, "RDTSCP"),
    (52, "PREEMPTION_TIMER"),
    (53, "INVVPID"),
    (54, "WBINVD"),
    (55, "XSETBV"),
    (56, "APIC_WRITE"),
    (57, "RDRAND"),
    (58, "INVPCID"),
    (59, "VMFUNC"),
    (60, "ENCLS"),
    (61, "RDSEED"),
    (62, "PML_FULL"),
    (63, "XSAVES"),
    (64, "XRSTORS"),
    (66, "SPP_EVENT"),
    (67, "UMWAIT"),
    (68, "TPAUSE"),
    (69, "LOADIWKEY"),
    (72, "ENQCMD_PASID"),
    (73, "ENQCMDS_PASID"),
    (74, "BUS_LOCK"),
    (75, "NOTIFY"),
    (76, "SEAMCALL"),
    (77, "TDCALL"),
    (84, "MSR_READ_IMM"),
    (85, "MSR_WRITE_IMM"),
];

/// Names that older kernels and trace-cmd's plugin print for the same numbers.
const OTHER_NAMES: &[(&str, u32)] = &[
    ("PENDING_INTERRUPT", 7),
    ("INTERRUPT_WINDOW", 7),
    ("NMI", 0),
    ("VMXOFF", 26),
    ("VMXON", 27),
    ("MSR_LOADING", 34),
    ("TRAP_FLAG", 37),
    ("MONITOR_TRAP", 37),
    ("VIRTUALIZED_EOI", 45),
];

pub(super) fn name(code: u32) -> Option<&'static str> {
    super::find(REASONS, code)
}

pub(super) fn code(name: &str) -> Option<u32> {
    let main = REASONS.iter().find(|e| e.1 == name).map(|e| e.0);
    main.or_else(|| OTHER_NAMES.iter().find(|e| e.0 == name).map(|e| e.1))
}
