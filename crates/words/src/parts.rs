//! Numbers that are printed as a sum: what is rounded adds up all the same.

/// Parts a whole in the ratio of shares, so that the parts add up to it: what rounding down leaves goes to those that
/// lost most by it, of equal ones to the first. Without shares there is nothing to part, and all parts are 0.
pub fn adding_up(shares: &[u64], whole: u64) -> Vec<u64> {
    let all: u128 = shares.iter().map(|share| u128::from(*share)).sum();
    if all == 0 {
        return vec![0; shares.len()];
    }
    // Each is smaller than 2^64, so their product fits.
    let scaled = |share: &u64| u128::from(*share) * u128::from(whole);
    let mut parts: Vec<u64> = shares
        .iter()
        .map(|share| u64::try_from(scaled(share) / all).unwrap_or(u64::MAX))
        .collect();
    let given = parts
        .iter()
        .fold(0u64, |sum, part| sum.saturating_add(*part));
    let left = usize::try_from(whole.saturating_sub(given)).unwrap_or(usize::MAX);
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(scaled(&shares[*at]) % all));
    for at in order.into_iter().take(left) {
        parts[at] += 1;
    }
    parts
}

/// Returns durations and what they add up to, in one unit and with as many decimals as
/// [`human`](crate::duration::human) prints the sum with: the printed numbers add up to the printed sum. Ticks of
/// unknown rate are printed as they are.
pub fn durations(parts: &[u64], nanoseconds: bool) -> (Vec<String>, String) {
    let whole = parts
        .iter()
        .fold(0u64, |sum, part| sum.saturating_add(*part));
    let (unit_ns, unit, digits) = match nanoseconds {
        false => (1, "", 0),
        true => unit_of(whole),
    };
    // What the last digit stands for.
    let last_ns = unit_ns / 10u64.pow(digits);
    let rounded = (u128::from(whole) + u128::from(last_ns / 2)) / u128::from(last_ns);
    let rounded = u64::try_from(rounded).unwrap_or(u64::MAX);
    let print = |count: u64| {
        let scale = 10u64.pow(digits);
        match digits {
            0 => format!("{count}{unit}"),
            digits => {
                let width = digits as usize;
                format!("{}.{:0width$}{unit}", count / scale, count % scale)
            }
        }
    };
    let texts = adding_up(parts, rounded).into_iter().map(print).collect();
    (texts, print(rounded))
}

/// Returns a unit in nanoseconds, its name, and how many decimals make four digits.
fn unit_of(ns: u64) -> (u64, &'static str, u32) {
    let (unit_ns, unit) = match ns {
        0..1_000 => return (1, "ns", 0),
        1_000..999_950 => (1_000, "us"),
        999_950..999_950_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    // What would round up to 10, or to 100, has a digit less.
    let below = |limit: u64| u128::from(ns) * 10_000 < u128::from(unit_ns) * u128::from(limit);
    let digits = match () {
        () if below(99_995) => 3,
        () if below(999_950) => 2,
        () if below(9_999_500) => 1,
        () => 0,
    };
    (unit_ns, unit, digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole() {
        assert_eq!(adding_up(&[1, 1, 1], 10), [4, 3, 3]);
        assert_eq!(adding_up(&[2, 1, 0], 1), [1, 0, 0]);
        assert_eq!(adding_up(&[0, 0], 5), [0, 0]);
        assert_eq!(adding_up(&[], 5), Vec::<u64>::new());
        let all = adding_up(&[u64::MAX, u64::MAX, 1], u64::MAX);
        let sum: u128 = all.iter().map(|part| u128::from(*part)).sum();
        assert_eq!(sum, u128::from(u64::MAX));
    }

    #[test]
    fn printed_durations_add_up() {
        let (parts, whole) = durations(&[60_004, 60_003, 60_004], true);
        assert_eq!(parts.join(" + "), "60.0us + 60.0us + 60.0us");
        assert_eq!(whole, "180.0us");
        // Each rounds up by itself.
        let (parts, whole) = durations(&[33_336, 33_336, 33_336], true);
        assert_eq!(parts.join(" + "), "33.4us + 33.3us + 33.3us");
        assert_eq!(whole, "100.0us");
        let (parts, whole) = durations(&[1, 2], false);
        assert_eq!(
            (parts.join(" + "), whole),
            ("1 + 2".to_owned(), "3".to_owned())
        );
        let whole = |ns: u64| durations(&[ns], true).1;
        for ns in [
            0,
            999,
            1_000,
            76_060,
            436_368,
            999_960,
            163_995_430,
            9_999_999_999,
        ] {
            assert_eq!(whole(ns), crate::duration::human(ns), "{ns}");
        }
    }
}
