//! Lines that libtraceevent does not print; the expected texts are the kernel's.

use super::{check_better, env, format_of};
use crate::{FormatText, PrintStyle};

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
        let mut out = FormatText::new();
        format.print(&record, &env(), PrintStyle::TraceCmd, &mut out);
        assert_eq!(
            String::from_utf8_lossy(out.as_bytes()),
            " x=-3 name=abc ip=0x1f",
            "{print}"
        );
    }
}
