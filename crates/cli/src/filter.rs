//! Filters that every command shares, as a sink before the analysis.

use std::collections::HashSet;
use std::ops::ControlFlow;

use cpuset::CpuSet;
use event::{Event, EventType, NONE, Side, Sink};

use crate::args::FilterArgs;

/// A range of time stamps, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// As seconds, in nanoseconds.
    seconds: (u64, u64),
    /// As plain numbers, for clocks that print no decimal point.
    plain: (u64, u64),
}

impl TimeRange {
    /// Returns the range in time stamps of a recording that prints its times as seconds, or does not.
    pub fn stamps(&self, seconds: bool) -> (u64, u64) {
        if seconds { self.seconds } else { self.plain }
    }
}

/// Parses a CPU list as the kernel's files have it. None at all is no filter.
pub fn parse_cpus(text: &str) -> Result<CpuSet, String> {
    match text.parse::<CpuSet>() {
        Ok(set) if set.is_empty() => Err("expected a list of CPUs such as 0-3,8".to_owned()),
        Ok(set) => Ok(set),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses `FROM,TO`, either of which may be empty.
pub fn parse_time(text: &str) -> Result<TimeRange, String> {
    let (from, to) = text
        .split_once(',')
        .ok_or_else(|| format!("'{text}' has no comma; expected FROM,TO in seconds, as 12.5,13"))?;
    let seconds = (nanoseconds(from, 0)?, nanoseconds(to, u64::MAX)?);
    if seconds.0 > seconds.1 {
        return Err(format!("'{text}' ends before it begins"));
    }
    let plain = |s: &str, default: u64| s.trim().parse().unwrap_or(default);
    Ok(TimeRange {
        seconds,
        plain: (plain(from, 0), plain(to, u64::MAX)),
    })
}

/// Reads a share, from 0 to 1.
pub fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1".to_owned()),
    }
}

/// Reads a size: bytes, or with K, M, G or T behind them 1024 of them, and so on.
pub fn parse_size(text: &str) -> Result<u64, String> {
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
pub fn parse_duration(text: &str) -> Result<u64, String> {
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

/// Parses decimal seconds into nanoseconds without going through floating point.
fn nanoseconds(text: &str, default: u64) -> Result<u64, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(default);
    }
    let bad = || format!("'{text}' is no time in seconds");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    let whole: u64 = whole.parse().map_err(|_| bad())?;
    let fraction: u64 = format!("{fraction:0<9}").parse().map_err(|_| bad())?;
    // A plain number of ticks may be too large as seconds: then no nanosecond stamp is meant.
    Ok(whole.saturating_mul(1_000_000_000).saturating_add(fraction))
}

/// What filters leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every event that they do not ask for.
    Events,
    /// Events of other threads, but for the scheduler's: that a thread gets its CPU is told by the one that
    /// leaves it.
    Threads,
    /// As `Threads`, and nothing by time and CPU: the sink looks at a window itself, and has to know what was
    /// around it.
    Window,
}

/// Lets through what the filters ask for.
pub struct Filtered<'s, S: Sink + ?Sized> {
    sink: &'s mut S,
    scope: Scope,
    pid: Option<i32>,
    cpus: Option<CpuSet>,
    time: Option<(u64, u64)>,
    threads: Option<&'s [i32]>,
    of_process: &'s HashSet<i32>,
}

impl<'s, S: Sink + ?Sized> Filtered<'s, S> {
    /// Puts filters before a sink. `threads` are the only ones let through, if any are named; `of_process`
    /// are those of the process asked for where the recording does not tell whose they are; `seconds` says
    /// whether the recording prints its times as seconds.
    pub fn new(
        sink: &'s mut S,
        args: &FilterArgs,
        threads: Option<&'s [i32]>,
        of_process: &'s HashSet<i32>,
        seconds: bool,
        scope: Scope,
    ) -> Filtered<'s, S> {
        let window = scope == Scope::Window;
        Filtered {
            sink,
            scope,
            pid: args.pid,
            cpus: args.cpu.clone().filter(|_| !window),
            time: args
                .time
                .map(|time| time.stamps(seconds))
                .filter(|_| !window),
            threads,
            of_process,
        }
    }

    /// Whether there is nothing to filter.
    pub fn is_idle(&self) -> bool {
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
        let other = self.scope != Scope::Events && event.ty.kind.is_sched();
        let pid = other
            || self.pid.is_none_or(|pid| {
                event.tid == pid
                    || match event.pid {
                        NONE => self.of_process.contains(&event.tid),
                        process => process == pid,
                    }
            });
        let cpu = self.cpus.as_ref().is_none_or(|cpus| cpus.has(event.cpu));
        let thread = other
            || self
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
        let range = parse_time("770.258362123,").unwrap();
        assert_eq!(range.seconds, (770_258_362_123, u64::MAX));
        assert!(
            parse_time("2,1").is_err() && parse_time("5").is_err() && parse_time("1.x,2").is_err()
        );
        assert_eq!(
            parse_time("2217615388452,2217615388460").unwrap().plain.0,
            2_217_615_388_452
        );
    }
}
