//! Files that are there whole or not at all.

use std::fs::Permissions;
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::Builder;

/// Writes a file. One that was there before stays as it is until this one is whole.
///
/// # Errors
/// The file cannot be written; the error names it.
pub(crate) fn write(
    file: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    whole(file, content).with_context(|| format!("{}: cannot be written", file.display()))
}

fn whole(file: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut whole = Builder::new();
    whole
        .prefix(".trapline-")
        .permissions(Permissions::from_mode(0o666));
    let whole = whole.tempfile_in(folder.unwrap_or(Path::new(".")))?;
    let mut out = BufWriter::new(whole);
    content(&mut out)?;
    let whole = out.into_inner().map_err(IntoInnerError::into_error)?;
    whole.persist(file)?;
    Ok(())
}
