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
        // Anything is answered soon.
        assert!(utc(u64::MAX).ends_with('Z'));
    }
}
