//! EPT violations: what exits for the second stage of address translation were about: memory, a device, or the local
//! APIC.
//!
//! `EPT_VIOLATION` (Intel), `npf` (AMD), `DABT_LOW` and `IABT_LOW` (arm64) are exits for an address that is not mapped.
//! Which it was, `kvm_page_fault` (arm64: `kvm_guest_fault`) and `kvm_mmio` tell within the exit. The page of the
//! local APIC is emulated where APICv or AVIC does not take its accesses, and is no memory of the guest.

use event::{Data, Event, EventType, Isa, Kind, index_of};
use model::ByNumber;
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
    x86: bool,
    apic: bool,
}

/// Separates exits for memory from those for devices.
#[derive(Debug, Default)]
pub struct Faults {
    /// By kind of event: where the address is.
    addresses: Vec<Option<Number>>,
    open: ByNumber<Open>,
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
            ),
            "kvm_guest_fault" => Number::of(ty, &["ipa"], &[("ipa", Radix::Hex)]),
            _ => None,
        };
        self.addresses[index].is_some()
    }

    #[inline]
    fn take(&mut self, event: &Event<'_>, data: &Data) {
        match data {
            Data::KvmExit(exit) => {
                let is = exit.reason.is_page_fault();
                let open = self.open.entry(event.tid, Open::default);
                *open = Open {
                    out: true,
                    since: is.then_some(event.time),
                    x86: exit.reason.isa != Isa::Arm64,
                    ..Open::default()
                };
            }
            Data::KvmEntry(_) => {
                let Some(open) = self.open.get_mut(event.tid) else {
                    return;
                };
                open.out = false;
                let Some(since) = open.since.take() else {
                    return;
                };
                let device = open.device
                    || open.address.is_some_and(|address| {
                        self.devices.contains(&(address & !PAGE))
                            || open.x86 && PC_DEVICES.contains(&address)
                    });
                let kind = match (open.apic, device, open.address) {
                    (true, ..) => &mut self.report.apic,
                    (_, true, _) => &mut self.report.device,
                    (.., Some(_)) => &mut self.report.memory,
                    _ => &mut self.report.unknown,
                };
                kind.add(event.time.saturating_sub(since));
            }
            Data::KvmMmio(mmio) => {
                if let Some(open) = self.open.get_mut(event.tid) {
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
                if let Some(Some(number)) = self.addresses.get(index)
                    && let Some(address) = number.get(event)
                    && let Some(open) = self.open.get_mut(event.tid)
                {
                    open.address = Some(address);
                    open.apic |= address & !PAGE == APIC_PAGE;
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
    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        let has_address = self.learn(ty);
        match ty.kind {
            // Where devices are, all vCPUs' accesses show.
            Kind::KvmExit | Kind::KvmEntry | Kind::KvmMmio => EventDetail::Order,
            _ if has_address => EventDetail::Order,
            _ => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        if context.chosen.counts {
            self.take(event, data);
        }
    }
}
