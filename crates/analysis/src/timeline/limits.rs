//! How large a timeline may become.

/// How large a timeline may become, whatever the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineLimits {
    /// Cells of all lanes together. Each lane has 16 at least.
    pub cells: usize,
    /// Lanes of threads that are no vCPUs'.
    pub threads: usize,
    /// Marks of each kind.
    pub marks: usize,
    /// Stretches that stand in the place of sums where a window asks for them.
    pub details: usize,
    /// Single events in windows.
    pub events: usize,
}

impl Default for TimelineLimits {
    fn default() -> TimelineLimits {
        TimelineLimits {
            cells: 60_000,
            threads: 64,
            marks: 1_000,
            details: 40_000,
            events: 20_000,
        }
    }
}

/// Returns the largest unit with which lanes fit into a number of cells, where each has as many cells as it would like
/// and as its weight times the unit at most.
pub(crate) fn unit(lanes: &[(usize, usize)], cells: usize) -> usize {
    let fits = |unit: usize| {
        let all = lanes
            .iter()
            .map(|(wants, weight)| (*wants).min(weight.saturating_mul(unit)));
        all.fold(0usize, usize::saturating_add) <= cells
    };
    let (mut low, mut high) = (0, cells.max(1));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::unit;

    #[test]
    fn who_needs_little_leaves_it_to_others() {
        assert_eq!(unit(&[(10, 1), (1_000, 1), (1_000, 1)], 110), 50);
        assert_eq!(unit(&[(1_000, 3), (1_000, 1)], 400), 100);
        assert_eq!(unit(&[(5, 3), (7, 1)], 400), 400);
        assert_eq!(unit(&[], 400), 400);
        assert_eq!(unit(&[(9, 1); 100], 50), 0);
    }
}
