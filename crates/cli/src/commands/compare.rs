//! `trapline compare`: what changed between two recordings, or two groups of them.

use std::path::PathBuf;

use analysis::Picture;
use anyhow::{Result, bail};
use compare::{Options, Side};
use event::Quality;
use render::{compare as render_compare, json};
use rules::{Case, Diagnosis};

use crate::args::{CompareArgs, Format};
use crate::commands::VERSION;
use crate::picture::Camera;
use crate::{input, output};

/// Runs the command.
pub fn run(args: &CompareArgs) -> Result<()> {
    let (first, second) = sides(args)?;
    let lender = input::Lender::open(&args.common)?;
    let facts = input::Facts::open(&args.common)?;
    let devices = input::Devices::open(args.mtree.as_deref(), &facts)?;
    let kallsyms = input::kallsyms(args.kallsyms.as_deref())?;
    let camera = Camera {
        common: &args.common,
        lender: &lender,
        facts: &facts,
        devices: &devices,
        kallsyms: kallsyms.as_ref(),
        paths: paths::all_builtin(),
        comparing: true,
    };
    let a = camera.take(&first)?;
    let b = camera.take(&second)?;
    let diagnose = |pictures: &[Picture]| -> Diagnosis {
        let cases: Vec<Case<'_>> = pictures
            .iter()
            .map(|picture| Case {
                picture,
                facts: Some(facts.all()),
                domain: None,
            })
            .collect();
        rules::diagnose(&cases)
    };
    let (of_a, of_b) = (diagnose(&a), diagnose(&b));
    let side = |pictures, diagnosis| Side {
        pictures,
        diagnosis,
    };
    let options = Options {
        confidence: args.confidence,
        ..Options::default()
    };
    let comparison = compare::compare(
        side(&a, &of_a),
        side(&b, &of_b),
        args.work.as_deref(),
        options,
    );
    let comparison = comparison.map_err(anyhow::Error::msg)?;
    let mut quality = Quality::default();
    for picture in a.iter().chain(&b) {
        quality.merge(picture.quality.clone());
    }
    let name =
        |paths: &[PathBuf]| -> Vec<String> { paths.iter().map(|path| input::name(path)).collect() };
    let (names_a, names_b) = (name(&first), name(&second));
    match args.common.format {
        Format::Table => {
            let layout = render_compare::Layout {
                width: output::width(),
                all: args.all,
                limit: args.limit.unwrap_or(usize::MAX),
            };
            let mut text = render_compare::text(&comparison, &names_a, &names_b, layout);
            for picture in a.iter().chain(&b) {
                text.push('\n');
                let names = picture.names.join(", ");
                text.push_str(&render::quality::lines(
                    &names,
                    &picture.quality,
                    output::width(),
                ));
            }
            output::print(&text)
        }
        Format::Json => {
            let all: Vec<String> = names_a.iter().chain(&names_b).cloned().collect();
            let mut document = json::envelope(VERSION, "compare", &all, &quality);
            render_compare::json(&mut document, &comparison, &names_a, &names_b);
            output::print(&json::text(document))
        }
        Format::Csv => output::print(&render_compare::csv(&comparison, args.all)),
    }
}

/// Returns what is on each side.
fn sides(args: &CompareArgs) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    if !args.with.is_empty() {
        return Ok((args.recordings.clone(), args.with.clone()));
    }
    match args.recordings.as_slice() {
        [a, b] => Ok((vec![a.clone()], vec![b.clone()])),
        [_] => bail!("one recording: the one to compare it with is missing"),
        many => bail!(
            "{} recordings: say which are to be compared with which, as in 'trapline compare A1 A2 --with B1 B2'",
            many.len()
        ),
    }
}
