//! `trapline compare`: what changed between two recordings, or two groups of them.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use compare::{Options, Side};
use event::Quality;
use render::{Layout, compare as render_compare, json};

use session::PictureOptions;

use crate::args::{CompareArgs, Format};
use crate::commands::compare_sides::{Ready, diagnose};
use crate::commands::{VERSION, compare_each};
use crate::opening::{self, Beside};
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &CompareArgs) -> Result<()> {
    // Before anything is read: what is compared with what.
    let sides = if args.each { None } else { Some(sides(args)?) };
    let beside = Beside {
        mtree: args.mtree.as_deref(),
        kallsyms: args.kallsyms.as_deref(),
    };
    let inputs = args.recordings.iter().chain(&args.with);
    let inputs: Vec<&Path> = inputs.map(PathBuf::as_path).collect();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let options = Options {
        confidence: args.confidence,
        ..Options::default()
    };
    let Some((first, second)) = sides else {
        let ready = Ready {
            session: &session,
            pictures: PictureOptions::to_compare(),
            options,
        };
        return compare_each::run(args, &ready);
    };
    let pictures = PictureOptions::to_compare();
    let a = session.pictures(&first, &pictures)?;
    let b = session.pictures(&second, &pictures)?;
    let (of_a, of_b) = (diagnose(&a, &session), diagnose(&b, &session));
    let side = |pictures, diagnosis| Side {
        pictures,
        diagnosis,
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
    let name = |paths: &[PathBuf]| -> Vec<String> {
        paths
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    };
    let (names_a, names_b) = (name(&first), name(&second));
    match args.common.format {
        Format::Table => {
            let layout = Layout {
                width: output::width(),
                limit: args.limit.unwrap_or(usize::MAX),
                nanoseconds: true,
            };
            let mut text = render_compare::text(&comparison, &names_a, &names_b, args.all, layout);
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
            "{} recordings: say which are to be compared with which, as in 'trapline compare A1 A2 --with B1 B2', or \
             --each for each of them with the first",
            many.len()
        ),
    }
}
