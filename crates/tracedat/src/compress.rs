//! Decompression of sections and of chunks of CPU data, into bounded buffers.
//!
//! Source: `lib/trace-cmd/trace-compress.c`, `trace-compress-zlib.c` and `trace-compress-zstd.c` of
//! trace-cmd: zlib streams (with the two-byte zlib header) or zstd frames, one per section or chunk.

#[cfg(feature = "c-zstd")]
use crate::zstd_c::ZstdDecoder;
#[cfg(not(feature = "c-zstd"))]
use crate::zstd_rust::ZstdDecoder;

/// How a file's sections and CPU data are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// zlib streams.
    Zlib,
    /// zstd frames.
    Zstd,
}

impl Compression {
    /// Returns the compression of that name, as the file's header spells it.
    pub fn from_name(name: &str) -> Option<Compression> {
        match name {
            "none" => Some(Compression::None),
            "zlib" => Some(Compression::Zlib),
            "zstd" => Some(Compression::Zstd),
            _ => None,
        }
    }
}

/// A decompressor whose tables are kept between calls.
pub(crate) struct Decompressor {
    kind: Compression,
    zstd: Option<ZstdDecoder>,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl Decompressor {
    pub(crate) fn new(kind: Compression) -> Decompressor {
        Decompressor { kind, zstd: None }
    }

    /// Decompresses `input` into `out`, which is cleared first and never grows beyond `size` bytes.
    ///
    /// Returns what went wrong, in words; `out` then holds what came before the fault.
    pub(crate) fn run(
        &mut self,
        input: &[u8],
        size: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        out.clear();
        match self.kind {
            Compression::None => Err("compressed data in a file without compression".into()),
            Compression::Zlib => zlib(input, size, out),
            Compression::Zstd => {
                let decoder = self.zstd.get_or_insert_with(ZstdDecoder::new);
                out.resize(size, 0);
                let result = decoder.run(input, out);
                out.truncate(result.as_ref().map_or(0, |&written| written));
                result.map(|_| ()).map_err(|error| format!("zstd: {error}"))
            }
        }
    }
}

fn zlib(input: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), String> {
    use miniz_oxide::inflate::{TINFLStatus, core};
    out.resize(size, 0);
    let flags = core::inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER
        | core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF
        | core::inflate_flags::TINFL_FLAG_IGNORE_ADLER32;
    let mut state = Box::<core::DecompressorOxide>::default();
    let (status, _read, written) = core::decompress(&mut state, input, out, 0, flags);
    out.truncate(written);
    match status {
        TINFLStatus::Done | TINFLStatus::HasMoreOutput => Ok(()),
        other => Err(format!("zlib: {other:?}")),
    }
}
