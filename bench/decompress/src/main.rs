//! Decompresses zstd frames the way `tracedat` does, and does nothing with what comes out.
//!
//! `decompress FRAMES SIZES`: frames one after the other, and for each two 32-bit little-endian numbers, its
//! bytes and those that come out of it. `bench/run` makes both files of a trace.dat.
#![forbid(unsafe_code)]

use std::error::Error;
use std::hint::black_box;
use std::{env, fs};

use ruzstd::decoding::FrameDecoder;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [frames, sizes] = arguments.as_slice() else {
        return Err("usage: decompress FRAMES SIZES".into());
    };
    let (frames, sizes) = (fs::read(frames)?, fs::read(sizes)?);
    let mut decoder = FrameDecoder::new();
    let mut out = Vec::new();
    let mut rest = frames.as_slice();
    for pair in sizes.chunks_exact(8) {
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|n| pair[at + n])) as usize;
        let (packed, size) = (number(0), number(4));
        let (frame, behind) = rest.split_at_checked(packed).ok_or("frames end early")?;
        rest = behind;
        out.clear();
        out.resize(size, 0);
        let written = decoder.decode_all(frame, &mut out)?;
        black_box(&out[..written]);
    }
    Ok(())
}
