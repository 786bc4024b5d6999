//! More vCPUs than have rows.

use super::*;

fn span(vcpu: u32, state: State, start: u64, end: u64) -> Span {
    Span {
        vcpu,
        state,
        start,
        end,
        cpu: 0,
        cause: Cause::default(),
        behind: Some(vcpu),
    }
}

#[test]
fn vcpus_beyond_the_most_rows_are_counted_together() {
    const COUNT: u32 = 5000;
    let mut vcpus = Vcpus::new(Window::default());
    vcpus.most = 100;
    // Their waits take turns, as those of many at once do.
    for vcpu in 0..COUNT {
        vcpus.span(&span(vcpu, State::Runnable, 0, 10));
    }
    for vcpu in 0..COUNT {
        vcpus.span(&span(vcpu, State::Runnable, 10, 25));
        vcpus.exit(vcpu, 25, 0);
    }
    for vcpu in 0..COUNT {
        vcpus.span(&span(vcpu, State::Guest, 25, 100));
    }
    assert_eq!(vcpus.vcpus.len(), 101, "sums are bounded by the most rows");
    let others = vcpus.report_row(100, &[], SeenEvents::default()).unwrap();
    let count = u64::from(COUNT - 100);
    assert_eq!((others.tid, others.exits), (-1, count));
    assert_eq!(
        (others.waits.count(), others.waits.total()),
        (count, 25 * count)
    );
    assert_eq!(others.times.get(State::Runnable), 25 * count);
    assert_eq!(others.times.total(), 100 * count);
    let one = vcpus.report_row(99, &[], SeenEvents::default()).unwrap();
    assert_eq!((one.waits.total(), one.times.total()), (25, 100));
}

#[test]
fn lists_of_all_vcpus_are_made_in_one_pass() {
    let mut sums: FxHashMap<(u32, Option<u32>), WaitSum> = FxHashMap::default();
    for n in 0..10_000u32 {
        pair(&mut sums, n / 2, Some(n), None).add(1);
    }
    let sorted = by_vcpu(&sums);
    assert_eq!(sorted.len(), 5000);
    assert!(sorted.values().all(|list| list.len() == 2));
}
