//! Members of JSON objects, with notes that name the path of what is not as expected.

use std::collections::BTreeMap;

use cpuset::CpuSet;
use serde_json::{Map, Value};

use crate::keep::id;
use crate::reader::FactsReader;

/// Longest text that is kept, in bytes: the longest are words of command lines.
const MAX_TEXT: usize = 1 << 17;

/// Most members whose names are not the document's.
pub(super) const MAX_NAMES: usize = 1024;

/// An object and where it stands in its document.
pub(super) struct Members<'v> {
    object: &'v Map<String, Value>,
    /// `vms[0]`; empty for the document itself.
    path: String,
}

impl<'v> Members<'v> {
    /// Returns the members of a document.
    pub(super) fn of_document(object: &'v Map<String, Value>) -> Members<'v> {
        Members {
            object,
            path: String::new(),
        }
    }

    /// Returns the path of a member: `vms[0].name`.
    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// Returns the names and values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'v String, &'v Value)> + use<'v> {
        self.object.iter()
    }

    /// Notes that a member is not what was expected.
    pub(super) fn wrong(&self, name: &str, expected: &str, reader: &mut FactsReader) {
        let note = format!("{}: expected {expected}", self.path(name));
        reader.notes.add(reader.number, note);
    }

    /// Returns a member; null is for what is not known.
    fn get(&self, name: &str) -> Option<&'v Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// Returns what `read` makes of a member, and notes if that is nothing.
    pub(super) fn read<T>(
        &self,
        name: &str,
        expected: &str,
        reader: &mut FactsReader,
        read: impl FnOnce(&'v Value) -> Option<T>,
    ) -> Option<T> {
        let found = read(self.get(name)?);
        if found.is_none() {
            self.wrong(name, expected, reader);
        }
        found
    }

    pub(super) fn text(&self, name: &str, reader: &mut FactsReader) -> Option<String> {
        self.read(name, "a text", reader, text)
    }

    pub(super) fn flag(&self, name: &str, reader: &mut FactsReader) -> Option<bool> {
        self.read(name, "true or false", reader, Value::as_bool)
    }

    pub(super) fn number(&self, name: &str, reader: &mut FactsReader) -> Option<u64> {
        self.read(name, "a whole number", reader, Value::as_u64)
    }

    /// Returns a number of 32 bits.
    pub(super) fn small(&self, name: &str, reader: &mut FactsReader) -> Option<u32> {
        self.read(name, "a whole number", reader, small)
    }

    /// Returns a process or thread id.
    pub(super) fn thread_id(&self, name: &str, reader: &mut FactsReader) -> Option<i32> {
        self.read(name, "a thread id", reader, |v| id(v.as_i64()?))
    }

    /// Returns a set of CPUs.
    pub(super) fn cpus(&self, name: &str, reader: &mut FactsReader) -> Option<CpuSet> {
        self.read(name, "a list of CPUs as \"0-3,8\"", reader, cpus)
    }

    /// Returns what says what the object is about, and notes if it is not there.
    pub(super) fn required<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Self, &str, &mut FactsReader) -> Option<T>,
        reader: &mut FactsReader,
    ) -> Option<T> {
        if self.get(name).is_none() {
            self.wrong(
                name,
                "a number, without which the rest says nothing",
                reader,
            );
        }
        read(self, name, reader)
    }

    /// Returns a list's entries, `max` of them at most.
    pub(super) fn list(&self, name: &str, max: usize, reader: &mut FactsReader) -> &'v [Value] {
        let list = self.read(name, "a list", reader, Value::as_array);
        let list = list.map_or(&[][..], Vec::as_slice);
        if list.len() > max {
            self.wrong(
                name,
                &format!("no more than {max} entries; the others are left out"),
                reader,
            );
        }
        list.get(..max).unwrap_or(list)
    }

    /// Returns the objects of a list.
    pub(super) fn objects(
        &self,
        name: &str,
        max: usize,
        reader: &mut FactsReader,
    ) -> Vec<Members<'v>> {
        let mut objects = Vec::new();
        for (at, value) in self.list(name, max, reader).iter().enumerate() {
            match value.as_object() {
                Some(object) => objects.push(Members {
                    object,
                    path: format!("{}[{at}]", self.path(name)),
                }),
                None => self.wrong(&format!("{name}[{at}]"), "an object", reader),
            }
        }
        objects
    }

    /// Returns the object that a member is.
    pub(super) fn object(&self, name: &str, reader: &mut FactsReader) -> Option<Members<'v>> {
        let object = self.read(name, "an object", reader, Value::as_object)?;
        Some(Members {
            object,
            path: self.path(name),
        })
    }

    /// Returns what `read` makes of the members of an object, whatever they are called.
    pub(super) fn values<T>(
        &self,
        name: &str,
        expected: &str,
        reader: &mut FactsReader,
        read: fn(&Value) -> Option<T>,
    ) -> BTreeMap<String, T> {
        let Some(members) = self.object(name, reader) else {
            return BTreeMap::new();
        };
        let mut all = BTreeMap::new();
        for (key, value) in members.iter().take(MAX_NAMES) {
            match read(value) {
                Some(value) => drop(all.insert(key.clone(), value)),
                None => members.wrong(key, &format!("one of {expected}"), reader),
            }
        }
        all
    }

    /// Returns the objects that are members of an object, by their names.
    pub(super) fn named(
        &self,
        name: &str,
        max: usize,
        reader: &mut FactsReader,
    ) -> Vec<(&'v str, Members<'v>)> {
        let Some(members) = self.object(name, reader) else {
            return Vec::new();
        };
        let mut all = Vec::new();
        for key in members.object.keys().take(max) {
            let one = members.object(key, reader);
            all.extend(one.map(|one| (key.as_str(), one)));
        }
        all
    }

    /// Returns the texts of a list.
    pub(super) fn texts(&self, name: &str, max: usize, reader: &mut FactsReader) -> Vec<String> {
        let list = self.list(name, max, reader);
        let texts: Vec<String> = list.iter().filter_map(text).collect();
        if texts.len() < list.len() {
            self.wrong(name, "a list of texts", reader);
        }
        texts
    }

    /// Returns the small numbers of a list.
    pub(super) fn numbers(&self, name: &str, max: usize, reader: &mut FactsReader) -> Vec<u32> {
        let list = self.list(name, max, reader);
        let numbers: Vec<u32> = list.iter().filter_map(small).collect();
        if numbers.len() < list.len() {
            self.wrong(name, "a list of numbers", reader);
            return Vec::new();
        }
        numbers
    }
}

/// Returns a text, as much of it as is kept.
pub(super) fn text(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    Some(text[..text.floor_char_boundary(MAX_TEXT)].to_owned())
}

fn small(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

/// Returns a set of CPUs. Strides are refused: a few letters of them can stand for thousands of ranges, and no
/// document has them.
fn cpus(value: &Value) -> Option<CpuSet> {
    let text = value.as_str().filter(|text| !text.contains(':'))?;
    text.parse().ok()
}
