//! Exit reasons of every architecture KVM runs on: numbers, names, and which of them are waiting.

mod arm64;
mod named;
mod others;
mod svm;
mod vmx;

use std::borrow::Cow;
use std::fmt;

pub use arm64::ARM_EXCEPTION_TRAP;

/// Instruction set and vendor whose table an exit reason is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Isa {
    /// Intel's virtual machine extensions.
    Vmx,
    /// AMD's secure virtual machine.
    Svm,
    /// 64-bit Arm.
    Arm64,
    /// RISC-V's hypervisor extension.
    Riscv,
    /// IBM Z.
    S390,
    /// POWER.
    Powerpc,
    /// LoongArch.
    Loongarch,
}

impl Isa {
    /// Returns the name the JSON documents use.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Vmx => "vmx",
            Isa::Svm => "svm",
            Isa::Arm64 => "arm64",
            Isa::Riscv => "riscv",
            Isa::S390 => "s390",
            Isa::Powerpc => "powerpc",
            Isa::Loongarch => "loongarch",
        }
    }
}

/// Why a vCPU left its guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExitReason {
    /// Whose table.
    pub isa: Isa,
    /// The number in it, as recorded. arm64 has two tables, one of which is given by
    /// [`ExitReason::arm64`].
    pub code: u32,
}

/// Set in the reason of a VMX exit when entering the guest failed (`VMX_EXIT_REASONS_FAILED_VMENTRY`).
const VMX_FAILED_VMENTRY: u32 = 0x8000_0000;

impl ExitReason {
    /// Returns the reason for an arm64 exit: what the world switch returned (`ARM_EXCEPTION_*`) and, for
    /// traps, the exception class of `ESR_EL2`.
    pub fn arm64(ret: u32, class: u32) -> ExitReason {
        // The top bit only says that an SError came on top (`ARM_EXIT_WITH_SERROR_BIT`); stub errors keep it.
        let ret = if ret >> 31 == 1 {
            ret & 0x7fff_ffff
        } else {
            ret
        };
        let code = if ret == ARM_EXCEPTION_TRAP {
            arm64::TRAP_BASE | (class & 0x3f)
        } else {
            ret
        };
        ExitReason {
            isa: Isa::Arm64,
            code,
        }
    }

    /// Returns the reason that a text calls `name`, which no table knows: one of its own, whose key is that name. Names
    /// beyond some hundred share one.
    pub fn named(isa: Isa, name: &str) -> ExitReason {
        ExitReason {
            isa,
            code: named::code(name),
        }
    }

    /// Returns whether it is one of [`ExitReason::named`].
    pub fn is_named(self) -> bool {
        named::name(self.code).is_some()
    }

    /// Returns the name `perf kvm stat` and the kernel use, or `None` for numbers their tables lack.
    pub fn name(self) -> Option<&'static str> {
        if let Some(name) = named::name(self.code) {
            return Some(name);
        }
        match self.isa {
            Isa::Vmx => vmx::name(self.code & 0xffff),
            Isa::Svm => svm::name(self.code),
            Isa::Arm64 => arm64::name(self.code),
            Isa::Riscv => others::riscv(self.code),
            Isa::S390 => others::s390(self.code),
            Isa::Powerpc => others::powerpc(self.code),
            Isa::Loongarch => others::loongarch(self.code),
        }
    }

    /// Returns what the exit tables print: the name, or the number where there is none. A VMX exit after a
    /// failed entry says so.
    pub fn key(self) -> Cow<'static, str> {
        let failed = self.isa == Isa::Vmx && self.code & VMX_FAILED_VMENTRY != 0;
        match (self.name(), failed) {
            (Some(name), false) => Cow::Borrowed(name),
            (Some(name), true) => Cow::Owned(format!("{name} FAILED_VMENTRY")),
            (None, _) => Cow::Owned(format!("UNKNOWN({self})")),
        }
    }

    /// Returns whether it is one of these reasons of a table, by their numbers there. That costs less than to compare
    /// names where exits are many.
    #[inline]
    pub fn is_of(self, isa: Isa, codes: &[u32]) -> bool {
        if self.isa != isa {
            return false;
        }
        if let Some(name) = named::name(self.code) {
            // It is of a text, so its number stands for a name.
            let known = |code: &u32| ExitReason { isa, code: *code }.name() == Some(name);
            return codes.iter().any(known);
        }
        let code = match isa {
            Isa::Vmx => self.code & 0xffff,
            _ => self.code,
        };
        codes.contains(&code)
    }

    /// Returns whether the guest was left for an interrupt of the host.
    #[inline]
    pub fn is_interrupt(self) -> bool {
        match self.isa {
            Isa::Vmx => self.is_of(Isa::Vmx, &[1]),
            Isa::Svm => self.is_of(Isa::Svm, &[0x60]),
            Isa::Arm64 => self.is_of(Isa::Arm64, &[0]),
            _ => false,
        }
    }

    /// Returns whether the guest touched memory that the host's tables do not map for it, or not so: `EPT_VIOLATION`,
    /// `npf`, `DABT_LOW` and `IABT_LOW`.
    #[inline]
    pub fn is_page_fault(self) -> bool {
        match self.isa {
            Isa::Vmx => self.is_of(Isa::Vmx, &[48]),
            Isa::Svm => self.is_of(Isa::Svm, &[0x400]),
            Isa::Arm64 => self.is_of(
                Isa::Arm64,
                &[arm64::TRAP_BASE | 0x20, arm64::TRAP_BASE | 0x24],
            ),
            _ => false,
        }
    }

    /// Returns whether an arm64 guest called its hypervisor: `HVC32`, `SMC32`, `HVC64` and `SMC64`.
    #[inline]
    pub fn is_arm64_call(self) -> bool {
        const CALLS: [u32; 4] = [0x12, 0x13, 0x16, 0x17];
        self.is_of(Isa::Arm64, &CALLS.map(|class| arm64::TRAP_BASE | class))
    }

    /// Returns whether the guest asked to wait: the time until the next entry is then the guest's own
    /// idleness and nobody's work.
    pub fn is_waiting(self) -> bool {
        match self.isa {
            // HLT, MWAIT, UMWAIT and TPAUSE.
            Isa::Vmx => matches!(self.code, 12 | 36 | 67 | 68),
            // hlt, mwait, conditional mwait, and the AP halt loop of SEV-ES guests.
            Isa::Svm => matches!(self.code, 0x78 | 0x8b | 0x8c | 0x8000_0004),
            // WFI, WFE and their timed forms.
            Isa::Arm64 => self.code == arm64::TRAP_BASE | 0x01,
            // wfi traps as a virtual instruction; the recording does not say which one.
            Isa::Riscv => false,
            // Wait state.
            Isa::S390 => self.code == 0x1c,
            Isa::Powerpc => false,
            Isa::Loongarch => false,
        }
    }

    /// Returns the reason a text names. Texts print the kernel's names, or those of trace-cmd's plugin
    /// (`EXIT_IOIO`); numbers stand for reasons that neither names.
    pub fn from_name(isa: Option<Isa>, name: &str) -> Option<ExitReason> {
        type Lookup = fn(&str) -> Option<u32>;
        const TABLES: [(Isa, Lookup); 5] = [
            (Isa::Vmx, vmx::code),
            (Isa::Svm, svm::code),
            (Isa::Arm64, arm64::class_code),
            (Isa::S390, others::s390_code),
            (Isa::Powerpc, others::powerpc_code),
        ];
        TABLES
            .iter()
            .filter(|(table, _)| isa.is_none_or(|isa| isa == *table))
            .find_map(|&(isa, code)| {
                Some(ExitReason {
                    isa,
                    code: code(name)?,
                })
            })
    }
}

impl fmt::Display for ExitReason {
    /// Prints the number as its own documents do: VMX decimal, the others hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.isa {
            Isa::Vmx if self.code & VMX_FAILED_VMENTRY == 0 => write!(f, "{}", self.code),
            _ => write!(f, "{:#x}", self.code),
        }
    }
}

/// Looks a number up in a table sorted by number.
fn find(table: &[(u32, &'static str)], code: u32) -> Option<&'static str> {
    let at = table.binary_search_by_key(&code, |e| e.0).ok()?;
    Some(table[at].1)
}

/// Looks a name up.
fn find_name(table: &[(u32, &str)], name: &str) -> Option<u32> {
    table.iter().find(|e| e.1 == name).map(|e| e.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_so_that_they_can_be_searched() {
        let tables = [
            vmx::REASONS,
            svm::REASONS,
            arm64::CLASSES,
            others::RISCV,
            others::S390,
            others::POWERPC,
            others::LOONGARCH,
        ];
        for table in tables {
            assert!(table.windows(2).all(|w| w[0].0 < w[1].0), "{table:?}");
        }
    }

    #[test]
    fn an_unknown_number_prints_as_a_number_of_its_own() {
        let a = ExitReason {
            isa: Isa::Vmx,
            code: 131,
        };
        assert_eq!(a.key(), "UNKNOWN(131)");
        assert_eq!(
            ExitReason {
                isa: Isa::Svm,
                code: 0x3ff
            }
            .key(),
            "UNKNOWN(0x3ff)"
        );
    }

    #[test]
    fn a_failed_entry_is_recorded() {
        let a = ExitReason {
            isa: Isa::Vmx,
            code: 0x8000_0021,
        };
        assert_eq!(a.key(), "INVALID_STATE FAILED_VMENTRY");
    }

    #[test]
    fn an_arm64_trap_is_named_by_its_class() {
        assert_eq!(ExitReason::arm64(2, 0x24).key(), "DABT_LOW");
        assert_eq!(ExitReason::arm64(0, 0x24).key(), "IRQ");
        assert!(ExitReason::arm64(2, 1).is_waiting());
        assert_eq!(ExitReason::arm64(0x8000_0002, 0x16).key(), "HVC64");
    }

    #[test]
    fn numbers_say_the_same_as_names() {
        let names = |isa| -> (&[&str], &[&str], &[&str]) {
            match isa {
                Isa::Vmx => (&["EXTERNAL_INTERRUPT"], &["EPT_VIOLATION"], &[]),
                Isa::Svm => (&["interrupt"], &["npf"], &[]),
                Isa::Arm64 => (
                    &["IRQ"],
                    &["DABT_LOW", "IABT_LOW"],
                    &["HVC64", "SMC64", "HVC32", "SMC32"],
                ),
                _ => (&[], &[], &[]),
            }
        };
        let named = ["interrupt", "IRQ", "npf", "SMC64", "something"];
        let isas = [Isa::Vmx, Isa::Svm, Isa::Arm64, Isa::S390, Isa::Riscv];
        for isa in isas {
            let codes = (0..0x2000).chain([VMX_FAILED_VMENTRY | 48, 0xffff_ffff]);
            let of_table = codes.map(|code| ExitReason { isa, code });
            let named = named.iter().map(|name| ExitReason::named(isa, name));
            for reason in of_table.chain(named) {
                let (interrupts, faults, calls) = names(isa);
                let is = |names: &[&str]| reason.name().is_some_and(|name| names.contains(&name));
                assert_eq!(reason.is_interrupt(), is(interrupts), "{reason:?}");
                assert_eq!(reason.is_page_fault(), is(faults), "{reason:?}");
                assert_eq!(reason.is_arm64_call(), is(calls), "{reason:?}");
            }
        }
    }

    #[test]
    fn names_of_kernel_and_of_plugin_lead_to_one_reason() {
        let io = ExitReason {
            isa: Isa::Svm,
            code: 0x7b,
        };
        assert_eq!(ExitReason::from_name(None, "io"), Some(io));
        assert_eq!(ExitReason::from_name(None, "EXIT_IOIO"), Some(io));
        let hlt = ExitReason {
            isa: Isa::Vmx,
            code: 12,
        };
        assert_eq!(ExitReason::from_name(None, "HLT"), Some(hlt));
        assert_eq!(
            ExitReason::from_name(None, "PENDING_INTERRUPT").map(|r| r.code),
            Some(7)
        );
        let page_fault = Some(ExitReason {
            isa: Isa::Svm,
            code: 0x4e,
        });
        assert_eq!(ExitReason::from_name(None, "PF excp"), page_fault);
        assert_eq!(ExitReason::from_name(None, "EXIT_EXCP_PF"), page_fault);
        assert_eq!(ExitReason::from_name(None, "nonsense"), None);
    }
}
