//! Looks at every file of a store, and says what is wrong with it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use parquet::file::reader::SerializedFileReader;
use render::store::StoreTable;

use crate::column_values::read_all;
use crate::host_names::HostNames;
use crate::place::{COMPACTED, day_files, days};
use crate::store_days::is_future;
use crate::{SCHEMA_VERSION, StoreError, StoreFooter, refuse_screen};

/// What is wrong with a file or a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreProblem {
    /// Which.
    pub path: PathBuf,
    /// A sentence.
    pub text: String,
}

/// What a look at a store found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreCheck {
    /// Files of all tables that were looked at.
    pub files: usize,
    /// Days that it has.
    pub days: usize,
    /// What is wrong.
    pub problems: Vec<StoreProblem>,
    /// What is not wrong and can mislead: a sentence for each name that several machines have.
    pub notes: Vec<String>,
}

/// Looks at a store: at all that its files have, at what belongs to no recording, and at what was written by several
/// keys. `today` is the day it is.
///
/// # Errors
///
/// Its folders cannot be read.
pub fn check(store: &Path, today: &str) -> Result<StoreCheck, StoreError> {
    refuse_screen(store)?;
    let mut found = StoreCheck::default();
    let mut masks: BTreeMap<Option<String>, PathBuf> = BTreeMap::new();
    let mut names = HostNames::default();
    let all_days = days(store, StoreTable::Runs)?;
    found.days = all_days.len();
    for table in StoreTable::ALL {
        for day in days(store, table)? {
            let folder = store.join(table.name()).join(format!("day={day}"));
            let mut problem = |path: PathBuf, text: &str| {
                let text = text.to_owned();
                found.problems.push(StoreProblem { path, text });
            };
            if words::parse_utc_day(&day).is_none() {
                problem(folder.clone(), "The folder's day is none.");
            } else if is_future(&day, today) {
                problem(
                    folder.clone(),
                    "The day is in the future: a clock was wrong.",
                );
            }
            let whole = day_files(store, StoreTable::Runs, &day)?;
            for name in day_files(store, table, &day)? {
                found.files += 1;
                let path = folder.join(&name);
                match looked_at(&path, table, &mut names) {
                    Err(error) => found.problems.push(StoreProblem {
                        text: format!("It cannot be read, and is left out: {error}"),
                        path,
                    }),
                    Ok((footer, damage)) => {
                        if let Some(error) = damage {
                            found.problems.push(StoreProblem {
                                text: format!(
                                    "Questions about it fail, since a page of it is damaged: {error}. Remove it and \
                                     store its recordings again."
                                ),
                                path: path.clone(),
                            });
                        }
                        if footer.schema > SCHEMA_VERSION {
                            found.problems.push(StoreProblem {
                                path: path.clone(),
                                text: "A newer trapline wrote it.".to_owned(),
                            });
                        }
                        if !name.starts_with(COMPACTED) && !whole.contains(&name) {
                            found.problems.push(StoreProblem {
                                path: path.clone(),
                                text: "Its recording was not written to its end: it is left out. Storing it again \
                                       mends it."
                                    .to_owned(),
                            });
                        }
                        masks.entry(footer.mask).or_insert(path);
                    }
                }
            }
            for entry in fs::read_dir(&folder)
                .map_err(StoreError::file(&folder))?
                .flatten()
            {
                if entry.path().extension().is_some_and(|end| end == "tmp") {
                    found.problems.push(StoreProblem {
                        path: entry.path(),
                        text: "A writer left it, or is at work: the next that stores this recording removes it."
                            .to_owned(),
                    });
                }
            }
        }
    }
    if masks.len() > 1 {
        for path in masks.into_values() {
            found.problems.push(StoreProblem {
                path,
                text: "Names are masked by several keys, or by none: hosts do not find each other."
                    .to_owned(),
            });
        }
    }
    found.problems.sort();
    found.notes = names.sentences();
    Ok(found)
}

/// Reads what a file says of itself, and of which machines its recordings are. Returns too what is damaged behind a
/// footer that is whole.
fn looked_at(
    path: &Path,
    table: StoreTable,
    names: &mut HostNames,
) -> Result<(StoreFooter, Option<StoreError>), StoreError> {
    let file = File::open(path).map_err(StoreError::file(path))?;
    let reader = SerializedFileReader::new(file).map_err(StoreError::parquet(path))?;
    let footer = StoreFooter::of(&reader).map_err(StoreError::parquet(path))?;
    let damage = read_all(&reader).err().map(StoreError::parquet(path));
    if table == StoreTable::Runs && damage.is_none() {
        names.add(&reader).map_err(StoreError::parquet(path))?;
    }
    Ok((footer, damage))
}
