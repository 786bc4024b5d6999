//! The kernel's list of events: their numbers and formats.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::RecordError;

/// Bytes of a file of tracefs that are read at most. A format has a few thousand.
const MAX_FILE: usize = 1 << 20;
/// The same of the list of functions: a kernel with all its modules has some 100000.
const MAX_LIST: usize = 64 << 20;
/// Bytes that are asked for at first: more than any of them has.
const FIRST_READ: usize = 64 << 10;

/// Where the kernel lists its events.
#[derive(Debug, Clone)]
pub struct Tracefs {
    root: PathBuf,
}

/// A tracepoint of the running kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracepoint {
    /// Its subsystem, as `kvm`.
    pub system: String,
    /// Its name, as `kvm_exit`.
    pub name: String,
    /// Its number.
    pub id: u32,
    /// Its format, as the kernel writes it.
    pub format: Vec<u8>,
}

impl Tracepoint {
    /// Returns its whole name, as `kvm:kvm_exit`.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.system, self.name)
    }

    /// Returns whether it prints an address as the function that lies there: `%ps` and its like
    /// (Documentation/core-api/printk-formats.rst), as `workqueue_execute_start` has it.
    pub fn prints_functions(&self) -> bool {
        const NAMES: [&[u8]; 5] = [b"%ps", b"%pS", b"%pf", b"%pF", b"%pB"];
        let mut pieces = self.format.windows(3);
        pieces.any(|piece| NAMES.contains(&piece))
    }

    /// Returns whether its records have a field of this name.
    pub fn has_field(&self, name: &str) -> bool {
        self.field_names().iter().any(|field| field == name)
    }

    /// Returns the names of its records' fields, those that all events have first.
    pub fn field_names(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.format);
        let fields = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("field:"));
        let names = fields.filter_map(|field| {
            let declared = field.split(';').next()?;
            let last = declared.rsplit([' ', '*']).next()?;
            last.split('[').next().map(str::to_owned)
        });
        names.collect()
    }
}

impl Tracefs {
    /// Returns the one that is mounted, at its own place or at its old one.
    ///
    /// # Errors
    ///
    /// [`RecordError::NoTracefs`], and [`RecordError::Closed`] where the process may not look into it.
    pub fn find() -> Result<Tracefs, RecordError> {
        Tracefs::among(&["/sys/kernel/tracing", "/sys/kernel/debug/tracing"])
    }

    /// Returns the first of these folders that has events.
    fn among(places: &[&str]) -> Result<Tracefs, RecordError> {
        for root in places.iter().map(PathBuf::from) {
            let events = root.join("events");
            match fs::metadata(&events) {
                Ok(_) => return Ok(Tracefs { root }),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(RecordError::Closed { path: root });
                }
                Err(_) => {}
            }
        }
        Err(RecordError::NoTracefs)
    }

    /// Returns one whose files stand below a folder.
    pub fn at(root: impl Into<PathBuf>) -> Tracefs {
        Tracefs { root: root.into() }
    }

    /// Returns the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a tracepoint; `None` where this kernel has none of that name.
    ///
    /// # Errors
    ///
    /// [`RecordError::Read`] where it is there and cannot be read.
    pub fn event(&self, system: &str, name: &str) -> Result<Option<Tracepoint>, RecordError> {
        let folder = self.root.join("events").join(system).join(name);
        let id = match self.read(&folder.join("id")) {
            Err(RecordError::Read { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            other => other?,
        };
        let id = String::from_utf8_lossy(&id).trim().parse();
        let Ok(id) = id else {
            return Ok(None);
        };
        let format = self.read(&folder.join("format"))?;
        Ok(Some(Tracepoint {
            system: system.to_owned(),
            name: name.to_owned(),
            id,
            format,
        }))
    }

    /// Returns the subsystems, sorted.
    pub fn systems(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.join("events"));
        let entries = entries.into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.path().is_dir());
        let mut names: Vec<String> = folders
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }

    /// Returns the names of a subsystem's events, sorted; none where it has none.
    pub fn events_of(&self, system: &str) -> Vec<String> {
        let folder = self.root.join("events").join(system);
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.path().join("id").exists());
        let mut names: Vec<String> = folders
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }

    /// Reads a file of tracefs, a mebibyte of it at most.
    ///
    /// # Errors
    ///
    /// [`RecordError::Read`].
    pub fn read(&self, path: &Path) -> Result<Vec<u8>, RecordError> {
        self.read_most(path, MAX_FILE)
    }

    /// Reads the list of functions that can be traced: some megabytes, a line each, the module of one behind it.
    ///
    /// # Errors
    ///
    /// [`RecordError::Read`].
    pub fn functions(&self) -> Result<Vec<u8>, RecordError> {
        self.read_most(Path::new("available_filter_functions"), MAX_LIST)
    }

    fn read_most(&self, path: &Path, most: usize) -> Result<Vec<u8>, RecordError> {
        let path = self.root.join(path);
        whole(&path, most).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => RecordError::Closed {
                path: self.root.clone(),
            },
            _ => RecordError::Read { path, error },
        })
    }
}

/// Reads a file by as few reads as there can be. `header_page` and `header_event` answer one read and then say that
/// they are at their end, however little that one asked for (`show_header` in `kernel/trace/trace_events.c`), and
/// `fs::read` begins with 32 bytes where a file has no size.
fn whole(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; FIRST_READ];
    let mut length = 0;
    loop {
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if length == bytes.len() {
            if length == most {
                break;
            }
            bytes.resize((2 * length).min(most), 0);
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}
