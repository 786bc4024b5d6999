//! Hyper-V's synthetic MSRs, which KVM offers to Windows guests: Hypervisor Top Level Functional
//! Specification 6.0b, appendix of synthetic MSRs; kernel `include/hyperv/hvgdk_mini.h` (before 6.13
//! `arch/x86/include/asm/hyperv-tlfs.h`), debugger MSRs `arch/x86/kvm/hyperv.h`.

use std::borrow::Cow;

use crate::name::DeviceName;

const MSRS: &[(u32, &str)] = &[
    (0x4000_0000, "guest OS ID"),
    (0x4000_0001, "hypercall page"),
    (0x4000_0002, "VP index"),
    (0x4000_0003, "reset"),
    (0x4000_0010, "VP runtime"),
    (0x4000_0020, "reference counter"),
    (0x4000_0021, "reference TSC page"),
    (0x4000_0022, "TSC frequency"),
    (0x4000_0023, "APIC frequency"),
    (0x4000_0070, "APIC EOI"),
    (0x4000_0071, "APIC ICR"),
    (0x4000_0072, "APIC TPR"),
    (0x4000_0073, "VP assist page"),
    (0x4000_0080, "SYNIC control"),
    (0x4000_0081, "SYNIC version"),
    (0x4000_0082, "SYNIC event flags page"),
    (0x4000_0083, "SYNIC message page"),
    (0x4000_0084, "SYNIC EOM"),
    (0x4000_00f0, "guest idle"),
    (0x4000_00f1, "debugger control"),
    (0x4000_00f2, "debugger status"),
    (0x4000_00f3, "debugger send buffer"),
    (0x4000_00f4, "debugger receive buffer"),
    (0x4000_00f5, "debugger pending buffer"),
    (0x4000_00ff, "debugger options"),
    (0x4000_0105, "crash control"),
    (0x4000_0106, "reenlightenment control"),
    (0x4000_0107, "TSC emulation control"),
    (0x4000_0108, "TSC emulation status"),
    (0x4000_0118, "TSC invariant control"),
];

/// The name of an MSR of Hyper-V, if it is one.
pub(crate) fn name(msr: u32) -> Option<DeviceName> {
    let register: Cow<'static, str> = match msr {
        0x4000_0090..=0x4000_009f => format!("SYNIC SINT{}", msr - 0x4000_0090).into(),
        0x4000_00b0..=0x4000_00b7 => {
            let timer = (msr - 0x4000_00b0) / 2;
            let what = if msr.is_multiple_of(2) {
                "configuration"
            } else {
                "count"
            };
            format!("synthetic timer {timer} {what}").into()
        }
        0x4000_0100..=0x4000_0104 => format!("crash parameter {}", msr - 0x4000_0100).into(),
        _ => Cow::Borrowed(MSRS.iter().find(|entry| entry.0 == msr)?.1),
    };
    Some(DeviceName::register("Hyper-V", register))
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn synthetic_msrs() {
        let text = |msr| name(msr).map(|name| name.to_string());
        assert_eq!(
            text(0x4000_0020).as_deref(),
            Some("Hyper-V reference counter")
        );
        assert_eq!(text(0x4000_0084).as_deref(), Some("Hyper-V SYNIC EOM"));
        assert_eq!(text(0x4000_009f).as_deref(), Some("Hyper-V SYNIC SINT15"));
        assert_eq!(
            text(0x4000_00b1).as_deref(),
            Some("Hyper-V synthetic timer 0 count")
        );
        assert_eq!(
            text(0x4000_00b6).as_deref(),
            Some("Hyper-V synthetic timer 3 configuration")
        );
        assert_eq!(
            text(0x4000_0103).as_deref(),
            Some("Hyper-V crash parameter 3")
        );
        assert_eq!(text(0x4000_0004), None);
    }
}
