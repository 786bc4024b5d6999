//! `trapline compare`: what changed between two recordings, or two groups of them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use compare::Options;
use render::compare as render_compare;

use session::PictureOptions;

use crate::answer::Answer;
use crate::args::CompareArgs;
use crate::commands::compare_sides::{Compared, Ready, compared, names};
use crate::commands::{compare_each, compare_results};
use crate::opening::{self, Beside};
use crate::output;
use crate::usage::Usage;

/// Runs the command.
pub(crate) fn run(args: &CompareArgs) -> Result<()> {
    if compare_results::run(args)? {
        return Ok(());
    }
    // Before anything is read: what is compared with what.
    let sides = match args.each {
        true if args.recordings.len() < 2 => {
            return Err(Usage::error(
                "one recording: those to compare it with are missing",
            ));
        }
        true => None,
        false => Some(sides(args)?),
    };
    let beside = Beside {
        mtree: args.mtree.as_deref(),
        kallsyms: args.kallsyms.as_deref(),
        guest_kallsyms: args.guest_kallsyms.as_deref(),
        ..Beside::default()
    };
    let inputs = args.recordings.iter().chain(&args.with);
    let inputs: Vec<&Path> = inputs.map(PathBuf::as_path).collect();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let options = Options {
        confidence: args.confidence,
        ..Options::default()
    };
    let ready = Ready {
        session: &session,
        pictures: PictureOptions::to_compare(),
        options,
    };
    let Some((first, second)) = sides else {
        return compare_each::run(args, &ready);
    };
    let Compared { comparison, a, b } = compared(&ready, &first, &second, args.work.as_deref())?;
    let quality = output::merged(a.iter().chain(&b));
    let (names_a, names_b) = (names(&first), names(&second));
    let inputs = [names_a.as_slice(), names_b.as_slice()].concat();
    let answer = Answer {
        format: args.common.format,
        command: "compare",
        inputs: &inputs,
        quality: &quality,
    };
    answer.print(
        || {
            let layout = output::layout(args.limit.unwrap_or(usize::MAX), true);
            let mut text = render_compare::text(&comparison, &names_a, &names_b, args.all, layout);
            text.push_str(&output::qualities(a.iter().chain(&b)));
            text
        },
        || render_compare::document(&comparison, &names_a, &names_b),
        || render_compare::csv(&comparison, args.all),
    )
}

/// Returns what is on each side.
fn sides(args: &CompareArgs) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    if !args.with.is_empty() {
        return Ok((args.recordings.clone(), args.with.clone()));
    }
    match args.recordings.as_slice() {
        [a, b] => Ok((vec![a.clone()], vec![b.clone()])),
        [_] => Err(Usage::error(
            "one recording: the one to compare it with is missing",
        )),
        many => Err(Usage::error(format!(
            "{} recordings: say which are to be compared with which, as in 'trapline compare A1 A2 --with B1 B2', or \
             --each for each of them with the first",
            many.len()
        ))),
    }
}
