//! The zstd stream inside `PERF_RECORD_COMPRESSED` and `PERF_RECORD_COMPRESSED2`.
//!
//! `perf record -z` compresses what it takes from the ring buffers into one endless zstd frame, and cuts the
//! frame into records where it likes: blocks and perf records may both be split across records. The
//! decoder keeps the last window of its output back until the frame ends, so output comes later than the
//! record it belongs to; [`ZstdStream::position`] says how far the stream has come, so that the markers
//! that stand between the records can be put back where they belong.
//!
//! Each file that `perf record --threads -z` makes has a frame of its own, which does not end either: where the next
//! file's begins, the one before it is over.
//!
//! Source: `tools/perf/util/zstd.c`, RFC 8878.

use ruzstd::decoding::FrameDecoder;

/// Largest window accepted, in bytes: what zstd's level 19, the highest without `--ultra`, uses.
const MAX_WINDOW: u64 = 8 << 20;
/// Largest block of the format, with its header.
const MAX_BLOCK: usize = (128 << 10) + 3;
/// `ZSTD_MAGICNUMBER`.
const MAGIC: u32 = 0xfd2f_b528;
/// How the next frame begins. As the header of a block it would be a size that the format does not allow.
const NEXT_FRAME: &[u8] = &[0x28, 0xb5, 0x2f];

/// Decodes the stream piece by piece.
pub(crate) struct ZstdStream {
    decoder: FrameDecoder,
    /// Compressed bytes, and how many of them are decoded.
    pending: Vec<u8>,
    done: usize,
    in_frame: bool,
    window: u64,
    /// Bytes given out of the current frame.
    frame_out: u64,
    /// Bytes given out of all frames.
    total_out: u64,
    scratch: Vec<u8>,
}

impl ZstdStream {
    pub(crate) fn new() -> ZstdStream {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        ZstdStream {
            decoder,
            pending: Vec::new(),
            done: 0,
            in_frame: false,
            window: 0,
            frame_out: 0,
            total_out: 0,
            scratch: vec![0; 64 << 10],
        }
    }

    /// Adds the payload of one record.
    pub(crate) fn feed(&mut self, payload: &[u8]) {
        // What is left is less than a block.
        self.pending.drain(..self.done);
        self.done = 0;
        self.pending.extend_from_slice(payload);
    }

    /// Decodes the next block and appends what came out to `out`.
    ///
    /// Returns whether there was one; `Err` says why the stream cannot go on.
    pub(crate) fn step(&mut self, out: &mut Vec<u8>) -> Result<bool, String> {
        if self.in_frame && self.pending[self.done..].starts_with(NEXT_FRAME) {
            self.finish(out)?;
        }
        if !self.in_frame {
            let Some(header) = frame_header(&self.pending[self.done..])? else {
                return Ok(false);
            };
            let mut source = &self.pending[self.done..self.done + header.len];
            self.decoder.reset(&mut source).map_err(|e| e.to_string())?;
            self.window = header.window;
            self.done += header.len;
            self.in_frame = true;
            self.frame_out = 0;
        }
        let rest = &self.pending[self.done..];
        let Some(&[a, b, c]) = rest.first_chunk::<3>() else {
            return Ok(false);
        };
        let word = u32::from(a) | u32::from(b) << 8 | u32::from(c) << 16;
        let content = match word >> 1 & 3 {
            // A run-length block holds one byte, whatever its size says.
            1 => 1,
            3 => return Err("zstd block of reserved type".to_owned()),
            _ => (word >> 3) as usize,
        };
        let len = 3 + content;
        if len > MAX_BLOCK {
            return Err(format!(
                "zstd block of {content} bytes, more than the format allows"
            ));
        }
        if rest.len() < len {
            return Ok(false);
        }
        // Lent to the decoder for the time of one block.
        let pending = std::mem::take(&mut self.pending);
        let decoded = self.decode(&pending[self.done..self.done + len], out);
        self.pending = pending;
        self.done += len;
        decoded?;
        if self.decoder.is_finished() {
            self.in_frame = false;
        }
        Ok(true)
    }

    /// Ends the stream where it stands, and appends what the decoder kept back.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        if self.in_frame {
            // An empty raw block that says it is the last one.
            self.decode(&[1, 0, 0], out)?;
            self.in_frame = false;
        }
        Ok(())
    }

    /// Returns how many bytes the stream has come to, those kept back included; `None` while that is not
    /// known, which is so until the first window is full.
    pub(crate) fn position(&self) -> Option<u64> {
        if !self.in_frame {
            return Some(self.total_out);
        }
        (self.frame_out > 0).then_some(self.total_out + self.window)
    }

    fn decode(&mut self, mut block: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        loop {
            let (read, written) = self
                .decoder
                .decode_from_to(block, &mut self.scratch)
                .map_err(|e| e.to_string())?;
            block = &block[read.min(block.len())..];
            out.extend_from_slice(&self.scratch[..written]);
            self.frame_out += written as u64;
            self.total_out += written as u64;
            if written == 0 {
                return Ok(());
            }
        }
    }
}

struct FrameHeader {
    len: usize,
    window: u64,
}

/// Reads length and window of a frame's header. `Ok(None)` when it is not all there yet.
fn frame_header(data: &[u8]) -> Result<Option<FrameHeader>, String> {
    let Some(&[a, b, c, d, descriptor]) = data.first_chunk::<5>() else {
        return Ok(None);
    };
    if u32::from_le_bytes([a, b, c, d]) != MAGIC {
        return Err("compressed record does not begin with a zstd frame".to_owned());
    }
    let single = descriptor >> 5 & 1 == 1;
    let dictionary = [0usize, 1, 2, 4][(descriptor & 3) as usize];
    let content = match descriptor >> 6 {
        0 => usize::from(single),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    let len = 5 + usize::from(!single) + dictionary + content;
    if data.len() < len {
        return Ok(None);
    }
    let window = if single {
        let mut size = [0u8; 8];
        size[..content].copy_from_slice(&data[len - content..len]);
        u64::from_le_bytes(size) + if content == 2 { 256 } else { 0 }
    } else {
        let byte = u64::from(data[5]);
        let base = 1u64 << (10 + (byte >> 3));
        base + base / 8 * (byte & 7)
    };
    Ok(Some(FrameHeader { len, window }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_complete_however_the_input_is_cut() {
        // One frame, window 2 KiB: a raw block of 5 bytes, two runs of 2000 bytes, never ended, as perf
        // leaves it.
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x08];
        frame.extend([5 << 3, 0, 0]);
        frame.extend(b"hello");
        let [low, middle, high, _] = u32::to_le_bytes(2000 << 3 | 1 << 1);
        for byte in [b'x', b'y'] {
            frame.extend([low, middle, high, byte]);
        }
        for piece in [1, 3, 7, 100] {
            let mut stream = ZstdStream::new();
            let mut out = Vec::new();
            for part in frame.chunks(piece) {
                stream.feed(part);
                while stream.step(&mut out).unwrap() {}
            }
            assert_eq!(stream.position(), Some(4005), "all but the window came out");
            stream.finish(&mut out).unwrap();
            assert_eq!(out.len(), 4005);
            assert!(out.starts_with(b"helloxx"));
        }
    }

    #[test]
    fn a_frame_that_does_not_end_is_over_where_the_next_one_begins() {
        let frame = |text: &[u8; 5]| {
            let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x08, 5 << 3, 0, 0];
            frame.extend(text);
            frame
        };
        let frames = [frame(b"first"), frame(b"other"), frame(b"third")].concat();
        for piece in [1, 3, 7, 100] {
            let mut stream = ZstdStream::new();
            let mut out = Vec::new();
            for part in frames.chunks(piece) {
                stream.feed(part);
                while stream.step(&mut out).unwrap() {}
            }
            assert_eq!(out, b"firstother");
            stream.finish(&mut out).unwrap();
            assert_eq!(out, b"firstotherthird");
        }
    }

    #[test]
    fn garbage_ends_the_stream_with_a_reason() {
        let mut stream = ZstdStream::new();
        stream.feed(b"garbage that is no frame");
        assert!(
            stream
                .step(&mut Vec::new())
                .unwrap_err()
                .contains("zstd frame")
        );
    }
}
