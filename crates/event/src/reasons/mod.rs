//! Exit reasons of every architecture KVM runs on: one table for each, with number, name, what others call it, and
//! class.

mod arm64;
mod class;
mod named;
mod others;
mod svm;
mod vmx;

use std::borrow::Cow;
use std::fmt;

use class::TabledReason;

pub use arm64::ARM_EXCEPTION_TRAP;
pub use class::ExitClass;

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

    /// Returns its table, sorted by number; of arm64 that of traps.
    fn table(self) -> &'static [TabledReason] {
        match self {
            Isa::Vmx => vmx::REASONS,
            Isa::Svm => svm::REASONS,
            Isa::Arm64 => arm64::CLASSES,
            Isa::Riscv => others::RISCV,
            Isa::S390 => others::S390,
            Isa::Powerpc => others::POWERPC,
            Isa::Loongarch => others::LOONGARCH,
        }
    }

    /// Returns the number that a name has in it.
    fn code(self, name: &str) -> Option<u32> {
        match self {
            Isa::Svm => svm::code(name),
            Isa::Arm64 => arm64::code(name),
            _ => {
                let mut table = self.table().iter();
                Some(table.find(|one| one.is_called(name))?.code)
            }
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
pub(crate) const VMX_FAILED_VMENTRY: u32 = 0x8000_0000;

impl ExitReason {
    /// Returns the reason that a record has as this number.
    ///
    /// Flags that VMX puts beside the basic reason (bus lock, enclave, pending trap, VMX root) make no other reason,
    /// but a failed entry does. Of RISC-V's `scause` the highest bit says that it is an interrupt, and is kept.
    pub fn of_number(isa: Isa, number: u64) -> ExitReason {
        let low = u32::try_from(number & 0xffff_ffff).unwrap_or(u32::MAX);
        let code = match isa {
            Isa::Vmx => low & (0xffff | VMX_FAILED_VMENTRY),
            Isa::Riscv => {
                let interrupt = number >> 63 == 1 || (number >> 31) == 1;
                (low & !others::RISCV_INTERRUPT) | u32::from(interrupt) << 31
            }
            _ => low,
        };
        ExitReason { isa, code }
    }

    /// Returns the reason of a RISC-V exit: `scause`, and of a virtual instruction fault `stval`, which has the
    /// instruction.
    pub fn riscv(scause: u64, stval: Option<u64>) -> ExitReason {
        match (scause, stval) {
            (22, Some(others::RISCV_WFI_INSTRUCTION)) => ExitReason {
                isa: Isa::Riscv,
                code: others::RISCV_WFI,
            },
            _ => ExitReason::of_number(Isa::Riscv, scause),
        }
    }

    /// Returns what a privileged instruction of a LoongArch guest is.
    pub fn loongarch_instruction(word: u32) -> ExitReason {
        ExitReason {
            isa: Isa::Loongarch,
            code: others::loongarch_instruction(word),
        }
    }

    /// Returns what a nested page fault is for which the reverse map table is the cause (`kvm_rmp_fault`).
    pub fn rmp_fault() -> ExitReason {
        ExitReason {
            isa: Isa::Svm,
            code: svm::RMP_FAULT,
        }
    }

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

    /// Returns its entry in the table of its architecture.
    fn entry(self) -> Option<&'static TabledReason> {
        match self.isa {
            Isa::Arm64 => arm64::find(self.code),
            Isa::Vmx => find(vmx::REASONS, self.code & 0xffff),
            isa => find(isa.table(), self.code),
        }
    }

    /// Returns the name `perf kvm stat` and the kernel use, or `None` for numbers that their tables do not have.
    pub fn name(self) -> Option<&'static str> {
        named::name(self.code).or_else(|| Some(self.entry()?.name))
    }

    /// Returns what the guest did, or what happened to it.
    #[inline]
    pub fn class(self) -> ExitClass {
        static VMX: [ExitClass; 128] = class::classes(vmx::REASONS);
        static SVM: [ExitClass; 0x410] = class::classes(svm::REASONS);
        let fast = match self.isa {
            Isa::Vmx if self.code & named::BASE == 0 => {
                return VMX
                    .get((self.code & 0xffff) as usize)
                    .copied()
                    .unwrap_or_default();
            }
            Isa::Svm => SVM.get(self.code as usize).copied(),
            Isa::Arm64 if self.code & named::BASE == 0 => Some(arm64::class(self.code)),
            _ => None,
        };
        fast.unwrap_or_else(|| self.class_by_name())
    }

    /// Returns the class of a reason that has a number of its own, or is of a table that is searched.
    fn class_by_name(self) -> ExitClass {
        let entry = match named::name(self.code) {
            // It is of a text, so its number stands for a name.
            Some(name) => {
                let code = self.isa.code(name);
                code.and_then(|code| ExitReason { code, ..self }.entry())
            }
            None => self.entry(),
        };
        entry.map_or(ExitClass::Other, |entry| entry.class)
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
            _ => self.class() == ExitClass::Interrupt,
        }
    }

    /// Returns whether the guest touched memory that the host's tables do not map for it, or not so: `EPT_VIOLATION`,
    /// `npf`, `DABT_LOW` and `IABT_LOW`.
    #[inline]
    pub fn is_page_fault(self) -> bool {
        self.class() == ExitClass::PageFault
    }

    /// Returns whether the guest may have written a model specific register: VMX has a reason for each, SVM's `msr`
    /// is both.
    #[inline]
    pub fn may_write_msr(self) -> bool {
        const VMX_READS: [u32; 2] = [31, 84];
        self.class() == ExitClass::Msr && !self.is_of(Isa::Vmx, &VMX_READS)
    }

    /// Returns whether an arm64 guest called its hypervisor: `HVC32`, `SMC32`, `HVC64` and `SMC64`.
    #[inline]
    pub fn is_arm64_call(self) -> bool {
        self.isa == Isa::Arm64 && self.class() == ExitClass::Hypercall
    }

    /// Returns whether the guest asked to wait: the time until the next entry is then the guest's own
    /// idleness and nobody's work.
    #[inline]
    pub fn is_waiting(self) -> bool {
        self.class() == ExitClass::Waiting
    }

    /// Returns the reason a text names. Texts print the kernel's names, or those of trace-cmd's plugin
    /// (`EXIT_IOIO`); numbers stand for reasons that neither names.
    pub fn from_name(isa: Option<Isa>, name: &str) -> Option<ExitReason> {
        // A name that two tables have is taken for the first one's.
        const TABLES: [Isa; 7] = [
            Isa::Vmx,
            Isa::Svm,
            Isa::Arm64,
            Isa::S390,
            Isa::Powerpc,
            Isa::Riscv,
            Isa::Loongarch,
        ];
        let mut tables = TABLES
            .into_iter()
            .filter(|table| isa.is_none_or(|isa| isa == *table));
        tables.find_map(|isa| {
            Some(ExitReason {
                isa,
                code: isa.code(name)?,
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
fn find(table: &'static [TabledReason], code: u32) -> Option<&'static TabledReason> {
    let at = table.binary_search_by_key(&code, |one| one.code).ok()?;
    table.get(at)
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
            assert!(
                table.windows(2).all(|two| two[0].code < two[1].code),
                "{table:?}"
            );
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
                Isa::S390 => (
                    &[
                        "Host interruption",
                        "External interruption",
                        "I/O interruption",
                        "External request",
                        "I/O request",
                        "Stop request",
                    ],
                    &[],
                    &[],
                ),
                Isa::Riscv => (
                    &[],
                    &[
                        "EXC_INST_GUEST_PAGE_FAULT",
                        "EXC_LOAD_GUEST_PAGE_FAULT",
                        "EXC_STORE_GUEST_PAGE_FAULT",
                    ],
                    &[],
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
    fn flags_of_vmx_are_no_reasons_of_their_own() {
        let halt = ExitReason::of_number(Isa::Vmx, 12);
        for flag in [26, 27, 28, 29] {
            assert_eq!(ExitReason::of_number(Isa::Vmx, 12 | 1 << flag), halt);
        }
        assert!(halt.is_waiting());
        let failed = ExitReason::of_number(Isa::Vmx, 0x8000_0021);
        assert_eq!(failed.key(), "INVALID_STATE FAILED_VMENTRY");
    }

    #[test]
    fn an_interrupt_of_riscv_is_no_exception() {
        let timer = ExitReason::riscv(1 << 63 | 5, None);
        assert_eq!(timer.key(), "IRQ_S_TIMER");
        assert!(timer.is_interrupt());
        assert_eq!(ExitReason::riscv(1 << 31 | 5, None), timer);
        assert_eq!(ExitReason::riscv(5, None).key(), "EXC_LOAD_ACCESS");
        let (wfi, other) = (
            ExitReason::riscv(22, Some(0x1050_0073)),
            ExitReason::riscv(22, Some(0)),
        );
        assert!(wfi.is_waiting() && !other.is_waiting());
    }

    #[test]
    fn every_way_to_wait_is_waiting() {
        let waits = |isa: Isa, codes: &[u64]| {
            let all = codes.iter().map(|code| ExitReason::of_number(isa, *code));
            all.filter(|one| one.is_waiting()).count() == codes.len()
        };
        assert!(waits(Isa::Vmx, &[12, 36, 67, 68]));
        assert!(waits(Isa::Svm, &[0x78, 0x8b, 0x8c, 0xa6, 0x8000_0004]));
        assert!(waits(Isa::Loongarch, &[64]));
        assert!(waits(Isa::S390, &[0x1c]));
        assert_eq!(ExitReason::loongarch_instruction(0x0648_8000).key(), "Idle");
    }

    #[test]
    fn writes_of_registers_are_distinguished_from_reads_where_the_hardware_does() {
        let may_write: Vec<&str> = [
            "MSR_READ",
            "MSR_READ_IMM",
            "MSR_WRITE",
            "MSR_WRITE_IMM",
            "msr",
            "EXIT_MSR",
            "HLT",
            "SYS64",
        ]
        .into_iter()
        .filter(|name| ExitReason::from_name(None, name).is_some_and(ExitReason::may_write_msr))
        .collect();
        assert_eq!(may_write, ["MSR_WRITE", "MSR_WRITE_IMM", "msr", "EXIT_MSR"]);
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
