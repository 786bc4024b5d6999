//! Counts of `perf stat -x`: fields separated by a sign that its user chose.

use forms::InputForm;

use crate::number::{count, decimal, share};
use crate::stat::{self, MAX_METRICS};
use crate::types::{Count, Metric, StatCount};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "perf stat -x",
    recognised_by: "a count, a unit, an event, a time and a share with one sign between them",
    yields: "counts, as of `perf stat`",
    fixtures: &["tests/tables/perf-stat-x.txt"],
};

/// Signs that are tried.
const SEPARATORS: [char; 4] = [',', ';', '\t', '|'];

/// Reads a line. Its fields are: what is counted apart, the count, its unit, the event, with `-r` the error, the
/// time the counter ran in ns and its share, metrics with their units.
pub(crate) fn row(text: &str, line: u64) -> Option<Count> {
    SEPARATORS
        .iter()
        .find_map(|separator| separated(text, *separator, line))
}

fn separated(text: &str, separator: char, line: u64) -> Option<Count> {
    if text.matches(separator).take(4).count() < 4 {
        return None;
    }
    let fields: Vec<&str> = text.split(separator).map(str::trim).collect();
    (0..=3).find_map(|at| fields_at(&fields, at, separator, line))
}

/// Reads the fields if their number is the expected one.
fn fields_at(fields: &[&str], at: usize, separator: char, line: u64) -> Option<Count> {
    let value = number(fields.get(at)?)?;
    let unit = *fields.get(at + 1)?;
    if unit.starts_with(|c: char| c.is_ascii_digit()) || unit.len() > 32 {
        return None;
    }
    // Names of events may hold commas: the time and its share end them.
    let runs = (at + 3..at + 12).find(|i| {
        let share = fields.get(i + 1).and_then(|field| decimal(field));
        fields.get(*i).is_some_and(|field| count(field).is_some())
            && share.is_some_and(|share| share < 100.5)
    })?;
    let mut names = fields.get(at + 2..runs)?;
    let mut error = None;
    if let [before @ .., last] = names
        && let Some(last) = share(last)
    {
        error = Some(last);
        names = before;
    }
    let event = names.join(&separator.to_string());
    if !stat::is_event(&event) {
        return None;
    }
    let (at_ns, of) = prefix(&fields[..at])?;
    let running = decimal(fields.get(runs + 1)?).map(|share| share / 100.0);
    let metrics = fields.get(runs + 2..)?.chunks_exact(2).filter_map(|pair| {
        Some(Metric {
            value: decimal(pair[0])?,
            unit: pair[1].to_owned(),
        })
    });
    Some(Count {
        line,
        at_ns,
        of,
        event,
        value,
        unit: (!unit.is_empty()).then(|| unit.to_owned()),
        metrics: metrics.take(MAX_METRICS).collect(),
        error,
        // It always stands there.
        running: running.filter(|share| *share < 1.0),
    })
}

/// Reads a count, which has no signs between groups of digits here.
fn number(field: &str) -> Option<StatCount> {
    match (count(field), decimal(field)) {
        (Some(count), _) => Some(StatCount::Count(count)),
        (None, Some(amount)) => Some(StatCount::Amount(amount)),
        _ => stat::value(field)
            .filter(|value| matches!(value, StatCount::NotCounted | StatCount::NotSupported)),
    }
}

/// Reads the fields before the count: the time of `-I` in seconds, what is counted apart, how many are added up.
fn prefix(fields: &[&str]) -> Option<(Option<u64>, Option<String>)> {
    let (at_ns, fields) = match fields {
        [time, rest @ ..] if time.contains(['.', ',']) && decimal(time).is_some() => {
            (Some(crate::number::scaled(time, 9)?.ns), rest)
        }
        fields => (None, fields),
    };
    match fields {
        [] => Some((at_ns, None)),
        [of] | [of, _] if stat::is_part(of) || stat::is_thread(of) => {
            Some((at_ns, Some((*of).to_owned())))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(text: &str) -> Count {
        row(text, 1).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn rows_with_any_separator() {
        for text in [
            "111415469,,cache-misses,10047327675,83.33,4.444,of all cache refs",
            "111415469;;cache-misses;10047327675;83,33;4,444;of all cache refs",
            "111415469\t\tcache-misses\t10047327675\t83.33\t4.444\tof all cache refs",
            "111415469||cache-misses|10047327675|83.33|4.444|of all cache refs",
        ] {
            let row = read(text);
            assert_eq!(
                (row.event.as_str(), row.value),
                ("cache-misses", StatCount::Count(111_415_469))
            );
            assert_eq!(row.running, Some(83.33 / 100.0));
            let metric = Metric {
                value: 4.444,
                unit: "of all cache refs".to_owned(),
            };
            assert_eq!(row.metrics, [metric]);
        }
    }

    #[test]
    fn rows_of_all_options() {
        let row = read("1004.53,msec,task-clock,0.50%,1004530000,100.00,0.999,CPUs utilized");
        assert_eq!(
            (row.value, row.error, row.running),
            (StatCount::Amount(1004.53), Some(0.005), None)
        );
        let row = read("     1.000108930,CPU3,2507215,,cycles,1000000,100.00,,");
        assert_eq!(
            (row.at_ns, row.of.as_deref()),
            (Some(1_000_108_930), Some("CPU3"))
        );
        let row = read("S0-D0-C1,2,<not counted>,,cycles,0,100.00,,");
        assert_eq!(
            (row.value, row.of.as_deref()),
            (StatCount::NotCounted, Some("S0-D0-C1"))
        );
        assert_eq!(
            read("7,,cpu/event=0x3c,umask=1/,1000,100.00,,").event,
            "cpu/event=0x3c,umask=1/"
        );
        assert_eq!(
            read("CPU 0/KVM-12,7,,cycles,1000,100.00,,").of.as_deref(),
            Some("CPU 0/KVM-12")
        );
    }

    #[test]
    fn what_is_no_row_is_none() {
        for text in [
            "",
            "a,b,c,d,e,f",
            "1,2,3,4,5,6",
            "12,guests,were slow,and,3,not",
            "1,,cycles",
        ] {
            assert_eq!(row(text, 1), None, "{text}");
        }
    }
}
