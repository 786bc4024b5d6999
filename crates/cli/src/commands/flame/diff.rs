//! `trapline flame A --diff B`: what changed from A to B.

use std::path::Path;

use anyhow::{Result, bail};
use compare::comparable_frame;
use doubts::DoubtKind;
use render::ClockUnit;
use render::flame;
use render::flame_diff;
use render::flame_picture::{FlamePicture, Graph};
use stacks::Diff;

use super::picture::doubt_notes;
use super::write::{Content, Form, write};
use super::{CollectedProfile, FlameArgs, collect, limit, wrote};
use crate::answer::Answer;
use crate::opening::{self, AccompanyingFiles};
use crate::output;
use crate::usage::Usage;

/// Runs the command. `a` is the first recording, `after` the file of the second.
pub(super) fn run(
    args: &FlameArgs,
    output: Option<(&Path, Form)>,
    a: CollectedProfile,
    after: &Path,
) -> Result<()> {
    // Kernels lie elsewhere after the host booted again, so each recording may have names of its own.
    let beside = AccompanyingFiles {
        kallsyms: args.diff_kallsyms.as_deref().or(args.kallsyms.as_deref()),
        guest_kallsyms: (args.diff_guest_kallsyms.as_deref()).or(args.guest_kallsyms.as_deref()),
        guest_modules: args.guest_modules.as_deref(),
        guestmount: args.guestmount.as_deref(),
        binaries: args.binaries.options(),
        kernels: Some(args.binaries.options()),
        ..AccompanyingFiles::default()
    };
    let session = opening::session(&args.common, &beside, &[after])?;
    let input = session.input(after)?;
    if input.is_folded() {
        bail!(
            "{}: is folded stacks, and --diff is for recordings: difffolded.pl compares two files of stacks",
            input.name()
        );
    }
    let mut b = collect(args, &session, &input)?;
    let (event_a, event_b) = (event(&a), event(&b));
    if event_a != event_b {
        let text = format!(
            "A has samples of {event_a} and B of {event_b}: their shares mean different things. --event chooses the \
             event."
        );
        b.quality.raise(DoubtKind::SidesDiffer { text });
    }
    let diff = Diff::of(&a.report.stacks, &b.report.stacks, comparable_frame);
    let reports = [&a.report, &b.report];
    let names = [a.name.as_str(), b.name.as_str()];
    let notes = flame_diff::notes(&diff, reports, names);
    if let Some((file, form)) = output {
        let left_out = write_file(file, form, &diff, &notes, [&a, &b])?;
        for side in [&a, &b] {
            output::say_doubts(&side.name, &side.quality)?;
        }
        return output::print(&wrote(file, &left_out));
    }
    let mut quality = a.quality.clone();
    quality.merge(b.quality.clone());
    let answer = Answer {
        format: args.common.format,
        command: "flame",
        inputs: &[a.name.clone(), b.name.clone()],
        quality: &quality,
        clock: ClockUnit::of_all([a.nanoseconds, b.nanoseconds]),
    };
    answer.print(
        || {
            let layout = answer.layout(limit(args));
            let mut text = flame_diff::table(&diff, &notes, layout);
            for side in [&a, &b] {
                text.push('\n');
                text.push_str(&output::quality(&side.name, &side.quality));
            }
            text
        },
        || flame_diff::document(&diff, reports),
        |_| flame_diff::csv(&diff),
    )
}

/// The event of a recording, without modifiers (`perf help list`), which say where it was counted.
fn event(side: &CollectedProfile) -> &str {
    let event = side.report.event.as_deref().unwrap_or("no event");
    let is_modifier = |letter: char| "ukhGHIpPSDWeb".contains(letter);
    match event.rsplit_once(':') {
        Some((event, modifiers)) if modifiers.chars().all(is_modifier) => event,
        _ => event,
    }
}

fn write_file(
    file: &Path,
    form: Form,
    diff: &Diff,
    notes: &[String],
    sides: [&CollectedProfile; 2],
) -> Result<Vec<String>> {
    let mut notes = notes.to_vec();
    notes.push(
        "Boxes are as wide as their share of B. 'Widths' makes them as wide as that of A, with those that only A has."
            .to_owned(),
    );
    for (side, label) in sides.iter().zip(["A: ", "B: "]) {
        notes.extend(doubt_notes(label, &side.quality));
    }
    let [a, b] = sides.map(|side| side.name.rsplit('/').next().unwrap_or_default());
    let title = format!("What changed from {a} to {b}");
    let content = Content {
        folded: &|most, line| stacks::folded_pair(diff, most, line),
        speedscope: &|| {
            Err(Usage::error(
                "speedscope's file format has no differences: -o x.svg, .html or .folded",
            ))
        },
        pprof: &|| {
            Err(Usage::error(
                "a profile of pprof's has no differences: -o x.svg, .html or .folded, or one file of each and \
                 'pprof -diff_base'",
            ))
        },
        firefox: &|| {
            Err(Usage::error(
                "a profile for the Firefox Profiler has no differences: -o x.svg, .html or .folded",
            ))
        },
        picture: FlamePicture {
            title: &title,
            notes: &notes,
            graph: Graph::Diff(diff),
            nanoseconds: sides.iter().all(|side| flame::is_time(&side.report)),
        },
    };
    write(file, form, &content)
}
