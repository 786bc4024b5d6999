//! `trapline`: where did my virtual machine's time go, and what do I change?
//!
//! This crate reads the command line, has `session` open inputs, runs analyses and prints what they found. It is the
//! only one that touches the terminal and the environment.

mod answer;
mod args;
mod colour;
mod commands;
mod first_word;
mod local_files;
#[cfg(test)]
mod manuals;
mod new_file;
mod newest;
mod opening;
mod options;
mod output;
mod progress;
mod stream;
mod usage;

use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;

use render::neutral;

use crate::usage::Usage;

/// A recording could not be read, or does not hold what was asked for.
const EXIT_FAILURE: u8 = 1;
/// The command line is wrong.
const EXIT_USAGE: u8 = 2;
/// A doubt touches what was printed, and `--strict` was asked for.
const EXIT_DOUBTED: u8 = 3;

fn main() -> ExitCode {
    source::outlive_truncation();
    // Wrong usage ends here, with status 2.
    let args = match first_word::parse(std::env::args_os().collect()) {
        Ok(args) => args,
        Err(error) => {
            // It repeats arguments, among which there may be any file's name.
            let text = error.to_string();
            if let Cow::Owned(shown) = neutral::text(&text) {
                let _ = write!(io::stderr(), "{shown}");
                return ExitCode::from(EXIT_USAGE);
            }
            return printed(&error);
        }
    };
    args.color.choose();
    match args.command.run() {
        Ok(()) if args.strict && output::is_doubted() => ExitCode::from(EXIT_DOUBTED),
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let status = match error.is::<Usage>() {
                true => EXIT_USAGE,
                false => EXIT_FAILURE,
            };
            // File names and texts of recordings are in it.
            let error = format!("{error:#}");
            let _ = writeln!(io::stderr(), "trapline: {}", neutral::name(&error));
            ExitCode::from(status)
        }
    }
}

/// Prints what clap has to say, which may be the help that was asked for.
fn printed(error: &clap::Error) -> ExitCode {
    match error.print().and_then(|()| io::stdout().flush()) {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe && !error.use_stderr() => {
            let _ = writeln!(io::stderr(), "trapline: standard output: {why}");
            ExitCode::from(EXIT_FAILURE)
        }
        _ if error.use_stderr() => ExitCode::from(EXIT_USAGE),
        _ => ExitCode::SUCCESS,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
