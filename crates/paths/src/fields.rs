//! Reads attributes out of events, of records and of texts alike.

use std::borrow::Cow;

use event::{Body, Data, Event, EventType, MmioAccess};
use tracefmt::{Abi, Field};

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Val<'e> {
    Number(u64),
    Text(Cow<'e, str>),
}

impl Val<'_> {
    /// Returns what a join compares: a number is itself.
    pub(crate) fn key(&self) -> u64 {
        match self {
            Val::Number(number) => *number,
            // FNV-1a: names that differ are told apart well enough by 64 bits.
            Val::Text(text) => text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            }),
        }
    }
}

/// How numbers stand in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Radix {
    /// Decimal, or hexadecimal behind `0x`.
    Any,
    /// Hexadecimal, with `0x` or without.
    Hex,
}

/// Where an attribute of a kind of event is.
#[derive(Debug, Clone)]
enum Place {
    /// A field of the record, of which some bits count.
    Raw {
        field: Field,
        abi: Abi,
        shift: u32,
        mask: u64,
    },
    /// A field of the record that is text.
    RawText { field: Field, abi: Abi },
    /// Behind a word in the line.
    Text {
        label: Cow<'static, str>,
        radix: Radix,
        mask: u64,
    },
    /// In the typed view.
    Typed(fn(&Data) -> Option<u64>),
    /// The delivery mode that a line has in brackets: `(Fixed|edge)`.
    ModeText,
    /// The system register of `kvm_sys_access`: op0, op1, CRn, CRm, op2 in decimal places of 100.
    SysregRaw { fields: Box<[Field; 5]>, abi: Abi },
    /// The same in a line: `(3,0,12,11,5)`.
    SysregText,
    /// The vector of `kvm_inj_virq`: `IRQ 0x24`, or `irq 36` as kernels before 5.19 print it.
    InjectedText,
    /// Whether the line ends in the word `write`.
    WriteText,
    /// Whether the line has these words.
    Words(&'static str),
    /// A field that older kernels do not record: 0 there.
    OrZero { field: Option<Field>, abi: Abi },
    /// The event does not have it.
    Nowhere,
}

/// Reads one attribute of one kind of event.
#[derive(Debug, Clone)]
pub(crate) struct Getter(Place);

/// A name that all forms of a recording have for a field: event, name, the record's field with the bits that count, and
/// what stands before it in the text of the event (`print fmt` of 6.1; `arch/x86/kvm/trace.h`,
/// `include/trace/events/kvm.h`, `arch/arm64/kvm/trace_arm.h`, `arch/arm64/kvm/vgic/trace.h`).
struct Known {
    event: &'static str,
    name: &'static str,
    raw: &'static str,
    shift: u32,
    mask: u64,
    label: &'static str,
    radix: Radix,
}

const fn known(
    event: &'static str,
    name: &'static str,
    raw: &'static str,
    (shift, mask): (u32, u64),
    label: &'static str,
    radix: Radix,
) -> Known {
    Known {
        event,
        name,
        raw,
        shift,
        mask,
        label,
        radix,
    }
}

const ALL: (u32, u64) = (0, u64::MAX);

const KNOWN: [Known; 30] = [
    known("kvm_apic_accept_irq", "level", "tm", ALL, "", Radix::Any),
    known(
        "kvm_apic_accept_irq",
        "vector",
        "vec",
        ALL,
        "vec",
        Radix::Any,
    ),
    known(
        "kvm_apic_accept_irq",
        "apicid",
        "apicid",
        ALL,
        "apicid",
        Radix::Hex,
    ),
    known("kvm_apic_accept_irq", "mode", "dm", (8, 7), "", Radix::Any),
    known(
        "kvm_apic_ipi",
        "vector",
        "icr_low",
        (0, 0xff),
        "vec",
        Radix::Any,
    ),
    known("kvm_apic_ipi", "mode", "icr_low", (8, 7), "", Radix::Any),
    known("kvm_apic_ipi", "dest", "dest_id", ALL, "dst", Radix::Hex),
    known(
        "kvm_msi_set_irq",
        "vector",
        "data",
        (0, 0xff),
        "vec",
        Radix::Any,
    ),
    known("kvm_msi_set_irq", "mode", "data", (8, 7), "", Radix::Any),
    known(
        "kvm_msi_set_irq",
        "dest",
        "address",
        (12, 0xff),
        "dst",
        Radix::Hex,
    ),
    // Kernels before 5.19 call it irq.
    known("kvm_inj_virq", "vector", "vector", ALL, "IRQ", Radix::Hex),
    known("kvm_inj_virq", "vector", "irq", ALL, "irq", Radix::Any),
    known("kvm_set_irq", "gsi", "gsi", ALL, "gsi", Radix::Any),
    known("kvm_set_irq", "level", "level", ALL, "level", Radix::Any),
    known("kvm_fast_mmio", "address", "gpa", ALL, "gpa", Radix::Hex),
    known("kvm_hypercall", "vector", "a2", (0, 0xff), "a2", Radix::Hex),
    known(
        "kvm_hv_send_ipi",
        "vector",
        "vector",
        ALL,
        "vector",
        Radix::Any,
    ),
    known(
        "kvm_hv_send_ipi_ex",
        "vector",
        "vector",
        ALL,
        "vector",
        Radix::Any,
    ),
    known("kvm_hypercall", "nr", "nr", ALL, "nr", Radix::Hex),
    known(
        "vgic_update_irq_pending",
        "vcpu",
        "vcpu_id",
        ALL,
        "VCPU:",
        Radix::Any,
    ),
    known(
        "vgic_update_irq_pending",
        "irq",
        "irq",
        ALL,
        "IRQ",
        Radix::Any,
    ),
    known(
        "vgic_update_irq_pending",
        "level",
        "level",
        ALL,
        "level:",
        Radix::Any,
    ),
    known(
        "kvm_timer_update_irq",
        "vcpu",
        "vcpu_id",
        ALL,
        "VCPU:",
        Radix::Any,
    ),
    known("kvm_timer_update_irq", "irq", "irq", ALL, "IRQ", Radix::Any),
    known(
        "kvm_timer_update_irq",
        "level",
        "level",
        ALL,
        "level",
        Radix::Any,
    ),
    known("kvm_irq_line", "irq", "irq_num", ALL, "num:", Radix::Any),
    known(
        "kvm_irq_line",
        "vcpu",
        "vcpu_idx",
        ALL,
        "vcpu->idx:",
        Radix::Any,
    ),
    known("kvm_irq_line", "level", "level", ALL, "level:", Radix::Any),
    known("kvm_sys_access", "write", "is_write", ALL, "", Radix::Any),
    known("irq_handler_entry", "irq", "irq", ALL, "irq=", Radix::Any),
];

impl Getter {
    /// Finds out where events of this kind have a field of that name.
    pub(crate) fn field(ty: &EventType<'_>, name: &str) -> Getter {
        if let Some(typed) = typed(ty.name, name) {
            return Getter(Place::Typed(typed));
        }
        let known = || {
            KNOWN
                .iter()
                .filter(|known| known.event == ty.name && known.name == name)
        };
        let Some(format) = ty.format else {
            return Getter(match (ty.name, name) {
                ("kvm_apic_accept_irq" | "kvm_apic_ipi" | "kvm_msi_set_irq", "mode") => {
                    Place::ModeText
                }
                ("kvm_apic_accept_irq", "level") => Place::Words("|level)"),
                ("kvm_inj_virq", "reinjected") => Place::Words("[reinjected]"),
                ("kvm_inj_virq", "vector") => Place::InjectedText,
                ("kvm_sys_access", "sysreg") => Place::SysregText,
                ("kvm_sys_access", "write") => Place::WriteText,
                _ => match known().next() {
                    Some(known) => Place::Text {
                        label: known.label.into(),
                        radix: known.radix,
                        // What is shifted in the record is printed as it is meant.
                        mask: if known.shift == 0 {
                            known.mask
                        } else {
                            u64::MAX
                        },
                    },
                    None => Place::Text {
                        label: name.to_owned().into(),
                        radix: Radix::Any,
                        mask: u64::MAX,
                    },
                },
            });
        };
        let abi = format.abi;
        if (ty.name, name) == ("kvm_sys_access", "sysreg") {
            let field = |name: &str| format.field(name).cloned();
            let fields = (|| {
                Some([
                    field("Op0")?,
                    field("Op1")?,
                    field("CRn")?,
                    field("CRm")?,
                    field("Op2")?,
                ])
            })();
            return Getter(match fields {
                Some(fields) => Place::SysregRaw {
                    fields: Box::new(fields),
                    abi,
                },
                None => Place::Nowhere,
            });
        }
        if (ty.name, name) == ("kvm_inj_virq", "reinjected") {
            let field = format.field(name).cloned();
            return Getter(Place::OrZero { field, abi });
        }
        let found = known().find_map(|known| {
            let field = format.field(known.raw)?.clone();
            Some((field, known.shift, known.mask))
        });
        let found = found.or_else(|| Some((format.field(name)?.clone(), 0, u64::MAX)));
        Getter(match found {
            Some((field, ..)) if field.is_string => Place::RawText { field, abi },
            Some((field, shift, mask)) => Place::Raw {
                field,
                abi,
                shift,
                mask,
            },
            None => Place::Nowhere,
        })
    }

    /// Reads it.
    #[inline]
    pub(crate) fn get<'e>(&self, event: &Event<'e>, data: &Data) -> Option<Val<'e>> {
        match (&self.0, event.body) {
            (Place::Typed(read), _) => read(data).map(Val::Number),
            (
                Place::Raw {
                    field,
                    abi,
                    shift,
                    mask,
                },
                Body::Raw(record),
            ) => {
                let value = field.value(record, abi.endian)?;
                Some(Val::Number(value >> shift & mask))
            }
            (Place::RawText { field, abi }, Body::Raw(record)) => Some(Val::Text(
                String::from_utf8_lossy(field.text(record, *abi)?),
            )),
            (Place::SysregRaw { fields, abi }, Body::Raw(record)) => fields
                .iter()
                .try_fold(0u64, |sum, field| {
                    Some(sum * 100 + (field.value(record, abi.endian)? & 0xff))
                })
                .map(Val::Number),
            (Place::OrZero { field, abi }, Body::Raw(record)) => {
                let value = field.as_ref().and_then(|f| f.value(record, abi.endian));
                Some(Val::Number(value.unwrap_or(0)))
            }
            (Place::InjectedText, Body::Text { text, .. }) => {
                behind(text, "IRQ", Radix::Hex).or_else(|| behind(text, "irq", Radix::Any))
            }
            (Place::Words(words), Body::Text { text, .. }) => {
                Some(Val::Number(u64::from(text.contains(words))))
            }
            (Place::Text { label, radix, mask }, Body::Text { text, .. }) => {
                Some(match behind(text, label, *radix)? {
                    Val::Number(number) => Val::Number(number & mask),
                    text => text,
                })
            }
            (Place::ModeText, Body::Text { text, .. }) => mode(text).map(Val::Number),
            (Place::SysregText, Body::Text { text, .. }) => sysreg(text).map(Val::Number),
            (Place::WriteText, Body::Text { text, .. }) => {
                let write = text.trim_end().ends_with("write") || text.contains("is_write=1");
                Some(Val::Number(u64::from(write)))
            }
            _ => None,
        }
    }

    /// Reads it as a number.
    #[inline]
    pub(crate) fn number(&self, event: &Event<'_>, data: &Data) -> Option<u64> {
        match self.get(event, data)? {
            Val::Number(number) => Some(number),
            Val::Text(_) => None,
        }
    }
}

/// Fields that the typed view has.
fn typed(event: &str, name: &str) -> Option<fn(&Data) -> Option<u64>> {
    Some(match (event, name) {
        ("kvm_mmio", "write") => |data| match data {
            Data::KvmMmio(mmio) => Some(u64::from(mmio.access == MmioAccess::Write)),
            _ => None,
        },
        ("kvm_mmio", "address" | "gpa") => |data| match data {
            Data::KvmMmio(mmio) => Some(mmio.gpa),
            _ => None,
        },
        ("kvm_mmio", "val") => |data| match data {
            Data::KvmMmio(mmio) => Some(mmio.value),
            _ => None,
        },
        ("kvm_mmio", "len") => |data| match data {
            Data::KvmMmio(mmio) => Some(u64::from(mmio.len)),
            _ => None,
        },
        ("kvm_pio", "write") => |data| match data {
            Data::KvmPio(pio) => Some(u64::from(pio.write)),
            _ => None,
        },
        ("kvm_pio", "address" | "port") => |data| match data {
            Data::KvmPio(pio) => Some(u64::from(pio.port)),
            _ => None,
        },
        ("kvm_msr", "write") => |data| match data {
            Data::KvmMsr(msr) => Some(u64::from(msr.write)),
            _ => None,
        },
        ("kvm_msr", "address" | "ecx" | "msr") => |data| match data {
            Data::KvmMsr(msr) => Some(u64::from(msr.msr)),
            _ => None,
        },
        ("kvm_fpu", "load") => |data| match data {
            Data::KvmFpu { load } => Some(u64::from(*load)),
            _ => None,
        },
        ("kvm_vcpu_wakeup", "waited") => |data| match data {
            Data::KvmVcpuWakeup(wakeup) => Some(u64::from(wakeup.waited)),
            _ => None,
        },
        ("kvm_vcpu_wakeup", "ns") => |data| match data {
            Data::KvmVcpuWakeup(wakeup) => Some(wakeup.halted_ns),
            _ => None,
        },
        ("kvm_entry" | "kvm_exit", "vcpu" | "vcpu_id") => |data| match data {
            Data::KvmEntry(entry) => entry.vcpu.map(u64::from),
            Data::KvmExit(exit) => exit.vcpu.map(u64::from),
            _ => None,
        },
        ("sched_switch", "next_pid") => |data| match data {
            Data::SchedSwitch(switch) => Some(switch.next_tid as u32 as u64),
            _ => None,
        },
        ("sched_switch", "prev_pid") => |data| match data {
            Data::SchedSwitch(switch) => Some(switch.prev_tid as u32 as u64),
            _ => None,
        },
        ("sched_waking" | "sched_wakeup" | "sched_wakeup_new", "pid") => |data| match data {
            Data::SchedWaking(wakeup) | Data::SchedWakeup(wakeup) => Some(wakeup.tid as u32 as u64),
            _ => None,
        },
        _ => return None,
    })
}

/// Returns what stands behind a word: `name=value`, `name value` or `name: value`; a number, or the text up to the next
/// separator.
fn behind<'e>(text: &'e str, label: &str, radix: Radix) -> Option<Val<'e>> {
    let bytes = text.as_bytes();
    let wordy = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find(label)?;
        let end = at + label.len();
        let before = at.checked_sub(1).map(|at| bytes[at]);
        let after = bytes.get(end).copied();
        let ended = label.ends_with([':', '=']);
        let fits = before.is_none_or(|b| !wordy(b))
            && (ended || after.is_some_and(|b| matches!(b, b' ' | b'=' | b':')));
        if fits {
            let rest = text[end..].trim_start_matches([' ', '=', ':']);
            return Some(read(rest, radix));
        }
        from = end;
        if from >= text.len() || !text.is_char_boundary(from) {
            return None;
        }
    }
}

fn read(rest: &str, radix: Radix) -> Val<'_> {
    let end = rest
        .find(|c: char| c.is_whitespace() || matches!(c, ',' | ')' | '('))
        .unwrap_or(rest.len());
    let word = &rest[..end];
    let hex = word.strip_prefix("0x");
    let number = match (hex, radix) {
        (Some(hex), _) => u64::from_str_radix(hex, 16).ok(),
        (None, Radix::Hex) => u64::from_str_radix(word, 16).ok(),
        (None, Radix::Any) => word
            .parse()
            .ok()
            .or_else(|| word.parse::<i64>().ok().map(|n| n as u64)),
    };
    match number {
        Some(number) => Val::Number(number),
        // A name may have spaces in it: the next field ends it.
        None => Val::Text(name_before_field(rest).into()),
    }
}

/// Returns the text up to the next ` word=`.
fn name_before_field(rest: &str) -> &str {
    let Some(equals) = rest.find('=') else {
        return rest.split([',', ')']).next().unwrap_or(rest).trim_end();
    };
    match rest[..equals].rfind(' ') {
        Some(space) => rest[..space].trim_end(),
        None => rest[..equals].trim_end(),
    }
}

/// Delivery modes as they are printed (`arch/x86/kvm/trace.h`, `kvm_deliver_mode`).
fn mode(text: &str) -> Option<u64> {
    const MODES: [&str; 8] = [
        "Fixed", "LowPrio", "SMI", "Res3", "NMI", "INIT", "SIPI", "ExtINT",
    ];
    let word = text.split_once('(')?.1.split(['|', ')']).next()?;
    MODES
        .iter()
        .position(|mode| *mode == word)
        .map(|at| at as u64)
}

/// libtraceevent cannot parse the event's print format, and prints all fields by name.
fn sysreg(text: &str) -> Option<u64> {
    if text.contains("Op0=") {
        return ["Op0", "Op1", "CRn", "CRm", "Op2"].iter().try_fold(
            0u64,
            |sum, name| match behind(text, name, Radix::Any)? {
                Val::Number(number) => Some(sum * 100 + (number & 0xff)),
                Val::Text(_) => None,
            },
        );
    }
    let inside = text.split_once('(')?.1.split_once(')')?.0;
    let mut numbers = inside.split(',');
    let mut sum = 0u64;
    for _ in 0..5 {
        let number: u64 = numbers.next()?.trim().parse().ok()?;
        sum = sum * 100 + (number & 0xff);
    }
    numbers.next().is_none().then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_all_printed_styles() {
        let number = |text, label, radix| match behind(text, label, radix) {
            Some(Val::Number(number)) => Some(number),
            _ => None,
        };
        let accept = "apicid 1a vec 36 (Fixed|edge)";
        assert_eq!(number(accept, "apicid", Radix::Hex), Some(0x1a));
        assert_eq!(number(accept, "vec", Radix::Any), Some(36));
        assert_eq!(mode(accept), Some(0));
        assert_eq!(number("IRQ 0x24", "IRQ", Radix::Hex), Some(0x24));
        let vgic = "VCPU: 0, IRQ 77, level: 1";
        assert_eq!(number(vgic, "IRQ", Radix::Any), Some(77));
        assert_eq!(number(vgic, "level:", Radix::Any), Some(1));
        let probe = "(ffffffffc057ad40) skb=0xffff888102f8f800 len=98";
        assert_eq!(number(probe, "len", Radix::Any), Some(98));
        assert_eq!(number(probe, "en", Radix::Any), None);
        let line = "Inject VGIC SPI interrupt (1), vcpu->idx: 0, num: 77, level: 1";
        assert_eq!(number(line, "num:", Radix::Any), Some(77));
        let sys = "PC: ffffb72f0d5fca40 ffffac60ee3efe10 (3,0,12,11,5) write";
        assert_eq!(sysreg(sys), Some(300_121_105));
        let unparsed = "[FAILED TO PARSE] vcpu_pc=0xff is_write=1 Op0=3 Op1=0 CRn=12 CRm=11 Op2=5";
        assert_eq!(sysreg(unparsed), Some(300_121_105));
        assert_eq!(
            behind("comm=CPU 0/KVM pid=7 prio=120", "comm", Radix::Any),
            Some(Val::Text("CPU 0/KVM".into()))
        );
    }
}
