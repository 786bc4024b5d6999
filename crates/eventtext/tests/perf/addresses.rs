//! Addresses: what they are in, and call chains.

use event::Side;
use eventtext::PerfStyle;
use symbols::KernelFile;

use crate::script::*;

#[test]
fn modules_are_named_as_perf_names_them() {
    let mut script = Script::new(&addresses());
    script.kernel();
    let modules = [
        (
            "/lib/modules/6.1/kernel/arch/x86/kvm/kvm-intel.ko",
            "[kvm_intel]",
        ),
        ("/lib/modules/6.1/kernel/a/foo-bar.ko.xz", "[foo_bar]"),
        ("/lib/modules/6.1/kernel/a/foo-zst.ko.zst", "foo_zst.ko.zst"),
        ("[oot-mod]", "[oot-mod]"),
        ("/lib/modules/6.1/kernel/a/no-ext", "no_ext"),
        ("/lib/modules/61/kernel/a/no-ext", "no-ext"),
        ("/lib/modules/6.1/kernel/a/foo.ko.gz", "[foo]"),
        ("/lib/modules/6.1/kernel/a/foo.bar.ko", "[foo.bar]"),
        ("weird", "[unknown]"),
        ("[bpf_prog]", "[bpf_prog]"),
        ("/lib/6.1/kernel/a/foo.ko.debug", "foo.ko.debug"),
        ("/a/.ko", ".ko"),
        ("/a/x.ko.xz.ko", "[x.ko.xz]"),
        ("/a/b/", ""),
    ];
    let mut chain = vec![KERNEL];
    let mut lines = Vec::new();
    for (n, (path, name)) in modules.into_iter().enumerate() {
        let start = MODULES + 0x1000 * n as u64;
        script.mmap(-1, start, 0x1000, 0, K, path);
        chain.push(start + 0x10);
        lines.push(format!("\t{:x} ({name})", start + 0x10));
    }
    assert_eq!(script.chain(20, 20, K, &chain), lines.join("\n"));
    assert_eq!(
        script.chain(
            20,
            20,
            K,
            &[KERNEL, TEXT, TEXT + 0xdf_ffff, TEXT + 0xe0_0000]
        ),
        "\tffffffff81000000 ([kernel.kallsyms])\n\tffffffff81dfffff ([kernel.kallsyms])\n\
         \tffffffff81e00000 ([unknown])"
    );
    // The recorder's later words on the kernel replace its first ones.
    script.mmap(-1, TEXT, 0x1000, TEXT, K, "[kernel.kallsyms]_stext");
    assert_eq!(
        script.chain(20, 20, K, &[KERNEL, TEXT, TEXT + 0x1000]),
        "\tffffffff81000000 ([kernel.kallsyms])\n\tffffffff81001000 ([unknown])"
    );
    script.mmap(-1, 0, 0, 0, K, "[kernel.kallsyms]_text");
    assert_eq!(
        script.chain(20, 20, K, &[KERNEL, TEXT, 5]),
        "\tffffffff81000000 ([kernel.kallsyms])\n\t               5 ([kernel.kallsyms])"
    );
}

#[test]
fn a_kernel_whose_end_is_not_known_does_not_hide_modules() {
    let mut script = Script::new(&addresses());
    script.mmap(-1, 0, 0, 0, K, "[kernel.kallsyms]_text");
    script.mmap(-1, MODULES, 0x2000, 0, K, "/x/m1.ko");
    script.mmap(-1, MODULES + 0x2000, 0x2000, 0, K, "/x/m2.ko");
    assert_eq!(
        script.chain(
            20,
            20,
            K,
            &[
                KERNEL,
                TEXT,
                5,
                MODULES,
                TEXT,
                MODULES + 0x2000,
                MODULES + 0x4000
            ]
        ),
        "\tffffffff81000000 ([kernel.kallsyms])\n\t               5 ([kernel.kallsyms])\n\
         \tffffffffc0000000 ([m1])\n\tffffffff81000000 ([kernel.kallsyms])\n\
         \tffffffffc0002000 ([m2])\n\tffffffffc0004000 ([unknown])"
    );
}

#[test]
fn files_with_build_ids_are_named_in_full() {
    let files = [
        KernelFile {
            path: "/boot/vmlinux-6.1",
            guest: false,
        },
        KernelFile {
            path: "/lib/modules/6.1/kernel/x/kvm-amd.ko",
            guest: false,
        },
        KernelFile {
            path: "/lib/modules/6.1/kernel/x/virtio.ko",
            guest: true,
        },
    ];
    let style = PerfStyle {
        kernel_files: files.to_vec(),
        ..addresses()
    };
    let mut script = Script::new(&style);
    script.kernel();
    script.mmap(
        -1,
        MODULES,
        0x1000,
        0,
        K,
        "/lib/modules/6.1/kernel/x/kvm-amd.ko",
    );
    script.mmap(
        -1,
        MODULES + 0x1000,
        0x1000,
        0,
        K,
        "/lib/modules/6.1/kernel/x/virtio.ko",
    );
    assert_eq!(
        script.chain(20, 20, K, &[KERNEL, TEXT, MODULES, MODULES + 0x1000]),
        "\tffffffff81000000 (/boot/vmlinux-6.1)\n\
         \tffffffffc0000000 (/lib/modules/6.1/kernel/x/kvm-amd.ko)\n\
         \tffffffffc0001000 ([virtio])"
    );
}

#[test]
fn what_is_mapped_is_named_and_addressed_as_perf_does() {
    let names = [
        ("//anon", "100010 (/tmp/perf-22.map)", "100010 (//anon)"),
        ("[heap]", "110010 (/tmp/perf-22.map)", "110010 ([heap])"),
        ("[stack]", "120010 (/tmp/perf-22.map)", "120010 ([stack])"),
        (
            "[stack:12]",
            "130010 (/tmp/perf-22.map)",
            "130010 ([stack:12])",
        ),
        (
            "/SYSV00000000 (deleted)",
            "140010 (/tmp/perf-22.map)",
            "140010 (/SYSV00000000 (deleted))",
        ),
        (
            "/dev/zero (deleted)",
            "150010 (/tmp/perf-22.map)",
            "150010 (/dev/zero (deleted))",
        ),
        (
            "/memfd:x (deleted)",
            "  7010 (/memfd:x (deleted))",
            "  7010 (/memfd:x (deleted))",
        ),
        (
            "/anon_hugepage (deleted)",
            "170010 (/tmp/perf-22.map)",
            "170010 (/anon_hugepage (deleted))",
        ),
        ("[vdso]", "    10 ([vdso])", "    10 ([vdso])"),
        ("[vsyscall]", "  7010 ([vsyscall])", "  7010 ([vsyscall])"),
        (
            "/usr/bin/x (deleted)",
            "  7010 (/usr/bin/x (deleted))",
            "  7010 (/usr/bin/x (deleted))",
        ),
        (
            "[kernel.kallsyms]",
            "  7010 ([kernel.kallsyms])",
            "  7010 ([kernel.kallsyms])",
        ),
        ("/a/b-c.ko", "  7010 (/a/b-c.ko)", "  7010 (/a/b-c.ko)"),
        ("//toolong", "  7010 (//toolong)", "  7010 (//toolong)"),
    ];
    let mut script = Script::new(&addresses());
    let mut chain = vec![USER];
    let (mut code, mut data) = (Vec::new(), Vec::new());
    for (n, (path, executable, other)) in names.into_iter().enumerate() {
        let start = 0x10_0000 + 0x1_0000 * n as u64;
        script.mmap(22, start, 0x1_0000, 0x7000, U, path);
        script.mmap(23, start, 0x1_0000, 0x7000, U | DATA, path);
        chain.push(start + 0x10);
        code.push(format!("\t          {executable}"));
        data.push(format!("\t          {other}"));
    }
    assert_eq!(script.chain(22, 22, U, &chain), code.join("\n"));
    assert_eq!(script.chain(23, 23, U, &chain), data.join("\n"));
}

/// `PERF_RECORD_MMAP2` has the protection, and perf asks that, whatever the header says of data.
#[test]
fn memory_without_a_file_is_a_compilers_if_code_may_run_there() {
    let mut script = Script::new(&addresses());
    script.map(22, 0x10_0000..0x11_0000, 0x7000, U, false, "//anon");
    script.map(22, 0x11_0000..0x12_0000, 0x7000, U, true, "//anon");
    script.map(22, 0x12_0000..0x13_0000, 0x7000, U | DATA, true, "//anon");
    assert_eq!(
        script.chain(22, 22, U, &[USER, 0x10_0010, 0x11_0010, 0x12_0010]),
        "\t          100010 (//anon)\n\
         \t          110010 (/tmp/perf-22.map)\n\
         \t          120010 (/tmp/perf-22.map)"
    );
}

#[test]
fn later_mappings_cover_earlier_ones() {
    let mut script = Script::new(&addresses());
    let check = |script: &mut Script, expected: &[(u64, &str)]| {
        let chain: Vec<u64> = [USER]
            .into_iter()
            .chain(expected.iter().map(|e| e.0))
            .collect();
        let lines: Vec<String> = expected
            .iter()
            .map(|(address, place)| match place.split_once(' ') {
                Some((at, file)) => format!("\t{at:>16} ({file})"),
                None => format!("\t{address:16x} ([unknown])"),
            })
            .collect();
        assert_eq!(script.chain(20, 20, U, &chain), lines.join("\n"));
    };
    script.mmap(20, 0x10_0000, 0x1_0000, 0x1000, U, "/a");
    script.mmap(20, 0x10_4000, 0x2000, 0, U, "/b");
    check(
        &mut script,
        &[
            (0x10_0000, "1000 /a"),
            (0x10_3fff, "4fff /a"),
            (0x10_4000, "0 /b"),
            (0x10_5fff, "1fff /b"),
            (0x10_6000, "7000 /a"),
            (0x10_ffff, "10fff /a"),
            (0x11_0000, ""),
            (0x0f_ffff, ""),
        ],
    );
    script.mmap(20, 0x0f_0000, 0x1_1000, 0, U, "/c");
    check(
        &mut script,
        &[
            (0x0f_0000, "0 /c"),
            (0x10_0fff, "10fff /c"),
            (0x10_1000, "2000 /a"),
            (0x10_4000, "0 /b"),
        ],
    );
    script.mmap(20, 0x10_f000, 0x1_1000, 0, U, "/d");
    check(
        &mut script,
        &[
            (0x10_efff, "ffff /a"),
            (0x10_f000, "0 /d"),
            (0x11_f000, "10000 /d"),
            (0x12_0000, ""),
        ],
    );
    script.mmap(20, 0x08_0000, 0x20_0000, 0, U, "/all");
    check(
        &mut script,
        &[
            (0x10_0000, "80000 /all"),
            (0x10_4000, "84000 /all"),
            (0x10_f000, "8f000 /all"),
        ],
    );
}

#[test]
fn processes_inherit_mappings_and_threads_share_them() {
    let mut script = Script::new(&addresses());
    let at = [USER, 0x10_0000, 0x10_1000];
    let all = "\t           80000 (/all)\n\t           81000 (/all)";
    let child = "\t               0 (/child)\n\t           81000 (/all)";
    let none = "\t          100000 ([unknown])\n\t          101000 ([unknown])";
    script.comm(20, 20, "parent");
    script.mmap(20, 0x08_0000, 0x20_0000, 0, U, "/all");
    script.fork(30, 30, 20, 20);
    assert_eq!(script.chain(30, 30, U, &at), all);
    script.mmap(30, 0x10_0000, 0x1000, 0, U, "/child");
    assert_eq!(script.chain(30, 30, U, &at), child);
    assert_eq!(script.chain(20, 20, U, &at), all);
    // An exec changes the name. perf leaves the mappings to the records that follow.
    let time = script.tick();
    script.printer.side(&Side::Comm {
        time,
        pid: 30,
        tid: 30,
        comm: "newprog",
        exec: true,
    });
    assert_eq!(script.chain(30, 30, U, &at), child);
    assert_eq!(script.name(30, 30), "newprog");
    script.fork(20, 33, 20, 20);
    assert_eq!(script.chain(20, 33, U, &at), all);
    script.mmap(20, 0x10_0000, 0x1000, 0, U, "/child");
    assert_eq!(script.chain(20, 33, U, &at), child);
    // Threads are known for a while after their end, and so is what they had mapped.
    script.exit(20, 33);
    script.exit(20, 20);
    assert_eq!(script.chain(20, 33, U, &at), child);
    assert_eq!(script.chain(20, 20, U, &at), child);
    // A thread whose process is recorded only later.
    assert_eq!(script.chain(-1, 44, U, &at), none);
    assert_eq!(script.chain(20, 44, U, &at), child);
    // A new process with an old id has nothing of the old one.
    script.fork(31, 31, 2, 2);
    script.fork(20, 20, 31, 31);
    assert_eq!(script.chain(20, 20, U, &at), none);
}

#[test]
fn what_the_recorder_found_is_not_inherited() {
    let mut script = Script::new(&addresses());
    script.mmap(20, 0x10_0000, 0x1000, 0, U, "/a");
    script.printer.side(&Side::Fork {
        time: 0,
        pid: 32,
        tid: 32,
        ppid: 20,
        ptid: 20,
    });
    assert_eq!(
        script.chain(32, 32, U, &[USER, 0x10_0000]),
        "\t          100000 ([unknown])"
    );
    // Recordings without time stamps: once events came, these are new processes.
    script.printer.side(&Side::Fork {
        time: 0,
        pid: 33,
        tid: 33,
        ppid: 20,
        ptid: 20,
    });
    assert_eq!(
        script.chain(33, 33, U, &[USER, 0x10_0000]),
        "\t               0 (/a)"
    );
}

#[test]
fn call_chains_switch_between_kernel_and_user() {
    let mut script = Script::new(&addresses());
    script.kernel();
    let first = "\tffffffff81000000 ([kernel.kallsyms])";
    assert_eq!(
        script.chain(
            20,
            20,
            K,
            &[KERNEL, TEXT, -4096i64 as u64, TEXT + 1, USER, 5]
        ),
        format!(
            "{first}\n\tfffffffffffff000 ([unknown])\n\tffffffff81000001 ([kernel.kallsyms])\n\
             \t               5 ([unknown])"
        )
    );
    assert_eq!(
        script.chain(20, 20, K, &[HYPERVISOR, TEXT, KERNEL, TEXT, USER, TEXT, 5]),
        format!(
            "\tffffffff81000000 ([unknown])\n{first}\n\tffffffff81000000 ([unknown])\n\
             \t               5 ([unknown])"
        )
    );
    assert_eq!(
        script.chain(20, 20, K, &[TEXT]),
        "\tffffffff81000000 ([unknown])"
    );
    // perf knows no other numbers, and shows nothing of chains that have any.
    for other in [GUEST, GUEST - 128, -4095i64 as u64, u64::MAX] {
        assert_eq!(
            script.chain(20, 20, K, &[KERNEL, TEXT, other, TEXT, USER, 5]),
            ""
        );
    }
    assert_eq!(script.chain(20, 20, K, &[]), "");
    // It stops behind 127 addresses, before it sees what comes then.
    let deep: Vec<u64> = [KERNEL]
        .into_iter()
        .chain((0..128).map(|n| TEXT + n))
        .chain([GUEST])
        .collect();
    let lines = script.chain(20, 20, K, &deep);
    assert_eq!(
        (lines.lines().count(), lines.lines().last()),
        (127, Some("\tffffffff8100007e ([kernel.kallsyms])"))
    );
    assert_eq!(
        script
            .chain(20, 20, K, &[&deep[..128], &[GUEST]].concat())
            .lines()
            .count(),
        127
    );
    assert_eq!(
        script.chain(20, 20, K, &[&deep[..127], &[GUEST]].concat()),
        ""
    );
}

#[test]
fn code_the_kernel_made_has_symbols() {
    let mut script = Script::new(&addresses());
    script.kernel();
    let start = 0xffff_ffff_c100_0000;
    let at = [
        KERNEL,
        start,
        start + 0x10,
        start + 0xff,
        start + 0x100,
        TEXT + 0x100,
    ];
    let symbol = |start, len, name, gone| Side::Ksymbol {
        time: 1,
        start,
        len,
        name,
        gone,
    };
    script.printer.side(&symbol(
        start,
        0x100,
        "bpf_prog_6deef7357e7b4530_foo",
        false,
    ));
    script
        .printer
        .side(&symbol(TEXT + 0x100, 0x10, "kern_ool", false));
    assert_eq!(
        script.chain(20, 20, K, &at),
        "\tffffffffc1000000 bpf_prog_6deef7357e7b4530_foo+0x0 (bpf_prog_6deef7357e7b4530_foo)\n\
         \tffffffffc1000010 bpf_prog_6deef7357e7b4530_foo+0x10 (bpf_prog_6deef7357e7b4530_foo)\n\
         \tffffffffc10000ff bpf_prog_6deef7357e7b4530_foo+0xff (bpf_prog_6deef7357e7b4530_foo)\n\
         \tffffffffc1000100 ([unknown])\n\
         \tffffffff81000100 ([kernel.kallsyms])"
    );
    script
        .printer
        .side(&symbol(start, 0x100, "bpf_prog_6deef7357e7b4530_foo", true));
    script
        .printer
        .side(&symbol(TEXT + 0x100, 0x10, "kern_ool", true));
    assert_eq!(
        script.chain(20, 20, K, &at[..2]),
        "\tffffffffc1000000 ([unknown])",
    );
    assert_eq!(
        script.chain(20, 20, K, &[KERNEL, TEXT]),
        "\tffffffff81000000 ([kernel.kallsyms])"
    );
}

#[test]
fn guests_are_a_machine_of_their_own() {
    let mut script = Script::new(&addresses());
    script.kernel();
    script.mmap(0, 0, 0, TEXT, GK, "[guest.kernel.kallsyms]_text");
    script.mmap(0, MODULES, 0x1000, 0, GK, "/x/gm.ko");
    script.mmap(
        1234,
        TEXT,
        0x100_0000,
        TEXT,
        GK,
        "[guest.kernel.kallsyms.1234]_text",
    );
    script.mmap(20, 0x2000, 0x1000, 0, GU, "/bin/gu");
    script.comm(20, 20, "qemu");
    let mut check = |pid, tid, misc, ip, comm: &str, file: &str| {
        let line = script.line(pid, tid, misc, ip);
        let comm_and_tid = format!("{comm:>16} {tid:5} [");
        assert!(line.starts_with(&comm_and_tid), "{line}");
        assert!(
            line.ends_with(&format!("cpu-clock:  {ip:16x} [unknown] ({file})\n")),
            "{line}"
        );
    };
    check(20, 20, K, TEXT, "qemu", "[kernel.kallsyms]");
    check(20, 20, U, TEXT, "qemu", "[unknown]");
    check(20, 20, 0, TEXT, "qemu", "[unknown]");
    check(20, 20, 3, TEXT, "qemu", "[unknown]");
    check(20, 20, GK, TEXT, ":20", "[guest.kernel.kallsyms]");
    check(20, 20, GK, MODULES, ":20", "[gm]");
    check(20, 20, GK, 0x2000, ":20", "[unknown]");
    check(20, 20, GU, TEXT, ":20", "[unknown]");
    check(20, 20, GU, 0x2000, ":20", "/bin/gu");
    check(20, 20, K, MODULES, "qemu", "[unknown]");
    check(0, 0, GK, TEXT, "[guest/0]", "[guest.kernel.kallsyms]");
}
