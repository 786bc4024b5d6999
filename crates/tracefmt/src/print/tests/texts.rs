//! Strings, names of values, arrays, masks, addresses.

use super::check;

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
            "00010203-0405-0607-0809-0a0b0c0d0e0f 00010203-0405-0607-0809-0a0b0c0d0e0f \
             00010203-0405-0607-0809-0A0B0C0D0E0F 03020100-0504-0706-0809-0a0b0c0d0e0f \
             03020100-0504-0706-0809-0A0B0C0D0E0F",
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
