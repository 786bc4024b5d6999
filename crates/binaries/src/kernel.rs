//! Kernels: the one of this machine, files of kernels and of modules, and copies that perf kept.
//!
//! Source: `tools/perf/util/{symbol,build-id}.c` of kernel 6.1 (`dso__load_kernel_sym`, `vmlinux_path__init`,
//! `build_id_cache__kallsyms_path`), `Documentation/ABI/testing/sysfs-kernel-notes`, `kernel/module/main.c`
//! (`layout_sections`).

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::elf::Elf;
use crate::finding::{FilePart, SearchOptions};
use crate::names::{MAX_FILE, open_as, same_id};
use crate::symtab::{FileSymbols, address_of};

/// Lists of symbols are not read beyond this many bytes: a kernel with many modules has some 20 MB.
const MAX_SYMBOLS: u64 = 128 << 20;
/// Lists of modules, and notes. A line of a module has some fifty bytes.
const MAX_TEXT: u64 = 8 << 20;
/// `NT_GNU_BUILD_ID` of `GNU` (`include/uapi/linux/elf.h`, `scripts/link-vmlinux.sh`).
const BUILD_ID_NOTE: u32 = 3;

/// What the kernel of this machine says of itself.
#[derive(Debug)]
pub struct RunningKernel {
    /// `/proc/kallsyms`. Its addresses are zeros where they are hidden from whoever reads.
    pub symbols: Vec<u8>,
    /// `/proc/modules`; empty where there is none.
    pub modules: Vec<u8>,
}

/// The functions of a kernel's file.
#[derive(Debug)]
pub struct KernelImage {
    /// Where the symbol is that was asked for.
    pub reference: u64,
    symbols: FileSymbols,
}

impl KernelImage {
    /// Returns addresses and names, in order.
    pub fn functions(&self) -> impl Iterator<Item = (u64, &str)> {
        texts(&self.symbols)
    }
}

/// Looks for what has the build id of a recorded kernel.
#[derive(Debug)]
pub struct KernelSearch<'o> {
    options: &'o SearchOptions,
    build_id: &'o [u8],
    release: Option<&'o str>,
}

impl<'o> KernelSearch<'o> {
    /// `release` is the kernel's, as `uname -r` prints it.
    pub fn new(
        options: &'o SearchOptions,
        build_id: &'o [u8],
        release: Option<&'o str>,
    ) -> KernelSearch<'o> {
        KernelSearch {
            options,
            build_id,
            release,
        }
    }

    /// Returns whether there may be anything: the kernel of this machine is the one that was recorded, or there is a
    /// file in one of the places where its symbols may be.
    pub fn is_promising(&self) -> bool {
        let copies = self.options.kernel_copies(self.build_id).into_iter();
        let images = self.options.kernel_images(self.release, self.build_id);
        self.runs().is_some() || copies.chain(images).any(|place| place.is_file())
    }

    /// Returns the root of this machine's file system, if its kernel is the one that was recorded.
    fn runs(&self) -> Option<&'o Path> {
        let root = self.options.root.as_deref()?;
        let notes = contents(&root.join("sys/kernel/notes"), MAX_TEXT)?;
        same_id(&noted_build_id(&notes)?, self.build_id).then_some(root)
    }

    /// Returns what the kernel of this machine says, if it is the one that was recorded.
    pub fn running(&self) -> Option<RunningKernel> {
        let root = self.runs()?;
        Some(RunningKernel {
            symbols: contents(&root.join("proc/kallsyms"), MAX_SYMBOLS)?,
            modules: contents(&root.join("proc/modules"), MAX_TEXT).unwrap_or_default(),
        })
    }

    /// Returns the copies of `/proc/kallsyms` that perf kept with the build id, each when it is asked for.
    pub fn copies(&self) -> impl Iterator<Item = Vec<u8>> {
        let places = self.options.kernel_copies(self.build_id).into_iter();
        places.filter_map(|place| contents(&place, MAX_SYMBOLS))
    }

    /// Returns the first file of the kernel that has symbols, the one named `reference` among them.
    pub fn image(&self, reference: &str) -> Option<KernelImage> {
        let places = self.options.kernel_images(self.release, self.build_id);
        places.into_iter().find_map(|place| {
            let mut elf = open_as(&place, self.build_id).ok()?;
            if !elf.has(b".symtab") {
                return None;
            }
            Some(KernelImage {
                reference: address_of(&mut elf, reference.as_bytes())?,
                symbols: FileSymbols::read(&mut elf).ok()?,
            })
        })
    }
}

/// The functions in a file of a module of the kernel.
#[derive(Debug)]
pub struct ModuleCode {
    /// How many bytes from the module's first address on they are of.
    pub len: u64,
    symbols: FileSymbols,
}

impl ModuleCode {
    /// Returns the first file of a module that has a build id and symbols. `path` is the file's as the recording has
    /// it.
    ///
    /// The kernel puts the sections with code together in the order of the file, from the module's first address on:
    /// the first of them is there as it is in the file. Only its symbols are returned, and none where the kernel makes
    /// sections that may stand before it (`.plt` on arm64).
    pub fn find(options: &SearchOptions, path: &str, build_id: &[u8]) -> Option<ModuleCode> {
        let parts = [FilePart::Binary, FilePart::Debug].into_iter();
        let mut places = parts.flat_map(|part| options.places(part, path.as_bytes(), build_id));
        places.find_map(|place| {
            let mut elf = Elf::open_module(&place, MAX_FILE).ok()?;
            let id = elf.build_id.as_deref();
            if !id.is_some_and(|id| same_id(id, build_id)) || !elf.has(b".symtab") {
                return None;
            }
            let (first, len) = elf.first_code()?;
            let symbols = FileSymbols::of_section(&mut elf, first).ok()?;
            Some(ModuleCode { len, symbols })
        })
    }

    /// Returns functions with their places behind the module's first address, in order.
    pub fn functions(&self) -> impl Iterator<Item = (u64, &str)> {
        texts(&self.symbols)
    }
}

/// Returns whether a module that is loaded on this machine has a build id.
pub fn loaded_module_has(options: &SearchOptions, name: &str, build_id: &[u8]) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let Some(root) = options.root.as_ref().filter(|_| name.chars().all(is_name)) else {
        return false;
    };
    let notes = root.join("sys/module").join(name);
    let notes = notes.join("notes/.note.gnu.build-id");
    let id = contents(&notes, MAX_TEXT).and_then(|notes| noted_build_id(&notes));
    id.is_some_and(|id| same_id(&id, build_id))
}

fn texts(symbols: &FileSymbols) -> impl Iterator<Item = (u64, &str)> {
    let all = symbols.functions();
    all.filter_map(|(at, name)| Some((at, std::str::from_utf8(name).ok()?)))
}

/// Reads a file. Those of `/proc` and `/sys` do not say how long they are.
fn contents(path: &Path, most: u64) -> Option<Vec<u8>> {
    // What is no regular file may wait for ever when it is opened.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    let file = File::open(path).ok()?;
    file.take(most).read_to_end(&mut text).ok()?;
    // One that goes on has been cut in the middle of a line.
    ((text.len() as u64) < most).then_some(text)
}

/// Returns the build id in notes as the kernel shows its own and its modules': 4-byte words in its byte order, each
/// name and description filled up to such a word.
fn noted_build_id(notes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = notes;
    let word = |rest: &mut &[u8]| {
        let (word, behind) = rest.split_first_chunk::<4>()?;
        *rest = behind;
        Some(u32::from_ne_bytes(*word))
    };
    let part = |rest: &mut &[u8], length: u32| {
        let length = usize::try_from(length).ok()?;
        let part = rest.get(..length)?.to_vec();
        let filled = length.checked_next_multiple_of(4)?;
        *rest = rest.get(filled..).unwrap_or_default();
        Some(part)
    };
    loop {
        let (name, description, kind) = (word(&mut rest)?, word(&mut rest)?, word(&mut rest)?);
        let (name, description) = (part(&mut rest, name)?, part(&mut rest, description)?);
        if kind == BUILD_ID_NOTE && name == b"GNU\0" && !description.is_empty() {
            return Some(description);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, description: &[u8]) -> Vec<u8> {
        let lengths = [name.len(), description.len()].map(|length| length as u32);
        let mut out = [lengths[0], lengths[1], kind]
            .map(u32::to_ne_bytes)
            .concat();
        for part in [name, description] {
            out.extend(part);
            out.resize(out.len().next_multiple_of(4), 0);
        }
        out
    }

    #[test]
    fn the_build_id_is_one_of_several_notes() {
        let id = [7; 20];
        let all = [
            note(b"Linux\0", 3, &[1]),
            note(b"GNU\0", 5, &[2; 6]),
            note(b"GNU\0", 3, &id),
        ]
        .concat();
        assert_eq!(noted_build_id(&all).as_deref(), Some(&id[..]));
        for cut in 0..all.len() - 20 {
            assert_eq!(noted_build_id(&all[..cut]), None);
        }
        let huge = [u32::MAX; 3].map(u32::to_ne_bytes).concat();
        assert_eq!(noted_build_id(&huge), None);
    }
}
