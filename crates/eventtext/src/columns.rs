//! What the columns of a line are made of, whichever tool's they are: short texts, time stamps and CPUs that
//! were put together once and are copied as blocks of known size.

use crate::digits::decimal;

const NANOSECONDS: u64 = 1_000_000_000;

/// A short text that is copied as a whole, whatever its length: copies of a known size need no call.
#[derive(Debug, Clone)]
pub(crate) struct Piece<const N: usize> {
    pub bytes: [u8; N],
    pub len: u8,
    /// The text, where it does not fit.
    long: Option<Box<[u8]>>,
}

impl<const N: usize> Piece<N> {
    pub(crate) fn new(text: Vec<u8>) -> Piece<N> {
        let mut piece = Piece {
            bytes: [0; N],
            len: 0,
            long: None,
        };
        match piece.bytes.get_mut(..text.len()) {
            Some(place) => {
                place.copy_from_slice(&text);
                piece.len = text.len() as u8;
            }
            None => piece.long = Some(text.into_boxed_slice()),
        }
        piece
    }

    /// Appends the text.
    #[inline]
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match &self.long {
            None => {
                let end = out.len() + self.len as usize;
                out.extend_from_slice(&self.bytes);
                out.truncate(end);
            }
            Some(long) => out.extend_from_slice(long),
        }
    }

    /// Whether the text does not fit into `bytes`.
    #[inline]
    pub(crate) fn is_long(&self) -> bool {
        self.long.is_some()
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> &[u8] {
        match &self.long {
            Some(long) => long,
            None => self.bytes.get(..self.len as usize).unwrap_or_default(),
        }
    }
}

/// Time stamps: the second hardly changes from one line to the next.
#[derive(Debug)]
pub(crate) struct Clock {
    /// Nanoseconds at which the second in `text` begins.
    second: u64,
    /// The second with its point, which are 12 bytes at most, and how many they are.
    pub text: [u8; 16],
    pub len: u8,
    /// Whether there are nine decimals instead of six.
    pub nanoseconds: bool,
}

impl Clock {
    pub(crate) fn new(nanoseconds: bool) -> Clock {
        let mut clock = Clock {
            second: 0,
            text: [0; 16],
            len: 0,
            nanoseconds,
        };
        clock.set(0);
        clock
    }

    /// A time takes up 12 columns at least, six of them decimals (`%12s`, or `%5lu.%09llu`).
    #[cold]
    fn set(&mut self, second: u64) {
        let mut text = Vec::with_capacity(16);
        decimal(&mut text, second, 5);
        text.push(b'.');
        self.second = second.wrapping_mul(NANOSECONDS);
        self.len = text.len().min(self.text.len()) as u8;
        for (place, byte) in self.text.iter_mut().zip(text) {
            *place = byte;
        }
    }

    /// Returns the second with its point.
    pub(crate) fn second(&self) -> &[u8] {
        self.text.get(..self.len as usize).unwrap_or_default()
    }

    /// Moves on to the second of a time, and returns its nanoseconds.
    #[inline]
    pub(crate) fn advance(&mut self, time: u64) -> u32 {
        let part = time.wrapping_sub(self.second);
        if part < NANOSECONDS {
            return part as u32;
        }
        self.set(time / NANOSECONDS);
        (time % NANOSECONDS) as u32
    }
}

/// The column of the CPU (`[%03d]`), as six bytes and two to make it a copy of known size.
pub(crate) const CPUS: [[u8; 8]; 1000] = {
    let mut cpus = [*b"[000]   "; 1000];
    let mut n = 0;
    while n < 1000 {
        cpus[n][1] += (n / 100) as u8;
        cpus[n][2] += (n / 10 % 10) as u8;
        cpus[n][3] += (n % 10) as u8;
        n += 1;
    }
    cpus
};

/// Copies bytes to a place in a line, and returns where the first `len` of them end. Those behind are there to
/// make it a copy of known size; the next one goes over them.
#[inline(always)]
pub(crate) fn copy<const LINE: usize, const N: usize>(
    line: &mut [u8; LINE],
    at: usize,
    bytes: &[u8; N],
    len: u8,
) -> usize {
    match line.get_mut(at..at + N) {
        Some(place) => {
            place.copy_from_slice(bytes);
            at + len as usize
        }
        None => at,
    }
}
