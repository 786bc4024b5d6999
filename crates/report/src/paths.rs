//! Latency paths.

use std::borrow::Cow;

use ::paths::PathReport;
use analysis::{PathExamples, Stats};
use render::html::escape;
use render::paths as table;
use serde::Serialize;

use crate::out::{PageWriter, TableLabel, data};
use crate::{Recording, invocation, sequence, waterfall};

/// Groups whose distribution is drawn beside that of all.
const GROUPS: usize = 4;

/// Writes the section.
pub(crate) fn section(recording: &Recording<'_>, out: &mut PageWriter) {
    let picture = recording.picture;
    let (mut found, none): (Vec<&PathReport>, Vec<&PathReport>) = picture
        .all_paths()
        .partition(|one| one.count > 0 || !one.dropped.is_empty());
    if found.is_empty() {
        let needed = format!("No path was found. {}", table::NEEDED);
        out.nothing(match recording.is_printed() {
            true => "Printed tables have sums, of which no path can be made.",
            false if recording.is_filtered() => "No instance of a path passes the filters.",
            false => &needed,
        });
        return;
    }
    // What findings rest on stands first.
    found.sort_by_key(|report| !recording.rests_on_path(&report.name));
    for report in found {
        path(report, recording, out);
    }
    if !none.is_empty() {
        let names: Vec<&str> = none.iter().map(|one| one.name.as_str()).collect();
        out.paragraph(&format!(
            "Not found in this recording: {}.",
            names.join(", ")
        ));
    }
}

fn path(report: &PathReport, recording: &Recording<'_>, out: &mut PageWriter) {
    let name = report.name.as_str();
    let heading = match report.about.is_empty() {
        true => name.to_owned(),
        false => format!("{name}: {}", report.about),
    };
    // What a finding rests on is open, and short; who opens another one wants all of it.
    let is_evidence = recording.rests_on_path(name);
    out.part(&heading, is_evidence);
    if report.count > 0 {
        out.list(table::slow_sentences(report, recording.layout()));
    }
    let open = if is_evidence { "" } else { " open=\"\"" };
    out.markup(&format!(
        "<details class=\"more\"{open}><summary>Stages, distribution and instances of {}</summary>\n",
        escape(name)
    ));
    numbers(report, recording, out);
    out.markup("</details>\n");
    out.end_part();
}

/// Writes the tables of a path, how its times are distributed, and a slow and a fast instance.
fn numbers(report: &PathReport, recording: &Recording<'_>, out: &mut PageWriter) {
    let name = report.name.as_str();
    let command = command(name, recording);
    let id = |what: &str| match what.is_empty() {
        true => format!("path-{name}"),
        false => format!("path-{name}-{what}"),
    };
    if report.count > 0 {
        if !report.stages.is_empty() {
            out.markup(&waterfall::figure(report, recording.head.nanoseconds));
        }
        let caption = format!("{name}: stages");
        let label = TableLabel {
            name: &id(""),
            caption: &caption,
            command: &command,
        };
        out.table(recording, label, |frame| table::html(report, frame));
        ledger(report, &id("ledger"), &command, recording, out);
        distribution(report, &id("totals"), &command, recording, out);
        if let Some(slow) = &report.slow {
            let caption = format!("{name}: what separates slow instances from the others");
            let label = TableLabel {
                name: &id("because"),
                caption: &caption,
                command: &command,
            };
            out.table(recording, label, |frame| table::because_html(slow, frame));
        }
    }
    let caption = format!("{name}: instances that did not complete");
    let label = TableLabel {
        name: &id("dropped"),
        caption: &caption,
        command: &command,
    };
    out.table(recording, label, |frame| table::dropped_html(report, frame));
    let example = recording.examples.iter().find(|one| one.path == name);
    examples(example, recording, out);
}

/// Writes who had the time.
fn ledger(
    report: &PathReport,
    name: &str,
    command: &str,
    recording: &Recording<'_>,
    out: &mut PageWriter,
) {
    let Some(line) = render::ledger::line(&report.ledger, recording.layout()) else {
        return;
    };
    out.paragraph(&line);
    for line in [
        render::ledger::recording(report, recording.layout()),
        render::ledger::cleared(report, recording.layout()),
    ]
    .into_iter()
    .flatten()
    {
        out.paragraph(&line);
    }
    let caption = format!("{}: who had the time", report.name);
    let label = TableLabel {
        name,
        caption: &caption,
        command,
    };
    out.table(recording, label, |frame| {
        render::ledger::html(report, frame)
    });
}

/// Returns the command that prints a path.
fn command(name: &str, recording: &Recording<'_>) -> String {
    let picture = recording.picture;
    let mut own = format!("--path {}", invocation::argument(name));
    let through_guests = is_through_guests(name, recording);
    // One that is followed on request alone, or through guests, is followed beside all others here, and what is known
    // of who woke a vCPU may come from these.
    if !::paths::BUILTIN.iter().any(|(built, _)| *built == name) {
        let most = if through_guests {
            usize::MAX
        } else {
            picture.paths.len()
        };
        let others = picture.all_paths().take(most);
        for other in others.filter(|other| other.name != name) {
            own.push_str(&format!(" --path {}", invocation::argument(&other.name)));
        }
    }
    match through_guests {
        true => recording.invocation.command_with_guests("paths", &own),
        false => recording.invocation.command("paths", &own),
    }
}

/// Whether a path goes through guests.
fn is_through_guests(name: &str, recording: &Recording<'_>) -> bool {
    let mut paths = recording.picture.guest_paths.iter();
    paths.any(|path| path.name == name)
}

/// A distribution as the script draws it.
#[derive(Debug, Serialize)]
struct Plot<'p> {
    title: Cow<'p, str>,
    x_label: &'static str,
    y_label: &'static str,
    series: Vec<Line<'p>>,
}

#[derive(Debug, Serialize)]
struct Line<'p> {
    label: &'p str,
    x: Vec<f64>,
    y: Vec<u64>,
}

/// Shares of instances at which a distribution is drawn: a hundred, and more of the tail.
fn shares() -> impl Iterator<Item = f64> {
    let all = (0..100u32).map(|at| f64::from(at) / 100.0);
    all.chain([
        0.991, 0.993, 0.995, 0.997, 0.998, 0.999, 0.9995, 0.9999, 1.0,
    ])
}

fn line<'p>(label: &'p str, stats: &Stats) -> Line<'p> {
    let x: Vec<f64> = shares().collect();
    Line {
        label,
        y: x.iter().map(|share| stats.percentile(*share)).collect(),
        x,
    }
}

/// Writes how long instances took, as a plot with its numbers.
fn distribution(
    report: &PathReport,
    id: &str,
    command: &str,
    recording: &Recording<'_>,
    out: &mut PageWriter,
) {
    let groups = report.groups.iter().filter(|one| one.stats.count() > 1);
    let groups = groups.take(GROUPS).map(|one| line(&one.label, &one.stats));
    let plot = Plot {
        title: render::neutral::name(&report.name),
        x_label: "share of instances that took no longer",
        y_label: match recording.head.nanoseconds {
            true => "time (ns, us, ms, s; logarithmic)",
            false => "time (ticks; logarithmic)",
        },
        series: std::iter::once(line("all", &report.total))
            .chain(groups)
            .collect(),
    };
    let json = serde_json::to_string(&plot).unwrap_or_default();
    let unit = if recording.head.nanoseconds {
        "ns"
    } else {
        "ticks"
    };
    let caption = format!("{}: how long instances took", report.name);
    let drawn = format!(
        "{}: percentiles of the time that instances took",
        report.name
    );
    out.markup(&format!(
        "<figure class=\"plot\" data-unit=\"{unit}\"><figcaption>{}</figcaption>\n<script \
         type=\"application/json\">{}</script>\n",
        escape(&drawn),
        data(&json)
    ));
    let label = TableLabel {
        name: id,
        caption: &caption,
        command,
    };
    out.table(recording, label, |frame| table::groups_html(report, frame));
    out.markup("</figure>\n");
}

/// Writes a slow and a fast instance of a path side by side, where there are any.
fn examples(examples: Option<&PathExamples>, recording: &Recording<'_>, out: &mut PageWriter) {
    let Some(examples) = examples else {
        return;
    };
    let nanoseconds = recording.head.nanoseconds;
    let both = [
        Some(("a slow one", &examples.slow)),
        examples.fast.as_ref().map(|one| ("a fast one", one)),
    ];
    let both: Vec<_> = both.into_iter().flatten().collect();
    out.markup("<div class=\"pair\">\n");
    for (what, one) in &both {
        let took = words::duration::of(one.total_ns(), nanoseconds);
        let caption = format!("{what}: instance {}, {took}", one.number);
        out.markup(&sequence::figure(&caption, one, nanoseconds));
    }
    out.markup("</div>\n");
    for (what, one) in both {
        let own = format!(
            "--path {} --instance {}",
            invocation::argument(&one.path),
            one.number
        );
        let command = match is_through_guests(&one.path, recording) {
            true => recording.invocation.command_with_guests("paths", &own),
            false => recording.invocation.command("paths", &own),
        };
        out.command(&format!("{}: {what} with its events", one.path), &command);
    }
}
