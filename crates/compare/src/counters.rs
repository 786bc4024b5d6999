//! What `perf stat`, `kvm_stat` and others counted, or `trapline record --counters`, for each unit of work: a host that
//! does more counts more of everything, and is not worse for it.
//!
//! What an event is divided by first is what makes it comparable: a miss by references, instructions by cycles, exits
//! of one reason by all exits; else by seconds that were counted; else by packets, I/Os, exits or switches. Without any
//! of them counts stand as they are, and no side is worse.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{Picture, counter_bases, counts_exits, counts_switches};

use crate::basis::Basis;
use crate::chance;
use crate::change::{ChangeUnit, PerWork, SideAmount, SideChange, SideName};
use crate::side::{Pair, WORK, WorkUnits, push};
use words::{change, large, number, share};

/// Cycles that are one unit: a switch takes some thousand.
const CYCLES: f64 = 1e6;
/// What that unit is called.
const MILLION_CYCLES: &str = "million cycles";

/// What a unit of work is called that somebody asked for: by its event's own name.
const REQUEST: &str = "";

/// What an exit is called as a unit.
const EXIT: &str = "exit";

/// How counters of recordings are called.
const RECORDED: &str = "trapline record --counters";

/// What one picture counted.
#[derive(Debug, Default)]
struct CountedRun {
    counts: BTreeMap<String, f64>,
    /// For each second, by its printer.
    rates: BTreeMap<String, f64>,
    seconds: Option<f64>,
}

impl CountedRun {
    fn of(picture: &Picture) -> CountedRun {
        let sums = |list: &[(String, u64)]| {
            let mut out: BTreeMap<String, f64> = BTreeMap::new();
            for (event, count) in list {
                *out.entry(event.clone()).or_default() += *count as f64;
            }
            out
        };
        let (counts, ns) = match picture.counts.is_empty() {
            true => (sums(&picture.counters.counts()), picture.span_ns),
            // perf stat says how long it counted, but people do not paste all of it.
            false => (sums(&picture.counts), picture.counted_ns),
        };
        CountedRun {
            counts,
            rates: sums(&picture.rates),
            seconds: ns.filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e9),
        }
    }

    /// Returns a count and what it is divided by.
    fn divided(&self, event: &str, divisor: &Divisor) -> Option<(f64, f64)> {
        let count = *self.counts.get(event)?;
        let of = |name: &String| self.counts.get(name).copied().filter(|count| *count > 0.0);
        Some(match divisor {
            Divisor::Nothing => (count, 1.0),
            Divisor::Second => match self.rates.get(event) {
                Some(rate) => (*rate, 1.0),
                None => (count, self.seconds?),
            },
            Divisor::Whole(name) | Divisor::Work(name, _) => (count, of(name)?),
            Divisor::Cycles(name) => (count, of(name)? / CYCLES),
            // Its rate is of a side, and not of a run.
            Divisor::Scored(_) => return None,
        })
    }
}

/// What a count is divided by.
#[derive(Debug, Clone, PartialEq)]
enum Divisor {
    /// The counter of what it is a part of.
    Whole(String),
    /// Seconds that were counted.
    Second,
    /// A counter of work, and what one is called.
    Work(String, &'static str),
    /// A counter of cycles, in millions.
    Cycles(String),
    /// Work of a benchmark, by what it did in each second.
    Scored(String),
    /// Nothing: there is no unit of work.
    Nothing,
}

impl Divisor {
    /// Returns the unit of what is divided by it.
    fn unit(&self, event: &str) -> ChangeUnit {
        match self {
            Divisor::Whole(_) if is_share(event) => ChangeUnit::Share,
            Divisor::Second => ChangeUnit::PerSecond,
            Divisor::Nothing => ChangeUnit::Count,
            _ => ChangeUnit::Ratio,
        }
    }

    /// Whether counts are compared by it. Cycles and switches are what was done as well as what it cost: what is
    /// divided by them stands beside counts.
    fn leads(&self) -> bool {
        match self {
            Divisor::Whole(_) | Divisor::Second => true,
            Divisor::Work(_, one) => matches!(*one, REQUEST | EXIT),
            Divisor::Cycles(_) | Divisor::Scored(_) | Divisor::Nothing => false,
        }
    }

    /// Returns what one is called.
    fn one(&self) -> &str {
        match self {
            Divisor::Whole(name) => name,
            Divisor::Second => "second counted",
            Divisor::Work(_, one) if *one != REQUEST => one,
            Divisor::Work(name, _) => name,
            Divisor::Cycles(_) => MILLION_CYCLES,
            Divisor::Scored(one) => one,
            Divisor::Nothing => "",
        }
    }

    /// Returns both values in words: `4.44 % to 8.15 % of cache-references`.
    fn words(&self, event: &str, [a, b]: [f64; 2]) -> String {
        let percent = |value: f64| share::rough_to_hundredths(value);
        match self {
            Divisor::Whole(name) if is_share(event) => {
                let whole = if counts_exits(name) {
                    "all exits"
                } else {
                    name
                };
                format!("{} to {} of {whole}", percent(a), percent(b))
            }
            Divisor::Second => format!("{} to {} in a second", large(a), large(b)),
            Divisor::Nothing => format!("{} to {} as counted", large(a), large(b)),
            other => format!("{} to {} for each {}", number(a), number(b), other.one()),
        }
    }
}

/// Whether what is divided by its whole is a part of it. Instructions are none of cycles.
fn is_share(event: &str) -> bool {
    !event.contains("instructions")
}

/// What was counted on both sides.
struct CountedSides {
    runs: [Vec<CountedRun>; 2],
    /// Events that all runs have.
    events: BTreeSet<String>,
    /// Of these, those that others are divided by.
    divisors: Vec<Divisor>,
}

impl CountedSides {
    fn of(basis: &Basis<'_>) -> CountedSides {
        let runs = [0, 1].map(|side: usize| -> Vec<CountedRun> {
            let each = basis.sides[side].iter();
            each.map(|picture| CountedRun::of(picture)).collect()
        });
        let mut all = runs.iter().flatten();
        let first = all.next().map(|run| run.counts.keys());
        let rest: Vec<&CountedRun> = all.collect();
        let everywhere = |event: &&String| rest.iter().all(|run| run.counts.contains_key(*event));
        let first = first.into_iter().flatten();
        let events: BTreeSet<String> = first.filter(everywhere).cloned().collect();
        // Two of a kind are enough: the one is divided by the other.
        let named = |is: &dyn Fn(&str) -> bool| -> Vec<String> {
            let found = events.iter().filter(|event| is(event));
            found.take(2).cloned().collect()
        };
        let requests = WORK
            .iter()
            .map(|name| named(&|event| event.contains(name)))
            .find(|found| !found.is_empty());
        let work = |names: Vec<String>, one| {
            let each = names.into_iter();
            each.map(move |name| Divisor::Work(name, one))
        };
        let cycles = named(&|event| matches!(event, "cycles" | "cpu-cycles"));
        let divisors = std::iter::once(Divisor::Second)
            .chain(work(requests.unwrap_or_default(), REQUEST))
            .chain(work(named(&counts_exits), EXIT))
            .chain(cycles.into_iter().map(Divisor::Cycles))
            .chain(work(named(&counts_switches), "context switch"));
        CountedSides {
            divisors: divisors.collect(),
            runs,
            events,
        }
    }

    /// Returns the values of an event on both sides, if all runs have what it is divided by.
    fn values(&self, event: &str, divisor: &Divisor) -> Option<[f64; 2]> {
        let of = |side: &[CountedRun]| -> Option<f64> {
            let (mut sum, mut by) = (0.0, 0.0);
            for run in side {
                let (count, divided) = run.divided(event, divisor)?;
                sum += count;
                by += divided;
            }
            Some(sum / by)
        };
        Some([of(&self.runs[0])?, of(&self.runs[1])?])
    }

    /// Returns what an event is divided by on both sides, what makes it comparable first.
    fn divided(&self, event: &str) -> Vec<(Divisor, [f64; 2])> {
        let bases = counter_bases(event);
        let whole = bases.iter().find(|base| self.events.contains(*base));
        let whole = whole.map(|whole| Divisor::Whole(whole.clone()));
        let own = |divisor: &&Divisor| match divisor {
            Divisor::Work(name, _) | Divisor::Cycles(name) => name == event || bases.contains(name),
            _ => false,
        };
        let others = self.divisors.iter().filter(|divisor| !own(divisor));
        let mut out: Vec<(Divisor, [f64; 2])> = Vec::new();
        for divisor in whole.into_iter().chain(others.cloned()) {
            let again = out.iter().any(|(other, _)| other.one() == divisor.one());
            if !again && let Some(values) = self.values(event, &divisor) {
                out.push((divisor, values));
            }
        }
        out
    }

    /// Returns the probability that an event differs as much by chance.
    fn chance(&self, event: &str, divisor: &Divisor) -> f64 {
        let [a, b] = [0, 1].map(|side: usize| -> Vec<chance::SampledSum> {
            let each = self.runs[side].iter();
            each.filter_map(|run| {
                let (sum, exposure) = run.divided(event, divisor)?;
                Some(chance::SampledSum {
                    sum,
                    squares: sum,
                    exposure,
                    slices: Vec::new(),
                })
            })
            .collect()
        });
        chance::rates(&a, &b)
    }
}

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<SideChange>, notes: &mut Vec<String>) {
    let amount = |picture: &Picture| {
        let counted = !picture.counts.is_empty() || !picture.counters.rows.is_empty();
        counted.then_some(1)
    };
    let Ok(basis) = Basis::of(pair.sides, &amount) else {
        return;
    };
    let sides = CountedSides::of(&basis);
    let mut printers: Vec<&str> = Vec::new();
    for picture in basis.sides.iter().flatten() {
        let name = match picture.counts.is_empty() {
            true => RECORDED,
            false => picture.counted_by.name(),
        };
        if !printers.contains(&name) {
            printers.push(name);
        }
    }
    let before = out.len();
    let mut bare = 0;
    for event in &sides.events {
        let mut divisors = sides.divided(event);
        add_scored(&mut divisors, pair.rate.as_ref());
        if divisors.first().is_none_or(|(first, _)| !first.leads()) {
            bare += 1;
            let values = sides.values(event, &Divisor::Nothing);
            let values = values.map(|values| (Divisor::Nothing, values));
            divisors.splice(0..0, values);
        }
        let Some(((divisor, values), rest)) = divisors.split_first() else {
            continue;
        };
        let [a, b] = *values;
        let second = rest.iter().find(|(other, _)| *other == Divisor::Second);
        let second = second.map(|(other, values)| format!("; {}", other.words(event, *values)));
        push(
            out,
            SideChange {
                what: format!("counter {event}"),
                unit: divisor.unit(event),
                a: SideAmount::Number(a),
                b: SideAmount::Number(b),
                confidence: Some(1.0 - sides.chance(event, divisor)),
                worse: worse(event, &divisors),
                per_work: per_work(rest),
                text: format!(
                    "{event}: {} ({}){}.",
                    divisor.words(event, *values),
                    change(a, b),
                    second.unwrap_or_default()
                ),
                ..SideChange::default()
            },
        );
    }
    let names = printers.join(" and ");
    match out.len() - before {
        0 => {}
        all if all > bare => notes.push(format!(
            "Counts of {names} are compared for each unit of work: as a share of what they are a part of, for each \
             second that was counted, or for each exit, where that is known."
        )),
        _ => {}
    }
    if bare > 0 {
        notes.push(format!(
            "For {} of {names} no unit of work is known on both sides (no time, no whole, no requests, no exits): they \
             are given as they are, and no side is worse by them.",
            words::counted(bare as u64, "count", "counts")
        ));
    }
}

/// Adds the unit of what a benchmark did in each second, if what was counted in each second is known.
fn add_scored(divisors: &mut Vec<(Divisor, [f64; 2])>, rate: Option<&WorkUnits>) {
    let second = divisors.iter().position(|(one, _)| *one == Divisor::Second);
    if let (Some(rate), Some(at)) = (rate, second)
        && let Some((_, [a, b])) = divisors.get(at)
    {
        let values = [a / rate.a, b / rate.b];
        divisors.insert(at + 1, (Divisor::Scored(rate.of.clone()), values));
    }
}

/// Returns the values for all units but the first, those of work before time.
fn per_work(rest: &[(Divisor, [f64; 2])]) -> Vec<PerWork> {
    let (time, work): (Vec<_>, Vec<_>) = rest
        .iter()
        .partition(|(divisor, _)| *divisor == Divisor::Second);
    let each = work.into_iter().chain(time);
    each.map(|(divisor, [a, b])| PerWork {
        of: divisor.one().to_owned(),
        a: *a,
        b: *b,
    })
    .collect()
}

/// Returns the side that is worse by an event: the one that has more of it by each measure of how much was done, where
/// less is better whatever is done. Which side moves more data misses its caches more often, so misses and stalls say
/// nothing without a count of what was moved.
fn worse(event: &str, divisors: &[(Divisor, [f64; 2])]) -> Option<SideName> {
    let has = |parts: &[&str]| parts.iter().any(|part| event.contains(part));
    let overhead = has(&["fault", "switch", "migration"]);
    let of_data = has(&["miss", "stall"]);
    // Switches for each switch are none, and an exit is no work that anybody asked for.
    let request = |divisor: &Divisor| match divisor {
        Divisor::Work(_, one) => *one == REQUEST,
        other => matches!(other, Divisor::Scored(_)),
    };
    let counted = divisors.iter().any(|(divisor, _)| request(divisor));
    // What a benchmark did says how much was moved, and not how much was asked of the caches.
    let events = |(divisor, _): &(Divisor, [f64; 2])| {
        matches!(divisor, Divisor::Work(..)) && request(divisor)
    };
    let of_data = of_data && divisors.iter().any(events);
    let timed = divisors
        .iter()
        .any(|(divisor, _)| *divisor == Divisor::Second);
    if !(overhead && (timed || counted) || of_data) {
        return None;
    }
    let asked = |divisor: &Divisor| match divisor {
        Divisor::Work(..) => request(divisor),
        Divisor::Cycles(_) => !counted,
        _ => true,
    };
    let of = divisors.iter().filter(|(divisor, _)| asked(divisor));
    let mut sides = of.map(|(_, [a, b])| SideName::more(*a, *b));
    let first = sides.next()?;
    sides.all(|side| side == first).then_some(first).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(counts: &[(&str, u64)], seconds: Option<f64>) -> Picture {
        Picture {
            origin: analysis::Origin::Printed,
            counts: counts
                .iter()
                .map(|(event, count)| ((*event).to_owned(), *count))
                .collect(),
            counted_ns: seconds.map(|seconds| (seconds * 1e9) as u64),
            ..Picture::default()
        }
    }

    fn found(a: &[Picture], b: &[Picture]) -> (Vec<SideChange>, String) {
        let pair = Pair {
            sides: [a, b],
            work: Vec::new(),
            rate: None,
        };
        changes_of(&pair)
    }

    fn changes_of(pair: &Pair<'_>) -> (Vec<SideChange>, String) {
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        changes(pair, &mut out, &mut notes);
        (out, notes.join(" "))
    }

    #[track_caller]
    fn of<'c>(changes: &'c [SideChange], event: &str) -> &'c SideChange {
        let what = format!("counter {event}");
        let change = changes.iter().find(|change| change.what == what);
        change.unwrap_or_else(|| panic!("no {event} in {changes:#?}"))
    }

    /// The fifth investigation's hosts: the good one moves more data, and has more of everything but switches.
    fn hosts() -> [[Picture; 1]; 2] {
        let slow = [
            ("cache-references", 2_507_215_365),
            ("cache-misses", 111_415_469),
            ("cycles", 67_086_874_844),
            ("context-switches", 795_370),
        ];
        let good = [
            ("cache-references", 8_643_300_648),
            ("cache-misses", 704_501_629),
            ("cycles", 88_676_115_363),
            ("context-switches", 31_310),
        ];
        [
            [counted(&slow, Some(10.047))],
            [counted(&good, Some(10.050))],
        ]
    }

    #[test]
    fn a_host_that_does_more_is_not_worse_for_it() {
        let [slow, good] = hosts();
        let (changes, notes) = found(&slow, &good);
        let misses = of(&changes, "cache-misses");
        assert_eq!((misses.unit, misses.worse), (ChangeUnit::Share, None));
        assert!(
            misses.text.contains("4.44 % to 8.15 % of cache-references"),
            "{}",
            misses.text
        );
        let switches = of(&changes, "context-switches");
        assert_eq!(switches.unit, ChangeUnit::PerSecond);
        assert_eq!(switches.worse, Some(SideName::A));
        assert!(switches.text.contains("in a second"), "{}", switches.text);
        for event in ["cache-references", "cycles"] {
            assert_eq!(of(&changes, event).worse, None, "{event}");
        }
        assert!(!notes.contains("no unit of work"), "{notes}");
    }

    #[test]
    fn counts_without_a_unit_of_work_make_no_side_worse() {
        let [[slow], [good]] = hosts();
        let untimed = |picture: Picture| Picture {
            counted_ns: None,
            ..picture
        };
        // One side alone is enough: what the other counted in how long is no rate of this one.
        for (a, b) in [
            (slow.clone(), untimed(good.clone())),
            (untimed(slow), untimed(good)),
        ] {
            let (changes, notes) = found(&[a], &[b]);
            assert!(changes.iter().all(|change| change.worse.is_none()));
            let switches = of(&changes, "context-switches");
            assert_eq!(switches.unit, ChangeUnit::Count);
            assert!(switches.text.contains("as counted"), "{}", switches.text);
            assert_eq!(of(&changes, "cache-misses").unit, ChangeUnit::Share);
            assert!(notes.contains("For 3 counts"), "{notes}");
        }
    }

    #[test]
    fn work_that_was_counted_decides_what_is_worse() {
        // Twice the packets with twice the switches, and as many misses for each packet.
        let one = [
            ("context-switches", 1000),
            ("net:net_dev_xmit", 10_000),
            ("cache-misses", 50_000),
        ];
        let two = one.map(|(event, count)| (event, 2 * count));
        let (changes, _) = found(&[counted(&one, Some(1.0))], &[counted(&two, Some(1.0))]);
        let switches = of(&changes, "context-switches");
        assert_eq!(
            (switches.unit, switches.worse),
            (ChangeUnit::PerSecond, None)
        );
        assert_eq!(switches.per_work[0].of, "net:net_dev_xmit");
        assert_eq!(switches.per_work[0].a, switches.per_work[0].b);
        assert_eq!(of(&changes, "cache-misses").worse, None);
        // As many packets, and more misses: they are worse then.
        let mut more = one;
        more[2].1 *= 3;
        let (changes, _) = found(&[counted(&one, Some(1.0))], &[counted(&more, Some(1.0))]);
        assert_eq!(of(&changes, "cache-misses").worse, Some(SideName::B));
        // More cycles than switches came with them: not for each cycle.
        let cycles = |switches, cycles| {
            let counts = [("context-switches", switches), ("cycles", cycles)];
            [counted(&counts, Some(1.0))]
        };
        let (changes, _) = found(&cycles(1000, 1_000_000), &cycles(2000, 9_000_000));
        assert_eq!(of(&changes, "context-switches").worse, None);
    }

    #[test]
    fn work_of_a_benchmark_is_a_unit_and_no_verdict_on_caches() {
        let [slow, good] = hosts();
        let pair = Pair {
            sides: [&slow, &good],
            work: Vec::new(),
            rate: Some(WorkUnits {
                of: "Gbit of iperf".to_owned(),
                a: 2.0,
                b: 8.0,
            }),
        };
        let (changes, _) = changes_of(&pair);
        let misses = of(&changes, "cache-misses");
        let scored = &misses.per_work[0];
        assert_eq!((scored.of.as_str(), misses.worse), ("Gbit of iperf", None));
        assert!(scored.b > scored.a, "{scored:?}");
        assert_eq!(of(&changes, "context-switches").worse, Some(SideName::A));
    }

    #[test]
    fn instructions_are_for_each_cycle_and_reasons_of_all_exits() {
        let run = |instructions| {
            let counts = [("instructions:u", instructions), ("cycles:u", 1000)];
            [counted(&counts, None)]
        };
        let (changes, _) = found(&run(1200), &run(600));
        let change = of(&changes, "instructions:u");
        assert_eq!((change.unit, change.worse), (ChangeUnit::Ratio, None));
        assert!(
            change.text.contains("1.20 to 0.60 for each cycles:u"),
            "{}",
            change.text
        );
        let exits = |halts, all| {
            let counts = [
                ("kvm_exit(HLT)", halts),
                ("kvm:kvm_exit", all),
                ("kvm:kvm_msr", 50),
            ];
            [counted(&counts, None)]
        };
        let (changes, _) = found(&exits(10, 100), &exits(200, 1000));
        let halts = of(&changes, "kvm_exit(HLT)");
        assert!(
            halts.text.contains("10.00 % to 20.00 % of all exits"),
            "{}",
            halts.text
        );
        let msr = of(&changes, "kvm:kvm_msr");
        assert_eq!(msr.unit, ChangeUnit::Ratio);
        assert!(
            msr.text.contains("0.50 to 0.05 for each exit"),
            "{}",
            msr.text
        );
    }

    #[test]
    fn rates_of_the_printer_are_its_seconds() {
        let run = |total, rate| {
            let mut picture = counted(&[("kvm:kvm_exit", total)], None);
            picture.rates = vec![("kvm:kvm_exit".to_owned(), rate)];
            [picture]
        };
        // One host is up for longer: its total is larger, and it exits less.
        let (changes, _) = found(&run(9_000_000, 100), &run(1000, 500));
        let exits = of(&changes, "kvm:kvm_exit");
        assert_eq!(
            (exits.unit, &exits.b),
            (ChangeUnit::PerSecond, &SideAmount::Number(500.0))
        );
    }
}
