/*!
Decompression of zstd frames into memory that the caller bounds.

Recordings are compressed in pieces of some ten kilobytes, so a decompressor for them must be quick to start and
write straight to where the bytes are wanted. This one keeps its tables between frames, has no window of its own, and
never writes more than it was allowed to.

It does not verify the checksum at a frame's end, and knows no dictionaries.

Source: RFC 8878.
*/
#![forbid(unsafe_code)]

mod bits;
mod fse;
mod huffman;
mod sequences;
mod stream;

use huffman::Huffman;
use sequences::Sequences;
use std::fmt;

pub use stream::Stream;

/// First four bytes of a frame.
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// First four bytes of a frame to be skipped, but for the lowest four bits of the first.
const SKIPPABLE: u32 = 0x184d_2a50;
/// Most bytes that come out of a block.
const MAX_BLOCK: usize = 128 << 10;
/// Bytes behind the end of the output, and of the literals, that copying may run over.
const SLACK: usize = 64;
/// Largest window a [`Stream`] keeps. `zstd` without `--ultra` and `--long` uses 8 MiB at most.
const MAX_WINDOW: usize = 128 << 20;

/// What is wrong with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Ends,
    Magic,
    Header,
    Dictionary,
    Window,
    Block,
    Table,
    Bits,
    Offset,
    TooLong,
}

/// Why a frame cannot be decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// Where in the input the frame or block begins that is at fault, in bytes.
    pub offset: usize,
    fault: Fault,
}

impl Error {
    /// Returns whether the input ends before the frame does.
    pub fn ends_early(&self) -> bool {
        self.fault == Fault::Ends
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.fault {
            Fault::Ends => "the data ends early",
            Fault::Magic => "no zstd frame",
            Fault::Header => "a frame header with a reserved bit",
            Fault::Dictionary => "a frame that needs a dictionary",
            Fault::Window => "a window that is too large",
            Fault::Block => "a block of an unknown kind or size",
            Fault::Table => "a code table that cannot be",
            Fault::Bits => "coded data that does not end where it should",
            Fault::Offset => "a copy from before the beginning",
            Fault::TooLong => "more data than there may be",
        };
        write!(
            f,
            "{what}, at byte {:#x} of the compressed data",
            self.offset
        )
    }
}

impl std::error::Error for Error {}

/// A decompressor. Its tables are kept from frame to frame, so one should be used for many.
pub struct Decoder {
    huffman: Huffman,
    sequences: Sequences,
    /// Decoded literals of a block, and slack.
    literals: Vec<u8>,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

impl Decoder {
    /// Returns a decompressor.
    pub fn new() -> Decoder {
        Decoder {
            huffman: Huffman::default(),
            sequences: Sequences::default(),
            literals: vec![0; MAX_BLOCK + SLACK],
        }
    }

    /// Decompresses all frames of `input` into `out`, which is cleared first and gets `limit` bytes at most.
    ///
    /// # Errors
    ///
    /// When the input is not a whole number of sound frames, or more than `limit` bytes come out of it. `out` then
    /// holds what came out of the blocks before the one at fault.
    pub fn decode(&mut self, input: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        out.clear();
        let mut at = 0;
        let mut end = 0;
        let mut result = Ok(());
        while at < input.len() {
            match self.frame(input, &mut at, limit, out, &mut end) {
                Ok(()) => {}
                Err(fault) => {
                    result = Err(Error { offset: at, fault });
                    break;
                }
            }
        }
        out.truncate(end);
        result
    }

    /// Decompresses one frame. `at` is left at the end of the frame, or at the block at fault; `end` is where the
    /// output ends.
    fn frame(
        &mut self,
        input: &[u8],
        at: &mut usize,
        limit: usize,
        out: &mut Vec<u8>,
        end: &mut usize,
    ) -> Result<(), Fault> {
        let header = match Header::read(&input[*at..])? {
            Head::Skip(len) => {
                *at = at
                    .checked_add(len)
                    .filter(|&a| a <= input.len())
                    .ok_or(Fault::Ends)?;
                return Ok(());
            }
            Head::Frame(header) => header,
        };
        *at += header.len;
        self.start_frame();
        let start = *end;
        // The size of the content saves growing, but is believed only as far as is allowed anyway.
        let content = header
            .content
            .map_or(0, |c| usize::try_from(c).unwrap_or(usize::MAX));
        loop {
            let block = Block::read(&input[*at..])?;
            let room = end
                .saturating_add(block.most())
                .max(start.saturating_add(content))
                .min(limit);
            if out.len() < room + SLACK {
                out.resize(room + SLACK, 0);
            }
            *end = self.block(&block, out, (start, *end, limit))?;
            *at += block.len;
            if block.last {
                break;
            }
        }
        if header.checksum {
            *at = at
                .checked_add(4)
                .filter(|&a| a <= input.len())
                .ok_or(Fault::Ends)?;
        }
        Ok(())
    }

    /// Forgets what belongs to the frame before.
    fn start_frame(&mut self) {
        self.huffman.clear();
        self.sequences.clear();
    }

    /// Decompresses one block. `out` has [`SLACK`] bytes behind the limit or behind what can come out of the block.
    fn block(
        &mut self,
        block: &Block<'_>,
        out: &mut [u8],
        (start, at, limit): (usize, usize, usize),
    ) -> Result<usize, Fault> {
        let limit = limit
            .min(at + MAX_BLOCK)
            .min(out.len().saturating_sub(SLACK));
        match block.kind {
            Kind::Raw => {
                let end = at + block.data.len();
                if end > limit {
                    return Err(Fault::TooLong);
                }
                out[at..end].copy_from_slice(block.data);
                Ok(end)
            }
            Kind::Repeat(byte, len) => {
                let end = at + len;
                if end > limit {
                    return Err(Fault::TooLong);
                }
                out[at..end].fill(byte);
                Ok(end)
            }
            Kind::Compressed => {
                let (used, len) = self.read_literals(block.data)?;
                let sequences = block.data.get(used..).ok_or(Fault::Ends)?;
                self.sequences
                    .run(sequences, &self.literals, len, out, (start, at, limit))
            }
        }
    }

    /// Reads the literals of a block. Returns how many bytes the section took and how many literals there are.
    fn read_literals(&mut self, data: &[u8]) -> Result<(usize, usize), Fault> {
        let &first = data.first().ok_or(Fault::Ends)?;
        let mut word = [0; 8];
        let there = data.len().min(5);
        word[..there].copy_from_slice(&data[..there]);
        let word = u64::from_le_bytes(word);
        let form = first >> 2 & 3;
        if first & 2 == 0 {
            let (header, len) = match form {
                0 | 2 => (1, word >> 3 & 0x1f),
                1 => (2, word >> 4 & 0xfff),
                _ => (3, word >> 4 & 0xf_ffff),
            };
            let len = len as usize;
            let rest = data.get(header..).ok_or(Fault::Ends)?;
            let literals = self
                .literals
                .get_mut(..len)
                .filter(|_| len <= MAX_BLOCK)
                .ok_or(Fault::TooLong)?;
            if first & 1 == 0 {
                literals.copy_from_slice(rest.get(..len).ok_or(Fault::Ends)?);
                return Ok((header + len, len));
            }
            literals.fill(*rest.first().ok_or(Fault::Ends)?);
            return Ok((header + 1, len));
        }
        let (header, bits) = match form {
            0 | 1 => (3, 10),
            2 => (4, 14),
            _ => (5, 18),
        };
        let mask = (1u64 << bits) - 1;
        let len = (word >> 4 & mask) as usize;
        let packed = (word >> (4 + bits) & mask) as usize;
        let mut coded = data
            .get(header..)
            .and_then(|d| d.get(..packed))
            .ok_or(Fault::Ends)?;
        let literals = self
            .literals
            .get_mut(..len)
            .filter(|_| len <= MAX_BLOCK)
            .ok_or(Fault::TooLong)?;
        if first & 1 == 0 {
            let used = self.huffman.read(coded)?;
            coded = coded.get(used..).ok_or(Fault::Ends)?;
        }
        if form == 0 {
            self.huffman.decode(coded, literals)?;
        } else {
            self.huffman.decode_four(coded, literals)?;
        }
        Ok((header + packed, len))
    }
}

/// What stands at the front of some input.
enum Head {
    /// A frame to be skipped, of so many bytes.
    Skip(usize),
    Frame(Header),
}

/// The header of a frame.
#[derive(Debug, Clone, Copy)]
struct Header {
    /// Bytes of the header.
    len: usize,
    /// Bytes that come out of the frame, if it says.
    content: Option<u64>,
    /// How far back a block may copy from, in bytes.
    window: u64,
    /// Whether a checksum follows the last block.
    checksum: bool,
}

impl Header {
    fn read(data: &[u8]) -> Result<Head, Fault> {
        let (&magic, rest) = data.split_first_chunk::<4>().ok_or(Fault::Ends)?;
        if u32::from_le_bytes(magic) & !0xf == SKIPPABLE {
            let size = u32::from_le_bytes(*rest.first_chunk().ok_or(Fault::Ends)?);
            return Ok(Head::Skip(
                usize::try_from(size)
                    .unwrap_or(usize::MAX)
                    .saturating_add(8),
            ));
        }
        if magic != MAGIC {
            return Err(Fault::Magic);
        }
        let (&flags, mut rest) = rest.split_first().ok_or(Fault::Ends)?;
        if flags & 8 != 0 {
            return Err(Fault::Header);
        }
        let single = flags & 0x20 != 0;
        let mut window = 0;
        if !single {
            let (&byte, after) = rest.split_first().ok_or(Fault::Ends)?;
            let base = 1u64 << (10 + (byte >> 3));
            window = base + base / 8 * u64::from(byte & 7);
            rest = after;
        }
        let mut number = |len: usize| -> Result<u64, Fault> {
            let (bytes, after) = rest.split_at_checked(len).ok_or(Fault::Ends)?;
            rest = after;
            Ok(bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
        };
        if number([0, 1, 2, 4][usize::from(flags & 3)])? != 0 {
            return Err(Fault::Dictionary);
        }
        let content = match flags >> 6 {
            0 if !single => None,
            0 => Some(number(1)?),
            1 => Some(number(2)? + 256),
            2 => Some(number(4)?),
            _ => Some(number(8)?),
        };
        if single {
            window = content.unwrap_or(0);
        }
        let len = data.len() - rest.len();
        Ok(Head::Frame(Header {
            len,
            content,
            window,
            checksum: flags & 4 != 0,
        }))
    }
}

/// How a block is stored.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Raw,
    /// One byte, so many times.
    Repeat(u8, usize),
    Compressed,
}

/// A block of a frame.
#[derive(Debug, Clone, Copy)]
struct Block<'a> {
    kind: Kind,
    data: &'a [u8],
    /// Bytes of the block, its header included.
    len: usize,
    last: bool,
}

impl<'a> Block<'a> {
    fn read(data: &'a [u8]) -> Result<Block<'a>, Fault> {
        let (&[a, b, c], rest) = data.split_first_chunk::<3>().ok_or(Fault::Ends)?;
        let word = u32::from_le_bytes([a, b, c, 0]);
        let size = (word >> 3) as usize;
        let (kind, stored) = match word >> 1 & 3 {
            0 => (Kind::Raw, size),
            1 => (Kind::Repeat(*rest.first().ok_or(Fault::Ends)?, size), 1),
            2 => (Kind::Compressed, size),
            _ => return Err(Fault::Block),
        };
        if size > MAX_BLOCK {
            return Err(Fault::Block);
        }
        let data = rest.get(..stored).ok_or(Fault::Ends)?;
        Ok(Block {
            kind,
            data,
            len: 3 + stored,
            last: word & 1 != 0,
        })
    }

    /// Returns the most bytes that can come out of the block.
    fn most(&self) -> usize {
        match self.kind {
            Kind::Raw => self.data.len(),
            Kind::Repeat(_, len) => len,
            Kind::Compressed => MAX_BLOCK,
        }
    }
}
