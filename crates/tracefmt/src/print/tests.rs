//! Lines of small formats and what the reference tools print of them.
//!
//! Unless a test says otherwise, the expected texts were printed by `trace-cmd report -N` of trace-cmd 3.1.6
//! (libtraceevent 1.7.1), which was given a trace.dat with these very formats and records.

mod better;
mod ftrace;
mod lengths;
mod numbers;
mod records;
mod texts;

use super::PrintStyle;
use crate::{Abi, EventFormat, FormatCatalog, Kallsyms};

/// The fields of the event all tests print, behind the common ones.
const FIELDS: &[(&str, u32, u32, u32)] = &[
    ("unsigned int a", 8, 4, 0),
    ("int b", 12, 4, 1),
    ("u64 c", 16, 8, 0),
    ("s64 d", 24, 8, 1),
    ("unsigned char e", 32, 1, 0),
    ("char f", 33, 1, 1),
    ("unsigned short g", 34, 2, 0),
    ("short h", 36, 2, 1),
    ("bool t", 38, 1, 0),
    ("unsigned int flags", 40, 4, 0),
    ("char name[16]", 48, 16, 0),
    ("unsigned long arr[3]", 64, 24, 0),
    ("const char * p", 88, 8, 0),
    ("u8 mac[6]", 96, 6, 0),
    ("u8 ip4[4]", 104, 4, 0),
    ("u8 ip6[16]", 108, 16, 0),
    ("u8 uuid[16]", 124, 16, 0),
    ("u16 hw[4]", 140, 8, 0),
    ("__data_loc char[] str", 148, 4, 0),
    ("__data_loc u32[] dyn", 152, 4, 0),
    ("__data_loc unsigned long[] mask", 156, 4, 0),
    ("__data_loc u8[] bytes", 160, 4, 0),
    ("__data_loc u8[] sa", 164, 4, 0),
    ("__data_loc char[] empty", 168, 4, 0),
    ("__rel_loc char[] rel", 172, 4, 0),
];

/// What the tests change of the record.
#[derive(Clone)]
struct Values {
    a: u32,
    t: u8,
    flags: u32,
}

const VALUES: Values = Values {
    a: 5,
    t: 1,
    flags: 0x13,
};

fn record(values: &Values) -> Vec<u8> {
    let mut r = vec![0u8; 176];
    let put =
        |r: &mut Vec<u8>, at: usize, bytes: &[u8]| r[at..at + bytes.len()].copy_from_slice(bytes);
    put(&mut r, 4, &1u32.to_le_bytes());
    put(&mut r, 8, &values.a.to_le_bytes());
    put(&mut r, 12, &(-7i32).to_le_bytes());
    put(&mut r, 16, &0xdead_beef_1234_5678u64.to_le_bytes());
    put(&mut r, 24, &(-2i64).to_le_bytes());
    put(&mut r, 32, &[200, 253]);
    put(&mut r, 34, &65000u16.to_le_bytes());
    put(&mut r, 36, &(-5i16).to_le_bytes());
    put(&mut r, 38, &[values.t]);
    put(&mut r, 40, &values.flags.to_le_bytes());
    put(&mut r, 48, b"comm");
    for (i, v) in [1u64, 2, 3].into_iter().enumerate() {
        put(&mut r, 64 + 8 * i, &v.to_le_bytes());
    }
    put(&mut r, 88, &0xffff_ffff_8100_0010u64.to_le_bytes());
    put(&mut r, 96, &[0xaa, 0xbb, 0xcc, 1, 2, 3]);
    put(&mut r, 104, &[192, 168, 0, 7]);
    put(
        &mut r,
        108,
        &[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0, 1],
    );
    let uuid: Vec<u8> = (0..16).collect();
    put(&mut r, 124, &uuid);
    for (i, v) in [1u16, 0x1234, 0xffff, 7].into_iter().enumerate() {
        put(&mut r, 140 + 2 * i, &v.to_le_bytes());
    }
    let dynamic: [(usize, Vec<u8>); 7] = [
        (148, b"hello\0".to_vec()),
        (
            152,
            [10u32, 20, u32::MAX]
                .into_iter()
                .flat_map(u32::to_le_bytes)
                .collect(),
        ),
        (156, 0x8000_0000_0000_0005u64.to_le_bytes().to_vec()),
        (160, vec![0xde, 0xad, 0xbe, 0xef]),
        (164, vec![2, 0, 0, 80, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
        (168, Vec::new()),
        (172, b"relative\0".to_vec()),
    ];
    for (at, data) in dynamic {
        let start = if at == 172 { r.len() - 176 } else { r.len() };
        let [start, len] = [start, data.len()].map(|size| u16::try_from(size).unwrap());
        put(&mut r, at, &start.to_le_bytes());
        put(&mut r, at + 2, &len.to_le_bytes());
        r.extend(data);
    }
    r
}

fn format_of(
    system: &str,
    name: &str,
    fields: &[(&str, u32, u32, u32)],
    print: &str,
) -> EventFormat {
    let mut text = format!(
        "name: {name}\nID: 100\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    );
    for (decl, offset, size, signed) in fields {
        text += &format!("\tfield:{decl};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
    }
    text += &format!("\nprint fmt: {print}\n");
    EventFormat::parse(system, text.as_bytes(), Abi::default()).unwrap()
}

fn env() -> FormatCatalog {
    let mut env = FormatCatalog::default();
    env.kallsyms = Kallsyms::parse(
        b"ffffffff81000000 T _stext\nffffffff81000010 T do_a\nffffffff81000100 t do_b\t[kvm]\n\
          ffffffff82000000 B _end\n",
    );
    env.set_printk(
        b"0xffffffff81000010 : \"printk str\"\n0xffffffff83000010 : \"n=%d s=%s l=%lx %ps\\n\"\n\
          0xffffffff83000020 : \"%*d|%.*s|%pM %% %c\"\n",
    );
    env
}

fn styled(print: &str, values: &Values, style: PrintStyle) -> String {
    let mut out = crate::FormatText::new();
    format_of("t", "e", FIELDS, print).print(&record(values), &env(), style, &mut out);
    String::from_utf8(out.as_bytes().to_vec()).unwrap()
}

fn with(print: &str, values: &Values) -> String {
    styled(print, values, PrintStyle::TraceCmd)
}

/// Checks lines that libtraceevent prints.
#[track_caller]
fn check(lines: &[(&str, &str)]) {
    for (print, want) in lines {
        assert_eq!(with(print, &VALUES), *want, "{print}");
        assert!(
            format_of("t", "e", FIELDS, print)
                .printer
                .is_printed_by_tools(),
            "{print}"
        );
    }
}

/// Checks lines that libtraceevent does not print; the expected text is the kernel's.
#[track_caller]
fn check_better(lines: &[(&str, &str)]) {
    for (print, want) in lines {
        assert_eq!(with(print, &VALUES), *want, "{print}");
        let format = format_of("t", "e", FIELDS, print);
        assert!(!format.printer.is_printed_by_tools(), "{print}");
        assert!(!format.printer.diagnostics.is_empty(), "{print}");
    }
}
