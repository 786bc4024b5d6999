//! Counts of `perf stat` in the layout for people (`tools/perf/util/stat-display.c`).

use forms::InputForm;

use crate::kvm::error_of;
use crate::number::{decimal, scaled, share, words};
use crate::types::{Count, Metric, StatCount};
use pasted::is_group_blank;

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "perf stat",
    recognised_by: "`Performance counter stats for`, the heading of `-I`, or counts of perf's events",
    yields: "counts, what perf computes of them, the time elapsed",
    fixtures: &[
        "tests/tables/case5-perf-stat.txt",
        "tests/tables/perf-stat-interval.txt",
    ],
};

/// The first line of a block.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StatHeading {
    pub target: Option<String>,
    pub runs: Option<u64>,
    /// What stands before it on its line, `thunderx2-04:`: whoever pasted counts of several hosts wrote it there.
    pub label: Option<String>,
}

/// Reads `Performance counter stats for 'system wide' (5 runs):`, or the heading of `perf stat -I`.
pub(crate) fn header(text: &str) -> Option<StatHeading> {
    if text.contains('"') {
        return None;
    }
    if text.starts_with('#')
        && text.contains("time")
        && text.contains("counts")
        && text.contains("events")
    {
        return Some(StatHeading::default());
    }
    let (before, rest) = text.split_once("Performance counter stats for")?;
    let label = before.trim().strip_suffix(':').map(str::trim);
    let label = label.filter(|label| !label.is_empty()).map(str::to_owned);
    let rest = rest.trim().trim_end_matches(':').trim_end();
    let (target, runs) = match rest
        .strip_suffix("runs)")
        .and_then(|rest| rest.rsplit_once('('))
    {
        Some((target, runs)) => (target, runs.trim().parse().ok()),
        None => (rest, None),
    };
    let target = target.replace('\'', "");
    Some(StatHeading {
        target: Some(target.trim().to_owned()),
        runs,
        label,
    })
}

/// A line of times below the counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Seconds {
    Elapsed { ns: u64, error: Option<f64> },
    User(u64),
    Sys(u64),
}

/// Reads `10.047327675 seconds time elapsed`, with `+-` and error of `-r`, and the times below.
pub(crate) fn seconds(text: &str) -> Option<Seconds> {
    let (before, what) = text.split_once("seconds")?;
    let number = before.split_whitespace().next()?;
    let ns = scaled(number, 9)?.ns;
    let what = what.trim();
    if what.starts_with("time elapsed") {
        let error = error_of(what).map(|(_, error)| error);
        return Some(Seconds::Elapsed { ns, error });
    }
    match what.split_whitespace().next()? {
        "user" => Some(Seconds::User(ns)),
        "sys" => Some(Seconds::Sys(ns)),
        _ => None,
    }
}

/// Reads a line with metrics alone, which belong to the count above.
pub(crate) fn metrics_alone(text: &str) -> Option<Vec<Metric>> {
    let indent = text.len() - text.trim_start().len();
    if indent < 8 || !text.trim_start().starts_with('#') {
        return None;
    }
    let metrics = metrics(&text.trim_start()[1..]);
    (!metrics.is_empty()).then_some(metrics)
}

/// Reads a line with the error, the share of time or both, broken off the line above.
pub(crate) fn tail(text: &str) -> Option<(Option<f64>, Option<f64>)> {
    if !text.trim_start().starts_with(['(', '[']) {
        return None;
    }
    let (rest, running) = running_of(text);
    let (rest, error) = match error_of(rest) {
        Some((rest, error)) => (rest, Some(error)),
        None => (rest, None),
    };
    (rest.trim().is_empty() && (error.is_some() || running.is_some())).then_some((error, running))
}

/// Reads a line with one count.
pub(crate) fn row(text: &str, line: u64) -> Option<Count> {
    if text.contains('|') || text.contains('"') {
        return None;
    }
    let text = grouped(text);
    let (left, right) = match text.split_once('#') {
        Some((left, right)) => (left, Some(right)),
        None => (text.as_str(), None),
    };
    // Behind the metrics, or behind the count, stand the error and the share of time.
    let (tail, running) = running_of(right.unwrap_or(left));
    let (tail, error) = match error_of(tail) {
        Some((tail, error)) => (tail, Some(error)),
        None => (tail, None),
    };
    let (left, metrics) = match right {
        Some(_) => (left, metrics(tail)),
        None => (tail, Vec::new()),
    };
    let words: Vec<&str> = joined_words(left);
    let at = (0..words.len()).find(|at| {
        let next = words.get(at + 1);
        value(words[*at]).is_some() && next.is_some_and(|next| value(next).is_none())
    })?;
    let (at_ns, mut of) = prefix(&words[..at])?;
    let (unit, event, group) = named(words.get(at + 1..)?)?;
    if let Some(group) = group {
        of = Some(of.map_or(group.to_owned(), |of| format!("{of} {group}")));
    }
    Some(Count {
        line,
        at_ns,
        of,
        event: event.to_owned(),
        value: value(words[at])?,
        unit: unit.map(str::to_owned),
        metrics,
        error,
        running,
    })
}

/// Returns the words of a line, `<not counted>` being one.
fn joined_words(text: &str) -> Vec<&str> {
    let words = words(text);
    let mut out = Vec::with_capacity(words.len());
    let mut skip = false;
    for (i, (at, word)) in words.iter().enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        match words.get(i + 1) {
            Some((next_at, next)) if *word == "<not" && next.ends_with('>') => {
                out.push(&text[*at..next_at + next.len()]);
                skip = true;
            }
            _ => out.push(*word),
        }
    }
    out
}

/// Splits `(83.33%)`, in old versions `[83.33%]`, off the end of a line.
fn running_of(text: &str) -> (&str, Option<f64>) {
    let text = text.trim_end();
    let split = || {
        let inner = text.strip_suffix(')').or(text.strip_suffix(']'))?;
        let at = inner.rfind(['(', '['])?;
        Some((&text[..at], share(inner[at + 1..].trim())?))
    };
    match split() {
        Some((left, running)) => (left.trim_end(), Some(running)),
        None => (text, None),
    }
}

/// Metrics that are kept of a count.
pub(crate) const MAX_METRICS: usize = 64;

/// Reads `4.444 % of all cache refs`, several of them divided by `#`.
fn metrics(text: &str) -> Vec<Metric> {
    let metric = |text: &str| {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')?;
        Some(Metric {
            value: decimal(&text[..end])?,
            unit: text[end..].split_whitespace().collect::<Vec<_>>().join(" "),
        })
    };
    text.split('#')
        .filter_map(metric)
        .take(MAX_METRICS)
        .collect()
}

/// Reads what stands before a count: nothing, the time of `-I`, what `-A` and `--per-*` count apart.
fn prefix(words: &[&str]) -> Option<(Option<u64>, Option<String>)> {
    let is_time = |word: &str| {
        let fraction = word.rsplit_once(['.', ',']).map(|(_, fraction)| fraction);
        fraction.is_some_and(|fraction| fraction.len() == 9)
    };
    let (at_ns, words) = match words {
        [time, rest @ ..] if is_time(time) => (Some(scaled(time, 9)?.ns), rest),
        words => (None, words),
    };
    match words {
        [] => Some((at_ns, None)),
        // The number of counters added up.
        [of, number] if is_part(of) && number.parse::<u32>().is_ok() => {
            Some((at_ns, Some((*of).to_owned())))
        }
        [of] if is_part(of) => Some((at_ns, Some((*of).to_owned()))),
        // A thread's name may have several words.
        [.., last] if words.len() <= 4 && is_thread(last) => Some((at_ns, Some(words.join(" ")))),
        _ => None,
    }
}

/// Returns whether a word is `CPU0`, `S0`, `S0-D0-C1`, `N1` and the like.
pub(crate) fn is_part(word: &str) -> bool {
    word.split('-').all(|part| {
        let digits = part.trim_start_matches(|c: char| c.is_ascii_uppercase());
        digits.len() < part.len() && part.len() - digits.len() <= 5 && digits.parse::<u32>().is_ok()
    })
}

/// Returns whether a word ends a thread: `qemu-kvm-1234`.
pub(crate) fn is_thread(word: &str) -> bool {
    let id = word.rsplit_once('-').filter(|(comm, _)| !comm.is_empty());
    id.is_some_and(|(_, id)| id.parse::<u32>().is_ok())
}

/// Units that perf and its lists of events print behind a count.
const UNITS: [&str; 14] = [
    "msec", "nsec", "ns", "Joules", "Watts", "Bytes", "B", "KB", "MB", "GB", "KiB", "MiB", "GiB",
    "C",
];

/// Separates unit, event and control group.
fn named<'a>(words: &[&'a str]) -> Option<(Option<&'a str>, &'a str, Option<&'a str>)> {
    let (unit, words) = match words {
        [unit, rest @ ..] if UNITS.contains(unit) && !rest.is_empty() => (Some(*unit), rest),
        words => (None, words),
    };
    let (event, rest) = words.split_first()?;
    if !is_event(event) {
        return None;
    }
    match rest {
        [] => Some((unit, event, None)),
        // Up to 4.15 the unit of task-clock is a part of its name.
        ["(msec)"] => Some((Some("msec"), event, None)),
        [group] if !group.starts_with('(') => Some((unit, event, Some(group))),
        _ => None,
    }
}

/// Returns whether a word may name an event.
pub(crate) fn is_event(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '{')
        && word.len() <= 256
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-:/.=,@*{}[]~+!<>".contains(c))
        && !word.ends_with([',', '.', ':'])
}

/// Hardware and software events that perf counts under these names, without modifiers.
const KNOWN: [&str; 34] = [
    "cycles",
    "cpu-cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-instructions",
    "branch-misses",
    "bus-cycles",
    "ref-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "cpu-clock",
    "task-clock",
    "context-switches",
    "cs",
    "cpu-migrations",
    "migrations",
    "CPU-migrations",
    "page-faults",
    "faults",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "cgroup-switches",
    "duration_time",
    "slots",
    "LLC-loads",
    "LLC-load-misses",
    "LLC-stores",
    "LLC-store-misses",
    "L1-dcache-loads",
    "L1-dcache-load-misses",
];

/// Returns whether an event is one that perf alone counts under that name.
pub(crate) fn is_known(event: &str) -> bool {
    let name = event.split(':').next().unwrap_or(event);
    let name = name
        .strip_prefix("cpu_core/")
        .or(name.strip_prefix("cpu_atom/"))
        .unwrap_or(name);
    let name = name.trim_end_matches('/');
    KNOWN.contains(&name)
        || ["dTLB-", "iTLB-", "L1-", "LLC-", "node-"]
            .iter()
            .any(|start| name.starts_with(start))
}

/// Reads a count: `2,507,215,365`, `2.507.215.365`, `2'507'215`, `1,234.56`, `<not counted>`.
pub(crate) fn value(word: &str) -> Option<StatCount> {
    match word {
        "<not counted>" => return Some(StatCount::NotCounted),
        "<not supported>" => return Some(StatCount::NotSupported),
        _ => {}
    }
    let digits = |c: char| c.is_ascii_digit();
    if !word.starts_with(digits) || !word.ends_with(digits) {
        return None;
    }
    let signs: Vec<char> = word.chars().filter(|c| !digits(*c)).collect();
    if !signs.iter().all(|c| ".,'\u{2019}".contains(*c)) {
        return None;
    }
    let parts: Vec<&str> = word.split(|c: char| !digits(c)).collect();
    let all_same = signs.iter().all(|sign| *sign == signs[0]);
    if signs.is_empty() || (all_same && are_groups(&parts)) {
        return Some(StatCount::Count(parts.concat().parse().ok()?));
    }
    // The last sign is the decimal one; those before stand between groups.
    let (fraction, whole) = parts.split_last()?;
    let (point, before) = signs.split_last()?;
    let groups = before.is_empty()
        || (before
            .iter()
            .all(|sign| sign == &before[0] && sign != point)
            && are_groups(whole));
    if !groups || !".,".contains(*point) {
        return None;
    }
    Some(StatCount::Amount(
        format!("{}.{fraction}", whole.concat()).parse().ok()?,
    ))
}

/// Returns whether digits are grouped as a language does: by three, or as in India by two and a last three.
fn are_groups(parts: &[&str]) -> bool {
    let [first, middle @ .., last] = parts else {
        return false;
    };
    let threes = middle.iter().all(|part| part.len() == 3);
    let twos = first.len() <= 2 && middle.iter().all(|part| part.len() == 2);
    (1..=3).contains(&first.len()) && *first != "0" && last.len() == 3 && (threes || twos)
}

/// Returns the text with an apostrophe for each blank between groups of digits: blanks that do not break
/// anywhere, single plain blanks in the first number of the line.
fn grouped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut first = true;
    let mut rest = text;
    while let Some(from) = rest.find(|c: char| c.is_ascii_digit()) {
        let before = &rest[..from];
        first &= before.chars().all(char::is_whitespace);
        let starts = before.is_empty() || before.ends_with(char::is_whitespace);
        out.push_str(before);
        rest = &rest[from..];
        let mut len = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        out.push_str(&rest[..len]);
        let mut groups = starts && len <= 3;
        while groups {
            let after = &rest[len..];
            let blank = after.chars().next();
            let blank = blank.filter(|c| is_group_blank(*c) || (first && *c == ' '));
            let Some(blank) = blank else { break };
            let group = &after[blank.len_utf8()..];
            let digits = group
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(group.len());
            groups = digits == 3 && !group[digits..].starts_with(['.', ',', '%']);
            if groups {
                out.push('\'');
                out.push_str(&group[..3]);
                len += blank.len_utf8() + 3;
            }
        }
        rest = &rest[len..];
        first = false;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_the_languages_of_the_world() {
        let count = |text: &str| match value(text) {
            Some(StatCount::Count(count)) => count,
            other => panic!("{text}: {other:?}"),
        };
        for text in [
            "2507215365",
            "2,507,215,365",
            "2.507.215.365",
            "2'507'215'365",
            "2,50,72,15,365",
        ] {
            assert_eq!(count(text), 2_507_215_365);
        }
        assert_eq!(count("1,234"), 1234);
        for (text, amount) in [
            ("1,234.56", 1234.56),
            ("1.234,56", 1234.56),
            ("0,123", 0.123),
            ("1708.761321", 1708.761321),
        ] {
            assert_eq!(value(text), Some(StatCount::Amount(amount)));
        }
        for text in ["", "1,", ",1", "1,2,3", "1.2.3", "1'5", "12a", "1,2345,678"] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[track_caller]
    fn read(text: &str) -> Count {
        row(text, 1).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn rows_in_all_layouts() {
        let row = read(
            "       111,415,469      cache-misses              #    4.444 % of all cache refs      ( +-  0.50% )  \
             (83.33%)",
        );
        assert_eq!(
            (row.event.as_str(), row.value),
            ("cache-misses", StatCount::Count(111_415_469))
        );
        assert_eq!((row.error, row.running), (Some(0.005), Some(83.33 / 100.0)));
        let metric = Metric {
            value: 4.444,
            unit: "% of all cache refs".to_owned(),
        };
        assert_eq!(row.metrics, [metric]);

        let row = read(
            "     5,205,202,243 cycles                    #    3.046 GHz                     [66.60%]",
        );
        assert_eq!(
            (row.running, row.metrics[0].unit.as_str()),
            (Some(66.60 / 100.0), "GHz")
        );
        let row = read("  1,600,790 stalled-cycles-backend   #   30.75% backend  cycles idle");
        assert_eq!(row.metrics[0].unit, "% backend cycles idle");

        let row =
            read("          1,004.53 msec task-clock                #    0.999 CPUs utilized");
        assert_eq!(
            (row.value, row.unit.as_deref()),
            (StatCount::Amount(1004.53), Some("msec"))
        );
        let row =
            read("       1708.761321      task-clock (msec)         #   11.037 CPUs utilized");
        assert_eq!(
            (row.event.as_str(), row.unit.as_deref()),
            ("task-clock", Some("msec"))
        );

        let row = read(
            "   <not supported>      LLC-loads                                                     (0.00%)",
        );
        assert_eq!(
            (row.value, row.running),
            (StatCount::NotSupported, Some(0.0))
        );
        assert_eq!(read("     <not counted>      cycles:u").event, "cycles:u");

        let row = read("     1.000108930          2,507,215      kvm:kvm_exit");
        assert_eq!(
            (row.at_ns, row.event.as_str()),
            (Some(1_000_108_930), "kvm:kvm_exit")
        );
        assert_eq!(
            read("CPU12          2,507,215      cycles").of.as_deref(),
            Some("CPU12")
        );
        assert_eq!(
            read("S0-D0-C1           2          2,507,215      cycles")
                .of
                .as_deref(),
            Some("S0-D0-C1")
        );
        assert_eq!(
            read("   CPU 0/KVM-1234     2,507,215      cycles")
                .of
                .as_deref(),
            Some("CPU 0/KVM-1234")
        );
        assert_eq!(
            read("   2,507,215      cycles      machine.slice")
                .of
                .as_deref(),
            Some("machine.slice")
        );
    }

    #[test]
    fn blanks_between_groups_of_digits() {
        for text in [
            "     2\u{202f}507\u{202f}215      cycles",
            "     2\u{a0}507\u{a0}215      cycles",
            "     2 507 215      cycles",
        ] {
            assert_eq!(read(text).value, StatCount::Count(2_507_215), "{text}");
        }
        assert_eq!(
            read("     1.000108930   2\u{a0}507      cycles").value,
            StatCount::Count(2507)
        );
    }

    #[test]
    fn what_is_no_row_is_none() {
        for text in [
            "",
            "cycles",
            "12 of the guests were slow, 3 were not",
            "12 guests.",
            "  kvm-1234 [001] 844.831936: kvm_exit: vcpu 1 reason io",
            "host 12 cycles",
            "12 13",
        ] {
            assert_eq!(row(text, 1), None, "{text}");
        }
    }

    #[test]
    fn times_and_headings() {
        let elapsed = |text: &str| match seconds(text) {
            Some(Seconds::Elapsed { ns, error }) => (ns, error),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(
            elapsed("      10.047327675 seconds time elapsed"),
            (10_047_327_675, None)
        );
        assert_eq!(
            elapsed("10,047327675 seconds time elapsed"),
            (10_047_327_675, None)
        );
        assert_eq!(
            elapsed("            0.1042 +- 0.0012 seconds time elapsed  ( +-  1.15% )"),
            (104_200_000, Some(1.15 / 100.0))
        );
        assert_eq!(
            seconds("  0.5 seconds user"),
            Some(Seconds::User(500_000_000))
        );
        assert_eq!(seconds("wait 5 seconds please"), None);

        let read = |text: &str| header(text).map(|h| (h.target.unwrap_or_default(), h.runs));
        let wide = Some(("system wide".to_owned(), None));
        assert_eq!(read("Performance counter stats for 'system wide':"), wide);
        let process = Some(("process id 12".to_owned(), Some(5)));
        assert_eq!(
            read("Performance counter stats for process id '12' (5 runs):"),
            process
        );
        assert_eq!(
            read("#           time             counts unit events"),
            Some((String::new(), None))
        );
        assert_eq!(read("printf(\"Performance counter stats for\")"), None);
    }
}
