//! Where a recording is written to.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use facts::Facts;
use record::Folder;

use crate::error::{AtPlace, RecordingError};

/// Recordings of one folder that get a name of their own.
const MOST_NAMES: u32 = 10_000;

/// What the folder of a recording is called of which nobody said the name: this, and a number from 1.
pub const FOLDER_PREFIX: &str = "trapline-";

/// The recording in its folder.
pub const HOST_DATA: &str = "perf.data";
/// The same until it can be read.
const BEGUN_DATA: &str = ".perf.data.begun";
/// The host's settings in it.
pub const HOST_FACTS: &str = "facts.json";
/// The same with what was counted during the recording, until it has that name.
const LATER_FACTS: &str = "facts.json.new";

/// What the recordings of its guests are called: this, and [`HOST_DATA`] behind the guest's name.
pub(crate) const GUEST_PREFIX: &str = "guest-";

/// A folder that was made for a recording.
#[derive(Debug)]
pub struct RecordingFolder(Folder);

/// Removes a recording that was made in a folder of its own, and the folder, where nobody has put anything else there.
///
/// # Errors
///
/// Those of removing: the folder is not empty then, or may not be removed.
pub fn remove_recording(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_guests = name.starts_with(GUEST_PREFIX) && name.ends_with(HOST_DATA);
        if is_guests || [HOST_DATA, HOST_FACTS].contains(&&*name) {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir(folder)
}

impl RecordingFolder {
    /// Makes the folder that was named, or the first of `trapline-N` that is free.
    ///
    /// # Errors
    ///
    /// It is there already, or cannot be made.
    pub fn make(named: Option<&Path>) -> Result<RecordingFolder, RecordingError> {
        if let Some(path) = named {
            let made = Folder::create(path).map_err(|error| {
                let why = match error.kind() {
                    ErrorKind::AlreadyExists => {
                        "is there already; name another folder with -o, or remove it".to_owned()
                    }
                    ErrorKind::NotFound => {
                        "cannot be made: there is no folder to make it in".to_owned()
                    }
                    _ => format!("cannot be made: {}", words::io_reason(&error)),
                };
                RecordingError::Refused(format!("{}: {why}", path.display()))
            });
            return made.map(RecordingFolder);
        }
        for number in 1..=MOST_NAMES {
            let path = PathBuf::from(format!("{FOLDER_PREFIX}{number}"));
            match Folder::create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                other => {
                    let made = other.map(RecordingFolder);
                    return made.at(|| format!("{}: cannot be made", path.display()));
                }
            }
        }
        Err(RecordingError::Refused(format!(
            "all names from trapline-1 to trapline-{MOST_NAMES} are taken; name a folder with -o"
        )))
    }

    /// Makes a folder that has a host's settings alone: nothing could be recorded. Returns its path.
    ///
    /// # Errors
    ///
    /// Those of [`RecordingFolder::make`], and where it cannot be written to.
    pub fn of_facts(named: Option<&Path>, facts: &Facts) -> Result<PathBuf, RecordingError> {
        let folder = RecordingFolder::make(named)?;
        folder.facts(facts)?;
        Ok(folder.path().to_owned())
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns its name, as messages have it.
    pub fn shown(&self) -> String {
        self.0.path().display().to_string()
    }

    /// Returns the name of its recording, as messages have it.
    pub(crate) fn recording(&self) -> String {
        format!("{}/{HOST_DATA}", self.shown())
    }

    /// Makes a file in it.
    pub(crate) fn file(&self, name: &str) -> Result<File, RecordingError> {
        let file = self.0.file(name);
        file.at(|| format!("{}/{name}: cannot be made", self.shown()))
    }

    /// Makes the file of its recording, which gets its name when it can be read ([`RecordingFolder::begun`]): nobody
    /// finds a recording without a beginning, whenever the recorder is killed.
    pub(crate) fn data(&self) -> Result<File, RecordingError> {
        self.file(BEGUN_DATA)
    }

    /// Gives the file of its recording its name.
    pub(crate) fn begun(&self) -> Result<(), RecordingError> {
        let renamed = self.0.rename(BEGUN_DATA, HOST_DATA);
        renamed.at(|| format!("{}: cannot get its name", self.recording()))
    }

    /// Writes the host's settings into it.
    pub(crate) fn facts(&self, facts: &Facts) -> Result<(), RecordingError> {
        self.facts_as(HOST_FACTS, facts)
    }

    /// Writes them again, with what was counted meanwhile. Whenever that ends, one of the two is there whole.
    pub(crate) fn facts_again(&self, facts: &Facts) -> Result<(), RecordingError> {
        self.facts_as(LATER_FACTS, facts)?;
        let renamed = self.0.rename(LATER_FACTS, HOST_FACTS);
        renamed.at(|| format!("{}/{HOST_FACTS}: cannot be written again", self.shown()))
    }

    fn facts_as(&self, name: &str, facts: &Facts) -> Result<(), RecordingError> {
        let place = || format!("{}/{name}: cannot be written", self.shown());
        let text = serde_json::to_vec_pretty(&facts::write(facts)).map_err(io::Error::from);
        let mut text = text.at(place)?;
        text.push(b'\n');
        self.file(name)?.write_all(&text).at(place)
    }

    /// Removes a file of it.
    pub(crate) fn remove(&self, name: &str) {
        // What cannot be removed stays: there is nothing else to be done.
        let _ = self.0.remove(name);
    }

    /// Removes it where the recording could not begin.
    pub(crate) fn discard(self) {
        self.0.discard(&[HOST_FACTS, BEGUN_DATA, HOST_DATA]);
    }
}
