//! Times of day.

/// Writes a time, in seconds since 1970 in UTC, as RFC 3339 has it: `2026-11-28T12:00:03Z`.
pub fn utc(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut left) = (1970, days);
    // Whole cycles of the calendar first: what is left is a loop of 400 years at most.
    year += left / CYCLE_DAYS * 400;
    left %= CYCLE_DAYS;
    while left >= year_days(year) {
        left -= year_days(year);
        year += 1;
    }
    let february = year_days(year) - 337;
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < days {
            break;
        }
        left -= days;
        month += 1;
    }
    let [hour, minute, second] = [of_day / 3600, of_day / 60 % 60, of_day % 60];
    format!(
        "{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z",
        left + 1
    )
}

/// Returns the day of a time, in nanoseconds since 1970 in UTC: `2026-11-28`.
pub fn utc_day(unix_ns: u64) -> String {
    let mut text = utc(unix_ns / 1_000_000_000);
    // 64 bits of nanoseconds end in the year 2554.
    text.truncate(10);
    text
}

/// Returns when a day begins that is written as [`utc_day`] writes it, in seconds since 1970; `None` where it is no
/// day since then.
pub fn parse_utc_day(text: &str) -> Option<u64> {
    let mut parts = text.split('-').map(|part| {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse::<u64>().ok())?
    });
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if text.len() != 10 || parts.next().is_some() || year < 1970 {
        return None;
    }
    let years: u64 = (1970..year).map(year_days).sum();
    let february = year_days(year) - 337;
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before: u64 = months.get(..month.checked_sub(1)? as usize)?.iter().sum();
    let days = *months.get(month as usize - 1)?;
    (1..=days)
        .contains(&day)
        .then(|| (years + before + day - 1) * 86_400)
}

/// The days after which the calendar repeats.
const CYCLE_DAYS: u64 = 400 * 365 + 97;

fn year_days(year: u64) -> u64 {
    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    365 + u64::from(leap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // By 'date -u -d @N +%FT%TZ'.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_795_867_203, "2026-11-28T12:00:03Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (13_569_465_600, "2400-01-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
        for (seconds, text) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_795_824_000, "2026-11-28"),
        ] {
            assert_eq!(utc_day((seconds + 86_399) * 1_000_000_000), text);
            assert_eq!(parse_utc_day(text), Some(seconds));
        }
        for text in [
            "",
            "2026-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-1-01",
            "2026-+1-01",
            "1969-12-31",
            "2026-01-01x",
        ] {
            assert_eq!(parse_utc_day(text), None, "{text}");
        }
        // Anything is answered soon.
        assert!(utc(u64::MAX).ends_with('Z'));
    }
}
