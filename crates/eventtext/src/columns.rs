//! What the columns of a line are made of, whichever tool's they are: short texts, time stamps and CPUs that
//! were put together once and are copied as blocks of known size.

use tracefmt::{FormatText, is_plain};

use crate::digits::{THREES, decimal, three};

/// How a recording prints its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeColumns {
    /// As seconds with decimals; if not, as plain numbers.
    pub seconds: bool,
    /// With nine decimals instead of six.
    pub ns: bool,
}

const NANOSECONDS: u64 = 1_000_000_000;

/// A short text that is copied as a whole, whatever its length: copies of a known size need no call.
#[derive(Debug, Clone)]
pub(crate) struct ShortText<const N: usize> {
    pub bytes: [u8; N],
    pub len: u8,
    /// Whether nothing in the text steers a terminal.
    pub plain: bool,
    /// The text, where it does not fit.
    long: Option<Box<[u8]>>,
}

impl<const N: usize> ShortText<N> {
    pub(crate) fn new(text: &[u8]) -> ShortText<N> {
        let mut piece = ShortText {
            bytes: [0; N],
            len: 0,
            plain: is_plain(text),
            long: None,
        };
        match piece.bytes.get_mut(..text.len()) {
            Some(place) => {
                place.copy_from_slice(text);
                piece.len = text.len() as u8;
            }
            None => piece.long = Some(text.into()),
        }
        piece
    }

    /// Appends the text.
    #[inline]
    pub(crate) fn put(&self, out: &mut FormatText) {
        match &self.long {
            None => out.block(&self.bytes, usize::from(self.len)),
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

/// Time stamps: the millisecond hardly changes from one line to the next.
#[derive(Debug)]
pub(crate) struct StampCache {
    /// The nanosecond at which the millisecond in `text` begins.
    start: u64,
    /// The second with its point and three decimals, which are 15 bytes at most, and how many they are.
    pub text: [u8; 16],
    pub len: u8,
    /// Whether there are nine decimals instead of six.
    pub nanoseconds: bool,
}

impl StampCache {
    pub(crate) fn new(nanoseconds: bool) -> StampCache {
        let mut clock = StampCache {
            start: 0,
            text: [0; 16],
            len: 0,
            nanoseconds,
        };
        clock.set(0);
        clock
    }

    /// A time takes up 12 columns at least, six of them decimals (`%12s`, or `%5lu.%09llu`).
    #[inline(never)]
    fn set(&mut self, time: u64) {
        let (second, part) = (time / NANOSECONDS, time % NANOSECONDS);
        let millis = part / 1_000_000;
        let same = self.len > 0 && second == self.start / NANOSECONDS;
        if !same {
            let mut text = FormatText::new();
            decimal(&mut text, second, 5);
            text.extend_from_slice(b".000");
            self.len = text.len().min(self.text.len()) as u8;
            for (place, byte) in self.text.iter_mut().zip(text.as_bytes()) {
                *place = *byte;
            }
        }
        let end = usize::from(self.len);
        if let Some(place) = self.text.get_mut(end.saturating_sub(3)..end) {
            place.copy_from_slice(&three(millis as u32));
        }
        self.start = time - part % 1_000_000;
    }

    /// Returns the second with its point and three decimals.
    pub(crate) fn millisecond(&self) -> &[u8] {
        self.text.get(..self.len as usize).unwrap_or_default()
    }

    /// Moves on to the millisecond of a time, and returns its nanoseconds.
    #[inline]
    pub(crate) fn advance(&mut self, time: u64) -> u32 {
        match time.checked_sub(self.start) {
            Some(part @ 0..1_000_000) => part as u32,
            _ => {
                self.set(time);
                (time - self.start) as u32
            }
        }
    }
}

/// The column of the CPU (`[%03d]`), as six bytes and two to make it a copy of known size.
pub(crate) const CPUS: [[u8; 8]; 1000] = {
    let mut cpus = [[0; 8]; 1000];
    let mut n = 0;
    while n < 1000 {
        let [a, b, c, _] = THREES[n];
        cpus[n] = [b'[', a, b, c, b']', b' ', b' ', b' '];
        n += 1;
    }
    cpus
};

/// Room for the columns of usual size, whatever their lengths say they are: three of those are bytes, and all others
/// are known. So there is room for all columns if there is as much as this, and no need to look before each.
pub(crate) const LINE: usize = 3 * 255 + 32;

/// Copies bytes to a place in a line, and returns where the first `len` of them end. Those behind are there to
/// make it a copy of known size; the next one goes over them.
#[inline(always)]
pub(crate) fn copy<const N: usize>(
    line: &mut [u8; LINE],
    at: usize,
    bytes: &[u8; N],
    len: u8,
) -> usize {
    match line.get_mut(at..at + N) {
        Some(place) => {
            place.copy_from_slice(bytes);
            at + usize::from(len)
        }
        None => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_right_in_any_order() {
        let mut clock = StampCache::new(false);
        let seconds = [0, 1, 7, 99_999, 100_000, u64::MAX / NANOSECONDS - 1];
        let parts = [0, 1, 999_999, 1_000_000, 77_123_456, 999_999_999];
        let times = seconds.map(|s| parts.map(|p| s * NANOSECONDS + p));
        let times: Vec<u64> = times.into_iter().flatten().chain([u64::MAX]).collect();
        for step in 1..times.len() {
            for at in 0..2 * times.len() {
                let time = times[at * step % times.len()];
                let part = clock.advance(time);
                let text = String::from_utf8_lossy(clock.millisecond()).into_owned();
                let (second, rest) = (time / NANOSECONDS, time % NANOSECONDS);
                assert_eq!(format!("{text}{part:06}"), format!("{second:5}.{rest:09}"));
            }
        }
    }
}
