//! `trapline`: where did my virtual machine's time go, and what do I change?
//!
//! This crate reads the command line, has `session` open inputs, runs analyses and prints what they found. It is the
//! only one that touches the terminal and the environment.

mod answer;
mod args;
mod colour;
mod commands;
#[cfg(test)]
mod manuals;
mod new_file;
mod opening;
mod output;
mod progress;
mod stream;

use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use render::neutral;

use crate::args::Args;

/// A recording could not be read, or does not hold what was asked for.
const EXIT_FAILURE: u8 = 1;
/// The command line is wrong.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    source::outlive_truncation();
    // Wrong usage ends here, with status 2.
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // It repeats arguments, among which there may be any file's name.
            let text = error.to_string();
            let Cow::Owned(shown) = neutral::text(&text) else {
                error.exit()
            };
            let _ = write!(io::stderr(), "{shown}");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    args.color.choose();
    match args.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // File names and texts of recordings are in it.
            let error = format!("{error:#}");
            let _ = writeln!(io::stderr(), "trapline: {}", neutral::name(&error));
            ExitCode::from(EXIT_FAILURE)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
