//! What the processor itself says of an exit, beside its reason: which port, which address, which register.
//!
//! `kvm_exit` records two numbers of it on x86, `info1` and `info2`. On Intel the first is the exit qualification
//! (`vmx_get_exit_info` in `arch/x86/kvm/vmx/vmx.c`); the second differs between kernels, and is not read here. On AMD
//! they are EXITINFO1 and EXITINFO2 of the VMCB (`svm_get_exit_info` in `arch/x86/kvm/svm/svm.c`). What neither has is
//! not made up: the address of an EPT violation or misconfiguration and the number of an MSR are in other places.

use crate::reasons::{ExitReason, Isa};
use crate::record::{low8, low16};

/// What the processor recorded of an exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitQualification {
    /// Intel's exit qualification, or AMD's EXITINFO1.
    pub info1: u64,
    /// AMD's EXITINFO2; on Intel something else in each kernel. A text that does not pad it does not show whether it is
    /// whole, and has none.
    pub info2: Option<u64>,
}

/// What an exit was for, as the processor says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitDetail {
    /// `IN`, `OUT`, `INS` or `OUTS`.
    Port {
        /// The I/O port.
        port: u16,
        /// Whether the guest wrote.
        write: bool,
        /// Bytes of one access: 1, 2 or 4.
        size: u8,
        /// Whether it is `INS` or `OUTS`, which move data between ports and memory.
        string: bool,
    },
    /// A control register.
    Control {
        /// Its number: 3 is CR3.
        register: u8,
        /// Whether the guest wrote it (also `CLTS` and `LMSW`, of CR0).
        write: bool,
    },
    /// A debug register.
    Debug {
        /// Its number.
        register: u8,
        /// Whether the guest wrote it.
        write: bool,
    },
    /// A model specific register: which one is not recorded with the exit.
    Msr {
        /// Whether the guest wrote it.
        write: bool,
    },
    /// AMD's fault of the nested page table.
    NestedFault {
        /// The guest physical address.
        gpa: u64,
        /// Whether the guest wrote.
        write: bool,
        /// Whether KVM knew the address as one that it has to emulate: it marks those in the nested page table with
        /// bits that are reserved (`mark_mmio_spte` in `arch/x86/kvm/mmu/mmu.c`), so no fault of memory is like this.
        emulated: bool,
    },
}

impl ExitDetail {
    /// Returns whether the guest wrote.
    pub fn is_write(self) -> bool {
        match self {
            ExitDetail::Port { write, .. }
            | ExitDetail::Control { write, .. }
            | ExitDetail::Debug { write, .. }
            | ExitDetail::Msr { write }
            | ExitDetail::NestedFault { write, .. } => write,
        }
    }
}

/// Exits of Intel that have a detail: of control registers, of debug registers, of ports (SDM volume 3, appendix C).
const VMX: [u32; 3] = [VMX_CR, VMX_DR, VMX_IO];
const VMX_CR: u32 = 28;
const VMX_DR: u32 = 29;
const VMX_IO: u32 = 30;
/// Exits of AMD (APM volume 2, appendix C): control and debug registers are 32 codes each, reads before writes.
const SVM_CR: std::ops::Range<u32> = 0x00..0x20;
const SVM_DR: std::ops::Range<u32> = 0x20..0x40;
const SVM_IO: u32 = 0x7b;
const SVM_MSR: u32 = 0x7c;
const SVM_NPF: u32 = 0x400;

/// Bits of EXITINFO1 of a nested page fault (APM volume 2, 15.25.6): write, reserved bit, and that the address is the
/// guest's final one and not that of a page table of its.
const NPF_WRITE: u64 = 1 << 1;
const NPF_RESERVED: u64 = 1 << 3;
const NPF_FINAL: u64 = 1 << 32;

impl ExitReason {
    /// Returns whether what the processor recorded of such an exit is read ([`ExitQualification::detail`]).
    #[inline]
    pub(crate) fn has_detail(self) -> bool {
        match self.isa {
            Isa::Vmx => VMX.contains(&self.code),
            Isa::Svm => self.code < SVM_DR.end || matches!(self.code, SVM_IO | SVM_MSR | SVM_NPF),
            _ => false,
        }
    }
}

impl ExitQualification {
    /// Returns what an exit was for; `None` where the processor does not say it.
    pub fn detail(self, reason: ExitReason) -> Option<ExitDetail> {
        match reason.isa {
            Isa::Vmx => self.of_vmx(reason.code),
            Isa::Svm => self.of_svm(reason.code),
            _ => None,
        }
    }

    /// Exit qualifications (SDM volume 3, "Basic VM-Exit Information", the tables for control-register accesses, for
    /// MOV DR and for I/O instructions). A failed entry has another code, and none of these.
    fn of_vmx(self, code: u32) -> Option<ExitDetail> {
        let bits = self.info1;
        match code {
            // All zeros is what a text or a guest whose state is hidden has in place of a qualification. Who writes a
            // byte to port 0 with DX is left out with it.
            VMX_IO if bits != 0 => Some(ExitDetail::Port {
                port: low16(bits >> 16),
                write: bits & 1 << 3 == 0,
                size: match bits & 7 {
                    size @ (0 | 1 | 3) => low8(size + 1),
                    _ => return None,
                },
                string: bits & 1 << 4 != 0,
            }),
            VMX_CR => Some(match bits >> 4 & 3 {
                // CLTS and LMSW: the number is that of no register.
                2 | 3 => ExitDetail::Control {
                    register: 0,
                    write: true,
                },
                from => ExitDetail::Control {
                    register: low8(bits & 0xf),
                    write: from == 0,
                },
            }),
            VMX_DR => Some(ExitDetail::Debug {
                register: low8(bits & 7),
                write: bits & 1 << 4 == 0,
            }),
            _ => None,
        }
    }

    /// Codes and EXITINFO1 (APM volume 2, 15.8 and 15.9: registers; 15.10.2: ports; 15.11: MSRs; 15.25.6: faults).
    fn of_svm(self, code: u32) -> Option<ExitDetail> {
        let bits = self.info1;
        let register = low8(u64::from(code & 0xf));
        match code {
            SVM_IO => Some(ExitDetail::Port {
                port: low16(bits >> 16),
                write: bits & 1 == 0,
                size: match bits >> 4 & 7 {
                    size @ (1 | 2 | 4) => low8(size),
                    _ => return None,
                },
                string: bits & 1 << 2 != 0,
            }),
            SVM_MSR => Some(ExitDetail::Msr {
                write: bits & 1 != 0,
            }),
            SVM_NPF if bits & NPF_FINAL != 0 => Some(ExitDetail::NestedFault {
                gpa: self.info2?,
                write: bits & NPF_WRITE != 0,
                emulated: bits & NPF_RESERVED != 0,
            }),
            _ if SVM_CR.contains(&code) => Some(ExitDetail::Control {
                register,
                write: code >= SVM_CR.start + 0x10,
            }),
            _ if SVM_DR.contains(&code) => Some(ExitDetail::Debug {
                register,
                write: code >= SVM_DR.start + 0x10,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ExitDetail, ExitQualification};
    use crate::reasons::{ExitReason, Isa};

    fn detail(isa: Isa, code: u64, info1: u64, info2: u64) -> Option<ExitDetail> {
        let info2 = Some(info2);
        ExitQualification { info1, info2 }.detail(ExitReason::of_number(isa, code))
    }

    #[test]
    fn ports() {
        let port = |port, write, size, string| {
            Some(ExitDetail::Port {
                port,
                write,
                size,
                string,
            })
        };
        let vmx = |info| detail(Isa::Vmx, 30, info, 0);
        assert_eq!(vmx(0x0608_000b), port(0x608, false, 4, false));
        assert_eq!(vmx(0x0070_0000), port(0x70, true, 1, false));
        assert_eq!(vmx(0xc001_0001), port(0xc001, true, 2, false));
        // OUTSB with REP, immediate operand encoding beside it.
        assert_eq!(vmx(0x0402_0070), port(0x402, true, 1, true));
        // No such size; no qualification.
        assert_eq!(vmx(0x0402_0002), None);
        assert_eq!(vmx(0), None);
        let svm = |info| detail(Isa::Svm, 0x7b, info, 0xffff_ffff_8177_a62c);
        assert_eq!(svm(0x0608_0241), port(0x608, false, 4, false));
        assert_eq!(svm(0x03fd_0211), port(0x3fd, false, 1, false));
        assert_eq!(svm(0x0070_0210), port(0x70, true, 1, false));
        assert_eq!(svm(0x0402_021c), port(0x402, true, 1, true));
        assert_eq!(svm(0x0402_0230), None);
        assert_eq!(svm(0), None);
    }

    #[test]
    fn registers() {
        let control = |register, write| Some(ExitDetail::Control { register, write });
        let vmx = |info| detail(Isa::Vmx, 28, info, 0);
        assert_eq!(vmx(0x0003), control(3, true));
        assert_eq!(vmx(0x0013), control(3, false));
        assert_eq!(vmx(0x0708), control(8, true));
        assert_eq!(vmx(0x0020), control(0, true));
        assert_eq!(vmx(0x1234_0030), control(0, true));
        assert_eq!(
            detail(Isa::Vmx, 29, 0x17, 0),
            Some(ExitDetail::Debug {
                register: 7,
                write: false
            })
        );
        assert_eq!(detail(Isa::Svm, 0x03, 0, 0), control(3, false));
        assert_eq!(detail(Isa::Svm, 0x14, 1 << 63, 0), control(4, true));
        assert_eq!(
            detail(Isa::Svm, 0x37, 0, 0),
            Some(ExitDetail::Debug {
                register: 7,
                write: true
            })
        );
        assert_eq!(
            detail(Isa::Svm, 0x7c, 1, 0),
            Some(ExitDetail::Msr { write: true })
        );
    }

    #[test]
    fn faults_have_an_address_on_amd_alone() {
        let fault = |emulated, write| {
            Some(ExitDetail::NestedFault {
                gpa: 0xfee0_0300,
                write,
                emulated,
            })
        };
        let npf = |info| detail(Isa::Svm, 0x400, info, 0xfee0_0300);
        assert_eq!(npf(0x1_0000_000f), fault(true, true));
        assert_eq!(npf(0x1_0000_000d), fault(true, false));
        assert_eq!(npf(0x1_0000_0006), fault(false, true));
        // The address of a page table of the guest's.
        assert_eq!(npf(0x2_0000_000f), None);
        for code in [48, 49] {
            assert_eq!(detail(Isa::Vmx, code, 0x182, 0), None);
        }
        assert_eq!(detail(Isa::Vmx, 32, 0, 0), None);
        assert_eq!(detail(Isa::Vmx, 0x8000_001e, 0x0608_000b, 0), None);
    }
}
