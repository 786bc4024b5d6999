//! What KVM's events say, read from their texts.
//!
//! Three wordings are read: the kernel's print formats, old and new; those of trace-cmd's kvm plugin; and
//! fields as `name=value`, which `trace-cmd report -R` prints and everything prints whose format libtraceevent
//! cannot parse. Words are searched, not counted off, so that what versions add or drop between them does
//! not matter.

mod access;
mod exit;
mod words;

use event::{Data, ExitReason, Isa, Kind, KvmEntry, KvmExit};

use crate::scan;
use words::{Fields, Words};

/// What was read from an event's text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub data: Data,
    /// Whether nothing that the event always says is missing.
    pub complete: bool,
    /// How many of its numbers were found.
    pub found: u8,
}

/// Counts what was found.
fn found(fields: &[bool]) -> u8 {
    fields.iter().filter(|f| **f).count() as u8
}

impl Reading {
    const NONE: Reading = Reading {
        data: Data::Other,
        complete: false,
        found: 0,
    };

    fn entry(vcpu: Option<u32>, guest_pc: Option<u64>) -> Option<Reading> {
        Some(Reading {
            data: Data::KvmEntry(KvmEntry { vcpu, guest_pc }),
            complete: guest_pc.is_some(),
            found: found(&[vcpu.is_some(), guest_pc.is_some()]),
        })
    }

    fn exit(reason: ExitReason, vcpu: Option<u32>, guest_pc: Option<u64>) -> Option<Reading> {
        Some(Reading {
            data: Data::KvmExit(KvmExit {
                reason,
                vcpu,
                guest_pc,
            }),
            complete: guest_pc.is_some(),
            // A name that no table has may be one that a terminal broke.
            found: found(&[!reason.is_told(), vcpu.is_some(), guest_pc.is_some()]),
        })
    }
}

/// Reads a number and drops it from the text.
#[inline]
fn take_number(text: &[u8]) -> Option<(u32, &[u8])> {
    let len = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(len);
    Some((u32::try_from(scan::decimal(digits)?).ok()?, rest))
}

/// Reads what they print for an entry, `vcpu 1, rip 0x...`.
#[inline]
fn usual_entry(text: &[u8]) -> Option<(u32, u64)> {
    let (vcpu, rest) = take_number(text.strip_prefix(b"vcpu ")?)?;
    Some((vcpu, scan::hex(rest.strip_prefix(b", rip 0x")?)?))
}

/// Reads KVM's events of one text. Texts do not always say whose exit reasons they print, so the instruction
/// set of earlier lines is kept.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    isa: Option<Isa>,
    /// Reasons looked up lately, by a hash of their names.
    recent: Vec<Option<exit::Known>>,
}

impl Reader {
    /// Returns the instruction set, as far as the text told.
    pub(crate) fn isa(&self) -> Option<Isa> {
        self.isa
    }

    /// Takes the instruction set from something other than an event, such as perf's header.
    pub(crate) fn set_isa(&mut self, isa: Isa) {
        self.isa = Some(isa);
    }

    /// Reads the text of an event of this kind.
    #[inline]
    pub(crate) fn read(&mut self, kind: Kind, text: &[u8]) -> Reading {
        let text = without_complaints(text);
        let read = match kind {
            Kind::KvmExit => self.exit(text),
            Kind::KvmEntry => self.entry(text),
            Kind::KvmMmio => access::mmio(text),
            Kind::KvmPio => access::pio(text),
            Kind::KvmMsr => access::msr(text),
            _ => {
                return Reading {
                    data: Data::Other,
                    complete: true,
                    found: 0,
                };
            }
        };
        read.unwrap_or(Reading::NONE)
    }

    fn entry(&mut self, text: &[u8]) -> Option<Reading> {
        if let Some((vcpu, pc)) = usual_entry(text) {
            return Reading::entry(Some(vcpu), Some(pc));
        }
        let mut vcpu: Option<u32> = None;
        let mut pc = None;
        let mut words = Words::new(text);
        while let Some(word) = words.next() {
            match word {
                b"vcpu" => vcpu = words.number(),
                b"rip" => {
                    pc = words.hex();
                    break;
                }
                b"PC:" => {
                    pc = self.entry_pc(words.next().unwrap_or_default());
                    break;
                }
                b"VCPU" => {
                    vcpu = powerpc_vcpu(text);
                    pc = Fields(text).hex(b"pc");
                    break;
                }
                b"entering" => {
                    (vcpu, pc) = s390_prefix(text);
                    break;
                }
                _ if memchr::memchr(b'=', word).is_some() => {
                    let fields = Fields(text);
                    vcpu = [&b"vcpu_id"[..], b"id"]
                        .iter()
                        .find_map(|f| fields.number(f))
                        .map(|v| v as u32);
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
            Reading::entry(vcpu, pc)
        } else {
            None
        }
    }

    /// RISC-V kernels print `0x016` and then the address: their format string misplaces the percent sign.
    fn entry_pc(&self, word: &[u8]) -> Option<u64> {
        if let Some(digits) = word.strip_prefix(b"0x016") {
            // Arm pads to sixteen digits, or eight.
            let padded = matches!(digits.len(), 5 | 13) && self.isa != Some(Isa::Riscv);
            if self.isa != Some(Isa::Arm64) && !padded && !digits.is_empty() {
                return scan::hex(digits);
            }
        }
        scan::hex(word).filter(|_| word.starts_with(b"0x"))
    }
}

/// Drops what trace-cmd's plugin and libtraceevent put before the fields they could not print.
fn without_complaints(text: &[u8]) -> &[u8] {
    let start = match text.first() {
        // `<CANT FIND FIELD exit_reason>TRAP: ...`, `CAN'T FIND FIELD "vcpu_id"<CANT FIND FIELD rip>PC: ...`.
        Some(b'<' | b'C') => {
            memchr::memrchr(b'>', &text[..text.len().min(160)]).map_or(0, |at| at + 1)
        }
        Some(b'[') if text.starts_with(b"[FAILED TO PARSE]") => 17,
        _ => 0,
    };
    &text[start..]
}

fn s390_prefix(text: &[u8]) -> (Option<u32>, Option<u64>) {
    let read = || {
        let open = memchr::memchr(b'[', text)?;
        let vcpu = u32::try_from(scan::decimal(scan::trim(&text[..open]))?).ok();
        let dash = open + memchr::memchr(b'-', &text[open..])?;
        Some((vcpu, scan::hex(&text[dash + 1..])))
    };
    read().unwrap_or((None, None))
}

fn powerpc_vcpu(text: &[u8]) -> Option<u32> {
    let number = text.strip_prefix(b"VCPU ")?;
    u32::try_from(scan::number(number)?).ok()
}
