//! Which commands read files that nobody trusts, and what they may still write: the rest of what this user may do is
//! given away before the first byte is read (crate `sandbox`).

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use render::neutral;
use sandbox::{FilesRestriction, SandboxRequest, enter};

use crate::local_files;
use crate::new_file::WrittenPlace;

/// When a command that reads gives away what reading does not need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum SandboxUse {
    /// As far as the kernel knows how to.
    #[default]
    Auto,
    /// The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated
    /// and run (Linux 6.2). What newer ones refuse besides is not required.
    Required,
    /// As far as the kernel knows how to, and what is in force is said on standard error.
    Show,
    /// Never.
    Off,
}

/// Restricts this process to reading files and to writing those of `written`; `None` of a command that does more.
///
/// # Errors
/// It is required, and this kernel has not all of it, or the command does more than to read.
pub(crate) fn restrict(written: Option<&[PathBuf]>, wanted: SandboxUse) -> Result<()> {
    if wanted == SandboxUse::Off {
        return Ok(());
    }
    let is_required = wanted == SandboxUse::Required;
    let Some(written) = written else {
        let none = "this command does more than to read files, and has no sandbox";
        match wanted {
            SandboxUse::Required => bail!(none),
            SandboxUse::Show => drop(writeln!(io::stderr(), "trapline: sandbox: {none}")),
            SandboxUse::Auto | SandboxUse::Off => {}
        }
        return Ok(());
    };
    // It talks to servers and keeps what they send, so it runs outside.
    local_files::leave_debuginfod_to_a_process()
        .context("starting the process that asks debuginfod's servers")?;
    let mut request = SandboxRequest::default();
    // What cannot be mapped is kept there.
    request.folders.push(std::env::temp_dir());
    for file in written {
        match WrittenPlace::of(file) {
            WrittenPlace::Itself => request.files.push(file.clone()),
            WrittenPlace::Folder(folder) => request.folders.push(folder),
        }
    }
    let state = enter(&request);
    if wanted == SandboxUse::Show {
        for sentence in state.sentences(&request) {
            let sentence = format!("sandbox: {sentence}");
            // Names of folders are in it. Nobody to read it is no reason not to go on.
            let _ = writeln!(io::stderr(), "trapline: {}", neutral::name(&sentence));
        }
    }
    if is_required {
        let missing = match (state.files, state.calls) {
            (FilesRestriction::Whole, true) => return Ok(()),
            (FilesRestriction::Whole, false) => "no seccomp",
            (FilesRestriction::Partial, true) => "no Landlock that knows truncation (Linux 6.2)",
            (FilesRestriction::None, true) => "no Landlock",
            (_, false) => "no seccomp, and no Landlock that knows truncation (Linux 6.2)",
        };
        bail!("a sandbox is required, and this kernel has {missing}");
    }
    Ok(())
}
