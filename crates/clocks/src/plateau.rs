//! The offsets that put most of a guest's events into windows of their vCPUs.

use crate::VcpuWindows;

/// Places at which the number of events inside changes that are looked at once: where there are more, some events are
/// passed over.
const MOST: usize = 1 << 18;

/// Offsets that put as many events into windows as any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plateau {
    /// The least of them: host's time less guest's, in nanoseconds.
    pub low: i64,
    /// The greatest of them.
    pub high: i64,
    /// The least and the greatest offset within reach that puts as many events into windows: other stretches may do so
    /// too.
    pub least: i64,
    /// See [`Plateau::least`].
    pub most: i64,
    /// Events that they put into windows.
    pub inside: u64,
    /// Events that were tried.
    pub of: u64,
    /// Events that an offset within reach puts into windows in the mean: as many are inside by chance, and where that
    /// is nearly all, the events say little.
    pub by_chance: u64,
}

impl Plateau {
    /// Returns their middle.
    pub fn middle(&self) -> i64 {
        self.low.midpoint(self.high)
    }

    /// Returns by how much the middle can be wrong, in nanoseconds, if the clocks differ by a constant: as far as the
    /// furthest offset that puts as many events into windows.
    pub fn bound(&self) -> u64 {
        let all = [self.low, self.high, self.least, self.most].into_iter();
        let apart = all.map(|end| end.abs_diff(self.middle()));
        apart.max().unwrap_or_default()
    }
}

/// Returns the offsets no further than `within` from `around` that put most events into windows; of several stretches
/// of them the longest. `None` where there is no event or no window in reach.
///
/// Time and memory go with the events, times the windows that lie within reach of each; where those are too many, with
/// a part of the events, evenly spread.
pub fn plateau(vcpus: &[VcpuWindows<'_>], around: i64, within: u64) -> Option<Plateau> {
    let low = around.saturating_sub_unsigned(within);
    let high = around.saturating_add_unsigned(within);
    let reach = |vcpu: &VcpuWindows<'_>, event: u64| {
        let first = vcpu
            .windows
            .partition_point(|one| offset(one.exit, event) < low);
        let behind = vcpu
            .windows
            .partition_point(|one| offset(one.entry, event) <= high);
        first..behind.max(first)
    };
    let all = vcpus
        .iter()
        .flat_map(|vcpu| vcpu.events.iter().map(|event| reach(vcpu, *event).len()));
    let step = (2 * all.sum::<usize>()).div_ceil(MOST).max(1);
    let mut of = 0;
    // At which offset an event comes into a window (+1), and at which it is out again (-1).
    let mut changes: Vec<(i64, i32)> = Vec::new();
    for vcpu in vcpus {
        for event in vcpu.events.iter().step_by(step) {
            of += 1;
            for window in &vcpu.windows[reach(vcpu, *event)] {
                changes.push((offset(window.entry, *event).max(low), 1));
                let last = offset(window.exit, *event).min(high);
                changes.push((last.saturating_add(1), -1));
            }
        }
    }
    changes.sort_unstable();
    let by_chance = mean(&changes, low, high);
    let mut best: Option<Plateau> = None;
    let mut inside = 0i64;
    let mut at = changes.iter().peekable();
    while let Some((from, change)) = at.next() {
        inside += i64::from(*change);
        let Some((next, _)) = at.peek() else { break };
        let count = inside.unsigned_abs();
        if next == from || count == 0 {
            continue;
        }
        let same = best.filter(|best| best.inside == count);
        let here = Plateau {
            low: *from,
            high: next - 1,
            least: same.map_or(*from, |best| best.least),
            most: next - 1,
            inside: count,
            of,
            by_chance,
        };
        let is_better = best.as_ref().is_none_or(|best| {
            let wide = |one: &Plateau| one.high.abs_diff(one.low);
            (here.inside, wide(&here)) > (best.inside, wide(best))
        });
        if is_better {
            best = Some(here);
        } else if let Some(best) = best.as_mut().filter(|best| best.inside == count) {
            best.most = here.most;
        }
    }
    best
}

/// How many events are inside in the mean of all offsets from `low` to `high`.
fn mean(changes: &[(i64, i32)], low: i64, high: i64) -> u64 {
    // Each event that comes in does so for as long as until it is out.
    let time = changes
        .iter()
        .map(|(at, change)| -i128::from(*at) * i128::from(*change));
    let all = i128::from(high) - i128::from(low) + 1;
    u64::try_from(time.sum::<i128>() / all).unwrap_or(0)
}

/// What is to be added to a guest's time to make it a host's.
fn offset(host: u64, guest: u64) -> i64 {
    let offset = i128::from(host) - i128::from(guest);
    i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GuestWindow;

    /// Looks in windows for events.
    fn found(windows: &[(u64, u64)], events: &[u64], around: i64, within: u64) -> Option<Plateau> {
        let window = |&(entry, exit): &(u64, u64)| GuestWindow { entry, exit };
        let windows: Vec<GuestWindow> = windows.iter().map(window).collect();
        let vcpu = VcpuWindows {
            windows: &windows,
            events,
        };
        plateau(&[vcpu], around, within)
    }

    #[test]
    fn each_event_allows_as_much_as_its_window_is_long() {
        let one = found(&[(1000, 1100)], &[20], 0, 10_000);
        let expected = Plateau {
            low: 980,
            high: 1080,
            least: 980,
            most: 1080,
            inside: 1,
            of: 1,
            // 101 of 20,001 offsets.
            by_chance: 0,
        };
        assert_eq!(one, Some(expected));
        // Another event in the same window: what both allow.
        let both = found(&[(1000, 1100)], &[20, 90], 0, 10_000).expect("there is a window");
        assert_eq!((both.low, both.high, both.inside), (980, 1010, 2));
    }

    #[test]
    fn of_equal_counts_the_longer_stretch_is_taken_and_beyond_the_reach_nothing() {
        let windows = [(1000, 1010), (2000, 2100)];
        let longer = found(&windows, &[500], 0, 10_000).expect("two windows");
        assert_eq!((longer.low, longer.high), (1500, 1600));
        // The other one may be right as well.
        assert_eq!(
            (longer.least, longer.most, longer.bound()),
            (500, 1600, 1050)
        );
        let near = found(&windows, &[500], 0, 800).expect("one window");
        assert_eq!((near.low, near.high), (500, 510));
        assert_eq!(found(&windows, &[500], 0, 100), None);
        assert_eq!(plateau(&[], 0, 100), None);
    }

    #[test]
    fn the_ends_of_time_are_no_trouble() {
        let ends = [0, u64::MAX];
        let found = found(&[(u64::MAX - 5, u64::MAX)], &ends, i64::MAX, u64::MAX);
        assert_eq!(found.expect("it is in reach").of, 2);
    }
}
