//! The slowest latency path.

use paths::PathReport;
use words::share;

use super::input::Input;
use super::line::{Line, Tone, wrapped};

/// Instances of which a 99th percentile is worth a comparison.
const ENOUGH: u64 = 20;

/// Returns the path whose slow instances take longest: that with the highest 99th percentile among those with enough
/// instances, if any has.
fn slowest<'a>(input: &Input<'a>) -> Option<&'a PathReport> {
    let paths = input.picture.paths.iter().filter(|path| path.count > 0);
    paths.max_by_key(|path| (path.count >= ENOUGH, path.total.percentile(0.99)))
}

/// Returns how often it was seen and how long it took.
fn took(input: &Input<'_>, path: &PathReport) -> String {
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

/// Returns what is known of it, in so many lines at most.
pub(crate) fn lines(input: &Input<'_>, width: usize, most: usize) -> Vec<Line> {
    let Some(path) = slowest(input) else {
        return Vec::new();
    };
    let label = (Tone::Strong, "slowest path: ");
    let mut text = took(input, path);
    if let Some(stage) = stage(path) {
        text.push_str(&format!("; {stage}"));
    }
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
pub(crate) fn short(input: &Input<'_>) -> Option<String> {
    let path = slowest(input)?;
    Some(format!("path {}", took(input, path)))
}
