//! zstd in Rust alone.

use ruzstd::decoding::FrameDecoder;

/// Windows up to this are always allowed, in bytes: `zstd` uses no larger ones unless asked to.
const MIN_WINDOW: u64 = 8 << 20;

/// A decoder whose tables are kept between calls.
pub(crate) struct ZstdDecoder(Box<FrameDecoder>);

impl ZstdDecoder {
    pub(crate) fn new() -> ZstdDecoder {
        ZstdDecoder(Box::default())
    }

    /// Decodes all frames of `input` into `out`. Returns how many bytes came out, or what is wrong.
    pub(crate) fn run(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, String> {
        // The decoder sets memory aside for the window a frame asks for, and none needs more than what comes out of it.
        let whole = out.len().next_power_of_two() as u64;
        self.0.set_max_window_size(MIN_WINDOW.max(whole));
        self.0.decode_all(input, out).map_err(|e| e.to_string())
    }
}
