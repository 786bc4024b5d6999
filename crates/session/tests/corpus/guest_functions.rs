//! Exits by the functions of guests' kernels.

use analysis::{ExitTable, RowSplit};
use render::Layout;
use serde_json::Value;

use fixtures::json::{list, number};
use fixtures::{Failures, FixtureQuestion, file, write_text};

/// Symbols of a guest's kernel, and a module that begins behind them.
const KALLSYMS: &str = "ffffffff81000000 T _text\n\
     ffffffff81001000 t io_serial_out\n\
     ffffffff81001040 t io_serial_in\n\
     ffffffff81002000 t native_safe_halt\n\
     ffffffffa0000100 t vp_notify\t[virtio_pci]\n";
const MODULES: &str = "virtio_pci 8192 1 - Live 0xffffffffa0000000\n";

/// Exits: reason, address, how long each takes in microseconds, and how many there are of them.
const EXITS: [(&str, u64, u64, u64); 6] = [
    ("IO_INSTRUCTION", 0xffff_ffff_8100_1008, 10, 5),
    ("IO_INSTRUCTION", 0xffff_ffff_8100_103f, 20, 2),
    ("IO_INSTRUCTION", 0xffff_ffff_8100_1040, 30, 3),
    ("EXTERNAL_INTERRUPT", 0x55aa_0000_1234, 3, 4),
    ("EPT_MISCONFIG", 0xffff_ffff_a000_0104, 7, 6),
    ("EXTERNAL_INTERRUPT", 0xffff_ffff_c000_0000, 1, 1),
];

fn recording() -> String {
    let mut text = "cpus=1\n".to_owned();
    let mut now_us = 1_000_000;
    let mut line = |at_us: u64, event: &str| {
        text.push_str(&format!(
            "CPU 0/KVM-101 [000] {}.{:06}: {event}\n",
            at_us / 1_000_000,
            at_us % 1_000_000
        ));
    };
    line(now_us, "kvm_entry: vcpu 0, rip 0x1");
    for (reason, rip, us, count) in EXITS {
        for _ in 0..count {
            line(
                now_us + 50,
                &format!(
                    "kvm_exit: vcpu 0 reason {reason} rip {rip:#x} info1 0x0 info2 0x0 intr_info 0x0 error_code 0x0"
                ),
            );
            line(now_us + 50 + us, "kvm_entry: vcpu 0, rip 0x1");
            now_us += 100;
        }
    }
    text
}

/// Asks for rows of functions, and of what else is said.
fn by_function(split: RowSplit) -> FixtureQuestion {
    FixtureQuestion::new().by(RowSplit {
        function: true,
        ..split
    })
}

#[test]
fn exits_are_of_the_function_that_their_address_lies_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = write_text(folder.path(), "host.txt", &recording());
    let kallsyms = write_text(folder.path(), "kallsyms", KALLSYMS);
    let modules = write_text(folder.path(), "modules", MODULES);
    let asked = by_function(RowSplit::default()).beside(|beside| {
        beside.guest_kallsyms = Some(kallsyms);
        beside.guest_modules = Some(modules);
    });
    let found = asked.exits_document(&host).expect("exits");
    let rows: Vec<(&str, &str, u64, u64)> = list(&found["rows"])
        .iter()
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap_or("");
            let count = number(row, "count");
            (
                text("key"),
                text("function"),
                count,
                number(row, "total_ns") / 1000,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("IO_INSTRUCTION", "io_serial_out", 7, 90),
            ("EPT_MISCONFIG", "vp_notify", 6, 42),
            ("EXTERNAL_INTERRUPT", "[user]", 4, 12),
            ("IO_INSTRUCTION", "io_serial_in", 3, 90),
            ("EXTERNAL_INTERRUPT", "[unknown]", 1, 1),
        ]
    );
    let warnings = found["quality"]["warnings"].to_string();
    assert!(
        warnings.contains("1 of 17 exits not in user space"),
        "{warnings}"
    );
    // The function's address stands where there is one.
    let first = &list(&found["rows"])[0];
    assert_eq!(
        first["function_address"].as_u64(),
        Some(0xffff_ffff_8100_1000)
    );
    assert_eq!(list(&found["rows"])[2]["function_address"], Value::Null);

    // The table has whole names, behind all numbers.
    let (isa, reports, _) = asked.exits(&host).expect("exits");
    let layout = Layout {
        width: 80,
        limit: usize::MAX,
        nanoseconds: true,
    };
    let text = render::exits::table(isa, &reports[0], false, layout);
    let line = text.lines().find(|line| line.contains("io_serial_out"));
    assert_eq!(
        line.map(|line| line.split_whitespace().collect::<Vec<_>>()),
        Some(vec![
            "IO_INSTRUCTION",
            "7",
            "90.00us",
            "38.3",
            "io_serial_out"
        ])
    );
}

#[test]
fn rows_of_functions_add_up_to_those_of_their_reasons() {
    let mut failures = Failures::default();
    let mut compared = 0;
    for pair in [
        [
            "x86/host-guest-pingpong/host",
            "x86/host-guest-pingpong/host-a",
        ],
        [
            "arm64/virtio-mmio/boot2-vsock/trace",
            "arm64/virtio-mmio/boot2-vsock/trace-guest1",
        ],
    ] {
        let [host, guest] = pair.map(|name| file(&format!("{name}.dat.zst")));
        let tables = |asked: FixtureQuestion| {
            use ExitTable::{Ioport, Mmio, Msr, Vmexit};
            let all = [Vmexit, Ioport, Mmio, Msr].into_iter();
            let asked = all.fold(asked, FixtureQuestion::table);
            asked.exits_document(&host).expect("exits")
        };
        let alone = tables(FixtureQuestion::new());
        let no = RowSplit::default();
        for split in [
            no,
            RowSplit { task: true, ..no },
            RowSplit { vcpu: true, ..no },
        ] {
            let by = format!("{split:?}");
            let both = tables(by_function(split).guest(&guest));
            for (table, alone) in list(&both["tables"]).iter().zip(list(&alone["tables"])) {
                for row in list(&alone["rows"]) {
                    let rows = list(&table["rows"]);
                    let of_key = rows.iter().filter(|one| one["key"] == row["key"]);
                    for field in ["count", "total_ns", "kernel_ns", "user_ns", "user_count"] {
                        let sum: u64 = of_key.clone().map(|one| number(one, field)).sum();
                        let what = format!("{}: by {by}: {} {field}", pair[0], row["key"]);
                        failures.equal(&what, &sum, &number(row, field));
                        compared += 1;
                    }
                    for one in of_key {
                        failures.check(one["function"].is_string(), || row["key"].to_string());
                    }
                }
            }
        }
    }
    failures.finish(compared);
}
