//! A domain's XML: any text; what can be read can be changed, read again, and changed again to no effect.
#![no_main]

use domain::{Change, NoteKind, Which};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The first byte says which change is made.
    let Some((pick, data)) = data.split_first() else {
        return;
    };
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
    let refused = |note: &domain::Note| note.kind == NoteKind::Refused;
    if !notes.iter().any(refused) {
        let (again, _) = domain::apply(&after, &[change]).expect("it was changed once");
        assert_eq!(again, after);
    }
});

fn change(pick: u8) -> Change {
    let on = pick & 0x80 == 0;
    let name = |name: &str| name.to_owned();
    let device = || Which::Index(usize::from(pick >> 5 & 1));
    match pick & 0x1f {
        0 => Change::Timer {
            name: name("hypervclock"),
            present: on,
        },
        1 => Change::Timer {
            name: name("hpet"),
            present: on,
        },
        2 => Change::HypervFeature {
            name: name("synic"),
            on,
        },
        3 => Change::HypervFeature {
            name: name("stimer-direct"),
            on,
        },
        4 => Change::HypervFeature {
            name: name("spinlocks"),
            on,
        },
        5 => Change::KvmFeature {
            name: name("pv-ipi"),
            on,
        },
        6 => Change::Feature {
            name: name("apic"),
            on,
        },
        7 => Change::Feature {
            name: name("pmu"),
            on,
        },
        8 => Change::ApicEoi(on),
        9 => Change::CpuMode(name("host-passthrough")),
        10 => Change::CpuFeature {
            name: name("x2apic"),
            policy: name("require"),
        },
        11 => Change::VcpuPin {
            vcpu: 1,
            cpus: [2, 5].into_iter().collect(),
        },
        12 => Change::EmulatorPin([0].into_iter().collect()),
        13 => Change::IothreadPin {
            iothread: 1,
            cpus: [3].into_iter().collect(),
        },
        14 => Change::Iothreads(2),
        15 => Change::HugePages {
            size_kib: on.then_some(2048),
        },
        16 => Change::MemoryLocked,
        17 => Change::NumaMemory {
            mode: name("strict"),
            nodeset: [0].into_iter().collect(),
        },
        18 => Change::DiskCache {
            disk: device(),
            cache: name("none"),
        },
        19 => Change::DiskIothread {
            disk: device(),
            iothread: 1,
        },
        20 => Change::InterfaceDriver {
            interface: device(),
            name: name("vhost"),
        },
        21 => Change::ConsoleVirtio,
        22 => Change::RemoveSerial { port: 0 },
        23 => Change::ControllerIothread {
            index: 0,
            iothread: 1,
        },
        _ => Change::ClockOffset(name(if on { "utc" } else { "localtime" })),
    }
}
