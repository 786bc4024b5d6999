//! Where files of a store lie.

use std::path::{Path, PathBuf};
use std::{fs, io};

use render::store::StoreTable;

use crate::{RunId, StoreError};

/// What names of files begin with that are made of many.
pub const COMPACTED: &str = "all.";
/// Bytes of a host's name in a file's name.
const HOST_BYTES: usize = 64;

/// Where a recording's files lie: by its day, its host and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorePlace {
    day: String,
    file: String,
}

impl StorePlace {
    /// Returns the place of a recording. The file's name has of the host's what any file system takes; who needs the
    /// name itself reads the column.
    ///
    /// # Errors
    ///
    /// `day` is none.
    pub fn new(day: &str, host: &str, run: RunId) -> Result<StorePlace, StoreError> {
        if words::parse_utc_day(day).is_none() {
            return Err(StoreError::NoDay {
                day: day.to_owned(),
            });
        }
        let plain = |char: char| match char {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => char,
            _ => '-',
        };
        // What begins with a dot or a dash is hidden, or taken for an option.
        let host: String = host.chars().map(plain).take(HOST_BYTES).collect();
        let host = host.trim_matches('-');
        let host = if host.is_empty() { "host" } else { host };
        Ok(StorePlace {
            day: day.to_owned(),
            file: format!("{host}-{run}.parquet"),
        })
    }

    /// Returns the day.
    pub fn day(&self) -> &str {
        &self.day
    }

    /// Returns the folder of a table's files of the day.
    pub(crate) fn folder(&self, store: &Path, table: StoreTable) -> PathBuf {
        store.join(table.name()).join(format!("day={}", self.day))
    }

    /// Returns the name that files of all tables have.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }
}

/// Returns the days of a table, earliest first. A table that is not there has none.
pub(crate) fn days(store: &Path, table: StoreTable) -> Result<Vec<String>, StoreError> {
    let folder = store.join(table.name());
    let names = names(&folder)?.into_iter();
    let days = names.filter_map(|name| name.strip_prefix("day=").map(str::to_owned));
    let mut days: Vec<String> = days.collect();
    days.sort();
    Ok(days)
}

/// Returns the names of a table's files of a day, in order, but for those that a writer has not named yet.
pub(crate) fn day_files(
    store: &Path,
    table: StoreTable,
    day: &str,
) -> Result<Vec<String>, StoreError> {
    let folder = store.join(table.name()).join(format!("day={day}"));
    let mut files = names(&folder)?;
    files.retain(|name| name.ends_with(".parquet") && !name.starts_with('.'));
    files.sort();
    Ok(files)
}

fn names(folder: &Path) -> Result<Vec<String>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::file(folder)(error)),
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.collect())
}

/// Returns the day, in UTC, of a moment in nanoseconds since 1970.
pub fn day_of(unix_ns: u64) -> String {
    words::utc_day(unix_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_make_names_of_files() {
        let place = |host: &str| {
            let place = StorePlace::new("2026-11-23", host, RunId::of(b"abc"));
            place.expect("a day").file().to_owned()
        };
        for (host, begins) in [
            ("web1", "web1-ba"),
            ("web1.example.org", "web1-example-org-ba"),
            ("../../etc/passwd", "etc-passwd-ba"),
            (".x", "x-ba"),
            ("", "host-ba"),
            ("云", "host-ba"),
        ] {
            assert!(place(host).starts_with(begins), "{}", place(host));
        }
        assert!(place(&"x".repeat(1000)).len() < 100);
        for day in [
            "",
            "2026-13-01",
            "2026-02-30",
            "../2026",
            "2026-1-1",
            "20261123",
        ] {
            assert!(StorePlace::new(day, "x", RunId::of(b"")).is_err(), "{day}");
        }
        assert_eq!(day_of(1_763_900_000_000_000_000), "2025-11-23");
    }
}
