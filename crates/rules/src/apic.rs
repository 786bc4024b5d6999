//! Who emulates the guest's interrupt controller: KVM, access by access, or the processor (Intel's APICv, AMD's AVIC).

use analysis::{ExitRow, ExitTable, Picture};

use crate::case::{Case, RowSum};

/// Exits that happen with APICv or AVIC in use only: an end of interrupt that KVM asked for, a write that the
/// processor already did, an IPI for a vCPU that does not run (Intel SDM volume 3, 30.1.4 and 30.4; AMD APM volume 2,
/// 15.29.9.1).
pub(crate) const VIRTUALIZED: [&str; 4] = [
    "EOI_INDUCED",
    "APIC_WRITE",
    "AVIC_INCOMPLETE_IPI",
    "avic_incomplete_ipi",
];

/// Exits for the local APIC in one recording or set of tables.
#[derive(Debug, Clone)]
pub struct ApicExits<'a> {
    /// The accesses that end an interrupt, which go on without an exit where the APIC is virtualized.
    pub eoi: Vec<&'a ExitRow>,
    /// Accesses of the xAPIC's page that was watched and not virtualized (`APIC_ACCESS`).
    pub page: RowSum,
    /// Interrupts that waited until the guest takes them.
    pub windows: RowSum,
    /// What happens only where the APIC is virtualized (Intel's `EOI_INDUCED` and `APIC_WRITE`, AMD's
    /// `AVIC_INCOMPLETE_IPI`).
    pub virtualized: RowSum,
}

impl<'a> ApicExits<'a> {
    /// Returns those of a picture.
    pub fn of(picture: &'a Picture) -> ApicExits<'a> {
        let tables = [ExitTable::Msr, ExitTable::Mmio];
        let rows = tables.into_iter().flat_map(|table| {
            let rows = picture.rows(table).iter();
            rows.filter(move |row| ends_interrupt(row, table))
        });
        let sum = |names: &[&str]| RowSum::of(picture.reason(names));
        ApicExits {
            eoi: rows.collect(),
            page: sum(&["APIC_ACCESS"]),
            windows: sum(&["INTERRUPT_WINDOW", "PENDING_INTERRUPT", "vintr"]),
            virtualized: sum(&VIRTUALIZED),
        }
    }

    /// Returns the accesses that KVM emulates.
    pub fn accesses(&self) -> u64 {
        let eoi = RowSum::of(self.eoi.iter().copied());
        eoi.count.saturating_add(self.page.count)
    }

    /// Returns all that would not be with the APIC virtualized.
    pub fn emulated(&self) -> RowSum {
        let eoi = RowSum::of(self.eoi.iter().copied());
        eoi.plus(self.page).plus(self.windows)
    }
}

/// Returns whether an access is the end of an interrupt: of the x2APIC by its register, of the xAPIC by its address
/// (Intel SDM volume 3, 10.8.5).
fn ends_interrupt(row: &ExitRow, table: ExitTable) -> bool {
    let Some(address) = row.address.filter(|_| row.write) else {
        return false;
    };
    match table {
        ExitTable::Msr => address == 0x80b,
        ExitTable::Mmio => address == 0xfee0_00b0,
        _ => false,
    }
}

/// Returns the table that an end of interrupt is in: registers have small numbers.
pub(crate) fn table_of(row: &ExitRow) -> ExitTable {
    match ends_interrupt(row, ExitTable::Msr) {
        true => ExitTable::Msr,
        false => ExitTable::Mmio,
    }
}

/// What the host's module says of APICv or AVIC: whether it would be used. A host has one of the two modules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApicvOffer<'a> {
    pub module: &'static str,
    pub name: &'static str,
    pub value: &'a str,
}

impl<'a> ApicvOffer<'a> {
    /// Returns what facts of the host say; `None` where they do not.
    pub(crate) fn of(case: &Case<'a>) -> Option<ApicvOffer<'a>> {
        let modules = &case.host()?.modules;
        let parameters = [("kvm_intel", "enable_apicv"), ("kvm_amd", "avic")];
        parameters.into_iter().find_map(|(module, name)| {
            let value = modules.get(module)?.get(name)?;
            Some(ApicvOffer {
                module,
                name,
                value,
            })
        })
    }

    pub(crate) fn is_on(self) -> bool {
        matches!(self.value, "Y" | "1")
    }
}
