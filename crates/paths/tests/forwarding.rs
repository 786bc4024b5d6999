//! What a switch's own path says of those behind it, and what recording had of a path's time.

use crate::common::{Text, builtin};
use paths::{LedgerHolder, PathReport, complete_reports};

/// A poll-mode thread of Open vSwitch, on CPU 5, and the vCPU that it interrupts.
const PMD: (&str, i32) = ("pmd-c05/id:9", 50);
const VCPU: (&str, i32) = ("CPU 0/KVM", 10);

/// Sixty packets: the switch has each for `forwards_us`, and every tenth waits for the vCPU's CPU for 1.3 ms, as in the
/// first case.
fn packets(forwards_us: u64) -> Vec<PathReport> {
    let mut text = Text::default();
    text.enters(VCPU, 1, 1);
    text.exits(VCPU, 1, 3, "HLT");
    text.sleeps(VCPU, 1, 5);
    for number in 1..=60_u64 {
        let t = number * 10_000;
        for polls in (0..10).rev() {
            text.event(PMD, 5, t - 3 * polls, "netdev_rxq_recv (55d0c0a0)");
        }
        let t = t + forwards_us;
        text.event(PMD, 5, t - 9, "netdev_send (55d0d000)");
        text.event(PMD, 5, t - 7, "irqfd_wakeup (ffffffffc04460b0)");
        text.event(
            PMD,
            5,
            t - 5,
            "kvm_msi_set_irq dst 0 vec 36 (Fixed|physical|edge)",
        );
        text.event(
            PMD,
            5,
            t - 4,
            "kvm_apic_accept_irq apicid 0 vec 36 (Fixed|edge)",
        );
        text.wakes(PMD, 5, VCPU, 1, t - 3);
        text.event(PMD, 5, t, "netdev_send__return (55d0d0f0 <- 55d0d000)");
        let waits = if number.is_multiple_of(10) { 1_300 } else { 20 };
        let t = t + waits;
        text.runs(VCPU, 1, t);
        text.event(VCPU, 1, t + 2, "kvm_inj_virq IRQ 0x24");
        text.enters(VCPU, 1, t + 3);
        text.exits(VCPU, 1, t + 20, "HLT");
        text.sleeps(VCPU, 1, t + 22);
    }
    let walked = text.walk(vec![builtin("forwarding"), builtin("irqfd")]);
    let mut reports = walked.reports();
    complete_reports(&mut reports, Some(400));
    let counts: Vec<u64> = reports.iter().map(|report| report.count).collect();
    assert_eq!(counts, [60, 60], "{:?}", walked.steps());
    reports
}

#[test]
fn a_switch_that_forwards_quickly_is_innocent() {
    let reports = packets(40);
    let (switch, irqfd) = (&reports[0], &reports[1]);
    assert_eq!(switch.total.max(), 40_000);
    assert_eq!(
        switch.ledger.get(LedgerHolder::Switch),
        switch.ledger.mean_ns()
    );
    let clears = switch.clears.as_ref().expect("a sentence");
    assert_eq!((clears.path.as_str(), clears.longest_ns), ("irqfd", 40_000));
    assert_eq!(clears.slow_by_ns, 1_280_000);
    assert_eq!(irqfd.clears, None);
}

#[test]
fn a_switch_that_may_be_slow_itself_is_not() {
    // A quarter of what the slow ones lose is too much to be called innocent.
    assert_eq!(packets(330)[0].clears, None);
}

#[test]
fn recording_has_the_events_of_the_steps() {
    let reports = packets(40);
    let events = |report: &PathReport| {
        let stages = report.stages.iter().map(|stage| stage.stats.count());
        stages.sum::<u64>() / report.count
    };
    assert_eq!(events(&reports[0]), 2, "receive, send and sent");
    for report in &reports {
        assert_eq!(report.recording_ns, Some(400 * events(report)));
    }
    let mut unmeasured = reports;
    complete_reports(&mut unmeasured, None);
    assert!(
        unmeasured
            .iter()
            .all(|report| report.recording_ns.is_none())
    );
    // It cannot have had more than there is.
    complete_reports(&mut unmeasured, Some(u64::MAX));
    for report in &unmeasured {
        assert_eq!(report.recording_ns, Some(report.total.mean()));
    }
}

#[test]
fn who_did_not_ask_for_it_hears_nothing_of_it() {
    let walked = |paths| {
        let mut text = Text::default();
        text.enters(VCPU, 1, 1);
        text.walk(paths).reports()
    };
    let named = walked(vec![builtin("forwarding")]);
    assert!(named[0].is_listed());
    let all = walked(paths::all_builtin());
    let listed = all.iter().filter(|report| report.is_listed());
    assert_eq!(listed.count(), paths::BUILTIN.len());
}
