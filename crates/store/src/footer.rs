//! What a file of a store says of itself.

use std::fs::File;
use std::path::Path;

use mask::NameMask;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::StoreError;

/// Version of the tables. It grows when a column changes what it means; columns that are added leave it as it is.
pub const SCHEMA_VERSION: u32 = 1;

const TABLE: &str = "trapline.table";
const SCHEMA: &str = "trapline.schema";
const VERSION: &str = "trapline.version";
const MASK: &str = "trapline.mask";

/// What the footer of a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFooter {
    /// The table.
    pub table: String,
    /// Version of its columns.
    pub schema: u32,
    /// The program that wrote it.
    pub version: String,
    /// Which key masks its names ([`NameMask::fingerprint`]); `None` where they stand as they are.
    pub mask: Option<String>,
}

impl StoreFooter {
    /// Returns what a file written now says.
    pub(crate) fn new(table: &str, version: &str, mask: Option<&NameMask>) -> StoreFooter {
        StoreFooter {
            table: table.to_owned(),
            schema: SCHEMA_VERSION,
            version: version.to_owned(),
            mask: mask.map(NameMask::fingerprint),
        }
    }

    /// Reads it.
    ///
    /// # Errors
    ///
    /// The file is no whole Parquet file, or none of a store's.
    pub fn read(path: &Path) -> Result<StoreFooter, StoreError> {
        let file = File::open(path).map_err(StoreError::file(path))?;
        let reader = SerializedFileReader::new(file).map_err(StoreError::parquet(path))?;
        StoreFooter::of(&reader).map_err(StoreError::parquet(path))
    }

    /// Returns that of a file that is open.
    pub(crate) fn of(reader: &SerializedFileReader<File>) -> Result<StoreFooter, ParquetError> {
        let pairs = reader.metadata().file_metadata().key_value_metadata();
        let value = |key: &str| {
            let mut all = pairs.into_iter().flatten();
            all.find(|pair| pair.key == key)
                .and_then(|pair| pair.value.clone())
        };
        let schema = value(SCHEMA).and_then(|text| text.parse().ok());
        match (value(TABLE), schema) {
            (Some(table), Some(schema)) => Ok(StoreFooter {
                table,
                schema,
                version: value(VERSION).unwrap_or_default(),
                mask: value(MASK),
            }),
            _ => Err(ParquetError::General("it is no file of a store".to_owned())),
        }
    }

    pub(crate) fn pairs(&self) -> Vec<KeyValue> {
        let pair = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
        let mut all = vec![
            pair(TABLE, &self.table),
            pair(SCHEMA, &self.schema.to_string()),
            pair(VERSION, &self.version),
        ];
        all.extend(self.mask.iter().map(|mask| pair(MASK, mask)));
        all
    }
}
