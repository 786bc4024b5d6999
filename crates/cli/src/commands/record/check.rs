//! `trapline record --check`: what is missing for recording here.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use event::Quality;
use record::check::{CheckLine, CheckRequest, lines, look};
use record::{PlannedEvent, RecordPlan};
use recording::FlightRequest;
use render::ClockUnit;
use render::{csv, quality};
use serde::Serialize;

use crate::answer::Answer;
use crate::commands::record::args::RecordArgs;
use crate::output;

/// What 'trapline top' alone takes.
const OF_TOP: [&str; 2] = ["bpf", "btf"];

/// Folders of one recorder that are looked for: more are not worth the time.
const MOST_NAMES: usize = 10_000;

/// What JSON has.
#[derive(Serialize)]
struct Document<'l> {
    checks: &'l [CheckLine],
}

/// Prints the whole list.
pub(super) fn run(args: &RecordArgs, plan: &RecordPlan) -> Result<()> {
    let lines = found(args, plan);
    let inputs = [Path::new("/").display().to_string()];
    let answer = Answer {
        format: args.format,
        command: "record",
        inputs: &inputs,
        quality: &Quality::default(),
        clock: ClockUnit::Nanoseconds,
    };
    answer.print(
        || {
            lines
                .iter()
                .map(|line| shown(line, output::width()))
                .collect()
        },
        || Document { checks: &lines },
        |_| table(&lines),
    )?;
    match lines.iter().find(|line| line.needed && !line.ok) {
        Some(line) => bail!("nothing can be recorded: {}", line.found),
        None => Ok(()),
    }
}

/// Says what fails of the list, where recording could not begin.
pub(super) fn say(args: &RecordArgs, plan: &RecordPlan) {
    let lines = found(args, plan).into_iter();
    let lines = lines.filter(|line| !line.ok && !OF_TOP.contains(&line.name));
    let text: String = lines.map(|line| shown(&line, output::width())).collect();
    // Why recording fails is said behind it, whether this can be written or not.
    let _ = write!(io::stderr(), "{text}");
}

/// Refuses to keep what could not be written later.
pub(super) fn folder(args: &RecordArgs, plan: &RecordPlan) -> Result<()> {
    let lines = found(args, plan).into_iter();
    let mut failing = lines.filter(|line| line.name == "folder" && line.needed && !line.ok);
    match failing.next() {
        Some(line) => bail!("{}", line.sentence()),
        None => Ok(()),
    }
}

fn found(args: &RecordArgs, plan: &RecordPlan) -> Vec<CheckLine> {
    let names = FlightRequest::folders(args.output.as_deref(), args.times);
    let names = names.take(MOST_NAMES).collect();
    checked(
        args.output.as_deref(),
        plan.events.clone(),
        plan.ring_bytes,
        names,
    )
}

/// Returns what is there of what recording takes: these events, rings of so many bytes (0: what suits the machine),
/// and folders of these names, beside `output`.
pub(in crate::commands) fn checked(
    output: Option<&Path>,
    events: Vec<PlannedEvent>,
    ring_bytes: usize,
    names: Vec<PathBuf>,
) -> Vec<CheckLine> {
    let folder = match output.and_then(Path::parent) {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let folder = folder.canonicalize().unwrap_or(folder);
    lines(&look(&CheckRequest {
        events,
        ring_bytes,
        folder,
        names,
    }))
}

fn shown(line: &CheckLine, width: usize) -> String {
    let label = match line.ok {
        true => format!("ok       {:<9}", line.name),
        false => format!("missing  {:<9}", line.name),
    };
    let mut text = String::new();
    quality::wrap(&mut text, &label, &line.sentence(), width);
    text
}

fn table(lines: &[CheckLine]) -> String {
    let mut text = String::new();
    csv::row(
        &mut text,
        ["name", "ok", "needed", "found", "remedy", "without"],
    );
    for line in lines {
        let [ok, needed] = [line.ok, line.needed].map(|yes| yes.to_string());
        let texts = [&line.remedy, &line.without].map(|text| text.as_deref().unwrap_or_default());
        csv::row(
            &mut text,
            [line.name, &ok, &needed, &line.found, texts[0], texts[1]],
        );
    }
    text
}
