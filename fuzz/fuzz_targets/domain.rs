//! A domain's XML: any text; what can be read can be changed, read again, and changed again to no effect. Command lines
//! of QEMU and Proxmox's `.conf` are read only.
#![no_main]

use domain::{DomainChange, NoteKind, DeviceChoice};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The first byte says which change is made.
    let Some((pick, data)) = data.split_first() else {
        return;
    };
    if let Ok(all) = domain::definitions(data) {
        assert!(all.iter().all(|one| one.notes.len() <= 33));
    }
    let (text, (_, notes)) = match (domain::decode(data), domain::parse_bytes(data)) {
        (Ok(text), Ok(read)) => (text, read),
        _ => return,
    };
    assert!(notes.len() <= 33);
    let change = change(*pick);
    let Ok((after, notes)) = domain::apply(text, std::slice::from_ref(&change)) else {
        return;
    };
    let changed = after != text;
    assert_eq!(domain::diff("x", text, &after).is_empty(), !changed);
    assert!(domain::parse(&after).is_ok());
    let refused = |note: &domain::DomainNote| note.kind == NoteKind::Refused;
    if !notes.iter().any(refused) {
        let (again, _) = domain::apply(&after, &[change]).expect("it was changed once");
        assert_eq!(again, after);
    }
});

fn change(pick: u8) -> DomainChange {
    let on = pick & 0x80 == 0;
    let name = |name: &str| name.to_owned();
    let device = || DeviceChoice::Index(usize::from(pick >> 5 & 1));
    match pick & 0x1f {
        0 => DomainChange::Timer {
            name: name("hypervclock"),
            present: on,
        },
        1 => DomainChange::Timer {
            name: name("hpet"),
            present: on,
        },
        2 => DomainChange::HypervFeature {
            name: name("synic"),
            on,
        },
        3 => DomainChange::HypervFeature {
            name: name("stimer-direct"),
            on,
        },
        4 => DomainChange::HypervFeature {
            name: name("spinlocks"),
            on,
        },
        5 => DomainChange::KvmFeature {
            name: name("pv-ipi"),
            on,
        },
        6 => DomainChange::Feature {
            name: name("apic"),
            on,
        },
        7 => DomainChange::Feature {
            name: name("pmu"),
            on,
        },
        8 => DomainChange::ApicEoi(on),
        9 => DomainChange::CpuMode(name("host-passthrough")),
        10 => DomainChange::CpuFeature {
            name: name("x2apic"),
            policy: name("require"),
        },
        11 => DomainChange::VcpuPin {
            vcpu: 1,
            cpus: [2, 5].into_iter().collect(),
        },
        12 => DomainChange::EmulatorPin([0].into_iter().collect()),
        13 => DomainChange::IothreadPin {
            iothread: 1,
            cpus: [3].into_iter().collect(),
        },
        14 => DomainChange::Iothreads(2),
        15 => DomainChange::HugePages {
            size_kib: on.then_some(2048),
        },
        16 => DomainChange::MemoryLocked,
        17 => DomainChange::NumaMemory {
            mode: name("strict"),
            nodeset: [0].into_iter().collect(),
        },
        18 => DomainChange::DiskCache {
            disk: device(),
            cache: name("none"),
        },
        19 => DomainChange::DiskIothread {
            disk: device(),
            iothread: 1,
        },
        20 => DomainChange::InterfaceDriver {
            interface: device(),
            name: name("vhost"),
        },
        21 => DomainChange::ConsoleVirtio,
        22 => DomainChange::RemoveSerial { port: 0 },
        23 => DomainChange::ControllerIothread {
            index: 0,
            iothread: 1,
        },
        _ => DomainChange::ClockOffset(name(if on { "utc" } else { "localtime" })),
    }
}
