//! Which functions a place in a file is in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::debuginfod::{self, MAX_ASKED};
use crate::elf::Elf;
use crate::finding::{DebuginfodAccess, FilePart, SearchOptions, below, hex, living};
use crate::module::ModuleFile;
use crate::perf_map::{PerfMap, is_perf_map};
use crate::unwind::{CodeMapping, UnwindTables, Unwinding};
use crate::why::MissingReason;

/// Bytes of one file. Debug files of browsers are bigger; those of QEMU have some 200 MB.
pub(crate) const MAX_FILE: u64 = 1 << 30;
/// Bytes that are kept of all files together, and files that are.
const MAX_BYTES: usize = 2 << 30;
const MAX_FILES: usize = 256;
/// Mappings of a process that stacks are made with.
const MAX_MAPPINGS: usize = 1 << 12;
/// Files of which it is remembered that there is no use in looking for them again.
const MAX_KNOWN: usize = 1 << 16;

/// A file as the recording knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FileKey {
    path: Box<[u8]>,
    build_id: Option<Box<[u8]>>,
}

#[derive(Debug)]
enum FoundModule {
    Module(Box<ModuleFile>),
    PerfMap(PerfMap),
}

/// What is here of the files of a recording.
#[derive(Debug)]
pub struct Binaries {
    options: SearchOptions,
    found: FxHashMap<Arc<FileKey>, (FoundModule, u64)>,
    none: FxHashMap<Arc<FileKey>, MissingReason>,
    /// Tables for unwinding; nothing of files that have none.
    tables: FxHashMap<Arc<FileKey>, Option<Arc<UnwindTables>>>,
    /// The file that was asked for last.
    last: Option<Arc<FileKey>>,
    turn: u64,
    asked: usize,
}

impl Binaries {
    /// Returns one that has opened nothing.
    pub fn new(options: SearchOptions) -> Binaries {
        Binaries {
            options,
            found: FxHashMap::default(),
            none: FxHashMap::default(),
            tables: FxHashMap::default(),
            last: None,
            turn: 0,
            asked: 0,
        }
    }

    /// Returns the names of the functions at a place in a file, innermost first: those that were inlined there, then
    /// the function itself. `path` is the file's as the recording has it; of `/tmp/perf-PID.map` the place is an
    /// address. Ask for places of one file together: few are kept open.
    ///
    /// # Errors
    ///
    /// Says why there is none.
    pub fn names(
        &mut self,
        path: &[u8],
        build_id: Option<&[u8]>,
        offset: u64,
    ) -> Result<Vec<String>, MissingReason> {
        let key = self.key(path, build_id);
        if let Some(why) = self.none.get(&key) {
            return Err(*why);
        }
        if !self.found.contains_key(&key) {
            match self.open(&key) {
                Ok(found) => self.keep(Arc::clone(&key), found),
                Err(why) => {
                    if self.none.len() < MAX_KNOWN {
                        self.none.insert(key, why);
                    }
                    return Err(why);
                }
            }
        }
        self.turn += 1;
        let (found, used) = self.found.get_mut(&key).ok_or(MissingReason::NoFile)?;
        *used = self.turn;
        match found {
            FoundModule::Module(module) => {
                let mut names = Vec::new();
                module.names(offset, &mut names)?;
                Ok(names)
            }
            FoundModule::PerfMap(map) => {
                let name = map.find(offset).ok_or(MissingReason::NoSymbol)?;
                Ok(vec![String::from_utf8_lossy(name).into_owned()])
            }
        }
    }

    /// Returns what makes stacks of a process that has this code mapped. `aarch64` says whether it is of that machine,
    /// not of x86-64. Files are found as for names.
    pub fn unwinding(&mut self, aarch64: bool, mappings: &[CodeMapping<'_>]) -> Unwinding {
        let mappings = mappings.iter().take(MAX_MAPPINGS).map(|mapping| {
            let key = self.key(mapping.path, mapping.build_id);
            let bytes =
                |tables: &Option<Arc<UnwindTables>>| tables.as_ref().map_or(0, |t| t.bytes());
            if self.tables.len() >= MAX_FILES
                || self.tables.values().map(bytes).sum::<usize>() > MAX_BYTES
            {
                self.tables.clear();
            }
            let tables = match self.tables.get(&key) {
                Some(tables) => tables.clone(),
                None => {
                    let files = self.files(&key);
                    let tables = files.and_then(|(binary, debug)| UnwindTables::new(binary, debug));
                    let tables = tables.ok().map(Arc::new);
                    self.tables.insert(key, tables.clone());
                    tables
                }
            };
            (*mapping, tables)
        });
        Unwinding::new(aarch64, mappings)
    }

    fn key(&mut self, path: &[u8], build_id: Option<&[u8]>) -> Arc<FileKey> {
        // An id of zeros is what perf writes where it found none.
        let build_id = build_id.filter(|id| id.iter().any(|byte| *byte != 0));
        if let Some(last) = &self.last
            && *last.path == *path
            && last.build_id.as_deref() == build_id
        {
            return Arc::clone(last);
        }
        let key = Arc::new(FileKey {
            path: path.into(),
            build_id: build_id.map(Into::into),
        });
        self.last = Some(Arc::clone(&key));
        key
    }

    /// Keeps a file, and gives up those that were not asked for the longest time if there are too many.
    fn keep(&mut self, key: Arc<FileKey>, found: FoundModule) {
        self.found.insert(key, (found, self.turn + 1));
        let bytes = |(found, _): &(FoundModule, u64)| match found {
            FoundModule::Module(module) => module.bytes(),
            FoundModule::PerfMap(map) => map.bytes(),
        };
        while self.found.len() > 1 {
            let sum: usize = self.found.values().map(bytes).sum();
            if self.found.len() <= MAX_FILES && sum <= MAX_BYTES {
                break;
            }
            let oldest = self.found.iter().min_by_key(|(_, (_, used))| *used);
            let Some(oldest) = oldest.map(|(key, _)| Arc::clone(key)) else {
                break;
            };
            self.found.remove(&oldest);
        }
    }

    fn open(&mut self, key: &FileKey) -> Result<FoundModule, MissingReason> {
        if is_perf_map(&key.path) {
            let folder = self
                .options
                .perf_maps
                .as_ref()
                .ok_or(MissingReason::NoFile)?;
            let name = key.path.rsplit(|byte| *byte == b'/').next();
            let path = below(folder, name.unwrap_or_default()).ok_or(MissingReason::NoFile)?;
            return PerfMap::open(&path, MAX_FILE).map(FoundModule::PerfMap);
        }
        let (binary, debug) = self.files(key)?;
        let module = ModuleFile::new(binary, debug, self.options.inlines)?;
        Ok(FoundModule::Module(Box::new(module)))
    }

    /// Returns the file and its debug file, or one of them.
    fn files(&mut self, key: &FileKey) -> Result<(Option<Elf>, Option<Elf>), MissingReason> {
        let Some(id) = key.build_id.as_deref() else {
            let (path, binary) = self.vouched(&key.path)?;
            let debug = self.linked(&path, &binary, key);
            return Ok((Some(binary), debug));
        };
        let mut why = MissingReason::NoFile;
        let mut first = |options: &SearchOptions, kind| {
            let places = options.places(kind, &key.path, id);
            places
                .into_iter()
                .find_map(|place| match open_as(&place, id) {
                    Ok(elf) => Some((place, elf)),
                    Err(other) => {
                        // That a file is another version says more than that there is none in some other folder.
                        why = if other == MissingReason::NoFile {
                            why
                        } else {
                            other
                        };
                        None
                    }
                })
        };
        let mut binary = first(&self.options, FilePart::Binary);
        let mut debug = None;
        let missing = |elf: &Elf, options: &SearchOptions| {
            !elf.has(b".symtab") || options.inlines && !elf.has(b".debug_info")
        };
        if binary
            .as_ref()
            .is_none_or(|(_, elf)| missing(elf, &self.options))
        {
            debug = first(&self.options, FilePart::Debug).map(|(_, elf)| elf);
            if let Some((path, elf)) = binary.as_ref().filter(|_| debug.is_none()) {
                debug = self.linked(path, elf, key);
            }
            if debug.is_none() {
                debug = self.ask("debuginfo", id).map(|(_, elf)| elf);
            }
        }
        if binary.is_none() && !debug.as_ref().is_some_and(Elf::has_layout) {
            binary = self.ask("executable", id);
        }
        match (binary, debug) {
            (None, None) => Err(why),
            (binary, debug) => Ok((binary.map(|(_, elf)| elf), debug)),
        }
    }

    /// Opens a file of which the recording has no build id. Only `symfs` has such.
    fn vouched(&self, path: &[u8]) -> Result<(PathBuf, Elf), MissingReason> {
        let symfs = self
            .options
            .symfs
            .as_ref()
            .ok_or(MissingReason::NoBuildId)?;
        let path = living(path);
        let is_path = path.starts_with(b"/") && !path.starts_with(b"//");
        let place = below(symfs, path)
            .filter(|_| is_path)
            .ok_or(MissingReason::NoBuildId)?;
        let elf = Elf::open(&place, MAX_FILE)?;
        Ok((place, elf))
    }

    /// Opens the debug file that a file names. The name is all that binds them, so the checksum has to agree, and the
    /// build id where both have one.
    fn linked(&self, path: &Path, binary: &Elf, key: &FileKey) -> Option<Elf> {
        let (link, crc) = binary.debug_link.as_ref()?;
        let places = self.options.linked(path, &key.path, link);
        places.into_iter().find_map(|place| {
            let mut elf = Elf::open(&place, MAX_FILE).ok()?;
            let other = |id: &Vec<u8>| binary.build_id.as_ref().is_some_and(|own| own != id);
            if elf.build_id.as_ref().is_some_and(other) || elf.source.crc32() != Ok(*crc) {
                return None;
            }
            Some(elf)
        })
    }

    /// Asks debuginfod for a file.
    fn ask(&mut self, kind: &str, id: &[u8]) -> Option<(PathBuf, Elf)> {
        let access = self.options.debuginfod.as_ref()?;
        if self.asked == MAX_ASKED {
            return None;
        }
        self.asked += 1;
        let place = match access {
            DebuginfodAccess::Program(program, limit) => {
                debuginfod::find(program, kind, &hex(id), *limit)
            }
            DebuginfodAccess::Process(process) => process.find(kind, &hex(id)),
        }?;
        let elf = open_as(&place, id).ok()?;
        Some((place, elf))
    }
}

/// Opens a file if it has a build id.
pub(crate) fn open_as(path: &Path, build_id: &[u8]) -> Result<Elf, MissingReason> {
    let elf = Elf::open(path, MAX_FILE)?;
    let same = elf
        .build_id
        .as_deref()
        .is_some_and(|own| same_id(own, build_id));
    if same {
        Ok(elf)
    } else {
        Err(MissingReason::OtherBuildId)
    }
}

/// Returns whether a file's build id is the recording's. Recorders before kernel 5.11 wrote no length: short ids ended
/// in zeros.
pub(crate) fn same_id(file: &[u8], recorded: &[u8]) -> bool {
    let rest = recorded.strip_prefix(file);
    rest.is_some_and(|rest| rest.is_empty() || recorded.len() == 20 && rest.iter().all(|b| *b == 0))
}
