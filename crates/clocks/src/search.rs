//! About where the offset is, if nothing is known of it beforehand.

use std::collections::BinaryHeap;

use crate::VcpuWindows;

/// Events that are tried.
const TRIED: usize = 256;
/// Stretches of offsets that are looked at at most.
const MOST: usize = 1 << 17;
/// A stretch of so few nanoseconds is not cut further.
const SMALL: u64 = 16_000;

/// A stretch of offsets, by how many events it may put into windows.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OffsetStretch {
    at_most: usize,
    /// Of equal ones the shorter comes first, so that the search goes down.
    shorter: u64,
    low: i64,
    high: i64,
}

/// Returns about which offset puts most of a guest's events into windows: of those no further than `within` from
/// `around`, or of all at which the two recordings have any time in common. `None` where there is nothing to try, or
/// where too many offsets are as good as each other.
///
/// A stretch of offsets puts an event into a window at most if the event, moved by any of them, comes upon one. So the
/// stretch that may put most events into windows is cut in two, again and again, and those that cannot be the best are
/// never looked at.
pub fn search(vcpus: &[VcpuWindows<'_>], near: Option<(i64, u64)>) -> Option<i64> {
    let count: usize = vcpus.iter().map(|vcpu| vcpu.events.len()).sum();
    let step = count.div_ceil(TRIED).max(1);
    let with = vcpus.iter().filter(|vcpu| !vcpu.windows.is_empty());
    let tried: Vec<(&VcpuWindows<'_>, u64)> = with
        .flat_map(|vcpu| {
            vcpu.events
                .iter()
                .step_by(step)
                .map(move |one| (vcpu, *one))
        })
        .collect();
    let events = tried.iter().map(|(_, event)| *event);
    let (first, last) = (events.clone().min()?, events.max()?);
    let windows = || vcpus.iter().flat_map(|vcpu| vcpu.windows);
    let entry = windows().map(|one| one.entry).min()?;
    let exit = windows().map(|one| one.exit).max()?;
    let (low, high) = (difference(entry, last), difference(exit, first));
    let (low, high) = match near {
        Some((around, within)) => (
            low.max(around.saturating_sub_unsigned(within)),
            high.min(around.saturating_add_unsigned(within)),
        ),
        None => (low, high),
    };
    if low > high {
        return None;
    }
    let whole = of(&tried, low, high);
    let mut heap = BinaryHeap::from([whole]);
    for _ in 0..MOST {
        let best = heap.pop()?;
        if best.high.abs_diff(best.low) <= SMALL {
            return Some(best.low.midpoint(best.high));
        }
        let middle = best.low.midpoint(best.high);
        heap.push(of(&tried, best.low, middle));
        heap.push(of(&tried, middle.saturating_add(1), best.high));
    }
    None
}

fn of(tried: &[(&VcpuWindows<'_>, u64)], low: i64, high: i64) -> OffsetStretch {
    let comes_upon = |(vcpu, event): &&(&VcpuWindows<'_>, u64)| {
        let (from, to) = (
            event.saturating_add_signed(low),
            event.saturating_add_signed(high),
        );
        let next = vcpu.windows.partition_point(|one| one.exit < from);
        vcpu.windows.get(next).is_some_and(|one| one.entry <= to)
    };
    OffsetStretch {
        at_most: tried.iter().filter(comes_upon).count(),
        shorter: u64::MAX - high.abs_diff(low),
        low,
        high,
    }
}

/// What is to be added to a guest's time to make it a host's.
fn difference(host: u64, guest: u64) -> i64 {
    let offset = i128::from(host) - i128::from(guest);
    i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GuestWindow;

    #[test]
    fn an_offset_of_days_is_found() {
        // Windows of 30 us in steps that are no two alike, an event in each.
        let starts = (0..2000u64).scan(0u64, |at, n| {
            *at += 100_000 + (n * n * 7919) % 900_000;
            Some(*at)
        });
        let days = 300_000_000_000_000u64;
        let windows: Vec<GuestWindow> = starts
            .map(|at| GuestWindow {
                entry: days + at,
                exit: days + at + 30_000,
            })
            .collect();
        let events: Vec<u64> = windows[200..1200]
            .iter()
            .map(|one| one.entry - days + 12_345 + 15_000)
            .collect();
        let vcpu = VcpuWindows {
            windows: &windows,
            events: &events,
        };
        let found = search(&[vcpu], None).expect("there is one");
        let right = days.cast_signed() - 12_345;
        assert!(found.abs_diff(right) < 40_000, "{found} for {right}");
        let near = search(&[vcpu], Some((right + 1_500_000, 2_000_000)));
        assert!(
            near.is_some_and(|found| found.abs_diff(right) < 40_000),
            "{near:?}"
        );
        // Nothing there fits.
        assert_eq!(search(&[vcpu], Some((0, 1_000_000))), None);
    }

    #[test]
    fn without_events_or_windows_there_is_none() {
        assert_eq!(search(&[], None), None);
        let windows = [GuestWindow { entry: 5, exit: 9 }];
        let vcpu = VcpuWindows {
            windows: &windows,
            events: &[],
        };
        assert_eq!(search(&[vcpu], None), None);
        let vcpu = VcpuWindows {
            windows: &windows,
            events: &[u64::MAX, 0],
        };
        // It ends whatever the times are.
        assert!(search(&[vcpu], None).is_some());
    }
}
