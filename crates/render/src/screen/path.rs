//! The slowest latency path.

use paths::PathReport;
use words::share;

use super::input::ScreenInput;
use super::line::{Line, Tone, wrapped};

/// Returns the slowest of the host's paths that rules look at, also where more are followed: a whole report begins as
/// a short one does, and one that is slow without an explanation is a finding of theirs.
fn slowest<'a>(input: &'a ScreenInput<'_>) -> Option<&'a PathReport> {
    let looked_at = |path: &&PathReport| rules::PATHS.contains(&path.name.as_str());
    PathReport::slowest(input.picture.paths.iter().filter(looked_at))
}

/// Returns how often it was seen and how long it took.
fn took(input: &ScreenInput<'_>, path: &PathReport) -> String {
    let total = &path.total;
    format!(
        "{}, {}: p50 {}, p99 {}, max {}",
        path.name,
        words::times(path.count),
        input.time(total.percentile(0.5)),
        input.time(total.percentile(0.99)),
        input.time(total.max())
    )
}

/// Returns the stage that took most of all instances' time, and its share.
fn stage(path: &PathReport) -> Option<String> {
    let stage = path.stages.iter().max_by_key(|stage| stage.stats.total())?;
    let part = stage.stats.total() as f64 / path.total.total().max(1) as f64;
    (path.stages.len() > 1).then(|| {
        format!(
            "'{}' takes {} of that time",
            stage.name,
            share::tenths(part.min(1.0))
        )
    })
}

/// Returns how often it was seen, how long it took, and where most of that went.
fn path_line(input: &ScreenInput<'_>, path: &PathReport) -> String {
    let mut text = took(input, path);
    if let Some(stage) = stage(path) {
        text.push_str(&format!("; {stage}"));
    }
    text
}

/// Returns what is known of the host's slowest path and of the slowest one through guests, in so many lines at most.
/// One through guests has several of the host's in it, so that it does not stand in their place.
pub(crate) fn lines(input: &ScreenInput<'_>, width: usize, most: usize) -> Vec<Line> {
    let mut out = of_host(input, width, most);
    // Without a step within a guest it is what a path of the host is.
    let guests = input.picture.guest_paths.iter();
    let guests = guests.filter(|path| path.in_guests == Some(true));
    if let Some(path) = PathReport::slowest(guests) {
        let label = (Tone::Strong, "slowest through guests: ");
        let text = path_line(input, path);
        let room = most.saturating_sub(out.len()).min(2);
        out.extend(wrapped(label, (Tone::Plain, &text), width, room));
    }
    out
}

fn of_host(input: &ScreenInput<'_>, width: usize, most: usize) -> Vec<Line> {
    let Some(path) = slowest(input) else {
        return Vec::new();
    };
    let label = (Tone::Strong, "slowest path: ");
    let text = path_line(input, path);
    let mut out = wrapped(label, (Tone::Plain, &text), width, most.min(2));
    if let Some(slowest) = path.slow.as_ref().and_then(|slow| slow.slowest.as_ref()) {
        let text = format!(
            "its slowest, instance {}: {}",
            slowest.instance, slowest.text
        );
        out.extend(wrapped(
            (Tone::Plain, "  "),
            (Tone::Plain, &text),
            width,
            most.saturating_sub(out.len()),
        ));
    }
    out
}

/// Returns the same in one line.
pub(crate) fn short(input: &ScreenInput<'_>) -> Option<String> {
    let path = slowest(input)?;
    Some(format!("path {}", took(input, path)))
}
