//! One Parquet file: rows of a table, of one recording.

use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

use mask::NameMask;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};
use render::StoredColumn;
use render::store::{StoredRows, StoredType, TableCell};
use rustc_hash::FxHashMap;

use crate::StoreFooter;

/// Rows that are held before they are written, if nothing else is said. It bounds memory, and is what an engine reads
/// at once.
const GROUP_ROWS: usize = 1 << 15;
/// Different texts of a column that are held at most; with more a group of rows ends earlier.
const GROUP_TEXTS: usize = 1 << 14;
/// Texts that are handed to Parquet at once.
const BATCH: usize = 4096;

/// Bytes of texts that are held of a column whose rows all have others.
const GROUP_BYTES: usize = 4 << 20;

/// What is held of a column.
#[derive(Debug)]
enum ColumnValues {
    Integers(Vec<i64>),
    Doubles(Vec<f64>),
    Flags(Vec<bool>),
    Texts(TextValues),
    /// Texts of which nearly all differ, and how many bytes they have.
    Unique(Vec<ByteArray>, usize),
}

/// Texts of a column: rows have few different ones, so each is kept once.
#[derive(Debug, Default)]
struct TextValues {
    /// For each value its place among the texts.
    places: Vec<u32>,
    /// Those that came in this group, as they came.
    names: Vec<Rc<str>>,
    /// The same, masked where they are to be.
    texts: Vec<ByteArray>,
    by_text: FxHashMap<Rc<str>, u32>,
    /// Places of the two that came last: most often one of them comes again.
    last: [u32; 2],
}

impl TextValues {
    fn put(&mut self, text: &str, mask: Option<&NameMask>) {
        for place in self.last {
            if let Some(name) = self.names.get(place as usize)
                && **name == *text
            {
                self.places.push(place);
                return;
            }
        }
        let place = match self.by_text.get(text) {
            Some(place) => *place,
            None => self.add(text, mask),
        };
        self.last = [place, self.last[0]];
        self.places.push(place);
    }

    fn add(&mut self, text: &str, mask: Option<&NameMask>) -> u32 {
        let stored = mask.map_or_else(|| text.to_owned(), |mask| mask.name(text));
        let place = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        let name: Rc<str> = text.into();
        self.texts.push(stored.into_bytes().into());
        self.names.push(Rc::clone(&name));
        self.by_text.insert(name, place);
        place
    }

    fn clear(&mut self) {
        self.places.clear();
        self.names.clear();
        self.texts.clear();
        self.by_text.clear();
    }
}

impl ColumnValues {
    fn of(column: &StoredColumn) -> ColumnValues {
        match column.kind {
            StoredType::Text if column.is_unique => ColumnValues::Unique(Vec::new(), 0),
            StoredType::Integer => ColumnValues::Integers(Vec::new()),
            StoredType::Double => ColumnValues::Doubles(Vec::new()),
            StoredType::Flag => ColumnValues::Flags(Vec::new()),
            StoredType::Text => ColumnValues::Texts(TextValues::default()),
        }
    }

    fn clear(&mut self) {
        match self {
            ColumnValues::Integers(values) => values.clear(),
            ColumnValues::Doubles(values) => values.clear(),
            ColumnValues::Flags(values) => values.clear(),
            ColumnValues::Texts(values) => values.clear(),
            ColumnValues::Unique(values, bytes) => {
                values.clear();
                *bytes = 0;
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
            ColumnValues::Texts(values) => {
                let column = column.typed::<ByteArrayType>();
                let mut left = values.places.as_slice();
                let (mut batch, mut made_of): (Vec<ByteArray>, &[u32]) = (Vec::new(), &[]);
                for known in known.chunks(BATCH) {
                    let present = known.iter().filter(|level| **level > 0).count();
                    let (places, rest) = left.split_at(present.min(left.len()));
                    // Many columns have one text in thousands of rows: those of before are those of now.
                    if places != made_of {
                        batch.clear();
                        for place in places {
                            if let Some(text) = values.texts.get(*place as usize) {
                                batch.push(text.clone());
                            }
                        }
                        made_of = places;
                    }
                    column.write_batch(&batch, Some(known), None)?;
                    left = rest;
                }
            }
            ColumnValues::Unique(values, _) => {
                let column = column.typed::<ByteArrayType>();
                column.write_batch(values, Some(known), None)?;
            }
        }
        Ok(())
    }
}

/// A column that is being written.
#[derive(Debug)]
pub(crate) struct ColumnBuffer {
    name: String,
    is_private: bool,
    values: ColumnValues,
    /// For each row 1 where it has a value, else 0: Parquet's definition levels.
    known: Vec<i16>,
}

impl ColumnBuffer {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Appends rows that all have the same text.
    fn put_same(&mut self, text: &str, rows: usize, mask: Option<&NameMask>) {
        let mask = mask.filter(|_| self.is_private);
        for _ in 0..rows {
            self.put_text(text, mask);
        }
        self.known.resize(self.known.len() + rows, 1);
    }

    /// Appends rows without a value.
    pub(crate) fn append_nulls(&mut self, rows: usize) {
        self.known.resize(self.known.len() + rows, 0);
    }

    /// Appends whole numbers, with Parquet's definition levels of all rows. Returns whether the column takes them; so
    /// do the others.
    pub(crate) fn append_integers(&mut self, more: Vec<i64>, known: &[i16]) -> bool {
        let ColumnValues::Integers(values) = &mut self.values else {
            return false;
        };
        values.extend(more);
        self.known.extend_from_slice(known);
        true
    }

    /// Appends numbers.
    pub(crate) fn append_doubles(&mut self, more: Vec<f64>, known: &[i16]) -> bool {
        let ColumnValues::Doubles(values) = &mut self.values else {
            return false;
        };
        values.extend(more);
        self.known.extend_from_slice(known);
        true
    }

    /// Appends flags.
    pub(crate) fn append_flags(&mut self, more: Vec<bool>, known: &[i16]) -> bool {
        let ColumnValues::Flags(values) = &mut self.values else {
            return false;
        };
        values.extend(more);
        self.known.extend_from_slice(known);
        true
    }

    /// Appends texts.
    pub(crate) fn append_texts(&mut self, more: Vec<ByteArray>, known: &[i16]) -> bool {
        for text in more {
            let Ok(text) = str::from_utf8(text.data()) else {
                return false;
            };
            if !self.put_text(text, None) {
                return false;
            }
        }
        self.known.extend_from_slice(known);
        true
    }

    /// Appends a text. Returns whether the column takes texts.
    fn put_text(&mut self, text: &str, mask: Option<&NameMask>) -> bool {
        match &mut self.values {
            ColumnValues::Texts(values) => values.put(text, mask),
            ColumnValues::Unique(values, bytes) => {
                let stored = mask.map_or_else(|| text.to_owned(), |mask| mask.name(text));
                *bytes += stored.len();
                values.push(stored.into_bytes().into());
            }
            _ => return false,
        }
        true
    }

    /// Appends a value; null where the column's type does not hold it.
    fn put(&mut self, cell: TableCell<'_>, mask: Option<&NameMask>) {
        let known = match (&mut self.values, cell) {
            (ColumnValues::Integers(values), TableCell::Unsigned(number)) => {
                match i64::try_from(number) {
                    Ok(number) => {
                        values.push(number);
                        true
                    }
                    Err(_) => false,
                }
            }
            (ColumnValues::Integers(values), TableCell::Signed(number)) => {
                values.push(number);
                true
            }
            (ColumnValues::Doubles(values), TableCell::Number(number)) => {
                values.push(number);
                true
            }
            // A whole number is a number too.
            (ColumnValues::Doubles(values), TableCell::Unsigned(number)) => {
                values.push(number as f64);
                true
            }
            (ColumnValues::Doubles(values), TableCell::Signed(number)) => {
                values.push(number as f64);
                true
            }
            (ColumnValues::Flags(values), TableCell::Flag(flag)) => {
                values.push(flag);
                true
            }
            (_, TableCell::Text(text)) => self.put_text(text, mask.filter(|_| self.is_private)),
            _ => false,
        };
        self.known.push(i16::from(known));
    }

    fn is_full(&self) -> bool {
        match &self.values {
            ColumnValues::Texts(values) => values.texts.len() >= GROUP_TEXTS,
            ColumnValues::Unique(_, bytes) => *bytes >= GROUP_BYTES,
            _ => false,
        }
    }
}

/// A Parquet file that is being written.
pub struct TableFile<'m, W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<ColumnBuffer>,
    rows: u64,
    group_rows: usize,
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
            // Who asks skips groups of rows by their least and largest values; pages of a group are small.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(footer.pairs()));
        for column in columns {
            let path = ColumnPath::from(vec![column.name.to_string()]);
            if column.kind == StoredType::Integer {
                // Numbers of rows that lie beside each other are alike: their differences are small.
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            } else if column.is_unique {
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_statistics_enabled(path, EnabledStatistics::None);
            }
        }
        let writer =
            SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))?;
        let buffers = columns.iter().map(|column| ColumnBuffer {
            name: column.name.to_string(),
            is_private: column.is_private,
            values: ColumnValues::of(column),
            known: Vec::new(),
        });
        Ok(TableFile {
            writer,
            columns: buffers.collect(),
            rows: 0,
            group_rows: GROUP_ROWS,
            mask,
        })
    }

    /// Holds no more rows than this before they are written.
    #[must_use]
    pub fn holding(self, group_rows: usize) -> TableFile<'m, W> {
        TableFile { group_rows, ..self }
    }

    /// Takes rows. The file's first columns have the same texts in all of them. A value that is of another type than
    /// its column is null.
    ///
    /// # Errors
    ///
    /// It cannot be written, or the rows have other columns.
    pub fn put(&mut self, first: &[&str], rows: &dyn StoredRows) -> Result<()> {
        let (count, mask) = (rows.count(), self.mask);
        self.append_rows(count, |at, column| {
            match first.get(at) {
                Some(text) => column.put_same(text, count, mask),
                None => rows.column(at - first.len(), &mut |cell| column.put(cell, mask)),
            }
            Ok(())
        })
    }

    /// Returns whether there is a column of this name.
    pub(crate) fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    /// Appends rows column by column: `fill` is called for each, with its place, and appends as many values. Writes
    /// what is held then, where that is much.
    pub(crate) fn append_rows(
        &mut self,
        rows: usize,
        mut fill: impl FnMut(usize, &mut ColumnBuffer) -> Result<()>,
    ) -> Result<()> {
        for (at, column) in self.columns.iter_mut().enumerate() {
            let wanted = column.known.len() + rows;
            fill(at, column)?;
            if column.known.len() != wanted {
                let name = &column.name;
                let text = format!("column {name} has another number of rows than the others");
                return Err(ParquetError::General(text));
            }
        }
        self.rows += rows as u64;
        let held = self.columns.first().map_or(0, |one| one.known.len());
        match held >= self.group_rows || self.columns.iter().any(ColumnBuffer::is_full) {
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

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::fs::File;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use render::store::CellTaker;

    use super::*;

    /// Rows of two columns: a number and a text.
    struct MadeRows {
        numbers: Vec<u64>,
        texts: Vec<Option<String>>,
    }

    impl StoredRows for MadeRows {
        fn count(&self) -> usize {
            self.texts.len()
        }

        fn column(&self, place: usize, take: CellTaker<'_>) {
            match place {
                0 => self
                    .numbers
                    .iter()
                    .for_each(|number| take(TableCell::Unsigned(*number))),
                _ => self.texts.iter().for_each(|text| match text {
                    Some(text) => take(TableCell::Text(text)),
                    None => take(TableCell::Null),
                }),
            }
        }
    }

    fn column(name: &'static str, kind: StoredType) -> StoredColumn {
        StoredColumn {
            name: Cow::Borrowed(name),
            kind,
            is_private: name == "text",
            is_unique: false,
            unit: "",
        }
    }

    fn write(rows: &MadeRows, mask: Option<&NameMask>) -> Result<File> {
        let columns = [
            column("host", StoredType::Text),
            column("number", StoredType::Integer),
            column("text", StoredType::Text),
        ];
        let footer = StoreFooter::new("made", "1.2.3", mask);
        let mut file = TableFile::new(tempfile::tempfile()?, &columns, &footer, mask)?;
        file.put(&["h"], rows)?;
        file.put(&["h"], rows)?;
        let (file, written) = file.finish()?;
        assert_eq!(written, 2 * rows.texts.len() as u64);
        Ok(file)
    }

    fn read(file: File) -> Vec<Vec<Field>> {
        let reader = SerializedFileReader::new(file).expect("a file");
        let rows = reader.get_row_iter(None).expect("rows").flatten();
        rows.map(|row| {
            row.into_columns()
                .into_iter()
                .map(|(_, field)| field)
                .collect()
        })
        .collect()
    }

    #[test]
    fn columns_of_many_rows_come_back() {
        // More rows than are handed to Parquet at once, with runs of one text, others between, and none.
        let text = |at: usize| match (at / 3000, at % 7) {
            (0 | 2, _) => Some("same".to_owned()),
            (_, 3) => None,
            (_, other) => Some(format!("t{other}")),
        };
        let rows = MadeRows {
            numbers: (0..20_000)
                .map(|at| if at == 5 { u64::MAX } else { at })
                .collect(),
            texts: (0..20_000).map(text).collect(),
        };
        let found = read(write(&rows, None).expect("it is written"));
        assert_eq!(found.len(), 40_000);
        for (at, row) in found.iter().enumerate() {
            let at = at % 20_000;
            let text = text(at).map_or(Field::Null, Field::Str);
            // What 64 bits with a sign do not hold is null.
            let number = match at {
                5 => Field::Null,
                at => Field::Long(at as i64),
            };
            assert_eq!(row, &[Field::Str("h".to_owned()), number, text]);
        }
    }

    #[test]
    fn private_texts_are_masked_and_others_are_not() {
        let mask = NameMask::new(&[7; 32]).expect("a key");
        let rows = MadeRows {
            numbers: vec![1, 2],
            texts: vec![Some("secret".to_owned()), None],
        };
        let found = read(write(&rows, Some(&mask)).expect("it is written"));
        let masked = Field::Str(mask.name("secret"));
        assert_eq!(found[0][0], Field::Str("h".to_owned()));
        assert_eq!((&found[0][2], &found[1][2]), (&masked, &Field::Null));
    }

    #[test]
    fn columns_of_other_lengths_are_refused() {
        let rows = MadeRows {
            numbers: vec![1, 2, 3],
            texts: vec![None],
        };
        let error = write(&rows, None).expect_err("they do not fit").to_string();
        assert!(error.contains("column number"), "{error}");
    }
}
