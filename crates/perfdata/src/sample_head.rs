//! The beginning of a sample: its header and the eight words behind it.
//!
//! All that decides what happens to a sample stands in these, and so does what most readers ask of it. They are looked
//! at as one array, so that one look at the record's end does for all of them.

use crate::attr::SampleLayout;
use crate::record::{HEADER, PerfRecordHeader};

/// Bytes of a word, and words behind the header.
const WORD: usize = 8;
const WORDS: usize = NO_WORD as usize;
/// Bytes of a head.
const HEAD: usize = HEADER + WORDS * WORD;
/// Stands for a word that is not in the head, or not recorded.
const NO_WORD: u8 = 8;

/// The first bytes at the place of a record: what is behind a short one belongs to others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleHead<'d>(&'d [u8; HEAD]);

impl<'d> SampleHead<'d> {
    /// Returns the head at a place, if so many bytes are there.
    #[inline(always)]
    pub(crate) fn at(data: &'d [u8], at: usize) -> Option<SampleHead<'d>> {
        data.get(at..)?.first_chunk().map(SampleHead)
    }

    /// Returns the record's header.
    #[inline(always)]
    pub(crate) fn header<const BIG: bool>(self) -> PerfRecordHeader {
        PerfRecordHeader::of_word::<BIG>(self.number::<BIG>(0))
    }

    /// Returns a word.
    #[inline(always)]
    pub(crate) fn word<const BIG: bool>(self, word: HeadWord) -> Option<u64> {
        let number = usize::from(word.0);
        (number < WORDS).then(|| self.number::<BIG>(HEADER + number * WORD))
    }

    /// Returns one of the two 32-bit numbers that a word is; -1 where that is not recorded.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "each half of the word is a number"
    )]
    pub(crate) fn half<const BIG: bool>(self, word: HeadWord, second: bool) -> i32 {
        // The first is the low half in one byte order, the high in the other.
        self.word::<BIG>(word)
            .map_or(-1, |word| match second == BIG {
                true => word as i32,
                false => (word >> 32) as i32,
            })
    }

    #[inline(always)]
    fn number<const BIG: bool>(self, at: usize) -> u64 {
        let bytes = self.0.get(at..).and_then(<[u8]>::first_chunk);
        let bytes: [u8; WORD] = bytes.copied().unwrap_or_default();
        match BIG {
            true => u64::from_be_bytes(bytes),
            false => u64::from_le_bytes(bytes),
        }
    }
}

/// The number of a word of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadWord(u8);

impl HeadWord {
    /// Makes it of a place in the body.
    pub(crate) fn of(place: Option<u16>) -> HeadWord {
        let number = place.and_then(|at| u8::try_from(usize::from(at) / WORD).ok());
        HeadWord(number.filter(|one| *one < NO_WORD).unwrap_or(NO_WORD))
    }

    /// Returns whether heads have it.
    pub(crate) fn is_there(self) -> bool {
        self.0 < NO_WORD
    }

    /// Returns the bytes of a record up to its beginning.
    #[inline(always)]
    pub(crate) fn start(self) -> usize {
        HEADER + usize::from(self.0) * WORD
    }

    /// Returns the bytes of a record up to its end; those of the header for none.
    fn end(self) -> usize {
        match self.is_there() {
            true => self.start() + WORD,
            false => HEADER,
        }
    }
}

/// Where the samples of an attribute have what is asked of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadPlaces {
    /// Bytes of the shortest record that has all of it.
    pub least: u16,
    /// Process and thread.
    pub tid: HeadWord,
    /// The CPU.
    pub cpu: HeadWord,
    /// The beginning of a tracepoint's record, if that is the first part of variable size.
    pub raw: HeadWord,
}

impl HeadPlaces {
    pub(crate) fn new(layout: &SampleLayout) -> HeadPlaces {
        let (tid, cpu) = (HeadWord::of(layout.tid), HeadWord::of(layout.cpu));
        let raw = HeadWord::of(layout.raw);
        let fixed = [layout.id, layout.time].map(HeadWord::of);
        let ends = fixed.into_iter().chain([tid, cpu, raw]).map(HeadWord::end);
        let least = ends.fold(HEADER, usize::max);
        HeadPlaces {
            least: u16::try_from(least).unwrap_or(u16::MAX),
            tid,
            cpu,
            raw,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_both_byte_orders() {
        let mut little = [0u8; 80];
        little[..8].copy_from_slice(&0x0048_0002_0000_0009u64.to_le_bytes());
        little[24..32].copy_from_slice(&0x0000_0007_0000_0005u64.to_le_bytes());
        let tid = HeadWord::of(Some(16));
        let head = SampleHead::at(&little, 0).unwrap();
        let header = head.header::<false>();
        assert_eq!((header.kind, header.misc, header.size), (9, 2, 0x48));
        assert_eq!(head.half::<false>(tid, false), 5);
        assert_eq!(head.half::<false>(tid, true), 7);
        let mut big = little;
        big[24..32].copy_from_slice(&0x0000_0005_0000_0007u64.to_be_bytes());
        let head = SampleHead::at(&big, 0).unwrap();
        assert_eq!(head.half::<true>(tid, false), 5);
        assert_eq!(head.half::<true>(tid, true), 7);
        // What is behind the eighth word, or nowhere, is in no head.
        for none in [HeadWord::of(Some(64)), HeadWord::of(None)] {
            assert_eq!((head.word::<false>(none), none.is_there()), (None, false));
            assert_eq!(head.half::<false>(none, true), -1);
        }
        assert!(SampleHead::at(&big, 8).is_some());
        assert!(SampleHead::at(&big, 9).is_none());
        assert!(SampleHead::at(&big, usize::MAX).is_none());
    }
}
