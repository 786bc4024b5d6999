//! Functions of a program or a library, by the places in its file where a probe can be made.
//!
//! A uprobe takes a file and a place in it (`Documentation/trace/uprobetracer.rst`); symbols have addresses, which the
//! segments that are loaded relate to places.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::elf::{Elf, LoadSegment};
use crate::finding::{FilePart, SearchOptions};
use crate::names::{MAX_FILE, open_as};
use crate::symtab::{FileSymbols, address_of};
use crate::why::MissingReason;

/// The functions of a file.
#[derive(Debug)]
pub struct ProgramFunctions {
    loads: Vec<LoadSegment>,
    symbols: FileSymbols,
    /// The file itself, and its debug file if there is one.
    files: Vec<Elf>,
}

impl ProgramFunctions {
    /// Reads a file's symbols, or those of its debug file, which is looked for by its build id.
    ///
    /// # Errors
    ///
    /// It is not there, cannot be read, or is no program or library.
    pub fn read(path: &Path, options: &SearchOptions) -> Result<ProgramFunctions, MissingReason> {
        let mut binary = Elf::open(path, MAX_FILE)?;
        let loads = binary.loads.clone();
        let mut symbols = FileSymbols::read(&mut binary)?;
        let mut files = vec![binary];
        let id = files[0].build_id.clone();
        if let (false, Some(id)) = (symbols.complete, id) {
            let places = options.places(FilePart::Debug, path.as_os_str().as_bytes(), &id);
            let mut debug = places.iter().filter_map(|place| open_as(place, &id).ok());
            if let Some(mut debug) = debug.next()
                && let Ok(all) = FileSymbols::read(&mut debug)
                && all.complete
            {
                symbols = all;
                files.insert(0, debug);
            }
        }
        Ok(ProgramFunctions {
            loads,
            symbols,
            files,
        })
    }

    /// Returns whether all functions have a symbol, and not those alone that other files may use.
    pub fn is_complete(&self) -> bool {
        self.symbols.complete
    }

    /// Returns the place in the file where a function of this name begins, as its symbol has it. Of several the lowest.
    pub fn offset(&mut self, name: &str) -> Option<u64> {
        let found = self
            .symbols
            .functions()
            .find(|(_, own)| *own == name.as_bytes());
        let address = match found {
            Some((address, _)) => address,
            // Of several names of one address the list has the best one.
            None => (self.files.iter_mut()).find_map(|file| address_of(file, name.as_bytes()))?,
        };
        offset(&self.loads, address)
    }

    /// Returns the names of functions at which a probe can be made, in the order of their addresses, and as their
    /// symbols have them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.symbols.functions();
        let own = own.filter(|(address, _)| offset(&self.loads, *address).is_some());
        own.filter_map(|(_, name)| std::str::from_utf8(name).ok())
    }
}

/// Returns where in the file an address of code is.
fn offset(loads: &[LoadSegment], address: u64) -> Option<u64> {
    let has = |load: &&LoadSegment| {
        load.code && address >= load.address && address - load.address < load.size
    };
    let load = loads.iter().find(has)?;
    load.offset.checked_add(address - load.address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_place_in_the_file() {
        let load = |offset, address, code| LoadSegment {
            offset,
            size: 0x1000,
            address,
            code,
        };
        let loads = [load(0, 0x40_0000, false), load(0x2000, 0x40_3000, true)];
        assert_eq!(offset(&loads, 0x40_3010), Some(0x2010));
        assert_eq!(offset(&loads, 0x40_0010), None);
        assert_eq!(offset(&loads, 0x40_4000), None);
    }

    #[test]
    fn a_file_that_is_no_program_has_no_functions() {
        let options = SearchOptions::default();
        let none = ProgramFunctions::read(Path::new("/proc/version"), &options);
        assert!(none.is_err());
    }
}
