//! Bytes in the form of something compressed, without being so: what is made anew is little, and needs no compressor.
//!
//! Sources: RFC 1950 and 1951 (zlib, stored blocks), RFC 8878 (zstd, raw blocks).

use crate::compress::Compression;

/// Bytes of a stored block of zlib at most, and of a raw block of zstd.
const ZLIB_BLOCK: usize = 0xffff;
const ZSTD_BLOCK: usize = 128 << 10;

/// Returns a stream or frame from which these bytes come out.
pub(super) fn stored(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    match compression {
        Compression::None => bytes.to_vec(),
        Compression::Zlib => zlib(bytes),
        Compression::Zstd => zstd(bytes),
    }
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    // Window of 32 KiB, no dictionary, the check bits that make it a multiple of 31.
    let mut out = vec![0x78, 0x01];
    let last = bytes.len().div_ceil(ZLIB_BLOCK).max(1) - 1;
    for at in 0..=last {
        let end = bytes.len().min((at + 1) * ZLIB_BLOCK);
        let block = &bytes[(at * ZLIB_BLOCK).min(end)..end];
        let size = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(at == last));
        out.extend(size.to_le_bytes());
        out.extend((!size).to_le_bytes());
        out.extend_from_slice(block);
    }
    let (low, high) = bytes.iter().fold((1u32, 0u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65521;
        (low, (high + low) % 65521)
    });
    out.extend((high << 16 | low).to_be_bytes());
    out
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    // One segment, its size in four bytes, no checksum, no dictionary.
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0b1010_0000];
    let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend(size.to_le_bytes());
    let last = bytes.len().div_ceil(ZSTD_BLOCK).max(1) - 1;
    for at in 0..=last {
        let end = bytes.len().min((at + 1) * ZSTD_BLOCK);
        let block = &bytes[(at * ZSTD_BLOCK).min(end)..end];
        // A raw block: bit 0 for the last one, two bits of type 0, and the size.
        let head = u32::try_from(block.len()).unwrap_or(0) << 3 | u32::from(at == last);
        out.extend_from_slice(&head.to_le_bytes()[..3]);
        out.extend_from_slice(block);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::Decompressor;

    #[test]
    fn what_is_stored_comes_out_again() {
        for size in [0usize, 1, 4096, 65535, 65536, 131_072, 400_000] {
            let bytes: Vec<u8> = (0..size).map(|n| (n * 7 % 251).to_le_bytes()[0]).collect();
            for compression in [Compression::Zlib, Compression::Zstd] {
                let mut out = Vec::new();
                let packed = stored(compression, &bytes);
                let result = Decompressor::new(compression).run(&packed, size, &mut out);
                assert!(
                    result.is_ok() && out == bytes,
                    "{compression:?} {size} {result:?}"
                );
            }
        }
    }
}
