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

/// A task of guest 1 wakes another one, which was last on the second vCPU: what the guest's events of `sched` show is
/// enough.
#[test]
fn a_wake_up_is_an_ipi_until_its_task_has_the_idle_cpu() {
    let mut text = Text::default();
    text.enters(A0, 1, 1);
    text.enters(A1, 2, 1);
    halts(&mut text, A1, 2, 4);
    let ipi = |text: &mut Text, t: u64, vector: u32, enters_between: bool| {
        let waking = "sched_waking comm=wl pid=126 prio=120 target_cpu=001";
        text.event(PING, 0, t, waking);
        if enters_between {
            text.exits(A0, 1, t, "EXTERNAL_INTERRUPT");
            text.enters(A0, 1, t + 1);
        }
        text.exits(A0, 1, t + 2, "MSR_WRITE");
        let sent = format!("kvm_apic_ipi dst 1 vec {vector} (Fixed|physical|de-assert|edge|dst)");
        text.event(A0, 1, t + 3, &sent);
        let accepted = format!("kvm_apic_accept_irq apicid 1 vec {vector} (Fixed|edge)");
        text.event(A0, 1, t + 4, &accepted);
        text.wakes(A0, 1, A1, 2, t + 5);
        text.enters(A0, 1, t + 6);
        text.runs(A1, 2, t + 10);
        text.event(A1, 2, t + 11, &format!("kvm_inj_virq IRQ 0x{vector:x}"));
        text.enters(A1, 2, t + 12);
    };
    let switch = |text: &mut Text, us: u64, prev: &str, next: &str| {
        let what = format!(
            "sched_switch prev_{prev} prev_prio=120 prev_state=R ==> next_{next} next_prio=120"
        );
        let what = what.replace("prev_wl", "prev_comm=wl prev_pid=126");
        let what = what.replace("next_wl", "next_comm=wl next_pid=126");
        let what = what.replace("prev_idle", "prev_comm=swapper/1 prev_pid=0");
        let what = what.replace("next_other", "next_comm=other next_pid=127");
        text.event(IDLE_A, 1, us, &what);
    };
    switch(&mut text, 500, "idle", "other");
    // An idle CPU takes up the task.
    ipi(&mut text, 1000, 253, false);
    switch(&mut text, 1015, "idle", "wl");
    halts(&mut text, A1, 2, 1020);
    // It takes up another one: who knows what the interrupt was for.
    ipi(&mut text, 2000, 253, false);
    switch(&mut text, 2015, "idle", "other");
    halts(&mut text, A1, 2, 2020);
    // Functions that several CPUs call are no wake-ups.
    ipi(&mut text, 3000, 252, false);
    switch(&mut text, 3015, "idle", "wl");
    halts(&mut text, A1, 2, 3020);
    // There was an entry in between: the interrupt is not the wake-up's.
    ipi(&mut text, 4000, 253, true);
    switch(&mut text, 4015, "idle", "wl");
    halts(&mut text, A1, 2, 4020);
    let found = walk(&text, builtin("guest-ipi"), &[1]);
    assert!(found.dropped.is_empty(), "{:?}", found.dropped);
    let host = [
        "sent", "accepted", "woken", "on CPU", "injected", "in guest",
    ];
    let all: Vec<Vec<&str>> = (0..found.instances.len())
        .map(|at| found.names(at))
        .collect();
    let woken = [&["guest: task woken"][..], &host].concat();
    let on_cpu = [&woken[..], &["guest: task on CPU"]].concat();
    assert_eq!(all, [on_cpu, woken, host.to_vec(), host.to_vec()]);
    assert_eq!(found.steps(0)[7], ("guest: task on CPU", 15));
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
