/*!
Which device and register an I/O port, an MMIO address or an MSR is.

[`AddressNames`] answers for one VM. [`AddressNames::builtin`] knows the machines people run: the PC as QEMU builds it
(`pc`, `q35`) and QEMU's arm64 `virt`. [`AddressNames::with_mtree`] adds the text of QEMU's monitor command
`info mtree`, which says exactly what is where in that VM.

# How a name is found

Everything is a *region* (a range of addresses with QEMU's name for what is there) and an offset in it.
The built-in machines are lists of regions, and `info mtree` is one more. The region's name decides which
register table applies, and the offset picks the register, so a device that firmware or the guest has moved
keeps its register names, and both ways of knowing a device give the same text. A region without a register
table is called what QEMU calls it: `acpi-tmr`.

What `info mtree` does not list falls back to the built-in machine: the text may have been taken before the
firmware placed the device.

# What stays a guess

Devices behind PCI base address registers have no fixed place. Without `info mtree` an address in a PCI window
is `PCI device memory`, and a write where QEMU's virtio devices have their notification area says so with an
`if`. Which of their registers a guest used makes some devices known ([`AddressNames::with_used`]): these names say
`probably`. Other VMMs (Firecracker, Cloud Hypervisor, crosvm, kvmtool) share the PC's ports and interrupt
controllers but place other devices elsewhere.

# Where the knowledge comes from

Every table's module names its manual, header or source file. Region names and places were checked against
`info mtree` of QEMU 7.2.

```
use devices::{Arch, AddressNames};

let names = AddressNames::builtin(Arch::X86);
assert_eq!(names.port(0x608, false).unwrap().to_string(), "acpi-tmr");
assert_eq!(names.mmio(0xfed0_00f0, false).unwrap().to_string(), "HPET main counter");
assert_eq!(names.msr(0x830).unwrap().to_string(), "x2APIC ICR");
```
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod apic;
mod e1000;
mod fingerprint;
mod gic;
mod hpet;
mod hyperv;
mod kvm_pv;
mod map;
mod msr;
mod mtree;
mod name;
mod pc;
mod pci;
mod ports;
mod region;
mod regs;
mod sysreg;
mod uart;
mod uhci;
mod virt;
mod virtio;

use mtree::Mtree;
use region::{MachineRegion, RegionHit};

pub use fingerprint::{KnownDevice, PlacedDevice, UsedAddress, recognize};
pub use name::DeviceName;

/// The kind of guest, which decides the built-in machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// x86: I/O ports, MSRs, and the devices of QEMU's `pc` and `q35`.
    X86,
    /// 64-bit Arm: the devices of QEMU's `virt`.
    Arm64,
    /// Any other: only what `info mtree` says is known.
    Other,
    /// Not known. What has ports or model specific registers is an x86, as no other machine has them.
    Unknown,
}

/// The address spaces a guest reaches devices through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeviceSpace {
    /// Guest physical addresses.
    Memory,
    /// x86 I/O ports.
    Io,
}

/// Names for the addresses of one VM's devices.
///
/// A lookup goes over some hundred regions: meant for the rows of a table, not for every event.
#[derive(Clone, Debug)]
pub struct AddressNames {
    arch: Arch,
    mtree: Option<Mtree>,
    /// Devices that are known by what the guest used of them.
    placed: Vec<PlacedDevice>,
}

impl AddressNames {
    /// The names known without any fact about the VM.
    pub fn builtin(arch: Arch) -> AddressNames {
        AddressNames {
            arch,
            mtree: None,
            placed: Vec::new(),
        }
    }

    /// Adds what the text of QEMU's `info mtree` says, in place of any earlier such text.
    ///
    /// Taken are the tree, `-f` (flat views) and `-o` (owners) forms of any QEMU since 1.0, with CRLF line
    /// ends, prompts, indentation and other text around them, several one after the other, and also as the
    /// JSON string that QMP's `human-monitor-command` returns. Text without a heading, such as lines picked by
    /// `grep`, is recognised by its addresses: those below 64 KiB are I/O ports.
    ///
    /// The second value holds what could not be read, with line numbers and byte offsets; everything else
    /// was taken.
    pub fn with_mtree(self, text: &str) -> (AddressNames, Vec<String>) {
        let (mtree, notes) = Mtree::parse(text);
        (
            AddressNames {
                arch: self.arch,
                mtree: Some(mtree),
                placed: self.placed,
            },
            notes,
        )
    }

    /// Adds what can be known of the devices behind PCI base address registers by which of their registers the guest
    /// used, in place of any earlier. What `info mtree` says, and what a machine has at fixed places, goes before.
    pub fn with_used(mut self, used: &[UsedAddress]) -> AddressNames {
        let mut free = used.to_vec();
        free.retain(|one| self.is_in_window(one));
        self.placed = recognize(&free);
        self
    }

    /// Returns whether an address is in a window of PCI devices, and nothing says which device is there.
    pub fn is_in_window(&self, used: &UsedAddress) -> bool {
        let (space, builtin) = match used.port {
            true => (DeviceSpace::Io, self.ports()),
            false => (DeviceSpace::Memory, self.memory()),
        };
        let listed = self
            .mtree
            .as_ref()
            .and_then(|tree| tree.find(space, used.address));
        let window = listed.is_none_or(|place| map::is_container(place.name));
        let place = region::find(builtin, used.address).filter(|_| window);
        place.is_some_and(|place| region::is_window(place.name))
    }

    /// What the I/O port `port` is; `write` distinguishes registers that differ by direction.
    pub fn port(&self, port: u16, write: bool) -> Option<DeviceName> {
        self.look(DeviceSpace::Io, self.ports(), u64::from(port), write)
    }

    /// The I/O ports of the built-in machine.
    fn ports(&self) -> &'static [MachineRegion] {
        match self.arch {
            Arch::X86 | Arch::Unknown => ports::REGIONS,
            Arch::Arm64 | Arch::Other => &[],
        }
    }

    /// The guest physical addresses of the built-in machine.
    fn memory(&self) -> &'static [MachineRegion] {
        match self.arch {
            Arch::X86 => pc::REGIONS,
            Arch::Arm64 => virt::REGIONS,
            Arch::Other | Arch::Unknown => &[],
        }
    }

    /// What the guest physical address `gpa` is; `write` distinguishes registers that differ by direction.
    pub fn mmio(&self, gpa: u64, write: bool) -> Option<DeviceName> {
        self.look(DeviceSpace::Memory, self.memory(), gpa, write)
    }

    /// What the model specific register `msr` is; on arm64 the system register of that encoding, as a decimal number
    /// with two digits for each of its parts.
    pub fn msr(&self, msr: u32) -> Option<DeviceName> {
        match self.arch {
            Arch::X86 => msr::name(msr),
            Arch::Unknown => msr::name(msr).or_else(|| sysreg::name(msr)),
            Arch::Arm64 => sysreg::name(msr),
            Arch::Other => None,
        }
    }

    fn look(
        &self,
        space: DeviceSpace,
        builtin: &[MachineRegion],
        addr: u64,
        write: bool,
    ) -> Option<DeviceName> {
        let listed = self.mtree.as_ref().and_then(|tree| tree.find(space, addr));
        let place: RegionHit<'_> = listed.or_else(|| region::find(builtin, addr))?;
        match fingerprint::holding(&self.placed, space, addr) {
            Some(device) if region::is_window(place.name) => {
                Some(device.describe(place.name, addr))
            }
            _ => map::describe(space, &place, write),
        }
    }
}
