//! `trapline paths`: latency paths, stage by stage.

pub(crate) mod args;
mod each;
mod instance;

use anyhow::{Context, Result};
use model::GuestAccess;
use paths::Paths;
use paths::lang::{self, PathDefinition};
use render::ClockUnit;
use render::paths as render_paths;
use render::paths_order;
use session::{GuestPairing, OpenRecording};

use crate::answer::Answer;
use crate::commands::paths::args::PathsArgs;
use crate::opening::{self, AccompanyingFiles};
use crate::output;
use crate::usage::Usage;

/// Groups of a path that the table shows.
const SHOWN: usize = 12;

/// Runs the command.
pub(crate) fn run(args: &PathsArgs) -> Result<()> {
    let mut wanted = wanted(args)?;
    if args.instance.is_some() && wanted.len() != 1 {
        return Err(Usage::error(format!(
            "--instance is a number among the instances of one path, and {} are asked for; choose one with --path",
            wanted.len()
        )));
    }
    let beside = AccompanyingFiles {
        with_guests: true,
        mtree: args.mtree.as_deref(),
        ..AccompanyingFiles::default()
    };
    let named = args.guests.host()?;
    let inputs = named.inputs();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let host = session.host(&named.recording, &named.guests)?;
    let recording = host.input().recording_with_symbols()?;
    let paired = host.paired(&recording)?;
    let guests = &paired.guests;
    if args.path.is_empty() && args.from.is_none() {
        if !guests.is_empty() {
            wanted.extend(paths::with_guests());
        }
        wanted.extend(recording.pair_paths());
    }
    let together = PairedRecordings {
        recording: &recording,
        paired: &paired,
        names: host.names(),
    };
    let devices = session.devices();
    let follower = || {
        let mut follower = Paths::new(wanted.clone());
        if let Some(ns) = args.slow {
            follower.slow_from(ns);
        }
        follower.only(recording.instances());
        recording.locate_with(&mut follower, guests);
        follower
    };
    if args.each {
        return each::run(args, &together, devices, &follower);
    }
    if let Some(number) = args.instance {
        return instance::run(args, number, &together, devices, follower());
    }
    let mut question = recording.question(&paired);
    let asked = question.add(follower());
    let answers = question.walk();
    let follower = answers.take(asked);
    let names = devices.names(follower.isa());
    let name_access = |access: &GuestAccess| analysis::name_access(access, &names);
    let mut reports = follower.report(answers.walked().machine, &name_access);
    recording.complete_paths(&mut reports);
    args.sort
        .apply(|column| paths_order::sort(&mut reports, column))?;
    recording.require_choice(reports.iter().any(|report| report.count > 0))?;
    let quality = &answers.quality;
    let answer = Answer {
        format: args.common.format,
        command: "paths",
        inputs: &together.names,
        quality,
        clock: ClockUnit::of(recording.nanoseconds()),
    };
    answer.print(
        || {
            let layout = answer.layout(args.limit.rows_or(SHOWN));
            let mut text = render_paths::table(&reports, layout);
            text.push('\n');
            text.push_str(&output::quality(&together.names.join(", "), quality));
            text
        },
        || render_paths::document(&reports, &quality.all_doubts()),
        |clock| render_paths::csv(&reports, clock),
    )
}

/// A host's recording and those of its guests, which are walked together.
struct PairedRecordings<'t> {
    recording: &'t OpenRecording<'t>,
    paired: &'t GuestPairing<'t>,
    /// Of all, the host's first.
    names: Vec<String>,
}

/// Returns a built-in path, or the path that a file describes. A name that is neither is wrong usage.
pub(super) fn read_path(name: &str) -> Result<PathDefinition> {
    read_path_of("--path", name)
}

/// Does the same for another option.
pub(super) fn read_path_of(option: &str, name: &str) -> Result<PathDefinition> {
    let is_name = !name.contains(['/', '.']) && !std::path::Path::new(name).exists();
    session::read_path_of(option, name).map_err(|error| match is_name {
        true => Usage::error(error.to_string()),
        false => error.into(),
    })
}

/// Returns the paths that were asked for.
fn wanted(args: &PathsArgs) -> Result<Vec<PathDefinition>> {
    let mut wanted = Vec::new();
    for name in &args.path {
        wanted.push(read_path(name)?);
    }
    if let (Some(from), Some(to)) = (&args.from, &args.to) {
        let join =
            lang::PairJoin::parse(&args.join).with_context(|| format!("--join {}", args.join))?;
        wanted.push(lang::pair(from, to, &join)?);
    }
    if wanted.is_empty() {
        wanted = paths::all_builtin();
    }
    Ok(wanted)
}
