//! Where a recording is written to.

use std::fs::File;
use std::io::{self, IoSlice};

/// Something that bytes are written to at any place: a file, and what tests take for one.
pub trait WritableFile {
    /// Writes several pieces at a place. Returns how many bytes were written.
    ///
    /// # Errors
    ///
    /// Those of pwritev(2).
    fn write_at(&mut self, pieces: &[IoSlice<'_>], at: u64) -> io::Result<usize>;

    /// Lets it end at a place.
    ///
    /// # Errors
    ///
    /// Those of ftruncate(2).
    fn set_length(&mut self, length: u64) -> io::Result<()>;

    /// Writes all of several pieces at a place.
    ///
    /// # Errors
    ///
    /// Those of [`WritableFile::write_at`], but for an interrupting signal.
    fn write_all(&mut self, mut pieces: &mut [IoSlice<'_>], mut at: u64) -> io::Result<()> {
        // Empty pieces count as written.
        IoSlice::advance_slices(&mut pieces, 0);
        while !pieces.is_empty() {
            match self.write_at(pieces, at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    at += written as u64;
                    IoSlice::advance_slices(&mut pieces, written);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl WritableFile for File {
    fn write_at(&mut self, pieces: &[IoSlice<'_>], at: u64) -> io::Result<usize> {
        rings::write_at(self, pieces, at)
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}
