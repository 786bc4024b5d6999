//! The stages of a path as a waterfall: each begins where those before it end.

use std::fmt::Write;

use ::paths::{PathReport, StageReport};
use render::html::escape;
use words::duration;

use crate::out::cut;

const WIDTH: u32 = 960;
/// Where bars begin, and how wide all of them are together.
const LEFT: u32 = 300;
const BARS: u32 = 440;
/// Height of a bar.
const BAR: u32 = 12;
/// Stages that are drawn at most.
const STAGES: usize = 60;

/// One of the two sides that are drawn: slow instances, others; or all.
struct Side {
    class: &'static str,
    letter: char,
    label: &'static str,
    of: fn(&StageReport) -> Option<u64>,
}

const ALL: Side = Side {
    class: "w-all",
    letter: 'A',
    label: "mean of all instances",
    of: |stage| Some(stage.stats.mean()),
};
const FAST: Side = Side {
    class: "w-fast",
    letter: 'F',
    label: "mean of fast instances",
    of: |stage| stage.fast_mean_ns,
};
const SLOW: Side = Side {
    class: "w-slow",
    letter: 'S',
    label: "mean of slow instances",
    of: |stage| stage.slow_mean_ns,
};

/// Returns the stages as a figure, those of each chain by themselves: of slow instances and of fast ones, where there
/// are slow ones.
pub(crate) fn figure(report: &PathReport, nanoseconds: bool) -> String {
    let slow = report.slow.as_ref().is_some_and(|slow| slow.count > 0);
    let sides: &[Side] = if slow { &[FAST, SLOW] } else { &[ALL] };
    let chains = report
        .stages
        .chunk_by(|one, other| one.chain == other.chain);
    let mut out = "<figure class=\"waterfall\">".to_owned();
    let caption = format!("Stages of {}, one after another", report.name);
    let _ = write!(
        out,
        "<figcaption>{}</figcaption>\n<ul class=\"legend\">\n",
        escape(&caption)
    );
    for side in sides {
        let _ = writeln!(
            out,
            "<li><svg xmlns=\"http://www.w3.org/2000/svg\" width=\"22\" height=\"16\" aria-hidden=\"true\"><rect \
             class=\"{}\" width=\"22\" height=\"16\"/><text class=\"letter {}\" x=\"11\" y=\"12\">{}</text></svg> \
             {}</li>",
            side.class, side.class, side.letter, side.label
        );
    }
    out.push_str("</ul>\n");
    // One scale for all chains, so that bars can be compared.
    let sums = chains
        .clone()
        .flat_map(|stages| sides.iter().map(move |side| sum(stages, side)));
    let longest = sums.max().unwrap_or(0).max(1) as f64;
    for stages in chains {
        let shown = stages.get(..STAGES.min(stages.len())).unwrap_or_default();
        chain(&mut out, shown, sides, longest, nanoseconds);
    }
    out + "</figure>\n"
}

/// Returns how long stages are together.
fn sum(stages: &[StageReport], side: &Side) -> u64 {
    let all = stages.iter().filter_map(side.of);
    all.fold(0, u64::saturating_add)
}

fn chain(
    out: &mut String,
    stages: &[StageReport],
    sides: &[Side],
    longest: f64,
    nanoseconds: bool,
) {
    let name = stages.first().and_then(|stage| stage.chain.as_deref());
    let row = BAR * sides.len() as u32 + 10;
    let head = if name.is_some() { 20 } else { 4 };
    let height = head + row * stages.len() as u32 + 4;
    let _ = writeln!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"diagram\"><svg \
         xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{}\">",
        escape(&said(stages, sides, nanoseconds))
    );
    if let Some(name) = name {
        let _ = writeln!(
            out,
            "<text class=\"chain\" x=\"0\" y=\"14\">{}</text>",
            escape(&cut(name, 60))
        );
    }
    let mut begin = vec![0u64; sides.len()];
    for (at, stage) in stages.iter().enumerate() {
        let y = head + row * at as u32;
        let label = escape(&render::neutral::name(&stage.name));
        let _ = write!(
            out,
            "<g><title>{label}</title><text class=\"name\" x=\"{}\" y=\"{}\">{}</text>",
            LEFT - 8,
            y + row / 2 + 2,
            escape(&cut(&stage.name, 44))
        );
        for ((side, begin), place) in sides.iter().zip(&mut begin).zip(0u32..) {
            let Some(ns) = (side.of)(stage) else {
                continue;
            };
            let scale = |ns: u64| ns as f64 / longest * f64::from(BARS);
            let (x, width) = (f64::from(LEFT) + scale(*begin), scale(ns).max(0.75));
            let y = y + place * BAR;
            let end = x + width + 6.0;
            let _ = write!(
                out,
                "<rect class=\"{}\" x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\"/><text class=\"numbers\" \
                 x=\"{end:.2}\" y=\"{}\">{} {}</text>",
                side.class,
                BAR - 2,
                y + BAR - 3,
                side.letter,
                duration::of(ns, nanoseconds)
            );
            *begin = begin.saturating_add(ns);
        }
        out.push_str("</g>\n");
    }
    out.push_str("</svg></div>\n");
}

/// Returns the same in words.
fn said(stages: &[StageReport], sides: &[Side], nanoseconds: bool) -> String {
    let stages = stages.iter().map(|stage| {
        let of = sides.iter().filter_map(|side| {
            let ns = (side.of)(stage)?;
            Some(format!("{} {}", side.label, duration::of(ns, nanoseconds)))
        });
        let of: Vec<String> = of.collect();
        format!("{}: {}", stage.name, of.join(", "))
    });
    stages.collect::<Vec<_>>().join("; ")
}
