//! Control groups of both versions, and what is counted between two looks.

use host::KernelLogTail;

use crate::made::{Made, OTHER};

/// A VM of one vCPU.
fn with_vm() -> Made {
    let made = Made::new();
    let args = [
        "/usr/bin/qemu-system-x86_64",
        "-name",
        "guest=web,debug-threads=on",
    ];
    let threads = [
        (1689, "qemu-system-x86", "0-3", OTHER),
        (1700, "CPU 0/KVM", "2", OTHER),
    ];
    made.process(1689, 1, &args, &threads);
    made
}

#[test]
fn a_quota_above_the_vcpus_group_and_what_it_counted_meanwhile() {
    let made = with_vm();
    let scope = "/machine.slice/web.scope";
    made.put("proc/1689/cgroup", format!("0::{scope}/libvirt/emulator\n"));
    made.put(
        "proc/1689/task/1700/cgroup",
        format!("0::{scope}/libvirt/vcpu0\n"),
    );
    let file = |group: &str, name: &str, text: &str| {
        made.put(&format!("sys/fs/cgroup{group}/{name}"), text)
    };
    file(scope, "cpu.max", "30000 100000\n");
    file(
        scope,
        "cpu.stat",
        "usage_usec 5\nnr_periods 100\nnr_throttled 90\nthrottled_usec 7000000\n",
    );
    file(scope, "io.max", "8:0 rbps=max wbps=1000\n8:16 riops=10\n");
    file(&format!("{scope}/libvirt/vcpu0"), "cpu.max", "max 100000\n");
    file("/machine.slice", "memory.events", "low 0\nhigh 7\nmax x\n");
    file(
        "/machine.slice",
        "memory.pressure",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=500\n",
    );
    made.put("proc/vmstat", "nr_free_pages 77\npswpin 12\npswpout 3\n");
    let mut facts = host::collect(made.root());
    assert_eq!(
        facts.vms[0].cgroups,
        [
            format!("{scope}/libvirt/emulator"),
            format!("{scope}/libvirt/vcpu0")
        ]
    );
    let paths = |facts: &facts::Facts| -> Vec<String> {
        facts
            .groups_of(&facts.vms[0])
            .map(|group| group.path.clone())
            .collect()
    };
    assert_eq!(
        paths(&facts),
        [
            "/machine.slice",
            scope,
            &format!("{scope}/libvirt"),
            &format!("{scope}/libvirt/emulator"),
            &format!("{scope}/libvirt/vcpu0"),
        ]
    );
    let group = |facts: &facts::Facts| {
        facts
            .groups_of(&facts.vms[0])
            .nth(1)
            .expect("a group")
            .clone()
    };
    let before = group(&facts);
    assert_eq!(before.cpu_quota_us(), Some((30_000, 100_000)));
    assert_eq!(
        before.limits["io.max"],
        "8:0 rbps=max wbps=1000; 8:16 riops=10"
    );
    let slice = facts.groups_of(&facts.vms[0]).next().expect("a group");
    let counters: Vec<(&str, u64)> = slice
        .counters
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    assert_eq!(
        counters,
        [
            ("memory.events.high", 7),
            ("memory.events.low", 0),
            ("memory.pressure.some", 500)
        ]
    );
    // Later.
    file(
        scope,
        "cpu.stat",
        "usage_usec 9\nnr_periods 120\nnr_throttled 109\nthrottled_usec 8330000\n",
    );
    made.put("proc/vmstat", "pswpin 492\npswpout 603\n");
    host::count_again(made.root(), &mut facts, &KernelLogTail::open());
    // The log is this machine's: what it says is no part of the tree.
    if let Some(host) = &mut facts.host {
        host.kernel_log_during = None;
    }
    let after = group(&facts);
    assert_eq!(after.counted("cpu.stat.nr_throttled"), Some(19));
    assert_eq!(after.counted("cpu.stat.throttled_usec"), Some(1_330_000));
    let host = facts.host.as_ref().expect("a host");
    assert_eq!(host.counters["vmstat.pswpin"], 12);
    assert_eq!(host.counters_during["vmstat.pswpin"], 480);
    // And back from the JSON.
    let text = serde_json::to_vec(&facts::write(&facts)).expect("JSON");
    let (again, notes) = facts::read(&text);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(again, facts);
}

#[test]
fn the_first_version_has_its_own_files() {
    let made = with_vm();
    made.put(
        "proc/1689/cgroup",
        "9:memory:/vm\n4:cpu,cpuacct:/vm\n0::/x\n",
    );
    let folder = "sys/fs/cgroup/cpu,cpuacct/vm";
    made.put(&format!("{folder}/cpu.cfs_quota_us"), "50000\n");
    made.put(&format!("{folder}/cpu.cfs_period_us"), "100000\n");
    made.put(
        &format!("{folder}/cpu.stat"),
        "nr_periods 10\nnr_throttled 4\nthrottled_time 2000000000\n",
    );
    let facts = host::collect(made.root());
    let group = facts.groups_of(&facts.vms[0]).next().expect("a group");
    assert_eq!(group.cpu_quota_us(), Some((50_000, 100_000)));
    assert_eq!(group.counted("cpu.stat.throttled_usec"), Some(2_000_000));
    made.put(&format!("{folder}/cpu.cfs_quota_us"), "-1\n");
    let facts = host::collect(made.root());
    let group = facts.groups_of(&facts.vms[0]).next().expect("a group");
    assert_eq!(
        (group.cpu_quota_us(), group.limits["cpu.max"].as_str()),
        (None, "max 100000")
    );
}

#[test]
fn paths_that_lead_elsewhere_are_not_followed() {
    let made = with_vm();
    made.put("proc/1689/cgroup", "0::/../../../etc\n");
    made.put(
        "proc/1689/task/1700/cgroup",
        format!("0::{}\n", "/a".repeat(5000)),
    );
    made.put(
        "proc/vmstat",
        [
            &b"pswpin 99999999999999999999\n\xff\xfe"[..],
            &vec![b'7'; 1 << 20],
        ]
        .concat(),
    );
    let facts = host::collect(made.root());
    assert!(facts.vms[0].cgroups.is_empty());
    assert!(facts.host.expect("a host").counters.is_empty());
}

#[test]
fn a_log_that_sosreport_copied_is_read() {
    let made = with_vm();
    made.put(
        "sos_commands/kernel/dmesg",
        "[    1.000000] Linux version 6.1.0\n[  77.000000] sched: RT throttling activated\n",
    );
    let (_, host) = made.collect();
    let log = host.kernel_log.expect("a log");
    assert_eq!((log.lines, log.kept.len()), (2, 1));
    assert_eq!(log.kept[0].printk_ns, Some(77_000_000_000));
    // What is none has none.
    made.put("sos_commands/kernel/dmesg", "\u{0}\n");
    assert_eq!(made.collect().1.kernel_log, None);
}

#[test]
fn qemus_version_is_its_packages_and_clocks_are_read_twice() {
    let made = with_vm();
    let link = |to: &str| {
        let exe = made.root().join("proc/1689/exe");
        let _ = std::fs::remove_file(&exe);
        std::os::unix::fs::symlink(to, exe).expect("a link");
    };
    link("/usr/bin/qemu-system-x86_64");
    made.put(
        "var/lib/dpkg/status",
        "Package: qemu-system-x86\nStatus: install ok installed\nVersion: 1:8.2.2+ds-1\n",
    );
    let cpufreq = "sys/devices/system/cpu/cpufreq/policy0";
    made.put(&format!("{cpufreq}/affected_cpus"), "0 1\n");
    made.put(&format!("{cpufreq}/scaling_driver"), "acpi-cpufreq\n");
    made.put(&format!("{cpufreq}/scaling_cur_freq"), "800000\n");
    let mut facts = host::collect(made.root());
    assert_eq!(facts.vms[0].version.as_deref(), Some("8.2.2+ds-1"));
    made.put(&format!("{cpufreq}/scaling_cur_freq"), "3600000\n");
    host::count_again(made.root(), &mut facts, &KernelLogTail::open());
    let policy = &facts.host.as_ref().expect("a host").cpufreq[0];
    let speeds = (policy.cur_khz, policy.end_khz);
    assert_eq!(speeds, (Some(800_000), Some(3_600_000)));
    // A program that was replaced since it was started, and a driver that does not know.
    link("/usr/bin/qemu-system-x86_64 (deleted)");
    made.put(&format!("{cpufreq}/scaling_cur_freq"), "<unknown>\n");
    let facts = host::collect(made.root());
    assert_eq!(facts.vms[0].version, None);
    assert_eq!(facts.host.expect("a host").cpufreq[0].cur_khz, None);
}

/// A VM of one vCPU whose program is a file of the tree, and the link to it.
fn with_program(text: &str) -> Made {
    let made = with_vm();
    made.put(
        "usr/bin/qemu-system-x86_64",
        format!(
            "\x7fELF{}{text}\nCopyright (c) 2003-2022 Fabrice Bellard\n",
            "\0".repeat(3 << 20)
        ),
    );
    std::os::unix::fs::symlink(
        "/usr/bin/qemu-system-x86_64",
        made.root().join("proc/1689/exe"),
    )
    .expect("a link");
    made
}

#[test]
fn qemus_program_says_its_version() {
    let made = with_program("QEMU emulator version 6.2.0 (qemu-kvm-6.2.0-53.el8)");
    // The program is what runs, whatever a list says.
    made.put(
        "var/lib/dpkg/status",
        "Package: qemu-system-x86\nStatus: install ok installed\nVersion: 1:8.2.2+ds-1\n",
    );
    let facts = host::collect(made.root());
    assert_eq!(
        facts.vms[0].version.as_deref(),
        Some("6.2.0 (qemu-kvm-6.2.0-53.el8)")
    );
    assert_eq!(facts.host.expect("a host").qemu, None);
    // One that does not say it: what is installed may be its version.
    let made = with_program("QEMU emulator version %s");
    made.put(
        "installed-rpms",
        "qemu-img-8.2.0-11.el9_4.4.x86_64   Mon Dec 11 19:55:09 2023\n\
         qemu-kvm-core-8.2.0-11.el9_4.4.x86_64   Mon Dec 11 19:55:09 2023\n",
    );
    let facts = host::collect(made.root());
    assert_eq!(facts.vms[0].version, None);
    assert_eq!(
        facts.host.expect("a host").qemu.as_deref(),
        Some("8.2.0-11.el9_4.4")
    );
}

#[test]
fn lists_of_packages_say_which_qemu_is_installed() {
    let installed = |path: &str, text: &str| {
        let made = with_vm();
        made.put(path, text);
        let (facts, host) = made.collect();
        assert_eq!(facts.vms[0].version, None);
        host.qemu
    };
    let pacman = |name: &str| installed(&format!("var/lib/pacman/local/{name}/desc"), "");
    assert_eq!(
        pacman("qemu-system-x86-9.0.2-1").as_deref(),
        Some("9.0.2-1")
    );
    assert_eq!(pacman("qemu-system-x86-firmware-9.0.2-1"), None);
    let apk = "C:Q1\nP:musl\nV:1.2.5-r0\n\nC:Q1\nP:qemu-system-x86_64\nV:9.1.2-r1\nF:usr\n";
    assert_eq!(
        installed("lib/apk/db/installed", apk).as_deref(),
        Some("9.1.2-r1")
    );
    let dpkg = |more: &str| {
        let one = "Package: qemu-system-x86\nStatus: install ok installed\nVersion: 1:8.2.2+ds-1\n";
        installed("var/lib/dpkg/status", &format!("{one}\n{more}"))
    };
    assert_eq!(dpkg("").as_deref(), Some("8.2.2+ds-1"));
    // Two releases: which of them runs the VM is not known.
    let other = "Package: qemu-system-arm\nStatus: install ok installed\nVersion: 1:9.0.0+ds-1\n";
    assert_eq!(dpkg(other), None);
}
