//! The newest recording of the folder that the program runs in, for who names none.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Result, bail};
use recording::{FOLDER_PREFIX, HOST_DATA};
use render::neutral;

/// What the standard recorders call their files.
const FILES: [&str; 3] = ["trace.dat", "perf.data", "perf.data.guest"];

/// Returns the recording that was written last, and says on standard error which it is. A folder that `trapline record`
/// made stands for itself, since its facts are beside its recording.
///
/// # Errors
/// There is none.
pub(crate) fn here() -> Result<PathBuf> {
    let folders = fs::read_dir(".").into_iter().flatten().flatten();
    let folders = folders.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let number = name.strip_prefix(FOLDER_PREFIX)?.parse::<u32>().ok()?;
        (number > 0).then_some((number, name))
    });
    let folders = folders.filter_map(|(number, name)| {
        let written = written(&Path::new(&name).join(HOST_DATA))?;
        Some((written, number, name))
    });
    let files = FILES.iter().filter_map(|name| {
        let written = written(Path::new(name))?;
        Some((written, 0, (*name).to_owned()))
    });
    let Some((_, number, name)) = files.chain(folders).max() else {
        bail!(
            "no recording is named, and in this folder there is no trapline-N/{HOST_DATA}, perf.data.guest, perf.data \
             or trace.dat: name one (- is standard input), or make one with 'trapline record'"
        );
    };
    let file = match number {
        0 => name.clone(),
        _ => format!("{name}/{HOST_DATA}"),
    };
    writeln!(
        io::stderr(),
        "reading {}, the newest here",
        neutral::name(&file)
    )?;
    Ok(PathBuf::from(name))
}

/// Returns when a file was written, if it is one.
fn written(path: &Path) -> Option<SystemTime> {
    let data = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    data.modified().ok()
}
