//! Reads the typed view out of binary records.
//!
//! Offsets come from the recording's own formats, once per recording; a record is then read with a few
//! loads. Kernels differ in which fields they record, so every field but the ones without which the event
//! means nothing is optional.

use tracefmt::{Endian, Field, FieldKind, Format};

use crate::data::{
    Data, KvmEntry, KvmExit, KvmHaltPollNs, KvmMmio, KvmMsr, KvmPio, KvmUserspaceExit,
    KvmVcpuWakeup, MmioAccess,
};
use crate::decode_sched::SchedPlan;
use crate::reasons::{ExitReason, Isa};
use crate::{Kind, reasons};

/// One number in a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    offset: u32,
    size: u8,
    endian: Endian,
}

impl Load {
    pub(crate) fn of(field: &Field, endian: Endian) -> Option<Load> {
        let size = u8::try_from(field.size)
            .ok()
            .filter(|s| matches!(s, 1 | 2 | 4 | 8))?;
        matches!(field.kind, FieldKind::Scalar).then_some(Load {
            offset: field.offset,
            size,
            endian,
        })
    }

    #[inline(always)]
    pub(crate) fn get(self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(self.offset as usize..)?;
        if self.endian == Endian::Big {
            return self.endian.uint(bytes, 0, self.size as usize);
        }
        Some(match self.size {
            8 => u64::from_le_bytes(*bytes.first_chunk()?),
            4 => u64::from(u32::from_le_bytes(*bytes.first_chunk()?)),
            2 => u64::from(u16::from_le_bytes(*bytes.first_chunk()?)),
            _ => u64::from(*bytes.first()?),
        })
    }
}

/// How the reason of an exit is recorded.
#[derive(Debug, Clone, Copy)]
enum ReasonLoad {
    /// x86: a number, and which of the two vendors' tables it is from. Kernels before 3.0 have no `isa`.
    X86 { reason: Load, isa: Option<Load> },
    /// arm64: what the world switch returned, and for traps the exception class. Kernels before 4.2 do not
    /// record `ret`: all their exits are traps.
    Arm64 { ret: Option<Load>, class: Load },
    /// One number of one table.
    Plain { reason: Load, isa: Isa },
}

/// Reads one kind of event.
#[derive(Debug, Clone, Copy, Default)]
enum Plan {
    Exit {
        reason: ReasonLoad,
        vcpu: Option<Load>,
        pc: Option<Load>,
    },
    Entry {
        vcpu: Option<Load>,
        pc: Option<Load>,
    },
    Mmio {
        access: Load,
        gpa: Load,
        len: Option<Load>,
        value: Option<Load>,
    },
    Pio {
        write: Load,
        port: Load,
        size: Option<Load>,
        count: Option<Load>,
        value: Option<Load>,
    },
    Msr {
        write: Load,
        msr: Load,
        value: Option<Load>,
        exception: Option<Load>,
    },
    UserspaceExit {
        reason: Load,
        errno: Option<Load>,
    },
    VcpuWakeup {
        ns: Load,
        waited: Load,
        valid: Option<Load>,
    },
    HaltPoll {
        new: Load,
        old: Load,
    },
    Fpu {
        load: Load,
    },
    Sched(SchedPlan),
    #[default]
    None,
}

/// Reads the typed view of one kind of event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Decoder(Plan);

impl Decoder {
    /// Prepares to read records of this format.
    ///
    /// The decoder of an event without a typed view, or of a format without the fields the view needs,
    /// returns [`Data::Other`] always.
    pub fn bind(kind: Kind, format: &Format) -> Decoder {
        let endian = format.abi.endian;
        let load = |name: &str| Load::of(format.field(name)?, endian);
        let plan = match kind {
            Kind::KvmExit => bind_exit(format, &load),
            Kind::KvmEntry => Some(Plan::Entry {
                vcpu: load("vcpu_id").or_else(|| load("id")),
                pc: load("rip")
                    .or_else(|| load("vcpu_pc"))
                    .or_else(|| load("sepc")),
            }),
            Kind::KvmMmio => (|| {
                Some(Plan::Mmio {
                    access: load("type")?,
                    gpa: load("gpa")?,
                    len: load("len"),
                    value: load("val"),
                })
            })(),
            Kind::KvmPio => (|| {
                Some(Plan::Pio {
                    write: load("rw")?,
                    port: load("port")?,
                    size: load("size"),
                    count: load("count"),
                    value: load("val"),
                })
            })(),
            Kind::KvmMsr => (|| {
                Some(Plan::Msr {
                    write: load("write")?,
                    msr: load("ecx")?,
                    value: load("data"),
                    exception: load("exception"),
                })
            })(),
            Kind::KvmUserspaceExit => (|| {
                Some(Plan::UserspaceExit {
                    reason: load("reason")?,
                    errno: load("errno"),
                })
            })(),
            Kind::KvmVcpuWakeup => (|| {
                Some(Plan::VcpuWakeup {
                    ns: load("ns")?,
                    waited: load("waited")?,
                    valid: load("valid"),
                })
            })(),
            Kind::KvmHaltPollNs => (|| {
                Some(Plan::HaltPoll {
                    new: load("new")?,
                    old: load("old")?,
                })
            })(),
            Kind::KvmFpu => load("load").map(|load| Plan::Fpu { load }),
            Kind::Other => None,
            _ => SchedPlan::bind(kind, format).map(Plan::Sched),
        };
        Decoder(plan.unwrap_or_default())
    }

    /// Returns whether records have a typed view at all.
    pub fn is_bound(&self) -> bool {
        !matches!(self.0, Plan::None)
    }

    /// Reads the typed view of one record; [`Data::Other`] when the record is too short for it.
    #[inline]
    pub fn decode(&self, record: &[u8]) -> Data {
        self.try_decode(record).unwrap_or(Data::Other)
    }

    #[inline]
    fn try_decode(&self, record: &[u8]) -> Option<Data> {
        let opt = |load: Option<Load>| load.and_then(|l| l.get(record));
        Some(match self.0 {
            Plan::Exit { reason, vcpu, pc } => Data::KvmExit(KvmExit {
                reason: read_reason(reason, record)?,
                vcpu: opt(vcpu).map(|v| v as u32),
                guest_pc: opt(pc),
            }),
            Plan::Entry { vcpu, pc } => Data::KvmEntry(KvmEntry {
                vcpu: opt(vcpu).map(|v| v as u32),
                guest_pc: opt(pc),
            }),
            Plan::Mmio {
                access,
                gpa,
                len,
                value,
            } => Data::KvmMmio(KvmMmio {
                access: MmioAccess::from_number(access.get(record)?),
                gpa: gpa.get(record)?,
                len: opt(len).unwrap_or(0) as u32,
                value: opt(value).unwrap_or(0),
            }),
            Plan::Pio {
                write,
                port,
                size,
                count,
                value,
            } => Data::KvmPio(KvmPio {
                write: write.get(record)? != 0,
                port: port.get(record)? as u16,
                size: opt(size).unwrap_or(0) as u32,
                count: opt(count).unwrap_or(1) as u32,
                value: opt(value).map(|value| value as u32),
            }),
            Plan::Msr {
                write,
                msr,
                value,
                exception,
            } => Data::KvmMsr(KvmMsr {
                write: write.get(record)? != 0,
                msr: msr.get(record)? as u32,
                value: opt(value).unwrap_or(0),
                exception: opt(exception).unwrap_or(0) != 0,
            }),
            Plan::UserspaceExit { reason, errno } => {
                let failed = (opt(errno).unwrap_or(0) as i32) < 0;
                let reason = reason.get(record)? as u32;
                Data::KvmUserspaceExit(KvmUserspaceExit {
                    reason: (!failed).then_some(reason),
                })
            }
            Plan::VcpuWakeup { ns, waited, valid } => Data::KvmVcpuWakeup(KvmVcpuWakeup {
                halted_ns: ns.get(record)?,
                waited: waited.get(record)? != 0,
                valid: opt(valid).unwrap_or(1) != 0,
            }),
            Plan::HaltPoll { new, old } => Data::KvmHaltPollNs(KvmHaltPollNs {
                new_ns: new.get(record)?,
                old_ns: old.get(record)?,
            }),
            Plan::Fpu { load } => Data::KvmFpu {
                load: load.get(record)? != 0,
            },
            Plan::Sched(plan) => plan.decode(record)?,
            Plan::None => Data::Other,
        })
    }
}

/// Finds out how this kernel records the reason of an exit.
fn bind_exit(format: &Format, load: &dyn Fn(&str) -> Option<Load>) -> Option<Plan> {
    let plain = |field: &str, isa: Isa| {
        Some(ReasonLoad::Plain {
            reason: load(field)?,
            isa,
        })
    };
    let reason = match format.name.as_str() {
        "kvm_s390_sie_exit" => plain("icptcode", Isa::S390),
        "kvm_guest_exit" => plain("trap", Isa::Powerpc),
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
        .or_else(|| plain("scause", Isa::Riscv))
        .or_else(|| plain("reason", Isa::Loongarch))?;
    Some(Plan::Exit {
        reason,
        vcpu: load("vcpu_id").or_else(|| load("id")),
        pc: load("guest_rip")
            .or_else(|| load("vcpu_pc"))
            .or_else(|| load("sepc")),
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
            ExitReason {
                isa,
                code: reason.get(record)? as u32,
            }
        }
        ReasonLoad::Arm64 { ret, class } => {
            let ret = match ret {
                Some(ret) => ret.get(record)? as u32,
                None => reasons::ARM_EXCEPTION_TRAP,
            };
            // The return code's high bit says that an SError is pending as well (`ARM_EXIT_WITH_SERROR_BIT`).
            ExitReason::arm64(ret, class.get(record)? as u32)
        }
        ReasonLoad::Plain { reason, isa } => ExitReason {
            isa,
            code: reason.get(record)? as u32,
        },
    })
}
