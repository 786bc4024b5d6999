//! `trapline paths`: latency paths, stage by stage.

mod each;
mod instance;

use std::fs::File;
use std::io::{self, Read};

use analysis::{Continuity, Study};
use anyhow::{Context, Result, bail};
use model::Access;
use paths::Paths;
use paths::lang::{self, Path};
use render::{Layout, json, paths as render_paths, quality};

use crate::args::{Format, PathsArgs};
use crate::commands::VERSION;
use crate::picture::locate;
use crate::{input, output, wrong_input};

/// Path files are not read beyond this many bytes.
const MAX_FILE: u64 = 1 << 20;
/// Groups of a path that the table shows.
const SHOWN: usize = 12;

/// Runs the command.
pub(crate) fn run(args: &PathsArgs) -> Result<()> {
    let wanted = wanted(args)?;
    if args.instance.is_some() && wanted.len() != 1 {
        bail!(
            "--instance is a number among the instances of one path, and {} are asked for; choose one with --path",
            wanted.len()
        );
    }
    let lender = input::Lender::open(&args.common)?;
    let facts = input::Facts::open(&args.common)?;
    let devices = input::Devices::open(args.mtree.as_deref(), &facts)?;
    let recording = input::open(&args.recording, &args.common)?;
    let reader = wrong_input::reader(&recording, lender.options(true))?;
    let name = input::name(&args.recording);
    let filters = input::Filter::new(&args.common.filter, &facts, &reader, &name)?;
    let study = || {
        let mut follower = Paths::new(wanted.clone());
        if let Some(ns) = args.slow {
            follower.slow_from(ns);
        }
        follower.only(filters.instances(&reader));
        locate(&mut follower, &reader);
        let mut study = Study::default().with(follower);
        study.saved_names(input::saved_names(&reader));
        study.told(&facts.told_of(&reader));
        if !input::nanoseconds(reader.header()) {
            study.counts_ticks();
        }
        study
    };
    if args.each {
        return each::run(args, &reader, &name, &devices, &study);
    }
    if let Some(number) = args.instance {
        return instance::run(args, number, &reader, &name, &devices, study());
    }
    let mut study = study().with(Continuity::new());
    let mut outcome = reader.walk(&mut study);
    study.finish();
    let Some(follower) = study.get::<Paths>() else {
        return Ok(());
    };
    let machine = study.walked().machine;
    facts.warn(&mut outcome.quality);
    let continuity = study.get::<Continuity>().map(Continuity::report);
    if let Some(warning) = continuity.and_then(|report| report.warning()) {
        outcome.quality.warn(warning);
    }
    filters.warn(&mut outcome.quality);
    let names = devices.names(follower.isa(), &mut outcome.quality);
    let name_access = |access: &Access| analysis::name_access(access, &names);
    let reports = follower.report(machine, &name_access);
    match args.common.format {
        Format::Table => {
            let layout = Layout {
                width: output::width(),
                limit: SHOWN,
                nanoseconds: input::nanoseconds(reader.header()),
            };
            let mut text = render_paths::table(&reports, layout);
            text.push('\n');
            text.push_str(&quality::lines(&name, &outcome.quality, output::width()));
            output::print(&text)
        }
        Format::Json => {
            let mut document = json::envelope(VERSION, "paths", &[name], &outcome.quality);
            render_paths::json(&mut document, &reports);
            output::print(&json::text(document))
        }
        Format::Csv => output::print(&render_paths::csv(&reports)),
    }
}

/// Returns the paths that were asked for.
fn wanted(args: &PathsArgs) -> Result<Vec<Path>> {
    let mut wanted = Vec::new();
    for name in &args.path {
        match paths::builtin(name) {
            Some(path) => wanted.push(path),
            None => wanted.push(read(name)?),
        }
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

/// Reads a path file.
fn read(name: &str) -> Result<Path> {
    let all = paths::BUILTIN.iter().chain(&paths::FOR_RULES);
    let known: Vec<&str> = all.map(|(name, _)| *name).collect();
    let mut text = String::new();
    let read = File::open(name).and_then(|file| file.take(MAX_FILE).read_to_string(&mut text));
    if let Err(error) = read {
        let why = match error.kind() {
            io::ErrorKind::NotFound => {
                "there is no built-in path and no file of that name".to_owned()
            }
            io::ErrorKind::InvalidData => "is no text".to_owned(),
            _ => input::why(&error),
        };
        bail!(
            "--path {name}: {why}; built in are {}; a file is in the language of docs/paths.md",
            known.join(", ")
        );
    }
    lang::parse(&text).with_context(|| format!("--path {name}"))
}
