//! Memory maps: the only unsafe code of the readers.

use std::fs::File;
use std::io;
use std::ops::Range;

use memmap2::{Mmap, UncheckedAdvice};

/// A file mapped into memory for reading.
#[derive(Debug)]
pub(crate) struct FileMap(Mmap);

/// Bytes of the smallest page of any architecture that Linux runs on; advice is given on multiples of the
/// largest.
const PAGE: usize = 64 << 10;

impl FileMap {
    /// Maps a whole file.
    pub fn new(file: &File) -> io::Result<FileMap> {
        // SAFETY: the map is private and read-only. Bytes of a file that another process changes meanwhile
        // may change under our eyes; every reader takes any bytes for possible and checks them when it
        // reads them, so that gives wrong numbers at worst. A file that is cut while it is mapped ends the
        // process with SIGBUS, as it does perf's and every other reader's that maps its input.
        let map = unsafe { Mmap::map(file)? };
        Ok(FileMap(map))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Lets the pages of a range go; they are read from the file again when they are touched again.
    pub fn release(&self, range: Range<usize>) {
        let start = range.start.div_ceil(PAGE) * PAGE;
        let end = range.end.min(self.0.len()) / PAGE * PAGE;
        if start < end {
            // SAFETY: MADV_DONTNEED on a private, never written file mapping drops clean pages only; the
            // next access reads the same bytes from the file. A failure changes nothing and is ignored.
            let _ = unsafe {
                self.0
                    .unchecked_advise_range(UncheckedAdvice::DontNeed, start, end - start)
            };
        }
    }
}
