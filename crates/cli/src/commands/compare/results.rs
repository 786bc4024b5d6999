//! `trapline compare` of results of `trapline bench`: any number of them side by side.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use event::Quality;
use render::{ClockUnit, bench_compare};

use crate::answer::Answer;
use crate::commands::compare::args::CompareArgs;
use crate::output;
use crate::usage::Usage;

/// What a result is known by stands in so many bytes.
const HEAD: u64 = 4096;

/// Compares the inputs if they are results of benchmarks; returns whether they are.
pub(crate) fn run(args: &CompareArgs) -> Result<bool> {
    let inputs: Vec<&Path> = args
        .recordings
        .iter()
        .chain(&args.with)
        .map(AsRef::as_ref)
        .collect();
    let first = inputs.iter().find(|path| is_result(path));
    let Some(first) = first else {
        return Ok(false);
    };
    if let Some(other) = inputs.iter().find(|path| !is_result(path)) {
        std::fs::metadata(other).with_context(|| other.display().to_string())?;
        bail!(
            "{} is a result of 'trapline bench', and {} is none: compare results with results, and recordings with \
             recordings",
            first.display(),
            other.display()
        );
    }
    let beside = args.beside.given();
    let options = [
        (!args.with.is_empty(), "--with"),
        (!args.guest.is_empty(), "--guest"),
        (!args.with_guest.is_empty(), "--with-guest"),
        (!args.score.is_empty(), "--score"),
        (args.work.is_some(), "--work"),
        (args.domain.is_some(), "--domain"),
        (beside.is_some(), beside.unwrap_or_default()),
        (args.common.filter.any(), "a filter"),
    ];
    if let Some((_, option)) = options.iter().find(|(given, _)| *given) {
        bail!(
            "{} is a result of 'trapline bench', for which there is no {option}: give results alone, as 'trapline \
             compare A B C'",
            first.display()
        );
    }
    let sides = inputs.iter().map(|path| read(path));
    let sides = sides.collect::<Result<Vec<_>>>()?;
    let found = compare::results(&sides).map_err(Usage::error)?;
    let files: Vec<String> = inputs
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let answer = Answer {
        format: args.common.format,
        command: "compare",
        inputs: &files,
        quality: &Quality::default(),
        clock: ClockUnit::Nanoseconds,
    };
    answer.print(
        || bench_compare::text(&found, &sides, &files, output::width()),
        || bench_compare::document(&found, &sides, &files),
        |_| bench_compare::csv(&found),
    )?;
    Ok(true)
}

/// Returns whether a file begins as a result does. What cannot be opened is for whoever opens it as a recording to say.
fn is_result(path: &Path) -> bool {
    let is_file = path.metadata().is_ok_and(|data| data.is_file());
    let mut head = Vec::new();
    // A pipe can be read once.
    let read = || File::open(path)?.take(HEAD).read_to_end(&mut head);
    is_file && { read }().is_ok() && results::looks_like(&head)
}

/// Reads a result.
///
/// # Errors
///
/// Fails when it cannot be read, or is no whole result.
pub(crate) fn read(path: &Path) -> Result<results::BenchResults> {
    let name = || path.display().to_string();
    let mut bytes = Vec::new();
    let most = results::MAX_BYTES as u64 + 1;
    let failed = |error: &std::io::Error| format!("{}: {}", name(), words::io_reason(error));
    let file = File::open(path).map_err(|error| anyhow!(failed(&error)))?;
    let read = file.take(most).read_to_end(&mut bytes);
    read.map_err(|error| anyhow!(failed(&error)))?;
    if !results::looks_like(&bytes) {
        bail!(
            "{}: is no result of 'trapline bench', which it writes with -o FILE or --format json",
            name()
        );
    }
    match results::read(&bytes) {
        Ok(result) => Ok(result),
        Err(error) => bail!("{}: {error}", path.display()),
    }
}
