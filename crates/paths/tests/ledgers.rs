//! Who had the time of paths: recordings made by hand, of which it is known who did.

use crate::common::{Text, adds_up, builtin};
use crate::guests::{A0, A1, B0, IDLE_A, IDLE_B, PING, VHOST_A, halts, receives, walk};
use paths::{LedgerHolder, LedgerTerm, PathLedger};

/// A poll-mode thread of Open vSwitch, on CPU 5.
const PMD: (&str, i32) = ("pmd-c05/id:9", 50);

/// What everybody had, in microseconds, in the order of the ledger.
fn us(ledger: &PathLedger) -> Vec<(LedgerHolder, u64)> {
    let terms = ledger.terms.iter();
    terms
        .map(|term| (term.holder, term.mean_ns / 1000))
        .collect()
}

fn term(ledger: &PathLedger, holder: LedgerHolder) -> LedgerTerm {
    let mut terms = ledger.terms.iter();
    *terms.find(|term| term.holder == holder).expect("a term")
}

/// Follows a built-in path through a host's recording.
fn host(text: Text, path: &str) -> PathLedger {
    let walked = text.walk(vec![builtin(path)]);
    let report = walked.reports().remove(0);
    assert_eq!(report.count, 1, "{:?}", walked.steps());
    adds_up(&report.ledger, &report.total, path);
    report.ledger
}

/// The switch interrupts a vCPU that sleeps, which is in its guest after 30 us.
fn interrupts(text: &mut Text, vcpu: (&str, i32), cpu: i32, vector: u32, t: u64) {
    let msi = format!("kvm_msi_set_irq dst 0 vec {vector} (Fixed|physical|edge)");
    text.event(PMD, 5, t, &msi);
    let accepts = format!("kvm_apic_accept_irq apicid 0 vec {vector} (Fixed|edge)");
    text.event(PMD, 5, t + 1, &accepts);
    text.wakes(PMD, 5, vcpu, cpu, t + 2);
    text.runs(vcpu, cpu, t + 24);
    text.event(vcpu, cpu, t + 29, &format!("kvm_inj_virq IRQ {vector:#x}"));
    text.enters(vcpu, cpu, t + 30);
}

/// The first case: a ping of 0.18 ms between two guests, through a switch whose threads poll. 60 us are the guests',
/// 60 us the switch's, and 60 us the host kernel's.
#[test]
fn a_ping_through_a_switch_is_the_sum_of_its_parts() {
    let mut text = Text::default();
    text.enters(A0, 1, 1);
    text.enters(B0, 3, 2);
    receives(&mut text, IDLE_A, 0, 3);
    receives(&mut text, IDLE_B, 0, 3);
    text.event(PING, 0, 5, "sys_exit_recvfrom 0x40");
    halts(&mut text, A0, 1, 7);
    halts(&mut text, B0, 3, 7);
    let t = 1_000_000;
    text.enters(A0, 1, t - 10);
    text.event(PING, 0, t, "sys_enter_sendto fd: 0x00000003");
    text.event(PING, 0, t + 5, "net_dev_queue dev=eth0 skbaddr=0x1 len=98");
    halts(&mut text, A0, 1, t + 20);
    interrupts(&mut text, B0, 3, 36, t + 35);
    receives(&mut text, IDLE_B, 0, t + 70);
    text.event(
        IDLE_B,
        0,
        t + 95,
        "net_dev_queue dev=eth0 skbaddr=0x2 len=98",
    );
    halts(&mut text, B0, 3, t + 110);
    interrupts(&mut text, A0, 1, 36, t + 125);
    receives(&mut text, IDLE_A, 0, t + 160);
    text.event(PING, 0, t + 180, "sys_exit_recvfrom 0x40");
    halts(&mut text, A0, 1, t + 195);
    let found = walk(&text, builtin("packet"), &[1, 2]);
    assert_eq!(found.instances.len(), 1);
    assert_eq!(
        us(&found.ledger),
        [
            (LedgerHolder::Guest, 30),
            (LedgerHolder::HostKernel, 60),
            (LedgerHolder::Switch, 60),
            (LedgerHolder::OtherGuest, 30),
        ]
    );
    // From the wake-ups of both vCPUs until they had a CPU.
    let kernel = term(&found.ledger, LedgerHolder::HostKernel);
    assert_eq!((kernel.work_ns, kernel.runnable_ns), (16_000, 44_000));
    // Without the guests the same host shows the two interrupts alone.
    let mut alone = Text::default();
    alone.enters(B0, 3, 2);
    halts(&mut alone, B0, 3, 7);
    alone.event(PMD, 5, t, "irqfd_wakeup (irqfd_wakeup+0x0)");
    interrupts(&mut alone, B0, 3, 36, t + 1);
    assert_eq!(us(&host(alone, "irqfd")), [(LedgerHolder::HostKernel, 31)]);
}

/// An access that the VMM handles: what KVM, the VMM and the scheduler had, and that it slept in the VMM.
#[test]
fn an_exit_to_the_vmm_is_parted() {
    let mut text = Text::default();
    text.enters(A0, 1, 0);
    text.exits(A0, 1, 10, "IO_INSTRUCTION");
    text.event(
        A0,
        1,
        12,
        "kvm_pio pio_write at 0x3f8 size 1 count 1 val 0x41",
    );
    text.event(A0, 1, 14, "kvm_userspace_exit reason KVM_EXIT_IO (2)");
    // 7 us at work, 20 us asleep, 3 us waiting for its CPU, 5 us at work.
    text.sleeps(A0, 1, 21);
    text.event(
        ("qemu", 100),
        2,
        41,
        "sched_wakeup comm=CPU 0/KVM pid=101 prio=120 target_cpu=001",
    );
    text.runs(A0, 1, 44);
    text.event(A0, 1, 49, "kvm_fpu load");
    text.enters(A0, 1, 50);
    let ledger = host(text, "user-exit");
    assert_eq!(
        us(&ledger),
        [(LedgerHolder::Vmm, 32), (LedgerHolder::HostKernel, 8)]
    );
    assert_eq!(term(&ledger, LedgerHolder::Vmm).asleep_ns, 20_000);
    assert_eq!(term(&ledger, LedgerHolder::HostKernel).runnable_ns, 3_000);
}

/// Without `kvm_userspace_exit` nobody knows whether KVM or the VMM had what a running vCPU took.
#[test]
fn what_is_not_recorded_is_nobodys() {
    let shown = |to_vmm: bool| {
        let mut text = Text::default();
        text.event(A1, 3, 0, "kvm_inj_virq IRQ 0x30");
        text.enters(A1, 3, 1);
        text.enters(A0, 1, 1);
        if to_vmm {
            text.event(A1, 3, 2, "kvm_userspace_exit reason KVM_EXIT_IO (2)");
            text.enters(A1, 3, 3);
        }
        // The target is out of its guest when the interrupt comes.
        text.exits(A0, 1, 10, "IO_INSTRUCTION");
        text.event(VHOST_A, 5, 20, "irqfd_wakeup (irqfd_wakeup+0x0)");
        text.event(
            VHOST_A,
            5,
            21,
            "kvm_msi_set_irq dst 0 vec 36 (Fixed|physical|edge)",
        );
        text.event(
            VHOST_A,
            5,
            22,
            "kvm_apic_accept_irq apicid 0 vec 36 (Fixed|edge)",
        );
        text.event(A0, 1, 40, "kvm_inj_virq IRQ 0x24");
        text.enters(A0, 1, 42);
        us(&host(text, "irqfd"))
    };
    assert_eq!(shown(true), [(LedgerHolder::HostKernel, 22)]);
    let two = [
        (LedgerHolder::HostKernel, 2),
        (LedgerHolder::NotRecorded, 20),
    ];
    assert_eq!(shown(false), two);
}

/// A switch's thread that was not seen to take part before has not had the time until then.
#[test]
fn who_comes_in_late_has_not_had_the_time() {
    let mut text = Text::default();
    let kworker = ("kworker/5:1", 9);
    let wakes = |text: &mut Text, by: (&str, i32), t: u64| {
        text.wakes(by, 5, kworker, 5, t);
        text.event(
            by,
            5,
            t + 2,
            "sched_switch prev_comm=pmd-c05/id:9 prev_pid=50 prev_prio=120 prev_state=R ==> next_comm=kworker/5:1 \
             next_pid=9 next_prio=120",
        );
    };
    let back = "sched_switch prev_comm=kworker/5:1 prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=pmd-c05/id:9 \
                next_pid=50 next_prio=120";
    wakes(&mut text, PMD, 10);
    text.wakes(kworker, 5, A0, 1, 14);
    text.event(kworker, 5, 15, back);
    text.runs(A0, 1, 20);
    // The vCPU is running when the next one comes: only another switch's thread shows when it was done.
    wakes(&mut text, PMD, 100);
    text.event(kworker, 5, 105, back);
    text.wakes(("pmd-c06/id:8", 51), 6, ("kworker/6:1", 10), 6, 900);
    let walked = text.walk(vec![builtin("irqfd")]);
    let report = walked.reports().remove(0);
    let last = report.stage("kworker done → answered").expect("a stage");
    assert_eq!(us(&last.ledger), [(LedgerHolder::NotRecorded, 795)]);
    let first = report
        .stage("kworker woken → kworker on CPU")
        .expect("a stage");
    assert_eq!(us(&first.ledger), [(LedgerHolder::HostKernel, 2)]);
    assert_eq!(
        term(&first.ledger, LedgerHolder::HostKernel).runnable_ns,
        2_000
    );
}
