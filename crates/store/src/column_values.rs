//! Columns of a file, read as a whole.

use std::fs::File;

use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

/// Reads all values of a column that has so many rows, with the definition levels of the rows.
macro_rules! values_of {
    ($reader:expr, $rows:expr, $levels:expr) => {{
        let mut values = Vec::new();
        let mut done = 0;
        while done < $rows {
            let (records, _, _) =
                $reader.read_records($rows - done, Some(&mut $levels), None, &mut values)?;
            if records == 0 {
                return Err(ParquetError::General("a column ends early".to_owned()));
            }
            done += records;
        }
        values
    }};
}
pub(crate) use values_of;

/// Returns the texts of a column, a row each; `None` where the file has no such column of texts.
///
/// # Errors
///
/// It cannot be read.
pub(crate) fn text_column(
    reader: &SerializedFileReader<File>,
    name: &str,
) -> Result<Option<Vec<Option<ByteArray>>>, ParquetError> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut columns = schema.columns().iter();
    let Some(at) = columns.position(|column| column.name() == name) else {
        return Ok(None);
    };
    let mut texts = Vec::new();
    for number in 0..reader.num_row_groups() {
        let group = reader.get_row_group(number)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut levels: Vec<i16> = Vec::new();
        let ColumnReader::ByteArrayColumnReader(mut column) = group.get_column_reader(at)? else {
            return Ok(None);
        };
        let mut values = values_of!(column, rows, levels).into_iter();
        let levels = levels.into_iter();
        // Rows without a value have none in the list.
        texts.extend(levels.map(|level| (level > 0).then(|| values.next()).flatten()));
    }
    Ok(Some(texts))
}

/// Reads all that a file has, a column of a group of rows at a time, and forgets it.
///
/// # Errors
///
/// A page is damaged.
pub(crate) fn read_all(reader: &SerializedFileReader<File>) -> Result<(), ParquetError> {
    for number in 0..reader.num_row_groups() {
        let group = reader.get_row_group(number)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        for at in 0..group.num_columns() {
            let mut levels: Vec<i16> = Vec::new();
            match group.get_column_reader(at)? {
                ColumnReader::BoolColumnReader(mut column) => {
                    values_of!(column, rows, levels);
                }
                ColumnReader::Int64ColumnReader(mut column) => {
                    values_of!(column, rows, levels);
                }
                ColumnReader::DoubleColumnReader(mut column) => {
                    values_of!(column, rows, levels);
                }
                ColumnReader::ByteArrayColumnReader(mut column) => {
                    values_of!(column, rows, levels);
                }
                _ => {
                    let other = "a column is of a type that no store has";
                    return Err(ParquetError::General(other.to_owned()));
                }
            }
        }
    }
    Ok(())
}
