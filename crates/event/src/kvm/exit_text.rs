//! Why vCPUs left their guests, in the wordings of each architecture.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::exit::of_msr_protocol;
use super::exit_detail::ExitQualification;
use crate::record::low32;
use crate::text::{self, TextFields, TextWords, take_hex};
use crate::text_reasons::{RECENT, ReasonName, TextReasons};
use crate::{ExitReason, Isa, reasons};

/// What the text of an exit says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExitText {
    pub reason: ExitReason,
    pub vcpu: Option<u32>,
    pub guest_pc: Option<u64>,
    /// What the processor recorded of it, where it says more than the reason.
    pub info: Option<ExitQualification>,
    /// Whether it says what the exit before it really was.
    pub inner: bool,
}

impl ExitText {
    fn new(reason: ExitReason, vcpu: Option<u32>, guest_pc: Option<u64>) -> Option<ExitText> {
        Some(ExitText {
            reason,
            vcpu,
            guest_pc,
            info: None,
            inner: false,
        })
    }

    fn inner(reason: ExitReason, vcpu: Option<u32>, guest_pc: Option<u64>) -> Option<ExitText> {
        let exit = ExitText::new(reason, vcpu, guest_pc)?;
        Some(ExitText {
            inner: true,
            ..exit
        })
    }
}

/// Reads a number and drops it from the text.
#[inline]
pub(super) fn take_number(text: &[u8]) -> Option<(u32, &[u8])> {
    let len = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(len);
    Some((u32::try_from(text::decimal(digits)?).ok()?, rest))
}

/// Reads the beginning of what x86 kernels since 5.11 print, `vcpu 1 reason NAME rip 0x...`.
#[inline]
fn usual_exit(text: &[u8]) -> Option<(u32, &[u8], u64, &[u8])> {
    let (vcpu, rest) = take_number(text.strip_prefix(b"vcpu ")?)?;
    let rest = rest.strip_prefix(b" reason ")?;
    let (name, rest) = rest.split_at(rest.iter().position(|b| *b == b' ')?);
    let (pc, rest) = take_hex(rest.strip_prefix(b" rip 0x")?)?;
    text::ends_number(rest).then_some((vcpu, name, pc, rest))
}

/// Letters of a number of 64 bits that the kernel pads with zeros: `0x%016llx`.
const DIGITS: usize = 18;

/// Reads a number that the kernel pads with zeros (`0x%016llx`), also in two pieces, as a terminal may have broken it.
/// Returns whether it has all its digits.
fn padded(words: &mut TextWords<'_>) -> Option<(u64, bool)> {
    let first = words.next()?;
    let behind = words.at;
    if let Some(second) = words.next()
        && first.len() + second.len() == DIGITS
        && let joined = [first, second].concat()
        && joined.starts_with(b"0x")
        && let Some(number) = text::hex(&joined)
    {
        return Some((number, true));
    }
    words.at = behind;
    let number = text::hex(first).filter(|_| first.starts_with(b"0x"))?;
    Some((number, first.len() == DIGITS))
}

/// Reads it where it says more than the reason.
#[inline]
fn exit_info_of(reason: ExitReason, text: &[u8]) -> Option<ExitQualification> {
    reason
        .has_detail()
        .then(|| usual_info(text).or_else(|| exit_info(text)))?
}

/// Reads a padded number that stands whole at the start of `text`, and drops it with the blank behind it.
#[inline]
fn take_padded(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.strip_prefix(b"0x")?;
    let (number, rest) = take_hex(digits)?;
    let whole = digits.len() - rest.len() == DIGITS - 2;
    Some((number, rest.strip_prefix(b" ").filter(|_| whole)?))
}

/// Reads both numbers as kernels print them behind the instruction pointer, ` info1 0x... info2 0x... intr_info `.
#[inline]
fn usual_info(text: &[u8]) -> Option<ExitQualification> {
    let (info1, rest) = take_padded(text.strip_prefix(b" info1 ")?)?;
    let (info2, rest) = take_padded(rest.strip_prefix(b"info2 ")?)?;
    // Nothing that may be a piece of the number.
    rest.starts_with(b"intr_info ")
        .then_some(ExitQualification {
            info1,
            info2: Some(info2),
        })
}

/// Reads what the processor recorded of an exit: `info1 0x0000000006080003 info2 0x...`, in kernels before 5.10 and of
/// trace-cmd's plugin `info 6080003 0` (`trace_kvm_exit` in `arch/x86/kvm/trace.h`; `plugin_kvm.c` of
/// libtraceevent). A number that a cut line may have broken is none.
fn exit_info(text: &[u8]) -> Option<ExitQualification> {
    let mut words = TextWords::new(text);
    while let Some(word) = words.next() {
        match word {
            b"info1" => return padded_info(&mut words),
            b"info" => {
                let first = words.next()?;
                let behind = words.at;
                let second = words.next()?;
                // `info` and `1 0x0000000006080003`.
                if second.starts_with(b"0x") {
                    words.at = behind;
                    return (first == b"1").then(|| padded_info(&mut words))?;
                }
                // One more number is a piece of one that was broken, and the last one may be a piece too.
                let pieces = words.next().is_some_and(|word| text::hex(word).is_some());
                let info1 = text::hex(first).filter(|_| !pieces && text::hex(second).is_some())?;
                return Some(ExitQualification { info1, info2: None });
            }
            _ => {}
        }
    }
    None
}

/// Reads both numbers behind `info1`.
fn padded_info(words: &mut TextWords<'_>) -> Option<ExitQualification> {
    let (info1, _) = padded(words)?;
    let name = words.next()?;
    if name != b"info2" && (name != b"info" || words.next()? != b"2") {
        return None;
    }
    let second = padded(words);
    // It has all its digits, or something behind it.
    let second = second.filter(|(_, whole)| *whole || words.next().is_some());
    Some(ExitQualification {
        info1,
        info2: second.map(|(info2, _)| info2),
    })
}

impl TextReasons {
    /// Reads the text of an exit.
    pub(super) fn exit(&mut self, text: &[u8]) -> Option<ExitText> {
        if let Some((vcpu, name, pc, rest)) = usual_exit(text) {
            let reason = self.x86_reason(name, true)?;
            self.isa = Some(reason.isa);
            return Some(ExitText {
                reason,
                vcpu: Some(vcpu),
                guest_pc: Some(pc),
                info: exit_info_of(reason, rest),
                inner: false,
            });
        }
        let mut vcpu = None;
        let mut words = TextWords::new(text);
        while let Some(word) = words.next() {
            match word {
                b"vcpu" => vcpu = words.number(),
                b"reason" => {
                    let start = words.at;
                    // The reason may have several words: `PF excp`, `EPT_MISCONFIG FAILED_VMENTRY`.
                    let mut pc = None;
                    let mut end = text.len();
                    while let Some(word) = words.next() {
                        if word == b"rip" {
                            end = words.at - 3;
                            pc = words.hex();
                            break;
                        }
                    }
                    let name = trim(text.get(start..end)?);
                    let reason = self.x86_reason(name, pc.is_some())?;
                    self.isa = Some(reason.isa);
                    let exit = ExitText::new(reason, vcpu, pc)?;
                    return Some(ExitText {
                        info: exit_info_of(reason, text.get(words.at..)?),
                        ..exit
                    });
                }
                b"HSR_EC:" | b"ESR_EC:" => return self.arm64(text),
                b"exit_reason" => {
                    let number = text::hex(words.next()?)?;
                    self.isa = Some(Isa::Svm);
                    return ExitText::inner(ExitReason::of_number(Isa::Svm, number), vcpu, None);
                }
                b"ghcb_gpa" => {
                    let msr = text::hex(words.next()?)?;
                    self.isa = Some(Isa::Svm);
                    return ExitText::inner(of_msr_protocol(msr), vcpu, None);
                }
                b"rmp_level" => {
                    self.isa = Some(Isa::Svm);
                    return ExitText::inner(ExitReason::rmp_fault(), vcpu, None);
                }
                b"word:" | b"INST:" => {
                    let word = low32(words.hex()?);
                    self.isa = Some(Isa::Loongarch);
                    return ExitText::inner(ExitReason::loongarch_instruction(word), vcpu, None);
                }
                _ if word.starts_with(b"[") => return self.loongarch(text, vcpu),
                b"intercept" => return self.s390(text, &words),
                _ if word.starts_with(b"SEPC:") => return self.riscv(text),
                _ if word.starts_with(b"trap=") && text.starts_with(b"VCPU ") => {
                    return self.powerpc(text);
                }
                _ if memchr::memchr(b'=', word).is_some() => return self.raw_exit(text),
                _ => {}
            }
        }
        None
    }

    /// Returns the reason of an x86 exit from its name, or its number where no name was known. A name that no table has
    /// is a reason of its own where the line is `whole`; else it may be the beginning of a known one.
    fn x86_reason(&mut self, name: &[u8], whole: bool) -> Option<ExitReason> {
        let slot = slot_of(name);
        if let Some(Some(known)) = self.recent.get(slot)
            && known.name.get(..known.len as usize) == Some(name)
        {
            return Some(known.reason);
        }
        let text = std::str::from_utf8(name).ok()?;
        let (reason, certain) = match self.look_up(text) {
            Some(found) => found,
            None if whole && is_name(text) => (ExitReason::named(self.x86_isa(text), text), false),
            None => return None,
        };
        // A number is from the table of the lines before, which later lines may correct.
        if certain && name.len() <= 32 {
            let mut known = ReasonName {
                name: [0; 32],
                // At most 32, as was asked.
                len: u8::try_from(name.len()).unwrap_or(0),
                reason,
            };
            known.name[..name.len()].copy_from_slice(name);
            if self.recent.is_empty() {
                self.recent.resize(RECENT, None);
            }
            self.recent[slot] = Some(known);
        }
        Some(reason)
    }

    /// Returns whose reason an unknown name is: that of the lines before, else by the kernel's spelling of Intel's and
    /// AMD's.
    fn x86_isa(&self, name: &str) -> Isa {
        match self.isa {
            Some(isa @ (Isa::Vmx | Isa::Svm)) => isa,
            _ if name.contains(|c: char| c.is_ascii_lowercase()) => Isa::Svm,
            _ => Isa::Vmx,
        }
    }

    /// Returns the reason, and whether its name decided the table.
    fn look_up(&self, name: &str) -> Option<(ExitReason, bool)> {
        let numbered = |code: u64| {
            let isa = self.isa.filter(|i| matches!(i, Isa::Vmx | Isa::Svm));
            let code = u64::from(u32::try_from(code).ok()?);
            // VMX is the kernel's own assumption where a recording does not say (see `event::Decoder`).
            let reason = ExitReason::of_number(isa.unwrap_or(Isa::Vmx), code);
            Some((reason, false))
        };
        if let Some(reason) = ExitReason::from_name(None, name) {
            return Some((reason, true));
        }
        // trace-cmd's plugin: `UNKNOWN (131)`.
        if let Some(number) = name
            .strip_prefix("UNKNOWN (")
            .and_then(|n| n.strip_suffix(')'))
        {
            return numbered(number.parse().ok()?);
        }
        // A number with the beginning of the plugin's names of AMD's reasons.
        if let Some(number) = name
            .strip_prefix("EXIT_")
            .filter(|number| number.starts_with("0x"))
        {
            let code = u32::try_from(text::hex(number.as_bytes())?).ok()?;
            let reason = ExitReason {
                isa: Isa::Svm,
                code,
            };
            return Some((reason, true));
        }
        // The kernel prints numbers it has no name for in hexadecimal.
        if name.starts_with("0x") && !name.contains(' ') {
            return numbered(text::hex(name.as_bytes())?);
        }
        // Flags of VMX follow the reason.
        let (reason, flags) = name.split_once(' ')?;
        let base = match ExitReason::from_name(Some(Isa::Vmx), reason) {
            Some(reason) => u64::from(reason.code),
            None => text::hex(reason.as_bytes()).filter(|_| reason.starts_with("0x"))?,
        };
        let mut flags = flags.split([' ', '|']).filter(|f| !f.is_empty());
        let number = flags.try_fold(base, |number, flag| {
            let flag = match flag {
                "FAILED_VMENTRY" => reasons::VMX_FAILED_VMENTRY.into(),
                // Flags beside the reason, which make no other one.
                "SGX_ENCLAVE_MODE" | "ENCLAVE_MODE" | "BUS_LOCK_DETECTED" => 0,
                number => u64::from(u32::try_from(text::number(number.as_bytes())?).ok()?),
            };
            Some(number | flag)
        })?;
        Some((ExitReason::of_number(Isa::Vmx, number), true))
    }

    /// `TRAP: HSR_EC: 0x0024 (DABT_LOW), PC: 0x...` (`arch/arm64/kvm/trace_arm.h`). Kernels before 4.2 print
    /// no exception type: all their exits are traps.
    fn arm64(&mut self, text: &[u8]) -> Option<ExitText> {
        let mut ret = None;
        let mut class = None;
        let mut pc = None;
        let mut words = TextWords::new(text);
        while let Some(word) = words.next() {
            match word {
                b"HSR_EC:" | b"ESR_EC:" => class = words.hex(),
                b"PC:" => pc = words.hex(),
                _ if class.is_none() => ret = exception_type(word).or(ret),
                _ => {}
            }
        }
        let class = u32::try_from(class?).ok()?;
        let reason = ExitReason::arm64(ret.unwrap_or(reasons::ARM_EXCEPTION_TRAP), class);
        self.isa = Some(Isa::Arm64);
        ExitText::new(reason, None, pc)
    }

    /// `SEPC:0x..., SCAUSE:0x..., STVAL:...` (`arch/riscv/kvm/trace.h`).
    fn riscv(&mut self, text: &[u8]) -> Option<ExitText> {
        let (mut pc, mut cause, mut value) = (None, None, None);
        let mut words = TextWords::new(text);
        while let Some(word) = words.next() {
            let fields = [
                (&b"SEPC:"[..], &mut pc),
                (b"SCAUSE:", &mut cause),
                (b"STVAL:", &mut value),
            ];
            for (name, place) in fields {
                *place = match word.strip_prefix(name) {
                    Some([]) => words.hex(),
                    Some(digits) => text::hex(digits),
                    None => *place,
                };
            }
        }
        self.isa = Some(Isa::Riscv);
        ExitText::new(ExitReason::riscv(cause?, value), None, pc)
    }

    /// `vcpu 0 [0x1] PC: 0x...`, of kernels before 6.14 `[0x1]PC: 0x...`, and `[IDLE]` of an event that says what the
    /// exit before it was (`arch/loongarch/kvm/trace.h`).
    fn loongarch(&mut self, text: &[u8], vcpu: Option<u32>) -> Option<ExitText> {
        let open = memchr::memchr(b'[', text)?;
        let close = open + memchr::memchr(b']', text.get(open..)?)?;
        let what = trim(text.get(open + 1..close)?);
        let mut words = TextWords::new(text.get(close + 1..)?);
        let pc = match words.next() {
            Some(b"PC:") => words.hex(),
            _ => return None,
        };
        self.isa = Some(Isa::Loongarch);
        if what.starts_with(b"0x") {
            let reason = ExitReason::of_number(Isa::Loongarch, text::hex(what)?);
            return ExitText::new(reason, vcpu, pc);
        }
        let name = std::str::from_utf8(what).ok()?;
        let reason = match ExitReason::from_name(Some(Isa::Loongarch), name) {
            Some(reason) => reason,
            None if is_name(name) => ExitReason::named(Isa::Loongarch, name),
            None => return None,
        };
        ExitText::inner(reason, vcpu, pc)
    }

    /// `00[0705000180000000-000000000010ab32]: intercept Instruction` (`arch/s390/kvm/trace.h`): vCPU, program
    /// status word, interception.
    fn s390(&mut self, text: &[u8], words: &TextWords<'_>) -> Option<ExitText> {
        let name = trim(text.get(words.at..)?);
        let name = std::str::from_utf8(name).ok()?;
        let reason = match (
            ExitReason::from_name(Some(Isa::S390), name),
            name.strip_prefix("0x"),
        ) {
            (Some(reason), _) => reason,
            (None, Some(number)) => ExitReason {
                isa: Isa::S390,
                code: u32::try_from(text::hex(number.as_bytes())?).ok()?,
            },
            (None, None) if is_name(name) => ExitReason::named(Isa::S390, name),
            (None, None) => return None,
        };
        self.isa = Some(Isa::S390);
        let (vcpu, pc) = s390_prefix(text);
        ExitText::new(reason, vcpu, pc)
    }

    /// `VCPU 0: trap=EXTERNAL pc=0x... msr=0x..., ceded=0` (`arch/powerpc/kvm/trace_hv.h`).
    fn powerpc(&mut self, text: &[u8]) -> Option<ExitText> {
        let fields = TextFields(text);
        let name = fields.get(b"trap")?;
        let reason = std::str::from_utf8(name)
            .ok()
            .and_then(|name| ExitReason::from_name(Some(Isa::Powerpc), name));
        let pc = fields.hex(b"pc");
        let reason = match (reason, text::number(name)) {
            (Some(reason), _) => reason,
            (None, Some(code)) => ExitReason {
                isa: Isa::Powerpc,
                code: u32::try_from(code).ok()?,
            },
            (None, None) => {
                let name = std::str::from_utf8(name).ok()?;
                (pc.is_some() && is_name(name)).then(|| ExitReason::named(Isa::Powerpc, name))?
            }
        };
        self.isa = Some(Isa::Powerpc);
        ExitText::new(reason, powerpc_vcpu(text), pc)
    }

    /// The fields of any of them, in the order of the record.
    fn raw_exit(&mut self, text: &[u8]) -> Option<ExitText> {
        let fields = TextFields(text);
        let code = |name: &[u8]| fields.number(name).map(low32);
        let pc = [&b"guest_rip"[..], b"vcpu_pc", b"sepc", b"pc"]
            .iter()
            .find_map(|f| fields.hex(f));
        let mut inner = false;
        let reason = if let Some(number) = fields.number(b"exit_reason") {
            // What an SEV-ES guest asks for is recorded without the place in the guest.
            inner = pc.is_none() && fields.get(b"info1").is_some() && fields.get(b"isa").is_none();
            let isa = match fields.number(b"isa") {
                Some(1) => Isa::Vmx,
                Some(2) => Isa::Svm,
                _ if inner => Isa::Svm,
                _ => self.isa.unwrap_or(Isa::Vmx),
            };
            ExitReason::of_number(isa, number)
        } else if let Some(class) = code(b"esr_ec") {
            ExitReason::arm64(code(b"ret").unwrap_or(reasons::ARM_EXCEPTION_TRAP), class)
        } else if let Some(word) = code(b"inst_word") {
            inner = true;
            ExitReason::loongarch_instruction(word)
        } else if let Some(msr) = fields.hex(b"ghcb_gpa") {
            inner = true;
            of_msr_protocol(msr)
        } else if fields.get(b"rmp_level").is_some() {
            inner = true;
            ExitReason::rmp_fault()
        } else if let Some(scause) = fields.number(b"scause") {
            ExitReason::riscv(scause, fields.number(b"stval"))
        } else {
            let (isa, number) = (fields.number(b"icptcode").map(|number| (Isa::S390, number)))
                .or_else(|| Some((Isa::Powerpc, fields.number(b"trap")?)))
                .or_else(|| Some((Isa::Loongarch, fields.number(b"reason")?)))?;
            let reason = ExitReason::of_number(isa, number);
            // The numbers of the kernel's own events of LoongArch are behind those of the hardware.
            inner = isa == Isa::Loongarch && number >= 64;
            reason
        };
        self.isa = Some(reason.isa);
        let vcpu = fields.number(b"vcpu_id").or_else(|| fields.number(b"id"));
        let exit = ExitText::new(reason, vcpu.map(low32), pc)?;
        // Without `0x` they may be decimal or hexadecimal, and a shorter one was cut.
        let whole = |name: &[u8]| {
            let value = fields
                .get(name)
                .filter(|n| n.len() == DIGITS && n.starts_with(b"0x"));
            value.and_then(text::hex)
        };
        let info1 = whole(b"info1").filter(|_| reason.has_detail() && !inner);
        let info2 = whole(b"info2");
        Some(ExitText {
            info: info1.map(|info1| ExitQualification { info1, info2 }),
            inner,
            ..exit
        })
    }
}

/// Returns whether a text may name a reason: few words of letters, digits and what stands between them.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_ -./()".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.len() <= 48
        && text.split(' ').count() <= 4
        && text.chars().all(plain)
}

/// Names of what the world switch of arm64 returned (`kvm_arm_exception_type`), or its number.
fn exception_type(word: &[u8]) -> Option<u32> {
    match word.strip_suffix(b":")? {
        b"IRQ" => Some(0),
        b"SERROR" | b"EL1_SERROR" => Some(1),
        b"TRAP" => Some(reasons::ARM_EXCEPTION_TRAP),
        b"ILLEGAL" | b"IL" => Some(3),
        b"HYP_GONE" => Some(0xbad_ca11),
        number => u32::try_from(text::hex(number.strip_prefix(b"0x")?)?).ok(),
    }
}

/// Returns the slot of a reason's name.
#[inline]
fn slot_of(name: &[u8]) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    // Of a product the high bits depend on all others.
    usize::try_from(hasher.finish() >> 32).unwrap_or(0) % RECENT
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// Reads `00[0705000180000000-000000000010ab32]`: vCPU, and where the guest was.
pub(super) fn s390_prefix(text: &[u8]) -> (Option<u32>, Option<u64>) {
    let read = || {
        let open = memchr::memchr(b'[', text)?;
        let vcpu = u32::try_from(text::decimal(trim(&text[..open]))?).ok();
        let dash = open + memchr::memchr(b'-', &text[open..])?;
        Some((vcpu, text::hex(&text[dash + 1..])))
    };
    read().unwrap_or((None, None))
}

/// Reads `VCPU 0`.
pub(super) fn powerpc_vcpu(text: &[u8]) -> Option<u32> {
    let number = text.strip_prefix(b"VCPU ")?;
    u32::try_from(text::number(number)?).ok()
}
