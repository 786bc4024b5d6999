//! Numbers in sentences.

use stats::duration::human;

/// Returns a rate or count with the digits that matter.
pub(crate) fn number(value: f64) -> String {
    if value.fract() == 0.0 || value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Returns how much a value changed: `-61 %`, or `3.4 times` where it is more than doubled.
pub(crate) fn change(a: f64, b: f64) -> String {
    if a == 0.0 {
        return "new".to_owned();
    }
    let ratio = b / a;
    if ratio >= 2.0 {
        format!("{} times", number(ratio))
    } else {
        format!("{:+.0} %", (ratio - 1.0) * 100.0)
    }
}

/// Returns a duration that may be part of a nanosecond.
pub(crate) fn time(ns: f64) -> String {
    human(ns.max(0.0).round() as u64)
}

/// Returns a share in per cent.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 10.0 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}
