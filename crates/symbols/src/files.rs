//! Files that code is in, by number, and the addresses that belong to one.
//!
//! A file is known by its path, and by its build id where the recorder noted it with the mapping: two versions of one
//! file have two numbers and one name.

use std::sync::Arc;

use event::index_of;
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
        index_of(self.0)
    }
}

/// A version of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct File {
    name: Arc<[u8]>,
    build_id: Option<Arc<[u8]>>,
}

/// All file names. The files themselves are never looked into, so that a recording reads the same everywhere.
#[derive(Debug)]
pub struct Files {
    files: Vec<File>,
    by_file: FxHashMap<File, FileId>,
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
            files: Vec::new(),
            by_file: FxHashMap::default(),
            bytes: 0,
        };
        files.intern(b"[unknown]");
        files
    }

    /// Returns the number of a name, the unknown one when there are too many.
    pub(crate) fn intern(&mut self, name: &[u8]) -> FileId {
        self.intern_version(name, None)
    }

    /// Returns the number of a version of a file, the unknown one when there are too many.
    pub(crate) fn intern_version(&mut self, name: &[u8], build_id: Option<&[u8]>) -> FileId {
        let file = File {
            name: name.into(),
            build_id: build_id.map(Into::into),
        };
        if let Some(&id) = self.by_file.get(&file) {
            return id;
        }
        let bytes = name.len() + build_id.map_or(0, <[u8]>::len);
        if self.bytes.saturating_add(bytes) > MAX_NAME_BYTES {
            return FileId::UNKNOWN;
        }
        let Ok(number) = u32::try_from(self.files.len()) else {
            return FileId::UNKNOWN;
        };
        self.bytes += bytes + 64;
        self.files.push(file.clone());
        self.by_file.insert(file, FileId(number));
        FileId(number)
    }

    /// Returns the build id that was recorded with the mappings of a file.
    pub fn build_id(&self, id: FileId) -> Option<&[u8]> {
        self.files.get(id.index())?.build_id.as_deref()
    }

    /// Returns a name.
    pub fn name(&self, id: FileId) -> &[u8] {
        self.files
            .get(id.index())
            .map_or(b"[unknown]", |file| &file.name)
    }

    /// Returns all names in the order of their numbers.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.files.iter().map(|file| &*file.name)
    }
}

/// Addresses in a row that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRegion {
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

impl FileRegion {
    /// Has no address.
    pub const EMPTY: FileRegion = FileRegion {
        start: 0,
        end: 0,
        shift: 0,
        file: FileId::UNKNOWN,
        symbol: false,
    };

    /// Says whether an address belongs to it.
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
        let versions = [None, Some(&[1; 20][..]), Some(&[2; 20])];
        let ids = versions.map(|id| files.intern_version(b"/a", id));
        assert_eq!(ids[0], files.intern(b"/a"));
        assert!(ids[0] != ids[1] && ids[1] != ids[2]);
        for (id, version) in ids.into_iter().zip(versions) {
            assert_eq!((files.name(id), files.build_id(id)), (&b"/a"[..], version));
        }
        let long = vec![b'x'; 1 << 16];
        for n in 0..1000u32 {
            files.intern(&[&long[..], &n.to_le_bytes()].concat());
        }
        assert!(files.names().map(<[u8]>::len).sum::<usize>() <= 2 * MAX_NAME_BYTES);
        let a = files.intern(b"/a");
        assert_eq!(files.name(a), b"/a");
    }
}
