//! How a recording gets into a store: whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use mask::NameMask;
use render::store::{StoreTable, StoredRows, run_columns};
use rustix::fs::{FlockOperation, flock};

use crate::compaction::compacted_file;
use crate::lock::StoreLock;
use crate::{RunId, SCHEMA_VERSION, StoreError, StoreFooter, StorePlace, TableFile, refuse_screen};

/// Rows of a table that are held before they are written: the tables of single things are written side by side.
const GROUP_ROWS: usize = 1 << 14;

/// A file that has no name yet: where it is, and where it will be.
#[derive(Debug)]
struct BegunFile<'m> {
    begun: PathBuf,
    named: PathBuf,
    file: TableFile<'m, BufWriter<File>>,
}

/// Writes the rows of one recording.
#[derive(Debug)]
pub struct RunWriter<'m> {
    store: PathBuf,
    place: StorePlace,
    host: String,
    run: String,
    version: String,
    mask: Option<&'m NameMask>,
    /// In the order of the tables.
    files: Vec<(StoreTable, BegunFile<'m>)>,
    /// Where each table is in that list.
    places: [Option<usize>; StoreTable::ALL.len()],
    /// Names that are not those of whole files yet; they go where the writing ends early.
    begun: Vec<PathBuf>,
}

impl<'m> RunWriter<'m> {
    /// Begins a recording, whose host is called so. What an earlier writer of it left half done is removed.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, is none of a store, or what is in it was written with another key or by a newer
    /// program.
    pub fn begin(
        store: &Path,
        place: StorePlace,
        (host, run): (&str, RunId),
        version: &str,
        mask: Option<&'m NameMask>,
    ) -> Result<RunWriter<'m>, StoreError> {
        refuse_screen(store)?;
        fs::create_dir_all(store).map_err(StoreError::file(store))?;
        let footer = StoreFooter::new(StoreTable::Runs.name(), version, mask);
        agree(store, &footer)?;
        if let Some(path) = compacted_file(store, place.day(), &run.to_string())? {
            return Err(StoreError::Compacted { path });
        }
        for table in StoreTable::ALL {
            remove_left(&place.folder(store, table), place.file());
        }
        Ok(RunWriter {
            store: store.to_owned(),
            host: mask.map_or_else(|| host.to_owned(), |mask| mask.name(host)),
            run: run.to_string(),
            version: version.to_owned(),
            place,
            mask,
            files: Vec::new(),
            places: [None; StoreTable::ALL.len()],
            begun: Vec::new(),
        })
    }

    /// Begins the file of a table, if that was not done yet: one without rows is a file too.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn open(&mut self, table: StoreTable) -> Result<(), StoreError> {
        if self.places[table as usize].is_some() {
            return Ok(());
        }
        let folder = self.place.folder(&self.store, table);
        fs::create_dir_all(&folder).map_err(StoreError::file(&folder))?;
        let named = folder.join(self.place.file());
        let begun = folder.join(format!("{}.{}.tmp", self.place.file(), std::process::id()));
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).open(&begun);
        let file = file.map_err(StoreError::file(&begun))?;
        // Who finds it locked leaves it alone. A file system without locks has nobody who looks.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        self.begun.push(begun.clone());
        let footer = StoreFooter::new(table.name(), &self.version, self.mask);
        // Host and run are masked already, or not private.
        let mut columns = run_columns();
        for column in &mut columns {
            column.is_private = false;
        }
        columns.extend(table.columns());
        let file = TableFile::new(BufWriter::new(file), &columns, &footer, self.mask)
            .map_err(StoreError::parquet(&begun))?
            .holding(GROUP_ROWS);
        self.places[table as usize] = Some(self.files.len());
        self.files.push((table, BegunFile { begun, named, file }));
        Ok(())
    }

    /// Takes rows of a table that was opened.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn put(&mut self, table: StoreTable, rows: &dyn StoredRows) -> Result<(), StoreError> {
        let place = self.places[table as usize];
        let Some((_, one)) = place.and_then(|place| self.files.get_mut(place)) else {
            return Ok(());
        };
        let put = one.file.put(&[&self.host, &self.run], rows);
        put.map_err(|error| StoreError::parquet(&one.begun)(error))
    }

    /// Brings all files to the disk and gives them their names, that of the table of recordings last. Returns how many
    /// rows each table has.
    ///
    /// # Errors
    ///
    /// A file cannot be written; the recording is not in the store then.
    pub fn commit(mut self) -> Result<Vec<(StoreTable, u64)>, StoreError> {
        let mut names = Vec::new();
        self.files.sort_by_key(|(table, _)| *table);
        for (table, one) in std::mem::take(&mut self.files) {
            let begun = one.begun.clone();
            let (out, rows) = one.file.finish().map_err(StoreError::parquet(&begun))?;
            let file = out.into_inner().map_err(|error| error.into_error());
            let whole = file.and_then(|file| file.sync_all().map(|()| file));
            // It stays open, and locked, until it has its name.
            let file = whole.map_err(StoreError::file(&begun))?;
            names.push((table, rows, begun, one.named, file));
        }
        let _shared = StoreLock::shared(&self.store)?;
        // Their order is that of the tables: recordings come last.
        for (_, _, begun, named, _) in &names {
            fs::rename(begun, named).map_err(StoreError::file(named))?;
            if let Some(folder) = named.parent() {
                let synced = File::open(folder).and_then(|folder| folder.sync_all());
                synced.map_err(StoreError::file(folder))?;
            }
        }
        self.begun.clear();
        let rows = names.into_iter();
        Ok(rows.map(|(table, rows, ..)| (table, rows)).collect())
    }
}

impl Drop for RunWriter<'_> {
    fn drop(&mut self) {
        for begun in &self.begun {
            let _ = fs::remove_file(begun);
        }
    }
}

/// Returns whether what is in a store was written as this will be.
fn agree(store: &Path, ours: &StoreFooter) -> Result<(), StoreError> {
    let Some(path) = any_file(&store.join(StoreTable::Runs.name())) else {
        return Ok(());
    };
    // One that is cut off says nothing; who reads the store names it.
    let Ok(theirs) = StoreFooter::read(&path) else {
        return Ok(());
    };
    if theirs.schema > SCHEMA_VERSION {
        return Err(StoreError::Newer {
            path,
            there: theirs.schema,
            here: SCHEMA_VERSION,
        });
    }
    if theirs.mask == ours.mask {
        return Ok(());
    }
    let called = |mask: &Option<String>, other: &Option<String>| match (mask, other) {
        (None, _) => "names as they are",
        (Some(_), None) => "masked names",
        (Some(_), Some(_)) => "names masked with another key",
    };
    Err(StoreError::OtherMask {
        path,
        there: called(&theirs.mask, &None),
        here: called(&ours.mask, &theirs.mask),
    })
}

/// Returns a file of a table, if it has any.
fn any_file(table: &Path) -> Option<PathBuf> {
    let mut days: Vec<PathBuf> = paths(table).collect();
    days.sort();
    days.iter().find_map(|day| {
        let is_whole = |path: &PathBuf| path.extension().is_some_and(|end| end == "parquet");
        paths(day).filter(is_whole).min()
    })
}

fn paths(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.flatten().map(|entry| entry.path())
}

/// Removes what writers left that were ended before they were done: nobody holds its lock.
fn remove_left(folder: &Path, file: &str) {
    let is_left = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let rest = name.and_then(|name| name.strip_prefix(file));
        rest.is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".tmp"))
    };
    for path in paths(folder).filter(is_left) {
        let free = File::open(&path)
            .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok());
        if free {
            let _ = fs::remove_file(&path);
        }
    }
}
