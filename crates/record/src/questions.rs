//! What is asked of a recording, and which events answer it.

use crate::plan::PlannedEvent;

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
    /// Within a guest: when a program asked to send, and when it had what it received.
    GuestSockets,
}

/// Samples of call chains a second: not a divisor of common timers, so that they are not met in step. perf's own
/// default is 4000.
const SAMPLES_HZ: u64 = 99;

/// Events by what is asked, from those that nothing can be said without to those that say more:
/// `include/trace/events/kvm.h`, `arch/x86/kvm/trace.h`, `arch/arm64/kvm/trace_arm.h`,
/// `include/trace/events/{sched,irq,workqueue}.h`. A kernel has those of its own architecture.
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
            // What guests of SEV-ES and SEV-SNP ask for, whose exits are all alike.
            "kvm_vmgexit_enter",
            "kvm_vmgexit_msr_protocol_enter",
            "kvm_rmp_fault",
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
    // Who takes memory away, and who logs what is written to it: few events, but where that is the cause.
    (
        "kvm",
        &["kvm_set_irq", "kvm_unmap_hva_range", "kvm_dirty_ring_push"],
    ),
    // Two for each request of a disk.
    ("block", &["block_rq_issue", "block_rq_complete"]),
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
    // Two for each time that a CPU is idle, as sched_switch has.
    ("power", &["cpu_idle"]),
];

/// Few events say what a guest's CPU does: which thread it runs and who woke that, its interrupts, softirqs, what one
/// CPU asks of another and when it is idle (`include/trace/events/{sched,irq,ipi,csd,power}.h`,
/// `arch/x86/include/asm/trace/irq_vectors.h`).
///
/// Linux has `ipi_send_cpumask` and `ipi_send_cpu` since 6.4, and `csd` since 6.5. Events of `irq_work` are left out:
/// perf itself makes them, and the kernel refuses to sample their end.
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
    ("ipi", &["ipi_send_cpu", "ipi_send_cpumask"]),
    (
        "csd",
        &["csd_queue_cpu", "csd_function_entry", "csd_function_exit"],
    ),
    ("power", &["cpu_idle"]),
];

/// Where packets and block requests leave a guest and come back, and where a program has what came
/// (`include/trace/events/{net,skb,sock,block}.h`): an event or two for each. Linux has `sock_recv_length` since
/// 6.3. No path needs its twin, `sock_send_length`.
const GUEST_IO: &[(&str, &[&str])] = &[
    (
        "net",
        &["net_dev_queue", "net_dev_xmit", "netif_receive_skb"],
    ),
    ("skb", &["skb_copy_datagram_iovec"]),
    ("sock", &["sock_recv_length"]),
    ("block", &["block_rq_issue", "block_rq_complete"]),
];

/// The system calls by which programs send and receive (`include/trace/events/syscalls.h`). The kernel takes a longer
/// way into and out of each system call of each thread as long as one of these is open, whichever system call that is.
const GUEST_SOCKETS: &[(&str, &[&str])] = &[(
    "syscalls",
    &[
        "sys_enter_sendto",
        "sys_enter_sendmsg",
        "sys_exit_recvfrom",
        "sys_exit_recvmsg",
    ],
)];

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

    /// Returns the functions that are probed for it, where the kernel can: back ends raise interrupts by them, and take
    /// what a guest sends.
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
            Question::GuestSockets => &[GUEST_SOCKETS],
        }
    }
}

/// Where threads leave their CPU, and where they are woken: with call chains that is where they wait.
const WITH_STACKS: [&str; 2] = ["sched_switch", "sched_waking"];

/// Returns the events that answer questions, each once. No kernel has all of them.
pub fn events(questions: &[Question]) -> Vec<PlannedEvent> {
    let mut out: Vec<PlannedEvent> = Vec::new();
    let lists = questions.iter().flat_map(|one| one.events());
    for (system, names) in lists.copied().flatten() {
        for name in *names {
            if !out.iter().any(|one| one.name == *name) {
                out.push(PlannedEvent::all(system, name));
            }
        }
    }
    if questions.contains(&Question::Stacks) {
        for name in WITH_STACKS {
            match out.iter_mut().find(|one| one.name == name) {
                Some(one) => one.stack = true,
                None => out.push(PlannedEvent {
                    stack: true,
                    ..PlannedEvent::all("sched", name)
                }),
            }
        }
    }
    out
}
