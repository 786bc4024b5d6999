//! Rows of a document that are made when they are written.

use std::borrow::Borrow;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::Table;

/// Rows of a document, each of which is made an object when it is written and is gone then: as objects the rows of a
/// hundred thousand tasks take two gigabytes.
pub(crate) struct DocumentRows<'a> {
    count: usize,
    object: Box<dyn Fn(usize) -> Map<String, Value> + 'a>,
}

impl<'t, R> Table<'t, R> {
    /// Returns rows as a list of objects in a document.
    pub(crate) fn document_rows<'a, B>(self, rows: impl IntoIterator<Item = B>) -> DocumentRows<'a>
    where
        't: 'a,
        R: 'a,
        B: Borrow<R> + 'a,
    {
        let rows: Vec<B> = rows.into_iter().collect();
        let count = rows.len();
        let object = move |at: usize| {
            let row = rows.get(at);
            row.map_or_else(Map::new, |row| self.object(row.borrow()))
        };
        DocumentRows {
            count,
            object: Box::new(object),
        }
    }
}

impl Serialize for DocumentRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..self.count).map(&self.object))
    }
}

impl fmt::Debug for DocumentRows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DocumentRows")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}
