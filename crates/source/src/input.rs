//! The bytes of a recording: mapped, or unpacked into memory or an unlinked temporary file.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::ops::Range;
use std::path::Path;

use perfdata::ByteSource;

use crate::OpenError;
use crate::bytes::InputBytes;
use crate::layers::{self, MAX_LAYERS};
use crate::map::FileMap;
use crate::perf_folder;
use crate::progress::{ActivityGuard, ReadActivity, ReadProgress};
use crate::spool::spool;

/// The recording in a folder that `trapline record` made.
const IN_FOLDER: &str = "perf.data";

/// How inputs are taken.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// What is kept of an input at most that cannot be mapped, because it is packed or a pipe, in bytes; what is
    /// longer is an error. Without it that is 64 GiB, and no more of a packed input than a recording packs to.
    pub spool_limit: Option<u64>,
    /// The callback that hears how far reading is: while it is unpacked now, and in each walk over its events.
    pub progress: Option<ReadProgress>,
}

/// A recording's bytes, and where they came from.
#[derive(Debug)]
pub struct RecordingBytes {
    name: String,
    bytes: InputBytes,
    warnings: Vec<String>,
    progress: Option<ReadProgress>,
}

impl RecordingBytes {
    /// Opens a file, the `perf.data` of a folder, the files of a folder that perf made, or standard input for `-`.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read or holds nothing; what it holds is decided by
    /// [`RecordingBytes::reader`].
    pub fn open(path: &Path) -> Result<RecordingBytes, OpenError> {
        RecordingBytes::open_with(path, OpenOptions::default())
    }

    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    ///
    /// As [`RecordingBytes::open`].
    pub fn open_with(path: &Path, options: OpenOptions) -> Result<RecordingBytes, OpenError> {
        if path.as_os_str() == "-" {
            let name = "standard input".to_owned();
            return RecordingBytes::unpacked(name, Box::new(io::stdin().lock()), None, options);
        }
        let name = path.display().to_string();
        let fail = |error| OpenError::from_io(&name, error);
        let mut file = File::open(path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        if meta.is_dir() {
            // 'trapline record' makes a folder.
            let inner = path.join(IN_FOLDER);
            // 'perf record --threads' makes one with several files, 'perf record --kcore' one with a single one.
            let of_perf = path.join(perf_folder::DATA);
            return match (inner.is_file(), of_perf.is_file()) {
                (true, _) => RecordingBytes::open_with(&inner, options),
                (false, true) => match perf_folder::stream(path).map_err(fail)? {
                    Some(all) => {
                        RecordingBytes::unpacked(name, all.stream, Some(all.length), options)
                    }
                    None => RecordingBytes::open_with(&of_perf, options),
                },
                (false, false) => Err(OpenError::Directory(name)),
            };
        }
        // Pipes, and the files of /proc and tracefs, have no size.
        if meta.is_file() && meta.len() > 0 {
            let mut head = Vec::new();
            (&mut file).take(8).read_to_end(&mut head).map_err(fail)?;
            file.rewind().map_err(fail)?;
            if !layers::is_packed(&head) {
                let map = FileMap::new(file, false).map_err(fail)?;
                return Ok(RecordingBytes {
                    name,
                    bytes: InputBytes::Mapped(map),
                    warnings: Vec::new(),
                    progress: options.progress,
                });
            }
        }
        let packed = (meta.len() > 0).then_some(meta.len());
        RecordingBytes::unpacked(name, Box::new(file), packed, options)
    }

    /// Takes a recording that lies in memory, for tests and embedding. It may be wrapped as files may.
    ///
    /// # Errors
    ///
    /// As [`RecordingBytes::open`].
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<RecordingBytes, OpenError> {
        RecordingBytes::from_bytes_with(name, bytes, OpenOptions::default())
    }

    /// Takes a recording that lies in memory.
    ///
    /// # Errors
    ///
    /// As [`RecordingBytes::open`].
    pub fn from_bytes_with(
        name: &str,
        bytes: Vec<u8>,
        options: OpenOptions,
    ) -> Result<RecordingBytes, OpenError> {
        if layers::is_packed(&bytes) {
            let packed = Some(bytes.len() as u64);
            let stream = Box::new(Cursor::new(bytes));
            return RecordingBytes::unpacked(name.to_owned(), stream, packed, options);
        }
        if bytes.is_empty() {
            return Err(OpenError::Empty(name.to_owned()));
        }
        Ok(RecordingBytes {
            name: name.to_owned(),
            bytes: InputBytes::Memory(bytes),
            warnings: Vec::new(),
            progress: options.progress,
        })
    }

    /// Reads a stream of so many bytes, if that is known, to its end, and unpacks it as often as it is wrapped.
    fn unpacked(
        name: String,
        stream: Box<dyn Read + '_>,
        length: Option<u64>,
        options: OpenOptions,
    ) -> Result<RecordingBytes, OpenError> {
        let Some(mut input) = layers::unpack(stream) else {
            return Err(OpenError::Unusable {
                name,
                reason: format!(
                    "is packed more than {MAX_LAYERS} times; expected a recording, or one in gzip or zstd: \
                     unpack it first"
                ),
            });
        };
        let mut warnings = Vec::new();
        let way = ActivityGuard::begin(options.progress.as_ref(), ReadActivity::Unpacking, length);
        let bytes = spool(&name, &mut input, options.spool_limit, &way, &mut warnings)?;
        drop(way);
        if bytes.get().is_empty() {
            return Err(OpenError::Empty(name));
        }
        Ok(RecordingBytes {
            name,
            bytes,
            warnings,
            progress: options.progress,
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

    /// Returns what reads the bytes by pieces, where they lie in a file and that is cheaper.
    pub(crate) fn cheaper_source(&self) -> Option<&dyn ByteSource> {
        match &self.bytes {
            InputBytes::Mapped(map) if map.costs_more_than_reading() => Some(map),
            InputBytes::Mapped(_) | InputBytes::Memory(_) => None,
        }
    }

    /// Returns the bytes that are still there: a file may have become shorter since it was opened.
    pub(crate) fn present(&self) -> &[u8] {
        let all = self.bytes();
        &all[..self.cut_at().unwrap_or(all.len()).min(all.len())]
    }

    /// Returns where the file ends now, if somebody made it shorter since it was opened.
    pub(crate) fn cut_at(&self) -> Option<usize> {
        match &self.bytes {
            InputBytes::Mapped(map) => map.cut_at(),
            InputBytes::Memory(_) => None,
        }
    }

    /// Returns what was odd in unpacking.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns whom to tell how far reading is.
    pub(crate) fn progress(&self) -> Option<&ReadProgress> {
        self.progress.as_ref()
    }

    /// Lets pages go that were read.
    pub(crate) fn release(&self, range: Range<usize>) {
        if let InputBytes::Mapped(map) = &self.bytes {
            map.release(range);
        }
    }
}
