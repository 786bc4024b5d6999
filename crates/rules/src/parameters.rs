//! What remedies change: parameters of modules, of kernels, of QEMU and of libvirt's definitions, since when each
//! exists, and which values it takes. A remedy names them in its text; what it works from is looked up here.
//!
//! Sources stand with each: kernel files and the commits that brought a parameter, `docs/formatdomain.rst` of libvirt,
//! documentation and commits of QEMU.

/// The values that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterValues {
    /// No value is named with it, or any text may be.
    Any,
    /// A number from here to there.
    Number(u64, u64),
    /// One of these words.
    Word(&'static [&'static str]),
}

/// Something that can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TuningParameter {
    /// What it is called in documents.
    pub name: &'static str,
    /// How texts name it; whatever stands before or behind is no letter, digit or underscore.
    pub written: &'static [&'static str],
    /// The first release that has it; empty where it is older than the oldest kernel, QEMU or libvirt that KVM has.
    pub since: &'static str,
    /// Its values.
    pub values: ParameterValues,
    /// Where that is from.
    pub source: &'static str,
}

use ParameterValues::{Any, Number, Word};

const SWITCH: ParameterValues = Word(&["0", "1", "Y", "N", "y", "n"]);
const ON_OFF: ParameterValues = Word(&["on", "off"]);
const MOST: u64 = u64::MAX;

const fn parameter(
    name: &'static str,
    written: &'static [&'static str],
    since: &'static str,
    values: ParameterValues,
    source: &'static str,
) -> TuningParameter {
    TuningParameter {
        name,
        written,
        since,
        values,
        source,
    }
}

#[rustfmt::skip]
static PARAMETERS: &[TuningParameter] = &[
    parameter(
        "kvm.halt_poll_ns", &["halt_poll_ns"], "Linux 4.0", Number(0, MOST),
        "virt/kvm/kvm_main.c, commit f7819512996e",
    ),
    parameter(
        "kvm.halt_poll_ns_grow_start", &["halt_poll_ns_grow_start"], "Linux 5.1", Number(0, MOST),
        "virt/kvm/kvm_main.c, commit 49113d360bde, pulled by 636deed6c0bc",
    ),
    parameter(
        "kvm.halt_poll_ns_shrink", &["halt_poll_ns_shrink"], "Linux 4.3", Number(0, MOST),
        "virt/kvm/kvm_main.c, commit aca6ff29c406",
    ),
    parameter(
        "guest_halt_poll_ns", &["guest_halt_poll_ns"], "Linux 5.4", Number(0, MOST),
        "drivers/cpuidle/governors/haltpoll.c, commit 2cffe9f6b96f",
    ),
    parameter(
        "cpuidle_haltpoll.force", &["cpuidle_haltpoll.force"], "Linux 5.7", SWITCH,
        "drivers/cpuidle/cpuidle-haltpoll.c, commit dd52551fb786",
    ),
    parameter(
        "kvm.pi_inject_timer", &["kvm.pi_inject_timer"], "Linux 5.3", Word(&["-1", "0", "1"]),
        "arch/x86/kvm/x86.c, commit 0c5f81dad46c",
    ),
    parameter(
        "kvm.nx_huge_pages", &["nx_huge_pages"], "Linux 5.4", Word(&["auto", "off", "force", "never"]),
        "arch/x86/kvm/mmu.c, commit b8e8c8303ff2",
    ),
    parameter(
        "kvm.nx_huge_pages_recovery_ratio", &["nx_huge_pages_recovery_ratio"], "Linux 5.4", Number(0, MOST),
        "arch/x86/kvm/mmu.c, commit 1aa9b9572b10 'Recovery of shattered NX large pages'",
    ),
    parameter(
        "kvm.nx_huge_pages_recovery_period_ms", &["nx_huge_pages_recovery_period_ms"], "Linux 5.16", Number(0, MOST),
        "arch/x86/kvm/mmu/mmu.c, commit 4dfe4f40d845",
    ),
    parameter(
        "eager-split-size", &["eager-split-size"], "QEMU 8.2", Any,
        "qemu-options.hx, -accel; accel/kvm/kvm-all.c (KVM_CAP_ARM_EAGER_SPLIT_CHUNK_SIZE)",
    ),
    parameter(
        "cpu-throttle-increment", &["cpu-throttle-increment"], "QEMU 2.7", Number(1, 99),
        "qapi/migration.json",
    ),
    parameter(
        "qemu-xhci", &["qemu-xhci"], "QEMU 2.9", Any,
        "QEMU docs/system/devices/usb.rst; libvirt, 'qemu: add support for qemu-xhci USB controller' (April 2017)",
    ),
    parameter(
        "<input>", &["<input "], "", Any,
        "libvirt docs/formatdomain.rst (bus='virtio' since 1.3.0)",
    ),
    parameter(
        "<sound>", &["<sound>"], "", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<controller type='usb'>", &["<controller type='usb'"], "", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "kvm.eager_page_split", &["eager_page_split"], "Linux 5.18", SWITCH,
        "arch/x86/kvm/x86.c, commit a3fe5dbda0a4",
    ),
    parameter(
        "kvm_intel.ple_gap", &["ple_gap"], "Linux 2.6.33", Number(0, u32::MAX as u64),
        "arch/x86/kvm/vmx.c, commit 4b8d54f9726f",
    ),
    parameter(
        "kvm_intel.ple_window", &["ple_window"], "Linux 2.6.33", Number(0, u32::MAX as u64),
        "arch/x86/kvm/vmx.c, commit 4b8d54f9726f",
    ),
    parameter(
        "kvm_amd.pause_filter_count", &["pause_filter_count"], "Linux 4.17", Number(0, 65_535),
        "arch/x86/kvm/svm.c, commit 8566ac8b8e7c 'KVM: SVM: Implement pause loop exit logic in SVM'",
    ),
    parameter(
        "kvm_intel.enable_apicv", &["enable_apicv"], "Linux 3.10", SWITCH,
        "arch/x86/kvm/vmx.c, commit 01e439be7753",
    ),
    parameter(
        "kvm_intel.preemption_timer", &["preemption_timer"], "Linux 4.8", SWITCH,
        "arch/x86/kvm/vmx.c, commit 64672c95ea4c",
    ),
    parameter(
        "kvm_intel.enable_shadow_vmcs", &["enable_shadow_vmcs"], "Linux 3.10", SWITCH,
        "arch/x86/kvm/vmx.c, commit abc4fc58c5ba",
    ),
    parameter(
        "kvm_intel.unrestricted_guest", &["unrestricted_guest"], "Linux 2.6.32", SWITCH,
        "arch/x86/kvm/vmx.c, commit 3a624e29c758",
    ),
    parameter(
        "kvm_intel.emulate_invalid_guest_state", &["emulate_invalid_guest_state"], "", SWITCH,
        "Documentation/admin-guide/kernel-parameters.txt, commit 0ff29701ffad",
    ),
    parameter(
        "kvm_amd.avic", &["avic=", "kvm_amd.avic"], "Linux 4.7", SWITCH,
        "arch/x86/kvm/svm.c, commit 44a95dae1d22 'KVM: x86: Detect and Initialize AVIC support'",
    ),
    parameter(
        "kvm_amd.vls", &["vls"], "Linux 4.13", SWITCH,
        "arch/x86/kvm/svm.c, commit 89c8a4984fc9",
    ),
    parameter(
        "kvm_amd.vgif", &["vgif"], "Linux 4.14", SWITCH,
        "arch/x86/kvm/svm.c, commit 640bd6e57529",
    ),
    parameter(
        "kernel.numa_balancing", &["kernel.numa_balancing"], "Linux 3.14", Number(0, 3),
        "kernel/sysctl.c, commit 54a43d54988a",
    ),
    parameter(
        "kernel.split_lock_mitigate", &["kernel.split_lock_mitigate"], "Linux 6.2", Number(0, 1),
        "arch/x86/kernel/cpu/intel.c, commit 727209376f49",
    ),
    parameter(
        "split_lock_detect=", &["split_lock_detect="], "Linux 5.7", Word(&["off", "warn", "fatal", "ratelimit"]),
        "Documentation/admin-guide/kernel-parameters.txt",
    ),
    parameter(
        "kernel.unknown_nmi_panic", &["kernel.unknown_nmi_panic"], "", Number(0, 1),
        "Documentation/admin-guide/sysctl/kernel.rst",
    ),
    parameter(
        "net.ipv4.tcp_wmem", &["net.ipv4.tcp_wmem"], "", Any,
        "tcp(7) of the Linux man-pages ('since Linux 2.4')",
    ),
    parameter(
        "nohz_full=", &["nohz_full="], "Linux 3.10", Any,
        "Documentation/admin-guide/kernel-parameters.txt",
    ),
    parameter(
        "rcu_nocbs=", &["rcu_nocbs="], "Linux 3.8", Any,
        "Documentation/admin-guide/kernel-parameters.txt",
    ),
    parameter(
        "isolcpus=", &["isolcpus="], "", Any,
        "Documentation/admin-guide/kernel-parameters.txt",
    ),
    parameter(
        "idle=poll", &["idle=poll"], "", Any,
        "Documentation/admin-guide/kernel-parameters.txt",
    ),
    parameter(
        "nohlt", &["nohlt"], "", Any,
        "arch/arm64/Kconfig, commit 2314ee4d444e 'arm64: enable generic idle loop'",
    ),
    parameter(
        "no-kvmapf", &["no-kvmapf"], "Linux 2.6.38", Any,
        "arch/x86/kernel/kvm.c, early_param('no-kvmapf'), commit fd10cde9294f",
    ),
    parameter(
        "CONFIG_PARAVIRT_SPINLOCKS", &["CONFIG_PARAVIRT_SPINLOCKS"], "Linux 3.12", Any,
        "arch/x86/kernel/kvm.c, kvm_spinlock_init",
    ),
    parameter(
        "cpu_dma_latency", &["cpu_dma_latency"], "Linux 2.6.25", Number(0, 2_000_000_000),
        "Documentation/power/pm_qos_interface.rst",
    ),
    parameter(
        "pm_qos_resume_latency_us", &["pm_qos_resume_latency_us"], "Linux 4.11", Number(0, MOST),
        "Documentation/ABI/testing/sysfs-devices-power; drivers/cpuidle/governors/menu.c, commit 9908859acaa9",
    ),
    parameter(
        "intel_idle.max_cstate=", &["intel_idle.max_cstate="], "Linux 2.6.35", Number(0, 9),
        "Documentation/admin-guide/kernel-parameters.txt",
    ),
    parameter(
        "processor.max_cstate=", &["processor.max_cstate="], "", Number(0, 9),
        "Documentation/admin-guide/kernel-parameters.txt",
    ),
    parameter(
        "cpuidle.off=", &["cpuidle.off="], "Linux 3.2", Number(0, 1),
        "Documentation/admin-guide/kernel-parameters.txt; drivers/cpuidle/cpuidle.c",
    ),
    parameter(
        "cpu.max", &["cpu.max"], "Linux 4.15", Any,
        "kernel/sched/core.c, commit 0d5936344f30",
    ),
    parameter(
        "cpu.weight", &["cpu.weight"], "Linux 4.15", Number(1, 10_000),
        "kernel/sched/core.c, commit 0d5936344f30",
    ),
    parameter(
        "memory.high", &["memory.high"], "Linux 4.5", Any,
        "cgroups(7) of the Linux man-pages (cgroup v2 and its controllers)",
    ),
    parameter(
        "memory.low", &["memory.low"], "Linux 4.5", Any,
        "cgroups(7) of the Linux man-pages (cgroup v2 and its controllers)",
    ),
    parameter(
        "memory.max", &["memory.max"], "Linux 4.5", Any,
        "cgroups(7) of the Linux man-pages (cgroup v2 and its controllers)",
    ),
    parameter(
        "memory.min", &["memory.min"], "Linux 4.18", Any,
        "mm/memcontrol.c, commit bf8d5d52ffe8",
    ),
    parameter(
        "memory.events", &["memory.events"], "Linux 4.5", Any,
        "cgroups(7) of the Linux man-pages (cgroup v2 and its controllers)",
    ),
    parameter(
        "io.max", &["io.max"], "Linux 4.5", Any,
        "cgroups(7) of the Linux man-pages (cgroup v2 and its controllers)",
    ),
    parameter(
        "-overcommit cpu-pm", &["cpu-pm"], "QEMU 3.0", ON_OFF,
        "qemu-options.hx, commit 6f131f13e68d",
    ),
    parameter(
        "kernel-irqchip", &["kernel-irqchip"], "QEMU 2.6", Word(&["on", "off", "split"]),
        "commit 15eafc2e602f 'kvm: x86: add support for KVM_CAP_SPLIT_IRQCHIP'",
    ),
    parameter(
        "kvm-asyncpf-int", &["kvm-asyncpf-int"], "QEMU 5.2", ON_OFF,
        "target/i386/cpu.c, [PULL 09/87] 'target/i386: support KVM_FEATURE_ASYNC_PF_INT' of 2020-09-25",
    ),
    parameter(
        "kvm-hint-dedicated", &["hint-dedicated"], "QEMU 2.12", ON_OFF,
        "libvirt docs/formatdomain.rst, table of <kvm> features: '5.7.0 (QEMU 2.12.0)'",
    ),
    parameter(
        "kvm-poll-control", &["poll-control"], "QEMU 4.2", ON_OFF,
        "libvirt docs/formatdomain.rst: '6.10.0 (QEMU 4.2)'",
    ),
    parameter(
        "virtio-blk iothread-vq-mapping", &["iothread-vq-mapping"], "QEMU 9.0", Any,
        "hw/block/virtio-blk.c, commit b6948ab01df0",
    ),
    parameter(
        "aio=io_uring", &["io_uring"], "QEMU 5.0", Any,
        "libvirt docs/formatdomain.rst: '6.3.0 (QEMU 5.0)'",
    ),
    parameter(
        "vhost-user-blk-pci", &["vhost-user-blk"], "QEMU 2.12", Any,
        "hw/block/vhost-user-blk.c, commit 00343e4b54ba",
    ),
    parameter(
        "hv-avic", &["hv-avic"], "QEMU 6.2", ON_OFF,
        "libvirt NEWS 8.10.0 ('qemu-6.2 introduced support for the hv-avic enlightenment')",
    ),
    parameter(
        "<iothreads>", &["<iothreads>"], "libvirt 1.2.8", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<driver iothread='N'>", &["iothread='"], "libvirt 1.2.8", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<driver queues='N'> of an interface", &["queues='"], "libvirt 1.0.6", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<driver io='native'>", &["io='native'"], "libvirt 0.8.8", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<driver name='vhost'/> of an interface", &["name='vhost'"], "libvirt 0.8.8", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<hugepages/>", &["<hugepages/>"], "libvirt 0.7.1", Any,
        "libvirt docs/news-2009.html.in, 0.7.1: 'Support configuration of huge pages in guests'",
    ),
    parameter(
        "<locked/>", &["<locked/>"], "libvirt 1.0.6", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<nosharepages/>", &["<nosharepages/>"], "libvirt 1.0.6", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<memballoon>", &["<memballoon "], "", Any,
        "libvirt docs/formatdomain.rst (model, freePageReporting)",
    ),
    parameter(
        "<allocation mode='immediate'/>", &["<allocation mode='"], "libvirt 3.1.0", Any,
        "libvirt NEWS 3.1.0 (three new elements source, access, allocation)",
    ),
    parameter(
        "<numatune>", &["<numatune>"], "libvirt 0.9.3", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<memnode>", &["<memnode>"], "libvirt 1.2.7", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<vcpupin>", &["<vcpupin>"], "libvirt 0.9.0", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<emulatorpin>", &["<emulatorpin>"], "libvirt 0.10.0", Any,
        "libvirt docs/hvsupport.html: virDomainPinEmulator 0.10.0",
    ),
    parameter(
        "<iothreadpin>", &["<iothreadpin>"], "libvirt 1.2.9", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<quota>", &["<quota>"], "libvirt 0.9.4", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<period>", &["<period>"], "libvirt 0.9.4", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<emulator_quota>", &["<emulator_quota>"], "libvirt 0.10.0", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<shares>", &["<shares>"], "libvirt 0.9.0", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<timer name='hypervclock'>", &["hypervclock"], "libvirt 1.2.2", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<timer name='hpet'>", &["<timer name='hpet'"], "libvirt 0.8.0", Any,
        "libvirt docs/formatdomain.rst",
    ),
    parameter(
        "<relaxed>", &["<relaxed"], "libvirt 1.0.0", Any,
        "libvirt docs/formatdomain.rst, Since column of the <hyperv> table",
    ),
    parameter(
        "<vapic>", &["<vapic"], "libvirt 1.1.0", Any,
        "libvirt docs/formatdomain.rst, Since column of the <hyperv> table",
    ),
    parameter(
        "<spinlocks>", &["<spinlocks"], "libvirt 1.1.0", Any,
        "libvirt docs/formatdomain.rst, Since column of the <hyperv> table",
    ),
    parameter(
        "<vpindex>", &["<vpindex"], "libvirt 1.3.3", Any,
        "libvirt docs/formatdomain.rst, Since column of the <hyperv> table",
    ),
    parameter(
        "<synic>", &["<synic"], "libvirt 1.3.3", Any,
        "libvirt docs/formatdomain.rst, Since column of the <hyperv> table",
    ),
    parameter(
        "<stimer>", &["<stimer"], "libvirt 1.3.3", Any,
        "libvirt docs/formatdomain.rst, Since column of the <hyperv> table",
    ),
    parameter(
        "<direct> in <stimer>", &["<direct"], "libvirt 5.7.0", Any,
        "libvirt docs/formatdomain.rst, Since column of the <hyperv> table",
    ),
    parameter(
        "<frequencies>", &["<frequencies"], "libvirt 4.7.0", Any,
        "libvirt docs/formatdomain.rst, Since column of the <hyperv> table",
    ),
    parameter(
        "<tlbflush>", &["<tlbflush"], "libvirt 4.7.0", Any,
        "libvirt docs/formatdomain.rst, Since column of the <hyperv> table",
    ),
    parameter(
        "<ipi>", &["<ipi"], "libvirt 4.10.0", Any,
        "libvirt docs/formatdomain.rst, Since column of the <hyperv> table",
    ),
    parameter(
        "<avic>", &["<avic"], "libvirt 8.10.0", Any,
        "libvirt docs/formatdomain.rst, Since column of the <hyperv> table",
    ),
    parameter(
        "<evmcs>", &["<evmcs", "enlightened VMCS"], "libvirt 4.10.0", Any,
        "libvirt docs/formatdomain.rst, Since column of the <hyperv> table",
    ),
    parameter(
        "<target type='virtio'/> of a console", &["<target type='virtio'"], "libvirt 0.8.3", Any,
        "libvirt docs/formatdomain.rst, virtio console: 'Since 0.8.3'",
    ),
    parameter(
        "virsh blkdeviotune", &["virsh blkdeviotune"], "libvirt 0.9.8", Any,
        "libvirt docs/hvsupport.html: virDomainSetBlockIoTune 0.9.8",
    ),
    parameter(
        "<video><model type='none'>", &["<model type='none'"], "libvirt 4.6.0", Any,
        "libvirt NEWS 4.6.0: 'qemu: Introduce a new video model of type none'",
    ),
];

/// Returns all of them.
pub fn parameters() -> &'static [TuningParameter] {
    PARAMETERS
}

/// What only x86 has, beside the parameters of its modules.
const OF_X86: [&str; 24] = [
    "CONFIG_PARAVIRT_SPINLOCKS",
    "<spinlocks>",
    "kvm.pi_inject_timer",
    "kvm.nx_huge_pages",
    "kvm.nx_huge_pages_recovery_ratio",
    "kvm.nx_huge_pages_recovery_period_ms",
    "idle=poll",
    "no-kvmapf",
    "cpuidle_haltpoll.force",
    "-overcommit cpu-pm",
    "kernel-irqchip",
    "kvm-asyncpf-int",
    "kvm-hint-dedicated",
    "kvm-poll-control",
    "<timer name='hypervclock'>",
    "<timer name='hpet'>",
    "<relaxed>",
    "<vapic>",
    "<vpindex>",
    "<synic>",
    "<stimer>",
    "<frequencies>",
    "<tlbflush>",
    "<ipi>",
];

impl TuningParameter {
    /// Returns whether only x86 has it.
    pub fn is_of_x86(&self) -> bool {
        let module = ["kvm_intel.", "kvm_amd.", "hv-"];
        OF_X86.contains(&self.name) || module.iter().any(|of| self.name.starts_with(of))
    }

    /// Returns the first kernel of the host that has it, of what only a host has: parameters of KVM's
    /// modules. A parameter of the command line may be the guest's.
    pub fn first_host_kernel(&self) -> Option<&'static str> {
        let of_host = self.name.starts_with("kvm");
        self.since.strip_prefix("Linux ").filter(|_| of_host)
    }

    /// Returns the first QEMU that has it, of what QEMU has.
    pub fn first_qemu(&self) -> Option<&'static str> {
        self.since.strip_prefix("QEMU ")
    }

    /// Returns whether a text names it.
    pub fn is_named_in(&self, text: &str) -> bool {
        self.written
            .iter()
            .any(|name| !places(text, name).is_empty())
    }
}

/// Returns where a name stands in a text by itself: the offsets behind it.
pub fn places(text: &str, name: &str) -> Vec<usize> {
    let joins = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = text.as_bytes();
    text.match_indices(name)
        .filter(|(at, _)| {
            let first = name
                .bytes()
                .next()
                .is_some_and(|b| b.is_ascii_alphanumeric());
            let last = name
                .bytes()
                .last()
                .is_some_and(|b| b.is_ascii_alphanumeric());
            let before = at.checked_sub(1).and_then(|at| bytes.get(at));
            let behind = bytes.get(at + name.len());
            !(first && joins(before) || last && joins(behind))
        })
        .map(|(at, _)| at + name.len())
        .collect()
}

/// Returns the parameters that a text names, in the order of the table.
pub(crate) fn named_in(text: &str) -> impl Iterator<Item = &'static TuningParameter> {
    PARAMETERS.iter().filter(move |one| one.is_named_in(text))
}
