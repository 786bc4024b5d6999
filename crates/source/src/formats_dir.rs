//! Event formats from a folder laid out as `/sys/kernel/tracing/events`.

use std::fs;
use std::path::{Path, PathBuf};

use tracefmt::FormatCatalog;

use crate::OpenError;

/// Folders and files looked at: a kernel has some 2000 events.
const MAX_ENTRIES: usize = 100_000;
/// A format's text is not believed to be longer, in bytes.
const MAX_FORMAT: u64 = 1 << 20;

/// Reads all `SYSTEM/EVENT/format` files below a folder. The byte order and word size are taken to be those
/// of a little-endian 64-bit kernel, for the files do not tell.
///
/// # Errors
///
/// Fails when the folder cannot be read or holds no format.
pub fn formats_of_dir(dir: &Path) -> Result<FormatCatalog, OpenError> {
    let name = dir.display().to_string();
    let mut formats = FormatCatalog::default();
    let mut left = MAX_ENTRIES;
    for system in entries(dir, &name, &mut left)? {
        if !system.is_dir() {
            continue;
        }
        let system_name = system
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for event in entries(&system, &name, &mut left)? {
            let file = event.join("format");
            let small = fs::metadata(&file).is_ok_and(|m| m.len() <= MAX_FORMAT);
            if small && let Ok(text) = fs::read(&file) {
                formats.add(&system_name, &text);
            }
        }
    }
    if formats.all().is_empty() {
        return Err(OpenError::Unusable {
            name,
            reason: "holds no event formats; expected SYSTEM/EVENT/format below it, as in \
                     /sys/kernel/tracing/events"
                .to_owned(),
        });
    }
    Ok(formats)
}

/// Lists a folder in the order of names.
fn entries(dir: &Path, name: &str, left: &mut usize) -> Result<Vec<PathBuf>, OpenError> {
    let list = fs::read_dir(dir).map_err(|error| OpenError::from_io(name, error))?;
    let mut paths: Vec<PathBuf> = list.flatten().map(|e| e.path()).take(*left).collect();
    *left -= paths.len();
    paths.sort();
    Ok(paths)
}
