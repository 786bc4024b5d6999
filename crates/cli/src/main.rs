//! `trapline`: where did my virtual machine's time go, and what do I change?
//!
//! This crate reads the command line, has `session` open inputs, runs analyses and prints what they found. It is the
//! only one that touches the terminal and the environment.

mod answer;
mod args;
mod colour;
mod commands;
mod first_word;
mod heap;
mod local_files;
#[cfg(test)]
mod manuals;
mod new_file;
mod newest;
mod opening;
mod options;
mod output;
mod progress;
mod sandboxed;
mod status;
mod stream;
mod usage;

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use render::neutral;

/// It is there where KVM is loaded, or built in.
const KVM: &str = "/sys/module/kvm";

fn main() -> ExitCode {
    source::outlive_truncation();
    if let Some(served) = local_files::served_debuginfod() {
        return if served.is_ok() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    // Wrong usage ends here, with status 2.
    let args = match first_word::parse(std::env::args_os().collect(), Path::new(KVM).exists()) {
        Ok(args) => args,
        Err(error) => {
            // It repeats arguments, among which there may be any file's name.
            let text = error.to_string();
            if let Cow::Owned(shown) = neutral::text(&text) {
                let _ = write!(io::stderr(), "{shown}");
                return status::refused();
            }
            return printed(&error);
        }
    };
    args.color.choose();
    let restricted = sandboxed::restrict(args.command.written().as_deref(), args.sandbox);
    match restricted.and_then(|()| args.command.run()) {
        Ok(()) => status::answered(args.strict && output::is_doubted()),
        // Whoever reads our output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let status = status::of(&error);
            // File names and texts of recordings are in it.
            let error = format!("{error:#}");
            let _ = writeln!(io::stderr(), "trapline: {}", neutral::name(&error));
            status
        }
    }
}

/// Prints what clap has to say, which may be the help that was asked for.
fn printed(error: &clap::Error) -> ExitCode {
    match error.print().and_then(|()| io::stdout().flush()) {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe && !error.use_stderr() => {
            let _ = writeln!(io::stderr(), "trapline: standard output: {why}");
            status::failed()
        }
        _ if error.use_stderr() => status::refused(),
        _ => ExitCode::SUCCESS,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
