//! What can be changed in a domain's XML.

use std::fmt;

use cpuset::CpuSet;

/// Which of several devices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DeviceChoice {
    /// By its place among those of its sort, from 0, in the document's order.
    Index(usize),
    /// By its name: the target, as in `vda` and `vnet0`, or an interface's MAC address.
    Name(String),
}

impl From<usize> for DeviceChoice {
    fn from(index: usize) -> DeviceChoice {
        DeviceChoice::Index(index)
    }
}

impl From<&str> for DeviceChoice {
    fn from(name: &str) -> DeviceChoice {
        DeviceChoice::Name(name.to_owned())
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Index(index) => write!(f, "number {index}"),
            DeviceChoice::Name(name) => f.write_str(&crate::error::quoted(name)),
        }
    }
}

/// One change. Words are those of libvirt's format; what is none of them is refused with a note.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DomainChange {
    /// `<clock offset=>`: `utc` or `localtime`.
    ClockOffset(String),
    /// `<clock><timer name= present=>`.
    Timer {
        /// As in `hypervclock`, `kvmclock`, `hpet`.
        name: String,
        /// Whether the guest has it.
        present: bool,
    },
    /// `<features><hyperv>`: an enlightenment.
    HypervFeature {
        /// As in `vpindex`; `stimer-direct` is `<stimer><direct>`.
        name: String,
        /// Whether the guest has it.
        on: bool,
    },
    /// `<features><kvm>`.
    KvmFeature {
        /// As in `hint-dedicated`, `poll-control`, `pv-ipi`, `hidden`.
        name: String,
        /// Its state.
        on: bool,
    },
    /// `<features>`: `acpi`, `apic` or `pae`, which are there or not, and `pmu`, `vmport`, `pvspinlock`, which have
    /// a state.
    Feature {
        /// Its element.
        name: String,
        /// Its state.
        on: bool,
    },
    /// `<features><apic eoi=>`.
    ApicEoi(bool),
    /// `<cpu mode=>`: `host-passthrough`, `host-model` or `maximum`. A model goes.
    CpuMode(String),
    /// `<cpu><feature>`.
    CpuFeature {
        /// As in `x2apic`.
        name: String,
        /// `require`, `optional`, `disable`, `force` or `forbid`.
        policy: String,
    },
    /// `<cputune><vcpupin>`.
    VcpuPin {
        /// The vCPU.
        vcpu: u32,
        /// CPUs of the host.
        cpus: CpuSet,
    },
    /// `<cputune><emulatorpin>`.
    EmulatorPin(CpuSet),
    /// `<cputune><iothreadpin>`.
    IothreadPin {
        /// Number of the iothread, from 1.
        iothread: u32,
        /// CPUs of the host.
        cpus: CpuSet,
    },
    /// `<iothreads>`: that there are so many at least.
    Iothreads(u32),
    /// `<numatune><memory>`.
    NumaMemory {
        /// `strict`, `preferred`, `interleave` or `restrictive`.
        mode: String,
        /// The host's NUMA nodes.
        nodeset: CpuSet,
    },
    /// `<memoryBacking><hugepages>`.
    HugePages {
        /// Size of a page in KiB; none for the host's default.
        size_kib: Option<u64>,
    },
    /// `<memoryBacking><locked/>`.
    MemoryLocked,
    /// `<memoryBacking><nosharepages/>`.
    NoSharePages,
    /// `<disk><driver cache=>`.
    DiskCache {
        /// Which disk.
        disk: DeviceChoice,
        /// `none`, `writeback`, `writethrough`, `directsync`, `unsafe` or `default`.
        cache: String,
    },
    /// `<disk><driver io=>`.
    DiskIo {
        /// Which disk.
        disk: DeviceChoice,
        /// `threads`, `native` or `io_uring`.
        io: String,
    },
    /// `<disk><driver iothread=>`.
    DiskIothread {
        /// Which disk.
        disk: DeviceChoice,
        /// Number of the iothread, from 1.
        iothread: u32,
    },
    /// `<disk><driver queues=>`.
    DiskQueues {
        /// Which disk.
        disk: DeviceChoice,
        /// How many.
        queues: u32,
    },
    /// `<controller type='scsi' model='virtio-scsi'><driver iothread=>`: for all disks that hang on it.
    ControllerIothread {
        /// Number of the controller, as in `<controller index=>`.
        index: u32,
        /// Number of the iothread, from 1.
        iothread: u32,
    },
    /// `<interface><driver name=>`.
    InterfaceDriver {
        /// Which interface.
        interface: DeviceChoice,
        /// `vhost` or `qemu`.
        name: String,
    },
    /// `<interface><driver queues=>`.
    InterfaceQueues {
        /// Which interface.
        interface: DeviceChoice,
        /// How many.
        queues: u32,
    },
    /// A `<console>` whose target is `virtio`, beside what there is.
    ConsoleVirtio,
    /// No `<serial>` at a port, and no `<console>` that is another name of it.
    RemoveSerial {
        /// Its port, as in `<target port=>`.
        port: u32,
    },
}
