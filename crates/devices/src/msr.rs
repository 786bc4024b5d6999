//! Model specific registers: kernel `arch/x86/include/asm/msr-index.h`, whose names these are, without `MSR_` and
//! `IA32_`; Intel SDM volume 4. Local APIC, KVM's and Hyper-V's are in modules of their own.

use std::borrow::Cow;

use crate::name::DeviceName;
use crate::{apic, hyperv, kvm_pv};

/// By number.
const MSRS: &[(u32, &str)] = &[
    (0x0, "P5_MC_ADDR"),
    (0x1, "P5_MC_TYPE"),
    (0x10, "TSC"),
    (0x17, "PLATFORM_ID"),
    (0x1b, "APICBASE"),
    (0x2a, "EBL_CR_POWERON"),
    (0x2c, "EBC_FREQUENCY_ID"),
    (0x33, "TEST_CTRL"),
    (0x34, "SMI_COUNT"),
    (0x3a, "FEAT_CTL"),
    (0x3b, "TSC_ADJUST"),
    (0x48, "SPEC_CTRL"),
    (0x49, "PRED_CMD"),
    (0x4e, "PPIN_CTL"),
    (0x4f, "PPIN"),
    (0x79, "UCODE_WRITE"),
    (0x8b, "UCODE_REV"),
    (0x9b, "SMM_MONITOR_CTL"),
    (0x9e, "SMBASE"),
    (0xbd, "XAPIC_DISABLE_STATUS"),
    (0xcd, "FSB_FREQ"),
    (0xce, "PLATFORM_INFO"),
    (0xcf, "CORE_CAPS"),
    (0xe1, "UMWAIT_CONTROL"),
    (0xe2, "PKG_CST_CONFIG_CONTROL"),
    (0xe7, "MPERF"),
    (0xe8, "APERF"),
    (0xfe, "MTRRcap"),
    (0x10a, "ARCH_CAPABILITIES"),
    (0x10b, "FLUSH_CMD"),
    (0x10f, "TSX_FORCE_ABORT"),
    (0x119, "BBL_CR_CTL"),
    (0x11e, "BBL_CR_CTL3"),
    (0x122, "TSX_CTRL"),
    (0x123, "MCU_OPT_CTRL"),
    (0x140, "MISC_FEATURES_ENABLES"),
    (0x174, "SYSENTER_CS"),
    (0x175, "SYSENTER_ESP"),
    (0x176, "SYSENTER_EIP"),
    (0x179, "MCG_CAP"),
    (0x17a, "MCG_STATUS"),
    (0x17b, "MCG_CTL"),
    (0x17f, "ERROR_CONTROL"),
    (0x198, "PERF_STATUS"),
    (0x199, "PERF_CTL"),
    (0x19a, "THERM_CONTROL"),
    (0x19b, "THERM_INTERRUPT"),
    (0x19c, "THERM_STATUS"),
    (0x19d, "THERM2_CTL"),
    (0x1a0, "MISC_ENABLE"),
    (0x1a2, "TEMPERATURE_TARGET"),
    (0x1a4, "MISC_FEATURE_CONTROL"),
    (0x1a6, "OFFCORE_RSP_0"),
    (0x1a7, "OFFCORE_RSP_1"),
    (0x1aa, "MISC_PWR_MGMT"),
    (0x1ad, "TURBO_RATIO_LIMIT"),
    (0x1ae, "TURBO_RATIO_LIMIT1"),
    (0x1af, "TURBO_RATIO_LIMIT2"),
    (0x1b0, "ENERGY_PERF_BIAS"),
    (0x1b1, "PACKAGE_THERM_STATUS"),
    (0x1b2, "PACKAGE_THERM_INTERRUPT"),
    (0x1c4, "XFD"),
    (0x1c5, "XFD_ERR"),
    (0x1c8, "LBR_SELECT"),
    (0x1c9, "LBR_TOS"),
    (0x1d9, "DEBUGCTLMSR"),
    (0x1db, "LASTBRANCHFROMIP"),
    (0x1dc, "LASTBRANCHTOIP"),
    (0x1dd, "LASTINTFROMIP"),
    (0x1de, "LASTINTTOIP"),
    (0x1fc, "POWER_CTL"),
    (0x250, "MTRRfix64K_00000"),
    (0x258, "MTRRfix16K_80000"),
    (0x259, "MTRRfix16K_A0000"),
    (0x268, "MTRRfix4K_C0000"),
    (0x269, "MTRRfix4K_C8000"),
    (0x26a, "MTRRfix4K_D0000"),
    (0x26b, "MTRRfix4K_D8000"),
    (0x26c, "MTRRfix4K_E0000"),
    (0x26d, "MTRRfix4K_E8000"),
    (0x26e, "MTRRfix4K_F0000"),
    (0x26f, "MTRRfix4K_F8000"),
    (0x277, "CR_PAT"),
    (0x2d9, "INTEGRITY_CAPS"),
    (0x2ff, "MTRRdefType"),
    (0x329, "PERF_METRICS"),
    (0x345, "PERF_CAPABILITIES"),
    (0x38d, "CORE_PERF_FIXED_CTR_CTRL"),
    (0x38e, "CORE_PERF_GLOBAL_STATUS"),
    (0x38f, "CORE_PERF_GLOBAL_CTRL"),
    (0x390, "CORE_PERF_GLOBAL_OVF_CTRL"),
    (0x3f1, "PEBS_ENABLE"),
    (0x3f2, "PEBS_DATA_CFG"),
    (0x3f6, "PEBS_LD_LAT_THRESHOLD"),
    (0x3f7, "PEBS_FRONTEND"),
    (0x3f8, "PKG_C3_RESIDENCY"),
    (0x3f9, "PKG_C6_RESIDENCY"),
    (0x3fa, "PKG_C7_RESIDENCY"),
    (0x3fc, "CORE_C3_RESIDENCY"),
    (0x3fd, "CORE_C6_RESIDENCY"),
    (0x3fe, "CORE_C7_RESIDENCY"),
    (0x480, "VMX_BASIC"),
    (0x481, "VMX_PINBASED_CTLS"),
    (0x482, "VMX_PROCBASED_CTLS"),
    (0x483, "VMX_EXIT_CTLS"),
    (0x484, "VMX_ENTRY_CTLS"),
    (0x485, "VMX_MISC"),
    (0x486, "VMX_CR0_FIXED0"),
    (0x487, "VMX_CR0_FIXED1"),
    (0x488, "VMX_CR4_FIXED0"),
    (0x489, "VMX_CR4_FIXED1"),
    (0x48a, "VMX_VMCS_ENUM"),
    (0x48b, "VMX_PROCBASED_CTLS2"),
    (0x48c, "VMX_EPT_VPID_CAP"),
    (0x48d, "VMX_TRUE_PINBASED_CTLS"),
    (0x48e, "VMX_TRUE_PROCBASED_CTLS"),
    (0x48f, "VMX_TRUE_EXIT_CTLS"),
    (0x490, "VMX_TRUE_ENTRY_CTLS"),
    (0x491, "VMX_VMFUNC"),
    (0x492, "VMX_PROCBASED_CTLS3"),
    (0x4d0, "MCG_EXT_CTL"),
    (0x560, "RTIT_OUTPUT_BASE"),
    (0x561, "RTIT_OUTPUT_MASK"),
    (0x570, "RTIT_CTL"),
    (0x571, "RTIT_STATUS"),
    (0x572, "RTIT_CR3_MATCH"),
    (0x600, "DS_AREA"),
    (0x606, "RAPL_POWER_UNIT"),
    (0x60d, "PKG_C2_RESIDENCY"),
    (0x610, "PKG_POWER_LIMIT"),
    (0x611, "PKG_ENERGY_STATUS"),
    (0x613, "PKG_PERF_STATUS"),
    (0x614, "PKG_POWER_INFO"),
    (0x618, "DRAM_POWER_LIMIT"),
    (0x619, "DRAM_ENERGY_STATUS"),
    (0x61b, "DRAM_PERF_STATUS"),
    (0x61c, "DRAM_POWER_INFO"),
    (0x630, "PKG_C8_RESIDENCY"),
    (0x631, "PKG_C9_RESIDENCY"),
    (0x632, "PKG_C10_RESIDENCY"),
    (0x638, "PP0_POWER_LIMIT"),
    (0x639, "PP0_ENERGY_STATUS"),
    (0x63a, "PP0_POLICY"),
    (0x640, "PP1_POWER_LIMIT"),
    (0x641, "PP1_ENERGY_STATUS"),
    (0x642, "PP1_POLICY"),
    (0x648, "CONFIG_TDP_NOMINAL"),
    (0x64d, "PLATFORM_ENERGY_STATUS"),
    (0x64e, "PPERF"),
    (0x64f, "PERF_LIMIT_REASONS"),
    (0x660, "CORE_C1_RES"),
    (0x6a0, "U_CET"),
    (0x6a2, "S_CET"),
    (0x6a4, "PL0_SSP"),
    (0x6a5, "PL1_SSP"),
    (0x6a6, "PL2_SSP"),
    (0x6a7, "PL3_SSP"),
    (0x6a8, "INT_SSP_TAB"),
    (0x6e0, "TSC_DEADLINE"),
    (0x770, "PM_ENABLE"),
    (0x771, "HWP_CAPABILITIES"),
    (0x772, "HWP_REQUEST_PKG"),
    (0x773, "HWP_INTERRUPT"),
    (0x774, "HWP_REQUEST"),
    (0x777, "HWP_STATUS"),
    (0xd90, "BNDCFGS"),
    (0xd93, "PASID"),
    (0xda0, "XSS"),
    (0x14ce, "ARCH_LBR_CTL"),
    (0x14cf, "ARCH_LBR_DEPTH"),
    (0x17d0, "HW_FEEDBACK_PTR"),
    (0x17d1, "HW_FEEDBACK_CONFIG"),
    (0xc000_0080, "EFER"),
    (0xc000_0081, "STAR"),
    (0xc000_0082, "LSTAR"),
    (0xc000_0083, "CSTAR"),
    (0xc000_0084, "SYSCALL_MASK"),
    (0xc000_00e9, "F17H_IRPERF"),
    (0xc000_0100, "FS_BASE"),
    (0xc000_0101, "GS_BASE"),
    (0xc000_0102, "KERNEL_GS_BASE"),
    (0xc000_0103, "TSC_AUX"),
    (0xc000_0104, "AMD64_TSC_RATIO"),
    (0xc000_010e, "AMD64_LBR_SELECT"),
    (0xc000_010f, "AMD_DBG_EXTN_CFG"),
    (0xc000_0300, "AMD64_PERF_CNTR_GLOBAL_STATUS"),
    (0xc000_0301, "AMD64_PERF_CNTR_GLOBAL_CTL"),
    (0xc000_0302, "AMD64_PERF_CNTR_GLOBAL_STATUS_CLR"),
    (0xc001_0010, "AMD64_SYSCFG"),
    (0xc001_0015, "K7_HWCR"),
    (0xc001_001a, "K8_TOP_MEM1"),
    (0xc001_001b, "K7_CLK_CTL"),
    (0xc001_001d, "K8_TOP_MEM2"),
    (0xc001_001f, "AMD64_NB_CFG"),
    (0xc001_0020, "AMD64_PATCH_LOADER"),
    (0xc001_0041, "K7_FID_VID_CTL"),
    (0xc001_0042, "K7_FID_VID_STATUS"),
    (0xc001_0055, "K8_INT_PENDING_MSG"),
    (0xc001_0058, "FAM10H_MMIO_CONF_BASE"),
    (0xc001_0062, "AMD_PERF_CTL"),
    (0xc001_0063, "AMD_PERF_STATUS"),
    (0xc001_0112, "K8_TSEG_ADDR"),
    (0xc001_0113, "K8_TSEG_MASK"),
    (0xc001_0114, "VM_CR"),
    (0xc001_0115, "VM_IGNNE"),
    (0xc001_0117, "VM_HSAVE_PA"),
    (0xc001_011b, "AMD64_SVM_AVIC_DOORBELL"),
    (0xc001_011e, "AMD64_VM_PAGE_FLUSH"),
    (0xc001_011f, "AMD64_VIRT_SPEC_CTRL"),
    (0xc001_0130, "AMD64_SEV_ES_GHCB"),
    (0xc001_0131, "AMD64_SEV"),
    (0xc001_0140, "AMD64_OSVW_ID_LENGTH"),
    (0xc001_0141, "AMD64_OSVW_STATUS"),
    (0xc001_0280, "F15H_PTSC"),
    (0xc001_0299, "AMD_RAPL_POWER_UNIT"),
    (0xc001_029a, "AMD_CORE_ENERGY_STATUS"),
    (0xc001_029b, "AMD_PKG_ENERGY_STATUS"),
    (0xc001_02b0, "AMD_CPPC_CAP1"),
    (0xc001_02b1, "AMD_CPPC_ENABLE"),
    (0xc001_02b2, "AMD_CPPC_CAP2"),
    (0xc001_02b3, "AMD_CPPC_REQ"),
    (0xc001_02b4, "AMD_CPPC_STATUS"),
    (0xc001_02f0, "AMD_PPIN_CTL"),
    (0xc001_02f1, "AMD_PPIN"),
    (0xc001_1004, "AMD64_CPUID_FN_1"),
    (0xc001_100c, "FAM10H_NODE_ID"),
    (0xc001_1020, "AMD64_LS_CFG"),
    (0xc001_1021, "F15H_IC_CFG"),
    (0xc001_1022, "AMD64_DC_CFG"),
    (0xc001_1023, "AMD64_TW_CFG"),
    (0xc001_1029, "AMD64_DE_CFG"),
    (0xc001_102a, "AMD64_BU_CFG2"),
    (0xc001_102c, "F15H_EX_CFG"),
    (0xc001_102e, "ZEN4_BP_CFG"),
    (0xc001_1030, "AMD64_IBSFETCHCTL"),
    (0xc001_1033, "AMD64_IBSOPCTL"),
    (0xc001_10e3, "ZEN2_SPECTRAL_CHICKEN"),
];

/// Registers that come in rows: first, last, name, number of the first.
const ROWS: &[(u32, u32, &str)] = &[
    (0x8c, 0x8f, "SGXLEPUBKEYHASH"),
    (0xc1, 0xc8, "PERFCTR"),
    (0x186, 0x18d, "EVNTSEL"),
    (0x280, 0x29f, "MC_CTL2 "),
    (0x309, 0x30c, "CORE_PERF_FIXED_CTR"),
    (0x4c1, 0x4c8, "PMC"),
    (0x680, 0x69f, "LBR_NHM_FROM "),
    (0x6c0, 0x6df, "LBR_NHM_TO "),
    (0xdc0, 0xddf, "LBR_INFO_"),
    (0x1200, 0x121f, "ARCH_LBR_INFO_"),
    (0x1500, 0x151f, "ARCH_LBR_FROM_"),
    (0x1600, 0x161f, "ARCH_LBR_TO_"),
    (0xc001_0000, 0xc001_0003, "K7_EVNTSEL"),
    (0xc001_0004, 0xc001_0007, "K7_PERFCTR"),
    (0xc001_0064, 0xc001_006b, "AMD_PSTATE_DEF"),
];

/// Banks of machine check registers, four each.
const MACHINE_CHECK: std::ops::RangeInclusive<u32> = 0x400..=0x47f;
/// Pairs of base and mask of the variable memory type ranges.
const MTRR_VARIABLE: std::ops::RangeInclusive<u32> = 0x200..=0x21f;
/// Pairs of AMD's performance counters since family 15h.
const AMD_COUNTERS: std::ops::RangeInclusive<u32> = 0xc001_0200..=0xc001_020b;

/// The name of an MSR.
pub(crate) fn name(msr: u32) -> Option<DeviceName> {
    if apic::X2APIC.contains(&msr) {
        return Some(apic::x2apic(msr));
    }
    if let Some((_, register)) = kvm_pv::MSRS.iter().find(|entry| entry.0 == msr) {
        return Some(DeviceName::register("KVM", *register));
    }
    hyperv::name(msr).or_else(|| plain(msr).map(DeviceName::device))
}

fn plain(msr: u32) -> Option<Cow<'static, str>> {
    if let Ok(at) = MSRS.binary_search_by_key(&msr, |entry| entry.0) {
        return MSRS.get(at).map(|entry| Cow::Borrowed(entry.1));
    }
    let text = if MACHINE_CHECK.contains(&msr) {
        let into = msr - MACHINE_CHECK.start();
        let what = ["CTL", "STATUS", "ADDR", "MISC"].get(into as usize % 4)?;
        format!("MC{}_{what}", into / 4)
    } else if MTRR_VARIABLE.contains(&msr) {
        let into = msr - MTRR_VARIABLE.start();
        format!(
            "MTRRphys{}{}",
            if into.is_multiple_of(2) {
                "Base"
            } else {
                "Mask"
            },
            into / 2
        )
    } else if AMD_COUNTERS.contains(&msr) {
        let into = msr - AMD_COUNTERS.start();
        format!(
            "F15H_PERF_{}{}",
            if into.is_multiple_of(2) { "CTL" } else { "CTR" },
            into / 2
        )
    } else {
        let (first, _, row) = ROWS
            .iter()
            .find(|(first, last, _)| (*first..=*last).contains(&msr))?;
        format!("{row}{}", msr - first)
    };
    Some(Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    use super::{MSRS, ROWS, name};

    #[test]
    fn in_order_and_in_one_place() {
        assert!(MSRS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (first, last, row) in ROWS {
            assert!(first <= last);
            assert!(
                MSRS.iter().all(|(msr, _)| !(*first..=*last).contains(msr)),
                "{row}"
            );
        }
    }

    #[test]
    fn known_numbers() {
        for (msr, expected) in [
            (0x10, "TSC"),
            (0x12, "KVM system time"),
            (0x1b, "APICBASE"),
            (0x3b, "TSC_ADJUST"),
            (0x6e0, "TSC_DEADLINE"),
            (0x830, "x2APIC ICR"),
            (0x80b, "x2APIC EOI"),
            (0x277, "CR_PAT"),
            (0x200, "MTRRphysBase0"),
            (0x20f, "MTRRphysMask7"),
            (0x401, "MC0_STATUS"),
            (0x407, "MC1_MISC"),
            (0xc2, "PERFCTR1"),
            (0x187, "EVNTSEL1"),
            (0x30b, "CORE_PERF_FIXED_CTR2"),
            (0xc000_0080, "EFER"),
            (0xc001_0201, "F15H_PERF_CTR0"),
            (0x4b56_4d01, "KVM system time (new)"),
            (0x4b56_4d03, "KVM steal time"),
            (0x4000_0020, "Hyper-V reference counter"),
            (0x4000_0084, "Hyper-V SYNIC EOM"),
        ] {
            assert_eq!(
                name(msr).map(|name| name.to_string()).as_deref(),
                Some(expected),
                "{msr:#x}"
            );
        }
        assert_eq!(name(0xdead), None);
    }
}
