//! Numbers in sentences.

use stats::duration::human;

/// Returns a rate or count with the digits that matter.
pub(crate) fn number(value: f64) -> String {
    if value.fract() == 0.0 || value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else if value >= 0.01 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    }
}

/// Returns how much a value changed: `-61 %`, or `3.40 times` where it is more than doubled.
pub(crate) fn change(a: f64, b: f64) -> String {
    if a == 0.0 {
        return if b == 0.0 { "none" } else { "new" }.to_owned();
    }
    let ratio = b / a;
    if ratio >= 2.0 {
        format!("{} times", number(ratio))
    } else if ratio < 0.0005 && b > 0.0 {
        // Rounded it would be said to be gone.
        "almost -100 %".to_owned()
    } else if ratio < 0.01 && b > 0.0 {
        format!("{:+.1} %", (ratio - 1.0) * 100.0)
    } else {
        format!("{:+.0} %", (ratio - 1.0) * 100.0)
    }
}

/// Returns a duration that may be part of a nanosecond.
pub(crate) fn time(ns: f64) -> String {
    human(ns.max(0.0).round() as u64)
}

/// Returns a duration of few digits without those that say nothing: `20 ms`.
pub fn bound(ns: u64) -> String {
    match ns {
        1_000_000_000.. => format!("{} s", ns as f64 / 1e9),
        1_000_000.. => format!("{} ms", ns as f64 / 1e6),
        _ => format!("{} us", ns as f64 / 1e3),
    }
}

/// Returns a share in per cent.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 10.0 || percent == 0.0 {
        format!("{percent:.0} %")
    } else if percent >= 0.1 {
        format!("{percent:.1} %")
    } else {
        "less than 0.1 %".to_owned()
    }
}

/// Returns a count with its noun: `1 recording`, `3 recordings`.
pub(crate) fn of_them(count: u64, one: &str, many: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {many}")
    }
}

/// Returns whether a value rose or fell.
pub(crate) fn rose(a: f64, b: f64) -> &'static str {
    if b > a { "rose" } else { "fell" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        for (value, text) in [
            (3.0, "3"),
            (0.5, "0.50"),
            (0.0004, "0.0004"),
            (12.34, "12.3"),
            (256_738.0, "256738"),
            (123.4, "123"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn bounds_are_round() {
        for (ns, text) in [
            (20_000_000, "20 ms"),
            (500_000, "500 us"),
            (2_000_000_000, "2 s"),
        ] {
            assert_eq!(bound(ns), text);
        }
    }

    #[test]
    fn changes_never_claim_more_than_there_is() {
        for (a, b, text) in [
            (100.0, 39.0, "-61 %"),
            (1.0, 3.4, "3.40 times"),
            (100.0, 150.0, "+50 %"),
            (27_683.0, 44.0, "-99.8 %"),
            (27_683.0, 1.0, "almost -100 %"),
            (27_683.0, 0.0, "-100 %"),
            (0.0, 4.0, "new"),
            (0.0, 0.0, "none"),
        ] {
            assert_eq!(change(a, b), text);
        }
        for (share, text) in [
            (0.8878, "89 %"),
            (0.0, "0 %"),
            (0.0234, "2.3 %"),
            (0.0001, "less than 0.1 %"),
        ] {
            assert_eq!(percent(share), text);
        }
    }
}
