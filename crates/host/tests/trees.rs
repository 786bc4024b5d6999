//! Hosts made up of files: what is collected of them, and that no tree does harm.

use std::fs;
use std::io::Write;
use std::path::Path;

use facts::{CpuIdle, Facts, Host, Vcpu};
use tempfile::TempDir;

/// A folder with files in it.
struct Made {
    folder: TempDir,
}

impl Made {
    fn new() -> Made {
        Made {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let full = self.root().join(path);
        fs::create_dir_all(full.parent().expect("a parent")).expect("folders");
        fs::write(full, text).expect("a file");
    }

    fn folder(&self, path: &str) {
        fs::create_dir_all(self.root().join(path)).expect("folders");
    }

    /// A process of one or more threads, each with its name, CPUs and policy.
    fn process(&self, pid: i32, parent: i32, args: &[&str], threads: &[(i32, &str, &str, &str)]) {
        let status = |name: &str, cpus: &str| {
            format!(
                "Name:\t{name}\nUmask:\t0022\nTgid:\t{pid}\nPPid:\t{parent}\nCpus_allowed:\tff\n\
                 Cpus_allowed_list:\t{cpus}\nMems_allowed_list:\t0\n"
            )
        };
        let (_, name, cpus, _) = threads[0];
        self.put(&format!("proc/{pid}/status"), status(name, cpus));
        let line: String = args.iter().map(|arg| format!("{arg}\0")).collect();
        self.put(&format!("proc/{pid}/cmdline"), line);
        for (tid, name, cpus, policy) in threads {
            let folder = format!("proc/{pid}/task/{tid}");
            self.put(&format!("{folder}/status"), status(name, cpus));
            let (nice, rest) = policy.split_once(' ').expect("nice, priority and policy");
            let zeros = |count: usize| vec!["0"; count].join(" ");
            let stat = format!(
                "{tid} ({name}) S {parent} {} {nice} {} {rest} 0 0\n",
                zeros(14),
                zeros(20)
            );
            self.put(&format!("{folder}/stat"), stat);
        }
    }

    fn collect(&self) -> (Facts, Host) {
        let facts = host::collect(self.root());
        let host = facts.host.clone().expect("a host");
        (facts, host)
    }
}

fn why<'h>(host: &'h Host, path: &str) -> Option<&'h str> {
    let one = host.unreadable.iter().find(|one| one.path == path)?;
    Some(one.why.as_str())
}

const OTHER: &str = "0 0 0";
const CPU: &str = "sys/devices/system/cpu";

/// Two sockets of two cores with two threads each, one NUMA node a socket.
fn amd() -> Made {
    let made = Made::new();
    made.put("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    made.put("proc/sys/kernel/arch", "x86_64\n");
    made.put("proc/sys/kernel/numa_balancing", "1\n");
    made.put(
        "proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7302 16-Core Processor\n\
         flags\t\t: fpu vme lm svm constant_tsc nonstop_tsc\n\n",
    );
    made.put(
        "proc/cmdline",
        "BOOT_IMAGE=/vmlinuz root=UUID=ab isolcpus=managed_irq,domain,2-3,6-7 rcu_nocbs=2-3 nohz_full=6-7 \
         rd.luks.key=hidden quiet\n",
    );
    made.put(
        "boot/config-6.1.0-18-amd64",
        "CONFIG_X86=y\n# CONFIG_HZ_100 is not set\nCONFIG_HZ_250=y\nCONFIG_HZ=250\n",
    );
    made.put(&format!("{CPU}/online"), "0-7\n");
    made.put(&format!("{CPU}/isolated"), "2-3,6-7\n");
    made.put(&format!("{CPU}/nohz_full"), "6-7\n");
    made.put(&format!("{CPU}/smt/control"), "on\n");
    made.put(&format!("{CPU}/cpuidle/current_driver"), "acpi_idle\n");
    made.put(&format!("{CPU}/cpuidle/current_governor_ro"), "menu\n");
    made.put(&format!("{CPU}/vulnerabilities/meltdown"), "Not affected\n");
    for cpu in 0..8u32 {
        let (core, package) = (cpu % 2, cpu / 2 % 2);
        let folder = format!("{CPU}/cpu{cpu}/topology");
        made.put(
            &format!("{folder}/physical_package_id"),
            format!("{package}\n"),
        );
        made.put(&format!("{folder}/die_id"), "-1\n");
        made.put(&format!("{folder}/core_id"), format!("{core}\n"));
        let siblings = format!("{},{}\n", cpu % 4, cpu % 4 + 4);
        made.put(&format!("{folder}/thread_siblings_list"), siblings);
        let folder = format!("{CPU}/cpufreq/policy{cpu}");
        made.put(&format!("{folder}/affected_cpus"), format!("{cpu}\n"));
        made.put(&format!("{folder}/scaling_driver"), "acpi-cpufreq\n");
        made.put(&format!("{folder}/scaling_governor"), "ondemand\n");
        made.put(
            &format!("{folder}/scaling_available_governors"),
            "conservative ondemand userspace powersave performance schedutil \n",
        );
        made.put(&format!("{folder}/scaling_min_freq"), "1500000\n");
        made.put(&format!("{folder}/scaling_max_freq"), "3000000\n");
    }
    for (node, cpus) in [(0, "0-1,4-5"), (1, "2-3,6-7")] {
        let folder = format!("sys/devices/system/node/node{node}");
        made.put(&format!("{folder}/cpulist"), format!("{cpus}\n"));
        made.put(
            &format!("{folder}/meminfo"),
            format!("Node {node} MemTotal:       65973096 kB\nNode {node} MemFree:  7 kB\n"),
        );
    }
    let clock = "sys/devices/system/clocksource/clocksource0";
    made.put(&format!("{clock}/current_clocksource"), "hpet\n");
    made.put(
        &format!("{clock}/available_clocksource"),
        "tsc hpet acpi_pm \n",
    );
    made.put(
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    );
    made.put("sys/kernel/mm/ksm/run", "0\n");
    made.put("sys/module/kvm/parameters/halt_poll_ns", "200000\n");
    made.put("sys/module/kvm_amd/parameters/avic", "N\n");
    made.folder("sys/module/vhost_net");
    made.put("sys/kernel/debug/kvm/exits", "351826\n");
    made.put("sys/kernel/debug/kvm/halt_successful_poll", "12\n");
    made.put("sys/kernel/debug/kvm/1689-20/exits", "7\n");
    made.put("sys/kernel/debug/kvm/halt_wait_hist", "0 1 7 0\n");
    made.put(
        "proc/interrupts",
        "           CPU0       CPU1\n 24:         10          0  PCI-MSI 512000-edge      nvme0q0\n\
         \x2026:          0          0  PCI-MSI 512001-edge      eth0-rx-0\n NMI:    0   0   Non-maskable interrupts\n",
    );
    for (irq, affinity) in [(24, "0-7"), (26, "2"), (25, "0-7")] {
        made.put(
            &format!("proc/irq/{irq}/smp_affinity_list"),
            format!("{affinity}\n"),
        );
        made.put(&format!("proc/irq/{irq}/effective_affinity_list"), "2\n");
    }
    // Not in the text, as those behind its limit.
    made.put("proc/irq/27/smp_affinity_list", "1\n");
    made.folder("proc/irq/27/eth0-tx-0");
    made.process(1, 0, &["/sbin/init"], &[(1, "systemd", "0-1,4-5", OTHER)]);
    made.process(2, 0, &[], &[(2, "kthreadd", "0-7", OTHER)]);
    made.process(15, 2, &[], &[(15, "ksoftirqd/0", "0", OTHER)]);
    made.process(1710, 2, &[], &[(1710, "vhost-1689", "0-1", OTHER)]);
    made.process(1711, 2, &[], &[(1711, "vhost-999", "0-1", OTHER)]);
    made.process(
        900,
        1,
        &["bash", "-c", "password=hidden"],
        &[(900, "bash", "0-7", OTHER)],
    );
    made.process(
        950,
        1,
        &["/usr/sbin/ovs-vswitchd", "--token", "hidden"],
        &[
            (950, "ovs-vswitchd", "0-7", OTHER),
            (951, "pmd-c02/id:7", "4", "-20 0 0"),
        ],
    );
    made.process(
        1689,
        1,
        &[
            "/usr/bin/qemu-system-x86_64",
            "-name",
            "guest=web 1,debug-threads=on",
            "-uuid",
            "8d2f1c9e-0000-0000-0000-000000000001",
            "-spice",
            "port=5900,password=hidden",
            "-netdev",
            "tap,id=n0,vhost=on",
        ],
        &[
            (1689, "qemu-system-x86", "0-1,4-5", OTHER),
            (1700, "CPU 0/KVM", "2", "0 10 1"),
            (1703, "CPU 1/KVM", "3", OTHER),
            (1704, "IO iothread1", "0-1", OTHER),
            (1705, "vhost-1689", "0-1", OTHER),
        ],
    );
    made
}

#[test]
fn an_amd_host_with_a_pinned_vm() {
    let made = amd();
    let (facts, host) = made.collect();
    assert_eq!(host.unreadable, []);
    assert_eq!(host.kernel.as_deref(), Some("6.1.0-18-amd64"));
    assert_eq!(host.arch.as_deref(), Some("x86_64"));
    assert_eq!(
        host.cpu_model.as_deref(),
        Some("AMD EPYC 7302 16-Core Processor")
    );
    assert_eq!(host.virtualized, Some(false));
    assert!(
        host.cmdline
            .as_deref()
            .unwrap()
            .ends_with("nohz_full=6-7 rd.luks.key=*** quiet")
    );
    let set = |set: &Option<cpuset::CpuSet>| set.as_ref().map(ToString::to_string);
    assert_eq!(set(&host.online).as_deref(), Some("0-7"));
    assert_eq!(set(&host.isolated).as_deref(), Some("2-3,6-7"));
    assert_eq!(set(&host.nohz_full).as_deref(), Some("6-7"));
    assert_eq!(set(&host.rcu_nocbs).as_deref(), Some("2-3,6-7"));
    assert_eq!(host.cpus.len(), 8);
    let cpu = &host.cpus[6];
    assert_eq!((cpu.cpu, cpu.package, cpu.die), (6, Some(1), None));
    assert_eq!((cpu.core, cpu.node), (Some(0), Some(1)));
    assert_eq!(cpu.siblings.to_string(), "2,6");
    let nodes: Vec<_> = host
        .nodes
        .iter()
        .map(|n| (n.node, n.cpus.to_string(), n.memory_bytes))
        .collect();
    let bytes = Some(65_973_096 * 1024);
    assert_eq!(
        nodes,
        [
            (0, "0-1,4-5".to_owned(), bytes),
            (1, "2-3,6-7".to_owned(), bytes)
        ]
    );
    assert_eq!(host.cpufreq.len(), 8);
    let policy = host.freq_policy(5).unwrap();
    assert_eq!(policy.driver.as_deref(), Some("acpi-cpufreq"));
    assert_eq!(policy.governor.as_deref(), Some("ondemand"));
    assert_eq!(
        (policy.min_khz, policy.max_khz),
        (Some(1_500_000), Some(3_000_000))
    );
    assert_eq!(
        (policy.governors.len(), policy.governors[4].as_str()),
        (6, "performance")
    );
    let idle = CpuIdle {
        driver: Some("acpi_idle".to_owned()),
        governor: Some("menu".to_owned()),
    };
    assert_eq!(host.cpuidle, Some(idle));
    assert_eq!(host.clocksource.as_deref(), Some("hpet"));
    assert_eq!(host.clocksources, ["tsc", "hpet", "acpi_pm"]);
    assert_eq!(host.hz, Some(250));
    assert_eq!(host.parameter("kvm", "halt_poll_ns"), Some("200000"));
    assert_eq!(host.parameter("kvm_amd", "avic"), Some("N"));
    let modules: Vec<_> = host.modules.keys().map(String::as_str).collect();
    assert_eq!(modules, ["kvm", "kvm_amd", "vhost_net"]);
    let counters: Vec<_> = host
        .kvm_debug
        .iter()
        .map(|(name, n)| (name.as_str(), *n))
        .collect();
    assert_eq!(counters, [("exits", 351_826), ("halt_successful_poll", 12)]);
    let irqs: Vec<_> = host
        .irqs
        .iter()
        .map(|irq| {
            (
                irq.irq,
                irq.name.as_str(),
                set(&irq.affinity),
                set(&irq.effective),
            )
        })
        .collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        irqs,
        [
            (24, "nvme0q0", some("0-7"), some("2")),
            (26, "eth0-rx-0", some("2"), some("2")),
            (27, "eth0-tx-0", some("1"), None),
        ]
    );
    assert_eq!(host.thp.as_deref(), Some("madvise"));
    assert_eq!((host.ksm, host.numa_balancing), (Some(false), Some(true)));
    assert_eq!(host.mitigations["meltdown"], "Not affected");
    assert_eq!(host.smt.as_deref(), Some("on"));
    assert_eq!(host.masked, 2);

    assert_eq!(facts.vms.len(), 1);
    let vm = &facts.vms[0];
    assert_eq!((vm.pid, vm.name.as_deref()), (Some(1689), Some("web 1")));
    assert!(vm.uuid.as_deref().unwrap().starts_with("8d2f1c9e"));
    assert_eq!(vm.emulator.as_deref(), Some("/usr/bin/qemu-system-x86_64"));
    assert_eq!(vm.args.len(), 9);
    assert_eq!(vm.args[6], "port=5900,password=***");
    assert_eq!(vm.vhost, [1710, 1705]);
    let vcpus: Vec<_> = vm
        .vcpus
        .iter()
        .map(|v: &Vcpu| (v.id, v.tid, set(&v.affinity)))
        .collect();
    assert_eq!(vcpus, [(0, 1700, some("2")), (1, 1703, some("3"))]);
    let policy = vm.vcpus[0].policy.as_ref().unwrap();
    assert_eq!(
        (policy.name.as_str(), policy.rt_priority, policy.nice),
        ("SCHED_FIFO", 10, 0)
    );
    assert!(policy.is_realtime() && !vm.vcpus[1].policy.as_ref().unwrap().is_realtime());
    // The VM's threads, the workers, and those that somebody pinned.
    let tids: Vec<i32> = facts.threads.keys().copied().collect();
    assert_eq!(tids, [1, 951, 1689, 1700, 1703, 1704, 1705, 1710, 1711]);
    assert_eq!(facts.threads[&951].comm.as_deref(), Some("pmd-c02/id:7"));
    assert_eq!(facts.threads[&951].policy.as_ref().unwrap().nice, -20);
    assert!(!format!("{facts:?}").contains("hidden"));

    // All of it is read again.
    let text = facts::write(&facts);
    let text: Vec<String> = text
        .iter()
        .map(|(name, value)| format!("\"{name}\": {value}"))
        .collect();
    let (again, notes) = facts::read(format!("{{{}}}", text.join(",")).as_bytes());
    assert_eq!((again, notes), (facts, Vec::new()));
}

#[test]
fn an_arm64_host_without_cpufreq() {
    let made = Made::new();
    made.put("proc/sys/kernel/osrelease", "4.14.0\n");
    made.put(
        "proc/cpuinfo",
        "processor\t: 0\nCPU implementer\t: 0x43\nCPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: 0x0af\n",
    );
    made.put("proc/cmdline", "console=ttyAMA0 isolcpus=26-N\n");
    let config = "CONFIG_ARM64=y\nCONFIG_HZ=1000\n";
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(config.as_bytes()).expect("memory");
    made.put("proc/config.gz", packed.finish().expect("memory"));
    made.put(&format!("{CPU}/online"), "0-45\n");
    made.put(&format!("{CPU}/nohz_full"), "(null)\n");
    made.put(&format!("{CPU}/cpu26/topology/physical_package_id"), "0\n");
    made.put(&format!("{CPU}/cpu26/topology/core_cpus_list"), "26\n");
    made.put(&format!("{CPU}/cpu77/topology/physical_package_id"), "0\n");
    let clock = "sys/devices/system/clocksource/clocksource0";
    made.put(
        &format!("{clock}/current_clocksource"),
        "arch_sys_counter\n",
    );
    made.put("sys/module/kvm/parameters/halt_poll_ns", "500000\n");
    made.put(
        "proc/interrupts",
        "           CPU0\n 11:  8142  GICv3  27 Level     arch_timer\n",
    );
    made.put("proc/irq/11/smp_affinity_list", "0-45\n");
    made.process(
        854,
        1,
        &["/firecracker", "--id", "f1", "--api-sock", "/run/a"],
        &[
            (854, "firecracker", "0-45", OTHER),
            (866, "fc_vcpu 0", "26", OTHER),
        ],
    );
    // Its vCPUs have no names; a child that it forked off is no VM.
    made.process(
        900,
        1,
        &["qemu-system-aarch64", "-name", "b"],
        &[(900, "qemu-system-aar", "0-45", OTHER)],
    );
    made.process(
        901,
        900,
        &["qemu-system-aarch64", "-name", "b"],
        &[(901, "qemu-system-aar", "0-45", OTHER)],
    );
    let (facts, host) = made.collect();
    assert_eq!(host.arch.as_deref(), Some("aarch64"));
    assert_eq!(
        host.cpu_model.as_deref(),
        Some("implementer 0x43 part 0x0af")
    );
    assert_eq!((host.virtualized, host.hz), (None, Some(1000)));
    assert_eq!(host.isolated.as_ref().unwrap().to_string(), "26-45");
    assert!(host.nohz_full.as_ref().unwrap().is_empty());
    assert!(host.cpufreq.is_empty() && host.nodes.is_empty() && host.cpuidle.is_none());
    let cpus: Vec<_> = host
        .cpus
        .iter()
        .map(|c| (c.cpu, c.node, c.siblings.single()))
        .collect();
    assert_eq!(cpus, [(26, None, Some(26))]);
    assert_eq!(host.irqs[0].name, "arch_timer");
    assert_eq!(facts.vms.len(), 2);
    assert_eq!(
        (facts.vms[0].name.as_deref(), facts.vms[0].vcpus[0].tid),
        (Some("f1"), 866)
    );
    assert_eq!((facts.vms[1].pid, facts.vms[1].vcpus.len()), (Some(900), 0));
    assert!(
        why(&host, "/proc/900/task")
            .unwrap()
            .contains("debug-threads=on")
    );
    assert_eq!(why(&host, "/sys/kernel/debug/kvm"), Some("no such file"));
    assert_eq!(host.unreadable.len(), 2, "{:?}", host.unreadable);
}

#[test]
fn of_an_empty_tree_everything_that_should_be_there_is_listed() {
    let (facts, host) = Made::new().collect();
    let paths: Vec<&str> = host
        .unreadable
        .iter()
        .map(|one| one.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "/proc",
            "/proc/cmdline",
            "/proc/cpuinfo",
            "/proc/interrupts",
            "/proc/sys/kernel/osrelease",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            "/sys/devices/system/cpu/online",
            "/sys/kernel/debug/kvm",
            "/sys/module/kvm",
        ]
    );
    assert!(host.unreadable.iter().all(|one| one.why == "no such file"));
    let nothing = Host {
        unreadable: host.unreadable.clone(),
        ..Host::default()
    };
    assert_eq!(host, nothing);
    assert!(facts.threads.is_empty() && facts.vms.is_empty());
    let missing = host::collect(Path::new("/nowhere/at all"));
    assert_eq!(missing.host, Some(nothing));
}

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

/// The host that runs this test: whatever it is, its facts are written and read again.
#[test]
fn this_host() {
    let facts = host::collect(Path::new("/"));
    let host = facts.host.as_ref().expect("a host");
    assert!(host.kernel.is_some() && host.online.is_some(), "{host:?}");
    let members = facts::write(&facts);
    let text: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("\"{name}\": {value}"))
        .collect();
    let (again, notes) = facts::read(format!("{{{}}}", text.join(",")).as_bytes());
    assert_eq!((again, notes), (facts, Vec::new()));
}
