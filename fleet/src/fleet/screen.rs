//! The answer as one screen, as a document, and as lines.

use std::io::{self, Write};

use anyhow::Result;
use serde_json::json;

use super::FleetAnswer;
use crate::output::{StoreLosses, csv_line, cut};
use crate::request::Request;
use crate::view::StoreView;

/// Lines of the whole screen.
const LINES: usize = 40;
/// Columns of a line.
const COLUMNS: usize = 80;
/// Lines of each part, where all have as many.
const PART: usize = 5;

/// A part of the screen: its heading, its lines, and what is said where there are none.
struct ScreenPart {
    title: &'static str,
    lines: Vec<String>,
    none: &'static str,
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn plural(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        many => format!("{many} {what}s"),
    }
}

fn times(ratio: f64) -> String {
    match ratio >= 1.0 {
        true => format!("{ratio:.1}x"),
        false => format!("1/{:.1}x", 1.0 / ratio),
    }
}

fn parts(answer: &FleetAnswer) -> Vec<ScreenPart> {
    let problems = answer.problems.iter().map(|one| {
        let news = match (one.came, one.went) {
            (0, 0) => String::new(),
            (came, went) => format!(", {came} came, {went} went"),
        };
        format!(
            "{:<6} {}: {} of {}{news}; {:.1} s, worst {} {}",
            one.severity,
            one.id,
            one.hosts,
            one.could_tell,
            one.cost_ns / 1e9,
            cut(&one.worst_host),
            percent(one.worst_share),
        )
    });
    let news = answer.news.iter().map(|one| {
        format!(
            "{:>7} {}: {} ({})",
            times(one.ratio),
            cut(&one.host),
            one.metric,
            cut(&one.peers)
        )
    });
    let shifts = answer.shifts.iter().map(|one| {
        format!(
            "{:>7} {}: {}, more on {} of {} hosts",
            times(one.ratio),
            cut(&one.peers),
            one.metric,
            one.ups,
            one.hosts
        )
    });
    let outliers = answer.outliers.iter().map(|one| {
        format!(
            "{:>7} {}: {}, {} days",
            times(one.ratio),
            cut(&one.host),
            one.metric,
            one.days
        )
    });
    let shared = answer.shared.iter().map(|one| {
        format!(
            "{}: {} = {} on {} of {} with it, {} of {} others",
            one.problem,
            one.fact,
            cut(&one.value),
            one.sick_with,
            one.sick,
            one.others_with,
            one.others
        )
    });
    let part = |title, lines: Vec<String>, none| ScreenPart { title, lines, none };
    vec![
        part(
            "problems: hosts that have one, of those that could tell",
            problems.collect(),
            "none was found",
        ),
        part(
            "news: hosts that changed, beyond what their peers did",
            news.collect(),
            "none",
        ),
        part(
            "shifts: groups that changed as a whole",
            shifts.collect(),
            "none",
        ),
        part(
            "outliers: hosts unlike their peers on all days",
            outliers.collect(),
            "none",
        ),
        part(
            "what hosts with a problem share",
            shared.collect(),
            "nothing beyond chance",
        ),
    ]
}

/// Prints the screen.
pub(super) fn text(out: &mut dyn Write, answer: &FleetAnswer, view: &StoreView) -> io::Result<()> {
    let mut lines = Vec::new();
    let coverage = &answer.coverage;
    let against = match coverage.before.as_slice() {
        [] => "no day before".to_owned(),
        [one] => one.clone(),
        [first, .., last] => format!("{} days, {first} to {last}", coverage.before.len()),
    };
    lines.push(format!(
        "{}: {}, {}; against {against}",
        coverage.day,
        plural(coverage.hosts, "host"),
        plural(coverage.recordings, "recording")
    ));
    lines.push(format!(
        "peers by {}: {}, {} large enough to test",
        coverage.peers.join(", "),
        plural(coverage.groups, "group"),
        coverage.tested_groups
    ));
    for (what, hosts) in [
        ("missing", &coverage.missing),
        ("lossy, not tested", &coverage.lossy),
    ] {
        if !hosts.is_empty() {
            let some: Vec<String> = hosts.iter().take(3).map(|host| cut(host)).collect();
            let more = hosts.len().saturating_sub(some.len());
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            lines.push(format!("{what}: {}{more}", some.join(", ")));
        }
    }
    if !view.unread.is_empty() {
        lines.push(format!("files left out: {}", view.unread.len()));
    }
    lines.extend(answer.limits.iter().take(PART).cloned());
    if answer.limits.len() > PART {
        let more = answer.limits.len() - PART;
        lines.push(format!("... and {more} more such limits (--format json)"));
    }
    let open: Vec<String> = answer
        .to_open
        .iter()
        .flat_map(|one| {
            [
                format!("{}: {}", cut(&one.host), one.why),
                format!("  {}", one.command),
            ]
        })
        .collect();
    let parts = parts(answer);
    // What is not needed by one part is the others'.
    let room = LINES.saturating_sub(lines.len() + open.len() + 2 + parts.len());
    let wanted: usize = parts
        .iter()
        .map(|part| part.lines.len().clamp(1, PART))
        .sum();
    let more = room.saturating_sub(wanted);
    let mut spare = more;
    for part in &parts {
        lines.push(format!("{}:", part.title));
        if part.lines.is_empty() {
            lines.push(format!("  {}", part.none));
            continue;
        }
        let own = part.lines.len().min(PART);
        let extra = (part.lines.len() - own).min(spare);
        spare -= extra;
        let shown = own + extra;
        let left = part.lines.len() - shown;
        for (number, line) in part.lines.iter().take(shown).enumerate() {
            match left > 0 && number + 1 == shown {
                true => lines.push(format!("  ... and {} more (--format json)", left + 1)),
                false => lines.push(format!("  {line}")),
            }
        }
    }
    lines.push("open first:".to_owned());
    match open.is_empty() {
        true => lines.push("  nothing stands out".to_owned()),
        false => lines.extend(open.iter().map(|line| format!("  {line}"))),
    }
    for line in lines {
        // A command is for a shell: it stands whole.
        let is_command = line.trim_start().starts_with("trapline ");
        let shown: String = match is_command || line.chars().count() <= COLUMNS {
            true => line,
            false => line
                .chars()
                .take(COLUMNS - 3)
                .chain("...".chars())
                .collect(),
        };
        writeln!(out, "{shown}")?;
    }
    Ok(())
}

/// Prints the document.
pub(super) fn document(
    out: &mut dyn Write,
    request: &Request,
    view: &StoreView,
    losses: StoreLosses,
    answer: &FleetAnswer,
) -> Result<()> {
    let mut document = json!({
        "trapline": env!("CARGO_PKG_VERSION"),
        "schema": request.schema,
        "command": "fleet",
        "inputs": request.inputs,
        "quality": losses.quality(view),
        "left_out": view.unread,
    });
    if let (Some(document), Some(own)) = (document.as_object_mut(), json!(answer).as_object_mut()) {
        document.append(own);
    }
    writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
    Ok(())
}

/// Prints a line for each thing that was found.
pub(super) fn csv(out: &mut dyn Write, answer: &FleetAnswer) -> io::Result<()> {
    let mut line = |cells: [&str; 5]| csv_line(out, &cells.map(str::to_owned));
    line(["part", "host", "what", "ratio", "p_value"])?;
    for one in &answer.problems {
        let share = one.worst_share.to_string();
        line(["problem", &one.worst_host, &one.id, &share, ""])?;
    }
    for one in &answer.news {
        line([
            "news",
            &one.host,
            &one.metric,
            &one.ratio.to_string(),
            &one.p_value.to_string(),
        ])?;
    }
    for one in &answer.shifts {
        line([
            "shift",
            "",
            &one.metric,
            &one.ratio.to_string(),
            &one.p_value.to_string(),
        ])?;
    }
    for one in &answer.outliers {
        line([
            "outlier",
            &one.host,
            &one.metric,
            &one.ratio.to_string(),
            "",
        ])?;
    }
    for one in &answer.shared {
        let what = format!("{}: {} = {}", one.problem, one.fact, one.value);
        line(["shared", "", &what, "", &one.p_value.to_string()])?;
    }
    for one in &answer.to_open {
        line(["open", &one.host, &one.command, "", ""])?;
    }
    Ok(())
}
