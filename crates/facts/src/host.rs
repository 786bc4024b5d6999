//! The host itself: its CPUs, how its kernel was started and set, what KVM counts.
//!
//! Every member may be missing: a fact that is not recorded is not known, and no default stands in for it. Names are
//! those of the files they are from (`Documentation/ABI` and `Documentation/admin-guide` of the kernel). Documents have
//! the members under these names, in this order.

use std::collections::BTreeMap;

use cpuset::CpuSet;
use serde::Serialize;

use crate::KernelLog;
use crate::counters::ControlGroup;
use crate::keep::fill;
use crate::qemu::release;

/// Most paths that are listed as unreadable.
pub(crate) const MAX_UNREADABLE: usize = 1024;

/// Facts about a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Host {
    /// What stands for the machine: the same in all its recordings, and another for each machine, whatever its name.
    /// Made of `/etc/machine-id`, which is not to be found from it ([`mask::machine_id`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
    /// Release of its kernel, as `uname -r` prints it (`/proc/sys/kernel/osrelease`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Architecture, as `uname -m` prints it (`/proc/sys/kernel/arch`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// What the CPUs call themselves: `model name` of `/proc/cpuinfo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Whether the host is a virtual machine itself, as the `hypervisor` flag of `/proc/cpuinfo` says (x86).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtualized: Option<bool>,
    /// The kernel's command line (`/proc/cmdline`); what is or may be secret is masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cmdline: Option<String>,
    /// CPUs that are online.
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::cpus")]
    pub online: Option<CpuSet>,
    /// CPUs that the scheduler does not balance load over (`isolcpus=`; `/sys/devices/system/cpu/isolated`).
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::cpus")]
    pub isolated: Option<CpuSet>,
    /// CPUs whose tick stops while one task runs (`/sys/devices/system/cpu/nohz_full`).
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::cpus")]
    pub nohz_full: Option<CpuSet>,
    /// CPUs whose RCU callbacks other threads run (`rcu_nocbs=` and `nohz_full=` of the command line).
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::cpus")]
    pub rcu_nocbs: Option<CpuSet>,
    /// The CPUs that are online, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<HostCpu>,
    /// NUMA nodes, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<HostNode>,
    /// How clock frequencies are set; empty where no driver does, as in most virtual machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpufreq: Vec<FreqPolicy>,
    /// How idle CPUs are put to sleep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpuidle: Option<CpuIdle>,
    /// Version of the QEMU that it has installed, as its package manager or QEMU itself says; VMs may run another one
    /// ([`ReportedVm::version`](crate::ReportedVm::version)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qemu: Option<String>,
    /// The clock source in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocksource: Option<String>,
    /// The clock sources there are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clocksources: Vec<String>,
    /// Ticks in a second, of the kernel's configuration (`CONFIG_HZ`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hz: Option<u32>,
    /// Parameters of modules by module and name (`/sys/module/*/parameters`): `kvm`, `kvm_intel`, `kvm_amd`, `vhost`,
    /// `vhost_net`, of those that are there. Values are the kernel's words (`Y`, `N`, `200000`).
    pub modules: BTreeMap<String, BTreeMap<String, String>>,
    /// What KVM has counted over all VMs that exist, by the counter's name (`/sys/kernel/debug/kvm`).
    pub kvm_debug: BTreeMap<String, u64>,
    /// Control groups of VMs' threads, and those above them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cgroups: Vec<ControlGroup>,
    /// What the kernel counts of memory and pressure since the host was started: names of `/proc/vmstat` behind
    /// `vmstat.`, of `/sys/kernel/mm/ksm` behind `ksm.`, and totals of `/proc/pressure` in microseconds
    /// (`memory.pressure.some`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// The same of the time of a recording alone, where they were read before and after.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters_during: BTreeMap<String, u64>,
    /// What its kernel's log says, up to when the facts were read; of a flight recording, up to when it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_log: Option<KernelLog>,
    /// What was written to that log during a recording alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_log_during: Option<KernelLog>,
    /// Interrupts that a device uses, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub irqs: Vec<Irq>,
    /// When memory is backed by huge pages without being asked: `always`, `madvise` or `never`
    /// (`/sys/kernel/mm/transparent_hugepage/enabled`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thp: Option<String>,
    /// Whether equal pages are being merged (`/sys/kernel/mm/ksm/run` is 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ksm: Option<bool>,
    /// Whether tasks and memory are moved to each other between NUMA nodes (`/proc/sys/kernel/numa_balancing`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_balancing: Option<bool>,
    /// What is done about the CPU's vulnerabilities, by their names (`/sys/devices/system/cpu/vulnerabilities`).
    pub mitigations: BTreeMap<String, String>,
    /// Whether cores run several threads: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`
    /// (`/sys/devices/system/cpu/smt/control`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smt: Option<String>,
    /// How many values of command lines were masked.
    pub masked: u64,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// One CPU of a host (`/sys/devices/system/cpu/cpuN/topology`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HostCpu {
    /// Its number.
    pub cpu: u32,
    /// Its socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<u32>,
    /// Its die in the socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub die: Option<u32>,
    /// Its core; numbers are unique within a package or die only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// Its NUMA node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// The CPUs of its core, itself among them; empty where that is not recorded.
    #[serde(with = "crate::cpus")]
    pub siblings: CpuSet,
}

/// One NUMA node (`/sys/devices/system/node`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HostNode {
    /// Its number.
    pub node: u32,
    /// Its CPUs; some nodes are memory alone.
    #[serde(with = "crate::cpus")]
    pub cpus: CpuSet,
    /// Its memory (`MemTotal`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// How far it is to each node, in the order of the nodes' numbers (`distance`): 10 is the node itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<u32>,
}

impl From<&HostNode> for cpuset::NumaNode {
    fn from(node: &HostNode) -> cpuset::NumaNode {
        cpuset::NumaNode {
            node: node.node,
            cpus: node.cpus.clone(),
            memory_bytes: node.memory_bytes,
            distances: node.distances.clone(),
        }
    }
}

/// CPUs whose clock is set together (`/sys/devices/system/cpu/cpufreq/policyN`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FreqPolicy {
    /// The CPUs.
    #[serde(with = "crate::cpus")]
    pub cpus: CpuSet,
    /// What sets the clock: `acpi-cpufreq`, `intel_pstate`, `amd-pstate-epp`, `cppc_cpufreq` and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// What decides how fast it goes: `performance`, `powersave`, `schedutil`, `ondemand` and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// The governors that can be chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub governors: Vec<String>,
    /// Lowest frequency that may be chosen, in kHz (`scaling_min_freq`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_khz: Option<u64>,
    /// Highest frequency that may be chosen, in kHz (`scaling_max_freq`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_khz: Option<u64>,
    /// The frequency when the facts were read, in kHz (`scaling_cur_freq`): what was asked for last, or what was
    /// measured, as the driver has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cur_khz: Option<u64>,
    /// The same at the end of a recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_khz: Option<u64>,
}

/// How idle CPUs are put to sleep (`/sys/devices/system/cpu/cpuidle`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CpuIdle {
    /// What knows the sleep states: `intel_idle`, `acpi_idle`, `haltpoll`, `none` and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// What picks one: `menu`, `teo`, `haltpoll`, `ladder`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
}

/// One interrupt that a device uses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Irq {
    /// Its number.
    pub irq: u32,
    /// What it is for, as `/proc/interrupts` has it: `eth0-rx-0`, or several names with commas.
    pub name: String,
    /// CPUs that it may be handled on (`smp_affinity_list`).
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::cpus")]
    pub affinity: Option<CpuSet>,
    /// CPUs that it is sent to (`effective_affinity_list`).
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::cpus")]
    pub effective: Option<CpuSet>,
}

/// Something that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unreadable {
    /// Where it is on the host.
    pub path: String,
    /// Why, in a few words: `permission denied`.
    pub why: String,
}

impl Host {
    /// Adds later facts of the same host: gaps are filled, what came first stays. Returns where the two
    /// contradict each other. Facts about another host, by its kernel, architecture or CPUs, is left out as a
    /// whole: its facts would be wrong for this one.
    pub(crate) fn merge(&mut self, later: Host) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(what) = self.is_another(&later) {
            return vec![format!(
                "is of another host than the facts before it, whose {what}: what it says of the host is \
                 left out"
            )];
        }
        let mut conflicts = Vec::new();
        macro_rules! gaps {
            ($($field:ident),*) => {$(
                if self.$field.is_some() && later.$field.is_some() && self.$field != later.$field {
                    conflicts.push(stringify!($field));
                }
                fill(&mut self.$field, later.$field);
            )*};
        }
        macro_rules! lists {
            ($($field:ident),*) => {$(
                if !self.$field.is_empty() && !later.$field.is_empty() && self.$field != later.$field {
                    conflicts.push(stringify!($field));
                }
                if self.$field.is_empty() {
                    self.$field = later.$field;
                }
            )*};
        }
        gaps!(
            machine_id,
            kernel,
            arch,
            cpu_model,
            virtualized,
            cmdline,
            online
        );
        gaps!(isolated, nohz_full, rcu_nocbs, cpuidle, clocksource);
        gaps!(hz, thp, ksm, numa_balancing, smt);
        if !same_nodes(&mut self.nodes, &later.nodes) {
            lists!(nodes);
        }
        lists!(cpus, clocksources, modules, mitigations);
        // Clocks go up and down.
        let known = !self.cpufreq.is_empty() && !later.cpufreq.is_empty();
        if known && settings(&self.cpufreq) != settings(&later.cpufreq) {
            conflicts.push("cpufreq");
        }
        if self.cpufreq.is_empty() {
            self.cpufreq = later.cpufreq;
        }
        // Counters go on, and irqbalance moves interrupts: that they differ says nothing.
        if self.kvm_debug.is_empty() {
            self.kvm_debug = later.kvm_debug;
        }
        if self.counters.is_empty() {
            self.counters = later.counters;
            self.counters_during = later.counters_during;
        }
        if self.cgroups.is_empty() {
            self.cgroups = later.cgroups;
        }
        if let (Some(ours), Some(theirs)) = (&self.qemu, &later.qemu)
            && release(ours) != release(theirs)
        {
            conflicts.push("qemu");
        }
        fill(&mut self.qemu, later.qemu);
        let logs = (&self.kernel_log, &later.kernel_log);
        if logs.0.is_some() && logs.1.is_some() && logs.0 != logs.1 {
            notes.push("holds a second kernel log of the host, which is left out".to_owned());
        }
        fill(&mut self.kernel_log, later.kernel_log);
        fill(&mut self.kernel_log_during, later.kernel_log_during);
        if self.irqs.is_empty() {
            self.irqs = later.irqs;
        }
        if self.masked == 0 {
            self.masked = later.masked;
        }
        for one in later.unreadable {
            if self.unreadable.len() < MAX_UNREADABLE && !self.unreadable.contains(&one) {
                self.unreadable.push(one);
            }
        }
        if !conflicts.is_empty() {
            notes.push(format!(
                "gives another {} of the host than the facts before it; what was known first stays",
                conflicts.join(", ")
            ));
        }
        notes
    }

    /// Returns what says that facts are of another host, or of this one started with another kernel.
    fn is_another(&self, other: &Host) -> Option<String> {
        let texts = [
            ("kernel", &self.kernel, &other.kernel),
            ("architecture", &self.arch, &other.arch),
            ("CPU", &self.cpu_model, &other.cpu_model),
        ];
        for (what, ours, theirs) in texts {
            if let (Some(ours), Some(theirs)) = (ours, theirs)
                && ours != theirs
            {
                return Some(format!("{what} is {ours}, not {theirs}"));
            }
        }
        None
    }

    /// Returns the CPU with a number, if it is known.
    pub fn cpu(&self, cpu: u32) -> Option<&HostCpu> {
        self.cpus.iter().find(|known| known.cpu == cpu)
    }

    /// Returns how the clock of a CPU is set, if that is known.
    pub fn freq_policy(&self, cpu: u32) -> Option<&FreqPolicy> {
        self.cpufreq.iter().find(|policy| policy.cpus.contains(cpu))
    }

    /// Returns the value of a module's parameter, if it is known: `parameter("kvm", "halt_poll_ns")`.
    pub fn parameter(&self, module: &str, name: &str) -> Option<&str> {
        Some(self.modules.get(module)?.get(name)?.as_str())
    }
}

/// Returns how clocks are set, without how fast they are.
fn settings(policies: &[FreqPolicy]) -> Vec<FreqPolicy> {
    let settings = policies.iter().cloned().map(|one| FreqPolicy {
        cur_khz: None,
        end_khz: None,
        ..one
    });
    settings.collect()
}

/// Fills gaps of nodes where both lists have the same ones; returns whether they have.
fn same_nodes(ours: &mut [HostNode], later: &[HostNode]) -> bool {
    let key = |node: &HostNode| (node.node, node.cpus.clone());
    if !ours.iter().map(key).eq(later.iter().map(key)) {
        return false;
    }
    let said = |a: &HostNode, b: &HostNode| {
        let sizes = a.memory_bytes.zip(b.memory_bytes);
        let far = a.distances.is_empty() || b.distances.is_empty() || a.distances == b.distances;
        far && sizes.is_none_or(|(a, b)| a == b)
    };
    if !ours.iter().zip(later).all(|(a, b)| said(a, b)) {
        return false;
    }
    for (ours, later) in ours.iter_mut().zip(later) {
        fill(&mut ours.memory_bytes, later.memory_bytes);
        if ours.distances.is_empty() {
            ours.distances.clone_from(&later.distances);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(kernel: &str) -> Host {
        Host {
            kernel: Some(kernel.to_owned()),
            ..Host::default()
        }
    }

    #[test]
    fn gaps_are_filled_and_contradictions_reported() {
        let mut first = Host {
            clocksource: Some("tsc".to_owned()),
            ..host("6.1.0")
        };
        let second = Host {
            clocksource: Some("hpet".to_owned()),
            hz: Some(250),
            ..host("6.1.0")
        };
        let notes = first.merge(second);
        assert_eq!(first.hz, Some(250));
        assert_eq!(first.clocksource.as_deref(), Some("tsc"));
        assert!(
            notes.len() == 1 && notes[0].contains("another clocksource of"),
            "{notes:?}"
        );
        let before = first.clone();
        assert!(first.merge(before.clone()).is_empty());
        assert_eq!(first, before);
    }

    #[test]
    fn what_is_reported_of_another_host_is_left_out() {
        let mut first = host("6.1.0");
        let second = Host {
            hz: Some(250),
            ..host("5.14.0")
        };
        let notes = first.merge(second);
        assert_eq!(first, host("6.1.0"));
        assert!(
            notes.len() == 1 && notes[0].contains("kernel is 6.1.0, not 5.14.0"),
            "{notes:?}"
        );
    }

    #[test]
    fn parameters_policies_and_cpus_are_found() {
        let parameters = BTreeMap::from([("halt_poll_ns".to_owned(), "200000".to_owned())]);
        let host = Host {
            modules: BTreeMap::from([("kvm".to_owned(), parameters)]),
            cpufreq: vec![FreqPolicy {
                cpus: "2-3".parse().unwrap(),
                governor: Some("ondemand".to_owned()),
                ..FreqPolicy::default()
            }],
            cpus: vec![HostCpu {
                cpu: 3,
                ..HostCpu::default()
            }],
            ..Host::default()
        };
        assert_eq!(host.parameter("kvm", "halt_poll_ns"), Some("200000"));
        assert_eq!(host.parameter("kvm_intel", "ept"), None);
        assert!(host.freq_policy(3).is_some() && host.freq_policy(4).is_none());
        assert!(host.cpu(3).is_some() && host.cpu(2).is_none());
    }
}
