//! Interrupts of which the host does not show the vCPU.

use crate::common::{Text, builtin};
use crate::guests::{
    A0, A1, B0, IDLE_A, IDLE_B, PING, VHOST_A, VHOST_B, halts, kicks, receives, walk,
};

/// With an ITS no event of the host says for which vCPU an interrupt is, and a vCPU that is not asleep is woken by nobody.
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
    assert_eq!(both.told.len(), 3, "{:?}", both.dropped);
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
        assert_eq!(both.told[at].steps[0].name, "guest: send");
    }
    // Nothing of the host tells it, and nothing is guessed.
    assert_eq!(of(&[]).told.len(), 0);
}

/// A probe that says which irqfd it is tells the vCPU too, once that had to be woken for it.
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
    assert_eq!(found.told.len(), 4, "{:?}", found.dropped);
    for at in 0..4 {
        let steps = found.steps(at);
        assert_eq!(steps.last(), Some(&("in guest", 67)), "{steps:?}");
    }
}
