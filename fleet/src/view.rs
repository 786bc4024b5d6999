//! Which files of a store are read.
//!
//! Engines stop at the first file that is cut off, some without its name, and read what writers left half done. So the
//! files are looked at first: what cannot be read, and what belongs to a recording that was never written to its end,
//! is left out and named.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use datafusion::parquet::file::metadata::ParquetMetaDataReader;
use serde::Serialize;
use tempfile::TempDir;

/// What a Parquet file begins and ends with.
const MAGIC: &[u8; 4] = b"PAR1";
/// Its beginning, the length of its footer and its end.
const LEAST: u64 = 12;
/// What names of files end with that engines read.
const ENDING: &str = ".parquet";
/// The table of recordings.
pub(crate) const RUNS: &str = "runs";

/// A file that is not read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct UnreadFile {
    /// Its path in the store.
    pub(crate) file: PathBuf,
    /// Why.
    pub(crate) why: String,
}

/// A store as it is read.
#[derive(Debug)]
pub(crate) struct StoreView {
    /// Where the tables' folders are.
    folder: PathBuf,
    /// A folder of links to the files that are read, where not all are.
    _links: Option<TempDir>,
    /// What is not read.
    pub(crate) unread: Vec<UnreadFile>,
    /// Files of the table of recordings that are read.
    pub(crate) files: usize,
}

impl StoreView {
    /// Looks at the files of some tables, and at those of recordings. Files that are made of many begin with
    /// `compacted`.
    ///
    /// # Errors
    ///
    /// It is no store, or cannot be read.
    pub(crate) fn of(store: &Path, tables: &[&str], compacted: &str) -> Result<StoreView> {
        let mut unread = Vec::new();
        let mut runs = BTreeSet::new();
        let mut others = false;
        let all = TableFiles::of(&store.join(RUNS))?;
        others |= all.others;
        for (day, name) in all.named {
            let file = Path::new(RUNS).join(&day).join(&name);
            match whole(&store.join(&file)) {
                Ok(()) => {
                    runs.insert((day, name));
                }
                Err(why) => unread.push(UnreadFile {
                    file,
                    why: why.to_string(),
                }),
            }
        }
        let mut read: Vec<PathBuf> = Vec::new();
        for table in tables.iter().filter(|table| **table != RUNS) {
            let all = TableFiles::of(&store.join(table))?;
            others |= all.others;
            for (day, name) in all.named {
                let file = Path::new(table).join(&day).join(&name);
                // What was made of many is made of whole recordings.
                let of_run = name.starts_with(compacted) || runs.contains(&(day, name));
                let why = match whole(&store.join(&file)) {
                    Ok(()) if of_run => {
                        read.push(file);
                        continue;
                    }
                    Ok(()) => "its recording was not written to its end".to_owned(),
                    Err(why) => why.to_string(),
                };
                unread.push(UnreadFile { file, why });
            }
        }
        let number = runs.len();
        let of_runs = runs.into_iter();
        read.extend(of_runs.map(|(day, name)| Path::new(RUNS).join(day).join(name)));
        unread.sort();
        // The engine reads whatever it finds in a folder.
        let links = match unread.is_empty() && !others {
            true => None,
            false => Some(linked(store, &read)?),
        };
        Ok(StoreView {
            folder: links.as_ref().map_or(store, TempDir::path).to_owned(),
            _links: links,
            unread,
            files: number,
        })
    }

    /// Returns the folder of a table.
    pub(crate) fn table(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// The files of a table's folder.
#[derive(Debug, Default)]
struct TableFiles {
    /// Day and name of each, but for those that a writer has not given a name yet.
    named: Vec<(String, String)>,
    /// Whether there are others that an engine would read: hidden ones, and such as belong to no day.
    others: bool,
}

impl TableFiles {
    fn of(table: &Path) -> Result<TableFiles> {
        let mut files = TableFiles::default();
        for day in entries(table)? {
            let folder = day.path();
            let name = day.file_name().into_string();
            let is_folder = folder.is_dir();
            let Some(name) = name
                .ok()
                .filter(|name| name.starts_with("day=") && is_folder)
            else {
                let ends_so = folder.extension().is_some_and(|end| end == "parquet");
                files.others |= is_folder || ends_so;
                continue;
            };
            for file in entries(&folder)? {
                match file.file_name().into_string() {
                    Ok(file) if file.ends_with(ENDING) && !file.starts_with('.') => {
                        files.named.push((name.clone(), file));
                    }
                    // Writers' names end otherwise: engines pass by them.
                    Ok(other) if !other.ends_with(ENDING) && !file.path().is_dir() => {}
                    _ => files.others = true,
                }
            }
        }
        Ok(files)
    }
}

fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries
            .collect::<io::Result<_>>()
            .with_context(|| folder.display().to_string()),
        // A store without details has no folders for them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| folder.display().to_string()),
    }
}

/// Fails where a file is no whole Parquet file, as far as its beginning and its footer say.
fn whole(path: &Path) -> io::Result<()> {
    let broken = |why: &str| Err(io::Error::other(why.to_owned()));
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    if length < LEAST {
        return broken("it is cut off");
    }
    let mut begins = [0; 4];
    file.read_exact(&mut begins)?;
    if &begins != MAGIC {
        return broken("it is no Parquet file");
    }
    let mut ends = [0; 8];
    file.seek(SeekFrom::End(-8))?;
    file.read_exact(&mut ends)?;
    let (footer, magic) = ends.split_at(4);
    let footer = u32::from_le_bytes(footer.try_into().unwrap_or_default());
    if magic != MAGIC || u64::from(footer) + LEAST > length {
        return broken("it is cut off");
    }
    match ParquetMetaDataReader::new().parse_and_finish(&file) {
        Ok(_) => Ok(()),
        Err(error) => broken(&format!("its footer is damaged: {error}")),
    }
}

/// Makes a folder of links to the files that are read.
fn linked(store: &Path, files: &[PathBuf]) -> Result<TempDir> {
    let links = tempfile::tempdir()?;
    let store = store.canonicalize()?;
    for file in files {
        let link = links.path().join(file);
        if let Some(folder) = link.parent() {
            fs::create_dir_all(folder)?;
        }
        symlink(store.join(file), link)?;
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::parquet::file::writer::SerializedFileWriter;
    use datafusion::parquet::schema::types::Type;

    use super::*;

    fn put(store: &Path, file: &str, bytes: &[u8]) {
        let path = store.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, bytes).expect("written");
    }

    /// Returns a file without rows.
    fn parquet() -> Vec<u8> {
        let schema = Type::group_type_builder("empty").build().expect("a schema");
        let writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::default());
        writer.expect("a writer").into_inner().expect("a file")
    }

    /// A cut file, a writer's leftovers and a recording without its row are left out, each named but for leftovers.
    #[test]
    fn what_is_not_whole_is_left_out() {
        let store = tempfile::tempdir().expect("a folder");
        let store = store.path();
        let whole = &*parquet();
        for file in [
            "runs/day=2026-01-01/a-1.parquet",
            "vcpus/day=2026-01-01/a-1.parquet",
        ] {
            put(store, file, whole);
        }
        let view = StoreView::of(store, &["vcpus", "runs", "spans"], "all.").expect("a view");
        assert_eq!((view.files, view.unread.len()), (1, 0));
        assert_eq!(view.table("vcpus"), store.join("vcpus"));

        // What other writers begin under hidden names, and compactions in hidden folders, is not read.
        for file in [
            "vcpus/day=2026-01-01/.a-1.parquet",
            "vcpus/.day=2026-01-01.tmp/all.0.parquet",
            "vcpus/old.parquet",
        ] {
            put(store, file, whole);
            let view = StoreView::of(store, &["vcpus"], "all.").expect("a view");
            assert!(view.unread.is_empty(), "{file}");
            assert_ne!(view.table("vcpus"), store.join("vcpus"), "{file}");
            let files = TableFiles::of(&view.table("vcpus")).expect("files");
            assert_eq!((files.named.len(), files.others), (1, false), "{file}");
            fs::remove_file(store.join(file)).expect("removed");
            let _ = fs::remove_dir(store.join("vcpus/.day=2026-01-01.tmp"));
        }

        put(
            store,
            "runs/day=2026-01-02/b-2.parquet",
            &whole[..whole.len() - 1],
        );
        put(store, "vcpus/day=2026-01-02/b-2.parquet", whole);
        put(store, "vcpus/day=2026-01-01/c-3.parquet", b"text");
        let mut damaged = whole.to_vec();
        let end = damaged.len() - 8;
        damaged[end - 9..end].fill(0xff);
        put(store, "vcpus/day=2026-01-01/d-4.parquet", &damaged);
        put(store, "vcpus/day=2026-01-01/a-1.parquet.77.tmp", b"half");
        let view = StoreView::of(store, &["vcpus", "runs"], "all.").expect("a view");
        let unread: Vec<String> = view
            .unread
            .iter()
            .map(|one| format!("{}: {}", one.file.display(), one.why))
            .map(|text| text.split(": ").take(2).collect::<Vec<_>>().join(": "))
            .collect();
        assert_eq!(
            unread,
            [
                "runs/day=2026-01-02/b-2.parquet: it is cut off",
                "vcpus/day=2026-01-01/c-3.parquet: it is cut off",
                "vcpus/day=2026-01-01/d-4.parquet: its footer is damaged",
                "vcpus/day=2026-01-02/b-2.parquet: its recording was not written to its end",
            ]
        );
        for table in ["vcpus", "runs"] {
            let files = TableFiles::of(&view.table(table)).expect("files");
            assert_eq!(files.named.len(), 1, "{table}");
        }
    }
}
