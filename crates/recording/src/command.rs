//! The command that runs while a recording is made.

use std::ffi::OsString;
use std::process::{Child, Command};

use crate::error::{AtPlace, RecordingError};

/// Starts a command, if there is one.
///
/// # Errors
///
/// It cannot be run.
pub fn start(command: &[OsString]) -> Result<Option<Child>, RecordingError> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let child = Command::new(program).args(arguments).spawn();
    child
        .map(Some)
        .at(|| format!("{}: cannot be run", program.display()))
}

/// Returns a sentence where the command goes on: whoever made the recording may have to end it.
///
/// # Errors
///
/// The system does not say whether it does.
pub fn goes_on(
    child: Option<Child>,
    command: &[OsString],
) -> Result<Option<String>, RecordingError> {
    if let (Some(mut child), Some(program)) = (child, command.first())
        && child.try_wait()?.is_none()
    {
        return Ok(Some(format!(
            "{} (process {}) goes on: the recording ended before it did",
            program.display(),
            child.id()
        )));
    }
    Ok(None)
}
