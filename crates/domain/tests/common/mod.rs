//! Domains and changes that the tests share.

use domain::{DeviceChoice, DomainChange};

/// Domains as people have them, by file name.
pub(crate) const DOMAINS: &[(&str, &str)] = &[
    ("arm64.xml", include_str!("../domains/arm64.xml")),
    ("comments.xml", include_str!("../domains/comments.xml")),
    ("hyperv.xml", include_str!("../domains/hyperv.xml")),
    ("minimal.xml", include_str!("../domains/minimal.xml")),
    ("one-line.xml", include_str!("../domains/one-line.xml")),
    (
        "qemu-commandline.xml",
        include_str!("../domains/qemu-commandline.xml"),
    ),
    ("tabs-crlf.xml", include_str!("../domains/tabs-crlf.xml")),
    ("windows.xml", include_str!("../domains/windows.xml")),
];

/// Every sort of change, in both directions where it has two.
pub(crate) fn changes() -> Vec<DomainChange> {
    let text = str::to_owned;
    let cpus = |list: &str| list.parse().unwrap();
    let mut all = vec![
        DomainChange::ClockOffset(text("localtime")),
        DomainChange::ClockOffset(text("utc")),
        DomainChange::ApicEoi(true),
        DomainChange::CpuMode(text("host-model")),
        DomainChange::CpuMode(text("host-passthrough")),
        DomainChange::CpuFeature {
            name: text("x2apic"),
            policy: text("require"),
        },
        DomainChange::CpuFeature {
            name: text("invtsc"),
            policy: text("require"),
        },
        DomainChange::EmulatorPin(cpus("0-1")),
        DomainChange::EmulatorPin(cpus("0,8")),
        DomainChange::Iothreads(1),
        DomainChange::Iothreads(3),
        DomainChange::NumaMemory {
            mode: text("strict"),
            nodeset: cpus("0"),
        },
        DomainChange::NumaMemory {
            mode: text("interleave"),
            nodeset: cpus("0-1"),
        },
        DomainChange::HugePages { size_kib: None },
        DomainChange::HugePages {
            size_kib: Some(2048),
        },
        DomainChange::MemoryLocked,
        DomainChange::NoSharePages,
        DomainChange::ConsoleVirtio,
        DomainChange::RemoveSerial { port: 0 },
    ];
    for present in [true, false] {
        for name in ["hypervclock", "kvmclock", "hpet", "pit", "rtc", "tsc"] {
            all.push(DomainChange::Timer {
                name: text(name),
                present,
            });
        }
    }
    for on in [true, false] {
        for name in [
            "relaxed",
            "vapic",
            "spinlocks",
            "vpindex",
            "runtime",
            "synic",
            "stimer",
            "stimer-direct",
            "reset",
            "frequencies",
            "reenlightenment",
            "tlbflush",
            "ipi",
            "evmcs",
            "avic",
        ] {
            all.push(DomainChange::HypervFeature {
                name: text(name),
                on,
            });
        }
        for name in ["hidden", "hint-dedicated", "poll-control", "pv-ipi"] {
            all.push(DomainChange::KvmFeature {
                name: text(name),
                on,
            });
        }
        for name in ["acpi", "apic", "pae", "pmu", "vmport", "pvspinlock"] {
            all.push(DomainChange::Feature {
                name: text(name),
                on,
            });
        }
    }
    for vcpu in [0, 1, 2, 3] {
        all.push(DomainChange::VcpuPin {
            vcpu,
            cpus: cpus(&format!("{}", vcpu + 4)),
        });
    }
    for iothread in [1, 2] {
        all.push(DomainChange::IothreadPin {
            iothread,
            cpus: cpus("0-3,^1"),
        });
    }
    for disk in [
        DeviceChoice::Index(0),
        DeviceChoice::Index(1),
        DeviceChoice::from("vda"),
        DeviceChoice::from("nope"),
    ] {
        let disk = || disk.clone();
        all.push(DomainChange::DiskCache {
            disk: disk(),
            cache: text("none"),
        });
        all.push(DomainChange::DiskIo {
            disk: disk(),
            io: text("native"),
        });
        all.push(DomainChange::DiskIothread {
            disk: disk(),
            iothread: 1,
        });
        all.push(DomainChange::DiskQueues {
            disk: disk(),
            queues: 4,
        });
    }
    all.push(DomainChange::ControllerIothread {
        index: 0,
        iothread: 2,
    });
    for interface in [
        DeviceChoice::Index(0),
        DeviceChoice::Index(1),
        DeviceChoice::from("52:54:00:4B:1A:07"),
    ] {
        let interface = || interface.clone();
        for name in ["vhost", "qemu"] {
            all.push(DomainChange::InterfaceDriver {
                interface: interface(),
                name: text(name),
            });
        }
        all.push(DomainChange::InterfaceQueues {
            interface: interface(),
            queues: 4,
        });
    }
    all
}
