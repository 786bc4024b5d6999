//! IPIs between the vCPUs of a guest whose own recording is there.

use crate::common::{Text, builtin};
use crate::guests::{A0, A1, IDLE_A, PING, halts, walk};

/// An IPI from the first vCPU of guest 1 to its second.
#[test]
fn an_ipi_ends_with_its_handler() {
    let mut text = Text::default();
    let handler = |text: &mut Text, name: &str, vector: u32, us: u64| {
        text.event(IDLE_A, 1, us, &format!("{name} vector={vector}"));
    };
    text.enters(A0, 1, 1);
    text.enters(A1, 2, 1);
    handler(&mut text, "call_function_single_entry", 251, 2);
    handler(&mut text, "call_function_single_exit", 251, 3);
    halts(&mut text, A1, 2, 4);
    for t in [1000, 2000] {
        text.event(PING, 0, t, "ipi_send_cpu cpu=1 callsite=x callback=y");
        text.exits(A0, 1, t + 2, "MSR_WRITE");
        text.event(
            A0,
            1,
            t + 3,
            "kvm_apic_ipi dst 1 vec 251 (Fixed|physical|de-assert|edge|dst)",
        );
        text.event(
            A0,
            1,
            t + 4,
            "kvm_apic_accept_irq apicid 1 vec 251 (Fixed|edge)",
        );
        text.wakes(A0, 1, A1, 2, t + 5);
        text.enters(A0, 1, t + 6);
        text.runs(A1, 2, t + 10);
        text.event(A1, 2, t + 11, "kvm_inj_virq IRQ 0xfb");
        text.enters(A1, 2, t + 12);
        // Another vector's handler is none of it.
        handler(&mut text, "reschedule_entry", 253, t + 13);
        handler(&mut text, "call_function_single_entry", 251, t + 15);
        handler(&mut text, "call_function_single_exit", 251, t + 18);
        halts(&mut text, A1, 2, t + 20);
    }
    let host = [
        "sent", "accepted", "woken", "on CPU", "injected", "in guest",
    ];
    let found = walk(&text, builtin("guest-ipi"), &[]);
    assert_eq!(found.instances.len(), 2);
    assert_eq!(found.names(0), host);
    assert!(found.dropped.is_empty());
    let found = walk(&text, builtin("guest-ipi"), &[1]);
    assert_eq!(found.instances.len(), 2);
    for at in 0..2 {
        let steps = found.steps(at);
        assert_eq!(steps[0], ("guest: send", 0));
        assert_eq!(steps[7..], [("guest: handler", 15), ("guest: done", 18)]);
    }
}

#[test]
fn an_ipi_of_arm64_ends_with_its_handler() {
    let mut text = Text::default();
    text.enters(A0, 1, 1);
    text.enters(A1, 2, 1);
    text.event(IDLE_A, 1, 2, "ipi_entry (Function call interrupts)");
    text.event(IDLE_A, 1, 3, "ipi_exit (Function call interrupts)");
    text.event(
        A1,
        2,
        4,
        "kvm_exit TRAP: HSR_EC: 0x0001 (WFx), PC: 0xffff800010a8c1c4",
    );
    text.sleeps(A1, 2, 5);
    text.event(
        PING,
        0,
        1000,
        "ipi_raise target_mask=00000002 (Function call interrupts)",
    );
    text.event(
        A0,
        1,
        1001,
        "kvm_sys_access PC: ffff0000 access ffff0001 (3,0,12,11,5) write",
    );
    text.wakes(A0, 1, A1, 2, 1002);
    text.runs(A1, 2, 1005);
    text.event(A1, 2, 1007, "kvm_entry PC: 0xffff800010a8c1c4");
    text.event(IDLE_A, 0, 1008, "ipi_entry (Function call interrupts)");
    text.event(IDLE_A, 1, 1009, "ipi_entry (Function call interrupts)");
    text.event(IDLE_A, 1, 1012, "ipi_exit (Function call interrupts)");
    let found = walk(&text, builtin("guest-ipi"), &[1]);
    assert_eq!(found.instances.len(), 1);
    assert_eq!(
        found.steps(0),
        [
            ("guest: send", 0),
            ("sent", 1),
            ("woken", 2),
            ("on CPU", 5),
            ("in guest", 7),
            ("guest: handler", 9),
            ("guest: done", 12),
        ]
    );
}
