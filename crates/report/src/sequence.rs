//! Instances of paths as sequence diagrams: a line for each thread, an arrow for each step.

use std::fmt::Write;

use ::paths::InstanceReport;
use render::html::escape;
use render::paths_instance;
use words::duration;

use crate::out::cut;

/// Where the first thread's line is, how far they are apart, and how high a step is.
const LEFT: usize = 150;
const APART: usize = 150;
const STEP: usize = 34;
const HEAD: usize = 40;
/// Steps, and threads, that are drawn at most.
const STEPS: usize = 60;
const THREADS: usize = 12;

/// Returns an instance as a figure, with its steps as text.
pub(crate) fn figure(caption: &str, one: &InstanceReport, nanoseconds: bool) -> String {
    let parts = paths_instance::parts(one);
    let shown = parts.len().min(THREADS);
    let steps = one.steps.len().min(STEPS);
    let width = LEFT + APART * shown.max(1);
    let height = HEAD + STEP * steps + 20;
    let text = paths_instance::steps(one, nanoseconds, 100);
    let mut out = format!(
        "<figure class=\"sequence\"><figcaption>{}</figcaption>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" \
         aria-label=\"diagram\"><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">\n",
        escape(caption),
        escape(&format!(
            "{caption}: its steps stand below the diagram as text"
        ))
    );
    for (at, part) in parts.iter().take(shown).enumerate() {
        let x = line_of(at);
        let _ = writeln!(
            out,
            "<g><title>{}</title><text class=\"thread\" x=\"{x}\" y=\"16\">{}</text><path class=\"life\" d=\"M{x} \
             24V{}\"/></g>",
            escape(&render::neutral::name(part)),
            escape(&cut(part, 20)),
            height - 8
        );
    }
    let first = one.steps.first().map_or(0, |step| step.time);
    for (at, step) in one.steps.iter().take(steps).enumerate() {
        let (from, to) = paths_instance::arrow(one, at, &parts);
        let (from, to) = (
            from.min(shown.saturating_sub(1)),
            to.min(shown.saturating_sub(1)),
        );
        let y = HEAD + STEP * at + 16;
        let offset = duration::of(step.time.saturating_sub(first), nanoseconds);
        let _ = write!(
            out,
            "<g><title>{}: +{offset}, {}</title><text class=\"offset\" x=\"4\" y=\"{}\">+{offset}</text>{}",
            escape(&render::neutral::name(&step.name)),
            escape(&render::neutral::name(&step.thread)),
            y + 4,
            arrow(line_of(from), line_of(to), y)
        );
        // The name stands above its arrow, or beside its point.
        let (x, y, class) = match from == to {
            true => (line_of(to) + 9, y + 4, "step beside"),
            false => ((line_of(from) + line_of(to)) / 2, y - 5, "step"),
        };
        let _ = writeln!(
            out,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text></g>",
            escape(&cut(&step.name, 22))
        );
    }
    let _ = writeln!(
        out,
        "</svg></div>\n<details><summary>its steps as text</summary><pre>{}</pre></details></figure>",
        escape(&text)
    );
    out
}

fn line_of(at: usize) -> usize {
    LEFT + APART * at
}

/// Returns an arrow, or a point where it would lead to where it begins.
fn arrow(from: usize, to: usize, y: usize) -> String {
    if from == to {
        return format!("<circle class=\"point\" cx=\"{to}\" cy=\"{y}\" r=\"4\"/>");
    }
    let back = if from < to { to - 7 } else { to + 7 };
    format!(
        "<path class=\"arrow\" d=\"M{from} {y}H{back}\"/><path class=\"head\" d=\"M{back} {}L{to} {y}L{back} {}Z\"/>",
        y - 4,
        y + 4
    )
}

#[cfg(test)]
mod tests {
    use ::paths::StepReport;

    use super::*;

    fn step(name: &str, time: u64, does: &str, to: Option<&str>) -> StepReport {
        StepReport {
            machine: None,
            name: name.into(),
            time,
            cpu: 1,
            tid: 7,
            thread: does.into(),
            does: does.into(),
            to: to.map(Into::into),
        }
    }

    #[test]
    fn an_instance_is_a_line_for_each_thread_and_an_arrow_for_each_step() {
        let one = InstanceReport {
            path: "irqfd".into(),
            number: 3,
            steps: vec![
                step("signalled", 1_000, "vhost-<img src=x>:9", None),
                step("woken", 3_000, "vhost-<img src=x>:9", Some("CPU 0/KVM:8")),
                step("runs", 67_000_000, "CPU 0/KVM:8", None),
            ],
            ..InstanceReport::default()
        };
        let html = figure("a slow one", &one, true);
        let document = roxmltree::Document::parse(&html).expect("well-formed");
        let count = |class: &str| {
            let nodes = document.descendants();
            nodes
                .filter(|node| node.attribute("class") == Some(class))
                .count()
        };
        assert_eq!(
            (
                count("thread"),
                count("arrow"),
                count("point"),
                count("offset")
            ),
            (2, 1, 2, 3)
        );
        assert!(!html.contains("<img"));
        let texts: Vec<&str> = document
            .descendants()
            .filter(|node| node.attribute("class") == Some("offset"))
            .filter_map(|node| node.text())
            .collect();
        assert_eq!(texts, ["+0ns", "+2.000us", "+67.00ms"]);
    }
}
