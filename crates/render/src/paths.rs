//! Latency paths.

use std::fmt::Write;

use analysis::Stats;
use doubts::Doubts;
use paths::{
    ClearedPath, GroupReport, InstanceReport, PathReport, SlowCause, SlowReport, SlowestInstance,
    StageReport, ThresholdOrigin,
};
use serde::Serialize;
use serde_json::{Map, Value};
use words::{duration, share};

use crate::amounts::{of_any, percentile};
use crate::html::Frame;
use crate::ledger;
use crate::row_doubts::{RowScope, ids_about};
use crate::schema::Shape;
use crate::shape;
use crate::table::Unit::{Count, Name, Nanoseconds, Text};
use crate::table::{Table, View, Views};
use crate::{ClockUnit, Layout, clean, quality};

/// A line of the table of a path: its total, a stage or a group.
pub(crate) struct Line<'r> {
    path: &'r str,
    chain: Option<&'r str>,
    name: String,
    stats: &'r Stats,
    stage: Option<&'r StageReport>,
}

impl<'r> Line<'r> {
    pub(crate) fn new(report: &'r PathReport, name: &str, stats: &'r Stats) -> Line<'r> {
        Line {
            path: &report.name,
            chain: None,
            name: name.to_owned(),
            stats,
            stage: None,
        }
    }

    pub(crate) fn of_stage(report: &'r PathReport, stage: &'r StageReport) -> Line<'r> {
        Line {
            chain: stage.chain.as_deref(),
            stage: Some(stage),
            ..Line::new(report, &stage.name, &stage.stats)
        }
    }
}

/// A ticket's table of the stages of one path.
const STAGES_TICKET: Views = Views::own(0);
/// Every view of a path.
const ALL: Views = Views::TERMINAL.and(Views::TICKET).and(STAGES_TICKET);

/// Adds columns of durations: percentiles, extremes, mean and sum.
pub(crate) fn durations<'t, R: 't>(mut table: Table<'t, R>, of: fn(&R) -> &Stats) -> Table<'t, R> {
    for (name, heading, share) in [
        ("p50_ns", "p50", 0.5),
        ("p90_ns", "p90", 0.9),
        ("p99_ns", "p99", 0.99),
    ] {
        table = table
            .column(name, Nanoseconds, move |row| percentile(of(row), share))
            .heading(heading, 9)
            .views(ALL)
            .page(heading);
    }
    table
        .column("max_ns", Nanoseconds, move |row| {
            of_any(of(row), Stats::max)
        })
        .heading("max", 9)
        .views(ALL)
        .page("max")
        .column("min_ns", Nanoseconds, move |row| {
            of_any(of(row), Stats::min)
        })
        .json_only()
        .page("min")
        .column("mean_ns", Nanoseconds, move |row| {
            of_any(of(row), Stats::mean)
        })
        .show(move |row, layout| layout.mean(of(row)))
        .page("mean")
        .column("total_ns", Nanoseconds, move |row| of(row).total())
        .page("time")
}

/// Columns of the stages of a path.
pub(crate) fn stages<'r>() -> Table<'r, Line<'r>> {
    lines("stage")
}

/// The same, of what a page calls so.
fn lines<'r>(called: &'static str) -> Table<'r, Line<'r>> {
    let names = Table::new()
        .column("path", Text, |l: &Line<'_>| l.path)
        .csv_only()
        .views(Views::TICKET)
        .column("stage", Text, |l| l.name.clone())
        .json_at("name")
        .left("", NAME)
        .views(Views::TERMINAL | STAGES_TICKET)
        .page(called);
    durations(names, |l| l.stats)
        .column("count", Count, |l| l.stats.count())
        .heading("count", 7)
        .views(ALL)
        .page("count")
        .after("stage")
        .csv_after("stage")
        .column("chain", Text, |l| l.chain)
        .views(STAGES_TICKET)
        .page("chain")
        .after("path")
        .csv_after("path")
        .column("holder", Text, |l| {
            let most = l.stage.and_then(|stage| stage.ledger.most());
            most.map(|term| term.holder.name())
        })
        .json_only()
        .page("most had by")
        .column("slow_mean_ns", Nanoseconds, |l| {
            l.stage.map(|stage| stage.slow_mean_ns)
        })
        .json_only()
        .page("mean of slow ones")
        .column("fast_mean_ns", Nanoseconds, |l| {
            l.stage.map(|stage| stage.fast_mean_ns)
        })
        .json_only()
        .page("mean of others")
        .column("saving_estimate_ns", Nanoseconds, |l| {
            l.stage.map(|stage| stage.saving_ns)
        })
        .json_only()
        .page("to save (estimate)")
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct PathsDocument<'a> {
    paths: Vec<Path<'a>>,
}

shape!(PathsDocument<'static> { paths });

/// A path in a document.
#[derive(Debug, Serialize)]
struct Path<'a> {
    path: &'a str,
    count: u64,
    total: Map<String, Value>,
    /// Who had the mean total: the terms' means add up to it.
    ledger: Value,
    /// What recording had of the mean total, or more; `null` where it was not measured.
    recording_ns: Option<u64>,
    /// Another path whose slow instances do not lose their time in this one.
    clears: Option<&'a ClearedPath>,
    stages: Value,
    slow: Option<&'a SlowReport>,
    by: Option<&'static str>,
    groups: Value,
    /// Instances that did not complete, by reason.
    dropped: Map<String, Value>,
    /// Ids of the doubts that are about its vCPUs and not about all.
    doubts: Vec<&'static str>,
}

shape!(Path<'static> {
    path, count, total: totals().shape(), ledger: ledger::terms().shape().list(), recording_ns, clears,
    stages: stages().shape().list(), slow, by, groups: groups().shape().list(),
    dropped: Shape::Map(Box::new(Shape::Integer)), doubts,
});

/// Returns the fields of a document. Paths have the ids of those of the doubts that are about their vCPUs.
pub fn document<'r>(
    reports: impl IntoIterator<Item = &'r PathReport>,
    doubts: &Doubts,
) -> PathsDocument<'r> {
    let reports = reports.into_iter();
    PathsDocument {
        paths: reports.map(|report| path_object(report, doubts)).collect(),
    }
}

/// Columns of a path's total.
fn totals() -> Table<'static, Stats> {
    durations(Table::new(), |stats| stats)
}

/// Columns of a path's groups.
pub(crate) fn groups() -> Table<'static, GroupReport> {
    let groups = Table::new()
        .column("label", Name, |group: &GroupReport| group.label.clone())
        .column("count", Count, |group| group.stats.count());
    durations(groups, |group| &group.stats)
}

fn path_object<'r>(report: &'r PathReport, doubts: &Doubts) -> Path<'r> {
    let lines = report
        .stages
        .iter()
        .map(|stage| Line::of_stage(report, stage));
    let dropped = report.dropped.iter();
    let dropped = dropped.map(|(why, count)| (why.name().to_owned(), Value::from(*count)));
    Path {
        path: &report.name,
        count: report.count,
        total: totals().object(&report.total),
        ledger: ledger::terms().json(&report.ledger.terms),
        recording_ns: report.recording_ns,
        clears: report.clears.as_ref(),
        stages: stages().json(lines),
        slow: report.slow.as_ref(),
        by: report.by,
        groups: groups().json(&report.groups),
        dropped: dropped.collect(),
        doubts: ids_about(
            doubts,
            RowScope::of_threads(report.vcpus.iter().map(|(tid, ..)| *tid)),
        ),
    }
}

/// Returns a row for each stage of each path, and one for its total, as CSV.
pub fn csv(reports: &[PathReport], clock: ClockUnit) -> String {
    stages()
        .counted_in(clock)
        .csv(reports.iter().flat_map(|report| {
            let stages = report
                .stages
                .iter()
                .map(|stage| Line::of_stage(report, stage));
            std::iter::once(Line::new(report, "total", &report.total)).chain(stages)
        }))
}

/// Returns the totals of paths that have instances as a table of Markdown, in their order.
pub fn markdown(reports: &[&PathReport], layout: Layout) -> String {
    let totals = reports.iter();
    let totals: Vec<Line<'_>> = totals
        .map(|report| Line::new(report, "total", &report.total))
        .collect();
    stages().markdown(Views::TICKET, &totals, layout)
}

/// Returns the stages of a path as a table of Markdown.
pub fn stages_markdown(report: &PathReport, layout: Layout) -> String {
    let lines = report.stages.iter();
    let lines: Vec<Line<'_>> = lines.map(|stage| Line::of_stage(report, stage)).collect();
    stages().markdown(STAGES_TICKET, &lines, layout)
}

/// Columns of a stage's name.
const NAME: usize = 36;

/// What to record, where nothing was found.
pub const NEEDED: &str = "Paths are made of the events of KVM and of the scheduler: record on the host with \
                          'trapline record --for paths'.";

/// What to give, where a path through guests was not found.
const NEEDED_OF_GUESTS: &str = "Paths through guests are complete only with the guests' own recordings, given behind \
the host's: 'trapline \
                                agent --for cpus,io,sockets' makes them.";

/// Returns all paths as text.
pub fn table<'r>(reports: impl IntoIterator<Item = &'r PathReport>, layout: Layout) -> String {
    let mut out = String::new();
    let (found, none): (Vec<_>, Vec<_>) = reports
        .into_iter()
        .partition(|report| report.count > 0 || !report.dropped.is_empty());
    for (at, report) in found.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        path(&mut out, report, layout);
    }
    if !none.is_empty() {
        if !found.is_empty() {
            out.push('\n');
        }
        let names: Vec<String> = none.iter().map(|report| clean(&report.name)).collect();
        let text = format!("not found in this recording: {}", names.join(", "));
        quality::wrap(&mut out, "", &text, layout.width);
        if found.is_empty() {
            quality::wrap(&mut out, "", NEEDED, layout.width);
            let of_guests = paths::with_guests();
            let has = |report: &&PathReport| of_guests.iter().any(|path| path.name == report.name);
            if none.iter().any(has) {
                quality::wrap(&mut out, "", NEEDED_OF_GUESTS, layout.width);
            }
        }
    }
    out
}

/// What is said of a path through guests that none of its instances goes through.
const ONLY_HOST: &str =
    "No guest's recording has a step of these: they begin and end with events of the host.";

fn path(out: &mut String, report: &PathReport, layout: Layout) {
    let title = format!("{}: {}", clean(&report.name), clean(&report.about));
    quality::wrap(out, "", title.trim_end_matches([':', ' ']), layout.width);
    let columns = stages();
    let view = columns.view(Views::TERMINAL);
    if report.count > 0 {
        out.push_str(&view.head());
        out.push('\n');
        line(
            out,
            &view,
            "",
            Line::new(report, "total", &report.total),
            layout,
        );
        let several = report.stages.iter().any(|stage| stage.chain.is_some());
        let mut chain: Option<&str> = None;
        for stage in &report.stages {
            if several && chain != stage.chain.as_deref() {
                chain = stage.chain.as_deref();
                let _ = writeln!(out, "  {}:", clean(chain.unwrap_or("")));
            }
            line(out, &view, "  ", Line::of_stage(report, stage), layout);
        }
        if let Some(text) = ledger::line(&report.ledger, layout) {
            quality::wrap(out, "  ", &text, layout.width);
            if let Some(text) = ledger::recording(report, layout) {
                quality::wrap(out, "  ", &text, layout.width);
            }
        }
        if let Some(text) = ledger::cleared(report, layout) {
            quality::wrap(out, "  ", &text, layout.width);
        }
        if report.in_guests == Some(false) {
            quality::wrap(out, "  ", ONLY_HOST, layout.width);
        }
    }
    if let Some(by) = report.by
        && !report.groups.is_empty()
    {
        let _ = writeln!(out, "  by {by}:");
        for group in report.groups.iter().take(layout.limit) {
            line(
                out,
                &view,
                "  ",
                Line::new(report, &group.label, &group.stats),
                layout,
            );
        }
        if report.groups.len() > layout.limit {
            let _ = writeln!(
                out,
                "    ... and {} more",
                report.groups.len() - layout.limit
            );
        }
    }
    if let Some(slow) = report.slow.as_ref().filter(|slow| slow.count > 0) {
        slow_ones(out, report, slow, layout);
    }
    if !report.dropped.is_empty() {
        let parts: Vec<String> = report
            .dropped
            .iter()
            .map(|(why, count)| format!("{count} {}", why.name().replace('_', " ")))
            .collect();
        let text = format!("not completed: {}", parts.join(", "));
        quality::wrap(out, "  ", &text, layout.width);
    }
}

/// Appends a line; a name that is longer than its column has lines of its own.
fn line<'r>(
    out: &mut String,
    view: &View<'_, '_, Line<'r>>,
    indent: &str,
    line: Line<'r>,
    layout: Layout,
) {
    let mut line = line;
    let name = clean(&line.name);
    if indent.len() + name.chars().count() > NAME {
        quality::wrap(out, indent, &name, layout.width);
        line.name.clear();
    } else {
        line.name.insert_str(0, indent);
    }
    let _ = writeln!(out, "{}", view.line(&line, layout));
}

/// Appends what separates the slow instances from the others.
fn slow_ones(out: &mut String, report: &PathReport, slow: &SlowReport, layout: Layout) {
    quality::wrap(out, "  ", &threshold(slow, layout), layout.width);
    if let Some(text) = slowest(report, slow, layout) {
        quality::wrap(out, "  ", &text, layout.width);
    }
    for one in &slow.because {
        because(out, one, layout);
    }
    if let Some(text) = saving(report, slow, layout) {
        quality::wrap(out, "  ", &text, layout.width);
    }
}

/// Says from which total on instances are slow.
fn threshold(slow: &SlowReport, layout: Layout) -> String {
    let how = match slow.found {
        ThresholdOrigin::Given => "as asked for",
        ThresholdOrigin::Gap => "there is a gap below",
        ThresholdOrigin::P95 => "the 95th percentile; there is no gap",
    };
    format!(
        "slow: {} of {} or more ({how}), mean {} against {}.",
        slow.count,
        layout.time(slow.threshold_ns),
        layout.time(slow.mean_ns),
        layout.time(slow.fast_mean_ns)
    )
}

/// Says which the slowest is.
fn slowest(report: &PathReport, slow: &SlowReport, layout: Layout) -> Option<String> {
    let SlowestInstance { instance, text } = slow.slowest.as_ref()?;
    let took = layout.time(report.total.max());
    Some(format!(
        "The slowest is instance {instance}, {took}: {text}"
    ))
}

fn because(out: &mut String, one: &SlowCause, layout: Layout) {
    quality::wrap(out, "  - ", &clean(&one.text), layout.width);
    let list = |numbers: &[u64]| {
        let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
        texts.join(", ")
    };
    if !one.slow_instances.is_empty() {
        let mut text = format!("instances {}", list(&one.slow_instances));
        if !one.fast_instances.is_empty() {
            let _ = write!(text, "; for comparison {}", list(&one.fast_instances));
        }
        quality::wrap(out, "    ", &text, layout.width);
    }
}

/// Says which stage's removal would give most.
fn saving(report: &PathReport, slow: &SlowReport, layout: Layout) -> Option<String> {
    let whole = slow.mean_ns.saturating_mul(slow.count);
    let best: Option<&StageReport> = report.stages.iter().max_by_key(|stage| stage.saving_ns);
    let stage = best.filter(|stage| stage.saving_ns > whole / 20)?;
    let share = stage.saving_ns as f64 / whole.max(1) as f64;
    Some(format!(
        "Estimate: if '{}' took as long in slow instances as in the others, their total would fall by {} ({} %), from \
         {} to {}.",
        stage.name,
        layout.time(stage.saving_ns),
        share::cell(share),
        layout.time(whole),
        layout.time(whole.saturating_sub(stage.saving_ns)),
    ))
}

/// Returns an instance as a line.
pub fn each_line(one: &InstanceReport, nanoseconds: bool) -> String {
    let time = |ns: u64| duration::of(ns, nanoseconds);
    let mut out = format!("{:<10}{:>6}  ", clean(&one.path), one.number);
    let mut before: Option<u64> = None;
    for step in &one.steps {
        match before {
            None => {
                let at = if nanoseconds {
                    duration::seconds(step.time)
                } else {
                    step.time.to_string()
                };
                let _ = write!(out, "{at}  {:>8}  {}", time(one.total_ns()), step.name);
            }
            Some(before) => {
                let _ = write!(
                    out,
                    " +{} {}",
                    time(step.time.saturating_sub(before)),
                    step.name
                );
            }
        }
        before = Some(step.time);
    }
    if let Some(vcpu) = &one.vcpu {
        let _ = write!(out, "  ({})", clean(vcpu));
    }
    out.push('\n');
    out
}

/// Returns an instance as lines of a terminal: they end between stages.
pub fn each_lines(one: &InstanceReport, nanoseconds: bool, width: usize) -> String {
    const INDENT: &str = "    ";
    let line = each_line(one, nanoseconds);
    let mut out = String::new();
    let mut at = 0;
    for (number, stage) in line.trim_end().split(" +").enumerate() {
        let long = stage.chars().count() + 2;
        if number > 0 && at + long > width {
            out.push('\n');
            out.push_str(INDENT);
            at = INDENT.len();
        } else if number > 0 {
            out.push(' ');
        }
        if number > 0 {
            out.push('+');
        }
        out.push_str(stage);
        at += long;
    }
    out.push('\n');
    out
}

/// Returns for a page the total of a path and its stages.
pub fn html(report: &PathReport, frame: &Frame<'_>) -> String {
    let lines = report.stages.iter();
    let lines = lines.map(|stage| Line::of_stage(report, stage));
    let total = Line::new(report, "total", &report.total);
    stages().html(std::iter::once(total).chain(lines), frame)
}

/// Returns for a page the distribution of totals: of all instances, and of each group.
pub fn groups_html(report: &PathReport, frame: &Frame<'_>) -> String {
    let groups = report.groups.iter();
    let groups = groups.map(|group| Line::new(report, &group.label, &group.stats));
    let all = Line::new(report, "all", &report.total);
    let called = report.by.unwrap_or("instances");
    lines(called).html(std::iter::once(all).chain(groups), frame)
}

/// Returns for a page what sets slow instances apart; nothing where nothing does.
pub fn because_html(slow: &SlowReport, frame: &Frame<'_>) -> String {
    use crate::table::Unit::Share;
    if slow.because.is_empty() {
        return String::new();
    }
    let list = |numbers: &[u64]| {
        let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
        texts.join(", ")
    };
    let table = Table::new()
        .column("feature", Name, |one: &SlowCause| one.feature.clone())
        .page("what")
        .column("slow_share", Share, |one| one.slow_share)
        .page("of the slow ones")
        .column("fast_share", Share, |one| one.fast_share)
        .page("of the others")
        .column("gain", Share, |one| one.gain)
        .page("explains")
        .column("text", Name, |one| one.text.clone())
        .page("in words")
        .column("slow_instances", Text, move |one| list(&one.slow_instances))
        .page("instances")
        .column("fast_instances", Text, move |one| list(&one.fast_instances))
        .page("for comparison");
    table.html(&slow.because, frame)
}

/// Returns for a page how many instances did not complete, by reason; nothing where all did.
pub fn dropped_html(report: &PathReport, frame: &Frame<'_>) -> String {
    if report.dropped.is_empty() {
        return String::new();
    }
    let rows: Vec<(String, u64)> = report
        .dropped
        .iter()
        .map(|(why, count)| (why.name().replace('_', " "), *count))
        .collect();
    let table = Table::new()
        .column("why", Text, |(why, _): &(String, u64)| why.clone())
        .page("not completed")
        .column("count", Count, |(_, count)| *count)
        .page("count");
    table.html(rows, frame)
}

/// Returns how the slow instances of a path were found, and what they would gain, in sentences; nothing where there are
/// none.
pub fn slow_sentences(report: &PathReport, layout: Layout) -> Vec<String> {
    let Some(slow) = report.slow.as_ref().filter(|slow| slow.count > 0) else {
        return Vec::new();
    };
    let mut out = vec![threshold(slow, layout)];
    out.extend(slowest(report, slow, layout));
    out.extend(saving(report, slow, layout));
    out
}
