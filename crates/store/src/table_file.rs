//! One Parquet file: rows of a table, of one recording.

use std::io::Write;
use std::sync::Arc;

use mask::NameMask;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};
use render::StoredColumn;
use render::store::{StoredCell, StoredType};
use rustc_hash::FxHashMap;

use crate::StoreFooter;

/// Rows that are held before they are written. It bounds memory, and is what an engine reads at once.
const GROUP_ROWS: usize = 1 << 16;
/// Different texts of a column that are held at most; with more a group of rows ends earlier.
const GROUP_TEXTS: usize = 1 << 14;

/// What is held of a column.
#[derive(Debug)]
enum ColumnValues {
    Integers(Vec<i64>),
    Doubles(Vec<f64>),
    Flags(Vec<bool>),
    Texts {
        values: Vec<ByteArray>,
        /// Those that came in this group, masked where they are to be.
        all: FxHashMap<Box<str>, ByteArray>,
    },
}

impl ColumnValues {
    fn of(kind: StoredType) -> ColumnValues {
        match kind {
            StoredType::Integer => ColumnValues::Integers(Vec::new()),
            StoredType::Double => ColumnValues::Doubles(Vec::new()),
            StoredType::Flag => ColumnValues::Flags(Vec::new()),
            StoredType::Text => ColumnValues::Texts {
                values: Vec::new(),
                all: FxHashMap::default(),
            },
        }
    }

    fn clear(&mut self) {
        match self {
            ColumnValues::Integers(values) => values.clear(),
            ColumnValues::Doubles(values) => values.clear(),
            ColumnValues::Flags(values) => values.clear(),
            ColumnValues::Texts { values, all } => {
                values.clear();
                all.clear();
            }
        }
    }

    fn write(&self, known: &[i16], column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match self {
            ColumnValues::Integers(values) => {
                let column = column.typed::<Int64Type>();
                column.write_batch(values, Some(known), None)?;
            }
            ColumnValues::Doubles(values) => {
                let column = column.typed::<DoubleType>();
                column.write_batch(values, Some(known), None)?;
            }
            ColumnValues::Flags(values) => {
                let column = column.typed::<BoolType>();
                column.write_batch(values, Some(known), None)?;
            }
            ColumnValues::Texts { values, .. } => {
                let column = column.typed::<ByteArrayType>();
                column.write_batch(values, Some(known), None)?;
            }
        }
        Ok(())
    }
}

/// A column that is being written.
#[derive(Debug)]
struct ColumnBuffer {
    is_private: bool,
    values: ColumnValues,
    /// For each row 1 where it has a value, else 0: Parquet's definition levels.
    known: Vec<i16>,
}

impl ColumnBuffer {
    fn put(&mut self, cell: StoredCell<'_>, mask: Option<&NameMask>) {
        let known = match (&mut self.values, cell) {
            (ColumnValues::Integers(values), StoredCell::Integer(number)) => {
                values.push(number);
                true
            }
            (ColumnValues::Doubles(values), StoredCell::Double(number)) => {
                values.push(number);
                true
            }
            (ColumnValues::Flags(values), StoredCell::Flag(flag)) => {
                values.push(flag);
                true
            }
            (ColumnValues::Texts { values, all }, StoredCell::Text(text)) => {
                let held = all.get(text).cloned().unwrap_or_else(|| {
                    let stored = match mask.filter(|_| self.is_private) {
                        Some(mask) => ByteArray::from(mask.name(text).into_bytes()),
                        None => ByteArray::from(text.as_bytes().to_vec()),
                    };
                    all.insert(text.into(), stored.clone());
                    stored
                });
                values.push(held);
                true
            }
            _ => false,
        };
        self.known.push(i16::from(known));
    }

    fn is_full(&self) -> bool {
        matches!(&self.values, ColumnValues::Texts { all, .. } if all.len() >= GROUP_TEXTS)
    }
}

/// A Parquet file that is being written.
pub struct TableFile<'m, W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<ColumnBuffer>,
    /// The column that the next cell is of.
    next: usize,
    rows: u64,
    mask: Option<&'m NameMask>,
}

impl<W: Write + Send> std::fmt::Debug for TableFile<'_, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableFile")
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl<'m, W: Write + Send> TableFile<'m, W> {
    /// Begins a file with these columns. Private ones are masked, where there is a mask.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn new(
        out: W,
        columns: &[StoredColumn],
        footer: &StoreFooter,
        mask: Option<&'m NameMask>,
    ) -> Result<TableFile<'m, W>> {
        let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder(&footer.table)
            .with_fields(fields)
            .build()?;
        let mut properties = WriterProperties::builder()
            .set_created_by(format!("trapline {}", footer.version))
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(footer.pairs()));
        for column in columns.iter().filter(|one| one.kind == StoredType::Integer) {
            let path = ColumnPath::from(vec![column.name.to_string()]);
            // Numbers of rows that lie beside each other are alike: their differences are small.
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        let writer =
            SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))?;
        let buffers = columns.iter().map(|column| ColumnBuffer {
            is_private: column.is_private,
            values: ColumnValues::of(column.kind),
            known: Vec::new(),
        });
        Ok(TableFile {
            writer,
            columns: buffers.collect(),
            next: 0,
            rows: 0,
            mask,
        })
    }

    /// Takes the next cell: those of all columns come in their order, row by row. A value that is of another type than
    /// its column is null.
    pub fn put(&mut self, cell: StoredCell<'_>) {
        if let Some(column) = self.columns.get_mut(self.next) {
            column.put(cell, self.mask);
            self.next += 1;
        }
        if self.next >= self.columns.len() {
            self.next = 0;
            self.rows += 1;
        }
    }

    /// Returns whether a row has been begun and not ended.
    pub fn within_row(&self) -> bool {
        self.next > 0
    }

    /// Writes what is held, where that is much and no row is under way.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn settle(&mut self) -> Result<()> {
        let held = self.columns.first().map_or(0, |one| one.known.len());
        let full = held >= GROUP_ROWS || self.columns.iter().any(ColumnBuffer::is_full);
        match full && !self.within_row() {
            true => self.write_group(),
            false => Ok(()),
        }
    }

    fn write_group(&mut self) -> Result<()> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            if let Some(mut out) = group.next_column()? {
                column.values.write(&column.known, &mut out)?;
                out.close()?;
            }
            column.values.clear();
            column.known.clear();
        }
        group.close()?;
        Ok(())
    }

    /// Ends the file. Returns what it was written to, and how many rows it has.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn finish(mut self) -> Result<(W, u64)> {
        let held = self
            .columns
            .first()
            .is_some_and(|one| !one.known.is_empty());
        if held {
            self.write_group()?;
        }
        let rows = self.rows;
        Ok((self.writer.into_inner()?, rows))
    }
}

/// Returns the column as Parquet's schema has it.
fn field(column: &StoredColumn) -> Result<Arc<Type>> {
    let physical = match column.kind {
        StoredType::Integer => PhysicalType::INT64,
        StoredType::Double => PhysicalType::DOUBLE,
        StoredType::Flag => PhysicalType::BOOLEAN,
        StoredType::Text => PhysicalType::BYTE_ARRAY,
    };
    let logical = (column.kind == StoredType::Text).then_some(LogicalType::String);
    let built = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(built))
}
