//! Values of arguments: sizes, durations, shares, CPUs, times.

use std::ffi::OsStr;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};
use cpuset::CpuSet;
use session::{TimeError, TimeRange};

/// Reads a name of which some are known: shells complete those, and what another one is worth is for `parse` to say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameParser {
    /// Returns the names that are known.
    names: fn() -> Vec<&'static str>,
    /// Reads one.
    parse: fn(&str) -> Result<String, String>,
}

impl NameParser {
    /// Reads the names of rules, and no others.
    pub(crate) fn rule() -> NameParser {
        NameParser {
            names: || rules::all().iter().map(|rule| rule.id).collect(),
            parse: parse_rule,
        }
    }

    /// Reads the names of built-in paths, and of files.
    pub(crate) fn path() -> NameParser {
        NameParser {
            names: || paths::builtin_texts().map(|(name, _)| name).collect(),
            parse: |name| Ok(name.to_owned()),
        }
    }
}

impl TypedValueParser for NameParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        self.parse.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}

/// Reads the name of a rule.
fn parse_rule(id: &str) -> Result<String, String> {
    match rules::rule(id) {
        Some(rule) => Ok(rule.id.to_owned()),
        None => {
            let near = words::did_you_mean(id, rules::all().iter().map(|rule| rule.id));
            Err(format!(
                "there is no such rule{near}; 'trapline rules' lists them"
            ))
        }
    }
}

/// Parses a CPU list as the kernel's files have it. None at all is no filter.
pub(crate) fn cpus(text: &str) -> Result<CpuSet, String> {
    match text.parse::<CpuSet>() {
        Ok(set) if set.is_empty() => Err("expected a list of CPUs such as 0-3,8".to_owned()),
        Ok(set) => Ok(set),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads a share: from 0 to 1, or per cent with their sign.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse().map(|one: f64| one / 100.0),
        None => text.parse(),
    };
    match share {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1, or per cent such as 5%".to_owned()),
    }
}

/// Reads a size: bytes, or with K, M, G or T behind them 1024 of them, and so on.
pub(crate) fn size(text: &str) -> Result<u64, String> {
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
pub(crate) fn duration(text: &str) -> Result<u64, String> {
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

/// Parses a duration that has to have its unit: who leaves it out means seconds or milliseconds, hardly ever
/// nanoseconds.
pub(crate) fn with_unit(text: &str) -> Result<u64, String> {
    let number = text.trim();
    match number.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
        true => Err(format!(
            "'{number}' has no unit; expected a number and ns, us, ms or s"
        )),
        false => duration(text),
    }
}

/// Parses `FROM,TO`, either of which may be empty.
pub(crate) fn time(text: &str) -> Result<TimeRange, TimeError> {
    text.parse()
}

/// Parses seconds, with a fraction or with a unit.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let unit = text.trim_end().ends_with(|c: char| c.is_ascii_alphabetic());
    let given = if unit {
        text.to_owned()
    } else {
        format!("{text}s")
    };
    match duration(&given) {
        Ok(0) => Err("expected more than no time at all".to_owned()),
        Ok(ns) => Ok(Duration::from_nanos(ns)),
        Err(_) => Err(format!(
            "'{text}' is no time; expected seconds, such as 10 or 0.5"
        )),
    }
}

/// Parses a size that is more than nothing.
pub(crate) fn some_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("expected more than nothing".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Parses `NAME=VALUE`, which goes into a store.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    let plain = |text: &str| !text.is_empty() && !text.contains([',', '=']);
    match text.split_once('=') {
        Some((name, value)) if plain(name) && plain(value) => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("a label is NAME=VALUE, without commas".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_the_kernels() {
        let set = cpus("0-3,8").unwrap();
        assert!(set.contains(2) && set.contains(8) && !set.contains(5) && !set.has(-1));
        assert!(cpus("3-1").is_err() && cpus("x").is_err() && cpus("99999999").is_err());
    }

    #[test]
    fn sizes_are_read_in_powers_of_1024() {
        assert_eq!(size("500M"), Ok(500 << 20));
        assert_eq!(size("64GiB"), Ok(64 << 30));
        assert_eq!(size("4096"), Ok(4096));
        for bad in ["", "G", "-1", "1.5G", "1X", "99999999T"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
