//! Numbers: conversions, operators, casts.

use super::check;

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
fn widths_and_counts_beyond_a_byte_are_not_cut() {
    let zeros = |format: &str, width: usize| check(&[(format, &format!("{:0>width$}", 5))]);
    zeros(r#""%0256u", REC->a"#, 256);
    zeros(r#""%0257x", REC->a"#, 257);
    // As everywhere, the low six bits of the count are what is shifted by.
    check(&[
        (r#""%u", REC->e >> 18446744073709551615"#, "0"),
        (r#""%u", REC->e >> 257"#, "100"),
    ]);
}
