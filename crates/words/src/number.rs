//! Numbers, and how much they changed.

/// Returns a rate or count with the digits that matter.
pub fn number(value: f64) -> String {
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

/// Returns a number with four digits that count, and a letter for millions and more: `8.643 G`, `704.5 M`, `31310`.
pub fn large(value: f64) -> String {
    let scale = |unit: f64, letter: char| {
        let scaled = value / unit;
        let decimals = match scaled {
            s if s < 10.0 => 3,
            s if s < 100.0 => 2,
            _ => 1,
        };
        format!("{scaled:.decimals$} {letter}")
    };
    match value {
        v if v >= 1e12 => scale(1e12, 'T'),
        v if v >= 1e9 => scale(1e9, 'G'),
        v if v >= 1e6 => scale(1e6, 'M'),
        v => number(v),
    }
}

/// Returns how much a value changed: `-61 %`, or `3.40 times` where it is doubled or more.
pub fn change(a: f64, b: f64) -> String {
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

/// Returns how a value went: that it rose or fell, from what to what (`a` and `b` as `write` writes them), each `unit`,
/// and by what share; that it did not change where both are written the same.
pub fn went(a: f64, b: f64, write: impl Fn(f64) -> String, unit: &str) -> String {
    let (from, to) = (write(a), write(b));
    if from == to {
        return format!("did not change: {from}{unit}");
    }
    let how = if b > a { "rose" } else { "fell" };
    format!("{how}: {from} to {to}{unit} ({})", change(a, b))
}

/// Returns whether a value rose, fell, or did neither.
pub fn rose(a: f64, b: f64) -> &'static str {
    match a.total_cmp(&b) {
        std::cmp::Ordering::Less => "rose",
        std::cmp::Ordering::Equal => "did not change",
        std::cmp::Ordering::Greater => "fell",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_the_same_did_not_change() {
        let to = |a: f64, b: f64| went(a, b, number, " in a second");
        assert_eq!(to(654.0, 654.0), "did not change: 654 in a second");
        assert_eq!(to(654.1, 654.2), "did not change: 654 in a second");
        assert_eq!(to(500.0, 1000.0), "rose: 500 to 1000 in a second (2 times)");
        assert_eq!(to(1000.0, 500.0), "fell: 1000 to 500 in a second (-50 %)");
    }

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
    fn large_numbers_have_a_letter() {
        for (value, text) in [
            (8_643_300_648.0, "8.643 G"),
            (704_501_629.0, "704.5 M"),
            (67_086_874_844.0, "67.09 G"),
            (31_310.0, "31310"),
            (0.25, "0.25"),
            (2.5e12, "2.500 T"),
        ] {
            assert_eq!(large(value), text);
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
    }
}
