//! Files that are read beside recordings.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::layers::{self, MAX_LAYERS};

/// Reads a file that is given beside recordings, or standard input for `-`: no more than `limit` bytes of it. It may be
/// wrapped in gzip or zstd, as recordings may.
///
/// # Errors
///
/// Fails when the file cannot be read or unpacked.
pub fn read_beside(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let stream: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path)?)
    };
    let Some(unpacked) = layers::unpack(stream) else {
        let why = format!("is packed more than {MAX_LAYERS} times");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    };
    let mut bytes = Vec::new();
    unpacked.stream.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns whether a path may be a text of no more than `limit` bytes: a file that is short, packed or not, or what is
/// none and says its length only when it is read (a pipe, `-`).
pub fn may_be_short(path: &Path, limit: u64) -> bool {
    if path.as_os_str() == "-" {
        return true;
    }
    match path.metadata() {
        Ok(meta) if meta.is_file() => meta.len() <= limit,
        Ok(meta) => !meta.is_dir(),
        Err(_) => false,
    }
}

/// Guests of a folder that are looked for.
const MAX_GUESTS: usize = 64;

/// Returns the recordings of guests in a folder that `trapline record` made, in the order of their names; nothing where
/// a path is no folder. Links and what is no file are left out.
pub fn guests_in_folder(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = folder.read_dir() else {
        return Vec::new();
    };
    let files = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let called = name.starts_with("guest-") && name.ends_with(".perf.data");
        called && entry.file_type().is_ok_and(|kind| kind.is_file())
    });
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    paths.sort();
    paths.truncate(MAX_GUESTS);
    paths
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn guests_of_a_folder_are_files_that_are_called_so() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "perf.data",
            "guest-b.perf.data",
            "guest-a.perf.data",
            "guest-a.log",
        ] {
            std::fs::write(folder.path().join(name), b"x").unwrap();
        }
        let link = folder.path().join("guest-link.perf.data");
        std::os::unix::fs::symlink("/dev/zero", link).unwrap();
        std::fs::create_dir(folder.path().join("guest-dir.perf.data")).unwrap();
        let expected = ["guest-a.perf.data", "guest-b.perf.data"];
        let expected = expected.map(|name| folder.path().join(name));
        assert_eq!(guests_in_folder(folder.path()), expected);
        assert!(guests_in_folder(&folder.path().join("perf.data")).is_empty());
    }

    #[test]
    fn files_are_read_up_to_a_limit_and_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ps.txt");
        std::fs::write(&path, b"PID TID COMMAND").unwrap();
        assert_eq!(read_beside(&path, 100).unwrap(), b"PID TID COMMAND");
        assert_eq!(read_beside(&path, 3).unwrap(), b"PID");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"PID TID").unwrap();
        std::fs::write(&path, gzip.finish().unwrap()).unwrap();
        assert_eq!(read_beside(&path, 100).unwrap(), b"PID TID");
        let error = read_beside(folder.path(), 100).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }
}
