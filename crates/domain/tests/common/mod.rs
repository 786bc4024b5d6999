//! Domains and changes that the tests share.

use domain::{Change, Which};

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
pub(crate) fn changes() -> Vec<Change> {
    let text = str::to_owned;
    let cpus = |list: &str| list.parse().unwrap();
    let mut all = vec![
        Change::ClockOffset(text("localtime")),
        Change::ClockOffset(text("utc")),
        Change::ApicEoi(true),
        Change::CpuMode(text("host-model")),
        Change::CpuMode(text("host-passthrough")),
        Change::CpuFeature {
            name: text("x2apic"),
            policy: text("require"),
        },
        Change::CpuFeature {
            name: text("invtsc"),
            policy: text("require"),
        },
        Change::EmulatorPin(cpus("0-1")),
        Change::EmulatorPin(cpus("0,8")),
        Change::Iothreads(1),
        Change::Iothreads(3),
        Change::NumaMemory {
            mode: text("strict"),
            nodeset: cpus("0"),
        },
        Change::NumaMemory {
            mode: text("interleave"),
            nodeset: cpus("0-1"),
        },
        Change::HugePages { size_kib: None },
        Change::HugePages {
            size_kib: Some(2048),
        },
        Change::MemoryLocked,
        Change::NoSharePages,
        Change::ConsoleVirtio,
        Change::RemoveSerial { port: 0 },
    ];
    for present in [true, false] {
        for name in ["hypervclock", "kvmclock", "hpet", "pit", "rtc", "tsc"] {
            all.push(Change::Timer {
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
            all.push(Change::HypervFeature {
                name: text(name),
                on,
            });
        }
        for name in ["hidden", "hint-dedicated", "poll-control", "pv-ipi"] {
            all.push(Change::KvmFeature {
                name: text(name),
                on,
            });
        }
        for name in ["acpi", "apic", "pae", "pmu", "vmport", "pvspinlock"] {
            all.push(Change::Feature {
                name: text(name),
                on,
            });
        }
    }
    for vcpu in [0, 1, 2, 3] {
        all.push(Change::VcpuPin {
            vcpu,
            cpus: cpus(&format!("{}", vcpu + 4)),
        });
    }
    for iothread in [1, 2] {
        all.push(Change::IothreadPin {
            iothread,
            cpus: cpus("0-3,^1"),
        });
    }
    for disk in [
        Which::Index(0),
        Which::Index(1),
        Which::from("vda"),
        Which::from("nope"),
    ] {
        let disk = || disk.clone();
        all.push(Change::DiskCache {
            disk: disk(),
            cache: text("none"),
        });
        all.push(Change::DiskIo {
            disk: disk(),
            io: text("native"),
        });
        all.push(Change::DiskIothread {
            disk: disk(),
            iothread: 1,
        });
        all.push(Change::DiskQueues {
            disk: disk(),
            queues: 4,
        });
    }
    all.push(Change::ControllerIothread {
        index: 0,
        iothread: 2,
    });
    for interface in [
        Which::Index(0),
        Which::Index(1),
        Which::from("52:54:00:4B:1A:07"),
    ] {
        let interface = || interface.clone();
        for name in ["vhost", "qemu"] {
            all.push(Change::InterfaceDriver {
                interface: interface(),
                name: text(name),
            });
        }
        all.push(Change::InterfaceQueues {
            interface: interface(),
            queues: 4,
        });
    }
    all
}
