//! Which `trapline record` line records what a recording does not have: the one owner of that.

/// What `trapline record --for` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordNeeds {
    /// Exits by reason, port, address and register.
    Exits,
    /// Who waited for a CPU.
    Sched,
    /// Interrupts, wake-ups and I/O; it has the two above too.
    Paths,
    /// Call chains.
    Stacks,
}

impl RecordNeeds {
    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            RecordNeeds::Exits => "exits",
            RecordNeeds::Sched => "sched",
            RecordNeeds::Paths => "paths",
            RecordNeeds::Stacks => "stacks",
        }
    }

    /// Returns the command that records for several; `None` for none.
    pub fn command(asked: impl IntoIterator<Item = RecordNeeds>) -> Option<String> {
        let mut asked: Vec<RecordNeeds> = asked.into_iter().collect();
        asked.sort_unstable();
        asked.dedup();
        if asked.contains(&RecordNeeds::Paths) {
            asked.retain(|one| !matches!(one, RecordNeeds::Exits | RecordNeeds::Sched));
        }
        let names: Vec<&str> = asked.into_iter().map(RecordNeeds::name).collect();
        (!names.is_empty()).then(|| format!("trapline record --for {}", names.join(",")))
    }
}

/// Events by the question that opens them, with the architecture that alone has them, as `record/src/questions.rs`
/// opens them; `cli/tests/record_lines.rs` holds the two against each other.
const OPENED: &[(RecordNeeds, &str, &[&str])] = &[
    (
        RecordNeeds::Exits,
        "",
        &[
            "kvm_entry",
            "kvm_exit",
            "kvm_userspace_exit",
            "kvm_mmio",
            "kvm_vcpu_wakeup",
            "kvm_halt_poll_ns",
        ],
    ),
    (
        RecordNeeds::Exits,
        "x86_64",
        &[
            "kvm_pio",
            "kvm_fast_mmio",
            "kvm_msr",
            "kvm_apicv_inhibit_changed",
            "kvm_nested_vmexit",
            "kvm_vmgexit_enter",
            "kvm_vmgexit_msr_protocol_enter",
            "kvm_rmp_fault",
        ],
    ),
    (
        RecordNeeds::Exits,
        "aarch64",
        &["kvm_wfx_arm64", "kvm_hvc_arm64"],
    ),
    (
        RecordNeeds::Sched,
        "",
        &[
            "sched_switch",
            "sched_waking",
            "sched_wakeup",
            "sched_wakeup_new",
            "sched_migrate_task",
            "sched_process_fork",
            "sched_process_exit",
            "workqueue_execute_start",
            "workqueue_execute_end",
        ],
    ),
    (
        RecordNeeds::Paths,
        "",
        &[
            "kvm_set_irq",
            "kvm_unmap_hva_range",
            "kvm_dirty_ring_push",
            "block_rq_issue",
            "block_rq_complete",
            "irq_handler_entry",
            "irq_handler_exit",
            "cpu_idle",
        ],
    ),
    (
        RecordNeeds::Paths,
        "x86_64",
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
    (
        RecordNeeds::Paths,
        "aarch64",
        &[
            "kvm_irq_line",
            "kvm_sys_access",
            "vgic_update_irq_pending",
            "kvm_timer_update_irq",
            "kvm_timer_emulate",
            "kvm_timer_hrtimer_expire",
            "kvm_guest_fault",
        ],
    ),
];

/// Returns the events that the questions of `trapline record --for` open: the question, the architecture that alone
/// has them or nothing, their names.
pub fn opened_events() -> &'static [(RecordNeeds, &'static str, &'static [&'static str])] {
    OPENED
}

/// Returns the one command that records these events, named with their system or without: by the questions that open
/// them, and the others by name. No event at all stands for samples.
///
/// ```
/// use rules::record_command;
/// assert_eq!(record_command(&["kvm_entry", "kvm:kvm_exit"]), "trapline record --for exits");
/// assert_eq!(record_command(&["timer:hrtimer_start"]), "trapline record -e timer:hrtimer_start");
/// assert_eq!(record_command(&[]), "trapline record --for stacks");
/// ```
pub fn record_command(events: &[&str]) -> String {
    let bare = |event: &str| -> String {
        let name = event.rsplit(':').next();
        name.unwrap_or_default().to_owned()
    };
    let opening = |event: &str| {
        let name = bare(event);
        let mut lists = OPENED.iter();
        lists.find_map(|(needs, _, names)| names.contains(&name.as_str()).then_some(*needs))
    };
    let mut asked: Vec<RecordNeeds> = events.iter().filter_map(|event| opening(event)).collect();
    if events.is_empty() {
        asked.push(RecordNeeds::Stacks);
    }
    let command = RecordNeeds::command(asked);
    let mut command = command.unwrap_or_else(|| "trapline record".to_owned());
    for event in events.iter().filter(|event| opening(event).is_none()) {
        command.push_str(" -e ");
        command.push_str(event);
    }
    command
}
