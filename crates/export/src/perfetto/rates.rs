//! Counters: how much of something happened in each slice of time.

/// Slices that a recording is cut into, about.
const SLICES: u64 = 1024;
/// No slice is shorter.
const SHORTEST: u64 = 1_000_000;
/// Slices that one stretch of time is shared out to at most: where clocks are damaged it may be of any length.
const MOST: u64 = 1 << 12;

/// Returns the length of slices for so much time: 1, 2 or 5 times a power of ten.
pub(super) fn length(time: u64) -> u64 {
    let wanted = (time / SLICES).max(SHORTEST);
    let mut power = SHORTEST;
    loop {
        for factor in [1, 2, 5] {
            let length = power.saturating_mul(factor);
            if length >= wanted {
                return length;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// One counter: the slice under way, and what is in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    /// Its track.
    pub track: u64,
    slice: Option<u64>,
    sum: u64,
}

impl Rate {
    pub(super) fn new(track: u64) -> Rate {
        Rate {
            track,
            slice: None,
            sum: 0,
        }
    }

    /// Adds what happened at a time. `tell` takes times and values of the counter: a slice's at its beginning, and 0
    /// where nothing follows.
    pub(super) fn add(
        &mut self,
        time: u64,
        amount: u64,
        length: u64,
        tell: &mut dyn FnMut(u64, u64),
    ) {
        let slice = time / length.max(1);
        match self.slice {
            // Time may run backwards in a damaged recording.
            Some(now) if slice <= now => {}
            _ => {
                self.close(length, Some(slice), tell);
                self.slice = Some(slice);
            }
        }
        self.sum = self.sum.saturating_add(amount);
    }

    /// Adds a stretch of time to the slices that it is in.
    pub(super) fn stretch(
        &mut self,
        (start, end): (u64, u64),
        length: u64,
        tell: &mut dyn FnMut(u64, u64),
    ) {
        let length = length.max(1);
        let mut from = start;
        for _ in 0..MOST {
            let slice_end = (from / length).saturating_add(1).saturating_mul(length);
            let to = end.min(slice_end);
            if to <= from {
                return;
            }
            self.add(from, to - from, length, tell);
            from = to;
        }
        self.add(from, end.saturating_sub(from), length, tell);
    }

    /// Gives the slice under way. `next` is the one that follows, if one does.
    pub(super) fn close(&mut self, length: u64, next: Option<u64>, tell: &mut dyn FnMut(u64, u64)) {
        let Some(slice) = self.slice.take() else {
            return;
        };
        tell(slice.saturating_mul(length), std::mem::take(&mut self.sum));
        let after = slice.saturating_add(1);
        if next != Some(after) {
            tell(after.saturating_mul(length), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_have_round_lengths() {
        for (time, expected) in [
            (0, 1_000_000),
            (1_024_000_001, 1_000_000),
            (1_100_000_000, 2_000_000),
            (3_000_000_000, 5_000_000),
            (6_000_000_000, 10_000_000),
            (20_454_933_979, 20_000_000),
        ] {
            assert_eq!(length(time), expected, "{time}");
        }
        assert!(length(u64::MAX) >= u64::MAX / SLICES);
    }

    #[test]
    fn nothing_is_lost_between_slices() {
        let mut reported = Vec::new();
        let mut rate = Rate::new(1);
        let mut tell = |time, value| reported.push((time, value));
        rate.stretch((5, 35), 10, &mut tell);
        rate.add(71, 2, 10, &mut tell);
        rate.add(60, 1, 10, &mut tell);
        rate.close(10, None, &mut tell);
        let expected = [
            (0, 5),
            (10, 10),
            (20, 10),
            (30, 5),
            (40, 0),
            (70, 3),
            (80, 0),
        ];
        assert_eq!(reported, expected);
        reported.clear();
        let mut tell = |_, value| reported.push((0, value));
        rate.stretch((0, u64::MAX), 1, &mut tell);
        rate.close(1, None, &mut tell);
        assert_eq!(
            reported
                .iter()
                .map(|(_, value)| *value)
                .fold(0u64, u64::saturating_add),
            u64::MAX
        );
    }
}
