//! `trapline paths`: latency paths, stage by stage.

mod each;
mod instance;

use analysis::{Continuity, Study};
use anyhow::{Context, Result};
use model::Access;
use paths::Paths;
use paths::lang::{self, Path};
use render::paths as render_paths;

use crate::answer::Answer;
use crate::args::PathsArgs;
use crate::opening::{self, Beside};
use crate::output;
use crate::usage::Usage;

/// Groups of a path that the table shows.
const SHOWN: usize = 12;

/// Runs the command.
pub(crate) fn run(args: &PathsArgs) -> Result<()> {
    let wanted = wanted(args)?;
    if args.instance.is_some() && wanted.len() != 1 {
        return Err(Usage::error(format!(
            "--instance is a number among the instances of one path, and {} are asked for; choose one with --path",
            wanted.len()
        )));
    }
    let beside = Beside {
        mtree: args.mtree.as_deref(),
        ..Beside::default()
    };
    let session = opening::session(&args.common, &beside, &[&args.recording])?;
    let input = session.input(&args.recording)?;
    let recording = input.recording_with_symbols()?;
    let devices = session.devices();
    let study = || {
        let mut follower = Paths::new(wanted.clone());
        if let Some(ns) = args.slow {
            follower.slow_from(ns);
        }
        follower.only(recording.instances());
        recording.locate(&mut follower);
        let mut study = Study::default().with(follower);
        recording.prepare(&mut study);
        study
    };
    if args.each {
        return each::run(args, &recording, devices, &study);
    }
    if let Some(number) = args.instance {
        return instance::run(args, number, &recording, devices, study());
    }
    let mut study = study().with(Continuity::new());
    let mut outcome = recording.walk(&mut study);
    study.finish();
    let Some(follower) = study.get::<Paths>() else {
        return Ok(());
    };
    let machine = study.walked().machine;
    session.host_facts().warn(&mut outcome.quality);
    let continuity = study.get::<Continuity>().map(Continuity::report);
    if let Some(warning) = continuity.and_then(|report| report.warning()) {
        outcome.quality.warn(warning);
    }
    recording.warn_of_guess(&mut outcome.quality);
    let names = devices.names(follower.isa(), &mut outcome.quality);
    let name_access = |access: &Access| analysis::name_access(access, &names);
    let reports = follower.report(machine, &name_access);
    let inputs = [recording.name().to_owned()];
    let answer = Answer {
        format: args.common.format,
        command: "paths",
        inputs: &inputs,
        quality: &outcome.quality,
    };
    answer.print(
        || {
            let layout = output::layout(SHOWN, recording.nanoseconds());
            let mut text = render_paths::table(&reports, layout);
            text.push('\n');
            text.push_str(&output::quality(recording.name(), &outcome.quality));
            text
        },
        || render_paths::document(&reports),
        || render_paths::csv(&reports),
    )
}

/// Returns a built-in path, or the path that a file describes. A name that is neither is wrong usage.
pub(super) fn read_path(name: &str) -> Result<Path> {
    read_path_of("--path", name)
}

/// Does the same for another option.
pub(super) fn read_path_of(option: &str, name: &str) -> Result<Path> {
    let is_name = !name.contains(['/', '.']) && !std::path::Path::new(name).exists();
    session::read_path_of(option, name).map_err(|error| match is_name {
        true => Usage::error(error.to_string()),
        false => error.into(),
    })
}

/// Returns the paths that were asked for.
fn wanted(args: &PathsArgs) -> Result<Vec<Path>> {
    let mut wanted = Vec::new();
    for name in &args.path {
        wanted.push(read_path(name)?);
    }
    if let (Some(from), Some(to)) = (&args.from, &args.to) {
        let join =
            lang::Join::parse(&args.join).with_context(|| format!("--join {}", args.join))?;
        wanted.push(lang::pair(from, to, &join)?);
    }
    if wanted.is_empty() {
        wanted = paths::all_builtin();
    }
    Ok(wanted)
}
