//! Profiles: threads and functions by what they weigh.

use std::fmt::Write;

use analysis::{ProfileReport, ProfileRow};
use serde::Serialize;
use serde_json::Value;
use stacks::{Function, Part, Unit as Amounts, Weight};
use words::{plural, share};

use crate::table::{Table, Unit};
use crate::{Layout, clean};

/// A row, and what all that is shown weighs.
pub(crate) struct Row<'r> {
    row: &'r ProfileRow,
    whole: Weight,
    unit: Amounts,
}

impl Row<'_> {
    /// A part's share; `None` where some of the row is code of which nobody says whose it is.
    fn part(&self, part: Weight) -> Option<f64> {
        let known = [self.row.guest, self.row.kernel, self.row.user];
        let known = known
            .iter()
            .fold(0u64, |sum, part| sum.saturating_add(part.amount));
        (known >= self.row.all.amount).then(|| of(part, self.whole))
    }
}

/// Columns of the table of threads on a terminal.
pub(crate) const SHOWN: [&str; 8] = [
    "comm", "tid", "vm_pid", "samples", "share", "guest", "kernel", "user",
];

/// The same where weights are times.
pub(crate) const SHOWN_TIMES: [&str; 8] = [
    "comm", "tid", "vm_pid", "time_ns", "share", "guest", "kernel", "user",
];

/// Samples, where weights are no times.
fn samples(weight: Weight, unit: Amounts) -> Option<u64> {
    (unit != Amounts::Nanoseconds).then_some(weight.samples)
}

fn of(part: Weight, whole: Weight) -> f64 {
    part.amount as f64 / whole.amount.max(1) as f64
}

/// Columns of the table of threads.
pub(crate) fn columns<'r>() -> Table<'r, Row<'r>> {
    use Unit::{Count, Nanoseconds, Number, Share, Text};
    Table::new()
        .column("vm_pid", Number, |r: &Row<'_>| r.row.vm_pid)
        .heading("VM", 8)
        .column("comm", Text, |r| r.row.comm.as_str())
        .left("THREAD", 18)
        .column("tid", Number, |r| r.row.tid)
        .heading("TID", 8)
        .column("samples", Count, |r| samples(r.row.all, r.unit))
        .heading("samples", 9)
        .column("share", Share, |r| of(r.row.all, r.whole))
        .heading("share%", 8)
        .column("guest", Share, |r| r.part(r.row.guest))
        .heading("guest%", 8)
        .column("kernel", Share, |r| r.part(r.row.kernel))
        .heading("kernel%", 8)
        .column("user", Share, |r| r.part(r.row.user))
        .heading("user%", 8)
        .only_if(
            |r| r.unit == Amounts::Nanoseconds,
            |table| {
                let table = table.column("time_ns", Nanoseconds, |r| r.row.all.amount);
                table.heading("time", 11)
            },
        )
}

fn rows(report: &ProfileReport) -> impl Iterator<Item = Row<'_>> {
    let (whole, unit) = (report.shown(), report.unit);
    report.rows.iter().map(move |row| Row { row, whole, unit })
}

/// A function, and what all that is shown weighs.
pub(crate) struct Heavy<'r> {
    function: &'r Function,
    whole: Weight,
    unit: Amounts,
}

/// Columns of the table of functions.
pub(crate) fn functions<'r>() -> Table<'r, Heavy<'r>> {
    use Unit::{Count, Share, Text};
    Table::new()
        .column("function", Text, |r: &Heavy<'_>| {
            r.function.name.text.as_str()
        })
        .left("FUNCTION", 50)
        .column("part", Text, |r| part(r.function.name.part))
        .heading("of", 8)
        .column("self_samples", Count, |r| samples(r.function.own, r.unit))
        .column("self", Share, |r| of(r.function.own, r.whole))
        .heading("self%", 9)
        .column("total_samples", Count, |r| {
            samples(r.function.total, r.unit)
        })
        .column("total", Share, |r| of(r.function.total, r.whole))
        .heading("total%", 9)
}

/// Columns of the table of functions on a terminal.
pub(crate) const SHOWN_FUNCTIONS: [&str; 4] = ["function", "part", "self", "total"];

fn part(part: Part) -> &'static str {
    match part {
        Part::Group => "",
        Part::Kernel => "kernel",
        Part::User => "user",
        Part::Guest => "guest",
        Part::Unknown => "unknown",
    }
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct Document<'r> {
    /// The event that was sampled.
    event: Option<&'r str>,
    /// What the amounts of folded stacks are.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    /// All samples that the recording has of it.
    samples: Option<u64>,
    idle_samples: Option<u64>,
    unresolved_samples: Option<u64>,
    /// The same where they are times.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_ns: Option<u64>,
    rows: Value,
    functions: Value,
}

/// Returns the fields of a document.
pub fn document(report: &ProfileReport) -> Document<'_> {
    let heavy = report.functions();
    let heavy = heavy.iter().map(|function| Heavy {
        function,
        whole: report.shown(),
        unit: report.unit,
    });
    let time = |weight: Weight| (report.unit == Amounts::Nanoseconds).then_some(weight.amount);
    Document {
        event: report.event.as_deref(),
        unit: match report.unit {
            Amounts::Count => Some("count"),
            Amounts::Samples => Some("samples"),
            Amounts::Nanoseconds => Some("ns"),
            _ => None,
        },
        samples: samples(report.samples, report.unit),
        idle_samples: samples(report.idle, report.unit),
        unresolved_samples: report.unresolved.map(|weight| weight.samples),
        time_ns: time(report.samples),
        idle_ns: time(report.idle),
        rows: columns().json(rows(report)),
        functions: functions().json(heavy),
    }
}

/// Returns the rows of threads as CSV.
pub fn csv(report: &ProfileReport) -> String {
    columns().csv(rows(report))
}

/// Returns the tables for a terminal: threads, and functions by what they and those they called weigh.
pub fn table(report: &ProfileReport, layout: Layout) -> String {
    let whole = report.shown();
    let mut text = format!("flame: {}", heading(report, layout));
    let idle = amount(report, report.idle, layout);
    if whole.samples < report.samples.samples {
        let share = share::tenths(of(report.idle, report.samples));
        let _ = match report.unit {
            Amounts::Count | Amounts::Samples => {
                write!(text, "\nleft out: {idle} of idle CPUs, {share} of all")
            }
            _ => write!(text, "\nleft out: {idle} of idle CPUs, {share} of the time"),
        };
    } else if report.idle.samples > 0 {
        let _ = write!(text, "\nwith {idle} of idle CPUs");
    }
    text.push('\n');
    let shown = match report.unit {
        Amounts::Nanoseconds => SHOWN_TIMES,
        _ => SHOWN,
    };
    text.push_str(&columns().view(shown).text(rows(report), layout));
    let heavy = report.functions();
    if !heavy.is_empty() {
        let unit = report.unit;
        let heavy = heavy.iter().map(|function| Heavy {
            function,
            whole,
            unit,
        });
        text.push('\n');
        text.push_str(&functions().view(SHOWN_FUNCTIONS).text(heavy, layout));
    }
    text
}

/// How much something weighs, in words.
fn amount(report: &ProfileReport, weight: Weight, layout: Layout) -> String {
    match report.unit {
        Amounts::Nanoseconds => layout.time(weight.amount),
        Amounts::Count => weight.amount.to_string(),
        _ => plural(weight.samples, "sample"),
    }
}

/// What a profile is of.
fn heading(report: &ProfileReport, layout: Layout) -> String {
    let all = amount(report, report.samples, layout);
    let event = report.event.as_deref();
    match report.unit {
        Amounts::Count => {
            format!("folded stacks with counts of {all} together; --unit says what these are")
        }
        Amounts::Samples | Amounts::Nanoseconds if event.is_none() => {
            format!("{all} in folded stacks")
        }
        _ => format!("{all} of {}", clean(event.unwrap_or("no event"))),
    }
}

/// A profile as speedscope reads it, its "sampled" kind (`file-format-spec.ts` of speedscope 1.20).
#[derive(Debug, Serialize)]
struct Speedscope<'r> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    shared: Shared<'r>,
    profiles: [Sampled<'r>; 1],
    name: &'r str,
    exporter: &'static str,
}

#[derive(Debug, Serialize)]
struct Shared<'r> {
    frames: Vec<Frame<'r>>,
}

#[derive(Debug, Serialize)]
struct Frame<'r> {
    name: &'r str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'r str,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

/// Returns the stacks as a file of speedscope's. `name` is the recording's.
///
/// # Errors
///
/// As serde_json.
pub fn speedscope(report: &ProfileReport, name: &str) -> serde_json::Result<String> {
    let event = report.event.as_deref().unwrap_or_default();
    // The period of these clocks is their time; that of other events is how often they happened.
    let is_clock = event.starts_with("cpu-clock") || event.starts_with("task-clock");
    let is_time = is_clock || report.unit == Amounts::Nanoseconds;
    let mut samples = Vec::new();
    let mut weights = Vec::new();
    report.stacks.each(|stack, weight| {
        samples.push(stack.to_vec());
        weights.push(weight.amount);
    });
    let names = report.stacks.names().iter();
    serde_json::to_string(&Speedscope {
        schema: "https://www.speedscope.app/file-format-schema.json",
        shared: Shared {
            frames: names.map(|name| Frame { name: &name.text }).collect(),
        },
        profiles: [Sampled {
            kind: "sampled",
            name: event,
            unit: if is_time { "nanoseconds" } else { "none" },
            start_value: 0,
            end_value: report.shown().amount,
            samples,
            weights,
        }],
        name,
        exporter: "trapline",
    })
}
