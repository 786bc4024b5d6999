//! Packets through a switch that polls: the guests notify nobody.

use crate::common::{Text, builtin};
use crate::guests::{A0, B0, IDLE_A, IDLE_B, PING, halts, interrupts, receives, walk};

/// A thread of the switch, on CPU 5.
const SWITCH: (&str, i32) = ("rte-worker-1", 50);
const CHAIN: &str = "guest to guest (poll mode)";

/// What comes before the pings: which events there are, and that the vCPUs sleep.
fn begins() -> Text {
    let mut text = Text::default();
    text.enters(A0, 1, 1);
    text.enters(B0, 3, 2);
    receives(&mut text, IDLE_A, 0, 3);
    receives(&mut text, IDLE_B, 0, 3);
    text.event(PING, 0, 5, "skb_copy_datagram_iovec skbaddr=0x2 len=84");
    text.event(PING, 0, 5, "sys_exit_recvfrom 0x40");
    halts(&mut text, A0, 1, 7);
    halts(&mut text, B0, 3, 7);
    text
}

/// The switch interrupts a vCPU that is in its guest: it leaves, and comes back with the interrupt.
fn interrupts_awake(text: &mut Text, vcpu: (&str, i32), vector: u32, us: u64) {
    let id = vcpu.0.as_bytes()[4] - b'0';
    let msi = format!("kvm_msi_set_irq dst {id} vec {vector} (Fixed|physical|edge)");
    text.event(SWITCH, 5, us, &msi);
    let accepts = format!("kvm_apic_accept_irq apicid {id} vec {vector} (Fixed|edge)");
    text.event(SWITCH, 5, us + 1, &accepts);
}

fn takes(text: &mut Text, vcpu: (&str, i32), cpu: i32, vector: u32, us: u64) {
    text.exits(vcpu, cpu, us, "EXTERNAL_INTERRUPT");
    let injects = format!("kvm_inj_virq IRQ {vector:#x}");
    text.event(vcpu, cpu, us + 1, &injects);
    text.enters(vcpu, cpu, us + 2);
}

/// The first vCPU of guest 1 sends.
fn sends(text: &mut Text, t: u64) {
    text.enters(A0, 1, t - 10);
    text.event(PING, 0, t, "sys_enter_sendto fd: 0x00000003");
    text.event(PING, 0, t + 5, "net_dev_queue dev=eth0 skbaddr=0x1 len=98");
}

/// Guest 2 has the packet, and answers with so many bytes.
fn answers(text: &mut Text, t: u64, len: u32) {
    receives(text, IDLE_B, 0, t + 21);
    let answer = format!("net_dev_queue dev=eth0 skbaddr=0x2 len={len}");
    text.event(IDLE_B, 0, t + 30, &answer);
}

/// A ping that takes 91 us. The switch notifies each sender that it has taken its packet, before it interrupts the
/// other one.
fn ping(text: &mut Text, t: u64, answer_len: u32) {
    sends(text, t);
    interrupts_awake(text, A0, 37, t + 10);
    interrupts(text, SWITCH, B0, 3, 36, t + 12);
    takes(text, A0, 1, 37, t + 14);
    halts(text, A0, 1, t + 19);
    answers(text, t, answer_len);
    interrupts_awake(text, B0, 37, t + 40);
    takes(text, B0, 3, 37, t + 42);
    interrupts(text, SWITCH, A0, 1, 36, t + 50);
    halts(text, B0, 3, t + 57);
    receives(text, IDLE_A, 0, t + 60);
    text.event(
        PING,
        0,
        t + 90,
        "skb_copy_datagram_iovec skbaddr=0x2 len=84",
    );
    text.event(PING, 0, t + 91, "sys_exit_recvfrom 0x40");
    halts(text, A0, 1, t + 95);
}

#[test]
fn a_packet_is_followed_though_nobody_notifies() {
    let mut text = begins();
    for n in 1..=3 {
        ping(&mut text, n * 1_000_000, 98);
    }
    let found = walk(&text, builtin("packet"), &[1, 2]);
    // The answers are none.
    assert_eq!(found.instances.len(), 3);
    assert!(found.dropped.is_empty(), "{:?}", found.dropped);
    for at in 0..3 {
        assert_eq!(found.instances[at].chain.as_deref(), Some(CHAIN));
        assert_eq!(
            found.steps(at),
            [
                ("guest: send", 0),
                ("guest: queued", 5),
                ("peer: interrupt", 12),
                ("peer: accepted", 13),
                ("peer: vCPU woken", 14),
                ("peer: vCPU on CPU", 15),
                ("peer: injected", 17),
                ("peer: in guest", 18),
                ("peer: irq handler", 21),
                ("peer: softirq NET_RX", 22),
                ("peer: received", 23),
                ("peer: answer queued", 30),
                ("interrupt", 50),
                ("accepted", 51),
                ("vCPU woken", 52),
                ("vCPU on CPU", 53),
                ("injected", 55),
                ("in guest", 56),
                ("guest: answer: irq handler", 60),
                ("guest: answer: softirq NET_RX", 61),
                ("guest: answer: received", 62),
                ("guest: read", 90),
                ("guest: returned", 91),
            ]
        );
    }
}

/// What comes to the peer is known by its length, and nothing else does.
#[test]
fn without_both_guests_or_the_length_there_is_no_packet() {
    let mut text = begins();
    ping(&mut text, 1_000_000, 98);
    for recorded in [&[][..], &[1], &[2]] {
        assert!(
            walk(&text, builtin("packet"), recorded)
                .instances
                .is_empty()
        );
    }
    // The peer sends something else than what comes to who has asked.
    let mut text = begins();
    ping(&mut text, 1_000_000, 1514);
    assert!(walk(&text, builtin("packet"), &[1, 2]).instances.is_empty());
}

/// Who has interrupts off has no steps of them; the packet is received all the same, on whichever vCPU.
#[test]
fn who_is_at_work_with_packets_is_not_interrupted() {
    let mut text = begins();
    let t = 1_000_000;
    text.enters(B0, 3, t - 10);
    sends(&mut text, t);
    answers(&mut text, t, 98);
    receives(&mut text, IDLE_A, 0, t + 60);
    text.event(PING, 0, t + 91, "sys_exit_recvfrom 0x40");
    halts(&mut text, A0, 1, t + 95);
    let found = walk(&text, builtin("packet"), &[1, 2]);
    assert_eq!(found.instances.len(), 1);
    assert_eq!(
        found.steps(0),
        [
            ("guest: send", 0),
            ("guest: queued", 5),
            ("peer: received", 23),
            ("peer: answer queued", 30),
            ("guest: answer: received", 62),
            ("guest: returned", 91),
        ]
    );
}

/// A back end that works for a VM is none of a switch: where the sender notifies it, the packet is on another way.
#[test]
fn who_notifies_its_device_does_not_wait_for_a_poll() {
    let mut text = begins();
    let t = 1_000_000;
    sends(&mut text, t);
    text.exits(A0, 1, t + 6, "EPT_MISCONFIG");
    text.event(
        A0,
        1,
        t + 7,
        "kvm_mmio mmio write len 2 gpa 0xfebff004 val 0x1",
    );
    text.enters(A0, 1, t + 8);
    interrupts(&mut text, SWITCH, B0, 3, 36, t + 12);
    answers(&mut text, t, 98);
    receives(&mut text, IDLE_A, 0, t + 60);
    let found = walk(&text, builtin("packet"), &[1, 2]);
    assert!(
        found
            .instances
            .iter()
            .all(|one| one.chain.as_deref() != Some(CHAIN))
    );
}

/// Where a guest records both of a packet's events, it is one packet, which is queued when the last of them says so.
#[test]
fn a_packet_is_queued_once() {
    let mut text = begins();
    let t = 1_000_000;
    text.enters(B0, 3, t - 10);
    sends(&mut text, t);
    text.event(
        PING,
        0,
        t + 6,
        "net_dev_start_xmit dev=eth0 skbaddr=0x1 len=98",
    );
    answers(&mut text, t, 98);
    text.event(
        IDLE_B,
        0,
        t + 31,
        "net_dev_start_xmit dev=eth0 skbaddr=0x2 len=98",
    );
    receives(&mut text, IDLE_A, 0, t + 60);
    let found = walk(&text, builtin("packet"), &[1, 2]);
    assert_eq!(found.instances.len(), 1);
    assert_eq!(
        found.steps(0)[..3],
        [
            ("guest: send", 0),
            ("guest: queued", 6),
            ("peer: received", 23)
        ]
    );
}
