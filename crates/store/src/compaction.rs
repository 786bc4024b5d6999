//! Makes one file of each table and day: engines open files, and five hundred small ones take longer than one.
//!
//! A day's folder is written anew beside the old one and takes its place in one step. The new file is made of
//! recordings that are in the store alone, and its name says so ([`COMPACTED`]), so that a reader never takes it for a
//! recording that was not written to its end, wherever this is stopped.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use render::store::{StoreTable, run_columns};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::column_values::{text_column, values_of};
use crate::lock::StoreLock;
use crate::place::{COMPACTED, day_files, days};
use crate::table_file::{ColumnBuffer, TableFile};
use crate::{RunId, StoreError, StoreFooter, refuse_screen};

/// What became of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactedDay {
    /// The day.
    pub day: String,
    /// Files that there were, of all tables.
    pub files: usize,
    /// Files that there are now.
    pub left: usize,
}

/// Makes one file of each table of every day, which `version` of the program writes. Nobody writes into the store
/// meanwhile.
///
/// # Errors
///
/// A file cannot be read or written; days that were done stay done.
pub fn compact(store: &Path, version: &str) -> Result<Vec<CompactedDay>, StoreError> {
    refuse_screen(store)?;
    let _alone = StoreLock::alone(store)?;
    let mut done = Vec::new();
    for day in days(store, StoreTable::Runs)? {
        let whole = day_files(store, StoreTable::Runs, &day)?;
        let (mut files, mut left) = (0, 0);
        for table in StoreTable::ALL {
            let all = day_files(store, table, &day)?;
            // What was not written to its end is nobody's, and goes.
            let named = all
                .into_iter()
                .filter(|name| name.starts_with(COMPACTED) || whole.contains(name));
            let named: Vec<String> = named.collect();
            files += named.len();
            left += named.len().min(1);
            if named.len() > 1 {
                compact_day(store, table, &day, &named, version)?;
            }
        }
        if left < files {
            done.push(CompactedDay { day, files, left });
        }
    }
    Ok(done)
}

/// Returns the file made of many that has a recording's rows, if there is one.
pub(crate) fn compacted_file(
    store: &Path,
    day: &str,
    run: &str,
) -> Result<Option<PathBuf>, StoreError> {
    let table = StoreTable::Runs;
    let names = day_files(store, table, day)?.into_iter();
    for name in names.filter(|name| name.starts_with(COMPACTED)) {
        let path = store
            .join(table.name())
            .join(format!("day={day}"))
            .join(name);
        let file = File::open(&path).map_err(StoreError::file(&path))?;
        let reader = SerializedFileReader::new(file).map_err(StoreError::parquet(&path))?;
        let runs = text_column(&reader, "run").map_err(StoreError::parquet(&path))?;
        let mut runs = runs.into_iter().flatten().flatten();
        if runs.any(|one| one.data() == run.as_bytes()) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Removes rows of single things of all days before one. Returns how many days had any.
///
/// # Errors
///
/// They cannot be removed.
pub fn forget_detail(store: &Path, before: &str) -> Result<usize, StoreError> {
    refuse_screen(store)?;
    let _alone = StoreLock::alone(store)?;
    let mut forgotten: Vec<String> = Vec::new();
    for table in StoreTable::ALL
        .into_iter()
        .filter(|table| table.is_detail())
    {
        for day in days(store, table)?
            .into_iter()
            .filter(|day| day.as_str() < before)
        {
            let folder = store.join(table.name()).join(format!("day={day}"));
            fs::remove_dir_all(&folder).map_err(StoreError::file(&folder))?;
            forgotten.push(day);
        }
    }
    forgotten.sort();
    forgotten.dedup();
    Ok(forgotten.len())
}

fn compact_day(
    store: &Path,
    table: StoreTable,
    day: &str,
    names: &[String],
    version: &str,
) -> Result<(), StoreError> {
    let folder = store.join(table.name()).join(format!("day={day}"));
    let begun = store.join(table.name()).join(format!(".day={day}.tmp"));
    // Of a compaction that was ended before its end.
    let _ = fs::remove_dir_all(&begun);
    fs::create_dir_all(&begun).map_err(StoreError::file(&begun))?;
    // The same files make a file of the same name.
    let file = format!(
        "{COMPACTED}{}.parquet",
        RunId::of(names.join("\n").as_bytes())
    );
    let path = begun.join(&file);
    let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
    write_one(table, &paths, &path, version)?;
    let exchanged = renameat_with(CWD, &begun, CWD, &folder, RenameFlags::EXCHANGE);
    exchanged.map_err(|error| StoreError::file(&folder)(error.into()))?;
    if let Some(parent) = folder.parent() {
        let synced = File::open(parent).and_then(|parent| parent.sync_all());
        synced.map_err(StoreError::file(parent))?;
    }
    // The old folder has the other name now.
    fs::remove_dir_all(&begun).map_err(StoreError::file(&begun))
}

fn write_one(
    table: StoreTable,
    paths: &[PathBuf],
    to: &Path,
    version: &str,
) -> Result<(), StoreError> {
    let first = paths
        .first()
        .map(|path| StoreFooter::read(path))
        .transpose()?;
    let mut footer = StoreFooter::new(table.name(), version, None);
    // Names are masked already, or not at all.
    footer.mask = first.and_then(|first| first.mask);
    let mut columns = run_columns();
    columns.extend(table.columns());
    let file = File::create(to).map_err(StoreError::file(to))?;
    let mut out = TableFile::new(BufWriter::new(file), &columns, &footer, None)
        .map_err(StoreError::parquet(to))?;
    for path in paths {
        let file = File::open(path).map_err(StoreError::file(path))?;
        let reader = SerializedFileReader::new(file).map_err(StoreError::parquet(path))?;
        let theirs = StoreFooter::of(&reader).map_err(StoreError::parquet(path))?;
        if theirs.mask != footer.mask {
            return Err(StoreError::OtherMask {
                path: path.clone(),
                there: "names masked by several keys, or by none",
                here: "one file of them",
            });
        }
        append(&reader, &mut out).map_err(StoreError::parquet(path))?;
    }
    let (written, _) = out.finish().map_err(StoreError::parquet(to))?;
    let file = written
        .into_inner()
        .map_err(|error| StoreError::file(to)(error.into_error()))?;
    file.sync_all().map_err(StoreError::file(to))
}

/// Appends all rows of a file, column by column. What a file does not have is null.
fn append(
    reader: &SerializedFileReader<File>,
    out: &mut TableFile<'_, BufWriter<File>>,
) -> Result<(), ParquetError> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let names: Vec<&str> = schema
        .columns()
        .iter()
        .map(|column| column.name())
        .collect();
    if let Some(unknown) = names.iter().find(|name| !out.has_column(name)) {
        let text = format!("its column {unknown} is of a newer trapline, and would be lost");
        return Err(ParquetError::General(text));
    }
    for number in 0..reader.num_row_groups() {
        let group = reader.get_row_group(number)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        out.append_rows(rows, |_, buffer| {
            match names.iter().position(|one| *one == buffer.name()) {
                Some(at) => read_column(group.as_ref(), at, rows, buffer),
                None => {
                    buffer.append_nulls(rows);
                    Ok(())
                }
            }
        })?;
    }
    Ok(())
}

fn read_column(
    group: &dyn RowGroupReader,
    at: usize,
    rows: usize,
    buffer: &mut ColumnBuffer,
) -> Result<(), ParquetError> {
    let mut levels: Vec<i16> = Vec::new();
    let fits = match group.get_column_reader(at)? {
        ColumnReader::Int64ColumnReader(mut reader) => {
            let values = values_of!(reader, rows, levels);
            buffer.append_integers(values, &levels)
        }
        ColumnReader::DoubleColumnReader(mut reader) => {
            let values = values_of!(reader, rows, levels);
            buffer.append_doubles(values, &levels)
        }
        ColumnReader::BoolColumnReader(mut reader) => {
            let values = values_of!(reader, rows, levels);
            buffer.append_flags(values, &levels)
        }
        ColumnReader::ByteArrayColumnReader(mut reader) => {
            let values = values_of!(reader, rows, levels);
            buffer.append_texts(values, &levels)
        }
        _ => false,
    };
    match fits {
        true => Ok(()),
        false => Err(ParquetError::General(
            "a column has values of another type".to_owned(),
        )),
    }
}
