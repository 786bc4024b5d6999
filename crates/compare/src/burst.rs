//! What happened once: all of it in one short stretch of one recording. How often that happens nobody can know from
//! one such stretch, so it cannot be distinguished from chance, and yet it may be the whole difference: a guest that
//! was paused, a disk that hung, a burst of faults.

use crate::chance::{ENOUGH, SampledSum};

/// One of so many parts of a recording is a short stretch.
const PART: usize = 8;
/// What has to lie in the stretch, of all that its side has.
const MOST: f64 = 0.8;
/// How many times as much as on the other side it has to be.
const MORE: f64 = 2.0;

/// Returns whether what one side has more than the other is one burst.
pub(crate) fn is_one(a: &[SampledSum], b: &[SampledSum]) -> bool {
    let [rate_a, rate_b] = [a, b].map(|runs| {
        let of = |of: fn(&SampledSum) -> f64| runs.iter().map(of).sum::<f64>();
        of(|run| run.sum) / of(|run| run.exposure).max(f64::MIN_POSITIVE)
    });
    let (runs, more, less) = match rate_b > rate_a {
        true => (b, rate_b, rate_a),
        false => (a, rate_a, rate_b),
    };
    if more <= less * MORE || runs.iter().any(|run| run.slices.len() < ENOUGH) {
        return false;
    }
    let all: f64 = runs.iter().flat_map(|run| &run.slices).sum();
    let stretches = runs.iter().map(|run| fullest_stretch(&run.slices));
    let fullest = stretches.fold(0.0, f64::max);
    all > 0.0 && fullest >= MOST * all
}

/// Returns the most that lies in any short stretch.
fn fullest_stretch(slices: &[f64]) -> f64 {
    let length = (slices.len() / PART).max(1);
    let sums = slices.windows(length).map(|window| window.iter().sum());
    sums.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(slices: &[(usize, f64)]) -> SampledSum {
        let mut run = SampledSum {
            exposure: 1.0,
            slices: vec![0.0; 40],
            ..SampledSum::default()
        };
        for (at, amount) in slices {
            run.slices[*at] += amount;
            run.sum += amount;
        }
        run
    }

    #[test]
    fn a_burst_is_most_of_what_there_is_within_a_short_stretch() {
        let nothing = [run(&[])];
        let burst = [run(&[(7, 50.0), (8, 30.0), (30, 10.0)])];
        assert!(is_one(&nothing, &burst) && is_one(&burst, &nothing));
        // Twice is not once, nor is what the other side has as well.
        assert!(!is_one(&nothing, &[run(&[(7, 50.0), (30, 50.0)])]));
        assert!(!is_one(&burst, &[run(&[(2, 50.0)])]));
        // Of several recordings one has it.
        assert!(is_one(&[run(&[]), burst[0].clone()], &nothing));
        assert!(!is_one(&[burst[0].clone(), burst[0].clone()], &nothing));
        // Without slices nobody knows when it was.
        let mut printed = burst[0].clone();
        printed.slices.clear();
        assert!(!is_one(&[printed], &nothing));
    }
}
