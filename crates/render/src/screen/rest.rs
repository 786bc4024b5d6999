//! What a screen says around its numbers: what the recording is and does not have, where more is, and what there is
//! where no vCPU was recorded.

use analysis::SchedReport;
use std::cmp::Reverse;

use doubts::{DOUBT_LIST, Doubt, DoubtKind};
use textwrap::core::display_width;
use words::share;

use super::input::ScreenInput;
use super::line::{Line, Tone, wrapped};
use crate::{cost, cpu_usage, distributions, info, interrupts, perf_stat, sched, shares};

/// Tasks and kinds of events that are listed where there are no exits.
const ROWS: usize = 6;
/// Counts of perf stat that are listed.
const COUNTS: usize = 10;

/// Returns what the recording is.
pub(crate) fn about(input: &ScreenInput<'_>, width: usize) -> Vec<Line> {
    let text = format!("{}: {}", input.name, input.about());
    wrapped((Tone::Plain, ""), (Tone::Plain, &text), width, 2)
}

/// Returns the same in one line: a long name without its folders.
pub(crate) fn about_in_one_line(input: &ScreenInput<'_>, width: usize) -> String {
    let about = |name: &str| format!("in {name}: {}", input.about());
    let whole = about(input.name);
    let file = input.name.rsplit('/').next().unwrap_or(input.name);
    match display_width(&whole) <= width {
        true => whole,
        false => about(file),
    }
}

/// Returns the lines for a recording without exits: events, tasks, counts.
pub(crate) fn lines(input: &ScreenInput<'_>, width: usize) -> Vec<Line> {
    let picture = input.picture;
    if picture.exits.iter().any(|report| report.total_count > 0) {
        return Vec::new();
    }
    let mut out = String::new();
    if !input.printed() {
        out.push_str(&info::counts(&picture.info, ROWS));
        if picture.profile.is_some() {
            out.push_str("'trapline flame' shows what ran where the CPUs were sampled\n");
        }
    }
    if let Some(report) = picture
        .sched
        .as_ref()
        .filter(|report| !report.rows.is_empty())
    {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&(sched_sums(input, report) + "\n"));
        let table = sched::summary(report, input.layout(width, ROWS));
        out.extend(table.split_inclusive('\n').skip(1));
    }
    if let Some(shares) = &picture.shares {
        out.push_str(&shares::table(shares, input.layout(width, ROWS)));
    }
    if let Some(interrupts) = &picture.interrupts {
        out.push_str(&interrupts::table(interrupts, input.layout(width, ROWS)));
    }
    if !picture.cpu_usage.is_empty() {
        out.push_str(&cpu_usage::table(
            &picture.cpu_usage,
            input.layout(width, ROWS),
        ));
    }
    if !picture.virtio.is_empty() {
        out.push_str(&interrupts::queue_table(
            &picture.virtio,
            input.layout(width, ROWS),
        ));
    }
    if !picture.counts.is_empty() {
        let counts = analysis::ratios(picture);
        out.push_str(&perf_stat::table(
            &counts,
            picture.counted_by,
            picture.counted_ns,
            input.layout(width, COUNTS),
        ));
    }
    out.push_str(&distributions::text(&picture.distributions));
    out.lines()
        .map(|line| match line.is_empty() {
            true => Line::default(),
            false => Line::new(Tone::Plain, line),
        })
        .collect()
}

/// Returns how long tasks waited for a CPU, all together.
fn sched_sums(input: &ScreenInput<'_>, report: &SchedReport) -> String {
    let delays = &report.delays;
    format!(
        "sched: {}, {}, mean {}, max {}",
        words::plural(report.rows.len(), "task"),
        words::plural(delays.count(), "delay"),
        input.mean(delays),
        input.time(delays.max())
    )
}

/// Returns the same in one line.
pub(crate) fn short(input: &ScreenInput<'_>) -> Option<String> {
    let picture = input.picture;
    if picture.exits.iter().any(|report| report.total_count > 0) {
        return None;
    }
    let report = picture.sched.as_ref()?;
    let delays = &report.delays;
    let mut text = sched_sums(input, report);
    if let Some(row) = report.rows.first().filter(|row| row.delays.count() > 0) {
        let part = row.delays.total() as f64 / delays.total().max(1) as f64;
        let part = share::tenths(part.min(1.0));
        text.push_str(&format!("; {part} {}", sched::called(row)));
    }
    Some(text)
}

/// Returns what is missing in the recording, in so many lines at most: losses, its end, and the warning that counts
/// most.
pub(crate) fn quality(input: &ScreenInput<'_>, width: usize, most: usize) -> Vec<Line> {
    let quality = &input.picture.quality;
    let lost = match quality.lost_events {
        0 => "no events lost".to_owned(),
        lost => format!("{} lost", words::plural(lost, "event")),
    };
    let end = quality.extent();
    let mut text = format!("{lost}, {end}");
    let place = text.len();
    if let Some(report) = analysis::recording_cost(input.picture) {
        text.push_str(&format!(", {}", cost::short(&report)));
    }
    let doubts = quality.doubts.iter();
    // What can be done about it counts most, then what changes most.
    let grave = |doubt: &&Doubt| {
        let advice = matches!(doubt.kind, DoubtKind::FormatMissing { .. });
        // Of those that are as severe the list has first what limits more.
        let place = DOUBT_LIST.iter().position(|one| one.id == doubt.id());
        (advice, doubt.severity(), Reverse(place))
    };
    let first = doubts.clone().rev().max_by_key(grave);
    if let Some(first) = first.map(|doubt| crate::quality::with_columns(&doubt.text())) {
        text.push_str(&match doubts.len() {
            1 => format!("; warning: {first}"),
            all => format!("; {all} warnings ('--full' has all): {first}"),
        });
    }
    let tone = match quality.lost_events > 0 || quality.truncated {
        true => Tone::Warning,
        false => Tone::Strong,
    };
    let label = (tone, "quality: ");
    if let Some(accounted) = quality.accounted {
        let mut whole = text.clone();
        whole.insert_str(place, &format!(", {}", accounted.text()));
        // That all is accounted for takes no room from what is wrong.
        let fits = wrapped(label, (Tone::Plain, &whole), width, usize::MAX).len() <= most;
        if fits || accounted.events != accounted.read {
            text = whole;
        }
    }
    wrapped(label, (Tone::Plain, &text), width, most)
}

/// Returns the command that shows more. It is whole, however long the name is: a part of it would be of no use.
pub(crate) fn more(input: &ScreenInput<'_>) -> Line {
    Line::new(Tone::Plain, &format!("more: {}", input.more))
}
