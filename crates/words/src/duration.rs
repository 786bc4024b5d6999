//! Durations and time stamps.

/// Returns a duration with four digits and its unit, in eight columns at most: `870ns`, `76.06us`,
/// `436.4ms`, `1234s`.
pub fn human(ns: u64) -> String {
    mean(ns as f64)
}

/// Returns a mean, which may be part of a nanosecond, in the same way. It is rounded once: a mean that was rounded to
/// nanoseconds before would be off by more than half of its last digit, and a reader who multiplies it by the count
/// would get another total than is printed.
pub fn mean(ns: f64) -> String {
    let ns = ns.max(0.0);
    if ns < 999.5 {
        return format!("{}ns", ns.round());
    }
    // What would round up to 1000 belongs to the next unit.
    let (value, unit) = if ns < 999.95e3 {
        (ns / 1e3, "us")
    } else if ns < 999.95e6 {
        (ns / 1e6, "ms")
    } else {
        (ns / 1e9, "s")
    };
    let digits = if value < 9.9995 {
        3
    } else if value < 99.995 {
        2
    } else if value < 999.95 {
        1
    } else {
        0
    };
    format!("{value:.digits$}{unit}")
}

/// Returns a duration, or a number of ticks of unknown rate as it is.
pub fn of(value: u64, nanoseconds: bool) -> String {
    if nanoseconds {
        human(value)
    } else {
        value.to_string()
    }
}

/// Returns a sentence in which durations as [`human`] has them are numbers of ticks: `8.2 million ticks` for `8.2ms`.
/// For what was counted by a clock of unknown rate.
pub fn as_ticks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut within = false;
    while let Some(c) = rest.chars().next() {
        let starts = c.is_ascii_digit() && !within;
        if let Some((number, ticks, behind)) = starts.then(|| split_duration(rest)).flatten() {
            out.push_str(number);
            out.push_str(ticks);
            rest = behind;
            within = true;
            continue;
        }
        out.push(c);
        within = c.is_alphanumeric() || "_.-/:".contains(c);
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    out
}

/// Returns the number of the duration that a text begins with, what its unit is in ticks, and the rest.
fn split_duration(text: &str) -> Option<(&str, &'static str, &str)> {
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let (number, behind) = text.split_at(text.len() - number.len());
    let units = [
        ("ns", " ticks"),
        ("us", " thousand ticks"),
        ("ms", " million ticks"),
        ("s", " billion ticks"),
    ];
    let (rest, ticks) = units
        .iter()
        .find_map(|(unit, ticks)| Some((behind.strip_prefix(unit)?, *ticks)))?;
    let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    ends.then_some((number, ticks, rest))
}

/// Returns a duration that may be part of a nanosecond.
pub fn of_f64(ns: f64) -> String {
    human(ns.max(0.0).round() as u64)
}

/// Returns a round duration without the digits that say nothing: `20 ms`.
pub fn round(ns: u64) -> String {
    match ns {
        1_000_000_000.. => format!("{} s", ns as f64 / 1e9),
        1_000_000.. => format!("{} ms", ns as f64 / 1e6),
        _ => format!("{} us", ns as f64 / 1e3),
    }
}

/// Returns a time stamp in seconds with nine decimals, as `perf script --ns` prints it.
pub fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Returns a time stamp in seconds with six decimals, as perf and trace-cmd print it.
pub fn seconds_us(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_rounded_once() {
        // 12,345 nanoseconds would be 12.35us, and 12,344.6 are nearer to 12.34us.
        assert_eq!(human(12_345), "12.35us");
        assert_eq!(mean(12_344.6), "12.34us");
        assert_eq!(mean(0.4), "0ns");
        assert_eq!(mean(626.5), "627ns");
        assert_eq!(mean(999.4), "999ns");
        assert_eq!(mean(999.6), "1.000us");
        assert_eq!(mean(-3.0), "0ns");
    }

    #[test]
    fn durations_have_four_digits_and_fit_eight_columns() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_000, "1.000us"),
            (76_060, "76.06us"),
            (436_368, "436.4us"),
            (999_960, "1.000ms"),
            (163_995_430, "164.0ms"),
            (9_999_999_999, "10.00s"),
            (1_234_000_000_000, "1234s"),
        ] {
            assert_eq!(human(ns), text);
            assert!(human(ns).len() <= 8);
        }
        assert_eq!(of_f64(999.6), "1.000us");
        assert_eq!(of_f64(-1.0), "0ns");
    }

    #[test]
    fn durations_in_a_sentence_become_ticks() {
        for (text, ticks) in [
            (
                "3781 exits, 835.9ms (21.21us each, 870ns at least).",
                "3781 exits, 835.9 million ticks (21.21 thousand ticks each, 870 ticks at least).",
            ),
            ("1.5s", "1.5 billion ticks"),
            (
                "kworker/3:2s w5s 12 s 5sec 0x608:PIN x_1ms 7.",
                "kworker/3:2s w5s 12 s 5sec 0x608:PIN x_1ms 7.",
            ),
            ("vCPU 1's 4 é", "vCPU 1's 4 é"),
        ] {
            assert_eq!(as_ticks(text), ticks);
        }
    }

    #[test]
    fn time_stamps_have_all_their_decimals() {
        assert_eq!(seconds(770_258_362_123), "770.258362123");
        assert_eq!(seconds_us(770_000_062), "770.000062");
    }

    #[test]
    fn bounds_are_round() {
        for (ns, text) in [
            (20_000_000, "20 ms"),
            (500_000, "500 us"),
            (2_000_000_000, "2 s"),
        ] {
            assert_eq!(round(ns), text);
        }
    }
}
