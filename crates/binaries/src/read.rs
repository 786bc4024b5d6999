//! Files, read within limits.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use crate::why::MissingReason;

/// Bytes of headers, tables of sections and notes that are read of one file: what a linker writes of these is a few
/// thousand.
const MAX_HEADERS: u64 = 16 << 20;

/// A file, and how much of it may still be read.
#[derive(Debug)]
pub(crate) struct FileSource {
    file: File,
    length: u64,
    left: u64,
}

impl FileSource {
    /// Opens a regular file that is no longer than `most` bytes.
    pub(crate) fn open(path: &Path, most: u64) -> Result<FileSource, MissingReason> {
        // What is no regular file may wait for ever when it is opened.
        let is_file = |metadata: io::Result<Metadata>| match metadata {
            Ok(metadata) if metadata.is_file() => Ok(metadata),
            _ => Err(MissingReason::NoFile),
        };
        let before = is_file(std::fs::metadata(path))?;
        let file = File::open(path).map_err(|_| MissingReason::NoFile)?;
        let metadata = is_file(file.metadata())?;
        if (before.dev(), before.ino()) != (metadata.dev(), metadata.ino()) {
            return Err(MissingReason::NoFile);
        }
        let length = metadata.len();
        if length > most {
            return Err(MissingReason::TooBig);
        }
        Ok(FileSource {
            file,
            length,
            left: most,
        })
    }

    /// Returns the file's length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Reads a part of the file.
    pub(crate) fn bytes(&mut self, offset: u64, size: u64) -> Result<Vec<u8>, MissingReason> {
        let end = offset.checked_add(size).ok_or(MissingReason::Damaged)?;
        if end > self.length {
            return Err(MissingReason::Damaged);
        }
        self.left = self.left.checked_sub(size).ok_or(MissingReason::TooBig)?;
        let size = usize::try_from(size).map_err(|_| MissingReason::TooBig)?;
        let mut bytes = vec![0; size];
        let read = self.file.read_exact_at(&mut bytes, offset);
        read.map_err(|_| MissingReason::Damaged)?;
        Ok(bytes)
    }

    /// Reads a part of the file, to be shared.
    pub(crate) fn shared(&mut self, offset: u64, size: u64) -> Result<Arc<[u8]>, MissingReason> {
        Ok(self.bytes(offset, size)?.into())
    }

    /// Returns what reads the file's headers, and no more than headers are.
    pub(crate) fn headers(&self) -> Result<Headers, MissingReason> {
        Ok(Headers {
            file: self.file.try_clone().map_err(|_| MissingReason::NoFile)?,
            at: 0,
            length: self.length,
            left: MAX_HEADERS,
        })
    }

    /// Returns the checksum that `.gnu_debuglink` has of a debug file.
    pub(crate) fn crc32(&mut self) -> Result<u32, MissingReason> {
        let mut hasher = crc32fast::Hasher::new();
        let mut at = 0;
        let mut block = vec![0; 1 << 16];
        while at < self.length {
            let read = self.file.read_at(&mut block, at);
            let read = read.map_err(|_| MissingReason::Damaged)?;
            if read == 0 {
                return Err(MissingReason::Damaged);
            }
            hasher.update(&block[..read]);
            at += read as u64;
        }
        Ok(hasher.finalize())
    }
}

/// The headers of a file, as `object` reads them. It asks for as much as they claim to have.
#[derive(Debug)]
pub(crate) struct Headers {
    file: File,
    at: u64,
    length: u64,
    left: u64,
}

impl Read for Headers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(left) = self.left.checked_sub(buffer.len() as u64) else {
            self.left = 0;
            return Err(io::ErrorKind::FileTooLarge.into());
        };
        self.left = left;
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Headers {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        // `object` makes room for a part before it reads it: once too much was asked for, nothing more is read.
        if self.left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::End(by) => self.length.saturating_add_signed(by),
            SeekFrom::Current(by) => self.at.saturating_add_signed(by),
        };
        Ok(self.at)
    }
}
