//! What a benchmark found.

use results::{Bench, BenchMachine, BenchResults, BenchRow, Noise, ResultsHead};
use serde::Serialize;
use serde_json::Value;
use words::duration::{human, round, seconds};
use words::share;

use crate::quality::wrap;
use crate::schema::HasShape;
use crate::shape;
use crate::table::{Table, Unit, Views};
use crate::{Layout, json};

/// A share of its time that a thread which only reads a clock loses on a quiet CPU: interrupts take less. Beyond it the
/// CPU was not quiet.
const LOST: f64 = 0.02;
/// A time that it loses at once on a quiet CPU; a tick takes some microseconds.
const GAP_NS: u64 = 1_000_000;
/// A row whose thread waited for its CPU for a larger share of what it measured is disturbed.
const WAITED: f64 = 0.01;
/// The hypervisor took the CPUs for a larger share of the time than this.
const STOLEN: f64 = 0.01;
/// Slowest iterations below the table.
const SLOWEST: usize = 3;

/// Views of benchmarks that measure a first answer, and that have few values.
const IPI: Views = Views::own(0);
const CLOCK: Views = Views::own(1);

/// Returns the view of a benchmark on a terminal.
fn view(bench: Bench) -> Views {
    match bench {
        Bench::Ipi => IPI,
        Bench::Clock => CLOCK,
        _ => Views::TERMINAL,
    }
}

/// Columns of numbers are so wide.
const NUMBER: usize = 9;
/// Names are so wide, at least and at most.
const NAMES: std::ops::RangeInclusive<usize> = 16..=48;

/// Columns of the table, whose names are so wide.
pub(crate) fn columns<'r>(names: usize) -> Table<'r, BenchRow> {
    use Unit::{Count, Nanoseconds, Nested, Number, Text};
    let all = Views::TERMINAL | IPI | CLOCK;
    Table::new()
        .column("what", Text, |r: &BenchRow| r.what.clone())
        .left("", names)
        .views(all)
        .show(|row, _| crate::clean(&title(row)))
        .column("target", Text, |r| r.target.clone())
        .column("from", Number, |r| r.from)
        .column("to", Text, |r| r.to.clone())
        .column("count", Count, |r| r.count)
        .heading("count", NUMBER - 1)
        .views(all)
        .column("first_ns", Nanoseconds, |r| r.first_ns)
        .heading("first", NUMBER)
        .views(IPI)
        .column("min_ns", Nanoseconds, |r| r.min_ns)
        .column("mean_ns", Nanoseconds, |r| r.mean_ns)
        .heading("mean", NUMBER)
        .views(all)
        .column("p50_ns", Nanoseconds, |r| r.p50_ns)
        .heading("p50", NUMBER)
        .views(all)
        .column("p90_ns", Nanoseconds, |r| r.p90_ns)
        .heading("p90", NUMBER)
        .column("p99_ns", Nanoseconds, |r| r.p99_ns)
        .heading("p99", NUMBER)
        .views(all)
        .column("max_ns", Nanoseconds, |r| r.max_ns)
        .heading("max", NUMBER)
        .views(all)
        .column("lost", Count, |r| r.lost)
        .column("interrupts", Count, |r| r.interrupts)
        .column("took_ns", Nanoseconds, |r| r.took_ns)
        .column("waited_ns", Nanoseconds, |r| r.waited_ns)
        .column("preempted", Count, |r| r.preempted)
        .column("note", Text, |r| r.note.clone())
        .column("missing", Text, |r| r.missing.clone())
        .column("slow", Nested, |r| json::list(&r.slow))
        .within(Vec::<results::Slow>::shape())
}

/// Returns a row's name with its CPUs and what the target did: `same node 0>1, idle`.
pub fn title(row: &BenchRow) -> String {
    named(
        &row.what,
        row.target.as_deref(),
        row.from,
        row.to.as_deref(),
    )
}

/// The same, of what a row says.
pub(crate) fn named(
    what: &str,
    target: Option<&str>,
    from: Option<u64>,
    to: Option<&str>,
) -> String {
    let mut out = what.to_owned();
    if let (Some(from), Some(to)) = (from, to)
        && !to.contains([',', '-'])
    {
        out.push_str(&format!(" {from}>{to}"));
    }
    if let Some(target) = target {
        out.push_str(&format!(", {target}"));
    }
    out
}

/// Returns what the machine is, in a line.
fn machine(machine: &BenchMachine) -> String {
    let mut parts = vec![words::plural(machine.cpus, "CPU")];
    if machine.nodes > 1 {
        parts.push(words::plural(machine.nodes, "node"));
    }
    let what = match (machine.virtualized, &machine.hypervisor) {
        (Some(true), Some(name)) => format!("a guest of {name}"),
        (Some(true), None) => "a guest".to_owned(),
        (Some(false), _) => "bare metal".to_owned(),
        (None, _) => String::new(),
    };
    parts.extend((!what.is_empty()).then_some(what));
    let mut add = |name: &str, value: Option<String>| {
        parts.extend(value.map(|value| format!("{name} {value}")));
    };
    add("Linux", machine.kernel.clone());
    add("clock source", machine.clocksource.clone());
    add("cpuidle", machine.cpuidle_driver.clone());
    add("governor", machine.cpuidle_governor.clone());
    add("idle=", machine.idle.clone());
    add(
        "guest_halt_poll_ns",
        machine.guest_halt_poll_ns.map(|ns| ns.to_string()),
    );
    add(
        "halt_poll_ns of its own guests",
        machine.kvm_halt_poll_ns.map(|ns| ns.to_string()),
    );
    add("cpufreq", machine.cpufreq_governor.clone());
    parts.join(", ")
}

/// Returns what is to be said of a result: how quiet it was, and whether it is whole.
pub fn warnings(outcome: &BenchResults) -> Vec<String> {
    let head = &outcome.head;
    let mut out = Vec::new();
    if head.interrupted {
        out.push("It was interrupted: rows have what was measured until then.".to_owned());
    }
    let Noise {
        cpu,
        watched_ns,
        longest_gap_ns,
        lost_share,
        steal_ns,
        ..
    } = head.noise;
    if lost_share > LOST || longest_gap_ns > GAP_NS {
        out.push(format!(
            "CPU {cpu} was not quiet: in {} before the start, a thread that only read a clock lost {} of its time, {} \
             at once. Means and high percentiles have that in them; the median has least.",
            human(watched_ns),
            share::tenths(lost_share),
            human(longest_gap_ns)
        ));
    }
    let run = head
        .ended
        .monotonic_ns
        .saturating_sub(head.started.monotonic_ns);
    if let Some(steal) = steal_ns
        && steal as f64 > run as f64 * STOLEN
        && run > 0
    {
        out.push(format!(
            "The hypervisor ran something else for {} while CPUs of this machine had work (steal), in {} of measuring.",
            human(steal),
            human(run)
        ));
    }
    let disturbed: Vec<String> = outcome.rows.iter().filter_map(disturbed).collect();
    if let Some(worst) = disturbed.first() {
        let more = match disturbed.len() {
            1 => String::new(),
            many => format!(", and {} more", words::plural(many - 1, "row")),
        };
        out.push(format!(
            "Other threads ran on the CPU that measures: {worst}{more}. Measure again while less runs."
        ));
    }
    let lost: u64 = outcome
        .rows
        .iter()
        .map(|row| row.lost)
        .fold(0, u64::saturating_add);
    if lost > 0 {
        out.push(format!(
            "{} without an answer: they are in no duration.",
            words::plural(lost, "message")
        ));
    }
    out
}

/// Says of a row whose thread waited for its CPU how long that was.
fn disturbed(row: &BenchRow) -> Option<String> {
    let waited = row.waited_ns?;
    let took = row.took_ns?;
    (waited as f64 > took as f64 * WAITED)
        .then(|| format!("'{}' waited {} for it", title(row), human(waited)))
}

/// Returns the table for a terminal, with what belongs to it.
pub fn table(outcome: &BenchResults, layout: Layout) -> String {
    let ResultsHead {
        bench,
        label,
        plan,
        machine: of,
        ..
    } = &outcome.head;
    let mut out = format!("{bench}: {}\n", bench.about());
    if let Some(label) = label {
        wrap(&mut out, "label: ", label, layout.width);
    }
    wrap(&mut out, "machine: ", &machine(of), layout.width);
    wrap(
        &mut out,
        "rows: ",
        &format!(
            "{} behind {} that warm up, or what {} has time for",
            words::plural(plan.iterations, "iteration"),
            plan.warmup,
            round(plan.row_time_ns)
        ),
        layout.width,
    );
    out.push('\n');
    let measured: Vec<&BenchRow> = outcome.rows.iter().filter(|row| row.count > 0).collect();
    let names = measured.iter().map(|row| title(row).chars().count());
    let names = names.max().unwrap_or(0) + 1;
    let columns = columns(names.clamp(*NAMES.start(), *NAMES.end()));
    let view = columns.view(view(*bench));
    if measured.is_empty() {
        out.push_str("Nothing was measured.\n");
    } else {
        out.push_str(&view.text(measured, layout));
    }
    out.push_str(&below(outcome, layout.width));
    out
}

/// Returns what stands below the table.
fn below(outcome: &BenchResults, width: usize) -> String {
    let mut out = String::new();
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for row in &outcome.rows {
        let Some(note) = row.note.as_deref().filter(|_| row.missing.is_none()) else {
            continue;
        };
        match notes.iter_mut().find(|(known, _)| *known == note) {
            Some((_, titles)) => titles.push(title(row)),
            None => notes.push((note, vec![title(row)])),
        }
    }
    for (note, titles) in notes {
        let titles = match titles.as_slice() {
            [first, second, rest @ ..] if rest.len() > 2 => {
                let more = words::plural(rest.len(), "row");
                format!("{first}; {second} and {more} more")
            }
            few => few.join("; "),
        };
        wrap(&mut out, "- ", &format!("{titles}: {note}"), width);
    }
    let missing = outcome.rows.iter();
    for row in missing.filter(|row| row.missing.is_some()) {
        let why = row.missing.as_deref().unwrap_or_default();
        wrap(
            &mut out,
            "- ",
            &format!("{}: not measured: {why}", title(row)),
            width,
        );
    }
    let slowest = outcome.slowest(SLOWEST);
    if !slowest.is_empty() {
        let (clock, shift) = recording_clock(&outcome.head);
        let each = slowest.iter().map(|(row, slow)| {
            let name = outcome.rows.get(*row).map(title).unwrap_or_default();
            let at = i128::from(slow.begin_ns) + shift;
            let at = seconds(u64::try_from(at).unwrap_or(0));
            format!("{} at {at} ({name})", human(slow.ns))
        });
        let each: Vec<String> = each.collect();
        let text = format!("{}. Times are {clock}.", each.join("; "));
        wrap(&mut out, "slowest: ", &text, width);
    }
    if out.is_empty() {
        out
    } else {
        format!("\n{out}")
    }
}

/// Returns on which clock times are said, and what it is ahead of `CLOCK_MONOTONIC`: that of this machine's recordings
/// where it is known, so that they can be looked up there.
fn recording_clock(head: &ResultsHead) -> (&'static str, i128) {
    match head.started.recording_ns {
        Some(recording) => (
            "those of recordings of this machine (perf's clock)",
            i128::from(recording) - i128::from(head.started.monotonic_ns),
        ),
        None => ("CLOCK_MONOTONIC", 0),
    }
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct BenchDocument<'a> {
    #[serde(flatten)]
    head: &'a ResultsHead,
    rows: Value,
}

shape!(BenchDocument<'static> { ..head, rows: columns(0).shape().list() });

/// Returns the fields of a document, which [`results::read`] reads.
pub fn document(outcome: &BenchResults) -> BenchDocument<'_> {
    BenchDocument {
        head: &outcome.head,
        rows: columns(0).json(&outcome.rows),
    }
}

/// Returns the rows as CSV.
pub fn csv(outcome: &BenchResults) -> String {
    columns(0).csv(&outcome.rows)
}

#[cfg(test)]
mod tests {
    use results::{BenchPlan, ClockReadings, RESULT_VERSION, Slow};

    use super::*;
    use crate::ClockUnit;
    use crate::clock_unit::ClockedDocument;

    fn outcome() -> BenchResults {
        BenchResults {
            head: ResultsHead {
                result_version: RESULT_VERSION,
                bench: Bench::Ipi,
                label: Some("haltpoll\x1b[2J".to_owned()),
                interrupted: false,
                machine: BenchMachine {
                    cpus: 2,
                    virtualized: Some(true),
                    hypervisor: Some("KVMKVMKVM".to_owned()),
                    ..BenchMachine::default()
                },
                plan: BenchPlan {
                    iterations: 10_000,
                    warmup: 100,
                    row_time_ns: 2_000_000_000,
                    ..BenchPlan::default()
                },
                started: ClockReadings {
                    monotonic_ns: 1_000_000_000,
                    recording_ns: Some(3_000_000_000),
                    ..ClockReadings::default()
                },
                ended: ClockReadings {
                    monotonic_ns: 11_000_000_000,
                    ..ClockReadings::default()
                },
                noise: Noise::default(),
            },
            rows: vec![
                BenchRow {
                    count: 10_000,
                    first_ns: Some(90_000),
                    min_ns: Some(1_000),
                    mean_ns: Some(2_345),
                    p50_ns: Some(2_300),
                    p90_ns: Some(2_500),
                    p99_ns: Some(9_870),
                    max_ns: Some(1_234_567),
                    interrupts: Some(10_101),
                    took_ns: Some(30_000_000),
                    slow: vec![Slow {
                        begin_ns: 1_500_000_000,
                        ns: 1_234_567,
                    }],
                    ..BenchRow::new("same node").target("busy").from(0).to(1)
                },
                BenchRow::new("other node").missing("all CPUs are of one NUMA node"),
            ],
        }
    }

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let quality = event::Quality::default();
        let found = outcome();
        let own = ClockedDocument {
            clock: ClockUnit::Nanoseconds,
            part: document(&found),
        };
        let text = json::document("0.1.0", "bench", &[], &quality, own);
        let text = text.as_bytes();
        assert!(results::looks_like(text));
        let read = results::read(text).expect("a result");
        assert_eq!(read.rows, outcome().rows);
        assert_eq!(read.head.plan, outcome().head.plan);
        // What steers a terminal is neutral in documents, too.
        assert_eq!(
            read.head.label.as_deref(),
            Some("haltpoll\x1b[2J"),
            "JSON escapes it"
        );
    }

    #[test]
    fn the_table_fits_and_says_when_it_was_slow() {
        let layout = Layout {
            width: 80,
            limit: usize::MAX,
            nanoseconds: true,
        };
        let text = table(&outcome(), layout);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(!text.contains('\x1b'));
        assert!(text.contains("same node 0>1, busy"), "{text}");
        assert!(text.contains("1.235ms at 3.500000000"), "{text}");
        assert!(
            text.contains("other node: not measured: all CPUs"),
            "{text}"
        );
        assert!(csv(&outcome()).starts_with("what,target,from,to,count,first_ns,"));
    }

    #[test]
    fn what_disturbed_it_is_said() {
        assert!(warnings(&outcome()).is_empty());
        let mut noisy = outcome();
        noisy.head.interrupted = true;
        noisy.head.noise.lost_share = 0.25;
        noisy.head.noise.steal_ns = Some(2_000_000_000);
        noisy.rows[0].waited_ns = Some(10_000_000);
        noisy.rows[0].lost = 3;
        let said = warnings(&noisy).join("\n");
        for part in [
            "interrupted",
            "25.0 %",
            "steal",
            "waited 10.00ms",
            "3 messages without",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
