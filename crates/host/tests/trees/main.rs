//! Hosts made up of files: what is collected of them, and that no tree does harm.

mod groups;
mod hostile;
mod made;

use std::io::Write;
use std::path::Path;

use facts::{CpuIdle, Host, ReportedVcpu};

use made::{CPU, Made, OTHER, amd, why};

#[test]
fn an_amd_host_with_a_pinned_vm() {
    let made = amd();
    let (facts, host) = made.collect();
    assert_eq!(host.unreadable, []);
    // What stands for the machine, and not its number.
    let id = mask::machine_id("0123456789abcdef0123456789abcdef");
    assert!(host.machine_id.is_some() && host.machine_id == id);
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
        .map(|v: &ReportedVcpu| (v.id, v.tid, set(&v.affinity)))
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
    let text = serde_json::to_string(&facts::write(&facts)).unwrap();
    let (again, notes) = facts::read(text.as_bytes());
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

/// The host that runs this test: whatever it is, its facts are written and read again.
#[test]
fn this_host() {
    let facts = host::collect(Path::new("/"));
    let host = facts.host.as_ref().expect("a host");
    assert!(host.kernel.is_some() && host.online.is_some(), "{host:?}");
    let text = serde_json::to_string(&facts::write(&facts)).unwrap();
    let (again, notes) = facts::read(text.as_bytes());
    assert_eq!((again, notes), (facts, Vec::new()));
}
