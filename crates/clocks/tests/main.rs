//! Clocks whose offset and drift are known are found.

mod references;

use clocks::{Fit, GuestWindow, VcpuWindows, fit};
use proptest::collection::vec;
use proptest::prelude::*;

/// A vCPU's time on its host: (out of its guest, in it), in nanoseconds, and where in that time events are, in parts of
/// 256.
type Turns = Vec<(u64, u64, Vec<u8>)>;

fn turns() -> impl Strategy<Value = Turns> {
    let events = vec(any::<u8>(), 0..6);
    vec((1_000..400_000u64, 5_000..300_000u64, events), 60..200)
}

/// What the host and the guest recorded: `to_guest` is the guest's clock.
fn recorded(turns: &Turns, to_guest: impl Fn(u64) -> u64) -> (Vec<GuestWindow>, Vec<u64>) {
    let (mut windows, mut events) = (Vec::new(), Vec::new());
    let mut now = 50_000_000_000;
    for (out, inside, places) in turns {
        let entry = now + out;
        let mut times: Vec<u64> = places
            .iter()
            .map(|place| entry + inside * u64::from(*place) / 256)
            .collect();
        times.sort_unstable();
        events.extend(times.into_iter().map(&to_guest));
        now = entry + inside;
        windows.push(GuestWindow { entry, exit: now });
    }
    (windows, events)
}

fn fitted(vcpus: &[Turns], to_guest: impl Fn(u64) -> u64, around: i64) -> Option<Fit> {
    let recorded: Vec<_> = vcpus.iter().map(|one| recorded(one, &to_guest)).collect();
    let vcpus: Vec<VcpuWindows<'_>> = recorded
        .iter()
        .map(|(windows, events)| VcpuWindows { windows, events })
        .collect();
    fit(&vcpus, around, 2_000_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_constant_is_found_within_its_bound(
        vcpus in vec(turns(), 1..4),
        offset in 1_000_000_000..40_000_000_000i64,
        wrong in -1_000_000..1_000_000i64,
    ) {
        let guest = |host: u64| host - offset.unsigned_abs();
        let events: usize = vcpus.iter().flatten().map(|(_, _, places)| places.len()).sum();
        prop_assume!(events >= 50);
        let found = fitted(&vcpus, guest, offset + wrong).expect("it has events");
        prop_assert_eq!((found.outside, found.uncovered, found.drift_ppb), (0, 0, 0));
        prop_assert_eq!(found.inside, events as u64);
        prop_assert!(found.offset_ns.abs_diff(offset) <= found.bound_ns, "{found:?}");
        prop_assert!(found.by_chance < found.inside, "{found:?}");
    }

    #[test]
    fn a_drift_is_found(
        seed in vec(turns(), 1..3),
        ppm in prop_oneof![-200..-50i64, 50..200i64],
    ) {
        // Some seconds of it.
        let repeat = |turns: &Turns| (0..20).flat_map(|_| turns.iter().cloned()).collect();
        let vcpus: Vec<Turns> = seed.iter().map(repeat).collect();
        let events: usize = seed.iter().flatten().map(|(_, _, places)| places.len()).sum();
        prop_assume!(events >= 100);
        let guest = |host: u64| {
            let since = i128::from(host) - 50_000_000_000;
            let time = 10_000_000_000 + since - since * i128::from(ppm) / 1_000_000;
            u64::try_from(time).expect("a time")
        };
        let found = fitted(&vcpus, guest, 40_000_000_000).expect("it has events");
        prop_assert!(found.outside * 200 <= found.inside, "{found:?}");
        let span: u64 = vcpus[0].iter().map(|(out, inside, _)| out + inside).sum();
        for host in [50_000_000_000, 50_000_000_000 + span] {
            let wrong = found.host(guest(host)).abs_diff(host);
            prop_assert!(wrong <= 100_000, "{wrong} ns at {host}: {found:?}");
        }
    }
}

#[test]
fn what_the_host_did_not_record_is_no_evidence() {
    let windows: Vec<GuestWindow> = (0..100)
        .map(|at| GuestWindow {
            entry: 1_000_000 + at * 10_000,
            exit: 1_004_000 + at * 10_000,
        })
        .collect();
    // Every second one begins before the host's recording.
    let events: Vec<u64> = (0..200).map(|at| 2_000 + at * 10_000).collect();
    let vcpu = VcpuWindows {
        windows: &windows,
        events: &events,
    };
    let found = fit(&[vcpu], 0, 100_000).expect("it has events");
    assert_eq!((found.inside, found.outside), (100, 0));
    assert_eq!(found.uncovered, 100);
    assert_eq!(
        found.host(1_002_000),
        1_002_000u64.saturating_add_signed(found.offset_ns)
    );
}

#[test]
fn times_out_of_order_end_nothing() {
    let windows = [(100, 200), (50, 60), (300, 250)];
    let windows = windows.map(|(entry, exit)| GuestWindow { entry, exit });
    for events in [[9, 3, 7, 1], [u64::MAX, 0, 40, 2]] {
        let vcpu = VcpuWindows {
            windows: &windows,
            events: &events,
        };
        let found = fit(&[vcpu, vcpu], 0, 10_000);
        assert!(found.is_none_or(|one| one.inside + one.outside <= 8));
    }
}
