//! The compressed chunks that a CPU's data or a text is cut into.

use crate::compress::{Compression, Decompressor};
use tracefmt::{Cursor, Diagnostic, Endian};

/// Largest chunk that is decompressed; trace-cmd writes chunks of ten pages.
pub(crate) const MAX_CHUNK: usize = 64 << 20;
/// The same for chunks of text, ten pages as well.
const MAX_TEXT_CHUNK: usize = 16 << 20;

/// Returns how many bytes may be decompressed in all from so many. Pages of an idle CPU shrink to a
/// hundredth.
pub(crate) fn work_limit(bytes: usize) -> u64 {
    (64 << 20) + (bytes as u64).saturating_mul(1024)
}

/// A chunk in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileChunk<'a> {
    /// Where it begins in its CPU's data, in bytes.
    pub at: usize,
    /// What is compressed.
    pub input: &'a [u8],
    /// Bytes that come out of it, as it says.
    pub size: usize,
}

impl<'a> FileChunk<'a> {
    /// Bytes of the two sizes that a chunk begins with.
    pub(crate) const HEAD: usize = 8;

    /// Returns the chunk at this place of a CPU's data; `None` when it reaches beyond the data's end.
    pub(crate) fn at(region: &'a [u8], at: usize, endian: Endian) -> Option<FileChunk<'a>> {
        let packed = endian.u32(region, at)? as usize;
        let size = endian.u32(region, at + 4)? as usize;
        let start = at + FileChunk::HEAD;
        let input = region.get(start..start.checked_add(packed)?)?;
        Some(FileChunk { at, input, size })
    }

    /// Returns where the chunk behind it begins.
    pub(crate) fn end(&self) -> usize {
        self.at + FileChunk::HEAD + self.input.len()
    }
}

/// Decompresses chunks one after another. Returns what is wrong with them.
pub(crate) fn read_chunks(
    data: &[u8],
    base: u64,
    endian: Endian,
    compression: Compression,
    sink: &mut dyn FnMut(&[u8]),
) -> Option<Diagnostic> {
    let mut work = work_limit(data.len());
    let mut decompressor = Decompressor::new(compression);
    let mut out = Vec::new();
    let mut cursor = Cursor::new(data, endian);
    let count = cursor.u32().unwrap_or(0);
    for index in 0..count {
        let at = base + cursor.position() as u64;
        let fault = |what: String| {
            Some(Diagnostic::at(
                at,
                format!("chunk {index} of {count}: {what}"),
            ))
        };
        let sizes = cursor.u32().zip(cursor.u32());
        let input =
            sizes.and_then(|(packed, size)| Some((cursor.take(u64::from(packed))?, size as usize)));
        let Some((input, size)) = input else {
            return fault("the file ends before its end".into());
        };
        if size > MAX_TEXT_CHUNK || size as u64 > work {
            return fault(format!(
                "its decompressed size, {size} bytes, is not believed"
            ));
        }
        work -= size as u64;
        if let Err(what) = decompressor.run(input, size, &mut out) {
            return fault(what);
        }
        sink(&out);
    }
    None
}
