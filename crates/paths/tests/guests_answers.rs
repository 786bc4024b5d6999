//! How an answer comes back to whoever asked: on another vCPU than the one that was interrupted first, without an
//! interrupt, or on another vCPU than the one that sent.

use crate::common::{Text, builtin};
use crate::guests::{A0, A1, B0, Found, IDLE_A, IDLE_B, PING, VHOST_A, VHOST_B};
use crate::guests::{halts, interrupts, kicks, receives, walk};

/// Pings from guest 1 to guest 2, the first at 1000 us and a second between two, which the peer has answered 50 us
/// later; the rest is up to the caller, who gets that time.
fn answered(count: u64, comes_back: impl Fn(&mut Text, u64)) -> Text {
    let mut text = Text::default();
    for vcpu in [(A0, 1), (A1, 2), (B0, 3)] {
        text.enters(vcpu.0, vcpu.1, 1);
    }
    // That a text has a kind of events is known with the first of them.
    receives(&mut text, IDLE_A, 0, 3);
    receives(&mut text, IDLE_B, 0, 3);
    text.event(PING, 0, 5, "skb_copy_datagram_iovec skbaddr=0x2 len=84");
    halts(&mut text, B0, 3, 6);
    halts(&mut text, A1, 2, 6);
    for n in 0..count {
        let t = 1000 + n * 1_000_000;
        text.enters(A0, 1, t - 10);
        text.event(PING, 0, t, "net_dev_queue dev=eth0 skbaddr=0x1 len=98");
        kicks(&mut text, A0, 1, VHOST_A, t + 7);
        text.wakes(VHOST_A, 5, VHOST_B, 6, t + 20);
        text.sleeps(VHOST_A, 5, t + 21);
        text.runs(VHOST_B, 6, t + 23);
        halts(&mut text, A0, 1, t + 25);
        interrupts(&mut text, VHOST_B, B0, 3, 36, t + 30);
        receives(&mut text, IDLE_B, 0, t + 38);
        text.sleeps(VHOST_B, 6, t + 42);
        kicks(&mut text, B0, 3, VHOST_B, t + 43);
        text.wakes(VHOST_B, 6, VHOST_A, 5, t + 50);
        text.sleeps(VHOST_B, 6, t + 51);
        text.runs(VHOST_A, 5, t + 52);
        halts(&mut text, B0, 3, t + 60);
        comes_back(&mut text, t + 50);
        text.sleeps(VHOST_A, 5, t + 250);
        halts(&mut text, A1, 2, t + 260);
        halts(&mut text, A0, 1, t + 265);
    }
    text
}

/// The steps behind the answer, from when it was handed over.
fn behind(found: &Found, at: usize) -> Vec<(String, u64)> {
    let steps = found.steps(at);
    let from = steps
        .iter()
        .position(|(name, _)| *name == "answer: back end woken");
    let steps = steps.into_iter().skip(from.expect("it is answered"));
    let mut steps = steps.peekable();
    let first = steps.peek().map_or(0, |(_, us)| *us);
    let steps = steps.map(|(name, us)| (name.to_owned(), us - first));
    steps.skip(2).collect()
}

fn expected(steps: &[(&str, u64)]) -> Vec<(String, u64)> {
    let steps = steps.iter();
    steps.map(|(name, us)| ((*name).to_owned(), *us)).collect()
}

/// An interrupt that wakes a vCPU, which has its CPU when the caller says so.
fn wakes(text: &mut Text, vcpu: (&str, i32), vec: u32, us: u64) {
    let id = vcpu.1 - A0.1;
    let interrupt = format!("kvm_msi_set_irq dst {id} vec {vec} (Fixed|physical|edge)");
    text.event(VHOST_A, 5, us, &interrupt);
    let accepted = format!("kvm_apic_accept_irq apicid {id} vec {vec} (Fixed|edge)");
    text.event(VHOST_A, 5, us + 1, &accepted);
    text.wakes(VHOST_A, 5, vcpu, id + 1, us + 2);
}

/// The first interrupt says that the request has been sent, and is another vCPU's. That one is in its guest when the
/// other one has the packet.
#[test]
fn what_another_vcpu_receives_is_the_answer() {
    let text = answered(3, |text, t| {
        wakes(text, A0, 38, t + 20);
        interrupts(text, VHOST_A, A1, 2, 37, t + 30);
        receives(text, IDLE_A, 1, t + 38);
        text.wakes(A1, 2, A0, 1, t + 45);
        text.runs(A0, 1, t + 60);
        text.event(A0, 1, t + 61, "kvm_inj_virq IRQ 0x26");
        text.enters(A0, 1, t + 62);
        let sent = "irq_handler_entry irq=24 name=virtio0-output.0";
        text.event(IDLE_A, 0, t + 63, sent);
        text.event(
            PING,
            0,
            t + 70,
            "skb_copy_datagram_iovec skbaddr=0x2 len=84",
        );
    });
    let found = walk(&text, builtin("packet"), &[1, 2]);
    assert_eq!(found.instances.len(), 3, "{:?}", found.dropped);
    for at in 0..3 {
        // What the vCPU did that has the other interrupt is none of it.
        let steps = [
            ("interrupt", 20),
            ("guest: answer: received", 40),
            ("sender's vCPU woken", 45),
            ("sender's vCPU on CPU", 60),
            ("sender's vCPU in guest", 62),
            ("guest: read", 70),
        ];
        assert_eq!(behind(&found, at), expected(&steps));
        assert_eq!(found.instances[at].total_ns(), 120_000);
    }
}

/// A guest that is at work with packets has its device's interrupts off.
#[test]
fn a_guest_that_polls_is_not_interrupted() {
    let text = answered(3, |text, t| {
        text.enters(A1, 2, t + 5);
        text.event(
            IDLE_A,
            1,
            t + 20,
            "netif_receive_skb dev=eth0 skbaddr=0x1 len=84",
        );
        text.event(
            PING,
            1,
            t + 31,
            "skb_copy_datagram_iovec skbaddr=0x2 len=84",
        );
    });
    let found = walk(&text, builtin("packet"), &[1, 2]);
    assert_eq!(found.instances.len(), 3, "{:?}", found.dropped);
    for at in 0..3 {
        let steps = [("guest: answer: received", 20), ("guest: read", 31)];
        assert_eq!(behind(&found, at), expected(&steps));
    }
    // Without the guest nothing says when it has the packet: the last step is what the host's back end did.
    let alone = walk(&text, builtin("packet"), &[]);
    assert_eq!(alone.instances.len(), 3, "{:?}", alone.dropped);
    assert_eq!(behind(&alone, 0), []);
}

/// The vCPU that has the answer wakes the one that sent, which the host shows too.
#[test]
fn who_asked_is_woken_by_the_vcpu_that_has_the_answer() {
    let text = |woken: u64| {
        answered(3, |text, t| {
            interrupts(text, VHOST_A, A1, 2, 37, t + 20);
            receives(text, IDLE_A, 1, t + 28);
            if woken < 100 {
                text.wakes(A1, 2, A0, 1, t + woken);
                halts(text, A1, 2, t + 100);
            } else {
                halts(text, A1, 2, t + 100);
                text.wakes(A1, 2, A0, 1, t + woken);
            }
            text.runs(A0, 1, t + 150);
            text.enters(A0, 1, t + 155);
            text.event(
                PING,
                0,
                t + 160,
                "skb_copy_datagram_iovec skbaddr=0x2 len=84",
            );
        })
    };
    let arrives = [
        ("interrupt", 20),
        ("accepted", 21),
        ("vCPU woken", 22),
        ("vCPU on CPU", 23),
        ("injected", 25),
        ("in guest", 26),
    ];
    let wakes = [
        ("sender's vCPU woken", 40),
        ("sender's vCPU on CPU", 150),
        ("sender's vCPU in guest", 155),
    ];
    let host = [&arrives[..], &wakes].concat();
    let found = walk(&text(40), builtin("packet"), &[]);
    assert_eq!(found.instances.len(), 3, "{:?}", found.dropped);
    for at in 0..3 {
        assert_eq!(behind(&found, at), expected(&host));
    }
    // Behind its halt it is something else.
    let found = walk(&text(120), builtin("packet"), &[]);
    assert_eq!(found.instances.len(), 3, "{:?}", found.dropped);
    assert_eq!(behind(&found, 0), expected(&arrives));
    // With the guest the same, and what it did between.
    let receives = [
        ("guest: answer: irq handler", 28),
        ("guest: answer: softirq NET_RX", 29),
        ("guest: answer: received", 30),
    ];
    let both = [&arrives[..], &receives, &wakes, &[("guest: read", 160)]].concat();
    let found = walk(&text(40), builtin("packet"), &[1, 2]);
    assert_eq!(found.instances.len(), 3, "{:?}", found.dropped);
    for at in 0..3 {
        assert_eq!(behind(&found, at), expected(&both));
    }
}
