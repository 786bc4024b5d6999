//! Filters that every command shares, as a sink before the analysis.

use std::collections::HashSet;
use std::ops::ControlFlow;

use cpuset::CpuSet;
use event::{Event, EventType, NONE, Side, Sink};
use source::{Header, TimeUnit};

/// A range of time stamps, both ends included, as it was typed: what it means depends on the recording's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimeRange {
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
    fn parse(text: &str) -> Result<Option<Stamp>, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let bad = || format!("'{text}' is no time in seconds");
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
    fn on(self, header: &Header) -> Option<u64> {
        let seconds = || {
            let ns = self.whole.saturating_mul(1_000_000_000);
            ns.saturating_add(u64::from(self.fraction.unwrap_or(0)))
        };
        match (header.time_unit, self.fraction) {
            (TimeUnit::Nanoseconds, Some(_)) => Some(seconds()),
            (TimeUnit::Nanoseconds, None) if header.seconds || self.whole < PLAIN_SECONDS => {
                Some(seconds())
            }
            (_, None) => Some(self.whole),
            (_, Some(_)) => None,
        }
    }
}

impl TimeRange {
    /// Returns the range in time stamps of a recording.
    ///
    /// # Errors
    /// The recording's clock has no such times; the message says what is expected.
    pub(crate) fn stamps(&self, header: &Header, name: &str) -> Result<(u64, u64), String> {
        let stamp = |stamp: Option<Stamp>, default: u64| {
            match stamp {
            None => Ok(default),
            Some(stamp) => stamp.on(header).ok_or_else(|| {
                let clock = header.clock.as_deref().map(|clock| format!(" {clock}"));
                format!(
                    "--time {}: the recording's clock{} counts ticks, and its times have no decimals; expected whole \
                     numbers, as 'trapline info {name}' prints them",
                    self.text,
                    clock.unwrap_or_default()
                )
            }),
        }
        };
        let range = (stamp(self.from, 0)?, stamp(self.to, u64::MAX)?);
        if range.0 > range.1 {
            return Err(format!("--time {}: ends before it begins", self.text));
        }
        Ok(range)
    }
}

/// Parses a CPU list as the kernel's files have it. None at all is no filter.
pub(crate) fn parse_cpus(text: &str) -> Result<CpuSet, String> {
    match text.parse::<CpuSet>() {
        Ok(set) if set.is_empty() => Err("expected a list of CPUs such as 0-3,8".to_owned()),
        Ok(set) => Ok(set),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses `FROM,TO`, either of which may be empty.
pub(crate) fn parse_time(text: &str) -> Result<TimeRange, String> {
    let (from, to) = text
        .split_once(',')
        .ok_or_else(|| format!("'{text}' has no comma; expected FROM,TO in seconds, as 12.5,13"))?;
    let range = TimeRange {
        text: text.to_owned(),
        from: Stamp::parse(from)?,
        to: Stamp::parse(to)?,
    };
    // What a number without decimals means beside one with them, the recording's clock says.
    let alike = |a: Stamp, b: Stamp| a.fraction.is_some() == b.fraction.is_some();
    if let (Some(from), Some(to)) = (range.from, range.to)
        && alike(from, to)
        && from > to
    {
        return Err(format!("'{text}' ends before it begins"));
    }
    Ok(range)
}

/// Reads a share, from 0 to 1.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1".to_owned()),
    }
}

/// Reads a size: bytes, or with K, M, G or T behind them 1024 of them, and so on.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let bad = || {
        format!(
            "'{text}' is no size; expected a number of bytes, or one with K, M, G or T behind it"
        )
    };
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let shift = match unit
        .trim()
        .trim_end_matches(['B', 'b'])
        .trim_end_matches('i')
    {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        "T" | "t" => 40,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    number.checked_mul(1 << shift).ok_or_else(bad)
}

/// Parses a duration with its unit: `250us`, `1.5ms`, `2s`; nanoseconds without one.
pub(crate) fn parse_duration(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let bad = || format!("'{text}' is no duration; expected a number and ns, us, ms or s");
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let digits: u32 = match unit.trim() {
        "" | "ns" => 0,
        "us" | "µs" => 3,
        "ms" => 6,
        "s" => 9,
        _ => return Err(bad()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > digits as usize || whole.is_empty() {
        return Err(bad());
    }
    let scale = |part: &str, power: u32| {
        let value: u64 = if part.is_empty() {
            0
        } else {
            part.parse().ok()?
        };
        value.checked_mul(10u64.pow(power))
    };
    let whole = scale(whole, digits).ok_or_else(bad)?;
    let fraction = scale(fraction, digits - fraction.len() as u32).ok_or_else(bad)?;
    whole.checked_add(fraction).ok_or_else(bad)
}

/// What filters leave out of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every event that they do not ask for: those of other threads too.
    Events,
    /// Events by time and CPU. Which vCPUs are told of is chosen among what was found: what a vCPU does may be told by
    /// any thread's events.
    Window,
}

/// Lets through what the filters ask for.
pub(crate) struct Filtered<'s, S: Sink + ?Sized> {
    sink: &'s mut S,
    pid: Option<i32>,
    cpus: Option<&'s CpuSet>,
    time: Option<(u64, u64)>,
    threads: Option<&'s [i32]>,
    of_process: &'s HashSet<i32>,
}

impl<'s, S: Sink + ?Sized> Filtered<'s, S> {
    /// Puts a window of time and CPUs before a sink.
    pub(crate) fn window(
        sink: &'s mut S,
        time: Option<(u64, u64)>,
        cpus: Option<&'s CpuSet>,
        of_process: &'s HashSet<i32>,
    ) -> Filtered<'s, S> {
        Filtered {
            sink,
            pid: None,
            cpus,
            time,
            threads: None,
            of_process,
        }
    }

    /// Lets through threads only: `threads`, if any are named, and those of a process. `of_process`, as the window was
    /// given it, are those of the process where the recording does not tell whose they are.
    pub(crate) fn of(self, pid: Option<i32>, threads: Option<&'s [i32]>) -> Filtered<'s, S> {
        Filtered {
            pid,
            threads,
            ..self
        }
    }

    /// Whether there is nothing to filter.
    pub(crate) fn is_idle(&self) -> bool {
        self.pid.is_none() && self.cpus.is_none() && self.time.is_none() && self.threads.is_none()
    }
}

impl<S: Sink + ?Sized> Sink for Filtered<'_, S> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.sink.wants(ty)
    }

    fn wants_samples(&self) -> bool {
        self.sink.wants_samples()
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if let Some((from, to)) = self.time {
            if event.time > to {
                return ControlFlow::Break(());
            }
            if event.time < from {
                return ControlFlow::Continue(());
            }
        }
        let pid = self.pid.is_none_or(|pid| {
            event.tid == pid
                || match event.pid {
                    NONE => self.of_process.contains(&event.tid),
                    process => process == pid,
                }
        });
        let cpu = self.cpus.is_none_or(|cpus| cpus.has(event.cpu));
        let thread = self
            .threads
            .is_none_or(|threads| threads.contains(&event.tid));
        if pid && cpu && thread {
            self.sink.event(event)
        } else {
            ControlFlow::Continue(())
        }
    }

    fn side(&mut self, side: &Side<'_>) {
        self.sink.side(side);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_the_kernels() {
        let set = parse_cpus("0-3,8").unwrap();
        assert!(set.contains(2) && set.contains(8) && !set.contains(5) && !set.has(-1));
        assert!(
            parse_cpus("3-1").is_err()
                && parse_cpus("x").is_err()
                && parse_cpus("99999999").is_err()
        );
    }

    fn header(time_unit: TimeUnit, seconds: bool) -> Header {
        Header {
            time_unit,
            seconds,
            clock: Some("x86-tsc".to_owned()),
            ..Header::default()
        }
    }

    #[test]
    fn sizes_are_read_in_powers_of_1024() {
        assert_eq!(parse_size("500M"), Ok(500 << 20));
        assert_eq!(parse_size("64GiB"), Ok(64 << 30));
        assert_eq!(parse_size("4096"), Ok(4096));
        for bad in ["", "G", "-1", "1.5G", "1X", "99999999T"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_read_to_the_nanosecond() {
        let usual = header(TimeUnit::Nanoseconds, true);
        let stamps = |text: &str, header: &Header| parse_time(text)?.stamps(header, "a.dat");
        assert_eq!(
            stamps("770.258362123,", &usual),
            Ok((770_258_362_123, u64::MAX))
        );
        assert_eq!(stamps("5,6", &usual), Ok((5_000_000_000, 6_000_000_000)));
        for wrong in ["2,1", "5", "1.x,2", "-1,2", "1.0123456789,", "1e3,"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn clocks_that_print_no_point_have_their_own_times() {
        let stamps = |text: &str, header: &Header| parse_time(text)?.stamps(header, "a.dat");
        // The clock boot: nanoseconds, which trace-cmd prints plainly and info as seconds.
        let boot = header(TimeUnit::Nanoseconds, false);
        let range = Ok((858_500_000_000, 858_600_000_000));
        assert_eq!(stamps("858.5,858.6", &boot), range);
        assert_eq!(stamps("858500000000,858600000000", &boot), range);
        assert_eq!(stamps("858.5,858600000000", &boot), range);
        assert_eq!(
            stamps("858,859", &boot),
            Ok((858_000_000_000, 859_000_000_000))
        );
        let ticks = header(TimeUnit::Ticks, false);
        assert_eq!(
            stamps("2217615388452,2217615388460", &ticks),
            Ok((2_217_615_388_452, 2_217_615_388_460))
        );
        let error = stamps("858.5,858.6", &ticks).unwrap_err();
        assert!(
            error.contains("x86-tsc")
                && error.contains("whole numbers")
                && error.contains("info a.dat"),
            "{error}"
        );
        assert!(stamps("858.6,858500000000", &boot).is_err());
    }
}
