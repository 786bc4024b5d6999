//! Ranges of time, as people type them.

use std::fmt;
use std::str::FromStr;

use source::{RecordingHeader, TimeStampUnit};

/// A range of time stamps, both ends included, as it was typed: what it means depends on the recording's clock.
///
/// ```
/// use session::TimeRange;
/// assert!("12.5,13".parse::<TimeRange>().is_ok() && "12.5,".parse::<TimeRange>().is_ok());
/// assert_eq!("13,12".parse::<TimeRange>().unwrap_err().to_string(), "'13,12' ends before it begins");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeRange {
    text: String,
    from: Option<Stamp>,
    to: Option<Stamp>,
}

/// A number with decimals, or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stamp {
    whole: u64,
    /// What stands behind the point, as billionths.
    fraction: Option<u32>,
}

/// Whole numbers below this are seconds on a clock of nanoseconds that is printed plainly: as nanoseconds they would be
/// in the first second after boot, and as seconds it is 31 years.
const PLAIN_SECONDS: u64 = 1_000_000_000;

impl Stamp {
    fn parse(text: &str) -> Result<Option<Stamp>, TimeError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let bad = || TimeError::NoTime(text.to_owned());
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (text, None),
        };
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || fraction.is_some_and(|part| part.len() > 9 || !digits(part)) {
            return Err(bad());
        }
        let billionths = |part: &str| format!("{part:0<9}").parse().map_err(|_| bad());
        Ok(Some(Stamp {
            whole: whole.parse().map_err(|_| bad())?,
            fraction: fraction.map(billionths).transpose()?,
        }))
    }

    /// Returns the time stamp on a recording's clock; `None` if it cannot be one.
    fn on(self, header: &RecordingHeader) -> Option<u64> {
        let seconds = || {
            let ns = self.whole.saturating_mul(1_000_000_000);
            ns.saturating_add(u64::from(self.fraction.unwrap_or(0)))
        };
        match (header.time_unit, self.fraction) {
            (TimeStampUnit::Nanoseconds, Some(_)) => Some(seconds()),
            (TimeStampUnit::Nanoseconds, None) if header.seconds || self.whole < PLAIN_SECONDS => {
                Some(seconds())
            }
            (_, None) => Some(self.whole),
            (_, Some(_)) => None,
        }
    }
}

impl fmt::Display for TimeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TimeRange {
    /// Returns the range in time stamps of a recording, both ends included. Errors call the recording `name`.
    ///
    /// # Errors
    ///
    /// Fails when the recording's clock has no such times.
    pub fn stamps(&self, header: &RecordingHeader, name: &str) -> Result<(u64, u64), TimeError> {
        let stamp = |stamp: Option<Stamp>, default: u64| match stamp {
            None => Ok(default),
            Some(stamp) => stamp.on(header).ok_or_else(|| TimeError::Ticks {
                range: self.text.clone(),
                clock: header
                    .clock
                    .as_deref()
                    .map_or_else(String::new, |clock| format!(" {clock}")),
                name: name.to_owned(),
            }),
        };
        let range = (stamp(self.from, 0)?, stamp(self.to, u64::MAX)?);
        if range.0 > range.1 {
            return Err(TimeError::EndsFirst(self.text.clone()));
        }
        Ok(range)
    }
}

impl FromStr for TimeRange {
    type Err = TimeError;

    /// Parses `FROM,TO`, either of which may be empty.
    fn from_str(text: &str) -> Result<TimeRange, TimeError> {
        let (from, to) = text
            .split_once(',')
            .ok_or_else(|| TimeError::NoComma(text.to_owned()))?;
        let range = TimeRange {
            text: text.to_owned(),
            from: Stamp::parse(from)?,
            to: Stamp::parse(to)?,
        };
        // Only the recording's clock says what a number without decimals means beside one that has them.
        let alike = |a: Stamp, b: Stamp| a.fraction.is_some() == b.fraction.is_some();
        if let (Some(from), Some(to)) = (range.from, range.to)
            && alike(from, to)
            && from > to
        {
            return Err(TimeError::Backwards(text.to_owned()));
        }
        Ok(range)
    }
}

/// Why a range of time cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// It has one end only.
    #[error("'{0}' has no comma; expected FROM,TO in seconds, as 12.5,13")]
    NoComma(String),
    /// One end of it is not a time.
    #[error("'{0}' is no time in seconds")]
    NoTime(String),
    /// As it is written, its end is before its beginning.
    #[error("'{0}' ends before it begins")]
    Backwards(String),
    /// On the recording's clock, its end is before its beginning.
    #[error("--time {0}: ends before it begins")]
    EndsFirst(String),
    /// The recording's clock counts ticks, and the range has decimals.
    #[error(
        "--time {range}: the recording's clock{clock} counts ticks, and its times have no decimals; expected whole \
         numbers, as 'trapline info {name}' prints them"
    )]
    Ticks {
        /// The range.
        range: String,
        /// The clock's name with a blank before it, if it has one.
        clock: String,
        /// The recording.
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(time_unit: TimeStampUnit, seconds: bool) -> RecordingHeader {
        RecordingHeader {
            time_unit,
            seconds,
            clock: Some("x86-tsc".to_owned()),
            ..RecordingHeader::default()
        }
    }

    #[test]
    fn times_are_read_to_the_nanosecond() {
        let usual = header(TimeStampUnit::Nanoseconds, true);
        let stamps = |text: &str, header: &RecordingHeader| {
            text.parse::<TimeRange>()?.stamps(header, "a.dat")
        };
        assert_eq!(
            stamps("770.258362123,", &usual),
            Ok((770_258_362_123, u64::MAX))
        );
        assert_eq!(stamps("5,6", &usual), Ok((5_000_000_000, 6_000_000_000)));
        for wrong in ["2,1", "5", "1.x,2", "-1,2", "1.0123456789,", "1e3,"] {
            assert!(wrong.parse::<TimeRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn clocks_that_print_no_point_have_their_own_times() {
        let stamps = |text: &str, header: &RecordingHeader| {
            text.parse::<TimeRange>()?.stamps(header, "a.dat")
        };
        // The clock boot: nanoseconds, which trace-cmd prints plainly and info as seconds.
        let boot = header(TimeStampUnit::Nanoseconds, false);
        let range = Ok((858_500_000_000, 858_600_000_000));
        assert_eq!(stamps("858.5,858.6", &boot), range);
        assert_eq!(stamps("858500000000,858600000000", &boot), range);
        assert_eq!(stamps("858.5,858600000000", &boot), range);
        assert_eq!(
            stamps("858,859", &boot),
            Ok((858_000_000_000, 859_000_000_000))
        );
        let ticks = header(TimeStampUnit::Ticks, false);
        assert_eq!(
            stamps("2217615388452,2217615388460", &ticks),
            Ok((2_217_615_388_452, 2_217_615_388_460))
        );
        let error = stamps("858.5,858.6", &ticks).unwrap_err().to_string();
        assert!(
            error.contains("x86-tsc")
                && error.contains("whole numbers")
                && error.contains("info a.dat"),
            "{error}"
        );
        assert!(stamps("858.6,858500000000", &boot).is_err());
    }
}
