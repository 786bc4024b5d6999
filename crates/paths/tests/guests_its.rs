//! Interrupts of which the host does not show the vCPU.

use crate::common::{Text, builtin};
use crate::guests::{
    A0, A1, B0, IDLE_A, IDLE_B, PING, VHOST_A, VHOST_B, halts, kicks, receives, walk,
};

/// With an ITS no event of the host says for which vCPU an interrupt is, and a vCPU that is not asleep is woken by
/// nobody.
#[test]
fn a_guests_handler_shows_which_vcpu_an_interrupt_is_for() {
    let of = |recorded: &[u16]| {
        let mut text = Text::default();
        for vcpu in [(A0, 1), (A1, 2), (B0, 3)] {
            text.enters(vcpu.0, vcpu.1, 1);
        }
        // That a text has a kind of events is known with the first of them.
        text.event(VHOST_A, 5, 2, "irqfd_wakeup (ffffc00fae453ef0)");
        receives(&mut text, IDLE_A, 0, 3);
        receives(&mut text, IDLE_B, 0, 3);
        text.event(PING, 0, 5, "skb_copy_datagram_iovec skbaddr=0x2 len=84");
        text.event(PING, 0, 5, "sys_exit_recvfrom 0x40");
        for n in 0..3 {
            let t = 1000 + n * 1_000_000;
            text.event(PING, 0, t, "sys_enter_sendto fd: 0x00000003");
            kicks(&mut text, A0, 1, VHOST_A, t + 7);
            text.wakes(VHOST_A, 5, VHOST_B, 6, t + 20);
            text.sleeps(VHOST_A, 5, t + 21);
            text.runs(VHOST_B, 6, t + 23);
            text.event(VHOST_B, 6, t + 30, "irqfd_wakeup (ffffc00fae453ef0)");
            text.sleeps(VHOST_B, 6, t + 31);
            // Another vCPU leaves and enters its guest meanwhile.
            text.exits(A1, 2, t + 31, "IRQ");
            text.enters(A1, 2, t + 32);
            text.exits(B0, 3, t + 34, "IRQ");
            text.enters(B0, 3, t + 36);
            receives(&mut text, IDLE_B, 0, t + 38);
            kicks(&mut text, B0, 3, VHOST_B, t + 43);
            text.wakes(VHOST_B, 5, VHOST_A, 5, t + 50);
            text.sleeps(VHOST_B, 5, t + 51);
            text.runs(VHOST_A, 5, t + 52);
            text.event(VHOST_A, 5, t + 70, "irqfd_wakeup (ffffc00fae453ef0)");
            text.sleeps(VHOST_A, 5, t + 72);
            // What was sent is done: this interrupt is not the answer's.
            let sent = "irq_handler_entry irq=24 name=virtio0-output.0";
            text.event(IDLE_A, 1, t + 75, sent);
            receives(&mut text, IDLE_A, 0, t + 80);
            text.event(PING, 0, t + 91, "sys_exit_recvfrom 0x40");
        }
        walk(&text, builtin("packet"), recorded)
    };
    let both = of(&[1, 2]);
    assert_eq!(both.instances.len(), 3, "{:?}", both.dropped);
    for at in 0..3 {
        let steps = both.steps(at);
        // Later it is known whom this back end interrupts: the entry is the step then.
        let entered = if at == 0 { 38 } else { 36 };
        for step in [
            ("peer: in guest", entered),
            ("peer: received", 40),
            ("in guest", 80),
            ("guest: answer: received", 82),
            ("guest: returned", 91),
        ] {
            assert!(steps.contains(&step), "{step:?}: {steps:?}");
        }
        assert_eq!(both.instances[at].steps[0].name.as_ref(), "guest: send");
    }
    // Nothing of the host shows it, and nothing is guessed.
    assert_eq!(of(&[]).instances.len(), 0);
}

/// A probe that says which irqfd it is shows the vCPU too, once that had to be woken for it.
#[test]
fn an_irqfd_that_is_known_by_now_shows_which_vcpu_it_is_for() {
    let mut text = Text::default();
    for vcpu in [(A0, 1), (A1, 2), (B0, 3)] {
        text.enters(vcpu.0, vcpu.1, 1);
    }
    halts(&mut text, A0, 1, 6);
    halts(&mut text, A1, 2, 6);
    let irqfd = |number: u32| format!("irqfd_wakeup (ffffc00fae453ef0) irqfd=0x{number}");
    for n in 0..4 {
        let t = 1000 + n * 1_000_000;
        text.enters(A0, 1, t - 10);
        kicks(&mut text, A0, 1, VHOST_A, t + 7);
        text.wakes(VHOST_A, 5, VHOST_B, 6, t + 20);
        text.sleeps(VHOST_A, 5, t + 21);
        text.runs(VHOST_B, 6, t + 23);
        text.event(VHOST_B, 6, t + 30, &irqfd(9));
        text.wakes(VHOST_B, 6, B0, 3, t + 31);
        text.sleeps(VHOST_B, 6, t + 32);
        text.enters(B0, 3, t + 36);
        kicks(&mut text, B0, 3, VHOST_B, t + 43);
        text.wakes(VHOST_B, 5, VHOST_A, 5, t + 50);
        text.sleeps(VHOST_B, 5, t + 51);
        text.runs(VHOST_A, 5, t + 52);
        halts(&mut text, B0, 3, t + 60);
        // The device has two queues, each with an interrupt for a vCPU of its own.
        let (number, vcpu, cpu) = [(7, A1, 2), (8, A0, 1)][n as usize % 2];
        if vcpu == A0 {
            halts(&mut text, A0, 1, t + 61);
        }
        if n < 2 {
            text.event(VHOST_A, 5, t + 70, &irqfd(number));
            text.wakes(VHOST_A, 5, vcpu, cpu, t + 71);
            text.runs(vcpu, cpu, t + 73);
        } else {
            text.enters(vcpu, cpu, t + 65);
            text.event(VHOST_A, 5, t + 70, &irqfd(number));
            text.exits(vcpu, cpu, t + 72, "IRQ");
        }
        text.enters(vcpu, cpu, t + 75);
        text.sleeps(VHOST_A, 5, t + 92);
        halts(&mut text, vcpu, cpu, t + 95);
        if vcpu == A1 {
            halts(&mut text, A0, 1, t + 97);
        }
    }
    let found = walk(&text, builtin("packet"), &[]);
    assert_eq!(found.instances.len(), 4, "{:?}", found.dropped);
    for at in 0..4 {
        let steps = found.steps(at);
        assert_eq!(steps.last(), Some(&("in guest", 67)), "{steps:?}");
    }
}

/// QEMU's threads that move packets, which are no vCPUs.
const QEMU_A: (&str, i32) = ("qemu-system-aar", 100);
const QEMU_B: (&str, i32) = ("qemu-system-aar", 200);

/// A ping from guest 1 to guest 2 through QEMU on arm64, whose messages make no event: neither of a peer that halts,
/// nor of one that is awake and has answered before its back end sleeps.
fn without_interrupts(pings: u64, peer_is_awake: impl Fn(u64) -> bool) -> Text {
    let processes = [
        (A0, 100),
        (A1, 100),
        (B0, 200),
        (QEMU_A, 100),
        (QEMU_B, 200),
    ];
    let mut text = Text::with_processes(&processes.map(|(thread, process)| (thread.1, process)));
    for vcpu in [(A0, 1), (A1, 2), (B0, 3)] {
        text.enters(vcpu.0, vcpu.1, 1);
    }
    receives(&mut text, IDLE_A, 0, 3);
    receives(&mut text, IDLE_B, 0, 3);
    text.event(PING, 0, 5, "skb_copy_datagram_iovec skbaddr=0x2 len=84");
    text.event(
        QEMU_A,
        5,
        6,
        "sched_wakeup comm=x pid=7 prio=120 target_cpu=005",
    );
    text.event(
        QEMU_B,
        6,
        6,
        "sched_wakeup comm=x pid=7 prio=120 target_cpu=005",
    );
    halts(&mut text, A0, 1, 7);
    halts(&mut text, A1, 2, 9);
    halts(&mut text, B0, 3, 11);
    for n in 0..pings {
        let t = 1000 + n * 1_000_000;
        let awake = peer_is_awake(n);
        if awake {
            text.enters(B0, 3, t - 20);
        }
        text.enters(A0, 1, t - 10);
        text.event(PING, 0, t, "net_dev_queue dev=eth0 skbaddr=0x1 len=98");
        kicks(&mut text, A0, 1, QEMU_A, t + 7);
        text.event(QEMU_A, 5, t + 15, "tun_get_user (ffff80000)");
        text.wakes(QEMU_A, 5, QEMU_B, 6, t + 20);
        text.sleeps(QEMU_A, 5, t + 21);
        halts(&mut text, A0, 1, t + 22);
        text.runs(QEMU_B, 6, t + 25);
        if !awake {
            text.wakes(QEMU_B, 6, B0, 3, t + 30);
            text.runs(B0, 3, t + 32);
            text.enters(B0, 3, t + 36);
        }
        receives(&mut text, IDLE_B, 0, t + 38);
        text.event(
            IDLE_B,
            0,
            t + 41,
            "net_dev_queue dev=eth0 skbaddr=0x2 len=98",
        );
        text.exits(B0, 3, t + 43, "EPT_MISCONFIG");
        let kick = "kvm_mmio mmio write len 2 gpa 0xfebff004 val 0x1";
        text.event(B0, 3, t + 44, kick);
        text.enters(B0, 3, t + 46);
        text.event(QEMU_B, 6, t + 48, "tun_get_user (ffff80000)");
        text.wakes(QEMU_B, 6, QEMU_A, 5, t + 50);
        text.sleeps(QEMU_B, 6, t + 51);
        text.runs(QEMU_A, 5, t + 53);
        halts(&mut text, B0, 3, t + 55);
        text.wakes(QEMU_A, 5, A1, 2, t + 60);
        text.sleeps(QEMU_A, 5, t + 62);
        text.runs(A1, 2, t + 63);
        text.enters(A1, 2, t + 66);
        receives(&mut text, IDLE_A, 1, t + 70);
        text.event(
            PING,
            1,
            t + 80,
            "skb_copy_datagram_iovec skbaddr=0x2 len=84",
        );
        halts(&mut text, A1, 2, t + 90);
    }
    text
}

#[test]
fn where_the_host_shows_no_interrupt_its_wake_ups_and_the_guests_do() {
    let text = without_interrupts(4, |n| n % 2 == 1);
    let both = walk(&text, builtin("packet"), &[1, 2]);
    assert_eq!(both.instances.len(), 4, "{:?}", both.dropped);
    for at in 0..4 {
        let steps = both.steps(at);
        let names: Vec<&str> = steps.iter().map(|(name, _)| *name).collect();
        let asleep = at % 2 == 0;
        assert_eq!(names.contains(&"peer: vCPU woken"), asleep, "{names:?}");
        for step in [
            ("peer: irq handler", 38),
            ("peer: received", 40),
            ("peer: answer queued", 41),
            ("answer: back end woken", 50),
            ("in guest", 66),
            ("guest: answer: received", 72),
            ("guest: read", 80),
        ] {
            assert!(steps.contains(&step), "{step:?}: {steps:?}");
        }
        assert_eq!(both.instances[at].chain.as_deref(), Some("guest to guest"));
    }
    // The host alone has the same round trips, from the kick on.
    let alone = walk(&text, builtin("packet"), &[]);
    assert_eq!(alone.instances.len(), 4, "{:?}", alone.dropped);
    for at in 0..4 {
        let steps = alone.steps(at);
        assert_eq!(steps[0].0, "kick");
        assert_eq!(steps.last(), Some(&("in guest", 58)), "{steps:?}");
    }
}
