//! Accesses of the guest that KVM emulates: memory, ports, registers.

use tracefmt::{Endian, FormatField};

use super::exit_text::take_number;
use crate::define::{ParsedText, TextForm, event};
use crate::record::{FieldLoad, FieldType, low16, low32, number};
use crate::text::{self, TextFields, TextWords, take_hex};

/// What `kvm:kvm_mmio` says of an access (`include/trace/events/kvm.h`, `KVM_TRACE_MMIO_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MmioAccess {
    /// 0: a read that nothing in the kernel answers; it goes to user space, and a second event follows with
    /// the value.
    ReadUnsatisfied,
    /// 1: a read with its value.
    Read,
    /// 2: a write.
    Write,
    /// Another number: kernels newer than this table.
    Unknown(u32),
}

impl MmioAccess {
    /// Returns the access with this number.
    pub fn from_number(number: u64) -> MmioAccess {
        match number {
            0 => MmioAccess::ReadUnsatisfied,
            1 => MmioAccess::Read,
            2 => MmioAccess::Write,
            n => MmioAccess::Unknown(low32(n)),
        }
    }

    /// Returns its number.
    pub fn to_number(self) -> u64 {
        match self {
            MmioAccess::ReadUnsatisfied => 0,
            MmioAccess::Read => 1,
            MmioAccess::Write => 2,
            MmioAccess::Unknown(number) => number.into(),
        }
    }
}

number!(
    MmioAccess,
    true,
    MmioAccess::from_number,
    MmioAccess::to_number
);

event! {
    /// `kvm:kvm_mmio`.
    KvmMmio at MmioPlaces {
        /// Read or write.
        access: MmioAccess = "type",
        /// Guest physical address.
        gpa: u64 = "gpa" | "address",
        /// Bytes accessed.
        len: u32 = "len" or 0,
        /// The value, as recorded.
        value: u64 = "val" or 0,
    }
    text: TextForm::Parts(|text, _| mmio(text)),
    also "write" = |mmio| Some(u64::from(mmio.access == MmioAccess::Write))
}

event! {
    /// `kvm:kvm_pio`.
    KvmPio at PioPlaces {
        /// Whether the guest wrote (`OUT`).
        write: bool = "rw" | "write",
        /// I/O port.
        port: u16 = "port" | "address",
        /// Bytes of one access.
        size: u32 = "size" or 0,
        /// Accesses (string instructions repeat).
        count: u32 = "count" or 1,
        /// The value of the first of them; kernels before 3.16 do not record it.
        value: Option<u32> = "val" or None,
    }
    text: TextForm::Parts(|text, _| pio(text))
}

event! {
    /// `kvm:kvm_msr`.
    KvmMsr at MsrPlaces {
        /// Whether the guest wrote (`WRMSR`).
        write: bool = "write",
        /// Register number, what the guest had in ECX.
        msr: u32 = "ecx" | "msr" | "address",
        /// The value read or written.
        value: u64 = "data" or 0,
        /// Whether KVM answered with a general protection fault.
        exception: bool = "exception" or false,
    }
    text: TextForm::Parts(|text, _| msr(text))
}

/// Counts what was found.
fn found(fields: &[bool]) -> u8 {
    fields.iter().map(|found| u8::from(*found)).sum()
}

/// Reads what kernels print, `mmio read len 4 gpa 0xfed000f0 val 0x0`.
#[inline]
fn usual_mmio(text: &[u8]) -> Option<KvmMmio> {
    let rest = text.strip_prefix(b"mmio ")?;
    let (access, rest) = match rest {
        [b'u', ..] => (
            MmioAccess::ReadUnsatisfied,
            rest.strip_prefix(b"unsatisfied-read")?,
        ),
        [b'r', ..] => (MmioAccess::Read, rest.strip_prefix(b"read")?),
        _ => (MmioAccess::Write, rest.strip_prefix(b"write")?),
    };
    let (len, rest) = take_number(rest.strip_prefix(b" len ")?)?;
    let (gpa, rest) = take_hex(rest.strip_prefix(b" gpa 0x")?)?;
    let (value, rest) = take_hex(rest.strip_prefix(b" val 0x")?)?;
    rest.is_empty().then_some(KvmMmio {
        access,
        gpa,
        len,
        value,
    })
}

fn mmio(text: &[u8]) -> Option<ParsedText<KvmMmio>> {
    if let Some(event) = usual_mmio(text) {
        return Some(ParsedText {
            event,
            complete: true,
            found: 4,
        });
    }
    let mut access = None;
    let mut len = None;
    let mut gpa = None;
    let mut value = None;
    let mut words = TextWords::new(text);
    while let Some(word) = words.next() {
        match word {
            b"unsatisfied-read" => access = Some(MmioAccess::ReadUnsatisfied),
            b"read" => access = Some(MmioAccess::Read),
            b"write" => access = Some(MmioAccess::Write),
            b"len" => len = words.number(),
            b"gpa" => gpa = words.hex(),
            b"val" => value = words.hex(),
            // A number the kernel had no word for.
            _ if word.starts_with(b"0x") && access.is_none() => {
                access = text::hex(word).map(MmioAccess::from_number);
            }
            _ if memchr::memchr(b'=', word).is_some() => {
                let fields = TextFields(text);
                access = fields.number(b"type").map(MmioAccess::from_number);
                len = fields.number(b"len").map(low32);
                gpa = fields.number(b"gpa");
                value = fields.number(b"val");
                break;
            }
            _ => {}
        }
    }
    Some(ParsedText {
        event: KvmMmio {
            access: access?,
            gpa: gpa?,
            len: len.unwrap_or(0),
            value: value.unwrap_or(0),
        },
        complete: value.is_some() && len.is_some(),
        found: 2 + found(&[value.is_some(), len.is_some()]),
    })
}

/// Reads what kernels print, `pio_write at 0x608 size 4 count 1 val 0x0`.
#[inline]
fn usual_pio(text: &[u8]) -> Option<KvmPio> {
    let rest = text.strip_prefix(b"pio_")?;
    let (write, rest) = match rest {
        [b'r', ..] => (false, rest.strip_prefix(b"read")?),
        _ => (true, rest.strip_prefix(b"write")?),
    };
    let (port, rest) = take_hex(rest.strip_prefix(b" at 0x")?)?;
    let (size, rest) = take_number(rest.strip_prefix(b" size ")?)?;
    let (count, rest) = take_number(rest.strip_prefix(b" count ")?)?;
    let (value, rest) = take_hex(rest.strip_prefix(b" val 0x")?)?;
    // `(...)` follows where there are more values.
    matches!(rest, [] | [b' ', ..]).then_some(KvmPio {
        write,
        port: low16(port),
        size,
        count,
        value: Some(low32(value)),
    })
}

fn pio(text: &[u8]) -> Option<ParsedText<KvmPio>> {
    if let Some(event) = usual_pio(text) {
        return Some(ParsedText {
            event,
            complete: true,
            found: 5,
        });
    }
    let mut write = None;
    let mut port = None;
    let mut size = None;
    let mut count = None;
    let mut value = None;
    let mut fields_named = false;
    let mut words = TextWords::new(text);
    while let Some(word) = words.next() {
        match word {
            b"pio_read" => write = Some(false),
            b"pio_write" => write = Some(true),
            b"at" => port = words.hex(),
            b"size" => size = words.number(),
            b"count" => count = words.number(),
            b"val" => {
                value = words.hex();
                break;
            }
            _ if memchr::memchr(b'=', word).is_some() => {
                let fields = TextFields(text);
                write = fields.number(b"rw").map(|rw| rw != 0);
                port = fields.number(b"port");
                size = fields.number(b"size").map(low32);
                count = fields.number(b"count").map(low32);
                value = fields.number(b"val");
                fields_named = true;
                break;
            }
            _ => {}
        }
    }
    // A kernel that records no value has none among its fields.
    let has_value = value.is_some() || fields_named;
    Some(ParsedText {
        event: KvmPio {
            write: write?,
            port: low16(port?),
            size: size.unwrap_or(0),
            count: count.unwrap_or(1),
            value: value.map(low32),
        },
        complete: has_value && size.is_some() && count.is_some(),
        found: 2 + found(&[has_value, size.is_some(), count.is_some()]),
    })
}

/// Reads what kernels print, `msr_write 6e0 = 0x1f`.
#[inline]
fn usual_msr(text: &[u8]) -> Option<KvmMsr> {
    let rest = text.strip_prefix(b"msr_")?;
    let (write, rest) = match rest {
        [b'r', ..] => (false, rest.strip_prefix(b"read ")?),
        _ => (true, rest.strip_prefix(b"write ")?),
    };
    let (msr, rest) = take_hex(rest)?;
    let (value, rest) = take_hex(rest.strip_prefix(b" = 0x")?)?;
    rest.is_empty().then_some(KvmMsr {
        write,
        msr: u32::try_from(msr).ok()?,
        value,
        exception: false,
    })
}

fn msr(text: &[u8]) -> Option<ParsedText<KvmMsr>> {
    if let Some(event) = usual_msr(text) {
        return Some(ParsedText {
            event,
            complete: true,
            found: 2,
        });
    }
    let mut words = TextWords::new(text);
    while let Some(word) = words.next() {
        let write = match word {
            b"msr_read" => false,
            b"msr_write" => true,
            _ if memchr::memchr(b'=', word).is_some() => return raw_msr(text),
            _ => continue,
        };
        // The register stands without `0x`.
        let msr = u32::try_from(text::hex(words.next()?)?).ok()?;
        let value = match words.next() {
            Some(b"=") => words.hex(),
            _ => None,
        };
        let event = KvmMsr {
            write,
            msr,
            value: value.unwrap_or(0),
            exception: memchr::memmem::find(text, b"(#GP)").is_some(),
        };
        return Some(ParsedText {
            event,
            complete: value.is_some(),
            found: 1 + found(&[value.is_some()]),
        });
    }
    None
}

fn raw_msr(text: &[u8]) -> Option<ParsedText<KvmMsr>> {
    let fields = TextFields(text);
    let write = fields.number(b"write")? != 0;
    // libtraceevent prints raw fields with the conversions of the print format, `%x` for the register, since
    // 1.1; before that in decimal, and then the value has no `0x` either.
    let value = fields.get(b"data");
    let register = fields.get(b"ecx")?;
    let hexadecimal = value.is_some_and(|v| v.starts_with(b"0x"))
        || register.iter().any(|b| b.is_ascii_alphabetic());
    let msr = if hexadecimal && fields.in_one_base(b"ecx") {
        text::hex(register)?
    } else {
        text::number(register)?
    };
    let value = fields.number(b"data");
    let event = KvmMsr {
        write,
        msr: u32::try_from(msr).ok()?,
        value: value.unwrap_or(0),
        exception: fields.number(b"exception").is_some_and(|e| e != 0),
    };
    Some(ParsedText {
        event,
        complete: value.is_some(),
        found: 1 + found(&[value.is_some()]),
    })
}
