//! A vCPU left the guest: what is recorded of it differs between instruction sets.

use tracefmt::EventFormat;

use super::exit_detail::{ExitDetail, ExitQualification};
use crate::define::{NamedCondition, ParsedText, TextForm, TypedKind};
use crate::reasons::{self, ExitReason, Isa};
use crate::record::{FieldLoad, low32};
use crate::text_reasons::TextReasons;

/// `kvm:kvm_exit`: a vCPU left the guest.
///
/// The tracepoint fires a little after the hardware switched, so it bounds the switch from above
/// (`arch/x86/kvm/trace.h`, `arch/arm64/kvm/trace_arm.h`).
///
/// Events that come behind it and say what the exit really was have the same view, and are `inner`: what an SEV-ES
/// guest asks its hypervisor for (`kvm_vmgexit_enter`), what a LoongArch guest's privileged instruction is
/// (`kvm_exit_gspr`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvmExit {
    /// Why.
    pub reason: ExitReason,
    /// The vCPU's number; arm64 and old x86 kernels do not record it.
    pub vcpu: Option<u32>,
    /// Where the guest was, if recorded. Of a guest whose registers nobody may read (SEV-ES, TDX) the kernel records 0,
    /// which is nowhere.
    pub guest_pc: Option<u64>,
    /// What the processor recorded of it, of those exits of which that says more than the reason.
    pub info: Option<ExitQualification>,
    /// Whether it says what the exit before it really was, and is no exit of its own.
    pub inner: bool,
}

impl KvmExit {
    /// Returns what it was for, where the processor says it.
    #[inline]
    pub fn detail(&self) -> Option<ExitDetail> {
        self.info?.detail(self.reason)
    }
}

/// How the reason of an exit is recorded.
#[derive(Debug, Clone, Copy)]
enum ReasonLoad {
    /// x86: a number, and which of the two vendors' tables it is from. Kernels before 3.0 have no `isa`.
    X86 {
        reason: FieldLoad,
        isa: Option<FieldLoad>,
    },
    /// arm64: what the world switch returned, and for traps the exception class. Kernels before 4.2 do not
    /// record `ret`: all their exits are traps.
    Arm64 {
        ret: Option<FieldLoad>,
        class: FieldLoad,
    },
    /// RISC-V: the cause of the trap, and for an instruction that traps the instruction.
    Riscv {
        scause: FieldLoad,
        stval: Option<FieldLoad>,
    },
    /// One number of one table.
    Plain { reason: FieldLoad, isa: Isa },
    /// LoongArch: the privileged instruction.
    Instruction(FieldLoad),
    /// What an SEV-ES guest asks for before it has a page to ask with: the low bits of its GHCB MSR.
    MsrProtocol(FieldLoad),
    /// `kvm_rmp_fault`, which is its own reason.
    RmpFault,
}

/// Where the fields are in a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExitPlaces {
    reason: ReasonLoad,
    vcpu: Option<FieldLoad>,
    pc: Option<FieldLoad>,
    /// `info1` and `info2`.
    info: Option<(FieldLoad, FieldLoad)>,
    inner: bool,
}

impl TypedKind for KvmExit {
    type Places = ExitPlaces;

    const NAMED: &'static [NamedCondition<KvmExit>] = &[
        NamedCondition {
            names: &["vcpu_id", "id", "vcpu"],
            number: true,
            get: |exit| exit.vcpu.map(u64::from),
        },
        NamedCondition {
            names: &["guest_rip", "vcpu_pc", "sepc", "pc"],
            number: true,
            get: |exit| exit.guest_pc,
        },
        NamedCondition {
            names: &["port"],
            number: true,
            get: |exit| match exit.detail()? {
                ExitDetail::Port { port, .. } => Some(u64::from(port)),
                _ => None,
            },
        },
        NamedCondition {
            names: &["gpa"],
            number: true,
            get: |exit| match exit.detail()? {
                ExitDetail::NestedFault { gpa, .. } => Some(gpa),
                _ => None,
            },
        },
        NamedCondition {
            names: &["cr"],
            number: true,
            get: |exit| match exit.detail()? {
                ExitDetail::Control { register, .. } => Some(u64::from(register)),
                _ => None,
            },
        },
        NamedCondition {
            names: &["dr"],
            number: true,
            get: |exit| match exit.detail()? {
                ExitDetail::Debug { register, .. } => Some(u64::from(register)),
                _ => None,
            },
        },
        NamedCondition {
            names: &["write"],
            number: true,
            get: |exit| exit.detail().map(|detail| u64::from(detail.is_write())),
        },
    ];

    const TEXT: TextForm<KvmExit> = TextForm::Parts(parse);

    fn bind(format: &EventFormat) -> Option<ExitPlaces> {
        let endian = format.abi.endian;
        bind_exit(format, &|name| FieldLoad::of(format.field(name)?, endian))
    }

    #[inline]
    fn read(places: &ExitPlaces, record: &[u8]) -> Option<KvmExit> {
        let number = |load: Option<FieldLoad>| load.and_then(|load| load.get(record));
        let reason = read_reason(places.reason, record)?;
        let info = places.info.filter(|_| reason.has_detail());
        Some(KvmExit {
            reason,
            vcpu: number(places.vcpu).map(low32),
            guest_pc: number(places.pc).filter(|pc| *pc != 0),
            info: info.and_then(|(info1, info2)| {
                Some(ExitQualification {
                    info1: info1.get(record)?,
                    info2: info2.get(record),
                })
            }),
            inner: places.inner,
        })
    }
}

/// Events that say what an exit really was.
const INNER: [&str; 8] = [
    "kvm_vmgexit_enter",
    "kvm_vmgexit_msr_protocol_enter",
    "kvm_rmp_fault",
    "kvm_exit_gspr",
    "kvm_exit_idle",
    "kvm_exit_cache",
    "kvm_exit_cpucfg",
    "kvm_exit_csr",
];

/// Returns what a guest asks for in its GHCB MSR: the low twelve bits (GHCB specification 2.04, 2.3.1;
/// `arch/x86/include/asm/sev-common.h`, `GHCB_MSR_*`). What has no code of its own is a `vmgexit`.
pub(super) fn of_msr_protocol(msr: u64) -> ExitReason {
    let code: u64 = match msr & 0xfff {
        0x004 => 0x72,
        0x006 => 0x8000_0004,
        0x014 => 0x8000_0010,
        0x016 => 0x8000_0018,
        0x080 => 0x8000_fffd,
        0x100 => 0x8000_fffe,
        _ => 0x403,
    };
    ExitReason::of_number(Isa::Svm, code)
}

fn parse(text: &[u8], reasons: &mut TextReasons) -> Option<ParsedText<KvmExit>> {
    let exit = reasons.exit(text)?;
    let found = [
        // A name that no table has may be one that a terminal broke.
        !exit.reason.is_named(),
        exit.vcpu.is_some(),
        exit.guest_pc.is_some(),
        exit.info.is_some(),
    ];
    Some(ParsedText {
        event: KvmExit {
            reason: exit.reason,
            vcpu: exit.vcpu,
            guest_pc: exit.guest_pc.filter(|pc| *pc != 0),
            info: exit.info,
            inner: exit.inner,
        },
        complete: exit.inner || exit.guest_pc.is_some(),
        found: found.map(u8::from).iter().sum(),
    })
}

/// Finds out how this kernel records the reason of an exit.
fn bind_exit(format: &EventFormat, load: &dyn Fn(&str) -> Option<FieldLoad>) -> Option<ExitPlaces> {
    let plain = |field: &str, isa: Isa| {
        Some(ReasonLoad::Plain {
            reason: load(field)?,
            isa,
        })
    };
    let name = format.name.as_str();
    let reason = match name {
        "kvm_s390_sie_exit" => plain("icptcode", Isa::S390),
        "kvm_guest_exit" => plain("trap", Isa::Powerpc),
        "kvm_vmgexit_enter" => plain("exit_reason", Isa::Svm),
        "kvm_vmgexit_msr_protocol_enter" => load("ghcb_gpa").map(ReasonLoad::MsrProtocol),
        "kvm_rmp_fault" => Some(ReasonLoad::RmpFault),
        "kvm_exit_gspr" => load("inst_word").map(ReasonLoad::Instruction),
        _ => None,
    };
    let reason = reason
        .or_else(|| {
            Some(ReasonLoad::X86 {
                reason: load("exit_reason")?,
                isa: load("isa"),
            })
        })
        .or_else(|| {
            Some(ReasonLoad::Arm64 {
                ret: load("ret"),
                class: load("esr_ec")?,
            })
        })
        .or_else(|| {
            Some(ReasonLoad::Riscv {
                scause: load("scause")?,
                stval: load("stval"),
            })
        })
        .or_else(|| plain("reason", Isa::Loongarch))?;
    let inner = INNER.contains(&name);
    Some(ExitPlaces {
        reason,
        vcpu: load("vcpu_id").or_else(|| load("id")),
        pc: load("guest_rip")
            .or_else(|| load("vcpu_pc"))
            .or_else(|| load("sepc"))
            .or_else(|| load("pc")),
        // What a guest says in its GHCB is not what the processor recorded.
        info: load("info1").zip(load("info2")).filter(|_| !inner),
        inner,
    })
}

#[inline]
fn read_reason(how: ReasonLoad, record: &[u8]) -> Option<ExitReason> {
    Some(match how {
        ReasonLoad::X86 { reason, isa } => {
            let isa = match isa.and_then(|l| l.get(record)) {
                Some(2) => Isa::Svm,
                // `KVM_ISA_VMX` is 1; kernels too old to say were asked on Intel when they were new.
                _ => Isa::Vmx,
            };
            ExitReason::of_number(isa, reason.get(record)?)
        }
        ReasonLoad::Arm64 { ret, class } => {
            let ret = match ret {
                Some(ret) => low32(ret.get(record)?),
                None => reasons::ARM_EXCEPTION_TRAP,
            };
            // The return code's high bit says that an SError is pending as well (`ARM_EXIT_WITH_SERROR_BIT`).
            ExitReason::arm64(ret, low32(class.get(record)?))
        }
        ReasonLoad::Riscv { scause, stval } => {
            let stval = stval.and_then(|load| load.get(record));
            ExitReason::riscv(scause.get(record)?, stval)
        }
        ReasonLoad::Plain { reason, isa } => ExitReason::of_number(isa, reason.get(record)?),
        ReasonLoad::Instruction(word) => {
            ExitReason::loongarch_instruction(low32(word.get(record)?))
        }
        ReasonLoad::MsrProtocol(msr) => of_msr_protocol(msr.get(record)?),
        ReasonLoad::RmpFault => ExitReason::rmp_fault(),
    })
}
