//! The folder of a watch: incidents, each in a folder of its own, and a line for each, within a budget of the disk.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use record::Folder;
use recording::{HOST_DATA, RECORDED_FILES};
use rustix::fs::{FlockOperation, flock};

use super::note::{IncidentNote, is_folder_name};

/// The page in an incident's folder.
pub(super) const PAGE: &str = "page.html";
/// What is known of the incident in it, and the same until it has that name.
const NOTE: &str = "incident.json";
const NEW_NOTE: &str = "incident.json.new";
/// Files that were being written begin so.
const HALF: &str = ".trapline-";
/// A line for each incident, and those that were written before these.
const LINES: &str = "incidents.jsonl";
const OLD_LINES: &str = "incidents.1.jsonl";
/// After so many bytes lines begin anew.
const MOST_LINES_BYTES: u64 = 4 << 20;
/// What stands before the events in a recording and beside it takes no more: the names of the kernel's functions are
/// most of it, some 6 MB on a kernel with few modules.
const HEAD_BYTES: u64 = 16 << 20;
/// Folders that are looked at when a watch begins: others are left alone.
const MOST_FOLDERS: usize = 100_000;
/// Files of one folder that are looked at.
const MOST_FILES: usize = 1_000;

/// An incident on the disk.
#[derive(Debug)]
struct StoredIncident {
    /// The name of its folder.
    name: String,
    bytes: u64,
}

/// The folder of a watch.
#[derive(Debug)]
pub(super) struct IncidentStore {
    root: PathBuf,
    /// No other watch writes here as long as it is open.
    _lock: File,
    budget: u64,
    /// Oldest first.
    kept: VecDeque<StoredIncident>,
    removed: u64,
    /// Whether the folder was made for this watch.
    is_new: bool,
}

impl IncidentStore {
    /// Opens a folder, or makes it. What earlier watches left in it counts.
    ///
    /// # Errors
    ///
    /// It cannot be made, others may write to it, or another watch does.
    pub(super) fn open(root: &Path, budget: u64) -> Result<IncidentStore> {
        let name = || format!("--output-dir {}", root.display());
        let mut is_new = false;
        match Folder::open(root) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Folder::create(root).with_context(|| format!("{}: cannot be made", name()))?;
                is_new = true;
            }
            other => drop(other.with_context(name)?),
        }
        let lock = File::open(root).with_context(name)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!(
                "{}: another trapline watch writes there; name another folder",
                name()
            );
        }
        let mut store = IncidentStore {
            root: root.to_owned(),
            _lock: lock,
            budget,
            kept: VecDeque::new(),
            removed: 0,
            is_new,
        };
        store.find().with_context(name)?;
        Ok(store)
    }

    /// Removes the folder again where nothing could be watched.
    pub(super) fn discard(self) {
        if self.is_new {
            // If there is anything in it, it stays.
            let _ = fs::remove_dir(&self.root);
        }
    }

    /// Finds what earlier watches left.
    fn find(&mut self) -> io::Result<()> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.root)?.take(MOST_FOLDERS) {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            // Links are none of ours.
            let is_ours = is_folder_name(&name) && entry.file_type()?.is_dir();
            let has = |name: &&str| entry.path().join(name).exists();
            // One that was cut off has no note yet.
            if is_ours && [HOST_DATA, NOTE].iter().any(has) {
                let bytes = folder_bytes(&entry.path());
                kept.push(StoredIncident { name, bytes });
            }
        }
        // Their names begin with the time.
        kept.sort_by(|a, b| a.name.cmp(&b.name));
        self.kept = kept.into();
        Ok(())
    }

    /// Returns where a folder is.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns how many incidents are kept, and their bytes.
    pub(super) fn kept(&self) -> (usize, u64) {
        let bytes = self.kept.iter().map(|one| one.bytes);
        (self.kept.len(), bytes.fold(0, u64::saturating_add))
    }

    /// Returns how many were removed for newer ones.
    pub(super) fn removed(&self) -> u64 {
        self.removed
    }

    /// Returns the bytes that a page may have.
    pub(super) fn page_bytes(&self) -> u64 {
        self.budget / 8
    }

    /// Makes room for a recording and its page: the oldest incidents go, and never the newest. Returns the bytes that
    /// the recording's events may have.
    pub(super) fn recording_room(&mut self) -> u64 {
        let beside = HEAD_BYTES + self.page_bytes();
        let room = self.make_room(self.budget / 4 + beside);
        room.saturating_sub(beside)
    }

    /// Makes room for so many bytes as far as it may. Returns the bytes that there is room for.
    fn make_room(&mut self, bytes: u64) -> u64 {
        let budget = self.budget.saturating_sub(2 * MOST_LINES_BYTES);
        loop {
            let used = self.kept().1;
            if used.saturating_add(bytes) <= budget || self.kept.len() < 2 {
                return budget.saturating_sub(used).min(bytes);
            }
            if let Some(oldest) = self.kept.pop_front() {
                self.removed += 1;
                // What somebody put into it stays, and its folder with it.
                let _ = remove(&self.root.join(oldest.name));
            }
        }
    }

    /// Takes up a folder that was written, or counts again what is in it.
    pub(super) fn count(&mut self, name: &str) {
        let bytes = folder_bytes(&self.path(name));
        match self.kept.iter_mut().find(|one| one.name == name) {
            Some(one) => one.bytes = bytes,
            None => self.kept.push_back(StoredIncident {
                name: name.to_owned(),
                bytes,
            }),
        }
        self.make_room(0);
    }

    /// Returns a name that no folder has: this one, or with a number behind it.
    pub(super) fn free_name(&self, name: &str) -> String {
        let taken = |name: &str| fs::symlink_metadata(self.path(name)).is_ok();
        let mut names = (2..).map(|number: u32| format!("{name}-{number}"));
        match taken(name) {
            false => name.to_owned(),
            true => names.find(|name| !taken(name)).unwrap_or_default(),
        }
    }

    /// Removes what is half in an incident's folder: a page that was not finished.
    pub(super) fn remove_half(&self, name: &str) {
        for file in files(&self.path(name)) {
            let half = file.file_name().and_then(|name| name.to_str());
            if half.is_some_and(|name| name.starts_with(HALF)) {
                let _ = fs::remove_file(&file);
            }
        }
    }

    /// Writes what is known of an incident into its folder. Whenever that ends, an old or a new note is there whole.
    pub(super) fn write_note(&self, name: &str, note: &IncidentNote) -> Result<()> {
        let path = self.path(name);
        let place = || format!("{}: cannot be written", path.join(NOTE).display());
        let mut text = serde_json::to_vec_pretty(note)?;
        text.push(b'\n');
        let folder = Folder::open(&path).with_context(place)?;
        // One that was not finished.
        let _ = folder.remove(NEW_NOTE);
        let write = || folder.file(NEW_NOTE)?.write_all(&text);
        write().with_context(place)?;
        folder.rename(NEW_NOTE, NOTE).with_context(place)
    }

    /// Adds the line of an incident.
    pub(super) fn add_line(&self, note: &IncidentNote) -> Result<()> {
        let lines = self.root.join(LINES);
        let mut text = serde_json::to_vec(note)?;
        text.push(b'\n');
        let there = fs::symlink_metadata(&lines).map_or(0, |there| there.len());
        if there.saturating_add(text.len() as u64) > MOST_LINES_BYTES {
            fs::rename(&lines, self.root.join(OLD_LINES))?;
        }
        let mut options = OpenOptions::new();
        let options = options.append(true).create(true).mode(0o600);
        let mut file = options
            .open(&lines)
            .map_err(|error| anyhow!("{}: {}", lines.display(), words::io_reason(&error)))?;
        // One write: who follows the file reads whole lines.
        Ok(file.write_all(&text)?)
    }
}

/// The files of a folder.
fn files(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.take(MOST_FILES).map(|entry| entry.path())
}

fn folder_bytes(folder: &Path) -> u64 {
    let lengths = files(folder).filter_map(|file| Some(fs::symlink_metadata(file).ok()?.len()));
    lengths.fold(0, u64::saturating_add)
}

/// Removes a folder with what trapline writes into it.
fn remove(folder: &Path) -> io::Result<()> {
    for file in files(folder) {
        let name = file.file_name().and_then(|name| name.to_str());
        let is_ours = name.is_some_and(|name| {
            RECORDED_FILES.contains(&name)
                || [PAGE, NOTE, NEW_NOTE].contains(&name)
                || name.starts_with(HALF)
        });
        if is_ours {
            fs::remove_file(&file)?;
        }
    }
    fs::remove_dir(folder)
}

#[cfg(test)]
mod tests {
    use counts::{IncidentSubject, Symptom};

    use super::*;

    const MIB: u64 = 1 << 20;
    const BUDGET: u64 = 256 * MIB;

    fn note() -> IncidentNote {
        let symptom = Symptom {
            condition: "steal",
            subject: IncidentSubject::Vm(1),
            label: "web".to_owned(),
            who: "vCPU 0".to_owned(),
            measured: 0.5,
            text: "vCPU 0 waited".to_owned(),
            is_lasting: true,
        };
        IncidentNote::new(1, "2026-11-28T12:00:03Z".to_owned(), symptom)
    }

    /// Writes an incident of so many MiB, which take no room, as a watch does. Returns whether there was room.
    fn write(store: &mut IncidentStore, second: u64, mib: u64) -> bool {
        if store.recording_room() < mib * MIB {
            return false;
        }
        let name = format!("2026-11-28T12-00-{second:02}Z-steal-web");
        let name = store.free_name(&name);
        fs::create_dir(store.path(&name)).expect("a folder");
        let file = File::create(store.path(&name).join(HOST_DATA)).expect("a file");
        file.set_len(mib * MIB).expect("a length");
        store.write_note(&name, &note()).expect("a note");
        store.count(&name);
        true
    }

    fn names(root: &Path) -> Vec<String> {
        let entries = fs::read_dir(root).expect("a folder").flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_go_first_and_the_budget_is_never_gone_beyond() {
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().join("watch");
        let mut store = IncidentStore::open(&root, BUDGET).expect("a store");
        for second in 0..20 {
            assert!(write(&mut store, second, 60), "{second}");
            assert!(store.kept().1 <= BUDGET, "{:?}", store.kept());
            let newest = format!("2026-11-28T12-00-{second:02}Z-steal-web");
            assert!(names(&root).contains(&newest), "{second}");
        }
        let (count, _) = store.kept();
        assert_eq!(names(&root).len(), count);
        assert_eq!(store.removed() + count as u64, 20);
        assert_eq!(
            names(&root).last().map(String::as_str),
            Some("2026-11-28T12-00-19Z-steal-web")
        );
        // One recording is never more than a quarter.
        assert!(!write(&mut store, 30, 65));
        let (count, _) = store.kept();
        // What another watch begins with is what this one left.
        drop(store);
        let store = IncidentStore::open(&root, BUDGET).expect("a store");
        assert_eq!(store.kept().0, count);
    }

    #[test]
    fn what_is_not_ours_stays() {
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().join("watch");
        let mut store = IncidentStore::open(&root, BUDGET).expect("a store");
        // A folder of such a name without a recording, a link to elsewhere, and a file that somebody put beside one.
        let other = "2026-11-28T11-00-00Z-steal-web";
        fs::create_dir(root.join(other)).expect("a folder");
        let elsewhere = place.path().join("elsewhere");
        fs::create_dir(&elsewhere).expect("a folder");
        fs::write(elsewhere.join(NOTE), "{}").expect("a file");
        let link = root.join("2026-11-28T10-00-00Z-steal-web");
        std::os::unix::fs::symlink(&elsewhere, link).expect("a link");
        assert!(write(&mut store, 0, 60));
        let first = root.join("2026-11-28T12-00-00Z-steal-web");
        fs::write(first.join("my-own.txt"), "text").expect("a file");
        drop(store);
        let mut store = IncidentStore::open(&root, BUDGET).expect("a store");
        assert_eq!(store.kept().0, 1);
        for second in 1..10 {
            assert!(write(&mut store, second, 60));
        }
        assert!(root.join(other).exists() && elsewhere.join(NOTE).exists());
        assert_eq!(names(&first), ["my-own.txt"]);
    }

    #[test]
    fn the_newest_stays_where_the_budget_became_smaller() {
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().join("watch");
        let mut store = IncidentStore::open(&root, 4 * BUDGET).expect("a store");
        assert!(write(&mut store, 0, 200) && write(&mut store, 1, 200));
        drop(store);
        let mut store = IncidentStore::open(&root, BUDGET).expect("a store");
        assert!(!write(&mut store, 2, 60));
        assert_eq!(names(&root), ["2026-11-28T12-00-01Z-steal-web"]);
    }

    #[test]
    fn one_watch_alone_writes_to_a_folder_and_lines_are_bounded() {
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().join("watch");
        let store = IncidentStore::open(&root, BUDGET).expect("a store");
        let error = IncidentStore::open(&root, BUDGET).expect_err("it is taken");
        assert!(
            error.to_string().contains("another trapline watch"),
            "{error}"
        );
        store.add_line(&note()).expect("a line");
        let file = OpenOptions::new()
            .append(true)
            .open(root.join(LINES))
            .expect("it is there");
        file.set_len(MOST_LINES_BYTES).expect("a length");
        store.add_line(&note()).expect("a line");
        let line = fs::read_to_string(root.join(LINES)).expect("a line");
        assert_eq!(line.lines().count(), 1, "{line}");
        assert_eq!(
            fs::metadata(root.join(OLD_LINES))
                .expect("it is kept")
                .len(),
            MOST_LINES_BYTES
        );
    }
}
