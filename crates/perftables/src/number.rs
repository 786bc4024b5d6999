//! Numbers as perf prints them.

/// A printed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    pub ns: u64,
    /// Half of the last printed digit: how far off it may be.
    pub half_ns: u64,
}

/// Returns a power of ten in nanoseconds for a unit of time.
fn unit(text: &str) -> Option<u32> {
    Some(match text {
        "ns" | "nsec" => 0,
        // U+00B5 and U+03BC.
        "us" | "usec" | "\u{b5}s" | "\u{3bc}s" => 3,
        "ms" | "msec" => 6,
        "s" | "sec" => 9,
        _ => return None,
    })
}

/// Returns whether a word is a unit of time and nothing else.
pub(crate) fn is_unit(text: &str) -> bool {
    unit(text).is_some()
}

/// Reads a time with its unit: `1.03us`, `1.03 us`, `62.070 ms`.
pub(crate) fn time(text: &str) -> Option<Time> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')?;
    let (number, rest) = text.split_at(end);
    scaled(number, unit(rest.trim_start())?)
}

/// Reads a decimal number in a unit of 10^`exponent` ns, to a whole nanosecond. The decimal sign may be a comma.
pub(crate) fn scaled(number: &str, exponent: u32) -> Option<Time> {
    let (whole, part) = match number.find(['.', ',']) {
        Some(at) => (&number[..at], &number[at + 1..]),
        None => (number, ""),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || number.ends_with(['.', ',']) {
        return None;
    }
    let mut ns = whole
        .parse::<u64>()
        .ok()?
        .checked_mul(10u64.pow(exponent))?;
    let mut weight = 10u64.pow(exponent);
    for digit in part.bytes() {
        if weight < 10 {
            // Below a nanosecond: one more digit rounds.
            ns = ns.checked_add(u64::from(weight == 1 && digit >= b'5'))?;
            weight = 0;
            break;
        }
        weight /= 10;
        ns = ns.checked_add(weight * u64::from(digit - b'0'))?;
    }
    Some(Time {
        ns,
        half_ns: weight / 2,
    })
}

/// Reads a share: `65.05%` is 0.6505. perf prints `-nan%` where all is zero, which reads as 0.
pub(crate) fn share(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%')?.trim_end();
    if matches!(number, "nan" | "-nan") {
        return Some(0.0);
    }
    Some(decimal(number)? / 100.0)
}

/// Reads a decimal number without sign or exponent. The decimal sign may be a comma.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    let plain = text
        .bytes()
        .all(|b| b.is_ascii_digit() || b == b'.' || b == b',');
    let starts = text.starts_with(|c: char| c.is_ascii_digit());
    let ends = text.ends_with(|c: char| c.is_ascii_digit());
    if !plain || !starts || !ends {
        return None;
    }
    if text.contains(',') {
        text.replace(',', ".").parse().ok()
    } else {
        text.parse().ok()
    }
}

/// Reads a whole number.
pub(crate) fn count(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// Returns the words of a line with the byte where each begins. Words are separated by blanks of any kind.
pub(crate) fn words(text: &str) -> Vec<(usize, &str)> {
    let base = text.as_ptr() as usize;
    text.split_whitespace()
        .map(|word| (word.as_ptr() as usize - base, word))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, ns: u64, half_ns: u64) {
        assert_eq!(time(text), Some(Time { ns, half_ns }), "{text}");
    }

    #[test]
    fn times_are_exact_and_tell_their_rounding() {
        reads("1.03us", 1_030, 5);
        reads("1,03 us", 1_030, 5);
        reads("1791869.86us", 1_791_869_860, 5);
        reads("12us", 12_000, 500);
        reads("62.070 ms", 62_070_000, 500);
        reads("89536.961252 s", 89_536_961_252_000, 500);
        reads("17ns", 17, 0);
        reads("1.0000000006s", 1_000_000_001, 0);
        reads("18446744073709.55us", 18_446_744_073_709_550, 5);
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "us",
            ".5us",
            "5.us",
            "5",
            "5xs",
            "1.2.3us",
            "99999999999999999999us",
            "-1us",
        ] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn shares_and_counts() {
        assert_eq!(share("12.50%"), Some(0.125));
        assert_eq!(share("12,50%"), Some(0.125));
        assert_eq!(share("-nan%"), Some(0.0));
        assert_eq!(share("12.50"), None);
        assert_eq!(share("%"), None);
        assert_eq!(count("24618"), Some(24618));
        assert_eq!(count("+1"), None);
        assert_eq!(count("99999999999999999999"), None);
    }
}
