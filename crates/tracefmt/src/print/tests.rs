//! Lines of small formats and what the reference tools print of them.
//!
//! Unless a test says otherwise, the expected texts were printed by `trace-cmd report -N` of trace-cmd 3.1.6
//! (libtraceevent 1.7.1), which was given a trace.dat with these very formats and records.

mod ftrace;

use super::PrintStyle;
use crate::{Abi, Endian, Format, Formats, Kallsyms};

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
        let word = (data.len() as u32) << 16 | start as u32;
        put(&mut r, at, &word.to_le_bytes());
        r.extend(data);
    }
    r
}

fn format_of(system: &str, name: &str, fields: &[(&str, u32, u32, u32)], print: &str) -> Format {
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
    Format::parse(system, text.as_bytes(), Abi::default()).unwrap()
}

fn env() -> Formats {
    let mut env = Formats::default();
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
    let mut out = Vec::new();
    format_of("t", "e", FIELDS, print).print(&record(values), &env(), style, &mut out);
    String::from_utf8(out).unwrap()
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

#[test]
fn numbers_are_unsigned_and_cut_to_the_conversion() {
    check(&[
        (
            r#""%d %u %x", REC->b, REC->b, REC->b"#,
            "-7 4294967289 fffffff9",
        ),
        (r#""%ld %lx", REC->b, REC->b"#, "4294967289 fffffff9"),
        (
            r#""%d %d %d %d", REC->e, REC->f, REC->g, REC->h"#,
            "200 253 65000 65531",
        ),
        (
            r#""%hhd %hd %hhx %hx", REC->e, REC->g, REC->b, REC->b"#,
            "-56 -536 f9 fff9",
        ),
        (r#""%lld %llu", REC->d, REC->d"#, "-2 18446744073709551614"),
        (
            r#""%Lx %Lu", REC->c, REC->c"#,
            "deadbeef12345678 16045690981402826360",
        ),
        (r#""%lX %X", REC->c, REC->c"#, "DEADBEEF12345678 12345678"),
        (
            r#""%#x %#o %08x %-6d| %6d %.3d %03d", REC->a, REC->a, REC->a, REC->a, REC->a, REC->a, REC->a"#,
            "0x5 05 00000005 5     |      5 005 005",
        ),
        (r#""%*d|%-*d|", 6, REC->a, 6, REC->a"#, "     5|5     |"),
        (
            r#""%llu.%03lu", REC->c / 1000, REC->c % 1000"#,
            "16045690981402826.360",
        ),
        (r#""%04x %016llx", REC->g, REC->c"#, "fde8 deadbeef12345678"),
        (r#""%03d %05d", REC->b, REC->b"#, "-07 -0007"),
        (r#""%d", REC->common_pid"#, "1"),
        (r#""100%% done\t\"q\" \\n""#, r#"100% done	"q" \n"#),
    ]);
}
#[test]
fn operators_group_as_libtraceevent_groups_them() {
    check(&[
        (r#""%d", REC->a - REC->b - 1"#, "13"),
        (r#""%d", 100 - 10 - 5"#, "95"),
        (r#""%d", REC->a / 2 * 3"#, "0"),
        (r#""%d", REC->a + (REC->e & 15)"#, "13"),
        (r#""%d", 1 << (REC->a & 3)"#, "0"),
        (r#""%d", REC->a * -REC->h"#, "-65531"),
        (r#""%d", 2 * (REC->a + 1) + 3"#, "14"),
        (r#""%d", REC->a & 4 == 4"#, "1"),
        (r#""%d", REC->a == 5 && REC->t == 1 || REC->e == 0"#, "1"),
        (r#""%d", REC->a>>1<<2"#, "0"),
        (r#""%d", REC->t ? 1 : 2 + 3"#, "4"),
        (
            r#""%s", (REC->a == 1) ? "one" : (REC->a == 5) ? "five" : "other""#,
            "five",
        ),
        (r#""%d", REC->t && (REC->a ? 0 : 1)"#, "0"),
    ]);
}
#[test]
fn signs_are_lost_before_numbers_are_compared() {
    check(&[
        (r#""%d %d", REC->b < 0, REC->d < 0"#, "0 0"),
        (r#""%s", REC->b < 0 ? "negative" : "positive""#, "positive"),
        (r#""%d", REC->b >> 1"#, "2147483644"),
        (r#""%d", REC->f == -3"#, "0"),
        (r#""%d %x", -REC->b, ~REC->a"#, "7 fffffffa"),
        (r#""%d%d", !REC->t, !REC->b"#, "00"),
    ]);
}
#[test]
fn casts_cut_and_never_extend() {
    check(&[
        (
            r#""%d %d %d", (u8)REC->c, (char)REC->e, (short)REC->g"#,
            "120 200 65000",
        ),
        (
            r#""%lld %llx", (long)REC->b, (unsigned long long)REC->b"#,
            "4294967289 fffffff9",
        ),
        (
            r#""%d %x", (int)REC->c, (u16)(REC->c >> 16)"#,
            "305419896 1234",
        ),
        (
            r#""%d,%d", ((unsigned int) ((REC->c) >> 20)), ((unsigned int) ((REC->c) & ((1U << 20) - 1)))"#,
            "-605097693,284280",
        ),
        (
            r#""%d %d %d", sizeof(REC->a), sizeof(int), sizeof(unsigned long)"#,
            "4 4 8",
        ),
        (r#""%d %s", (REC)->a, (REC)->name"#, "5 comm"),
        (r#""%d", __builtin_expect(!!(REC->a), 0)"#, "1"),
    ]);
}
#[test]
fn strings_come_from_arrays_locators_and_tables_of_the_kernel() {
    check(&[
        (
            r#""%s|%-10s|%10s|%.2s", REC->name, REC->name, REC->name, REC->name"#,
            "comm|comm      |      comm|co",
        ),
        (
            r#""%s|%10s|%.2s", __get_str(str), __get_str(str), __get_str(str)"#,
            "hello|     hello|he",
        ),
        (r#""%s", __get_rel_str(rel)"#, "relative"),
        (r#""[%s]", __get_str(empty)"#, "[]"),
        (r#""%.*s", 3, REC->name"#, "com"),
        (r#""%s", REC->p"#, "printk str"),
        (r#""%s", REC->t ? REC->name : "none""#, "comm"),
        (r#""%s %d", "a" "b", 5"#, "ab 5"),
        (
            r#""%s", REC->a > 4 ? REC->a < 6 ? "five" : "big" : "small""#,
            "five",
        ),
        (r#""%s", !REC->t ? "no" : "yes""#, "yes"),
        (r#""%s", (char *)REC->name"#, ""),
        (r#""[%s]", __get_dynamic_array(str)"#, "[]"),
        (
            r#""%s", REC->flags == 0x13 ? __print_symbolic(REC->a, { 5, "five" }) : "none""#,
            "five",
        ),
    ]);
}
#[test]
fn flags_and_symbols() {
    check(&[
        (
            r#""%s", __print_flags(REC->flags, "|", { 1, "A" }, { 2, "B" }, { 0x10, "C" })"#,
            "A|B|C",
        ),
        (
            r#""%s", __print_flags(REC->flags, "|", { 1, "A" }, { 2, "B" })"#,
            "A|B|0x10",
        ),
        (
            r#""%10s", __print_flags(REC->flags, "|", { 1, "A" }, { 2, "B" })"#,
            "         A|         B|0x10",
        ),
        (
            r#""%s", __print_flags(REC->flags, "", { 1, "A" }, { 2, "B" })"#,
            "AB0x10",
        ),
        (
            r#""%s", __print_flags(REC->flags, ", ", { 0, "NONE" }, { 3, "AB" })"#,
            "AB, 0x10",
        ),
        (
            r#""[%s]", __print_flags(REC->flags & 4, "|", { 0, "NONE" }, { 4, "D" })"#,
            "[]",
        ),
        (
            r#""%s", __print_flags(REC->flags & 4, "|", { FOO, "unknown" }, { 4, "D" })"#,
            "unknown",
        ),
        (
            r#""%s", __print_flags(REC->flags, "|", { (unsigned long)(1 << 0), "A" }, { (1UL << 1) | (1UL << 4), "BC" })"#,
            "A|BC",
        ),
        (
            r#""%s", __print_flags(REC->flags, "|", { ((((1UL))) << (UNKNOWN_BIT)), "A" }, { ((((1UL))) << (OTHER_BIT)), "B" })"#,
            "A|0x12",
        ),
        (
            r#""%s", __print_symbolic(REC->a, { 5, "five" }, { 5, "again" }, { 6, "six" })"#,
            "five",
        ),
        (r#""%s", __print_symbolic(REC->a, { 1, "one" })"#, "0x5"),
        (
            r#""%s", __print_symbolic(REC->a, { FOO, "foo" }, { 1, "x" })"#,
            "0x5",
        ),
        (
            r#""%-8s|", __print_symbolic(REC->a, { 5, "five" })"#,
            "five    |",
        ),
        (
            r#""%s", __print_symbolic(REC->b, { -7, "m7" }, { 1, "x" })"#,
            "0xfffffff9",
        ),
        (
            r#""%s", __print_symbolic(REC->d + 1, { -7, "m7" }, { 1, "x" })"#,
            "m7",
        ),
        (
            r#""%s", __print_symbolic(REC->a, { 1 + 2 + 2, "sum" }, { 7, "x" })"#,
            "sum",
        ),
        (
            r#""%s", __print_symbolic(REC->a & 4, { 1 << 2, "four" }, { 0, "x" })"#,
            "four",
        ),
        (
            r#""%s", __print_symbolic(REC->a, { 5, "x\ty" }, )"#,
            r#"x\ty"#,
        ),
        (
            r#""%s", __print_symbolic(REC->a, { 5, "five" }, { -1, ((void *)0) })"#,
            "five",
        ),
        (
            r#""%s", __print_symbolic(REC->a, { HI_SOFTIRQ, "HI" }, { IRQ_POLL_SOFTIRQ, "IRQ_POLL" })"#,
            "IRQ_POLL",
        ),
    ]);
}
#[test]
fn arrays_and_masks() {
    check(&[
        (r#""%s", __print_hex(REC->mac, 6)"#, "aa bb cc 01 02 03"),
        (r#""%s", __print_hex_str(REC->mac, 6)"#, "aabbcc010203"),
        (
            r#""%s", __print_hex(__get_dynamic_array(bytes), __get_dynamic_array_len(bytes))"#,
            "de ad be ef",
        ),
        (r#""%s", __print_array(REC->arr, 3, 8)"#, "1 2 3"),
        (r#""%s", __print_array(REC->hw, 4, 2)"#, "1 4660 65535 7"),
        (
            r#""%s", __print_array(REC->mac, 6, 3)"#,
            "BAD SIZE:3 0xaa 187 204 1 2 3",
        ),
        (
            r#""%s", __print_array(__get_dynamic_array(dyn), __get_dynamic_array_len(dyn) / 4, 4)"#,
            "10 20 4294967295",
        ),
        (r#""%s", __get_bitmask(mask)"#, "80000000,00000005"),
        (r#""%s", __get_cpumask(mask)"#, "0,2,63"),
        (r#""%d", __get_dynamic_array_len(dyn)"#, "12"),
        (
            r#""%lu %lu %lx", REC->arr[0], REC->arr[1], REC->arr[2]"#,
            "1 2 3",
        ),
        (r#""%d %d", REC->hw[1], (int)REC->hw[2]"#, "4660 65535"),
        (r#""%u", ((u32 *)__get_dynamic_array(dyn))[4]"#, "20"),
        (
            r#""%lx", ((unsigned long *)__get_dynamic_array(mask))[0]"#,
            "8000000000000005",
        ),
    ]);
}
#[test]
fn pointers_and_addresses() {
    check(&[
        (
            r#""%p %p %p", REC->p, (void *)0, REC->a"#,
            "0xffffffff81000010 (nil) 0x5",
        ),
        (
            r#""%ps %pS %pf %pF", (void *)REC->p, (void *)REC->p, REC->p, REC->p"#,
            "do_a do_a+0x0 do_a do_a+0x0",
        ),
        (
            r#""%pS %ps %ps", (void *)(REC->p + 8), (void *)REC->a, (void *)0xffffffff81000200"#,
            "do_a+0x8 0x5 do_b",
        ),
        (r#""%lx", do_b + REC->a"#, "ffffffff81000105"),
        (
            r#""%pM %pm %pMR %pMF", REC->mac, REC->mac, REC->mac, REC->mac"#,
            "aa:bb:cc:01:02:03 aabbcc010203 03:02:01:cc:bb:aa aa-bb-cc-01-02-03",
        ),
        (
            r#""%pI4 %pi4 %pI4h %pI4l %pI4n", REC->ip4, REC->ip4, REC->ip4, REC->ip4, REC->ip4"#,
            "192.168.0.7 192.168.000.007 7.0.168.192 7.0.168.192 192.168.0.7",
        ),
        (
            r#""%pI6 %pi6 %pI6c", REC->ip6, REC->ip6, REC->ip6"#,
            "fe80:0000:0000:0000:0000:0000:1234:0001 fe800000000000000000000012340001 fe80::1234:1",
        ),
        (
            r#""%pU %pUb %pUB %pUl %pUL", REC->uuid, REC->uuid, REC->uuid, REC->uuid, REC->uuid"#,
            "00010203-0405-0607-0809-0a0b0c0d0e0f 00010203-0405-0607-0809-0a0b0c0d0e0f 00010203-0405-0607-0809-0A0B0C0D0E0F 03020100-0504-0706-0809-0a0b0c0d0e0f 03020100-0504-0706-0809-0A0B0C0D0E0F",
        ),
        (
            r#""%pISpc|%pISc|%pIS", __get_sockaddr(sa), __get_sockaddr(sa), __get_dynamic_array(sa)"#,
            "10.0.0.1:80|10.0.0.1|10.0.0.1",
        ),
        (
            r#""%*ph|%*phC|%*phD|%*phN", 4, __get_dynamic_array(bytes), 3, __get_dynamic_array(bytes), 2, __get_dynamic_array(bytes), 9, __get_dynamic_array(bytes)"#,
            "de ad be ef|de:ad:be|de-ad|deadbeef",
        ),
    ]);
}

/// Conversions libtraceevent 1.7.1 marks (`>c<`), misreads (`%px` as `0x…x`), or that stop it; the kernel's
/// are from its `Documentation/core-api/printk-formats.rst`.
#[test]
fn conversions_the_tool_does_not_know_print_as_the_kernel_prints_them() {
    check_better(&[
        (r#""wf%c", REC->t ? 'e' : 'i'"#, "wfe"),
        (r#""%+d % d", REC->a, REC->a"#, "+5  5"),
        (r#""%c%#x", 'x', REC->a - 5"#, "x0x0"),
        (r#""%px", (void *)REC->p"#, "0xffffffff81000010"),
        (r#""%pB", (void *)(REC->p + 1)"#, "do_a+0x1"),
        (r#""%*pbl", 64, REC->arr"#, "0"),
        (r#""%*pb", 8, REC->arr"#, "01"),
        (r#""%*pbl", 192, REC->arr"#, "0,65,128-129"),
        (r#""%*.*s|", 6, 2, REC->name"#, "    co|"),
        (r#""%pM", __get_dynamic_array(bytes)"#, "de:ad:be:ef:00:00"),
    ]);
}

/// Texts that stop the tool's parser (`[FAILED TO PARSE]`), read as C.
#[test]
fn what_the_tool_cannot_parse_is_read_as_c() {
    check_better(&[
        // kvm:kvm_inj_exception of Linux 6.1 to 6.18: an empty list.
        (
            r#""%s%s", __print_symbolic(REC->a, { }), !REC->t ? "" : " [reinjected]""#,
            "0x5 [reinjected]",
        ),
        // kvm:kvm_sys_access: the GNU conditional.
        (r#""%s %d", REC->p ?: "UNKN", REC->a"#, "printk str 5"),
        (r#""%d", (REC->a - 5) ?: 7"#, "7"),
        // Signed fields are signed, and operators group as in C.
        (r#""%d %d %c", REC->b < 0, REC->b >> 1, 'x'"#, "1 -4 x"),
        (
            r#""%d %d%c", REC->a - 1 - 1, 1 << (REC->a & 3), '.'"#,
            "3 2.",
        ),
        (r#""%d%c", REC->t ? 1 : 2 + 3, '.'"#, "1."),
        (
            r#""%s%c", REC->a == 1 ? "one" : REC->a == 5 ? "five" : "other", '.'"#,
            "five.",
        ),
        (
            r#""%ld %lld%c", REC->b, (s64)(int)0xffffffff, '.'"#,
            "-7 -1.",
        ),
        (r#""%u%c", (REC->b / 2) * 2 == -6, '.'"#, "1."),
        (r#""%u%c", REC->a - 6U > 0, '.'"#, "1."),
        (
            r#""%d %d%c", REC->e + REC->f, (u8)(REC->e + 100), '.'"#,
            "197 44.",
        ),
        // An index with an operator, and one behind a dynamic array.
        (r#""%lu", REC->arr[REC->e & 1]"#, "1"),
        (
            r#""%u %u", ((u32 *)__get_dynamic_array(dyn))[1], __get_dynamic_array(dyn)[0]"#,
            "20 10",
        ),
        (r#""%d", sizeof(u64)"#, "8"),
        (
            r#""%s", __print_array(REC->hw, sizeof(REC->hw) / sizeof(u16), 2)"#,
            "{0x1,0x1234,0xffff,0x7}",
        ),
        (
            r#""%x %x", __builtin_bswap16(REC->hw[1]), ntohl(REC->a)"#,
            "3412 5000000",
        ),
        (
            r#""%d:%d%c", MAJOR(REC->a << 20), MINOR(REC->a | 1 << 20), '.'"#,
            "5:5.",
        ),
        (
            r#""%d", __builtin_choose_expr(__builtin_constant_p(REC->a), 1, REC->a)"#,
            "5",
        ),
        (
            r#""%llu.%09u", __print_ns_to_secs(REC->c), __print_ns_without_secs(REC->c)"#,
            "16045690981.402826360",
        ),
    ]);
}

/// The rows are those of the kernel's `lib/hexdump.c`.
#[test]
fn hex_dumps_have_the_kernels_rows() {
    check_better(&[
        (
            r#""%s", __print_hex_dump("p: ", DUMP_PREFIX_NONE, 16, 1, REC->name, 16, 1)"#,
            "p: 63 6f 6d 6d 00 00 00 00 00 00 00 00 00 00 00 00  comm............\n",
        ),
        (
            r#""%s", __print_hex_dump("", DUMP_PREFIX_OFFSET, 16, 8, REC->arr, 24, 0)"#,
            "00000000: 0000000000000001 0000000000000002\n00000010: 0000000000000003\n",
        ),
    ]);
}

/// Only what is not understood shows raw; the rest of the line prints.
#[test]
fn what_is_not_understood_costs_only_itself() {
    check_better(&[
        (r#""a %s b %d", some_helper(REC->a), REC->t"#, "a 5 b 1"),
        (
            r#""a %d b %d", some_helper(1, REC->a, 2), REC->t"#,
            "a 5 b 1",
        ),
        (
            r#""%s|%d", ({ static const char *x[] = { "a", "b" }; x[REC->t]; }), REC->a"#,
            "1|5",
        ),
        (
            r#""%s|%d", ({ f(REC->t, REC->a, REC->t); }), REC->a"#,
            "t=1 a=5|5",
        ),
        (r#""%d %d", REC->a"#, "5 ?"),
        (
            r#""%s %c", __print_symbolic(REC->a, { UNKNOWN, "x" }, { 5, "five" }), 'y'"#,
            "five y",
        ),
        (
            r#""%s %c", __print_flags(REC->flags, "|", { UNKNOWN, "x" }, { 1, "A" }), 'y'"#,
            "A|0x12 y",
        ),
        (r#""%s %c", REC->no_such_field, 'y'"#, "0 y"),
    ]);
}

#[test]
fn a_line_that_cannot_be_read_at_all_prints_its_fields() {
    let fields = &[
        ("int x", 8, 4, 1),
        ("char name[4]", 12, 4, 0),
        ("unsigned long ip", 16, 8, 0),
    ];
    let mut record = vec![0; 24];
    record[8..12].copy_from_slice(&(-3i32).to_le_bytes());
    record[12..15].copy_from_slice(b"abc");
    record[16] = 0x1f;
    for print in [
        "",
        "REC->x",
        "\"%d\" REC->x",
        &format!("\"{}\"", "x".repeat(70_000)),
    ] {
        let format = format_of("t", "e", fields, print);
        assert!(format.printer.is_raw(), "{print}");
        let mut out = Vec::new();
        format.print(&record, &env(), PrintStyle::TraceCmd, &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            " x=-3 name=abc ip=0x1f",
            "{print}"
        );
    }
}

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
        let mut out = Vec::new();
        format.print(&full[..len], &env(), PrintStyle::TraceCmd, &mut out);
        assert!(out.len() < 64);
        if len < 12 {
            assert!(out.starts_with(b"0 0 "), "{len}");
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
    let format = Format::parse("t", text, abi).unwrap();
    let mut record = vec![0; 16];
    record[8..12].copy_from_slice(&(-2i32).to_be_bytes());
    record[12..16].copy_from_slice(&((3u32 << 16) | 16).to_be_bytes());
    record.extend(b"ab\0");
    let mut out = Vec::new();
    format.print(&record, &env(), PrintStyle::TraceCmd, &mut out);
    assert_eq!(String::from_utf8_lossy(&out), "-2 fe ab");
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
        let mut out = b"x".to_vec();
        format.print(&record, &env(), PrintStyle::TraceCmd, &mut out);
        let want = format!(
            "xvcpu 3 reason {want} rip 0xffffffff81000000 info1 0x0000000000abcdef intr_info 0x800000ec"
        );
        assert_eq!(String::from_utf8_lossy(&out), want);
    }
}

/// Expected texts from `trace-cmd report -R` of trace-cmd 3.1.6.
#[test]
fn raw_fields_print_as_the_line_prints_them_or_by_their_type() {
    let print = r#""0x%lx %hhx %d", REC->c, REC->b, REC->h"#;
    let mut out = Vec::new();
    format_of("t", "e", FIELDS, print).print_fields(&record(&VALUES), &env(), &mut out);
    let text = String::from_utf8(out).unwrap();
    let want = " a=5 b=f9 c=0xdeadbeef12345678 d=-2 e=200 f=-3 g=65000 h=65531 t=1 flags=19 name=comm \
        arr=ARRAY[01, 00, 00, 00, 00, 00, 00, 00, 02, 00, 00, 00, 00, 00, 00, 00, 03, 00, 00, 00, 00, 00, 00, \
        00] p=0xffffffff81000010 mac=ARRAY[aa, bb, cc, 01, 02, 03]";
    assert!(text.starts_with(want), "{text}");
    assert!(
        text.contains(" str=hello dyn=ARRAY[0a, 00, 00, 00, 14, "),
        "{text}"
    );
}
