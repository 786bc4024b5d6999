//! Events that follow each other as paths have them, several at once and with others between them.

use proptest::prelude::*;

use super::stream::{KINDS, One, one};

/// Events of a thread: kind, who makes it, whom it is about, the number it has, and its flag. Threads are 0 and 1 for
/// the vCPUs of a VM, and otherwise as in [`THREADS`](crate::stream::THREADS).
pub(crate) type Script = &'static [(&'static str, usize, usize, u64, bool)];

/// What the built-in paths are, each as it happens.
pub(crate) const SCRIPTS: [(&str, Script); 12] = [
    (
        "halt-wake",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("kvm_exit", 0, 0, 0, false),
            ("sched_switch", 0, 8, 0, true),
            ("sched_waking", 8, 0, 0, false),
            ("sched_switch", 8, 0, 0, false),
            ("kvm_vcpu_wakeup", 0, 0, 0, true),
            ("kvm_entry", 0, 0, 0, true),
        ],
    ),
    (
        "halt-wake",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("kvm_exit", 0, 0, 0, false),
            ("kvm_vcpu_wakeup", 0, 0, 0, false),
            ("kvm_entry", 0, 0, 0, true),
        ],
    ),
    (
        "irqfd",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("eventfd_signal", 4, 0, 0, false),
            ("irqfd_wakeup", 4, 0, 0, false),
            ("kvm_msi_set_irq", 4, 0, 0, false),
            ("kvm_apic_accept_irq", 4, 0, 0, false),
            ("kvm_exit", 0, 0, 4, false),
            ("kvm_inj_virq", 0, 0, 0, false),
            ("kvm_entry", 0, 0, 0, true),
        ],
    ),
    (
        "ipi",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("kvm_exit", 1, 0, 2, false),
            ("kvm_apic_ipi", 1, 0, 0, false),
            ("kvm_apic_accept_irq", 1, 0, 0, false),
            ("kvm_entry", 1, 0, 1, true),
            ("kvm_exit", 0, 0, 4, false),
            ("kvm_inj_virq", 0, 0, 0, false),
            ("kvm_entry", 0, 0, 0, true),
        ],
    ),
    (
        "timer",
        &[
            ("kvm_entry", 1, 0, 1, true),
            ("kvm_exit", 1, 0, 4, true),
            ("hrtimer_expire_entry", 1, 0, 0, false),
            ("kvm_apic_accept_irq", 1, 0, 1, false),
            ("kvm_inj_virq", 1, 0, 1, false),
            ("kvm_entry", 1, 0, 1, true),
        ],
    ),
    (
        "kick",
        &[
            ("kvm_exit", 0, 0, 3, false),
            ("kvm_mmio", 0, 0, 2, false),
            ("eventfd_signal", 0, 0, 0, false),
            ("sched_waking", 0, 4, 0, false),
            ("kvm_entry", 0, 0, 0, true),
            ("sched_switch", 8, 4, 0, false),
            ("irqfd_wakeup", 4, 0, 0, false),
            ("kvm_msi_set_irq", 4, 0, 0, false),
            ("kvm_apic_accept_irq", 4, 0, 0, false),
            ("kvm_exit", 0, 0, 4, false),
            ("kvm_inj_virq", 0, 0, 0, false),
            ("kvm_entry", 0, 0, 0, true),
            ("kvm_exit", 0, 0, 1, false),
            ("kvm_pio", 0, 0, 9, true),
        ],
    ),
    (
        "user-exit",
        &[
            ("kvm_exit", 0, 0, 1, false),
            ("kvm_pio", 0, 0, 0x3f8, true),
            ("kvm_userspace_exit", 0, 0, 0, true),
            ("kvm_fpu", 0, 0, 0, true),
            ("kvm_entry", 0, 0, 0, true),
        ],
    ),
    // APICv: to a vCPU that is in its guest, and to one that is not.
    (
        "ipi",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("kvm_exit", 1, 0, 2, false),
            ("kvm_hv_send_ipi", 1, 0, 0, false),
            ("kvm_apic_accept_irq", 1, 0, 0, false),
            ("kvm_apicv_accept_irq", 1, 0, 0, false),
            ("kvm_entry", 1, 0, 1, true),
        ],
    ),
    (
        "ipi",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("kvm_exit", 0, 0, 0, true),
            ("kvm_exit", 1, 0, 2, false),
            ("kvm_apic_ipi", 1, 0, 0, false),
            ("kvm_apic_accept_irq", 1, 0, 0, false),
            ("kvm_apicv_accept_irq", 1, 0, 0, false),
            ("kvm_entry", 1, 0, 1, true),
            ("kvm_entry", 0, 0, 0, true),
        ],
    ),
    (
        "irqfd",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("irqfd_wakeup", 4, 0, 0, false),
            ("kvm_msi_set_irq", 4, 0, 0, false),
            ("kvm_apic_accept_irq", 4, 0, 0, false),
            ("kvm_apicv_accept_irq", 4, 0, 0, false),
        ],
    ),
    (
        "irqfd",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("kvm_exit", 0, 0, 0, true),
            ("function", 4, 0, 1, false),
            ("kvm_msi_set_irq", 4, 0, 0, false),
            ("kvm_apic_accept_irq", 4, 0, 0, false),
            ("kvm_apicv_accept_irq", 4, 0, 0, false),
            ("sched_waking", 4, 0, 0, false),
            ("kvm_entry", 0, 0, 0, true),
        ],
    ),
    (
        "timer",
        &[
            ("kvm_entry", 1, 0, 1, true),
            ("kvm_exit", 1, 0, 4, true),
            ("kvm_apic_accept_irq", 1, 0, 1, false),
            ("kvm_apicv_accept_irq", 1, 0, 1, false),
            ("kvm_entry", 1, 0, 1, true),
        ],
    ),
];

/// Returns an event of a script, for one of two VMs.
pub(crate) fn scripted(line: &(&str, usize, usize, u64, bool), vm: usize, step: i64) -> One {
    let &(name, thread, other, number, flag) = line;
    let kind = KINDS.iter().position(|(known, _)| *known == name);
    let of = |thread: usize| if thread < 2 { thread + 2 * vm } else { thread };
    One {
        kind: kind.expect("a kind of the list"),
        thread: of(thread),
        other: of(other),
        cpu: of(thread) as i32 % 4,
        step,
        number,
        flag,
        bare: false,
        lost: false,
        guest: false,
    }
}

/// What comes next: a step of a script under way, or something else.
#[derive(Debug, Clone)]
pub(crate) enum Next {
    Script {
        place: usize,
        which: usize,
        vm: usize,
        step: i64,
    },
    Noise(One),
}

/// What comes next, with so much of something else to 20 steps of scripts.
pub(crate) fn next(noise: u32) -> impl Strategy<Value = Next> {
    let script = (0..4usize, 0..SCRIPTS.len(), 0..2usize, 0..3_000i64);
    prop_oneof![
        20 => script.prop_map(|(place, which, vm, step)| Next::Script { place, which, vm, step }),
        noise => one().prop_map(Next::Noise),
    ]
}

/// Plays up to four scripts at once.
pub(crate) fn play(all: &[Next]) -> Vec<One> {
    let mut places: [(usize, usize, usize); 4] = [(0, usize::MAX, 0); 4];
    let mut out = Vec::new();
    for next in all {
        match next {
            Next::Noise(one) => out.push(one.clone()),
            Next::Script {
                place,
                which,
                vm,
                step,
            } => {
                let (script, at, of) = &mut places[*place];
                if *at >= SCRIPTS[*script].1.len() {
                    (*script, *at, *of) = (*which, 0, *vm);
                }
                out.push(scripted(&SCRIPTS[*script].1[*at], *of, *step));
                *at += 1;
            }
        }
    }
    out
}
