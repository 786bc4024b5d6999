//! Shares in per cent. A share is 0 to 1.

/// Returns per cent with one decimal and without the sign, for a column whose head has it: `12.3`.
pub fn cell(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// Returns per cent with one decimal: `12.3 %`.
pub fn tenths(share: f64) -> String {
    format!("{} %", cell(share))
}

/// Returns a share of counts or times with two decimals, as perf prints it: `12.34 %`.
pub fn of(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0.00 %".to_owned();
    }
    format!("{:.2} %", part as f64 / whole as f64 * 100.0)
}

/// Returns whole per cent: `12 %`.
pub fn whole(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Returns per cent with two digits, and never 0 of what is there: `89 %`, `2.3 %`, `less than 0.1 %`.
pub fn rough(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 10.0 || percent == 0.0 {
        whole(share)
    } else if percent >= 0.1 {
        tenths(share)
    } else {
        "less than 0.1 %".to_owned()
    }
}

/// Returns per cent with two decimals, and never 0 of what is there: `8.15 %`, `less than 0.01 %`.
pub fn rough_to_hundredths(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.01 {
        "less than 0.01 %".to_owned()
    } else {
        format!("{percent:.2} %")
    }
}

/// Returns per cent with no more digits than it has: `2 %`, `0.5 %`.
pub fn short(share: f64) -> String {
    // What a share has beyond a millionth is the rounding of its digits.
    format!("{} %", (share * 1e6).round() / 1e4)
}

/// Returns a change in per cent with its sign and one decimal: `+12.3 %`.
pub fn signed(change: f64) -> String {
    format!("{:+.1} %", change * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_never_nothing() {
        for (share, text) in [
            (0.8878, "89 %"),
            (0.0, "0 %"),
            (0.0234, "2.3 %"),
            (0.0001, "less than 0.1 %"),
        ] {
            assert_eq!(rough(share), text);
        }
    }

    #[test]
    fn shares_have_as_many_decimals_as_their_place_needs() {
        assert_eq!(cell(0.12345), "12.3");
        assert_eq!(tenths(0.12345), "12.3 %");
        assert_eq!(whole(0.12345), "12 %");
        assert_eq!(signed(0.12345), "+12.3 %");
        assert_eq!(short(0.02), "2 %");
        assert_eq!(short(0.005), "0.5 %");
        assert_eq!(of(1, 8), "12.50 %");
        assert_eq!(of(1, 0), "0.00 %");
    }
}
