//! EPT violations: what exits for the second stage of address translation were about: memory, a device, or the local
//! APIC.
//!
//! `EPT_VIOLATION` (Intel), `npf` (AMD), `DABT_LOW` and `IABT_LOW` (arm64) are exits for an address that is not mapped.
//! Which it was, `kvm_page_fault` (arm64: `kvm_guest_fault`) and `kvm_mmio` tell within the exit. The page of the
//! local APIC is emulated where APICv or AVIC does not take its accesses, and is no memory of the guest.
//!
//! The same events have the fault's code: whether the page was mapped and may not be written, as while KVM logs the
//! pages that a guest writes, and whether the guest fetched an instruction there ([`FaultCode`]).
//!
//! It costs more than 2 ns an event, because it follows each thread from exit to entry, though few exits are
//! faults: which those are only what comes between the two shows.

use event::{Data, Event, EventType, Isa, Kind, index_of};
use model::{ByThread, Machine, RetiredThreads, ThreadHandle};
use rustc_hash::FxHashSet;

use crate::analysis::{Analysis, Context, EventDetail};
use crate::record::{Number, Radix};

/// The local APIC's page, where every machine has it (Intel SDM volume 3, 11.4.1).
pub const APIC_PAGE: u64 = 0xfee0_0000;
const PAGE: u64 = 0xfff;
/// The last 32 MiB below 4 GiB are no memory on any PC: IOAPIC, HPET, local APIC, TPM, flash.
const PC_DEVICES: std::ops::Range<u64> = 0xfe00_0000..0x1_0000_0000;
/// Pages of devices that are remembered, at most.
const MAX_PAGES: usize = 4096;

/// Exits and their time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExitSum {
    /// How many.
    pub count: u64,
    /// How long, in nanoseconds, from `kvm_exit` to `kvm_entry`.
    pub ns: u64,
}

impl ExitSum {
    pub(crate) fn add(&mut self, ns: u64) {
        self.count += 1;
        self.ns = self.ns.saturating_add(ns);
    }

    pub(crate) fn merge(&mut self, other: ExitSum) {
        self.count += other.count;
        self.ns = self.ns.saturating_add(other.ns);
    }
}

/// Exits for the second stage of address translation, by what they were about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultsReport {
    /// The guest's memory: an address was recorded, and no device answered.
    pub memory: ExitSum,
    /// A device that is emulated.
    pub device: ExitSum,
    /// The local APIC's page.
    pub apic: ExitSum,
    /// Nothing shows it.
    pub unknown: ExitSum,
    /// Those of the guest's memory that were writes of pages that are mapped and may not be written.
    pub write_protected: ExitSum,
    /// Those of the guest's memory that fetched an instruction of a page that is mapped and may not be executed.
    pub not_executable: ExitSum,
    /// Whether codes of faults were recorded.
    pub has_codes: bool,
    /// Accesses of devices that were recorded while their vCPU was in its guest, for all that is known: the exits they
    /// belong to were lost.
    pub strays: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Open {
    /// Whether the vCPU is out of its guest.
    out: bool,
    /// When the exit began, if it is one of these.
    since: Option<u64>,
    address: Option<u64>,
    device: bool,
    isa: Option<Isa>,
    apic: bool,
    code: FaultCode,
}

/// What a fault was, by its code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum FaultCode {
    /// Another kind, or none is recorded.
    #[default]
    Other,
    /// A write of a page that is mapped.
    WriteProtected,
    /// A fetch of an instruction of a page that is mapped.
    NotExecutable,
}

impl FaultCode {
    /// Returns what a code says. On Intel it is the exit's qualification (Intel SDM volume 3, 29.2.1: bits 1 and 2 are
    /// a write and a fetch, 3 to 5 what the page may be used for), on AMD the error code of a page fault (AMD APM
    /// volume 2, 15.25.6: bit 0 says that the page is mapped, 1 and 4 are a write and a fetch), on arm64 the syndrome
    /// (Arm ARM, ESR_EL2: a permission fault is 0b0011xx in the low six bits, bit 6 is a write, the class of a data
    /// abort 0x24 and of a fetch 0x20).
    fn of(code: u64, isa: Isa) -> FaultCode {
        let (mapped, write, fetch) = match isa {
            Isa::Vmx => (code & 0x38 != 0, code & 2 != 0, code & 4 != 0),
            Isa::Svm => (code & 1 != 0, code & 2 != 0, code & 0x10 != 0),
            Isa::Arm64 => {
                let class = code >> 26 & 0x3f;
                let write = class == 0x24 && code & 0x40 != 0;
                (code & 0x3c == 0x0c, write, class == 0x20)
            }
            _ => return FaultCode::Other,
        };
        match (mapped, write, fetch) {
            (true, _, true) => FaultCode::NotExecutable,
            (true, true, _) => FaultCode::WriteProtected,
            _ => FaultCode::Other,
        }
    }
}

/// Separates exits for memory from those for devices.
#[derive(Debug, Default)]
pub struct Faults {
    /// By kind of event: where the address is, and the code, where it is recorded.
    addresses: Vec<Option<(Number, Option<Number>)>>,
    open: ByThread<Open>,
    /// Pages in which a device answered: where an event of an access is lost, they tell.
    devices: FxHashSet<u64>,
    /// The last of them that was met: mostly it is the next one too.
    last_device: Option<u64>,
    report: FaultsReport,
}

impl Faults {
    /// Returns a counter that has seen nothing.
    pub fn new() -> Faults {
        Faults::default()
    }

    /// Takes a kind of events. Returns whether its events have an address.
    fn learn(&mut self, ty: &EventType<'_>) -> bool {
        let index = index_of(ty.index);
        if self.addresses.len() <= index {
            self.addresses.resize_with(index + 1, || None);
        }
        self.addresses[index] = match ty.name {
            "kvm_page_fault" => Number::of(
                ty,
                &["fault_address"],
                &[("address", Radix::Hex), ("fault_address", Radix::Hex)],
            )
            .map(|address| {
                let words: &[(&str, Radix)] = &[("error_code", Radix::Hex)];
                (address, Number::of(ty, &["error_code"], words))
            }),
            "kvm_guest_fault" => Number::of(ty, &["ipa"], &[("ipa", Radix::Hex)]).map(|address| {
                let words: &[(&str, Radix)] = &[("hsr", Radix::Hex), ("esr", Radix::Hex)];
                (address, Number::of(ty, &["hsr", "esr"], words))
            }),
            _ => None,
        };
        self.addresses[index].is_some()
    }

    #[inline(always)]
    fn take(&mut self, event: &Event<'_>, data: &Data, thread: ThreadHandle) {
        match data {
            Data::KvmExit(exit) => {
                let is = exit.reason.is_page_fault();
                let open = self.open.entry(thread, Open::default);
                *open = Open {
                    out: true,
                    since: is.then_some(event.time),
                    isa: Some(exit.reason.isa),
                    ..Open::default()
                };
            }
            Data::KvmEntry(_) => {
                let Some(open) = self.open.get_mut(thread) else {
                    return;
                };
                open.out = false;
                let Some(since) = open.since.take() else {
                    return;
                };
                let device = open.device
                    || open.address.is_some_and(|address| {
                        self.devices.contains(&(address & !PAGE))
                            || open.isa != Some(Isa::Arm64) && PC_DEVICES.contains(&address)
                    });
                let kind = match (open.apic, device, open.address) {
                    (true, ..) => &mut self.report.apic,
                    (_, true, _) => &mut self.report.device,
                    (.., Some(_)) => &mut self.report.memory,
                    _ => &mut self.report.unknown,
                };
                let ns = event.time.saturating_sub(since);
                kind.add(ns);
                if !open.apic && !device && open.address.is_some() {
                    match open.code {
                        FaultCode::WriteProtected => self.report.write_protected.add(ns),
                        FaultCode::NotExecutable => self.report.not_executable.add(ns),
                        FaultCode::Other => {}
                    }
                }
            }
            Data::KvmMmio(mmio) => {
                if let Some(open) = self.open.get_mut(thread) {
                    let page = mmio.gpa & !PAGE;
                    if self.last_device != Some(page) && self.devices.len() < MAX_PAGES {
                        self.devices.insert(page);
                    }
                    self.last_device = Some(page);
                    self.report.strays += u64::from(!open.out);
                    open.device = true;
                    open.apic |= page == APIC_PAGE;
                }
            }
            _ => {
                let index = index_of(event.ty.index);
                if let Some(Some((number, code))) = self.addresses.get(index)
                    && let Some(address) = number.get(event)
                    && let Some(open) = self.open.get_mut(thread)
                {
                    open.address = Some(address);
                    open.apic |= address & !PAGE == APIC_PAGE;
                    let code = code.as_ref().and_then(|code| code.get(event));
                    if let Some((code, isa)) = code.zip(open.isa) {
                        self.report.has_codes = true;
                        open.code = FaultCode::of(code, isa);
                    }
                }
            }
        }
    }

    /// Returns what was found.
    pub fn report(&self) -> FaultsReport {
        self.report
    }
}

impl Analysis for Faults {
    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        for thread in retired.handles() {
            self.open.remove(thread);
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        let has_address = self.learn(ty);
        match ty.kind {
            // Where devices are, all vCPUs' accesses show.
            Kind::KvmExit | Kind::KvmEntry | Kind::KvmMmio => EventDetail::Order,
            _ if has_address => EventDetail::Order,
            _ => EventDetail::Nothing,
        }
    }

    #[inline(always)]
    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        if context.chosen.counts {
            self.take(event, data, context.thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_processor() {
        use FaultCode::{NotExecutable, Other, WriteProtected};
        for (isa, code, is) in [
            // Not mapped: read, write, fetch.
            (Isa::Vmx, 0x181, Other),
            (Isa::Vmx, 0x182, Other),
            (Isa::Vmx, 0x184, Other),
            // Mapped to be read and executed, and written; mapped to be read and written, and executed.
            (Isa::Vmx, 0x1aa, WriteProtected),
            (Isa::Vmx, 0x19c, NotExecutable),
            (Isa::Svm, 0x1_0000_0006, Other),
            (Isa::Svm, 0x1_0000_0007, WriteProtected),
            (Isa::Svm, 0x1_0000_0015, NotExecutable),
            // Translation fault of level 3, permission faults: a write, a read, a fetch.
            (Isa::Arm64, 0x9200_0047, Other),
            (Isa::Arm64, 0x9200_004f, WriteProtected),
            (Isa::Arm64, 0x9200_000f, Other),
            (Isa::Arm64, 0x8200_000f, NotExecutable),
        ] {
            assert_eq!(FaultCode::of(code, isa), is, "{isa:?} {code:#x}");
        }
    }
}
