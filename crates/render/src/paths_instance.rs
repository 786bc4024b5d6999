//! One instance of a path: its steps, and a sequence diagram.

use std::fmt::Write;

use paths::{InstanceReport, StepReport};
use serde::Serialize;
use serde_json::Value;
use words::duration;

use crate::schema::{HasShape, Member, Shape};
use crate::shape;
use crate::table::Unit::{Name, Nanoseconds, Nested, Number, Text};
use crate::table::{CsvRows, Table};
use crate::{ClockUnit, clean, json, quality};

/// Instances of paths as rows of JSON and CSV.
#[derive(Debug)]
pub struct Instances(CsvRows<'static, InstanceReport>);

/// Bytes of a step's name and time.
const STEP: usize = 40;

/// Columns of the table of instances.
pub(crate) fn instances() -> Table<'static, InstanceReport> {
    Table::new()
        .column("path", Text, |one: &InstanceReport| one.path.to_string())
        .column("instance", Number, |one| one.number)
        .texts("chain", Text, |one| one.chain.as_deref())
        .texts("by", Name, |one| one.by.as_deref())
        .column("start_ns", Nanoseconds, |one| {
            one.steps.first().map(|step| step.time)
        })
        .column("total_ns", Nanoseconds, |one| one.total_ns())
        .column("vcpu_tid", Number, |one| one.vcpu_tid)
        .texts("vcpu", Name, |one| one.vcpu.as_deref())
        .column("steps", Nested, |one| step_list(&one.steps))
        .within(Vec::<Step<'static>>::shape())
        .csv_form(|one| {
            let mut out = String::with_capacity(one.steps.len() * STEP);
            let mut number = itoa::Buffer::new();
            for (at, step) in one.steps.iter().enumerate() {
                if at > 0 {
                    out.push(';');
                }
                out.push_str(&step.name);
                out.push('@');
                out.push_str(number.format(step.time));
            }
            out
        })
        .unique()
        .column("features", Nested, |one| one.features.to_vec())
        .csv_form(|one| one.features.join(";"))
}

impl Instances {
    /// Returns what documents have of them.
    pub fn shape() -> Shape {
        Shape::Object(vec![Member::new("instances", instances().shape().list())])
    }

    /// Returns rows of instances whose times count this.
    pub fn new(clock: ClockUnit) -> Instances {
        Instances(instances().counted_in(clock).csv_rows())
    }

    /// Returns the names of CSV's columns as a line.
    pub fn csv_head(&self) -> String {
        self.0.head()
    }

    /// Returns an instance as a line of CSV; steps as `name@time_ns`, apart by semicolons.
    pub fn csv(&self, one: &InstanceReport) -> String {
        self.0.line(one)
    }

    /// Returns an instance as an object.
    pub fn json(&self, one: &InstanceReport) -> Value {
        self.0.table().object(one).into()
    }
}

/// A step of an instance.
#[derive(Debug, Serialize)]
struct Step<'a> {
    name: &'a str,
    /// The recording of the guest in which it was reached; left out on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<&'a str>,
    time_ns: u64,
    /// Null where it is not known.
    cpu: Option<i32>,
    tid: i32,
    thread: &'a str,
}

shape!(Step<'static> { name, machine?, time_ns, cpu, tid, thread });

fn step_list(steps: &[StepReport]) -> Value {
    json::list(steps.iter().map(|step| Step {
        name: &step.name,
        machine: step.machine.as_deref(),
        time_ns: step.time,
        cpu: (step.cpu >= 0).then_some(step.cpu),
        tid: step.tid,
        thread: &step.thread,
    }))
}

/// Returns its steps, one a line, and what else is known of it.
pub fn steps(one: &InstanceReport, nanoseconds: bool, width: usize) -> String {
    let time = |ns: u64| duration::of(ns, nanoseconds);
    let mut out = format!(
        "{}, instance {}: {}\n",
        clean(&one.path),
        one.number,
        time(one.total_ns())
    );
    let first = one.steps.first().map_or(0, |step| step.time);
    let mut before = first;
    for step in &one.steps {
        let at = if nanoseconds {
            duration::seconds(step.time)
        } else {
            step.time.to_string()
        };
        let _ = writeln!(
            out,
            "{at:>18}  {:>9}  {:>9}  {:<18} CPU {:<3} {}",
            format!("+{}", time(step.time.saturating_sub(first))),
            time(step.time.saturating_sub(before)),
            clean(&step.name),
            step.cpu,
            clean(&step.thread)
        );
        before = step.time;
    }
    if !one.features.is_empty() {
        quality::wrap(&mut out, "known: ", &one.features.join("; "), width);
    }
    out
}

/// Returns who takes part, in order of appearance.
pub fn parts(one: &InstanceReport) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    for step in &one.steps {
        for thread in std::iter::once(&step.does).chain(&step.to) {
            if !parts.contains(&&**thread) {
                parts.push(thread);
            }
        }
    }
    if let Some(vcpu) = one.vcpu.as_deref()
        && !parts.contains(&vcpu)
    {
        parts.push(vcpu);
    }
    parts
}

/// Returns where the arrow of a step comes from and goes to, as places among those who take part: who wakes, and who is
/// woken; or who did the step before, and who does this one.
pub fn arrow(one: &InstanceReport, at: usize, parts: &[&str]) -> (usize, usize) {
    let place = |thread: &str| parts.iter().position(|part| *part == thread).unwrap_or(0);
    let Some(step) = one.steps.get(at) else {
        return (0, 0);
    };
    let does = place(&step.does);
    if let Some(to) = &step.to {
        return (does, place(to));
    }
    let before = at.checked_sub(1).and_then(|at| one.steps.get(at));
    let from = before.map_or(does, |step| place(step.to.as_ref().unwrap_or(&step.does)));
    (from, does)
}

/// Returns a sequence diagram as text: a column for each thread, a line for each step.
pub fn text_diagram(one: &InstanceReport, nanoseconds: bool) -> String {
    const COLUMN: usize = 18;
    let parts = parts(one);
    let mut out = String::new();
    let cut = |name: &str| -> String { clean(name).chars().take(COLUMN - 2).collect() };
    let mut head = " ".repeat(10);
    for part in &parts {
        let _ = write!(head, "{:<COLUMN$}", cut(part));
    }
    let _ = writeln!(out, "{}", head.trim_end());
    let first = one.steps.first().map_or(0, |step| step.time);
    for (at, step) in one.steps.iter().enumerate() {
        let (from, to) = arrow(one, at, &parts);
        let offset = duration::of(step.time.saturating_sub(first), nanoseconds);
        let mut line = format!("{:>9} ", format!("+{offset}"));
        for column in 0..parts.len() {
            let between = column >= from.min(to) && column < from.max(to);
            let fill = if between { '-' } else { ' ' };
            let head = match (column == to, from < to) {
                (true, _) if from == to => 'o',
                (true, true) => '>',
                (true, false) => '<',
                (false, _) => '|',
            };
            line.push(head);
            line.extend(std::iter::repeat_n(fill, COLUMN - 1));
        }
        let _ = writeln!(out, "{}  {}", line.trim_end(), clean(&step.name));
    }
    out
}

/// Returns a sequence diagram for Mermaid.
pub fn mermaid(one: &InstanceReport, nanoseconds: bool) -> String {
    let parts = parts(one);
    let mut out = "sequenceDiagram\n".to_owned();
    // Mermaid reads some signs in texts: they are escaped as its manual says.
    let text = |text: &str| -> String {
        clean(text)
            .chars()
            .map(|c| match c {
                '#' => "#35;".to_owned(),
                ';' => "#59;".to_owned(),
                ':' => "#58;".to_owned(),
                '<' => "#lt;".to_owned(),
                '>' => "#gt;".to_owned(),
                '"' => "#quot;".to_owned(),
                c => c.to_string(),
            })
            .collect()
    };
    for (number, part) in parts.iter().enumerate() {
        let _ = writeln!(out, "    participant p{number} as {}", text(part));
    }
    let first = one.steps.first().map_or(0, |step| step.time);
    for (at, step) in one.steps.iter().enumerate() {
        let (from, to) = arrow(one, at, &parts);
        let offset = duration::of(step.time.saturating_sub(first), nanoseconds);
        let label = format!("{} +{offset}", text(&step.name));
        if from == to {
            let _ = writeln!(out, "    Note over p{to}: {label}");
        } else {
            let _ = writeln!(out, "    p{from}->>p{to}: {label}");
        }
    }
    out
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct PathsInstanceDocument<'a> {
    instance: Instance<'a>,
}

shape!(PathsInstanceDocument<'static> { instance });

/// An instance with what is around it.
#[derive(Debug, Serialize)]
struct Instance<'a> {
    #[serde(flatten)]
    one: Value,
    diagram: &'a str,
    /// The events of the threads that take part, one a line.
    events: Vec<String>,
}

shape!(Instance<'static> { ..one: instances().shape(), diagram, events });

/// Returns the fields of a document.
pub fn document<'a>(
    one: &InstanceReport,
    diagram: &'a str,
    events: Vec<String>,
) -> PathsInstanceDocument<'a> {
    PathsInstanceDocument {
        instance: Instance {
            one: Instances::new(ClockUnit::default()).json(one),
            diagram,
            events,
        },
    }
}
