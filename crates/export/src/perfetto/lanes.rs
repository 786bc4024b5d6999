//! Lanes: slices that overlap stand beside each other.

/// Lanes of one kind of slices.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Track of each, and when its last slice ended.
    lanes: Vec<(u64, u64)>,
}

impl Lanes {
    /// Returns the track for a slice, where it stands in none that is there: of those whose last slice had ended, the
    /// one where that was last, so that few lanes do. `make` returns another track. `None` if there are `most` already.
    pub(super) fn place(
        &mut self,
        (start, end): (u64, u64),
        most: usize,
        make: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let free = self.lanes.iter_mut().filter(|(_, last)| *last <= start);
        if let Some(lane) = free.max_by_key(|(_, last)| *last) {
            lane.1 = end.max(start);
            return Some(lane.0);
        }
        if self.lanes.len() >= most {
            return None;
        }
        let track = make();
        self.lanes.push((track, end.max(start)));
        Some(track)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_a_lane_do_not_overlap() {
        let mut lanes = Lanes::default();
        let mut next = 0;
        let mut place = |slice| {
            lanes.place(slice, 3, || {
                next += 1;
                next
            })
        };
        assert_eq!(place((0, 10)), Some(1));
        assert_eq!(place((10, 20)), Some(1));
        assert_eq!(place((5, 25)), Some(2));
        assert_eq!(place((22, 30)), Some(1));
        assert_eq!(place((31, 31)), Some(1));
        assert_eq!(place((27, 40)), Some(2));
        assert_eq!(place((0, 50)), Some(3));
        assert_eq!(place((0, 60)), None);
    }
}
