//! Bit readers: forward for table descriptions, backward for coded data.
//!
//! Source: RFC 8878, sections 4.1 and 4.2: descriptions are read from their first bit on, coded streams from
//! their last. The last byte of a stream has a one bit above its data that marks the end.

use crate::Fault;

/// Reads bits from the first on, lowest bit of each byte first.
#[derive(Debug)]
pub(crate) struct Forward<'a> {
    data: &'a [u8],
    /// Bits read so far.
    at: usize,
}

impl<'a> Forward<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Forward { data, at: 0 }
    }

    /// Reads up to 16 bits; those beyond the end are zero, which [`Forward::bytes`] finds out.
    pub(crate) fn read(&mut self, count: u32) -> u32 {
        let byte = self.at / 8;
        let mut word = [0; 4];
        let rest = self.data.get(byte..).unwrap_or_default();
        let len = rest.len().min(4);
        word[..len].copy_from_slice(&rest[..len]);
        let value = (u32::from_le_bytes(word) >> (self.at % 8)) & ((1 << count) - 1);
        self.at += count as usize;
        value
    }

    /// Takes back bits.
    pub(crate) fn unread(&mut self, count: u32) {
        self.at -= count as usize;
    }

    /// Returns how many bytes were begun, if they were all there.
    pub(crate) fn bytes(&self) -> Option<usize> {
        let bytes = self.at.div_ceil(8);
        (bytes <= self.data.len()).then_some(bytes)
    }
}

/// Reads bits from the last on.
#[derive(Debug, Clone)]
pub(crate) struct Backward<'a> {
    data: &'a [u8],
    /// Bytes of `data` not yet taken into `bits`; below zero when more was taken than there is.
    left: isize,
    /// The next bits, the very next one on top.
    bits: u64,
    /// How many of `bits` are valid.
    valid: u32,
}

impl<'a> Backward<'a> {
    /// Begins below the end mark of a stream.
    pub(crate) fn new(data: &'a [u8]) -> Result<Self, Fault> {
        let Some(&last) = data.last() else {
            return Err(Fault::Bits);
        };
        if last == 0 {
            return Err(Fault::Bits);
        }
        let mut reader = Backward {
            data,
            left: data.len() as isize,
            bits: 0,
            valid: 0,
        };
        reader.refill();
        reader.skip(last.leading_zeros() + 1);
        Ok(reader)
    }

    /// Makes at least 56 bits valid; bits before the first are zero.
    #[inline(always)]
    pub(crate) fn refill(&mut self) {
        let word = if self.left >= 8
            && let Some(bytes) = self.data.get(self.left as usize - 8..)
            && let Some(&bytes) = bytes.first_chunk::<8>()
        {
            u64::from_le_bytes(bytes)
        } else {
            self.last_word()
        };
        self.bits |= word >> self.valid;
        self.left -= ((63 - self.valid) >> 3) as isize;
        self.valid |= 56;
    }

    /// Returns the last bytes of the stream, as if zeros stood before them.
    #[cold]
    fn last_word(&self) -> u64 {
        let mut word = [0; 8];
        if let Ok(left) = usize::try_from(self.left) {
            let left = left.min(8).min(self.data.len());
            word[8 - left..].copy_from_slice(&self.data[..left]);
        }
        u64::from_le_bytes(word)
    }

    /// Returns the next bits, 1 to 56, without reading them.
    #[inline(always)]
    pub(crate) fn peek(&self, count: u32) -> usize {
        (self.bits >> (64 - count)) as usize
    }

    /// Reads 0 to 56 bits.
    #[inline(always)]
    pub(crate) fn read(&mut self, count: u32) -> u32 {
        let value = (self.bits >> 1) >> (63 - count);
        self.skip(count);
        value as u32
    }

    #[inline(always)]
    pub(crate) fn skip(&mut self, count: u32) {
        self.bits <<= count;
        self.valid = self.valid.wrapping_sub(count);
    }

    /// Returns how many bits are left; below zero when more were read than there are.
    #[inline(always)]
    pub(crate) fn remaining(&self) -> isize {
        self.left * 8 + self.valid as isize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forward_reads_low_bits_first() {
        let mut bits = Forward::new(&[0b1010_0110, 0b0000_0001]);
        assert_eq!(
            (bits.read(3), bits.read(2), bits.read(5)),
            (0b110, 0b00, 0b01101)
        );
        assert_eq!(bits.bytes(), Some(2));
        bits.unread(2);
        assert_eq!(bits.bytes(), Some(1));
        bits.read(16);
        assert_eq!(bits.bytes(), None);
    }

    #[test]
    fn backward_begins_below_the_mark() {
        assert!(Backward::new(&[]).is_err());
        assert!(Backward::new(&[1, 0]).is_err());
        let mut bits = Backward::new(&[0b1100_0011, 0b0000_0101]).unwrap();
        assert_eq!(bits.remaining(), 10);
        assert_eq!(
            (bits.read(3), bits.read(0), bits.peek(4)),
            (0b011, 0, 0b1000)
        );
        assert_eq!((bits.read(7), bits.remaining()), (0b1000011, 0));
        assert_eq!((bits.read(5), bits.remaining()), (0, -5));
    }

    #[test]
    fn backward_goes_through_long_streams() {
        let data: Vec<u8> = (0..100).map(|n| n as u8 ^ 0x5a).chain([1]).collect();
        let mut bits = Backward::new(&data).unwrap();
        for at in (0..100).rev() {
            bits.refill();
            assert_eq!(bits.read(8), u32::from(data[at]), "byte {at}");
        }
        assert_eq!(bits.remaining(), 0);
        bits.refill();
        assert_eq!((bits.read(20), bits.remaining()), (0, -20));
    }
}
