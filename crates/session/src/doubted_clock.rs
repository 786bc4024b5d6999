//! Clocks that say a time at which nobody records.

use doubts::{Doubt, DoubtKind};
use source::{RecordingHeader, TimeStampUnit};

/// No recording is of a later year, by a clock that counts from 1970.
const LATEST_YEAR: u64 = 2100;
/// And no machine has run for longer, by a clock that counts from its start.
const LONGEST_UP_YEARS: u64 = 100;
/// The mean year of the calendar, in nanoseconds.
const YEAR_NS: u64 = 31_556_952_000_000_000;

/// Returns the doubt about a recording whose newest event has a time that cannot be.
pub(crate) fn doubt(header: &RecordingHeader, newest_ns: u64) -> Option<Doubt> {
    if header.time_unit != TimeStampUnit::Nanoseconds {
        return None;
    }
    let years = newest_ns / YEAR_NS;
    let year = 1970 + years;
    let clock = header.clock.as_deref();
    let says = match clock {
        // What a text's clock counts from is not recorded, and 1970 allows more.
        Some("realtime" | "real" | "tai") | None => {
            (year > LATEST_YEAR).then(|| format!("the recording is of the year {year}"))
        }
        Some(_) => {
            (years > LONGEST_UP_YEARS).then(|| format!("the machine had run for {years} years"))
        }
    };
    let clock = clock.map_or_else(String::new, |clock| format!(" {clock}"));
    Some(DoubtKind::ClockImplausible { clock, says: says? }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(clock: Option<&str>, seconds: u64) -> Option<String> {
        let header = RecordingHeader {
            clock: clock.map(str::to_owned),
            ..RecordingHeader::default()
        };
        doubt(&header, seconds * 1_000_000_000).map(|doubt| doubt.text())
    }

    #[test]
    fn a_clock_is_doubted_from_where_it_cannot_be_right() {
        const YEAR_2500: u64 = 16_725_225_600;
        const YEAR_2026: u64 = 1_790_000_000;
        for clock in [Some("realtime"), Some("tai"), None] {
            assert_eq!(says(clock, YEAR_2026), None);
            let text = says(clock, YEAR_2500).expect("a doubt");
            assert!(text.contains("of the year 2500"), "{text}");
        }
        // What counts from the machine's start.
        for clock in ["monotonic", "boot", "local", "perf"] {
            assert_eq!(says(Some(clock), YEAR_2026), None);
            let text = says(Some(clock), 3_200_000_000).expect("a doubt");
            assert!(
                text.contains("had run for 101 years") && text.contains(clock),
                "{text}"
            );
        }
    }

    #[test]
    fn ticks_are_no_time() {
        let header = RecordingHeader {
            time_unit: TimeStampUnit::Ticks,
            ..RecordingHeader::default()
        };
        assert_eq!(doubt(&header, u64::MAX), None);
    }
}
