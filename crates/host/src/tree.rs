//! Files below a folder, read with limits, and the list of those that cannot be.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use facts::Unreadable;

/// Files are not read beyond this many bytes.
pub(crate) const MAX_FILE: u64 = 1 << 20;
/// Longest text that is one value; the kernel's have a page at most.
const MAX_VALUE: usize = 4096;
/// Most names of a folder: each process has one in `/proc`.
const MAX_NAMES: usize = 1 << 18;
/// Most files of a folder that are listed as unreadable for the same reason.
const MAX_ALIKE: usize = 3;
/// Most kinds of files that are listed as unreadable.
const MAX_KINDS: usize = 256;

/// The tree of a host's files.
pub(crate) struct HostTree {
    root: PathBuf,
    /// The folder's real path, unless it is the root of this machine.
    bounds: Option<PathBuf>,
    /// What cannot be read, by its path with stars for numbers and by the reason: the first path, and how many.
    unreadable: BTreeMap<(String, String), (String, u64)>,
    more: u64,
}

/// Why a file is not there or cannot be read.
enum Failure {
    /// It is not there.
    Missing,
    Why(String),
}

impl HostTree {
    /// Returns the tree below a folder.
    pub(crate) fn new(root: &Path) -> HostTree {
        let real = fs::canonicalize(root).ok();
        HostTree {
            root: root.to_path_buf(),
            bounds: real.filter(|real| real != Path::new("/")),
            unreadable: BTreeMap::new(),
            more: 0,
        }
    }

    /// Returns what could not be read. Of files whose paths differ in numbers alone, and of many in one folder that
    /// cannot be read for the same reason, one is listed, with stars.
    pub(crate) fn finish(self) -> Vec<Unreadable> {
        let mut of_folder: BTreeMap<(String, String), Vec<(String, u64)>> = BTreeMap::new();
        for ((stars, why), (path, count)) in self.unreadable {
            let path = if count == 1 { path } else { stars };
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let list = of_folder.entry((folder.to_owned(), why)).or_default();
            list.push((path, count));
        }
        let mut all = Vec::new();
        for ((folder, why), list) in of_folder {
            let list = if list.len() > MAX_ALIKE {
                let count = list.iter().map(|(_, count)| count).sum();
                vec![(format!("{folder}/*"), count)]
            } else {
                list
            };
            all.extend(list.into_iter().map(|(path, count)| Unreadable {
                path,
                why: match count {
                    1 => why.clone(),
                    _ => format!("{why} ({count} files)"),
                },
            }));
        }
        all.sort();
        if self.more > 0 {
            all.push(Unreadable {
                path: "/".to_owned(),
                why: format!("{} more files that are not listed", self.more),
            });
        }
        all
    }

    /// Lists something as unreadable.
    pub(crate) fn refuse(&mut self, path: &str, why: impl Into<String>) {
        let key = (stars(path), why.into());
        if let Some((_, count)) = self.unreadable.get_mut(&key) {
            *count += 1;
        } else if self.unreadable.len() < MAX_KINDS {
            self.unreadable.insert(key, (path.to_owned(), 1));
        } else {
            self.more += 1;
        }
    }

    /// Returns whether the tree is the running machine's own.
    pub(crate) fn is_running(&self) -> bool {
        self.bounds.is_none() && self.root.is_dir()
    }

    /// Returns a file's text, if it is there.
    pub(crate) fn text(&mut self, path: &str) -> Option<String> {
        self.text_within(path, MAX_FILE)
    }

    /// Returns a file's text up to a length, if it is there.
    pub(crate) fn text_within(&mut self, path: &str, max: u64) -> Option<String> {
        match self.read(path, max) {
            Ok((bytes, whole)) => {
                if !whole {
                    let why = format!("longer than {} KiB; the rest is left out", max >> 10);
                    self.refuse(path, why);
                }
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            Err(Failure::Missing) => None,
            Err(Failure::Why(why)) => {
                self.refuse(path, why);
                None
            }
        }
    }

    /// Returns the begin of a file, of which more is not needed.
    pub(crate) fn head(&mut self, path: &str, max: u64) -> Option<String> {
        match self.read(path, max) {
            Ok((bytes, _)) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(Failure::Missing) => None,
            Err(Failure::Why(why)) => {
                self.refuse(path, why);
                None
            }
        }
    }

    /// Returns the bytes of a file, if it is there.
    pub(crate) fn bytes(&mut self, path: &str) -> Option<Vec<u8>> {
        match self.read(path, MAX_FILE) {
            Ok((bytes, true)) => Some(bytes),
            Ok((_, false)) => {
                self.refuse(path, format!("longer than {} KiB", MAX_FILE >> 10));
                None
            }
            Err(Failure::Missing) => None,
            Err(Failure::Why(why)) => {
                self.refuse(path, why);
                None
            }
        }
    }

    /// Returns the one line that a file holds, if it is there.
    pub(crate) fn line(&mut self, path: &str) -> Option<String> {
        let text = self.head(path, MAX_VALUE as u64 + 1)?;
        let text = text.trim();
        if text.len() > MAX_VALUE || text.contains(['\n', '\0']) {
            self.refuse(path, "expected one line");
            return None;
        }
        Some(text.to_owned())
    }

    /// Returns the one line that a file holds; if it is not there, that is listed.
    pub(crate) fn expected(&mut self, path: &str) -> Option<String> {
        self.expect(path);
        self.line(path)
    }

    /// Lists a file or folder if it is not there.
    pub(crate) fn expect(&mut self, path: &str) {
        if matches!(self.look(path), Err(Failure::Missing)) {
            self.refuse(path, "no such file");
        }
    }

    /// Returns what the one line of a file says, if it is there.
    pub(crate) fn value<T: FromStr>(&mut self, path: &str, expected: &str) -> Option<T> {
        let line = self.line(path)?;
        let value = line.parse().ok();
        if value.is_none() {
            self.refuse(path, format!("expected {expected}"));
        }
        value
    }

    /// Returns a number, if the file is there.
    pub(crate) fn number<T: FromStr>(&mut self, path: &str) -> Option<T> {
        self.value(path, "a number")
    }

    /// Returns a set of CPUs, if the file is there. Some kernels print `(null)` for an empty one.
    pub(crate) fn cpus(&mut self, path: &str) -> Option<cpuset::CpuSet> {
        let line = self.line(path)?;
        if line == "(null)" {
            return Some(cpuset::CpuSet::new());
        }
        let set = cpu_list(&line);
        if set.is_none() {
            self.refuse(path, "expected a list of CPUs");
        }
        set
    }

    /// Returns the words of a file, if it is there.
    pub(crate) fn words(&mut self, path: &str) -> Vec<String> {
        let line = self.line(path).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect()
    }

    /// Returns the names of what is in a folder, in order.
    pub(crate) fn names(&mut self, path: &str) -> Vec<String> {
        let entries = self
            .look(path)
            .and_then(|(full, _)| fs::read_dir(full).map_err(|error| failure(&error)));
        let entries = match entries {
            Ok(entries) => entries,
            Err(Failure::Missing) => return Vec::new(),
            Err(Failure::Why(why)) => {
                self.refuse(path, why);
                return Vec::new();
            }
        };
        let mut names: Vec<String> = entries
            .take(MAX_NAMES)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// Returns the numbers that stand behind a prefix in the names of a folder, in order.
    pub(crate) fn numbered<T: FromStr + Ord>(&mut self, path: &str, prefix: &str) -> Vec<T> {
        let names = self.names(path);
        let digits = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
        let mut numbers: Vec<T> = names
            .iter()
            .filter_map(|name| {
                name.strip_prefix(prefix)
                    .filter(|n| digits(n))?
                    .parse()
                    .ok()
            })
            .collect();
        numbers.sort();
        numbers
    }

    /// Returns what a link says, without following it; its folder is in the tree.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        let (folder, name) = path.rsplit_once('/')?;
        let (folder, _) = self.look(folder).ok()?;
        let target = fs::read_link(folder.join(name)).ok()?;
        target.into_os_string().into_string().ok()
    }

    /// Opens the program that a process runs, of which `link` is what its `exe` says. On the running machine the kernel
    /// opens it; in a copied tree it is the file of that path.
    pub(crate) fn program(&self, pid: i32, link: &str) -> Option<File> {
        let path = match self.is_running() {
            true => format!("/proc/{pid}/exe"),
            false => link.to_owned(),
        };
        let (full, data) = self.look(&path).ok()?;
        // Opening a pipe would wait for whoever writes to it.
        if !data.is_file() {
            return None;
        }
        File::open(full).ok()
    }

    /// Returns whether a path is a folder.
    pub(crate) fn is_folder(&self, path: &str) -> bool {
        self.look(path).is_ok_and(|(_, data)| data.is_dir())
    }

    /// Returns whether a path is a file that somebody may read; some of the kernel's can be written only.
    pub(crate) fn is_readable(&self, path: &str) -> bool {
        use std::os::unix::fs::PermissionsExt;
        let readable = |data: &fs::Metadata| data.permissions().mode() & 0o444 != 0;
        self.look(path)
            .is_ok_and(|(_, data)| data.is_file() && readable(&data))
    }

    /// Returns where a path is, and what.
    fn look(&self, path: &str) -> Result<(PathBuf, fs::Metadata), Failure> {
        let full = self.root.join(path.trim_start_matches('/'));
        if let Some(bounds) = &self.bounds {
            let real = fs::canonicalize(&full).map_err(|error| failure(&error))?;
            if !real.starts_with(bounds) {
                return Err(Failure::Why("a link that leads out of the tree".to_owned()));
            }
        }
        let data = fs::metadata(&full).map_err(|error| failure(&error))?;
        Ok((full, data))
    }

    /// Reads a file, and says whether that is all of it.
    fn read(&self, path: &str, max: u64) -> Result<(Vec<u8>, bool), Failure> {
        let (full, data) = self.look(path)?;
        // Opening a pipe would wait for whoever writes to it.
        if !data.is_file() {
            let what = if data.is_dir() {
                "a directory"
            } else {
                "no file"
            };
            return Err(Failure::Why(format!("is {what}")));
        }
        let mut bytes = Vec::new();
        let file = File::open(full).map_err(|error| failure(&error))?;
        let read = file.take(max + 1).read_to_end(&mut bytes);
        read.map_err(|error| failure(&error))?;
        let whole = bytes.len() as u64 <= max;
        bytes.truncate(usize::try_from(max).unwrap_or(usize::MAX));
        Ok((bytes, whole))
    }
}

/// Returns the CPUs of a list as the kernel prints it. It prints no strides: a few letters of them can stand for
/// thousands of ranges.
pub(crate) fn cpu_list(text: &str) -> Option<cpuset::CpuSet> {
    if text.len() > MAX_VALUE || text.contains(':') {
        return None;
    }
    text.parse().ok()
}

/// Returns a path with a star for each number in it.
fn stars(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('*') {
            out.push('*');
        }
    }
    out
}

/// Returns why something cannot be read. A process that has ended answers that it is none (`ESRCH`).
fn failure(error: &io::Error) -> Failure {
    const ESRCH: i32 = 3;
    match error.kind() {
        io::ErrorKind::NotFound => Failure::Missing,
        _ if error.raw_os_error() == Some(ESRCH) => Failure::Missing,
        io::ErrorKind::PermissionDenied => Failure::Why("permission denied".to_owned()),
        io::ErrorKind::NotADirectory => Failure::Why("is no directory".to_owned()),
        _ => {
            let text = error.to_string().to_lowercase();
            let text = text.split(" (os error").next().unwrap_or_default();
            Failure::Why(text.to_owned())
        }
    }
}
