//! A vCPU is about to enter the guest.

use super::exit_text::{powerpc_vcpu, s390_prefix, take_number};
use crate::Isa;
use crate::define::{ParsedText, TextForm, event};
use crate::record::low32;
use crate::text::{self, TextFields, TextWords};
use crate::text_reasons::TextReasons;

event! {
    /// `kvm:kvm_entry`: a vCPU is about to enter the guest.
    KvmEntry at EntryPlaces {
        /// The vCPU's number; arm64 does not record it.
        vcpu: Option<u32> = "vcpu_id" | "id" | "vcpu" or None,
        /// Where the guest goes on, if recorded.
        guest_pc: Option<u64> = "rip" | "vcpu_pc" | "sepc" | "pc" or None,
    }
    text: TextForm::Parts(parse)
}

fn entry(vcpu: Option<u32>, guest_pc: Option<u64>) -> Option<ParsedText<KvmEntry>> {
    Some(ParsedText {
        event: KvmEntry { vcpu, guest_pc },
        complete: guest_pc.is_some(),
        found: u8::from(vcpu.is_some()) + u8::from(guest_pc.is_some()),
    })
}

/// Reads what they print for an entry, `vcpu 1, rip 0x...`.
#[inline]
fn usual_entry(text: &[u8]) -> Option<(u32, u64)> {
    let (vcpu, rest) = take_number(text.strip_prefix(b"vcpu ")?)?;
    Some((vcpu, text::hex(rest.strip_prefix(b", rip 0x")?)?))
}

fn parse(text: &[u8], reasons: &mut TextReasons) -> Option<ParsedText<KvmEntry>> {
    if let Some((vcpu, pc)) = usual_entry(text) {
        return entry(Some(vcpu), Some(pc));
    }
    let mut vcpu: Option<u32> = None;
    let mut pc = None;
    let mut words = TextWords::new(text);
    while let Some(word) = words.next() {
        match word {
            b"vcpu" => vcpu = words.number(),
            b"rip" => {
                pc = words.hex();
                break;
            }
            b"PC:" => {
                pc = pc_of(words.next().unwrap_or_default(), reasons.isa);
                break;
            }
            b"VCPU" => {
                vcpu = powerpc_vcpu(text);
                pc = TextFields(text).hex(b"pc");
                break;
            }
            b"entering" => {
                (vcpu, pc) = s390_prefix(text);
                break;
            }
            _ if memchr::memchr(b'=', word).is_some() => {
                let fields = TextFields(text);
                vcpu = [&b"vcpu_id"[..], b"id"]
                    .iter()
                    .find_map(|f| fields.number(f))
                    .map(low32);
                pc = [&b"rip"[..], b"vcpu_pc", b"pc"]
                    .iter()
                    .find_map(|f| fields.hex(f));
                break;
            }
            _ => {}
        }
    }
    // Kernels before 5.7 print only the vCPU.
    if vcpu.is_some() || pc.is_some() {
        entry(vcpu, pc)
    } else {
        None
    }
}

/// RISC-V kernels print `0x016` and then the address: their format string misplaces the percent sign.
fn pc_of(word: &[u8], isa: Option<Isa>) -> Option<u64> {
    if let Some(digits) = word.strip_prefix(b"0x016") {
        // Arm pads to sixteen digits, or eight.
        let padded = matches!(digits.len(), 5 | 13) && isa != Some(Isa::Riscv);
        if isa != Some(Isa::Arm64) && !padded && !digits.is_empty() {
            return text::hex(digits);
        }
    }
    text::hex(word).filter(|_| word.starts_with(b"0x"))
}
