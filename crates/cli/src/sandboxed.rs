//! Which commands read files that nobody trusts, and what they may still write: the rest of what this user may do is
//! given away before the first byte is read (crate `sandbox`).

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;
use sandbox::{SandboxRequest, enter};

use crate::local_files;
use crate::new_file::WrittenPlace;

/// When a command that reads gives away what reading does not need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum SandboxUse {
    /// As far as the kernel knows how to.
    #[default]
    Auto,
    /// The command ends where the kernel has no Landlock or no seccomp. How much Landlock refuses depends on the
    /// kernel.
    Required,
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
        if is_required {
            bail!("this command does more than to read files, and has no sandbox");
        }
        return Ok(());
    };
    // It is another program, which talks to servers and keeps what they send.
    if local_files::places().debuginfod_find.is_some() {
        if is_required {
            bail!("debuginfod-find cannot be asked from a sandbox: unset DEBUGINFOD_URLS");
        }
        return Ok(());
    }
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
    if is_required && !(state.files && state.calls) {
        let missing = match (state.files, state.calls) {
            (false, true) => "Landlock",
            (true, false) => "seccomp",
            _ => "Landlock and no seccomp",
        };
        bail!("a sandbox is required, and this kernel has no {missing}");
    }
    Ok(())
}
