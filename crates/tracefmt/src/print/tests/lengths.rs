//! Texts of all lengths: short ones are copied as blocks of known size, long ones are not.

use super::{FIELDS, VALUES, Values, env, format_of, record, with};
use crate::{FormatText, PrintStyle, is_plain};

#[test]
fn literals_and_names_of_all_lengths_print() {
    for len in (0..160).chain([500, 512, 513, 700]) {
        let text = "x".repeat(len);
        let print = format!(
            r#""%u{text}%s{text}%d %08x{text}%#x %016lx {text}%s", REC->a,
            __print_symbolic(REC->a, {{ 5, "{text}" }}), REC->b, REC->flags, REC->a, REC->c, REC->t ? "{text}" : "no""#
        );
        let want = format!("5{text}{text}{text}-7 00000013{text}0x5 deadbeef12345678 {text}{text}");
        assert_eq!(with(&print, &VALUES), want, "{len}");
    }
}

#[test]
fn a_line_is_the_same_wherever_the_room_ends() {
    let print = r#""%u %s %s 0x%016lx 0x%08x %s", REC->a, REC->name,
        REC->t ? "a name that is longer than others" : "", REC->c, REC->flags, __print_hex(REC->mac, 6)"#;
    let want = with(print, &VALUES);
    let format = format_of("t", "e", FIELDS, print);
    for before in 0..1500 {
        let mut out = FormatText::with_capacity(1400);
        out.fill(b'-', before);
        format.print(&record(&VALUES), &env(), PrintStyle::TraceCmd, &mut out);
        assert_eq!(out.as_bytes()[before..], *want.as_bytes(), "{before}");
    }
}

#[test]
fn a_prefix_stands_before_0_only_in_the_kernel() {
    let zero = Values { a: 0, ..VALUES };
    assert_eq!(
        with(r#""%#x %#lx", REC->a, REC->c"#, &zero),
        "0 0xdeadbeef12345678"
    );
    // `%c` is not known to libtraceevent, which is why the kernel's rules are followed here.
    assert_eq!(with(r#""%#x%c", REC->a, 65"#, &zero), "0x0A");
}

#[test]
fn only_formats_without_text_of_records_are_plain() {
    for (print, plain) in [
        (
            r#""%u %d %lx %#x %p\n", REC->a, REC->b, REC->c, REC->a, REC->p"#,
            true,
        ),
        (r#""%s", __print_symbolic(REC->a, { 1, "one" })"#, true),
        (r#""%s", __print_flags(REC->a, "|", { 1, "one" })"#, true),
        (r#""%s %pM", __print_hex(REC->mac, 6), REC->mac"#, true),
        (r#""%s", REC->t ? "on" : "off""#, true),
        ("\"a\x1bb\"", false),
        ("\"%u\x7f%u\", REC->a, REC->b", false),
        (
            "\"%s\", __print_symbolic(REC->a, { 1, \"o\u{9b}ne\" })",
            false,
        ),
        ("\"%s\", REC->t ? \"o\u{202e}n\" : \"off\"", false),
        (r#""%s", REC->name"#, false),
        (r#""%16s", REC->name"#, false),
        (r#""%s", __get_str(str)"#, false),
        (r#""%s", REC->p"#, false),
        (r#""%pS", REC->p"#, false),
        (r#""%c", REC->a"#, false),
    ] {
        let format = format_of("t", "e", FIELDS, print);
        assert_eq!(format.prints_plain(), plain, "{print}");
        let mut out = FormatText::new();
        format.print(&record(&VALUES), &env(), PrintStyle::Perf, &mut out);
        assert!(!plain || is_plain(out.as_bytes()), "{print}");
    }
}
