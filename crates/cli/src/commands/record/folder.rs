//! Where a recording is written to.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use facts::Facts;
use record::Folder;

use crate::opening::FACTS;

/// Recordings of one folder that get a name of their own.
const MOST_NAMES: u32 = 10_000;

/// The recording in its folder.
pub(super) const DATA: &str = "perf.data";

/// A folder that was made.
pub(super) struct Made(Folder);

/// Makes the folder that was named, or the first of its kind that is free.
pub(super) fn make(named: Option<&Path>) -> Result<Made> {
    if let Some(path) = named {
        let made = Folder::create(path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => anyhow!(
                "{}: is there already; name another folder with -o, or remove it",
                path.display()
            ),
            ErrorKind::NotFound => anyhow!(
                "{}: cannot be made: there is no folder to make it in",
                path.display()
            ),
            _ => anyhow!(
                "{}: cannot be made: {}",
                path.display(),
                session::why(&error)
            ),
        });
        return made.map(Made);
    }
    for number in 1..=MOST_NAMES {
        let path = PathBuf::from(format!("trapline-{number}"));
        match Folder::create(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            other => {
                let made = other.with_context(|| format!("{}: cannot be made", path.display()));
                return made.map(Made);
            }
        }
    }
    bail!("all names from trapline-1 to trapline-{MOST_NAMES} are taken; name a folder with -o")
}

impl Made {
    /// Returns its name, as messages have it.
    pub(super) fn shown(&self) -> String {
        self.0.path().display().to_string()
    }

    /// Says which recording could not be written.
    pub(super) fn failed(&self) -> String {
        format!("{}/{DATA}", self.shown())
    }

    /// Makes a file in it.
    pub(super) fn file(&self, name: &str) -> Result<File> {
        let file = self.0.file(name);
        file.with_context(|| format!("{}/{name}: cannot be made", self.shown()))
    }

    /// Writes the host's settings into it.
    pub(super) fn facts(&self, facts: &Facts) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(&facts::write(facts))?;
        text.push(b'\n');
        let written = self.file(FACTS)?.write_all(&text);
        written.with_context(|| format!("{}/{FACTS}: cannot be written", self.shown()))
    }

    /// Removes a file of it.
    pub(super) fn remove(&self, name: &str) {
        // What cannot be removed stays: there is nothing else to be done.
        let _ = self.0.remove(name);
    }

    /// Removes it where the recording could not begin.
    pub(super) fn discard(self) {
        self.0.discard(&[FACTS, DATA]);
    }
}
