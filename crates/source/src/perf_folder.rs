//! Folders that `perf record --threads` and `--kcore` make: `data`, and `data.0`, `data.1` and so on with the events of
//! each reading thread.
//!
//! Source: `tools/perf/util/data.c` (`open_dir`), `tools/perf/util/header.c` (`HEADER_DIR_FORMAT`). The files beside
//! `data` are records and nothing else, each CPU's in the order of their times and without rounds. So one file is made
//! of all: the records of the others behind those of `data`, and behind them its feature sections, moved.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use perfdata::{FILE_HEADER, join_records, records_end};

/// The file that has the header.
pub(crate) const DATA: &str = "data";
/// Feature sections have a few megabytes; what is longer is not moved.
const MAX_FEATURES: u64 = 1 << 30;

/// The files of a folder as the stream of one, and how long that is.
pub(crate) struct FolderStream {
    pub(crate) stream: Box<dyn Read + Send>,
    pub(crate) length: u64,
}

/// One of several files: where it is, and how long it was when it was found.
struct FolderFile {
    path: PathBuf,
    length: u64,
}

/// The contents of several files, each opened when it is its turn: there may be one for each CPU of a large machine.
struct FileChain {
    files: VecDeque<FolderFile>,
    open: Option<io::Take<File>>,
}

impl Read for FileChain {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(open) = &mut self.open {
                match open.read(buffer)? {
                    0 => self.open = None,
                    read => return Ok(read),
                }
            }
            let Some(next) = self.files.pop_front() else {
                return Ok(0);
            };
            self.open = Some(File::open(next.path)?.take(next.length));
        }
    }
}

/// Returns the files `data.N` of a folder, by their numbers. What is no file, such as a link or a pipe, is none of
/// perf's.
fn others(folder: &Path) -> io::Result<VecDeque<FolderFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("data."));
        let number = number.and_then(|number| number.parse::<u32>().ok());
        // Of the entry itself: a link is not followed.
        let about = entry.metadata()?;
        if let Some(number) = number.filter(|_| about.is_file()) {
            let (path, length) = (entry.path(), about.len());
            found.push((number, FolderFile { path, length }));
        }
    }
    found.sort_by_key(|(number, _)| *number);
    Ok(found.into_iter().map(|(_, file)| file).collect())
}

/// Opens the files of a folder as one. `None` where `data` alone is the recording, or is not as perf writes it: then it
/// is read by itself, and says what is wrong.
///
/// # Errors
///
/// A file cannot be read.
pub(crate) fn stream(folder: &Path) -> io::Result<Option<FolderStream>> {
    let others = others(folder)?;
    if others.is_empty() {
        return Ok(None);
    }
    let lengths = others.iter().map(|file| file.length);
    let added = lengths.fold(0, u64::saturating_add);
    let mut data = File::open(folder.join(DATA))?;
    let length = data.metadata()?.len();
    let mut head = vec![0; FILE_HEADER];
    if data.read_exact(&mut head).is_err() {
        return Ok(None);
    }
    let Some(end) = records_end(&head).filter(|end| *end <= length && length - end <= MAX_FEATURES)
    else {
        return Ok(None);
    };
    let mut tail = Vec::new();
    data.seek(SeekFrom::Start(end))?;
    (&mut data).take(MAX_FEATURES).read_to_end(&mut tail)?;
    data.seek(SeekFrom::Start(FILE_HEADER as u64))?;
    if join_records(&mut head, &mut tail, added).is_none() {
        return Ok(None);
    }
    let body = data.take(end - FILE_HEADER as u64);
    let length = end.saturating_add(added).saturating_add(tail.len() as u64);
    let records = body.chain(FileChain {
        files: others,
        open: None,
    });
    Ok(Some(FolderStream {
        stream: Box::new(Cursor::new(head).chain(records).chain(Cursor::new(tail))),
        length,
    }))
}
