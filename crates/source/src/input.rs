//! The bytes of a recording: mapped, or unpacked into memory or an unlinked temporary file.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::ops::Range;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::OpenError;
use crate::error::Temporary;
use crate::map::FileMap;

/// Unpacked inputs up to this size stay in memory; larger ones go to a temporary file, so that memory does
/// not grow with the recording.
const IN_MEMORY: usize = 16 << 20;
/// Unpacked inputs end here, so that a small file cannot fill the disk.
const MAX_UNPACKED: u64 = 256 << 30;
/// Bytes of the longest header of a zstd frame, its magic number included (RFC 8878, 3.1.1.1).
const ZSTD_HEADER: usize = 18;
/// Wrappings inside each other are followed this deep.
const MAX_NESTING: usize = 3;

/// A recording's bytes, and where they came from.
#[derive(Debug)]
pub struct Recording {
    name: String,
    bytes: Bytes,
    warnings: Vec<String>,
}

#[derive(Debug)]
enum Bytes {
    Mapped(FileMap),
    Memory(Vec<u8>),
}

impl Recording {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read or holds nothing; what it holds is decided by
    /// [`Recording::reader`].
    pub fn open(path: &Path) -> Result<Recording, OpenError> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin {
            "standard input".to_owned()
        } else {
            path.display().to_string()
        };
        let fail = |error| OpenError::from_io(&name, error);
        let mut warnings = Vec::new();
        let bytes = if is_stdin {
            spool(&mut io::stdin().lock(), &mut warnings).map_err(fail)?
        } else {
            let mut file = File::open(path).map_err(fail)?;
            let meta = file.metadata().map_err(fail)?;
            if meta.is_dir() {
                return Err(OpenError::Directory(name));
            }
            if meta.is_file() && meta.len() > 0 {
                Bytes::Mapped(FileMap::new(&file).map_err(fail)?)
            } else {
                // Pipes, and the files of /proc and tracefs, which have no size.
                spool(&mut file, &mut warnings).map_err(fail)?
            }
        };
        Recording::unwrapped(name, bytes, warnings)
    }

    /// Takes a recording that lies in memory, for tests and embedding. It may be wrapped as files may.
    ///
    /// # Errors
    ///
    /// As [`Recording::open`].
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Recording, OpenError> {
        Recording::unwrapped(name.to_owned(), Bytes::Memory(bytes), Vec::new())
    }

    /// Unpacks the bytes as often as they are wrapped.
    fn unwrapped(
        name: String,
        mut bytes: Bytes,
        mut warnings: Vec<String>,
    ) -> Result<Recording, OpenError> {
        for _ in 0..MAX_NESTING {
            let unpacked = unwrap(bytes.get(), &mut warnings);
            let Some(unpacked) = unpacked.map_err(|e| OpenError::from_io(&name, e))? else {
                break;
            };
            bytes = unpacked;
        }
        if bytes.get().is_empty() {
            return Err(OpenError::Empty(name));
        }
        Ok(Recording {
            name,
            bytes,
            warnings,
        })
    }

    /// Returns the file's name, as errors print it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the bytes, unpacked.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get()
    }

    /// Returns what was odd in unpacking.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Lets pages go that were read.
    pub(crate) fn release(&self, range: Range<usize>) {
        if let Bytes::Mapped(map) = &self.bytes {
            map.release(range);
        }
    }
}

impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map.bytes(),
            Bytes::Memory(bytes) => bytes,
        }
    }
}

/// Unpacks gzip or zstd. `None` when the bytes are neither.
fn unwrap(bytes: &[u8], warnings: &mut Vec<String>) -> io::Result<Option<Bytes>> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return spool(&mut MultiGzDecoder::new(bytes), warnings).map(Some);
    }
    if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return spool(
            &mut ZstdFrames {
                rest: bytes,
                frame: None,
            },
            warnings,
        )
        .map(Some);
    }
    Ok(None)
}

/// Reads a stream to its end. A stream that breaks off gives what came before, with a warning.
fn spool(stream: &mut dyn Read, warnings: &mut Vec<String>) -> io::Result<Bytes> {
    let mut memory = Vec::new();
    let mut file: Option<File> = None;
    let mut total = 0u64;
    let mut buffer = vec![0u8; 256 << 10];
    loop {
        let count = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if total == 0 => return Err(error),
            Err(error) => {
                warnings.push(format!(
                    "The input breaks off after {total} unpacked bytes ({error}); what came before is \
                     used."
                ));
                break;
            }
        };
        total += count as u64;
        if total > MAX_UNPACKED {
            warnings.push(format!(
                "The input is cut at {MAX_UNPACKED} unpacked bytes."
            ));
            break;
        }
        let part = &buffer[..count];
        match &mut file {
            Some(file) => file.write_all(part).map_err(temporary)?,
            None if memory.len() + count <= IN_MEMORY => memory.extend_from_slice(part),
            None => {
                let mut spooled = tempfile::tempfile().map_err(temporary)?;
                spooled.write_all(&memory).map_err(temporary)?;
                spooled.write_all(part).map_err(temporary)?;
                memory = Vec::new();
                file = Some(spooled);
            }
        }
    }
    match file {
        Some(mut file) => {
            file.flush().map_err(temporary)?;
            file.rewind().map_err(temporary)?;
            Ok(Bytes::Mapped(FileMap::new(&file).map_err(temporary)?))
        }
        None => {
            memory.shrink_to_fit();
            Ok(Bytes::Memory(memory))
        }
    }
}

/// What failed about a temporary file is not to be said of the recording: the folder for such files is told with it.
fn temporary(error: io::Error) -> io::Error {
    io::Error::other(Temporary {
        folder: std::env::temp_dir(),
        error,
    })
}

/// Says in plain words why zstd data cannot be unpacked; the decoder's own words are names of its parts.
fn of_zstd(cut: bool) -> io::Error {
    if cut {
        io::Error::new(io::ErrorKind::UnexpectedEof, "its zstd data is cut off")
    } else {
        io::Error::new(io::ErrorKind::InvalidData, "its zstd data is damaged")
    }
}

/// Reads zstd frames one after the other, as `zstd` writes them for large or appended inputs.
struct ZstdFrames<'a> {
    rest: &'a [u8],
    frame: Option<ruzstd::decoding::StreamingDecoder<&'a [u8], ruzstd::decoding::FrameDecoder>>,
}

impl Read for ZstdFrames<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let count = frame
                    .read(out)
                    .map_err(|_| of_zstd(frame.get_ref().is_empty()))?;
                if count > 0 {
                    return Ok(count);
                }
                self.rest = frame.get_ref();
                self.frame = None;
            }
            // A skippable frame: four bytes of magic whose last digit is free, four of length.
            while let Some((&[a, 0x2a, 0x4d, 0x18, b, c, d, e], _)) = self.rest.split_first_chunk()
                && a & 0xf0 == 0x50
            {
                let len = u32::from_le_bytes([b, c, d, e]) as usize;
                self.rest = self.rest.get(8 + len..).unwrap_or_default();
            }
            if self.rest.is_empty() {
                return Ok(0);
            }
            let frame = ruzstd::decoding::StreamingDecoder::new(self.rest)
                .map_err(|_| of_zstd(self.rest.len() < ZSTD_HEADER))?;
            self.frame = Some(frame);
        }
    }
}
