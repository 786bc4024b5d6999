//! Inputs that are packed: gzip and zstd, one inside the other, unpacked as a stream.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, DEFAULT_MAX_WINDOW_SIZE, FrameDecoder, StreamingDecoder,
};

/// Wrappings inside each other are followed this deep.
pub(crate) const MAX_LAYERS: usize = 3;
/// Window of an inner layer at most: that of `zstd -19`. Only the outermost may have what `zstd --long` asks for, so
/// that layers do not add up.
const INNER_WINDOW: u64 = 8 << 20;
/// Bytes read at a time.
const PIECE: usize = 64 << 10;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Returns whether bytes begin as something packed does.
pub(crate) fn is_packed(head: &[u8]) -> bool {
    head.starts_with(GZIP) || head.starts_with(ZSTD)
}

/// A stream that can be looked into before it is read.
pub(crate) struct PeekStream<'s> {
    stream: Box<dyn Read + 's>,
    /// What was read stands in `at..filled`; what is behind it is room that need not be cleared again.
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    ended: bool,
    failed: Option<io::Error>,
}

impl<'s> PeekStream<'s> {
    pub(crate) fn new(stream: Box<dyn Read + 's>) -> PeekStream<'s> {
        PeekStream {
            stream,
            buffer: Vec::new(),
            at: 0,
            filled: 0,
            ended: false,
            failed: None,
        }
    }

    /// Returns the bytes that come next: so many, or as many as there are. What fails here fails when those
    /// before it were read.
    pub(crate) fn look(&mut self, count: usize) -> &[u8] {
        while self.filled - self.at < count && !self.ended && self.failed.is_none() {
            self.more();
        }
        let end = self.filled.min(self.at.saturating_add(count));
        &self.buffer[self.at..end]
    }

    fn more(&mut self) {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        if self.buffer.len() - self.filled < PIECE {
            self.buffer.resize(self.filled + PIECE, 0);
        }
        let read = loop {
            match self.stream.read(&mut self.buffer[self.filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match read {
            Ok(count) => {
                self.ended = count == 0;
                self.filled += count;
            }
            Err(error) => self.failed = Some(error),
        }
    }
}

impl Read for PeekStream<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.filled {
            if let Some(error) = self.failed.take() {
                self.ended = true;
                return Err(error);
            }
            if self.ended || out.is_empty() {
                return Ok(0);
            }
            self.more();
        }
        let count = out.len().min(self.filled - self.at);
        out[..count].copy_from_slice(&self.buffer[self.at..self.at + count]);
        self.at += count;
        match self.failed.take() {
            Some(error) if count == 0 && !out.is_empty() => {
                self.ended = true;
                Err(error)
            }
            failed => {
                self.failed = failed;
                Ok(count)
            }
        }
    }
}

/// A stream that counts what is read from it.
struct CountingStream<'s> {
    stream: Box<dyn Read + 's>,
    count: Rc<Cell<u64>>,
}

impl Read for CountingStream<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(out)?;
        self.count
            .set(self.count.get().saturating_add(count as u64));
        Ok(count)
    }
}

/// An input, unpacked.
pub(crate) struct UnpackedInput<'s> {
    pub stream: PeekStream<'s>,
    /// How many layers were taken off.
    pub layers: usize,
    /// Bytes of the input that were read so far.
    pub packed_bytes: Rc<Cell<u64>>,
}

/// Takes layer after layer off a stream, looking at the first bytes of each; nothing between two layers is
/// kept. `None` when there are more than [`MAX_LAYERS`].
pub(crate) fn unpack<'s>(stream: Box<dyn Read + 's>) -> Option<UnpackedInput<'s>> {
    let packed_bytes = Rc::new(Cell::new(0));
    let count = Rc::clone(&packed_bytes);
    let mut stream = PeekStream::new(Box::new(CountingStream { stream, count }));
    let mut layers = 0;
    loop {
        let head = stream.look(ZSTD.len());
        let (gzip, packed) = (head.starts_with(GZIP), is_packed(head));
        if !packed {
            return Some(UnpackedInput {
                stream,
                layers,
                packed_bytes,
            });
        }
        if layers == MAX_LAYERS {
            return None;
        }
        layers += 1;
        let inner: Box<dyn Read + 's> = if gzip {
            Box::new(MultiGzDecoder::new(stream))
        } else {
            Box::new(ZstdFrames {
                window: if layers > 1 {
                    INNER_WINDOW
                } else {
                    DEFAULT_MAX_WINDOW_SIZE
                },
                cut: false,
                between: Some(stream),
                frame: None,
            })
        };
        stream = PeekStream::new(inner);
    }
}

/// The end of a frame: an empty last block, and a checksum, if there is one, that nobody looks at.
const END: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

/// Reads zstd frames one after the other, as `zstd` writes them for large or appended inputs.
struct ZstdFrames<'s> {
    /// Largest window that is allowed.
    window: u64,
    /// Whether the stream ended within the frame.
    cut: bool,
    /// The stream, between two frames.
    between: Option<PeekStream<'s>>,
    frame: Option<StreamingDecoder<PeekStream<'s>, FrameDecoder>>,
}

impl Read for ZstdFrames<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                match frame.read(out) {
                    Ok(0) if self.cut => return Err(broken(true)),
                    Ok(0) => {}
                    Ok(count) => return Ok(count),
                    Err(_) if !frame.get_ref().ended || self.cut => return Err(broken(self.cut)),
                    Err(_) => {
                        // The decoder holds its window back until a frame ends: all of it was unpacked.
                        let _ = frame.decoder.decode_blocks(END, BlockDecodingStrategy::All);
                        self.cut = true;
                        continue;
                    }
                }
            }
            let after = self.frame.take().map(StreamingDecoder::into_inner);
            let Some(mut stream) = after.or_else(|| self.between.take()) else {
                return Ok(0);
            };
            // A skippable frame: four bytes of magic whose last digit is free, four of length.
            while let &[a, 0x2a, 0x4d, 0x18, b, c, d, e] = stream.look(8)
                && a & 0xf0 == 0x50
            {
                let len = u64::from(u32::from_le_bytes([b, c, d, e]));
                io::copy(&mut (&mut stream).take(8 + len), &mut io::sink())?;
            }
            if stream.look(1).is_empty() {
                return match stream.failed.take() {
                    Some(error) => Err(error),
                    None => Ok(0),
                };
            }
            let short = stream.look(ZSTD.len() + 1).len() <= ZSTD.len();
            match StreamingDecoder::new_with_max_window_size(stream, self.window) {
                Ok(frame) => self.frame = Some(frame),
                Err(_) => return Err(broken(short)),
            }
        }
    }
}

/// Says that zstd data cannot be unpacked. What the decoder says of it is for its authors.
fn broken(ended: bool) -> io::Error {
    if ended {
        let kind = io::ErrorKind::UnexpectedEof;
        io::Error::new(kind, "the zstd data ends in the middle of a frame")
    } else {
        let kind = io::ErrorKind::InvalidData;
        io::Error::new(kind, "the zstd data is damaged")
    }
}
