//! System registers of arm64: kernel `arch/arm64/include/asm/sysreg.h` and `arch/arm64/tools/sysreg`, whose names these
//! are. KVM emulates those that `arch/arm64/kvm/sys_regs.c` lists.

use std::borrow::Cow;

use crate::name::DeviceName;

/// By encoding: op0, op1, CRn, CRm and op2 as a decimal number, two digits each.
const REGISTERS: &[(u32, &str)] = &[
    (200_000_200, "MDCCINT_EL1"),
    (200_000_202, "MDSCR_EL1"),
    (200_010_004, "OSLAR_EL1"),
    (200_010_104, "OSLSR_EL1"),
    (200_010_304, "OSDLR_EL1"),
    (200_010_404, "DBGPRCR_EL1"),
    (200_070_806, "DBGCLAIMSET_EL1"),
    (200_070_906, "DBGCLAIMCLR_EL1"),
    (200_071_406, "DBGAUTHSTATUS_EL1"),
    (300_000_000, "MIDR_EL1"),
    (300_000_005, "MPIDR_EL1"),
    (300_000_006, "REVIDR_EL1"),
    (300_000_400, "ID_AA64PFR0_EL1"),
    (300_000_401, "ID_AA64PFR1_EL1"),
    (300_000_404, "ID_AA64ZFR0_EL1"),
    (300_000_500, "ID_AA64DFR0_EL1"),
    (300_000_501, "ID_AA64DFR1_EL1"),
    (300_000_600, "ID_AA64ISAR0_EL1"),
    (300_000_601, "ID_AA64ISAR1_EL1"),
    (300_000_602, "ID_AA64ISAR2_EL1"),
    (300_000_700, "ID_AA64MMFR0_EL1"),
    (300_000_701, "ID_AA64MMFR1_EL1"),
    (300_000_702, "ID_AA64MMFR2_EL1"),
    (300_010_000, "SCTLR_EL1"),
    (300_010_001, "ACTLR_EL1"),
    (300_010_002, "CPACR_EL1"),
    (300_020_000, "TTBR0_EL1"),
    (300_020_001, "TTBR1_EL1"),
    (300_020_002, "TCR_EL1"),
    (300_040_600, "ICC_PMR_EL1"),
    (300_050_100, "AFSR0_EL1"),
    (300_050_101, "AFSR1_EL1"),
    (300_050_200, "ESR_EL1"),
    (300_050_300, "ERRIDR_EL1"),
    (300_050_301, "ERRSELR_EL1"),
    (300_060_000, "FAR_EL1"),
    (300_091_401, "PMINTENSET_EL1"),
    (300_091_402, "PMINTENCLR_EL1"),
    (300_091_406, "PMMIR_EL1"),
    (300_100_200, "MAIR_EL1"),
    (300_100_300, "AMAIR_EL1"),
    (300_121_101, "ICC_DIR_EL1"),
    (300_121_105, "ICC_SGI1R_EL1"),
    (300_121_106, "ICC_ASGI1R_EL1"),
    (300_121_107, "ICC_SGI0R_EL1"),
    (300_121_200, "ICC_IAR1_EL1"),
    (300_121_201, "ICC_EOIR1_EL1"),
    (300_121_202, "ICC_HPPIR1_EL1"),
    (300_121_203, "ICC_BPR1_EL1"),
    (300_121_204, "ICC_CTLR_EL1"),
    (300_121_205, "ICC_SRE_EL1"),
    (300_121_207, "ICC_IGRPEN1_EL1"),
    (300_130_001, "CONTEXTIDR_EL1"),
    (300_140_100, "CNTKCTL_EL1"),
    (301_000_000, "CCSIDR_EL1"),
    (301_000_001, "CLIDR_EL1"),
    (302_000_000, "CSSELR_EL1"),
    (303_000_001, "CTR_EL0"),
    (303_091_200, "PMCR_EL0"),
    (303_091_201, "PMCNTENSET_EL0"),
    (303_091_202, "PMCNTENCLR_EL0"),
    (303_091_203, "PMOVSCLR_EL0"),
    (303_091_204, "PMSWINC_EL0"),
    (303_091_205, "PMSELR_EL0"),
    (303_091_206, "PMCEID0_EL0"),
    (303_091_207, "PMCEID1_EL0"),
    (303_091_300, "PMCCNTR_EL0"),
    (303_091_301, "PMXEVTYPER_EL0"),
    (303_091_302, "PMXEVCNTR_EL0"),
    (303_091_400, "PMUSERENR_EL0"),
    (303_091_403, "PMOVSSET_EL0"),
    (303_140_000, "CNTFRQ_EL0"),
    (303_140_001, "CNTPCT_EL0"),
    (303_140_002, "CNTVCT_EL0"),
    (303_140_005, "CNTPCTSS_EL0"),
    (303_140_006, "CNTVCTSS_EL0"),
    (303_140_200, "CNTP_TVAL_EL0"),
    (303_140_201, "CNTP_CTL_EL0"),
    (303_140_202, "CNTP_CVAL_EL0"),
    (303_140_300, "CNTV_TVAL_EL0"),
    (303_140_301, "CNTV_CTL_EL0"),
    (303_140_302, "CNTV_CVAL_EL0"),
    (303_141_507, "PMCCFILTR_EL0"),
];

/// Registers of breakpoints and watchpoints by op2; CRm is which of them.
const BREAKPOINTS: &[(u32, &str)] = &[(4, "DBGBVR"), (5, "DBGBCR"), (6, "DBGWVR"), (7, "DBGWCR")];

/// Returns what a register is called, by its encoding.
pub(crate) fn name(register: u32) -> Option<DeviceName> {
    if let Ok(at) = REGISTERS.binary_search_by_key(&register, |entry| entry.0) {
        return REGISTERS.get(at).map(|entry| DeviceName::device(entry.1));
    }
    let (bank, crm, op2) = (register / 10_000, register / 100 % 100, register % 100);
    let text: Cow<'static, str> = match bank {
        20_000 => {
            let (_, kind) = BREAKPOINTS.iter().find(|entry| entry.0 == op2)?;
            format!("{kind}{crm}_EL1").into()
        }
        30_314 if (8..16).contains(&crm) && op2 < 8 => {
            let kind = match crm {
                8..12 => "PMEVCNTR",
                _ => "PMEVTYPER",
            };
            format!("{kind}{}_EL0", crm % 4 * 8 + op2).into()
        }
        _ => return None,
    };
    Some(DeviceName::device(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(register: u32) -> Option<String> {
        name(register).map(|name| name.to_string())
    }

    #[test]
    fn registers_are_in_order_and_found() {
        assert!(REGISTERS.is_sorted_by_key(|entry| entry.0));
        assert_eq!(called(300_121_105).as_deref(), Some("ICC_SGI1R_EL1"));
        assert_eq!(called(200_000_305).as_deref(), Some("DBGBCR3_EL1"));
        assert_eq!(called(303_140_902).as_deref(), Some("PMEVCNTR10_EL0"));
        assert_eq!(called(303_141_200).as_deref(), Some("PMEVTYPER0_EL0"));
        assert_eq!(called(303_150_000), None);
        assert_eq!(called(0x830), None);
    }
}
