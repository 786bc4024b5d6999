//! Trees as no host has them, and files that cannot be read.

use std::fs;
use std::path::Path;

use crate::made::{CPU, Made, amd, why};

#[test]
fn hostile_trees_do_no_harm() {
    let made = amd();
    let huge = vec![b'7'; 3 << 20];
    made.put("proc/cmdline", &huge);
    made.put(
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        &huge,
    );
    made.put("proc/sys/kernel/osrelease", b"6.1/../../etc\xff\xfe\n");
    made.put(&format!("{CPU}/isolated"), "0-65535:1/2\n");
    made.put(&format!("{CPU}/nohz_full"), "1-0\n");
    made.put(&format!("{CPU}/cpu99999999999/topology/core_id"), "1\n");
    made.put(
        &format!("{CPU}/cpu3/topology/core_id"),
        "99999999999999999999\n",
    );
    made.put(&format!("{CPU}/cpufreq/policy0/affected_cpus"), "zero\n");
    made.put(&format!("{CPU}/cpufreq/policy1/scaling_max_freq"), "fast\n");
    made.put(
        "sys/devices/system/node/node1/meminfo",
        "MemTotal: 18446744073709551615 kB",
    );
    made.put("sys/kernel/debug/kvm/halt_wakeup", "-3\n");
    made.put("proc/interrupts", [&b"\xff\xfe:\n"[..], &huge].concat());
    made.put("proc/irq/99999999999/smp_affinity_list", "0\n");
    made.put("proc/config.gz", b"\x1f\x8bnonsense");
    made.put("proc/1700000000/status", "Name:\tx\n");
    made.put("proc/1703/status", "Name");
    made.put(
        "proc/1703/cmdline",
        [&b"qemu-kvm\0-name\0"[..], &huge].concat(),
    );
    made.put("proc/1703/task/5000000/status", "");
    made.put(
        "proc/1703/task/17/status",
        "Cpus_allowed_list:\t0-65535:1/2\nName:\tCPU 4294967296/KVM\n",
    );
    // Folders in place of files, files in place of folders.
    for path in [
        "sys/devices/system/clocksource/clocksource0/available_clocksource",
        "sys/module/kvm/parameters/halt_poll_ns",
    ] {
        fs::remove_file(made.root().join(path)).expect("a file");
        made.folder(path);
    }
    made.put("sys/module/kvm_intel", "a file");
    made.put("sys/devices/system/node/node7", "a file");
    let (facts, host) = made.collect();
    assert!(
        host.cmdline
            .as_ref()
            .is_some_and(|line| line.len() == 64 << 10)
    );
    for (path, expected) in [
        ("/proc/cmdline", "longer than 64 KiB"),
        (
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            "expected one line",
        ),
        (
            "/sys/devices/system/clocksource/clocksource0/available_clocksource",
            "is a directory",
        ),
        (
            "/sys/devices/system/cpu/isolated",
            "expected a list of CPUs",
        ),
        (
            "/sys/devices/system/cpu/nohz_full",
            "expected a list of CPUs",
        ),
        (
            "/sys/devices/system/cpu/cpu3/topology/core_id",
            "expected a number",
        ),
        (
            "/sys/devices/system/cpu/cpufreq/policy0/affected_cpus",
            "expected CPUs",
        ),
        (
            "/sys/devices/system/cpu/cpufreq/policy1/scaling_max_freq",
            "expected a number",
        ),
        ("/sys/kernel/debug/kvm/halt_wakeup", "expected a number"),
        ("/proc/config.gz", "cannot be unpacked"),
        ("/proc/1703/task/17/status", "Cpus_allowed_list"),
        ("/sys/devices/system/node/node7/cpulist", "is no directory"),
    ] {
        assert!(
            why(&host, path).is_some_and(|why| why.contains(expected)),
            "{path}: {:?}",
            host.unreadable
        );
    }
    assert_eq!(host.clocksource, None);
    assert_eq!(
        (host.hz, host.kernel.as_deref()),
        (None, Some("6.1/../../etc\u{fffd}\u{fffd}"))
    );
    assert_eq!(host.nodes[1].memory_bytes, None);
    assert_eq!(host.cpus.len(), 8);
    // The rest is there.
    assert_eq!(host.parameter("kvm_amd", "avic"), Some("N"));
    assert_eq!(facts.vms.len(), 2);
    assert_eq!(facts.vms[0].vcpus.len(), 2);
}

/// Files that cannot be read for the same reason are listed once.
#[test]
fn files_alike_are_listed_once() {
    let made = amd();
    for cpu in 0..8 {
        made.put(&format!("{CPU}/cpu{cpu}/topology/die_id"), "x\n");
    }
    for name in ["exits", "halts", "mmio", "pio"] {
        made.put(&format!("sys/kernel/debug/kvm/{name}"), "x\n");
    }
    let (_, host) = made.collect();
    let list: Vec<_> = host
        .unreadable
        .iter()
        .map(|one| (one.path.as_str(), one.why.as_str()))
        .collect();
    assert_eq!(
        list,
        [
            (
                "/sys/devices/system/cpu/cpu*/topology/die_id",
                "expected a number (8 files)"
            ),
            ("/sys/kernel/debug/kvm/*", "expected a number (4 files)"),
        ]
    );
    assert_eq!(host.kvm_debug["halt_successful_poll"], 12);
}

/// Links within a tree are followed; those that lead out of it, and pipes that nobody writes to, are not.
#[cfg(unix)]
#[test]
fn links_and_pipes() {
    use std::os::unix::fs::symlink;
    let outside = Made::new();
    outside.put("secret", "hidden\n");
    let made = Made::new();
    let link = |to: &Path, from: &str| {
        made.folder(
            Path::new(from)
                .parent()
                .and_then(Path::to_str)
                .expect("a parent"),
        );
        symlink(to, made.root().join(from)).expect("a link");
    };
    link(&outside.root().join("secret"), "proc/cmdline");
    link(outside.root(), "sys/module/kvm");
    link(Path::new("/dev/zero"), "proc/cpuinfo");
    made.put("proc/real", "6.1.0\n");
    link(Path::new("../../real"), "proc/sys/kernel/osrelease");
    link(Path::new("loop"), "proc/sys/kernel/loop");
    link(Path::new("loop"), "proc/sys/kernel/numa_balancing");
    let (_, host) = made.collect();
    assert_eq!(host.kernel.as_deref(), Some("6.1.0"));
    assert_eq!(host.cmdline, None);
    for path in ["/proc/cmdline", "/proc/cpuinfo"] {
        assert!(
            why(&host, path).is_some_and(|why| why.contains("out of the tree")),
            "{path}"
        );
    }
    assert!(host.modules.is_empty());
    assert!(!format!("{host:?}").contains("hidden"));
    assert!(why(&host, "/proc/sys/kernel/numa_balancing").is_some());
    // A socket stands for everything that is neither file nor folder.
    let made = Made::new();
    made.folder("proc");
    let _socket =
        std::os::unix::net::UnixListener::bind(made.root().join("proc/cmdline")).expect("a socket");
    let (_, host) = made.collect();
    assert_eq!(why(&host, "/proc/cmdline"), Some("is no file"));
}

/// A VMM's program may be anything in a tree: only a file of the tree is opened, and one without end is not read far.
#[test]
fn programs_that_are_none() {
    use std::os::unix::fs::symlink;
    let text = b"\x7fELF\0QEMU emulator version 8.2.2\n";
    let outside = Made::new();
    outside.put("qemu", text);
    let program = |make: &dyn Fn(&Path)| {
        let made = amd();
        let path = made.root().join("usr/bin/qemu-system-x86_64");
        made.folder("usr/bin");
        make(&path);
        symlink(
            "/usr/bin/qemu-system-x86_64",
            made.root().join("proc/1689/exe"),
        )
        .expect("a link");
        made.collect().0.vms[0].version.clone()
    };
    let put = |path: &Path| fs::write(path, text).expect("a file");
    assert_eq!(program(&put).as_deref(), Some("8.2.2"));
    let link = |path: &Path| symlink(outside.root().join("qemu"), path).expect("a link");
    assert_eq!(program(&link), None);
    // Opening it would wait for whoever writes to it.
    let pipe = |path: &Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.expect("mkfifo").success());
    };
    assert_eq!(program(&pipe), None);
    assert_eq!(
        program(&|path| fs::create_dir(path).expect("a folder")),
        None
    );
    let endless = |path: &Path| {
        put(path);
        let file = fs::File::options().write(true).open(path).expect("a file");
        file.set_len(1 << 40).expect("a hole");
    };
    assert_eq!(program(&endless).as_deref(), Some("8.2.2"));
    let without = |path: &Path| {
        fs::write(path, b"\x7fELF").expect("a file");
        let file = fs::File::options().write(true).open(path).expect("a file");
        file.set_len(1 << 40).expect("a hole");
    };
    assert_eq!(program(&without), None);
}
