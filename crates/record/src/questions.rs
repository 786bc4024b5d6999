//! What is asked of a recording, and which events answer it.

use crate::plan::Wanted;

/// What a recording is to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Question {
    /// What exits there were, of which device, and what they took.
    Exits,
    /// Who waited for a CPU, and behind whom.
    Sched,
    /// What became of each interrupt, wake-up and kick.
    Paths,
    /// Which code the CPUs ran, and where threads waited.
    Stacks,
    /// Within a guest: what its CPUs did while the host let them run.
    GuestCpus,
    /// Within a guest: what it sent, received, wrote and read.
    GuestIo,
}

/// Samples of call chains a second: not a divisor of common timers, so that they are not met in step. perf's own default is 4000.
const SAMPLES_HZ: u64 = 99;

/// Events by what is asked, from those that nothing can be said without to those that say more: `include/trace/events/kvm.h`,
/// `arch/x86/kvm/trace.h`, `arch/arm64/kvm/trace_arm.h`, `include/trace/events/{sched,irq,workqueue}.h`. A kernel has those of its
/// own architecture.
const EXITS: &[(&str, &[&str])] = &[
    (
        "kvm",
        &[
            "kvm_entry",
            "kvm_exit",
            "kvm_userspace_exit",
            "kvm_mmio",
            "kvm_vcpu_wakeup",
            "kvm_halt_poll_ns",
        ],
    ),
    #[cfg(target_arch = "x86_64")]
    (
        "kvm",
        &[
            "kvm_pio",
            "kvm_fast_mmio",
            "kvm_msr",
            "kvm_apicv_inhibit_changed",
            "kvm_nested_vmexit",
        ],
    ),
    #[cfg(target_arch = "aarch64")]
    ("kvm", &["kvm_wfx_arm64", "kvm_hvc_arm64"]),
];
const SCHED: &[(&str, &[&str])] = &[
    (
        "sched",
        &[
            "sched_switch",
            "sched_waking",
            "sched_wakeup",
            "sched_wakeup_new",
            "sched_migrate_task",
            "sched_process_fork",
            "sched_process_exit",
        ],
    ),
    (
        "workqueue",
        &["workqueue_execute_start", "workqueue_execute_end"],
    ),
];
const PATHS: &[(&str, &[&str])] = &[
    ("kvm", &["kvm_set_irq"]),
    #[cfg(target_arch = "x86_64")]
    (
        "kvm",
        &[
            "kvm_msi_set_irq",
            "kvm_ioapic_set_irq",
            "kvm_pic_set_irq",
            "kvm_apic_accept_irq",
            "kvm_apicv_accept_irq",
            "kvm_inj_virq",
            "kvm_apic",
            "kvm_apic_ipi",
            "kvm_hv_timer_state",
            "kvm_page_fault",
        ],
    ),
    #[cfg(target_arch = "aarch64")]
    (
        "kvm",
        &[
            "kvm_irq_line",
            // A vCPU's interrupt for another one begins with it.
            "kvm_sys_access",
            "vgic_update_irq_pending",
            "kvm_timer_update_irq",
            "kvm_timer_emulate",
            "kvm_timer_hrtimer_expire",
            "kvm_guest_fault",
        ],
    ),
    ("irq", &["irq_handler_entry", "irq_handler_exit"]),
];

/// Few events say what a guest's CPU does: which thread it runs and who woke that, its interrupts, softirqs and when it is idle
/// (`include/trace/events/{sched,irq,ipi,power}.h`, `arch/x86/include/asm/trace/irq_vectors.h`).
///
/// Events of `irq_work` are left out: perf itself makes them, and the kernel refuses to sample their end. So is `ipi_send_cpu`, whose
/// addresses would take all of the kernel's symbols with them, 5 MB.
const GUEST_CPUS: &[(&str, &[&str])] = &[
    (
        "sched",
        &[
            "sched_switch",
            "sched_waking",
            "sched_wakeup",
            "sched_wakeup_new",
            "sched_process_fork",
            "sched_process_exit",
        ],
    ),
    (
        "irq",
        &[
            "irq_handler_entry",
            "irq_handler_exit",
            "softirq_entry",
            "softirq_exit",
        ],
    ),
    #[cfg(target_arch = "x86_64")]
    (
        "irq_vectors",
        &[
            "local_timer_entry",
            "local_timer_exit",
            "reschedule_entry",
            "reschedule_exit",
            "call_function_entry",
            "call_function_exit",
            "call_function_single_entry",
            "call_function_single_exit",
        ],
    ),
    #[cfg(target_arch = "aarch64")]
    ("ipi", &["ipi_raise", "ipi_entry", "ipi_exit"]),
    ("power", &["cpu_idle"]),
];

/// Where packets and block requests leave a guest and come back (`include/trace/events/{net,block}.h`): an event or two for each.
const GUEST_IO: &[(&str, &[&str])] = &[
    (
        "net",
        &["net_dev_queue", "net_dev_xmit", "netif_receive_skb"],
    ),
    ("block", &["block_rq_issue", "block_rq_complete"]),
];

impl Question {
    /// All questions about a host, in the order in which they are listed.
    pub const ALL: [Question; 4] = [
        Question::Exits,
        Question::Sched,
        Question::Paths,
        Question::Stacks,
    ];

    /// Returns how many samples of call chains a second it asks for.
    pub fn samples_hz(self) -> Option<u64> {
        (self == Question::Stacks).then_some(SAMPLES_HZ)
    }

    /// Returns the functions that are probed for it, where the kernel can: back ends raise interrupts by them, and take what a guest
    /// sends.
    pub fn probes(self) -> &'static [&'static str] {
        match self {
            Question::Paths => &["irqfd_wakeup", "irqfd_inject", "tun_get_user", "handle_tx"],
            _ => &[],
        }
    }

    fn events(self) -> &'static [&'static [(&'static str, &'static [&'static str])]] {
        match self {
            Question::Exits => &[EXITS],
            Question::Sched => &[SCHED],
            // Instances go through exits, wake-ups and switches.
            Question::Paths => &[EXITS, SCHED, PATHS],
            Question::Stacks => &[],
            Question::GuestCpus => &[GUEST_CPUS],
            Question::GuestIo => &[GUEST_IO],
        }
    }
}

/// Where threads leave their CPU, and where they are woken: with call chains that is where they wait.
const WITH_STACKS: [&str; 2] = ["sched_switch", "sched_waking"];

/// Returns the events that answer questions, each once. No kernel has all of them.
pub fn events(questions: &[Question]) -> Vec<Wanted> {
    let mut out: Vec<Wanted> = Vec::new();
    let lists = questions.iter().flat_map(|one| one.events());
    for (system, names) in lists.copied().flatten() {
        for name in *names {
            if !out.iter().any(|one| one.name == *name) {
                out.push(Wanted::all(system, name));
            }
        }
    }
    if questions.contains(&Question::Stacks) {
        for name in WITH_STACKS {
            match out.iter_mut().find(|one| one.name == name) {
                Some(one) => one.stack = true,
                None => out.push(Wanted {
                    stack: true,
                    ..Wanted::all("sched", name)
                }),
            }
        }
    }
    out
}
