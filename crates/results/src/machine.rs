//! Where and when a benchmark ran, and how quiet it was there. What could not be read is `None`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The machine, as the kernel under which the benchmark ran knows it: a guest's own where it ran in a guest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchMachine {
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Its architecture.
    pub arch: Option<String>,
    /// What the CPUs call themselves.
    pub cpu_model: Option<String>,
    /// Whether this is a virtual machine.
    pub virtualized: Option<bool>,
    /// What the hypervisor calls itself: `KVMKVMKVM` (CPUID leaf 0x40000000), `linux,kvm` (device tree).
    pub hypervisor: Option<String>,
    /// CPUs that are online.
    pub cpus: u64,
    /// NUMA nodes that have CPUs.
    pub nodes: u64,
    /// The clock source.
    pub clocksource: Option<String>,
    /// What knows the idle states: `intel_idle`, `haltpoll`.
    pub cpuidle_driver: Option<String>,
    /// What chooses one: `menu`, `haltpoll`.
    pub cpuidle_governor: Option<String>,
    /// `idle=` of the kernel's command line: `poll`, `halt`, `nomwait`.
    pub idle: Option<String>,
    /// How long a guest polls before it halts (`/sys/module/haltpoll/parameters/guest_halt_poll_ns`), where the
    /// haltpoll driver or governor is in use.
    pub guest_halt_poll_ns: Option<u64>,
    /// How long KVM polls before a halted vCPU's thread sleeps (`/sys/module/kvm/parameters/halt_poll_ns`), on a host.
    pub kvm_halt_poll_ns: Option<u64>,
    /// What chooses the CPUs' frequency: `performance`.
    pub cpufreq_governor: Option<String>,
}

impl BenchMachine {
    /// Returns what results differ by, with a name for each: what is the same on all sides need not be said.
    pub fn facts(&self) -> Vec<(&'static str, Option<String>)> {
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        vec![
            ("kernel", self.kernel.clone()),
            ("architecture", self.arch.clone()),
            ("CPU", self.cpu_model.clone()),
            ("hypervisor", self.hypervisor.clone()),
            ("CPUs", Some(self.cpus.to_string())),
            ("NUMA nodes", Some(self.nodes.to_string())),
            ("clock source", self.clocksource.clone()),
            ("cpuidle driver", self.cpuidle_driver.clone()),
            ("cpuidle governor", self.cpuidle_governor.clone()),
            ("idle=", self.idle.clone()),
            ("guest_halt_poll_ns", number(self.guest_halt_poll_ns)),
            ("halt_poll_ns", number(self.kvm_halt_poll_ns)),
            ("cpufreq governor", self.cpufreq_governor.clone()),
        ]
    }
}

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchPlan {
    /// Iterations of each row.
    pub iterations: u64,
    /// Iterations before them that do not count.
    pub warmup: u64,
    /// A row ends after this time, however many iterations it has.
    pub row_time_ns: u64,
    /// The CPUs that it may use, as the kernel's lists have them.
    pub cpus: String,
    /// What else was chosen, by the name of its option.
    pub settings: BTreeMap<String, String>,
}

/// Several clocks, read together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReadings {
    /// `CLOCK_REALTIME`.
    pub realtime_ns: u64,
    /// `CLOCK_MONOTONIC`, which rows have.
    pub monotonic_ns: u64,
    /// `CLOCK_MONOTONIC_RAW`.
    pub monotonic_raw_ns: u64,
    /// `CLOCK_BOOTTIME`.
    pub boottime_ns: u64,
    /// The CPU's counter: RDTSC on x86-64, CNTVCT_EL0 on arm64.
    pub counter: Option<u64>,
    /// The clock of this kernel's recordings (perf, trace-cmd's `local`); `None` where events cannot be opened.
    pub recording_ns: Option<u64>,
    /// How long reading them took: they are so far apart at most.
    pub within_ns: u64,
}

/// How quiet the CPUs were.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The CPU that was watched before anything was measured.
    pub cpu: u64,
    /// How long it was watched by a thread that does nothing but read a clock.
    pub watched_ns: u64,
    /// The longest time that this thread lost at once.
    pub longest_gap_ns: u64,
    /// Times that it lost at once, of more than a microsecond.
    pub gaps: u64,
    /// All of them together, as a share of the time.
    pub lost_share: f64,
    /// Time that the hypervisor ran something else while this machine had work, over all CPUs and the whole run
    /// (`steal` of `/proc/stat`).
    pub steal_ns: Option<u64>,
    /// What the measuring threads waited for their CPUs while others ran there: the sum over all rows.
    pub waited_ns: u64,
}
