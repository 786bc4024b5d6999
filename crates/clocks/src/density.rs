//! About where the offset is, by when much happened and when little.

use std::collections::VecDeque;

use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

/// Steps of time that are counted apart at most.
const MOST: u64 = 1 << 17;
/// The shortest step, as a power of two in nanoseconds: 65 us. Two clocks that agree by so much are set right by
/// windows.
const SHORTEST: u32 = 16;

/// How much happened when: a count for each step of time. The steps become longer with the time that there is, so that
/// memory does not grow with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Density {
    /// Length of a step, as a power of two in nanoseconds.
    bits: u32,
    /// The number of the first step.
    first: u64,
    counts: VecDeque<u32>,
}

impl Default for Density {
    fn default() -> Density {
        Density {
            bits: SHORTEST,
            first: 0,
            counts: VecDeque::new(),
        }
    }
}

impl Density {
    /// Counts something at a time.
    pub fn add(&mut self, time: u64) {
        if self.counts.is_empty() {
            self.first = time >> self.bits;
        }
        loop {
            let step = time >> self.bits;
            let last = self.first + (self.counts.len() as u64).saturating_sub(1);
            if step.max(last) - step.min(self.first) < MOST {
                break;
            }
            self.fold();
        }
        let step = time >> self.bits;
        while step < self.first {
            self.counts.push_front(0);
            self.first -= 1;
        }
        let at = (step - self.first) as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(at) {
            *count = count.saturating_add(1);
        }
    }

    /// Makes steps twice as long.
    fn fold(&mut self) {
        let mut folded = VecDeque::with_capacity(self.counts.len() / 2 + 1);
        for (step, count) in (self.first..).zip(&self.counts) {
            match folded.back_mut() {
                Some(last) if !step.is_multiple_of(2) => *last = count.saturating_add(*last),
                _ => folded.push_back(*count),
            }
        }
        self.counts = folded;
        self.first /= 2;
        self.bits += 1;
    }

    /// Returns the counts less their mean. Roots tame what happens a thousand times at once.
    fn signal(&self, length: usize) -> Vec<Complex<f64>> {
        let roots = || self.counts.iter().map(|count| f64::from(*count).sqrt());
        let mean = roots().sum::<f64>() / (self.counts.len().max(1) as f64);
        let mut signal: Vec<Complex<f64>> =
            roots().map(|root| Complex::new(root - mean, 0.0)).collect();
        signal.resize(length, Complex::default());
        signal
    }
}

/// Offsets at which much happened in both at the same times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikelyOffsets {
    /// What is to be added to the guest's time to make it the host's, in nanoseconds, the likeliest first.
    pub offsets_ns: Vec<i64>,
    /// By how much these can be wrong.
    pub within_ns: u64,
}

/// Finds the offsets at which a host's times and a guest's are most alike: their correlation, of which the `most`
/// highest peaks are taken.
pub fn likely(host: &Density, guest: &Density, most: usize) -> LikelyOffsets {
    let (mut host, mut guest) = (host.clone(), guest.clone());
    while host.bits < guest.bits {
        host.fold();
    }
    while guest.bits < host.bits {
        guest.fold();
    }
    let within_ns = 2u64 << host.bits.min(62);
    if host.counts.is_empty() || guest.counts.is_empty() {
        return LikelyOffsets {
            offsets_ns: Vec::new(),
            within_ns,
        };
    }
    // As long as both, so that the end of one does not meet the beginning of the other.
    let length = (host.counts.len() + guest.counts.len()).next_power_of_two();
    let mut planner = FftPlanner::new();
    let forward = planner.plan_fft_forward(length);
    let (mut product, mut of_guest) = (host.signal(length), guest.signal(length));
    forward.process(&mut product);
    forward.process(&mut of_guest);
    for (one, other) in product.iter_mut().zip(&of_guest) {
        *one *= other.conj();
    }
    planner.plan_fft_inverse(length).process(&mut product);
    let mut peaks: Vec<usize> = (0..length).collect();
    let higher = |a: &usize, b: &usize| product[*b].re.total_cmp(&product[*a].re);
    let kept = (3 * most).clamp(1, length);
    if kept < length {
        peaks.select_nth_unstable_by(kept, higher);
        peaks.truncate(kept);
    }
    peaks.sort_by(higher);
    let mut lags: Vec<i128> = Vec::new();
    for at in peaks {
        let lag = match at < host.counts.len() {
            true => at as i128,
            false => at as i128 - length as i128,
        };
        // Those beside a peak are within its reach.
        if lags.len() < most && lags.iter().all(|known| (known - lag).abs() > 1) {
            lags.push(lag);
        }
    }
    let base = i128::from(host.first) - i128::from(guest.first);
    let offsets = lags.into_iter().map(|lag| {
        let offset = (base + lag) << host.bits;
        i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX })
    });
    LikelyOffsets {
        offsets_ns: offsets.collect(),
        within_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: impl IntoIterator<Item = u64>) -> Density {
        let mut density = Density::default();
        for time in times {
            density.add(time);
        }
        density
    }

    /// Times in bursts that are no two alike.
    fn bursts(count: u64) -> Vec<u64> {
        let mut state = 7u64;
        let mut at = 0;
        let mut out = Vec::new();
        for _ in 0..count {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            at += 1000 + (state >> 40) % 3_000_000;
            out.extend((0..(state >> 60)).map(|n| at + n * 500));
        }
        out
    }

    #[test]
    fn what_is_alike_is_found_days_apart() {
        for count in [200, 20_000, 400_000] {
            let times = bursts(count);
            let days = 300_000_000_123_456u64;
            let host = of(times.iter().map(|time| time + days));
            let guest = of(times[times.len() / 4..times.len() / 2].iter().copied());
            let found = likely(&host, &guest, 4);
            let best = found.offsets_ns[0];
            assert!(
                best.abs_diff(days.cast_signed()) <= found.within_ns,
                "{count}: {best} within {}",
                found.within_ns
            );
            assert!(host.counts.len() as u64 <= MOST);
        }
    }

    #[test]
    fn times_come_in_any_order_and_from_all_of_time() {
        let times = bursts(100);
        let forward = of(times.iter().copied());
        let backward = of(times.iter().rev().copied());
        assert_eq!(forward.counts.iter().sum::<u32>(), times.len() as u32);
        assert_eq!(forward, backward);
        let ends = of([u64::MAX, 0, 5]);
        assert_eq!(ends.counts.iter().sum::<u32>(), 3);
        assert!(ends.counts.len() as u64 <= MOST);
        assert!(likely(&ends, &forward, 4).offsets_ns.len() <= 4);
        assert!(
            likely(&Density::default(), &forward, 4)
                .offsets_ns
                .is_empty()
        );
    }
}
