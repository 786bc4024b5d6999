//! Records that are cut off or big-endian, events as a whole, and raw fields.

use super::{FIELDS, VALUES, Values, env, format_of, record, styled, with};
use crate::{Abi, Endian, EventFormat, FormatText, PrintStyle};

/// Expected texts from `perf script` of perf 6.1.187, which has a libtraceevent of its own.
#[test]
fn perf_prints_a_few_things_differently() {
    for (print, trace_cmd, perf) in [
        // The string's length is 0; perf prints what is there all the same.
        (r#""%s", __get_str(empty)"#, "", "relative"),
        (r#""%zd", REC->d"#, "-2", "4294967294"),
        (r#""%lx", do_b + REC->a"#, "ffffffff81000105", "5"),
    ] {
        assert_eq!(
            styled(print, &VALUES, PrintStyle::TraceCmd),
            trace_cmd,
            "{print}"
        );
        assert_eq!(styled(print, &VALUES, PrintStyle::Perf), perf, "{print}");
    }
}

#[test]
fn both_branches_of_a_choice_print() {
    let print = r#""%s%s [%s]", REC->t ? "on" : "off", REC->t ? "" : REC->name,
        (REC->a == 5 && REC->t) ? __print_flags(REC->flags, "|", { 1, "A" }) : "none""#;
    assert_eq!(with(print, &VALUES), "on [A|0x12]");
    assert_eq!(with(print, &Values { t: 0, ..VALUES }), "offcomm [none]");
    assert_eq!(with(print, &Values { a: 4, ..VALUES }), "on [none]");
}

#[test]
fn a_record_that_is_cut_off_reads_as_zeros() {
    let format = format_of(
        "t",
        "e",
        FIELDS,
        r#""%u %d %s %s %lu|%s", REC->a, REC->b, REC->name,
        __get_str(str), REC->arr[2], __print_hex(REC->mac, 6)"#,
    );
    let full = record(&VALUES);
    for len in 0..full.len() {
        let mut out = FormatText::new();
        format.print(&full[..len], &env(), PrintStyle::TraceCmd, &mut out);
        assert!(out.len() < 64);
        if len < 12 {
            assert!(out.as_bytes().starts_with(b"0 0 "), "{len}");
        }
    }
}

#[test]
fn big_endian_records_print_the_same() {
    let text =
        b"name: e\nID: 1\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\n\n\
        \tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] s;\toffset:12;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"%d %x %s\", REC->x, REC->x & 0xff, __get_str(s)\n";
    let abi = Abi {
        endian: Endian::Big,
        long_size: 8,
    };
    let format = EventFormat::parse("t", text, abi).unwrap();
    let mut record = vec![0; 16];
    record[8..12].copy_from_slice(&(-2i32).to_be_bytes());
    record[12..16].copy_from_slice(&((3u32 << 16) | 16).to_be_bytes());
    record.extend(b"ab\0");
    let mut out = FormatText::new();
    format.print(&record, &env(), PrintStyle::TraceCmd, &mut out);
    assert_eq!(String::from_utf8_lossy(out.as_bytes()), "-2 fe ab");
}

/// The exit event of x86 KVM (Linux 6.1, shortened): every shape the hot path has.
#[test]
fn the_exit_event_prints_for_both_vendors() {
    let print = r#""vcpu %u reason %s%s%s rip 0x%lx info1 0x%016llx intr_info 0x%08x", REC->vcpu_id,
        (REC->isa == 1) ? __print_symbolic(REC->exit_reason & 0xffff, { 12, "HLT" }, { 30, "IO_INSTRUCTION" })
        : __print_symbolic(REC->exit_reason, { 0x078, "hlt" }, { -1, "invalid_guest_state" }),
        (REC->isa == 1 && REC->exit_reason & ~0xffff) ? " " : "",
        (REC->isa == 1) ? __print_flags(REC->exit_reason & ~0xffff, " ", { 0x80000000, "FAILED_VMENTRY" }) : "",
        REC->guest_rip, REC->info1, REC->intr_info"#;
    let fields = &[
        ("unsigned int exit_reason", 8, 4, 0),
        ("unsigned long guest_rip", 16, 8, 0),
        ("u32 isa", 24, 4, 0),
        ("u64 info1", 32, 8, 0),
        ("u32 intr_info", 40, 4, 0),
        ("unsigned int vcpu_id", 44, 4, 0),
    ];
    let format = format_of("kvm", "kvm_exit", fields, print);
    assert!(format.printer.is_printed_by_tools());
    for (reason, isa, want) in [
        (12u32, 1u32, "HLT"),
        (0x8000_001e, 1, "IO_INSTRUCTION FAILED_VMENTRY"),
        (0x1_0063, 1, "0x63 0x10000"),
        (0x78, 2, "hlt"),
        (u32::MAX, 2, "0xffffffff"),
    ] {
        let mut record = vec![0; 48];
        record[8..12].copy_from_slice(&reason.to_le_bytes());
        record[16..24].copy_from_slice(&0xffff_ffff_8100_0000u64.to_le_bytes());
        record[24..28].copy_from_slice(&isa.to_le_bytes());
        record[32..40].copy_from_slice(&0xab_cdefu64.to_le_bytes());
        record[40..44].copy_from_slice(&0x8000_00ecu32.to_le_bytes());
        record[44] = 3;
        let mut out = FormatText::new();
        out.push(b'x');
        format.print(&record, &env(), PrintStyle::TraceCmd, &mut out);
        let want = format!(
            "xvcpu 3 reason {want} rip 0xffffffff81000000 info1 0x0000000000abcdef intr_info 0x800000ec"
        );
        assert_eq!(String::from_utf8_lossy(out.as_bytes()), want);
    }
}

/// Expected texts from `trace-cmd report -R` of trace-cmd 3.1.6.
#[test]
fn raw_fields_print_as_the_line_prints_them_or_by_their_type() {
    let print = r#""0x%lx %hhx %d", REC->c, REC->b, REC->h"#;
    let mut out = FormatText::new();
    format_of("t", "e", FIELDS, print).print_fields(&record(&VALUES), &env(), &mut out);
    let text = String::from_utf8(out.as_bytes().to_vec()).unwrap();
    let want = " a=5 b=f9 c=0xdeadbeef12345678 d=-2 e=200 f=-3 g=65000 h=65531 t=1 flags=19 name=comm \
        arr=ARRAY[01, 00, 00, 00, 00, 00, 00, 00, 02, 00, 00, 00, 00, 00, 00, 00, 03, 00, 00, 00, 00, 00, 00, \
        00] p=0xffffffff81000010 mac=ARRAY[aa, bb, cc, 01, 02, 03]";
    assert!(text.starts_with(want), "{text}");
    assert!(
        text.contains(" str=hello dyn=ARRAY[0a, 00, 00, 00, 14, "),
        "{text}"
    );
}
