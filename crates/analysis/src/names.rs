//! Names of the devices and registers behind the keys of exit tables.

use devices::{AddressNames, Arch, PlacedDevice, UsedAddress};
use event::Isa;
use model::GuestAccess;

use crate::{ExitTable, ExitsReport, VcpusReport};

/// Returns what guests accessed, as tables of accesses have it. With rows of several VMs it is nothing: devices of two
/// VMs may be at one place.
fn used<'r>(reports: impl IntoIterator<Item = &'r ExitsReport>) -> Vec<UsedAddress> {
    let mut used = Vec::new();
    let mut vm = None;
    for report in reports {
        let port = match report.table {
            ExitTable::Ioport => true,
            ExitTable::Mmio => false,
            ExitTable::Vmexit | ExitTable::Msr => continue,
        };
        for row in &report.rows {
            let Some(address) = row.address else { continue };
            let of = (row.vm_pid, row.vm.as_deref());
            if *vm.get_or_insert(of) != of {
                return Vec::new();
            }
            used.push(UsedAddress {
                address,
                port,
                write: row.write,
                count: row.count(),
            });
        }
    }
    used
}

/// Returns the devices behind PCI base address registers that are known by what guests used of them.
pub fn known_devices<'r>(reports: impl IntoIterator<Item = &'r ExitsReport>) -> Vec<PlacedDevice> {
    devices::recognize(&used(reports))
}

/// Adds to names what can be known of devices by what guests used of them.
pub fn with_used(names: AddressNames, reports: &[ExitsReport]) -> AddressNames {
    names.with_used(&used(reports))
}

/// Returns the built-in names of the machines that VMs of this instruction set are given.
pub fn builtin_names(isa: Option<Isa>) -> AddressNames {
    AddressNames::builtin(match isa {
        Some(Isa::Vmx | Isa::Svm) => Arch::X86,
        Some(Isa::Arm64) => Arch::Arm64,
        Some(_) => Arch::Other,
        None => Arch::Unknown,
    })
}

/// Names the rows of a table of accesses, as far as their address is known.
pub fn name_rows(report: &mut ExitsReport, names: &AddressNames) {
    let table = report.table;
    for row in &mut report.rows {
        let Some(address) = row.address else { continue };
        let name = match table {
            ExitTable::Vmexit => None,
            ExitTable::Ioport => u16::try_from(address)
                .ok()
                .and_then(|port| names.port(port, row.write)),
            ExitTable::Mmio => names.mmio(address, row.write),
            ExitTable::Msr => u32::try_from(address).ok().and_then(|msr| names.msr(msr)),
        };
        row.name = name.map(|name| name.to_string());
    }
}

/// Returns device and register behind an access, as far as they are known.
pub fn name_access(access: &GuestAccess, names: &AddressNames) -> Option<String> {
    let name = match *access {
        GuestAccess::Port { port, write } => names.port(port, write),
        GuestAccess::Mmio { gpa, write } => names.mmio(gpa, write),
        GuestAccess::Msr { msr, .. } => names.msr(msr),
    };
    name.map(|name| name.to_string())
}

/// Returns whether a register of that name is one by which a guest notifies a virtio device of a queue.
pub fn is_notification_register(name: &str) -> bool {
    name.contains("notify")
}

/// Names what vCPUs were in the VMM for, as far as it is known.
pub fn name_causes(report: &mut VcpusReport, names: &AddressNames) {
    for cause in report.rows.iter_mut().flat_map(|row| &mut row.user) {
        let access = cause.access.as_ref();
        cause.name = access.and_then(|access| name_access(access, names));
    }
}
