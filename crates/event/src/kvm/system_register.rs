//! Accesses of arm64's system registers that KVM emulates.

use std::fmt;

use crate::define::{ParsedText, TextForm, event};
use crate::record::low16;
use crate::text::TextFields;

event! {
    /// `kvm:kvm_sys_access` (`arch/arm64/kvm/trace_handle_exit.h`). The register's name is a pointer in records: its
    /// encoding is what is known of it.
    KvmSysAccess at SysAccessPlaces {
        /// Whether the guest wrote (`MSR`, not `MRS`).
        write: bool = "is_write",
        /// Op0 of the register's encoding.
        op0: u16 = "Op0",
        /// Op1.
        op1: u16 = "Op1",
        /// CRn.
        crn: u16 = "CRn",
        /// CRm.
        crm: u16 = "CRm",
        /// Op2.
        op2: u16 = "Op2",
    }
    text: TextForm::Parts(|text, _| system_register(text))
}

impl KvmSysAccess {
    /// Returns the register.
    pub fn register(&self) -> SystemRegister {
        let parts = [self.op0, self.op1, self.crn, self.crm, self.op2];
        // Each is less than 16 in the encoding of an instruction.
        let digits = parts.iter().map(|part| u32::from(part & 0xf));
        SystemRegister(digits.fold(0, |number, part| number * 100 + part))
    }
}

/// A system register of arm64 by its encoding, as a decimal number: op0, op1, CRn, CRm and op2, two digits each.
/// `ICC_SGI1R_EL1` is 300121105. No model specific register of x86 has such a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SystemRegister(u32);

impl SystemRegister {
    /// Returns the register of a number; `None` where it is none's.
    pub fn from_number(number: u32) -> Option<SystemRegister> {
        let [op0, op1, crn, crm, op2] = parts(number);
        let is_one = (2..=3).contains(&op0) && op1 < 8 && crn < 16 && crm < 16 && op2 < 8;
        is_one.then_some(SystemRegister(number))
    }

    /// Returns its number.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// Prints the name that assemblers take for any register: `S3_0_C12_C11_5`.
impl fmt::Display for SystemRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [op0, op1, crn, crm, op2] = parts(self.0);
        write!(f, "S{op0}_{op1}_C{crn}_C{crm}_{op2}")
    }
}

fn parts(number: u32) -> [u32; 5] {
    let part = |scale: u32| number / scale % 100;
    [
        number / 100_000_000,
        part(1_000_000),
        part(10_000),
        part(100),
        part(1),
    ]
}

/// Reads `PC: ffffffc0108a3b40 ICC_SGI1R_EL1 (3,0,12,11,5) write`, or the fields by name.
fn system_register(text: &[u8]) -> Option<ParsedText<KvmSysAccess>> {
    let named = TextFields(text);
    if let Some(event) = KvmSysAccess::from_fields(text).filter(|_| named.get(b"Op0").is_some()) {
        return Some(ParsedText {
            event,
            complete: true,
            found: 6,
        });
    }
    let open = memchr::memchr(b'(', text)?;
    let close = open + memchr::memchr(b')', &text[open..])?;
    let inside = std::str::from_utf8(&text[open + 1..close]).ok()?;
    let mut numbers = inside.split(',').map(|number| number.trim().parse().ok());
    let mut next = || numbers.next().flatten().map(low16);
    let behind = &text[close + 1..];
    let write = match behind.trim_ascii() {
        b"write" => true,
        b"read" => false,
        _ => return None,
    };
    let event = KvmSysAccess {
        write,
        op0: next()?,
        op1: next()?,
        crn: next()?,
        crm: next()?,
        op2: next()?,
    };
    Some(ParsedText {
        event,
        complete: true,
        found: 6,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, bool, u32)> {
        let event = system_register(text.as_bytes())?.event;
        let register = event.register();
        assert_eq!(
            SystemRegister::from_number(register.number()),
            Some(register)
        );
        Some((register.to_string(), event.write, register.number()))
    }

    #[test]
    fn registers_are_read_from_texts() {
        let sgi = Some(("S3_0_C12_C11_5".to_owned(), true, 300_121_105));
        assert_eq!(
            read("PC: ffffffc0108a3b40 ICC_SGI1R_EL1 (3,0,12,11,5) write"),
            sgi
        );
        let fields = "[FAILED TO PARSE] vcpu_pc=0xffffac20bcbfca40 is_write=1 name=0xffffa351fc9efe10 Op0=3 Op1=0 \
                      CRn=12 CRm=11 Op2=5";
        assert_eq!(read(fields), sgi);
        let timer = Some(("S3_3_C14_C2_1".to_owned(), false, 303_140_201));
        assert_eq!(read("PC: ffff800010b2 UNKN (3,3,14,2,1) read"), timer);
        assert_eq!(read("PC: ffff800010b2 UNKN (3,3,14,2) read"), None);
        assert_eq!(read("nothing of the kind"), None);
    }

    #[test]
    fn numbers_of_other_registers_are_none() {
        for msr in [0x10, 0x6e0, 0x830, 0x4000_0080, 0x4b56_4d00, 0xc000_0080] {
            assert_eq!(SystemRegister::from_number(msr), None, "{msr:#x}");
        }
    }
}
