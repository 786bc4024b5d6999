//! Formats of events, and records printed with them.
//!
//! The input is one byte for the kind of machine, a format's text up to a NUL, and a record.
#![no_main]

use std::hint::black_box;

use event::{Decoder, Kind};
use libfuzzer_sys::fuzz_target;
use tracefmt::{Abi, Endian, FormatCatalog, Kallsyms, PrintStyle, FormatText};

const SYMBOLS: &[u8] = b"ffffffff81000000 T first\nffffffff81000100 t second\t[kvm]\n";

/// Bytes that a line may take up: each byte of record and format gives some characters, by the widths that the
/// format asks for.
const LONGEST: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&machine, rest)) = data.split_first() else {
        return;
    };
    let end = rest.iter().position(|&b| b == 0).unwrap_or(rest.len());
    let (text, record) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
    let mut formats = FormatCatalog::default();
    formats.abi = Abi {
        endian: if machine & 1 == 0 {
            Endian::Little
        } else {
            Endian::Big
        },
        long_size: if machine & 2 == 0 { 8 } else { 4 },
    };
    formats.page_size = 4096;
    formats.kallsyms = Kallsyms::parse(SYMBOLS);
    formats.set_printk(b"0xffffffff82000000 : \"text %d %s\\n\"\n");
    formats.set_cmdlines(b"7 seven\n1234 CPU 0/KVM\n");
    let system = ["ftrace", "kvm"][usize::from(machine >> 2 & 1)];
    formats.add(system, text);
    let mut out = FormatText::new();
    for format in formats.all() {
        for style in [PrintStyle::TraceCmd, PrintStyle::Perf] {
            out.clear();
            format.print(record, &formats, style, &mut out);
            assert!(out.len() <= LONGEST, "{} bytes", out.len());
        }
        out.clear();
        format.print_fields(record, &formats, &mut out);
        assert!(out.len() <= LONGEST, "{} bytes", out.len());
        for kind in [
            Kind::of("kvm", "kvm_exit"),
            Kind::of("kvm", "kvm_entry"),
            Kind::of("kvm", "kvm_pio"),
            Kind::of("kvm", "kvm_mmio"),
            Kind::of("kvm", "kvm_msr"),
            Kind::of(&format.system, &format.name),
        ] {
            black_box(Decoder::bind(kind, format).decode(record));
        }
    }
});
