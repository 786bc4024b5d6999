//! Accesses of the guest that KVM emulates: memory, ports, registers.

use event::{Data, KvmMmio, KvmMsr, KvmPio, MmioAccess};

use super::words::{Fields, Words};
use super::{Reading, found};
use crate::scan;

pub(super) fn mmio(text: &[u8]) -> Option<Reading> {
    let mut access = None;
    let mut len = None;
    let mut gpa = None;
    let mut value = None;
    let mut words = Words::new(text);
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
                access = scan::hex(word).map(MmioAccess::from_number);
            }
            _ if memchr::memchr(b'=', word).is_some() => {
                let fields = Fields(text);
                access = fields.number(b"type").map(MmioAccess::from_number);
                len = fields.number(b"len").map(|n| n as u32);
                gpa = fields.number(b"gpa");
                value = fields.number(b"val");
                break;
            }
            _ => {}
        }
    }
    Some(Reading {
        data: Data::KvmMmio(KvmMmio {
            access: access?,
            gpa: gpa?,
            len: len.unwrap_or(0),
            value: value.unwrap_or(0),
        }),
        complete: value.is_some() && len.is_some(),
        found: 2 + found(&[value.is_some(), len.is_some()]),
    })
}

pub(super) fn pio(text: &[u8]) -> Option<Reading> {
    let mut write = None;
    let mut port = None;
    let mut size = None;
    let mut count = None;
    let mut value = None;
    let mut fields_named = false;
    let mut words = Words::new(text);
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
                let fields = Fields(text);
                write = fields.number(b"rw").map(|rw| rw != 0);
                port = fields.number(b"port");
                size = fields.number(b"size").map(|n| n as u32);
                count = fields.number(b"count").map(|n| n as u32);
                value = fields.number(b"val");
                fields_named = true;
                break;
            }
            _ => {}
        }
    }
    // A kernel that records no value has none among its fields.
    let has_value = value.is_some() || fields_named;
    Some(Reading {
        data: Data::KvmPio(KvmPio {
            write: write?,
            port: port? as u16,
            size: size.unwrap_or(0),
            count: count.unwrap_or(1),
            value: value.map(|value| value as u32),
        }),
        complete: has_value && size.is_some() && count.is_some(),
        found: 2 + found(&[has_value, size.is_some(), count.is_some()]),
    })
}

pub(super) fn msr(text: &[u8]) -> Option<Reading> {
    let mut words = Words::new(text);
    while let Some(word) = words.next() {
        let write = match word {
            b"msr_read" => false,
            b"msr_write" => true,
            _ if memchr::memchr(b'=', word).is_some() => return raw_msr(text),
            _ => continue,
        };
        // The register stands without `0x`.
        let msr = u32::try_from(scan::hex(words.next()?)?).ok()?;
        let value = match words.next() {
            Some(b"=") => words.hex(),
            _ => None,
        };
        let data = Data::KvmMsr(KvmMsr {
            write,
            msr,
            value: value.unwrap_or(0),
            exception: scan::contains(text, b"(#GP)"),
        });
        return Some(Reading {
            data,
            complete: value.is_some(),
            found: 1 + found(&[value.is_some()]),
        });
    }
    None
}

fn raw_msr(text: &[u8]) -> Option<Reading> {
    let fields = Fields(text);
    let write = fields.number(b"write")? != 0;
    // libtraceevent prints raw fields with the conversions of the print format, `%x` for the register, since
    // 1.1; before that in decimal, and then the value has no `0x` either.
    let value = fields.get(b"data");
    let register = fields.get(b"ecx")?;
    let hexadecimal = value.is_some_and(|v| v.starts_with(b"0x"))
        || register.iter().any(|b| b.is_ascii_alphabetic());
    let msr = if hexadecimal && fields.in_one_base(b"ecx") {
        scan::hex(register)?
    } else {
        scan::number(register)?
    };
    let value = fields.number(b"data");
    let data = Data::KvmMsr(KvmMsr {
        write,
        msr: u32::try_from(msr).ok()?,
        value: value.unwrap_or(0),
        exception: fields.number(b"exception").is_some_and(|e| e != 0),
    });
    Some(Reading {
        data,
        complete: value.is_some(),
        found: 1 + found(&[value.is_some()]),
    })
}
