//! Frames that arrive in pieces.

use crate::{Block, Decoder, Error, Fault, Head, Header, MAX_BLOCK, MAX_WINDOW, SLACK};

/// Decompresses frames that arrive piece by piece, and gives away what comes out of each block at once.
///
/// It holds the window of the frame, and the part of the last piece that is not a whole block yet.
#[derive(Debug, Default)]
pub struct Stream {
    decoder: Decoder,
    /// Input that is not a whole header or block yet.
    kept: Vec<u8>,
    /// Output: the window, then room for a block.
    out: Vec<u8>,
    /// Where the output ends.
    end: usize,
    window: usize,
    state: State,
    /// Bytes of input taken so far.
    taken: usize,
}

/// What the input is to bring next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Header,
    /// A block; whether a checksum follows the last.
    Block(bool),
    /// So many bytes to be skipped.
    Skip(usize),
}

impl Stream {
    /// Returns a stream at the start of a frame.
    pub fn new() -> Stream {
        Stream::default()
    }

    /// Returns whether the last frame is complete.
    pub fn at_frame_end(&self) -> bool {
        self.state == State::Header && self.kept.is_empty()
    }

    /// Takes a piece of input, and gives what comes out of it to `sink`.
    ///
    /// # Errors
    ///
    /// When the input is no sound frame; a piece that ends inside one is no fault. After an error the stream is of
    /// no more use.
    pub fn push(&mut self, input: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        if self.kept.is_empty() {
            let used = self.run(input, sink)?;
            self.kept.extend_from_slice(&input[used..]);
            return Ok(());
        }
        let mut all = std::mem::take(&mut self.kept);
        all.extend_from_slice(input);
        let used = self.run(&all, sink)?;
        all.drain(..used);
        self.kept = all;
        Ok(())
    }

    /// Takes what is whole of the input. Returns how many bytes that was.
    fn run(&mut self, input: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<usize, Error> {
        let mut at = 0;
        loop {
            match self.step(&input[at..], sink) {
                Ok(0) | Err(Fault::Ends) => break,
                Ok(used) => at += used,
                Err(fault) => {
                    return Err(Error {
                        offset: self.taken + at,
                        fault,
                    });
                }
            }
        }
        self.taken += at;
        Ok(at)
    }

    /// Takes one header or block.
    fn step(&mut self, input: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<usize, Fault> {
        match self.state {
            _ if input.is_empty() => Err(Fault::Ends),
            State::Header => match Header::read(input)? {
                Head::Skip(len) => {
                    self.state = State::Skip(len);
                    self.step(input, sink)
                }
                Head::Frame(header) => {
                    self.decoder.start_frame();
                    self.window = usize::try_from(header.window).unwrap_or(usize::MAX);
                    if self.window > MAX_WINDOW {
                        return Err(Fault::Window);
                    }
                    self.end = 0;
                    self.state = State::Block(header.checksum);
                    Ok(header.len)
                }
            },
            State::Skip(len) => {
                let used = len.min(input.len());
                self.state = if used == len {
                    State::Header
                } else {
                    State::Skip(len - used)
                };
                Ok(used)
            }
            State::Block(checksum) => {
                let block = Block::read(input)?;
                self.make_room(block.most());
                let start = self.end;
                self.end = self
                    .decoder
                    .block(&block, &mut self.out, (0, start, usize::MAX))?;
                sink(&self.out[start..self.end]);
                if block.last {
                    self.state = if checksum {
                        State::Skip(4)
                    } else {
                        State::Header
                    };
                }
                Ok(block.len)
            }
        }
    }

    /// Makes room for what comes out of a block; moves the window to the front when it has moved far enough.
    fn make_room(&mut self, most: usize) {
        if self.end > self.window.saturating_add(self.window.max(8 * MAX_BLOCK)) {
            self.out.copy_within(self.end - self.window..self.end, 0);
            self.end = self.window;
        }
        if self.out.len() < self.end + most + SLACK {
            let len = (self.end + most + SLACK).max(
                self.out
                    .len()
                    .saturating_mul(2)
                    .min(self.end + 8 * MAX_BLOCK),
            );
            self.out.resize(len, 0);
        }
    }
}
