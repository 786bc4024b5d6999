//! Files that code is in, by number, and the addresses that belong to one.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Bytes of file names kept.
const MAX_NAME_BYTES: usize = 16 << 20;

/// A file name, by number: see [`Files::name`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FileId(pub(crate) u32);

impl FileId {
    /// What perf prints of addresses that belong to no file.
    pub const UNKNOWN: FileId = FileId(0);

    /// Returns the number, from 0 on in the order in which names were first seen.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// All file names. The files themselves are never looked into, so that a recording reads the same everywhere.
#[derive(Debug)]
pub struct Files {
    names: Vec<Arc<[u8]>>,
    by_name: FxHashMap<Arc<[u8]>, FileId>,
    bytes: usize,
}

impl Default for Files {
    fn default() -> Files {
        Files::new()
    }
}

impl Files {
    /// Returns a list with the unknown file alone.
    pub fn new() -> Files {
        let mut files = Files {
            names: Vec::new(),
            by_name: FxHashMap::default(),
            bytes: 0,
        };
        files.intern(b"[unknown]");
        files
    }

    /// Returns the number of a name, the unknown one when there are too many.
    pub(crate) fn intern(&mut self, name: &[u8]) -> FileId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        if self.bytes.saturating_add(name.len()) > MAX_NAME_BYTES {
            return FileId::UNKNOWN;
        }
        let Ok(number) = u32::try_from(self.names.len()) else {
            return FileId::UNKNOWN;
        };
        self.bytes += name.len() + 64;
        let name: Arc<[u8]> = name.into();
        self.names.push(Arc::clone(&name));
        self.by_name.insert(name, FileId(number));
        FileId(number)
    }

    /// Returns a name.
    pub fn name(&self, id: FileId) -> &[u8] {
        self.names.get(id.index()).map_or(b"[unknown]", |name| name)
    }

    /// Returns all names in the order of their numbers.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.names.iter().map(|name| &**name)
    }
}

/// Addresses in a row that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// What is added to an address (and wraps) to print it: perf prints places in files where it can.
    pub shift: u64,
    /// The file it is of.
    pub file: FileId,
    /// Whether the file's name is the name of a symbol too: code that the kernel made.
    pub symbol: bool,
}

impl Region {
    /// Has no address.
    pub const EMPTY: Region = Region {
        start: 0,
        end: 0,
        shift: 0,
        file: FileId::UNKNOWN,
        symbol: false,
    };

    /// Tells whether an address belongs to it.
    #[inline]
    pub fn has(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stored_once_and_not_without_end() {
        let mut files = Files::new();
        assert_eq!(files.intern(b"/a"), files.intern(b"/a"));
        assert_ne!(files.intern(b"/a"), files.intern(b"/b"));
        assert_eq!(files.intern(b"[unknown]"), FileId::UNKNOWN);
        let long = vec![b'x'; 1 << 16];
        for n in 0..1000u32 {
            files.intern(&[&long[..], &n.to_le_bytes()].concat());
        }
        assert!(files.names().map(<[u8]>::len).sum::<usize>() <= 2 * MAX_NAME_BYTES);
        let a = files.intern(b"/a");
        assert_eq!(files.name(a), b"/a");
    }
}
