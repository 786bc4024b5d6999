//! Which events answer what is asked of a host: a recorder opens them, and what cannot be said names them.

/// Events of one subsystem that answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedEvents {
    /// The architecture whose kernels alone have them, as `std::env::consts::ARCH` has it.
    pub arch: Option<&'static str>,
    /// Their subsystem.
    pub system: &'static str,
    /// Their names.
    pub names: &'static [&'static str],
}

/// Events that answer which exits there were, from those that nothing can be said without to those that say more:
/// `include/trace/events/kvm.h`, `arch/x86/kvm/trace.h`, `arch/arm64/kvm/trace_arm.h`,
/// `include/trace/events/{sched,irq,workqueue}.h`. A kernel has
/// those of its own architecture.
pub const EXIT_EVENTS: &[AskedEvents] = &[
    AskedEvents {
        arch: None,
        system: "kvm",
        names: &[
            "kvm_entry",
            "kvm_exit",
            "kvm_userspace_exit",
            "kvm_mmio",
            "kvm_vcpu_wakeup",
            "kvm_halt_poll_ns",
        ],
    },
    AskedEvents {
        arch: Some("x86_64"),
        system: "kvm",
        names: &[
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
    },
    AskedEvents {
        arch: Some("aarch64"),
        system: "kvm",
        names: &["kvm_wfx_arm64", "kvm_hvc_arm64"],
    },
];
/// The same for who waited for a CPU.
pub const SCHED_EVENTS: &[AskedEvents] = &[
    AskedEvents {
        arch: None,
        system: "sched",
        names: &[
            "sched_switch",
            "sched_waking",
            "sched_wakeup",
            "sched_wakeup_new",
            "sched_migrate_task",
            "sched_process_fork",
            "sched_process_exit",
        ],
    },
    AskedEvents {
        arch: None,
        system: "workqueue",
        names: &["workqueue_execute_start", "workqueue_execute_end"],
    },
];
/// The same for what became of interrupts, wake-ups and kicks, beside the other two.
pub const PATH_EVENTS: &[AskedEvents] = &[
    // Who takes memory away, and who logs what is written to it: few events, but where that is the cause.
    AskedEvents {
        arch: None,
        system: "kvm",
        names: &["kvm_set_irq", "kvm_unmap_hva_range", "kvm_dirty_ring_push"],
    },
    // Two for each request of a disk.
    AskedEvents {
        arch: None,
        system: "block",
        names: &["block_rq_issue", "block_rq_complete"],
    },
    AskedEvents {
        arch: Some("x86_64"),
        system: "kvm",
        names: &[
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
    },
    AskedEvents {
        arch: Some("aarch64"),
        system: "kvm",
        names: &[
            "kvm_irq_line",
            // A vCPU's interrupt for another one begins with it.
            "kvm_sys_access",
            "vgic_update_irq_pending",
            "kvm_timer_update_irq",
            "kvm_timer_emulate",
            "kvm_timer_hrtimer_expire",
            "kvm_guest_fault",
        ],
    },
    AskedEvents {
        arch: None,
        system: "irq",
        names: &["irq_handler_entry", "irq_handler_exit"],
    },
    // Two for each time that a CPU is idle, as sched_switch has.
    AskedEvents {
        arch: None,
        system: "power",
        names: &["cpu_idle"],
    },
];
/// The same for what went through virtqueues, beside exits' accesses: frames of a guest's interfaces or of tap devices,
/// two for each (`include/trace/events/net.h`).
pub const QUEUE_EVENTS: &[AskedEvents] = &[AskedEvents {
    arch: None,
    system: "net",
    names: &["net_dev_xmit", "netif_receive_skb"],
}];
