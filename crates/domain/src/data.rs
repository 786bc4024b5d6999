/*!
A domain as its definition has it. Names are those of libvirt's format (`docs/formatdomain.rst`), whatever the
definition is written in.

What the document does not say is `None` or empty: what libvirt or QEMU do then depends on their versions and is not
put in here.
*/

use std::collections::{BTreeMap, BTreeSet};

use cpuset::CpuSet;

use crate::error::DomainNote;

/// What a definition is written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum DefinitionForm {
    /// libvirt's XML.
    #[default]
    Libvirt,
    /// libvirt's XML that ends before the domain does, as half of a page has it: what it does not say may have stood
    /// behind.
    CutLibvirt,
    /// QEMU's command line, as `ps` prints it or `/proc/PID/cmdline` has it.
    Qemu,
    /// A VM's `.conf` of Proxmox VE (`/etc/pve/qemu-server`).
    Proxmox,
    /// What `virsh` lists of where a guest's threads may run: the part of a definition that is about pins.
    Virsh,
}

impl DefinitionForm {
    /// Returns what such a definition is called in sentences.
    pub fn words(self) -> &'static str {
        match self {
            DefinitionForm::Libvirt => "libvirt's XML",
            DefinitionForm::CutLibvirt => "a part of libvirt's XML",
            DefinitionForm::Qemu => "a QEMU command line",
            DefinitionForm::Proxmox => "a Proxmox VM's .conf",
            DefinitionForm::Virsh => "virsh's list of where threads may run",
        }
    }
}

/// A domain: what its definition says that matters for where its time goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Domain {
    /// What it is written in.
    pub form: DefinitionForm,
    /// `<name>`.
    pub name: String,
    /// `<uuid>`.
    pub uuid: Option<String>,
    /// `<domain type=>`: `kvm`, `qemu`, `xen`, ...
    pub kind: String,
    /// `<os><type>`: `hvm` for a machine of its own.
    pub os_type: Option<String>,
    /// `<os><type arch=>`, as in `x86_64` and `aarch64`.
    pub arch: Option<String>,
    /// `<os><type machine=>`, as in `pc-q35-6.2` and `virt`.
    pub machine: Option<String>,
    /// What runs inside: by libosinfo's id, else by what only definitions of such guests have ([`Domain::os_signs`]).
    pub os: GuestOs,
    /// What it was known by, as the definition writes it: `<hyperv>`, `offset='localtime'`.
    pub os_signs: Vec<&'static str>,
    /// libosinfo's id under `<metadata>`, as in `http://microsoft.com/win/10`.
    pub os_id: Option<String>,

    /// `<vcpu>`: most vCPUs that it can have.
    pub vcpus: Option<u32>,
    /// `<vcpu current=>`: vCPUs at start, if fewer.
    pub current_vcpus: Option<u32>,
    /// `<vcpu placement=>`: `static` or `auto` (numad decides).
    pub vcpu_placement: Option<String>,
    /// `<vcpu cpuset=>`: where threads may run that are not pinned themselves.
    pub vcpu_cpuset: Option<CpuSet>,
    /// `<cputune><vcpupin>`, by vCPU. See [`Domain::vcpu_cpus`].
    pub vcpu_pins: BTreeMap<u32, CpuSet>,
    /// `<cputune><emulatorpin>`: QEMU's own threads.
    pub emulator_pin: Option<CpuSet>,
    /// `<iothreads>`: how many.
    pub iothreads: Option<u32>,
    /// `<iothreadids>`: their numbers, if they are not 1 to [`Domain::iothreads`].
    pub iothread_ids: Vec<u32>,
    /// `<cputune><iothreadpin>`, by number of the iothread.
    pub iothread_pins: BTreeMap<u32, CpuSet>,
    /// `<cputune><vcpusched>`, `<iothreadsched>` and `<emulatorsched>`.
    pub scheds: Vec<ThreadScheduling>,
    /// Numbers in `<cputune>` by element name: `shares`; `period`, `quota`, `emulator_quota` and the like, in
    /// microseconds, a quota below zero being none.
    pub cputune: BTreeMap<String, i64>,
    /// `<numatune><memory>`.
    pub numa_memory: Option<NumaMemory>,
    /// `<numatune><memnode>`.
    pub numa_nodes: Vec<NumaMemory>,

    /// `<cpu mode=>`: `custom`, `host-model`, `host-passthrough`, `maximum`.
    pub cpu_mode: Option<String>,
    /// `<cpu><model>`.
    pub cpu_model: Option<String>,
    /// `<cpu><feature>`, in the document's order.
    pub cpu_features: Vec<CpuFeature>,
    /// `<cpu><topology>`.
    pub topology: Option<Topology>,
    /// `<cpu><numa><cell>`: the guest's NUMA nodes.
    pub cells: Vec<NumaCell>,

    /// `<clock offset=>`: `utc`, `localtime`, `timezone`, `variable`, `absolute`.
    pub clock_offset: Option<String>,
    /// `<clock><timer>`.
    pub timers: Vec<DomainTimer>,

    /// `<features>`: elements that are there and not `state='off'`, as in `acpi`, `apic`, `pae`, `hyperv`.
    pub features: BTreeSet<String>,
    /// `<features>`: what has a `state=`, as in `pmu`, `vmport`, `pvspinlock`.
    pub feature_states: BTreeMap<String, bool>,
    /// `<features><apic eoi=>`: paravirtual end of interrupt.
    pub apic_eoi: Option<bool>,
    /// `<features><gic version=>`: `2`, `3` or `host`.
    pub gic_version: Option<String>,
    /// `<features><hyperv>`.
    pub hyperv: Option<Hyperv>,
    /// `<features><kvm>`: `hidden`, `hint-dedicated`, `poll-control`, `pv-ipi`, ...
    pub kvm_features: BTreeMap<String, bool>,

    /// `<memory>`, in bytes.
    pub memory_bytes: Option<u64>,
    /// `<currentMemory>`, in bytes.
    pub current_memory_bytes: Option<u64>,
    /// `<memoryBacking>`.
    pub memory_backing: MemoryBacking,

    /// `<devices><emulator>`.
    pub emulator: Option<String>,
    /// `<devices><disk>`.
    pub disks: Vec<Disk>,
    /// `<devices><controller>`.
    pub controllers: Vec<Controller>,
    /// `<devices><interface>`.
    pub interfaces: Vec<Interface>,
    /// `<devices><serial>` and `<console>`, in the document's order.
    pub consoles: Vec<DomainConsole>,
    /// `<devices><input>`: tablets, mice and keyboards.
    pub inputs: Vec<InputDevice>,
    /// `<devices><hostdev>`: devices of the host, given to the guest.
    pub hostdevs: Vec<Hostdev>,
    /// `<devices><memballoon model=>`: `virtio`, `none`, ...
    pub memballoon: Option<String>,
    /// `<devices><memballoon freePageReporting=>`.
    pub free_page_reporting: Option<bool>,
    /// `<devices><watchdog model=>`.
    pub watchdogs: Vec<String>,
    /// `<devices><iommu model=>`.
    pub iommu: Option<String>,
    /// `<qemu:commandline><qemu:arg>`: arguments that libvirt hands on unread. They can hold secrets.
    pub qemu_args: Vec<String>,
}

/// The definition of one guest.
#[derive(Debug, Clone)]
pub struct GuestDefinition {
    /// What it says.
    pub domain: Domain,
    /// Its text; empty for a command line.
    pub text: String,
    /// What was not understood, by its line.
    pub notes: Vec<DomainNote>,
}

/// What runs in a domain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum GuestOs {
    /// Windows, with the NT kernel or before it.
    Windows,
    /// Any Linux.
    Linux,
    /// Something that is known to be neither.
    Other,
    /// The document does not say, or only what several systems are given.
    #[default]
    Unknown,
}

/// How threads are scheduled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadScheduling {
    /// `vcpusched`, `iothreadsched` or `emulatorsched`.
    pub element: String,
    /// Numbers of the vCPUs or iothreads; none for the emulator.
    pub who: Option<CpuSet>,
    /// `batch`, `idle`, `fifo` or `rr`.
    pub scheduler: String,
    /// Priority of `fifo` and `rr`.
    pub priority: Option<u32>,
}

/// Which of the host's NUMA nodes memory comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumaMemory {
    /// The guest's node; none if it is for all of the memory.
    pub cell: Option<u32>,
    /// `strict`, `preferred`, `interleave` or `restrictive`.
    pub mode: Option<String>,
    /// The host's nodes.
    pub nodeset: Option<CpuSet>,
    /// `static` or `auto` (numad decides).
    pub placement: Option<String>,
}

/// A CPU feature.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuFeature {
    /// Its name, as in `x2apic`.
    pub name: String,
    /// `force`, `require`, `optional`, `disable` or `forbid`.
    pub policy: Option<String>,
}

/// What the guest sees of sockets and cores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topology {
    /// Sockets.
    pub sockets: Option<u32>,
    /// Dies of a socket.
    pub dies: Option<u32>,
    /// Clusters of a die.
    pub clusters: Option<u32>,
    /// Cores of a die or cluster.
    pub cores: Option<u32>,
    /// Threads of a core.
    pub threads: Option<u32>,
}

/// A NUMA node of the guest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumaCell {
    /// Its number; none if it is its place among the others.
    pub id: Option<u32>,
    /// Its vCPUs.
    pub cpus: Option<CpuSet>,
    /// Its memory, in bytes.
    pub memory_bytes: Option<u64>,
}

/// A timer of the guest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DomainTimer {
    /// `rtc`, `pit`, `hpet`, `tsc`, `kvmclock`, `hypervclock`, `armvtimer`, `platform`.
    pub name: String,
    /// `present=`.
    pub present: Option<bool>,
    /// `tickpolicy=`: `delay`, `catchup`, `merge` or `discard`.
    pub tickpolicy: Option<String>,
    /// `mode=` of `tsc`.
    pub mode: Option<String>,
}

/// Hyper-V's enlightenments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hyperv {
    /// `custom`, or `passthrough`: all that the host can do.
    pub mode: Option<String>,
    /// Which are given, by name. One inside another stands as `stimer-direct`, as QEMU calls it.
    pub features: BTreeMap<String, bool>,
}

/// What memory is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryBacking {
    /// `<hugepages>`; empty for the host's default size.
    pub hugepages: Option<Vec<HugePages>>,
    /// `<locked/>`: not swapped out.
    pub locked: bool,
    /// `<nosharepages/>`: not merged with others' (KSM).
    pub nosharepages: bool,
    /// `<source type=>`: `file`, `anonymous` or `memfd`.
    pub source: Option<String>,
    /// `<access mode=>`: `shared` (as vhost-user needs it) or `private`.
    pub access: Option<String>,
    /// `<allocation mode=>`: `immediate` or `ondemand`.
    pub allocation: Option<String>,
    /// `<discard/>`.
    pub discard: bool,
}

/// Huge pages of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HugePages {
    /// Size of a page, in bytes.
    pub size_bytes: Option<u64>,
    /// The guest's NUMA nodes that they are for; none for all.
    pub nodeset: Option<CpuSet>,
}

/// A disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    /// Line of its element, from 1.
    pub line: usize,
    /// `type=`: `file`, `block`, `network`, `volume`, `nvme`, `vhostuser`, ...
    pub kind: String,
    /// `device=`: `disk`, `cdrom`, `floppy` or `lun`.
    pub device: String,
    /// `<target dev=>`, as in `vda`: its name within the domain.
    pub target: Option<String>,
    /// `<target bus=>`: `virtio`, `scsi`, `sata`, `ide`, ...
    pub bus: Option<String>,
    /// `<source>`'s `file=`, `dev=` or `name=`.
    pub source: Option<String>,
    /// `<driver name=>`.
    pub driver: Option<String>,
    /// `<driver type=>`: `raw`, `qcow2`, ...
    pub format: Option<String>,
    /// `<driver cache=>`.
    pub cache: Option<String>,
    /// `<driver io=>`: `threads`, `native` or `io_uring`.
    pub io: Option<String>,
    /// `<driver iothread=>`.
    pub iothread: Option<u32>,
    /// `<driver queues=>`.
    pub queues: Option<u32>,
    /// `<driver ioeventfd=>`: a kick of the guest wakes a thread of QEMU, instead of leaving to it.
    pub ioeventfd: Option<bool>,
    /// `<driver discard=>`.
    pub discard: Option<String>,
    /// `<address controller=>` of a drive: the number of its controller.
    pub controller: Option<u32>,
    /// `<iotune>`: limits above zero by libvirt's name, in bytes or requests a second (`total_bytes_sec`,
    /// `read_iops_sec`); those of bursts and what else stands there are left out.
    pub limits: BTreeMap<&'static str, u64>,
}

/// The limits of `<iotune>` (`docs/formatdomain.rst`), each with the name that QEMU's `throttling.` has for it
/// (`qemu-options.hx`) and that Proxmox has (`PVE/QemuServer/Drive.pm`).
pub(crate) const DISK_LIMITS: [(&str, &str, &str); 6] = [
    ("total_bytes_sec", "bps-total", "bps"),
    ("read_bytes_sec", "bps-read", "bps_rd"),
    ("write_bytes_sec", "bps-write", "bps_wr"),
    ("total_iops_sec", "iops-total", "iops"),
    ("read_iops_sec", "iops-read", "iops_rd"),
    ("write_iops_sec", "iops-write", "iops_wr"),
];

/// An input device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputDevice {
    /// `type=`: `tablet`, `mouse`, `keyboard`, ...
    pub kind: String,
    /// `bus=`: `usb`, `ps2`, `virtio`, ...
    pub bus: Option<String>,
    /// `<address bus=>` of a USB device: the number of its controller.
    pub controller: Option<u32>,
}

/// A controller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Controller {
    /// `type=`: `scsi`, `usb`, `pci`, `virtio-serial`, ...
    pub kind: String,
    /// `index=`.
    pub index: Option<u32>,
    /// `model=`, as in `virtio-scsi`.
    pub model: Option<String>,
    /// `<driver iothread=>`.
    pub iothread: Option<u32>,
    /// `<driver queues=>`.
    pub queues: Option<u32>,
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interface {
    /// Line of its element, from 1.
    pub line: usize,
    /// `type=`: `network`, `bridge`, `direct`, `user`, `vhostuser`, `hostdev`, ...
    pub kind: String,
    /// `<source>`'s `network=`, `bridge=`, `dev=` or `path=`.
    pub source: Option<String>,
    /// `<mac address=>`.
    pub mac: Option<String>,
    /// `<model type=>`: `virtio`, `e1000e`, ...
    pub model: Option<String>,
    /// `<driver name=>`: `vhost` (the kernel's thread) or `qemu`. Without one libvirt takes vhost if the host has it.
    pub driver: Option<String>,
    /// `<driver queues=>`.
    pub queues: Option<u32>,
    /// `<driver ioeventfd=>`.
    pub ioeventfd: Option<bool>,
    /// `<driver rx_queue_size=>`.
    pub rx_queue_size: Option<u32>,
    /// `<driver tx_queue_size=>`.
    pub tx_queue_size: Option<u32>,
    /// `<target dev=>`: its name on the host, as in `vnet0`.
    pub target: Option<String>,
}

/// A serial port or a console.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DomainConsole {
    /// Line of its element, from 1.
    pub line: usize,
    /// `serial` or `console`.
    pub element: String,
    /// `type=`: `pty`, `file`, `unix`, ...
    pub kind: Option<String>,
    /// `<target type=>`: `isa-serial`, `system-serial` and the like of a serial port; `serial` of a console that is
    /// another name of one; `virtio` of one that is paravirtual.
    pub target_type: Option<String>,
    /// `<target port=>`.
    pub port: Option<u32>,
    /// `<target><model name=>`, as in `pl011`.
    pub model: Option<String>,
}

/// A device of the host, given to the guest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hostdev {
    /// `mode=`: `subsystem` or `capabilities`.
    pub mode: Option<String>,
    /// `type=`: `pci`, `usb`, `mdev`, `scsi`, ...
    pub kind: Option<String>,
}

impl Domain {
    /// Returns whether its definition is cut off, or a part: then nothing can be concluded from what it does not say.
    pub fn is_part(&self) -> bool {
        matches!(
            self.form,
            DefinitionForm::CutLibvirt | DefinitionForm::Virsh
        )
    }

    /// Takes what another definition of the same guest says of where its threads may run, and this one does not.
    pub fn fill_pins(&mut self, other: &Domain) {
        for (pins, others) in [
            (&mut self.vcpu_pins, &other.vcpu_pins),
            (&mut self.iothread_pins, &other.iothread_pins),
        ] {
            for (thread, cpus) in others {
                pins.entry(*thread).or_insert_with(|| cpus.clone());
            }
        }
        if self.emulator_pin.is_none() {
            self.emulator_pin.clone_from(&other.emulator_pin);
        }
    }

    /// Returns the CPUs of the host that a vCPU's thread may run on; `None` if it may run on any.
    pub fn vcpu_cpus(&self, vcpu: u32) -> Option<&CpuSet> {
        self.vcpu_pins.get(&vcpu).or(self.vcpu_cpuset.as_ref())
    }

    /// Returns the CPUs of the host that QEMU's own threads may run on; `None` if they may run on any.
    pub fn emulator_cpus(&self) -> Option<&CpuSet> {
        self.emulator_pin.as_ref().or(self.vcpu_cpuset.as_ref())
    }

    /// Returns the CPUs of the host that an iothread may run on; `None` if it may run on any.
    pub fn iothread_cpus(&self, iothread: u32) -> Option<&CpuSet> {
        let pin = self.iothread_pins.get(&iothread);
        pin.or(self.vcpu_cpuset.as_ref())
    }

    /// Returns a timer by name.
    pub fn timer(&self, name: &str) -> Option<&DomainTimer> {
        self.timers.iter().find(|timer| timer.name == name)
    }

    /// Returns a disk by its target, as in `vda`.
    pub fn disk(&self, target: &str) -> Option<&Disk> {
        let named = |disk: &&Disk| disk.target.as_deref() == Some(target);
        self.disks.iter().find(named)
    }

    /// Returns whether a Hyper-V enlightenment is there for the guest: by name, or all with `passthrough`.
    /// `None` if the document does not say.
    pub fn hyperv_on(&self, name: &str) -> Option<bool> {
        let hyperv = self.hyperv.as_ref()?;
        if hyperv.mode.as_deref() == Some("passthrough") {
            return Some(true);
        }
        hyperv.features.get(name).copied()
    }
}
