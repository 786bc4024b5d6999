//! Formats and records are data from outside: whatever they hold, parsing and printing them ends, does not
//! panic, and prints a bounded text.

use proptest::prelude::*;
use tracefmt::{
    Abi, Endian, EventFormat, FormatCatalog, FormatText, Kallsyms, PrintStyle, is_plain,
};

const FIELDS: &str = "name: e\nID: 7\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n\
    \tfield:u64 b;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:char name[16];\toffset:24;\tsize:16;\tsigned:0;\n\
    \tfield:unsigned long arr[2];\toffset:40;\tsize:16;\tsigned:0;\n\
    \tfield:__data_loc char[] s;\toffset:56;\tsize:4;\tsigned:0;\n\
    \tfield:__data_loc u32[] d;\toffset:60;\tsize:4;\tsigned:0;\n\
    \tfield:__rel_loc u8[] r;\toffset:64;\tsize:4;\tsigned:0;\n\
    \tfield:char rest[];\toffset:68;\tsize:0;\tsigned:0;\n\n";

/// Pieces of which print formats are made, whole and broken.
const PIECES: &[&str] = &[
    "\"%d\"",
    "\"%s\"",
    "\"%-8s|%5.2s\"",
    "\"%08lx %llu\"",
    "\"%*d\"",
    "\"%.*s\"",
    "\"%pS\"",
    "\"%pM\"",
    "\"%pISpc\"",
    "\"%pI6c\"",
    "\"%pU\"",
    "\"%*ph\"",
    "\"%*pbl\"",
    "\"%c%%\"",
    "\"%",
    "\"a\" \"b\"",
    "'x'",
    ",",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "?",
    ":",
    "->",
    "REC",
    "REC->a",
    "REC->b",
    "REC->name",
    "REC->arr",
    "REC->s",
    "REC->d",
    "REC->r",
    "REC->rest",
    "REC->common_pid",
    "REC->none",
    "REC->a",
    "0",
    "1",
    "0xffffffff",
    "-1",
    "4294967296",
    "NAME",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "~",
    "!",
    "<<",
    ">>",
    "<",
    ">=",
    "==",
    "&&",
    "||",
    "(u8)",
    "(long)",
    "(void *)",
    "(u32 *)",
    "(struct x *)",
    "__print_flags(",
    "__print_symbolic(",
    "__print_hex(",
    "__print_array(",
    "__print_hex_dump(",
    "__get_str(s)",
    "__get_rel_str(r)",
    "__get_dynamic_array(d)",
    "__get_dynamic_array_len(d)",
    "__get_bitmask(d)",
    "__get_cpumask(r)",
    "__get_sockaddr(r)",
    "__builtin_expect(",
    "sizeof(",
    "unknown(",
    "\"|\"",
    "{ 1, \"A\" }",
    "{ 0x80, \"B\" }",
    "{ NAME, \"C\" }",
    "{ }",
];

fn env() -> FormatCatalog {
    let mut env = FormatCatalog::default();
    env.kallsyms = Kallsyms::parse(b"1000 T one\n2000 T NAME\n3000 T three\n");
    env.set_printk(b"0x1 : \"%d %s %*d %.*s %pS %pM %c %ld\\n\"\n0x2 : \"%\"\n");
    env
}

/// Prints a record in all ways, and checks that the text is bounded.
fn print(format: &EventFormat, record: &[u8]) {
    let env = env();
    // A step adds at most a few characters for every byte of the record, and lines end at 64 KiB.
    let bound = (64 << 10) + 16 * record.len() + (4 << 10);
    for style in [PrintStyle::TraceCmd, PrintStyle::Perf] {
        let mut out = FormatText::new();
        format.print(record, &env, style, &mut out);
        assert!(
            format.printer.is_raw() || out.len() <= bound,
            "{} bytes",
            out.len()
        );
        assert!(!format.prints_plain() || is_plain(out.as_bytes()));
    }
    let mut out = FormatText::new();
    format.print_fields(record, &env, &mut out);
}

/// Parses a format for machines of both kinds, and prints a record with each.
fn check(system: &str, text: &[u8], record: &[u8]) {
    for abi in [
        Abi {
            endian: Endian::Big,
            long_size: 4,
        },
        Abi::default(),
    ] {
        if let Some(format) = EventFormat::parse(system, text, abi) {
            print(&format, record);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_sequence_of_pieces_parses_and_prints(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40),
        record in prop::collection::vec(any::<u8>(), 0..160),
    ) {
        let text = format!("{FIELDS}print fmt: \"%s %d %lx %p\", {}\n", pieces.join(" "));
        check("t", text.as_bytes(), &record);
    }

    #[test]
    fn any_format_string_parses_and_prints(
        string in "[%dslxupcMISUhb0-9*.#\\-+ ]{0,60}",
        record in prop::collection::vec(any::<u8>(), 0..160),
    ) {
        let args = "REC->a, REC->b, REC->name, __get_str(s), REC->arr[1], __get_dynamic_array(d)".repeat(4);
        let text = format!("{FIELDS}print fmt: \"{string}\", {}\n", args.replace(")REC", "), REC"));
        check("t", text.as_bytes(), &record);
    }

    #[test]
    fn any_text_parses_and_prints(
        text in "(?s).{0,300}",
        record in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        for text in [text.clone(), format!("ID: 1\n{text}"), format!("{FIELDS}print fmt: {text}")] {
            check("ftrace", text.as_bytes(), &record);
        }
    }

    #[test]
    fn a_damaged_format_parses_and_prints(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        record in prop::collection::vec(any::<u8>(), 0..160),
    ) {
        let mut text = format!(
            "{FIELDS}print fmt: \"%u %s%s 0x%016llx %s %s\", REC->a, (REC->b == 1) ? __print_symbolic(REC->a & \
             0xffff, {{ 0, \"A\" }}, {{ 1 << 3, \"B\" }}) : \"none\", (REC->a && REC->b & ~0xff) ? \" \" : \"\", \
             REC->b, __print_flags(REC->a, \"|\", {{ 1, \"X\" }}), __print_hex(REC->name, REC->a)\n"
        )
        .into_bytes();
        for (at, byte) in damage {
            let at = at.index(text.len());
            text[at] = byte;
        }
        check("t", &text, &record);
    }

    #[test]
    fn any_bprint_record_prints(
        address in 0u64..4,
        args in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let text = "name: bprint\nID: 5\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\n\n\
            \tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n\
            \tfield:const char * fmt;\toffset:16;\tsize:8;\tsigned:0;\n\
            \tfield:u32 buf[];\toffset:24;\tsize:0;\tsigned:0;\n\n\
            print fmt: \"%ps: %s\", (void *)REC->ip, REC->fmt\n";
        let mut record = vec![0; 16];
        record.extend(address.to_le_bytes());
        record.extend(args);
        check("ftrace", text.as_bytes(), &record);
        check("ftrace", text.as_bytes(), &record[..record.len() / 2]);
    }
}

/// Nesting without end, chains without end, and texts of the largest size there may be: all of it ends, and
/// soon.
#[test]
fn nesting_and_length_are_bounded() {
    let record = vec![0xff; 160];
    for unit in [
        "(",
        "((u8)",
        "!",
        "-",
        "~",
        "REC->a + ",
        "REC->a ? ",
        "REC->a ?: ",
        "(REC->a ?: ",
        "1 ? 2 : ",
        "[",
        "__print_hex(",
        "__builtin_expect(",
        "f(",
        "f(1, ",
        "{",
        "sizeof(",
        "(struct ",
        "REC->arr[",
        "\"%s\" ",
        "__print_symbolic(",
        "__print_flags(REC->a, \"|\", {",
        "REC->a && ",
        "REC->a, ",
        "(REC)",
        "({",
    ] {
        for count in [100, 5000] {
            for tail in ["", "1", "REC->a", "REC->a))))"] {
                let args = unit.repeat(count);
                let text = format!("{FIELDS}print fmt: \"%s %d\", {args}{tail}\n");
                check("t", text.as_bytes(), &record);
            }
        }
    }
    // Many conversions of much text: the line ends at its bound.
    let many = format!(
        "{FIELDS}print fmt: \"{}\", {}1\n",
        "%1024d".repeat(4000),
        "REC->a, ".repeat(4000)
    );
    check("t", many.as_bytes(), &record);
    let wide =
        format!("{FIELDS}print fmt: \"%999999999999d %.99999999999d %*d\", 1, 1, 2147483647, 1\n");
    check("t", wide.as_bytes(), &record);
}
