//! Trees of files as a host has them.

use std::fs;
use std::path::Path;

use facts::{Facts, Host};
use tempfile::TempDir;

/// A folder with files in it.
pub(crate) struct Made {
    folder: TempDir,
}

impl Made {
    pub(crate) fn new() -> Made {
        Made {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let full = self.root().join(path);
        fs::create_dir_all(full.parent().expect("a parent")).expect("folders");
        fs::write(full, text).expect("a file");
    }

    pub(crate) fn folder(&self, path: &str) {
        fs::create_dir_all(self.root().join(path)).expect("folders");
    }

    /// A process of one or more threads, each with its name, CPUs and policy.
    pub(crate) fn process(
        &self,
        pid: i32,
        parent: i32,
        args: &[&str],
        threads: &[(i32, &str, &str, &str)],
    ) {
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

    pub(crate) fn collect(&self) -> (Facts, Host) {
        let facts = host::collect(self.root());
        let host = facts.host.clone().expect("a host");
        (facts, host)
    }
}

/// Returns why a file could not be read, if it is listed.
pub(crate) fn why<'h>(host: &'h Host, path: &str) -> Option<&'h str> {
    let one = host.unreadable.iter().find(|one| one.path == path)?;
    Some(one.why.as_str())
}

/// How a thread of `SCHED_OTHER` is scheduled.
pub(crate) const OTHER: &str = "0 0 0";
/// Where a host mentions its CPUs.
pub(crate) const CPU: &str = "sys/devices/system/cpu";

/// Two sockets of two cores with two threads each, one NUMA node a socket.
pub(crate) fn amd() -> Made {
    let made = Made::new();
    made.put("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
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
