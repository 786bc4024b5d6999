//! Files that are read beside recordings.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

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
